//! Values that are created at first use and kept for the life of the process.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// Made at its first use. Unlike a `PyOnceLock` it is never locked while another thread runs Python: a child that this thread
/// forks would never get the lock.
pub(crate) struct LazyValue<T>(OnceLock<T>);

impl<T> LazyValue<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the value. Concurrent threads may each create one, of which one is kept.
    pub(crate) fn get_or_make(&self, _py: Python<'_>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&T> {
        if let Some(kept) = self.0.get() {
            return Ok(kept);
        }
        let new = make()?;
        Ok(self.0.get_or_init(|| new))
    }
}

/// The name of an attribute, as Python compares it fastest.
pub(crate) struct AttributeName(&'static str, LazyValue<Py<PyString>>);

impl AttributeName {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self(name, LazyValue::new())
    }

    /// Whether an object has an attribute of this name.
    pub(crate) fn is_of(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = object.py();
        let name = self.1.get_or_make(py, || Ok(PyString::intern(py, self.0).unbind()))?;
        object.hasattr(name.bind(py))
    }

    /// Whether a dictionary has a key of this name.
    pub(crate) fn is_key_of(&self, dict: &Bound<'_, PyDict>) -> PyResult<bool> {
        let py = dict.py();
        let name = self.1.get_or_make(py, || Ok(PyString::intern(py, self.0).unbind()))?;
        dict.contains(name.bind(py))
    }
}
