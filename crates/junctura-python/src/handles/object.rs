//! Objects that a consumer has received.

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversion::buffer::ViewCount;
use crate::conversion::data::arrays;
use crate::conversion::payload_form::PayloadForm;
use crate::conversion::values;
use crate::model::schema::PySchema;
use crate::model::version::PyVersion;
use crate::runtime::ending;
use crate::runtime::error::{OrRaise, closed, raise};

/// A received object: its attributes, and its payload in place.
///
/// `release()` and the end of its `with` block release it; a `with` block that ends with an exception gives it back for
/// redelivery. A loop over a follow releases it when the loop waits for the next object and nothing but the loop
/// variable and arrays refers to it. Otherwise it is released when the object and all its views have been
/// garbage-collected, except at the exit of the program. Views stay valid after the release: the memory of the payload
/// is reused when the last view has ended. Only `bytes(obj)` copies the payload; `array()` and `memoryview(obj)` are
/// views, and `len(obj)` is its size in bytes.
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
    inner: Mutex<PayloadState>,
}

enum PayloadState {
    Held(HeldPayload),
    Released,
}

struct HeldPayload {
    object: junctura::Object,
    counted: Option<HoldCount>,
    looped: Option<LoopEntry>,
    stage: HoldStage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HoldStage {
    Unreleased,
    /// A loop has released it, and it can still be read.
    Completed,
    /// It was released, and there are views of its payload.
    Viewed,
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

/// Effect of a release on the claim of a requirement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReleaseKind {
    Done,
    /// As a drop: the server may be notified of several releases together.
    DoneWithOthers,
    Undone,
}

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
            counted: holdings.map(FollowHoldings::add),
            looped: None,
            stage: HoldStage::Unreleased,
        };
        Self {
            version,
            views: ViewCount::default(),
            inner: Mutex::new(PayloadState::Held(held)),
        }
    }

    /// Pins the object: a view exists whose end cannot be observed.
    pub(crate) fn pin(&self) {
        self.views.stay();
    }

    fn lock(&self) -> MutexGuard<'_, PayloadState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn look<R>(&self, py: Python<'_>, at: impl FnOnce(&junctura::Object) -> PyResult<R>) -> PyResult<R> {
        match &*self.lock() {
            PayloadState::Held(held) if held.stage != HoldStage::Viewed => at(&held.object),
            PayloadState::Held(_) | PayloadState::Released => Err(closed(
                py,
                "object",
                "it was released; use it before, or within its `with` block",
            )),
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
        !matches!(&*self.lock(), PayloadState::Held(held) if held.stage == HoldStage::Unreleased)
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

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.look(py, |object| Ok(object.get(name).is_some()))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.look(py, |object| match object.get(name) {
            Some(text) => values::value(py, object.schema(), name, text),
            None => Err(no_attribute(py, name, object.key(), object.attributes())),
        })
    }

    /// array(dtype=None, shape=None)
    /// --
    ///
    /// Returns the payload as a read-only array, without a copy. The array and its views stay valid after the release of
    /// the object, and an object that is not released stays held while they exist.
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
    ///     The payload does not fit; its type is unknown: the schema has no attribute `dtype`, and none was given; or
    ///     the object is an array in pieces, which `Pool.demand_array` returns.
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
        let form = slf.get().look(slf.py(), |object| {
            refuse_pieces(slf.py(), object)?;
            Ok(PayloadForm::of(object.schema(), object.payload(), |name| {
                object.get(name)
            }))
        })?;
        form.view(slf, shape)
    }

    /// Releases the object, and notifies the server at once. Its views stay valid.
    ///
    /// Raises
    /// ------
    /// Disconnected, Closed
    ///     The server cannot be notified; the object is released nevertheless.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        match self.take(ReleaseKind::Done) {
            Some(held) => py.detach(|| held.object.release()).or_raise(py),
            None => Ok(()),
        }
    }

    /// Gives the object back without completing it: the group or requirement that delivered it redelivers it to the
    /// next reader. It does not count as released for `junctura.Released`, however it was received. Its views stay valid.
    ///
    /// Raises
    /// ------
    /// Disconnected, Closed
    ///     As `release()`.
    fn give_back(&self, py: Python<'_>) -> PyResult<()> {
        match self.take(ReleaseKind::Undone) {
            Some(held) => py.detach(|| held.object.give_back()).or_raise(py),
            None => Ok(()),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Releases the object; if an exception ends the block, gives it back (`give_back()`). Its views stay valid.
    fn __exit__(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if raised.is_none() {
            drop(self.take(ReleaseKind::DoneWithOthers));
            return Ok(());
        }
        self.give_back(py)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.nbytes(py)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        match &*self.lock() {
            PayloadState::Held(HeldPayload { object, stage, .. }) if *stage != HoldStage::Viewed => {
                format!(
                    "<junctura.Object {} {}, {} bytes>",
                    object.key(),
                    self.version,
                    object.len()
                )
            }
            PayloadState::Held(_) | PayloadState::Released => format!("<junctura.Object {}, released>", self.version),
        }
    }

    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        this.look(slf.py(), |object| {
            // SAFETY: `view` is Python's. The payload stays where it is while `slf` has it, and the view keeps `slf`: a
            // release under a view leaves the payload in `slf` (`take`) until the last view has ended.
            unsafe { this.views.show(view, flags, slf.as_any(), object.payload(), false) }
        })
    }

    #[allow(unsafe_code)]
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        let mut inner = self.lock();
        self.views.hide();
        let unused = match &*inner {
            PayloadState::Held(held) if held.stage == HoldStage::Viewed && self.views.count() == 0 => {
                std::mem::replace(&mut *inner, PayloadState::Released)
            }
            _ => return,
        };
        drop(inner);
        drop(unused);
    }
}

