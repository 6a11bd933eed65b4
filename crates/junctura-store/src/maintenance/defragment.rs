//! Defragmentation: objects in mostly empty files are moved into new files, so that the space of removed objects is
//! reclaimed.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use junctura_model::Result;

use crate::data;
use crate::log::{first_of, object_number};
use crate::maintenance::relocate::{Moved, relocate};
use crate::maintenance::tier;
use crate::query::listing::{Listing, StoredObject};
use crate::storage::{StorageDisk, refused};
use crate::store::Store;

/// A file is defragmented if at most one part in so many belongs to objects.
const FULL: u64 = 2;

impl Store {
    /// Moves the objects of data files of which less than half belongs to objects, after a [purge](Self::purge) or a
    /// [wipe](Self::wipe), into new files of the same tier; also objects within commits of a log that continues in
    /// another file, or within exclusive commits; including masked versions. Files that were written to within twice
    /// the maximum age of unflushed objects are left unchanged. [`Self::compact`] reclaims the space when no snapshot
    /// can need the old files. Otherwise as [`Self::move_to`].
    ///
    /// # Errors
    /// As [`Self::move_to`].
    pub fn gather(&self, mut progress: impl FnMut(u64, u64) -> bool) -> Result<Moved> {
        let (listing, sparse) = sparse(self)?;
        let mut of_tiers: BTreeMap<String, Vec<StoredObject<'_>>> = BTreeMap::new();
        for object in listing.by_location() {
            if sparse.contains_key(object.file_name()) {
                of_tiers
                    .entry(tier::of(object.file_name()).to_owned())
                    .or_default()
                    .push(object);
            }
        }
        let mut gathered = Moved::default();
        let mut done = Ok(());
        for (tier, objects) in of_tiers {
            let folder = tier::folder_of(self, &tier)?;
            done = done.and_then(|()| relocate(self, &objects, &listing, &folder, &mut gathered, &mut progress));
        }
        drop(listing);
        gathered.checkpoint(self);
        done.map(|()| gathered)
    }

    /// Returns the number of objects and bytes that [`Self::gather`] would move.
    ///
    /// # Errors
    /// As [`crate::Snapshot::list`].
    pub fn scattered(&self) -> Result<(u64, u64)> {
        let (_, sparse) = sparse(self)?;
        let sum = |(objects, bytes): (u64, u64), used: &UsedParts| (objects + used.objects, bytes + used.bytes);
        Ok(sparse.values().fold((0, 0), sum))
    }
}

/// Returns all objects, and the files that are mostly empty.
fn sparse(store: &Store) -> Result<(Listing, HashMap<Arc<str>, UsedParts>)> {
    let began = store.now();
    let listing = store.snapshot()?.list_all("")?;
    let mut files: HashMap<Arc<str>, UsedParts> = HashMap::new();
    let mut closed = HashMap::new();
    let log = store.catalogue()?.position().log;
    // A file whose name is unique gets no more writes.
    let is_done = |file: &str| first_of(file).is_some_and(|first| first < log) || object_number(file).is_some();
    for object in &listing {
        if is_done(object.file_name()) {
            let used: &mut UsedParts = closed.entry(Arc::clone(object.file_name())).or_default();
            used.objects += 1;
            used.bytes += object.place().length;
        }
    }
    for object in listing.iter().filter(|object| data::is_one(object.file_name())) {
        let used = files.entry(Arc::clone(object.file_name())).or_default();
        used.objects += 1;
        used.bytes += object.place().length;
    }
    let quiet_since = began.saturating_sub(2 * store.ages().unflushed_max);
    let mut sparse = closed;
    for (file, used) in files {
        if is_sparse(store.disk(), &file, &used, quiet_since)? {
            sparse.insert(file, used);
        }
    }
    Ok((listing, sparse))
}

fn is_sparse(disk: &dyn StorageDisk, file: &str, used: &UsedParts, quiet_since: std::time::Duration) -> Result<bool> {
    let looked = disk.len(file).and_then(|bytes| Ok((bytes, disk.modified(file)?)));
    match looked {
        Ok((bytes, modified)) => Ok(used.bytes.saturating_mul(FULL) < bytes && modified < quiet_since),
        // An empty part may have no file; a check reports other missing files.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(refused(file, "cannot be looked at", &error)),
    }
}

/// The bytes of a file that belong to objects.
#[derive(Clone, Copy, Debug, Default)]
struct UsedParts {
    objects: u64,
    bytes: u64,
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use junctura_model::Schema;

    use super::*;
    use crate::root::{RetentionAges, StoreRoot};
    use crate::storage::{MemoryDisk, StorageDisk};
    use crate::{Commits, Snapshot};

    /// A day behind the clock of the disk, so that all files are old enough.
    fn clock() -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_hours(24)
    }

    fn payloads(snapshot: &Snapshot) -> Vec<(String, Vec<u8>)> {
        let listing = snapshot.list_all("").unwrap();
        listing
            .iter()
            .map(|object| (object.key(), object.read().unwrap()))
            .collect()
    }

    #[test]
    fn what_is_left_of_files_goes_together() {
        let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::default());
        let ages = RetentionAges {
            unflushed_max: Duration::from_hours(1),
            ..RetentionAges::default()
        };
        let schemas = [Schema::builtin("free").unwrap()];
        StoreRoot::create(&*disk, &schemas, Commits::Appended, &ages.into()).unwrap();
        let store = Store::open_on(disk, clock).unwrap();
        store.add_tier("cold", "memory:what-is-left-of-files").unwrap();
        let mut writer = store.writer().unwrap();
        for space in ["full", "sparse", "gone", "cold"] {
            for number in 0..20_u8 {
                let payload = vec![number; 10_000];
                writer
                    .archive([("space", space), ("name", &number.to_string())], &payload)
                    .unwrap();
            }
        }
        writer.flush().unwrap();
        store.move_to("space=cold", "cold", |_, _| true).unwrap();
        for step in 0..20 {
            let spaces = ["full", "sparse", "gone", "cold"];
            let wiped = spaces.iter().zip([5, 15, 20, 12]).filter(|(_, wiped)| step < *wiped);
            for (space, _) in wiped {
                store.wipe(&format!("space={space},name={step}")).unwrap();
            }
        }
        let expected = payloads(&store.snapshot().unwrap());
        assert_eq!(store.scattered().unwrap(), (5 + 8, 130_000));
        let gathered = store.gather(|_, _| true).unwrap();
        assert_eq!((gathered.objects, gathered.bytes), (5 + 8, 130_000));
        let after = store.snapshot().unwrap();
        assert_eq!(payloads(&after), expected);
        assert_eq!(store.scattered().unwrap(), (0, 0));
        assert_eq!(store.gather(|_, _| true).unwrap().commit, 0);
        for (selector, tier) in [("space=sparse", "data"), ("space=cold", "cold"), ("space=full", "data")] {
            let listing = after.list(selector).unwrap();
            assert!(
                listing.iter().all(|object| tier::of(object.file_name()) == tier),
                "{selector}"
            );
        }
    }
}
