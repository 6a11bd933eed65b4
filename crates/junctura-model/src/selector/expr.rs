//! A selector after typing: names resolved, values canonical, bounds as numbers, patterns compiled; and what it means.
//!
//! Conjunctions and disjunctions are flat (a conjunction never holds a conjunction) and have two members or more, so two
//! spellings that differ only in parentheses are the same expression.

use std::sync::Arc;

use super::items::Items;
use super::patterns::Pattern;
use super::range::Range;
use crate::record::RecordRef;
use crate::schema::AttrId;
use crate::text::quote;
use crate::value::Type;

/// What a selector asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Everything,
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Not(Box<Expr>),
    Test(Test),
}

/// What it asks of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Test {
    pub(crate) attr: Attr,
    pub(crate) check: Check,
}

/// Which attribute, and how its values are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attr {
    pub(crate) id: AttrId,
    pub(crate) name: Arc<str>,
    pub(crate) scalar: Type,
    pub(crate) list: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Check {
    Exists,
    Among { negated: bool, items: Items },
    Range { negated: bool, range: Box<Range> },
    Compare(Box<Bound>),
    Like(Pattern),
}

/// `<` and its kin, with the bound as it prints and as a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
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

impl Bound {
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

impl Expr {
    /// The first attribute that it asks for whose id is not below `end`.
    pub(crate) fn attribute_beyond(&self, end: usize) -> Option<&str> {
        match self {
            Expr::Everything => None,
            Expr::All(parts) | Expr::Any(parts) => parts.iter().find_map(|part| part.attribute_beyond(end)),
            Expr::Not(inner) => inner.attribute_beyond(end),
            Expr::Test(test) => (test.attr.id.index() >= end).then_some(&test.attr.name),
        }
    }

    /// Adds the attributes that it asks for and the schema does not declare.
    pub(crate) fn open_attributes<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Expr::All(parts) | Expr::Any(parts) => parts.iter().for_each(|part| part.open_attributes(names)),
            Expr::Not(inner) => inner.open_attributes(names),
            Expr::Test(test) if test.attr.id == AttrId::OPEN => names.push(&test.attr.name),
            Expr::Everything | Expr::Test(_) => {}
        }
    }

    /// About how many bytes of memory it takes where it stands in an index.
    pub(crate) fn standing_bytes(&self) -> usize {
        match self {
            Expr::Everything => 0,
            Expr::All(parts) | Expr::Any(parts) => parts.iter().map(Expr::standing_bytes).sum(),
            Expr::Not(inner) => size_of::<Expr>() + inner.standing_bytes(),
            Expr::Test(test) => test.standing_bytes(),
        }
    }

    /// All of them; flat, and without a conjunction where there is only one.
    pub(crate) fn all(parts: Vec<Expr>) -> Expr {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Expr::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::single(flat, Expr::All)
    }

    /// Any of them; likewise.
    pub(crate) fn any(parts: Vec<Expr>) -> Expr {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Expr::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::single(flat, Expr::Any)
    }

    fn single(mut parts: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
        // What is asked twice in succession is asked once: so what `widen` writes out reads back equal.
        parts.dedup();
        match parts.len() {
            0 => Expr::Everything,
            1 => parts.swap_remove(0),
            _ => join(parts),
        }
    }

    pub(crate) fn matches(&self, record: RecordRef<'_>) -> bool {
        match self {
            Expr::Everything => true,
            Expr::All(parts) => parts.iter().all(|part| part.matches(record)),
            Expr::Any(parts) => parts.iter().any(|part| part.matches(record)),
            Expr::Not(inner) => !inner.matches(record),
            // What is asked for most, and whether it is there: bytes tell that, and nobody has to look at them as text.
            Expr::Test(Test {
                attr: attr @ Attr { list: false, .. },
                check: Check::Among { negated, items },
            }) if attr.id != AttrId::OPEN => record
                .bytes_of(attr.id)
                .is_some_and(|bytes| *negated != items.contains(bytes)),
            Expr::Test(test) => test.attr.value(record).is_some_and(|text| test.holds(text)),
        }
    }
}

impl Attr {
    /// The attribute's text in the record.
    pub(crate) fn value<'r>(&self, record: RecordRef<'r>) -> Option<&'r str> {
        if self.id == AttrId::OPEN {
            record.get_open(&self.name)
        } else {
            record.get(self.id)
        }
    }
}

impl Test {
    fn standing_bytes(&self) -> usize {
        /// What a value takes besides its text: its places in the list, and in the index.
        const VALUE_BYTES: usize = 120;
        /// The same for a value that stands alone.
        const LONE_VALUE_BYTES: usize = 48;
        let check = match &self.check {
            Check::Exists => 0,
            Check::Among {
                items: Items::One(only),
                ..
            } => only.len() + LONE_VALUE_BYTES,
            Check::Among { items, .. } => items.iter().map(|item| item.len() + VALUE_BYTES).sum(),
            Check::Range { .. } => size_of::<Range>() + VALUE_BYTES,
            Check::Compare(bound) => size_of::<Bound>() + bound.text.len(),
            Check::Like(pattern) => pattern.bytes(),
        };
        size_of::<Expr>() + self.attr.name.len() + check
    }

    /// Does a value that is there pass? Of a list, one element must; with `!=`, none may.
    pub(crate) fn holds(&self, text: &str) -> bool {
        match &self.check {
            Check::Exists => true,
            Check::Among { negated, items } => *negated != self.one(text, |item| items.contains(item.as_bytes())),
            Check::Range { negated, range } => {
                *negated
                    != self.one(text, |item| {
                        self.attr.scalar.order(item).is_some_and(|x| range.contains(x))
                    })
            }
            Check::Compare(bound) => {
                let (low, high) = bound.span();
                self.one(text, |item| {
                    self.attr.scalar.order(item).is_some_and(|x| low <= x && x <= high)
                })
            }
            Check::Like(pattern) if self.attr.list => {
                crate::record::list_items(text).any(|item| pattern.is_match(&item))
            }
            Check::Like(pattern) => pattern.is_match(text),
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
