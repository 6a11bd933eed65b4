//! Schemas that a pool and a store must share: an object is archived under the schema of its name.

use std::sync::Arc;

use junctura_model::command::shell_word;
use junctura_model::selector::Selector;
use junctura_model::{Code, Error, Result, Schema};
use junctura_store::Store;

use crate::pool::Pool;

/// Checks before the first object arrives that the store has the pool's default schema, if objects of it can match. Objects of
/// other schemas that the store lacks are set aside when they arrive, and so are those of a default schema that is built in:
/// a server has it unrequested.
///
/// # Errors
/// As [`agreed`].
pub(super) fn check(pool: &Pool, store: &Store, selector: &str, location: &str) -> Result<()> {
    let default = pool.schema(None)?;
    if Selector::parse(selector, &default).is_err() {
        return Ok(());
    }
    let is_built_in = Schema::builtin(default.name()).is_some_and(|own| own.fingerprint() == default.fingerprint());
    match agreed(pool, store, &default, location) {
        Err(_) if is_built_in && has_another(pool, store, location)? => Ok(()),
        outcome => outcome.map(drop),
    }
}

fn has_another(pool: &Pool, store: &Store, location: &str) -> Result<bool> {
    let schemas = pool.schemas()?;
    Ok(schemas
        .iter()
        .any(|schema| agreed(pool, store, schema, location).is_ok()))
}

/// Returns the store's schema of this name.
///
/// # Errors
/// `NotFound` if the store has none, `SchemaMismatch` if the keys of the two differ; both with the remedy.
pub(super) fn agreed<'s>(pool: &Pool, store: &'s Store, schema: &Schema, location: &str) -> Result<&'s Arc<Schema>> {
    let name = schema.name();
    let ours = store.schema(Some(name)).map_err(|error| {
        let cause = format!("{}; {}", error.cause(), remedy(pool, schema, location));
        error.because(cause)
    })?;
    match ours.first_difference_between(schema, ["the store", "the pool"]) {
        None => Ok(ours),
        Some(difference) => {
            let cause = format!(
                "the pool and the store mean different things by it: {difference}; archive into a store that was created with the \
                 schema of the pool, or give one of the two another name"
            );
            Err(Error::new(Code::SchemaMismatch, format!("schema {name}"), cause))
        }
    }
}

/// Returns the commands that add a schema of the pool to the store.
fn remedy(pool: &Pool, schema: &Schema, location: &str) -> String {
    if location.starts_with("memory:") {
        return "`set_schema` of the store adds it".to_owned();
    }
    let (name, store) = (schema.name(), shell_word(location));
    let is_built_in = Schema::builtin(name).is_some_and(|own| own.to_yaml() == schema.to_yaml());
    if is_built_in {
        return format!("`junctura schema set {name} --store {store}` adds it");
    }
    let pool = shell_word(pool.url());
    format!(
        "`junctura schema show {name} --pool {pool} > {name}.yaml`, then `junctura schema set {name}.yaml --store {store}`, adds it"
    )
}
