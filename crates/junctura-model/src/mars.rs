//! Parses MARS requests as selectors: `retrieve,class=od,param=t/u,step=0/to/24/by/6,date=-1`.
//!
//! A request is a verb (`retrieve`, `list` or `read`) and keywords, all of which must match. Names, aliases and values
//! are case-insensitive: an unquoted value becomes the allowed value that it equals except for case, else lower case.
//! `all` requires presence, `off` requires absence. Dates may be relative to today, which the caller passes: this crate
//! has no clock. Keywords that are no attributes (`target`, `grid`, `area`, …) are rejected, because ignoring them
//! would return other data than requested.

use std::borrow::Cow;

use crate::error::Result;
use crate::schema::{Attribute, Schema};
use crate::selector::lexer::{SelectorToken, invalid, lex};
use crate::selector::parser::{SelectorParser, SelectorSyntax, SyntaxItem, SyntaxTest};
use crate::selector::{Selector, SelectorContext};
use crate::value::Type;

/// The verbs that begin a request.
pub const VERBS: [&str; 3] = ["retrieve", "list", "read"];

/// Returns whether this text begins with a verb and a comma.
#[must_use]
pub fn is_request(text: &str) -> bool {
    let text = text.trim_start();
    let word = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (verb, rest) = text.split_at(word);
    rest.trim_start().starts_with(',') && VERBS.iter().any(|known| known.eq_ignore_ascii_case(verb))
}

/// The canonical selector that asks the same as the request; `today` as the number `YYYYMMDD`, for relative dates.
///
/// # Errors
/// `InvalidSelector` with the byte of the request that it is about.
pub fn to_selector_text(request: &str, schema: &Schema, today: Option<u32>) -> Result<String> {
    if !is_request(request) {
        return Err(invalid(
            0,
            format!("a request begins with one of {} and a comma", VERBS.join(", ")),
        ));
    }
    Selector::parse_with(request, schema, &SelectorContext { today }).map(|selector| selector.to_string())
}

/// The request as the syntax of a selector.
pub(crate) fn parse<'a>(request: &'a str, schema: &Schema) -> Result<SelectorSyntax<'a>> {
    let mut parser = SelectorParser::new(lex(request)?);
    parser.take(&[SelectorToken::Word], "a verb")?;
    let mut parts = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    while parser.peek() != SelectorToken::End {
        parser.take(&[SelectorToken::Comma], "`,`, `/` or the end")?;
        let name = parser.take(&[SelectorToken::Word], "a keyword")?;
        let attribute = attribute(schema, &name);
        let known = attribute.map_or_else(|| name.text.to_string(), |attribute| attribute.name.clone());
        if let Some(attribute) = attribute {
            if seen.contains(&attribute.name.as_str()) {
                return Err(invalid(name.at, format!("{} is given twice", attribute.name)));
            }
            seen.push(&attribute.name);
        }
        parser.take(&[SelectorToken::Equal], "`=`")?;
        let name = SyntaxItem {
            text: Cow::Owned(known),
            at: name.at,
        };
        parts.push(part(name, parser.request_values()?, attribute));
    }
    Ok(if parts.is_empty() {
        SelectorSyntax::Everything
    } else {
        SelectorSyntax::All(parts)
    })
}

fn attribute<'s>(schema: &'s Schema, name: &SyntaxItem<'_>) -> Option<&'s Attribute> {
    let same = |known: &String| known.eq_ignore_ascii_case(&name.text);
    let attributes = schema.attributes();
    attributes
        .iter()
        .find(|a| same(&a.name))
        .or_else(|| attributes.iter().find(|a| a.aliases.iter().any(same)))
}

/// One keyword with its values.
fn part<'a>(
    name: SyntaxItem<'a>,
    (mut ask, quoted): (SyntaxTest<'a>, Vec<usize>),
    attribute: Option<&Attribute>,
) -> SelectorSyntax<'a> {
    if let SyntaxTest::Among { items, .. } = &ask
        && let [only] = items.as_slice()
        && quoted.binary_search(&only.at).is_err()
    {
        if only.text.eq_ignore_ascii_case("all") {
            return SelectorSyntax::Test {
                name,
                ask: SyntaxTest::Exists,
            };
        }
        if only.text.eq_ignore_ascii_case("off") {
            return SelectorSyntax::Not(Box::new(SelectorSyntax::Test {
                name,
                ask: SyntaxTest::Exists,
            }));
        }
    }
    let items: Vec<&mut SyntaxItem<'a>> = match &mut ask {
        SyntaxTest::Among { items, .. } => items.iter_mut().collect(),
        SyntaxTest::Range { first, last, by, .. } => [first, last].into_iter().chain(by).collect(),
        _ => Vec::new(),
    };
    for item in items {
        if quoted.binary_search(&item.at).is_err() {
            lower(item, attribute);
        }
    }
    SelectorSyntax::Test { name, ask }
}

/// Gives a value the case that the schema's values have.
fn lower(item: &mut SyntaxItem<'_>, attribute: Option<&Attribute>) {
    let scalar = attribute.map_or(Type::String, |attribute| attribute.kind.scalar);
    if !item.text.bytes().any(|byte| byte.is_ascii_uppercase()) || scalar == Type::Timestamp {
        return;
    }
    let mut allowed = attribute.into_iter().flat_map(|attribute| &attribute.values);
    let same = allowed.find(|allowed| allowed.eq_ignore_ascii_case(&item.text));
    item.text = Cow::Owned(same.cloned().unwrap_or_else(|| item.text.to_ascii_lowercase()));
}
