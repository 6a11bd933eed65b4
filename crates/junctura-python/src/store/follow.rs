//! Objects as they are committed.

use std::time::Duration;

use junctura::{Code, Error};
use pyo3::prelude::*;

use super::place::StorePlace;
use super::{PyListing, PyStored};
use crate::runtime::error::OrRaise;
use crate::runtime::interrupt;

/// An iterator over commits as they occur: `Store.follow`.
#[pyclass(module = "junctura", name = "_Following")]
pub(crate) struct PyFollowing {
    inner: junctura_store::StoreFollower,
    selector: String,
    timeout: Option<Duration>,
    place: StorePlace,
    /// The new objects, and the next one.
    new: Option<(Py<PyListing>, usize)>,
    /// The commit up to which every object was yielded before these.
    before: u64,
}

impl PyFollowing {
    pub(super) fn new(
        inner: junctura_store::StoreFollower,
        selector: &str,
        timeout: Option<Duration>,
        place: &StorePlace,
    ) -> Self {
        Self {
            inner,
            selector: selector.to_owned(),
            timeout,
            place: place.clone(),
            new: None,
            before: 0,
        }
    }
}

#[pymethods]
impl PyFollowing {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// The commit up to which every object was yielded.
    #[getter]
    fn commit(&self) -> u64 {
        match &self.new {
            Some((listing, next)) if *next < listing.get().len() => self.before,
            _ => self.inner.commit(),
        }
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<PyStored> {
        loop {
            if let Some((listing, next)) = &mut self.new
                && *next < listing.get().len()
            {
                *next += 1;
                return Ok(PyStored::new(listing.clone_ref(py), *next - 1));
            }
            self.before = self.inner.commit();
            let new = py.detach(|| self.inner.next_within(self.timeout, interrupt::check));
            let new = new.or_raise_about(py, &self.selector)?.ok_or_else(|| {
                let cause = "nothing new was committed in that time";
                Error::new(Code::Timeout, &*self.selector, cause)
            });
            let listing = PyListing::new(new.or_raise(py)?, Vec::new(), &self.place);
            self.new = Some((Py::new(py, listing)?, 0));
        }
    }
}
