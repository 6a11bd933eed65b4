//! What of a pool concerns bundles, and lists.

use junctura::{BundleOptions, ListOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::bundle::PyBundle;
use crate::described::PyEntry;
use crate::error::{OrRaise, invalid};
use crate::given::GivenAttributes;
use crate::options::timeout as read_timeout;
use crate::pool::PyPool;
use crate::values;
use crate::version::PyVersion;

/// What is known of a bundle; in `Pool.bundles`.
#[pyclass(module = "junctura", name = "BundleEntry", frozen, get_all)]
pub(crate) struct PyBundleEntry {
    /// Its number: one that was opened later has a higher one.
    number: u64,
    /// Its path, or None.
    path: Option<String>,
    /// `open`; `complete` within another that is not; `visible`, or it was.
    state: &'static str,
    /// How many members make it complete, or None.
    declared: Option<u64>,
    /// How many are there: objects, and nested bundles that are complete.
    members: u64,
    /// Bytes of its own payloads until it is visible.
    staged_bytes: u64,
    /// How many have it, or one nested in it, open.
    openers: u32,
    /// In how many seconds it is aborted if nobody opens it, or None.
    orphaned_for: Option<f64>,
    /// What it is about.
    attributes: Py<PyDict>,
    /// The version of the first object that became visible with it, or None.
    first: Option<PyVersion>,
    /// Objects of its own that are visible.
    visible: u64,
    /// The number of the bundle that it is nested in, or None.
    parent: Option<u64>,
}

impl PyBundleEntry {
    fn new(py: Python<'_>, entry: junctura::BundleEntry) -> PyResult<Self> {
        let attributes = match &entry.attributes {
            Some(about) => values::attributes(py, about.schema(), about.attributes())?,
            None => PyDict::new(py),
        };
        Ok(Self {
            number: entry.number,
            path: entry.path,
            state: entry.state.name(),
            declared: entry.declared,
            members: entry.members,
            staged_bytes: entry.staged_bytes,
            openers: entry.openers,
            orphaned_for: entry.orphaned_for.map(|time| time.as_secs_f64()),
            attributes: attributes.unbind(),
            first: entry.first.map(PyVersion),
            visible: entry.visible,
            parent: entry.parent,
        })
    }
}

#[pymethods]
impl PyBundleEntry {
    fn __repr__(&self) -> String {
        let path = self.path.as_deref().unwrap_or("without a path");
        let declared = self.declared.map(|count| format!(" of {count}")).unwrap_or_default();
        format!(
            "<junctura.BundleEntry {path}, {}, {}{declared} members>",
            self.state, self.members
        )
    }
}

#[pymethods]
impl PyPool {
    /// Opens a bundle: what is offered into it becomes visible together, under consecutive versions in the order of the keys.
    ///
    /// Without a path it belongs to this handle. With one, all producers that open the same path share it; what one leaves
    /// out (members, orphan_timeout, attributes) another may say, and what two say must be the same. While `a` is open, `a/b`
    /// opens as one of its members, and becomes visible with it.
    ///
    /// Parameters
    /// ----------
    /// path : str, optional
    ///     1 to 16 parts between slashes, each of ASCII letters, digits and `._+:-=,@`.
    /// attributes : dict, optional
    ///     What it is about: any attributes of the schema. `bundles` finds it by them.
    /// members : int, optional
    ///     How many members make it complete: objects, and bundles that are nested in it. By default it is to be sealed.
    /// orphan_timeout : float, optional
    ///     Seconds that it stays when no producer has it open, before it is aborted; by default as the server says.
    /// schema : str, optional
    ///     The schema of its attributes, where it is not the pool's default.
    /// **keywords
    ///     More attributes.
    ///
    /// Returns
    /// -------
    /// Bundle
    ///
    /// Raises
    /// ------
    /// Conflict
    ///     Another producer has opened it with something else; or `a/b` was opened before `a`, and stands by itself.
    /// BundleClosed, BundleFull
    ///     It, or the one around it, is complete; the one around it has all its members.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Pool(schema="free") as pool:
    /// ...     with pool.bundle("forecast/6", {"space": "demo"}, members=2) as bundle:
    /// ...         members = bundle.offer_many([(b"t", {"name": "t"}), (b"u", {"name": "u"})])
    /// ...     [(entry.path, entry.state, entry.members) for entry in pool.bundles("space=demo")]
    /// [('forecast/6', 'visible', 2)]
    #[pyo3(signature = (path=None, attributes=None, /, *, members=None, orphan_timeout=None, schema=None, **keywords))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn bundle(
        &self,
        py: Python<'_>,
        path: Option<String>,
        attributes: Option<&Bound<'_, PyAny>>,
        members: Option<u64>,
        orphan_timeout: Option<f64>,
        schema: Option<&str>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyBundle> {
        let attributes = GivenAttributes::read(attributes, keywords)?;
        let options = bundle_options(py, path.as_deref(), &attributes, members, orphan_timeout, schema)?;
        PyBundle::open(py, &self.inner, path, &attributes, options)
    }

    /// The bundles whose attributes match, in the order in which they were opened: those that are not complete, and those
    /// that are remembered.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// under : str, optional
    ///     Only this path and what is nested in it.
    ///
    /// Returns
    /// -------
    /// list of BundleEntry
    #[pyo3(signature = (selector="", *, under=None))]
    fn bundles(&self, py: Python<'_>, selector: &str, under: Option<&str>) -> PyResult<Vec<PyBundleEntry>> {
        let entries = py.detach(|| self.inner.bundles_under(under, selector));
        let entries = entries.or_raise_about(py, selector)?;
        entries.into_iter().map(|entry| PyBundleEntry::new(py, entry)).collect()
    }

    /// What is visible and matches, without payloads.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    ///     The empty one matches everything.
    /// order_by : str, optional
    ///     The attribute to order by; by default the key.
    /// incomplete : bool
    ///     Whether members of bundles that are not complete are listed, too: `Entry.staged_in` tells them.
    /// bundle : str, optional
    ///     Only what belongs to the bundle of this path, or to one nested in it.
    ///
    /// Returns
    /// -------
    /// list of Entry
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     There is no bundle of this path, or it is forgotten.
    #[pyo3(signature = (selector="", *, order_by=None, incomplete=false, bundle=None))]
    fn list<'py>(
        &self,
        py: Python<'py>,
        selector: &str,
        order_by: Option<&str>,
        incomplete: bool,
        bundle: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = ListOptions {
            order_by,
            incomplete,
            bundle,
        };
        let mut pages = py
            .detach(|| self.inner.list_with(selector, options))
            .or_raise_about(py, selector)?;
        let list = PyList::empty(py);
        while let Some(page) = py.detach(|| pages.next_page()).or_raise(py)? {
            for entry in page {
                list.append(PyEntry::new(py, entry)?)?;
            }
        }
        Ok(list)
    }
}

/// How a bundle is opened.
pub(crate) fn bundle_options<'a>(
    py: Python<'_>,
    path: Option<&str>,
    attributes: &GivenAttributes<'_>,
    members: Option<u64>,
    orphan_timeout: Option<f64>,
    schema: Option<&'a str>,
) -> PyResult<BundleOptions<'a>> {
    let says_something = members.is_some() || orphan_timeout.is_some() || !attributes.is_empty();
    if path.is_none() && says_something {
        let cause = "a bundle without a path has no number of members, orphan timeout or attributes";
        return Err(invalid(py, "bundle", cause));
    }
    Ok(BundleOptions {
        members,
        orphan_timeout: read_timeout(py, orphan_timeout)?,
        schema,
    })
}
