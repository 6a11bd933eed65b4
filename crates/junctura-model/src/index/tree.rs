//! Tells many standing selectors apart by the values that they ask for.
//!
//! A node files each entry under the value (or the values of the list) that the fewest selectors ask for, whatever the
//! attribute; an object looks up all of its own values there. So a selector that differs from the objects of the day in any
//! one attribute stands under that odd value and is never met. What became too many under one value is filed again, under
//! values that turned out rarer, and the remainder goes one node deeper, by the values that are left:
//!
//! ```text
//! node ─┬ number=3 ─ [entry entry]                met by objects with number=3
//!       ├ param=x17 ─ [entry]                     not met by objects of t, u, v
//!       ├ param=t ─ node ─┬ step=6 ─ [entry …]    met by objects with param=t and step=6
//!       │                 └ rest [entry]          … with param=t
//!       └ rest
//! ```
//!
//! An entry is met only by objects that have all the values on its path, each path uses an attribute once, and an object
//! that meets it is compared with its masks, then with its selector.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

use super::keys::{Counts, Keys};
use super::tokens::{Dim, Dims, Token, Tokens};
use crate::selector::Selector;

/// More entries under one value are filed again.
const LIST_MAX: usize = 8;
/// A node of so few entries becomes a list.
const NODE_MIN: usize = 4;
/// A longer list is kept as a map, so that taking one out stays cheap.
const LINEAR_MAX: usize = 64;

/// What all entries of a selector share.
pub(super) struct Filed<Id> {
    pub(super) id: Id,
    pub(super) selector: Selector,
    /// One for each branch; of those filed elsewhere, without conditions.
    pub(super) keys: Box<[Keys]>,
    /// May one object meet it twice?
    pub(super) twice: bool,
    /// The last object that met it.
    pub(super) met: AtomicU64,
}

/// A branch of a selector, where it is filed.
pub(super) struct Entry<Id> {
    filed: Arc<Filed<Id>>,
    branch: u16,
    /// Under how many values it stands, over its path.
    copies: u16,
}

impl<Id> Clone for Entry<Id> {
    fn clone(&self) -> Self {
        Entry {
            filed: Arc::clone(&self.filed),
            ..*self
        }
    }
}

impl<Id> Entry<Id> {
    pub(super) fn new(filed: &Arc<Filed<Id>>, branch: u16) -> Entry<Id> {
        Entry {
            filed: Arc::clone(filed),
            branch,
            copies: 1,
        }
    }

    fn keys(&self) -> &Keys {
        &self.filed.keys[usize::from(self.branch)]
    }

    fn is(&self, other: &Entry<Id>) -> bool {
        Arc::ptr_eq(&self.filed, &other.filed) && self.branch == other.branch
    }

    fn with_copies(&self, times: usize) -> Entry<Id> {
        let copies = usize::from(self.copies)
            .saturating_mul(times)
            .min(usize::from(u16::MAX));
        Entry {
            copies: copies as u16,
            ..self.clone()
        }
    }
}

/// Entries that stand together.
enum List<Id> {
    One(Entry<Id>),
    Few(Vec<Entry<Id>>),
    Many(Box<BTreeMap<(Id, u16), Entry<Id>>>),
}

impl<Id> Default for List<Id> {
    fn default() -> Self {
        List::Few(Vec::new())
    }
}

impl<Id: Copy + Ord> List<Id> {
    fn of(mut entries: Vec<Entry<Id>>) -> List<Id> {
        if entries.len() > LINEAR_MAX {
            let keyed = entries.into_iter().map(|entry| ((entry.filed.id, entry.branch), entry));
            return List::Many(Box::new(keyed.collect()));
        }
        match entries.pop() {
            Some(only) if entries.is_empty() => List::One(only),
            Some(last) => {
                entries.push(last);
                List::Few(entries)
            }
            None => List::default(),
        }
    }

    fn into_entries(self) -> Vec<Entry<Id>> {
        match self {
            List::One(entry) => vec![entry],
            List::Few(entries) => entries,
            List::Many(entries) => entries.into_values().collect(),
        }
    }

    fn len(&self) -> usize {
        match self {
            List::One(_) => 1,
            List::Few(entries) => entries.len(),
            List::Many(entries) => entries.len(),
        }
    }

    fn meet(&self, tokens: &Tokens, visit: &mut impl FnMut(&Filed<Id>)) {
        let one = |entry: &Entry<Id>| {
            if entry.keys().accept(&tokens.lanes) {
                visit(&entry.filed);
            }
        };
        match self {
            List::One(entry) => std::iter::once(entry).for_each(one),
            List::Few(entries) => entries.iter().for_each(one),
            List::Many(entries) => entries.values().for_each(one),
        }
    }

