//! Archiving: single objects, many objects, and GRIB files.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use junctura::Given;
use junctura_cli::{FileOptions, each_message};
use junctura_model::RecordRef;
use pyo3::exceptions::{PyRuntimeWarning, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::process_store::ProcessStore;
use super::{PyFlushed, PyStore};
use crate::conversion::data::PreparedData;
use crate::conversion::given::{GivenAttributes, type_name};
use crate::runtime::error::{OrRaise, invalid, raise};
use crate::runtime::interrupt;

/// Number of objects and bytes per batch, for which the interpreter lock is released once.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 4 << 20;
/// Interval between checks for Ctrl-C in a file with many messages.
const ROUND: Duration = Duration::from_millis(100);

#[pymethods]
impl PyStore {
    /// archive(data, attributes=None, /, *, schema=None, **keywords)
    /// --
    ///
    /// Archives an object: its payload is copied or written before the call returns. It becomes visible with `flush`.
    ///
    /// Parameters
    /// ----------
    /// data : bytes, numpy.ndarray or another buffer, an object with DLPack, xarray.DataArray, Object, Allocation
    ///     The payload, as for `Pool.offer`. For arrays, type and shape are kept too if the schema has the attributes
    ///     `dtype` and `shape`, so that `Stored.array` returns the same array.
    /// attributes : dict, optional
    ///     The description of the object: strings, numbers, bools, dates, times, durations, lists. None means not
    ///     given. Default: the attributes of an `Object`; keywords add to them or replace them.
    /// schema : str, optional
    ///     The schema of the object, if it is not the store's first.
    /// **keywords
    ///     More attributes. An underscore at the end is removed: `class_="od"`.
    ///
    /// Raises
    /// ------
    /// SchemaMismatch, TypeMismatch, TooLarge
    ///     The schema does not allow the attributes.
    /// Io, Denied
    ///     The operating system rejected the write; the object was not archived.
    ///
    /// Warns
    /// -----
    /// RuntimeWarning
    ///     Another array with this key was archived since the last flush: only the last one will be found.
    ///
    /// Examples
    /// --------
    /// >>> store = junctura.Store.create(folder / "store", schema="free")
    /// >>> store.archive(numpy.eye(2), name="eye")
    /// >>> store.flush().objects
    /// 1
    /// >>> store.list()[0].array().shape
    /// (2, 2)
    #[pyo3(signature = (data, attributes=None, /, *, schema=None, **keywords))]
    fn archive<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let home = self.home(py)?;
        let schema = home.store().schema(schema).or_raise(py)?;
        let prepared = PreparedData::read(home.place_of_offers(), Arc::clone(schema), data, attributes, keywords)?;
        let lists = prepared.attributes.lists(py)?;
        let given = prepared.attributes.given(py, &lists)?;
        let payload = prepared.lent();
        py.detach(|| home.write(|writer| writer.archive_in(schema.name(), given.iter().copied(), payload)))
            .or_raise(py)?;
        warn_of_another(py, home, schema, &prepared, &given)
    }

    /// archive_many(objects, *, schema=None)
    /// --
    ///
    /// Archives many objects: the same as `archive` for each, faster.
    ///
    /// Parameters
    /// ----------
    /// objects : iterable of (data, attributes)
    ///     Each as for `archive`.
    /// schema : str, optional
    ///     As for `archive`, for all objects.
    ///
    /// Returns
    /// -------
    /// int
    ///     Number of objects.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The error of the first object that failed, with its position in `index`. Objects before it were archived,
    ///     later ones were not.
    ///
    /// Examples
    /// --------
    /// >>> store = junctura.Store.create(folder / "store", schema="free")
    /// >>> store.archive_many((bytes(number), {"name": f"{number}"}) for number in range(1000))
    /// 1000
    /// >>> store.flush().objects
    /// 1000
    #[pyo3(signature = (objects, *, schema=None))]
    fn archive_many<'py>(&self, py: Python<'py>, objects: &Bound<'py, PyAny>, schema: Option<&str>) -> PyResult<usize> {
        let home = self.home(py)?;
        let schema = home.store().schema(schema).or_raise(py)?;
        let (mut batch, mut bytes, mut done) = (Vec::with_capacity(BATCH), 0, 0);
        let mut failed = None;
        for object in objects.try_iter()? {
            match object.and_then(|object| prepare(home, schema, &object)) {
                Ok(object) => {
                    bytes += object.lent().len();
                    batch.push(object);
                }
                // Objects before it are archived nevertheless.
                Err(error) => failed = Some(error),
            }
            if failed.is_some() {
                break;
            }
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                done += hand_over(py, home, schema, &batch, done)?;
                batch.clear();
                bytes = 0;
            }
        }
        done += hand_over(py, home, schema, &batch, done)?;
        match failed {
            None => Ok(done),
            Some(error) => Err(numbered(py, error, done)),
        }
    }

    /// archive_grib(file, attributes=None, /, *, schema=None, strict=False, keep_messages=False, **keywords)
    /// --
    ///
    /// Archives each field of a GRIB file under the keys of its header, as `junctura put` does.
    ///
    /// Parameters
    /// ----------
    /// file : path
    /// attributes : dict, optional
    ///     Attributes that replace those of the header, for all fields.
    /// schema : str, optional
    ///     The schema of the objects: `mars` if the store has it, else its first.
    /// strict
    ///     Fail with `AlreadyExists` where a field has the key of an earlier field of the file. Default: the later field
    ///     replaces the earlier one, and a `UserWarning` gives the number.
    /// keep_messages
    ///     Keep a message of several fields as one object, described by its first field. Default: an object for each field.
    /// **keywords
    ///     More attributes.
    ///
    /// Returns
    /// -------
    /// int
    ///     Number of objects.
    ///
    /// Raises
    /// ------
    /// Corrupt
    ///     A message is corrupt, and the error names it, or the file has none. Messages before it were archived.
    /// SchemaMismatch, TypeMismatch
    ///     The schema does not allow the attributes of a header.
    /// Io
    ///     The file cannot be read.
    #[pyo3(signature = (file, attributes=None, /, *, schema=None, strict=false, keep_messages=false, **keywords))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn archive_grib<'py>(
        &self,
        py: Python<'py>,
        file: PathBuf,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        strict: bool,
        keep_messages: bool,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<u64> {
        let attributes = GivenAttributes::read(attributes, keywords)?;
        let lists = attributes.lists(py)?;
        let mut set = Vec::new();
        for (name, value) in attributes.given(py, &lists)? {
            let text = match value {
                Given::Text(text) => text.to_owned(),
                Given::Integer(number) => number.to_string(),
                Given::Float(number) => number.to_string(),
                Given::Bool(truth) => truth.to_string(),
                Given::List(_) => return Err(invalid(py, name, "messages of GRIB are given no lists")),
            };
            set.push((name.to_owned(), text));
        }
        let options = FileOptions { strict, keep_messages };
        self.archive_file(py, &file, schema, &set, options)
    }

    /// flush()
    /// --
    ///
    /// Waits until all objects archived before are on disk, and makes them visible to all readers together.
    ///
    /// Returns
    /// -------
    /// Flushed
    ///     The number of the commit, and of its objects.
    ///
    /// Raises
    /// ------
    /// Expired
    ///     An object was archived longer ago than `unflushed_max_age`: all unflushed objects are discarded.
    /// Io, Denied
    ///     The operating system rejected the write: no object becomes visible, and a later flush retries, unless the
    ///     error states that the store must be reopened.
    pub(super) fn flush(&self, py: Python<'_>) -> PyResult<PyFlushed> {
        let home = self.home(py)?;
        py.detach(|| home.flush()).or_raise(py).map(PyFlushed::from)
    }

    /// discard()
    /// --
    ///
    /// Discards unflushed objects.
    ///
    /// Returns
    /// -------
    /// int
    ///     Number of discarded objects.
    pub(super) fn discard(&self, py: Python<'_>) -> PyResult<u64> {
        let home = self.home(py)?;
        Ok(py.detach(|| home.discard()))
    }

    /// Number of unflushed objects.
    #[getter]
    fn pending(&self, py: Python<'_>) -> PyResult<u64> {
        let home = self.home(py)?;
        Ok(py.detach(|| home.pending()))
    }
}

