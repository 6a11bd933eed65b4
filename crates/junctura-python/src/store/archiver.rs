//! From a pool into a store, in a thread beside the caller's.

use std::time::{Duration, Instant};

use junctura::{ArchiverOptions, ArchiverThread, Code};
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;

use super::PyStore;
use crate::error::{OrRaise, invalid};
use crate::interrupt;
use crate::options::{length_of_time, timeout as read_timeout};
use crate::pool::PyPool;

/// Python is asked for its signals so often, at least.
const ROUND: Duration = Duration::from_millis(200);

/// What an archiver has done.
#[pyclass(module = "junctura", name = "ArchiverCounts", frozen, get_all, eq)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PyArchiverCounts {
    /// Objects that are in the store, flushed.
    archived: u64,
    /// Their bytes.
    nbytes: u64,
    /// Objects that were released and not archived, since only one of so many is.
    left_out: u64,
    /// Objects that matched, and went before they could be archived.
    missed: u64,
    /// Objects that could not be archived, for a reason of their own or when something ended it: they stay in the pool, for the next one.
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

/// Keeps in a store what a pool has: all that a selector matches, or one of so many of it. It begins at once, in a thread and
/// with a connection of its own: nobody who offers waits for it, but for memory that it has yet to free.
///
/// It follows a requirement with a name, which keeps what matches in the pool until it is in the store, also while no archiver
/// runs: what a process that was killed had not finished, the next archiver finishes. `Pool.retract` ends the requirement. Several
/// archivers may share the work as long as their requirements differ. Who offers with `durability="durable"` is answered when the
/// object is on the disk. The end of the `with` block is a `stop`, which says what went wrong.
///
/// What `store` has archived by its own `archive` is its own: this has a writer apart. A forked child has no part in it.
///
/// Parameters
/// ----------
/// pool : Pool
/// store : Store
/// selector : str or list of str
///     Which objects; of several each must hold. `""` and `"*"` mean all.
/// requirement : str
///     The requirement's name.
/// every : int
///     Archive one of so many objects that match, the first of each, and release the others. Counted by collocation: of the objects whose
///     keys have all but the last level in common.
/// flush_every : int, optional
///     Flush at the latest when so many objects are held. Without it as many as come together, up to the window.
/// flush_interval : float, str or datetime.timedelta, optional
///     Hold objects for so long, that more become visible together; without it until nothing more has come. What is held stays in the pool's
///     memory, and who offers durably waits for it.
/// until_live : bool
///     End when all that is there is archived, and leave no requirement behind.
/// checkpoint_every : int
///     Write the catalogue as Parquet files after each so many commits, so that who opens the store has little to read; 0 never does.
/// window : int
///     How many objects may be held at once.
///
/// Raises
/// ------
/// InvalidSelector, InvalidArgument
///     What is wrong with an argument.
/// Conflict
///     The requirement's name stands for another selector.
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

#[pymethods]
impl PyArchiver {
    #[new]
    #[pyo3(signature = (pool, store, selector, *, requirement="archive", every=1, flush_every=None, flush_interval=None, until_live=false, checkpoint_every=1000, window=1024))]
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
    ) -> PyResult<Self> {
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
        let began = py.detach(|| junctura::Archiver::start(from, to, &selector, &options));
        Ok(Self {
            inner: began.or_raise_about(py, &selector)?,
            what: format!("{selector:?} of {} to {}", from.url(), home.place()),
        })
    }

    /// What it has done so far.
    #[getter]
    fn counts(&self) -> PyArchiverCounts {
        self.inner.counts().into()
    }

    /// Whether it has ended: it was stopped, or `until_live`, or something went wrong, which `wait` and `stop` say.
    #[getter]
    fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    /// Waits until it has ended by itself, as it does with `until_live`.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds to wait; 0 does not wait. None waits as long as it takes.
    ///
    /// Returns
    /// -------
    /// ArchiverCounts
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     It goes on.
    /// Gone
    ///     Something that matched went before it was archived.
    /// Closed
    ///     The pool has ended, or somebody has retracted the requirement.
    /// SchemaMismatch, NotFound, Corrupt, Expired, LimitExceeded, TooLarge, ...
    ///     An object could not be archived: the store has another schema by that name, or none; it is an array without its pieces. The
    ///     first such object is named. All others were archived.
    /// Io, Unavailable, Expired, Disconnected
    ///     The disk, or the server. What was not archived stays in the pool.
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

    /// Ends it when all that the pool has for it now is archived. What comes later stays in the pool for the next one, unless the
    /// requirement is retracted. A disk that refuses is not waited for.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds to wait; None waits as long as it takes. It goes on to its end if they are not enough.
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

    /// Stops it. What went wrong with it is raised, unless an exception ends the block: then that goes on.
    fn __exit__(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match self.stop(py, None) {
            Err(error) if raised.is_none() => Err(error),
            // Whoever is in a hurry is not held up, and says so once more.
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) => Err(error),
            _ => Ok(()),
        }
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Archiver {}, {}>", self.what, self.counts().__repr__())
    }
}

impl Drop for PyArchiver {
    /// It ends by itself, and nobody is told what went wrong.
    fn drop(&mut self) {
        if self.inner.is_over() || crate::ending::is_ending() {
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
