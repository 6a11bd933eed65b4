//! Following: existing objects, then new ones, as a Python iterator.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use junctura::{Awaited, Code, FollowOptions, Item, WaitSource};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::handles::blocking_step::Out;
use crate::handles::object::{FollowHoldings, LoopedObjects, PyReceived};
use crate::model::described::PyDescribed;
use crate::runtime::error::{OrRaise, invalid, raise};
use crate::runtime::interrupt::drop_detached;
use crate::runtime::turns::ThreadTurns;

/// Time that a follow waits with a full window before it warns.
const PATIENCE: Duration = Duration::from_secs(1);

/// Handling of gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GapHandling {
    Raise,
    Yield,
    Ignore,
}

/// A follow's arguments.
pub(crate) struct FollowArguments<'a> {
    pub(crate) options: FollowOptions,
    pub(crate) gaps: &'a str,
    pub(crate) live: &'a str,
}

/// Delivers every object that matches a selector: the existing ones, then new ones.
///
/// Created by `Pool.follow` and `Requirement.follow`. As an iterator it waits for the next object; other Python threads
/// run meanwhile, and Ctrl-C ends the wait. The end of its `with` block, or garbage collection, closes it.
///
/// When a `for` loop waits for the next object, it releases the objects before: those to which nothing but the loop
/// variable and arrays refers. Objects that the program has stored elsewhere, and those of `next()`, stay held.
///
/// Flow control: at most `window` of its objects are held at a time. A reader that holds that many receives no more
/// until it releases some.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     version = pool.offer(b"payload", name="a")
/// ...     with pool.follow("", until_live=True) as follow:
/// ...         print([(obj["name"], bytes(obj)) for obj in follow])
/// [('a', b'payload')]
#[pyclass(module = "junctura", name = "Follow", frozen)]
pub(crate) struct PyFollow {
    inner: Mutex<Option<junctura::Follow>>,
    /// Held by the thread that takes the next item.
    turns: ThreadTurns,
    pub(crate) errand: Out,
    holdings: FollowHoldings,
    window: usize,
    shown: ShownItems,
    snapshot: u64,
}

/// A loop over a follow.
#[pyclass(module = "junctura._native", name = "_FollowLoop", frozen)]
pub(crate) struct PyFollowLoop {
    follow: Py<PyFollow>,
    looped: LoopedObjects,
}

/// A report of objects that the reader missed, because they were removed before they could be delivered.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     for name in "ab":
/// ...         version = pool.offer(b"payload", name=name)
/// ...     follow = pool.follow("", window=1, until_live=True, gaps="yield")
/// ...     count = pool.withdraw(name="b")
/// ...     for item in follow:
/// ...         if isinstance(item, junctura.Gap):
/// ...             print(item.reason, [missed["name"] for missed in item.items])
/// withdrawn ['b']
#[pyclass(module = "junctura", name = "Gap", frozen, get_all)]
pub(crate) struct PyGap {
    /// The missed objects, as far as they can be named: a list of `Described`.
    pub(crate) items: Vec<Py<PyDescribed>>,
    /// Number of further missed objects, without names.
    pub(crate) unnamed: u64,
    /// The reason: `withdrawn`, `expired`, …
    pub(crate) reason: String,
}

#[pymethods]
impl PyGap {
    fn __len__(&self) -> usize {
        self.items.len() + usize::try_from(self.unnamed).unwrap_or(usize::MAX)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Gap of {}: {}>", self.__len__(), self.reason)
    }
}

/// Every object that existed when the follow began has been delivered; later objects are new.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     version = pool.offer(b"payload", name="a")
/// ...     items = pool.follow("", live="yield", until_live=True)
/// ...     print([isinstance(item, junctura.Live) for item in items])
/// [False, True]
#[pyclass(module = "junctura", name = "Live", frozen)]
pub(crate) struct PyLive;

#[pymethods]
impl PyLive {
    fn __repr__(&self) -> &'static str {
        "<junctura.Live>"
    }
}

/// The items that a follow shows besides objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownItems {
    gaps: GapHandling,
    yields_live: bool,
}

impl FollowArguments<'_> {
    /// Returns the items to show, and the other options.
    pub(crate) fn shown(self, py: Python<'_>) -> PyResult<(ShownItems, FollowOptions)> {
        let gaps = match self.gaps {
            "raise" => GapHandling::Raise,
            "yield" => GapHandling::Yield,
            "ignore" => GapHandling::Ignore,
            other => {
                return Err(invalid(
                    py,
                    "gaps",
                    format!("\"raise\", \"yield\" or \"ignore\", not {other:?}"),
                ));
            }
        };
        let yields_live = match self.live {
            "ignore" => false,
            "yield" => true,
            other => return Err(invalid(py, "live", format!("\"ignore\" or \"yield\", not {other:?}"))),
        };
        Ok((ShownItems { gaps, yields_live }, self.options))
    }
}

