//! All versions of each field, in the order in which they have to come.
//!
//! FDB lists the newest version of a key before those that it masks; a store lets the one that was archived last mask the others. So all
//! is listed first, key by key, and turned round.

use std::collections::HashMap;

use junctura::{Code, Error, Result};
use junctura_model::{KeyHash, Record};

use super::fields::{FdbField, FieldLocation};

/// Length and checksum.
pub(super) type Content = (u64, u32);

/// What a field is in the store.
#[derive(Debug)]
pub(super) struct FieldState {
    /// Which of the store's schemas.
    pub(super) schema: usize,
    pub(super) record: Record,
    pub(super) key: String,
    pub(super) hash: KeyHash,
}

/// All versions of one key.
#[derive(Debug)]
pub(super) struct OfKey {
    pub(super) found: FieldState,
    /// As FDB prints it.
    pub(super) name: String,
    pub(super) oldest_first: Vec<FieldLocation>,
}

/// What FDB has told, newest first.
#[derive(Debug, Default)]
pub(super) struct ListedVersions {
    keys: Vec<OfKey>,
    places: HashMap<KeyHash, usize>,
}

impl ListedVersions {
    /// # Errors
    /// `AlreadyExists` where another key of FDB's is this one here.
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

/// How many of their versions need not be copied, so that ours have all of them in their order, and the newest of both is the same.
/// Both are oldest first.
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
