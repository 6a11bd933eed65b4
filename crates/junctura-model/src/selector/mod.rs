//! Selectors: queries over attributes, in one language for live events, objects in memory, and the archive.
//!
//! An example is `class=od,param=t/u/v,step=0/to/240/by/6,levelist>=500`. A text is parsed by the grammar of
//! `docs/formats/selector.md`, then typed by a schema: `levelist=500.0` matches `500`. The error for an invalid
//! selector has the byte offset and the expected input ([`explain_error`] prints both). A selector prints a canonical
//! text that parses to an equal selector. Parsing, printing and matching are bounded: long texts, deep nesting and long
//! lists fail with `LimitExceeded`, regular expressions are limited in number and size and take linear time, and no
//! input causes a panic.
//!
//! The parts: `lexer` and `parser` (text to syntax), `typed` (syntax to semantics, under one schema), `expr` (the
//! semantics, and matching of a record), `range`, `items` and `patterns` (its values), `print`.

use std::fmt;
use std::sync::Arc;

pub(crate) mod expr;
mod items;
pub(crate) mod lexer;
pub(crate) mod parser;
mod patterns;
mod print;
mod question;
pub(crate) mod range;
mod set;
pub mod slips;
#[doc(hidden)]
pub mod testing;
mod typed;
mod widen;

pub use lexer::TEXT_BYTES_MAX;
pub use parser::{DEPTH_MAX, ITEMS_MAX};
pub use patterns::is_costly;
pub use question::{AttributeQuestion, SelectorQuestion};
pub use set::SelectorSet;

use crate::error::{Code, Error, Result};
use crate::mars;
use crate::record::RecordRef;
use crate::schema::{AttrId, Schema};
use crate::text::quote;
use expr::{AttributeTest, SelectorExpr, TestCheck};
use items::ItemList;
use patterns::PatternCache;
use print::PrintedExpr;

/// A key begins like this, and a selector never does.
fn is_key(text: &str) -> bool {
    text.starts_with('{')
}

/// The context in which a selector is parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectorContext {
    /// Today's date as the number `YYYYMMDD`, for relative dates (`-1` = yesterday). `None`: relative dates are
    /// rejected.
    pub today: Option<u32>,
}

/// A query over the attributes of one schema.
///
/// Cheap to clone. Its `Display` is the canonical text.
#[derive(Clone, PartialEq)]
pub struct Selector {
    expr: Arc<SelectorExpr>,
}

impl Selector {
    /// Parses a selector, a MARS request, or a key as objects print it, with attributes of this schema.
    ///
    /// # Errors
    /// `InvalidSelector` with the byte offset; `LimitExceeded` if it is too long, too deep or too large.
    pub fn parse(text: &str, schema: &Schema) -> Result<Selector> {
        Self::parse_with(text, schema, &SelectorContext::default())
    }

    /// As [`Self::parse`], with a context.
    pub fn parse_with(text: &str, schema: &Schema, context: &SelectorContext) -> Result<Selector> {
        if is_key(text) {
            return Self::parse_key(text, schema);
        }
        let syntax = if mars::is_request(text) {
            mars::parse(text, schema)?
        } else {
            parser::parse(text)?
        };
        let mut patterns = PatternCache::default();
        Ok(Self::of(typed::type_by(&syntax, schema, context, &mut patterns)?))
    }

    fn parse_key(text: &str, schema: &Schema) -> Result<Selector> {
        let record = schema.parse_key(text.trim_end()).map_err(|error| {
            let invalid = Error::new(Code::InvalidSelector, error.subject(), error.cause());
            match error.position() {
                _ if error.code() == Code::LimitExceeded => error,
                Some(at) => invalid.at(at),
                None => invalid,
            }
        })?;
        Ok(Self::exact_key(record.as_ref(), schema))
    }

    /// Matches every object.
    #[must_use]
    pub fn everything() -> Selector {
        Self::of(SelectorExpr::Everything)
    }

    /// Returns whether it matches every object.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self.expr == SelectorExpr::Everything
    }

    /// Matches the objects with the key of this record: every key attribute is equal, or absent in both.
    #[must_use]
    pub fn exact_key(record: RecordRef<'_>, schema: &Schema) -> Selector {
        let ids = (0..schema.key_len()).map(|id| AttrId(id as u8));
        let tests = ids.map(|id| {
            let attr = typed::attr_of(schema, id);
            match record.get(id) {
                Some(text) => {
                    let check = TestCheck::Among {
                        negated: false,
                        items: ItemList::new(&[text]),
                    };
                    SelectorExpr::Test(AttributeTest { attr, check })
                }
                None => SelectorExpr::Not(Box::new(SelectorExpr::Test(AttributeTest {
                    attr,
                    check: TestCheck::Exists,
                }))),
            }
        });
        Self::of(SelectorExpr::all(tests.collect()))
    }

    /// Returns whether an object matches. The record must belong to the selector's schema. Allocates nothing, except to
    /// match a regular expression with a list's elements.
    #[must_use]
    pub fn matches(&self, record: RecordRef<'_>) -> bool {
        self.expr.matches(record)
    }

    /// Returns its text with ranges expanded, for display; the text may not parse.
    #[must_use]
    pub fn explain(&self) -> String {
        PrintedExpr {
            expr: &self.expr,
            expanded: true,
        }
        .to_string()
    }

    /// Returns the approximate memory in bytes that it takes in an index.
    fn standing_bytes(&self) -> usize {
        /// The fixed part of this amount.
        const SELECTOR_BYTES: usize = 128;
        SELECTOR_BYTES + self.expr.standing_bytes()
    }

    /// Returns the name of an attribute in it whose ID is not below `end`.
    pub(crate) fn asks_beyond(&self, end: usize) -> Option<&str> {
        self.expr.attribute_beyond(end)
    }

    pub(crate) fn expr(&self) -> &SelectorExpr {
        &self.expr
    }

    fn of(expr: SelectorExpr) -> Selector {
        Selector { expr: Arc::new(expr) }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        PrintedExpr {
            expr: &self.expr,
            expanded: false,
        }
        .fmt(f)
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({self})")
    }
}

/// Returns the error with a picture of its position in `text`:
///
/// ```text
/// InvalidSelector: selector: expected a value, found the end (at byte 6)
///   class=
///         ^
/// ```
#[must_use]
pub fn explain_error(text: &str, error: &Error) -> String {
    const BEFORE: usize = 50;
    const AFTER: usize = 26;
    let Some(at) = error
        .position()
        .filter(|&at| at <= text.len() && text.is_char_boundary(at))
    else {
        return error.to_string();
    };
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let before: Vec<char> = text[line_start..at].chars().collect();
    let after: Vec<char> = text[at..line_end].chars().collect();
    let clean = |c: &char| if c.is_control() { ' ' } else { *c };
    let mut picture = format!("{error}\n  ");
    let cut = before.len().saturating_sub(BEFORE);
    picture.extend((cut > 0).then_some('…'));
    picture.extend(before[cut..].iter().map(clean));
    picture.extend(after.iter().take(AFTER).map(clean));
    picture.extend((after.len() > AFTER).then_some('…'));
    let indent = 2 + before.len() - cut + usize::from(cut > 0);
    picture.push('\n');
    picture.push_str(&" ".repeat(indent));
    picture.push('^');
    picture
}

/// Returns a value as in a selector, quoted if necessary.
#[must_use]
pub fn quoted(value: &str) -> String {
    let mut out = String::new();
    quote(value, &mut out);
    out
}
