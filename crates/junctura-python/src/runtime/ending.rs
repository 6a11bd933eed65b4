//! The end of the interpreter, while daemon threads still work.
//!
//! Python ends such a thread where it next runs: CPython up to 3.13 unwinds its stack, which aborts the process where a function
//! of Rust is on it. `PyO3` holds threads that return from Rust to Python. Calls from Rust of Python functions that may run for
//! long are a [`EndingCall`]: the end waits up to ten seconds for those that have begun, and no other begins.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The limit of the wait: a call may need a lock that a stopped thread holds.
const WAIT_MAX: Duration = Duration::from_secs(10);

static ENDING: AtomicBool = AtomicBool::new(false);
/// The thread that ends the interpreter, and waits.
static WAITS: OnceLock<Thread> = OnceLock::new();
/// Calls of all threads.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Calls of this thread, one within the other.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// Whether the program is exiting: objects are now dropped only because of the exit.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// A call of a function in Python that ends by itself: it must not wait for other processes.
pub(crate) struct EndingCall(());

impl EndingCall {
    /// Begins a call. At the end of the program it does not return, unless this thread is the one that ends it.
    pub(crate) fn begin(py: Python<'_>) -> Self {
        Self::begin_unattached().unwrap_or_else(|| {
            py.detach(|| {
                loop {
                    thread::park();
                }
            })
        })
    }

    /// Begins a call from a thread that does not hold the interpreter, and must not ask for it at the end of the program: `None`
    /// then, unless this thread is the one that ends it.
    pub(crate) fn begin_unattached() -> Option<Self> {
        let outer = OWN.with(|own| own.replace(own.get() + 1));
        UNDER_WAY.fetch_add(1, Ordering::SeqCst);
        let call = Self(());
        let ends_here = || WAITS.get().is_some_and(|waits| waits.id() == thread::current().id());
        (!is_ending() || outer > 0 || ends_here()).then_some(call)
    }
}

impl Drop for EndingCall {
    fn drop(&mut self) {
        OWN.with(|own| own.set(own.get() - 1));
        UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
        if is_ending()
            && let Some(waits) = WAITS.get()
        {
            waits.unpark();
        }
    }
}

/// Registers functions that run at the end of the interpreter, and in each forked child.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    #[pyfunction]
    fn end(py: Python<'_>) {
        WAITS.get_or_init(thread::current);
        ENDING.store(true, Ordering::SeqCst);
        let (own, until) = (OWN.get(), Instant::now() + WAIT_MAX);
        py.detach(|| {
            while UNDER_WAY.load(Ordering::SeqCst) > own
                && let Some(left) = until.checked_duration_since(Instant::now())
            {
                thread::park_timeout(left);
            }
        });
    }
    /// A child has one thread: the calls of the others are not in it.
    #[pyfunction]
    fn forked() {
        UNDER_WAY.store(OWN.get(), Ordering::SeqCst);
    }
    py.import("atexit")?
        .call_method1("register", (wrap_pyfunction!(end, py)?,))?;
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(forked, py)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}