impl PyFollow {
    pub(crate) fn new(
        py: Python<'_>,
        arguments: FollowArguments<'_>,
        begin: impl FnOnce(FollowOptions) -> junctura::Result<junctura::Follow> + Send,
        selector: &str,
    ) -> PyResult<Self> {
        let (shown, options) = arguments.shown(py)?;
        let follow = py.detach(|| begin(options)).or_raise_about(py, selector)?;
        Ok(Self::of(follow, shown))
    }

    pub(crate) fn of(follow: junctura::Follow, shown: ShownItems) -> Self {
        Self {
            snapshot: follow.snapshot_sequence(),
            window: follow.window() as usize,
            inner: Mutex::new(Some(follow)),
            turns: ThreadTurns::default(),
            errand: Mutex::new(None),
            holdings: FollowHoldings::default(),
            shown,
        }
    }

    /// The next visible item, if it has been read: None in Python if the follow has ended.
    pub(crate) fn taken(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let mut inner = self.lock(py);
        let Some(follow) = inner.as_mut() else {
            return Ok(Some(py.None()));
        };
        loop {
            let item = match py.detach(|| junctura::binding::take_item(follow)).or_raise(py)? {
                Some(item) => item,
                None if follow.is_over() => return Ok(Some(py.None())),
                None => return Ok(None),
            };
            if let Some(shown) = self.show(py, item)? {
                return Ok(Some(shown));
            }
        }
    }

    /// `None`: it was closed.
    pub(crate) fn with<T>(&self, py: Python<'_>, with: impl FnOnce(&mut junctura::Follow) -> T) -> Option<T> {
        self.lock(py).as_mut().map(with)
    }

    pub(crate) fn taken_over(&self, py: Python<'_>) -> Option<junctura::Follow> {
        let errand = self
            .errand
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(errand);
        self.lock(py).take()
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Option<junctura::Follow>> {
        self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn awaiting(&self, py: Python<'_>) -> WaitSource {
        self.lock(py).as_ref().map_or_else(WaitSource::ready, Awaited::awaiting)
    }

    /// Returns the next visible item; `None`: the follow has ended. Threads take turns. No wait locks the follow, so
    /// any thread may close it.
    fn advance(
        &self,
        py: Python<'_>,
        within: Option<Duration>,
        looped: Option<&LoopedObjects>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let deadline = within.and_then(|time| Instant::now().checked_add(time));
        let _turn = self.turns.take(py, "follow", deadline).or_raise(py)?;
        loop {
            let mut inner = self.lock(py);
            let Some(follow) = inner.as_mut() else { return Ok(None) };
            // Most objects have arrived already: they need no thread switch.
            if let Some(item) = follow.try_next().or_raise(py)? {
                drop(inner);
                if let Some(shown) = self.show(py, item)? {
                    return Ok(Some(shown));
                }
                continue;
            }
            let (is_over, awaiting) = (follow.is_over(), follow.awaiting());
            drop(inner);
            if let Some(looped) = looped {
                looped.complete(py);
            }
            if is_over {
                return Ok(None);
            }
            self.wait(py, &awaiting, within.is_some(), deadline)?;
        }
    }

    /// Waits until data may be available. The deadline of a limited wait may be out of reach.
    fn wait(&self, py: Python<'_>, awaiting: &WaitSource, limited: bool, deadline: Option<Instant>) -> PyResult<()> {
        let wait_for = |timeout: Option<Duration>| py.detach(|| junctura::binding::wait_for(awaiting, timeout));
        let waited = if limited {
            wait_for(deadline.map(|at| at.saturating_duration_since(Instant::now())))
        } else if self.holdings.count() < self.window {
            wait_for(None)
        } else {
            match wait_for(Some(PATIENCE)) {
                Err(error) if error.code() == Code::Timeout => {
                    if self.holdings.count() >= self.window {
                        self.warn(py)?;
                    }
                    wait_for(None)
                }
                waited => waited,
            }
        };
        or_ended(waited, "follow").or_raise(py)
    }

    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let category = py.get_type::<PyRuntimeWarning>();
        let message = format!(
            "this follow waits until objects are released: all {} of its window are held (a larger window=, or release())",
            self.window
        );
        let message = std::ffi::CString::new(message)?;
        PyErr::warn(py, &category, &message, 2)
    }

    fn show(&self, py: Python<'_>, item: Item) -> PyResult<Option<Py<PyAny>>> {
        Ok(match item {
            Item::Object(object) => Some(Py::new(py, PyReceived::new(object, Some(&self.holdings)))?.into_any()),
            Item::Live => {
                if self.shown.yields_live {
                    Some(Py::new(py, PyLive)?.into_any())
                } else {
                    None
                }
            }
            Item::Gap(_) if self.shown.gaps == GapHandling::Ignore => None,
            Item::Gap(gap) => {
                let gap = Py::new(py, read_gap(py, gap)?)?;
                if self.shown.gaps == GapHandling::Raise {
                    return Err(gap_error(py, &gap)?);
                }
                Some(gap.into_any())
            }
        })
    }
}

/// The result of a wait. If the connection has ended, the stream reports it after the items that arrived before.
pub(crate) fn or_ended(waited: junctura::Result<()>, what: &str) -> junctura::Result<()> {
    match waited {
        Err(error) if matches!(error.code(), Code::Disconnected | Code::Closed) => Ok(()),
        Err(error) if error.code() == Code::Timeout => {
            Err(junctura::Error::new(Code::Timeout, what, "nothing arrived in time"))
        }
        waited => waited,
    }
}

fn read_gap(py: Python<'_>, gap: junctura::Gap) -> PyResult<PyGap> {
    let items = gap
        .items
        .into_iter()
        .map(|item| Py::new(py, PyDescribed::new(item.object, item.version)));
    Ok(PyGap {
        items: items.collect::<PyResult<_>>()?,
        unnamed: gap.unnamed,
        reason: gap.reason,
    })
}

/// `Gone`, with the gap as an attribute.
fn gap_error(py: Python<'_>, gap: &Py<PyGap>) -> PyResult<PyErr> {
    let shown = gap.get();
    let subject = match shown.items.as_slice() {
        [one] => one.bind(py).getattr("key")?.extract()?,
        _ => format!("{} objects", shown.__len__()),
    };
    let cause = match shown.reason.as_str() {
        "stopped" => "the server ended before they were delivered".to_owned(),
        reason => format!("{reason} before it could be given"),
    };
    let raised = raise(py, &junctura::Error::new(Code::Gone, subject, cause));
    raised.value(py).setattr("gap", gap)?;
    Ok(raised)
}

#[pymethods]
impl PyFollow {
    /// next(timeout=None)
    /// --
    ///
    /// Returns the next object; waits for it.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     Seconds; 0 does not wait, None waits without a limit.
    ///
    /// Returns
    /// -------
    /// Object, Gap, Live or None
    ///     Gaps and Live if they were requested; None when the follow has ended.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     No object arrived in time.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        self.advance(py, crate::conversion::options::timeout(py, timeout)?, None)
    }

