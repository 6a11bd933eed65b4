//! Reasons: why requests wait, why an object stays or was removed, and what keeps memory.

use junctura::Pending;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::conversion::target::PyTarget;
use crate::model::version::PyVersion;
use crate::pool::PyPool;
use crate::pool::aio::PyAnswer;
use crate::runtime::error::OrRaise;

/// Converts an answer to lists and dicts.
fn document<'py>(py: Python<'py>, answer: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(answer).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

fn answer<T: Serialize + Send + 'static>(pending: Pending<T>) -> PyAnswer {
    PyAnswer::new(pending, |py, answer| Ok(document(py, &answer)?.unbind()))
}

#[pymethods]
impl PyPool {
    /// The requests of all clients that wait, and why: demands, allocations, offers that wait for memory, withdrawals,
    /// drains, durable offers, and bundles that are not visible. Follows and subscriptions do not wait for one thing.
    ///
    /// Parameters
    /// ----------
    /// limit : int
    ///     Number of requests to return at most, in the order of clients.
    ///
    /// Returns
    /// -------
    /// list of dict
    ///     The fields and codes are those of `junctura explain --json`.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     pool.waits()
    /// []
    #[pyo3(signature = (*, limit=1000))]
    fn waits<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyAny>> {
        let waits = py.detach(|| self.inner.reasons().waits(limit)).or_raise(py)?;
        document(py, &waits)
    }

    /// Why an object is in memory, or why it was removed: its retention, the clients that hold it, the requirements that
    /// are owed it. For a selector: why the objects that match are in memory, or why none matches.
    ///
    /// Parameters
    /// ----------
    /// target : str or dict, optional
    ///     A selector, the text of a key, or the attributes of a key.
    /// version : Version, optional
    ///     A version of the key; defaults to the newest. Alone, that of a visible object of any key. Not with a selector.
    /// schema : str, optional
    ///     The schema of the key, if it is not the pool's default.
    /// **key
    ///     Attributes of the key.
    ///
    /// Returns
    /// -------
    /// dict
    ///     The fields and codes are those of `junctura explain --json`. For a selector: the first objects that match, or
    ///     the conditions without which something matches (`without`) with the values that exist and the nearest one, probable
    ///     `mistakes`, and the `arrays` that lack pieces, with the ranks that are missing and their boxes.
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     Nothing is known of the key.
    /// InvalidSelector
    ///     The selector is invalid; the error gives the position.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     version = pool.offer(b"payload", name="a", level="850")
    /// ...     object = pool.explain(name="a")
    /// ...     miss = pool.explain("level=85")["without"][0]
    /// ...     object["state"], object["because"], object["retention"]["rule"], miss["nearest"]
    /// ('visible', ['retention'], 'until_withdrawn', '850')
    #[pyo3(signature = (target=None, /, *, version=None, schema=None, **key))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        version: Option<PyRef<'py, PyVersion>>,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let version = version.map(|version| version.0);
        if let (Some(version), None, true) = (version, target, key.is_none_or(PyDictMethods::is_empty)) {
            let explained = py.detach(|| self.inner.reasons().explain_version(version));
            return document(py, &explained.or_raise(py)?);
        }
        let target = PyTarget::read(py, "Pool.explain", target, key, schema)?;
        if let Some(selector) = target.selector()?.filter(|_| version.is_none()) {
            let explained = py.detach(|| self.inner.reasons().explain_selector(selector));
            return document(py, &explained.or_raise_about(py, selector)?);
        }
        let explained = target.ask(py, |target| self.inner.reasons().begin_explain(target, version)?.wait())?;
        document(py, &explained)
    }

    /// What keeps memory: retention, requirements, clients that lease or hold it, bundles, and names without a
    /// requirement yet.
    ///
    /// Returns
    /// -------
    /// dict
    ///     The fields and codes are those of `junctura explain --memory --json`.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     version = pool.offer(b"payload", name="a")
    /// ...     pool.keepers()["sums"]
    /// [{'because': 'until_withdrawn', 'objects': 1, 'bytes': 7, 'alone_bytes': 7}]
    fn keepers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let keepers = py.detach(|| self.inner.reasons().keepers()).or_raise(py)?;
        document(py, &keepers)
    }

    fn _begin_waits(&self, py: Python<'_>, limit: usize) -> PyResult<PyAnswer> {
        py.detach(|| self.inner.reasons().begin_waits(limit))
            .or_raise(py)
            .map(answer)
    }

    fn _begin_explain<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        version: Option<PyRef<'py, PyVersion>>,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyAnswer> {
        let version = version.map(|version| version.0);
        if let (Some(version), None, true) = (version, target, key.is_none_or(PyDictMethods::is_empty)) {
            let pending = py.detach(|| self.inner.reasons().begin_explain_version(version));
            return pending.or_raise(py).map(answer);
        }
        let target = PyTarget::read(py, "Pool.explain", target, key, schema)?;
        if let Some(selector) = target.selector()?.filter(|_| version.is_none()) {
            let pending = py.detach(|| self.inner.reasons().begin_explain_selector(selector));
            return pending.or_raise(py).map(answer);
        }
        target
            .ask(py, |target| self.inner.reasons().begin_explain(target, version))
            .map(answer)
    }

    fn _begin_keepers(&self, py: Python<'_>) -> PyResult<PyAnswer> {
        py.detach(|| self.inner.reasons().begin_keepers())
            .or_raise(py)
            .map(answer)
    }
}
