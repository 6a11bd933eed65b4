//! Turns of the Python threads that wait for the next item of one stream.

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
    is_taken: Mutex<bool>,
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
        if !std::mem::replace(&mut *self.lock(), true) {
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
        let waited = self.came_free.wait_timeout_while(self.lock(), time, |taken| *taken);
        let (mut is_taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut *is_taken, true)
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ThreadTurn<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.came_free.notify_one();
    }
}
