//! Arrays in chunks: of Dask's, and of xarray's that Dask is behind. Python does it (`junctura._array.dask_chunks`).

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyLayout;
use crate::error::OrRaise;
use crate::given::GivenAttributes;
use crate::interpreter::module;
use crate::options::timeout as read_timeout;
use crate::pool::PyPool;
use crate::target::PyTarget;
use crate::values;

#[pymethods]
impl PyPool {
    /// Offers an array that Dask has in chunks, or xarray in Dask's: each chunk is a piece, offered by the task that computes it, wherever that
    /// runs. Returns when all are there: then the array is visible. No process has all of it.
    ///
    /// Parameters
    /// ----------
    /// data : dask.array.Array or xarray.DataArray
    ///     An array of xarray's keeps its labels, coordinates among them, in the attribute `labels`: at most 1,024 bytes.
    /// attributes : dict, optional
    ///     What the array is.
    /// epoch, schema, retention : optional
    ///     As for `offer_piece`.
    /// **keywords
    ///     More attributes. An underscore at the end is left out: `class_="od"`.
    ///
    /// Raises
    /// ------
    /// ImportError
    ///     Without Dask (`pip install 'junctura[dask]'`).
    /// InvalidArgument
    ///     It has no chunks, or their shape is not known; or its labels do not fit, or the schema does not take them.
    /// Error
    ///     As for `offer_piece`, that of the first chunk that failed.
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
        // Checked here, given there.
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

    /// An array as one of Dask's: each chunk is taken where it is computed, and nothing is before. Waits until the array is there; it has to
    /// stay as long as chunks of it are computed: each that is taken counts as a release.
    ///
    /// Parameters
    /// ----------
    /// target : str or dict, optional
    ///     A selector (the newest array that matches is meant), the text of a key, or the attributes of a key.
    /// chunks : optional
    ///     How it is split, as Dask says it; by default as Dask sees fit. They need not be those that it was offered in.
    /// xarray : bool
    ///     Whether an array of xarray's is wanted, with the labels that its attributes say.
    /// timeout : float, optional
    ///     Seconds; 0 does not wait, None waits for ever.
    /// schema : str, optional
    ///     The schema of the key, where it is not the pool's default.
    /// **key
    ///     Attributes of the key. An underscore at the end is left out: `class_="od"`.
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
        let target = PyTarget::read(py, target, key, schema)?;
        let pool = &slf.get().inner;
        let array = target.ask(py, |target| pool.demand_array(target, timeout))?;
        let (object, layout) = (array.object(), PyLayout(array.layout().clone()));
        let attributes = values::attributes(py, object.schema(), object.attributes())?;
        let element = array.element().to_string();
        let found = (object.key(), object.schema().name(), layout, element, attributes);
        let how = if xarray { "demand_xarray" } else { "demand" };
        let lazy = module(py, "junctura._array.dask_chunks")?.call_method1(how, (slf, found, chunks))?;
        // It was looked at, and not had.
        py.detach(|| array.give_back()).or_raise(py)?;
        Ok(lazy)
    }
}
