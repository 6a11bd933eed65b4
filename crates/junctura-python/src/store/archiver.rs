//! Archiving from a pool into a store, in a thread of its own.

use std::time::{Duration, Instant};

use junctura::{ArchiverOptions, ArchiverThread, Code, Error};
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyStore;
use crate::conversion::keywords::refuse_unknown;
use crate::conversion::options::{length_of_time, timeout as read_timeout};
use crate::conversion::usage::warn_of_usage;
use crate::pool::PyPool;
use crate::runtime::error::{OrRaise, invalid, raise};
use crate::runtime::interrupt;

/// Maximum interval between checks for Python's signals.
const ROUND: Duration = Duration::from_millis(200);

/// The results of an archiver.
///
/// Examples
/// --------
/// >>> store = junctura.Store.create(folder / "store", schema="free")
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     archiver = junctura.Archiver(pool, store, "")
/// ...     version = pool.offer(b"payload", name="a")
/// ...     archiver.stop()
/// ArchiverCounts(archived=1, nbytes=7, left_out=0, missed=0, failed=0)
#[pyclass(module = "junctura", name = "ArchiverCounts", frozen, get_all, eq)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PyArchiverCounts {
    /// Number of objects in the store, flushed.
    archived: u64,
    /// Total size of their payloads in bytes.
    nbytes: u64,
    /// Number of objects that were released without archiving, because of `every`.
    left_out: u64,
    /// Number of matching objects that were removed before they could be archived.
    missed: u64,
    /// Number of objects that could not be archived, because of an error or an early end: they stay in the pool, for
    /// the next archiver.
    failed: u64,
}

impl From<junctura::ArchiverCounts> for PyArchiverCounts {
    fn from(counts: junctura::ArchiverCounts) -> Self {
        Self {
            archived: counts.archived,
            nbytes: counts.bytes,
            left_out: counts.left_out,
            missed: counts.missed,
            failed: counts.failed,
        }
    }
}

#[pymethods]
impl PyArchiverCounts {
    fn __repr__(&self) -> String {
        let Self {
            archived,
            nbytes,
            left_out,
            missed,
            failed,
        } = self;
        format!(
            "ArchiverCounts(archived={archived}, nbytes={nbytes}, left_out={left_out}, missed={missed}, failed={failed})"
        )
    }
}

/// Archives objects of a pool in a store: every object that a selector matches, or one of every N. It starts at once,
/// in a thread and with a connection of its own. Producers do not wait for it, unless they need memory that it has not
/// freed yet.
///
/// It follows a named requirement, which retains matching objects in the pool until they are in the store, even while
/// no archiver runs: the next archiver resumes the work of a killed one. `Pool.retract` ends the requirement. Several
/// archivers may run at once if their requirements differ. Offers with `durability="durable"` are acknowledged when the
/// object is on disk. The end of the `with` block calls `stop`, which raises errors.
///
/// The archiver has its own writer, separate from that of `store.archive`. It does not run in forked children.
///
/// Parameters
/// ----------
/// pool : Pool
/// store : Store
/// selector : str or list of str
///     Selector of the objects; of several selectors each must match. `""` and `"*"` match all.
/// requirement : str
///     The requirement's name.
/// every : int
///     Archive one of this many matching objects, the first of each, and release the others. Counted per collocation:
///     among objects whose keys agree in all levels but the last.
/// flush_every : int, optional
///     Flush at the latest when this many objects are held. Without it, objects that arrive together are flushed
///     together, up to the window.
/// flush_interval : float, str or datetime.timedelta, optional
///     Hold objects for this time, so that more become visible together; without it, until no more arrive. Held objects
///     stay in the pool's memory, and durable offers wait for them.
/// until_live : bool
///     End when all existing objects are archived, and remove the requirement.
/// checkpoint_every : int
///     Write the catalogue as Parquet files after every this many commits, so that the store opens faster; 0 disables
///     checkpoints.
/// window : int
///     Maximum number of held objects.
///
/// Raises
/// ------
/// InvalidSelector, InvalidArgument
///     An argument is invalid.
/// Conflict
///     A requirement of this name has another selector.
/// SchemaMismatch
///     The store has no schema of the pool.
///
/// Warns
/// -----
/// UsageWarning
///     The store lacks a schema of the pool.
///
/// Examples
/// --------
/// >>> store = junctura.Store.create(folder / "images", schema="free")
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     with junctura.Archiver(pool, store, "type=image", every=10) as archiver:
/// ...         for number in range(21):
/// ...             version = pool.offer(b"pixels", type="image", name=str(number))
/// ...     archiver.counts.archived, archiver.counts.left_out
/// (3, 18)
/// >>> [obj["name"] for obj in store.list()]
/// ['0', '10', '20']
#[pyclass(module = "junctura", name = "Archiver", frozen, weakref)]
pub(crate) struct PyArchiver {
    inner: ArchiverThread,
    what: String,
}

