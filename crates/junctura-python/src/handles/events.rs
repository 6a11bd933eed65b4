//! Subscriptions to events of a pool.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use junctura::{Awaited, EventKind, Pool, PoolEvent, WaitSource};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::conversion::options::timeout as read_timeout;
use crate::handles::follow::or_ended;
use crate::model::described::PyDescribed;
use crate::runtime::error::{OrRaise, invalid};
use crate::runtime::interrupt::drop_detached;
use crate::runtime::turns::ThreadTurns;

/// A client of the pool.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool, pool.subscribe(kinds=["joined"]) as events:
/// ...     viewer = junctura.Pool(pool.url, name="viewer")
/// ...     peer = next(events).client
/// ...     print(peer.name, peer.offered)
/// viewer 0
#[pyclass(module = "junctura", name = "Peer", frozen, get_all, eq)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyPeer {
    /// The number that the server assigned to it.
    pub(crate) client: u32,
    /// Its name.
    pub(crate) name: String,
    /// The host that it runs on.
    pub(crate) host: String,
    /// Its process ID.
    pub(crate) pid: u32,
    /// Number of objects that it has offered so far, members of bundles included.
    pub(crate) offered: u64,
}

#[pymethods]
impl PyPeer {
    fn __repr__(&self) -> String {
        format!(
            "<junctura.Peer {} {:?}, process {} on {}>",
            self.client, self.name, self.pid, self.host
        )
    }
}

/// An event in the pool.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool, pool.subscribe(kinds=["withdrawn"]) as events:
/// ...     version = pool.offer(b"payload", name="a")
/// ...     count = pool.withdraw(name="a")
/// ...     event = next(events)
/// ...     print(event.kind, event.object.key, event.nbytes)
/// withdrawn {space=default}{}{name=a} 7
#[pyclass(module = "junctura", name = "Event", frozen, get_all)]
pub(crate) struct PyEvent {
    /// The kind: `offered`, `withdrawn`, `expired`, `joined`, `left`, `superseded`, `required`, `retracted`, `lapsed`,
    /// `broken`, `declined`, `missed`, `completed`, `aborted`, `spilled`, `archived`, `unarchived` or
    /// `stuck`.
    pub(crate) kind: &'static str,
    /// The object concerned, or None.
    pub(crate) object: Option<Py<PyDescribed>>,
    /// Size of the object's payload in bytes.
    pub(crate) nbytes: u64,
    /// The client that joined or left, offered the object, created or retracted the requirement, read a broken one, or
    /// completed or aborted the bundle; or None.
    pub(crate) client: Option<Py<PyPeer>>,
    /// The requirement concerned: its name ("" if it has none) and its selector; or None.
    pub(crate) requirement: Option<(String, String)>,
    /// The bundle concerned: its path or None, the number of its members, and the number that completes it or None; or
    /// None.
    pub(crate) bundle: Option<(Option<String>, u64, Option<u64>)>,
    /// The location of the object in a store, or None.
    pub(crate) location: Option<String>,
    /// The reason; may be empty.
    pub(crate) reason: String,
}

impl PyEvent {
    pub(crate) fn new(py: Python<'_>, event: PoolEvent) -> PyResult<Self> {
        let object = event
            .object
            .map(|(object, version)| Py::new(py, PyDescribed::new(object, version)));
        let peer = event.client.map(|peer| PyPeer {
            client: peer.client,
            name: peer.name,
            host: peer.host,
            pid: peer.pid,
            offered: peer.offered,
        });
        Ok(Self {
            kind: event.kind.name(),
            object: object.transpose()?,
            nbytes: event.bytes,
            client: peer.map(|peer| Py::new(py, peer)).transpose()?,
            requirement: event.requirement,
            bundle: event.bundle.map(|it| (it.path, it.members, it.declared)),
            location: event.location,
            reason: event.reason,
        })
    }
}

