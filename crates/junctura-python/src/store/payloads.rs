//! The payloads of very many objects, one after another, within a memory limit.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{PyListing, PyStored};
use crate::runtime::error::OrRaise;
use crate::runtime::interrupt;

/// An iterator over objects and their payloads: `Listing.payloads`. It reads runs of objects, each after the previous
/// run has been yielded.
#[pyclass(module = "junctura", name = "_Payloads")]
pub(crate) struct PyPayloads {
    listing: Py<PyListing>,
    run_bytes_max: u64,
    /// The next one of the listing that is given.
    next: usize,
    /// The remaining objects of the current run.
    read: VecDeque<junctura::Result<Py<PyBytes>>>,
}

impl PyPayloads {
    pub(super) fn new(listing: Py<PyListing>, run_bytes_max: u64) -> Self {
        Self {
            listing,
            run_bytes_max,
            next: 0,
            read: VecDeque::new(),
        }
    }

    /// Reads the next run: at least one object, and no more than so many bytes of several.
    fn read_run(&mut self, py: Python<'_>) -> PyResult<()> {
        let all = self.listing.get().inner();
        let (first, bytes_max) = (self.next, self.run_bytes_max);
        let read = py.detach(|| {
            let mut run = Vec::new();
            let mut bytes = 0_u64;
            while let Some(object) = all.get(first + run.len()) {
                bytes = bytes.saturating_add(object.bytes());
                if !run.is_empty() && bytes > bytes_max {
                    break;
                }
                run.push(object);
            }
            let mut read = VecDeque::with_capacity(run.len());
            all.for_each_payload_of(&run, |_, payload| {
                interrupt::check()?;
                read.push_back(payload.and_then(own_bytes));
                Ok(())
            })?;
            Ok(read)
        });
        self.read = read.or_raise(py)?;
        Ok(())
    }
}

#[pymethods]
impl PyPayloads {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// The error of an object is raised in its turn; the next call yields the object after it.
    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<(PyStored, Py<PyBytes>)>> {
        if self.read.is_empty() {
            self.read_run(py)?;
        }
        let Some(payload) = self.read.pop_front() else {
            return Ok(None);
        };
        let at = self.next;
        self.next += 1;
        let payload = payload.or_raise(py)?;
        Ok(Some((PyStored::new(self.listing.clone_ref(py), at), payload)))
    }
}

/// Above this size, available memory is checked first.
pub(super) const LARGE_BYTES: usize = 64 << 20;

/// A copy that Python has.
///
/// # Errors
/// `TooLarge` where there is no memory for it.
pub(super) fn own_bytes(payload: &[u8]) -> junctura::Result<Py<PyBytes>> {
    if payload.len() < LARGE_BYTES {
        return Ok(Python::attach(|py| PyBytes::new(py, payload).unbind()));
    }
    let copy = |into: &mut [u8]| {
        into.copy_from_slice(payload);
        Ok(())
    };
    Python::attach(|py| PyBytes::new_with(py, payload.len(), copy).map(Bound::unbind)).map_err(|_| {
        let cause = format!("there is no memory for {} bytes", payload.len());
        junctura::Error::new(junctura::Code::TooLarge, "object", cause)
    })
}
