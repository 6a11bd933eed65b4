//! The questions that a snapshot answers, asked of the store: each of what is visible now. And what keeps a store tidy.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{PyChecked, PyCheckpointed, PyCompacted, PyFollowing, PyListing, PyRemoved, PySnapshot, PyStore};
use crate::error::OrRaise;
use crate::interrupt;
use crate::options;

/// How long something is waited for.
#[derive(FromPyObject)]
enum WaitLimit {
    Whether(bool),
    Seconds(f64),
}

#[pymethods]
impl PyStore {
    /// snapshot()
    /// --
    ///
    /// What is visible now; it stays as it is, whatever is written meanwhile.
    ///
    /// Returns
    /// -------
    /// Snapshot
    fn snapshot(&self, py: Python<'_>) -> PyResult<PySnapshot> {
        let home = self.home(py)?;
        let taken = py.detach(|| home.store().snapshot()).or_raise(py)?;
        Ok(PySnapshot::new(home.place(), taken))
    }

    /// list(selector='', *, all_versions=False, after=None)
    /// --
    ///
    /// As `Snapshot.list`, of what is visible now.
    #[pyo3(signature = (selector="", *, all_versions=false, after=None))]
    fn list(&self, py: Python<'_>, selector: &str, all_versions: bool, after: Option<u64>) -> PyResult<PyListing> {
        self.snapshot(py)?.list(py, selector, all_versions, after)
    }

    /// committed(commit)
    /// --
    ///
    /// As `Snapshot.committed`, of what is visible now.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive(b"bytes", name="a")
    /// ...     [obj.key for obj in store.committed(store.flush().commit)]
    /// ['{space=default}{}{name=a}']
    fn committed(&self, py: Python<'_>, commit: u64) -> PyResult<PyListing> {
        self.snapshot(py)?.committed(py, commit)
    }

