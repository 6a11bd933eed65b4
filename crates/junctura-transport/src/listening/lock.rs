//! One server for each path.
//!
//! A socket file contains no information about its server: after `kill -9` it stays. A lock on a file next to it ends with
//! the process that holds it, so the holder of the lock may take over any file that is left. A holder that ends normally
//! removes the lock file; a lock file that a killed holder left behind blocks no other process.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use junctura_model::command::shell_word;
use junctura_model::{Code, Error, Result};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, lstat, open, unlink};
use rustix::io::Errno;

use crate::refused;

/// The lock; held while this lives and no child of ours keeps a copy of the descriptor (it is close-on-exec).
#[derive(Debug)]
pub(crate) struct NameLock {
    path: PathBuf,
    file: OwnedFd,
}

impl NameLock {
    /// Takes the lock of the socket at `socket`, without waiting.
    ///
    /// # Errors
    /// `AlreadyExists` when a living server has it; `Denied` or `Io` when its file cannot be opened.
    pub(crate) fn take(socket: &Path) -> Result<Self> {
        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let subject = || path.display().to_string();
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|errno| match errno {
                Errno::ACCESS | Errno::PERM => refused(Code::Denied, subject(), "cannot open the lock file", errno),
                Errno::NOENT => {
                    let folder = socket.parent().unwrap_or(socket).display();
                    let cause = format!("the folder {folder} does not exist; create it first");
                    Error::new(Code::Io, socket.display().to_string(), cause)
                }
                _ => refused(Code::Io, subject(), "cannot open the lock file", errno),
            })?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let stop = format!(
                        "`junctura pool stop --pool {}`",
                        shell_word(&format!("unix:{}", socket.display()))
                    );
                    let cause = format!("a server is running there; use it, or end it with {stop}");
                    return Err(Error::new(Code::AlreadyExists, socket.display().to_string(), cause));
                }
                Err(errno) => return Err(refused(Code::Io, subject(), "cannot lock", errno)),
            }
            let lock = Self {
                path: path.clone(),
                file,
            };
            // Between open and lock, an earlier holder may have left and removed the file: that lock excludes no other
            // process.
            if lock.is_in_place() {
                return Ok(lock);
            }
        }
    }

    fn is_in_place(&self) -> bool {
        match (fstat(&self.file), lstat(&self.path)) {
            (Ok(ours), Ok(there)) => (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino),
            _ => false,
        }
    }

    /// Removes the lock's file and releases the lock.
    pub(crate) fn remove(self) {
        if self.is_in_place() {
            let _ = unlink(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_nothing_left_behind() {
        let room = tempfile::tempdir().unwrap();
        let socket = room.path().join("a.sock");
        let lock = NameLock::take(&socket).unwrap();
        let error = NameLock::take(&socket).unwrap_err();
        assert_eq!(
            (error.code(), error.subject()),
            (Code::AlreadyExists, socket.to_str().unwrap())
        );
        lock.remove();
        assert_eq!(std::fs::read_dir(room.path()).unwrap().count(), 0);
        // A killed holder leaves the file, without the lock.
        drop(NameLock::take(&socket).unwrap());
        assert!(room.path().join("a.sock.lock").exists());
        drop(NameLock::take(&socket).unwrap());
    }

    #[test]
    fn a_lock_whose_file_was_replaced_does_not_remove_the_other() {
        let room = tempfile::tempdir().unwrap();
        let socket = room.path().join("a.sock");
        let old = NameLock::take(&socket).unwrap();
        std::fs::remove_file(&old.path).unwrap();
        let new = NameLock::take(&socket).unwrap();
        assert!(!old.is_in_place());
        old.remove();
        assert!(new.is_in_place());
    }
}