fn selector_of(given: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(selector) = given.extract::<String>() {
        return Ok(selector);
    }
    let selectors = given.extract::<Vec<String>>().map_err(|_| {
        let found = given.repr().map_or_else(|_| String::new(), |repr| repr.to_string());
        let cause = format!("a text or a list of texts is expected, not {found}");
        invalid(given.py(), "selector", cause)
    })?;
    Ok(selectors.join(","))
}

/// Compares the schemas of a pool and a store: an object of a schema that the store lacks cannot be archived.
///
/// # Errors
/// `SchemaMismatch` if the store has no schema of the pool; the `UsageWarning` for one that it lacks, if the program treats warnings as
/// errors. A pool with all built-in schemas was probably opened without any: these are not reported.
fn check_schemas(py: Python<'_>, pool: &junctura::Pool, store: &junctura_store::Store, place: &str) -> PyResult<()> {
    let schemas = py.detach(|| pool.schemas()).or_raise(py)?;
    let is_builtin = |name: &str| junctura::Schema::BUILTIN_NAMES.contains(&name);
    let has_all = junctura::Schema::BUILTIN_NAMES
        .iter()
        .all(|name| schemas.iter().any(|schema| schema.name() == *name));
    let lacks = |name: &str| store.schemas().iter().all(|schema| schema.name() != name);
    let lacking: Vec<&str> = schemas
        .iter()
        .map(|schema| schema.name())
        .filter(|name| lacks(name))
        .collect();
    if lacking.len() == schemas.len() {
        let own: Vec<&str> = store.schemas().iter().map(|schema| schema.name()).collect();
        let cause = format!(
            "the store has the schemas {}, and none of the pool's ({}): create it with schema=pool.schemas, or add one with \
             store.set_schema(pool.schema({:?}))",
            own.join(", "),
            lacking.join(", "),
            lacking.first().unwrap_or(&"")
        );
        return Err(raise(py, &Error::new(Code::SchemaMismatch, place, cause)));
    }
    let reported = lacking.into_iter().filter(|name| !(has_all && is_builtin(name)));
    reported.into_iter().try_for_each(|name| {
        let mistake = format!(
            "the store {place} lacks the schema {name} of the pool: objects of this schema are not archived, and stay in the pool; \
             add it first with store = store.set_schema(pool.schema({name:?}))"
        );
        warn_of_usage(py, &mistake)
    })
}

