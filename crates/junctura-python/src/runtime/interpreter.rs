//! One interpreter of a process: classes and caches here are shared by all of a process, and must not mix two.

#![allow(unsafe_code)]

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;
use pyo3::types::{PyDate, PyDateTime, PyDelta, PyDict, PyMapping, PyTime};

use crate::handles::follow::PyGap;
use crate::runtime::ending::EndingCall;

const NONE: i64 = -1;
const FORKS: &str = "junctura._forks";

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

/// Fills the caches of PyO3 that it fills under a lock at their first use: a child that was forked meanwhile would never get it.
pub(crate) fn make_ready(py: Python<'_>) -> PyResult<()> {
    PyMapping::type_object(py);
    PyDate::type_object(py);
    PyDateTime::type_object(py);
    PyTime::type_object(py);
    PyDelta::type_object(py);
    // How an instance of a class is made; the attributes that the name of a class is of.
    let one = Py::new(
        py,
        PyGap {
            items: Vec::new(),
            unnamed: 0,
            reason: String::new(),
        },
    )?
    .into_bound(py)
    .get_type();
    one.fully_qualified_name()?;
    one.name()?;
    Path::new("").into_pyobject(py)?;
    Ok(())
}

/// A module of the package that not every program needs. A fork waits until it is imported.
pub(crate) fn module<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let _call = EndingCall::begin(py);
    py.import(FORKS)?.call_method1("imported", (name,))
}

/// Calls a function of such a module with one argument. A fork waits until it returns, and so does the end of the program.
pub(crate) fn called<'py>(
    py: Python<'py>,
    (module, function, argument): (&str, &str, &Bound<'py, impl Sized>),
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _call = EndingCall::begin(py);
    let given = (module, function, argument.as_any());
    py.import(FORKS)?.call_method("called", given, options)
}
