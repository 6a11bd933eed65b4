//! Bytes that were read, shown to Python without another copy.

use std::ffi::c_int;
use std::ops::Deref;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::conversion::buffer::ViewCount;

/// The payload of an object, verified: read, or mapped in place.
#[pyclass(module = "junctura", name = "_Payload", frozen)]
pub(crate) struct PyPayload {
    bytes: Box<dyn Deref<Target = [u8]> + Send + Sync>,
    views: ViewCount,
}

impl PyPayload {
    pub(super) fn new(bytes: impl Deref<Target = [u8]> + Send + Sync + 'static) -> Self {
        Self {
            bytes: Box::new(bytes),
            views: ViewCount::default(),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[pymethods]
impl PyPayload {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        // SAFETY: `view` is Python's. The bytes never change, and stay where they are while `slf` lives, which the view keeps.
        unsafe { this.views.show(view, flags, slf.as_any(), &this.bytes, false) }
    }

    #[allow(unsafe_code)]
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.hide();
    }
}
