//! Attributes of a command line, and selectors made of several arguments.

use std::sync::Arc;

use junctura::{Code, Error, Given, ListOptions, Pool, Result, Schema};
use junctura_model::selector::SelectorContext;
use junctura_model::selector::slips::{self, pictured};
use junctura_model::{mars, nearest};

use crate::today::today;

/// One `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttributePair {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// Parses one `NAME=VALUE`; the value is everything after the first `=`.
pub(crate) fn pair(text: &str) -> std::result::Result<AttributePair, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok(AttributePair {
            name: name.trim().to_owned(),
            value: value.to_owned(),
        }),
        Some(_) => Err("the name before = is missing: NAME=VALUE is expected".to_owned()),
        None => Err(format!("there is no value: NAME=VALUE is expected, such as {text}=1")),
    }
}

/// Returns the attributes in the form of an offer or a key.
pub(crate) fn given(pairs: &[AttributePair]) -> impl Iterator<Item = (&str, Given<'_>)> {
    pairs.iter().map(|pair| (pair.name.as_str(), Given::Text(&pair.value)))
}

/// Returns one selector of all arguments, which must all match. A MARS request, with dates relative to today, becomes a selector here.
/// Prints probable mistakes: matching objects of an open schema may still be offered.
///
/// # Errors
/// `InvalidSelector` for a request that none of the pool's schemas can read.
pub(crate) fn selector(arguments: &[String], pool: &Pool) -> Result<String> {
    let selector = selector_for(arguments, || pool.schemas())?;
    let others = || others_of(pool);
    note_slips(&selector, &pool.schemas()?, |exists| is_in_pool(pool, exists), others);
    Ok(selector)
}

/// As [`selector`], for a command about existing objects.
///
/// # Errors
/// `InvalidSelector` also for a probable mistake.
pub(crate) fn selector_of_present(arguments: &[String], pool: &Pool) -> Result<String> {
    let selector = selector_for(arguments, || pool.schemas())?;
    let others = || others_of(pool);
    refuse_slips(&selector, &pool.schemas()?, |exists| is_in_pool(pool, exists), others)?;
    Ok(selector)
}

/// Whether the pool, or the store behind it, has an object that matches.
fn is_in_pool(pool: &Pool, selector: &str) -> Result<bool> {
    let first = ListOptions {
        limit: Some(1),
        ..ListOptions::default()
    };
    let mut pages = pool.list_with(selector, first)?;
    Ok(pages.next_page()?.is_some_and(|page| !page.is_empty()))
}

/// Attributes that objects of the pool have and no schema declares.
fn others_of(pool: &Pool) -> Vec<String> {
    pool.reasons().undeclared_attributes().unwrap_or_default()
}

/// Prints the probable mistakes of a selector.
pub(crate) fn note_slips(
    selector: &str,
    schemas: &[Arc<Schema>],
    exists: impl Fn(&str) -> Result<bool>,
    others: impl Fn() -> Vec<String>,
) {
    for slip in slips::of(selector, schemas, &SelectorContext { today: today() }, exists, others) {
        say!("junctura: {}", slip.cause());
    }
}

/// # Errors
/// `InvalidSelector` for the first probable mistake.
pub(crate) fn refuse_slips(
    selector: &str,
    schemas: &[Arc<Schema>],
    exists: impl Fn(&str) -> Result<bool>,
    others: impl Fn() -> Vec<String>,
) -> Result<()> {
    let context = SelectorContext { today: today() };
    let found = slips::of(selector, schemas, &context, exists, others);
    found.into_iter().next().map_or(Ok(()), Err)
}

/// As [`note_slips`], for attributes that resemble no other one, after a search without a result.
pub(crate) fn note_unknown(
    selector: &str,
    schemas: &[Arc<Schema>],
    exists: impl Fn(&str) -> Result<bool>,
    others: impl Fn() -> Vec<String>,
) {
    let unknown = undeclared(selector, schemas);
    let others = if unknown.is_empty() { Vec::new() } else { others() };
    for name in unknown {
        let is_near = schemas.iter().any(|schema| schema.nearest_name(&name).is_some())
            || nearest(others.iter().map(String::as_str), &name).is_some();
        if !is_near && matches!(exists(&format!("exists({name})")), Ok(false)) {
            say!("junctura: no object has the attribute {name:?}, and no schema declares it");
        }
    }
}

/// As [`note_unknown`], for a pool.
pub(crate) fn note_unknown_in(pool: &Pool, selector: &str) -> Result<()> {
    let others = || others_of(pool);
    note_unknown(selector, &pool.schemas()?, |exists| is_in_pool(pool, exists), others);
    Ok(())
}

/// The end of an error about a selector that matches nothing: which condition has no match, and `advice`.
pub(crate) fn why_nothing(pool: &Pool, selector: &str, advice: &str) -> String {
    // An error of the search itself would hide the one that is reported.
    match junctura::binding::why_nothing_matches(pool, selector) {
        Ok(Some(why)) => format!("{why}; {advice}"),
        Ok(None) | Err(_) => advice.to_owned(),
    }
}

/// Returns the attributes of a selector that no schema declares; none if it cannot be parsed, which its use reports.
fn undeclared(selector: &str, schemas: &[Arc<Schema>]) -> Vec<String> {
    slips::undeclared(selector, schemas, &SelectorContext { today: today() })
}

/// The same for these schemas.
///
/// # Errors
/// `InvalidSelector` for a request that none of the schemas can read.
pub(crate) fn selector_for(arguments: &[String], schemas: impl FnOnce() -> Result<Vec<Arc<Schema>>>) -> Result<String> {
    if let Some(url) = arguments
        .iter()
        .find(|text| text.starts_with("unix:") || text.starts_with("tcp:"))
    {
        let cause = format!("this is an address, where a selector is expected; --pool {url} names the pool");
        return Err(Error::new(Code::InvalidArgument, url, cause));
    }
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

/// As [`pictured`], for errors about a selector.
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
        assert_eq!(
            pair("=x").unwrap_err(),
            "the name before = is missing: NAME=VALUE is expected"
        );
        assert_eq!(
            pair("x").unwrap_err(),
            "there is no value: NAME=VALUE is expected, such as x=1"
        );
    }
}
