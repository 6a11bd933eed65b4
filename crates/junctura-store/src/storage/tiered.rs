//! Data in places of their own, everything else in another: a catalogue on a quick file system over data in an object store, and objects
//! that were moved to a tier.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::{HashMap, HashSet};

use super::{FileDraft, FolderWatch, PollingPause, StorageDisk, StorageFile, UnfinishedFile};

/// The locations of data files outside the catalogue's location.
pub(crate) trait DataPlaces: std::fmt::Debug + Send + Sync {
    /// Returns whether objects that were not moved are there: the tier [`OWN`](crate::maintenance::tier::OWN).
    fn has_data(&self) -> bool;
    /// Opens the disk of the tier with this name.
    fn open(&self, catalogue: &dyn StorageDisk, name: &str) -> io::Result<Arc<dyn StorageDisk>>;
    /// Checks that files in the tier with this name may be changed from this catalogue.
    ///
    /// # Errors
    /// `ResourceBusy` if it belongs to another catalogue.
    fn check_owner(&self, catalogue: &dyn StorageDisk, name: &str, tier: &dyn StorageDisk) -> io::Result<()>;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TieredDisk {
    catalogue: Arc<dyn StorageDisk>,
    places: Box<dyn DataPlaces>,
    /// Those that were asked for.
    tiers: Mutex<HashMap<String, Arc<dyn StorageDisk>>>,
    /// Those that were the store's when a commit named files there, or the first file was made.
    owned: Mutex<HashSet<String>>,
}

impl TieredDisk {
    pub(crate) fn new(catalogue: Arc<dyn StorageDisk>, places: Box<dyn DataPlaces>) -> Self {
        Self {
            catalogue,
            places,
            tiers: Mutex::default(),
            owned: Mutex::default(),
        }
    }

    /// Returns the tier of a file that is not beside the catalogue.
    fn tier_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if first == crate::data::FOLDER && self.places.has_data() {
            return Some(crate::maintenance::tier::OWN);
        }
        let is_definition = !rest.contains('/') && rest.contains('.');
        let is_in_tier = first == crate::maintenance::tier::FOLDER && !rest.is_empty() && !is_definition;
        is_in_tier.then(|| rest.split_once('/').map_or(rest, |(name, _)| name))
    }

    fn of(&self, path: &str) -> io::Result<Arc<dyn StorageDisk>> {
        match self.tier_of(path) {
            Some(name) => self.tier(name),
            None => Ok(Arc::clone(&self.catalogue)),
        }
    }

    /// The same, to make or to remove a file there.
    fn to_change(&self, path: &str) -> io::Result<Arc<dyn StorageDisk>> {
        let disk = self.of(path)?;
        let Some(name) = self.tier_of(path) else {
            return Ok(disk);
        };
        if !self.owned().contains(name) {
            self.check_place(name, &*disk)?;
        }
        Ok(disk)
    }

    fn check_place(&self, name: &str, disk: &dyn StorageDisk) -> io::Result<()> {
        let checked = self.places.check_owner(&*self.catalogue, name, disk);
        let mut owned = self.owned();
        match &checked {
            Ok(()) => _ = owned.insert(name.to_owned()),
            Err(_) => _ = owned.remove(name),
        }
        checked
    }

    fn owned(&self) -> MutexGuard<'_, HashSet<String>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tier(&self, name: &str) -> io::Result<Arc<dyn StorageDisk>> {
        let mut tiers = self.tiers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tiers.get(name) {
            return Ok(Arc::clone(known));
        }
        let tier = self.places.open(&*self.catalogue, name)?;
        tiers.insert(name.to_owned(), Arc::clone(&tier));
        Ok(tier)
    }
}

impl StorageDisk for TieredDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.to_change(path)?.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.of(path)?.open(path)
    }

    fn open_committed(&self, path: &str, end: u64) -> io::Result<Arc<dyn StorageFile>> {
        self.of(path)?.open_committed(path, end)
    }

    fn stage(&self, draft: &FileDraft) -> io::Result<()> {
        self.to_change(&draft.beside)?.stage(draft)
    }

    fn publish(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        self.to_change(to)?.publish(draft, to)
    }

    fn discard(&self, draft: &FileDraft) {
        if let Ok(disk) = self.of(&draft.beside) {
            disk.discard(draft);
        }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.to_change(path)?.remove(path)
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
        // If the tier is unknown, writes fail in any case.
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

    fn address(&self) -> String {
        self.catalogue.address()
    }

    fn is_at(&self, uri: &str) -> bool {
        self.catalogue.is_at(uri)
    }

    fn identity(&self, path: &str) -> Option<String> {
        self.of(path).ok()?.identity(path)
    }

    fn links(&self, folder: &str) -> io::Result<Vec<String>> {
        self.of(folder)?.links(folder)
    }

    fn check_way(&self, path: &str) -> io::Result<bool> {
        // Files in other tiers are checked when they are created.
        match self.tier_of(path) {
            Some(_) => Ok(false),
            None => self.catalogue.check_way(path),
        }
    }

    fn store_above(&self, folder: &str) -> Option<String> {
        self.of(folder).ok()?.store_above(folder)
    }

    fn replace(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        self.of(to)?.replace(draft, to)
    }

    fn check_owner(&self, folder: &str) -> io::Result<()> {
        let Some(name) = self.tier_of(folder) else {
            return Ok(());
        };
        self.check_place(name, &*self.tier(name)?)
    }

    fn reads_at_once(&self, path: &str) -> usize {
        self.of(path).map_or(1, |disk| disk.reads_at_once(path))
    }

    fn watch(&self, folder: &str) -> Box<dyn FolderWatch> {
        match self.of(folder) {
            Ok(disk) => disk.watch(folder),
            Err(_) => Box::new(PollingPause),
        }
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        self.of(folder)?.sync_names(folder)
    }

    fn unfinished(&self, folder: &str) -> io::Result<Vec<UnfinishedFile>> {
        self.of(folder)?.unfinished(folder)
    }

    fn end_unfinished(&self, one: &UnfinishedFile) -> io::Result<()> {
        self.to_change(&one.path)?.end_unfinished(one)
    }
}
