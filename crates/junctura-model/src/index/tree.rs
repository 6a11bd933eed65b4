//! Separates many registered selectors by their values.
//!
//! A node files each entry under the value (or the values of the list) that is rarest in objects and in selectors, for
//! any attribute; an object looks up all of its own values there. A selector that differs from current objects in any
//! one attribute is filed under that rare value, and is never a candidate. If too many entries are filed under one
//! value, they are filed again, under values that turned out to be rarer, and the remainder is moved one node deeper,
//! by the remaining values:
//!
//! ```text
//! node ─┬ number=3 ─ [entry entry]                met by objects with number=3
//!       ├ param=x17 ─ [entry]                     not met by objects of t, u, v
//!       ├ param=t ─ node ─┬ step=6 ─ [entry …]    met by objects with param=t and step=6
//!       │                 └ rest [entry]          … with param=t
//!       └ rest
//! ```
//!
//! An entry is a candidate only for objects that have all the values on its path. Each path uses an attribute once. A
//! candidate is compared first by its masks, then by its selector.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::census::ValueCensus;
use super::filed::FiledSelector;
use super::keys::{BranchKeys, DimensionRanks, MaskHints};
use super::split::SplitTable;
use super::tokens::{Dim, DimensionSet, ObjectTokens, Token};
use crate::record::RecordRef;

/// More entries under one value are filed again.
const LIST_MAX: usize = 16;
/// Still longer lists are no more tried to be filed again: their entries have nothing left.
const RETRIED_MAX: usize = 1024;
/// A node of so few entries becomes a list.
const NODE_MIN: usize = 4;
/// A longer list is kept as a map, so that taking one out stays cheap.
const LINEAR_MAX: usize = 64;

/// A branch of a selector, where it is filed.
pub(super) struct BranchEntry<Id> {
    pub(super) filed: Arc<FiledSelector<Id>>,
    branch: u16,
    /// The number of values under which it is filed, over its path.
    copies: u16,
    hints: MaskHints,
}

impl<Id> Clone for BranchEntry<Id> {
    fn clone(&self) -> Self {
        BranchEntry {
            filed: Arc::clone(&self.filed),
            ..*self
        }
    }
}

impl<Id> BranchEntry<Id> {
    pub(super) fn new(filed: &Arc<FiledSelector<Id>>, branch: u16) -> BranchEntry<Id> {
        BranchEntry {
            filed: Arc::clone(filed),
            branch,
            copies: 1,
            hints: MaskHints::NONE,
        }
    }

    pub(super) fn keys(&self) -> &BranchKeys {
        &self.filed.keys[usize::from(self.branch)]
    }

    /// As it is before it is filed.
    pub(super) fn anew(&self) -> BranchEntry<Id> {
        BranchEntry::new(&self.filed, self.branch)
    }

    /// False where a look shows that the selector does not match the record with these tokens.
    pub(super) fn may_match(&self, tokens: &ObjectTokens, record: RecordRef<'_>) -> bool {
        self.hints.accept(&tokens.lanes) && self.filed.may_match(record, tokens) && self.keys().accept(&tokens.lanes)
    }

    pub(super) fn is(&self, other: &BranchEntry<Id>) -> bool {
        Arc::ptr_eq(&self.filed, &other.filed) && self.branch == other.branch
    }

    fn with_copies(&self, times: usize) -> BranchEntry<Id> {
        let copies = usize::from(self.copies)
            .saturating_mul(times)
            .min(usize::from(u16::MAX));
        BranchEntry {
            copies: copies as u16,
            ..self.clone()
        }
    }
}

/// Entries that are filed together.
enum EntryGroup<Id> {
    One(BranchEntry<Id>),
    Few(Vec<BranchEntry<Id>>),
    Many(BTreeMap<(Id, u16), BranchEntry<Id>>),
}

impl<Id> Default for EntryGroup<Id> {
    fn default() -> Self {
        EntryGroup::Few(Vec::new())
    }
}

impl<Id: Copy + Ord> EntryGroup<Id> {
    fn of(mut entries: Vec<BranchEntry<Id>>) -> EntryGroup<Id> {
        if entries.len() > LINEAR_MAX {
            let keyed = entries.into_iter().map(|entry| ((entry.filed.id, entry.branch), entry));
            return EntryGroup::Many(keyed.collect());
        }
        match entries.pop() {
            Some(only) if entries.is_empty() => EntryGroup::One(only),
            Some(last) => {
                entries.push(last);
                EntryGroup::Few(entries)
            }
            None => EntryGroup::default(),
        }
    }

