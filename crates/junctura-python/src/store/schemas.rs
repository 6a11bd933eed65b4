//! Schema changes of a store with objects.

use junctura::{Result, Schema};
use junctura_store::Store;
use pyo3::prelude::*;

use super::PyStore;
use crate::conversion::options::sources;
use crate::runtime::error::OrRaise;

#[pymethods]
impl PyStore {
    /// set_schema(schema)
    /// --
    ///
    /// Adds a schema, or replaces the one of the same name, for all processes that open the store from now on. Stored
    /// objects are not changed: a schema may gain attributes outside its key, after the existing ones, and change
    /// allowed values and aliases. Processes that have the store open continue with their schemas until another writer
    /// flushes objects that these do not cover: then calls fail with `SchemaMismatch`, and the store must be reopened.
    ///
    /// Parameters
    /// ----------
    /// schema : str, path, Schema or a list of these
    ///     As for `create`.
    ///
    /// Returns
    /// -------
    /// Store
    ///     This store, reopened. Unflushed objects stay with the old handle.
    ///
    /// Raises
    /// ------
    /// SchemaMismatch
    ///     The schema is incompatible with stored objects, or changes what they mean (`redefine_schema`); the error gives
    ///     the reason.
    ///
    /// Examples
    /// --------
    /// >>> text = "name: runs\nkey: {dataset: [], collocation: [], element: [run]}\nattributes:\n  run: {type: integer}\n"
    /// >>> store = junctura.Store.create(folder / "runs", schema=text)
    /// >>> with store.set_schema(text + "  owner: {type: string}\n") as store:
    /// ...     store.archive(b"result", run=1, owner="ada")
    #[pyo3(text_signature = "(schema)")]
    fn set_schema(&self, py: Python<'_>, schema: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with_schemas(py, schema, Store::set_schema)
    }

    /// redefine_schema(schema)
    /// --
    ///
    /// As `set_schema`, also if the schema changes what stored objects mean: a unit, or allowed values that no longer
    /// include the old ones. Stored objects keep their values, which are then read by the new definition.
    ///
    /// Parameters
    /// ----------
    /// schema : str, path, Schema or a list of these
    ///     As for `create`.
    ///
    /// Returns
    /// -------
    /// Store
    ///     This store, reopened. Unflushed objects stay with the old handle.
    ///
    /// Raises
    /// ------
    /// SchemaMismatch
    ///     The schema is incompatible with stored objects; the error gives the reason.
    ///
    /// Examples
    /// --------
    /// >>> text = "name: depths\nkey: {dataset: [], collocation: [], element: [z]}\n"
    /// >>> text += "attributes:\n  z: {type: integer, unit: km}\n"
    /// >>> store = junctura.Store.create(folder / "depths", schema=text)
    /// >>> store.archive(b"", z=5)
    /// >>> _ = store.flush()
    /// >>> store = store.redefine_schema(text.replace("km", "m"))
    #[pyo3(text_signature = "(schema)")]
    fn redefine_schema(&self, py: Python<'_>, schema: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with_schemas(py, schema, Store::redefine_schema)
    }
}

impl PyStore {
    fn with_schemas(
        &self,
        py: Python<'_>,
        schema: &Bound<'_, PyAny>,
        change: fn(&Store, &Schema) -> Result<Store>,
    ) -> PyResult<Self> {
        let home = self.home(py)?;
        let mut schemas = Vec::new();
        for source in sources(schema)? {
            schemas.extend(source.read().or_raise(py)?);
        }
        let changed = py.detach(|| {
            let mut store = home.store().clone();
            for schema in &schemas {
                store = change(&store, schema)?;
            }
            Ok(store)
        });
        Ok(Self::of(home.place().clone(), changed.or_raise(py)?))
    }
}
