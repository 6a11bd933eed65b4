//! A tree that tells many standing selectors apart by the values that they ask for.
//!
//! A node is a short list of entries, or splits them by one dimension: a child for each value that an entry accepts there, and
//! a *rest* for entries that do not care. An object walks from the root into the child of its value and into the rest, so it
//! meets only entries that agree with it in every dimension split on. A list of values stands under several children, within
//! a budget. The dimension is chosen when a list gets too long, as the one that leaves the fewest entries to look at; entries
//! that are all alike still split, so that an object that differs from them is turned away at once.
//!
//! ```text
//!              ┌ split by number ┐
//!      1 ──────┤  2 ──────┐      └ rest ── [entry entry]
//!   [entry …]         split by param
//!                   t ──┤     └ u
//!                 [entry …]  [entry]
//! ```
//!
//! Entries keep, for each of 16 lanes, which of 15 bits (or absence) the object's token may have: most of those that do not
//! match are rejected there, in one pass over neighbouring memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

use super::filing::Branch;
use super::tokens::{ANY, Asked, Dim, Dims, LANES, Token, Tokens, lane_bit};

/// A longer list is split.
const LIST_MAX: usize = 8;
/// A longer list that cannot be split is kept as a map.
const HEAP_MIN: usize = 64;
/// Under how many children, over all splits on its path, an entry with several lists may stand. One list may always.
const COPIES_MAX: u32 = 16;

/// A selector's branch, as the tree sees it.
pub(super) struct Entry<Id> {
    pub(super) masks: [u16; LANES],
    pub(super) id: Id,
    pub(super) branch: u16,
    /// Under how many children it stands so far.
    copies: u32,
    pub(super) filed: Arc<Filed<Id>>,
}

/// What all entries of a selector share.
pub(super) struct Filed<Id> {
    pub(super) id: Id,
    pub(super) selector: crate::selector::Selector,
    pub(super) branches: Vec<Branch>,
    /// May one object meet it twice?
    pub(super) twice: bool,
    /// The last object that met it.
    pub(super) met: std::sync::atomic::AtomicU64,
}

impl<Id: Copy> Clone for Entry<Id> {
    fn clone(&self) -> Self {
        Entry { filed: Arc::clone(&self.filed), ..*self }
    }
}

impl<Id: Copy + Ord> Entry<Id> {
    pub(super) fn new(filed: &Arc<Filed<Id>>, branch: usize, asked: &Asked) -> Entry<Id> {
        let mut masks = [ANY; LANES];
        for condition in &filed.branches[branch].conditions {
            let mask = &mut masks[asked.lane(condition.dim)];
            // Where two dimensions share a lane, the first is enough: a mask may accept too much.
            if *mask == ANY {
                *mask = condition.tokens.iter().fold(0, |mask, &token| mask | lane_bit(token));
            }
        }
        Entry { masks, id: filed.id, branch: branch as u16, copies: 1, filed: Arc::clone(filed) }
    }

    fn is(&self, id: Id, branch: u16) -> bool {
        self.id == id && self.branch == branch
    }

    fn accepts(&self, lanes: &[u16; LANES]) -> bool {
        let mut rejected = false;
        for (mask, lane) in self.masks.iter().zip(lanes) {
            rejected |= mask & lane == 0;
        }
        !rejected
    }

    /// The children it stands under in a split by that dimension; None: the rest.
    fn tokens(&self, dim: Dim) -> Option<&[Token]> {
        placement(&self.filed.branches[usize::from(self.branch)], dim, self.copies)
    }
}

fn placement(branch: &Branch, dim: Dim, copies: u32) -> Option<&[Token]> {
    let at = branch.conditions.binary_search_by_key(&dim, |condition| condition.dim).ok()?;
    let tokens = &branch.conditions[at].tokens;
    (copies == 1 || tokens.len() as u32 * copies <= COPIES_MAX).then_some(tokens)
}

