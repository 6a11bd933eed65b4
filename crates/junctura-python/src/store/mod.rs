//! The store as Python users hold it.

mod archive;
mod archiver;
mod done;
mod follow;
mod listing;
mod look;
mod payload;
mod payloads;
mod place;
mod process_store;
mod schemas;
mod snapshot;
mod stored;
mod tiers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use junctura::Code;
use junctura_cli::FileOptions;
use junctura_store::{Commits, Compression, PackingRule, StoreLayout};
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversion::keywords::{refuse_unknown, refuse_unknown_of};
use crate::conversion::options::{length_of_time, sources};
use crate::model::schema::PySchema;
use crate::runtime::error::{OrRaise, invalid};

pub(crate) use archiver::{PyArchiver, PyArchiverCounts};
pub(crate) use done::{PyChecked, PyCheckpointed, PyCompacted, PyFlushed, PyMoved, PyRemoved};
pub(crate) use follow::PyFollowing;
pub(crate) use listing::{PyListing, PyObjects};
pub(crate) use payload::PyPayload;
pub(crate) use payloads::PyPayloads;
pub(crate) use place::StorePlace;
use process_store::ProcessStore;
pub(crate) use snapshot::PySnapshot;
pub(crate) use stored::{PyLocation, PyStored};

/// A persistent store of objects, with the keys and selectors of a pool.
///
/// `archive` adds an object to the store; `flush` returns when all objects archived before it are on disk, and become
/// visible to all readers together. Any number of processes may write to one store, and readers never wait for writers.
/// The end of a `with` block flushes, unless an exception ends it: then unflushed objects are discarded. Dropping a
/// store with unflushed objects causes a `ResourceWarning`.
///
/// Thread-safe. Threads share its one writer, and a flush includes the objects that all threads have archived. A forked
/// child reopens the store when it first uses it; unflushed objects of the parent stay with the parent. A pickled store
/// is reopened when it is unpickled.
///
/// Parameters
/// ----------
/// path : path or str
///     The folder of the store, or a URL: `file:///FOLDER`; the same with `?cache=FOLDER&cache_size=20GiB`, to cache
///     reads from a slow folder in a fast one; `s3://BUCKET/PREFIX?endpoint=URL&region=NAME` for an object store, with
///     credentials from the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`); `memory:NAME` in this process,
///     removed when its last handle is closed.
/// create : bool
///     Whether to create the store if it does not exist, with the built-in schemas, `mars` first.
///
/// Raises
/// ------
/// NotFound
///     The store does not exist.
/// Unsupported, Corrupt
///     The store has a later format version, or the place has no store.
/// Unavailable, Denied
///     The object store does not answer, or denies access.
///
/// Examples
/// --------
/// >>> with junctura.Store.create(folder / "store", schema="free") as store:
/// ...     store.archive(b"payload", name="a", colour="red")
/// >>> [(obj["name"], obj.read()) for obj in store.list("colour=red")]
/// [('a', b'payload')]
#[pyclass(module = "junctura", name = "Store", frozen, weakref)]
pub(crate) struct PyStore {
    home: ProcessStore,
}

impl PyStore {
    fn of(place: StorePlace, store: junctura_store::Store) -> Self {
        Self {
            home: ProcessStore::new(place, store),
        }
    }

    fn home(&self, py: Python<'_>) -> PyResult<&ProcessStore> {
        self.home.here().or_raise(py)
    }

    fn open(py: Python<'_>, place: StorePlace, create: bool) -> PyResult<Self> {
        let opened = py.detach(|| match place.open() {
            Err(error) if error.code() == Code::NotFound && create => make_default(&place),
            other => other,
        });
        Ok(Self::of(place, opened.or_raise(py)?))
    }
}

