//! A map from keys to objects and tombstones.
//!
//! Every offer looks up a key that is most likely new, and every removed object leaves a tombstone and removes an old
//! one: four visits at random places of a table of everything remembered. So the table is kept small enough for the
//! processor's cache: it stores the id of a key's owner, and reads the key from the owner.

use junctura_model::index::SplitTable;
use slab::Slab;

use crate::core::objects::object::ObjectRow;
use crate::core::objects::tombstone::TombstoneTable;

/// The entry of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum KeyEntry {
    /// The newest object of the key, which is visible.
    Object(u32),
    /// A removed object.
    Tombstone(u32),
}

/// The map; see the module.
#[derive(Default)]
pub(in crate::core) struct KeyTable(pub(in crate::core) SplitTable<KeyEntry>);

impl KeyEntry {
    pub(in crate::core) fn key(self, objects: &Slab<ObjectRow>, tombstones: &TombstoneTable) -> u128 {
        match self {
            Self::Object(id) => objects[id as usize].key,
            Self::Tombstone(id) => tombstones.get(id).key,
        }
    }
}

/// Values by key, in a table that never grows all at once.
pub(in crate::core) struct ByKey<T>(SplitTable<(u128, T)>);

impl<T> Default for ByKey<T> {
    fn default() -> Self {
        Self(SplitTable::default())
    }
}

impl<T> ByKey<T> {
    pub(in crate::core) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::core) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::core) fn get(&self, key: u128) -> Option<&T> {
        let found = self.0.find(hash(key), |(other, _)| *other == key);
        found.map(|(_, value)| value)
    }

    pub(in crate::core) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Adds the value of a key, or replaces it.
    pub(in crate::core) fn insert(&mut self, key: u128, value: T) {
        match self.0.find_mut(hash(key), |(other, _)| *other == key) {
            Some(entry) => entry.1 = value,
            None => self.0.insert_unique(hash(key), (key, value), |(key, _)| hash(*key)),
        }
    }

    pub(in crate::core) fn remove(&mut self, key: u128) -> Option<T> {
        let removed = self
            .0
            .remove(hash(key), |(other, _)| *other == key, |(key, _)| hash(*key));
        removed.map(|(_, value)| value)
    }

    pub(in crate::core) fn take_if(&mut self, mut is_chosen: impl FnMut(&T) -> bool) -> Vec<(u128, T)> {
        self.0.take_if(|(_, value)| is_chosen(value))
    }

    pub(in crate::core) fn into_entries(self) -> impl Iterator<Item = (u128, T)> {
        self.0.into_entries()
    }
}

/// Keys are hashes already.
pub(in crate::core) fn hash(key: u128) -> u64 {
    key as u64
}

impl KeyTable {
    /// Replaces the entry `old` of a key by `new`.
    pub(in crate::core) fn replace(&mut self, key: u128, old: KeyEntry, new: KeyEntry) {
        if let Some(filed) = self.0.find_mut(hash(key), |&filed| filed == old) {
            *filed = new;
        }
    }

    /// Fetches the entries of several keys into the processor's cache, before they are changed one by one: such short
    /// look-ups overlap while they wait for memory.
    pub(in crate::core) fn fetch(&self, keys: impl Iterator<Item = (u128, KeyEntry)>) {
        let found = keys.filter(|&(key, filed)| self.0.find(hash(key), |&other| other == filed).is_some());
        std::hint::black_box(found.count());
    }
}
