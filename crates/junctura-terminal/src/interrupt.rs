//! Ctrl-C, as an error that is returned like any other.
//!
//! The first one makes every wait and every long loop return `Interrupted`, so that files are cleaned up and the connection
//! ends in order; a second one ends the process at once, should it be stuck where nobody asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctura::{Code, Error, Result};
use signal_hook::SigId;
use signal_hook::consts::SIGINT;

/// The exit status of a command that a second Ctrl-C ends.
const STATUS: i32 = 130;

/// Whether Ctrl-C was pressed. Clones are about the same; with the last one the process is as it was.
#[derive(Clone, Debug)]
pub struct InterruptFlag(Arc<InterruptError>);

#[derive(Default)]
struct InterruptError {
    flag: Arc<AtomicBool>,
    handlers: Vec<SigId>,
    /// Who else is asked.
    ask: Option<Ask>,
}

/// An error ends what is done.
pub type Ask = Box<dyn Fn() -> Result<()> + Send + Sync>;

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
    pub fn install() -> Result<InterruptFlag> {
        let mut pressed = InterruptError::default();
        // In this order: the first press finds the flag down.
        let ends = signal_hook::flag::register_conditional_shutdown(SIGINT, STATUS, Arc::clone(&pressed.flag));
        pressed.handlers.push(ends.map_err(|error| failed(&error))?);
        let tells = signal_hook::flag::register(SIGINT, Arc::clone(&pressed.flag));
        pressed.handlers.push(tells.map_err(|error| failed(&error))?);
        Ok(InterruptFlag(Arc::new(pressed)))
    }

    /// One that nobody presses.
    #[must_use]
    pub fn never() -> InterruptFlag {
        InterruptFlag(Arc::default())
    }

    /// One that somebody else says: in a process that has its own idea of Ctrl-C.
    #[must_use]
    pub fn asking(ask: Ask) -> InterruptFlag {
        let mut pressed = InterruptError::default();
        pressed.ask = Some(ask);
        InterruptFlag(Arc::new(pressed))
    }

    /// `Interrupted` after Ctrl-C.
    pub fn check(&self) -> Result<()> {
        if self.0.flag.load(Ordering::Relaxed) {
            Err(Error::new(Code::Interrupted, "Ctrl-C", ""))
        } else {
            self.0.ask.as_ref().map_or(Ok(()), |ask| ask())
        }
    }

    /// Makes a pool's waits end with Ctrl-C.
    #[must_use]
    pub fn watch(&self, builder: junctura::PoolBuilder) -> junctura::PoolBuilder {
        let interrupt = self.clone();
        builder.on_interrupt(move || interrupt.check())
    }
}

/// From now on a file that may not grow any more (`ulimit -f`) is an error of the write, and not the end of the process.
pub fn survive_file_limit() -> Result<()> {
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
