//! Schemas that change while objects lie in a store.

use pyo3::prelude::*;

use super::PyStore;
use crate::error::OrRaise;
use crate::options::sources;

#[pymethods]
impl PyStore {
    /// set_schema(schema)
    /// --
    ///
    /// Adds a schema, or puts it in the place of the one of its name, for everybody who opens the store from now on. Nothing that lies
    /// there is moved: a schema may gain attributes outside its key, behind those that it has, and say otherwise which values
    /// are allowed, and what things are called besides. Who has the store open goes on with the schemas that it was opened with,
    /// until others have flushed what these do not have: then it is told (`SchemaMismatch`), and opens the store again.
    ///
    /// Parameters
    /// ----------
    /// schema : str, path, Schema or a list of these
    ///     As `create` takes it.
    ///
    /// Returns
    /// -------
    /// Store
    ///     This one, opened anew. What was archived here and not flushed stays with this one.
    ///
    /// Raises
    /// ------
    /// SchemaMismatch
    ///     It does not fit what lies in the store, and why.
    ///
    /// Examples
    /// --------
    /// >>> text = "name: runs\nkey: {dataset: [], collocation: [], element: [run]}\nattributes:\n  run: {type: integer}\n"
    /// >>> store = junctura.Store.create(folder / "runs", schema=text)
    /// >>> with store.set_schema(text + "  owner: {type: string}\n") as store:
    /// ...     store.archive(b"result", run=1, owner="ada")
    #[pyo3(text_signature = "(schema)")]
    fn set_schema(&self, py: Python<'_>, schema: &Bound<'_, PyAny>) -> PyResult<Self> {
        let home = self.home(py)?;
        let mut schemas = Vec::new();
        for source in sources(schema)? {
            schemas.extend(source.read().or_raise(py)?);
        }
        let changed = py.detach(|| {
            let mut store = home.store().clone();
            for schema in &schemas {
                store = store.set_schema(schema)?;
            }
            Ok(store)
        });
        Ok(Self::of(home.place().clone(), changed.or_raise(py)?))
    }
}
