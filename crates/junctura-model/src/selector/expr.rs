//! A selector after typing: names resolved, values canonical, bounds as numbers, patterns compiled; and what it means.
//!
//! Conjunctions and disjunctions are flat (a conjunction never holds a conjunction) and have two members or more, so two
//! spellings that differ only in parentheses are the same expression.

use std::sync::Arc;

use super::items::ItemList;
use super::patterns::RegexPattern;
use super::range::NumberRange;
use crate::record::RecordRef;
use crate::schema::AttrId;
use crate::text::quote;
use crate::value::Type;

/// The expression of a selector.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SelectorExpr {
    Everything,
    All(Vec<SelectorExpr>),
    Any(Vec<SelectorExpr>),
    Not(Box<SelectorExpr>),
    Test(AttributeTest),
}

/// A test of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttributeTest {
    pub(crate) attr: TestedAttribute,
    pub(crate) check: TestCheck,
}

/// Which attribute, and how its values are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TestedAttribute {
    pub(crate) id: AttrId,
    pub(crate) name: Arc<str>,
    pub(crate) scalar: Type,
    pub(crate) list: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TestCheck {
    Exists,
    Among { negated: bool, items: ItemList },
    Range { negated: bool, range: Box<NumberRange> },
    Compare(Box<PrintedBound>),
    Like(RegexPattern),
}

/// `<` and its kin, with the bound as it prints and as a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PrintedBound {
    pub(crate) op: Comparison,
    pub(crate) text: Box<str>,
    pub(crate) number: i128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::Greater => ">",
            Comparison::AtLeast => ">=",
        }
    }
}

impl PrintedBound {
    /// Smallest and largest number for which it holds.
    pub(crate) fn span(&self) -> (i128, i128) {
        match self.op {
            Comparison::Less => (i128::MIN, self.number - 1),
            Comparison::AtMost => (i128::MIN, self.number),
            Comparison::Greater => (self.number + 1, i128::MAX),
            Comparison::AtLeast => (self.number, i128::MAX),
        }
    }
}

impl SelectorExpr {
    /// The first attribute that it asks for whose id is not below `end`.
    pub(crate) fn attribute_beyond(&self, end: usize) -> Option<&str> {
        match self {
            SelectorExpr::Everything => None,
            SelectorExpr::All(parts) | SelectorExpr::Any(parts) => {
                parts.iter().find_map(|part| part.attribute_beyond(end))
            }
            SelectorExpr::Not(inner) => inner.attribute_beyond(end),
            SelectorExpr::Test(test) => (test.attr.id.index() >= end).then_some(&test.attr.name),
        }
    }

    /// Adds the attributes that it asks for and the schema does not declare.
    pub(crate) fn open_attributes<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            SelectorExpr::All(parts) | SelectorExpr::Any(parts) => {
                for part in parts {
                    part.open_attributes(names);
                }
            }
            SelectorExpr::Not(inner) => inner.open_attributes(names),
            SelectorExpr::Test(test) if test.attr.id == AttrId::OPEN => names.push(&test.attr.name),
            SelectorExpr::Everything | SelectorExpr::Test(_) => {}
        }
    }

    /// Adds the values that it names of declared attributes.
    pub(crate) fn named_values<'a>(&'a self, named: &mut Vec<(AttrId, &'a str)>) {
        match self {
            SelectorExpr::All(parts) | SelectorExpr::Any(parts) => {
                for part in parts {
                    part.named_values(named);
                }
            }
            SelectorExpr::Test(AttributeTest {
                attr,
                check: TestCheck::Among { negated: false, items },
            }) if attr.id != AttrId::OPEN => named.extend(items.iter().map(|value| (attr.id, value))),
            SelectorExpr::Everything | SelectorExpr::Not(_) | SelectorExpr::Test(_) => {}
        }
    }

    /// Returns the approximate memory in bytes that it takes in an index.
    pub(crate) fn standing_bytes(&self) -> usize {
        match self {
            SelectorExpr::Everything => 0,
            SelectorExpr::All(parts) | SelectorExpr::Any(parts) => parts.iter().map(SelectorExpr::standing_bytes).sum(),
            SelectorExpr::Not(inner) => size_of::<SelectorExpr>() + inner.standing_bytes(),
            SelectorExpr::Test(test) => test.standing_bytes(),
        }
    }

    /// Returns the conjunction, flattened; a single part is returned as it is.
    pub(crate) fn all(parts: Vec<SelectorExpr>) -> SelectorExpr {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                SelectorExpr::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::single(flat, SelectorExpr::All)
    }

    /// Returns the disjunction, flattened; a single part is returned as it is.
    pub(crate) fn any(parts: Vec<SelectorExpr>) -> SelectorExpr {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                SelectorExpr::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::single(flat, SelectorExpr::Any)
    }

    fn single(mut parts: Vec<SelectorExpr>, join: fn(Vec<SelectorExpr>) -> SelectorExpr) -> SelectorExpr {
        // Adjacent duplicates are removed, so that the output of `widen` reads back equal.
        parts.dedup();
        match parts.len() {
            0 => SelectorExpr::Everything,
            1 => parts.swap_remove(0),
            _ => join(parts),
        }
    }

    pub(crate) fn matches(&self, record: RecordRef<'_>) -> bool {
        match self {
            SelectorExpr::Everything => true,
            SelectorExpr::All(parts) => parts.iter().all(|part| part.matches(record)),
            SelectorExpr::Any(parts) => parts.iter().any(|part| part.matches(record)),
            SelectorExpr::Not(inner) => !inner.matches(record),
            // The most frequent tests, and presence, compare bytes and need no UTF-8 text.
            SelectorExpr::Test(AttributeTest {
                attr: attr @ TestedAttribute { list: false, .. },
                check: TestCheck::Among { negated, items },
            }) if attr.id != AttrId::OPEN => record
                .bytes_of(attr.id)
                .is_some_and(|bytes| *negated != items.contains(bytes)),
            SelectorExpr::Test(test) => test.attr.value(record).is_some_and(|text| test.holds(text)),
        }
    }
}

