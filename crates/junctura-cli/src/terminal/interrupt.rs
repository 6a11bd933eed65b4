//! Ctrl-C, as an error that is returned like any other.
//!
//! The first one makes every wait and every long loop return `Interrupted`, so that files are cleaned up and the connection
//! ends in order; a second one ends the process at once, should it be stuck where nobody asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use junctura::{Code, Error, Pool, Result};
use signal_hook::SigId;
use signal_hook::consts::SIGINT;

use crate::absent::{open_served, open_when_served};
use crate::terminal::progress::SlowWork;
use crate::url::{BehindArguments, PoolArguments};

/// The exit status of a command that a second Ctrl-C ends.
const STATUS: i32 = 130;

/// Whether Ctrl-C was pressed. Clones are about the same; with the last one the process is as it was.
#[derive(Clone, Debug)]
pub(crate) struct InterruptFlag(Arc<InterruptError>);

#[derive(Default)]
struct InterruptError {
    flag: Arc<AtomicBool>,
    handlers: Vec<SigId>,
    /// Who else is asked.
    ask: Option<Ask>,
}

/// An error ends what is done.
pub(crate) type Ask = Box<dyn Fn() -> Result<()> + Send + Sync>;

impl std::fmt::Debug for InterruptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pressed").field(&self.flag).finish()
    }
}

impl Drop for InterruptError {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

impl InterruptFlag {
    /// Begins to take Ctrl-C.
    pub(crate) fn install() -> Result<InterruptFlag> {
        let mut pressed = InterruptError::default();
        // In this order: the first press finds the flag down.
        let ends = signal_hook::flag::register_conditional_shutdown(SIGINT, STATUS, Arc::clone(&pressed.flag));
        pressed.handlers.push(ends.map_err(|error| failed(&error))?);
        let tells = signal_hook::flag::register(SIGINT, Arc::clone(&pressed.flag));
        pressed.handlers.push(tells.map_err(|error| failed(&error))?);
        Ok(InterruptFlag(Arc::new(pressed)))
    }

    /// One that nobody presses.
    #[cfg(test)]
    pub(crate) fn never() -> InterruptFlag {
        InterruptFlag(Arc::default())
    }

    /// One that somebody else says: in a process that has its own idea of Ctrl-C.
    pub(crate) fn asking(ask: Ask) -> InterruptFlag {
        let mut pressed = InterruptError::default();
        pressed.ask = Some(ask);
        InterruptFlag(Arc::new(pressed))
    }

    /// `Interrupted` after Ctrl-C.
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.flag.load(Ordering::Relaxed) {
            Err(Error::new(Code::Interrupted, "Ctrl-C", ""))
        } else {
            self.0.ask.as_ref().map_or(Ok(()), |ask| ask())
        }
    }

    /// Connects to the pool, and starts its server if none runs; waits there end with Ctrl-C.
    pub(crate) fn connect(&self, pool: &PoolArguments, name: &str) -> Result<Pool> {
        self.watch(pool.builder(name)).open()
    }

    /// Connects to a pool that is served.
    ///
    /// # Errors
    /// `NotFound` where `unix:NAME` has no server.
    pub(crate) fn connect_to_read(&self, pool: &PoolArguments, name: &str) -> Result<Pool> {
        open_served(&pool.pool, || self.watch(pool.reader(name)).open())
    }

    /// As [`Self::connect_to_read`], with a store behind the pool.
    pub(crate) fn connect_with(&self, pool: &PoolArguments, behind: &BehindArguments, name: &str) -> Result<Pool> {
        open_served(&pool.pool, || self.open_with(pool, behind, name))
    }

    /// As [`Self::connect_with`], and waits until the pool is served, at most until the deadline.
    ///
    /// # Errors
    /// `Timeout` where it is not served then.
    pub(crate) fn connect_and_wait(
        &self,
        pool: &PoolArguments,
        behind: &BehindArguments,
        name: &str,
        deadline: Option<Instant>,
    ) -> Result<Pool> {
        open_when_served(&pool.pool, deadline, self, || self.open_with(pool, behind, name))
    }

    fn open_with(&self, pool: &PoolArguments, behind: &BehindArguments, name: &str) -> Result<Pool> {
        let _slow = behind.url().map(SlowWork::store);
        self.watch(behind.put_behind(pool.reader(name))).open()
    }

    /// Makes a pool's waits end with Ctrl-C.
    pub(crate) fn watch(&self, builder: junctura::PoolBuilder) -> junctura::PoolBuilder {
        let interrupt = self.clone();
        builder.on_interrupt(move || interrupt.check())
    }
}

/// From now on a file that may not grow any more (`ulimit -f`) is an error of the write, and not the end of the process.
pub(crate) fn survive_file_limit() -> Result<()> {
    let told = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    told.map(drop).map_err(|error| failed(&error))
}

fn failed(error: &std::io::Error) -> Error {
    Error::new(Code::Io, "signals", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_becomes_an_error() {
        let interrupt = InterruptFlag::install().unwrap();
        assert!(interrupt.check().is_ok());
        signal_hook::low_level::raise(SIGINT).unwrap();
        assert_eq!(interrupt.check().unwrap_err().code(), Code::Interrupted);
        // The next command of this process has a first press of its own.
        drop(interrupt);
        let next = InterruptFlag::install().unwrap();
        signal_hook::low_level::raise(SIGINT).unwrap();
        assert_eq!(next.check().unwrap_err().code(), Code::Interrupted);
    }
}
