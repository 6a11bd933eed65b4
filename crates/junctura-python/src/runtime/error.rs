//! Errors of the facade as Python exceptions: one class for each code, in `junctura.errors`.

use junctura::{Advice, Code, Error};
use junctura_model::selector::explain_error;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::runtime::interrupt;
use crate::runtime::lazy_value::LazyValue;

/// The exception classes, in the order of `Code::ALL`.
static CLASSES: LazyValue<Vec<Py<PyAny>>> = LazyValue::new();

/// Converts an error into the Python exception.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
    /// The same, showing the place in the text that it is about.
    fn or_raise_about(self, py: Python<'_>, text: &str) -> PyResult<T>;
}

impl<T> OrRaise<T> for junctura::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raise(py, &error))
    }

    fn or_raise_about(self, py: Python<'_>, text: &str) -> PyResult<T> {
        self.map_err(|error| match error.code() {
            Code::InvalidSelector => with_picture(py, &error, text),
            _ => raise(py, &error),
        })
    }
}

/// The exception for an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    // The exception of Python's own signal handler has priority.
    if error.code() == Code::Interrupted
        && let Some(raised) = interrupt::take_raised()
    {
        return raised;
    }
    make(py, error).map_or_else(|failed| failed, PyErr::from_value)
}

/// An exception about something that was given wrongly.
pub(crate) fn invalid(py: Python<'_>, subject: &str, cause: impl Into<String>) -> PyErr {
    raise(py, &Error::new(Code::InvalidArgument, subject, cause))
}

/// An exception about a handle that was closed.
pub(crate) fn closed(py: Python<'_>, subject: &str, cause: &str) -> PyErr {
    raise(py, &Error::new(Code::Closed, subject, cause))
}

fn make<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let classes = CLASSES.get_or_make(py, || {
        let module = py.import("junctura.errors")?;
        Code::ALL
            .iter()
            .map(|code| Ok(module.getattr(code.name())?.unbind()))
            .collect()
    })?;
    let at = Code::ALL
        .iter()
        .position(|&code| code == error.code())
        .unwrap_or_default();
    let made = classes[at]
        .bind(py)
        .call1((error.subject(), error.cause(), error.position()))?;
    if let Some(waited) = error.waited() {
        made.setattr("waited", waited.as_secs_f64())?;
    }
    Ok(made)
}

fn with_picture(py: Python<'_>, error: &Error, text: &str) -> PyErr {
    let picture = explain_error(text, error);
    let made = make(py, error).and_then(|exception| {
        exception.setattr("picture", picture.split_once('\n').map(|(_, picture)| picture))?;
        Ok(exception)
    });
    made.map_or_else(|failed| failed, PyErr::from_value)
}

/// Name, number and advice of every code.
#[pyfunction]
pub(crate) fn codes(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let codes = Code::ALL.iter().map(|code| {
        let advice = match code.advice() {
            Advice::Retry => "retry",
            Advice::FixInput => "fix the input",
            Advice::GiveUp => "give up",
        };
        (code.name(), code.number(), advice)
    });
    PyTuple::new(py, codes.collect::<Vec<_>>())
}
