//! Relocation of payloads: they are copied, then a commit records their new locations. The old copies are removed when
//! no snapshot can need them any more. An interrupted relocation has moved the committed objects; a repeated one moves
//! the rest.

use std::time::Duration;

use hashbrown::HashMap;
use junctura_model::{Code, Error, Result};

use crate::data::bulk_read::{ByteRange, for_each_payload};
use crate::data::{self, DataFile, DataFileNames, DatasetName, DatasetRef};
use crate::log::relocation::{RELOCATION, RelocationRecord, Rows};
use crate::log::{CommitLog, WriteTerm};
use crate::maintenance::ownership;
use crate::maintenance::tier;
use crate::maintenance::verify::DAMAGES_MAX;
use crate::query::listing::{Listing, StoredObject};
use crate::store::Store;

/// A commit moves at most so many bytes, except for a single larger object, and a limited number of objects.
const BATCH_BYTES_MAX: u64 = 1 << 30;
const BATCH_OBJECTS_MAX: usize = 100_000;
/// Maximum number of datasets with open files.
const BATCH_DATASETS_MAX: usize = 256;

/// The result of a relocation.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// The number of the last commit that moved an object; 0 if there was nothing to move.
    pub commit: u64,
    /// The number of objects.
    pub objects: u64,
    /// Their stored bytes.
    pub bytes: u64,
    /// Corrupt objects with the error: they are not moved. At most [`DAMAGES_MAX`] objects.
    pub damaged: Vec<(String, Error)>,
    /// The number of corrupt objects.
    pub damaged_count: u64,
}

impl Store {
    /// Moves all objects that the selector matches, including masked versions, to a [tier](Self::add_tier), or back to
    /// the store's own tier: `data`. Objects that are there already are not moved. Each object is verified. `progress`
    /// receives the number of objects and bytes from time to time, and returns false to stop: objects that were copied
    /// until then are moved.
    ///
    /// Older snapshots read the objects at their old location. [`Self::compact`] removes these files when none of their
    /// objects is left and no snapshot can need them. Blocks; reads and writes on the disk.
    ///
    /// # Errors
    /// `NotFound` if there is no such tier; `InvalidSelector` for an invalid selector; `Interrupted` if `progress`
    /// returns false; `Expired` if it takes longer than the maximum age of snapshots: it can be repeated; errors of
    /// system calls. If a sync failed, the outcome of the last commit is unknown.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # use junctura_store::{StoreLayout, Store};
    /// # fn main() -> junctura_model::Result<()> {
    /// # let store = Store::create_url("memory:", &[Schema::builtin("free").unwrap()], &StoreLayout::default())?;
    /// # let mut writer = store.writer()?;
    /// # writer.archive([("space", "2025"), ("name", "a")], b"bytes")?;
    /// # writer.flush()?;
    /// store.add_tier("tape", "memory:tape")?;
    /// let moved = store.move_to("space=2025", "tape", |_, _| true)?;
    /// assert_eq!((moved.objects, store.snapshot()?.list("")?.len()), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn move_to(&self, selector: &str, tier: &str, progress: impl FnMut(u64, u64) -> bool) -> Result<Moved> {
        let folder = tier::folder_of(self, tier)?;
        let listing = self.movable(selector, tier)?;
        if tier != tier::OWN {
            tier::sync_tiers(self.disk())?;
        }
        let mut moved = Moved::default();
        let done = relocate(self, &listing.together(), &listing, &folder, &mut moved, progress);
        drop(listing);
        moved.checkpoint(self);
        done.map(|()| moved)
    }

    /// Returns the objects that [`Self::move_to`] would move.
    ///
    /// # Errors
    /// As [`Self::move_to`].
    pub fn movable(&self, selector: &str, tier: &str) -> Result<Listing> {
        tier::folder_of(self, tier)?;
        let listing = self.snapshot()?.list_all(selector)?;
        Ok(listing.only(|object| tier::of(object.file_name()) != tier))
    }
}

impl Moved {
    /// Makes a checkpoint, so that a process that opens the store does not read all relocations. A checkpoint that
    /// fails now is made later; the objects are moved in any case.
    pub(crate) fn checkpoint(&self, store: &Store) {
        if self.commit > 0 {
            let _ = store.checkpoint();
        }
    }
}

