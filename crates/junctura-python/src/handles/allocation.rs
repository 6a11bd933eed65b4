//! Memory of the pool, filled in place from Python.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use junctura::Pool;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyWeakrefReference};

use crate::conversion::buffer::{BufferStart, ViewCount};
use crate::conversion::data::{ArrayForm, PreparedData, arrays};
use crate::conversion::options::offer_options;
use crate::conversion::payload_form::view_as;
use crate::handles::bundle::current;
use crate::model::version::PyVersion;
use crate::runtime::error::{closed, invalid};
use crate::runtime::interrupt::drop_detached;
use crate::runtime::patience::offering;

/// Memory in the pool for one payload, to be filled and offered.
///
/// Created by `Pool.allocate`. Write to it through `array()` or a `memoryview`; its initial contents are undefined.
/// `offer` transfers the memory to the pool without a copy. Arrays from `array()` are then read-only, and show the
/// payload until the object is removed and its memory is reused; memoryviews must be released before. Slices of such an
/// array, `array[3:]`, are not tracked: do not write to them after the offer. The end of its `with` block frees the
/// memory if it was not offered.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool, pool.allocate(shape=(2, 3), dtype="f4") as field:
/// ...     field.array()[:] = 1.5
/// ...     version = field.offer(name="ones and a half")
/// ...     pool.demand(name="ones and a half").array().sum()
/// np.float32(9.0)
#[pyclass(module = "junctura", name = "Allocation", frozen, weakref)]
pub(crate) struct PyAllocation {
    pool: Pool,
    start: BufferStart,
    length: usize,
    /// The bytes, if they are not in the pool's memory. Accessed only through `start`.
    _own: Vec<u8>,
    form: Option<ArrayForm>,
    views: ViewCount,
    inner: Mutex<AllocationInner>,
}

struct AllocationInner {
    memory: AllocationMemory,
    /// Arrays that were handed out.
    arrays: Vec<Py<PyWeakrefReference>>,
}

enum AllocationMemory {
    Slot(junctura::Allocation),
    /// Small payloads are sent in the message: until then they are in `own`.
    Own,
    /// The memory is the pool's, and stays mapped while this lives.
    Offered(#[expect(dead_code, reason = "kept alive for views")] Option<junctura::binding::KeepMapped>),
    /// It can no longer be offered; freed with this.
    Left(#[expect(dead_code, reason = "kept alive for views")] Option<junctura::Allocation>),
}

/// A payload without writers.
pub(crate) enum FilledPayload<'a> {
    Own(&'a [u8]),
    Slot(junctura::Allocation),
}

impl PyAllocation {
    /// Waits for memory, at most for the pool's offer timeout.
    pub(crate) fn new(py: Python<'_>, pool: &Pool, length: usize, form: Option<ArrayForm>) -> PyResult<Self> {
        let bundle = current(py, pool);
        let allocated = offering(py, pool, || {
            bundle.map_or_else(|| pool.allocate(length), |bundle| bundle.allocate(length))
        });
        Ok(Self::of(pool, allocated?, form))
    }

    pub(crate) fn of(pool: &Pool, mut allocation: junctura::Allocation, form: Option<ArrayForm>) -> Self {
        let length = allocation.len();
        let mut own = Vec::new();
        let (start, memory) = if allocation.is_shared() {
            (BufferStart::of(&mut allocation), AllocationMemory::Slot(allocation))
        } else {
            own.resize(length, 0);
            (BufferStart::of(&mut own), AllocationMemory::Own)
        };
        let inner = Mutex::new(AllocationInner {
            memory,
            arrays: Vec::new(),
        });
        Self {
            pool: pool.clone(),
            start,
            length,
            _own: own,
            form,
            views: ViewCount::default(),
            inner,
        }
    }

    /// The form of the array.
    pub(crate) fn form(&self) -> Option<&ArrayForm> {
        self.form.as_ref()
    }

    /// Takes the payload to offer it: views become read-only.
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<FilledPayload<'_>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if !inner.memory.is_open() {
            return Err(gone(py));
        }
        let known = inner.arrays_alive(py);
        let unknown = self.views.count().saturating_sub(known.len());
        if unknown > 0 {
            let cause = format!("{unknown} writable views exist: release memoryviews and the objects made from them");
            return Err(invalid(py, "allocation", cause));
        }
        make_readonly(&known)?;
        Ok(match inner.memory.replace(AllocationMemory::Left(None)) {
            AllocationMemory::Slot(slot) => {
                inner.memory = AllocationMemory::Offered(junctura::binding::keep_mapped(&slot));
                FilledPayload::Slot(slot)
            }
            AllocationMemory::Own => {
                inner.memory = AllocationMemory::Offered(None);
                // SAFETY: the bytes are in `_own`, which stays as it is until this is dropped; nothing can write to
                // them now.
                #[allow(unsafe_code)]
                FilledPayload::Own(unsafe { self.start.bytes(self.length) })
            }
            AllocationMemory::Offered(_) | AllocationMemory::Left(_) => return Err(gone(py)),
        })
    }

