//! An index of the registered selectors of one schema: an object finds the matching ones among 100,000 in a fraction of
//! a microsecond.
//!
//! A selector is filed by its values (see [`filing`](super::filing)); an object looks up its own values and verifies
//! the candidates. Selectors that only exclude values, or match patterns, cannot be filed: they are verified for every
//! object, and [`InterestIndex::unindexed_len`] counts them, so that a server can limit their number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::census::ValueCensus;
use super::filed::FiledSelector;
use super::filing::{FilingBranch, branches};
use super::keys::BranchKeys;
use super::learning::HitRate;
use super::lone::LoneSelectors;
use super::tokens::{AskedDimensions, DimensionSet, ObjectTokens};
use super::tree::{BranchEntry, ValueNode};
use crate::record::RecordRef;
use crate::selector::Selector;

/// How a selector is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilingKind {
    /// By the values of an object.
    Indexed,
    /// By verifying it against every object.
    Unindexed,
}

/// Standing selectors of one schema, each under an id of its owner's.
pub struct InterestIndex<Id> {
    tree: ValueNode<Id>,
    lones: LoneSelectors<Id>,
    everything: BTreeSet<Id>,
    unindexed: BTreeMap<Id, Selector>,
    /// The selectors in `tree` and `lones`.
    filed: BTreeMap<Id, Arc<FiledSelector<Id>>>,
    census: ValueCensus,
    learning: HitRate<Id>,
    asked: AskedDimensions,
    tokens: ObjectTokens,
    /// Counts objects, to report an id once for each.
    object: u64,
}

impl<Id> Default for InterestIndex<Id> {
    fn default() -> Self {
        InterestIndex {
            tree: ValueNode::default(),
            lones: LoneSelectors::default(),
            everything: BTreeSet::new(),
            unindexed: BTreeMap::new(),
            filed: BTreeMap::new(),
            census: ValueCensus::default(),
            learning: HitRate::default(),
            asked: AskedDimensions::default(),
            tokens: ObjectTokens::default(),
            object: 0,
        }
    }
}

impl<Id: Copy + Ord> InterestIndex<Id> {
    /// None yet.
    #[must_use]
    pub fn new() -> InterestIndex<Id> {
        InterestIndex::default()
    }

    /// Adds a selector under an ID, and replaces an existing one.
    pub fn insert(&mut self, id: Id, selector: &Selector) -> FilingKind {
        self.take_out(id);
        let Some(branches) = branches(selector) else {
            self.unindexed.insert(id, selector.clone());
            return FilingKind::Unindexed;
        };
        if branches.iter().any(FilingBranch::is_everything) {
            self.everything.insert(id);
            return FilingKind::Indexed;
        }
        for condition in branches.iter().flat_map(|branch| &branch.conditions) {
            self.asked.add(condition.dim, condition.list);
        }
        let twice = branches.len() > 1 || branches.iter().any(FilingBranch::may_meet_twice);
        let keys: Box<[BranchKeys]> = branches
            .iter()
            .map(|branch| BranchKeys::new(branch, &self.asked))
            .collect();
        let filed = Arc::new(FiledSelector::new(id, selector.clone(), keys, twice));
        for at in 0..branches.len() {
            self.census.add(filed.keys[at].all_tokens());
            if let Some(lone) = &filed.keys[at].lone {
                self.lones.insert(lone, at as u16, &filed);
            } else {
                let entry = BranchEntry::new(&filed, at as u16);
                self.tree.insert(
                    &entry,
                    &entry.keys().ranks(&self.census),
                    DimensionSet::default(),
                    &self.census,
                );
            }
        }
        self.filed.insert(id, filed);
        FilingKind::Indexed
    }

    /// Removes the selector with this ID; returns whether there was one.
    pub fn remove(&mut self, id: Id, selector: &Selector) -> bool {
        debug_assert!(self.filed.get(&id).is_none_or(|filed| filed.selector() == selector));
        self.take_out(id)
    }

