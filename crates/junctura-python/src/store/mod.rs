//! The store as Python users hold it.

mod archive;
mod done;
mod home;
mod listing;
mod look;
mod payload;
mod snapshot;
mod stored;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use junctura::Code;
use junctura_store::Ages;
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::{OrRaise, invalid};
use crate::options::{length_of_time, sources};
use crate::schema::Schema;

pub(crate) use done::{Checked, Checkpointed, Compacted, Flushed, Removed};
use home::Home;
pub(crate) use listing::{Listing, Objects};
pub(crate) use payload::Payload;
pub(crate) use snapshot::Snapshot;
pub(crate) use stored::{Location, Stored};

/// A place where objects last: kept under the same keys, and found by the same selectors, as in a pool.
///
/// `archive` hands an object over; `flush` returns when everything that was archived before it is on the disk and visible to
/// everybody, all of it at once. Any number of processes may write to one store, and readers never wait for them. The end of
/// a `with` block flushes, unless an exception ends it: then what was not flushed is forgotten. Who drops a store without either gets a `ResourceWarning`.
///
/// Threads may share it; they share its one writer, too, and a flush flushes what all of them have archived. In a forked child it is opened anew when it is first used there, and what its parent has not flushed stays its
/// parent's. A pickled one is opened anew where it is read.
///
/// Parameters
/// ----------
/// path : path or str
///     The folder that it is in, or a URL `file:///...` of it.
/// create : bool
///     Whether to make one, with the built-in schemas, `mars` before the others, where there is none.
///
/// Raises
/// ------
/// NotFound
///     There is none.
/// Unsupported, Corrupt
///     It is of a later version, or no store.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a", colour="red")
/// >>> [(obj["name"], obj.read()) for obj in store.list("colour=red")]
/// [('a', b'payload')]
#[pyclass(module = "junctura", frozen, weakref)]
pub(crate) struct Store {
    home: Home,
}

impl Store {
    fn of(path: PathBuf, store: junctura_store::Store) -> Self {
        Self {
            home: Home::new(path, store),
        }
    }

    fn home(&self, py: Python<'_>) -> PyResult<&Home> {
        self.home.here().or_raise(py)
    }

    fn open(py: Python<'_>, path: PathBuf, create: bool) -> PyResult<Self> {
        let opened = py.detach(|| match junctura_store::Store::open(&path) {
            Err(error) if error.code() == Code::NotFound && create => make_default(&path),
            other => other,
        });
        Ok(Self::of(path, opened.or_raise(py)?))
    }
}

impl Drop for Store {
    /// Nobody will see what was not flushed: who forgot it is told.
    fn drop(&mut self) {
        let left = self.home.left();
        if left == 0 {
            return;
        }
        Python::try_attach(|py| {
            let message = format!(
                "{left} objects were archived in {} and never flushed",
                self.home.path().display()
            );
            let warned = std::ffi::CString::new(message)
                .map_err(PyErr::from)
                .and_then(|message| PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &message, 1));
            if let Err(error) = warned {
                error.write_unraisable(py, None);
            }
        });
    }
}

/// Makes one, or opens what another one has made meanwhile.
fn make_default(path: &std::path::Path) -> junctura::Result<junctura_store::Store> {
    match junctura_store::Store::create(path, &builtin(), Ages::default()) {
        Err(error) if error.code() == Code::AlreadyExists => junctura_store::Store::open(path),
        other => other,
    }
}

/// Of a store that is made without saying any.
fn builtin() -> Vec<Arc<junctura::Schema>> {
    let names = junctura::Schema::BUILTIN_NAMES;
    names.into_iter().filter_map(junctura::Schema::builtin).collect()
}

/// The folder that a path, or a URL of the scheme `file`, means.
fn folder(given: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let py = given.py();
    let text = given.cast::<PyString>().ok().map(|text| text.to_str()).transpose()?;
    let plain = || absolute(given.extract()?);
    let Some((scheme, rest)) = text.and_then(|text| text.split_once(':')) else {
        return plain();
    };
    match (scheme, rest.strip_prefix("//")) {
        ("file", None) => local(py, rest),
        ("file", Some(rest)) => {
            let at = rest.find('/').unwrap_or(rest.len());
            let (host, path) = rest.split_at(at);
            if !host.is_empty() && host != "localhost" {
                let cause = format!(
                    "it is on {host}: a store is opened on the machine that has it, or by a path that it is mounted at"
                );
                return Err(invalid(py, "store", cause));
            }
            local(py, path)
        }
        (_, Some(_)) => {
            let cause = format!("a path or file: is expected, not {scheme}:");
            Err(invalid(py, "store", cause))
        }
        _ => plain(),
    }
}

fn local(py: Python<'_>, path: &str) -> PyResult<PathBuf> {
    if path.is_empty() {
        return Err(invalid(py, "store", "the URL names no folder"));
    }
    let path = py.import("urllib.request")?.call_method1("url2pathname", (path,))?;
    absolute(path.extract()?)
}

