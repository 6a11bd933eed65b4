//! Standing selectors of one schema, so that an object finds those that match it among 100,000 in a fraction of a microsecond.
//!
//! A selector is filed by the values that it asks for (see [`filing`](super::filing)); an object looks up its own values and
//! verifies what it meets. Selectors that only ask for what a value is not, or what it looks like, have nothing to be filed
//! under: they are verified against every object, and [`Interests::unindexed_len`] counts them, so that whoever accepts
//! selectors can limit them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::filing::{Branch, branches};
use super::lone::Lones;
use super::tokens::{Asked, Dims, Tokens};
use super::tree::{Entry, Filed, Node};
use crate::record::RecordRef;
use crate::selector::Selector;

/// How a selector is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filing {
    /// By the values of an object.
    Indexed,
    /// By verifying it against every object.
    Unindexed,
}

/// Standing selectors of one schema, each under an id of its owner's.
pub struct Interests<Id> {
    tree: Node<Id>,
    lones: Lones<Id>,
    everything: BTreeSet<Id>,
    unindexed: BTreeMap<Id, Selector>,
    asked: Asked,
    tokens: Tokens,
    /// Counts objects, to report an id once for each.
    object: u64,
    len: usize,
}

impl<Id> Default for Interests<Id> {
    fn default() -> Self {
        Interests {
            tree: Node::default(),
            lones: Lones::default(),
            everything: BTreeSet::new(),
            unindexed: BTreeMap::new(),
            asked: Asked::default(),
            tokens: Tokens::default(),
            object: 0,
            len: 0,
        }
    }
}

impl<Id: Copy + Ord> Interests<Id> {
    /// None yet.
    #[must_use]
    pub fn new() -> Interests<Id> {
        Interests::default()
    }

    /// Adds a selector under an id that stands for no other one here.
    pub fn insert(&mut self, id: Id, selector: &Selector) -> Filing {
        self.len += 1;
        let Some(branches) = branches(selector) else {
            self.unindexed.insert(id, selector.clone());
            return Filing::Unindexed;
        };
        if branches.iter().any(Branch::is_everything) {
            self.everything.insert(id);
            return Filing::Indexed;
        }
        for condition in branches.iter().flat_map(|branch| &branch.conditions) {
            self.asked.add(condition.dim, condition.list);
        }
        let twice = branches.len() > 1 || branches.iter().any(Branch::may_meet_twice);
        let selector = selector.clone();
        let filed = Arc::new(Filed { id, selector, branches, twice, met: AtomicU64::new(0) });
        for (at, branch) in filed.branches.iter().enumerate() {
            match &branch.lone {
                Some(lone) if branch.conditions.is_empty() => self.lones.insert(lone, at as u16, &filed),
                _ => self.tree.insert(Entry::new(&filed, at, &self.asked), Dims::default()),
            }
        }
        Filing::Indexed
    }

    /// Takes out the selector that was added under this id; says whether it was there.
    pub fn remove(&mut self, id: Id, selector: &Selector) -> bool {
        let found = self.take_out(id, selector);
        self.len -= usize::from(found);
        if self.len == 0 {
            *self = Interests { object: self.object, ..Interests::default() };
        }
        found
    }

    fn take_out(&mut self, id: Id, selector: &Selector) -> bool {
        let Some(branches) = branches(selector) else { return self.unindexed.remove(&id).is_some() };
        if branches.iter().any(Branch::is_everything) {
            return self.everything.remove(&id);
        }
        let mut found = false;
        for (at, branch) in branches.iter().enumerate() {
            found |= match &branch.lone {
                Some(lone) if branch.conditions.is_empty() => self.lones.remove(lone, at as u16, id),
                _ => self.tree.remove(id, at as u16, branch, 1),
            };
        }
        if found {
            for condition in branches.iter().flat_map(|branch| &branch.conditions) {
                self.asked.drop(condition.dim);
            }
        }
        found
    }

    /// Appends the id of every selector that matches the record, each once, in no promised order.
    pub fn matches(&mut self, record: RecordRef<'_>, out: &mut Vec<Id>) {
        out.extend(&self.everything);
        out.extend(self.unindexed.iter().filter(|(_, selector)| selector.matches(record)).map(|(&id, _)| id));
        self.object += 1;
        let object = self.object;
        let mut verify = |filed: &Filed<Id>| {
            if (!filed.twice || filed.met.swap(object, Ordering::Relaxed) != object) && filed.selector.matches(record) {
                out.push(filed.id);
            }
        };
        self.tokens.fill(record, &self.asked);
        self.tree.walk(&self.tokens, &mut |entry| verify(&entry.filed));
        self.lones.walk(record, &mut |filed| verify(filed));
    }

    /// How many selectors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many of them are verified against every object.
    #[must_use]
    pub fn unindexed_len(&self) -> usize {
        self.unindexed.len()
    }
}