    /// Returns an array that is not tracked here, so that nothing is offered while it is in use.
    pub(crate) fn seen<'py>(&self, this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match &self.form {
            Some(form) => view_as(this, form),
            None => arrays(this.py())?.call_method1("view", (this, None::<&str>, None::<usize>)),
        }
    }

    /// Gives up the memory: at once if there are no views, else when the last view is dropped.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if !inner.memory.is_open() {
            return Ok(());
        }
        make_readonly(&inner.arrays_alive(py))?;
        if let AllocationMemory::Slot(slot) = inner.memory.replace(AllocationMemory::Left(None)) {
            if self.views.count() == 0 {
                drop_detached(slot);
            } else {
                inner.memory = AllocationMemory::Left(Some(slot));
            }
        }
        Ok(())
    }
}

impl AllocationMemory {
    fn is_open(&self) -> bool {
        matches!(self, AllocationMemory::Slot(_) | AllocationMemory::Own)
    }

    fn replace(&mut self, by: AllocationMemory) -> AllocationMemory {
        std::mem::replace(self, by)
    }
}

impl AllocationInner {
    fn arrays_alive<'py>(&mut self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        use pyo3::types::PyWeakrefMethods;
        self.arrays
            .iter()
            .filter_map(|array| array.bind(py).upgrade())
            .collect()
    }
}

fn make_readonly(arrays: &[Bound<'_, PyAny>]) -> PyResult<()> {
    arrays
        .iter()
        .try_for_each(|array| array.getattr("flags")?.setattr("writeable", false))
}

fn gone(py: Python<'_>) -> PyErr {
    closed(py, "allocation", "it was offered or freed")
}

#[pymethods]
impl PyAllocation {
    /// array(dtype=None, shape=None)
    /// --
    ///
    /// Returns the memory as a writable array, without a copy.
    ///
    /// Parameters
    /// ----------
    /// dtype, shape : optional
    ///     Type and shape of the array. Defaults to the arguments of `Pool.allocate`, else to bytes.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    #[pyo3(signature = (dtype=None, shape=None))]
    fn array<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let array = match (dtype, &this.form, shape) {
            (None, _, None) => this.seen(slf)?,
            (None, Some(form), Some(shape)) => arrays(py)?.call_method1("view", (slf, &*form.dtype, shape))?,
            _ => arrays(py)?.call_method1("view", (slf, dtype, shape))?,
        };
        let mut inner = this.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.arrays.push(PyWeakrefReference::new(&array)?.unbind());
        Ok(array)
    }

    /// Offers the memory as an object and returns when the object is visible to all clients; copies nothing.
    ///
    /// Parameters
    /// ----------
    /// attributes : dict, optional
    ///     The description of the object.
    /// schema, retention : optional
    ///     As for `Pool.offer`.
    /// **keywords
    ///     More attributes.
    ///
    /// Returns
    /// -------
    /// Version
    ///
    /// Raises
    /// ------
    /// SchemaMismatch, TypeMismatch, TooLarge
    ///     The schema does not allow the attributes. The allocation is unchanged.
    /// InvalidArgument
    ///     A view is alive that cannot be made read-only. The allocation is unchanged.
    /// AlreadyExists
    ///     The key exists. The memory is freed.
    #[pyo3(signature = (attributes=None, /, *, schema=None, retention=None, if_wanted=false, durability=None, **keywords))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn offer<'py>(
        slf: &Bound<'py, Self>,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        retention: Option<&Bound<'py, PyAny>>,
        if_wanted: bool,
        durability: Option<&str>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<PyVersion>> {
        let options = offer_options(schema, retention, if_wanted, durability)?;
        let pool = &slf.get().pool;
        PreparedData::new(pool, slf.as_any(), attributes, keywords, &options)?.offer(slf.py(), pool, options)
    }

    /// Size in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.length
    }

    /// Whether it can no longer be offered.
    #[getter]
    fn closed(&self) -> bool {
        !self
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .memory
            .is_open()
    }

    /// Frees the memory, unless it was offered. Views become read-only and stay readable.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        self.leave(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _type: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.leave(py)
    }

    fn __len__(&self) -> usize {
        self.length
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { ", closed" } else { "" };
        format!("<junctura.Allocation of {} bytes{state}>", self.length)
    }

    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        let inner = this.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if !inner.memory.is_open() {
            return Err(gone(slf.py()));
        }
        // SAFETY: `view` is Python's; `inner.memory` and `_own` keep the bytes, in every state, for as long as `slf` lives.
        unsafe {
            this.views
                .show(view, flags, slf.as_any(), this.start.bytes(this.length), true)
        }
    }

    #[allow(unsafe_code)]
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.hide();
    }
}

impl Drop for PyAllocation {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop_detached(inner.memory.replace(AllocationMemory::Left(None)));
    }
}