impl PyStore {
    pub(super) fn archive_file(
        &self,
        py: Python<'_>,
        file: &Path,
        schema: Option<&str>,
        set: &[(String, String)],
        options: FileOptions,
    ) -> PyResult<u64> {
        let home = self.home(py)?;
        let counts = py.detach(|| {
            each_message(
                file,
                (home.store().schemas(), schema),
                set,
                options,
                now_and_then(),
                &mut |schema, given, message| {
                    home.write(|writer| writer.archive_in(schema.name(), given.iter().copied(), message))
                },
            )
        });
        let counts = counts.or_raise(py)?;
        let objects = counts.objects;
        if counts.replaced > 0 {
            let text = format!(
                "{}: {} of {objects} fields replaced others of this file",
                file.display(),
                counts.replaced
            );
            warn(py, &text)?;
        }
        if counts.hidden > 0 {
            let text = format!(
                "{}: {} more fields are hidden in messages of several",
                file.display(),
                counts.hidden
            );
            warn(py, &text)?;
        }
        Ok(objects)
    }
}

fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = CString::new(text.replace('\0', "")).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

/// Checks for Ctrl-C, but not at every read: each check needs the interpreter lock, for which other threads may
/// compete.
fn now_and_then() -> impl Fn() -> junctura::Result<()> {
    let looked = Mutex::new(Instant::now());
    move || {
        let mut looked = looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.elapsed() > ROUND {
            interrupt::check()?;
            *looked = Instant::now();
        }
        Ok(())
    }
}

