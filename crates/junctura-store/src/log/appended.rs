//! The commit log on a local file system: all writers append to one file, which defines a total order; a long file is
//! continued in another.
//!
//! A kernel lock is held while a record is written, but not while it is synced: any sync covers all earlier records. A
//! crash releases the lock, and may leave a torn record at the end, which the next writer truncates. Readers take no
//! lock; they stop at the first incomplete record, and sync before they return records: no visible record can be lost.
//! Concurrent flushes of one process are written, and synced, together.
//!
//! Beside each file, a mark records an offset up to which the file has been synced. An incomplete record before the
//! mark was not torn, but is damaged: the file is not truncated, and readers do not treat the records before it as the
//! complete log.
//!
//! The last record of a long file has the number of the next commit, and thereby the name of the file that contains it
//! ([`LogFile`]): no process writes or trusts that file before the record is durable. Old files are removed later; a
//! process whose position was in a removed file starts from the newest checkpoint.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use junctura_model::{Code, Error, Result};

use super::log_file::{LogFile, WalkEnd, name_of};
use super::{AppendError, LogOrder, LogPosition, PendingRecord, Take, Written, end_of, is_late, too_late};
use crate::catalogue::checkpoint::Checkpoint;
use crate::log::frame;
use crate::storage::StorageDisk;

/// A file that has so many bytes is not written on.
const FILE_BYTES_MAX: u64 = if cfg!(test) { 128 << 10 } else { 64 << 20 };
/// The number of the first file.
const FIRST: u64 = 1;
/// Files that stay open.
const OPEN_MAX: usize = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct AppendedLog {
    disk: Arc<dyn StorageDisk>,
    clock: fn() -> Duration,
    open: Mutex<Vec<Arc<LogFile>>>,
    known: Mutex<KnownEnd>,
}

#[derive(Clone, Copy, Debug)]
struct KnownEnd {
    /// The last end that is known here.
    tail: LogPosition,
    /// The last file that was synced by this process, and up to where.
    synced: (u64, u64),
}

/// The result of an attempt to write.
enum WriteAttempt {
    /// The position after the record, and the end of the file; whether it may have been written too late.
    Written(LogPosition, u64, bool),
    /// One of the records is too old now.
    Late(Duration),
    /// The log continues in another file, after this offset.
    GoesOn(LogPosition, u64),
}

impl AppendedLog {
    /// Makes an empty one, if there is none.
    ///
    /// # Errors
    /// What the system refuses.
    pub(super) fn create(disk: &dyn StorageDisk) -> Result<()> {
        LogFile::create(disk, FIRST)
    }

    pub(super) fn new(disk: Arc<dyn StorageDisk>, clock: fn() -> Duration) -> Self {
        Self {
            disk,
            clock,
            open: Mutex::default(),
            known: Mutex::new(KnownEnd {
                tail: LogPosition {
                    log: FIRST,
                    ..LogPosition::default()
                },
                synced: (0, 0),
            }),
        }
    }

