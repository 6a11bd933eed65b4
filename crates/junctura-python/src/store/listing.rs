//! Listed objects of a snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::RecordBatchIterator;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use junctura_store::DifferenceKind;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyMemoryView, PySlice};

use super::payload::PyPayload;
use super::payloads::own_bytes;
use super::place::StorePlace;
use super::{PyPayloads, PyStored};
use crate::conversion::options::size;
use crate::conversion::values;
use crate::model::schema::PySchema;
use crate::runtime::error::OrRaise;
use crate::runtime::interpreter::{called, module};
use crate::runtime::interrupt;

/// Default number of bytes that `payloads` reads at once.
const RUN_BYTES_MAX: u64 = 64 << 20;

/// Objects of a snapshot, in commit order; a sequence with `len()`, indices, slices and iteration. Objects are created
/// on access; for millions of objects, prefer a table.
///
/// Supports the Arrow C stream interface (`__arrow_c_stream__`): pyarrow, DuckDB and others read it as a table.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     for name in "abc":
/// ...         store.archive(name.encode(), name=name)
/// >>> listing = store.list("name=b/c")
/// >>> len(listing), listing[-1].key, [obj.read() for obj in listing]
/// (2, '{space=default}{}{name=c}', [b'b', b'c'])
#[pyclass(module = "junctura", name = "Listing", frozen, sequence)]
pub(crate) struct PyListing {
    inner: junctura_store::Listing,
    len: usize,
    missing: Vec<String>,
    place: StorePlace,
}

#[derive(FromPyObject)]
enum ListingIndex<'py> {
    One(isize),
    Some(Bound<'py, PySlice>),
}

impl PyListing {
    pub(super) fn new(inner: junctura_store::Listing, missing: Vec<String>, place: &StorePlace) -> Self {
        Self {
            len: inner.len(),
            inner,
            missing,
            place: place.clone(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn inner(&self) -> &junctura_store::Listing {
        &self.inner
    }
}

#[pymethods]
impl PyListing {
    /// The combinations of values that the selector lists and no object has, by attribute: `{step=6,param=t}`. Only for
    /// the result of `retrieve` with `partial=True`.
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }

    /// Total size of the payloads in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.inner.bytes()
    }

    /// keys()
    /// --
    ///
    /// Returns the canonical key of each object: faster than `key` of each object.
    ///
    /// Returns
    /// -------
    /// list of str
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let keys = PyList::empty(py);
        let mut failed = Ok(());
        self.inner.for_each_key(|key, _| {
            if failed.is_ok() {
                failed = keys.append(key);
            }
        });
        failed.map(|()| keys)
    }

    /// Returns the objects as one Arrow batch, through the C stream interface; see `to_arrow`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to ignore it: the consumer checks the received schema.
        let _ = requested_schema;
        let batch = py.detach(|| self.inner.to_arrow()).or_raise(py)?;
        let schema = batch.schema();
        let batches = RecordBatchIterator::new([Ok(batch)], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// to_arrow()
    /// --
    ///
    /// Returns the objects as an Arrow table, with a row for each object: a column for each attribute that one of them
    /// has, those of the key first, and the location of their bytes. The columns have the names and types of the
    /// Parquet files of a checkpoint: texts are dictionary-encoded, undeclared attributes are named `@name`, and
    /// `_file`, `_offset`, `_length`, `_checksum`, `_commit`, `_number`, `_incarnation` and `_sequence` are columns of
    /// the store. For compressed objects there are also `_codec` and `_unpacked`, the size of the payload, while
    /// `_length` is the size in the file. For objects of several schemas, `_schema` names the schema.
    ///
    /// Returns
    /// -------
    /// pyarrow.Table
    ///
    /// Raises
    /// ------
    /// ImportError
    ///     Without pyarrow: ``pip install 'junctura[arrow]'``.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="record") as store:
    /// ...     store.archive(b"12", collection="c", producer="p", sequence=7)
    /// >>> store.list().to_arrow().select(["sequence", "_length"]).to_pylist()
    /// [{'sequence': 7, '_length': 2}]
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        module(slf.py(), "junctura._store.tables")?.call_method1("listing_to_arrow", (slf,))
    }

