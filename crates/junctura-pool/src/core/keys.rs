//! Which object, or which tombstone, a key stands for.
//!
//! Every offer asks for a key that is most likely new, and every object that goes leaves a tombstone and makes an old one
//! go: four visits at random places of a table of all that is remembered. So the table is kept small enough for the
//! processor's cache: it holds where a key's owner lies, and asks the owner for the key.

use hashbrown::HashTable;
use slab::Slab;

use super::Core;
use super::object::Object;
use super::tombstone::Tombstones;

/// What a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filed {
    /// The newest object of the key, which is visible.
    Object(u32),
    /// It is gone.
    Tombstone(u32),
}

/// See the module's page.
#[derive(Default)]
pub(super) struct Keys(HashTable<Filed>);

impl Filed {
    fn key(self, objects: &Slab<Object>, tombstones: &Tombstones) -> u128 {
        match self {
            Self::Object(id) => objects[id as usize].key,
            Self::Tombstone(id) => tombstones.get(id).key,
        }
    }
}

/// Keys are hashes already.
fn hash(key: u128) -> u64 {
    key as u64
}

impl Keys {
    /// The key is that of `new` instead of `old`.
    pub(super) fn replace(&mut self, key: u128, old: Filed, new: Filed) {
        if let Some(filed) = self.0.find_mut(hash(key), |&filed| filed == old) {
            *filed = new;
        }
    }

    /// Brings the places of several keys into the processor's cache, where they are about to be changed one by one: such short
    /// look-ups overlap while they wait for memory.
    pub(super) fn fetch(&self, keys: impl Iterator<Item = (u128, Filed)>) {
        let found = keys.filter(|&(key, filed)| self.0.find(hash(key), |&other| other == filed).is_some());
        std::hint::black_box(found.count());
    }

    /// The key stands for nothing any more, if it stood for `filed`.
    pub(super) fn remove(&mut self, key: u128, filed: Filed) {
        if let Ok(entry) = self.0.find_entry(hash(key), |&other| other == filed) {
            entry.remove();
        }
    }
}

impl Core {
    /// What a key stands for.
    pub(super) fn find_key(&self, key: u128) -> Option<Filed> {
        let is_it = |filed: &Filed| filed.key(&self.objects, &self.tombstones) == key;
        self.keys.0.find(hash(key), is_it).copied()
    }

    /// Files a new object under its key, which stands for nothing.
    pub(super) fn file_key(&mut self, key: u128, id: u32) {
        self.file(key, Filed::Object(id));
    }

    pub(super) fn file(&mut self, key: u128, filed: Filed) {
        let hash_of = |filed: &Filed| hash(filed.key(&self.objects, &self.tombstones));
        self.keys.0.insert_unique(hash(key), filed, hash_of);
    }
}