impl Drop for PyStore {
    /// Warns that unflushed objects are lost.
    fn drop(&mut self) {
        let left = self.home.left();
        if left == 0 {
            return;
        }
        Python::try_attach(|py| {
            let message = format!(
                "{left} objects were archived in {} and never flushed",
                self.home.place()
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

/// Creates a store, or opens the one that another process has created in the meantime.
fn make_default(place: &StorePlace) -> junctura::Result<junctura_store::Store> {
    match place.create(&builtin(), StoreLayout::default()) {
        Err(error) if error.code() == Code::AlreadyExists => place.open(),
        other => other,
    }
}

/// The default schemas of a new store.
fn builtin() -> Vec<Arc<junctura::Schema>> {
    let names = junctura::Schema::BUILTIN_NAMES;
    names.into_iter().filter_map(junctura::Schema::builtin).collect()
}

/// How writers agree on the order of commits.
fn order(given: &Bound<'_, PyAny>) -> PyResult<Commits> {
    match given.extract::<&str>() {
        Ok("appended") => Ok(Commits::Appended),
        Ok("exclusive") => Ok(Commits::Exclusive),
        _ => {
            let cause = format!("'appended' or 'exclusive' is expected, not {}", given.repr()?);
            Err(invalid(given.py(), "commits", cause))
        }
    }
}

/// Compression of datasets: one text for all, or a dict of selectors.
fn packings(given: &Bound<'_, PyAny>) -> PyResult<Vec<PackingRule>> {
    let py = given.py();
    if let Ok(codec) = given.extract::<&str>() {
        return Ok(vec![codec.parse::<Compression>().or_raise(py)?.into()]);
    }
    let Ok(given) = given.cast::<PyDict>() else {
        let cause = format!("a text or a dict is expected, not {}", given.repr()?);
        return Err(invalid(py, "compression", cause));
    };
    let packing = |(datasets, codec): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok(PackingRule {
            datasets: datasets.extract()?,
            compression: codec.extract::<&str>()?.parse().or_raise(py)?,
        })
    };
    given.iter().map(packing).collect()
}

#[pymethods]
impl PyStore {
    #[new]
    #[pyo3(signature = (path, *, create=false, **unknown), text_signature = "(path, *, create=False)")]
    fn new(path: &Bound<'_, PyAny>, create: bool, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let elsewhere = ("Store.create", "Store.create(path, ...) has it, and creates the store");
        refuse_unknown_of(path.py(), "Store", unknown, elsewhere)?;
        Self::open(path.py(), StorePlace::of(path)?, create)
    }

    /// Creates a store in a folder, which is created if missing, or at a URL. A bucket must exist; its server must
    /// support conditional puts, which the order of commits needs and which this call checks.
    ///
    /// Parameters
    /// ----------
    /// path : path or str
    ///     The folder, or a URL, as `Store` takes it.
    /// schema : str, path, Schema or a list of these, optional
    ///     The name of a built-in schema, the text of a schema file, its path, or a `Schema`. The first one is the
    ///     default schema. Default: the built-in ones, `mars` first.
    /// snapshot_max_age, unflushed_max_age : float, str or datetime.timedelta
    ///     How long objects of a snapshot can be read, and archived objects be flushed, regardless of concurrent
    ///     removals: seconds, or a text such as `"12h"`. Default: 24 hours. Recorded in the store and binding for all
    ///     its users.
    /// data : path or str, optional
    ///     Another folder, or URL, for the bytes of large flushes: the catalogue on a fast disk, the data on a large
    ///     one.
    /// commits : {"appended", "exclusive"}, optional
    ///     How writers agree on the order of commits: with a lock on one file, the default in a folder; or with
    ///     conditional puts, as in an object store, and for file systems without reliable locks.
    /// compression : str or dict of str to str, optional
    ///     Lossless compression of objects, transparent to readers: `"zstd"`, `"zstd:LEVEL"` (1 to 19) or `"lz4"`. A
    ///     dict sets it per dataset: its keys are selectors with only attributes of the first level of a key; of
    ///     several that match one dataset, the first applies. Default: no compression.
    /// Returns
    /// -------
    /// Store
    ///
    /// Raises
    /// ------
    /// AlreadyExists
    ///     A store exists there.
    /// InvalidArgument, NotFound
    ///     A schema, an age or a place is invalid.
    /// Unsupported
    ///     The object store does not support conditional puts.
    ///
    /// Examples
    /// --------
    /// >>> store = junctura.Store.create(folder / "store", schema=["mars", "free"], snapshot_max_age="12h")
    /// >>> [schema.name for schema in store.schemas], store.snapshot_max_age
    /// (['mars', 'free'], datetime.timedelta(seconds=43200))
    #[staticmethod]
    #[pyo3(signature = (path, *, schema=None, snapshot_max_age=None, unflushed_max_age=None, data=None, commits=None, compression=None, **unknown), text_signature = "(path, *, schema=None, snapshot_max_age=None, unflushed_max_age=None, data=None, commits=None, compression=None)")]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn create(
        path: &Bound<'_, PyAny>,
        schema: Option<&Bound<'_, PyAny>>,
        snapshot_max_age: Option<&Bound<'_, PyAny>>,
        unflushed_max_age: Option<&Bound<'_, PyAny>>,
        data: Option<&Bound<'_, PyAny>>,
        commits: Option<&Bound<'_, PyAny>>,
        compression: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        refuse_unknown(path.py(), "Store.create", unknown)?;
        let py = path.py();
        let place = StorePlace::of(path)?;
        let schemas = match schema {
            Some(given) => {
                let mut schemas = Vec::new();
                for source in sources(given)? {
                    schemas.extend(source.read().or_raise(py)?);
                }
                schemas
            }
            None => builtin(),
        };
        let mut layout = StoreLayout {
            commits: commits.map(order).transpose()?,
            ..StoreLayout::default()
        };
        if let Some(given) = snapshot_max_age {
            layout.ages.snapshot_max = length_of_time(given, "snapshot_max_age")?;
        }
        if let Some(given) = unflushed_max_age {
            layout.ages.unflushed_max = length_of_time(given, "unflushed_max_age")?;
        }
        if let Some(given) = data {
            layout.data = Some(StorePlace::of(given)?.text().or_raise(py)?.to_owned());
        }
        if let Some(given) = compression {
            layout.compression = packings(given)?;
        }
        let created = py.detach(|| place.create(&schemas, layout));
        Ok(Self::of(place, created.or_raise(py)?))
    }

    /// Creates a store, or opens an existing one, and archives and flushes the fields of GRIB files. `archive_grib` has
    /// options, and its result reports replaced objects.
    ///
    /// Parameters
    /// ----------
    /// path : path or str
    ///     The folder of the store, or a URL, as `Store` takes it.
    /// files : path or iterable of paths
    ///
    /// Returns
    /// -------
    /// Store
    ///
    /// Raises
    /// ------
    /// Corrupt
    ///     A file has no message, or a corrupt one; the error names the file. Then nothing is flushed.
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
        let store = Self::open(py, StorePlace::of(path)?, true)?;
        for file in files {
            store.archive_file(py, &file, None, &[], FileOptions::default())?;
        }
        store.flush(py)?;
        Ok(store)
    }

    /// The folder of the store; raises `Unsupported` if it is not in a folder, or was opened by a URL with options.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<&std::path::Path> {
        self.home.place().folder().or_raise(py)
    }

    /// The path of the store's folder, or the URL by which it was opened.
    #[getter]
    fn url(&self) -> String {
        self.home.place().to_string()
    }

    /// How its writers agree on the order of commits: `"appended"` or `"exclusive"`.
    #[getter]
    fn commits(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(match self.home(py)?.store().commits() {
            Commits::Appended => "appended",
            Commits::Exclusive => "exclusive",
        })
    }

    /// The schemas of the stored objects; the first one is the default schema.
    #[getter]
    fn schemas(&self, py: Python<'_>) -> PyResult<Vec<PySchema>> {
        let schemas = self.home(py)?.store().schemas();
        Ok(schemas.iter().cloned().map(PySchema).collect())
    }

    /// How long objects of a snapshot can be read.
    #[getter]
    fn snapshot_max_age(&self, py: Python<'_>) -> PyResult<Duration> {
        Ok(self.home(py)?.store().ages().snapshot_max)
    }

    /// How long archived objects can be flushed.
    #[getter]
    fn unflushed_max_age(&self, py: Python<'_>) -> PyResult<Duration> {
        Ok(self.home(py)?.store().ages().unflushed_max)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Flushes; if an exception ends the block, discards unflushed objects. The store can be used afterwards.
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
        format!("<junctura.Store {}>", self.home.place())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        let place = slf.get().home.place().into_pyobject(slf.py())?;
        Ok((slf.get_type().into_any(), (place,)))
    }
}