    fn take_out(&mut self, id: Id) -> bool {
        let Some(filed) = self.filed.remove(&id) else {
            return self.everything.remove(&id) || self.unindexed.remove(&id).is_some();
        };
        for (at, keys) in filed.keys.iter().enumerate() {
            if let Some(lone) = &keys.lone {
                self.lones.remove(lone, at as u16, id);
            } else {
                let entry = BranchEntry::new(&filed, at as u16);
                self.tree
                    .remove(&entry, &keys.ranks(&self.census), DimensionSet::default());
            }
            self.census.drop(keys.all_tokens());
            keys.dims().for_each(|dim| self.asked.drop(dim));
        }
        if self.filed.is_empty() {
            // The places of masks begin anew.
            (self.tree, self.census, self.asked) = Default::default();
        }
        true
    }

    /// Appends the id of every selector that matches the record, each once, in no promised order.
    pub fn matches(&mut self, record: RecordRef<'_>, out: &mut Vec<Id>) {
        out.extend(&self.everything);
        out.extend(
            self.unindexed
                .iter()
                .filter(|(_, selector)| selector.matches(record))
                .map(|(&id, _)| id),
        );
        self.object += 1;
        let object = self.object;
        self.tokens.fill(record, &self.asked);
        let tokens = &self.tokens;
        let mut verify = |filed: &FiledSelector<Id>| out.extend(filed.matches(record, object).then_some(filed.id));
        self.tree.walk(tokens, &mut |entry| {
            if entry.may_match(tokens, record) {
                verify(&entry.filed);
            }
        });
        self.lones.walk(record, &mut |filed| verify(filed));
        if self.learning.is_turn(object) {
            self.learning.learn(tokens, &mut self.tree, &mut self.census);
        }
    }

    /// Returns the number of selectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.filed.len() + self.everything.len() + self.unindexed.len()
    }

    /// Returns whether there are no selectors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of selectors that are verified for every object.
    #[must_use]
    pub fn unindexed_len(&self) -> usize {
        self.unindexed.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Given, Record, Schema};

    const FIXED: &str = "stream=enfo,date=20260101,time=0000,type=pf,levtype=pl,levelist=500,param=t";

    fn object(schema: &Schema, n: usize) -> Record {
        let (step, number) = (((n % 10) * 6).to_string(), (n / 10 % 10).to_string());
        let fixed = FIXED.split(',').filter_map(|pair| pair.split_once('='));
        let own = [
            ("class", "od"),
            ("expver", "0001"),
            ("step", step.as_str()),
            ("number", number.as_str()),
        ];
        let mut bytes = Vec::new();
        let given = fixed.chain(own).map(|(name, value)| (name, Given::Text(value)));
        schema.record(given, &mut bytes).unwrap();
        Record::trusted(bytes)
    }

    /// Returns the number of candidates of the last object.
    fn met(interests: &InterestIndex<usize>) -> usize {
        let mut met = 0;
        interests.tree.walk(&interests.tokens, &mut |_| met += 1);
        met
    }

    #[test]
    fn selectors_leave_values_that_objects_have() {
        let schema = Schema::builtin("mars").unwrap();
        let text = |n: usize| {
            let odd = ["class=xx,expver=0001", "class=od,expver=xxxx"][n % 2];
            format!("{odd},step={},number={},{FIXED}", n / 2 % 10 * 6, n / 20 % 10)
        };
        let selectors: Vec<_> = (0..2000).map(|n| Selector::parse(&text(n), &schema).unwrap()).collect();
        let mut interests = InterestIndex::new();
        for (id, selector) in selectors.iter().enumerate() {
            interests.insert(id, selector);
        }
        let mut found = Vec::new();
        interests.matches(object(&schema, 0).as_ref(), &mut found);
        assert!(met(&interests) > 10, "{}", met(&interests));
        for n in 1..8000 {
            interests.matches(object(&schema, n).as_ref(), &mut found);
        }
        assert_eq!((met(&interests), found.len()), (0, 0));
        for (id, selector) in selectors.iter().enumerate() {
            assert!(interests.remove(id, selector));
        }
        assert!(interests.is_empty());
    }
}