#[pymethods]
impl PyEvent {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let about = match (&self.object, &self.requirement, &self.bundle, &self.client) {
            (Some(object), ..) => object.bind(py).repr()?.to_string(),
            (None, Some((name, _)), ..) => name.clone(),
            (None, None, Some((path, ..)), _) => path.clone().unwrap_or_default(),
            (None, None, None, Some(client)) => client.get().__repr__(),
            (None, None, None, None) => String::new(),
        };
        Ok(format!("<junctura.Event {} {about}>", self.kind))
    }
}

/// A stream of events of a pool, without payloads; created by `Pool.subscribe`.
///
/// As an iterator it waits for the next event. The end of its `with` block, or garbage collection, closes it.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool, pool.subscribe("name=a") as events:
/// ...     version = pool.offer(b"payload", name="a")
/// ...     for event in events:
/// ...         print(event.kind, event.client.client == pool.client)
/// ...         break
/// offered True
#[pyclass(module = "junctura", name = "Subscription", frozen)]
pub(crate) struct PySubscription {
    inner: Mutex<Option<junctura::Subscription>>,
    /// Held by the thread that takes the next event.
    turns: ThreadTurns,
}

impl PySubscription {
    pub(crate) fn new(py: Python<'_>, pool: &Pool, selector: &str, kinds: Option<Vec<String>>) -> PyResult<Self> {
        let kinds = read_kinds(py, kinds)?;
        let subscription = py
            .detach(|| pool.subscribe(selector, &kinds))
            .or_raise_about(py, selector)?;
        Ok(Self::of(subscription))
    }

    pub(crate) fn of(subscription: junctura::Subscription) -> Self {
        Self {
            inner: Mutex::new(Some(subscription)),
            turns: ThreadTurns::default(),
        }
    }

    pub(crate) fn with<R>(&self, py: Python<'_>, run: impl FnOnce(Option<&mut junctura::Subscription>) -> R) -> R {
        let mut inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        run(inner.as_mut())
    }

    pub(crate) fn awaiting(&self, py: Python<'_>) -> WaitSource {
        let inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        inner.as_ref().map_or_else(WaitSource::ready, Awaited::awaiting)
    }

    pub(crate) fn take(&self, py: Python<'_>) -> Option<junctura::Subscription> {
        self.inner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

pub(crate) fn read_kinds(py: Python<'_>, kinds: Option<Vec<String>>) -> PyResult<Vec<EventKind>> {
    kinds.unwrap_or_default().iter().map(|name| kind(py, name)).collect()
}

fn kind(py: Python<'_>, name: &str) -> PyResult<EventKind> {
    EventKind::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        invalid(py, "kinds", format!("{name:?} is none of {}", names.join(", ")))
    })
}

#[pymethods]
impl PySubscription {
    /// next(timeout=None)
    /// --
    ///
    /// Returns the next event; waits for it, at most `timeout` seconds. None when the subscription has ended.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     No event occurred in time.
    /// LimitExceeded
    ///     Events arrived faster than they were read, and some were lost: the subscription has ended.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<PyEvent>> {
        let timeout = read_timeout(py, timeout)?;
        let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
        // Threads take turns. No wait locks the subscription, so any thread may close it.
        let _turn = self.turns.take(py, "subscription", deadline).or_raise(py)?;
        loop {
            let mut inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
            let Some(events) = inner.as_mut() else { return Ok(None) };
            let event = events.try_next().or_raise(py)?;
            let (is_over, awaiting) = (events.is_over(), events.awaiting());
            drop(inner);
            if event.is_some() || is_over {
                return event.map(|event| PyEvent::new(py, event)).transpose();
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let waited = py.detach(|| junctura::binding::wait_for(&awaiting, left));
            or_ended(waited, "subscription").or_raise(py)?;
        }
    }

    /// Ends the subscription, also while another thread waits for its next event; that thread then gets None.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.take(py) {
            Some(subscription) => py.detach(|| subscription.stop()).or_raise(py),
            None => Ok(()),
        }
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyEvent>> {
        self.next(py, None)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _type: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {
        drop_detached(self.take(py));
    }
}

impl Drop for PySubscription {
    fn drop(&mut self) {
        drop_detached(self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}