    fn into_entries(self) -> Vec<BranchEntry<Id>> {
        match self {
            EntryGroup::One(entry) => vec![entry],
            EntryGroup::Few(entries) => entries,
            EntryGroup::Many(entries) => entries.into_values().collect(),
        }
    }

    fn len(&self) -> usize {
        match self {
            EntryGroup::One(_) => 1,
            EntryGroup::Few(entries) => entries.len(),
            EntryGroup::Many(entries) => entries.len(),
        }
    }

    fn for_each(&self, visit: &mut impl FnMut(&BranchEntry<Id>)) {
        match self {
            EntryGroup::One(entry) => visit(entry),
            EntryGroup::Few(entries) => entries.iter().for_each(visit),
            EntryGroup::Many(entries) => entries.values().for_each(visit),
        }
    }

    fn pick(&self, number: usize) -> Option<&BranchEntry<Id>> {
        match self {
            EntryGroup::One(entry) => Some(entry),
            EntryGroup::Few(entries) => entries.get(number.checked_rem(entries.len())?),
            EntryGroup::Many(entries) => entries.values().nth(number % entries.len().clamp(1, LINEAR_MAX)),
        }
    }

    fn push(&mut self, entry: BranchEntry<Id>) {
        match self {
            EntryGroup::Many(entries) => {
                entries.insert((entry.filed.id, entry.branch), entry);
            }
            EntryGroup::Few(entries) if !entries.is_empty() && entries.len() < LINEAR_MAX => entries.push(entry),
            _ => {
                let mut entries = std::mem::take(self).into_entries();
                entries.push(entry);
                *self = EntryGroup::of(entries);
            }
        }
    }

    fn remove(&mut self, entry: &BranchEntry<Id>) -> bool {
        let (found, left) = match self {
            EntryGroup::One(only) if only.is(entry) => {
                *self = EntryGroup::default();
                return true;
            }
            EntryGroup::One(_) => return false,
            EntryGroup::Few(entries) => {
                let at = entries.iter().position(|known| known.is(entry));
                at.map(|at| entries.swap_remove(at));
                (at.is_some(), entries.len())
            }
            EntryGroup::Many(entries) => (entries.remove(&(entry.filed.id, entry.branch)).is_some(), entries.len()),
        };
        // Another form is smaller by now.
        if found && (left == 1 || left == LINEAR_MAX / 4 || left == LINEAR_MAX / 2) {
            let mut entries = std::mem::take(self).into_entries();
            entries.shrink_to_fit();
            *self = EntryGroup::of(entries);
        }
        found
    }
}

/// The entries under one value.
struct ValueBucket<Id> {
    token: Token,
    body: NodeBody<Id>,
}

enum NodeBody<Id> {
    List(EntryGroup<Id>),
    Node(Box<ValueNode<Id>>),
}

impl<Id: Copy + Ord> NodeBody<Id> {
    /// One of its entries, another for most other numbers.
    fn pick(&self, number: usize) -> Option<&BranchEntry<Id>> {
        match self {
            NodeBody::List(list) => list.pick(number),
            NodeBody::Node(node) => node.pick(number),
        }
    }
}

/// Entries by one value each.
pub(super) struct ValueNode<Id> {
    buckets: SplitTable<ValueBucket<Id>>,
    /// The dimensions in use.
    dims: DimensionSet,
    /// By how many entries each.
    uses: Vec<(Dim, u32)>,
    /// Entries that have no more values to be filed under.
    rest: EntryGroup<Id>,
    count: usize,
}

impl<Id> Default for ValueNode<Id> {
    fn default() -> Self {
        ValueNode {
            buckets: SplitTable::default(),
            dims: DimensionSet::default(),
            uses: Vec::new(),
            rest: EntryGroup::default(),
            count: 0,
        }
    }
}

impl<Id: Copy + Ord> ValueNode<Id> {
    /// Shows every entry that an object with these tokens meets, some perhaps twice.
    pub(super) fn walk(&self, tokens: &ObjectTokens, visit: &mut impl FnMut(&BranchEntry<Id>)) {
        self.rest.for_each(visit);
        for dim in self.dims.and(tokens.dims).iter() {
            for token in tokens.of(dim) {
                match self.body(token) {
                    Some(NodeBody::List(list)) => list.for_each(visit),
                    Some(NodeBody::Node(node)) => node.walk(tokens, visit),
                    None => {}
                }
            }
        }
    }

