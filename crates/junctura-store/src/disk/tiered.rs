//! Data in places of their own, everything else in another: a catalogue on a quick file system over data in an object store, and objects
//! that were moved to a tier.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;

use super::{Disk, Draft, File, Pause, Unfinished, Watch};

/// Where data files lie that lie elsewhere than the catalogue.
pub(crate) trait Places: std::fmt::Debug + Send + Sync {
    /// Whether those lie there that were not moved: the tier [`OWN`](crate::tier::OWN).
    fn has_data(&self) -> bool;
    /// What the tier of this name is reached through.
    fn open(&self, catalogue: &dyn Disk, name: &str) -> io::Result<Arc<dyn Disk>>;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TieredDisk {
    catalogue: Arc<dyn Disk>,
    places: Box<dyn Places>,
    /// Those that were asked for.
    tiers: Mutex<HashMap<String, Arc<dyn Disk>>>,
}

impl TieredDisk {
    pub(crate) fn new(catalogue: Arc<dyn Disk>, places: Box<dyn Places>) -> Self {
        Self {
            catalogue,
            places,
            tiers: Mutex::default(),
        }
    }

    fn of(&self, path: &str) -> io::Result<Arc<dyn Disk>> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if first == crate::data::FOLDER && self.places.has_data() {
            return self.tier(crate::tier::OWN);
        }
        let is_definition = !rest.contains('/') && rest.contains('.');
        if first == crate::tier::FOLDER && !rest.is_empty() && !is_definition {
            return self.tier(rest.split_once('/').map_or(rest, |(name, _)| name));
        }
        Ok(Arc::clone(&self.catalogue))
    }

    fn tier(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let mut tiers = self.tiers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tiers.get(name) {
            return Ok(Arc::clone(known));
        }
        let tier = self.places.open(&*self.catalogue, name)?;
        tiers.insert(name.to_owned(), Arc::clone(&tier));
        Ok(tier)
    }
}

impl Disk for TieredDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.of(path)?.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn File>> {
        self.of(path)?.open(path)
    }

    fn open_committed(&self, path: &str, end: u64) -> io::Result<Arc<dyn File>> {
        self.of(path)?.open_committed(path, end)
    }

    fn stage(&self, draft: &Draft) -> io::Result<()> {
        self.of(&draft.beside)?.stage(draft)
    }

    fn publish(&self, draft: &Draft, to: &str) -> io::Result<()> {
        self.of(to)?.publish(draft, to)
    }

    fn discard(&self, draft: &Draft) {
        if let Ok(disk) = self.of(&draft.beside) {
            disk.discard(draft);
        }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.of(path)?.remove(path)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.of(folder)?.list(folder)
    }

    fn list_after(&self, folder: &str, name: &str) -> io::Result<Vec<String>> {
        self.of(folder)?.list_after(folder, name)
    }

    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.of(path)?.read(path, bytes_max)
    }

    fn ahead(&self, folder: &str, name: &str, bytes_max: u64) -> io::Result<Vec<(String, Vec<u8>)>> {
        self.of(folder)?.ahead(folder, name, bytes_max)
    }

    fn grows(&self, path: &str) -> bool {
        // Where nobody knows what it is, nothing can be written at all.
        self.of(path).is_ok_and(|disk| disk.grows(path))
    }

    fn len(&self, path: &str) -> io::Result<u64> {
        self.of(path)?.len(path)
    }

    fn modified(&self, path: &str) -> io::Result<Duration> {
        self.of(path)?.modified(path)
    }

    fn uri(&self, path: &str) -> String {
        self.of(path).map_or_else(|_| path.to_owned(), |disk| disk.uri(path))
    }

    fn reads_at_once(&self, path: &str) -> usize {
        self.of(path).map_or(1, |disk| disk.reads_at_once(path))
    }

    fn watch(&self, folder: &str) -> Box<dyn Watch> {
        match self.of(folder) {
            Ok(disk) => disk.watch(folder),
            Err(_) => Box::new(Pause),
        }
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        self.of(folder)?.sync_names(folder)
    }

    fn unfinished(&self, folder: &str) -> io::Result<Vec<Unfinished>> {
        self.of(folder)?.unfinished(folder)
    }

    fn end_unfinished(&self, one: &Unfinished) -> io::Result<()> {
        self.of(&one.path)?.end_unfinished(one)
    }
}
