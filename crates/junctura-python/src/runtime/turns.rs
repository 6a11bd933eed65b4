//! Turns of the Python threads that wait for the next item of one stream.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use junctura::{Code, Error, Result};
use pyo3::prelude::*;

use crate::runtime::interrupt;

/// How often a thread that waits for its turn looks for signals.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// One thread has the turn; others wait for it as long as their own deadlines allow.
#[derive(Default)]
pub(crate) struct ThreadTurns {
    is_taken: AtomicBool,
    /// At least the number of threads that wait. At zero, the end of a turn needs no lock.
    waiting: AtomicUsize,
    lock: Mutex<()>,
    came_free: Condvar,
}

/// The turn of a thread, until it is dropped.
pub(crate) struct ThreadTurn<'a>(&'a ThreadTurns);

impl ThreadTurns {
    /// Waits for the turn of this thread.
    ///
    /// # Errors
    /// `Timeout` after the deadline, `Interrupted` by a signal.
    pub(crate) fn take(&self, py: Python<'_>, what: &str, deadline: Option<Instant>) -> Result<ThreadTurn<'_>> {
        if !self.is_taken.swap(true, Ordering::SeqCst) {
            return Ok(ThreadTurn(self));
        }
        py.detach(|| {
            loop {
                let left = deadline.map_or(LOOKS_EVERY, |at| at.saturating_duration_since(Instant::now()));
                // It is not locked while signals are looked for: their handlers may need the interpreter.
                if self.is_free_within(left.min(LOOKS_EVERY)) {
                    return Ok(ThreadTurn(self));
                }
                interrupt::check()?;
                if left.is_zero() {
                    return Err(Error::new(Code::Timeout, what, "nothing arrived in time"));
                }
            }
        })
    }

    fn is_free_within(&self, time: Duration) -> bool {
        let guard = self.lock();
        // Counted before the look: a turn that ends after it wakes this thread.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let is_taken = |(): &mut ()| self.is_taken.swap(true, Ordering::SeqCst);
        let waited = self.came_free.wait_timeout_while(guard, time, is_taken);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ThreadTurn<'_> {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::SeqCst);
        if self.0.waiting.load(Ordering::SeqCst) > 0 {
            // A thread that has found the turn taken holds this lock until it waits: so the notification reaches it.
            drop(self.0.lock());
            self.0.came_free.notify_one();
        }
    }
}
