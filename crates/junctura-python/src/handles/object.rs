//! Objects that a consumer has received.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversion::buffer::ViewCount;
use crate::conversion::data::arrays;
use crate::conversion::values;
use crate::model::schema::PySchema;
use crate::model::version::PyVersion;
use crate::runtime::ending;
use crate::runtime::error::{OrRaise, closed, invalid, raise};

/// A received object: its attributes, and its payload in place.
///
/// The object is held until its last view is gone: arrays and memoryviews keep a reference to it. It is released when
/// the object and all its views have been garbage-collected, except at the exit of the program. `release()` and `with`
/// release it at once; a `with` block that ends with an exception gives it back for redelivery. Only `bytes(obj)`
/// copies the payload; `array()` and `memoryview(obj)` are views, and `len(obj)` is its size in bytes.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     version = pool.offer(b"payload", name="a", colour="red")
/// ...     obj = pool.demand(name="a")
/// ...     print(bytes(obj), len(obj), obj["colour"], obj.key)
/// b'payload' 7 red {space=default}{}{name=a}
#[pyclass(module = "junctura", name = "Object", frozen, weakref)]
pub(crate) struct PyReceived {
    version: junctura::Version,
    views: ViewCount,
    inner: Mutex<Option<HeldPayload>>,
}

struct HeldPayload {
    object: junctura::Object,
    _counted: Option<HoldCount>,
}

/// How many objects of a follow are held.
#[derive(Clone, Debug, Default)]
pub(crate) struct FollowHoldings(Arc<AtomicUsize>);

impl FollowHoldings {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) -> HoldCount {
        self.0.fetch_add(1, Ordering::Relaxed);
        HoldCount(Arc::clone(&self.0))
    }
}

struct HoldCount(Arc<AtomicUsize>);

impl Drop for HoldCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PyReceived {
    pub(crate) fn new(object: junctura::Object, holdings: Option<&FollowHoldings>) -> Self {
        let version = object.version();
        let held = HeldPayload {
            object,
            _counted: holdings.map(FollowHoldings::add),
        };
        Self {
            version,
            views: ViewCount::default(),
            inner: Mutex::new(Some(held)),
        }
    }

    /// Pins the object: a view exists whose end cannot be observed.
    pub(crate) fn pin(&self) {
        self.views.stay();
    }

    fn lock(&self) -> MutexGuard<'_, Option<HeldPayload>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<R>(&self, py: Python<'_>, at: impl FnOnce(&junctura::Object) -> PyResult<R>) -> PyResult<R> {
        match &*self.lock() {
            Some(held) => at(&held.object),
            None => Err(closed(py, "object", "it was released")),
        }
    }
}

