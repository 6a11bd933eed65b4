//! Gives a syntax tree its meaning under one schema: names, types, canonical values, bounds, patterns.

use std::sync::Arc;

use super::Context;
use super::expr::{Attr, Bound, Check, Comparison, Expr, Test, stored_form};
use super::items::Items;
use super::lexer::{Token, invalid};
use super::parser::{Ask, Item, Syntax};
use super::patterns::Patterns;
use super::range::{Range, date_text, stride};
use super::widen::{narrow, widen};
use crate::error::Result;
use crate::limits::VALUE_BYTES_MAX;
use crate::schema::{AttrId, Schema, is_name};
use crate::value::{Given, Type};

/// Reads `syntax` by `schema`; the regular expressions of the selector are compiled once for all schemas.
pub(crate) fn type_by(
    syntax: &Syntax<'_>,
    schema: &Schema,
    context: &Context,
    patterns: &mut Patterns,
) -> Result<Expr> {
    let mut typer = Typer {
        schema,
        context,
        patterns,
    };
    typer.expr(syntax)
}

struct Typer<'a> {
    schema: &'a Schema,
    context: &'a Context,
    patterns: &'a mut Patterns,
}

impl Typer<'_> {
    fn expr(&mut self, syntax: &Syntax<'_>) -> Result<Expr> {
        Ok(match syntax {
            Syntax::Everything => Expr::Everything,
            Syntax::All(parts) => Expr::all(narrow(self.schema, self.exprs(parts)?)),
            Syntax::Any(parts) => Expr::any(self.exprs(parts)?),
            Syntax::Not(inner) => Expr::Not(Box::new(self.expr(inner)?)),
            Syntax::Test { name, ask } => {
                let attr = self.attr(name)?;
                let check = self.check(&attr, ask)?;
                widen(self.schema, Test { attr, check })
            }
        })
    }

    fn exprs(&mut self, parts: &[Syntax<'_>]) -> Result<Vec<Expr>> {
        parts.iter().map(|part| self.expr(part)).collect()
    }

    fn attr(&self, name: &Item<'_>) -> Result<Attr> {
        if let Some(id) = self.schema.find(&name.text) {
            return Ok(attr_of(self.schema, id));
        }
        if self.schema.is_open() && is_name(&name.text) {
            let name = Arc::from(&*name.text);
            return Ok(Attr {
                id: AttrId::OPEN,
                name,
                scalar: Type::String,
                list: false,
            });
        }
        if self.schema.is_open() {
            return Err(invalid(
                name.at,
                format!("{:?} cannot be the name of an attribute", name.text),
            ));
        }
        let near = self
            .schema
            .nearest_name(&name.text)
            .map(|near| format!("; perhaps {near}"))
            .unwrap_or_default();
        let cause = format!("{:?} is no attribute of schema {}{near}", name.text, self.schema.name());
        Err(invalid(name.at, cause))
    }

    fn check(&mut self, attr: &Attr, ask: &Ask<'_>) -> Result<Check> {
        Ok(match ask {
            Ask::Exists => Check::Exists,
            Ask::Among { negated, items } => {
                let mut texts = Vec::with_capacity(items.len());
                for item in items {
                    let mut stored = String::new();
                    stored_form(&self.canonical(attr, item)?, attr.list, &mut stored);
                    texts.push(stored);
                }
                Check::Among {
                    negated: *negated,
                    items: Items::new(&texts),
                }
            }
            Ask::Range {
                negated,
                first,
                last,
                by,
            } => Check::Range {
                negated: *negated,
                range: Box::new(self.range(attr, first, last, by.as_ref())?),
            },
            Ask::Compare { op, op_at, bound } => self.compare(attr, *op, *op_at, bound)?,
            Ask::Like(item) => Check::Like(self.patterns.compile(item)?),
        })
    }

    /// The canonical text of a value; allowed values and ranges of the schema do not restrict a question.
    fn canonical(&self, attr: &Attr, item: &Item<'_>) -> Result<String> {
        let problem = |why: String| invalid(item.at, format!("{}: {why}", attr.name));
        if attr.scalar == Type::Date
            && let Some(days_back) = relative(&item.text)
        {
            return match self.context.day_before(days_back) {
                Some(date) => Ok(date),
                None if self.context.today.is_none() => Err(problem(format!(
                    "{:?} is a date only where today's is known: in a request, or where it was handed in",
                    item.text
                ))),
                None => Err(problem(format!("{:?} is too far away", item.text))),
            };
        }
        if item.text.len() > VALUE_BYTES_MAX {
            return Err(problem(format!("a value has at most {VALUE_BYTES_MAX} bytes")));
        }
        let mut text = String::new();
        attr.scalar
            .canonical(Given::Text(&item.text), &mut text)
            .map_err(problem)?;
        Ok(text)
    }

    fn compare(&self, attr: &Attr, op: Token, op_at: usize, bound: &Item<'_>) -> Result<Check> {
        let op = match op {
            Token::Less => Comparison::Less,
            Token::AtMost => Comparison::AtMost,
            Token::Greater => Comparison::Greater,
            _ => Comparison::AtLeast,
        };
        if !attr.scalar.is_ordered() {
            let cause = format!(
                "{}: `{}` makes no sense for a {}; use `=` `!=` `~`",
                attr.name,
                op.sign(),
                attr.scalar
            );
            return Err(invalid(op_at, cause));
        }
        let (text, number) = self.bound(attr, bound)?;
        Ok(Check::Compare(Box::new(Bound { op, text, number })))
    }

    /// A value as the end of something.
    fn bound(&self, attr: &Attr, item: &Item<'_>) -> Result<(Box<str>, i128)> {
        let text = self.canonical(attr, item)?;
        let number = attr.scalar.order(&text).ok_or_else(|| {
            invalid(
                item.at,
                format!("{}: {text} is itself a range and cannot be a bound", attr.name),
            )
        })?;
        Ok((text.into(), number))
    }

    fn range(&self, attr: &Attr, first: &Item<'_>, last: &Item<'_>, by: Option<&Item<'_>>) -> Result<Range> {
        if !attr.scalar.is_ordered() {
            let cause = format!("{}: a {} has no ranges; write a list", attr.name, attr.scalar);
            return Err(invalid(first.at, cause));
        }
        let (first, start) = self.bound(attr, first)?;
        let (last_text, end) = self.bound(attr, last)?;
        let at = by.map_or(last.at, |by| by.at);
        let (stride, by) =
            stride(attr.scalar, by.map(|by| &*by.text)).map_err(|why| invalid(at, format!("{}: {why}", attr.name)))?;
        Ok(Range {
            first,
            last: last_text,
            by: by.map(Into::into),
            start,
            end,
            stride,
        })
    }
}

/// A declared attribute, ready for tests.
pub(crate) fn attr_of(schema: &Schema, id: AttrId) -> Attr {
    let attribute = schema.attribute(id);
    Attr {
        id,
        name: Arc::from(&*attribute.name),
        scalar: attribute.kind.scalar,
        list: attribute.kind.list,
    }
}

/// `0`, `-1`, `-2`, …: how many days before today.
fn relative(text: &str) -> Option<u32> {
    if text == "0" {
        return Some(0);
    }
    let digits = text
        .strip_prefix('-')
        .filter(|digits| (1..=6).contains(&digits.len()))?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

impl Context {
    fn day_before(&self, days_back: u32) -> Option<String> {
        let today = Type::Date.order(&format!("{:08}", self.today?))?;
        let text = date_text(i64::try_from(today).ok()? - i64::from(days_back));
        Type::Date.is_canonical(&text).then_some(text)
    }
}