/// Moves these objects of a listing into new files below a folder, and adds them to the result, also on failure.
///
/// # Errors
/// As [`Store::move_to`].
pub(crate) fn relocate(
    store: &Store,
    objects: &[StoredObject<'_>],
    listing: &Listing,
    folder: &str,
    moved: &mut Moved,
    mut progress: impl FnMut(u64, u64) -> bool,
) -> Result<()> {
    let mut copier = ObjectCopier::new(store, folder, moved)?;
    let mut is_stopped = false;
    let read = for_each_payload(
        objects.iter().copied(),
        listing.reads_at_once(),
        ByteRange::Stored,
        |object, stored| {
            copier.take(&object, stored)?;
            is_stopped = !progress(copier.moved.objects, copier.moved.bytes);
            let stopped = || Err(Error::new(Code::Interrupted, "move", "it was stopped"));
            if is_stopped { stopped() } else { Ok(()) }
        },
    );
    if read.is_ok() || is_stopped {
        copier.commit()?;
    }
    read
}

impl Listing {
    /// Returns the objects in the best order for reading and writing: by location, and those within commits, where
    /// datasets are mixed, by dataset.
    fn together(&self) -> Vec<StoredObject<'_>> {
        let (in_files, mut in_commits): (Vec<_>, Vec<_>) = self
            .by_location()
            .into_iter()
            .partition(|object| data::is_one(object.file_name()));
        in_commits.sort_by_cached_key(|object| {
            let record = object.record();
            let dataset = record.as_ref().key_bytes(object.schema().level_ends()[0]).to_vec();
            (object.schema_index(), dataset)
        });
        [in_files, in_commits].concat()
    }
}

/// Copies objects, and commits their locations in batches.
struct ObjectCopier<'s> {
    store: &'s Store,
    folder: &'s str,
    names: DataFileNames,
    files: HashMap<DatasetName, DataFile>,
    /// The objects that were copied since the last commit: rows of each schema, their number and bytes, and the start
    /// time.
    rows: Vec<Rows>,
    count: usize,
    bytes: u64,
    since: Duration,
    moved: &'s mut Moved,
}

impl<'s> ObjectCopier<'s> {
    fn new(store: &'s Store, folder: &'s str, moved: &'s mut Moved) -> Result<Self> {
        Ok(Self {
            names: DataFileNames::new(&crate::random()?),
            files: HashMap::new(),
            rows: vec![Rows::new(); store.schemas().len()],
            count: 0,
            bytes: 0,
            since: store.now(),
            moved,
            store,
            folder,
        })
    }

