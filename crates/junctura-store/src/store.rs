//! An open store.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use junctura_model::{Code, Error, Result, Schema};

use crate::catalogue::Catalogue;
use crate::create;
use crate::data::open_files::OpenFiles;
use crate::log::{CommitLog, Commits, EndTrust, WriteTerm};
use crate::maintenance::auto_checkpoint::AutoCheckpoint;
use crate::maintenance::make_checkpoint::{CheckpointMaker, Checkpointed};
use crate::maintenance::ownership::OwnershipCheck;
use crate::maintenance::tier;
use crate::query::snapshot::Snapshot;
use crate::root::{RetentionAges, StoreLayout, StoreRoot};
use crate::storage::{StorageDisk, TieredDisk};
use crate::url::{CacheUrl, StoreUrl, without_until_damage};
use crate::writer::StoreWriter;

/// A durable store of objects. Cheap to clone and thread-safe; clones share one state.
///
/// ```
/// use junctura_model::Schema;
/// use junctura_store::{RetentionAges, Store};
/// # fn main() -> junctura_model::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("store");
/// let mars = Schema::builtin("mars").unwrap();
/// let store = Store::create(&path, &[mars], RetentionAges::default())?;
/// let mut writer = store.writer()?;
/// let field = "class=od,expver=0001,stream=oper,date=20261120,time=0000,type=fc,levtype=sfc,step=6,param=2t";
/// let attributes = field.split(',').filter_map(|pair| pair.split_once('='));
/// writer.archive(attributes, b"the field")?;
/// writer.flush()?;
///
/// let snapshot = store.snapshot()?;
/// let listing = snapshot.list("param=2t")?;
/// assert_eq!(listing.len(), 1);
/// for object in &listing {
///     assert_eq!(object.read()?, b"the field");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Store(Arc<StoreInner>);

/// Returns the time since 1970.
type Clock = fn() -> Duration;

#[derive(Debug)]
struct StoreInner {
    disk: Arc<dyn StorageDisk>,
    root: StoreRoot,
    log: CommitLog,
    catalogue: Mutex<Catalogue>,
    clock: Clock,
    upkeep: AutoCheckpoint,
    files: OpenFiles,
    /// See [`Store::until_damage`].
    until_damage: bool,
    /// Whether the files by which it was opened are known to be durable.
    lasts: AtomicBool,
    /// Whether files may be created in its folders, as far as checked.
    is_own: AtomicBool,
}

impl Store {
    /// Creates a store in a folder, which is created if missing.
    ///
    /// # Errors
    /// `AlreadyExists` if the folder contains a store, data of a store, or other files in `data/`; `InvalidArgument`
    /// for no schema, two schemas with one name, or an invalid data location; errors of system calls.
    pub fn create(folder: &Path, schemas: &[Arc<Schema>], layout: impl Into<StoreLayout>) -> Result<Self> {
        create::create_in(&StoreUrl::folder(folder), schemas, &layout.into())
    }

