//! Offers that take effect together.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use junctura::{Awaited, BundleOptions, Pool, WaitSource};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;

use crate::conversion::data::PreparedData;
use crate::conversion::given::GivenAttributes;
use crate::conversion::options::{offer_options, timeout as read_timeout};
use crate::model::version::PyVersion;
use crate::pool::offer_many::stage_many;
use crate::runtime::error::{OrRaise, closed};
use crate::runtime::interrupt::drop_detached;

thread_local! {
    /// The blocks of bundles that this thread is in, the innermost last.
    static BLOCKS: RefCell<Vec<BundleBlock>> = const { RefCell::new(Vec::new()) };
}

/// A block that a thread has entered. Another thread may leave it without notifying this one, so the block records
/// whether it was left.
struct BundleBlock {
    pool: Pool,
    inner: Weak<Mutex<BundleInner>>,
}

/// The bundle in whose block this thread is: its offers in this pool become members of the bundle.
pub(crate) fn current(py: Python<'_>, pool: &Pool) -> Option<Arc<junctura::Bundle>> {
    BLOCKS.with_borrow_mut(|blocks| {
        while let Some(at) = blocks.iter().rposition(|block| block.pool == *pool) {
            if let Some(bundle) = blocks[at].bundle(py) {
                return Some(bundle);
            }
            blocks.remove(at);
        }
        None
    })
}

impl BundleBlock {
    /// The block's bundle, unless it was left.
    fn bundle(&self, py: Python<'_>) -> Option<Arc<junctura::Bundle>> {
        lock(py, &*self.inner.upgrade()?).bundle.clone()
    }
}

fn lock<'a>(py: Python<'_>, inner: &'a Mutex<BundleInner>) -> MutexGuard<'a, BundleInner> {
    inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// A staged member of a bundle. `Completed.version` returns its version once the bundle is complete.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     with pool.bundle() as bundle:
/// ...         member = bundle.offer(b"payload", name="a")
/// ...     print(bundle.completed.version(member).sequence)
/// 1
#[pyclass(module = "junctura", name = "Staged", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyStaged(pub(crate) junctura::Staged);

#[pymethods]
impl PyStaged {
    fn __repr__(&self) -> &'static str {
        "<junctura.Staged>"
    }
}

/// A bundle that has all its members.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     with pool.bundle() as bundle:
/// ...         members = bundle.offer_many([(b"1", {"name": "a"}), (b"2", {"name": "b"})])
/// ...     print(bundle.completed.objects, bundle.completed.first.sequence)
/// 2 1
#[pyclass(module = "junctura", name = "Completed", frozen)]
pub(crate) struct PyCompleted(junctura::Completed);

#[pymethods]
impl PyCompleted {
    /// The version of the first object in key order; the versions of the others follow consecutively. None if the
    /// bundle has no objects, or is not visible yet because the enclosing bundle lacks members.
    #[getter]
    fn first(&self) -> Option<PyVersion> {
        self.0.first().map(PyVersion)
    }

    /// Number of objects that became visible together, including those of the enclosing and nested bundles.
    #[getter]
    fn objects(&self) -> u64 {
        self.0.objects()
    }

    /// version(member)
    /// --
    ///
    /// Returns the version of a member that was offered through this handle of the bundle; None for a member that
    /// another one with the same key replaced.
    fn version(&self, member: &PyStaged) -> Option<PyVersion> {
        self.0.version(member.0).map(PyVersion)
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Completed, {} objects>", self.0.objects())
    }
}

/// A bundle: objects that become visible together, or not at all; opened by `Pool.bundle`.
///
/// Inside its `with` block, offers to the pool by the thread that entered the block become members of the bundle, until
/// a thread leaves it. The end of the block seals the bundle, unless its number of members was declared: then other
/// producers complete it, or it is complete already. An exception in the block publishes nothing: a bundle without a
/// path is aborted; one with a path is left to the other producers.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     with pool.bundle() as bundle:
/// ...         member = bundle.offer(b"2", name="b")
/// ...         version = pool.offer(b"1", name="a")  # of this thread: a member, too
/// ...         print(len(pool.list()))
/// ...     print([entry["name"] for entry in pool.list()], bundle.completed.version(member).sequence)
/// 0
/// ['a', 'b'] 2
#[pyclass(module = "junctura", name = "Bundle", frozen)]
pub(crate) struct PyBundle {
    pool: Pool,
    path: Option<String>,
    /// The number of members was declared here.
    counts: bool,
    inner: Arc<Mutex<BundleInner>>,
}

