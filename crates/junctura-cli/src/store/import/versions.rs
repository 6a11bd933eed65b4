//! All versions of each field, in the order of their archiving.
//!
//! FDB lists the newest version of a key before those that it masks; in a store the version that was archived last masks the others. So all
//! versions are listed first, key by key, and reversed.

use std::collections::HashMap;

use junctura::{Code, Error, Result};
use junctura_model::{KeyHash, Record};

use super::fields::{FdbField, FieldLocation};

/// Length and checksum.
pub(super) type Content = (u64, u32);

/// A field in the store.
#[derive(Debug)]
pub(super) struct FieldState {
    /// Index of the store's schema.
    pub(super) schema: usize,
    pub(super) record: Record,
    pub(super) key: String,
    pub(super) hash: KeyHash,
}

/// All versions of one key.
#[derive(Debug)]
pub(super) struct OfKey {
    pub(super) found: FieldState,
    /// The key as FDB prints it.
    pub(super) name: String,
    pub(super) oldest_first: Vec<FieldLocation>,
}

/// The listing of FDB, newest first.
#[derive(Debug, Default)]
pub(super) struct ListedVersions {
    keys: Vec<OfKey>,
    places: HashMap<KeyHash, usize>,
}

impl ListedVersions {
    /// # Errors
    /// `AlreadyExists` if two keys of FDB are the same key here.
    pub(super) fn add(&mut self, found: FieldState, field: FdbField) -> Result<()> {
        let name = field.name();
        match self.places.get(&found.hash) {
            Some(&place) if self.keys[place].name != name => Err(two_in_one(&name, &found.key)),
            Some(&place) => {
                self.keys[place].oldest_first.push(field.bytes);
                Ok(())
            }
            None => {
                self.places.insert(found.hash, self.keys.len());
                self.keys.push(OfKey {
                    found,
                    name,
                    oldest_first: vec![field.bytes],
                });
                Ok(())
            }
        }
    }

    pub(super) fn into_oldest_first(self) -> impl Iterator<Item = OfKey> {
        self.keys.into_iter().map(|mut key| {
            key.oldest_first.reverse();
            key
        })
    }
}

pub(super) fn two_in_one(name: &str, key: &str) -> Error {
    let cause = format!("FDB has another field that is {key} here");
    Error::new(Code::AlreadyExists, name, cause)
}

/// Returns how many of FDB's versions need no copy: the store has them all in their order, and the newest versions are
/// equal. Both lists begin with the oldest.
pub(super) fn there(theirs: &[Content], ours: &[Content]) -> usize {
    let mut left = ours.iter();
    let there = theirs
        .iter()
        .take_while(|version| left.any(|one| one == *version))
        .count();
    let is_newest = theirs.last() == ours.last();
    if there == theirs.len() && !is_newest {
        return there.saturating_sub(1);
    }
    there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_store_has_in_this_order_is_not_copied_again() {
        let versions = |text: &str| -> Vec<Content> { text.bytes().map(|byte| (1, byte.into())).collect() };
        let there = |theirs: &str, ours: &str| there(&versions(theirs), &versions(ours));
        assert_eq!(there("abc", ""), 0);
        assert_eq!(there("abc", "abc"), 3);
        assert_eq!(there("abc", "ab"), 2);
        assert_eq!(there("aba", "ab"), 2);
        assert_eq!(there("aa", "a"), 1);
        assert_eq!(there("a", "aba"), 1, "the newest is the same");
        assert_eq!(there("ab", "aba"), 1, "ours is another one: theirs comes once more");
        assert_eq!(there("abc", "c"), 0, "older ones must not mask it");
        assert_eq!(there("bc", "abc"), 2, "FDB has purged one");
    }
}