    fn push(&mut self, entry: Entry<Id>) {
        match self {
            List::Many(entries) => {
                entries.insert((entry.filed.id, entry.branch), entry);
            }
            List::Few(entries) if !entries.is_empty() && entries.len() < LINEAR_MAX => entries.push(entry),
            _ => {
                let mut entries = std::mem::take(self).into_entries();
                entries.push(entry);
                *self = List::of(entries);
            }
        }
    }

    fn remove(&mut self, entry: &Entry<Id>) -> bool {
        let at = match self {
            List::Many(entries) => {
                let found = entries.remove(&(entry.filed.id, entry.branch)).is_some();
                if entries.len() <= LINEAR_MAX / 2 {
                    *self = List::of(std::mem::take(self).into_entries());
                }
                return found;
            }
            List::One(only) => only.is(entry).then_some(0),
            List::Few(entries) => entries.iter().position(|known| known.is(entry)),
        };
        let Some(at) = at else { return false };
        let mut entries = std::mem::take(self).into_entries();
        entries.swap_remove(at);
        if entries.len() * 4 < entries.capacity() {
            entries.shrink_to_fit();
        }
        *self = List::of(entries);
        true
    }
}

/// What stands under one value.
struct Bucket<Id> {
    token: Token,
    body: Body<Id>,
}

enum Body<Id> {
    List(List<Id>),
    Node(Box<Node<Id>>),
}

/// Entries by one value each.
pub(super) struct Node<Id> {
    buckets: HashTable<Bucket<Id>>,
    /// The dimensions in use, and by how many entries.
    dims: Vec<(Dim, u32)>,
    /// Entries that have no more values to be filed under.
    rest: List<Id>,
    count: usize,
}

impl<Id> Default for Node<Id> {
    fn default() -> Self {
        Node {
            buckets: HashTable::new(),
            dims: Vec::new(),
            rest: List::default(),
            count: 0,
        }
    }
}

impl<Id: Copy + Ord> Node<Id> {
    /// Shows every selector that an object with these tokens may match, some perhaps twice.
    pub(super) fn walk(&self, tokens: &Tokens, visit: &mut impl FnMut(&Filed<Id>)) {
        self.rest.meet(tokens, visit);
        for &(dim, _) in &self.dims {
            for token in tokens.of(dim) {
                match self
                    .buckets
                    .find(token, |bucket| bucket.token == token)
                    .map(|bucket| &bucket.body)
                {
                    Some(Body::List(list)) => list.meet(tokens, visit),
                    Some(Body::Node(node)) => node.walk(tokens, visit),
                    None => {}
                }
            }
        }
    }

    /// Files an entry; `path` has the dimensions used above.
    pub(super) fn insert(&mut self, entry: Entry<Id>, path: Dims, counts: &Counts) {
        self.count += 1;
        match entry.keys().rarest(path, entry.copies, counts) {
            Some(dim) => self.place(&entry, dim, path, counts),
            None => self.rest.push(entry),
        }
    }

    fn place(&mut self, entry: &Entry<Id>, dim: Dim, path: Dims, counts: &Counts) {
        self.use_dim(dim, 1);
        let tokens = entry.keys().tokens(dim);
        let mut outgrown = Vec::new();
        for &token in tokens {
            let entry = entry.with_copies(tokens.len());
            match self
                .buckets
                .entry(token, |bucket| bucket.token == token, |bucket| bucket.token)
            {
                Place::Vacant(place) => {
                    place.insert(Bucket {
                        token,
                        body: Body::List(List::One(entry)),
                    });
                }
                Place::Occupied(mut place) => match &mut place.get_mut().body {
                    Body::Node(node) => node.insert(entry, path.with(dim), counts),
                    Body::List(list) => {
                        list.push(entry);
                        if list.len() > LIST_MAX && (list.len() - 1).is_power_of_two() {
                            outgrown.push(token);
                        }
                    }
                },
            }
        }
        for token in outgrown {
            self.outgrown(token, dim, path, counts);
        }
    }