    /// Cursor with which a later follow continues after the last object that this one delivered (`pool.follow(…,
    /// cursor=…)`); None before the first. It is a string and can be stored anywhere.
    #[getter]
    fn cursor(&self, py: Python<'_>) -> Option<String> {
        self.lock(py)
            .as_ref()
            .and_then(junctura::Follow::cursor)
            .map(|cursor| cursor.to_string())
    }

    /// The newest sequence number at the start of the follow: objects that existed then have at most this number, later
    /// ones have larger numbers.
    #[getter]
    fn snapshot_sequence(&self) -> u64 {
        self.snapshot
    }

    /// Whether all objects that existed at the start have been delivered.
    #[getter]
    fn is_live(&self, py: Python<'_>) -> bool {
        self.lock(py).as_ref().is_some_and(junctura::Follow::is_live)
    }

    /// Number of its objects that are held.
    #[getter]
    fn held(&self) -> usize {
        self.holdings.count()
    }

    /// Ends the follow, also while another thread waits for its next object; that thread then gets None. Delivered
    /// objects stay held until they are released.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let follow = self.lock(py).take();
        match follow {
            Some(follow) => py.detach(|| follow.stop()).or_raise(py),
            None => Ok(()),
        }
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyFollowLoop {
        let looped = LoopedObjects::new(has_own_variable(slf.py()).unwrap_or(false));
        PyFollowLoop {
            follow: slf.unbind(),
            looped,
        }
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.advance(py, None, None)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _type: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {
        let follow = self.lock(py).take();
        drop_detached(follow);
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Follow from {}>", self.snapshot)
    }
}

#[pymethods]
impl PyFollowLoop {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let item = self.follow.get().advance(py, None, Some(&self.looped))?;
        if let Some(item) = &item {
            self.looped.note(item.bind(py));
        }
        Ok(item)
    }
}

/// Whether the statement of Python that runs begins a loop with a variable that only the loop sets.
fn has_own_variable(py: Python<'_>) -> PyResult<bool> {
    let frame = py.import("sys")?.call_method1("_getframe", (0,))?;
    let (code, at) = (frame.getattr("f_code")?, frame.getattr("f_lasti")?);
    py.import("junctura._loops")?
        .call_method1("has_own_variable", (code, at))?
        .extract()
}

impl Drop for PyFollow {
    fn drop(&mut self) {
        drop_detached(self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}