    /// The file whose first commit has this number.
    ///
    /// # Errors
    /// `NotFound` when it has been removed; what the system refuses.
    fn file(&self, first: u64) -> Result<Arc<LogFile>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.iter().find(|file| file.first == first) {
            return Ok(Arc::clone(known));
        }
        let file = Arc::new(LogFile::open(&*self.disk, first)?);
        open.truncate(OPEN_MAX - 1);
        open.insert(0, Arc::clone(&file));
        Ok(file)
    }

    fn forget(&self, first: u64) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|file| file.first != first);
    }

    /// Returns the file with the last known end; if it was removed, that of the newest checkpoint.
    fn last(&self) -> Result<(Arc<LogFile>, KnownEnd)> {
        let known = *self.known();
        match self.file(known.tail.log) {
            Err(error) if error.code() == Code::NotFound => {}
            file => return file.map(|file| (file, known)),
        }
        let gone = || {
            Error::new(
                Code::Corrupt,
                name_of(known.tail.log),
                "it is missing, and no checkpoint is newer",
            )
        };
        let newest = Checkpoint::newest(&*self.disk)?.map(|checkpoint| checkpoint.position());
        let tail = newest.filter(|newest| newest.log > known.tail.log).ok_or_else(gone)?;
        let file = self.file(tail.log)?;
        let mut known = self.known();
        known.tail = tail;
        Ok((file, *known))
    }

    fn attempt(
        &self,
        file: &LogFile,
        batch: &mut Vec<PendingRecord>,
        known: LogPosition,
    ) -> std::result::Result<WriteAttempt, AppendError> {
        let mut tail = known;
        let marked = file.marked()?;
        let length = file.length_from(tail.end)?;
        let walked = file.walk_until(&mut tail, length, &mut |_| Ok(()))?;
        file.check_tail(walked, tail.number, marked)?;
        if let Some(next) = walked.next {
            return Ok(WriteAttempt::GoesOn(next, walked.end));
        }
        if length > tail.end {
            file.cut(tail.end)?;
        }
        // The writer that had the lock before may have kept it for long.
        if batch.iter().any(|record| record.term.is_some()) {
            let now = (self.clock)();
            if is_late(batch, now) {
                return Ok(WriteAttempt::Late(now));
            }
        }
        let end_of_term = end_of(batch);
        let mut bytes = Vec::new();
        let number = tail.number + batch.len() as u64;
        for mut record in batch.drain(..) {
            let place = tail.end + bytes.len() as u64;
            frame::close(&mut record.bytes, 0, record.kind, place)?;
            if bytes.is_empty() {
                bytes = record.bytes;
            } else {
                bytes.extend_from_slice(&record.bytes);
            }
        }
        file.write(&bytes, tail.end)?;
        let is_too_late = end_of_term.is_some_and(|end| (self.clock)() > end);
        let end = tail.end + bytes.len() as u64;
        let tail = LogPosition { end, number, ..tail };
        Ok(WriteAttempt::Written(tail, self.closed(file, tail), is_too_late))
    }

    /// Continues the log in another file if this one is long. On failure, this file is used further. Returns the end of
    /// its records.
    fn closed(&self, file: &LogFile, tail: LogPosition) -> u64 {
        if tail.end < FILE_BYTES_MAX {
            return tail.end;
        }
        let next = tail.number + 1;
        // A crashed process may have created it; it is still empty.
        let closed = LogFile::create(&*self.disk, next).and_then(|()| file.close(tail.end, next));
        closed.unwrap_or(tail.end)
    }

    fn known(&self) -> MutexGuard<'_, KnownEnd> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownEnd {
    /// Records that a file is synced up to here, and continues there.
    fn learn(&mut self, log: u64, end: u64, tail: LogPosition) {
        self.synced = self.synced.max((log, end));
        if (self.tail.log, self.tail.end) < (tail.log, tail.end) {
            self.tail = tail;
        }
    }

    /// Up to where a file is synced.
    fn synced_of(&self, log: u64) -> u64 {
        if self.synced.0 == log { self.synced.1 } else { 0 }
    }
}

impl LogOrder for AppendedLog {
    fn write(&self, batch: &mut Vec<PendingRecord>) -> Written {
        loop {
            let (file, known) = self.last().map_err(AppendError::Clean)?;
            file.lock().map_err(AppendError::Clean)?;
            let tried = self.attempt(&file, batch, known.tail);
            let unlocked = file.unlock();
            if matches!(&tried, Err(AppendError::Clean(error)) if error.code() == Code::NotFound) && !batch.is_empty() {
                // It was removed while it was open here.
                self.forget(file.first);
                continue;
            }
            let (tail, end, is_written, is_too_late) = match tried? {
                WriteAttempt::Written(tail, end, is_too_late) => (tail, end, true, is_too_late),
                WriteAttempt::GoesOn(next, end) => (next, end, false, false),
                WriteAttempt::Late(at) => {
                    return Err(unlocked.map_or_else(AppendError::Clean, |()| AppendError::Late(at)));
                }
            };
            let unknown = |error: Error| {
                if is_written {
                    AppendError::Unknown(error)
                } else {
                    AppendError::Clean(error)
                }
            };
            unlocked.map_err(unknown)?;
            file.sync(known.synced_of(file.first), end).map_err(unknown)?;
            self.known().learn(file.first, end, tail);
            file.set_mark(end);
            if is_too_late {
                return Err(AppendError::Unknown(too_late(&file.name)));
            }
            if is_written {
                return Ok(tail);
            }
        }
    }

