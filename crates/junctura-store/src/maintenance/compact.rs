//! Compaction: removes files that are no longer needed: superseded checkpoints, and files left by crashed writers.
//!
//! No file is removed that a snapshot can still need, or that a flush can still name: the store's retention ages define
//! how long that is, and all processes follow them. Files that a commit names are kept.

use std::collections::BTreeSet;
use std::time::Duration;

use junctura_model::{Code, Result};

use crate::catalogue::checkpoint::{self, Checkpoint};
use crate::catalogue::schemas;
use crate::data::inventory::FileInventory;
use crate::log::{COMMITS_FOLDER, Commits, LOG_FOLDER, first_of, object_number};
use crate::maintenance::make_checkpoint::Checkpointed;
use crate::maintenance::ownership::OwnershipCheck;
use crate::maintenance::tier;
use crate::query::snapshot::Snapshot;
use crate::storage::{UnfinishedFile, files_in, may_be_there, refused};
use crate::store::Store;

/// The result of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// The checkpoint that it made.
    pub checkpoint: Checkpointed,
    /// The files that it removed, by their names in the store.
    pub removed: Vec<String>,
}

impl Store {
    /// Makes a [checkpoint](Self::checkpoint), and removes files that are no longer needed: checkpoints and segments
    /// that were superseded more than twice the maximum age of a snapshot ago; data files and old commits whose last
    /// object was removed as long ago; and files that no commit and no checkpoint names. Files that changed within
    /// twice the maximum age of unflushed objects are kept. Other processes may read, write and compact at the same
    /// time. Blocks until it is done.
    ///
    /// # Errors
    /// `Conflict`, with nothing removed, in a copied or moved store with separate data files or tiers, and for files
    /// behind a link: until [`Self::adopt`]. As [`Self::checkpoint`]; errors of system calls for single files: the
    /// other files are removed.
    pub fn compact(&self) -> Result<Compacted> {
        OwnershipCheck::of(self).check()?;
        let mut removed = Vec::new();
        let checkpoint = match self.checkpoint() {
            // The disk may be full until unneeded files are removed.
            Err(error) if error.code() == Code::Io => {
                CompactionRun::begin(self).remove_unneeded(&mut removed)?;
                self.checkpoint()?
            }
            made => made?,
        };
        CompactionRun::begin(self).remove_unneeded(&mut removed)?;
        Ok(Compacted { checkpoint, removed })
    }

    /// Returns the files that [`Self::compact`] would remove now, without a new checkpoint.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn unneeded(&self) -> Result<Vec<String>> {
        let compaction = CompactionRun::begin(self);
        let mut files = compaction.unneeded_files()?;
        files.extend(compaction.given_up()?.into_iter().map(|file| file.path));
        Ok(files)
    }
}

/// Finds and removes unneeded files.
pub(crate) struct CompactionRun<'a> {
    store: &'a Store,
    /// Ages count from this time, however long the compaction takes.
    began: Duration,
}

impl<'a> CompactionRun<'a> {
    pub(crate) fn begin(store: &'a Store) -> Self {
        Self {
            store,
            began: store.now(),
        }
    }

