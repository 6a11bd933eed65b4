//! The identity of an object as one text, `{class=od,…}{type=pf,…}{step=6,…}`, and the hash that indexes use instead.
//!
//! Equal key attributes give the same text, in every language; `docs/formats/key.md` has the rules and golden vectors.
//! Keys that are written by hand may deviate from the canonical form: [`Schema::parse_key`] accepts aliases, any order
//! within a level, blanks around names and values, and any spelling of a value, and returns the same record as for the
//! canonical text.

use std::borrow::Cow;
use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Code, Error, Result};
use crate::limits::{ATTRIBUTES_MAX, KEY_BYTES_MAX};
use crate::record::{Record, RecordEntry, RecordRef, text_of};
use crate::schema::{AttrId, LEVELS, Schema};
use crate::slip::nearest;
use crate::text::{is_bare, is_bare_byte, quote_into, unquote};
use crate::value::{Given, TextSink};

/// The name of the hash function; part of the hashed data.
pub const HASH_NAME: &str = "xxh3-128/1";

/// A hash that indexes use instead of a key's text.
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
        self.append_key(record, 3, out);
    }

    /// Appends the canonical text of the key's first level.
    pub fn dataset_of(&self, record: RecordRef<'_>, out: &mut String) {
        self.append_key(record, 1, out);
    }

    /// On bytes, so that UTF-8 is validated once for the whole and not for every value.
    fn append_key(&self, record: RecordRef<'_>, levels: usize, out: &mut String) {
        let mut bytes = std::mem::take(out).into_bytes();
        bytes.reserve(self.key_frame_len() + record.as_bytes().len());
        self.write_key(record, levels, &mut bytes);
        *out = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    }

    pub(crate) fn write_key(&self, record: RecordRef<'_>, levels: usize, out: &mut impl TextSink) {
        let mut rest = record.as_bytes();
        for &end in &self.level_ends()[..levels] {
            let mut is_first = true;
            while let Some((entry, after)) = RecordEntry::split(rest).filter(|(entry, _)| entry.id.index() < end) {
                out.put(self.key_frame(entry.id, is_first));
                if is_bare(entry.text) {
                    out.put_ascii_text(entry.text);
                } else {
                    quote_into(text_of(entry.text), out);
                }
                (rest, is_first) = (after, false);
            }
            out.put(if is_first { "{}" } else { "}" });
        }
    }

    /// Appends one value of a key with its name and prefix, as in the text: `{class=od` for the first value of its
    /// level, `,expver=0001` for others. A level ends with `}`, and an empty one is `{}`.
    ///
    /// # Panics
    /// If the attribute is not part of the key.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// let mars = Schema::builtin("mars").unwrap();
    /// let (class, expver) = (mars.find("class").unwrap(), mars.find("expver").unwrap());
    /// let mut text = String::new();
    /// mars.key_part(class, true, "od", &mut text);
    /// mars.key_part(expver, false, "0001", &mut text);
    /// assert_eq!(text, "{class=od,expver=0001");
    /// ```
    pub fn key_part(&self, id: AttrId, is_first: bool, value: &str, out: &mut String) {
        out.push_str(self.key_frame(id, is_first));
        if is_bare(value.as_bytes()) {
            out.push_str(value);
        } else {
            quote_into(value, out);
        }
    }

    /// Returns the hash of a key's canonical text: xxh3-128, seed 0, over the name of the hash, the name of the schema
    /// and the generation of its key, each terminated by a zero byte, and the text.
    #[must_use]
    pub fn key_hash(&self, key_text: &str) -> KeyHash {
        let prefix = self.hash_prefix();
        let mut short = [0; 512];
        let len = prefix.len() + key_text.len();
        match short.get_mut(..len) {
            Some(room) => {
                room[..prefix.len()].copy_from_slice(prefix);
                room[prefix.len()..].copy_from_slice(key_text.as_bytes());
                KeyHash(xxh3_128(room))
            }
            None => KeyHash(xxh3_128(&[prefix, key_text.as_bytes()].concat())),
        }
    }

    /// Parses the text of a key, canonical or written by hand, into a record of the key's attributes.
    ///
    /// # Errors
    /// `InvalidArgument`, with the position, for an invalid key; otherwise as [`Schema::record`].
    pub fn parse_key(&self, text: &str) -> Result<Record> {
        // A key that is written by hand may be longer, within limits.
        if text.len() > 8 * KEY_BYTES_MAX {
            return Err(Error::new(
                Code::TooLarge,
                "key",
                format!("more than {KEY_BYTES_MAX} bytes"),
            ));
        }
        let mut reader = KeyReader { text, at: 0 };
        let mut given: Vec<(&str, Cow<'_, str>)> = Vec::new();
        for (level, level_name) in LEVELS.into_iter().enumerate() {
            reader.level(|at, name, value| {
                let attribute = self.find(name).map(|id| self.attribute(id));
                if attribute.is_some_and(|attribute| attribute.level != Some(level)) {
                    return Err(
                        Error::new(Code::SchemaMismatch, name, format!("does not belong to {level_name}")).at(at),
                    );
                }
                if attribute.is_none() && self.is_open() {
                    let names = self.attributes()[..self.key_len()].iter().map(|one| one.name.as_str());
                    let meant = nearest(names, name).map_or_else(String::new, |near| format!("; did you mean {near}?"));
                    let cause = format!("is not an attribute of the key of schema {}{meant}", self.name());
                    return Err(Error::new(Code::SchemaMismatch, name, cause).at(at));
                }
                given.push((name, value));
                Ok(())
            })?;
        }
        reader.end()?;
        let mut bytes = Vec::new();
        self.record(
            given.iter().map(|(name, value)| (*name, Given::Text(value))),
            &mut bytes,
        )?;
        Ok(Record::trusted(bytes))
    }
}

