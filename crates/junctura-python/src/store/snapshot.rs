//! The state of a store at one commit.

use junctura_model::selector::{SelectorContext, slips};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::look::owners;
use super::place::StorePlace;
use super::{PyChecked, PyListing};
use crate::conversion::values;
use crate::pool::mistakes::warn;
use crate::runtime::error::OrRaise;
use crate::runtime::interrupt;

/// A snapshot of a store: its listings and payloads do not change, whatever other processes write or remove. It is
/// readable for the maximum age of snapshots (`Store.snapshot_max_age`), and raises `Expired` afterwards.
///
/// Examples
/// --------
/// >>> store = junctura.Store.create(folder / "store", schema="free")
/// >>> snapshot = store.snapshot()
/// >>> with store:
/// ...     store.archive(b"later", name="a")
/// >>> len(snapshot.list()), len(store.list())
/// (0, 1)
#[pyclass(module = "junctura", name = "Snapshot", frozen)]
pub(crate) struct PySnapshot {
    inner: junctura_store::Snapshot,
    schemas: Vec<std::sync::Arc<junctura::Schema>>,
    place: StorePlace,
}

impl PySnapshot {
    pub(super) fn new(place: &StorePlace, inner: junctura_store::Snapshot) -> Self {
        let schemas = inner.schemas().to_vec();
        Self {
            inner,
            schemas,
            place: place.clone(),
        }
    }

    /// Warns of probable mistakes in a selector that nothing matches.
    fn warn_of_mistakes(&self, py: Python<'_>, selector: &str) -> PyResult<()> {
        let exists = |asked: &str| Ok(!self.inner.list(asked)?.is_empty());
        let found = py.detach(|| slips::of(selector, &self.schemas, &SelectorContext::default(), exists, Vec::new));
        found.iter().try_for_each(|slip| warn(py, selector, slip.cause()))
    }
}

#[pymethods]
impl PySnapshot {
    /// The number of its last commit; 0 for an empty store.
    #[getter]
    fn commit(&self) -> u64 {
        self.inner.commit()
    }

    /// Why it has no later commits, or may lack some: for a store that was opened with `until=damage`.
    #[getter]
    fn damage(&self) -> Option<String> {
        self.inner.damage().map(ToString::to_string)
    }

    /// list(selector='', *, all_versions=False, after=None)
    /// --
    ///
    /// Lists the newest version of each key that a selector matches, in commit order.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    ///     An empty selector matches every object.
    /// all_versions : bool
    ///     Whether to list superseded versions, too.
    /// after : int, optional
    ///     Only objects of commits after this number: the `Snapshot.commit` of an earlier query returns the objects
    ///     since then.
    ///
    /// Returns
    /// -------
    /// Listing
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     The selector is invalid; the error gives the position.
    /// Expired
    ///     The snapshot has exceeded its maximum age.
    #[pyo3(signature = (selector="", *, all_versions=false, after=None))]
    pub(super) fn list(
        &self,
        py: Python<'_>,
        selector: &str,
        all_versions: bool,
        after: Option<u64>,
    ) -> PyResult<PyListing> {
        let found = py.detach(|| match (all_versions, after) {
            (false, None) => self.inner.list(selector),
            (false, Some(commit)) => self.inner.list(selector).map(|listing| listing.after(commit)),
            (true, None) => self.inner.list_all(selector),
            (true, Some(commit)) => self.inner.list_after(selector, commit),
        });
        let found = found.or_raise_about(py, selector)?;
        // Without new objects, `after` leaves an empty list.
        if found.is_empty() && after.is_none() {
            self.warn_of_mistakes(py, selector)?;
        }
        Ok(PyListing::new(found, Vec::new(), &self.place))
    }

    /// committed(commit)
    /// --
    ///
    /// Lists the objects of one commit that have not been removed since, with keys and locations: the result of a
    /// flush.
    ///
    /// Parameters
    /// ----------
    /// commit : int
    ///     Its number: `Flushed.commit`.
    ///
    /// Returns
    /// -------
    /// Listing
    ///
    /// Raises
    /// ------
    /// Expired
    ///     The snapshot has exceeded its maximum age.
    pub(super) fn committed(&self, py: Python<'_>, commit: u64) -> PyResult<PyListing> {
        let found = py.detach(|| self.inner.committed(commit)).or_raise(py)?;
        Ok(PyListing::new(found, Vec::new(), &self.place))
    }

    /// versions(selector='')
    /// --
    ///
    /// Lists all versions of each key whose newest version a selector matches: the objects that `Store.wipe` removes.
    ///
    /// Returns
    /// -------
    /// Listing
    ///
    /// Raises
    /// ------
    /// InvalidSelector, Expired
    ///     As `list`.
    #[pyo3(signature = (selector=""))]
    fn versions(&self, py: Python<'_>, selector: &str) -> PyResult<PyListing> {
        let found = py.detach(|| self.inner.versions(selector));
        Ok(PyListing::new(
            found.or_raise_about(py, selector)?,
            Vec::new(),
            &self.place,
        ))
    }

