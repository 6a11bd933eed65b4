//! What was visible at one commit.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::look::owners;
use super::place::StorePlace;
use super::{PyChecked, PyListing};
use crate::error::OrRaise;
use crate::interrupt;
use crate::values;

/// Everything that was visible at one moment: what it lists it gives, whatever others write or remove meanwhile. It can be read
/// for as long as the store keeps snapshots (`Store.snapshot_max_age`), and raises `Expired` afterwards.
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
}

#[pymethods]
impl PySnapshot {
    /// The number of its last commit; 0 for an empty store.
    #[getter]
    fn commit(&self) -> u64 {
        self.inner.commit()
    }

    /// Why it shows nothing that was committed later, or could not tell: of a store that was opened with `until=damage`.
    #[getter]
    fn damage(&self) -> Option<String> {
        self.inner.damage().map(ToString::to_string)
    }

    /// list(selector='', *, all_versions=False, after=None)
    /// --
    ///
    /// The newest version of each key that a selector matches, in the order in which they were committed.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    ///     The empty one matches everything.
    /// all_versions : bool
    ///     Whether to list those that newer ones mask, too.
    /// after : int, optional
    ///     Only what came with a later commit than the one of this number: with `Snapshot.commit` of an earlier look, what is new
    ///     since.
    ///
    /// Returns
    /// -------
    /// Listing
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     Pointing at the character.
    /// Expired
    ///     The snapshot has outlived its time.
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
        Ok(PyListing::new(
            found.or_raise_about(py, selector)?,
            Vec::new(),
            &self.place,
        ))
    }

    /// committed(commit)
    /// --
    ///
    /// What came with one commit, and has not been removed since, with keys and places: what a flush has brought.
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
    ///     The snapshot has outlived its time.
    pub(super) fn committed(&self, py: Python<'_>, commit: u64) -> PyResult<PyListing> {
        let found = py.detach(|| self.inner.committed(commit)).or_raise(py)?;
        Ok(PyListing::new(found, Vec::new(), &self.place))
    }

    /// versions(selector='')
    /// --
    ///
    /// All versions of each key whose newest version a selector matches: what `Store.wipe` removes.
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
    /// Of these the ones that newer ones mask: what `Store.purge` removes.
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
    /// The values of each attribute that objects have which a selector matches, in the order of its type: the axes of the cube
    /// that they fill, or do not fill. Attributes that none has are left out; those of the key come first.
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
    /// The newest version of each key that a selector matches: all that it asks for.
    ///
    /// What the selector names value by value (`step=0/6/12,param=t/u`) is expected in every combination; of anything else something
    /// has to be there.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// partial : bool
    ///     Whether what is missing is named in the `missing` of the listing, and no error.
    ///
    /// Returns
    /// -------
    /// Listing
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     Something is missing; it is named.
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
    /// Reads every object that a selector matches, masked versions too, and compares its bytes with the checksum that it was
    /// archived with. Damage is no error, but what it reports.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// sample : int, optional
    ///     Reads only so many of them, as far apart as so many can be.
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
    /// How much there is, as `junctura stat --store --json` says it: objects and masked versions, by schema; data files, commits and
    /// segments, with their bytes; and which of them a compaction would remove now. Asks for the size of each file.
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