    /// Files again what stands under a value: at rarer values here, or deeper.
    fn outgrown(&mut self, token: Token, dim: Dim, path: Dims, counts: &Counts) {
        let Some(list) = self.take_list(token) else { return };
        let (mut staying, mut leaving) = (Vec::new(), Vec::new());
        for entry in list.into_entries() {
            match entry.keys().rarer(dim, path, entry.copies, counts) {
                Some(better) => leaving.push((entry, better)),
                None => staying.push(entry),
            }
        }
        self.use_dim(dim, -(leaving.len() as i32));
        let below = path.with(dim);
        let body = if staying.len() > LIST_MAX && staying.iter().any(|entry| entry.keys().has_more(below, entry.copies))
        {
            let mut node = Node::default();
            staying.into_iter().for_each(|entry| node.insert(entry, below, counts));
            Some(Body::Node(Box::new(node)))
        } else {
            (!staying.is_empty()).then(|| Body::List(List::of(staying)))
        };
        if let Some(body) = body {
            self.buckets
                .insert_unique(token, Bucket { token, body }, |bucket| bucket.token);
        }
        for (entry, better) in leaving {
            self.place(&entry, better, path, counts);
        }
    }

    /// Takes the bucket of a value out, if it is a list.
    fn take_list(&mut self, token: Token) -> Option<List<Id>> {
        let place = self.buckets.find_entry(token, |bucket| bucket.token == token).ok()?;
        if matches!(place.get().body, Body::Node(_)) {
            return None;
        }
        match place.remove().0.body {
            Body::List(list) => Some(list),
            Body::Node(_) => None,
        }
    }

    fn use_dim(&mut self, dim: Dim, by: i32) {
        match self.dims.iter_mut().position(|(known, _)| *known == dim) {
            Some(at) => {
                self.dims[at].1 = self.dims[at].1.saturating_add_signed(by);
                if self.dims[at].1 == 0 {
                    self.dims.remove(at);
                }
            }
            None => self
                .dims
                .extend(u32::try_from(by).ok().filter(|&by| by > 0).map(|by| (dim, by))),
        }
    }

    /// Takes an entry out. Gives memory back: nodes of few become lists, what is empty goes.
    pub(super) fn remove(&mut self, entry: &Entry<Id>, path: Dims, counts: &Counts) -> bool {
        let dims = entry.keys().by_rarity(path, entry.copies, counts);
        let found = dims
            .into_iter()
            .any(|(_, dim)| self.remove_under(entry, dim, path, counts))
            || self.rest.remove(entry);
        self.count -= usize::from(found);
        found
    }

    fn remove_under(&mut self, entry: &Entry<Id>, dim: Dim, path: Dims, counts: &Counts) -> bool {
        if !self.dims.iter().any(|(known, _)| *known == dim) {
            return false;
        }
        let tokens = entry.keys().tokens(dim);
        // It stands under all of them or under none.
        for (at, &token) in tokens.iter().enumerate() {
            let found = self.remove_at(&entry.with_copies(tokens.len()), token, path.with(dim), counts);
            if at == 0 && !found {
                return false;
            }
        }
        self.use_dim(dim, -1);
        if self.buckets.len() * 8 < self.buckets.capacity() {
            self.buckets.shrink_to(self.buckets.len() * 2, |bucket| bucket.token);
        }
        true
    }

    fn remove_at(&mut self, entry: &Entry<Id>, token: Token, below: Dims, counts: &Counts) -> bool {
        let Ok(mut place) = self.buckets.find_entry(token, |bucket| bucket.token == token) else {
            return false;
        };
        let body = &mut place.get_mut().body;
        let found = match body {
            Body::List(list) => list.remove(entry),
            Body::Node(node) => node.remove(entry, below, counts),
        };
        if let Body::Node(node) = body
            && node.count <= NODE_MIN
        {
            let mut entries = Vec::new();
            std::mem::take(&mut **node).drain(entry.copies, &mut entries);
            *body = Body::List(List::of(entries));
        }
        if matches!(body, Body::List(list) if list.len() == 0) {
            place.remove();
        }
        found
    }

    /// Moves all entries out, each once.
    fn drain(self, copies: u16, out: &mut Vec<Entry<Id>>) {
        let mut take = |entry: Entry<Id>| {
            if !out.iter().any(|known| known.is(&entry)) {
                out.push(Entry { copies, ..entry });
            }
        };
        self.rest.into_entries().into_iter().for_each(&mut take);
        let mut nodes = Vec::new();
        for bucket in self.buckets {
            match bucket.body {
                Body::List(list) => list.into_entries().into_iter().for_each(&mut take),
                Body::Node(node) => nodes.push(node),
            }
        }
        nodes.into_iter().for_each(|node| node.drain(copies, out));
    }
}
