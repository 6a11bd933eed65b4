//! Objects of a store in the order of their values.

use junctura::{Code, Described, Error, Result, Schema};
use junctura_store::StoredObject;

/// An object of a store with its attributes.
pub(crate) struct OrderedObject<'a>(pub(crate) Described, pub(crate) StoredObject<'a>);

/// Sorts by an attribute, if one was requested; then by key and commit.
///
/// # Errors
/// `InvalidArgument` for an attribute that no schema of the store has.
pub(crate) fn order(rows: &mut [OrderedObject<'_>], by: Option<&str>) -> Result<()> {
    if let Some(name) = by
        && !rows.is_empty()
        && !rows
            .iter()
            .any(|OrderedObject(object, _)| object.schema().is_open() || object.schema().find(name).is_some())
    {
        return Err(Error::new(
            Code::InvalidArgument,
            "--sort",
            format!("no schema here has {name}"),
        ));
    }
    rows.sort_by_cached_key(|OrderedObject(object, stored)| {
        let by = by.map(|name| (name, object.get(name)));
        let by = by.map(|(name, value)| value.map(|text| (rank(object.schema(), name, text), text.to_owned())));
        let place = |(name, text): (&str, &str)| (rank(object.schema(), name, text), text.to_owned());
        let key = object.attributes().take(object.schema().key_len()).map(place);
        (by, key.collect::<Vec<_>>(), stored.commit())
    });
    Ok(())
}

/// Returns the position of a value among others of its attribute, if they have an order other than that of their texts.
fn rank(schema: &Schema, name: &str, text: &str) -> Option<i128> {
    let id = schema.find(name)?;
    schema.attribute(id).kind.scalar.order(text)
}
