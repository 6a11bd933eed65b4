//! A standing selector where it is filed: what an object that meets it is compared with, the likeliest to fail first.

use std::sync::atomic::{AtomicU64, Ordering};

use super::keys::Keys;
use super::tokens::Tokens;
use crate::record::RecordRef;
use crate::schema::AttrId;
use crate::selector::Selector;
use crate::selector::expr::{Check, Expr, Test};
use crate::value::Type;

/// A selector under the id of its owner's.
pub(super) struct Filed<Id> {
    pub(super) id: Id,
    /// The bounds of one of its comparisons or ranges.
    span: Option<Span>,
    /// One for each branch.
    pub(super) keys: Box<[Keys]>,
    selector: Selector,
    /// The parts of the selector that it is not filed under, cheapest first.
    unfiled: Box<[u16]>,
    /// May one object meet it twice?
    twice: bool,
    /// The last object that met it.
    met: AtomicU64,
}

struct Span {
    id: AttrId,
    scalar: Type,
    low: i128,
    high: i128,
}

impl<Id> Filed<Id> {
    pub(super) fn new(id: Id, selector: Selector, keys: Box<[Keys]>, twice: bool) -> Filed<Id> {
        let (span, unfiled) = match selector.expr() {
            Expr::All(parts) => (parts.iter().find_map(Span::of), unfiled(parts)),
            _ => (None, Box::default()),
        };
        Filed {
            id,
            span,
            keys,
            selector,
            unfiled,
            twice,
            met: AtomicU64::new(0),
        }
    }

    pub(super) fn selector(&self) -> &Selector {
        &self.selector
    }

    /// False where one look at the record shows that the selector does not match.
    pub(super) fn may_match(&self, record: RecordRef<'_>, tokens: &Tokens) -> bool {
        self.span
            .as_ref()
            .is_none_or(|span| span.contains(tokens.number(record, span.id, span.scalar)))
    }

    /// Does the selector match? Each object, which has a number, is told so once.
    pub(super) fn matches(&self, record: RecordRef<'_>, object: u64) -> bool {
        if self.twice && self.met.swap(object, Ordering::Relaxed) == object {
            return false;
        }
        if let Expr::All(parts) = self.selector.expr()
            && !self.unfiled.iter().all(|&at| parts[usize::from(at)].matches(record))
        {
            return false;
        }
        self.selector.matches(record)
    }
}

/// The parts that are no equalities and no lists.
fn unfiled(parts: &[Expr]) -> Box<[u16]> {
    let cost = |part: &Expr| match part {
        Expr::Test(Test {
            check: Check::Among { negated: false, .. },
            ..
        }) => None,
        Expr::Test(Test {
            check: Check::Like(_), ..
        }) => Some(2),
        Expr::Test(_) => Some(0),
        _ => Some(1),
    };
    let mut unfiled: Vec<_> = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| Some((cost(part)?, at as u16)))
        .collect();
    unfiled.sort_unstable();
    unfiled.into_iter().map(|(_, at)| at).collect()
}

impl Span {
    fn of(part: &Expr) -> Option<Span> {
        let Expr::Test(test) = part else { return None };
        let (low, high) = match &test.check {
            Check::Range { negated: false, range } => (range.low(), range.high()),
            Check::Compare(bound) => bound.span(),
            _ => return None,
        };
        let span = Span {
            id: test.attr.id,
            scalar: test.attr.scalar,
            low,
            high,
        };
        (!test.attr.list).then_some(span)
    }

    fn contains(&self, number: Option<i128>) -> bool {
        number.is_some_and(|number| self.low <= number && number <= self.high)
    }
}
