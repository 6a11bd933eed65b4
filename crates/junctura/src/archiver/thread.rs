//! An archiver in a thread of its own.
//!
//! ```text
//!  begin --> archives --begin_stop--> archives what is there --> over, with what went wrong
//!               '--- the pool ends, or something fails ------------^
//! ```

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};

use super::{Archiver, ArchiverCounts, ArchiverEvent};
use crate::awaiting::{Awaited, WaitKind, WaitSource};
use crate::pool::Pool;

/// State that the archiver's thread shares with its observers.
#[derive(Debug, Default)]
pub(super) struct ArchiverProgress {
    counts: Mutex<ArchiverCounts>,
    is_to_stop: Arc<AtomicBool>,
    outcome: Mutex<Option<Result<()>>>,
    is_over: Condvar,
}

impl ArchiverProgress {
    pub(super) fn counts(&self) -> ArchiverCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut ArchiverCounts)) {
        count(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn is_to_stop(&self) -> bool {
        self.is_to_stop.load(Ordering::Acquire)
    }

    fn outcome(&self) -> MutexGuard<'_, Option<Result<()>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, outcome: Result<()>) {
        self.outcome().get_or_insert(outcome);
        self.is_over.notify_all();
    }
}

impl Awaited for ArchiverProgress {
    /// Waits for the request to stop.
    fn awaiting(&self) -> WaitSource {
        WaitSource(WaitKind::Raised(Arc::clone(&self.is_to_stop)))
    }
}

/// An archiver that runs in a thread: see [`Archiver::start`]. After a drop, it stops by itself when the outstanding
/// objects are archived.
///
/// Thread-safe. In a forked child it has no effect: the thread belongs to the parent.
///
/// ```
/// # use junctura::{Archiver, ArchiverOptions, Code, Pool};
/// # use std::time::Duration;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("archive").display().to_string();
/// # let store = junctura_store::Store::create_url(&path, &pool.schemas()?, &Default::default())?;
/// let archiver = Archiver::start(&pool, &store, "", &ArchiverOptions::default())?;
/// pool.offer([("name", "a")], b"payload")?;
/// assert_eq!(archiver.wait(Some(Duration::ZERO)).unwrap_err().code(), Code::Timeout); // it continues
/// println!("{} so far", archiver.counts().archived);
///
/// archiver.begin_stop();
/// assert_eq!(archiver.wait(None)?.archived, 1);
/// assert!(archiver.is_over());
/// assert_eq!(archiver.stop()?.archived, 1); // returns the same result
/// # Ok(())
/// # }
/// ```
pub struct ArchiverThread {
    progress: Arc<ArchiverProgress>,
    pool: Pool,
    process: u32,
}

impl ArchiverThread {
    pub(super) fn begin(mut archiver: Archiver, pool: Pool) -> Result<Self> {
        let progress = Arc::clone(&archiver.progress);
        let ends = EndGuard(Arc::clone(&progress));
        let work = move || {
            let outcome = archiver.run(&mut tell);
            // Dropped before the end is reported, so that an observer of the end finds all its resources released.
            drop(archiver);
            ends.0.end(outcome);
        };
        let thread = std::thread::Builder::new().name("archiver".to_owned()).spawn(work);
        thread.map_err(|error| Error::new(Code::Io, "archiver", format!("no thread: {error}")))?;
        Ok(Self {
            progress,
            pool,
            process: std::process::id(),
        })
    }

    /// Returns its current counters.
    #[must_use]
    pub fn counts(&self) -> ArchiverCounts {
        self.progress.counts()
    }

    /// Returns whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_inherited() || self.progress.outcome().is_some()
    }

    /// Stops it when all objects that the pool has for it now are archived. Sends one request to the server, and does
    /// not wait for the disk.
    pub fn begin_stop(&self) {
        if self.is_over() || self.progress.is_to_stop.swap(true, Ordering::AcqRel) {
            return;
        }
        // The answer wakes the thread. Without a server it has ended.
        let _ = self.pool.sync(None);
    }

    /// Blocks until it has ended, by [`ArchiverThread::begin_stop`] or otherwise; `None`: without limit.
    ///
    /// # Errors
    /// `Timeout`: it continues. The error that ended it, as [`Archiver::run`] returns it: the same for every caller.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<ArchiverCounts> {
        if self.is_inherited() {
            let cause = "it is that of the parent process";
            return Err(Error::new(Code::Closed, "archiver", cause));
        }
        let until = timeout.and_then(|time| Instant::now().checked_add(time));
        let mut outcome = self.progress.outcome();
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone().map(|()| self.counts());
            }
            let bell = &self.progress.is_over;
            outcome = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => bell.wait(outcome).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Err(Error::new(Code::Timeout, "archiver", "it is still running")),
                Some(time) => {
                    bell.wait_timeout(outcome, time)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }

    /// Stops it when all objects that the pool has for it now are archived; returns its counters. Blocks. Later objects
    /// are left to the next archiver, unless the requirement is retracted ([`Pool::retract`]). A failing disk is not
    /// retried.
    ///
    /// # Errors
    /// As [`Archiver::run`].
    pub fn stop(&self) -> Result<ArchiverCounts> {
        self.begin_stop();
        self.wait(None)
    }

    fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }
}

impl Drop for ArchiverThread {
    fn drop(&mut self) {
        self.begin_stop();
    }
}

impl fmt::Debug for ArchiverThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArchiverThread({}, {:?})", self.pool.url(), self.counts())
    }
}

/// Reports the end also if the thread has panicked.
struct EndGuard(Arc<ArchiverProgress>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0
            .end(Err(Error::new(Code::Closed, "archiver", "its thread panicked")));
    }
}

#[allow(clippy::unnecessary_wraps, reason = "a callback returns a result")]
fn tell(event: &ArchiverEvent<'_>) -> Result<()> {
    match event {
        ArchiverEvent::Refused { objects, error } => {
            tracing::warn!(objects, %error, "not archived yet");
        }
        ArchiverEvent::Unarchived { object, error } => {
            tracing::warn!(version = %object.version(), key = object.key(), %error, "not archived");
        }
        ArchiverEvent::NoCheckpoint(error) => tracing::warn!(%error, "no checkpoint"),
        ArchiverEvent::Archived { .. } | ArchiverEvent::Flushed { .. } | ArchiverEvent::Missed(_) => {}
    }
    Ok(())
}
