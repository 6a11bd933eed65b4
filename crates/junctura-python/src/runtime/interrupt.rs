//! Ctrl-C during a wait: the facade asks here whether Python has a signal to handle.

use std::cell::{Cell, RefCell};
use std::mem;

use junctura::{Code, Error, Result};
use pyo3::prelude::*;

use crate::runtime::ending::EndingCall;
use crate::runtime::patience;

thread_local! {
    /// The exception that Python's signal handler raised in this thread's wait.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Nothing could be raised now: a handle is being dropped.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Handles pending signals; returns an error if a handler raised an exception, until it is taken. While the program
/// exits, only the exiting thread checks for signals.
#[allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the method is not general enough in its lifetime"
)]
pub(crate) fn check() -> Result<()> {
    if QUIET.get() {
        return Ok(());
    }
    if !RAISED.with_borrow(Option::is_some)
        && let Some(_call) = EndingCall::begin_unattached()
        && let Some(Err(raised)) = Python::try_attach(|py| py.check_signals())
    {
        RAISED.set(Some(raised));
    }
    if !RAISED.with_borrow(Option::is_some)
        && let Err(raised) = patience::report_if_due()
    {
        RAISED.set(Some(raised));
    }
    if RAISED.with_borrow(Option::is_some) {
        return Err(Error::new(
            Code::Interrupted,
            "wait",
            "a signal handler raised an exception",
        ));
    }
    Ok(())
}

/// Returns the exception that interrupted this thread's wait.
pub(crate) fn take_raised() -> Option<PyErr> {
    RAISED.take()
}

/// Drops something whose end may wait for the server, while other Python threads run. Signals keep until it is done.
pub(crate) fn drop_detached<T: Send>(value: T) {
    let mut value = Some(value);
    let quiet = QUIET.replace(true);
    let _ = Python::try_attach(|py| {
        let value = mem::take(&mut value);
        py.detach(move || drop(value));
    });
    // Without an interpreter there is no lock to release.
    drop(value);
    QUIET.set(quiet);
}
