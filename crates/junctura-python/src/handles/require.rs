//! Requirements: interest registered in advance.

use std::sync::{Arc, Mutex, PoisonError};

use junctura::{DemandOptions, FollowOptions, OnFull, RequireOptions, Versions};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;

use crate::conversion::options::timeout as read_timeout;
use crate::conversion::target::PyTarget;
use crate::handles::follow::{FollowArguments, PyFollow};
use crate::handles::object::PyReceived;
use crate::runtime::error::{OrRaise, closed, invalid};
use crate::runtime::interrupt::drop_detached;

/// A requirement retains visible objects only.
pub(crate) fn refuse_staged(name: &str) -> junctura::Error {
    let cause = "staged objects are not delivered through a requirement";
    junctura::Error::new(junctura::Code::InvalidArgument, format!("requirement {name}"), cause)
}

/// A requirement: retains every matching object until it has been received through this requirement and released.
///
/// Created by `Pool.require`. An unnamed requirement is retracted at the end of its `with` block, or when it is
/// garbage-collected; a named one persists, and only this client's use ends.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool, pool.require("name=a/b") as requirement:
/// ...     version = pool.offer(b"payload", name="a")
/// ...     with requirement.demand(name="a") as obj:
/// ...         bytes(obj)
/// b'payload'
#[pyclass(module = "junctura", name = "Requirement", frozen)]
pub(crate) struct PyRequirement {
    inner: Mutex<Option<Arc<junctura::Requirement>>>,
    selector: String,
    name: Option<String>,
}

impl PyRequirement {
    pub(crate) fn new(requirement: junctura::Requirement) -> Self {
        let selector = requirement.selector().to_owned();
        let name = requirement.name().map(str::to_owned);
        Self {
            inner: Mutex::new(Some(Arc::new(requirement))),
            selector,
            name,
        }
    }

    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<junctura::Requirement>> {
        let inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        inner
            .clone()
            .ok_or_else(|| closed(py, "requirement", "it was retracted"))
    }

    pub(crate) fn take(&self, py: Python<'_>) -> Option<Arc<junctura::Requirement>> {
        self.inner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

#[pymethods]
impl PyRequirement {
    /// The selector of the required objects.
    #[getter]
    fn selector(&self) -> &str {
        &self.selector
    }

    /// Its name, if it has one.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Receives every required object, in the order in which the objects became visible; in a group, a share of them.
    /// Releasing an object completes it for this requirement.
    ///
    /// Parameters
    /// ----------
    /// window, until_live, gaps, live
    ///     As `Pool.follow`.
    #[pyo3(signature = (*, window=None, until_live=false, gaps="raise", live="ignore"))]
    fn follow(
        &self,
        py: Python<'_>,
        window: Option<u32>,
        until_live: bool,
        gaps: &str,
        live: &str,
    ) -> PyResult<PyFollow> {
        let requirement = self.get(py)?;
        let options = FollowOptions {
            window,
            until_live,
            ..FollowOptions::default()
        };
        PyFollow::new(
            py,
            FollowArguments { options, gaps, live },
            |options| requirement.follow_with(options),
            &self.selector,
        )
    }

    /// Receives one required object, as `Pool.demand`.
    #[pyo3(signature = (target=None, /, *, timeout=None, schema=None, **key))]
    fn demand<'py>(
        &self,
        py: Python<'py>,
        target: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
        schema: Option<&str>,
        key: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyReceived> {
        let requirement = self.get(py)?;
        let options = DemandOptions {
            timeout: read_timeout(py, timeout)?,
            ..DemandOptions::default()
        };
        PyTarget::read(py, "Requirement.demand", target, key, schema)?
            .ask(py, |target| requirement.demand(target, options))
            .map(|object| PyReceived::new(object, None))
    }

    /// Retracts the requirement for all clients that use it: objects that only it retained may be removed.
    fn retract(&self, py: Python<'_>) -> PyResult<()> {
        match self.take(py).map(Arc::try_unwrap) {
            Some(Ok(requirement)) => py.detach(|| requirement.retract()).or_raise(py),
            // Another thread uses it now, and drops it afterwards.
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

impl Drop for PyRequirement {
    fn drop(&mut self) {
        drop_detached(self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The policy when there is no memory for the objects that a requirement retains.
pub(crate) fn on_full(py: Python<'_>, on_full: &str, quota: Option<u64>) -> PyResult<OnFull> {
    match (on_full, quota) {
        ("break", quota) => Ok(OnFull::Break { quota }),
        ("wait", None) => Ok(OnFull::Wait),
        ("wait", Some(_)) => {
            let cause = "only a requirement with on_full=\"break\" has one";
            Err(invalid(py, "quota", cause.to_owned()))
        }
        (other, _) => Err(invalid(py, "on_full", format!("\"wait\" or \"break\", not {other:?}"))),
    }
}

/// Identifies a requirement.
pub(crate) fn options(
    py: Python<'_>,
    name: Option<String>,
    time_to_live: Option<f64>,
    versions: &str,
) -> PyResult<RequireOptions> {
    let versions = match versions {
        "all" => Versions::All,
        "newest" => Versions::Newest,
        other => return Err(invalid(py, "versions", format!("\"all\" or \"newest\", not {other:?}"))),
    };
    Ok(RequireOptions {
        versions,
        name,
        time_to_live: read_timeout(py, time_to_live)?,
        ..RequireOptions::default()
    })
}