#[pymethods]
impl PyArchiver {
    #[new]
    #[pyo3(signature = (pool, store, selector, *, requirement="archive", every=1, flush_every=None, flush_interval=None, until_live=false, checkpoint_every=1000, window=1024, **unknown), text_signature = "(pool, store, selector, *, requirement='archive', every=1, flush_every=None, flush_interval=None, until_live=False, checkpoint_every=1000, window=1024)")]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        pool: &Bound<'_, PyPool>,
        store: &Bound<'_, PyStore>,
        selector: &Bound<'_, PyAny>,
        requirement: &str,
        every: u64,
        flush_every: Option<u64>,
        flush_interval: Option<&Bound<'_, PyAny>>,
        until_live: bool,
        checkpoint_every: u64,
        window: u32,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        refuse_unknown(py, "Archiver", unknown)?;
        let flush_interval = flush_interval.map(|given| length_of_time(given, "flush_interval"));
        let home = store.get().home(py)?;
        let options = ArchiverOptions {
            requirement: requirement.to_owned(),
            every,
            flush_every,
            flush_interval: flush_interval.transpose()?,
            until_live,
            checkpoint_every,
            window,
            location: Some(home.place().to_string()),
        };
        let selector = selector_of(selector)?;
        let (from, to) = (&pool.get().inner, home.store());
        check_schemas(py, from, to, &home.place().to_string())?;
        let began = py.detach(|| junctura::Archiver::start(from, to, &selector, &options));
        Ok(Self {
            inner: began.or_raise_about(py, &selector)?,
            what: format!("{selector:?} of {} to {}", from.url(), home.place()),
        })
    }

    /// The results so far.
    #[getter]
    fn counts(&self) -> PyArchiverCounts {
        self.inner.counts().into()
    }

    /// Whether it has ended: it was stopped, or reached `until_live`, or failed; `wait` and `stop` raise the error.
    #[getter]
    fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    /// Waits until it has ended by itself, as with `until_live`.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds to wait; 0 does not wait. None waits without a limit.
    ///
    /// Returns
    /// -------
    /// ArchiverCounts
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     It is still running.
    /// Gone
    ///     A matching object was removed before it was archived.
    /// Closed
    ///     The pool has ended, or the requirement was retracted.
    /// SchemaMismatch, NotFound, Corrupt, Expired, LimitExceeded, TooLarge, ...
    ///     An object could not be archived: the store has a different schema of that name, or none; or it is an array
    ///     with missing pieces. The error names the first such object. All others were archived.
    /// Io, Unavailable, Expired, Disconnected
    ///     The disk or the server failed. Objects that were not archived stay in the pool.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<PyArchiverCounts> {
        let until = read_timeout(py, timeout)?.and_then(|time| Instant::now().checked_add(time));
        let ended = py.detach(|| {
            loop {
                let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                let is_last = left.is_some_and(|left| left <= ROUND);
                let round = left.map_or(ROUND, |left| left.min(ROUND));
                match self.inner.wait(Some(round)) {
                    Err(error) if error.code() == Code::Timeout && !is_last => interrupt::check()?,
                    ended => return ended,
                }
            }
        });
        ended.or_raise(py).map(Into::into)
    }

    /// Stops it after all current objects of the pool have been archived. Later objects stay in the pool for the next
    /// archiver, unless the requirement is retracted. It does not wait for a failing disk.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds to wait; None waits without a limit. After a timeout it continues to stop in the background.
    ///
    /// Returns
    /// -------
    /// ArchiverCounts
    ///
    /// Raises
    /// ------
    /// Timeout, Gone, Closed, SchemaMismatch, NotFound, Io, Unavailable, Expired, Disconnected
    ///     As `wait`.
    #[pyo3(signature = (timeout=None))]
    fn stop(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<PyArchiverCounts> {
        py.detach(|| self.inner.begin_stop());
        self.wait(py, timeout)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Stops the archiver and raises its error, unless an exception ends the block: then that exception propagates.
    fn __exit__(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match self.stop(py, None) {
            Err(error) if raised.is_none() => Err(error),
            // An interrupt of this wait is raised even after another exception.
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) => Err(error),
            _ => Ok(()),
        }
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Archiver {}, {}>", self.what, self.counts().__repr__())
    }
}

impl Drop for PyArchiver {
    /// It ends by itself, and its error is not reported.
    fn drop(&mut self) {
        if self.inner.is_over() || crate::runtime::ending::is_ending() {
            return;
        }
        Python::try_attach(|py| {
            py.detach(|| self.inner.begin_stop());
            let message = format!("an archiver ({}) was forgotten and never stopped", self.what);
            let warned = std::ffi::CString::new(message)
                .map_err(PyErr::from)
                .and_then(|message| PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &message, 1));
            if let Err(error) = warned {
                error.write_unraisable(py, None);
            }
        });
    }
}
