//! Exclusive commits, for object stores and for file systems without reliable locks: one object for each commit,
//! created by conditional put.
//!
//! ```text
//!   commits/00000000000000000001    commits 1 and 2, which were flushed together
//!   commits/00000000000000000003    commit 3
//! ```
//!
//! An object is named by the number of its first commit, and has all of its bytes as soon as it is visible. A writer
//! tries the number after all commits that it has read; if the number is taken, the writer reads on and tries the next
//! free one. Each lost attempt thus means progress of another writer, and there is no lock that a crash could leave
//! behind. No number is taken before the previous one is known to be durable, so there are no gaps after a power
//! failure.
//!
//! Compaction removes old objects in any order, which frees names that were used before. A removed object has been
//! covered by a checkpoint for twice a retention age of the store, and there is always a newer checkpoint. Therefore a
//! process that found, within the last age, that no object followed a commit can rely on the objects that it finds
//! there now, or take the next number. A process whose information is older looks for the newest checkpoint
//! ([`ExclusiveLog::knows_all_behind`]), and restarts from it if it is later. A process that was suspended just before
//! it took a number detects this afterwards ([`ExclusiveLog::may_be_stray`]).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};

use super::{
    AppendError, EndTrust, LogOrder, LogPosition, PendingRecord, ReadRecord, Take, Written, end_of, is_late, too_late,
};
use crate::catalogue::checkpoint::{self, Checkpoint};
use crate::log::frame::{self, FRAME_BYTES, FrameState};
use crate::storage::{FileDraft, StorageDisk, refused};

/// The folder of the objects.
pub(crate) const FOLDER: &str = "commits";
/// The first record of an object: 16 random bytes, so that all objects differ, and the number of its commits.
const HEAD: u32 = 0;
/// Maximum size of an object: commits that are written together, the last of which may have any length.
const OBJECT_BYTES_MAX: u64 = 512 << 20;
/// Attempts after which a flush fails.
const TRIES_MAX: u32 = 10_000;
/// Lost attempts of one flush after which the end is looked up in a list.
const LOSSES_ONE_BY_ONE: u32 = 2;
/// The longest wait before the next attempt.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// The wait is also limited to the time of so many attempts.
const CROWD_MAX: u32 = 256;
/// Number of objects that are read one by one before a list is used.
const FOUND_ONE_BY_ONE: usize = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct ExclusiveLog {
    disk: Arc<dyn StorageDisk>,
    trust: EndTrust,
    /// The last commit that is known here to be durable.
    tail: Mutex<LogPosition>,
    /// Estimated number of concurrent writers: doubled for each lost number, reduced for each one taken.
    crowd: AtomicU32,
}

/// The result of an attempt to take a number.
enum NumberAttempt {
    /// No object followed it at this time.
    Taken(Duration),
    /// Another writer has taken it.
    Lost,
}

impl ExclusiveLog {
    pub(super) fn new(disk: Arc<dyn StorageDisk>, trust: EndTrust) -> Self {
        Self {
            disk,
            trust,
            tail: Mutex::default(),
            crowd: AtomicU32::new(1),
        }
    }

