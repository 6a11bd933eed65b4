//! Payloads for other array libraries: DLPack, the array interface, xarray.
//!
//! An exported array keeps its owner, as every view does: while the array is referenced, an object is not released, and
//! an allocation not offered. NumPy does the export; read-only memory is marked as such, or the export fails if the
//! consumer does not support the mark.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView, PyType};

use crate::conversion::data::arrays;
use crate::handles::allocation::PyAllocation;
use crate::handles::object::{PyReceived, refuse_pieces};
use crate::runtime::interpreter::{called, module};
use crate::runtime::lazy_value::AttributeName;

/// Returns the DLPack capsule of an array; `array` is a NumPy array.
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
    /// Exports the payload for `from_dlpack` of NumPy, PyTorch, JAX, CuPy, …: as `array()`, without a copy, and held
    /// while it is in use. It is read-only: consumers without support for read-only arrays (DLPack before 1.0) only get
    /// a copy, on request.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     The consumer does not support read-only arrays, or requests another device than main memory.
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

    /// The device: main memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    /// The payload as `array()`, for consumers of raw addresses. Their use cannot be observed: the object is held until
    /// it is garbage-collected, and `release()` fails from then on.
    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let interface = Self::array(slf, None, None)?.getattr("__array_interface__")?;
        slf.get().pin();
        Ok(interface)
    }

    /// Returns the payload as an xarray array, without a copy; a GRIB message is decoded.
    ///
    /// An array that was offered as an xarray array is identical: name, dimensions, coordinates and attributes. For
    /// other arrays, the attribute `dims` names the dimensions, name and units are those attributes, and all other
    /// attributes are scalar coordinates. For a GRIB message on a regular grid the dimensions are latitude and
    /// longitude, with their values; on any other grid the only dimension is `values`, with both as coordinates;
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
        slf.get().look(slf.py(), |object| refuse_pieces(slf.py(), object))?;
        called(slf.py(), ("junctura._xarray.label_attributes", "to_xarray", slf), None)
    }

    /// An object is held in this process: it cannot be pickled.
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
    /// Exports the memory for `from_dlpack`, writable. While the export is in use the allocation cannot be offered.
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

    /// The device: main memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }
}

static DIMS: AttributeName = AttributeName::new("dims");

/// The type of NumPy's arrays, as soon as one was seen. To find that an object lacks an attribute takes longer than to read
/// all attributes of an offer.
static NUMPY_ARRAY: OnceLock<Py<PyType>> = OnceLock::new();

/// Whether an object is a NumPy array, and of no type derived from it.
pub(crate) fn is_numpy_array(object: &Bound<'_, PyAny>) -> bool {
    let kind = object.get_type();
    if let Some(known) = NUMPY_ARRAY.get() {
        return kind.is(known);
    }
    let is = kind.name().is_ok_and(|name| name == "ndarray") && kind.module().is_ok_and(|name| name == "numpy");
    is && kind.is(NUMPY_ARRAY.get_or_init(|| kind.clone().unbind()))
}

/// Whether an object is of a type that is known to have no labels.
fn is_unlabelled(data: &Bound<'_, PyAny>) -> bool {
    is_numpy_array(data)
        || data.is_exact_instance_of::<PyBytes>()
        || data.is_exact_instance_of::<PyAllocation>()
        || data.is_exact_instance_of::<PyMemoryView>()
        || data.is_exact_instance_of::<PyByteArray>()
}

/// Returns the array of a labeled array, and the attributes of its labels, except stated ones.
pub(crate) fn labels<'py>(
    data: &Bound<'py, PyAny>,
    schema: crate::model::schema::PySchema,
    stated: impl FnOnce() -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyDict>)>> {
    // Arrays of other libraries have no named dimensions.
    if is_unlabelled(data) || !DIMS.is_of(data)? {
        return Ok(None);
    }
    if !arrays(data.py())?.call_method1("is_labelled", (data,))?.extract()? {
        return Ok(None);
    }
    let labels = module(data.py(), "junctura._xarray.label_attributes")?;
    labels
        .call_method1("given", (data, schema, stated()?))?
        .extract()
        .map(Some)
}
