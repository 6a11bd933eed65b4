//! The interface of a store to its storage: a store can use a file system, memory or an object store, and its
//! guarantees can be tested on a simulated file system that tears writes, is full, and loses unsynced data, at every
//! call.
//!
//! | | `LocalDisk` | `MemoryDisk` | `S3Disk` |
//! |---|---|---|---|
//! | a file is written | from flush to flush | the same | up to its first sync: then it is an object |
//! | a name that must be free | a link to a file that was synced | an entry of a map | a conditional put |
//! | names are durable | when their folder was synced | as long as the process | as soon as they exist |
//!
//! Paths are relative to the store's root, with `/` between names. All implementations pass `conformance.rs`.

mod cache;
#[cfg(test)]
mod conformance;
#[cfg(test)]
pub(crate) mod faulty;
mod local;
mod memory;
mod mounts;
mod placed;
#[cfg(feature = "s3")]
mod s3;
mod tiered;
mod watch;

use std::fmt::Debug;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use junctura_memory::FileMap;
use junctura_model::{Code, Error, Result};

pub(crate) use cache::CacheDisk;
pub(crate) use local::LocalDisk;
pub(crate) use memory::MemoryDisk;
#[cfg(feature = "s3")]
pub(crate) use s3::S3Disk;
pub(crate) use tiered::{DataPlaces, TieredDisk};
pub(crate) use watch::{FolderNotices, FolderWatch, PollingPause};

/// More parallel reads are not faster from memory, and rarely from a disk.
const LOCAL_READS_MAX: usize = 4;

/// Bytes that are to have a name, all at once.
#[derive(Debug)]
pub(crate) struct FileDraft {
    /// The temporary path in a file system; unique.
    pub(crate) beside: String,
    pub(crate) bytes: Vec<u8>,
}

/// A file that was begun and not completed.
#[derive(Clone, Debug)]
pub(crate) struct UnfinishedFile {
    pub(crate) path: String,
    /// Distinguishes it from others of the same name.
    #[cfg(feature = "s3")]
    pub(crate) id: String,
    /// When it was begun, since 1970.
    pub(crate) since: Duration,
}