struct BundleInner {
    bundle: Option<Arc<junctura::Bundle>>,
    completed: Option<junctura::Completed>,
}

impl PyBundle {
    pub(crate) fn open(
        py: Python<'_>,
        pool: &Pool,
        path: Option<String>,
        attributes: &GivenAttributes<'_>,
        options: BundleOptions<'_>,
    ) -> PyResult<Self> {
        let lists = attributes.lists(py)?;
        let given = attributes.given(py, &lists)?;
        let opened = py.detach(|| match &path {
            Some(path) => pool.open_bundle(path, given.iter().copied(), options),
            None => pool.bundle(),
        });
        Ok(Self::of(pool, path, options.members.is_some(), opened.or_raise(py)?))
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn of(pool: &Pool, path: Option<String>, counts: bool, bundle: junctura::Bundle) -> Self {
        Self {
            pool: pool.clone(),
            path,
            counts,
            inner: Arc::new(Mutex::new(BundleInner {
                bundle: Some(Arc::new(bundle)),
                completed: None,
            })),
        }
    }

    /// The result of the completion, if it is known here.
    pub(crate) fn known(&self, py: Python<'_>) -> Option<PyCompleted> {
        self.lock(py).completed.clone().map(PyCompleted)
    }

    pub(crate) fn noted(&self, py: Python<'_>, completed: junctura::Completed) -> PyCompleted {
        self.note(py, &completed);
        PyCompleted(completed)
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, BundleInner> {
        lock(py, &self.inner)
    }

    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<junctura::Bundle>> {
        let bundle = self.lock(py).bundle.clone();
        bundle.ok_or_else(|| closed(py, "bundle", "it was left"))
    }

    pub(crate) fn take(&self, py: Python<'_>) -> Option<Arc<junctura::Bundle>> {
        let bundle = self.lock(py).bundle.take()?;
        BLOCKS.with_borrow_mut(|blocks| blocks.retain(|block| !self.is_of(block)));
        Some(bundle)
    }

    fn is_of(&self, block: &BundleBlock) -> bool {
        block.inner.as_ptr() == Arc::as_ptr(&self.inner)
    }

    /// Waits until it is visible or aborted; nothing to wait for if that is known, or if it was left.
    pub(crate) fn awaiting(&self, py: Python<'_>) -> WaitSource {
        let bundle = {
            let BundleInner { bundle, completed } = &*self.lock(py);
            bundle.clone().filter(|_| completed.is_none())
        };
        bundle.map_or_else(WaitSource::ready, |bundle| py.detach(|| bundle.awaiting()))
    }

    /// Stores final results: a nested bundle may have all its members, and no versions yet.
    fn note(&self, py: Python<'_>, completed: &junctura::Completed) {
        if completed.first().is_some() || completed.objects() == 0 {
            self.lock(py).completed = Some(completed.clone());
        }
    }
}

#[pymethods]
impl PyBundle {
    /// The path of the bundle, or None.
    #[getter]
    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Offers an object into the bundle; returns when it is staged, or visible if it completed the bundle. A second
    /// object with the same key replaces the earlier member.
    ///
    /// Parameters
    /// ----------
    /// data, attributes, schema, retention, **keywords
    ///     As for `Pool.offer`. The time of a retention starts when the bundle becomes visible.
    ///
    /// Returns
    /// -------
    /// Staged
    ///
    /// Raises
    /// ------
    /// BundleFull
    ///     The bundle has all its members.
    /// BundleClosed
    ///     The bundle is complete.
    /// Closed
    ///     The bundle was aborted, or left by this handle.
    /// PoolFull
    ///     Staged members fill the memory; reported at once, since only the end of a bundle could free it.
    /// Error
    ///     As for `Pool.offer`.
    #[pyo3(signature = (data, attributes=None, /, *, schema=None, retention=None, durability=None, **keywords))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn offer<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        retention: Option<&Bound<'py, PyAny>>,
        durability: Option<&str>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyStaged> {
        let options = offer_options(schema, retention, false, durability)?;
        let bundle = self.get(py)?;
        PreparedData::new(&self.pool, data, attributes, keywords, &options)?
            .stage(py, &self.pool, &bundle, options)
            .map(PyStaged)
    }

    /// Offers many objects into the bundle and returns when all are staged: one round trip for about `window` objects.
    ///
    /// Parameters
    /// ----------
    /// objects, window, schema, retention, durability
    ///     As for `Pool.offer_many`.
    ///
    /// Returns
    /// -------
    /// list of Staged
    ///
    /// Raises
    /// ------
    /// Error
    ///     The error of the first object that failed, with its position in `index`. Others may be staged.
    #[pyo3(signature = (objects, *, window=1024, schema=None, retention=None, durability=None))]
    fn offer_many(
        &self,
        py: Python<'_>,
        objects: &Bound<'_, PyAny>,
        window: usize,
        schema: Option<&str>,
        retention: Option<&Bound<'_, PyAny>>,
        durability: Option<&str>,
    ) -> PyResult<Vec<PyStaged>> {
        let bundle = self.get(py)?;
        stage_many(
            py,
            &self.pool,
            &bundle,
            objects,
            offer_options(schema, retention, false, durability)?,
            window,
        )
    }

    /// Seals the bundle: it has all its members. Returns when it is visible (a nested bundle: when it is staged in the
    /// enclosing one).
    ///
    /// Returns
    /// -------
    /// Completed
    ///
    /// Raises
    /// ------
    /// Conflict
    ///     Declared members are missing, or a nested bundle is not complete. The bundle stays open.
    /// BundleClosed
    ///     The bundle is complete.
    /// Closed
    ///     The bundle was aborted, or left by this handle.
    fn seal(&self, py: Python<'_>) -> PyResult<PyCompleted> {
        let bundle = self.get(py)?;
        let completed = py.detach(|| bundle.seal()).or_raise(py)?;
        self.note(py, &completed);
        Ok(PyCompleted(completed))
    }

    /// Aborts the bundle for all producers that have it open: staged members are freed and never become visible.
    /// Returns the number of objects.
    ///
    /// Raises
    /// ------
    /// BundleClosed
    ///     The bundle is complete.
    fn abort(&self, py: Python<'_>) -> PyResult<u64> {
        let bundle = self.get(py)?;
        py.detach(|| bundle.abort()).or_raise(py)
    }

    /// wait(timeout=None)
    /// --
    ///
    /// Waits until the bundle is visible, at most `timeout` seconds.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     The bundle was not complete in time.
    /// Closed
    ///     The bundle was aborted, or left by this handle.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<PyCompleted> {
        let timeout = read_timeout(py, timeout)?;
        let known = self.lock(py).completed.clone();
        if let Some(completed) = known {
            return Ok(PyCompleted(completed));
        }
        let bundle = self.get(py)?;
        let completed = py.detach(|| bundle.wait(timeout)).or_raise(py)?;
        self.note(py, &completed);
        Ok(PyCompleted(completed))
    }

    /// The result of the completion once the bundle is complete; else None.
    #[getter]
    fn completed(&self, py: Python<'_>) -> PyResult<Option<PyCompleted>> {
        let BundleInner { bundle, completed } = &mut *self.lock(py);
        if completed.is_none()
            && let Some(bundle) = bundle
        {
            *completed = py.detach(|| bundle.completed()).or_raise(py)?;
        }
        Ok(completed.clone().map(PyCompleted))
    }

    /// Leaves the bundle to the other producers, or to one that opens it before the orphan timeout; a bundle without a
    /// path is aborted.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        match self.take(py) {
            Some(bundle) => py.detach(|| bundle.leave()).or_raise(py),
            None => Ok(()),
        }
    }

    fn __enter__<'py>(slf: Bound<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        let this = slf.get();
        this.get(py)?;
        let (pool, inner) = (this.pool.clone(), Arc::downgrade(&this.inner));
        BLOCKS.with_borrow_mut(|blocks| blocks.push(BundleBlock { pool, inner }));
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let Some(bundle) = self.take(py) else {
            return Ok(());
        };
        let ended = if kind.is_none() {
            py.detach(|| match bundle.completed()? {
                Some(completed) => Ok(Some(completed)),
                None if self.counts => Ok(None),
                None => bundle.seal().map(Some),
            })
        } else {
            // Leaving the bundle publishes nothing; threads that wait for it find that it was left. Without a server
            // there is nothing to leave.
            let _ = py.detach(|| bundle.leave());
            Ok(None)
        };
        drop_detached(bundle);
        if let Some(completed) = ended.or_raise(py)? {
            self.note(py, &completed);
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        match &self.path {
            Some(path) => format!("<junctura.Bundle {path}>"),
            None => "<junctura.Bundle>".to_owned(),
        }
    }
}

impl Drop for PyBundle {
    fn drop(&mut self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let bundle = inner.bundle.take();
        drop(inner);
        drop_detached(bundle);
    }
}
