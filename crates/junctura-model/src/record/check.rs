//! The server's side: are these bytes a canonical record of this schema? Asked of every offer that arrives.

use super::fill::{bits, check_allowed};
use super::{CheckedRecord, ProvenBeginning, RecordEntry, RecordRef, RecordTexts, raw_items};
use crate::error::{Code, Error, Result};
use crate::limits::{ATTRIBUTES_MAX, KEY_BYTES_MAX, LIST_BYTES_MAX, RECORD_BYTES_MAX, VALUE_BYTES_MAX};
use crate::schema::{AttrId, Attribute, AttributeBits, Schema, is_name};
use crate::text::{quote_into, unquote};
use crate::value::{Given, ShownValue, Type, writes};

impl Schema {
    /// Proves that the bytes are what [`Schema::record`] writes for some attributes: entries in order, every value
    /// canonical and allowed, nothing missing, all limits kept. Allocates only for an error, or a list with escapes.
    ///
    /// # Errors
    /// `Corrupt` where the bytes are no entries, otherwise as [`Schema::record`]; the position is that of the entry.
    pub fn check<'a>(&self, bytes: &'a [u8]) -> Result<RecordRef<'a>> {
        self.check_without_proof(bytes, self.required())
    }

    /// Proves that the bytes are what [`Schema::partial_record`] writes for some attributes.
    ///
    /// # Errors
    /// Those of [`Schema::check`], except for missing attributes.
    pub fn check_partial<'a>(&self, bytes: &'a [u8]) -> Result<RecordRef<'a>> {
        self.check_without_proof(bytes, 0)
    }

    fn check_without_proof<'a>(&self, bytes: &'a [u8], required: AttributeBits) -> Result<RecordRef<'a>> {
        let nothing = ProvenBeginning::default();
        self.check_entries(bytes, required, nothing, |_| ())
            .map(|checked| checked.record)
    }

    /// Checks a record whose beginning is proven. `note` gets each longer beginning of declared attributes that is.
    pub(super) fn check_entries<'a>(
        &self,
        bytes: &'a [u8],
        required: AttributeBits,
        proven: ProvenBeginning,
        mut note: impl FnMut(ProvenBeginning),
    ) -> Result<CheckedRecord<'a>> {
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(Error::new(
                Code::TooLarge,
                "record",
                format!("more than {RECORD_BYTES_MAX} bytes"),
            ));
        }
        let mut proven = proven;
        let mut rest = &bytes[proven.end..];
        let texts = RecordTexts::of(rest);
        let mut open = OpenSeen { last: &[], count: 0 };
        while !rest.is_empty() {
            let position = bytes.len() - rest.len();
            let (entry, after) = RecordEntry::split(rest).ok_or_else(|| corrupt("an entry is cut off").at(position))?;
            rest = after;
            if entry.id == AttrId::OPEN {
                open.check(self, &entry).map_err(|error| error.at(position))?;
                continue;
            }
            let is_sorted = open.count == 0 && proven.seen >> (entry.id.0 & 127) == 0;
            self.check_declared(&entry, texts, is_sorted)
                .map_err(|error| error.at(position))?;
            proven.end = bytes.len() - rest.len();
            proven.seen |= 1 << entry.id.0;
            if entry.id.index() < self.key_len() {
                proven.key_end = proven.end;
            }
            if entry.id.index() < self.level_ends()[0] {
                proven.level_end = proven.end;
            }
            note(proven);
        }
        self.check_whole(proven.seen, required, open.count, &bytes[..proven.key_end])?;
        Ok(CheckedRecord {
            record: RecordRef::trusted(bytes),
            key_bytes: &bytes[..proven.key_end],
            first_level_bytes: &bytes[..proven.level_end],
        })
    }

    fn check_declared<'a>(&self, entry: &RecordEntry<'a>, texts: RecordTexts<'a>, is_sorted: bool) -> Result<()> {
        let attribute = self
            .attributes()
            .get(entry.id.index())
            .ok_or_else(|| corrupt("no such attribute"))?;
        if !is_sorted {
            return Err(corrupt("the entries are not sorted"));
        }
        let text = texts.of_entry(entry).ok_or_else(|| corrupt("a value is not UTF-8"))?;
        if attribute.kind.list {
            check_list(attribute, text)
        } else {
            check_scalar(attribute, text)
        }
    }

    fn check_whole(&self, seen: AttributeBits, required: AttributeBits, open: usize, key_bytes: &[u8]) -> Result<()> {
        if let Some(missing) = bits(required & !seen).next() {
            return Err(Error::new(
                Code::SchemaMismatch,
                &self.attribute(missing).name,
                "is missing",
            ));
        }
        if seen.count_ones() as usize + open > ATTRIBUTES_MAX {
            let why = format!("more than {ATTRIBUTES_MAX} attributes");
            return Err(Error::new(Code::LimitExceeded, "attributes", why));
        }
        if self.is_key_too_long(key_bytes) {
            return Err(Error::new(
                Code::TooLarge,
                "key",
                format!("more than {KEY_BYTES_MAX} bytes"),
            ));
        }
        Ok(())
    }
}

