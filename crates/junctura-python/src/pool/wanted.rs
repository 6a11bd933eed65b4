//! Queries for demand.

use junctura::WantedOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversion::given::GivenAttributes;
use crate::pool::PyPool;

#[pymethods]
impl PyPool {
    /// Returns how many consumers would receive an object with these attributes, if it were offered now: follows,
    /// requirements (including those without a reader at the moment) and waiting demands. Call it before an expensive
    /// computation; `offer(if_wanted=True)` combines query and offer.
    ///
    /// Parameters
    /// ----------
    /// attributes : dict, optional
    ///     As for `offer`; attributes outside the key matter if a consumer selects by them.
    /// schema : str, optional
    ///     The schema of the object; defaults to the pool's first.
    /// **keywords
    ///     More attributes.
    ///
    /// Returns
    /// -------
    /// int
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool, pool.require("name=a/b"):
    /// ...     pool.wanted(name="a"), pool.wanted(name="c")
    /// ...     pool.offer(b"not moved", name="c", if_wanted=True)
    /// (1, 0)
    #[pyo3(signature = (attributes=None, /, *, schema=None, **keywords))]
    fn wanted<'py>(
        &self,
        py: Python<'py>,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<u64> {
        let attributes = GivenAttributes::read(attributes, keywords)?;
        let options = WantedOptions {
            schema,
            ..WantedOptions::default()
        };
        attributes.ask(py, |given| self.inner.wanted_with(given.iter().copied(), options))
    }
}