    /// axes(selector='')
    /// --
    ///
    /// As `Snapshot.axes`, of what is visible now.
    #[pyo3(signature = (selector=""))]
    fn axes<'py>(&self, py: Python<'py>, selector: &str) -> PyResult<Bound<'py, PyDict>> {
        self.snapshot(py)?.axes(py, selector)
    }

    /// retrieve(selector, *, partial=False, wait=False)
    /// --
    ///
    /// As `Snapshot.retrieve`, of what is visible now; or of the first moment at which nothing is missing.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// partial : bool
    ///     Whether what is missing is named in the `missing` of the listing, and no error.
    /// wait : bool or float
    ///     Whether to wait until nothing is missing, or how many seconds. In a folder of this machine it wakes when somebody
    ///     commits, elsewhere it looks some times a second.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     Something is still missing; it is named.
    #[pyo3(signature = (selector, *, partial=false, wait=None))]
    fn retrieve(&self, py: Python<'_>, selector: &str, partial: bool, wait: Option<WaitLimit>) -> PyResult<PyListing> {
        let timeout = match wait {
            None | Some(WaitLimit::Whether(false)) => return self.snapshot(py)?.retrieve(py, selector, partial),
            Some(WaitLimit::Whether(true)) => None,
            Some(WaitLimit::Seconds(seconds)) => options::timeout(py, Some(seconds))?,
        };
        let home = self.home(py)?;
        let found = py.detach(|| {
            let found = home.store().retrieve_within(selector, timeout, interrupt::check)?;
            if partial {
                return Ok((found.listing, found.missing));
            }
            found.complete_in_time(selector).map(|listing| (listing, Vec::new()))
        });
        let (listing, missing) = found.or_raise_about(py, selector)?;
        Ok(PyListing::new(listing, missing, home.place()))
    }

    /// follow(selector='', *, after=None, timeout=None)
    /// --
    ///
    /// What a selector matches, as it is committed, by whomever: first the newest version of each key that is there, then every version
    /// as it comes. Each knows its `commit` and its `location`; nothing is read before somebody asks for it. Iterating waits, and other
    /// threads run meanwhile.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// after : int, optional
    ///     Every version that came with a later commit than this one, and then as above: who keeps the iterator's `commit`, up to which
    ///     everything was given, goes on there.
    /// timeout : float, optional
    ///     Seconds without anything new after which iterating raises `Timeout`; it may go on afterwards.
    ///
    /// Returns
    /// -------
    /// iterator of Stored
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     When it is iterated.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     for name in "ab":
    /// ...         store.archive(name.encode(), name=name)
    /// ...         _ = store.flush()
    /// >>> [next(store.follow("name=b")).commit, next(store.follow(after=0)).key]
    /// [2, '{space=default}{}{name=a}']
    #[pyo3(signature = (selector="", *, after=None, timeout=None))]
    fn follow(
        &self,
        py: Python<'_>,
        selector: &str,
        after: Option<u64>,
        timeout: Option<f64>,
    ) -> PyResult<PyFollowing> {
        let (home, timeout) = (self.home(py)?, options::timeout(py, timeout)?);
        let follow = home.store().follow(selector, after);
        Ok(PyFollowing::new(follow, selector, timeout, home.place()))
    }

    /// check(selector='', *, sample=None)
    /// --
    ///
    /// As `Snapshot.check`, of what is visible now.
    #[pyo3(signature = (selector="", *, sample=None))]
    fn check(&self, py: Python<'_>, selector: &str, sample: Option<u64>) -> PyResult<PyChecked> {
        self.snapshot(py)?.check(py, selector, sample)
    }

    /// stats()
    /// --
    ///
    /// As `Snapshot.stats`, of what is visible now.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.snapshot(py)?.stats(py)
    }

    /// purge(selector='')
    /// --
    ///
    /// Removes what is masked: of all that a selector matches the versions that newer ones mask (`Snapshot.masked`). Snapshots of
    /// before show them as long as they can be read; the room is there again after a `compact` when none needs them any more.
    ///
    /// Returns
    /// -------
    /// Removed
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     Pointing at the character.
    #[pyo3(signature = (selector=""))]
    fn purge(&self, py: Python<'_>, selector: &str) -> PyResult<PyRemoved> {
        let home = self.home(py)?;
        let removed = py.detach(|| home.store().purge(selector));
        removed.or_raise_about(py, selector).map(PyRemoved::from)
    }

    /// wipe(selector)
    /// --
    ///
    /// Removes all that a selector matches, with all its versions, as `purge` does. `Snapshot.versions` lists first what would go,
    /// and `remove` takes that listing.
    ///
    /// Returns
    /// -------
    /// Removed
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     Pointing at the character.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive(b"payload", name="a")
    /// >>> store.wipe("name=a")
    /// Removed(commit=2, objects=1, nbytes=7)
    fn wipe(&self, py: Python<'_>, selector: &str) -> PyResult<PyRemoved> {
        let home = self.home(py)?;
        let removed = py.detach(|| home.store().wipe(selector));
        removed.or_raise_about(py, selector).map(PyRemoved::from)
    }

    /// remove(listing)
    /// --
    ///
    /// Removes these objects, at once and for everybody, as `purge` does; what has been removed meanwhile, or archived, stays as it is.
    ///
    /// Parameters
    /// ----------
    /// listing : Listing
    ///     Of this store.
    ///
    /// Returns
    /// -------
    /// Removed
    ///
    /// Raises
    /// ------
    /// InvalidArgument
    ///     The listing is of another store.
    fn remove(&self, py: Python<'_>, listing: &PyListing) -> PyResult<PyRemoved> {
        let home = self.home(py)?;
        let removed = py.detach(|| home.store().remove(listing.inner()));
        removed.or_raise(py).map(PyRemoved::from)
    }

    /// checkpoint()
    /// --
    ///
    /// Writes the catalogue of all that is visible now into Parquet files, which anybody can read, and lists them in a JSON file
    /// under `checkpoints/`. Who opens the store next begins there. Others may write meanwhile.
    ///
    /// Returns
    /// -------
    /// Checkpointed
    ///
    /// Raises
    /// ------
    /// Expired
    ///     It took longer than the ages of the store allow; the checkpoint of before is as good as it was.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<PyCheckpointed> {
        let home = self.home(py)?;
        py.detach(|| home.store().checkpoint())
            .or_raise(py)
            .map(PyCheckpointed::from)
    }

    /// compact()
    /// --
    ///
    /// Makes a checkpoint, and removes what nobody needs any more: checkpoints that were superseded longer ago than a snapshot may be
    /// old, and what writers that have died left behind.
    ///
    /// Returns
    /// -------
    /// Compacted
    ///
    /// Raises
    /// ------
    /// Expired
    ///     As `checkpoint`.
    fn compact(&self, py: Python<'_>) -> PyResult<PyCompacted> {
        let home = self.home(py)?;
        py.detach(|| home.store().compact()).or_raise(py).map(PyCompacted::from)
    }
}

/// Which schema each attribute is of: the first of the store that has it.
pub(super) fn owners(schemas: &[std::sync::Arc<junctura::Schema>]) -> BTreeMap<&str, &junctura::Schema> {
    let mut owners = BTreeMap::new();
    for schema in schemas {
        for attribute in schema.attributes() {
            owners.entry(&*attribute.name).or_insert(&**schema);
        }
    }
    owners
}
