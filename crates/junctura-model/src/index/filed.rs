//! A standing selector in the index: the comparisons with a candidate object, the likeliest to fail first.

use std::sync::atomic::{AtomicU64, Ordering};

use super::keys::BranchKeys;
use super::tokens::ObjectTokens;
use crate::record::RecordRef;
use crate::schema::AttrId;
use crate::selector::Selector;
use crate::selector::expr::{AttributeTest, SelectorExpr, TestCheck};
use crate::value::Type;

/// A selector under the id of its owner's.
pub(super) struct FiledSelector<Id> {
    pub(super) id: Id,
    /// The bounds of one of its comparisons or ranges.
    span: Option<TestSpan>,
    /// One for each branch.
    pub(super) keys: Box<[BranchKeys]>,
    selector: Selector,
    /// The parts of the selector that it is not filed under, cheapest first.
    unfiled: Box<[u16]>,
    /// Whether one object may meet it twice.
    twice: bool,
    /// The last object that met it.
    met: AtomicU64,
}

struct TestSpan {
    id: AttrId,
    scalar: Type,
    low: i128,
    high: i128,
}

impl<Id> FiledSelector<Id> {
    pub(super) fn new(id: Id, selector: Selector, keys: Box<[BranchKeys]>, twice: bool) -> FiledSelector<Id> {
        let (span, unfiled) = match selector.expr() {
            SelectorExpr::All(parts) => (parts.iter().find_map(TestSpan::of), unfiled(parts)),
            _ => (None, Box::default()),
        };
        FiledSelector {
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
    pub(super) fn may_match(&self, record: RecordRef<'_>, tokens: &ObjectTokens) -> bool {
        self.span
            .as_ref()
            .is_none_or(|span| span.contains(tokens.number(record, span.id, span.scalar)))
    }

    /// Returns whether the selector matches. Each object, which has a number, gets this answer only once.
    pub(super) fn matches(&self, record: RecordRef<'_>, object: u64) -> bool {
        if self.twice && self.met.swap(object, Ordering::Relaxed) == object {
            return false;
        }
        if let SelectorExpr::All(parts) = self.selector.expr()
            && !self.unfiled.iter().all(|&at| parts[usize::from(at)].matches(record))
        {
            return false;
        }
        self.selector.matches(record)
    }
}

/// The parts that are no equalities and no lists.
fn unfiled(parts: &[SelectorExpr]) -> Box<[u16]> {
    let cost = |part: &SelectorExpr| match part {
        SelectorExpr::Test(AttributeTest {
            check: TestCheck::Among { negated: false, .. },
            ..
        }) => None,
        SelectorExpr::Test(AttributeTest {
            check: TestCheck::Like(_),
            ..
        }) => Some(2),
        SelectorExpr::Test(_) => Some(0),
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

impl TestSpan {
    fn of(part: &SelectorExpr) -> Option<TestSpan> {
        let SelectorExpr::Test(test) = part else { return None };
        let (low, high) = match &test.check {
            TestCheck::Range { negated: false, range } => (range.low(), range.high()),
            TestCheck::Compare(bound) => bound.span(),
            _ => return None,
        };
        let span = TestSpan {
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
