//! Data in one place, everything else in another: a catalogue on a quick file system over data in an object store.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{Disk, Draft, File, Watch};

/// See the module.
#[derive(Debug)]
pub(crate) struct SplitDisk {
    pub(crate) catalogue: Arc<dyn Disk>,
    pub(crate) data: Arc<dyn Disk>,
}

impl SplitDisk {
    fn of(&self, path: &str) -> &dyn Disk {
        if path == "data" || path.starts_with("data/") {
            &*self.data
        } else {
            &*self.catalogue
        }
    }
}

impl Disk for SplitDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.of(path).create(path)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.of(path).open(path)
    }

    fn stage(&self, draft: &Draft) -> io::Result<()> {
        self.of(&draft.beside).stage(draft)
    }

    fn publish(&self, draft: &Draft, to: &str) -> io::Result<()> {
        self.of(to).publish(draft, to)
    }

    fn discard(&self, draft: &Draft) {
        self.of(&draft.beside).discard(draft);
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.of(path).remove(path)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.of(folder).list(folder)
    }

    fn list_after(&self, folder: &str, name: &str) -> io::Result<Vec<String>> {
        self.of(folder).list_after(folder, name)
    }

    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.of(path).read(path, bytes_max)
    }

    fn ahead(&self, folder: &str, name: &str, bytes_max: u64) -> io::Result<Vec<(String, Vec<u8>)>> {
        self.of(folder).ahead(folder, name, bytes_max)
    }

    fn grows(&self, path: &str) -> bool {
        self.of(path).grows(path)
    }

    fn len(&self, path: &str) -> io::Result<u64> {
        self.of(path).len(path)
    }

    fn modified(&self, path: &str) -> io::Result<Duration> {
        self.of(path).modified(path)
    }

    fn uri(&self, path: &str) -> String {
        self.of(path).uri(path)
    }

    fn reads_at_once(&self) -> usize {
        self.data.reads_at_once()
    }

    fn watch(&self, folder: &str) -> Box<dyn Watch> {
        self.of(folder).watch(folder)
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        self.of(folder).sync_names(folder)
    }
}
