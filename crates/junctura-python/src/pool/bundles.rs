//! Bundles and lists of a pool.

use junctura::{BundleOptions, Described, ListOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::conversion::given::GivenAttributes;
use crate::conversion::keywords::refuse_unknown;
use crate::conversion::options::{schema_of, timeout as read_timeout};
use crate::conversion::usage::{OfferPlace, check_keywords};
use crate::conversion::values;
use crate::handles::bundle::PyBundle;
use crate::model::described::{PyDescribed, PyEntry};
use crate::model::version::PyVersion;
use crate::pool::PyPool;
use crate::runtime::error::{OrRaise, invalid};

/// The state of a bundle; returned by `Pool.bundles`.
///
/// Examples
/// --------
/// >>> with junctura.Pool(schema="free") as pool:
/// ...     bundle = pool.bundle("forecast/6", members=2)
/// ...     member = bundle.offer(b"payload", name="a")
/// ...     entry = pool.bundles()[0]
/// ...     print(entry.path, entry.state, entry.members, entry.declared)
/// forecast/6 open 1 2
#[pyclass(module = "junctura", name = "BundleEntry", frozen, get_all)]
pub(crate) struct PyBundleEntry {
    /// Its number: bundles opened later have higher numbers.
    number: u64,
    /// Its path, or None.
    path: Option<String>,
    /// `open`; `complete` within a bundle that is not complete; `visible`, or it has been.
    state: &'static str,
    /// Number of members that completes it, or None.
    declared: Option<u64>,
    /// Current number of members: objects, and nested bundles that are complete.
    members: u64,
    /// Bytes of its own payloads while it is not visible.
    staged_bytes: u64,
    /// Number of clients that have it, or a bundle nested in it, open.
    openers: u32,
    /// Seconds until it is aborted unless a producer opens it, or None.
    orphaned_for: Option<f64>,
    /// Its attributes.
    attributes: Py<PyDict>,
    /// The version of the first object that became visible with it, or None.
    first: Option<PyVersion>,
    /// Number of its own visible objects.
    visible: u64,
    /// The number of the enclosing bundle, or None.
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
    /// Opens a bundle: its objects become visible together, with consecutive versions in key order.
    ///
    /// Without a path the bundle belongs to this handle. All producers that open the same path share one bundle. Each
    /// may omit terms (members, orphan_timeout, attributes) that another producer gives; terms given twice must be
    /// equal. While `a` is open, `a/b` opens as one of its members, and becomes visible with it.
    ///
    /// Parameters
    /// ----------
    /// path : str, optional
    ///     1 to 16 parts between slashes, each of ASCII letters, digits and `._+:-=,@`.
    /// attributes : dict, optional
    ///     Any attributes of the schema. `bundles` selects bundles by them.
    /// members : int, optional
    ///     Number of members that completes it: objects, and nested bundles. Without it, the bundle must be sealed.
    /// orphan_timeout : float, optional
    ///     Seconds until the bundle is aborted after the last producer has left it. Defaults to the setting of the
    ///     server.
    /// schema : str, optional
    ///     The schema of its attributes, if it is not the pool's default.
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
    ///     Another producer has opened it with different terms; or `a/b` was opened before `a`, and is not nested in
    ///     it.
    /// BundleClosed, BundleFull
    ///     It, or the enclosing bundle, is complete; the enclosing one has all its members.
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
        let attributes = self.bundle_attributes(py, attributes, schema, keywords)?;
        let options = bundle_options(py, path.as_deref(), &attributes, members, orphan_timeout, schema)?;
        PyBundle::open(py, &self.inner, path, &attributes, options)
    }

    /// Lists the bundles whose attributes match, in the order in which they were opened: incomplete ones, and finished
    /// ones that the server remembers.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// under : str, optional
    ///     Only this path and the bundles nested in it.
    ///
    /// Returns
    /// -------
    /// list of BundleEntry
    #[pyo3(signature = (selector="", *, under=None))]
    fn bundles(&self, py: Python<'_>, selector: &str, under: Option<&str>) -> PyResult<Vec<PyBundleEntry>> {
        let entries = py.detach(|| self.inner.bundles(selector, under));
        let entries = entries.or_raise_about(py, selector)?;
        entries.into_iter().map(|entry| PyBundleEntry::new(py, entry)).collect()
    }

    /// Lists the visible objects that match, without payloads.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    ///     An empty selector matches every object.
    /// order_by : str, optional
    ///     The attribute to order by; defaults to the key.
    /// incomplete : bool
    ///     Whether members of incomplete bundles are listed, too; `Entry.staged_in` identifies them.
    /// bundle : str, optional
    ///     Only the objects of the bundle with this path, and of bundles nested in it.
    /// limit : int, optional
    ///     Only the first objects, from 1 to 1,000, which the server collects without listing all. Not with
    ///     `incomplete` or `bundle`.
    /// after : Described, optional
    ///     Only objects behind this entry of an earlier list in the same order; with `limit`.
    ///
    /// Returns
    /// -------
    /// list of Entry
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     No bundle has this path, or the server no longer remembers it.
    #[pyo3(signature = (selector="", *, order_by=None, incomplete=false, bundle=None, limit=None, after=None, **unknown), text_signature = "($self, selector='', *, order_by=None, incomplete=False, bundle=None, limit=None, after=None)")]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn list<'py>(
        &self,
        py: Python<'py>,
        selector: &str,
        order_by: Option<&str>,
        incomplete: bool,
        bundle: Option<&str>,
        limit: Option<u32>,
        after: Option<PyRef<'_, PyDescribed>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        refuse_unknown(py, "Pool.list", unknown)?;
        let after = after.map(|after| {
            let object = after.described();
            Described::new(object.schema(), object.record().to_owned())
        });
        let options = ListOptions {
            order_by,
            incomplete,
            bundle,
            limit,
            after: after.as_ref(),
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
        if list.is_empty() {
            self.warn_of_nothing(py, selector)?;
        }
        Ok(list)
    }
}

impl PyPool {
    /// The attributes of a new bundle.
    pub(crate) fn bundle_attributes<'py>(
        &self,
        py: Python<'py>,
        attributes: Option<&Bound<'py, PyAny>>,
        schema: Option<&str>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<GivenAttributes<'py>> {
        let own = schema_of(py, &self.inner, schema)?;
        let options = ["members", "orphan_timeout", "schema"];
        check_keywords(py, OfferPlace::Pool(&self.inner), &own, keywords, &options)?;
        GivenAttributes::read(attributes, keywords)
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
