//! The directory that holds this user's named sockets.
//!
//! Every user can write to `/tmp`: another user may have made `/tmp/junctura-1000` first, to listen in our place. So the
//! directory must be a real one (no link), ours, and closed to others; otherwise it is refused, not repaired.

use std::path::{Path, PathBuf};

use junctura_model::{Code, Error, Result};
use rustix::fs::{FileType, Mode, lstat, mkdir, stat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::refused;

/// Its path; it need not be there yet.
pub(crate) fn of_this_user() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    choose(runtime.as_deref())
}

fn choose(runtime: Option<&Path>) -> PathBuf {
    let uid = geteuid().as_raw();
    match runtime {
        Some(runtime) if runtime.is_absolute() && is_directory_of(runtime, uid) => runtime.join("junctura"),
        _ => PathBuf::from(format!("/tmp/junctura-{uid}")),
    }
}

fn is_directory_of(path: &Path, uid: u32) -> bool {
    stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory && stat.st_uid == uid)
}

/// Makes the directory unless it is there, and checks it.
///
/// # Errors
/// `Denied` when others could put a socket there; `Io` when it cannot be made.
pub(crate) fn make(path: &Path) -> Result<()> {
    match mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => check(path),
        Err(errno) => Err(refused(
            Code::Io,
            path.display().to_string(),
            "cannot make the directory",
            errno,
        )),
    }
}

/// Checks that no other user can put a socket there.
///
/// # Errors
/// `Denied` when another user could; `Unavailable` when the directory does not exist.
pub(crate) fn check(path: &Path) -> Result<()> {
    let subject = || path.display().to_string();
    let denied = |cause: String| Err(Error::new(Code::Denied, subject(), cause));
    let stat = match lstat(path) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Err(Error::new(Code::Unavailable, subject(), "no server has run here")),
        Err(errno) => return Err(refused(Code::Io, subject(), "cannot inspect the directory", errno)),
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return denied("it must be a directory, not a link to one".to_owned());
    }
    if stat.st_uid != geteuid().as_raw() {
        return denied(format!("it belongs to user {}", stat.st_uid));
    }
    if stat.st_mode & 0o077 != 0 {
        return denied(format!(
            "its mode is {:04o}: other users have access; it must be 0700",
            stat.st_mode & 0o7777
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn code(result: Result<()>) -> Option<Code> {
        result.err().map(|error| error.code())
    }

    #[test]
    fn a_directory_of_ours_is_made_and_closed_to_others() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("junctura");
        assert_eq!(code(check(&path)), Some(Code::Unavailable));
        make(&path).unwrap();
        make(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(code(make(&path.join("a/b"))), Some(Code::Io));
    }

    #[test]
    fn what_others_could_use_is_refused() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("junctura");
        make(&path).unwrap();
        for mode in [0o710, 0o701, 0o777, 0o1777] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(code(make(&path)), Some(Code::Denied));
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        let link = room.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(code(make(&link)), Some(Code::Denied));
        let file = room.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(code(make(&file)), Some(Code::Denied));
        if geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            assert_eq!(code(make(&path)), Some(Code::Denied));
        }
    }

    #[test]
    fn the_runtime_directory_counts_only_where_it_is_ours() {
        let room = tempfile::tempdir().unwrap();
        let fallback = PathBuf::from(format!("/tmp/junctura-{}", geteuid().as_raw()));
        assert_eq!(choose(Some(room.path())), room.path().join("junctura"));
        assert_eq!(choose(Some(&room.path().join("missing"))), fallback);
        assert_eq!(choose(Some(Path::new(""))), fallback);
        assert_eq!(choose(Some(Path::new("relative"))), fallback);
        assert_eq!(choose(None), fallback);
    }
}
