//! Attributes of a command line, and selectors made of several arguments.

use std::sync::Arc;

use junctura::{Code, Error, Given, ListOptions, Pool, Result, Schema};
use junctura_model::mars;
use junctura_model::selector::{SelectorContext, SelectorSet, explain_error};

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
        _ => Err("NAME=VALUE is expected".to_owned()),
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
    note_slips(&selector, &pool.schemas()?, |exists| is_in_pool(pool, exists));
    Ok(selector)
}

/// As [`selector`], for a command about existing objects.
///
/// # Errors
/// `InvalidSelector` also for a probable mistake.
pub(crate) fn selector_of_present(arguments: &[String], pool: &Pool) -> Result<String> {
    let selector = selector_for(arguments, || pool.schemas())?;
    refuse_slips(&selector, &pool.schemas()?, |exists| is_in_pool(pool, exists))?;
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

/// Prints the probable mistakes of a selector.
pub(crate) fn note_slips(selector: &str, schemas: &[Arc<Schema>], exists: impl Fn(&str) -> Result<bool>) {
    for slip in slips(selector, schemas, exists) {
        say!("junctura: {}", slip.cause());
    }
}

/// # Errors
/// `InvalidSelector` for the first probable mistake.
pub(crate) fn refuse_slips(
    selector: &str,
    schemas: &[Arc<Schema>],
    exists: impl Fn(&str) -> Result<bool>,
) -> Result<()> {
    slips(selector, schemas, exists).into_iter().next().map_or(Ok(()), Err)
}

/// Returns the probable mistakes of a selector. Objects of an open schema may have any attributes with any text, so a misspelled
/// selector is valid and matches nothing.
///
/// - Each attribute that no schema declares and no object has, but that resembles a declared one.
/// - A value that the schema cannot read which declares all attributes of the selector, where no object of an open schema has them.
fn slips(selector: &str, schemas: &[Arc<Schema>], exists: impl Fn(&str) -> Result<bool>) -> Vec<Error> {
    let mut slips = Vec::new();
    for name in undeclared(selector, schemas) {
        let near = schemas
            .iter()
            .find_map(|schema| Some((schema.nearest_name(&name)?, schema.name())));
        if let Some((near, schema)) = near
            && matches!(exists(&format!("exists({name})")), Ok(false))
        {
            let cause = format!("no object has the attribute {name:?}; did you mean {near} (schema {schema})?");
            slips.push(Error::new(Code::InvalidSelector, "selector", cause));
        }
    }
    // In the schema of an FDB, parameters are numbers.
    let has_numbers = |schema: &Arc<Schema>| schema.find("param").is_some() && schema.find("paramId").is_none();
    if schemas.iter().any(|schema| schema.find("paramId").is_some())
        && !schemas.iter().any(has_numbers)
        && let Some((number, id)) = parameter_number(selector)
        && matches!(exists(&format!("param={number}")), Ok(false))
    {
        let cause =
            format!("no object has param={number}; parameters have short names there: did you mean `paramId={id}`?");
        slips.push(Error::new(Code::InvalidSelector, "selector", cause));
    }
    slips.extend(misread(selector, schemas, exists));
    slips
}

/// Returns the number with which a selector compares `param`, as MARS accepts it (`167`, `167.128`), and the value of `paramId`.
fn parameter_number(selector: &str) -> Option<(&str, u32)> {
    let mut parts = selector.split([',', ' ', '(', ')']);
    let number = parts.find_map(|part| part.strip_prefix("param="))?;
    let (parameter, table) = number.split_once('.').unwrap_or((number, "128"));
    let (parameter, table): (u32, u32) = (parameter.parse().ok()?, table.parse().ok()?);
    // Table 128 is that of ECMWF; the numbers of other tables begin with the table.
    Some((
        number,
        if table == 128 {
            parameter
        } else {
            table.checked_mul(1000)? + parameter
        },
    ))
}

/// Returns the error of the schema that declares all attributes of a selector but cannot read it, if only objects of open schemas could
/// match and none has these attributes.
fn misread(selector: &str, schemas: &[Arc<Schema>], exists: impl Fn(&str) -> Result<bool>) -> Option<Error> {
    let names = undeclared_by(selector, schemas, &[]);
    if names.is_empty() {
        return None;
    }
    let context = SelectorContext { today: today() };
    let mut unreadable = None;
    for schema in schemas.iter().filter(|schema| !schema.is_open()) {
        match SelectorSet::parse_with(selector, std::slice::from_ref(schema), &context) {
            Ok(_) => return None,
            Err(error) if names.iter().all(|name| schema.find(name).is_some()) => {
                unreadable.get_or_insert((schema, error));
            }
            Err(_) => {}
        }
    }
    let (schema, error) = unreadable?;
    // Each object of this schema has the attribute; objects of open schemas have not.
    let own = schema.attributes().iter().find(|attribute| !attribute.optional)?;
    let is_absent = |name: &String| {
        matches!(
            exists(&format!("exists({name}) and not exists({})", own.name)),
            Ok(false)
        )
    };
    if !names.iter().all(is_absent) {
        return None;
    }
    let pictured = pictured(&error, selector);
    let cause = format!("schema {}: {}", schema.name(), pictured.cause());
    Some(Error::new(Code::InvalidSelector, pictured.subject(), cause))
}

/// As [`note_slips`], for attributes that resemble no declared one, after a search without a result.
pub(crate) fn note_unknown(selector: &str, schemas: &[Arc<Schema>], exists: impl Fn(&str) -> Result<bool>) {
    for name in undeclared(selector, schemas) {
        let is_near = schemas.iter().any(|schema| schema.nearest_name(&name).is_some());
        if !is_near && matches!(exists(&format!("exists({name})")), Ok(false)) {
            say!("junctura: no object has the attribute {name:?}, and no schema declares it");
        }
    }
}

/// As [`note_unknown`], for a pool.
pub(crate) fn note_unknown_in(pool: &Pool, selector: &str) -> Result<()> {
    note_unknown(selector, &pool.schemas()?, |exists| is_in_pool(pool, exists));
    Ok(())
}

/// Returns the attributes of a selector that no schema declares; none if it cannot be parsed, which its use reports.
fn undeclared(selector: &str, schemas: &[Arc<Schema>]) -> Vec<String> {
    undeclared_by(selector, schemas, schemas)
}

/// Returns the attributes of a selector for objects of open schemas, without those that `declaring` declare.
fn undeclared_by(selector: &str, schemas: &[Arc<Schema>], declaring: &[Arc<Schema>]) -> Vec<String> {
    let context = SelectorContext { today: today() };
    let Ok(set) = SelectorSet::parse_with(selector, schemas, &context) else {
        return Vec::new();
    };
    set.undeclared(declaring).into_iter().map(str::to_owned).collect()
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

/// Returns an error about a text, with a picture of the position.
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
        assert!(pair("=x").is_err());
        assert!(pair("x").is_err());
    }

    #[test]
    fn a_number_of_a_parameter_has_an_identifier() {
        assert_eq!(parameter_number("class=od,param=167"), Some(("167", 167)));
        assert_eq!(parameter_number("param=167.128"), Some(("167.128", 167)));
        assert_eq!(parameter_number("param=151.200,step=6"), Some(("151.200", 200_151)));
        assert_eq!(parameter_number("param=2t"), None);
        assert_eq!(parameter_number("paramId=167"), None);
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
