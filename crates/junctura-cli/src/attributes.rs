//! Attributes as they are given on a command line, and selectors made of several arguments.

use std::sync::Arc;

use junctura::{Code, Error, Given, ListOptions, Pool, Result, Schema};
use junctura_model::mars;
use junctura_model::selector::{Context, SelectorSet, explain_error};

use crate::today::today;

/// One `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// Reads one `NAME=VALUE`; the value is everything after the first `=`.
pub(crate) fn pair(text: &str) -> std::result::Result<Pair, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok(Pair {
            name: name.trim().to_owned(),
            value: value.to_owned(),
        }),
        _ => Err("NAME=VALUE is expected".to_owned()),
    }
}

/// As an offer or a key takes them.
pub(crate) fn given(pairs: &[Pair]) -> impl Iterator<Item = (&str, Given<'_>)> {
    pairs.iter().map(|pair| (pair.name.as_str(), Given::Text(&pair.value)))
}

/// One selector of all arguments: each must hold. A MARS request, which may count from today, becomes a selector here.
///
/// # Errors
/// `InvalidSelector` for a request that none of the pool's schemas can read.
pub(crate) fn selector(arguments: &[String], pool: &Pool) -> Result<String> {
    let selector = selector_for(arguments, || pool.schemas())?;
    note_slips(&selector, &pool.schemas()?, |exists| is_in_pool(pool, exists));
    Ok(selector)
}

/// Whether the pool, or the store behind it, has an object of this selector.
fn is_in_pool(pool: &Pool, selector: &str) -> Result<bool> {
    let mut pages = pool.list_with(selector, ListOptions::default())?;
    Ok(pages.next_page()?.is_some_and(|page| !page.is_empty()))
}

/// Prints of each attribute that no schema declares and no object has which one was probably meant.
///
/// Objects of an open schema may have any attributes, so that a misspelled one is no error: it matches nothing.
pub(crate) fn note_slips(selector: &str, schemas: &[Arc<Schema>], exists: impl Fn(&str) -> Result<bool>) {
    for name in undeclared(selector, schemas) {
        let near = schemas
            .iter()
            .find_map(|schema| Some((schema.nearest_name(&name)?, schema.name())));
        if let Some((near, schema)) = near
            && matches!(exists(&format!("exists({name})")), Ok(false))
        {
            say!("junctura: no object has the attribute {name:?}; did you mean {near} (schema {schema})?");
        }
    }
}

/// As [`note_slips`], of the attributes that resemble none that is declared: where nothing has been found.
pub(crate) fn note_unknown(selector: &str, schemas: &[Arc<Schema>], exists: impl Fn(&str) -> Result<bool>) {
    for name in undeclared(selector, schemas) {
        let is_near = schemas.iter().any(|schema| schema.nearest_name(&name).is_some());
        if !is_near && matches!(exists(&format!("exists({name})")), Ok(false)) {
            say!("junctura: no object has the attribute {name:?}, and no schema declares it");
        }
    }
}

/// As [`note_unknown`], of a pool.
pub(crate) fn note_unknown_in(pool: &Pool, selector: &str) -> Result<()> {
    note_unknown(selector, &pool.schemas()?, |exists| is_in_pool(pool, exists));
    Ok(())
}

/// The attributes of a selector that no schema declares; none where it cannot be read, which its use reports.
fn undeclared(selector: &str, schemas: &[Arc<Schema>]) -> Vec<String> {
    let context = Context { today: today() };
    let Ok(set) = SelectorSet::parse_with(selector, schemas, &context) else {
        return Vec::new();
    };
    set.undeclared(schemas).into_iter().map(str::to_owned).collect()
}

/// The same for what has these schemas.
///
/// # Errors
/// `InvalidSelector` for a request that none of the schemas can read.
pub(crate) fn selector_for(arguments: &[String], schemas: impl FnOnce() -> Result<Vec<Arc<Schema>>>) -> Result<String> {
    let text = arguments.join(",");
    if !mars::is_request(&text) {
        return Ok(text);
    }
    let mut first_error = None;
    for schema in schemas()? {
        match mars::to_selector_text(&text, &schema, today()) {
            Ok(selector) => return Ok(selector),
            Err(error) => _ = first_error.get_or_insert(error),
        }
    }
    first_error.map_or(Ok(text.clone()), |error| Err(pictured(&error, &text)))
}

/// An error about a text, with a picture of the place in it.
pub(crate) fn pictured(error: &Error, text: &str) -> Error {
    match explain_error(text, error).split_once('\n') {
        Some((_, picture)) => {
            let at = error.position().unwrap_or_default();
            Error::new(
                error.code(),
                error.subject(),
                format!("{} (at byte {at})\n{picture}", error.cause()),
            )
        }
        None => error.clone(),
    }
}

/// As [`pictured`], for errors that are about a selector.
pub(crate) fn about_selector<T>(outcome: Result<T>, selector: &str) -> Result<T> {
    outcome.map_err(|error| {
        if error.code() == Code::InvalidSelector {
            pictured(&error, selector)
        } else {
            error
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_ends_its_name_at_the_first_equals_sign() {
        let read = pair("note=a=b").unwrap();
        assert_eq!((read.name.as_str(), read.value.as_str()), ("note", "a=b"));
        assert_eq!(pair("empty=").unwrap().value, "");
        assert!(pair("=x").is_err());
        assert!(pair("x").is_err());
    }

    #[test]
    fn an_error_points_at_the_character() {
        let error = Error::new(Code::InvalidSelector, "selector", "expected a value, found the end").at(6);
        let text = pictured(&error, "class=").to_string();
        assert_eq!(
            text,
            "InvalidSelector: selector: expected a value, found the end (at byte 6)\n  class=\n        ^"
        );
        assert_eq!(
            pictured(&Error::new(Code::Closed, "a", "b"), "").to_string(),
            "Closed: a: b"
        );
    }
}
