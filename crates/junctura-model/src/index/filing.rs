//! Filing of selectors: conditions that an object must meet, in a form that permits a lookup.
//!
//! A selector becomes branches (one for each side of a top-level `or`); it can only match objects that meet all
//! conditions of one branch. A condition is a list of values of one attribute: an equality, a list, or a range of few
//! values. A branch without a condition may still have a *span* (a comparison or a long range) or a *presence*. `~`,
//! `!=` and `not` cannot be used for filing.

use super::tokens::{Dim, Token, dimension, is_shared, token};
use crate::selector::Selector;
use crate::selector::expr::{AttributeTest, SelectorExpr, TestCheck};
use crate::value::Type;

/// Ranges of more values are kept as spans.
const RANGE_VALUES_MAX: usize = 64;
/// A selector with more branches is checked one by one.
const BRANCHES_MAX: usize = 256;

/// The conditions of an object that matches this branch.
#[derive(Clone, Default)]
pub(super) struct FilingBranch {
    /// All must hold; one for each dimension, by dimension.
    pub(super) conditions: Vec<ValueCondition>,
    /// Used where there are no conditions.
    pub(super) lone: Option<LoneCondition>,
}

/// One of the values.
#[derive(Clone)]
pub(super) struct ValueCondition {
    pub(super) dim: Dim,
    /// Whether the values of this dimension are lists.
    pub(super) list: bool,
    pub(super) tokens: Box<[Token]>,
}

/// A condition with a separate index.
#[derive(Clone, PartialEq)]
pub(super) enum LoneCondition {
    Present {
        seed: u64,
    },
    Between {
        dim: Dim,
        scalar: Type,
        list: bool,
        low: i128,
        high: i128,
    },
}

/// The branches of a selector, or None when it has nothing to file under. A branch of nothing matches everything.
pub(super) fn branches(selector: &Selector) -> Option<Vec<FilingBranch>> {
    file(selector.expr()).filter(|branches| branches.len() <= BRANCHES_MAX)
}

fn file(expr: &SelectorExpr) -> Option<Vec<FilingBranch>> {
    match expr {
        SelectorExpr::Everything => Some(vec![FilingBranch::default()]),
        SelectorExpr::Test(test) => Some(vec![file_test(test)?]),
        SelectorExpr::Not(_) => None,
        SelectorExpr::Any(parts) => file_any(parts),
        SelectorExpr::All(parts) => file_all(parts),
    }
}

fn file_any(parts: &[SelectorExpr]) -> Option<Vec<FilingBranch>> {
    let mut branches = Vec::new();
    for part in parts {
        branches.extend(file(part)?);
        if branches.len() > BRANCHES_MAX {
            return None;
        }
    }
    Some(merged(branches))
}

/// Alternatives over one attribute are a list of its values.
fn merged(branches: Vec<FilingBranch>) -> Vec<FilingBranch> {
    let dim_of = |branch: &FilingBranch| match branch.conditions.as_slice() {
        [only] => Some(only.dim),
        _ => None,
    };
    let Some(dim) = branches.first().and_then(dim_of) else {
        return branches;
    };
    if !branches.iter().all(|branch| dim_of(branch) == Some(dim)) {
        return branches;
    }
    let list = branches[0].conditions[0].list;
    let tokens = branches
        .iter()
        .flat_map(|branch| branch.conditions[0].tokens.iter().copied())
        .collect();
    vec![FilingBranch::of(ValueCondition::new(dim, list, tokens))]
}

/// One branch with the conditions of all parts that have one branch; else the part with the fewest branches.
fn file_all(parts: &[SelectorExpr]) -> Option<Vec<FilingBranch>> {
    let mut together = FilingBranch::default();
    let mut apart: Option<Vec<FilingBranch>> = None;
    for part in parts {
        let Some(branches) = file(part) else { continue };
        match <[FilingBranch; 1]>::try_from(branches) {
            Ok([branch]) => together.narrow(branch),
            Err(branches) if apart.as_ref().is_none_or(|other| branches.len() < other.len()) => apart = Some(branches),
            Err(_) => {}
        }
    }
    if !together.conditions.is_empty() {
        return Some(vec![together]);
    }
    let fileable = apart.filter(|branches| branches.iter().all(|branch| !branch.conditions.is_empty()));
    fileable.or_else(|| together.lone.is_some().then(|| vec![together]))
}

impl ValueCondition {
    fn new(dim: Dim, list: bool, mut tokens: Vec<Token>) -> ValueCondition {
        tokens.sort_unstable();
        tokens.dedup();
        ValueCondition {
            dim,
            list,
            tokens: tokens.into(),
        }
    }
}

impl FilingBranch {
    fn of(condition: ValueCondition) -> FilingBranch {
        FilingBranch {
            conditions: vec![condition],
            lone: None,
        }
    }

    fn alone(lone: LoneCondition) -> FilingBranch {
        FilingBranch {
            conditions: Vec::new(),
            lone: Some(lone),
        }
    }

    /// Returns whether it matches every object.
    pub(super) fn is_everything(&self) -> bool {
        self.conditions.is_empty() && self.lone.is_none()
    }

    /// Returns whether an object may meet it more than once: by several values, or in the two blocks of a range.
    pub(super) fn may_meet_twice(&self) -> bool {
        self.lone.is_some()
            || self
                .conditions
                .iter()
                .any(|condition| condition.list || is_shared(condition.dim))
    }

    fn narrow(&mut self, other: FilingBranch) {
        for condition in other.conditions {
            match self.conditions.binary_search_by_key(&condition.dim, |known| known.dim) {
                Err(at) => self.conditions.insert(at, condition),
                // Both must hold; the shorter list finds less.
                Ok(at) if condition.tokens.len() < self.conditions[at].tokens.len() => self.conditions[at] = condition,
                Ok(_) => {}
            }
        }
        if matches!(self.lone, None | Some(LoneCondition::Present { .. })) && other.lone.is_some() {
            self.lone = other.lone;
        }
    }
}

fn file_test(test: &AttributeTest) -> Option<FilingBranch> {
    let attr = &test.attr;
    let (dim, seed) = dimension(attr.id, &attr.name);
    let listed = |tokens| Some(FilingBranch::of(ValueCondition::new(dim, attr.list, tokens)));
    let between = |low, high| {
        // Only declared attributes have an order, and their dimension is theirs alone.
        Some(FilingBranch::alone(LoneCondition::Between {
            dim,
            scalar: attr.scalar,
            list: attr.list,
            low,
            high,
        }))
    };
    match &test.check {
        TestCheck::Exists => Some(FilingBranch::alone(LoneCondition::Present { seed })),
        TestCheck::Among { negated: false, items } => listed(items.iter().map(|item| token(seed, item)).collect()),
        TestCheck::Range { negated: false, range } => match range.values(attr.scalar, RANGE_VALUES_MAX) {
            Some(values) => listed(values.iter().map(|value| token(seed, value)).collect()),
            None => between(range.low(), range.high()),
        },
        TestCheck::Compare(bound) => {
            let (low, high) = bound.span();
            between(low, high)
        }
        TestCheck::Like(_) | TestCheck::Among { .. } | TestCheck::Range { .. } => None,
    }
}
