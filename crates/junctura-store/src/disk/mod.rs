//! What the store asks of a file system, and nothing besides: so that its promises can be tried on one that tears writes, runs
//! full and loses what was not synced, at every call.
//!
//! Paths are relative to the store's root, with `/` between names.

#[cfg(test)]
pub(crate) mod faulty;
mod local;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, Result};

pub(crate) use local::LocalDisk;

/// A folder and what lies in it.
pub(crate) trait Disk: Debug + Send + Sync {
    /// Makes a file that was not there (`AlreadyExists` otherwise), and the folders above it.
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>>;
    /// Opens a file, for writing too where that is allowed.
    fn open(&self, path: &str) -> io::Result<Arc<dyn File>>;
    /// Gives a file a name that must be free, in one step; the old name goes.
    fn publish(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// The names of files in a folder and of folders in it; none when there is no such folder.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// When a file was last written, since 1970.
    fn modified(&self, path: &str) -> io::Result<Duration>;
    /// Where other programs find a file.
    fn uri(&self, path: &str) -> String;
    /// Makes the names in a folder, and those of the folders above it, last.
    fn sync_names(&self, folder: &str) -> io::Result<()>;
}

/// A file that is open.
pub(crate) trait File: Debug + Send + Sync {
    /// Bytes.
    fn len(&self) -> io::Result<u64>;
    /// Reads what is there, perhaps less than asked for; nothing at the end.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;
    /// Writes, perhaps only a part.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize>;
    /// Cuts.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Makes what was written last.
    fn sync(&self) -> io::Result<()>;
    /// Waits until no other opening of the file has the lock; a death gives it back.
    fn lock(&self) -> io::Result<()>;
    /// Gives it back.
    fn unlock(&self) -> io::Result<()>;
}

/// Writes all of it.
pub(crate) fn write_all(file: &dyn File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, at)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => {
                bytes = &bytes[written..];
                at += written as u64;
            }
        }
    }
    Ok(())
}

/// Reads until the space is full or the file ends; says how much it was.
pub(crate) fn read_full(file: &dyn File, into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], at + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// Makes last what a file has from one byte to another, where nobody changes it any more. When a sync fails, the system forgets what
/// it could not write, and the next one would succeed without it: so it is written once more, and synced again.
pub(crate) fn sync_range(file: &dyn File, from: u64, end: u64) -> io::Result<()> {
    const PIECE_BYTES: usize = 1 << 20;
    if file.sync().is_ok() {
        return Ok(());
    }
    let mut at = from;
    while at < end {
        let mut piece = vec![0; (end - at).min(PIECE_BYTES as u64) as usize];
        let read = read_full(file, &mut piece, at)?;
        if read == 0 {
            break;
        }
        write_all(file, &piece[..read], at)?;
        at += read as u64;
    }
    file.sync()
}

/// All that a file has, if it has no more than `bytes_max`.
pub(crate) fn read_whole(disk: &dyn Disk, path: &str, bytes_max: u64) -> Result<Vec<u8>> {
    let read = || -> io::Result<Vec<u8>> {
        let file = disk.open(path)?;
        let bytes = file.len()?;
        if bytes > bytes_max {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{bytes} bytes")));
        }
        let mut whole = vec![0; bytes as usize];
        let read = read_full(&*file, &mut whole, 0)?;
        whole.truncate(read);
        Ok(whole)
    };
    read().map_err(|error| refused(path, "cannot be read", &error))
}

/// What the system refused, by its meaning.
pub(crate) fn refused(subject: impl Into<String>, what: &str, error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::AlreadyExists => Code::AlreadyExists,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::Denied,
        io::ErrorKind::FileTooLarge => Code::TooLarge,
        _ => Code::Io,
    };
    Error::new(code, subject, format!("{what}: {error}"))
}
