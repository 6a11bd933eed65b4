//! From what a user gave to a record: the way of every offer, so one pass, straight into the caller's buffer.

use super::RecordRef;
use crate::error::{Code, Error, Result};
use crate::limits::{ATTRIBUTES_MAX, KEY_BYTES_MAX, LIST_BYTES_MAX, RECORD_BYTES_MAX, VALUE_BYTES_MAX};
use crate::schema::{AttrId, Attribute, AttributeBits, Schema, is_name};
use crate::slip::nearest;
use crate::text::{is_reserved, quote_into};
use crate::value::{CountingSink, Given, ShownValue, Type};

impl Schema {
    /// Writes the record of what was given into `out`, which is cleared first and left empty on an error. Resolves aliases,
    /// fills in the defaults of the key, and checks types, allowed values, ranges, and that nothing is missing or there
    /// twice. Allocates nothing where `out` has room (undeclared attributes of an open schema apart).
    ///
    /// # Errors
    /// `TypeMismatch`, `SchemaMismatch`, `TooLarge` and `LimitExceeded` name the attribute.
    pub fn record<'a>(&self, given: impl IntoIterator<Item = (&'a str, Given<'a>)>, out: &mut Vec<u8>) -> Result<()> {
        self.write(given, out, true)
    }

    /// As [`Schema::record`], of something that is no object: any attribute may be missing, and no default is filled in.
    ///
    /// # Errors
    /// Those of [`Schema::record`], except for missing attributes.
    pub fn partial_record<'a>(
        &self,
        given: impl IntoIterator<Item = (&'a str, Given<'a>)>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.write(given, out, false)
    }

    fn write<'a>(
        &self,
        given: impl IntoIterator<Item = (&'a str, Given<'a>)>,
        out: &mut Vec<u8>,
        whole: bool,
    ) -> Result<()> {
        out.clear();
        let mut filling = RecordFilling {
            schema: self,
            out,
            seen: 0,
            sorted: true,
            starts: [0; ATTRIBUTES_MAX],
            open: Vec::new(),
        };
        let done = filling.take_all(given).and_then(|()| filling.finish(whole));
        if done.is_err() {
            out.clear();
        }
        done
    }

    /// Returns whether the key's text of entries of this size may exceed its limit.
    fn may_key_be_too_long(&self, bytes: usize) -> bool {
        // A character control of two bytes is quoted as six, so no text becomes more than six times as long.
        self.key_frame_len() + 6 * bytes > KEY_BYTES_MAX
    }

    /// Returns whether the key's text of these entries exceeds its limit.
    pub(super) fn is_key_too_long(&self, key_bytes: &[u8]) -> bool {
        if !self.may_key_be_too_long(key_bytes.len()) {
            return false;
        }
        let mut count = CountingSink::default();
        self.write_key(RecordRef::trusted(key_bytes), 3, &mut count);
        count.0 > KEY_BYTES_MAX
    }
}

/// A record in the making.
struct RecordFilling<'s, 'a> {
    schema: &'s Schema,
    out: &'s mut Vec<u8>,
    /// One bit for each declared attribute that is there.
    seen: AttributeBits,
    /// Whether the entries are in the order of their IDs so far.
    sorted: bool,
    /// The start of the entry of each attribute in `seen`.
    starts: [u32; ATTRIBUTES_MAX],
    /// Undeclared attributes.
    open: Vec<(&'a str, &'a str)>,
}

