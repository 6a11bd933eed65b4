//! Splitting bytes into messages.
//!
//! Between messages there may be anything that is not `GRIB`: padding, bulletin headers, blanks. From a `GRIB` on the
//! header gives the length, `7777` must be at its end, and the sections must fill the bytes between.
//!
//! After a damaged message the iterator continues: it looks, from the byte after the damaged start, for the next whole and
//! valid message, so a `GRIB` inside packed values is not taken for one. A caller can also stop at the first fault.

use crate::error::{GribError, MessageFault};
use crate::fields::MessageFields;
use crate::header::edition1;
use crate::header::edition2;
use crate::keys::MessageKeys;
use crate::octets::unsigned;
use crate::sections::{self, SectionTable};
use crate::values::packed::{self, PackedValues};

/// The smallest message that has all sections it must have.
const LENGTH_MIN: u64 = 8 + 28 + 11 + 4;

/// How many times the bytes of a message its fields may take as messages of their own.
pub const SPLIT_MAX: u64 = 64;

/// An iterator over the messages in some bytes. Each item is a valid message or the fault of a damaged one.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    bytes: &'a [u8],
    at: usize,
    number: u64,
    damaged: bool,
}

impl<'a> Messages<'a> {
    /// Starts at the first byte; reads nothing yet.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Messages<'a> {
        Messages {
            bytes,
            at: 0,
            number: 0,
            damaged: false,
        }
    }

    fn at_mark(&self, start: usize) -> Result<Message<'a>, GribError> {
        let number = self.number + 1;
        let rest = self.bytes.get(start..).unwrap_or_default();
        Message::first_of(rest, number, start as u64)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, GribError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at + find_mark(self.bytes.get(self.at..)?)?;
            let found = self.at_mark(start);
            match &found {
                Ok(message) => self.at = start + message.bytes.len(),
                Err(_) => self.at = start + 4,
            }
            if found.is_err() && self.damaged {
                continue;
            }
            self.damaged = found.is_err();
            self.number += 1;
            return Some(found);
        }
    }
}

impl std::iter::FusedIterator for Messages<'_> {}

fn find_mark(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(b"GRIB") {
        return Some(0);
    }
    bytes.windows(4).position(|window| window == b"GRIB")
}

/// One sound message. Copying it copies no bytes.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    number: u64,
    offset: u64,
    bytes: &'a [u8],
    sections: SectionTable,
}

impl<'a> Message<'a> {
    /// The message that fills `bytes`, or that they begin with.
    pub fn new(bytes: &'a [u8]) -> Result<Message<'a>, GribError> {
        Message::first_of(bytes, 1, 0)
    }

    fn first_of(bytes: &'a [u8], number: u64, start: u64) -> Result<Message<'a>, GribError> {
        let fault = |(at, fault): (usize, MessageFault)| GribError {
            message: number,
            start,
            offset: start + at as u64,
            fault,
        };
        let length = announced_length(bytes).map_err(fault)?;
        let truncated = MessageFault::Truncated {
            needed: length,
            present: bytes.len() as u64,
        };
        let message = usize::try_from(length).ok().and_then(|length| bytes.get(..length));
        let message = message.ok_or_else(|| fault((4, truncated)))?;
        if !message.ends_with(b"7777") {
            return Err(fault((message.len() - 4, MessageFault::EndMark)));
        }
        let sections = sections::walk(message).map_err(fault)?;
        Ok(Message {
            number,
            offset: start,
            bytes: message,
            sections,
        })
    }

    /// Which message of its input this is, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The place of its first byte in the input.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The whole message, from `GRIB` to `7777`.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// 1 or 2.
    #[must_use]
    pub fn edition(&self) -> u8 {
        self.sections.edition
    }

    /// How many fields the message holds: more than 1 only in edition 2.
    #[must_use]
    pub fn fields(&self) -> u32 {
        self.sections.fields
    }

    /// Each field as a message of its own, with equal values.
    ///
    /// # Errors
    /// The messages would take more than [`SPLIT_MAX`] times the bytes of this one: a message that repeats short fields
    /// over a long section.
    pub fn split(&self) -> Result<MessageFields<'a>, GribError> {
        let fields = MessageFields::new(self.bytes);
        let (bytes, bytes_max) = (fields.clone().total(), SPLIT_MAX * self.bytes.len() as u64);
        if bytes > bytes_max {
            return Err(self.error((0, MessageFault::Split { bytes, bytes_max })));
        }
        Ok(fields)
    }

    /// Number and first octet, counted from 0, of each section of the first field.
    pub fn sections(&self) -> impl Iterator<Item = (u8, usize)> {
        let spans = (0_u8..).zip(self.sections.by_number);
        spans
            .filter(|(_, span)| span.end > span.start)
            .map(|(number, span)| (number, span.start))
    }

    /// Returns the keys of the header. A message of several fields gives those of its first field, as ecCodes does when its
    /// support of such messages is off (the default), and states their number in `fields`.
    ///
    /// The first call in a process reads the tables, which takes some milliseconds.
    pub fn keys(&self) -> Result<MessageKeys, GribError> {
        if self.sections.edition == 1 {
            return Ok(edition1::keys(self.bytes, &self.sections));
        }
        edition2::keys(self.bytes, &self.sections).map_err(|fault| self.error(fault))
    }

    /// How many values the first field has, compared with the bytes that there are: before a decoder is asked.
    ///
    /// # Errors
    /// What the message announces and does not have.
    pub fn packed(&self) -> Result<PackedValues, GribError> {
        packed::check(self.bytes, &self.sections).map_err(|fault| self.error(fault))
    }

    pub(crate) fn all_sections(&self) -> &SectionTable {
        &self.sections
    }

    fn error(&self, (at, fault): (usize, MessageFault)) -> GribError {
        GribError {
            message: self.number,
            start: self.offset,
            offset: self.offset + at as u64,
            fault,
        }
    }
}

fn announced_length(bytes: &[u8]) -> Result<u64, (usize, MessageFault)> {
    let present = bytes.len() as u64;
    let cut = |needed| (bytes.len(), MessageFault::Truncated { needed, present });
    let edition = *bytes.get(7).ok_or(cut(8))?;
    let (at, length) = match edition {
        1 => (4, length1(bytes).ok_or(cut(36))?),
        2 => (8, unsigned(bytes, 8, 8).ok_or(cut(16))?),
        _ => return Err((7, MessageFault::Edition(edition))),
    };
    if length < LENGTH_MIN {
        Err((at, MessageFault::Length(length)))
    } else {
        Ok(length)
    }
}

/// Three bytes hold the length up to 8 MiB. ECMWF writes longer messages with the highest bit set and the length in
/// units of 120 bytes; the data section's length then is how much too long that is.
fn length1(bytes: &[u8]) -> Option<u64> {
    let length = unsigned(bytes, 4, 3)?;
    if length & 0x80_0000 == 0 {
        return Some(length);
    }
    let flags = *bytes.get(15)?;
    let mut at = 8 + unsigned(bytes, 8, 3)? as usize;
    for flag in [0x80, 0x40] {
        if flags & flag != 0 {
            at += unsigned(bytes, at, 3)? as usize;
        }
    }
    let excess = unsigned(bytes, at, 3)?;
    Some(if excess < 120 {
        (length & 0x7f_ffff) * 120 + 4 - excess
    } else {
        length
    })
}