#[pymethods]
impl PyReceived {
    /// The names and values of the attributes, those of the key first, as a new dictionary each time.
    ///
    /// Integers and floats are numbers. A decimal is an int if it is whole, else a float, or a `decimal.Decimal` if no
    /// float prints the same. Strings, dates, times, steps, timestamps and durations are canonical strings.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.look(py, |object| {
            values::attributes(py, object.schema(), object.attributes())
        })
    }

    /// The canonical key.
    #[getter]
    fn key(&self, py: Python<'_>) -> PyResult<String> {
        self.look(py, |object| Ok(object.key().to_owned()))
    }

    /// The version; available also after the release.
    #[getter]
    fn version(&self) -> PyVersion {
        PyVersion(self.version)
    }

    /// The schema of the object.
    #[getter]
    fn schema(&self, py: Python<'_>) -> PyResult<PySchema> {
        self.look(py, |object| Ok(PySchema(Arc::clone(object.schema()))))
    }

    /// Cursor with which a later follow continues after this object; None for a demanded object.
    #[getter]
    fn cursor(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.look(py, |object| Ok(object.cursor().map(|cursor| cursor.to_string())))
    }

    /// Whether the object existed when its follow began.
    #[getter]
    fn in_snapshot(&self, py: Python<'_>) -> PyResult<bool> {
        self.look(py, |object| Ok(object.in_snapshot()))
    }

    /// Whether the object is a redelivery: the same group or named requirement delivered it before to a client that
    /// disconnected before releasing it, or gave it back.
    #[getter]
    fn redelivered(&self, py: Python<'_>) -> PyResult<bool> {
        self.look(py, |object| Ok(object.redelivered()))
    }

    /// Whether the object was staged in an incomplete bundle when it was received; it then has no version yet (sequence
    /// number 0).
    #[getter]
    fn staged(&self, py: Python<'_>) -> PyResult<bool> {
        self.look(py, |object| Ok(object.is_staged()))
    }

    /// The number of the client that offered it.
    #[getter]
    fn producer(&self, py: Python<'_>) -> PyResult<u32> {
        self.look(py, |object| Ok(object.producer()))
    }

    /// The transport of the payload: `shared` (memory that both map), `inline` (inside the message), `file` (spilled,
    /// and read from the server's file tier), `tcp` (over a network), or `store` (from the store behind the pool).
    #[getter]
    fn transport(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.look(py, |object| {
            Ok(match object.transport() {
                junctura::Transport::Shared => "shared",
                junctura::Transport::Inline => "inline",
                junctura::Transport::File => "file",
                junctura::Transport::Tcp => "tcp",
                junctura::Transport::Store => "store",
            })
        })
    }

    /// Size of the payload in bytes.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |object| Ok(object.len()))
    }

    /// Whether it was released.
    #[getter]
    fn released(&self) -> bool {
        self.lock().is_none()
    }

    /// get(name, default=None)
    /// --
    ///
    /// Returns the value of an attribute, by its name or an alias; `default` if the object does not have it.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.look(py, |object| match object.get(name) {
            Some(text) => values::value(py, object.schema(), name, text).map(Some),
            None => Ok(default),
        })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.look(py, |object| match object.get(name) {
            Some(text) => values::value(py, object.schema(), name, text),
            None => Err(no_attribute(py, name, object.key())),
        })
    }

    /// array(dtype=None, shape=None)
    /// --
    ///
    /// Returns the payload as a read-only array, without a copy. The array and its views keep the object held.
    ///
    /// Parameters
    /// ----------
    /// dtype, shape : optional
    ///     Type and shape of the array. Defaults to the attributes `dtype` and `shape` of the offer; without these
    ///     attributes the array has bytes. With `dtype` alone the array has one dimension.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     The payload does not fit; or its type is unknown: the schema has no attribute `dtype`, and none was given.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     version = pool.offer(numpy.eye(2, dtype="i2"), name="one")
    /// ...     pool.demand(name="one").array()
    /// array([[1, 0],
    ///        [0, 1]], dtype=int16)
    #[pyo3(signature = (dtype=None, shape=None))]
    pub(crate) fn array<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if dtype.is_some() {
            return arrays(slf.py())?.call_method1("seen", (slf, dtype, shape));
        }
        let own = slf.get().look(slf.py(), |object| {
            Ok(PayloadForm::of(object.schema(), |name| {
                object.get(name).map(str::to_owned)
            }))
        })?;
        own.view(slf, shape)
    }

    /// Releases the object, and notifies the server at once.
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     Views of the object are alive: it stays held.
    /// Disconnected, Closed
    ///     The server cannot be notified; the object is released nevertheless.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        match self.take(py)? {
            Some(held) => py.detach(|| held.object.release()).or_raise(py),
            None => Ok(()),
        }
    }

    /// Gives the object back without completing it: the group or requirement that delivered it redelivers it to the
    /// next reader. An object that was received in another way is released.
    ///
    /// Raises
    /// ------
    /// InvalidArgument, Disconnected, Closed
    ///     As `release()`.
    fn give_back(&self, py: Python<'_>) -> PyResult<()> {
        match self.take(py)? {
            Some(held) => py.detach(|| held.object.give_back()).or_raise(py),
            None => Ok(()),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Releases the object; if an exception ends the block, gives it back (`give_back()`). If views are alive, both
    /// wait for the last one.
    fn __exit__(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let is_done = raised.is_none();
        if self.views.count() > 0 {
            if !is_done && let Some(held) = &mut *self.lock() {
                held.object.leave_undone();
            }
            return Ok(());
        }
        match self.take(py)? {
            Some(held) if !is_done => py.detach(|| held.object.give_back()).or_raise(py),
            _ => Ok(()),
        }
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.nbytes(py)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        match &*self.lock() {
            Some(HeldPayload { object, .. }) => {
                format!(
                    "<junctura.Object {} {}, {} bytes>",
                    object.key(),
                    self.version,
                    object.len()
                )
            }
            None => format!("<junctura.Object {}, released>", self.version),
        }
    }

    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        this.look(slf.py(), |object| {
            // SAFETY: `view` is Python's. The payload stays where it is while the object is held, and it is held while the
            // view keeps `slf`: neither `release` nor `__exit__` gives it back under a view.
            unsafe { this.views.show(view, flags, slf.as_any(), object.payload(), false) }
        })
    }

    #[allow(unsafe_code)]
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.hide();
    }
}

impl Drop for PyReceived {
    /// An object that the program did not release before it exits is not completed.
    fn drop(&mut self) {
        if ending::is_ending()
            && let Some(held) = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
        {
            held.object.leave_undone();
        }
    }
}

impl PyReceived {
    fn take(&self, py: Python<'_>) -> PyResult<Option<HeldPayload>> {
        let mut inner = self.lock();
        match self.views.count() {
            0 => Ok(inner.take()),
            views => Err(invalid(
                py,
                "object",
                format!("{views} views of it are alive, arrays or memoryviews"),
            )),
        }
    }
}

/// The form of a payload, according to its attributes.
pub(crate) struct PayloadForm {
    dtype: Option<String>,
    /// Extents with `/` between them.
    shape: Option<String>,
    /// The name of a schema that cannot describe the form.
    silent: Option<String>,
}

impl PayloadForm {
    pub(crate) fn of(schema: &junctura::Schema, get: impl Fn(&str) -> Option<String>) -> Self {
        let is_said = schema.is_open() || schema.find("dtype").is_some();
        Self {
            dtype: get("dtype"),
            shape: get("shape"),
            silent: (!is_said).then(|| schema.name().to_owned()),
        }
    }

    /// Returns the bytes of a buffer as their array, or in another shape.
    pub(crate) fn view<'py>(
        self,
        buffer: &Bound<'py, PyAny>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let own = (buffer, self.dtype, self.shape, self.silent, shape);
        arrays(buffer.py())?.call_method1("own", own)
    }
}

/// The error for an attribute that does not exist.
pub(crate) fn no_attribute(py: Python<'_>, name: &str, key: &str) -> PyErr {
    raise(
        py,
        &junctura::Error::new(junctura::Code::NotFound, name, format!("{key} has no such attribute")),
    )
}