impl Drop for PyReceived {
    /// An object that the program did not release before it exits is not completed.
    fn drop(&mut self) {
        if ending::is_ending()
            && let PayloadState::Held(held) = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
            && held.stage == HoldStage::Unreleased
        {
            held.object.leave_undone();
        }
    }
}

impl PyReceived {
    /// Takes the payload, to release it. Under views the object is released here, and its payload stays until the last
    /// view has ended.
    fn take(&self, kind: ReleaseKind) -> Option<HeldPayload> {
        let mut inner = self.lock();
        let PayloadState::Held(held) = &mut *inner else {
            return None;
        };
        if held.stage == HoldStage::Viewed {
            return None;
        }
        if self.views.count() > 0 {
            match kind {
                ReleaseKind::Done => held.object.release_mapped(),
                ReleaseKind::DoneWithOthers => held.object.release_mapped_with_others(),
                ReleaseKind::Undone => {
                    held.object.leave_undone();
                    held.object.release_mapped();
                }
            }
            held.leave_counts(HoldStage::Viewed);
            return None;
        }
        held.looped = None;
        match std::mem::replace(&mut *inner, PayloadState::Released) {
            PayloadState::Held(held) => Some(held),
            PayloadState::Released => None,
        }
    }

    /// Number of the references that views have to it.
    fn views(&self) -> isize {
        isize::try_from(self.views.count()).unwrap_or(isize::MAX)
    }

    /// Releases it; it can still be read.
    fn complete(&self) {
        if let PayloadState::Held(held) = &mut *self.lock()
            && held.stage == HoldStage::Unreleased
        {
            held.object.release_mapped();
            held.leave_counts(HoldStage::Completed);
        }
    }
}

impl HeldPayload {
    /// It is released: neither its follow nor its loop counts it any more.
    fn leave_counts(&mut self, stage: HoldStage) {
        self.counted = None;
        self.looped = None;
        self.stage = stage;
    }
}

/// The objects that one loop over a follow has received, as far as they are not released.
#[pyclass(module = "junctura._native", name = "_LoopedObjects", frozen)]
pub(crate) struct LoopedObjects {
    listed: Arc<Mutex<LoopList>>,
    /// Whether the loop has a variable that only the loop sets: then one reference to the newest object is the variable's.
    has_variable: bool,
}

/// A list that objects leave by themselves when they are released or deallocated.
#[derive(Default)]
struct LoopList {
    objects: Vec<Option<ListedObject>>,
    free: Vec<usize>,
    newest: Option<usize>,
}

/// A pointer to a `PyReceived` of Python, without a reference to it.
#[derive(Clone, Copy)]
struct ListedObject(NonNull<ffi::PyObject>);

// SAFETY: the pointer is followed only by a thread that is attached to Python (`LoopList::held`).
#[allow(unsafe_code)]
unsafe impl Send for ListedObject {}

