//! The file system of this machine.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use junctura_memory::FileMap;
use rustix::fs::{FlockOperation, flock};

use super::mounts::{is_mount_point, other_paths};
use super::{Disk, Draft, File, Notices, Pause, Watch};

/// NFS, SMB and CIFS, as `statfs(2)` calls them.
const REMOTE: [u32; 4] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42];

/// A folder of it.
#[derive(Debug)]
pub(crate) struct LocalDisk {
    root: PathBuf,
}

#[derive(Debug)]
struct LocalFile {
    file: fs::File,
    /// What the system said of writing, where the file could be opened for reading only.
    refused: Option<i32>,
}

impl LocalDisk {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// # Errors
    /// `InvalidInput` for a name that leads out of the root: names are read from files, which somebody else may have written.
    fn path(&self, path: &str) -> io::Result<PathBuf> {
        let is_within = |part| matches!(part, Component::Normal(_));
        if !Path::new(path).components().all(is_within) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it leads out of the store"));
        }
        Ok(self.root.join(path))
    }
}

fn is_one_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

impl Disk for LocalDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        let path = self.path(path)?;
        let create = || fs::File::options().read(true).write(true).create_new(true).open(&path);
        let created = match create() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
                create()
            }
            created => created,
        };
        Ok(Arc::new(LocalFile {
            file: created?,
            refused: None,
        }))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        let path = self.path(path)?;
        let (file, refused) = match fs::File::options().read(true).write(true).open(&path) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                (fs::File::open(&path)?, error.raw_os_error())
            }
            opened => (opened?, None),
        };
        Ok(Arc::new(LocalFile { file, refused }))
    }

    fn publish(&self, draft: &Draft, to: &str) -> io::Result<()> {
        let (from, to) = (self.path(&draft.beside)?, self.path(to)?);
        let linked = fs::hard_link(&from, &to);
        // A server whose answer was lost is asked again, and says that the name is taken; it may be by this very file.
        if let Err(error) = linked
            && !is_one_file(&from, &to)
        {
            return Err(error);
        }
        // What is left of it is found by compaction.
        let _ = fs::remove_file(from);
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.path(path)?)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path(folder)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let name =
            |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name().to_string_lossy().into_owned());
        entries.map(name).collect()
    }

    fn len(&self, path: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path(path)?)?.len())
    }

    fn modified(&self, path: &str) -> io::Result<Duration> {
        let at = fs::metadata(self.path(path)?)?.modified()?;
        Ok(at.duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    fn uri(&self, path: &str) -> String {
        let path = self.root.join(path);
        let path = std::path::absolute(&path).unwrap_or(path);
        format!("file://{}", path.display())
    }

    fn watch(&self, folder: &str) -> Box<dyn Watch> {
        let told = self.path(folder).and_then(|path| Notices::of(&path));
        told.map_or_else(|_| Box::new(Pause) as Box<dyn Watch>, |told| Box::new(told))
    }

    fn is_at(&self, uri: &str) -> bool {
        uri.strip_prefix("file://")
            .is_some_and(|path| is_one_file(Path::new(path), &self.root))
    }

    fn identity(&self, path: &str) -> Option<String> {
        let file = fs::metadata(self.path(path).ok()?).ok()?;
        let folder = fs::metadata(&self.root).ok()?;
        let (file, folder) = ((file.ino(), file.mtime(), file.mtime_nsec()), folder.ino());
        Some(format!("{}-{}.{:09}@{folder}", file.0, file.1, file.2))
    }

    fn links(&self, folder: &str) -> io::Result<Vec<String>> {
        let path = self.path(folder)?;
        let mut links = Vec::new();
        if path.is_symlink() || path.parent().is_some_and(|above| is_mount_point(&path, above)) {
            links.push(folder.to_owned());
        }
        let entries = match fs::read_dir(&path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(links);
            }
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let (inner, kind) = (entry.path(), entry.file_type()?);
            // A link that leads to a file is removed without what it leads to.
            if kind.is_symlink() && inner.is_dir() || kind.is_dir() && is_mount_point(&inner, &path) {
                links.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
        Ok(links)
    }

    fn store_above(&self, folder: &str) -> Option<String> {
        let real = self.path(folder).ok()?.canonicalize().ok()?;
        let paths = [vec![real.clone()], other_paths(&real)].concat();
        let mut above = paths.iter().flat_map(|path| path.ancestors());
        let is_store = |folder: &Path| crate::root::may_be_there(&Self::new(folder));
        let store = above.find(|folder| is_store(folder) && !is_one_file(folder, &self.root))?;
        Some(store.display().to_string())
    }

    fn replace(&self, draft: &Draft, to: &str) -> io::Result<()> {
        let (from, to) = (self.path(&draft.beside)?, self.path(to)?);
        self.stage(draft)?;
        fs::rename(from, to)
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        let whole = self.path(folder)?;
        let above = whole.ancestors().take(1 + Path::new(folder).components().count());
        for folder in above {
            fs::File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

impl LocalFile {
    /// To be written to.
    ///
    /// # Errors
    /// Why it may only be read: a write itself would say that the descriptor is a bad one.
    fn writable(&self) -> io::Result<&fs::File> {
        match self.refused {
            Some(refused) => Err(io::Error::from_raw_os_error(refused)),
            None => Ok(&self.file),
        }
    }
}

impl File for LocalFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.file.read_at(into, at)
    }

    fn map(&self) -> Option<FileMap> {
        // Somebody on another machine may remove the file, and then it cannot be read any more.
        let system = rustix::fs::fstatfs(&self.file).ok()?.f_type;
        if REMOTE.iter().any(|&remote| i128::from(remote) == i128::from(system)) {
            return None;
        }
        FileMap::new(self.file.as_fd(), self.len().ok()?).ok()
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.writable()?.write_at(bytes, at)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.writable()?.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn lock(&self) -> io::Result<()> {
        loop {
            match flock(&self.file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                locked => return Ok(locked?),
            }
        }
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(flock(&self.file, FlockOperation::Unlock)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("other"), "of somebody").unwrap();
        let disk = LocalDisk::new(&folder.path().join("store"));
        for name in ["../other", "data/../../other", "/etc/hostname", "./../other"] {
            for error in [disk.open(name).err(), disk.remove(name).err(), disk.create(name).err()] {
                assert_eq!(error.unwrap().kind(), io::ErrorKind::InvalidInput, "{name}");
            }
        }
        assert!(folder.path().join("other").exists());
    }

    #[test]
    fn a_mount_within_a_folder_is_a_link() {
        let folders = LocalDisk::new(Path::new("/")).links("").unwrap();
        assert!(folders.contains(&"/proc".to_owned()), "{folders:?}");
        let folders = LocalDisk::new(Path::new("/")).links("proc").unwrap();
        let own = format!("proc/{}", std::process::id());
        assert!(
            folders.contains(&"proc".to_owned()) && !folders.contains(&own),
            "{folders:?}"
        );
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("data/inner")).unwrap();
        assert!(LocalDisk::new(folder.path()).links("data").unwrap().is_empty());
    }
}
