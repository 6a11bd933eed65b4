//! An object of a store.

use std::sync::Arc;

use junctura::{Code, Described, Error};
use junctura_store::ReadBuffer;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView};

use super::payloads::LARGE_BYTES;
use super::{PyListing, PyPayload};
use crate::conversion::data::arrays;
use crate::conversion::payload_form::PayloadForm;
use crate::conversion::values;
use crate::handles::object::no_attribute;
use crate::model::schema::PySchema;
use crate::model::version::PyVersion;
use crate::runtime::error::OrRaise;
use crate::runtime::interpreter::called;

/// An object of a listing: its attributes, and its payload, which is read on demand.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a", colour="red")
/// >>> obj = store.list()[0]
/// >>> obj.key, obj["colour"], obj.nbytes, obj.read()
/// ('{space=default}{}{name=a}', 'red', 7, b'payload')
#[pyclass(module = "junctura", name = "Stored", frozen)]
pub(crate) struct PyStored {
    listing: Py<PyListing>,
    index: usize,
}

impl PyStored {
    pub(super) fn new(listing: Py<PyListing>, index: usize) -> Self {
        Self { listing, index }
    }

    fn object(&self) -> junctura::Result<junctura_store::StoredObject<'_>> {
        let found = self.listing.get().inner().get(self.index);
        found.ok_or_else(|| Error::new(Code::NotFound, "object", "its listing has no such object"))
    }

    fn described(&self, py: Python<'_>) -> PyResult<Described> {
        Ok(self.object().or_raise(py)?.describe())
    }

    fn payload(&self, py: Python<'_>) -> PyResult<PyPayload> {
        let read = py.detach(|| {
            let mut buffer = ReadBuffer::new();
            self.object()?.read_into(&mut buffer).map(|()| buffer)
        });
        read.or_raise(py).map(PyPayload::new)
    }
}

