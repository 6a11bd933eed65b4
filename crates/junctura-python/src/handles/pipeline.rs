//! Offers that do not wait for each acknowledgment.

use std::sync::{Mutex, MutexGuard, PoisonError};

use junctura::Pool;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;

use crate::conversion::data::{PreparedData, ReadyPayload};
use crate::conversion::options::offer_options;
use crate::handles::allocation::FilledPayload;
use crate::handles::bundle::current;
use crate::runtime::error::{OrRaise, closed};
use crate::runtime::interrupt::drop_detached;
use crate::runtime::patience::offering;

/// A stream of offers in flight; created by `Pool.pipeline`. In the block of a bundle, its objects become members of
/// the bundle.
///
/// `offer` returns at once while fewer than `window` offers are unacknowledged. The end of its `with` block waits for
/// all offers and raises the first failure.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     with pool.pipeline(window=64) as pipeline:
/// ...         for name in "abc":
/// ...             number = pipeline.offer(b"payload", name=name)
/// ...     len(pool.list())
/// 3
#[pyclass(module = "junctura", name = "Pipeline", frozen)]
pub(crate) struct PyPipeline {
    pool: Pool,
    inner: Mutex<Option<junctura::Pipeline>>,
}

impl PyPipeline {
    pub(crate) fn new(py: Python<'_>, pool: &Pool, window: usize) -> PyResult<Self> {
        let bundle = current(py, pool);
        let pipeline = bundle.map_or_else(|| pool.pipeline(window), |bundle| bundle.pipeline(window));
        let pipeline = pipeline.or_raise(py)?;
        Ok(Self {
            pool: pool.clone(),
            inner: Mutex::new(Some(pipeline)),
        })
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Option<junctura::Pipeline>> {
        self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut junctura::Pipeline) -> junctura::Result<R> + Send,
    ) -> PyResult<R> {
        match self.lock(py).as_mut() {
            Some(pipeline) => offering(py, &self.pool, || run(pipeline)),
            None => Err(closed(py, "pipeline", "its block has ended")),
        }
    }
}

#[pymethods]
impl PyPipeline {
    /// Offers an object, as `Pool.offer`, without waiting for the acknowledgment; returns its number in this pipeline.
    /// Blocks only while the window is full. With `durability="durable"` it is acknowledged when it is archived.
    ///
    /// Raises
    /// ------
    /// Error
    ///     This offer is invalid, or an earlier offer failed and its failure was not reported yet; then this offer was
    ///     not sent.
    #[pyo3(signature = (data, attributes=None, /, *, schema=None, retention=None, if_wanted=false, durability=None, **keywords))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn offer<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        retention: Option<&Bound<'py, PyAny>>,
        if_wanted: bool,
        durability: Option<&str>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<u64> {
        let options = offer_options(schema, retention, if_wanted, durability)?;
        let prepared = PreparedData::new(&self.pool, data, attributes, keywords, &options)?;
        let lists = prepared.attributes.lists(py)?;
        let given = prepared.attributes.given(py, &lists)?;
        let content = prepared.content(py, &given)?;
        self.with(py, |pipeline| {
            let given = given.iter().copied();
            match content {
                ReadyPayload::Bytes(bytes) | ReadyPayload::Filled(FilledPayload::Own(bytes)) => {
                    pipeline.offer_with(given, bytes, options)
                }
                ReadyPayload::Filled(FilledPayload::Slot(slot)) => pipeline.offer_allocation_with(slot, given, options),
            }
        })
    }

    /// Waits for every offer; all are visible afterwards, and the durable ones are archived.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The first failure that was not reported yet; the other offers succeeded.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, junctura::Pipeline::flush)
    }

    /// Sends the buffered offers, without waiting for acknowledgments.
    fn push(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, junctura::Pipeline::push)
    }

    /// Number of offers whose acknowledgment this pipeline has not received.
    #[getter]
    fn outstanding(&self, py: Python<'_>) -> usize {
        self.lock(py).as_ref().map_or(0, junctura::Pipeline::outstanding)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let Some(mut pipeline) = self.lock(py).take() else {
            return Ok(());
        };
        if !kind.is_none() {
            // Another failure is being raised already.
            drop_detached(pipeline);
            return Ok(());
        }
        offering(py, &self.pool, || pipeline.flush())
    }
}

impl Drop for PyPipeline {
    fn drop(&mut self) {
        drop_detached(self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}