    /// Removes the files that the newest checkpoint does not need.
    fn remove_unneeded(&self, removed: &mut Vec<String>) -> Result<()> {
        let mut failed = None;
        let mut note = |file: String, what: &str, done: std::io::Result<()>| match done {
            Ok(()) => removed.push(file),
            // Another process removed it first.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // One failure does not prevent the removal of other files.
            Err(error) => failed = failed.take().or_else(|| Some(refused(file, what, &error))),
        };
        for file in self.unneeded_files()? {
            self.store.files().close(&file);
            let done = self.store.disk().remove(&file);
            note(file, "cannot be removed", done);
        }
        for file in self.given_up()? {
            let done = self.store.disk().end_unfinished(&file);
            note(file.path, "cannot be ended", done);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Returns uploads that were abandoned: their writers are too late to flush.
    fn given_up(&self) -> Result<Vec<UnfinishedFile>> {
        let mut files = FileInventory::of(self.store).unfinished_files()?;
        files.retain(|file| self.began.saturating_sub(file.since) > 2 * self.store.ages().unflushed_max);
        Ok(files)
    }

    fn unneeded_files(&self) -> Result<Vec<String>> {
        let names = checkpoint::names(self.store.disk())?;
        let Some(all) = self.checkpoints(&names)? else {
            return Ok(Vec::new());
        };
        let mut doomed = superseded(
            &names,
            &all,
            self.began.saturating_sub(2 * self.store.ages().snapshot_max),
        );
        doomed.extend(self.left_behind(&all)?);
        doomed.extend(self.old_commits(&all)?);
        Ok(doomed)
    }

    /// Returns these checkpoints; none if another process is removing them, which then also does the remaining work.
    fn checkpoints(&self, names: &[String]) -> Result<Option<Vec<Checkpoint>>> {
        let mut all = Vec::new();
        for name in names {
            match Checkpoint::read(self.store.disk(), name) {
                Ok(checkpoint) => all.push(checkpoint),
                Err(error) if error.code() == Code::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(all))
    }

    /// Returns files that are unnamed and will remain so.
    fn left_behind(&self, all: &[Checkpoint]) -> Result<Vec<String>> {
        let snapshot = self.store.snapshot()?;
        let mut unnamed = snapshot.unnamed_files()?;
        unnamed.extend(self.old_logs(all, &snapshot)?);
        unnamed.extend(self.unnamed_segments(all)?);
        unnamed.extend(self.drafts()?);
        let mut left = Vec::new();
        for path in unnamed {
            // A snapshot that was taken during a removal still shows the removed objects.
            let file = path.strip_suffix(".synced").unwrap_or(&path);
            let since = snapshot.empty_since(file).unwrap_or_default();
            let is_needed = self.began.saturating_sub(since) <= 2 * self.store.ages().snapshot_max;
            if !is_needed && self.is_given_up(&path)? {
                left.push(path);
            }
        }
        Ok(left)
    }

    /// Returns files of the catalogue that none of these checkpoints names.
    fn unnamed_segments(&self, all: &[Checkpoint]) -> Result<Vec<String>> {
        let segments = all.iter().flat_map(|checkpoint| &checkpoint.segments);
        let named: BTreeSet<&String> = segments.map(|segment| &segment.path).collect();
        let mut unnamed = files_in(self.store.disk(), checkpoint::SEGMENTS)?;
        unnamed.retain(|path| checkpoint::is_segment(path) && !named.contains(path));
        Ok(unnamed)
    }

    /// Returns drafts that still have their temporary names.
    fn drafts(&self) -> Result<Vec<String>> {
        let mut drafts = Vec::new();
        for (folder, beside) in [
            ("", "store.json."),
            (checkpoint::FOLDER, "checkpoints/."),
            (COMMITS_FOLDER, "commits/."),
            (schemas::FOLDER, "schemas/."),
            (tier::FOLDER, "tiers/."),
        ] {
            let is_draft = |path: &String| path.strip_prefix(beside).is_some_and(|id| crate::is_hex(id, 16));
            drafts.extend(files_in(self.store.disk(), folder)?.into_iter().filter(is_draft));
        }
        Ok(drafts)
    }

    /// Returns files of a catalogue that are not named, if all checkpoints can be read.
    ///
    /// # Errors
    /// Errors of system calls.
    pub(crate) fn unnamed_of_catalogue(&self) -> Result<Vec<String>> {
        let mut unnamed = self.drafts()?;
        let names = checkpoint::names(self.store.disk())?;
        if let Ok(Some(all)) = self.checkpoints(&names) {
            unnamed.extend(self.unnamed_segments(&all)?);
        }
        Ok(unnamed)
    }

    /// Returns files of an appended log at which no readable checkpoint starts, and which contain no object.
    fn old_logs(&self, all: &[Checkpoint], snapshot: &Snapshot) -> Result<Vec<String>> {
        let before = self.began.saturating_sub(2 * self.store.ages().snapshot_max);
        let staying = &all[superseded_count(all, before)..];
        let Some(needed_from) = staying.iter().map(|checkpoint| checkpoint.position().log).min() else {
            return Ok(Vec::new());
        };
        let named = snapshot.files()?;
        let mut old = files_in(self.store.disk(), LOG_FOLDER)?;
        old.retain(|path| {
            let log = path.strip_suffix(".synced").unwrap_or(path);
            first_of(log).is_some_and(|first| first < needed_from) && !named.contains(log)
        });
        Ok(old)
    }

    /// Returns objects of exclusive commits up to the oldest checkpoint that may still be used, without objects that it
    /// shows. That checkpoint is so old that a process without it no longer trusts its own view of the end, and no
    /// readable snapshot is older.
    fn old_commits(&self, all: &[Checkpoint]) -> Result<Vec<String>> {
        let before = self.began.saturating_sub(2 * self.store.ages().snapshot_max);
        let oldest = all.get(superseded_count(all, before));
        let Some(oldest) =
            oldest.filter(|oldest| self.store.commits() == Commits::Exclusive && oldest.is_before(before))
        else {
            return Ok(Vec::new());
        };
        // Also by the clock of the disk: that of the checkpoint's maker may have been wrong.
        if !self.is_older(&oldest.path(), 2 * self.store.ages().snapshot_max)? {
            return Ok(Vec::new());
        }
        let mut old = files_in(self.store.disk(), COMMITS_FOLDER)?;
        old.retain(|path| object_number(path).is_some_and(|number| number <= oldest.commit));
        if old.is_empty() {
            return Ok(old);
        }
        match oldest.files(self.store.disk(), self.store.schemas()) {
            Ok(named) => old.retain(|path| !named.contains(&**path)),
            // Another process is removing it, which then also does the remaining work.
            Err(error) if error.code() == Code::NotFound || self.is_being_removed(oldest) => old.clear(),
            Err(error) => return Err(error),
        }
        Ok(old)
    }

    /// Returns whether a segment of a checkpoint is missing: segments are removed before their checkpoint. A checkpoint
    /// that was opened before may be `Corrupt` when it is read.
    fn is_being_removed(&self, checkpoint: &Checkpoint) -> bool {
        let segments = &checkpoint.segments;
        segments
            .iter()
            .any(|segment| !may_be_there(self.store.disk(), &segment.path))
    }

    fn is_given_up(&self, path: &str) -> Result<bool> {
        self.is_older(path, 2 * self.store.ages().unflushed_max)
    }

    /// Returns whether an existing file was last written longer ago than this.
    fn is_older(&self, path: &str, age: Duration) -> Result<bool> {
        match self.store.disk().modified(path) {
            Ok(at) => Ok(self.began.saturating_sub(at) > age),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(refused(path, "cannot be looked at", &error)),
        }
    }
}

/// Returns how many of the checkpoints, oldest first, no snapshot may still start with.
fn superseded_count(all: &[Checkpoint], before: Duration) -> usize {
    // A checkpoint may be removed when the next one is old enough.
    all.iter().skip(1).take_while(|next| next.is_before(before)).count()
}

/// Returns checkpoints that no snapshot may still start with, because the next one was made before this time, and the
/// segments that only they name. Checkpoints are last, so that an interrupted removal is found again.
fn superseded(names: &[String], all: &[Checkpoint], before: Duration) -> Vec<String> {
    let old = superseded_count(all, before);
    let segments = |checkpoints: &[Checkpoint]| -> BTreeSet<String> {
        let all = checkpoints.iter().flat_map(|checkpoint| &checkpoint.segments);
        all.map(|segment| segment.path.clone()).collect()
    };
    let (going, staying) = (segments(&all[..old]), segments(&all[old..]));
    let mut doomed: Vec<String> = going.difference(&staying).cloned().collect();
    doomed.extend_from_slice(&names[..old]);
    doomed
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Condvar, Mutex};
    use std::thread::{self, ThreadId};

    use junctura_model::Schema;

    use super::*;
    use crate::log::Commits;
    use crate::query::snapshot::Snapshot;
    use crate::root::{RetentionAges, StoreRoot};
    use crate::storage::{MemoryDisk, StorageDisk};
    use crate::writer::StoreWriter;

    const AGE: Duration = Duration::from_millis(30);

    static NOW: AtomicU64 = AtomicU64::new(1 << 40);
    /// How often each thread has read the clock.
    static LOOKS: Mutex<Vec<Looks>> = Mutex::new(Vec::new());
    static LOOKED: Condvar = Condvar::new();
    /// By how many readings of the clock a thread may be ahead of another. A store's ages are chosen for slow threads, but no thread
    /// is stopped for a whole age between two readings while the others continue.
    const AHEAD: u64 = 4;
    /// A sleeping thread may wait for a lock that the thread ahead holds: the thread ahead continues once all others have slept for
    /// this long, which is long beside the time that a thread waits for a processor.
    const PATIENCE: Duration = Duration::from_millis(500);

    struct Looks {
        thread: ThreadId,
        /// As the kernel numbers it.
        number: i32,
        count: u64,
    }

    impl Looks {
        /// Whether the thread runs, or would if a processor were free.
        fn is_runnable(&self) -> bool {
            let status = std::fs::read_to_string(format!("/proc/self/task/{}/stat", self.number)).unwrap_or_default();
            let state = status.rsplit(") ").next().unwrap_or_default();
            state.starts_with(['R', 'D'])
        }
    }

    /// Advances by itself: 1 ms for each reading.
    fn clock() -> Duration {
        let me = thread::current().id();
        let mut looks = LOOKS.lock().unwrap();
        if let Some(mine) = looks.iter().find(|one| one.thread == me).map(|one| one.count) {
            let is_behind = |other: &Looks| mine > other.count + AHEAD;
            loop {
                let waited = LOOKED.wait_timeout_while(looks, PATIENCE, |all| all.iter().any(is_behind));
                let timed_out;
                (looks, timed_out) = waited.unwrap();
                if !timed_out.timed_out() || !looks.iter().any(|other| other.thread != me && other.is_runnable()) {
                    break;
                }
            }
            let here = looks.iter_mut().find(|one| one.thread == me);
            here.unwrap().count = mine + 1;
            LOOKED.notify_all();
        }
        Duration::from_millis(NOW.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the time of file changes; must not block, because the caller holds the disk.
    fn clock_of_disk() -> Duration {
        Duration::from_millis(NOW.load(Ordering::Relaxed))
    }

    /// Keeps a thread in pace with the others while it exists.
    struct Pace;

    impl Pace {
        fn keep() -> Self {
            let mut looks = LOOKS.lock().unwrap();
            let furthest = looks.iter().map(|one| one.count).max();
            looks.push(Looks {
                thread: thread::current().id(),
                number: rustix::thread::gettid().as_raw_nonzero().get(),
                count: furthest.unwrap_or_default(),
            });
            Self
        }
    }

    impl Drop for Pace {
        fn drop(&mut self) {
            let me = thread::current().id();
            LOOKS.lock().unwrap().retain(|one| one.thread != me);
            LOOKED.notify_all();
        }
    }

    /// Writes and compacts in a store whose data are soon too old.
    fn take_part(store: &Store, name: &str) {
        let unless_expired = |result: Result<()>| {
            if let Err(error) = result {
                assert!(matches!(error.code(), Code::Expired | Code::Unavailable), "{error}");
            }
        };
        let _pace = Pace::keep();
        let mut open = store.apart();
        let mut writer = open.writer().unwrap();
        for _ in 0..50 {
            writer.archive([("name", name)], name.as_bytes()).unwrap();
            unless_expired(writer.flush().map(|_| ()));
            unless_expired(open.purge("").map(|_| ()));
            unless_expired(store.compact().map(|_| ()));
            if open.log().is_broken() {
                // By the clock this took ages: the error is allowed.
                open = store.apart();
                writer = open.writer().unwrap();
            }
        }
    }

    #[test]
    fn compactions_at_once_do_not_disturb_each_other() {
        for commits in [Commits::Appended, Commits::Exclusive] {
            let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::with_clock(clock_of_disk));
            let ages = RetentionAges {
                snapshot_max: AGE,
                unflushed_max: AGE,
            };
            let schemas = [Schema::builtin("free").unwrap()];
            StoreRoot::create(&*disk, &schemas, commits, &ages.into()).unwrap();
            std::thread::scope(|scope| {
                for name in ["a", "b", "c", "d"] {
                    let store = Store::open_on(Arc::clone(&disk), clock).unwrap();
                    scope.spawn(move || take_part(&store, name));
                }
            });
            let store = Store::open_on(disk, clock).unwrap();
            let count = store.snapshot().unwrap().commit();
            assert!(count > 0 && store.disk().list("checkpoints").unwrap().len() < 50);
            let left = store.disk().list(COMMITS_FOLDER).unwrap().len() as u64;
            assert!(commits == Commits::Appended || left < count / 2, "{left} of {count}");
        }
    }

    static SET: AtomicU64 = AtomicU64::new(1 << 40);

    /// A clock that is advanced explicitly.
    fn set_clock() -> Duration {
        Duration::from_millis(SET.load(Ordering::Relaxed))
    }

    fn keys(snapshot: &Snapshot) -> Vec<String> {
        snapshot.list("").unwrap().iter().map(|object| object.key()).collect()
    }

    const ROWS: i32 = 40;

    #[test]
    fn what_was_not_read_yet_is_there_for_as_long_as_a_snapshot() {
        let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::default());
        let ages = RetentionAges {
            snapshot_max: Duration::from_secs(1),
            unflushed_max: Duration::from_secs(1),
        };
        let schemas = [Schema::builtin("free").unwrap()];
        StoreRoot::create(&*disk, &schemas, Commits::Appended, &ages.into()).unwrap();
        let store = Store::open_on(Arc::clone(&disk), set_clock).unwrap();
        let mut writer = store.writer().unwrap();
        let archive =
            |writer: &mut StoreWriter, number: i32| writer.archive([("name", &number.to_string())], b"").unwrap();
        (0..ROWS).for_each(|number| archive(&mut writer, number));
        let (mut number, mut removed) = (ROWS, 0);
        // Advances the time; files with a removed row are rewritten.
        let mut pass = |milliseconds: u64| {
            for _ in 0..milliseconds / 100 {
                SET.fetch_add(100, Ordering::Relaxed);
                archive(&mut writer, number);
                writer.flush().unwrap();
                store.wipe(&format!("name={}", number - ROWS)).unwrap();
                removed += store.compact().unwrap().removed.len();
                number += 1;
            }
            removed
        };
        pass(1000);
        for idle in [100, 400, 500, 600, 1000, 1100, 1500, 1900, 2500, 5000] {
            let reader = Store::open_on(Arc::clone(&disk), set_clock).unwrap();
            reader.snapshot().unwrap();
            pass(idle);
            let (snapshot, expected) = (reader.snapshot().unwrap(), keys(&store.snapshot().unwrap()));
            assert_eq!(expected.len(), ROWS as usize);
            pass(1000);
            assert_eq!(keys(&snapshot), expected, "after {idle} ms");
        }
        assert!(pass(0) > 200);
    }
}
