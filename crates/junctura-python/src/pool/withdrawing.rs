//! Withdrawals of objects from the pool.

use junctura::WithdrawOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversion::keywords::refuse_unknown;
use crate::conversion::options::timeout as read_timeout;
use crate::conversion::target::PyTarget;
use crate::pool::PyPool;
use crate::runtime::error::OrRaise;
use crate::runtime::patience::{WatchedCall, watched};

#[pymethods]
impl PyPool {
    /// Withdraws one object; waits until every requirement that retains it has released it.
    ///
    /// Parameters
    /// ----------
    /// target : str or dict, optional
    ///     The text of a key, or its attributes.
    /// timeout : float, optional
    ///     Seconds; None waits without a limit.
    /// force : bool
    ///     Whether to withdraw at once; requirements that retain the object then receive a gap.
    /// forget : bool
    ///     Whether to free the key at once, also that of an object that was removed before: a schema that rejects a
    ///     second object accepts it again, with the pieces of an array and the path of a bundle without objects. Without
    ///     it, the key is free after `tombstone_age` (ten minutes).
    /// schema : str, optional
    ///     The schema of the key, if it is not the pool's default.
    /// **key
    ///     Attributes of the key.
    ///
    /// Returns
    /// -------
    /// int
    ///     Number of versions withdrawn; with `forget`, number of keys that became free.
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     The object does not exist.
    /// Timeout
    ///     Requirements still retain the object, which stays offered; the error names them.
    #[pyo3(signature = (target=None, /, *, timeout=None, force=false, forget=false, schema=None, **key))]
    #[allow(clippy::too_many_arguments, reason = "arguments of Python")]
    fn withdraw<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        force: bool,
        forget: bool,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<u64> {
        let options = WithdrawOptions {
            timeout: read_timeout(py, timeout)?,
            force,
            forget,
        };
        let target = PyTarget::read(py, "Pool.withdraw", target, key, schema)?;
        watched(&self.inner, WatchedCall::Withdrawal, || {
            target.ask(py, |target| self.inner.withdraw(target, options))
        })
    }

    /// Withdraws every object that matches a selector, as `withdraw`; returns the number of objects, or, with `forget`,
    /// the number of keys that became free.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     version = pool.offer(b"1", name="a")
    /// ...     pool.withdraw_all("name=a"), pool.withdraw_all("name=a", forget=True)
    /// (1, 1)
    #[pyo3(signature = (selector, *, timeout=None, force=false, forget=false, **unknown), text_signature = "($self, selector, *, timeout=None, force=False, forget=False)")]
    fn withdraw_all(
        &self,
        py: Python<'_>,
        selector: &str,
        timeout: Option<f64>,
        force: bool,
        forget: bool,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        refuse_unknown(py, "Pool.withdraw_all", unknown)?;
        let options = WithdrawOptions {
            timeout: read_timeout(py, timeout)?,
            force,
            forget,
        };
        let withdrawn = watched(&self.inner, WatchedCall::Withdrawal, || {
            py.detach(|| self.inner.withdraw_all(selector, options))
        });
        self.withdrawn(py, selector, withdrawn.or_raise_about(py, selector)?)
    }
}