/// It is the same folder also when the working directory is another one.
fn absolute(path: PathBuf) -> PyResult<PathBuf> {
    std::path::absolute(path).map_err(PyErr::from)
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (path, *, create=false))]
    fn new(path: &Bound<'_, PyAny>, create: bool) -> PyResult<Self> {
        Self::open(path.py(), folder(path)?, create)
    }

    /// Makes a store in a folder, which is made, too, where it is not there.
    ///
    /// Parameters
    /// ----------
    /// path : path or str
    ///     The folder, or a URL `file:///...` of it.
    /// schema : str, path, Schema or a list of these, optional
    ///     The name of a built-in schema, the text of a schema file, its path, or a `Schema`. The first one is meant where none
    ///     is named. Without it the built-in ones, `mars` before the others.
    /// snapshot_max_age, unflushed_max_age : float, str or datetime.timedelta
    ///     How long what a snapshot shows can be read, and what was archived be flushed, whatever others remove meanwhile: seconds, or a text
    ///     such as `"12h"`. 24 hours unless told. It is written into the store, and everybody keeps to it.
    ///
    /// Returns
    /// -------
    /// Store
    ///
    /// Raises
    /// ------
    /// AlreadyExists
    ///     There is one.
    /// InvalidArgument, NotFound
    ///     What is wrong with a schema or an age.
    ///
    /// Examples
    /// --------
    /// >>> store = junctura.Store.create(folder / "store", schema=["mars", "free"], snapshot_max_age="12h")
    /// >>> [schema.name for schema in store.schemas], store.snapshot_max_age
    /// (['mars', 'free'], datetime.timedelta(seconds=43200))
    #[staticmethod]
    #[pyo3(signature = (path, *, schema=None, snapshot_max_age=None, unflushed_max_age=None))]
    fn create(
        path: &Bound<'_, PyAny>,
        schema: Option<&Bound<'_, PyAny>>,
        snapshot_max_age: Option<&Bound<'_, PyAny>>,
        unflushed_max_age: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = path.py();
        let folder = folder(path)?;
        let schemas = match schema {
            Some(given) => sources(given)?
                .into_iter()
                .map(|source| source.read().or_raise(py))
                .collect::<PyResult<Vec<_>>>()?,
            None => builtin(),
        };
        let mut ages = Ages::default();
        if let Some(given) = snapshot_max_age {
            ages.snapshot_max = length_of_time(given, "snapshot_max_age")?;
        }
        if let Some(given) = unflushed_max_age {
            ages.unflushed_max = length_of_time(given, "unflushed_max_age")?;
        }
        let created = py.detach(|| junctura_store::Store::create(&folder, &schemas, ages));
        Ok(Self::of(folder, created.or_raise(py)?))
    }

    /// Makes a store, or opens it where it is, and archives and flushes the messages of GRIB files: `archive_grib`.
    ///
    /// Parameters
    /// ----------
    /// path : path or str
    ///     The folder of the store, or a URL `file:///...` of it.
    /// files : path or iterable of paths
    ///
    /// Returns
    /// -------
    /// Store
    ///
    /// Raises
    /// ------
    /// Corrupt
    ///     A file has no message, or a damaged one, which is named. Then nothing is flushed.
    #[staticmethod]
    fn from_grib(path: &Bound<'_, PyAny>, files: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = path.py();
        let files = match files.extract::<PathBuf>() {
            Ok(file) => vec![file],
            Err(_) => files
                .try_iter()?
                .map(|file| file?.extract())
                .collect::<PyResult<Vec<PathBuf>>>()?,
        };
        let store = Self::open(py, folder(path)?, true)?;
        for file in files {
            store.archive_file(py, &file, None, &[])?;
        }
        store.flush(py)?;
        Ok(store)
    }

    /// The folder that it is in.
    #[getter]
    fn path(&self) -> &std::path::Path {
        self.home.path()
    }

    /// The schemas of what it keeps; the first one is meant where none is named.
    #[getter]
    fn schemas(&self, py: Python<'_>) -> PyResult<Vec<Schema>> {
        let schemas = self.home(py)?.store().schemas();
        Ok(schemas.iter().cloned().map(Schema).collect())
    }

    /// How long what a snapshot shows can be read.
    #[getter]
    fn snapshot_max_age(&self, py: Python<'_>) -> PyResult<Duration> {
        Ok(self.home(py)?.store().ages().snapshot_max)
    }

    /// How long what was archived can be flushed.
    #[getter]
    fn unflushed_max_age(&self, py: Python<'_>) -> PyResult<Duration> {
        Ok(self.home(py)?.store().ages().unflushed_max)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Flushes; where an exception ends the block, forgets what was not flushed. The store can be used afterwards, too.
    fn __exit__(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if raised.is_none() {
            self.flush(py).map(|_| ())
        } else {
            self.discard(py).map(|_| ())
        }
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Store {}>", self.home.path().display())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (PathBuf,)) {
        (slf.get_type().into_any(), (slf.get().path().to_owned(),))
    }
}
