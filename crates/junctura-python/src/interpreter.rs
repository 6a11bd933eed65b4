//! One interpreter of a process: classes and caches here are shared by all of a process, and must not mix two. And its end.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

const NONE: i64 = -1;

/// # Errors
/// `ImportError` in any interpreter of this process but the first that imports the package.
pub(crate) fn refuse_others() -> PyResult<()> {
    static FIRST: AtomicI64 = AtomicI64::new(NONE);
    // SAFETY: the module is being initialised, so this thread is attached to an interpreter, which lives.
    let this = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match FIRST.compare_exchange(NONE, this, Ordering::SeqCst, Ordering::SeqCst) {
        Err(first) if first != this => Err(PyImportError::new_err(
            "junctura works in one interpreter of a process; this is another sub-interpreter",
        )),
        _ => Ok(()),
    }
}

/// A module of the package that not every program needs. A fork waits until it is imported.
pub(crate) fn module<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "junctura._forks"))?
        .call_method1(intern!(py, "imported"), (name,))
}

/// What a function of such a module returns, for one argument; a fork waits for it.
pub(crate) fn called<'py>(
    py: Python<'py>,
    (module, function, argument): (&str, &str, &Bound<'py, impl Sized>),
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = (module, function, argument.as_any());
    py.import(intern!(py, "junctura._forks"))?
        .call_method(intern!(py, "called"), given, options)
}

static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the program has come to its end: what is forgotten now is so because everything is.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Asks to be told of the end.
pub(crate) fn watch_for_the_end(py: Python<'_>) -> PyResult<()> {
    #[pyfunction]
    fn end() {
        ENDING.store(true, Ordering::Relaxed);
    }
    py.import("atexit")?
        .call_method1("register", (wrap_pyfunction!(end, py)?,))?;
    Ok(())
}
