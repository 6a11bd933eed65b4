//! Other places for objects of a store.

use std::collections::BTreeMap;

use pyo3::prelude::*;

use super::{PyMoved, PyStore, StorePlace};
use crate::error::OrRaise;
use crate::interrupt;

#[pymethods]
impl PyStore {
    /// add_tier(name, place)
    /// --
    ///
    /// Says where a tier is, to which objects can be moved: for everybody who uses the store, and for good.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     Up to 64 of a-z, 0-9, - and _; `data` is where objects lie that were not moved.
    /// place : path or str
    ///     An absolute path, or a URL, as `Store` takes it.
    ///
    /// Raises
    /// ------
    /// AlreadyExists
    ///     The name is that of another place, or another store has it there.
    /// InvalidArgument
    ///     What is no name, or no place, or not the same one for everybody.
    fn add_tier(&self, py: Python<'_>, name: &str, place: &Bound<'_, PyAny>) -> PyResult<()> {
        let (home, place) = (self.home(py)?, StorePlace::of(place)?);
        let url = place.text().or_raise(py)?;
        py.detach(|| home.store().add_tier(name, url)).or_raise(py)
    }

    /// adopt()
    /// --
    ///
    /// States that this folder is the store from now on: its data that lie elsewhere, its tiers and the folders behind links in it are its own,
    /// and no longer those of the folder that it was copied, moved or restored from, which can be read from then on. Until that a copy
    /// with places elsewhere reads, and `compact` and what makes files there raise `Conflict`. Do not do it for a copy that is only a
    /// backup or a test.
    ///
    /// Raises
    /// ------
    /// AlreadyExists
    ///     A place is that of another store.
    /// Conflict
    ///     A link leads into the folder of another store.
    fn adopt(&self, py: Python<'_>) -> PyResult<()> {
        let home = self.home(py)?;
        py.detach(|| home.store().adopt()).or_raise(py)
    }

    /// Its tiers, by their names: a dict with the path or URL of each. Reads from the disk.
    #[getter]
    fn tiers(&self, py: Python<'_>) -> PyResult<BTreeMap<String, String>> {
        let home = self.home(py)?;
        let tiers = py.detach(|| home.store().tiers()).or_raise(py)?;
        Ok(tiers.into_iter().map(|tier| (tier.name, tier.place)).collect())
    }

    /// move_to(selector, tier)
    /// --
    ///
    /// Moves all that a selector matches, masked versions too, to a tier (`add_tier`), or back to where objects lie that were not moved: `"data"`. They are
    /// copied, verified on their way, and found there by everybody from then on. It may be interrupted at any time, and begun again. Who has a
    /// snapshot of before reads them where they were; the room there comes back after a `compact` when none needs it any more.
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
    ///     There is no such tier.
    /// InvalidSelector
    ///     Pointing at the character.
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
    /// Moves what is left in data files of which less than half is used, after a `purge` or a `wipe`, into new ones of the same tier, and what
    /// small flushes left within old commits. The room comes back after a `compact` when no snapshot can need the old ones. Data files
    /// that were written to lately stay.
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
