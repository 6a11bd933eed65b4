//! Names in the order in which they appeared, up to a limit; the rest is one entry.

use std::hash::Hash;

use hashbrown::HashMap;

/// The name of the entry for all names beyond the limit.
pub const OTHERS: &str = "others";

/// Counts by name. Places are never reused, so a count never decreases because a name went.
#[derive(Debug)]
pub struct NameTable<K, C> {
    places: HashMap<K, u16>,
    names: Vec<String>,
    counts: Vec<C>,
    /// The key that was asked for last, with its place.
    last: Option<(K, u16)>,
    limit: usize,
}

impl<K: Eq + Hash, C: Default> NameTable<K, C> {
    /// A table of `limit` places, the last of which is for others.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            places: HashMap::new(),
            names: Vec::new(),
            counts: Vec::new(),
            last: None,
            limit,
        }
    }

    /// Returns the place of a name, which `name` gives where the key is new.
    pub fn place(&mut self, key: K, name: impl FnOnce() -> String) -> u16 {
        match &self.last {
            Some((last, place)) if *last == key => return *place,
            _ => {}
        }
        if let Some(&place) = self.places.get(&key) {
            self.last = Some((key, place));
            return place;
        }
        let others = self.limit - 1;
        let is_known = self.names.len() < others;
        let place = if is_known { self.names.len() } else { others } as u16;
        if is_known {
            self.names.push(name());
            self.counts.push(C::default());
            self.places.insert(key, place);
        } else if self.names.len() == others {
            self.names.push(OTHERS.to_owned());
            self.counts.push(C::default());
        }
        place
    }

    /// Returns the counts at a place that [`Self::place`] has returned.
    pub fn count(&mut self, place: u16) -> &mut C {
        &mut self.counts[usize::from(place)]
    }

    /// Returns the names and counts, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &C)> {
        self.names.iter().map(String::as_str).zip(&self.counts)
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether no name has appeared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