    /// to_pandas()
    /// --
    ///
    /// Returns the same table as a data frame: texts are categories, decimals floats.
    ///
    /// Returns
    /// -------
    /// pandas.DataFrame
    ///
    /// Raises
    /// ------
    /// ImportError
    ///     Without pandas and pyarrow: ``pip install 'junctura[pandas,arrow]'``.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        module(slf.py(), "junctura._store.tables")?.call_method1("listing_to_pandas", (slf,))
    }

    /// to_xarray(**options)
    /// --
    ///
    /// Returns the fields as one dataset, decoded when values are read: ``xarray.open_dataset(listing,
    /// engine="junctura", **options)``.
    ///
    /// Parameters
    /// ----------
    /// **options
    ///     `variable`, the attribute of the key whose values are the names of the variables (default: `param`, else `name`; in a
    ///     schema without these all fields are one variable, `data`); `partial`, whether missing fields are NaN; `dtype`, the
    ///     type of decoded GRIB values; `drop_variables`, and other options of `xarray.open_dataset`.
    ///
    /// Returns
    /// -------
    /// xarray.Dataset
    ///
    /// Raises
    /// ------
    /// ImportError
    ///     Without xarray (``pip install 'junctura[xarray]'``), or, for GRIB, without ecCodes (``'junctura[grib]'``).
    /// NotFound
    ///     Combinations of the values of their axes are missing; the error names them. With ``partial=True`` their
    ///     values are NaN.
    #[pyo3(signature = (**options))]
    fn to_xarray<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, pyo3::types::PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        called(slf.py(), ("junctura._xarray.label_attributes", "dataset", slf), options)
    }

    /// Returns the number of common keys, and the differences: kind, key, and of each side an object or attributes.
    fn _compare<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, Self>,
        ignore: Vec<String>,
    ) -> PyResult<(u64, Bound<'py, PyList>)> {
        let py = slf.py();
        let (first, second) = (slf.get(), other.get());
        let (both, found) = py
            .detach(|| differences(&first.inner, &second.inner, &ignore))
            .or_raise(py)?;
        let stored = |listing: &Bound<'py, Self>, at: usize| PyStored::new(listing.clone().unbind(), at);
        let told = PyList::empty(py);
        for (key, side) in found {
            match side {
                ComparedSides::First(at) => told.append(("first", key, stored(slf, at), py.None()))?,
                ComparedSides::Second(at) => told.append(("second", key, py.None(), stored(other, at)))?,
                ComparedSides::Bytes(one, two) => told.append(("bytes", key, stored(slf, one), stored(other, two)))?,
                ComparedSides::Attributes(all) => told.append(("attributes", key, all, py.None()))?,
            }
        }
        Ok((both, told))
    }

    /// The schemas of the objects.
    #[getter]
    fn _schemas(&self) -> Vec<PySchema> {
        let all = self.inner.schemas();
        let used: BTreeSet<usize> = self.inner.iter().map(|object| object.schema_index()).collect();
        used.into_iter()
            .map(|index| PySchema(Arc::clone(&all[index])))
            .collect()
    }

    /// Returns the distinct values of an attribute, and for each object the index of its value as a 32-bit integer; -1:
    /// none.
    fn _column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyBytes>)> {
        let (texts, numbers) = py.detach(|| self.inner.column(name)).or_raise(py)?;
        let schemas = self.inner.schemas();
        let owner = schemas
            .iter()
            .find(|schema| schema.find(name).is_some())
            .unwrap_or(&schemas[0]);
        let list = PyList::empty(py);
        for text in &texts {
            list.append(values::value(py, owner, name, text)?)?;
        }
        let bytes = PyBytes::new_with(py, numbers.len() * size_of::<i32>(), |into| {
            for (place, number) in into.as_chunks_mut().0.iter_mut().zip(&numbers) {
                *place = number.to_ne_bytes();
            }
            Ok(())
        })?;
        Ok((list, bytes))
    }

    /// The location of its store, as `Store` takes it.
    #[getter]
    fn _place(&self) -> &StorePlace {
        &self.place
    }

    fn __len__(&self) -> usize {
        self.len
    }

    /// read()
    /// --
    ///
    /// Reads the payloads of all objects, verified, in the order of the listing. Adjacent payloads are read together,
    /// with several reads in flight: faster than `Stored.read` for each object, in particular over a network. Needs
    /// memory for all payloads (`nbytes`); `payloads` needs less.
    ///
    /// Returns
    /// -------
    /// list of bytes
    ///
    /// Raises
    /// ------
    /// Corrupt
    ///     The checksum of an object does not match, or its bytes are missing.
    /// Expired
    ///     The snapshot has exceeded its maximum age.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive_many((name.encode(), {"name": name}) for name in "abc")
    /// 3
    /// >>> store.list("name=a/c").read()
    /// [b'a', b'c']
    fn read(&self, py: Python<'_>) -> PyResult<Vec<Py<PyBytes>>> {
        let mut all = Vec::with_capacity(self.len);
        let read = py.detach(|| {
            self.inner.for_each_payload(|_, payload| {
                interrupt::check()?;
                all.push(own_bytes(payload?)?);
                Ok(())
            })
        });
        read.or_raise(py).map(|()| all)
    }

    /// payloads(*, run_nbytes=67108864)
    /// --
    ///
    /// Yields each object with its payload, verified, in the order of the listing: read as by `read`, but in runs; the
    /// next run is read when all objects of the previous one have been yielded. At most two runs are in memory.
    ///
    /// Parameters
    /// ----------
    /// run_nbytes : int or str
    ///     Maximum size of a run in bytes, or as `"1GiB"`; a larger object is a run of its own.
    ///
    /// Returns
    /// -------
    /// iterator of (Stored, bytes)
    ///
    /// Raises
    /// ------
    /// Corrupt, Expired
    ///     As `Stored.read`, raised for the object concerned; iteration can continue after it.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive_many((name.encode(), {"name": name}) for name in "abc")
    /// 3
    /// >>> for obj, payload in store.list().payloads():
    /// ...     print(obj["name"], payload)
    /// a b'a'
    /// b b'b'
    /// c b'c'
    #[pyo3(signature = (*, run_nbytes=None))]
    fn payloads(slf: Bound<'_, Self>, run_nbytes: Option<&Bound<'_, PyAny>>) -> PyResult<PyPayloads> {
        let bytes_max = run_nbytes.map_or(Ok(RUN_BYTES_MAX), size)?;
        Ok(PyPayloads::new(slf.unbind(), bytes_max))
    }

    /// map()
    /// --
    ///
    /// Maps the payloads of all objects, verified, in the order of the listing: as `Stored.map`, with verification on
    /// all cores. Zero-copy for uncompressed payloads on a file system of this host.
    ///
    /// Returns
    /// -------
    /// list of memoryview
    ///     Read-only; valid as long as they are referenced.
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
    /// ...     for name in "abc":
    /// ...         store.archive(np.full(20_000, float(ord(name))), name=name)
    /// >>> [np.frombuffer(view, "<f8").mean() for view in store.list("name=a/c").map()]
    /// [np.float64(97.0), np.float64(99.0)]
    fn map<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyMemoryView>>> {
        let all = py.detach(|| self.inner.map()).or_raise(py)?;
        all.into_iter()
            .map(|mapped| PyMemoryView::from(Bound::new(py, PyPayload::new(mapped))?.as_any()))
            .collect()
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: ListingIndex<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, len) = (slf.py(), slf.get().len as isize);
        match index {
            ListingIndex::One(index) => {
                let at = if index < 0 { index + len } else { index };
                if at < 0 || at >= len {
                    return Err(PyIndexError::new_err(format!("{index} of {len} objects")));
                }
                Ok(Bound::new(py, PyStored::new(slf.clone().unbind(), at as usize))?.into_any())
            }
            ListingIndex::Some(slice) => {
                let range = slice.indices(len)?;
                let list = PyList::empty(py);
                let mut at = range.start;
                for _ in 0..range.slicelength {
                    list.append(PyStored::new(slf.clone().unbind(), at as usize))?;
                    at += range.step;
                }
                Ok(list.into_any())
            }
        }
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyObjects {
        PyObjects {
            listing: slf.unbind(),
            next: 0,
        }
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Listing of {} objects in {}>", self.len, self.place)
    }
}