fn prepare<'py>(
    home: &ProcessStore,
    schema: &Arc<junctura::Schema>,
    object: &Bound<'py, PyAny>,
) -> PyResult<PreparedData<'py>> {
    let Ok((data, attributes)) = object.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>() else {
        let cause = format!("a pair (data, attributes) is expected, not {}", type_name(object));
        return Err(invalid(object.py(), "object", cause));
    };
    PreparedData::read(
        home.place_of_offers(),
        Arc::clone(schema),
        &data,
        Some(&attributes),
        None,
    )
}

/// Archives all objects, and returns their number; `before` objects of the same call are archived already.
fn hand_over(
    py: Python<'_>,
    home: &ProcessStore,
    schema: &junctura::Schema,
    batch: &[PreparedData<'_>],
    before: usize,
) -> PyResult<usize> {
    let lists = batch
        .iter()
        .map(|one| one.attributes.lists(py))
        .collect::<PyResult<Vec<_>>>()?;
    let mut ready = Vec::with_capacity(batch.len());
    for (one, lists) in batch.iter().zip(&lists) {
        ready.push((one.attributes.given(py, lists)?, one.lent()));
    }
    let mut done = 0;
    let written = py.detach(|| {
        home.write(|writer| {
            ready.iter().try_for_each(|(given, payload)| {
                writer.archive_in(schema.name(), given.iter().copied(), payload)?;
                done += 1;
                Ok(())
            })
        })
    });
    for (one, (given, _)) in batch.iter().zip(&ready).take(done) {
        warn_of_another(py, home, schema, one, given)?;
    }
    match written {
        Ok(()) => Ok(done),
        Err(error) => Err(numbered(py, raise(py, &error), before + done)),
    }
}

/// Warns about an array with the same key as another one archived since the last flush: only the last one will be
/// found.
fn warn_of_another(
    py: Python<'_>,
    home: &ProcessStore,
    schema: &junctura::Schema,
    one: &PreparedData<'_>,
    given: &[(&str, Given<'_>)],
) -> PyResult<()> {
    if !one.is_array() {
        return Ok(());
    }
    let mut record = Vec::new();
    schema.record(given.iter().copied(), &mut record).or_raise(py)?;
    let record = RecordRef::trusted(&record);
    if home.note_array(schema.name(), record.key_bytes(schema.key_len())) {
        return Ok(());
    }
    let mut key = String::new();
    schema.key_of(record, &mut key);
    let message = format!(
        "several arrays have the key {key}, and only the last one is found: flush between them, or distinguish them by an attribute of the key"
    );
    let message = std::ffi::CString::new(message)?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1)
}

/// Adds the position of the object to the error.
fn numbered(py: Python<'_>, error: PyErr, index: usize) -> PyErr {
    let named = error.value(py).setattr("index", index);
    named.err().unwrap_or(error)
}
