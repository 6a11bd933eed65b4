//! Skeleton; being filled in.

use std::borrow::Cow;

use crate::error::Result;
use crate::schema::{AttrId, Schema};
use crate::value::Given;

/// An object's attributes, checked and canonical, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    bytes: &'a [u8],
}

/// An object's attributes, checked and canonical, owned.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Record {
    bytes: Vec<u8>,
}

impl Record {
    /// Borrowed.
    #[must_use]
    pub fn as_ref(&self) -> RecordRef<'_> {
        RecordRef { bytes: &self.bytes }
    }

    /// Its bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<'a> RecordRef<'a> {
    /// Bytes that were checked before.
    #[must_use]
    pub fn trusted(bytes: &'a [u8]) -> RecordRef<'a> {
        RecordRef { bytes }
    }

    /// As an owned record.
    #[must_use]
    pub fn to_owned(self) -> Record {
        Record { bytes: self.bytes.to_vec() }
    }

    /// The canonical text of an attribute.
    #[must_use]
    pub fn get(self, id: AttrId) -> Option<&'a str> {
        let _ = id;
        None
    }

    /// The value of an undeclared attribute of an open schema.
    #[must_use]
    pub fn get_open(self, name: &str) -> Option<&'a str> {
        let _ = name;
        None
    }

    /// (id, name where undeclared, canonical text), in order.
    pub fn iter(self) -> impl Iterator<Item = (AttrId, Option<&'a str>, &'a str)> {
        std::iter::empty()
    }

    /// The bytes of the key's attributes.
    #[must_use]
    pub fn key_bytes(self, key_len: usize) -> &'a [u8] {
        let _ = key_len;
        self.bytes
    }

    /// All bytes.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// The items of a list's canonical text.
pub fn list_items(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let _ = text;
    std::iter::empty()
}

impl Schema {
    /// Writes the record of what was given into `out` (cleared first).
    pub fn record<'a>(&self, given: impl IntoIterator<Item = (&'a str, Given<'a>)>, out: &mut Vec<u8>) -> Result<()> {
        let _ = (given, out);
        Ok(())
    }

    /// Proves that the bytes are a canonical record of this schema.
    pub fn check<'a>(&self, bytes: &'a [u8]) -> Result<RecordRef<'a>> {
        Ok(RecordRef { bytes })
    }
}