/// The place of an object in the list of its loop, which it leaves when this is dropped.
struct LoopEntry {
    listed: Arc<Mutex<LoopList>>,
    index: usize,
}

impl Drop for LoopEntry {
    fn drop(&mut self) {
        lock(&self.listed).remove(self.index);
    }
}

impl LoopList {
    fn add(&mut self, object: ListedObject) -> usize {
        let index = self.free.pop().unwrap_or(self.objects.len());
        if index == self.objects.len() {
            self.objects.push(None);
        }
        self.objects[index] = Some(object);
        self.newest = Some(index);
        index
    }

    fn remove(&mut self, index: usize) {
        self.objects[index] = None;
        self.free.push(index);
        if self.newest == Some(index) {
            self.newest = None;
        }
    }

    /// The objects, each with whether it is the newest that the loop has received.
    #[allow(unsafe_code)]
    fn held<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyReceived>, bool)> {
        let listed = self.objects.iter().enumerate();
        listed
            .filter_map(|(index, object)| {
                let pointer = (*object)?.0.as_ptr();
                // SAFETY: an object leaves the list before its memory is freed: its payload has its `LoopEntry`. One that
                // has no reference is being deallocated, and gets none again. `py`: no other thread of Python runs.
                let object = unsafe {
                    if ffi::Py_REFCNT(pointer) == 0 {
                        return None;
                    }
                    Bound::from_borrowed_ptr(py, pointer).cast_into_unchecked::<PyReceived>()
                };
                Some((object, self.newest == Some(index)))
            })
            .collect()
    }
}

fn lock(listed: &Mutex<LoopList>) -> MutexGuard<'_, LoopList> {
    listed.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl LoopedObjects {
    #[new]
    pub(crate) fn new(has_variable: bool) -> LoopedObjects {
        LoopedObjects {
            listed: Arc::default(),
            has_variable,
        }
    }

    /// The loop has received an item.
    pub(crate) fn note(&self, item: &Bound<'_, PyAny>) {
        let Ok(object) = item.cast::<PyReceived>() else {
            lock(&self.listed).newest = None;
            return;
        };
        let Some(pointer) = NonNull::new(object.as_ptr()) else {
            return;
        };
        if let PayloadState::Held(held) = &mut *object.get().lock()
            && held.stage == HoldStage::Unreleased
            && held.looped.is_none()
        {
            let index = lock(&self.listed).add(ListedObject(pointer));
            held.looped = Some(LoopEntry {
                listed: Arc::clone(&self.listed),
                index,
            });
        }
    }

    /// The loop waits for its next object: releases the objects to which only the loop variable and arrays still refer. Objects
    /// that the program has stored elsewhere stay held.
    pub(crate) fn complete(&self, py: Python<'_>) {
        // The list is not locked while objects leave it.
        let held = lock(&self.listed).held(py);
        for (object, is_newest) in held {
            // SAFETY: `object` is a live object of Python's.
            #[allow(unsafe_code)]
            let references = unsafe { ffi::Py_REFCNT(object.as_ptr()) };
            // One reference is here.
            let elsewhere = references - 1 - object.get().views();
            if elsewhere <= isize::from(self.has_variable && is_newest) {
                object.get().complete();
            }
        }
    }
}

/// The error for an attribute that an object does not have, with those that it has.
pub(crate) fn no_attribute<'o>(
    py: Python<'_>,
    name: &str,
    key: &str,
    has: impl Iterator<Item = (&'o str, &'o str)>,
) -> PyErr {
    let names: Vec<&str> = has.map(|(name, _)| name).collect();
    let cause = format!("{key} has no such attribute; it has {}", names.join(", "));
    raise(py, &junctura::Error::new(junctura::Code::NotFound, name, cause))
}

/// Refuses an array in pieces: its payload is a description, and not its values.
pub(crate) fn refuse_pieces(py: Python<'_>, object: &junctura::Object) -> PyResult<()> {
    if !object.is_in_pieces() {
        return Ok(());
    }
    let cause = "it is an array in pieces: `pool.demand_array(obj.key)` returns its values";
    Err(raise(
        py,
        &junctura::Error::new(junctura::Code::InvalidArgument, "array", cause),
    ))
}