    fn take(&mut self, object: &StoredObject<'_>, stored: Result<&[u8]>) -> Result<()> {
        let stored = match stored {
            Ok(stored) => stored,
            // An unreadable object must not prevent the relocation of the others.
            Err(error) if matches!(error.code(), Code::Corrupt | Code::Io) => {
                self.moved.damaged_count += 1;
                if self.moved.damaged.len() < DAMAGES_MAX {
                    self.moved.damaged.push((object.key(), error));
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let schema = object.schema_index();
        let record = object.record();
        let key = record.as_ref().key_bytes(object.schema().level_ends()[0]);
        let is_new = !self.files.contains_key(&DatasetRef(schema, key));
        if self.is_full(stored.len() as u64) || is_new && self.files.len() >= BATCH_DATASETS_MAX {
            self.commit()?;
        }
        if self.count == 0 {
            self.since = self.store.now();
        }
        let file = if let Some(file) = self.files.get_mut(&DatasetRef(schema, key)) {
            file
        } else {
            let name = self.names.next(self.folder, schema, key);
            self.files.entry((schema, key.into())).or_insert(DataFile::new(name))
        };
        self.rows[schema].push((object.number(), file.name().clone(), file.end()));
        file.append(stored, self.store.disk())?;
        self.count += 1;
        self.bytes += stored.len() as u64;
        self.moved.objects += 1;
        self.moved.bytes += stored.len() as u64;
        Ok(())
    }

    /// Returns whether this object should be part of the next commit.
    fn is_full(&self, bytes: u64) -> bool {
        let is_large = self.count > 0 && self.bytes + bytes > BATCH_BYTES_MAX;
        is_large || self.count >= BATCH_OBJECTS_MAX
    }

    /// Makes the copies durable, and commits their locations.
    fn commit(&mut self) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        for file in self.files.values_mut() {
            file.sync(self.store.disk())??;
        }
        ownership::check_folder(self.store.disk(), self.folder)?;
        // Files that no commit names are kept for a limited time.
        let term = WriteTerm {
            since: self.since,
            age_max: self.store.ages().unflushed_max,
            names_files: true,
        };
        let at = u64::try_from(self.store.now().as_nanos()).unwrap_or(u64::MAX);
        let rows = std::mem::replace(&mut self.rows, vec![Rows::new(); self.store.schemas().len()]);
        let mut record = CommitLog::begin();
        RelocationRecord::new(at, rows).encode_into(&mut record);
        let appended = self.store.append(RELOCATION, record, Some(term));
        // If the outcome is unknown, the commit may name them.
        if appended.is_ok() || self.store.log().is_broken() {
            self.files.clear();
        }
        self.moved.commit = appended.map_err(|error| match error.code() {
            Code::Expired => Error::new(Code::Expired, "move", error.cause()),
            _ => error,
        })?;
        // Each commit has its own files, so that no other process may have removed one meanwhile.
        (self.count, self.bytes) = (0, 0);
        Ok(())
    }
}

impl Drop for ObjectCopier<'_> {
    fn drop(&mut self) {
        for file in self.files.values_mut() {
            file.take_back(self.store.disk());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::time::{SystemTime, UNIX_EPOCH};

    use junctura_model::Schema;
    use junctura_model::selector::testing::TestRandom;

    use super::*;
    use crate::data::inventory::FileInventory;
    use crate::data::packing::Compression;
    use crate::query::snapshot::Snapshot;
    use crate::root::{RetentionAges, StoreLayout, StoreRoot};
    use crate::storage::{MemoryDisk, StorageDisk};
    use crate::{Commits, Store};

    thread_local! {
        /// Seconds by which the clock of this test's stores is ahead of the disk's clock.
        static AHEAD: Cell<u64> = const { Cell::new(0) };
    }

    fn clock() -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now + Duration::from_secs(AHEAD.get())
    }

    /// Advances the time.
    fn pass(seconds: u64) {
        AHEAD.set(AHEAD.get() + seconds);
    }

    const AGE: u64 = 100_000;

    fn store() -> (Arc<dyn StorageDisk>, Store) {
        let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::default());
        let age = Duration::from_secs(AGE);
        let layout = StoreLayout {
            compression: vec![Compression::Lz4.into()],
            ..StoreLayout::from(RetentionAges {
                snapshot_max: age,
                unflushed_max: age,
            })
        };
        let schemas = [Schema::builtin("free").unwrap()];
        StoreRoot::create(&*disk, &schemas, Commits::Appended, &layout).unwrap();
        let store = Store::open_on(Arc::clone(&disk), clock).unwrap();
        (disk, store)
    }

    /// Writes objects of two datasets, within commits and in files, packed and unpacked, empty ones, and masked
    /// versions.
    fn fill(store: &Store, random: &mut TestRandom) {
        let mut writer = store.writer().unwrap();
        for number in 0..60 {
            let space = ["a", "b"][number % 2];
            let name = (number % 20).to_string();
            let mut payload = vec![number as u8; [0, 10, 1000, 90_000][random.below(4)]];
            if random.once_in(2) {
                payload.fill_with(|| random.number() as u8);
            }
            writer.archive([("space", space), ("name", &*name)], &payload).unwrap();
            if random.once_in(10) {
                writer.flush().unwrap();
            }
        }
        writer.flush().unwrap();
    }

    type Object = (String, u64, u64, Vec<u8>);

    fn shown(snapshot: &Snapshot) -> Vec<Object> {
        let listing = snapshot.list_all("").unwrap();
        let one =
            |object: super::StoredObject<'_>| (object.key(), object.commit(), object.number(), object.read().unwrap());
        listing.iter().map(one).collect()
    }

    fn tiers_of(snapshot: &Snapshot, selector: &str) -> Vec<String> {
        let listing = snapshot.list_all(selector).unwrap();
        let mut tiers: Vec<String> = listing
            .iter()
            .map(|object| tier::of(object.file_name()).to_owned())
            .collect();
        tiers.sort();
        tiers.dedup();
        tiers
    }

    #[test]
    fn nobody_who_reads_sees_it_and_old_files_go_in_time() {
        let (disk, store) = store();
        let mut random = TestRandom(1);
        fill(&store, &mut random);
        store.checkpoint().unwrap();
        fill(&store, &mut random);
        let before = store.snapshot().unwrap();
        let expected = shown(&before);
        store.add_tier("cold", "memory:nobody-who-reads-sees-it").unwrap();
        let moved = store.move_to("space=a", "cold", |_, _| true).unwrap();
        let (of_a, bytes) = (before.list_all("space=a").unwrap(), moved.bytes);
        assert_eq!((moved.objects, moved.damaged_count), (of_a.len() as u64, 0));
        assert!(bytes > 0 && bytes < of_a.bytes());
        for opened in [store.clone(), Store::open_on(Arc::clone(&disk), clock).unwrap()] {
            let after = opened.snapshot().unwrap();
            assert_eq!(shown(&after), expected);
            assert_eq!(
                (tiers_of(&after, "space=a"), tiers_of(&after, "space=b")),
                (vec!["cold".into()], vec!["data".into()])
            );
            let checked = after.check("", None, |_, _| true).unwrap();
            assert_eq!((checked.damaged_count, checked.unnamed), (0, Vec::new()));
        }
        // The rows that are only in the log, and an earlier checkpoint.
        for checkpoint in disk.list("checkpoints").unwrap() {
            disk.remove(&format!("checkpoints/{checkpoint}")).unwrap();
            let again = Store::open_on(Arc::clone(&disk), clock).unwrap();
            assert_eq!(shown(&again.snapshot().unwrap()), expected);
        }
        let files = || FileInventory::of(&store).data_files().unwrap().len();
        let all = files();
        for _ in 0..3 {
            assert_eq!(shown(&before), expected);
            assert!(store.compact().unwrap().removed.is_empty());
            pass(AGE / 4);
        }
        pass(2 * AGE);
        let removed = store.compact().unwrap().removed;
        assert!(removed.iter().any(|file| file.starts_with("data/")), "{removed:?}");
        assert!(files() < all);
        assert_eq!(shown(&store.snapshot().unwrap()), expected);
        assert_eq!(before.list("").unwrap_err().code(), Code::Expired);
        // And back.
        let moved = store.move_to("", "data", |_, _| true).unwrap();
        assert_eq!(moved.objects as usize, of_a.len());
        assert_eq!(shown(&store.snapshot().unwrap()), expected);
        assert_eq!(store.move_to("", "data", |_, _| true).unwrap().objects, 0);
        pass(3 * AGE);
        store.compact().unwrap();
        assert!(
            FileInventory::of(&store)
                .data_files()
                .unwrap()
                .iter()
                .all(|file| file.starts_with("data/"))
        );
        assert_eq!(shown(&store.snapshot().unwrap()), expected);
    }

    #[test]
    fn what_was_stopped_goes_on_where_it_was() {
        let (disk, store) = store();
        fill(&store, &mut TestRandom(2));
        let expected = shown(&store.snapshot().unwrap());
        store.add_tier("cold", "memory:what-was-stopped").unwrap();
        let mut left = 60;
        for objects_max in [1, 5, 20] {
            let stopped = store
                .move_to("", "cold", |objects, _| objects < objects_max)
                .unwrap_err();
            assert_eq!(stopped.code(), Code::Interrupted);
            assert_eq!(shown(&store.snapshot().unwrap()), expected);
            left -= objects_max as usize;
            assert_eq!(store.movable("", "cold").unwrap().len(), left);
        }
        // A relocation that crashed after its first commit.
        let listing = store.movable("space=b", "cold").unwrap();
        let some = &listing.by_location()[..7];
        relocate(&store, some, &listing, "tiers/cold", &mut Moved::default(), |_, _| true).unwrap();
        assert_eq!(store.movable("", "cold").unwrap().len(), left - 7);
        let moved = store.move_to("", "cold", |_, _| true).unwrap();
        assert_eq!(
            (moved.objects, shown(&store.snapshot().unwrap())),
            (left as u64 - 7, expected.clone())
        );
        assert_eq!(
            shown(&Store::open_on(disk, clock).unwrap().snapshot().unwrap()),
            expected
        );
    }

    #[test]
    fn what_goes_meanwhile_is_gone_and_what_masks_it_masks_it() {
        let (disk, store) = store();
        fill(&store, &mut TestRandom(3));
        let listing = store.movable("", "cold-is-not-there").unwrap_err();
        assert_eq!(listing.code(), Code::NotFound);
        let listing = store.movable("", "data").unwrap();
        assert!(listing.is_empty());
        let listing = store.snapshot().unwrap().list_all("").unwrap();
        store.wipe("name=3").unwrap();
        let mut writer = store.writer().unwrap();
        writer.archive([("space", "a"), ("name", "4")], b"newer").unwrap();
        writer.flush().unwrap();
        let expected = shown(&store.snapshot().unwrap());
        let all = listing.by_location();
        relocate(&store, &all, &listing, "data", &mut Moved::default(), |_, _| true).unwrap();
        store.purge("").unwrap();
        let purged: Vec<Object> = shown(&store.snapshot().unwrap());
        assert!(purged.iter().all(|object| expected.contains(object)) && purged.len() < expected.len());
        let again = Store::open_on(disk, clock).unwrap();
        assert_eq!(shown(&again.snapshot().unwrap()), purged);
        assert_eq!(
            again
                .snapshot()
                .unwrap()
                .list("name=4,space=a")
                .unwrap()
                .get(0)
                .unwrap()
                .read()
                .unwrap(),
            b"newer"
        );
    }

    #[test]
    fn what_is_damaged_stays_and_is_told() {
        let (disk, store) = store();
        fill(&store, &mut TestRandom(4));
        store.add_tier("cold", "memory:what-is-damaged").unwrap();
        let listing = store.snapshot().unwrap().list_all("").unwrap();
        let mut in_files = listing.iter().filter(|object| object.location().length > 50_000);
        let victim = in_files.next().unwrap();
        let file = disk.open(victim.file_name()).unwrap();
        file.write_at(b"xx", victim.location().offset + 100).unwrap();
        let moved = store.move_to("", "cold", |_, _| true).unwrap();
        assert_eq!((moved.objects, moved.damaged_count), (59, 1));
        assert_eq!(
            (&*moved.damaged[0].0, moved.damaged[0].1.code()),
            (&*victim.key(), Code::Corrupt)
        );
        let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
        assert_eq!(checked.damaged_count, 1);
    }

    #[test]
    fn tiers_are_said_once() {
        let (disk, store) = store();
        store.add_tier("cold", "memory:tiers-are-said-once").unwrap();
        store.add_tier("cold", "memory:tiers-are-said-once").unwrap();
        for (name, place, code) in [
            ("cold", "memory:elsewhere", Code::AlreadyExists),
            ("data", "memory:elsewhere", Code::InvalidArgument),
            ("a/b", "memory:elsewhere", Code::InvalidArgument),
            ("A", "memory:elsewhere", Code::InvalidArgument),
            ("", "memory:elsewhere", Code::InvalidArgument),
            ("other", "relative", Code::InvalidArgument),
            ("other", "ftp://host/", Code::InvalidArgument),
        ] {
            assert_eq!(store.add_tier(name, place).unwrap_err().code(), code, "{name} {place}");
        }
        // Files of another store would look like files of a crashed writer.
        let (_, other) = self::store();
        let taken = other.add_tier("cold", "memory:tiers-are-said-once").unwrap_err();
        assert_eq!(taken.code(), Code::AlreadyExists, "{taken}");
        other.add_tier("colder", "memory:tiers-are-said-once").unwrap();
        let tiers = Store::open_on(disk, clock).unwrap().tiers().unwrap();
        assert_eq!(
            (tiers.len(), &*tiers[0].name, &*tiers[0].place),
            (1, "cold", "memory:tiers-are-said-once")
        );
        let unknown = store.move_to("", "warm", |_, _| true).unwrap_err();
        assert!(unknown.to_string().contains("it has cold, data"), "{unknown}");
    }
}
