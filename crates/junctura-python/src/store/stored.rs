//! One object of a store.

use std::sync::Arc;

use junctura::{Code, Described, Error};
use junctura_store::ReadBuffer;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView};

use super::payloads::LARGE_BYTES;
use super::{PyListing, PyPayload};
use crate::data::arrays;
use crate::error::OrRaise;
use crate::interpreter::called;
use crate::object::{PayloadForm, no_attribute};
use crate::schema::PySchema;
use crate::values;
use crate::version::PyVersion;

/// An object of a listing: its attributes, and its payload when it is asked for.
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
    /// Names and values of its attributes, those of the key first: a new dictionary each time, as `Object.attributes`.
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

    /// The schema that describes it.
    #[getter]
    fn schema(&self, py: Python<'_>) -> PyResult<PySchema> {
        Ok(PySchema(Arc::clone(self.described(py)?.schema())))
    }

    /// The number of the commit that it came with: of two of one key, the one with the higher number masks the other.
    #[getter]
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.object().or_raise(py)?.commit())
    }

    /// Which version of a pool it is; None, where no pool archived it.
    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<Option<PyVersion>> {
        Ok(self.object().or_raise(py)?.version().map(PyVersion))
    }

    /// Where its bytes lie, for whoever reads them there without junctura.
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

    /// Bytes of the payload.
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
    /// The value of an attribute, by its name or an alias; `default` where it has none.
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

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let object = self.described(py)?;
        match object.get(name) {
            Some(text) => values::value(py, object.schema(), name, text),
            None => Err(no_attribute(py, name, object.key())),
        }
    }

    /// read()
    /// --
    ///
    /// Its bytes, as they were archived: read from the disk, and verified.
    ///
    /// Returns
    /// -------
    /// bytes
    ///
    /// Raises
    /// ------
    /// Corrupt
    ///     They are not what they were, or not there.
    /// Expired
    ///     The snapshot has outlived its time.
    /// MemoryError
    ///     There is no memory for them: `open` reads them piece by piece.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let object = self.object().or_raise(py)?;
        let bytes = usize::try_from(object.bytes()).map_err(|_| PyMemoryError::new_err(object.bytes()))?;
        py.detach(|| object.check_length()).or_raise(py)?;
        PyBytes::new_with(py, bytes, |into| py.detach(|| object.read_exact(into)).or_raise(py))
    }

    /// map()
    /// --
    ///
    /// Its bytes as they lie in their file, verified: nothing is copied, where that is on a file system of this machine. Elsewhere they
    /// are read. A disk that fails while they are looked at, or a program that cuts the file off, ends the process (`SIGBUS`), where `read` would raise.
    ///
    /// Returns
    /// -------
    /// memoryview
    ///     Of bytes that cannot be written; they are there for as long as somebody has it.
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
    /// Its bytes as a file that is open for reading: it seeks, and has `read`, `peek`, `readinto` and so on.
    ///
    /// An object of more than 1 GiB, or more than there is memory for, is read piece by piece, in some MiB of memory. If it is packed,
    /// reading on costs what is read, and seeking back begins at its first byte.
    ///
    /// Parameters
    /// ----------
    /// verified : bool
    ///     Whether all of it is verified at the first read: what is read piece by piece is read twice then. False: ranges are read as they are asked for, and nobody sees
    ///     whether they are what was archived: the checksum is that of the whole.
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
    /// The payload as a read-only array: read from the disk, and verified.
    ///
    /// Parameters
    /// ----------
    /// dtype, shape : optional
    ///     How to see it, as `Object.array`: by default as it was archived, which the attributes `dtype` and `shape` tell.
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
    ///     The payload does not fit; or nothing says what it is.
    #[pyo3(signature = (dtype=None, shape=None))]
    fn array<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let object = self.described(py)?;
        let payload = Bound::new(py, self.payload(py)?)?.into_any();
        if dtype.is_some() {
            return arrays(py)?.call_method1("seen", (payload, dtype, shape));
        }
        PayloadForm::of(object.schema(), |name| object.get(name).map(str::to_owned)).view(&payload, shape)
    }

    /// to_xarray()
    /// --
    ///
    /// The payload as an array of xarray's, with its attributes; a GRIB message is decoded: as `Object.to_xarray`.
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

    /// All of its bytes, with a buffer.
    fn _payload(&self, py: Python<'_>) -> PyResult<PyPayload> {
        self.payload(py)
    }

    /// Verifies all of its bytes in memory that does not depend on how many there are.
    fn _check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.object()?.check()).or_raise(py)
    }

    /// Some of its bytes, unverified.
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

/// Where an object's bytes lie.
#[pyclass(module = "junctura", name = "Location", frozen, get_all, eq, hash)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyLocation {
    /// The file, as other programs open it, wherever the store has it: `file:///...`, `s3://BUCKET/...`.
    uri: String,
    /// The file, by its name in the store.
    file: String,
    /// The first byte in it.
    offset: u64,
    /// How many bytes it has there.
    nbytes: u64,
    /// How they are packed: `"zstd"`, `"lz4"`, or None.
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
