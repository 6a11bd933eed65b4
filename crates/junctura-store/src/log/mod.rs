//! The commits of a store, in one order that is everybody's, however the place where they lie makes it.
//!
//! ```text
//!   flush ─┐
//!   flush ─┼─► Log: those of one process that meet go together ─► Order ─┬─ appended.rs   one file, a kernel's lock
//!   flush ─┘                                                            └─ exclusive.rs  one object each, created only once
//! ```
//! Whatever the order: a number is given once; who reads gets all numbers up to some one, without a gap; what somebody has read
//! is not lost any more.

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

/// So many bytes are written together; one record may be longer.
const TOGETHER_BYTES_MAX: usize = 64 << 20;

/// How commits get their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commits {
    /// One file that all writers append to under a kernel's lock: the quickest where locks can be trusted, on one machine.
    #[default]
    Appended,
    /// An object for each, created only if its name is free: for file systems that several machines share, and for object stores.
    Exclusive,
}

impl Commits {
    /// The folder of their files.
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

/// A place between two records, and the number of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// The number of the first commit of the file that they are appended to; 0 where they are not.
    pub(crate) log: u64,
    /// Byte of that file.
    pub(crate) end: u64,
    pub(crate) number: u64,
    /// When nothing behind it was there, where old commits go one by one; none where that is not known.
    pub(crate) as_of: Option<Duration>,
}

/// What is known of the end of the commits may be so old, by this clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndTrust {
    pub(crate) clock: fn() -> Duration,
    pub(crate) age_max: Duration,
}

/// How long a record may wait until it is written: what it names is kept for some time only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTerm {
    /// When the first of it was taken.
    pub(crate) since: Duration,
    /// It is not written when that is longer ago.
    pub(crate) age_max: Duration,
    /// Whether it names files of which whoever compacts believes, when it is twice as long ago, that nobody will.
    pub(crate) names_files: bool,
}

impl WriteTerm {
    /// # Errors
    /// `Expired` when it is over.
    pub(crate) fn check(self, now: Duration) -> Result<()> {
        let (age, age_max) = (now.saturating_sub(self.since), self.age_max);
        if age <= age_max {
            return Ok(());
        }
        let cause = format!("it was archived {age:?} ago, and the store keeps what is not flushed for {age_max:?}");
        Err(Error::new(Code::Expired, "commit", cause))
    }

    /// Later than this a file that it names may have been removed, if it is not written yet.
    fn end(self) -> Option<Duration> {
        let end = self.since.saturating_add(self.age_max.saturating_mul(2));
        self.names_files.then_some(end)
    }
}

/// A record as a reader is given it.
#[derive(Debug)]
pub(crate) struct ReadRecord<'a> {
    pub(crate) number: u64,
    pub(crate) kind: u32,
    pub(crate) payload: &'a [u8],
    /// The file that it is in, by its name in the store.
    pub(crate) file: &'a Arc<str>,
    /// Byte of the file where the payload begins.
    pub(crate) at: u64,
}

/// A record that is to be written, with room for its header in front.
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

/// Whether one of them may not be written any more. To be asked when nothing is left to be waited for.
fn is_late(batch: &[PendingRecord], now: Duration) -> bool {
    batch.iter().any(|record| record.check(now).is_err())
}

/// Until when they have to be written, if that matters. To be compared afterwards, since anybody may be stopped anywhere.
fn end_of(batch: &[PendingRecord]) -> Option<Duration> {
    batch.iter().filter_map(|record| record.term?.end()).min()
}

/// What is told of records that were written, when [`end_of`] them was over by then.
fn too_late(subject: &str) -> Error {
    let cause = "it took so long that others may have removed what it names before it was there";
    Error::new(Code::Unavailable, subject, cause)
}

/// Behind what was written, or why nothing was.
type Written = std::result::Result<LogPosition, AppendError>;

/// Why an append failed, and whether it is known to have left nothing.
#[derive(Debug)]
enum AppendError {
    Clean(Error),
    Unknown(Error),
    /// At this time one of the records was too old. All of them are as they were.
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

/// How records get their numbers, and last.
trait LogOrder: Debug + Send + Sync {
    /// Writes records behind all that others have written, one behind the other; they last when it returns.
    fn write(&self, batch: &mut Vec<PendingRecord>) -> Written;
    /// Hands over all records behind a position, and moves it behind them; they last when it returns, and are not to be believed
    /// before. `NotFound` when some are gone that a newer checkpoint has.
    fn read(&self, from: &mut LogPosition, take: Take<'_>) -> Result<()>;
    /// Whether what stands behind a commit that a reader has come to can be reached from there.
    fn check(&self, number: u64) -> Result<()>;
    /// Where the records behind a position lie, as a checkpoint names it.
    fn name(&self, at: LogPosition) -> String;
}

#[derive(Debug, Default)]
struct LogState {
    waiting: Vec<(u64, PendingRecord)>,
    answers: Vec<(u64, Result<u64>)>,
    is_writing: bool,
    tickets: u64,
    /// It is not known any more what was written, or nothing may be.
    broken: Option<Error>,
}

impl CommitLog {
    /// Makes an empty one, if there is none.
    ///
    /// # Errors
    /// What the system refuses.
    pub(crate) fn create(disk: &dyn StorageDisk, commits: Commits) -> Result<()> {
        match commits {
            Commits::Appended => AppendedLog::create(disk),
            // It begins with its first object.
            Commits::Exclusive => Ok(()),
        }
    }

    /// `refused`: why nothing may be appended, if that is so.
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

    /// Where what stands behind a position lies, as a checkpoint names it.
    pub(crate) fn name(&self, at: LogPosition) -> String {
        self.order.name(at)
    }

    /// Whether it is not known any more what was written.
    pub(crate) fn is_broken(&self) -> bool {
        self.state().broken.is_some()
    }

    /// A record's beginning: what is said goes behind it.
    pub(crate) fn begin() -> Vec<u8> {
        let mut record = Vec::new();
        frame::open(&mut record);
        record
    }

    /// Appends a record, and waits until it lasts. Says its number.
    ///
    /// # Errors
    /// `TooLarge`; `Expired` when its term was over before it was its turn; what the system refuses. After some it is not known whether the record is there, and the log takes no more
    /// until the store is opened again.
    pub(crate) fn append(&self, kind: u32, bytes: Vec<u8>, term: Option<WriteTerm>) -> Result<u64> {
        // By itself, so that it fails none of those that are written with it.
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

    /// Hands over all records behind a position, and moves it behind them. When it returns, all of them last; before, and
    /// when it fails, they are not to be believed.
    ///
    /// # Errors
    /// `NotFound` when some are gone, which a newer checkpoint has; `Corrupt` when something else is gone that was there; what the
    /// system refuses; what `take` says.
    pub(crate) fn read(
        &self,
        from: &mut LogPosition,
        take: &mut dyn FnMut(&ReadRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        self.order.read(from, take)
    }

    /// Looks whether commits behind one are cut off from it by one that is gone.
    ///
    /// # Errors
    /// `Corrupt` that names the one; what the system refuses.
    pub(crate) fn check(&self, number: u64) -> Result<()> {
        self.order.check(number)
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogState {
    /// What is written together next.
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

    /// What was written together ends here.
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

    /// Of what was to be written together some was too old at this time. The rest comes next.
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
