//! Ctrl-C, as an error that is returned like any other.
//!
//! The first one makes every wait and every long loop return `Interrupted`, so that files are cleaned up and the connection
//! ends in order; a second one ends the process at once, should it be stuck where nobody asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctura::{Code, Error, Pool, Result};
use signal_hook::consts::SIGINT;

use crate::url::PoolArguments;

/// The exit status of a command that a second Ctrl-C ends.
const STATUS: i32 = 130;

/// Whether Ctrl-C was pressed. Clones are about the same.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to take Ctrl-C.
    pub(crate) fn install() -> Result<Interrupt> {
        let pressed = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_shutdown(SIGINT, STATUS, Arc::clone(&pressed))
            .and_then(|_| signal_hook::flag::register(SIGINT, Arc::clone(&pressed)))
            .map_err(|error| Error::new(Code::Io, "signals", error.to_string()))?;
        Ok(Interrupt(pressed))
    }

    /// One that nobody presses.
    #[cfg(test)]
    pub(crate) fn never() -> Interrupt {
        Interrupt(Arc::default())
    }

    /// `Interrupted` after Ctrl-C.
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            Err(Error::new(Code::Interrupted, "Ctrl-C", ""))
        } else {
            Ok(())
        }
    }

    /// Connects to the pool; waits there end with Ctrl-C.
    pub(crate) fn connect(&self, pool: &PoolArguments, name: &str) -> Result<Pool> {
        self.watch(pool.builder(name)).open()
    }

    /// Makes a pool's waits end with Ctrl-C.
    pub(crate) fn watch(&self, builder: junctura::PoolBuilder) -> junctura::PoolBuilder {
        let interrupt = self.clone();
        builder.on_interrupt(move || interrupt.check())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_becomes_an_error() {
        let interrupt = Interrupt::install().unwrap();
        assert!(interrupt.check().is_ok());
        signal_hook::low_level::raise(SIGINT).unwrap();
        assert_eq!(interrupt.check().unwrap_err().code(), Code::Interrupted);
    }
}