/// The whole tree, or a part of it.
pub(super) enum Node<Id> {
    List(Vec<Entry<Id>>),
    /// Entries that no dimension tells apart, and at how many to try again.
    Heap(Box<BTreeMap<(Id, u16), Entry<Id>>>, usize),
    Split(Box<Split<Id>>),
}

pub(super) struct Split<Id> {
    dim: Dim,
    /// Entries below, each counted once.
    count: usize,
    rest: Node<Id>,
    children: HashTable<(Token, Node<Id>)>,
}

impl<Id> Default for Node<Id> {
    fn default() -> Self {
        Node::List(Vec::new())
    }
}

impl<Id: Copy + Ord> Node<Id> {
    fn is_empty(&self) -> bool {
        matches!(self, Node::List(entries) if entries.is_empty())
    }

    /// Shows every entry that `tokens` may match, some perhaps twice.
    pub(super) fn walk(&self, tokens: &Tokens, visit: &mut impl FnMut(&Entry<Id>)) {
        match self {
            Node::List(entries) => {
                for entry in entries.iter().filter(|entry| entry.accepts(&tokens.lanes)) {
                    visit(entry);
                }
            }
            Node::Heap(entries, _) => {
                for entry in entries.values().filter(|entry| entry.accepts(&tokens.lanes)) {
                    visit(entry);
                }
            }
            Node::Split(split) => {
                for token in tokens.of(split.dim) {
                    if let Some((_, child)) = split.children.find(token, |(known, _)| *known == token) {
                        child.walk(tokens, visit);
                    }
                }
                split.rest.walk(tokens, visit);
            }
        }
    }

    /// Adds an entry; `path` has the dimensions that were split on above.
    pub(super) fn insert(&mut self, entry: Entry<Id>, path: Dims) {
        match self {
            Node::List(entries) => {
                entries.push(entry);
                if entries.len() > LIST_MAX {
                    self.outgrown(path);
                }
            }
            Node::Heap(entries, retry) => {
                entries.insert((entry.id, entry.branch), entry);
                if entries.len() >= *retry {
                    self.outgrown(path);
                }
            }
            Node::Split(split) => split.insert(entry, path.with(split.dim)),
        }
    }

    /// Splits a list that got too long, or keeps it as what it is for the time being.
    fn outgrown(&mut self, path: Dims) {
        let entries = match std::mem::take(self) {
            Node::List(entries) if entries.len() > HEAP_MIN || entries.len().is_power_of_two() || entries.len() == LIST_MAX + 1 => entries,
            Node::Heap(entries, _) => entries.into_values().collect(),
            other => return *self = other,
        };
        if let Some(dim) = best_dimension(&entries, path) {
            let children = HashTable::new();
            let mut split = Split { dim, count: 0, rest: Node::default(), children };
            for entry in entries {
                split.insert(entry, path.with(dim));
            }
            *self = Node::Split(Box::new(split));
        } else if entries.len() > HEAP_MIN {
            let retry = entries.len() * 2;
            let by_id = entries.into_iter().map(|entry| ((entry.id, entry.branch), entry)).collect();
            *self = Node::Heap(Box::new(by_id), retry);
        } else {
            *self = Node::List(entries);
        }
    }

    /// Takes an entry out again. Gives memory back: short splits become lists, empty nodes go.
    pub(super) fn remove(&mut self, id: Id, branch: u16, of: &Branch, copies: u32) -> bool {
        let found = match self {
            Node::List(entries) => {
                let at = entries.iter().position(|entry| entry.is(id, branch));
                if let Some(at) = at {
                    entries.swap_remove(at);
                    if entries.len() * 4 < entries.capacity() {
                        entries.shrink_to(entries.len() * 2);
                    }
                }
                at.is_some()
            }
            Node::Heap(entries, _) => entries.remove(&(id, branch)).is_some(),
            Node::Split(split) => split.remove(id, branch, of, copies),
        };
        let shrunk = match self {
            Node::List(_) => return found,
            Node::Heap(entries, _) => entries.len() <= HEAP_MIN / 2,
            Node::Split(split) => split.count <= LIST_MAX / 2,
        };
        if shrunk {
            let mut entries = Vec::new();
            std::mem::take(self).drain(copies, &mut entries);
            *self = Node::List(entries);
        }
        found
    }