/// Parses `{name=value,…}` from left to right.
struct KeyReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> KeyReader<'a> {
    fn level(&mut self, mut take: impl FnMut(usize, &'a str, Cow<'a, str>) -> Result<()>) -> Result<()> {
        self.expect(b'{')?;
        if self.follows(b'}') {
            return Ok(());
        }
        for _ in 0..=ATTRIBUTES_MAX {
            let (at, name) = self.word("the name of an attribute")?;
            self.expect(b'=')?;
            let value = self.value()?;
            take(at, name, value)?;
            if !self.follows(b',') {
                return self.expect(b'}');
            }
        }
        Err(Error::new(
            Code::LimitExceeded,
            "key",
            format!("more than {ATTRIBUTES_MAX} attributes"),
        ))
    }

    fn value(&mut self) -> Result<Cow<'a, str>> {
        self.blanks();
        if !self.text[self.at..].starts_with('"') {
            return self.word("a value").map(|(_, word)| Cow::Borrowed(word));
        }
        match unquote(&self.text[self.at..]) {
            Ok((value, len)) => {
                self.at += len;
                Ok(value)
            }
            Err(trouble) => Err(Error::new(Code::InvalidArgument, "key", trouble.why).at(self.at + trouble.at)),
        }
    }

    fn word(&mut self, what: &str) -> Result<(usize, &'a str)> {
        self.blanks();
        let rest = &self.text[self.at..];
        let len = rest.bytes().take_while(|&byte| is_bare_byte(byte)).count();
        if len == 0 {
            return Err(self.unexpected(what));
        }
        let at = self.at;
        self.at += len;
        Ok((at, &rest[..len]))
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.follows(byte) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("{:?}", char::from(byte))))
        }
    }

    fn follows(&mut self, byte: u8) -> bool {
        self.blanks();
        let follows = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(follows);
        follows
    }

    fn end(&mut self) -> Result<()> {
        self.blanks();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(self.unexpected("the end of the key"))
        }
    }

    fn blanks(&mut self) {
        let bytes = &self.text.as_bytes()[self.at..];
        self.at += bytes.iter().take_while(|&&byte| byte == b' ').count();
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> Error {
        let found = match self.text[self.at..].chars().next() {
            Some(c) => format!("{c:?}"),
            None => "the end".to_owned(),
        };
        Error::new(
            Code::InvalidArgument,
            "key",
            format!("expected {expected}, found {found}"),
        )
        .at(self.at)
    }
}

#[cfg(test)]
mod tests;
