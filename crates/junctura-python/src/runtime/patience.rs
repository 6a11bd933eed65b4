//! Offers that wait for memory and withdrawals that wait for readers, which are not silent: a long wait is a `WaitWarning`,
//! and an offer that fails since the pool is full names what keeps the memory.
//!
//! The thread that waits reports it itself: the facade calls the interrupt hook in every long wait.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use junctura::{Code, Error, Pool};
use junctura_cli::{full_memory, waits_of_offers, waits_of_withdrawals};
use pyo3::prelude::*;

use crate::runtime::ending::EndingCall;
use crate::runtime::error::raise;
use crate::runtime::lazy_value::LazyValue;

/// The longest wait that is not reported.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval between two reports about a pool: with a slow consumer every offer may wait.
const REPORTED_EVERY: Duration = Duration::from_mins(1);
/// Pools whose last report is remembered. Beyond it, all are forgotten.
const POOLS_MAX: usize = 256;

/// The last reports, by the URL of the pool.
static LAST_REPORTS: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

thread_local! {
    static WAIT: RefCell<Option<WatchedWait>> = const { RefCell::new(None) };
}

/// A call whose long wait is reported.
#[derive(Clone, Copy)]
pub(crate) enum WatchedCall {
    Offer,
    Withdrawal,
}

/// A call of this thread.
struct WatchedWait {
    pool: Pool,
    call: WatchedCall,
    /// When it was first seen to wait.
    since: Option<Instant>,
    is_reported: bool,
}

/// Makes a request that may wait for memory, while other Python threads run.
pub(crate) fn offering<T: Send>(
    py: Python<'_>,
    pool: &Pool,
    request: impl FnOnce() -> junctura::Result<T> + Send,
) -> PyResult<T> {
    let done = watched(pool, WatchedCall::Offer, || py.detach(request));
    done.map_err(|error| match error.code() {
        Code::PoolFull => full(py, pool, &error),
        _ => raise(py, &error),
    })
}

/// Makes a call; its long wait is reported.
pub(crate) fn watched<T>(pool: &Pool, call: WatchedCall, make: impl FnOnce() -> T) -> T {
    let wait = WatchedWait {
        pool: pool.clone(),
        call,
        since: None,
        is_reported: false,
    };
    WAIT.set(Some(wait));
    let answer = make();
    WAIT.set(None);
    answer
}

impl WatchedCall {
    /// Returns the text of the warning; `None` if there is nothing to report, or an earlier server does not answer.
    fn reasons(self, pool: &Pool) -> Option<String> {
        let (waits, what) = match self {
            Self::Offer => (waits_of_offers(pool), "offer"),
            Self::Withdrawal => (waits_of_withdrawals(pool), "withdrawal"),
        };
        let waits = waits.ok().flatten()?;
        let lines: Vec<&str> = waits.lines().map(str::trim).collect();
        Some(format!("the {what} waits: {}", lines.join("; ")))
    }
}

/// Returns the exception for a full pool, with what keeps most of the memory. Its advice is no retry if only a withdrawal can free memory.
fn full(py: Python<'_>, pool: &Pool, error: &Error) -> PyErr {
    // Without an answer the error says less.
    let Ok(Some(memory)) = py.detach(|| full_memory(pool)) else {
        return raise(py, error);
    };
    let cause = format!("{}; {}", error.cause(), memory.causes);
    let mut explained = Error::new(error.code(), error.subject(), cause);
    if let Some(waited) = error.waited() {
        explained = explained.after(waited);
    }
    let raised = raise(py, &explained);
    if !memory.frees_itself {
        let _ = raised.value(py).setattr("advice", "give up");
    }
    raised
}

/// Reports the wait of this thread's call, if it is due. The interpreter is not held.
///
/// # Errors
/// The warning, if the program treats warnings as errors.
pub(crate) fn report_if_due() -> PyResult<()> {
    let due = WAIT.with_borrow_mut(|wait| {
        let wait = wait.as_mut()?;
        let since = *wait.since.get_or_insert_with(Instant::now);
        let is_due = !wait.is_reported && since.elapsed() >= PATIENCE;
        wait.is_reported |= is_due;
        is_due.then(|| (wait.pool.clone(), wait.call))
    });
    let Some((pool, call)) = due else {
        return Ok(());
    };
    let Some(waits) = call.reasons(&pool) else {
        // It may have some later.
        WAIT.with_borrow_mut(|wait| {
            if let Some(wait) = wait {
                (wait.since, wait.is_reported) = (None, false);
            }
        });
        return Ok(());
    };
    if !may_report(&pool) {
        return Ok(());
    }
    let Some(_call) = EndingCall::begin_unattached() else {
        return Ok(());
    };
    Python::try_attach(|py| warn(py, &waits)).unwrap_or(Ok(()))
}

/// Reports what calls of a pool wait for, for a task of asyncio that waits.
///
/// # Errors
/// The warning, if the program treats warnings as errors.
pub(crate) fn report(py: Python<'_>, pool: &Pool, call: WatchedCall) -> PyResult<()> {
    match py.detach(|| call.reasons(pool)) {
        Some(waits) if may_report(pool) => warn(py, &waits),
        _ => Ok(()),
    }
}

/// Issues the `WaitWarning` for a call that waits.
fn warn(py: Python<'_>, waits: &str) -> PyResult<()> {
    static CATEGORY: LazyValue<Py<PyAny>> = LazyValue::new();
    let category = CATEGORY.get_or_make(py, || {
        Ok(py.import("junctura.errors")?.getattr("WaitWarning")?.unbind())
    })?;
    let message = CString::new(waits)?;
    PyErr::warn(py, category.bind(py), &message, 1)
}

fn may_report(pool: &Pool) -> bool {
    // Another thread may have held it when this process was forked.
    let Ok(mut last) = LAST_REPORTS.try_lock() else {
        return false;
    };
    let may = last.get(pool.url()).is_none_or(|last| last.elapsed() >= REPORTED_EVERY);
    if may {
        if last.len() == POOLS_MAX {
            last.clear();
        }
        last.insert(pool.url().to_owned(), Instant::now());
    }
    may
}
