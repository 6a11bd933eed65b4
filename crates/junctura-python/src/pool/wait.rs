//! Waiting for several sources at once.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use junctura::{Awaited, Pool, WaitSource};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyList, PyTuple};

use crate::conversion::given::type_name;
use crate::conversion::options::timeout as read_timeout;
use crate::handles::bundle::PyBundle;
use crate::handles::events::PySubscription;
use crate::handles::follow::PyFollow;
use crate::handles::object::PyReceived;
use crate::runtime::error::{OrRaise, invalid, raise};
use crate::runtime::interrupt::drop_detached;

/// A demand that may be pending; created by `Pool.begin_demand`.
///
/// The end of its `with` block, or garbage collection, cancels it.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     pending = pool.begin_demand(name="a")
/// ...     assert pending.try_get() is None
/// ...     version = pool.offer(b"payload", name="a")
/// ...     print(bytes(pending.get()))
/// b'payload'
#[pyclass(module = "junctura", frozen)]
pub(crate) struct PendingDemand {
    inner: Mutex<Option<junctura::Pending<junctura::Object>>>,
}

impl PendingDemand {
    pub(crate) fn new(demand: junctura::Pending<junctura::Object>) -> Self {
        Self {
            inner: Mutex::new(Some(demand)),
        }
    }

    fn take(&self, py: Python<'_>) -> Option<junctura::Pending<junctura::Object>> {
        self.inner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn awaiting(&self, py: Python<'_>) -> WaitSource {
        let inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        inner.as_ref().map_or_else(WaitSource::ready, Awaited::awaiting)
    }
}

#[pymethods]
impl PendingDemand {
    /// Returns the object; waits for it, at most for the timeout of the demand. The object can be taken once.
    ///
    /// Raises
    /// ------
    /// NotFound, Timeout, Gone
    ///     As `Pool.demand`; NotFound also if the result was taken already.
    fn get(&self, py: Python<'_>) -> PyResult<PyReceived> {
        let Some(demand) = self.take(py) else {
            let cause = "its answer was taken already";
            return Err(raise(
                py,
                &junctura::Error::new(junctura::Code::NotFound, "demand", cause),
            ));
        };
        let object = py.detach(|| demand.wait()).or_raise(py)?;
        Ok(PyReceived::new(object, None))
    }

    /// Returns the object if it has arrived; None if not, or if it was taken already.
    ///
    /// Raises
    /// ------
    /// NotFound, Timeout, Gone
    ///     As `Pool.demand`, once.
    fn try_get(&self, py: Python<'_>) -> PyResult<Option<PyReceived>> {
        let mut inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let Some(demand) = inner.as_mut() else { return Ok(None) };
        let object = py.detach(|| demand.try_take()).or_raise(py)?;
        Ok(object.map(|object| PyReceived::new(object, None)))
    }

    /// Cancels the demand.
    fn close(&self, py: Python<'_>) {
        drop_detached(self.take(py));
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _type: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {
        self.close(py);
    }
}

impl Drop for PendingDemand {
    fn drop(&mut self) {
        drop_detached(self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// A timer that fires once or periodically; for `Pool.wait`.
///
/// Parameters
/// ----------
/// after : float, optional
///     Seconds until it fires, once.
/// every : float, optional
///     Period in seconds; missed periods are skipped.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     follow, timer = pool.follow(only_new=True, live="yield"), junctura.Timer(after=0.001)
/// ...     _ = follow.next()  # it is live
/// ...     pool.wait(follow, timer) == [timer], timer.ring()
/// (True, True)
#[pyclass(module = "junctura", name = "Timer", frozen)]
pub(crate) struct PyTimer {
    inner: Mutex<junctura::Timer>,
}

impl PyTimer {
    fn awaiting(&self, py: Python<'_>) -> WaitSource {
        let inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        inner.awaiting()
    }
}

#[pymethods]
impl PyTimer {
    #[new]
    #[pyo3(signature = (*, after=None, every=None))]
    fn new(py: Python<'_>, after: Option<f64>, every: Option<f64>) -> PyResult<Self> {
        let (after, every) = (read_timeout(py, after)?, read_timeout(py, every)?);
        let timer = match (after, every) {
            (Some(time), None) => junctura::Timer::after(time),
            (None, Some(Duration::ZERO)) => return Err(invalid(py, "every", "more than 0 seconds")),
            (None, Some(time)) => junctura::Timer::every(time),
            _ => return Err(invalid(py, "timer", "either after= or every=")),
        };
        Ok(Self {
            inner: Mutex::new(timer),
        })
    }

    /// Returns whether the timer has fired; if so, resets it for its next time.
    fn ring(&self, py: Python<'_>) -> bool {
        let mut inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        inner.ring()
    }
}

/// See `Pool.wait`.
pub(crate) fn wait<'py>(
    py: Python<'py>,
    pool: &Pool,
    on: &Bound<'py, PyTuple>,
    timeout: Option<f64>,
) -> PyResult<Bound<'py, PyList>> {
    let timeout = read_timeout(py, timeout)?;
    let awaiting: Vec<WaitSource> = on.iter().map(|one| awaiting(&one)).collect::<PyResult<_>>()?;
    let places = py.detach(|| {
        let on: Vec<&dyn Awaited> = awaiting.iter().map(|one| one as &dyn Awaited).collect();
        pool.wait(&on, timeout)
    });
    let ready = places.or_raise(py)?.into_iter().map(|place| on.get_item(place));
    PyList::new(py, ready.collect::<PyResult<Vec<_>>>()?)
}

/// The source that such an object waits for.
pub(crate) fn awaiting(one: &Bound<'_, PyAny>) -> PyResult<WaitSource> {
    let py = one.py();
    if let Ok(follow) = one.cast::<PyFollow>() {
        return Ok(follow.get().awaiting(py));
    }
    if let Ok(subscription) = one.cast::<PySubscription>() {
        return Ok(subscription.get().awaiting(py));
    }
    if let Ok(demand) = one.cast::<PendingDemand>() {
        return Ok(demand.get().awaiting(py));
    }
    if let Ok(bundle) = one.cast::<PyBundle>() {
        return Ok(bundle.get().awaiting(py));
    }
    if let Ok(timer) = one.cast::<PyTimer>() {
        return Ok(timer.get().awaiting(py));
    }
    let cause = format!(
        "takes follows, subscriptions, pending demands, bundles and timers, not {}",
        type_name(one)
    );
    Err(invalid(py, "wait", cause))
}
