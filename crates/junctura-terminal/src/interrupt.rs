//! Ctrl-C as an error.
//!
//! The first Ctrl-C makes every wait and every long loop return `Interrupted`, so that files are cleaned up and the connection
//! ends in order. A second one ends the process at once, in case it is stuck.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctura::{Code, Error, Result};
use signal_hook::SigId;
use signal_hook::consts::SIGINT;

/// Exit status of a command that a second Ctrl-C ends.
const STATUS: i32 = 130;

/// Whether Ctrl-C was pressed. Clones share the flag; dropping the last one restores the handlers of the process.
#[derive(Clone, Debug)]
pub struct InterruptFlag(Arc<InterruptError>);

#[derive(Default)]
struct InterruptError {
    flag: Arc<AtomicBool>,
    handlers: Vec<SigId>,
    /// An additional check.
    ask: Option<Ask>,
}

/// A check whose error ends the work.
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
    /// Installs the handlers.
    pub fn install() -> Result<InterruptFlag> {
        let mut pressed = InterruptError::default();
        // In this order, the first press finds the flag unset.
        let ends = signal_hook::flag::register_conditional_shutdown(SIGINT, STATUS, Arc::clone(&pressed.flag));
        pressed.handlers.push(ends.map_err(|error| failed(&error))?);
        let tells = signal_hook::flag::register(SIGINT, Arc::clone(&pressed.flag));
        pressed.handlers.push(tells.map_err(|error| failed(&error))?);
        Ok(InterruptFlag(Arc::new(pressed)))
    }

    /// Returns a flag that is never set.
    #[must_use]
    pub fn never() -> InterruptFlag {
        InterruptFlag(Arc::default())
    }

    /// Returns a flag of a process that handles Ctrl-C itself.
    #[must_use]
    pub fn asking(ask: Ask) -> InterruptFlag {
        let mut pressed = InterruptError::default();
        pressed.ask = Some(ask);
        InterruptFlag(Arc::new(pressed))
    }

    /// Returns `Interrupted` after Ctrl-C.
    pub fn check(&self) -> Result<()> {
        if self.0.flag.load(Ordering::Relaxed) {
            Err(Error::new(Code::Interrupted, "Ctrl-C", ""))
        } else {
            self.0.ask.as_ref().map_or(Ok(()), |ask| ask())
        }
    }

    /// Makes the waits of a pool end with Ctrl-C.
    #[must_use]
    pub fn watch(&self, builder: junctura::PoolBuilder) -> junctura::PoolBuilder {
        let interrupt = self.clone();
        builder.on_interrupt(move || interrupt.check())
    }
}

/// Makes a write beyond the limit of the file size (`ulimit -f`) return an error, instead of ending the process.
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
        // The next command of this process has its own first press.
        drop(interrupt);
        let next = InterruptFlag::install().unwrap();
        signal_hook::low_level::raise(SIGINT).unwrap();
        assert_eq!(next.check().unwrap_err().code(), Code::Interrupted);
    }
}
