//! Probable mistakes in a selector that is valid: attributes and values that no object has.

use std::cell::LazyCell;
use std::sync::Arc;

use super::{SelectorContext, SelectorSet, explain_error};
use crate::error::{Code, Error, Result};
use crate::record::check_allowed;
use crate::schema::{Attribute, Schema};
use crate::slip::nearest;
use crate::text::quote;
use crate::value::{Type, without_rounding_error};

/// Returns the probable mistakes of a selector. Objects of an open schema may have any attributes with any text, so a misspelled
/// selector is valid and matches nothing.
///
/// - Each attribute that no schema declares and no object has, but that resembles a declared one, or one of `others`: attributes
///   that objects have and no schema declares. `others` is called at most once, if an attribute resembles no declared one.
/// - A value that no schema allows which declares its attribute, and that no object has.
/// - A decimal with the rounding error of a float, such as `0.30000000000000004`, that no object has.
/// - A value that the schema cannot read which declares all attributes of the selector, where no object of an open schema has them.
#[must_use]
pub fn of(
    selector: &str,
    schemas: &[Arc<Schema>],
    context: &SelectorContext,
    exists: impl Fn(&str) -> Result<bool>,
    others: impl Fn() -> Vec<String>,
) -> Vec<Error> {
    let mut slips = misspelled(selector, schemas, context, &exists, others);
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
    slips.extend(disallowed(selector, schemas, context, &exists));
    slips.extend(misread(selector, schemas, context, exists));
    slips
}

/// Returns the attributes that no object has, and that resemble one of a schema or of an object.
fn misspelled(
    selector: &str,
    schemas: &[Arc<Schema>],
    context: &SelectorContext,
    exists: impl Fn(&str) -> Result<bool>,
    others: impl Fn() -> Vec<String>,
) -> Vec<Error> {
    let others = LazyCell::new(others);
    let meant = |name: &String| {
        let declared = |schema: &Arc<Schema>| {
            let near = schema.nearest_name(name)?;
            Some(format!("{near} (schema {})", schema.name()))
        };
        let declared = schemas.iter().find_map(declared);
        if !matches!(exists(&format!("exists({name})")), Ok(false)) {
            return None;
        }
        let near = declared.or_else(|| nearest(others.iter().map(String::as_str), name).map(str::to_owned))?;
        let cause = format!("no object has the attribute {name:?}; did you mean {near}?");
        Some(Error::new(Code::InvalidSelector, "selector", cause))
    };
    let names = undeclared(selector, schemas, context);
    names.iter().filter_map(meant).collect()
}

/// Returns the values that no schema allows which declares their attribute, and that no object has.
fn disallowed(
    selector: &str,
    schemas: &[Arc<Schema>],
    context: &SelectorContext,
    exists: impl Fn(&str) -> Result<bool>,
) -> Vec<Error> {
    let Ok(set) = SelectorSet::parse_with(selector, schemas, context) else {
        return Vec::new();
    };
    let found = set.disallowed(schemas).into_iter();
    let is_absent = |(attribute, value): &(&Attribute, &str)| {
        let mut condition = format!("{}=", attribute.name);
        quote(value, &mut condition);
        matches!(exists(&condition), Ok(false))
    };
    let errors = found.filter(is_absent).filter_map(|(attribute, value)| {
        check_allowed(attribute, value)
            .err()
            .or_else(|| rounding_error(attribute, value))
    });
    errors
        .map(|error| {
            Error::new(
                Code::InvalidSelector,
                "selector",
                format!("{}: {}", error.subject(), error.cause()),
            )
        })
        .collect()
}