    fn tail(&self) -> MutexGuard<'_, LogPosition> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, end: LogPosition) {
        let mut tail = self.tail();
        if (end.number, end.as_of) > (tail.number, tail.as_of) {
            *tail = end;
        }
    }

    fn now(&self) -> Duration {
        (self.trust.clock)()
    }

    /// Returns whether objects after a position, which were missing when it was read, cannot have been removed since.
    fn is_fresh(&self, known: LogPosition) -> bool {
        // Unknown if the clock was set back.
        let age = known.as_of.and_then(|as_of| self.now().checked_sub(as_of));
        age.is_some_and(|age| age <= self.trust.age_max)
    }

    /// Returns whether no object after a position was removed before it was looked for. Call this after the lookup,
    /// however long that took.
    ///
    /// # Errors
    /// Errors of system calls.
    fn knows_all_behind(&self, known: LogPosition) -> Result<bool> {
        Ok(self.is_fresh(known) || checkpoint::newest_commit(&*self.disk)? <= known.number)
    }

    /// Takes the first free number.
    fn publish(&self, draft: &FileDraft, batch: &[PendingRecord]) -> Written {
        let end_of_term = end_of(batch);
        let mut tail = *self.tail();
        let mut crowd = self.crowd.load(Ordering::Relaxed);
        for losses in 0..TRIES_MAX {
            tail = self.trusted(tail).map_err(AppendError::Clean)?;
            let now = self.now();
            if is_late(batch, now) {
                return Err(AppendError::Late(now));
            }
            let began = Instant::now();
            match self.attempt(draft, tail, end_of_term)? {
                NumberAttempt::Taken(at) => {
                    let end = behind(tail.number + batch.len() as u64, Some(at));
                    self.learn(end);
                    self.crowd.store((crowd / 2).max(1), Ordering::Relaxed);
                    return Ok(end);
                }
                NumberAttempt::Lost => {
                    crowd = (crowd * 2).min(CROWD_MAX);
                    wait(began.elapsed() * crowd).map_err(AppendError::Clean)?;
                    tail = self.behind(tail, losses).map_err(AppendError::Clean)?;
                }
            }
        }
        let cause = format!("{TRIES_MAX} commits of others were first");
        Err(AppendError::Clean(Error::new(Code::Unavailable, FOLDER, cause)))
    }

    /// Tries to take the number after this one.
    fn attempt(
        &self,
        draft: &FileDraft,
        tail: LogPosition,
        end_of_term: Option<Duration>,
    ) -> std::result::Result<NumberAttempt, AppendError> {
        let name = name_of(tail.number + 1);
        let at = self.now();
        match self.disk.publish(draft, &name) {
            Ok(()) => {
                let was_in_time = self.is_fresh(tail);
                let is_too_late = end_of_term.is_some_and(|end| self.now() > end);
                let synced = self.disk.sync_names(FOLDER);
                synced.map_err(|error| AppendError::Unknown(refused(FOLDER, "cannot be synced", &error)))?;
                if !was_in_time && self.may_be_stray(tail.number + 1).map_err(AppendError::Unknown)? {
                    let cause = "it took so long that the number may have been used before: then no reader sees it";
                    return Err(AppendError::Unknown(Error::new(Code::Unavailable, name, cause)));
                }
                if is_too_late {
                    return Err(AppendError::Unknown(too_late(&name)));
                }
                Ok(NumberAttempt::Taken(at))
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(NumberAttempt::Lost),
            // A compaction treats such an old draft as that of a crashed writer.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let cause = "it took so long that others have removed its draft";
                Err(AppendError::Clean(Error::new(Code::Expired, name, cause)))
            }
            // The request timed out with unknown outcome.
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                Err(AppendError::Unknown(refused(name, "cannot be written", &error)))
            }
            Err(error) => Err(AppendError::Clean(refused(name, "cannot be written", &error))),
        }
    }

    /// Returns whether a number that was just taken may have been used before, by an object that has been removed
    /// since. It need not be: others may have read the new object, and covered it by a checkpoint, before its writer
    /// checks this.
    fn may_be_stray(&self, number: u64) -> Result<bool> {
        let before = self.now().saturating_sub(self.trust.age_max);
        let mut names = checkpoint::names(&*self.disk)?;
        names.retain(|name| checkpoint::commit_of(name) >= number);
        for name in names {
            match Checkpoint::read(&*self.disk, &name) {
                Ok(checkpoint) if !checkpoint.is_before(before) => {}
                Ok(_) => return Ok(true),
                // It is removed when the next one is old, too.
                Err(error) if error.code() == Code::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Returns a position after which a number may be taken now: this one, or the end.
    fn trusted(&self, tail: LogPosition) -> Result<LogPosition> {
        match tail.as_of {
            _ if self.is_fresh(tail) => Ok(tail),
            Some(_) => self.behind(tail, LOSSES_ONE_BY_ONE),
            None => self.end(),
        }
    }

    /// Returns the position after the last commit.
    fn end(&self) -> Result<LogPosition> {
        loop {
            let newest = checkpoint::newest_commit(&*self.disk)?;
            if let Some(end) = self.listed_end(behind(newest, None))? {
                return Ok(end);
            }
        }
    }

    /// Returns the position after the last commit that follows this one.
    fn behind(&self, tail: LogPosition, losses: u32) -> Result<LogPosition> {
        let found = if losses >= LOSSES_ONE_BY_ONE {
            self.listed_end(tail)?
        } else {
            let mut end = tail;
            self.read_on(tail, &mut end, &mut |_| Ok(()))?.then_some(end)
        };
        match found {
            Some(end) => Ok(end),
            None => self.end(),
        }
    }

    /// Returns the position after the last commit that follows this one; `None` if some may have been removed. Reads
    /// only the last listed object: all objects before it existed when its number was taken.
    fn listed_end(&self, tail: LogPosition) -> Result<Option<LogPosition>> {
        let listed = self.disk.list_after(FOLDER, leaf(&name_of(tail.number)));
        let listed = listed.map_err(|error| refused(FOLDER, "cannot be listed", &error))?;
        let last = listed.iter().filter_map(|name| number_of(name)).max();
        let mut end = last.map_or(tail, |last| behind(last - 1, None));
        Ok(self.read_on(tail, &mut end, &mut |_| Ok(()))?.then_some(end))
    }

    /// Reads the records after a position; false if some records after `known` may have been removed: those that were
    /// read are then not reliable.
    fn read_on(&self, known: LogPosition, from: &mut LogPosition, take: Take<'_>) -> Result<bool> {
        let began = from.number;
        let walked = self.walk(from, take);
        if !self.knows_all_behind(known)? {
            return Ok(false);
        }
        from.as_of = Some(walked?);
        if from.number > began.max(self.tail().number) {
            // Makes the objects that existed by then durable.
            let synced = self.disk.sync_names(FOLDER);
            synced.map_err(|error| refused(FOLDER, "cannot be synced", &error))?;
        }
        self.learn(*from);
        Ok(true)
    }

    /// Passes the next records. Returns the time of its last lookup.
    fn walk(&self, from: &mut LogPosition, take: Take<'_>) -> Result<Duration> {
        let mut ahead = BTreeMap::new();
        let mut found = 0;
        let mut asks_ahead = true;
        loop {
            if found >= FOUND_ONE_BY_ONE && asks_ahead && ahead.is_empty() {
                ahead = self.ahead(from.number)?;
                asks_ahead = !ahead.is_empty();
            }
            let at = self.now();
            let name = name_of(from.number + 1);
            let bytes = match ahead.remove(&name) {
                Some(bytes) => bytes,
                None => match self.object(&name)? {
                    Some(bytes) => bytes,
                    None if ahead.is_empty() => return Ok(at),
                    None => return Err(gap(name)),
                },
            };
            take_all(&name.into(), &bytes, from, take)?;
            found += 1;
        }
    }

    /// Returns the object with this name, if there is one.
    fn object(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match self.disk.read(name, OBJECT_BYTES_MAX) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => match refused(name, "cannot be read", &error) {
                error if error.code() == Code::NotFound => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Returns objects after a number, if reading many at once is faster.
    fn ahead(&self, number: u64) -> Result<BTreeMap<String, Vec<u8>>> {
        let found = self.disk.ahead(FOLDER, leaf(&name_of(number)), OBJECT_BYTES_MAX);
        let found = found.map_err(|error| refused(FOLDER, "cannot be read", &error))?;
        Ok(found.into_iter().collect())
    }
}

impl LogOrder for ExclusiveLog {
    fn write(&self, batch: &mut Vec<PendingRecord>) -> Written {
        let draft = object_of(batch).map_err(AppendError::Clean)?;
        let staged = self.disk.stage(&draft);
        let written = match staged {
            Ok(()) => self.publish(&draft, batch),
            Err(error) => Err(AppendError::Clean(refused(&*draft.beside, "cannot be written", &error))),
        };
        if written.is_err() {
            self.disk.discard(&draft);
        }
        written
    }

    fn read(&self, from: &mut LogPosition, take: Take<'_>) -> Result<()> {
        let known = *from;
        if self.read_on(known, from, take)? {
            return Ok(());
        }
        let cause = "it may have been removed since, and a newer checkpoint has it";
        Err(Error::new(Code::NotFound, name_of(known.number + 1), cause))
    }

    fn check(&self, number: u64) -> Result<()> {
        let next = name_of(number + 1);
        let listed = self.disk.list_after(FOLDER, leaf(&name_of(number)));
        let listed = listed.map_err(|error| refused(FOLDER, "cannot be listed", &error))?;
        let has_later = listed.iter().any(|name| number_of(name).is_some());
        // Objects that a checkpoint covers may have been removed.
        if has_later && self.object(&next)?.is_none() && checkpoint::newest_commit(&*self.disk)? <= number {
            return Err(gap(next));
        }
        Ok(())
    }

    fn name(&self, _: LogPosition) -> String {
        FOLDER.to_owned()
    }
}

fn behind(number: u64, as_of: Option<Duration>) -> LogPosition {
    LogPosition {
        number,
        as_of,
        ..LogPosition::default()
    }
}

fn gap(name: String) -> Error {
    Error::new(Code::Corrupt, name, "it is missing, and later ones exist")
}

fn name_of(number: u64) -> String {
    format!("{FOLDER}/{number:020}")
}

fn leaf(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, leaf)| leaf)
}

/// Returns the number in an object's name.
fn number_of(leaf: &str) -> Option<u64> {
    let is_one = leaf.len() == 20 && leaf.bytes().all(|byte| byte.is_ascii_digit());
    let number = leaf.parse().ok().filter(|_| is_one);
    number.filter(|&number| (1..=u64::MAX / 2).contains(&number))
}

/// Returns the number of its first commit, if a file of the store is such an object.
pub(crate) fn object_number(path: &str) -> Option<u64> {
    number_of(path.strip_prefix(FOLDER)?.strip_prefix('/')?)
}

/// Builds one object of some commits, which are left unchanged.
fn object_of(batch: &mut [PendingRecord]) -> Result<FileDraft> {
    let id = crate::random()?;
    let mut bytes = Vec::new();
    frame::open(&mut bytes);
    bytes.extend_from_slice(&id);
    bytes.extend_from_slice(&(batch.len() as u32).to_le_bytes());
    frame::close(&mut bytes, 0, HEAD, 0)?;
    for record in batch {
        frame::close(&mut record.bytes, 0, record.kind, bytes.len() as u64)?;
        bytes.extend_from_slice(&record.bytes);
    }
    let beside = format!("{FOLDER}/.{}", crate::hex(&id));
    Ok(FileDraft { beside, bytes })
}

/// Passes all commits of an object. An object is complete when it is visible, so an incomplete one is damaged.
fn take_all(name: &Arc<str>, bytes: &[u8], from: &mut LogPosition, take: Take<'_>) -> Result<()> {
    let damaged = || Error::new(Code::Corrupt, &**name, "its checksum does not match");
    let record_at = |at: usize| match frame::read(&bytes[at..], at as u64) {
        FrameState::Whole(record) => Ok((record.kind, record.payload)),
        _ => Err(damaged()),
    };
    let (HEAD, head) = record_at(0)? else {
        return Err(damaged());
    };
    let count = head
        .get(16..)
        .and_then(|count| count.first_chunk())
        .map(|count| u32::from_le_bytes(*count));
    let mut at = FRAME_BYTES + head.len();
    for _ in 0..count.filter(|&count| count > 0).ok_or_else(damaged)? {
        let (kind, payload) = record_at(at)?;
        take(&ReadRecord {
            number: from.number + 1,
            kind,
            payload,
            file: name,
            at: (at + FRAME_BYTES) as u64,
        })?;
        from.number += 1;
        at += FRAME_BYTES + payload.len();
    }
    if at == bytes.len() { Ok(()) } else { Err(damaged()) }
}

/// Waits for a random part of a time after a lost attempt, to let other writers succeed; meanwhile flushes are batched
/// here.
fn wait(longest: Duration) -> Result<()> {
    let share = f64::from(crate::random()?[0]) / 255.0;
    let until = Instant::now() + longest.min(WAIT_MAX).mul_f64(share);
    // The wait may end too early.
    while let Some(left) = until
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
    {
        thread::park_timeout(left);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &[u8]) -> PendingRecord {
        let mut bytes = Vec::new();
        frame::open(&mut bytes);
        bytes.extend_from_slice(text);
        PendingRecord {
            kind: 1,
            bytes,
            term: None,
        }
    }

    fn said(bytes: &[u8]) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut all = Vec::new();
        let mut from = behind(6, None);
        take_all(&"commits/7".into(), bytes, &mut from, &mut |said| {
            let at = said.at as usize;
            assert_eq!(&bytes[at..at + said.payload.len()], said.payload);
            all.push((said.number, said.payload.to_vec()));
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn an_object_reads_back_whole_or_is_damaged() {
        let draft = object_of(&mut [record(b"one"), record(b""), record(b"three")]).unwrap();
        let expected = [(7, b"one".to_vec()), (8, Vec::new()), (9, b"three".to_vec())];
        assert_eq!(said(&draft.bytes).unwrap(), expected);
        assert!((0..draft.bytes.len()).all(|end| said(&draft.bytes[..end]).is_err()));
        assert!(said(&[&draft.bytes[..], &[0]].concat()).is_err());
        for bit in 0..8 * draft.bytes.len() {
            let mut flipped = draft.bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(said(&flipped).is_err(), "{bit}");
        }
        let none = object_of(&mut []).unwrap();
        assert!(said(&none.bytes).is_err() && said(b"").is_err());
    }

    #[test]
    fn names_are_numbers_of_twenty_digits() {
        assert_eq!(number_of(leaf(&name_of(42))), Some(42));
        for other in [
            "",
            "1",
            ".0000000000000000001",
            "0000000000000000000x",
            "00000000000000000000",
        ] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }
}
