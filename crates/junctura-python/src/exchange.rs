//! Payloads for other libraries of arrays: DLPack, the array interface, xarray.
//!
//! What is exported keeps its owner, as every view does: an object is not given back, and an allocation not offered, while
//! anybody looks at it. NumPy does the exporting; what cannot be written to says so, or is refused to who could not hear it.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::allocation::PyAllocation;
use crate::data::arrays;
use crate::interpreter::{called, module};
use crate::lazy_value::AttributeName;
use crate::object::PyReceived;

/// An array's capsule; `array` is of ours.
fn capsule<'py>(
    array: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, PyAny>>,
    max_version: Option<&Bound<'py, PyAny>>,
    dl_device: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    arrays(array.py())?.call_method1("dlpack", (array, stream, max_version, dl_device, copy))
}

#[pymethods]
impl PyReceived {
    /// The payload for `from_dlpack` of NumPy, PyTorch, JAX, CuPy, …: as `array()`, without a copy, and held while it is used.
    /// It is read-only: to consumers that do not know of that (DLPack before 1.0) only a copy is given, where they ask for one.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     The consumer could not be told that it is read-only, or wants it elsewhere than in main memory.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        capsule(&Self::array(slf, None, None)?, stream, max_version, dl_device, copy)
    }

    /// Where it is: main memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    /// The payload as `array()`, for those who take addresses. Nobody can tell when they are done: the object is held until it is
    /// forgotten, and `release()` is refused from then on.
    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let interface = Self::array(slf, None, None)?.getattr("__array_interface__")?;
        slf.get().pin();
        Ok(interface)
    }

    /// The payload as an array of xarray's, without a copy; a GRIB message is decoded.
    ///
    /// An array that was offered as one of xarray's is identical: name, dimensions, coordinates and attributes. Of any other array the
    /// dimensions have the names that the attribute `dims` says, its name and units are those attributes, and all other attributes are scalar coordinates. Of a GRIB message on a regular grid the
    /// dimensions are latitude and longitude, with their values; on any other grid the one dimension is `values`, with both;
    /// missing values are NaN.
    ///
    /// Returns
    /// -------
    /// xarray.DataArray
    ///
    /// Raises
    /// ------
    /// ImportError
    ///     Without xarray (`pip install 'junctura[xarray]'`), or, for GRIB, without ecCodes (`'junctura[grib]'`).
    /// Corrupt
    ///     The labels of the array cannot be read.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     version = pool.offer(numpy.eye(2), name="t", dims="lat/lon", units="K", step="6")
    /// ...     array = pool.demand(name="t").to_xarray()
    /// >>> array.dims, array.name, array.units, array.step.item()
    /// (('lat', 'lon'), 't', 'K', '6')
    fn to_xarray<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        called(slf.py(), ("junctura._xarray.label_attributes", "to_xarray", slf), None)
    }

    /// An object is held in this process: it is not pickled by itself.
    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let cause = "an object is held by one process: send its array() or bytes(), or its key, for the other process to \
                     demand";
        Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "cannot pickle {}: {cause}",
            slf.repr()?
        )))
    }
}

#[pymethods]
impl PyAllocation {
    /// The memory for `from_dlpack`, writable. While it is used that way the allocation cannot be offered.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        capsule(&slf.get().seen(slf)?, stream, max_version, dl_device, copy)
    }

    /// Where it is: main memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }
}

static DIMS: AttributeName = AttributeName::new("dims");

/// The array within one that has labels, and what these say, without what was said already.
pub(crate) fn labels<'py>(
    data: &Bound<'py, PyAny>,
    schema: crate::schema::PySchema,
    names: impl FnOnce() -> Vec<String>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyDict>)>> {
    // Arrays of other libraries have no named dimensions.
    if data.is_exact_instance_of::<PyBytes>() || !DIMS.is_of(data)? {
        return Ok(None);
    }
    if !arrays(data.py())?.call_method1("is_labelled", (data,))?.extract()? {
        return Ok(None);
    }
    let labels = module(data.py(), "junctura._xarray.label_attributes")?;
    labels
        .call_method1("given", (data, schema, names()))?
        .extract()
        .map(Some)
}
