//! Gives a syntax tree its meaning under one schema: names, types, canonical values, bounds, patterns.

use std::sync::Arc;

use super::SelectorContext;
use super::expr::{AttributeTest, Comparison, PrintedBound, SelectorExpr, TestCheck, TestedAttribute, stored_form};
use super::items::ItemList;
use super::lexer::{SelectorToken, invalid};
use super::parser::{SelectorSyntax, SyntaxItem, SyntaxTest};
use super::patterns::PatternCache;
use super::range::{NumberRange, date_text, stride, whole_day};
use super::widen::{narrow, widen};
use crate::error::Result;
use crate::limits::{OPEN_RANGE_VALUES_MAX, VALUE_BYTES_MAX};
use crate::schema::{AttrId, Schema, is_name};
use crate::value::{Given, Type};

/// Reads `syntax` by `schema`; the regular expressions of the selector are compiled once for all schemas.
pub(crate) fn type_by(
    syntax: &SelectorSyntax<'_>,
    schema: &Schema,
    context: &SelectorContext,
    patterns: &mut PatternCache,
) -> Result<SelectorExpr> {
    let mut typer = SelectorTyper {
        schema,
        context,
        patterns,
    };
    typer.expr(syntax)
}

struct SelectorTyper<'a> {
    schema: &'a Schema,
    context: &'a SelectorContext,
    patterns: &'a mut PatternCache,
}