    /// masked(selector='')
    /// --
    ///
    /// Lists the superseded versions among these: the objects that `Store.purge` removes.
    ///
    /// Returns
    /// -------
    /// Listing
    ///
    /// Raises
    /// ------
    /// InvalidSelector, Expired
    ///     As `list`.
    #[pyo3(signature = (selector=""))]
    fn masked(&self, py: Python<'_>, selector: &str) -> PyResult<PyListing> {
        let found = py.detach(|| self.inner.masked(selector));
        Ok(PyListing::new(
            found.or_raise_about(py, selector)?,
            Vec::new(),
            &self.place,
        ))
    }

    /// axes(selector='')
    /// --
    ///
    /// Returns the values of each attribute of the objects that a selector matches, in the order of its type: the axes
    /// of their cube, which may have gaps. Attributes without values are omitted; those of the key are first.
    ///
    /// Returns
    /// -------
    /// dict of str to list
    ///
    /// Raises
    /// ------
    /// InvalidSelector, Expired
    ///     As `list`.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="record") as store:
    /// ...     for number in (10, 9):
    /// ...         store.archive(b"", collection="c", producer="p", sequence=number)
    /// >>> store.axes()["sequence"]
    /// [9, 10]
    #[pyo3(signature = (selector=""))]
    pub(super) fn axes<'py>(&self, py: Python<'py>, selector: &str) -> PyResult<Bound<'py, PyDict>> {
        let axes = py.detach(|| self.inner.axes(selector)).or_raise_about(py, selector)?;
        let owners = owners(&self.schemas);
        let by_name = PyDict::new(py);
        for axis in axes {
            let list = match by_name.get_item(&axis.name)? {
                Some(list) => list.cast_into::<PyList>()?,
                None => PyList::empty(py),
            };
            let schema = owners.get(&*axis.name).copied().unwrap_or(&self.schemas[0]);
            for text in &axis.values {
                let value = values::value(py, schema, &axis.name, text)?;
                if !list.contains(&value)? {
                    list.append(value)?;
                }
            }
            by_name.set_item(&axis.name, list)?;
        }
        Ok(by_name)
    }

    /// retrieve(selector, *, partial=False)
    /// --
    ///
    /// Lists the newest version of each key that a selector matches, and checks completeness.
    ///
    /// If the selector lists values (`step=0/6/12,param=t/u`), an object must exist for every combination; for other
    /// conditions at least one object must exist.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// partial : bool
    ///     Whether to report missing objects in `missing` of the listing, instead of an error.
    ///
    /// Returns
    /// -------
    /// Listing
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     Objects are missing; the error names them.
    /// InvalidSelector, Expired
    ///     As `list`.
    /// LimitExceeded
    ///     The selector expects more than ten million objects.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive(b"", name="a")
    /// >>> store.retrieve("name=a/b", partial=True).missing
    /// ['{name=b}']
    #[pyo3(signature = (selector, *, partial=false))]
    pub(super) fn retrieve(&self, py: Python<'_>, selector: &str, partial: bool) -> PyResult<PyListing> {
        let found = py.detach(|| {
            if partial {
                self.inner
                    .retrieve_partial(selector)
                    .map(|found| (found.listing, found.missing))
            } else {
                self.inner.retrieve(selector).map(|listing| (listing, Vec::new()))
            }
        });
        let (listing, missing) = found.or_raise_about(py, selector)?;
        Ok(PyListing::new(listing, missing, &self.place))
    }

    /// check(selector='', *, sample=None)
    /// --
    ///
    /// Reads every object that a selector matches, including superseded versions, and verifies its checksum. Damage is
    /// reported in the result, not as an error.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// sample : int, optional
    ///     Number of objects to read, evenly spread.
    ///
    /// Returns
    /// -------
    /// Checked
    ///
    /// Raises
    /// ------
    /// InvalidSelector, Expired
    ///     As `list`.
    #[pyo3(signature = (selector="", *, sample=None))]
    pub(super) fn check(&self, py: Python<'_>, selector: &str, sample: Option<u64>) -> PyResult<PyChecked> {
        let checked = py.detach(|| self.inner.check(selector, sample, |_, _| interrupt::check().is_ok()));
        Ok(PyChecked::new(py, checked.or_raise_about(py, selector)?))
    }

    /// stats()
    /// --
    ///
    /// Returns the size of the store, as `junctura store stat --store --json` prints it: objects and superseded versions, by
    /// schema; data files, commits and segments, with their bytes; and the files that a compaction would remove now.
    /// Queries the size of each file.
    ///
    /// Returns
    /// -------
    /// dict
    ///
    /// Raises
    /// ------
    /// Expired
    ///     As `list`.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive(b"payload", name="a")
    /// >>> stats = store.stats()
    /// >>> stats["objects"], stats["bytes"], stats["commits"]["files"]
    /// (1, 7, 1)
    pub(super) fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = py.detach(|| self.inner.stats()).or_raise(py)?;
        let text = junctura_cli::stats_document(&stats).to_string();
        py.import("json")?.call_method1("loads", (text,))
    }

    fn __repr__(&self) -> String {
        format!("<junctura.Snapshot {} of {}>", self.inner.commit(), self.place)
    }
}
