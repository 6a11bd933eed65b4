//! Numbers of visible objects, counted by the server.

use std::sync::Arc;

use junctura::{Tally, TallyGroup, TallyOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::conversion::given::type_name;
use crate::conversion::keywords::refuse_unknown;
use crate::conversion::values;
use crate::model::schema::PySchema;
use crate::pool::PyPool;
use crate::runtime::error::{OrRaise, invalid};

/// The number of visible objects that match; returned by `Pool.tally`.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     for name in "xy":
/// ...         version = pool.offer(b"bytes", space="a", name=name)
/// ...     tally = pool.tally("space=a")
/// ...     print(tally.objects, len(tally.groups))
/// 2 1
#[pyclass(module = "junctura", name = "Tally", frozen, get_all)]
pub(crate) struct PyTally {
    /// The groups, ordered by schema, then by values.
    groups: Py<PyTuple>,
    /// Number of objects of all groups.
    objects: u64,
    /// Bytes of their payloads, or None if they were not summed.
    nbytes: Option<u64>,
    /// Number of objects of groups beyond the limit.
    others: u64,
    /// Number of visible objects that were not looked at, since the server has not filed them yet.
    newer: u64,
}

/// The objects of one schema with the same values.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     for name in "xy":
/// ...         version = pool.offer(b"bytes", space="a", name=name)
/// ...     groups = pool.tally("space=a", by=["name"]).groups
/// ...     print([(group.values, group.objects) for group in groups])
/// [(('x',), 1), (('y',), 1)]
#[pyclass(module = "junctura", name = "TallyGroup", frozen, get_all)]
pub(crate) struct PyTallyGroup {
    /// Their schema.
    schema: Py<PySchema>,
    /// The value of each attribute of the tally; None if the objects do not have it.
    values: Py<PyTuple>,
    /// Number of objects.
    objects: u64,
    /// Bytes of their payloads, or None if they were not summed.
    nbytes: Option<u64>,
}

impl PyTally {
    fn new(py: Python<'_>, tally: &Tally, by: &[String]) -> PyResult<Self> {
        let (objects, nbytes) = (tally.objects(), tally.bytes());
        let groups = tally.groups.iter().map(|group| PyTallyGroup::new(py, group, by));
        Ok(Self {
            groups: PyTuple::new(py, groups.collect::<PyResult<Vec<_>>>()?)?.unbind(),
            objects,
            nbytes,
            others: tally.others,
            newer: tally.newer,
        })
    }
}

impl PyTallyGroup {
    fn new(py: Python<'_>, group: &TallyGroup, by: &[String]) -> PyResult<Self> {
        let value = |(name, text): (&String, &Option<String>)| match text {
            Some(text) => values::value(py, &group.schema, name, text),
            None => Ok(py.None().into_bound(py)),
        };
        let values = by.iter().zip(&group.values).map(value).collect::<PyResult<Vec<_>>>()?;
        Ok(Self {
            schema: Py::new(py, PySchema(Arc::clone(&group.schema)))?,
            values: PyTuple::new(py, values)?.unbind(),
            objects: group.objects,
            nbytes: group.bytes,
        })
    }
}

/// One attribute, or several.
fn names_of(by: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(name) = by.extract() {
        return Ok(vec![name]);
    }
    by.extract().map_err(|_| {
        let cause = format!(
            "the name of an attribute, or a list of names, is expected, not {}",
            type_name(by)
        );
        invalid(by.py(), "by", cause)
    })
}

#[pymethods]
impl PyTally {
    fn __repr__(&self, py: Python<'_>) -> String {
        let groups = self.groups.bind(py).len();
        format!("<junctura.Tally {} objects, {groups} groups>", self.objects)
    }
}

#[pymethods]
impl PyTallyGroup {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let values = self.values.bind(py).repr()?;
        Ok(format!("<junctura.TallyGroup {values} {} objects>", self.objects))
    }
}

#[pymethods]
impl PyPool {
    /// Counts the visible objects that match, without listing them.
    ///
    /// Objects that only a store behind the pool has are not counted.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    ///     An empty selector matches every object.
    /// by : str or sequence of str
    ///     Attributes, at most 8: counts for each combination of their values. Without any, counts for each schema. An attribute that
    ///     no schema declares and no counted object has is reported by a `SelectorWarning`.
    /// limit : int
    ///     Maximum number of groups, from 1 to 1,000. `others` counts the objects of further groups.
    /// sum_bytes : bool
    ///     Whether the sizes of the payloads are summed too; the server reads each object then.
    /// filed_only : bool
    ///     Whether only objects in the server's listing index are counted. `newer` counts the others.
    ///
    /// Returns
    /// -------
    /// Tally
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     No schema of the pool has the attribute; too many attributes; a limit out of range.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     for name in ["x", "y"]:
    /// ...         version = pool.offer(b"bytes", space="a", name=name)
    /// ...     tally = pool.tally("space=a", by=["name"])
    /// ...     tally.objects, [(group.values, group.objects) for group in tally.groups]
    /// (2, [(('x',), 1), (('y',), 1)])
    #[pyo3(signature = (selector="", *, by=None, limit=1000, sum_bytes=false, filed_only=false, **unknown), text_signature = "($self, selector='', *, by=None, limit=1000, sum_bytes=False, filed_only=False)")]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn tally(
        &self,
        py: Python<'_>,
        selector: &str,
        by: Option<&Bound<'_, PyAny>>,
        limit: u32,
        sum_bytes: bool,
        filed_only: bool,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyTally> {
        refuse_unknown(py, "Pool.tally", unknown)?;
        let by = by.map(names_of).transpose()?.unwrap_or_default();
        let names: Vec<&str> = by.iter().map(String::as_str).collect();
        let options = TallyOptions {
            by: &names,
            limit,
            sum_bytes,
            filed_only,
        };
        let tally = py.detach(|| self.inner.tally(selector, options));
        let tally = tally.or_raise_about(py, selector)?;
        if tally.objects() == 0 {
            self.warn_of_mistakes(py, selector)?;
        }
        for name in tally.absent(&names) {
            self.warn_of_absent(py, name)?;
        }
        PyTally::new(py, &tally, &by)
    }
}