impl SelectorTyper<'_> {
    fn expr(&mut self, syntax: &SelectorSyntax<'_>) -> Result<SelectorExpr> {
        Ok(match syntax {
            SelectorSyntax::Everything => SelectorExpr::Everything,
            SelectorSyntax::All(parts) => SelectorExpr::all(narrow(self.schema, self.exprs(parts)?)),
            SelectorSyntax::Any(parts) => SelectorExpr::any(self.exprs(parts)?),
            SelectorSyntax::Not(inner) => SelectorExpr::Not(Box::new(self.expr(inner)?)),
            SelectorSyntax::Test { name, ask } => {
                let attr = self.attr(name)?;
                if let SyntaxTest::Among { negated, items } = ask
                    && attr.scalar == Type::Timestamp
                {
                    return self.moments(&attr, *negated, items);
                }
                let check = self.check(&attr, ask)?;
                widen(self.schema, AttributeTest { attr, check })
            }
        })
    }

    fn exprs(&mut self, parts: &[SelectorSyntax<'_>]) -> Result<Vec<SelectorExpr>> {
        parts.iter().map(|part| self.expr(part)).collect()
    }

    fn attr(&self, name: &SyntaxItem<'_>) -> Result<TestedAttribute> {
        if let Some(id) = self.schema.find(&name.text) {
            return Ok(attr_of(self.schema, id));
        }
        if self.schema.is_open() && is_name(&name.text) {
            let name = Arc::from(&*name.text);
            return Ok(TestedAttribute {
                id: AttrId::OPEN,
                name,
                scalar: Type::String,
                list: false,
            });
        }
        if self.schema.is_open() {
            return Err(invalid(
                name.at,
                format!("{:?} is not a valid attribute name", name.text),
            ));
        }
        let near = self
            .schema
            .nearest_name(&name.text)
            .map(|near| format!("; did you mean {near}?"))
            .unwrap_or_default();
        let cause = format!("{:?} is no attribute of schema {}{near}", name.text, self.schema.name());
        Err(invalid(name.at, cause))
    }

    /// Tests for moments: a date selects its whole day.
    fn moments(&self, attr: &TestedAttribute, negated: bool, items: &[SyntaxItem<'_>]) -> Result<SelectorExpr> {
        let (mut moments, mut checks) = (Vec::new(), Vec::new());
        for item in items {
            match whole_day(&item.text) {
                Some(range) => checks.push(TestCheck::Range {
                    negated,
                    range: Box::new(range),
                }),
                None => moments.push(self.canonical(attr, item)?),
            }
        }
        if !moments.is_empty() {
            checks.insert(0, among(attr, negated, &moments));
        }
        let test = |check| {
            SelectorExpr::Test(AttributeTest {
                attr: attr.clone(),
                check,
            })
        };
        let tests = checks.into_iter().map(test).collect();
        Ok(if negated {
            SelectorExpr::all(tests)
        } else {
            SelectorExpr::any(tests)
        })
    }

    fn check(&mut self, attr: &TestedAttribute, ask: &SyntaxTest<'_>) -> Result<TestCheck> {
        Ok(match ask {
            SyntaxTest::Exists => TestCheck::Exists,
            SyntaxTest::Among { negated, items } => {
                let texts: Result<Vec<String>> = items.iter().map(|item| self.canonical(attr, item)).collect();
                among(attr, *negated, &texts?)
            }
            SyntaxTest::Range {
                negated,
                first,
                last,
                by,
            } if attr.id == AttrId::OPEN => TestCheck::Among {
                negated: *negated,
                items: ItemList::new(&listed(attr, first, last, by.as_ref())?),
            },
            SyntaxTest::Range {
                negated,
                first,
                last,
                by,
            } => TestCheck::Range {
                negated: *negated,
                range: Box::new(self.range(attr, first, last, by.as_ref())?),
            },
            SyntaxTest::Compare { op, op_at, bound } => self.compare(attr, *op, *op_at, bound)?,
            SyntaxTest::Like(item) => TestCheck::Like(self.patterns.compile(item)?),
        })
    }

    /// The canonical text of a value; allowed values and ranges of the schema do not restrict a question.
    fn canonical(&self, attr: &TestedAttribute, item: &SyntaxItem<'_>) -> Result<String> {
        let problem = |why: String| invalid(item.at, format!("{}: {why}", attr.name));
        if attr.scalar == Type::Date
            && let Some(days_back) = relative(&item.text)
        {
            return match self.context.day_before(days_back) {
                Some(date) => Ok(date),
                None if self.context.today.is_none() => Err(problem(format!(
                    "{:?} needs the current date, which is available only in a request or if the caller passed it",
                    item.text
                ))),
                None => Err(problem(format!("{:?} is out of range", item.text))),
            };
        }
        if item.text.len() > VALUE_BYTES_MAX {
            return Err(problem(format!("a value has at most {VALUE_BYTES_MAX} bytes")));
        }
        let mut text = String::new();
        attr.scalar
            .canonical(Given::Text(&item.text), &mut text)
            .map_err(|why| problem(format!("{why}{}", range_hint(attr.scalar, &item.text))))?;
        Ok(text)
    }

    fn compare(
        &self,
        attr: &TestedAttribute,
        op: SelectorToken,
        op_at: usize,
        bound: &SyntaxItem<'_>,
    ) -> Result<TestCheck> {
        let op = match op {
            SelectorToken::Less => Comparison::Less,
            SelectorToken::AtMost => Comparison::AtMost,
            SelectorToken::Greater => Comparison::Greater,
            _ => Comparison::AtLeast,
        };
        if !attr.scalar.is_ordered() {
            let cause = format!(
                "{}: `{}` makes no sense for a {}; use `=` `!=` `~`{}",
                attr.name,
                op.sign(),
                attr.scalar,
                if attr.id == AttrId::OPEN {
                    ", or declare it as a number in a schema of your own"
                } else {
                    ""
                }
            );
            return Err(invalid(op_at, cause));
        }
        let (first, last) = self.bounds(attr, bound)?;
        let (text, number) = match op {
            Comparison::Less | Comparison::AtLeast => first,
            Comparison::AtMost | Comparison::Greater => last,
        };
        Ok(TestCheck::Compare(Box::new(PrintedBound { op, text, number })))
    }

    /// The first and the last moment of a value: they differ if the value is a day.
    fn bounds(&self, attr: &TestedAttribute, item: &SyntaxItem<'_>) -> Result<(Bound, Bound)> {
        if attr.scalar == Type::Timestamp
            && let Some(day) = whole_day(&item.text)
        {
            return Ok(((day.first, day.start), (day.last, day.end)));
        }
        let bound = self.bound(attr, item)?;
        Ok((bound.clone(), bound))
    }

    /// A value as the end of something.
    fn bound(&self, attr: &TestedAttribute, item: &SyntaxItem<'_>) -> Result<Bound> {
        let text = self.canonical(attr, item)?;
        let number = attr.scalar.order(&text).ok_or_else(|| {
            invalid(
                item.at,
                format!("{}: {text} is itself a range and cannot be a bound", attr.name),
            )
        })?;
        Ok((text.into(), number))
    }

    fn range(
        &self,
        attr: &TestedAttribute,
        first: &SyntaxItem<'_>,
        last: &SyntaxItem<'_>,
        by: Option<&SyntaxItem<'_>>,
    ) -> Result<NumberRange> {
        if !attr.scalar.is_ordered() {
            let cause = format!("{}: a {} has no ranges; write a list", attr.name, attr.scalar);
            return Err(invalid(first.at, cause));
        }
        let (one, other) = (self.bounds(attr, first)?, self.bounds(attr, last)?);
        // Days are within the range.
        let ((first, start), (last_text, end)) = if one.0.1 <= other.1.1 {
            (one.0, other.1)
        } else {
            (one.1, other.0)
        };
        let at = by.map_or(last.at, |by| by.at);
        let (stride, by) =
            stride(attr.scalar, by.map(|by| &*by.text)).map_err(|why| invalid(at, format!("{}: {why}", attr.name)))?;
        Ok(NumberRange {
            first,
            last: last_text,
            by: by.map(Into::into),
            start,
            end,
            stride,
        })
    }
}

/// The canonical text of a value that is compared with, and its number.
type Bound = (Box<str>, i128);

fn among(attr: &TestedAttribute, negated: bool, texts: &[String]) -> TestCheck {
    let stored = |text: &String| {
        let mut stored = String::new();
        stored_form(text, attr.list, &mut stored);
        stored
    };
    let items = ItemList::new(&texts.iter().map(stored).collect::<Vec<_>>());
    TestCheck::Among { negated, items }
}

/// The right form of a range that is written as in another language, such as `1..3`; else empty.
fn range_hint(scalar: Type, text: &str) -> String {
    let is_value = |text: &str| scalar.canonical(Given::Text(text), &mut String::new()).is_ok();
    let separators = ["..", ":", "-"].into_iter();
    let ends = separators
        .filter_map(|separator| text.split_once(separator))
        .find(|(first, last)| scalar.is_ordered() && is_value(first) && is_value(last));
    ends.map_or_else(String::new, |(first, last)| {
        format!("; a range is written {first}/to/{last}")
    })
}

/// The values of a range of an attribute that no schema declares: such an attribute is a string, and a range of whole numbers stands
/// for the list of their texts.
fn listed(
    attr: &TestedAttribute,
    first: &SyntaxItem<'_>,
    last: &SyntaxItem<'_>,
    by: Option<&SyntaxItem<'_>>,
) -> Result<Vec<String>> {
    let refused = |at: usize, why: &str| {
        let remedy = "write a list, or declare it as a number in a schema of your own";
        invalid(at, format!("{}: {why}; {remedy}", attr.name))
    };
    let whole = |item: &SyntaxItem<'_>| {
        let mut text = String::new();
        let canonical = Type::Integer.canonical(Given::Text(&item.text), &mut text);
        let number = canonical.ok().and_then(|()| Type::Integer.order(&text));
        let number = number.filter(|_| text == item.text);
        number.map(|number| (text.into(), number)).ok_or_else(|| {
            let why = "its schema does not declare it, so it is a string, and only whole numbers have ranges then";
            refused(item.at, why)
        })
    };
    let ((first_text, start), (last_text, end)) = (whole(first)?, whole(last)?);
    let (stride, _) = stride(Type::Integer, by.map(|by| &*by.text))
        .map_err(|why| invalid(by.map_or(last.at, |by| by.at), format!("{}: {why}", attr.name)))?;
    let range = NumberRange {
        first: first_text,
        last: last_text,
        by: None,
        start,
        end,
        stride,
    };
    range.values(Type::Integer, OPEN_RANGE_VALUES_MAX).ok_or_else(|| {
        let why = format!("a range of an attribute that is a string has at most {OPEN_RANGE_VALUES_MAX} values");
        refused(first.at, &why)
    })
}

/// A declared attribute, ready for tests.
pub(crate) fn attr_of(schema: &Schema, id: AttrId) -> TestedAttribute {
    let attribute = schema.attribute(id);
    TestedAttribute {
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

impl SelectorContext {
    fn day_before(&self, days_back: u32) -> Option<String> {
        let today = Type::Date.order(&format!("{:08}", self.today?))?;
        let text = date_text(i64::try_from(today).ok()? - i64::from(days_back));
        Type::Date.is_canonical(&text).then_some(text)
    }
}