impl<'a> RecordFilling<'_, 'a> {
    fn take_all(&mut self, given: impl IntoIterator<Item = (&'a str, Given<'a>)>) -> Result<()> {
        for (count, (name, value)) in given.into_iter().enumerate() {
            if count == ATTRIBUTES_MAX {
                let why = format!("more than {ATTRIBUTES_MAX} attributes");
                return Err(Error::new(Code::LimitExceeded, "attributes", why));
            }
            match self.schema.find(name) {
                Some(id) if self.seen >> id.0 & 1 == 1 => return Err(twice(&self.schema.attribute(id).name)),
                Some(id) => self.take(id, value)?,
                None if self.schema.is_open() => self.take_open(name, value)?,
                None => return Err(self.unknown(name)),
            }
        }
        Ok(())
    }

    fn take(&mut self, id: AttrId, value: Given<'_>) -> Result<()> {
        let start = self.begin(id);
        let attribute = self.schema.attribute(id);
        match value {
            Given::List(items) if attribute.kind.list => self.put_list(attribute, items)?,
            value if attribute.kind.list => return Err(type_mismatch(attribute, not_a_list(attribute, value))),
            value => self.put_scalar(attribute, value, start + 3)?,
        }
        self.end(start);
        self.room_left(&attribute.name)
    }

    /// Writes the head of an entry.
    fn begin(&mut self, id: AttrId) -> usize {
        let start = self.out.len();
        self.starts[id.index()] = start as u32;
        self.sorted &= self.seen >> id.0 == 0;
        self.seen |= 1 << id.0;
        self.out.extend_from_slice(&[id.0, 0, 0]);
        start
    }

    /// Writes the length into the head of an entry; texts are shorter than 64 KiB.
    fn end(&mut self, start: usize) {
        let len = (self.out.len() - start - 3) as u16;
        self.out[start + 1..start + 3].copy_from_slice(&len.to_le_bytes());
    }

    fn put_scalar(&mut self, attribute: &Attribute, value: Given<'_>, text_start: usize) -> Result<()> {
        if let (Type::String, Given::Text(text)) = (attribute.kind.scalar, value) {
            check_len(&attribute.name, text.len(), VALUE_BYTES_MAX)?;
        }
        attribute
            .kind
            .scalar
            .canonical_into(value, self.out)
            .map_err(|why| type_mismatch(attribute, why))?;
        if attribute.is_restricted() {
            let text = super::text_of(&self.out[text_start..]);
            check_allowed(attribute, text)?;
        }
        Ok(())
    }

    fn put_list(&mut self, attribute: &Attribute, items: &[Given<'_>]) -> Result<()> {
        let list_start = self.out.len();
        for (at, &item) in items.iter().enumerate() {
            if at > 0 {
                self.out.push(b'/');
            }
            match item {
                Given::Text(text) if attribute.kind.scalar == Type::String => {
                    check_len(&attribute.name, text.len(), VALUE_BYTES_MAX)?;
                    check_allowed(attribute, text)?;
                    quote_into(text, self.out);
                }
                // The canonical texts of all other types are bare.
                item => self.put_scalar(attribute, item, self.out.len())?,
            }
            check_len(&attribute.name, self.out.len() - list_start, LIST_BYTES_MAX)?;
        }
        Ok(())
    }

    fn take_open(&mut self, name: &'a str, value: Given<'a>) -> Result<()> {
        if !is_name(name) {
            let why = if is_reserved(name) {
                "this word is reserved for selectors; choose another name"
            } else {
                "a name has up to 64 letters, digits and _.:-, the first a letter or _"
            };
            return Err(Error::new(Code::SchemaMismatch, name, why));
        }
        let Given::Text(text) = value else {
            let why = format!(
                "{} is not a string; the schema {} does not declare this attribute: pass it as text, or declare it in a schema of your own",
                ShownValue(value),
                self.schema.name()
            );
            return Err(Error::new(Code::TypeMismatch, name, why));
        };
        check_len(name, text.len(), VALUE_BYTES_MAX)?;
        self.open.push((name, text));
        Ok(())
    }

    fn finish(&mut self, whole: bool) -> Result<()> {
        if whole {
            self.complete()?;
        }
        self.arrange()
    }

    /// Fills in the defaults, and sees whether something is missing.
    fn complete(&mut self) -> Result<()> {
        self.put_defaults();
        let missing = self.schema.required() & !self.seen;
        if missing == 0 {
            Ok(())
        } else {
            Err(self.missing(missing))
        }
    }

    #[cold]
    fn missing(&self, missing: AttributeBits) -> Error {
        let mut names = bits(missing).map(|id| self.schema.attribute(id).name.as_str());
        let first = names.next().unwrap_or_default();
        let others: Vec<&str> = names.collect();
        let (also, them) = match others.join(", ") {
            none if none.is_empty() => (String::new(), "it"),
            others => (format!(", as are {others}"), "them"),
        };
        let given = self.open.iter().map(|(name, _)| *name);
        let meant = nearest(given, first).map_or_else(String::new, |given| {
            format!("; {given} is given: did you mean {first}?")
        });
        let why = format!(
            "is missing{also}; every object of the schema {} needs {them}{meant}",
            self.schema.name()
        );
        Error::new(Code::SchemaMismatch, first, why)
    }

    fn arrange(&mut self) -> Result<()> {
        if !self.sorted {
            self.sort();
        }
        let schema = self.schema;
        // The key is a part of what there is, which is nearly always short enough as a whole.
        if schema.may_key_be_too_long(self.out.len())
            && schema.is_key_too_long(RecordRef::trusted(self.out).key_bytes(schema.key_len()))
        {
            return Err(Error::new(
                Code::TooLarge,
                "key",
                format!("more than {KEY_BYTES_MAX} bytes"),
            ));
        }
        if !self.open.is_empty() {
            self.put_open()?;
        }
        self.room_left("record")
    }

    fn put_defaults(&mut self) {
        for id in bits(self.schema.defaulted() & !self.seen) {
            let start = self.begin(id);
            self.out.extend_from_slice(
                self.schema
                    .attribute(id)
                    .default
                    .as_deref()
                    .unwrap_or_default()
                    .as_bytes(),
            );
            self.end(start);
        }
    }

    /// Brings the entries into the order of their ids: copies them behind themselves in order, then drops the front.
    fn sort(&mut self) {
        let unsorted = self.out.len();
        for id in bits(self.seen) {
            let start = self.starts[id.index()] as usize;
            let len = usize::from(u16::from_le_bytes([self.out[start + 1], self.out[start + 2]]));
            self.out.extend_from_within(start..start + 3 + len);
        }
        self.out.copy_within(unsorted.., 0);
        self.out.truncate(unsorted);
    }

    fn put_open(&mut self) -> Result<()> {
        self.open.sort_unstable_by_key(|&(name, _)| name);
        if let Some(pair) = self.open.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(twice(pair[0].0));
        }
        // Defaults may add to the given attributes.
        let count = self.seen.count_ones() as usize + self.open.len();
        if count > ATTRIBUTES_MAX {
            let why = format!("more than {ATTRIBUTES_MAX} attributes");
            return Err(Error::new(Code::LimitExceeded, "attributes", why));
        }
        for &(name, text) in &self.open {
            self.out.extend_from_slice(&[AttrId::OPEN.0, name.len() as u8]);
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            self.out.extend_from_slice(text.as_bytes());
        }
        Ok(())
    }

    fn room_left(&self, subject: &str) -> Result<()> {
        if self.out.len() > RECORD_BYTES_MAX {
            return Err(Error::new(
                Code::TooLarge,
                subject,
                format!("more than {RECORD_BYTES_MAX} bytes of attributes"),
            ));
        }
        Ok(())
    }

    #[cold]
    fn unknown(&self, name: &str) -> Error {
        let nearest = self
            .schema
            .nearest_name(name)
            .map(|near| format!(" (did you mean {near}?)"));
        let why = format!(
            "the schema {} has no such attribute{}",
            self.schema.name(),
            nearest.unwrap_or_default()
        );
        let shown = name
            .char_indices()
            .nth(crate::limits::NAME_BYTES_MAX)
            .map_or(name, |(end, _)| &name[..end]);
        Error::new(Code::SchemaMismatch, shown, why)
    }
}