/// A folder and its files.
pub(crate) trait StorageDisk: Debug + Send + Sync {
    /// Whether a store can be made here; `is_exclusive`: whose commits need names that are given only once.
    ///
    /// # Errors
    /// `Unsupported` where such a name is given twice; what the system refuses.
    fn probe(&self, _is_exclusive: bool) -> Result<()> {
        Ok(())
    }
    /// Makes a file that was not there (`AlreadyExists` otherwise), and the folders above it.
    fn create(&self, path: &str) -> io::Result<Arc<dyn StorageFile>>;
    /// Opens a file, for writing too where that is allowed.
    fn open(&self, path: &str) -> io::Result<Arc<dyn StorageFile>>;
    /// The same, to read the bytes before this one: they are committed, and stay what they are.
    fn open_committed(&self, path: &str, _end: u64) -> io::Result<Arc<dyn StorageFile>> {
        self.open(path)
    }
    /// Does for a draft what can be done before it has its name.
    fn stage(&self, draft: &FileDraft) -> io::Result<()> {
        let file = self.create(&draft.beside)?;
        write_all(&*file, &draft.bytes, 0)?;
        file.sync()
    }
    /// Gives a draft a name that must be free, atomically with all of its bytes. `AlreadyExists`: the name is taken,
    /// and another may be tried. `TimedOut`: it is unknown whether the draft has or will get the name. After any other
    /// error it does not have the name.
    fn publish(&self, draft: &FileDraft, to: &str) -> io::Result<()>;
    /// Removes what is left of a draft that was not published.
    fn discard(&self, draft: &FileDraft) {
        let _ = self.remove(&draft.beside);
    }
    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// The names of files in a folder and of folders in it; none when there is no such folder.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// The same of names that are greater than this one, in no order.
    fn list_after(&self, folder: &str, name: &str) -> io::Result<Vec<String>> {
        let mut names = self.list(folder)?;
        names.retain(|other| &**other > name);
        Ok(names)
    }
    /// All that a file has, if it has no more than `bytes_max` (`FileTooLarge` otherwise).
    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let file = self.open(path)?;
        let bytes = file.len()?;
        check_size(bytes, bytes_max)?;
        let mut whole = vec![0; bytes as usize];
        let read = read_full(&*file, &mut whole, 0)?;
        whole.truncate(read);
        Ok(whole)
    }
    /// Some files of a folder, by their paths, whose names are greater than this one and follow each other; none where asking for
    /// each is as quick.
    fn ahead(&self, _folder: &str, _name: &str, _bytes_max: u64) -> io::Result<Vec<(String, Vec<u8>)>> {
        Ok(Vec::new())
    }
    /// Whether a file of this path can be written on after a sync.
    fn grows(&self, _path: &str) -> bool {
        true
    }
    /// Bytes of a file.
    fn len(&self, path: &str) -> io::Result<u64> {
        self.open(path)?.len()
    }
    /// When a file was last written, since 1970.
    fn modified(&self, path: &str) -> io::Result<Duration>;
    /// Returns the URI of a file for other programs.
    fn uri(&self, path: &str) -> String;
    /// The address of its root in marks: the URI, and the server where one URI can be at several.
    fn address(&self) -> String {
        self.uri("")
    }
    /// Whether its root is at this address, by whatever path.
    fn is_at(&self, address: &str) -> bool {
        self.address() == address
    }
    /// Returns an identity that distinguishes a file from its copies, where the system has one: a rename keeps it.
    fn identity(&self, _path: &str) -> Option<String> {
        None
    }
    /// Returns links and mount points, of a folder and its content: their targets may belong to other stores.
    fn links(&self, _folder: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    /// Looks whether files may be made or changed at a path: no link or mount point on the way leads into the folder of another store.
    /// Whether there is one on the way.
    ///
    /// # Errors
    /// `ResourceBusy` where one leads there.
    fn check_way(&self, _path: &str) -> io::Result<bool> {
        Ok(false)
    }
    /// Returns the other store that actually contains this folder.
    fn store_above(&self, _folder: &str) -> Option<String> {
        None
    }
    /// Gives a draft a name, and replaces an existing file.
    fn replace(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        match self.remove(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.create(to)?;
        write_all(&*file, &draft.bytes, 0)?;
        file.sync()
    }
    /// Checks that the location of a folder's files still belongs to this catalogue, before a commit names such files.
    ///
    /// # Errors
    /// `ResourceBusy` if it belongs to another catalogue.
    fn check_owner(&self, _folder: &str) -> io::Result<()> {
        Ok(())
    }
    /// Makes the names in a folder, and those of the folders above it, last.
    fn sync_names(&self, folder: &str) -> io::Result<()>;
    /// Returns invisible files below a folder that were begun and not completed: they remain after a crash. Empty if
    /// the storage has none, or does not list them.
    fn unfinished(&self, _folder: &str) -> io::Result<Vec<UnfinishedFile>> {
        Ok(Vec::new())
    }
    /// Ends one, without what was written.
    fn end_unfinished(&self, _one: &UnfinishedFile) -> io::Result<()> {
        Ok(())
    }
    /// Returns how many parallel reads of such files increase the throughput.
    fn reads_at_once(&self, _path: &str) -> usize {
        std::thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(LOCAL_READS_MAX)
    }
    /// Returns a watch of a folder, which reports later writes where the system can.
    fn watch(&self, _folder: &str) -> Box<dyn FolderWatch> {
        Box::new(PollingPause)
    }
}

/// A file that is open.
pub(crate) trait StorageFile: Debug + Send + Sync {
    /// Bytes.
    fn len(&self) -> io::Result<u64>;
    /// Reads what is there, perhaps less than asked for; nothing at the end.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;
    /// All that it has now, mapped; none where only reading is possible.
    fn map(&self) -> Option<FileMap> {
        None
    }
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

/// Writes all bytes.
pub(crate) fn write_all(file: &dyn StorageFile, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
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

/// Reads until the space is full or the file ends; returns the number of bytes.
pub(crate) fn read_full(file: &dyn StorageFile, into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], at + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// Makes a range of bytes durable that no process changes any more. After a failed sync, the system discards unwritten
/// data, and the next sync would succeed without them: the range is therefore written again, and synced again.
pub(crate) fn sync_range(file: &dyn StorageFile, from: u64, end: u64) -> io::Result<()> {
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

/// # Errors
/// `FileTooLarge`.
fn check_size(bytes: u64, bytes_max: u64) -> io::Result<()> {
    if bytes > bytes_max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{bytes} bytes")));
    }
    Ok(())
}

/// Names in a folder, as paths from the root.
pub(crate) fn files_in(disk: &dyn StorageDisk, folder: &str) -> Result<Vec<String>> {
    let names = disk
        .list(folder)
        .map_err(|error| refused(folder, "cannot be listed", &error))?;
    let path = |name: String| {
        if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        }
    };
    Ok(names.into_iter().map(path).collect())
}

/// Whether it is not known that there is no such file.
pub(crate) fn may_be_there(disk: &dyn StorageDisk, file: &str) -> bool {
    let looked = disk.modified(file);
    !looked.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// All that a file has, if it has no more than `bytes_max`.
pub(crate) fn read_whole(disk: &dyn StorageDisk, path: &str, bytes_max: u64) -> Result<Vec<u8>> {
    disk.read(path, bytes_max)
        .map_err(|error| refused(path, "cannot be read", &error))
}

/// Whether a file of these bytes will be read: asked before it is made.
///
/// # Errors
/// `LimitExceeded` for more than [`read_whole`] takes.
pub(crate) fn check_readable(path: &str, bytes: &[u8], bytes_max: u64) -> Result<()> {
    if bytes.len() as u64 <= bytes_max {
        return Ok(());
    }
    let cause = format!(
        "it would have {} bytes, and such a file has {bytes_max} at most",
        bytes.len()
    );
    Err(Error::new(Code::LimitExceeded, path, cause))
}

/// Makes an object of these bytes, under a name that must be free, and makes it last.
pub(crate) fn publish_new(disk: &dyn StorageDisk, draft: &FileDraft, to: &str) -> io::Result<()> {
    let published = disk.stage(draft).and_then(|()| disk.publish(draft, to));
    if published.is_err() {
        disk.discard(draft);
    }
    let folder = to.rsplit_once('/').map_or("", |(folder, _)| folder);
    match published {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // A reader that finds the name trusts it.
        published => disk.sync_names(folder).and(published),
    }
}

/// Converts an error of the system by its meaning. The subject is the whole path, where the error has one.
pub(crate) fn refused(subject: impl Into<String>, what: &str, error: &io::Error) -> Error {
    let code = match error.kind() {
        // A file that a process on another machine has removed while it was open here.
        io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle => Code::NotFound,
        io::ErrorKind::AlreadyExists => Code::AlreadyExists,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::Denied,
        io::ErrorKind::FileTooLarge => Code::TooLarge,
        io::ErrorKind::InvalidInput => Code::InvalidArgument,
        io::ErrorKind::TimedOut | io::ErrorKind::ConnectionRefused => Code::Unavailable,
        // The locations of a store return this error, the system never does.
        io::ErrorKind::ResourceBusy if !placed::is_of_system(error) => Code::Conflict,
        _ => Code::Io,
    };
    let subject = placed::path_of(error).map_or_else(|| subject.into(), |path| path.display().to_string());
    Error::new(code, subject, format!("{what}: {error}"))
}