    /// Moves all entries out, each once, as entries of a node where they have that many copies.
    fn drain(self, copies: u32, out: &mut Vec<Entry<Id>>) {
        let mut take = |entry: Entry<Id>| {
            if !out.iter().any(|known| known.is(entry.id, entry.branch)) {
                out.push(Entry { copies, ..entry });
            }
        };
        match self {
            Node::List(entries) => entries.into_iter().for_each(take),
            Node::Heap(entries, _) => entries.into_values().for_each(&mut take),
            Node::Split(split) => {
                split.rest.drain(copies, out);
                split.children.into_iter().for_each(|(_, child)| child.drain(copies, out));
            }
        }
    }
}

impl<Id: Copy + Ord> Split<Id> {
    fn insert(&mut self, entry: Entry<Id>, path: Dims) {
        self.count += 1;
        let Some(tokens) = entry.tokens(self.dim) else { return self.rest.insert(entry, path) };
        let copies = entry.copies * tokens.len() as u32;
        for &token in tokens {
            let child = match self.children.entry(token, |(known, _)| *known == token, |(known, _)| *known) {
                Place::Occupied(place) => place.into_mut(),
                Place::Vacant(place) => place.insert((token, Node::default())).into_mut(),
            };
            child.1.insert(Entry { copies, ..entry.clone() }, path);
        }
    }

    fn remove(&mut self, id: Id, branch: u16, of: &Branch, copies: u32) -> bool {
        let mut found = false;
        match placement(of, self.dim, copies) {
            None => found = self.rest.remove(id, branch, of, copies),
            Some(tokens) => {
                for &token in tokens {
                    if let Ok(mut place) = self.children.find_entry(token, |(known, _)| *known == token) {
                        let child = &mut place.get_mut().1;
                        found |= child.remove(id, branch, of, copies * tokens.len() as u32);
                        if child.is_empty() {
                            place.remove();
                        }
                    }
                }
                if self.children.len() * 8 < self.children.capacity() {
                    self.children.shrink_to(self.children.len() * 2, |(known, _)| *known);
                }
            }
        }
        self.count -= usize::from(found);
        found
    }
}

/// The dimension, not on the path yet, by which an object that resembles the entries meets the fewest of them; None where
/// most entries would go to the rest anyway.
fn best_dimension<Id: Copy + Ord>(entries: &[Entry<Id>], path: Dims) -> Option<Dim> {
    let mut places: Vec<(Dim, Token)> = Vec::with_capacity(entries.len() * 8);
    for entry in entries {
        for condition in &entry.filed.branches[usize::from(entry.branch)].conditions {
            if !path.contains(condition.dim)
                && let Some(tokens) = entry.tokens(condition.dim)
            {
                places.extend(tokens.iter().map(|&token| (condition.dim, token)));
            }
        }
    }
    places.sort_unstable();
    let mut best: Option<(f64, Dim)> = None;
    for of_dim in places.chunk_by(|a, b| a.0 == b.0) {
        let dim = of_dim[0].0;
        let caring = entries.iter().filter(|entry| entry.tokens(dim).is_some()).count();
        if caring * 2 < entries.len() {
            continue;
        }
        let squares: f64 = of_dim.chunk_by(|a, b| a == b).map(|same| (same.len() * same.len()) as f64).sum();
        let cost = squares / of_dim.len() as f64 + (entries.len() - caring) as f64;
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, dim));
        }
    }
    best.map(|(_, dim)| dim)
}