/// The undeclared attributes so far.
struct OpenSeen<'a> {
    last: &'a [u8],
    count: usize,
}

impl<'a> OpenSeen<'a> {
    fn check(&mut self, schema: &Schema, entry: &RecordEntry<'a>) -> Result<()> {
        if !schema.is_open() {
            return Err(Error::new(
                Code::SchemaMismatch,
                schema.name(),
                "the schema allows no undeclared attributes",
            ));
        }
        let name = std::str::from_utf8(entry.name).map_err(|_| corrupt("a name is not UTF-8"))?;
        if !is_name(name) || schema.find(name).is_some() {
            return Err(corrupt("not the name of an undeclared attribute"));
        }
        // No name is empty, so the first name is greater than the initial value.
        if entry.name <= self.last {
            return Err(corrupt("the names are not sorted"));
        }
        if std::str::from_utf8(entry.text).is_err() {
            return Err(corrupt("a value is not UTF-8"));
        }
        if entry.text.len() > VALUE_BYTES_MAX {
            return Err(Error::new(
                Code::TooLarge,
                name,
                format!("more than {VALUE_BYTES_MAX} bytes"),
            ));
        }
        self.last = entry.name;
        self.count += 1;
        Ok(())
    }
}

fn check_scalar(attribute: &Attribute, text: &str) -> Result<()> {
    if text.len() > VALUE_BYTES_MAX {
        return Err(Error::new(
            Code::TooLarge,
            &attribute.name,
            format!("more than {VALUE_BYTES_MAX} bytes"),
        ));
    }
    if !attribute.kind.scalar.is_canonical(text) {
        return Err(not_canonical(attribute, text));
    }
    if attribute.is_restricted() {
        check_allowed(attribute, text)
    } else {
        Ok(())
    }
}

fn check_list(attribute: &Attribute, text: &str) -> Result<()> {
    if text.len() > LIST_BYTES_MAX {
        return Err(Error::new(
            Code::TooLarge,
            &attribute.name,
            format!("more than {LIST_BYTES_MAX} bytes"),
        ));
    }
    // The text after the last `/` is an item, too: an empty one, which is not canonical.
    raw_items(text).try_for_each(|item| {
        if attribute.kind.scalar != Type::String || !item.starts_with('"') {
            let bare = attribute.kind.scalar != Type::String || writes(item, |out| quote_into(item, out));
            return if bare {
                check_scalar(attribute, item)
            } else {
                Err(not_canonical(attribute, item))
            };
        }
        match unquote(item) {
            Ok((text, len)) if len == item.len() && writes(item, |out| quote_into(&text, out)) => {
                check_scalar(attribute, &text)
            }
            _ => Err(not_canonical(attribute, item)),
        }
    })
}

#[cold]
fn corrupt(why: &str) -> Error {
    Error::new(Code::Corrupt, "record", why)
}

#[cold]
fn not_canonical(attribute: &Attribute, text: &str) -> Error {
    let why = format!("{} is no canonical {}", ShownValue(Given::Text(text)), attribute.kind);
    Error::new(Code::TypeMismatch, &attribute.name, why)
}