    fn body(&self, token: Token) -> Option<&NodeBody<Id>> {
        let bucket = self.buckets.find(token, |bucket| bucket.token == token)?;
        Some(&bucket.body)
    }

    /// Appends an entry of each bucket that an object with these tokens visits, and the dimension of the bucket; a
    /// different entry for most other numbers.
    pub(super) fn survey(&self, tokens: &ObjectTokens, number: usize, out: &mut Vec<(Dim, BranchEntry<Id>)>) {
        for dim in self.dims.and(tokens.dims).iter() {
            let bodies = tokens.of(dim).filter_map(|token| self.body(token));
            out.extend(bodies.filter_map(|body| Some((dim, body.pick(number)?.anew()))));
        }
    }

    fn pick(&self, number: usize) -> Option<&BranchEntry<Id>> {
        // The rest of the number selects in deeper nodes: the same number would always select the same path.
        let count = self.buckets.len().max(1);
        let bucket = self.buckets.iter().nth(number % count);
        bucket.map_or_else(|| self.rest.pick(number), |bucket| bucket.body.pick(number / count))
    }

    /// Files an entry of this dimension again.
    pub(super) fn refile(
        &mut self,
        entry: &BranchEntry<Id>,
        dim: Dim,
        ranks: &DimensionRanks,
        census: &ValueCensus,
    ) -> bool {
        let path = DimensionSet::default();
        let found = self.remove_under(entry, dim, ranks, path);
        if found {
            self.count -= 1;
            self.insert(entry, ranks, path, census);
        }
        found
    }

    /// Files an entry; `path` has the dimensions used above.
    pub(super) fn insert(
        &mut self,
        entry: &BranchEntry<Id>,
        ranks: &DimensionRanks,
        path: DimensionSet,
        census: &ValueCensus,
    ) {
        self.count += 1;
        match ranks.open(path, entry.copies).next() {
            Some(dim) => self.place(entry, dim, ranks, path, census),
            None => self.rest.push(BranchEntry {
                hints: entry.keys().hints(ranks, path),
                ..entry.clone()
            }),
        }
    }

    fn place(
        &mut self,
        entry: &BranchEntry<Id>,
        dim: Dim,
        ranks: &DimensionRanks,
        path: DimensionSet,
        census: &ValueCensus,
    ) {
        self.use_dim(dim, 1);
        let tokens = entry.keys().tokens(dim);
        let below = path.with(dim);
        let entry = BranchEntry {
            hints: entry.keys().hints(ranks, below),
            ..entry.with_copies(tokens.len())
        };
        let movable = tokens.len() == 1 || entry.keys().has_more(below, entry.copies);
        let mut outgrown = Vec::new();
        for &token in tokens {
            match self.buckets.find_mut(token, |bucket| bucket.token == token) {
                None => {
                    let body = NodeBody::List(EntryGroup::One(entry.clone()));
                    self.buckets
                        .insert_unique(token, ValueBucket { token, body }, |bucket| bucket.token);
                }
                Some(bucket) => match &mut bucket.body {
                    NodeBody::Node(node) => node.insert(&entry, ranks, below, census),
                    NodeBody::List(list) => {
                        list.push(entry.clone());
                        let len = list.len();
                        if movable && len > LIST_MAX && len <= RETRIED_MAX + 1 && (len - 1).is_power_of_two() {
                            outgrown.push(token);
                        }
                    }
                },
            }
        }
        for token in outgrown {
            self.outgrown(token, dim, path, census);
        }
    }

    /// Files the entries of a value again: at rarer values here, or deeper.
    fn outgrown(&mut self, token: Token, dim: Dim, path: DimensionSet, census: &ValueCensus) {
        let Some(list) = self.take_list(token) else { return };
        let (mut staying, mut leaving) = (Vec::new(), Vec::new());
        for entry in list.into_entries() {
            let ranks = entry.keys().ranks(census);
            match ranks.rarer(dim, path, entry.copies) {
                Some(better) => leaving.push((entry, ranks, better)),
                None => staying.push((entry, ranks)),
            }
        }
        self.use_dim(dim, -(leaving.len() as i32));
        let below = path.with(dim);
        let body = if staying.len() > LIST_MAX
            && staying
                .iter()
                .any(|(entry, _)| entry.keys().has_more(below, entry.copies))
        {
            let mut node = ValueNode::default();
            for (entry, ranks) in &staying {
                node.insert(entry, ranks, below, census);
            }
            Some(NodeBody::Node(Box::new(node)))
        } else {
            (!staying.is_empty())
                .then(|| NodeBody::List(EntryGroup::of(staying.into_iter().map(|(entry, _)| entry).collect())))
        };
        if let Some(body) = body {
            self.buckets
                .insert_unique(token, ValueBucket { token, body }, |bucket| bucket.token);
        }
        for (entry, ranks, better) in leaving {
            self.place(&entry, better, &ranks, path, census);
        }
    }

