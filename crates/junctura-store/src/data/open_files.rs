//! Files from which objects were read: they stay open, and mapped, for later reads. A page that was entered into a map
//! need not be entered again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use junctura_memory::FileMap;
use junctura_model::Result;

use crate::storage::{StorageDisk, StorageFile, refused};

/// Maximum number of idle open files.
const FILES_MAX: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles(Mutex<HashMap<Arc<str>, OpenedFile>>);

#[derive(Debug)]
struct OpenedFile {
    file: Arc<dyn StorageFile>,
    /// The bytes before this offset are committed.
    end: u64,
    map: Option<Arc<FileMap>>,
}

impl OpenedFile {
    /// Maps last without the file that they are of.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.file) > 1
    }
}

impl OpenFiles {
    /// Opens a file of which the bytes before `end` are committed.
    ///
    /// # Errors
    /// Errors of opening it.
    pub(crate) fn open(&self, disk: &dyn StorageDisk, name: &Arc<str>, end: u64) -> Result<Arc<dyn StorageFile>> {
        if let Some(known) = self.all().get(name).filter(|known| known.end >= end) {
            return Ok(Arc::clone(&known.file));
        }
        // Without a lock, so that readers of other files do not wait.
        let opened = disk.open_committed(name, end);
        let file = opened.map_err(|error| refused(&**name, "cannot be opened", &error))?;
        let mut files = self.all();
        if files.len() >= FILES_MAX {
            files.retain(|_, opened| opened.is_used());
        }
        let opened = OpenedFile {
            file: Arc::clone(&file),
            end,
            map: None,
        };
        files.insert(Arc::clone(name), opened);
        Ok(file)
    }

    /// A map that reaches to this byte of a file, where there can be one.
    pub(crate) fn map(&self, name: &str, file: &Arc<dyn StorageFile>, end: u64) -> Option<Arc<FileMap>> {
        let mut files = self.all();
        // Another thread may have closed it meanwhile.
        let Some(opened) = files.get_mut(name) else {
            return file.map().map(Arc::new);
        };
        let reaches = |map: &Arc<FileMap>| map.bytes() >= end;
        if !opened.map.as_ref().is_some_and(reaches) {
            opened.map = file.map().map(Arc::new);
        }
        opened.map.clone().filter(reaches)
    }

    /// Closes a file that is not what it was: it may have been put right under the same name.
    pub(crate) fn close(&self, name: &str) {
        self.all().remove(name);
    }

    /// Closes those of which nothing is left, so that the system has their space once they are removed.
    pub(crate) fn close_emptied<T>(&self, emptied: &BTreeMap<Arc<str>, T>) {
        if !emptied.is_empty() {
            self.all().retain(|name, _| !emptied.contains_key(name));
        }
    }

    /// Closes all.
    pub(crate) fn close_all(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, OpenedFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
