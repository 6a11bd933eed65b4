//! Types that are pickled by value: descriptions of objects, entries of lists, events, gaps. Each is represented by
//! texts that these functions parse.

use std::borrow::Cow;
use std::sync::Arc;

use junctura::{EventKind, Given};
use junctura_model::list_items;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::handles::events::{PyEvent, PyPeer};
use crate::handles::follow::PyGap;
use crate::model::described::{PyDescribed, PyEntry};
use crate::model::schema::PySchema;
use crate::model::version::PyVersion;
use crate::runtime::error::{OrRaise, invalid};

type Words = Vec<(String, String)>;

fn described(py: Python<'_>, schema: &PySchema, words: &Words, version: PyVersion) -> PyResult<PyDescribed> {
    // Canonical texts of lists are read item by item.
    let items: Vec<Vec<Cow<'_, str>>> = words.iter().map(|(_, text)| list_items(text).collect()).collect();
    let lists: Vec<Vec<Given<'_>>> = items
        .iter()
        .map(|items| items.iter().map(|item| Given::Text(item)).collect())
        .collect();
    let attributes = words.iter().zip(&lists).map(|((name, text), items)| {
        let id = schema.0.find(name);
        let is_list = id.is_some_and(|id| schema.0.attribute(id).kind.list);
        let value = if is_list { Given::List(items) } else { Given::Text(text) };
        (name.as_str(), value)
    });
    let object = junctura::Described::of(&schema.0, attributes).or_raise(py)?;
    Ok(PyDescribed::new(object, version.0))
}

#[pyfunction]
pub(crate) fn _described(
    py: Python<'_>,
    schema: &PySchema,
    words: Words,
    version: &PyVersion,
) -> PyResult<PyDescribed> {
    described(py, schema, &words, *version)
}

#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "all fields of an entry")]
pub(crate) fn _entry(
    py: Python<'_>,
    schema: &PySchema,
    words: Words,
    version: &PyVersion,
    nbytes: u64,
    staged_in: Option<u64>,
    spilled: bool,
    archived: bool,
) -> PyResult<Py<PyEntry>> {
    let base = described(py, schema, &words, *version)?;
    PyEntry::of(py, base, nbytes, staged_in, (spilled, archived))
}

#[pyfunction]
pub(crate) fn _peer(client: u32, name: String, host: String, pid: u32, offered: u64) -> PyPeer {
    PyPeer {
        client,
        name,
        host,
        pid,
        offered,
    }
}

#[pyfunction]
pub(crate) fn _gap(items: Vec<Py<PyDescribed>>, unnamed: u64, reason: String) -> PyGap {
    PyGap { items, unnamed, reason }
}

type BundleWords = (Option<String>, u64, Option<u64>);

#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "all that an event is")]
pub(crate) fn _event(
    py: Python<'_>,
    kind: Cow<'_, str>,
    about: Option<Py<PyDescribed>>,
    nbytes: u64,
    client: Option<Py<PyPeer>>,
    requirement: Option<(String, String)>,
    bundle: Option<BundleWords>,
    location: Option<String>,
    reason: String,
) -> PyResult<PyEvent> {
    let known = EventKind::from_name(&kind).ok_or_else(|| invalid(py, "event", format!("{kind} is none")))?;
    Ok(PyEvent {
        kind: known.name(),
        object: about,
        nbytes,
        client,
        requirement,
        bundle,
        location,
        reason,
    })
}

/// A function of this module, and what it is to be called with.
fn by<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let function = py.import("junctura._native")?.getattr(function)?;
    Ok((function, arguments.into_pyobject(py)?))
}

type Reduced<'py> = PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)>;

#[pymethods]
impl PyDescribed {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Reduced<'py> {
        let (py, this) = (slf.py(), slf.get());
        let (schema, words, version) = (PySchema(Arc::clone(this.schema_ref())), this.words(), this.version_of());
        if let Ok(entry) = slf.cast::<PyEntry>() {
            let entry = entry.get();
            let (staged_in, spilled, archived) = (entry.staged_in, entry.spilled, entry.archived);
            return by(
                py,
                "_entry",
                (schema, words, version, entry.bytes, staged_in, spilled, archived),
            );
        }
        by(py, "_described", (schema, words, version))
    }
}

#[pymethods]
impl PyPeer {
    fn __reduce__<'py>(&self, py: Python<'py>) -> Reduced<'py> {
        by(
            py,
            "_peer",
            (
                self.client,
                self.name.as_str(),
                self.host.as_str(),
                self.pid,
                self.offered,
            ),
        )
    }
}

#[pymethods]
impl PyGap {
    fn __reduce__<'py>(&self, py: Python<'py>) -> Reduced<'py> {
        let items: Vec<_> = self.items.iter().map(|item| item.clone_ref(py)).collect();
        by(py, "_gap", (items, self.unnamed, self.reason.as_str()))
    }
}

#[pymethods]
impl PyEvent {
    fn __reduce__<'py>(&self, py: Python<'py>) -> Reduced<'py> {
        by(
            py,
            "_event",
            (
                self.kind,
                self.object.as_ref().map(|object| object.clone_ref(py)),
                self.nbytes,
                self.client.as_ref().map(|client| client.clone_ref(py)),
                self.requirement.clone(),
                self.bundle.clone(),
                self.location.as_deref(),
                self.reason.as_str(),
            ),
        )
    }
}