impl TestedAttribute {
    /// The attribute's text in the record.
    pub(crate) fn value<'r>(&self, record: RecordRef<'r>) -> Option<&'r str> {
        if self.id == AttrId::OPEN {
            record.get_open(&self.name)
        } else {
            record.get(self.id)
        }
    }
}

impl AttributeTest {
    fn standing_bytes(&self) -> usize {
        /// Memory of a value besides its text: its entries in the list, and in the index.
        const VALUE_BYTES: usize = 120;
        /// The same for a single value.
        const LONE_VALUE_BYTES: usize = 48;
        let check = match &self.check {
            TestCheck::Exists => 0,
            TestCheck::Among {
                items: ItemList::One(only),
                ..
            } => only.len() + LONE_VALUE_BYTES,
            TestCheck::Among { items, .. } => items.iter().map(|item| item.len() + VALUE_BYTES).sum(),
            TestCheck::Range { .. } => size_of::<NumberRange>() + VALUE_BYTES,
            TestCheck::Compare(bound) => size_of::<PrintedBound>() + bound.text.len(),
            TestCheck::Like(pattern) => pattern.bytes(),
        };
        size_of::<SelectorExpr>() + self.attr.name.len() + check
    }

    /// Returns whether an existing value passes. For a list, one element must pass; with `!=`, none may.
    pub(crate) fn holds(&self, text: &str) -> bool {
        match &self.check {
            TestCheck::Exists => true,
            TestCheck::Among { negated, items } => *negated != self.one(text, |item| items.contains(item.as_bytes())),
            TestCheck::Range { negated, range } => {
                *negated
                    != self.one(text, |item| {
                        self.attr.scalar.order(item).is_some_and(|x| range.contains(x))
                    })
            }
            TestCheck::Compare(bound) => {
                let (low, high) = bound.span();
                self.one(text, |item| {
                    self.attr.scalar.order(item).is_some_and(|x| low <= x && x <= high)
                })
            }
            TestCheck::Like(pattern) if self.attr.list => {
                crate::record::list_items(text).any(|item| pattern.is_match(&item))
            }
            TestCheck::Like(pattern) => pattern.is_match(text),
        }
    }

    /// Does one of the values in `text` pass? Elements of lists stay as they are written there: only strings are ever
    /// quoted, and those are compared in that form.
    fn one(&self, text: &str, passes: impl Fn(&str) -> bool) -> bool {
        if self.attr.list {
            raw_items(text).any(passes)
        } else {
            passes(text)
        }
    }
}

/// The elements of a list's text, quotes and escapes kept.
pub(crate) fn raw_items(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = (!text.is_empty()).then_some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let end = text.bytes().position(|byte| {
            let ends = byte == b'/' && !quoted;
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = !quoted,
                _ => {}
            }
            ends
        });
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// A value in the form in which records of this attribute hold it.
pub(crate) fn stored_form(canonical: &str, list: bool, out: &mut String) {
    if list {
        quote(canonical, out);
    } else {
        out.push_str(canonical);
    }
}
