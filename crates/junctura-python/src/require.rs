//! Saying early what will be wanted.

use std::sync::{Arc, Mutex, PoisonError};

use junctura::{FollowOptions, OnFull, RequireOptions, Versions};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;

use crate::error::{OrRaise, closed, invalid, unsupported};
use crate::follow::{Arguments, Follow};
use crate::interrupt::drop_detached;
use crate::object::Object;
use crate::options::timeout as read_timeout;
use crate::pool::Pool;
use crate::target::Target;

/// What will be wanted: whatever matches stays until it was received through this requirement and released.
///
/// Made by `Pool.require`. One without a name is retracted at the end of its `with` block, or when it is forgotten; one with a
/// name stands, and this client's use of it ends.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool, pool.require("name=a/b") as requirement:
/// ...     version = pool.offer(b"payload", name="a")
/// ...     with requirement.demand(name="a") as obj:
/// ...         bytes(obj)
/// b'payload'
#[pyclass(module = "junctura", frozen)]
pub(crate) struct Requirement {
    inner: Mutex<Option<Arc<junctura::Requirement>>>,
    selector: String,
    name: Option<String>,
}

impl Requirement {
    pub(crate) fn new(requirement: junctura::Requirement) -> Self {
        let selector = requirement.selector().to_owned();
        let name = requirement.name().map(str::to_owned);
        Self {
            inner: Mutex::new(Some(Arc::new(requirement))),
            selector,
            name,
        }
    }

    fn get(&self, py: Python<'_>) -> PyResult<Arc<junctura::Requirement>> {
        let inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        inner
            .clone()
            .ok_or_else(|| closed(py, "requirement", "it was retracted"))
    }

    fn take(&self, py: Python<'_>) -> Option<Arc<junctura::Requirement>> {
        self.inner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

#[pymethods]
impl Requirement {
    /// What it requires.
    #[getter]
    fn selector(&self) -> &str {
        &self.selector
    }

    /// Its name, if it has one.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Receives everything that it requires, in the order in which it became visible. What is released is done for this
    /// requirement.
    ///
    /// Parameters
    /// ----------
    /// window, until_live, gaps, live
    ///     As `Pool.follow`.
    #[pyo3(signature = (*, window=256, until_live=false, gaps="raise", live="ignore"))]
    fn follow(&self, py: Python<'_>, window: u32, until_live: bool, gaps: &str, live: &str) -> PyResult<Follow> {
        let requirement = self.get(py)?;
        let options = FollowOptions {
            window,
            until_live,
            ..FollowOptions::default()
        };
        Follow::new(
            py,
            &Arguments { options, gaps, live },
            |options| requirement.follow_with(options),
            &self.selector,
        )
    }

    /// Receives one object that it requires, as `Pool.demand`.
    #[pyo3(signature = (target=None, /, *, timeout=None, schema=None, **key))]
    fn demand<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Object> {
        let requirement = self.get(py)?;
        let timeout = read_timeout(py, timeout)?;
        Target::read(py, target, key, schema)?
            .ask(py, |target| requirement.demand(target, timeout))
            .map(|object| Object::new(object, None))
    }

    /// Gives it up, for all who use it: what only it kept may go.
    fn retract(&self, py: Python<'_>) -> PyResult<()> {
        match self.take(py).map(Arc::try_unwrap) {
            Some(Ok(requirement)) => py.detach(|| requirement.retract()).or_raise(py),
            // Another thread is asking it right now, and drops it afterwards.
            Some(Err(_)) | None => Ok(()),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _type: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {
        drop_detached(self.take(py));
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Requirement {:?}>", self.selector)
    }
}

impl Drop for Requirement {
    fn drop(&mut self) {
        drop_detached(self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// How to require.
pub(crate) fn options(
    py: Python<'_>,
    name: Option<String>,
    time_to_live: Option<f64>,
    versions: &str,
    (on_full, quota, stuck_after): (&str, Option<u64>, Option<f64>),
) -> PyResult<RequireOptions> {
    let on_full = match (on_full, quota) {
        ("break", quota) => OnFull::Break { quota },
        ("wait", None) => OnFull::Wait,
        ("wait", Some(_)) => {
            return Err(invalid(
                py,
                "quota",
                "only a requirement with on_full=\"break\" has one".to_owned(),
            ));
        }
        (other, _) => return Err(invalid(py, "on_full", format!("\"wait\" or \"break\", not {other:?}"))),
    };
    let versions = match versions {
        "all" => Versions::All,
        "newest" => Versions::Newest,
        other => return Err(invalid(py, "versions", format!("\"all\" or \"newest\", not {other:?}"))),
    };
    Ok(RequireOptions {
        versions,
        name,
        time_to_live: read_timeout(py, time_to_live)?,
        on_full,
        stuck_after: read_timeout(py, stuck_after)?,
    })
}

/// Groups are for later.
pub(crate) fn refuse_group(py: Python<'_>, group: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match group {
        Some(_) => Err(unsupported(py, "group", "this build has no consumer groups")),
        None => Ok(()),
    }
}

#[pymethods]
impl Pool {
    /// Says early what will be wanted: what matches, from now on, stays until it was received through the requirement and
    /// released.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// name : str, optional
    ///     For a requirement that outlives its client: it stands until it is retracted, or until its time to live is over. The
    ///     same name and terms again join it. What a client that died had received through it and not released is owed again.
    /// time_to_live : float, optional
    ///     For one with a name: seconds that it stands while no client uses it (has it as a `Requirement`, follows or waits
    ///     through it, or holds what came through it). None: until it is retracted.
    /// versions : "all" or "newest"
    ///     Whether every version of each object is kept, or one until a newer one comes.
    /// on_full : "wait" or "break"
    ///     When there is no room for what it keeps: offers wait for its readers, or it is broken, and they are told in a gap.
    /// quota : int, optional
    ///     With "break": bytes that it may keep though nothing else keeps them. None: any, until somebody waits for memory.
    /// stuck_after : float, optional
    ///     Seconds that its readers may release nothing while others wait, before it is broken. None: as the pool says (60).
    ///
    /// Returns
    /// -------
    /// Requirement
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     Pointing at the character.
    /// Conflict
    ///     The name stands on other terms.
    /// LimitExceeded
    ///     The pool has as many with a name as it keeps.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     with pool.require("name=a/b", name="archive", time_to_live=3600.0):
    /// ...         version = pool.offer(b"payload", name="a")
    /// ...     with pool.follow(requirement="archive", until_live=True) as follow:
    /// ...         print([obj["name"] for obj in follow])
    /// ...     pool.retract("archive")
    /// ['a']
    /// 0
    #[pyo3(signature = (selector, *, name=None, time_to_live=None, versions="all", on_full="wait", quota=None, stuck_after=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn require(
        &self,
        py: Python<'_>,
        selector: &str,
        name: Option<String>,
        time_to_live: Option<f64>,
        versions: &str,
        on_full: &str,
        quota: Option<u64>,
        stuck_after: Option<f64>,
    ) -> PyResult<Requirement> {
        let options = options(py, name, time_to_live, versions, (on_full, quota, stuck_after))?;
        py.detach(|| self.inner.require_with(&options, selector))
            .or_raise_about(py, selector)
            .map(Requirement::new)
    }

    /// Ends a requirement that has a name, whoever made it: what only it kept may go, and its reader's follow ends.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///
    /// Returns
    /// -------
    /// int
    ///     How many objects it was still owed.
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     There is none of this name.
    fn retract(&self, py: Python<'_>, name: &str) -> PyResult<u64> {
        py.detach(|| self.inner.retract(name)).or_raise(py)
    }
}
