//! Descriptions of objects, without payloads: in lists, gaps and events.

use std::ops::Deref;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::conversion::values;
use crate::handles::object::no_attribute;
use crate::model::schema::PySchema;
use crate::model::version::PyVersion;

/// A version of an object, without its payload.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool, pool.subscribe(kinds=["offered"]) as events:
/// ...     version = pool.offer(b"payload", name="a")
/// ...     described = next(events).object
/// ...     print(described["name"], described.key, described.version == version)
/// a {space=default}{}{name=a} True
#[pyclass(module = "junctura", name = "Described", frozen, subclass)]
pub(crate) struct PyDescribed {
    what: DescribedItem,
    version: junctura::Version,
}

enum DescribedItem {
    Listed(junctura::Entry),
    Named(junctura::Described),
}

impl Deref for DescribedItem {
    type Target = junctura::Described;

    fn deref(&self) -> &junctura::Described {
        match self {
            DescribedItem::Listed(entry) => entry,
            DescribedItem::Named(object) => object,
        }
    }
}

impl PyDescribed {
    pub(crate) fn new(object: junctura::Described, version: junctura::Version) -> Self {
        Self {
            what: DescribedItem::Named(object),
            version,
        }
    }

    pub(crate) fn described(&self) -> &junctura::Described {
        &self.what
    }

    pub(crate) fn schema_ref(&self) -> &Arc<junctura::Schema> {
        self.what.schema()
    }

    pub(crate) fn version_of(&self) -> PyVersion {
        PyVersion(self.version)
    }

    /// Its attributes as texts.
    pub(crate) fn words(&self) -> Vec<(String, String)> {
        let attributes = self.what.attributes();
        attributes
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect()
    }
}

#[pymethods]
impl PyDescribed {
    /// The names and values of the attributes, as `Object.attributes`.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        values::attributes(py, self.what.schema(), self.what.attributes())
    }

    /// The canonical key.
    #[getter]
    fn key(&self) -> &str {
        self.what.key()
    }

    /// The version of the object.
    #[getter]
    fn version(&self) -> PyVersion {
        PyVersion(self.version)
    }

    /// The schema of the object.
    #[getter]
    fn schema(&self) -> PySchema {
        PySchema(Arc::clone(self.what.schema()))
    }

    /// get(name, default=None)
    /// --
    ///
    /// Returns the value of an attribute, by its name or an alias; `default` if the object does not have it.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.what.get(name) {
            Some(text) => values::value(py, self.what.schema(), name, text).map(Some),
            None => Ok(default),
        }
    }

    fn __contains__(&self, name: &str) -> bool {
        self.what.get(name).is_some()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.what.get(name) {
            Some(text) => values::value(py, self.what.schema(), name, text),
            None => Err(no_attribute(py, name, self.what.key(), self.what.attributes())),
        }
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Described {} {}>", self.what.key(), self.version)
    }
}

/// An object in a list.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     version = pool.offer(b"payload", name="a")
/// ...     [(entry["name"], entry.nbytes) for entry in pool.list()]
/// [('a', 7)]
#[pyclass(module = "junctura", name = "Entry", frozen, extends = PyDescribed)]
pub(crate) struct PyEntry {
    pub(crate) bytes: u64,
    pub(crate) staged_in: Option<u64>,
    pub(crate) spilled: bool,
    pub(crate) archived: bool,
}

impl PyEntry {
    pub(crate) fn new(py: Python<'_>, entry: junctura::Entry) -> PyResult<Py<PyEntry>> {
        let (version, bytes) = (entry.version(), entry.bytes());
        let (staged_in, spilled, archived) = (entry.staged_in(), entry.is_spilled(), entry.is_archived());
        let base = PyDescribed {
            what: DescribedItem::Listed(entry),
            version,
        };
        Self::of(py, base, bytes, staged_in, (spilled, archived))
    }

    pub(crate) fn of(
        py: Python<'_>,
        base: PyDescribed,
        bytes: u64,
        staged_in: Option<u64>,
        (spilled, archived): (bool, bool),
    ) -> PyResult<Py<PyEntry>> {
        let entry = PyEntry {
            bytes,
            staged_in,
            spilled,
            archived,
        };
        Py::new(py, PyClassInitializer::from(base).add_subclass(entry))
    }
}

#[pymethods]
impl PyEntry {
    /// Size of the payload in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.bytes
    }

    /// The number of the bundle in which it is staged (`BundleEntry.number`); None if it is visible.
    #[getter]
    fn staged_in(&self) -> Option<u64> {
        self.staged_in
    }

    /// Whether its payload was spilled to the server's file tier when it was listed; otherwise it was in memory.
    #[getter]
    fn spilled(&self) -> bool {
        self.spilled
    }

    /// Whether only the store behind the pool had it when it was listed.
    #[getter]
    fn archived(&self) -> bool {
        self.archived
    }

    fn __len__(&self) -> usize {
        self.bytes as usize
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let object = slf.as_super();
        format!(
            "<junctura.Entry {} {}, {} bytes>",
            object.what.key(),
            object.version,
            slf.bytes
        )
    }

    fn __bool__(&self) -> bool {
        true
    }
}
