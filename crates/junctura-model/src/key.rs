//! Skeleton; being filled in.

use std::fmt;

use crate::error::{Code, Error, Result};
use crate::record::{Record, RecordRef};
use crate::schema::Schema;

/// What indexes use in place of a key's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(pub u128);

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Schema {
    /// Appends the canonical text of the key.
    pub fn key_of(&self, record: RecordRef<'_>, out: &mut String) {
        let _ = (record, out);
    }

    /// Appends the canonical text of the key's first level.
    pub fn dataset_of(&self, record: RecordRef<'_>, out: &mut String) {
        let _ = (record, out);
    }

    /// The hash of a key's canonical text.
    #[must_use]
    pub fn key_hash(&self, key_text: &str) -> KeyHash {
        let _ = key_text;
        KeyHash(0)
    }

    /// Reads the text of a key.
    pub fn parse_key(&self, text: &str) -> Result<Record> {
        Err(Error::new(Code::Unsupported, text, ""))
    }
}