/// The sides that have an object, by its position there.
enum ComparedSides {
    First(usize),
    Second(usize),
    Bytes(usize, usize),
    Attributes(Vec<(String, Option<String>, Option<String>)>),
}

fn differences(
    first: &junctura_store::Listing,
    second: &junctura_store::Listing,
    ignore: &[String],
) -> junctura::Result<(u64, Vec<(String, ComparedSides)>)> {
    let left_out: Vec<&str> = ignore.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    let compared = first.compare(second, &left_out, |difference| {
        let sides = match &difference.what {
            DifferenceKind::OnlyFirst(object) => ComparedSides::First(object.index()),
            DifferenceKind::OnlySecond(object) => ComparedSides::Second(object.index()),
            DifferenceKind::Bytes(one, two) => ComparedSides::Bytes(one.index(), two.index()),
            DifferenceKind::Attributes(all) => ComparedSides::Attributes(all.clone()),
        };
        found.push((difference.key.to_owned(), sides));
        Ok(())
    })?;
    Ok((compared.both, found))
}

/// Iterates over the objects of a listing.
#[pyclass(module = "junctura", name = "_Objects")]
pub(crate) struct PyObjects {
    listing: Py<PyListing>,
    next: usize,
}

#[pymethods]
impl PyObjects {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> Option<PyStored> {
        let at = self.next;
        if at >= self.listing.get().len {
            return None;
        }
        self.next += 1;
        Some(PyStored::new(self.listing.clone_ref(py), at))
    }
}