    fn read(&self, from: &mut LogPosition, take: Take<'_>) -> Result<()> {
        from.log = from.log.max(FIRST);
        loop {
            let file = self.file(from.log)?;
            let marked = file.marked()?;
            let length = file.length_from(from.end)?;
            let began = from.end;
            let walked: WalkEnd = file.walk_until(from, length, take)?;
            file.check_tail(walked, from.number, marked)?;
            // Synced after the read: all bytes that existed then are on the disk now.
            if (file.first, walked.end) > self.known().synced {
                file.sync(began, walked.end)?;
            }
            *from = walked.next.unwrap_or(*from);
            self.known().learn(file.first, walked.end, *from);
            if walked.next.is_none() {
                return Ok(());
            }
        }
    }

    fn check(&self, _number: u64) -> Result<()> {
        // The bytes after the last complete record were never a complete record.
        Ok(())
    }

    fn name(&self, at: LogPosition) -> String {
        name_of(at.log.max(FIRST))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use junctura_model::Schema;

    use super::super::first_of;
    use crate::root::{RetentionAges, StoreRoot};
    use crate::storage::{MemoryDisk, StorageDisk};
    use crate::writer::StoreWriter;
    use crate::{Commits, Store};

    use super::*;

    thread_local! {
        /// Seconds by which the clock of this test's stores is ahead of the disk's clock.
        static AHEAD: Cell<u64> = const { Cell::new(0) };
    }

    fn clock() -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(AHEAD.get())
    }

    const AGE: u64 = 100_000;

