//! Bytes that cross the border without a copy: payloads shown to Python, and Python's buffers lent to the facade.
//!
//! ```text
//!  Python view ──holds──> its owner (Object, Allocation) ──owns──> the bytes
//! ```
//! A view keeps its owner alive, so bytes live as long as a view exists; views are counted, so that no memory is
//! returned while it can be read. Each unsafe block explains the guarantees that the compiler cannot check.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{ptr, slice};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyMemoryError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zerocopy::IntoBytes;

/// The first of some bytes that another field of the same owner keeps alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferStart(*mut u8);

// SAFETY: it is an address; each access documents its own soundness.
unsafe impl Send for BufferStart {}
// SAFETY: as above.
unsafe impl Sync for BufferStart {}

impl BufferStart {
    pub(crate) fn of(bytes: &mut [u8]) -> Self {
        Self(bytes.as_mut_ptr())
    }

    /// The bytes that begin here.
    ///
    /// # Safety
    /// `length` bytes live here for as long as the slice is used. That other Python threads do not write meanwhile is
    /// asked of users: views become read-only before anything is read through this.
    pub(crate) unsafe fn bytes<'a>(self, length: usize) -> &'a [u8] {
        // SAFETY: promised by the caller.
        unsafe { slice::from_raw_parts(self.0, length) }
    }
}

/// Makes `bytes` of a length, and fills them while other Python threads run. `None` if `fill` returns false: it has not
/// written all bytes.
pub(crate) fn filled_bytes(
    py: Python<'_>,
    length: usize,
    fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> bool + Send,
) -> PyResult<Option<Bound<'_, PyBytes>>> {
    let size = ffi::Py_ssize_t::try_from(length).map_err(|_| PyMemoryError::new_err("too many bytes"))?;
    // SAFETY: without a start Python allocates bytes of this size, or returns null and sets an exception.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(ptr::null(), size)) }?;
    let made = made.cast_into::<PyBytes>()?;
    // SAFETY: the object is new, so that no other code reads or writes its `length` bytes, which may have no value yet.
    let into = unsafe { slice::from_raw_parts_mut(ffi::PyBytes_AsString(made.as_ptr()).cast(), length) };
    Ok(py.detach(|| fill(into)).then_some(made))
}

/// How many views there are.
#[derive(Debug, Default)]
pub(crate) struct ViewCount(AtomicUsize);

impl ViewCount {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Fills a view of an owner's bytes.
    ///
    /// # Safety
    /// `view` is what Python handed to `__getbuffer__`, and `owner` keeps the bytes in place for as long as it lives.
    pub(crate) unsafe fn show(
        &self,
        view: *mut ffi::Py_buffer,
        flags: c_int,
        owner: &Bound<'_, PyAny>,
        bytes: &[u8],
        writable: bool,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        let start = bytes.as_ptr().cast_mut().cast::<c_void>();
        let length = bytes.len() as ffi::Py_ssize_t;
        // SAFETY: `view` is Python's to fill; the function takes a reference to the owner, which keeps the bytes.
        let refused =
            unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start, length, c_int::from(!writable), flags) };
        if refused != 0 {
            return Err(PyErr::fetch(owner.py()));
        }
        self.0.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// There is one that stays.
    pub(crate) fn stay(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// A view was dropped.
    pub(crate) fn hide(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether no memory that is written to is read from, or written to twice.
pub(crate) fn are_apart(read: &[PyUntypedBuffer], written: &[PyUntypedBuffer]) -> bool {
    let range = |buffer: &PyUntypedBuffer| {
        let start = buffer.buf_ptr() as usize;
        (start, start + buffer.len_bytes())
    };
    let mut ranges: Vec<((usize, usize), bool)> = read.iter().map(|buffer| (range(buffer), false)).collect();
    ranges.extend(written.iter().map(|buffer| (range(buffer), true)));
    ranges.sort_unstable();
    // Inputs may overlap: the same field may be given twice.
    let (mut read_until, mut written_until) = (0, 0);
    ranges.into_iter().all(|((start, end), is_written)| {
        let is_free = written_until <= start && (!is_written || read_until <= start);
        let until = if is_written {
            &mut written_until
        } else {
            &mut read_until
        };
        *until = end.max(*until);
        is_free
    })
}

/// A contiguous buffer of Python's that is written to, and stays in place while this is held.
pub(crate) struct LentMut(PyUntypedBuffer);

impl LentMut {
    /// # Errors
    /// `BufferError` for one that may not be written to, or has gaps.
    pub(crate) fn new(buffer: PyUntypedBuffer) -> PyResult<Self> {
        if buffer.readonly() || !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("it is read-only, or has gaps"));
        }
        Ok(Self(buffer))
    }

    /// The bytes. That no other Python thread looks at them or writes to them meanwhile is asked of users, as everywhere in Python.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match self.0.len_bytes() {
            // At an address that is aligned for numbers.
            0 => <[u64; 0]>::as_mut_bytes(&mut []),
            // SAFETY: Python's buffer protocol keeps so many bytes in place until the buffer is released, with `self`,
            // and has declared them writable.
            length => unsafe { slice::from_raw_parts_mut(self.0.buf_ptr().cast(), length) },
        }
    }
}

/// A contiguous buffer of Python's, which stays in place while this is held.
pub(crate) struct LentBuffer(PyUntypedBuffer);

impl LentBuffer {
    /// Only for buffers that are contiguous in C order.
    pub(crate) fn new(buffer: PyUntypedBuffer) -> Self {
        debug_assert!(buffer.is_c_contiguous());
        Self(buffer)
    }

    /// The bytes. That no other Python thread writes to them meanwhile is asked of users, as everywhere in Python.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self.0.len_bytes() {
            0 => <[u64; 0]>::as_bytes(&[]),
            // SAFETY: Python's buffer protocol keeps so many bytes in place until the buffer is released, with `self`.
            length => unsafe { slice::from_raw_parts(self.0.buf_ptr().cast(), length) },
        }
    }
}
