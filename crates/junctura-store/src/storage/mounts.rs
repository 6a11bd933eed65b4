//! Mounts within a store, and other paths to their files.
//!
//! `mount --bind` shows a folder, possibly of another store, at a second path. The system does not resolve this as a
//! link, so the list of mounts is read.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// See `proc_pid_mountinfo(5)`.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Returns the number of the mount that contains a path; it differs even for another folder of the same file system.
/// Kernels before Linux 5.8 provide none: the number of the file system is used instead.
fn mount_of(path: &Path) -> io::Result<u64> {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?;
    if found.stx_mask & StatxFlags::MNT_ID.bits() != 0 {
        return Ok(found.stx_mnt_id);
    }
    Ok(fs::metadata(path)?.dev())
}

/// Whether something is mounted at a folder within another one.
pub(super) fn is_mount_point(folder: &Path, above: &Path) -> bool {
    matches!((mount_of(folder), mount_of(above)), (Ok(one), Ok(other)) if one != other)
}

/// Other paths of a folder, by other mounts of its file system; none where the system lists no mounts.
pub(super) fn other_paths(real: &Path) -> Vec<PathBuf> {
    let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
    mount_of(real).map_or_else(|_| Vec::new(), |mount| others(&mounts, mount, real))
}

/// One line of the list.
struct MountLine {
    id: u64,
    /// The file system, by its device.
    device: String,
    /// Which folder of the file system is mounted, and where.
    root: PathBuf,
    point: PathBuf,
}

impl MountLine {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let id = fields.next()?.parse().ok()?;
        let device = fields.nth(1)?.to_owned();
        let (root, point) = (plain(fields.next()?), plain(fields.next()?));
        Some(Self {
            id,
            device,
            root,
            point,
        })
    }
}

fn others(mounts: &str, mount: u64, real: &Path) -> Vec<PathBuf> {
    let all: Vec<MountLine> = mounts.lines().filter_map(MountLine::parse).collect();
    let Some(own) = all.iter().find(|one| one.id == mount) else {
        return Vec::new();
    };
    let Ok(within) = real.strip_prefix(&own.point) else {
        return Vec::new();
    };
    let in_device = own.root.join(within);
    let same = all.iter().filter(|one| one.id != mount && one.device == own.device);
    let elsewhere = same.filter_map(|one| Some(one.point.join(in_device.strip_prefix(&one.root).ok()?)));
    elsewhere.collect()
}

/// A path of the list, where `\040` is a space.
fn plain(field: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let octal = others.get(..3).filter(|_| first == b'\\');
        let octal = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &others[3..] } else { others };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 254:0 /srv/A/data /srv/B/data rw,relatime - ext4 /dev/vda rw
31 22 254:16 / /big\\040disk rw shared:1 - xfs /dev/vdb rw
32 22 254:16 /A /srv/C/data rw shared:1 - xfs /dev/vdb rw
33 22 0:5 / /srv/D/data rw - tmpfs tmpfs rw
";

    #[test]
    fn a_mounted_folder_is_seen_where_its_file_system_is_mounted() {
        for (mount, real, expected) in [
            (30, "/srv/B/data", Some("/srv/A/data")),
            (30, "/srv/B/data/0123", Some("/srv/A/data/0123")),
            (32, "/srv/C/data", Some("/big disk/A")),
            (31, "/big disk/A/x", Some("/srv/C/data/x")),
            (31, "/big disk/E", None),
            (22, "/srv/A/data/x", Some("/srv/B/data/x")),
            (22, "/srv", None),
            (33, "/srv/D/data", None),
            (99, "/srv/B/data", None),
        ] {
            let expected: Vec<PathBuf> = expected.map(PathBuf::from).into_iter().collect();
            assert_eq!(others(LINES, mount, Path::new(real)), expected, "{real}");
        }
    }

    #[test]
    fn each_mount_has_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        assert_eq!(mount_of(&inner).unwrap(), mount_of(folder.path()).unwrap());
        assert_ne!(mount_of(Path::new("/proc")).unwrap(), mount_of(&inner).unwrap());
        mount_of(&folder.path().join("nothing")).unwrap_err();
    }
}