    fn store() -> (Arc<dyn StorageDisk>, Store) {
        let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::default());
        let age = Duration::from_secs(AGE);
        let ages = RetentionAges {
            snapshot_max: age,
            unflushed_max: age,
        };
        let schemas = [Schema::builtin("free").unwrap()];
        StoreRoot::create(&*disk, &schemas, Commits::Appended, &ages.into()).unwrap();
        let store = Store::open_on(Arc::clone(&disk), clock).unwrap();
        (disk, store)
    }

    fn open(disk: &Arc<dyn StorageDisk>) -> Store {
        Store::open_on(Arc::clone(disk), clock).unwrap()
    }

    fn archive(writer: &mut StoreWriter, number: u64) -> u64 {
        let payload = vec![number as u8; 3000];
        writer.archive([("name", &*number.to_string())], &payload).unwrap();
        writer.flush().unwrap().commit
    }

    fn logs(disk: &Arc<dyn StorageDisk>) -> Vec<u64> {
        let names = disk.list("log").unwrap();
        let mut logs: Vec<u64> = names
            .iter()
            .filter_map(|name| first_of(&format!("log/{name}")))
            .collect();
        logs.sort_unstable();
        logs
    }

    fn shown(store: &Store) -> Vec<(String, u64, Vec<u8>)> {
        let listing = store.snapshot().unwrap().list_all("").unwrap();
        listing
            .iter()
            .map(|object| (object.key(), object.commit(), object.read().unwrap()))
            .collect()
    }

    #[test]
    fn it_goes_on_in_another_file() {
        let (disk, store) = store();
        let (other, mut writers) = (open(&disk), [store.writer().unwrap(), open(&disk).writer().unwrap()]);
        for number in 0..300 {
            assert_eq!(archive(&mut writers[number as usize % 2], number), number + 1);
            if number % 70 == 0 {
                assert_eq!(shown(&other).len() as u64, number + 1);
            }
        }
        assert!(logs(&disk).len() > 5, "{:?}", logs(&disk));
        let expected = shown(&store);
        assert_eq!(expected.len(), 300);
        assert_eq!(shown(&other), expected);
        assert_eq!(shown(&open(&disk)), expected);
        assert_eq!(archive(&mut open(&disk).writer().unwrap(), 300), 301);
    }

    #[test]
    fn old_files_go_and_whoever_comes_back_goes_on() {
        let (disk, store) = store();
        let idle = open(&disk);
        let mut idle_writer = open(&disk).writer().unwrap();
        archive(&mut idle_writer, 0);
        assert_eq!(shown(&idle).len(), 1);
        let mut writer = store.writer().unwrap();
        for number in 1..300 {
            archive(&mut writer, number);
        }
        let seen = store.snapshot().unwrap().list("").unwrap();
        let expected = shown(&store);
        store.checkpoint().unwrap();
        let gathered = store.gather(|_, _| true).unwrap();
        assert!(gathered.objects > 250, "{gathered:?}");
        let before = logs(&disk);
        assert!(store.compact().unwrap().removed.is_empty());
        assert_eq!(logs(&disk), before);
        for object in &seen {
            object.read().unwrap();
        }
        AHEAD.set(AHEAD.get() + 3 * AGE);
        // A new writer begins there.
        archive(&mut store.writer().unwrap(), 300);
        store.compact().unwrap();
        AHEAD.set(AHEAD.get() + 3 * AGE);
        store.compact().unwrap();
        assert_eq!(logs(&disk).first(), before.last());
        assert_eq!(disk.list("log").unwrap().len(), 2 * logs(&disk).len());
        // A repeated creation does not bring the beginning of the log back.
        let schemas = [Schema::builtin("free").unwrap()];
        let made = StoreRoot::create(&*disk, &schemas, Commits::Appended, &RetentionAges::default().into());
        assert_eq!(made.unwrap_err().code(), Code::AlreadyExists);
        assert_eq!(logs(&disk).first(), before.last());
        let mut all = expected;
        all.extend(shown(&store).pop());
        for store in [&store, &idle, &open(&disk)] {
            assert_eq!(shown(store), all);
        }
        let last = store.snapshot().unwrap().commit();
        assert_eq!(archive(&mut idle_writer, 301), last + 1);
        assert_eq!(archive(&mut idle.writer().unwrap(), 302), last + 2);
        assert_eq!(shown(&store).len(), 303);
    }

    #[test]
    fn a_file_that_is_lost_is_told_whoever_reads_or_writes() {
        let (disk, store) = store();
        let mut writer = store.writer().unwrap();
        for number in 0..100 {
            archive(&mut writer, number);
        }
        let second = logs(&disk)[1];
        disk.remove(&name_of(second)).unwrap();
        for store in [open(&disk), open(&disk)] {
            let error = store.snapshot().unwrap_err();
            assert_eq!(
                (error.code(), error.subject()),
                (Code::Corrupt, &*name_of(second)),
                "{error}"
            );
            let mut writer = store.writer().unwrap();
            writer.archive([("name", "late")], b"").unwrap();
            assert_eq!(writer.flush().unwrap_err().code(), Code::Corrupt);
        }
    }

    #[test]
    fn a_file_that_goes_on_in_itself_is_damaged() {
        let (disk, store) = store();
        LogFile::open(&*disk, FIRST).unwrap().close(0, FIRST).unwrap();
        assert_eq!(store.snapshot().unwrap_err().code(), Code::Corrupt);
        let mut writer = store.writer().unwrap();
        writer.archive([("name", "late")], b"").unwrap();
        assert_eq!(writer.flush().unwrap_err().code(), Code::Corrupt);
    }

    #[test]
    fn a_file_that_somebody_made_and_did_not_name_is_not_in_the_way() {
        let (disk, store) = store();
        let mut writer = store.writer().unwrap();
        for first in 2..60 {
            LogFile::create(&*disk, first).unwrap();
        }
        for number in 0..100 {
            assert_eq!(archive(&mut writer, number), number + 1);
        }
        assert_eq!(shown(&open(&disk)).len(), 100);
    }
}
