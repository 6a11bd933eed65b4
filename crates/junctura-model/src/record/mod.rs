//! An object's attributes as bytes that travel as they are: checked and made canonical once, by the producer, proved again by
//! the server, and never copied into another form.
//!
//! ```text
//! record  := entry*                 sorted by id; undeclared attributes of an open schema last, by name
//! entry   := id u8 │ len u16 LE │ canonical text
//!          | 0xff  │ name_len u8 │ name │ len u16 LE │ text        undeclared, always a string
//!
//!   00 02 00 'o' 'd'   01 04 00 '0' '0' '0' '1'   ..   16 01 00 't'   26 05 00 'f' 'i' 'r' 's' 't'
//!   └─ class=od ────┘  └─ expver=0001 ──────────┘      └ param=t ──┘  └─ outside the key ────────┘
//!   └──────────────────── the key: ids below key_len, a prefix ────┘
//! ```
//!
//! [`Schema::record`] makes a record from what a user gave, [`Schema::check`] proves that bytes are one. Equal attributes give
//! equal bytes. A list's text is its items, quoted where needed, joined by `/`; the empty list is the empty text.

mod check;
mod checker;
mod fill;

use std::borrow::Cow;

use crate::schema::AttrId;
#[cfg(doc)]
use crate::schema::Schema;
use crate::text::unquote;
use checker::ProvenBeginning;
pub use checker::{CheckedRecord, RecordChecker};
pub(crate) use fill::check_allowed;

/// An object's attributes, checked and canonical, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordRef<'a> {
    bytes: &'a [u8],
}

/// An object's attributes, checked and canonical, owned.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Record {
    bytes: Vec<u8>,
}

impl Record {
    /// Bytes that [`Schema::record`] wrote or [`Schema::check`] proved.
    #[must_use]
    pub fn trusted(bytes: Vec<u8>) -> Record {
        Record { bytes }
    }

    /// Borrowed.
    #[must_use]
    pub fn as_ref(&self) -> RecordRef<'_> {
        RecordRef { bytes: &self.bytes }
    }

    /// All bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<'a> RecordRef<'a> {
    /// Bytes that were checked before. Others give wrong answers here, but nothing worse.
    #[must_use]
    pub fn trusted(bytes: &'a [u8]) -> RecordRef<'a> {
        RecordRef { bytes }
    }

    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_owned(self) -> Record {
        Record {
            bytes: self.bytes.to_vec(),
        }
    }

    /// The canonical text of a declared attribute, where the object has it.
    #[must_use]
    pub fn get(self, id: AttrId) -> Option<&'a str> {
        self.bytes_of(id).map(text_of)
    }

    /// The same, not looked at as text.
    pub(crate) fn bytes_of(self, id: AttrId) -> Option<&'a [u8]> {
        let entry = self.entries().find(|entry| entry.id >= id)?;
        (entry.id == id && id != AttrId::OPEN).then_some(entry.text)
    }

    /// The value of an undeclared attribute of an open schema, where the object has it.
    #[must_use]
    pub fn get_open(self, name: &str) -> Option<&'a str> {
        let entry = self
            .entries()
            .find(|entry| entry.id == AttrId::OPEN && entry.name == name.as_bytes())?;
        Some(text_of(entry.text))
    }

    /// Each attribute in the order of the bytes: its id, its name where it is undeclared, its canonical text.
    pub fn iter(self) -> impl Iterator<Item = (AttrId, Option<&'a str>, &'a str)> {
        let texts = RecordTexts::of(self.bytes);
        self.entries().map(move |entry| {
            (
                entry.id,
                (entry.id == AttrId::OPEN).then(|| text_of(entry.name)),
                texts.of_entry(&entry).unwrap_or_default(),
            )
        })
    }

    /// The bytes of the key's attributes, given how many the schema's key has.
    #[must_use]
    pub fn key_bytes(self, key_len: usize) -> &'a [u8] {
        let mut rest = self.bytes;
        while let Some((entry, after)) = RecordEntry::split(rest) {
            if entry.id.index() >= key_len {
                break;
            }
            rest = after;
        }
        &self.bytes[..self.bytes.len() - rest.len()]
    }

    pub(crate) fn entries(self) -> RecordEntries<'a> {
        RecordEntries(self.bytes)
    }

    /// All bytes.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// Proved to be UTF-8 when the record was checked.
pub(crate) fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// The texts within a record's bytes. A record is nearly always valid UTF-8 as a whole, including lengths, and one
/// validation is much cheaper than one for each value.
#[derive(Clone, Copy)]
struct RecordTexts<'a>(Option<&'a str>);

impl<'a> RecordTexts<'a> {
    fn of(bytes: &'a [u8]) -> RecordTexts<'a> {
        RecordTexts(std::str::from_utf8(bytes).ok())
    }

    /// The text of an entry of these bytes, if it is one.
    fn of_entry(self, entry: &RecordEntry<'a>) -> Option<&'a str> {
        let within = |whole: &'a str| {
            let end = whole.len().checked_sub(entry.behind)?;
            whole.get(end.checked_sub(entry.text.len())?..end)
        };
        self.0.and_then(within).or_else(|| std::str::from_utf8(entry.text).ok())
    }
}

/// One attribute, not looked into.
pub(crate) struct RecordEntry<'a> {
    pub(crate) id: AttrId,
    /// Only of undeclared attributes.
    pub(crate) name: &'a [u8],
    pub(crate) text: &'a [u8],
    /// The number of bytes after the entry.
    behind: usize,
}

impl<'a> RecordEntry<'a> {
    /// The entry at the front, and what follows it.
    pub(crate) fn split(bytes: &'a [u8]) -> Option<(RecordEntry<'a>, &'a [u8])> {
        let (&id, mut rest) = bytes.split_first()?;
        let mut name = &rest[..0];
        if id == AttrId::OPEN.0 {
            let (&len, after) = rest.split_first()?;
            (name, rest) = after.split_at_checked(usize::from(len))?;
        }
        let (len, rest) = rest.split_first_chunk::<2>()?;
        let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
        Some((
            RecordEntry {
                id: AttrId(id),
                name,
                text,
                behind: rest.len(),
            },
            rest,
        ))
    }
}

/// The entries of a record that was checked; ends at bytes that are none.
pub(crate) struct RecordEntries<'a>(&'a [u8]);

impl<'a> Iterator for RecordEntries<'a> {
    type Item = RecordEntry<'a>;

    fn next(&mut self) -> Option<RecordEntry<'a>> {
        let (entry, rest) = RecordEntry::split(self.0)?;
        self.0 = rest;
        Some(entry)
    }
}

/// The items of a list's canonical text.
pub fn list_items(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    // An item that cannot be unquoted is used as it is: only unchecked texts have such items.
    raw_items(text).map(|item| match unquote(item) {
        Ok((text, len)) if len == item.len() => text,
        _ => Cow::Borrowed(item),
    })
}

/// The items of a list's text as they are written.
fn raw_items(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = (!text.is_empty()).then_some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let quoted = unquote(text).map_or(0, |(_, len)| len);
        let end = text[quoted..].find('/').map(|at| quoted + at);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

#[cfg(test)]
mod tests;