#[pymethods]
impl PyStored {
    /// The names and values of the attributes, those of the key first, as a new dictionary each time, as
    /// `Object.attributes`.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let object = self.described(py)?;
        values::attributes(py, object.schema(), object.attributes())
    }

    /// The canonical key.
    #[getter]
    fn key(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.object().or_raise(py)?.key())
    }

    /// The schema of the object.
    #[getter]
    fn schema(&self, py: Python<'_>) -> PyResult<PySchema> {
        Ok(PySchema(Arc::clone(self.described(py)?.schema())))
    }

    /// The number of its commit: of two objects with one key, the one with the higher number supersedes the other.
    #[getter]
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.object().or_raise(py)?.commit())
    }

    /// Its version in a pool; None if no pool archived it.
    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<Option<PyVersion>> {
        Ok(self.object().or_raise(py)?.version().map(PyVersion))
    }

    /// The location of its bytes, for programs that read them without junctura.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive(bytes(50_000) + b"end", name="a")
    /// >>> place = store.list()[0].location
    /// >>> place.uri == f"file://{store.path / place.file}"
    /// True
    /// >>> with open(place.uri.removeprefix("file://"), "rb") as file:
    /// ...     _ = file.seek(place.offset + 50_000)
    /// ...     print(file.read(3))
    /// b'end'
    #[getter]
    fn location(&self, py: Python<'_>) -> PyResult<PyLocation> {
        let object = self.object().or_raise(py)?;
        let found = object.location();
        Ok(PyLocation {
            uri: object.uri(),
            file: found.file.to_string(),
            offset: found.offset,
            nbytes: found.length,
            codec: found.codec.map(|codec| codec.name().to_owned()),
        })
    }

    /// Size of the payload in bytes.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.object().or_raise(py)?.bytes())
    }

    /// CRC-32C of the payload.
    #[getter]
    fn checksum(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.object().or_raise(py)?.checksum())
    }

    /// get(name, default=None)
    /// --
    ///
    /// Returns the value of an attribute, by its name or an alias; `default` if the object does not have it.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let object = self.described(py)?;
        match object.get(name) {
            Some(text) => values::value(py, object.schema(), name, text).map(Some),
            None => Ok(default),
        }
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.described(py)?.get(name).is_some())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let object = self.described(py)?;
        match object.get(name) {
            Some(text) => values::value(py, object.schema(), name, text),
            None => Err(no_attribute(py, name, object.key(), object.attributes())),
        }
    }

    /// read()
    /// --
    ///
    /// Reads the payload from disk, and verifies it.
    ///
    /// Returns
    /// -------
    /// bytes
    ///
    /// Raises
    /// ------
    /// Corrupt
    ///     The checksum does not match, or the bytes are missing.
    /// Expired
    ///     The snapshot has exceeded its maximum age.
    /// MemoryError
    ///     The payload exceeds the available memory: `open` reads it in pieces.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let object = self.object().or_raise(py)?;
        let bytes = usize::try_from(object.bytes()).map_err(|_| PyMemoryError::new_err(object.bytes()))?;
        py.detach(|| object.check_length()).or_raise(py)?;
        PyBytes::new_with(py, bytes, |into| py.detach(|| object.read_exact(into)).or_raise(py))
    }

    /// map()
    /// --
    ///
    /// Maps the payload in its file, verified: zero-copy if the file is on a file system of this host, otherwise the
    /// payload is read. A disk error during access, or a program that truncates the file, terminates the process
    /// (`SIGBUS`), where `read` would raise an error.
    ///
    /// Returns
    /// -------
    /// memoryview
    ///     Read-only; valid as long as it is referenced.
    ///
    /// Raises
    /// ------
    /// Corrupt, Expired
    ///     As `read`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive(np.arange(20_000, dtype="<f8"), name="t")
    /// >>> np.frombuffer(store.retrieve("name=t")[0].map(), "<f8")[-1]
    /// np.float64(19999.0)
    fn map<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        let mapped = py.detach(|| self.object()?.map()).or_raise(py)?;
        PyMemoryView::from(Bound::new(py, PyPayload::new(mapped))?.as_any())
    }

    /// open(*, verified=True)
    /// --
    ///
    /// Opens the payload as a file for reading: with `seek`, `read`, `peek`, `readinto` and so on.
    ///
    /// An object above 1 GiB, or above the available memory, is read in pieces, with some MiB of memory. If it is
    /// compressed, sequential reads decompress only what they read, and seeking backward restarts at its first byte.
    ///
    /// Parameters
    /// ----------
    /// verified : bool
    ///     Whether to verify the whole payload at the first read, which reads objects twice that are read in pieces.
    ///     False: only requested ranges are read, and corruption is not detected, since the checksum covers the whole
    ///     payload.
    ///
    /// Returns
    /// -------
    /// io.BufferedReader
    ///
    /// Raises
    /// ------
    /// Corrupt, Expired
    ///     As `read`, when something is read.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive(b"payload", name="a")
    /// >>> with store.list()[0].open() as file:
    /// ...     print(file.seek(3), file.read())
    /// 3 b'load'
    #[pyo3(signature = (*, verified=true))]
    fn open<'py>(slf: &Bound<'py, Self>, verified: bool) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("junctura._store.object_file")?
            .call_method1("opened", (slf, verified))
    }

    /// array(dtype=None, shape=None)
    /// --
    ///
    /// Reads and verifies the payload, and returns it as a read-only array.
    ///
    /// Parameters
    /// ----------
    /// dtype, shape : optional
    ///     Type and shape of the array, as for `Object.array`. Defaults to the attributes `dtype` and `shape`.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///
    /// Raises
    /// ------
    /// Corrupt, Expired
    ///     As `read`.
    /// InvalidArgument
    ///     The payload does not fit, or its type is unknown.
    #[pyo3(signature = (dtype=None, shape=None))]
    fn array<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let object = self.described(py)?;
        let payload = Bound::new(py, self.payload(py)?)?;
        if dtype.is_some() {
            return arrays(py)?.call_method1("seen", (payload, dtype, shape));
        }
        let bytes = payload.get().bytes();
        let form = PayloadForm::of(object.schema(), bytes, |name| object.get(name));
        form.view(&payload, shape)
    }

    /// to_xarray()
    /// --
    ///
    /// Returns the payload as an xarray array, with its attributes; a GRIB message is decoded: as `Object.to_xarray`.
    ///
    /// Returns
    /// -------
    /// xarray.DataArray
    ///
    /// Raises
    /// ------
    /// Corrupt, Expired
    ///     As `read`.
    /// ImportError
    ///     Without xarray (`pip install 'junctura[xarray]'`), or, for GRIB, without ecCodes (`'junctura[grib]'`).
    fn to_xarray<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        called(slf.py(), ("junctura._xarray.label_attributes", "to_xarray", slf), None)
    }

    /// Returns the whole payload as an object with a buffer.
    fn _payload(&self, py: Python<'_>) -> PyResult<PyPayload> {
        self.payload(py)
    }

    /// Verifies the whole payload with constant memory.
    fn _check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.object()?.check()).or_raise(py)
    }

    /// Reads a range of the payload, unverified.
    fn _read_range<'py>(&self, py: Python<'py>, offset: u64, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        let object = self.object().or_raise(py)?;
        let left = usize::try_from(object.bytes().saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = length.min(left);
        if count > LARGE_BYTES {
            py.detach(|| object.check_length()).or_raise(py)?;
        }
        PyBytes::new_with(py, count, |into| {
            py.detach(|| object.read_range(offset, into).map(|_| ())).or_raise(py)
        })
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.read(py)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.nbytes(py).map(|bytes| bytes as usize)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        match self.object() {
            Ok(object) => format!("<junctura.Stored {}, {} bytes>", object.key(), object.bytes()),
            Err(error) => format!("<junctura.Stored, {error}>"),
        }
    }
}

/// The location of an object's bytes.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a")
/// >>> location = store.list()[0].location
/// >>> location.uri.endswith(location.file), location.nbytes, location.codec
/// (True, 7, None)
#[pyclass(module = "junctura", name = "Location", frozen, get_all, eq, hash)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyLocation {
    /// URI of the file, for other programs, for any kind of store: `file:///...`, `s3://BUCKET/...`.
    uri: String,
    /// Name of the file in the store.
    file: String,
    /// Offset of the first byte.
    offset: u64,
    /// Number of bytes in the file.
    nbytes: u64,
    /// Compression: `"zstd"`, `"lz4"`, or None.
    codec: Option<String>,
}

#[pymethods]
impl PyLocation {
    fn __repr__(&self) -> String {
        let codec = match &self.codec {
            Some(codec) => format!(", codec={codec:?}"),
            None => String::new(),
        };
        format!(
            "Location(file={:?}, offset={}, nbytes={}{codec})",
            self.file, self.offset, self.nbytes
        )
    }
}
