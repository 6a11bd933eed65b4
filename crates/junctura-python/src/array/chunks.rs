//! Chunked arrays: of Dask, and of xarray with Dask. Implemented in Python (`junctura._array.dask_chunks`).

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyLayout;
use crate::conversion::given::GivenAttributes;
use crate::conversion::options::{schema_of, timeout as read_timeout};
use crate::conversion::target::PyTarget;
use crate::conversion::usage::{OfferPlace, check_keywords};
use crate::conversion::values;
use crate::pool::PyPool;
use crate::runtime::error::OrRaise;
use crate::runtime::interpreter::module;

#[pymethods]
impl PyPool {
    /// Offers a Dask array, or an xarray array with Dask chunks: each chunk is a piece, offered by the task that
    /// computes it, on any host. Returns when all pieces are offered: then the array is visible. No process has the
    /// whole array in memory.
    ///
    /// Parameters
    /// ----------
    /// data : dask.array.Array or xarray.DataArray
    ///     An xarray array keeps its labels, including coordinates, in the attribute `labels`: at most 1,024 bytes.
    /// attributes : dict, optional
    ///     The description of the array.
    /// epoch, schema, retention : optional
    ///     As for `offer_piece`.
    /// **keywords
    ///     More attributes. An underscore at the end is removed: `class_="od"`.
    ///
    /// Raises
    /// ------
    /// ImportError
    ///     Without Dask (`pip install 'junctura[dask]'`).
    /// InvalidArgument
    ///     The array has no chunks, or chunks of unknown shape; or its labels do not fit, or the schema does not allow
    ///     them.
    /// Error
    ///     As for `offer_piece`; the error of the first chunk that failed.
    ///
    /// Examples
    /// --------
    /// >>> import dask.array
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     pool.offer_chunks(dask.array.arange(12, chunks=5), name="twelve")
    /// ...     pool.demand_chunks(name="twelve", chunks=4).sum().compute()
    /// np.int64(66)
    #[pyo3(signature = (data, attributes=None, /, *, epoch=None, schema=None, retention=None, **keywords))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn offer_chunks<'py>(
        slf: &Bound<'py, Self>,
        data: &Bound<'py, PyAny>,
        attributes: Option<&Bound<'py, PyAny>>,
        epoch: Option<i64>,
        schema: Option<&str>,
        retention: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let options = PyDict::new(py);
        options.set_item("epoch", epoch)?;
        options.set_item("schema", schema)?;
        options.set_item("retention", retention)?;
        let pool = &slf.get().inner;
        let own = schema_of(py, pool, schema)?;
        check_keywords(py, OfferPlace::Pool(pool), &own, keywords, &["schema", "epoch"])?;
        // Validated here, used there.
        GivenAttributes::read(attributes, keywords)?;
        let all = PyDict::new(py);
        if let Some(attributes) = attributes {
            all.update(attributes.cast()?)?;
        }
        for (name, value) in keywords.into_iter().flatten() {
            let name: String = name.extract()?;
            all.set_item(name.strip_suffix('_').unwrap_or(&name), value)?;
        }
        module(py, "junctura._array.dask_chunks")?.call_method1("offer", (slf, data, all, options))?;
        Ok(())
    }

    /// Returns an array as a lazy Dask array: each chunk is received when it is computed. Waits until the array is
    /// available. It must be retained as long as chunks are computed: each received chunk counts as a release.
    ///
    /// Parameters
    /// ----------
    /// target : str or dict, optional
    ///     A selector (the newest array that matches), the text of a key, or the attributes of a key.
    /// chunks : optional
    ///     Chunks in Dask's notation; by default chosen by Dask. They may differ from the offered chunks.
    /// xarray : bool
    ///     Whether to return an xarray array, with the labels in its attributes.
    /// timeout : float, optional
    ///     Seconds; 0 does not wait, None waits without a limit.
    /// schema : str, optional
    ///     The schema of the key, if it is not the pool's default.
    /// **key
    ///     Attributes of the key. An underscore at the end is removed: `class_="od"`.
    ///
    /// Returns
    /// -------
    /// dask.array.Array or xarray.DataArray
    ///
    /// Raises
    /// ------
    /// ImportError
    ///     Without Dask (`pip install 'junctura[dask]'`).
    /// Timeout, NotFound, InvalidArgument
    ///     As for `demand_array`.
    #[pyo3(signature = (target=None, /, *, chunks=None, xarray=false, timeout=None, schema=None, **key))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn demand_chunks<'py>(
        slf: &Bound<'py, Self>,
        target: Option<&Bound<'py, PyAny>>,
        chunks: Option<&Bound<'py, PyAny>>,
        xarray: bool,
        timeout: Option<f64>,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let timeout = read_timeout(py, timeout)?;
        let pool = &slf.get().inner;
        let target = PyTarget::read(py, "Pool.demand_chunks", target, key, schema)?;
        let array = target.ask(py, |target| pool.demand_array(target, timeout))?;
        let (object, layout) = (array.object(), PyLayout(array.layout().clone()));
        let attributes = values::attributes(py, object.schema(), object.attributes())?;
        let element = array.element().to_string();
        let found = (object.key(), object.schema().name(), layout, element, attributes);
        let how = if xarray { "demand_xarray" } else { "demand" };
        let lazy = module(py, "junctura._array.dask_chunks")?.call_method1(how, (slf, found, chunks))?;
        // It was only inspected, not held.
        py.detach(|| array.give_back()).or_raise(py)?;
        Ok(lazy)
    }
}
