//! What is wanted.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::given::GivenAttributes;
use crate::pool::PyPool;

#[pymethods]
impl PyPool {
    /// How many would be given an object with these attributes, were it offered now: follows, requirements (also those that
    /// nobody reads at the moment) and demands that wait. To ask before computing; `offer(if_wanted=True)` asks and offers in
    /// one.
    ///
    /// Parameters
    /// ----------
    /// attributes : dict, optional
    ///     As for `offer`; those beside the key count where somebody asks for them.
    /// schema : str, optional
    ///     The schema that describes it; by default the pool's first.
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
        attributes.ask(py, |given| self.inner.wanted_with(given.iter().copied(), schema))
    }
}
