//! The commit log of a store: one total order of commits for all processes, independent of the storage.
//!
//! ```text
//!   flush ─┐
//!   flush ─┼─► Log: those of one process that meet go together ─► Order ─┬─ appended.rs   one file, a kernel's lock
//!   flush ─┘                                                            └─ exclusive.rs  one object each, created only once
//! ```
//!
//! Each implementation guarantees: a number is assigned once; a reader gets all numbers up to some number, without a
//! gap; a commit that was read is durable.

mod appended;
pub(crate) mod commit;
mod exclusive;
pub(crate) mod frame;
pub(crate) mod leb128;
mod log_file;
pub(crate) mod relocation;
pub(crate) mod removal;

use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use junctura_model::{Code, Error, Result};

use crate::storage::StorageDisk;

use appended::AppendedLog;
use exclusive::ExclusiveLog;
pub(crate) use exclusive::{FOLDER as COMMITS_FOLDER, object_number};
pub(crate) use log_file::{FOLDER as LOG_FOLDER, first_of};

/// Maximum number of bytes that are written together; a single record may be longer.
const TOGETHER_BYTES_MAX: usize = 64 << 20;

/// How commits are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commits {
    /// One file to which all writers append under a kernel lock: fastest where locks are reliable, on one machine.
    #[default]
    Appended,
    /// One object for each commit, created only if its name is free: for file systems that several machines share, and
    /// for object stores.
    Exclusive,
}

impl Commits {
    /// Returns the folder of their files.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Appended => LOG_FOLDER,
            Self::Exclusive => COMMITS_FOLDER,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct CommitLog {
    order: Box<dyn LogOrder>,
    state: Mutex<LogState>,
    done: Condvar,
}

/// A position between two records, and the number of the record before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// The number of the first commit of the file to which commits are appended; 0 for exclusive commits.
    pub(crate) log: u64,
    /// The offset in that file, in bytes.
    pub(crate) end: u64,
    pub(crate) number: u64,
    /// The time at which no commit followed it, if old commits are removed one by one; `None` if unknown.
    pub(crate) as_of: Option<Duration>,
}

/// The maximum age, by this clock, of information about the end of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndTrust {
    pub(crate) clock: fn() -> Duration,
    pub(crate) age_max: Duration,
}

/// How long a record may wait to be written: its files are kept for a limited time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTerm {
    /// The time of its first object.
    pub(crate) since: Duration,
    /// It is not written at a greater age.
    pub(crate) age_max: Duration,
    /// Whether it names files that a compaction regards as abandoned at twice that age.
    pub(crate) names_files: bool,
}

impl WriteTerm {
    /// # Errors
    /// `Expired` if the record is too old.
    pub(crate) fn check(self, now: Duration) -> Result<()> {
        let (age, age_max) = (now.saturating_sub(self.since), self.age_max);
        if age <= age_max {
            return Ok(());
        }
        let cause = format!("it was archived {age:?} ago, and the store keeps what is not flushed for {age_max:?}");
        Err(Error::new(Code::Expired, "commit", cause))
    }

    /// Returns the time after which a file that it names may be removed if it is not written yet.
    fn end(self) -> Option<Duration> {
        let end = self.since.saturating_add(self.age_max.saturating_mul(2));
        self.names_files.then_some(end)
    }
}

/// A record as passed to a reader.
#[derive(Debug)]
pub(crate) struct ReadRecord<'a> {
    pub(crate) number: u64,
    pub(crate) kind: u32,
    pub(crate) payload: &'a [u8],
    /// The file that contains it, by its name in the store.
    pub(crate) file: &'a Arc<str>,
    /// The offset of the payload in the file, in bytes.
    pub(crate) at: u64,
}

/// A record to be written, with space for its header.
#[derive(Debug)]
struct PendingRecord {
    kind: u32,
    bytes: Vec<u8>,
    term: Option<WriteTerm>,
}

impl PendingRecord {
    fn check(&self, now: Duration) -> Result<()> {
        self.term.map_or(Ok(()), |term| term.check(now))
    }
}

/// Returns whether one of the records is too old to be written. Call this after all waits.
fn is_late(batch: &[PendingRecord], now: Duration) -> bool {
    batch.iter().any(|record| record.check(now).is_err())
}