    /// Takes the bucket of a value out, if it is a list.
    fn take_list(&mut self, token: Token) -> Option<EntryGroup<Id>> {
        let is_it = |bucket: &ValueBucket<Id>| bucket.token == token;
        if matches!(self.buckets.find(token, is_it)?.body, NodeBody::Node(_)) {
            return None;
        }
        match self.buckets.remove(token, is_it, |bucket| bucket.token)?.body {
            NodeBody::List(list) => Some(list),
            NodeBody::Node(_) => None,
        }
    }

    fn use_dim(&mut self, dim: Dim, by: i32) {
        let at = self
            .uses
            .iter()
            .position(|(known, _)| *known == dim)
            .unwrap_or_else(|| {
                self.uses.push((dim, 0));
                self.dims = self.dims.with(dim);
                self.uses.len() - 1
            });
        self.uses[at].1 = self.uses[at].1.saturating_add_signed(by);
        if self.uses[at].1 == 0 {
            self.uses.swap_remove(at);
            self.dims = self.dims.without(dim);
        }
    }

    /// Removes an entry. Frees memory: small nodes become lists, empty ones are removed.
    pub(super) fn remove(&mut self, entry: &BranchEntry<Id>, ranks: &DimensionRanks, path: DimensionSet) -> bool {
        let mut dims = ranks.open(path, entry.copies);
        let found = dims.any(|dim| self.remove_under(entry, dim, ranks, path)) || self.rest.remove(entry);
        self.count -= usize::from(found);
        found
    }

    fn remove_under(&mut self, entry: &BranchEntry<Id>, dim: Dim, ranks: &DimensionRanks, path: DimensionSet) -> bool {
        if !self.dims.contains(dim) {
            return false;
        }
        let tokens = entry.keys().tokens(dim);
        // It is filed under all these values or under none.
        for (at, &token) in tokens.iter().enumerate() {
            let found = self.remove_at(&entry.with_copies(tokens.len()), token, ranks, path.with(dim));
            if at == 0 && !found {
                return false;
            }
        }
        self.use_dim(dim, -1);
        true
    }

    fn remove_at(
        &mut self,
        entry: &BranchEntry<Id>,
        token: Token,
        ranks: &DimensionRanks,
        below: DimensionSet,
    ) -> bool {
        let is_it = |bucket: &ValueBucket<Id>| bucket.token == token;
        let Some(bucket) = self.buckets.find_mut(token, is_it) else {
            return false;
        };
        let body = &mut bucket.body;
        let found = match body {
            NodeBody::List(list) => list.remove(entry),
            NodeBody::Node(node) => node.remove(entry, ranks, below),
        };
        if let NodeBody::Node(node) = body
            && node.count <= NODE_MIN
        {
            let mut entries = Vec::new();
            std::mem::take(&mut **node).drain(entry.copies, &mut entries);
            *body = NodeBody::List(EntryGroup::of(entries));
        }
        if matches!(body, NodeBody::List(list) if list.len() == 0) {
            self.buckets.remove(token, is_it, |bucket| bucket.token);
        }
        found
    }

    /// Moves all entries out, each once.
    fn drain(self, copies: u16, out: &mut Vec<BranchEntry<Id>>) {
        let mut take = |entry: BranchEntry<Id>| {
            if !out.iter().any(|known| known.is(&entry)) {
                out.push(BranchEntry { copies, ..entry });
            }
        };
        self.rest.into_entries().into_iter().for_each(&mut take);
        let mut nodes = Vec::new();
        for bucket in self.buckets.into_entries() {
            match bucket.body {
                NodeBody::List(list) => list.into_entries().into_iter().for_each(&mut take),
                NodeBody::Node(node) => nodes.push(node),
            }
        }
        for node in nodes {
            node.drain(copies, out);
        }
    }
}
