//! Memory of this process, for tests and for temporary stores: fast, and freed with the last handle.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{FileDraft, StorageDisk, StorageFile};

/// The named stores that are open.
static NAMED: LazyLock<Mutex<HashMap<String, Weak<Names>>>> = LazyLock::new(Mutex::default);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct MemoryDisk {
    names: Arc<Names>,
    /// Files are written up to their first sync, as in an object store.
    is_still: bool,
    clock: Option<Clock>,
}

/// The time since 1970.
type Clock = fn() -> Duration;

type Names = Mutex<BTreeMap<String, Arc<FileContent>>>;

#[derive(Debug, Default)]
struct FileContent {
    /// `None` after its removal: as in an object store, an open handle can no longer read it.
    bytes: RwLock<Option<Vec<u8>>>,
    /// Nanoseconds since 1970.
    modified: AtomicU64,
    clock: Option<Clock>,
    /// Whether the lock is held.
    is_locked: Mutex<bool>,
    unlocked: Condvar,
}

#[derive(Debug)]
struct MemoryFile(Arc<FileContent>);

impl MemoryDisk {
    /// Returns the store with this name; it is empty if it is not open.
    pub(crate) fn named(name: &str) -> Self {
        let mut all = lock(&NAMED);
        all.retain(|_, names| names.strong_count() > 0);
        if let Some(names) = all.get(name).and_then(Weak::upgrade) {
            return Self::of(names);
        }
        let names = Arc::default();
        all.insert(name.to_owned(), Arc::downgrade(&names));
        Self::of(names)
    }

    fn of(names: Arc<Names>) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// One whose files do not grow.
    #[cfg(test)]
    pub(crate) fn still() -> Self {
        Self {
            is_still: true,
            ..Self::default()
        }
    }

    /// Creates a store with this clock for the times of files.
    #[cfg(test)]
    pub(crate) fn with_clock(clock: Clock) -> Self {
        Self {
            clock: Some(clock),
            ..Self::default()
        }
    }

    fn content(&self, path: &str) -> io::Result<Arc<FileContent>> {
        let names = lock(&self.names);
        Ok(Arc::clone(names.get(path).ok_or(io::ErrorKind::NotFound)?))
    }

    fn insert(&self, path: &str, bytes: Vec<u8>) -> io::Result<Arc<FileContent>> {
        let mut names = lock(&self.names);
        if names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Arc::new(FileContent {
            bytes: RwLock::new(Some(bytes)),
            clock: self.clock,
            ..FileContent::default()
        });
        content.touch();
        names.insert(path.to_owned(), Arc::clone(&content));
        Ok(content)
    }
}

impl FileContent {
    fn read<T>(&self, read: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        let bytes = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        Ok(read(bytes.as_ref().ok_or(io::ErrorKind::NotFound)?))
    }

    fn write(&self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut bytes = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        write(bytes.as_mut().ok_or(io::ErrorKind::NotFound)?);
        self.touch();
        Ok(())
    }

    fn touch(&self) {
        let system = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = self.clock.map_or_else(system, |clock| clock());
        self.modified.store(now.as_nanos() as u64, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StorageDisk for MemoryDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        Ok(Arc::new(MemoryFile(self.insert(path, Vec::new())?)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        Ok(Arc::new(MemoryFile(self.content(path)?)))
    }

    fn stage(&self, _draft: &FileDraft) -> io::Result<()> {
        Ok(())
    }

    fn publish(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        self.insert(to, draft.bytes.clone())?;
        Ok(())
    }

    fn discard(&self, _draft: &FileDraft) {}

    fn grows(&self, _path: &str) -> bool {
        !self.is_still
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let content = lock(&self.names).remove(path).ok_or(io::ErrorKind::NotFound)?;
        *content.bytes.write().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let within = |path: &String| {
            let rest = if folder.is_empty() {
                path
            } else {
                path.strip_prefix(folder)?.strip_prefix('/')?
            };
            rest.split('/').next().map(str::to_owned)
        };
        let mut names: Vec<String> = lock(&self.names).keys().filter_map(within).collect();
        names.dedup();
        Ok(names)
    }

    fn modified(&self, path: &str) -> io::Result<Duration> {
        let content = self.content(path)?;
        Ok(Duration::from_nanos(content.modified.load(Ordering::Relaxed)))
    }

    fn uri(&self, path: &str) -> String {
        format!("memory:{path}")
    }

    fn sync_names(&self, _folder: &str) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        self.0.read(|bytes| bytes.len() as u64)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read(|bytes| {
            let rest = usize::try_from(at)
                .ok()
                .and_then(|at| bytes.get(at..))
                .unwrap_or_default();
            let read = rest.len().min(into.len());
            into[..read].copy_from_slice(&rest[..read]);
            read
        })
    }

    fn write_at(&self, written: &[u8], at: u64) -> io::Result<usize> {
        let at = usize::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let end = at.checked_add(written.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        self.0.write(|bytes| {
            if bytes.len() < at {
                bytes.resize(at, 0);
            }
            let overlap = bytes.len().min(end) - at;
            bytes[at..at + overlap].copy_from_slice(&written[..overlap]);
            bytes.extend_from_slice(&written[overlap..]);
        })?;
        Ok(written.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.0.write(|bytes| bytes.resize(length, 0))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        let mut is_locked = lock(&self.0.is_locked);
        while *is_locked {
            is_locked = self.0.unlocked.wait(is_locked).unwrap_or_else(PoisonError::into_inner);
        }
        *is_locked = true;
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        *lock(&self.0.is_locked) = false;
        self.0.unlocked.notify_one();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_one_while_somebody_has_it_open() {
        let one = MemoryDisk::named("a name of this test");
        one.create("file").unwrap();
        let other = MemoryDisk::named("a name of this test");
        drop(one);
        assert!(other.open("file").is_ok());
        drop(other);
        let later = MemoryDisk::named("a name of this test");
        assert_eq!(later.open("file").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