/// The attributes whose bits are set, in order.
pub(super) fn bits(mut set: AttributeBits) -> impl Iterator<Item = AttrId> {
    std::iter::from_fn(move || {
        let first = (set != 0).then(|| AttrId(set.trailing_zeros() as u8));
        set &= set.wrapping_sub(1);
        first
    })
}

fn check_len(subject: &str, len: usize, most: usize) -> Result<()> {
    if len > most {
        return Err(Error::new(
            Code::TooLarge,
            subject,
            format!("{len} bytes, more than {most}"),
        ));
    }
    Ok(())
}

/// Returns whether the allowed values and the range include this canonical value.
pub(crate) fn check_allowed(attribute: &Attribute, canonical: &str) -> Result<()> {
    if attribute.allows(canonical) {
        return Ok(());
    }
    let allowed = match &attribute.range {
        Some((smallest, largest)) => format!("{smallest} to {largest}"),
        None => attribute
            .values
            .iter()
            .take(20)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let near = nearest(attribute.values.iter().map(String::as_str), canonical);
    let meant = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let why = format!(
        "{} is not allowed (the schema allows {allowed}){meant}",
        ShownValue(Given::Text(canonical))
    );
    Err(Error::new(Code::SchemaMismatch, &attribute.name, why))
}

#[cold]
fn type_mismatch(attribute: &Attribute, why: String) -> Error {
    Error::new(Code::TypeMismatch, &attribute.name, why)
}

#[cold]
fn not_a_list(attribute: &Attribute, value: Given<'_>) -> String {
    format!("{} is no {}", ShownValue(value), attribute.kind)
}

#[cold]
fn twice(name: &str) -> Error {
    Error::new(Code::SchemaMismatch, name, "is given twice")
}