    /// Creates a store at a path or URL: `file:///PATH`, `memory:NAME` for memory of this process (freed with the last
    /// handle; `memory:` alone is private), or `s3://BUCKET/PREFIX?endpoint=URL&region=NAME` with credentials from the
    /// environment (`AWS_ACCESS_KEY_ID` and the like). An object store is first tested for the guarantees that the
    /// order of commits needs.
    ///
    /// # Errors
    /// As [`Self::create`]; `InvalidArgument` for an invalid location, or a layout that is not possible there;
    /// `Unsupported` for a location that this build leaves out, and for an object store without conditional put;
    /// `Unavailable` for one that does not answer; `Denied`.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # use junctura_store::{StoreLayout, Store};
    /// # fn main() -> junctura_model::Result<()> {
    /// let store = Store::create_url("memory:fields", &[Schema::builtin("mars").unwrap()], &StoreLayout::default())?;
    /// assert!(Store::open_url("memory:fields")?.snapshot()?.list("")?.is_empty());
    /// # drop(store);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_url(url: &str, schemas: &[Arc<Schema>], layout: &StoreLayout) -> Result<Self> {
        create::create_in(&StoreUrl::parse(url)?, schemas, layout)
    }

    /// Opens a store.
    ///
    /// # Errors
    /// `NotFound` if there is none; `Unsupported` for a later format version; `Corrupt`; errors of system calls.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::open_in(&StoreUrl::folder(folder))
    }

    /// Opens the store at a path or URL, as [`Self::create_url`] accepts it; with `until=damage` as
    /// [`Self::until_damage`].
    ///
    /// # Errors
    /// As [`Self::open`]; `InvalidArgument` for an invalid location; `Unsupported`, `Unavailable`, `Denied` as
    /// [`Self::create_url`].
    pub fn open_url(url: &str) -> Result<Self> {
        let (url, until_damage) = without_until_damage(url);
        let store = Self::open_in(&StoreUrl::parse(&url)?)?;
        Ok(if until_damage { store.until_damage() } else { store })
    }

    fn open_in(place: &StoreUrl) -> Result<Self> {
        Self::reached(place, place.disk(false)?)
    }

    /// Opens the store whose root is on this disk.
    pub(crate) fn reached(place: &StoreUrl, disk: Arc<dyn StorageDisk>) -> Result<Self> {
        let root = StoreRoot::open(&*disk)?;
        Ok(Self::with(disk, root, now, place.cache()))
    }

    /// Opens a store with damaged commits a second time, read-only: its snapshots show the commits before the damage
    /// ([`Snapshot::damage`] returns the error), and nothing can be archived or changed. Later commits are unreadable,
    /// so a key may have had a newer version. `until=damage` in a URL does the same.
    #[must_use]
    pub fn until_damage(&self) -> Self {
        Self::of(Arc::clone(&self.0.disk), self.0.root.clone(), self.0.clock, true)
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn open_on(disk: Arc<dyn StorageDisk>, clock: Clock) -> Result<Self> {
        let root = StoreRoot::open(&*disk)?;
        Ok(Self::with(disk, root, clock, &CacheUrl::default()))
    }

    /// Data at other locations use the same cache.
    pub(crate) fn with(disk: Arc<dyn StorageDisk>, root: StoreRoot, clock: Clock, cache: &CacheUrl) -> Self {
        let places = tier::OfStore {
            owner: root.id.clone(),
            data: root.data.clone(),
            cache: cache.clone(),
        };
        let tiered = TieredDisk::new(disk, Box::new(places));
        Self::of(Arc::new(tiered), root, clock, false)
    }

    fn of(disk: Arc<dyn StorageDisk>, root: StoreRoot, clock: Clock, until_damage: bool) -> Self {
        let trust = EndTrust {
            clock,
            age_max: root.ages.snapshot_max,
        };
        let log = CommitLog::open(&disk, root.commits, trust, until_damage.then(only_read));
        let catalogue = Mutex::new(Catalogue::new(root.schemas.len(), until_damage));
        Self(Arc::new(StoreInner {
            disk,
            root,
            log,
            catalogue,
            clock,
            upkeep: AutoCheckpoint::default(),
            files: OpenFiles::default(),
            until_damage,
            lasts: AtomicBool::new(false),
            is_own: AtomicBool::new(false),
        }))
    }

    /// Opens the same location again, with an empty state.
    pub(crate) fn apart(&self) -> Self {
        Self::of(
            Arc::clone(&self.0.disk),
            self.0.root.clone(),
            self.0.clock,
            self.0.until_damage,
        )
    }

    /// Opens the same location again, with its current schemas.
    pub(crate) fn anew(&self) -> Result<Self> {
        let root = StoreRoot::open(self.disk())?;
        Ok(Self::of(
            Arc::clone(&self.0.disk),
            root,
            self.0.clock,
            self.0.until_damage,
        ))
    }

    /// The open files.
    pub(crate) fn files(&self) -> &OpenFiles {
        &self.0.files
    }

    /// The automatic checkpoints beside the work of writers.
    pub(crate) fn upkeep(&self) -> &AutoCheckpoint {
        &self.0.upkeep
    }

    /// Returns the schemas of its objects.
    #[must_use]
    pub fn schemas(&self) -> &[Arc<Schema>] {
        &self.0.root.schemas
    }

    /// Returns the schema with this name, or the first schema for `None`.
    ///
    /// # Errors
    /// `NotFound` if the store has no such schema.
    pub fn schema(&self, name: Option<&str>) -> Result<&Arc<Schema>> {
        let at = name.map_or(Ok(0), |name| self.schema_index(name))?;
        Ok(&self.schemas()[at])
    }

    pub(crate) fn schema_index(&self, name: &str) -> Result<usize> {
        let found = self.schemas().iter().position(|schema| schema.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.schemas().iter().map(|schema| schema.name()).collect();
            let cause = format!("the store has no such schema (it has {})", names.join(", "));
            Error::new(Code::NotFound, format!("schema {name}"), cause)
        })
    }

    /// Returns its retention ages.
    #[must_use]
    pub fn ages(&self) -> RetentionAges {
        self.0.root.ages
    }

    /// Returns the URI at which other programs find a file of the store.
    #[must_use]
    pub fn uri(&self, file: &str) -> String {
        self.disk().uri(file)
    }

    /// Creates a writer. Any number of writers may exist, in any number of processes.
    ///
    /// # Errors
    /// `Io` if the system has no random numbers; `Conflict` if a link or mount point within the store leads into
    /// another store.
    pub fn writer(&self) -> Result<StoreWriter> {
        self.check_own()?;
        StoreWriter::new(self.clone())
    }

    /// Returns a snapshot of the current state; later writes do not affect it. Reads the commits since the last
    /// snapshot of this process.
    ///
    /// # Errors
    /// `Corrupt` for commits that cannot be read; `SchemaMismatch` for objects of schemas that were added after the
    /// store was opened here ([`Self::set_schema`]); errors of system calls.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let taken = self.now();
        let catalogue = self.catalogue()?;
        self.files().close_emptied(catalogue.emptied());
        Ok(Snapshot::new(
            self.clone(),
            catalogue.position().number,
            catalogue.tables(),
            catalogue.emptied().clone(),
            taken,
            catalogue.damage().cloned(),
        ))
    }

    /// Writes a checkpoint: all visible rows in Parquet files that other programs can read, with small files merged,
    /// and a list of the files under `checkpoints/`. The next process that opens the store starts at the checkpoint.
    /// Other processes may write and make checkpoints at the same time. Blocks until the checkpoint is on disk.
    ///
    /// # Errors
    /// As [`Self::snapshot`]; `Expired` if it took so long that other processes may have removed its files. There is
    /// then no new checkpoint, and the previous one stays valid.
    pub fn checkpoint(&self) -> Result<Checkpointed> {
        if self.0.until_damage {
            return Err(only_read());
        }
        self.check_own()?;
        CheckpointMaker::begin(self).make()
    }

    /// Its root.
    pub(crate) fn root(&self) -> &StoreRoot {
        &self.0.root
    }

    /// Returns the catalogue as far as it was read.
    pub(crate) fn known_catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.0.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the catalogue with all current commits.
    pub(crate) fn catalogue(&self) -> Result<MutexGuard<'_, Catalogue>> {
        let mut catalogue = self.known_catalogue();
        let age_max = self.ages().snapshot_max;
        catalogue.refresh(self.disk(), self.schemas(), self.log(), self.now(), age_max)?;
        Ok(catalogue)
    }

    /// Returns how its commits are ordered.
    #[must_use]
    pub fn commits(&self) -> Commits {
        self.0.root.commits
    }

    pub(crate) fn disk(&self) -> &dyn StorageDisk {
        &*self.0.disk
    }

    pub(crate) fn log(&self) -> &CommitLog {
        &self.0.log
    }

    /// Appends a record, as [`CommitLog::append`], after the files on which it depends are durable: the store itself,
    /// and its schemas.
    pub(crate) fn append(&self, kind: u32, record: Vec<u8>, term: Option<WriteTerm>) -> Result<u64> {
        self.check_own()?;
        self.make_last()?;
        self.log().append(kind, record, term)
    }

    /// Checks once whether files may be created in its folders.
    ///
    /// # Errors
    /// As [`OwnershipCheck::check_ways`].
    fn check_own(&self) -> Result<()> {
        if !self.0.is_own.load(Ordering::Relaxed) {
            OwnershipCheck::of(self).check_ways()?;
            self.0.is_own.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Makes the files by which it was opened durable, if that is not known.
    pub(crate) fn make_last(&self) -> Result<()> {
        if !self.0.lasts.load(Ordering::Relaxed) {
            self.0.root.make_last(self.disk())?;
            self.0.lasts.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn now(&self) -> Duration {
        (self.0.clock)()
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cold]
fn only_read() -> Error {
    let cause = "it is open read-only, up to its damage";
    Error::new(Code::Denied, "store", cause)
}
