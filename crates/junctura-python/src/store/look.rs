//! Methods of a store that query its current snapshot, and maintenance of a store.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{PyChecked, PyCheckpointed, PyCompacted, PyFollowing, PyListing, PyRemoved, PySnapshot, PyStore};
use crate::conversion::keywords::refuse_unknown;
use crate::conversion::options;
use crate::runtime::error::OrRaise;
use crate::runtime::interrupt;

/// The duration of a wait.
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
    /// Returns a snapshot of the current state; later writes do not change it.
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
    /// As `Snapshot.list`, for the current state.
    #[pyo3(signature = (selector="", *, all_versions=false, after=None, **unknown), text_signature = "($self, selector='', *, all_versions=False, after=None)")]
    fn list(
        &self,
        py: Python<'_>,
        selector: &str,
        all_versions: bool,
        after: Option<u64>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyListing> {
        refuse_unknown(py, "Store.list", unknown)?;
        self.snapshot(py)?.list(py, selector, all_versions, after)
    }

    /// committed(commit)
    /// --
    ///
    /// As `Snapshot.committed`, for the current state.
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
    /// As `Snapshot.axes`, for the current state.
    #[pyo3(signature = (selector=""))]
    fn axes<'py>(&self, py: Python<'py>, selector: &str) -> PyResult<Bound<'py, PyDict>> {
        self.snapshot(py)?.axes(py, selector)
    }

    /// retrieve(selector, *, partial=False, wait=False)
    /// --
    ///
    /// As `Snapshot.retrieve`, for the current state; or for the first state without missing objects.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// partial : bool
    ///     Whether to report missing objects in `missing` of the listing, instead of an error.
    /// wait : bool or float
    ///     Whether to wait until no object is missing, or the timeout in seconds. In a folder of this host each commit
    ///     wakes the wait, elsewhere it polls a few times per second.
    ///
    /// Raises
    /// ------
    /// Timeout
    ///     Objects are still missing; the error names them.
    #[pyo3(signature = (selector, *, partial=false, wait=None, **unknown), text_signature = "($self, selector, *, partial=False, wait=None)")]
    fn retrieve(
        &self,
        py: Python<'_>,
        selector: &str,
        partial: bool,
        wait: Option<WaitLimit>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyListing> {
        refuse_unknown(py, "Store.retrieve", unknown)?;
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
    /// Follows the commits of all writers: yields the newest version of each existing key that a selector matches, then
    /// every version as it is committed. Each object has its `commit` and its `location`; payloads are read on demand.
    /// Iteration blocks, and other threads run meanwhile.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// after : int, optional
    ///     Resumes after this commit: yields every version of a later commit, and then as above. Store the iterator's
    ///     `commit`, up to which every version was yielded, to resume.
    /// timeout : float, optional
    ///     Seconds without a new version after which iteration raises `Timeout`; it can continue afterwards.
    ///
    /// Returns
    /// -------
    /// iterator of Stored
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     The selector is invalid; raised by the iteration.
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
    /// As `Snapshot.check`, for the current state.
    #[pyo3(signature = (selector="", *, sample=None))]
    fn check(&self, py: Python<'_>, selector: &str, sample: Option<u64>) -> PyResult<PyChecked> {
        self.snapshot(py)?.check(py, selector, sample)
    }

    /// stats()
    /// --
    ///
    /// As `Snapshot.stats`, for the current state.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.snapshot(py)?.stats(py)
    }

    /// purge(selector='')
    /// --
    ///
    /// Removes superseded versions of all objects that a selector matches (`Snapshot.masked`). Earlier snapshots have
    /// them until they expire; `compact` frees the space when no snapshot needs them any more.
    ///
    /// Returns
    /// -------
    /// Removed
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     The selector is invalid; the error gives the position.
    #[pyo3(signature = (selector=""))]
    fn purge(&self, py: Python<'_>, selector: &str) -> PyResult<PyRemoved> {
        let home = self.home(py)?;
        let removed = py.detach(|| home.store().purge(selector));
        removed.or_raise_about(py, selector).map(PyRemoved::from)
    }

    /// wipe(selector)
    /// --
    ///
    /// Removes all objects that a selector matches, with all their versions, as `purge` does. `Snapshot.versions` lists
    /// them in advance, and `remove` takes that listing.
    ///
    /// Returns
    /// -------
    /// Removed
    ///
    /// Raises
    /// ------
    /// InvalidSelector
    ///     The selector is invalid; the error gives the position.
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
    /// Removes these objects, together and for all readers, as `purge` does; objects removed or archived meanwhile are
    /// unaffected.
    ///
    /// Parameters
    /// ----------
    /// listing : Listing
    ///     A listing of this store.
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
    /// Writes a checkpoint: the catalogue of the current state as Parquet files, which other programs can read, and a
    /// JSON file under `checkpoints/` that lists them. Opening the store starts from the newest checkpoint. Other
    /// processes may write meanwhile.
    ///
    /// Returns
    /// -------
    /// Checkpointed
    ///
    /// Raises
    /// ------
    /// Expired
    ///     It took longer than the ages of the store allow; the previous checkpoint is still valid.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<PyCheckpointed> {
        let home = self.home(py)?;
        py.detach(|| home.store().checkpoint())
            .or_raise(py)
            .map(PyCheckpointed::from)
    }

    /// compact()
    /// --
    ///
    /// Writes a checkpoint, and removes unused files: checkpoints that were superseded longer ago than the maximum age
    /// of a snapshot, and files that crashed writers have left.
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

/// The schema of each attribute: the first schema of the store that has it.
pub(super) fn owners(schemas: &[std::sync::Arc<junctura::Schema>]) -> BTreeMap<&str, &junctura::Schema> {
    let mut owners = BTreeMap::new();
    for schema in schemas {
        for attribute in schema.attributes() {
            owners.entry(&*attribute.name).or_insert(&**schema);
        }
    }
    owners
}
