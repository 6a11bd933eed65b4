//! Storage tiers of a store.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use super::{PyMoved, PyStore, StorePlace};
use crate::runtime::error::OrRaise;
use crate::runtime::interrupt;

#[pymethods]
impl PyStore {
    /// add_tier(name, place)
    /// --
    ///
    /// Adds a tier, a place to which objects can be moved, permanently and for all users of the store.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     Up to 64 of a-z, 0-9, - and _; `data` is the place of objects that were not moved.
    /// place : path or str
    ///     An absolute path, or a URL, as `Store` takes it.
    ///
    /// Raises
    /// ------
    /// AlreadyExists
    ///     The name denotes another place, or the place belongs to another store.
    /// InvalidArgument
    ///     The name or the place is invalid, or the place depends on the user.
    fn add_tier(&self, py: Python<'_>, name: &str, place: &Bound<'_, PyAny>) -> PyResult<()> {
        let (home, place) = (self.home(py)?, StorePlace::of(place)?);
        let url = place.text().or_raise(py)?;
        py.detach(|| home.store().add_tier(name, url)).or_raise(py)
    }

    /// adopt()
    /// --
    ///
    /// Declares that this folder is the store from now on: it owns the data in other places, the tiers and the folders
    /// behind its links, instead of the folder that it was copied, moved or restored from, which then is read-only.
    /// Without this declaration, a copy with data in other places is readable, and `compact` and calls that create
    /// files there raise `Conflict`. Do not adopt a copy that is only a backup or a test.
    ///
    /// Raises
    /// ------
    /// AlreadyExists
    ///     A place belongs to another store.
    /// Conflict
    ///     A link points into the folder of another store.
    fn adopt(&self, py: Python<'_>) -> PyResult<()> {
        let home = self.home(py)?;
        py.detach(|| home.store().adopt()).or_raise(py)
    }

    /// Returns its tiers: a dict of name to path or URL. Reads from disk.
    #[getter]
    fn tiers(&self, py: Python<'_>) -> PyResult<BTreeMap<String, String>> {
        let home = self.home(py)?;
        let tiers = py.detach(|| home.store().tiers()).or_raise(py)?;
        Ok(tiers.into_iter().map(|tier| (tier.name, tier.place)).collect())
    }

    /// move_to(selector, tier)
    /// --
    ///
    /// Moves all objects that a selector matches, including superseded versions, to a tier (`add_tier`), or back to the
    /// default place `"data"`. They are copied and verified, and all readers then find them there. The move may be
    /// interrupted at any time, and repeated. Earlier snapshots read the old files; `compact` frees the space when no
    /// snapshot needs them any more.
    ///
    /// Parameters
    /// ----------
    /// selector : str
    /// tier : str
    ///
    /// Returns
    /// -------
    /// Moved
    ///
    /// Raises
    /// ------
    /// NotFound
    ///     The tier does not exist.
    /// InvalidSelector
    ///     The selector is invalid; the error gives the position.
    ///
    /// Examples
    /// --------
    /// >>> with junctura.Store.create(folder / "store", schema="free") as store:
    /// ...     store.archive(bytes(100_000), space="2025", name="a")
    /// >>> store.add_tier("cold", folder / "cold")
    /// >>> store.move_to("space=2025", "cold")
    /// <junctura.Moved 1 objects, 100000 bytes, 0 damaged>
    /// >>> list(store.tiers), len(store.list()[0].read())
    /// (['cold'], 100000)
    fn move_to(&self, py: Python<'_>, selector: &str, tier: &str) -> PyResult<PyMoved> {
        let home = self.home(py)?;
        let moved = py.detach(|| home.store().move_to(selector, tier, |_, _| interrupt::check().is_ok()));
        Ok(PyMoved::new(py, moved.or_raise_about(py, selector)?))
    }

    /// gather()
    /// --
    ///
    /// Defragments: moves the remaining objects of data files that are less than half used, after a `purge` or a
    /// `wipe`, to new files of the same tier, and objects of small flushes out of old commits. `compact` frees the
    /// space when no snapshot can need the old files. Recently written data files are left.
    ///
    /// Returns
    /// -------
    /// Moved
    fn gather(&self, py: Python<'_>) -> PyResult<PyMoved> {
        let home = self.home(py)?;
        let moved = py.detach(|| home.store().gather(|_, _| interrupt::check().is_ok()));
        Ok(PyMoved::new(py, moved.or_raise(py)?))
    }
}