/// Returns the time until which they must be written, if any. Compare after the write, because a process may be
/// suspended at any point.
fn end_of(batch: &[PendingRecord]) -> Option<Duration> {
    batch.iter().filter_map(|record| record.term?.end()).min()
}

/// Returns the error for records that were written after [`end_of`] them.
fn too_late(subject: &str) -> Error {
    let cause = "it took so long that others may have removed what it names before it was there";
    Error::new(Code::Unavailable, subject, cause)
}

/// The position after the records, or the error.
type Written = std::result::Result<LogPosition, AppendError>;

/// The error of an append, and whether it is known to have written nothing.
#[derive(Debug)]
enum AppendError {
    Clean(Error),
    Unknown(Error),
    /// At this time one of the records was too old. None was written.
    Late(Duration),
}

impl AppendError {
    fn into_error(self) -> Error {
        match self {
            Self::Clean(error) | Self::Unknown(error) => error,
            Self::Late(_) => Error::new(Code::Expired, "commit", "it is too late"),
        }
    }
}

impl From<Error> for AppendError {
    fn from(error: Error) -> Self {
        Self::Clean(error)
    }
}

type Take<'t> = &'t mut dyn FnMut(&ReadRecord<'_>) -> Result<()>;

/// Assigns numbers to records, and makes them durable.
trait LogOrder: Debug + Send + Sync {
    /// Writes consecutive records after all existing ones; they are durable when it returns.
    fn write(&self, batch: &mut Vec<PendingRecord>) -> Written;
    /// Passes all records after a position, and advances the position; the records are durable, and reliable, only when
    /// it returns. `NotFound` if some were removed that a newer checkpoint has.
    fn read(&self, from: &mut LogPosition, take: Take<'_>) -> Result<()>;
    /// Checks that the records after a commit that a reader has reached are accessible from there.
    fn check(&self, number: u64) -> Result<()>;
    /// Returns the location of the records after a position, as a checkpoint names it.
    fn name(&self, at: LogPosition) -> String;
}

#[derive(Debug, Default)]
struct LogState {
    waiting: Vec<(u64, PendingRecord)>,
    answers: Vec<(u64, Result<u64>)>,
    is_writing: bool,
    tickets: u64,
    /// The error, if it is unknown which records were written, or if none may be.
    broken: Option<Error>,
}

impl CommitLog {
    /// Creates an empty log, if there is none.
    ///
    /// # Errors
    /// Errors of system calls.
    pub(crate) fn create(disk: &dyn StorageDisk, commits: Commits) -> Result<()> {
        match commits {
            Commits::Appended => AppendedLog::create(disk),
            // Its first object creates it.
            Commits::Exclusive => Ok(()),
        }
    }

    /// `refused`: the error for appends, if these are not allowed.
    pub(crate) fn open(disk: &Arc<dyn StorageDisk>, commits: Commits, trust: EndTrust, refused: Option<Error>) -> Self {
        let order: Box<dyn LogOrder> = match commits {
            Commits::Appended => Box::new(AppendedLog::new(Arc::clone(disk), trust.clock)),
            Commits::Exclusive => Box::new(ExclusiveLog::new(Arc::clone(disk), trust)),
        };
        let state = LogState {
            broken: refused,
            ..LogState::default()
        };
        Self {
            order,
            state: Mutex::new(state),
            done: Condvar::new(),
        }
    }

    /// Returns the location of the records after a position, as a checkpoint names it.
    pub(crate) fn name(&self, at: LogPosition) -> String {
        self.order.name(at)
    }

    /// Returns whether it is unknown which records were written.
    pub(crate) fn is_broken(&self) -> bool {
        self.state().broken.is_some()
    }

    /// Returns the beginning of a record, to which its content is appended.
    pub(crate) fn begin() -> Vec<u8> {
        let mut record = Vec::new();
        frame::open(&mut record);
        record
    }

    /// Appends a record, and blocks until it is durable. Returns its number.
    ///
    /// # Errors
    /// `TooLarge`; `Expired` if it was too old when it could be written; errors of system calls. After some errors the
    /// outcome is unknown, and the log rejects appends until the store is opened again.
    pub(crate) fn append(&self, kind: u32, bytes: Vec<u8>, term: Option<WriteTerm>) -> Result<u64> {
        // Checked separately, so that it does not fail other records of its batch.
        frame::check_length(&bytes)?;
        let mut state = self.state();
        let ticket = state.tickets;
        state.tickets += 1;
        state.waiting.push((ticket, PendingRecord { kind, bytes, term }));
        loop {
            if let Some(at) = state.answers.iter().position(|(answered, _)| *answered == ticket) {
                return state.answers.swap_remove(at).1;
            }
            if state.is_writing {
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_writing = true;
            let (tickets, mut batch) = state.next_batch();
            let broken = state.broken.clone();
            drop(state);
            let written = match broken {
                Some(error) => Err(AppendError::Unknown(error)),
                None => self.order.write(&mut batch),
            };
            state = self.state();
            state.is_writing = false;
            match written {
                Ok(tail) => state.written(&tickets, tail),
                Err(AppendError::Late(at)) => state.leave_out(tickets, batch, at),
                Err(AppendError::Clean(error)) => state.fail(&tickets, &error),
                Err(AppendError::Unknown(error)) => {
                    state.broken = Some(error.clone());
                    state.fail(&tickets, &error);
                }
            }
            self.done.notify_all();
        }
    }

    /// Passes all records after a position, and advances the position. The records are durable when it returns; before
    /// that, and after an error, they are not reliable.
    ///
    /// # Errors
    /// `NotFound` if some were removed that a newer checkpoint has; `Corrupt` if other records are missing; errors of
    /// system calls; errors of `take`.
    pub(crate) fn read(
        &self,
        from: &mut LogPosition,
        take: &mut dyn FnMut(&ReadRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        self.order.read(from, take)
    }

    /// Checks that no missing commit separates later commits from this one.
    ///
    /// # Errors
    /// `Corrupt`, with the missing commit; errors of system calls.
    pub(crate) fn check(&self, number: u64) -> Result<()> {
        self.order.check(number)
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogState {
    /// Returns the next batch.
    fn next_batch(&mut self) -> (Vec<u64>, Vec<PendingRecord>) {
        let mut bytes = 0;
        let mut count = 0;
        for (_, record) in &self.waiting {
            bytes += record.bytes.len();
            if count > 0 && bytes > TOGETHER_BYTES_MAX {
                break;
            }
            count += 1;
        }
        self.waiting.drain(..count).unzip()
    }

    /// Records that a batch was written up to this position.
    fn written(&mut self, tickets: &[u64], tail: LogPosition) {
        let first = tail.number + 1 - tickets.len() as u64;
        let numbered = tickets.iter().zip(first..);
        self.answers
            .extend(numbered.map(|(&ticket, number)| (ticket, Ok(number))));
    }

    fn fail(&mut self, tickets: &[u64], error: &Error) {
        self.answers
            .extend(tickets.iter().map(|&ticket| (ticket, Err(error.clone()))));
    }

    /// Removes the records of a batch that were too old at this time. The rest is in the next batch.
    fn leave_out(&mut self, tickets: Vec<u64>, batch: Vec<PendingRecord>, at: Duration) {
        let mut rest = Vec::new();
        for (ticket, record) in tickets.into_iter().zip(batch) {
            match record.check(at) {
                Ok(()) => rest.push((ticket, record)),
                Err(error) => self.answers.push((ticket, Err(error))),
            }
        }
        self.waiting.splice(..0, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_too_old_is_told_and_the_others_come_next() {
        let record = |since| PendingRecord {
            kind: 1,
            bytes: Vec::new(),
            term: Some(WriteTerm {
                since: Duration::from_secs(since),
                age_max: Duration::from_secs(10),
                names_files: true,
            }),
        };
        let mut state = LogState::default();
        state.waiting.push((4, record(9)));
        let at = Duration::from_secs(19);
        let batch = vec![record(9), record(8), record(19)];
        assert!(is_late(&batch, at));
        assert_eq!(end_of(&batch), Some(Duration::from_secs(28)));
        state.leave_out(vec![1, 2, 3], batch, at);
        let codes: Vec<_> = state
            .answers
            .iter()
            .map(|(ticket, answer)| (*ticket, answer.as_ref().unwrap_err().code()))
            .collect();
        assert_eq!(codes, [(2, Code::Expired)]);
        assert_eq!(state.next_batch().0, [1, 3, 4]);
    }
}