/// Returns an error if a decimal is the text of a float with a rounding error, such as `0.30000000000000004`.
pub(super) fn rounding_error(attribute: &Attribute, value: &str) -> Option<Error> {
    let meant = Some(value)
        .filter(|_| attribute.kind.scalar == Type::Decimal)
        .and_then(without_rounding_error)?;
    let cause = format!("{value} has the rounding error of a float; did you mean {meant}?");
    Some(Error::new(Code::TypeMismatch, &attribute.name, cause))
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
fn misread(
    selector: &str,
    schemas: &[Arc<Schema>],
    context: &SelectorContext,
    exists: impl Fn(&str) -> Result<bool>,
) -> Option<Error> {
    let names = undeclared_by(selector, schemas, &[], context);
    if names.is_empty() {
        return None;
    }
    let mut unreadable = None;
    for schema in schemas.iter().filter(|schema| !schema.is_open()) {
        match SelectorSet::parse_with(selector, std::slice::from_ref(schema), context) {
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

/// Returns the attributes of a selector that no schema declares; none if it cannot be parsed, which its use reports.
#[must_use]
pub fn undeclared(selector: &str, schemas: &[Arc<Schema>], context: &SelectorContext) -> Vec<String> {
    undeclared_by(selector, schemas, schemas, context)
}

/// Returns the attributes of a selector for objects of open schemas, without those that `declaring` declare.
fn undeclared_by(
    selector: &str,
    schemas: &[Arc<Schema>],
    declaring: &[Arc<Schema>],
    context: &SelectorContext,
) -> Vec<String> {
    let Ok(set) = SelectorSet::parse_with(selector, schemas, context) else {
        return Vec::new();
    };
    set.undeclared(declaring).into_iter().map(str::to_owned).collect()
}

/// Returns an error about a text, with a picture of the position.
#[must_use]
pub fn pictured(error: &Error, text: &str) -> Error {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_a_parameter_has_an_identifier() {
        assert_eq!(parameter_number("class=od,param=167"), Some(("167", 167)));
        assert_eq!(parameter_number("param=167.128"), Some(("167.128", 167)));
        assert_eq!(parameter_number("param=151.200,step=6"), Some(("151.200", 200_151)));
        assert_eq!(parameter_number("param=2t"), None);
        assert_eq!(parameter_number("paramId=167"), None);
    }

    #[test]
    fn a_rounding_error_of_a_float_is_reported() {
        let mars = Schema::builtin("mars").unwrap();
        let causes = |selector: &str, there: &str| -> Vec<String> {
            let context = SelectorContext::default();
            let found = of(
                selector,
                std::slice::from_ref(&mars),
                &context,
                |asked| Ok(asked == there),
                Vec::new,
            );
            found.iter().map(|slip| slip.cause().to_owned()).collect()
        };
        let error = "levelist: 0.30000000000000004 has the rounding error of a float; did you mean 0.3?";
        assert_eq!(causes("levelist=0.30000000000000004", ""), [error]);
        assert_eq!(causes("param=t,levelist=0.30000000000000004/0.4", ""), [error]);
        assert!(causes("levelist=0.30000000000000004", "levelist=0.30000000000000004").is_empty());
        for exact in [
            "0.3",
            "0.123456789012345678",
            "123456789012345678",
            "0.3333333333333333",
        ] {
            assert!(causes(&format!("levelist={exact}"), "").is_empty(), "{exact}");
        }
    }

    #[test]
    fn an_attribute_that_only_objects_have_is_suggested() {
        let free = Schema::builtin("free").unwrap();
        let causes = |selector: &str, others: &[&str]| -> Vec<String> {
            let others = || others.iter().map(|&name| name.to_owned()).collect();
            let found = of(
                selector,
                std::slice::from_ref(&free),
                &SelectorContext::default(),
                |asked| Ok(asked == "exists(level)"),
                others,
            );
            found.iter().map(|slip| slip.cause().to_owned()).collect()
        };
        assert_eq!(
            causes("stpe=6,name=a", &["step", "level"]),
            ["no object has the attribute \"stpe\"; did you mean step?"]
        );
        assert_eq!(causes("nme=a", &["nmes"]).len(), 1, "a declared one comes first");
        assert_eq!(causes("stpe=6", &["run"]), [""; 0]);
        assert_eq!(causes("level=1,run=6", &["levels", "step"]), [""; 0]);
    }

    #[test]
    fn a_value_that_no_declaring_schema_allows_is_a_mistake() {
        let schema = |name: &str, values: &str| {
            let text = format!(
                "{{name: {name}, key: {{dataset: [variable], collocation: [], element: [step]}}, \
                 attributes: {{variable: {{type: string, values: [{values}]}}, step: {{type: integer, range: [0, 100]}}}}}}"
            );
            Arc::new(Schema::parse_yaml(&text).unwrap())
        };
        let free = Schema::builtin("free").unwrap();
        let schemas = [schema("cfd", "p, u, v"), free, schema("other", "p, q")];
        let causes = |selector: &str, is_there: bool| -> Vec<String> {
            let slips = of(
                selector,
                &schemas,
                &SelectorContext::default(),
                |_| Ok(is_there),
                Vec::new,
            );
            slips.iter().map(|slip| slip.cause().to_owned()).collect()
        };
        assert_eq!(
            causes("variable=P", false),
            ["variable: \"P\" is not allowed (the schema allows p, u, v); did you mean p?"]
        );
        assert_eq!(causes("variable=u/x,step=101", false).len(), 2);
        for right in [
            "variable=p",
            "variable=q",
            "variable=u/q",
            "not variable=P",
            "step=100",
            "variable~P",
        ] {
            assert_eq!(causes(right, false), [""; 0], "{right}");
        }
        assert_eq!(
            causes("variable=P", true),
            [""; 0],
            "an object of another schema has it"
        );
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
