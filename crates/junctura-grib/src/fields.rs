//! A message of several fields as messages of one field each.
//!
//! ```text
//!   GRIB 0 | 1 | 2 | 3 | 4 5 6 7 | 4 5 6 7 | 3 4 5 6 7 | 7777
//!                      └ field 1   └ field 2  └ field 3
//! ```
//! Each message has the sections that hold for its field: the last 2 and 3 before it, its own 4, 5 and 7, and its bitmap,
//! also where the field repeats the bitmap of a field before it. Values are not decoded: their octets stay as they are.

use crate::octets::unsigned;
use crate::sections::SectionSpan;

/// A section 6 that refers to the bitmap of a field before it has this indicator.
const BITMAP_BEFORE: u8 = 254;
const HEAD: usize = 16;

/// The fields of a message of edition 2, each as a message of its own.
#[derive(Clone, Debug)]
pub struct MessageFields<'a> {
    message: &'a [u8],
    at: usize,
    current: [SectionSpan; 8],
    bitmap: SectionSpan,
}

impl<'a> MessageFields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> MessageFields<'a> {
        MessageFields {
            message,
            at: HEAD,
            current: [SectionSpan::default(); 8],
            bitmap: SectionSpan::default(),
        }
    }

    /// Reads sections up to the next section 7; false at the end.
    fn advance(&mut self) -> bool {
        let end = self.message.len().saturating_sub(4);
        while self.at < end {
            let length = unsigned(self.message, self.at, 4).unwrap_or(0) as usize;
            let number = usize::from(self.message.get(self.at + 4).copied().unwrap_or(0));
            if length < 5 || length > end - self.at {
                return false;
            }
            let span = SectionSpan {
                start: self.at,
                end: self.at + length,
            };
            self.at = span.end;
            if let Some(slot) = self.current.get_mut(number) {
                *slot = span;
            }
            if number == 6 && self.message.get(span.start + 5) != Some(&BITMAP_BEFORE) {
                self.bitmap = span;
            }
            if number == 7 {
                return true;
            }
        }
        false
    }

    fn spans(&self) -> impl Iterator<Item = SectionSpan> {
        let [_, one, two, three, four, five, _, seven] = self.current;
        [one, two, three, four, five, self.bitmap, seven].into_iter()
    }

    /// Octets that all fields take as messages of their own.
    pub(crate) fn total(mut self) -> u64 {
        let mut total = 0;
        while self.advance() {
            total += self.length();
        }
        total
    }

    fn length(&self) -> u64 {
        let sections: usize = self.spans().map(|span| span.end - span.start).sum();
        (HEAD + sections + 4) as u64
    }
}

impl Iterator for MessageFields<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if !self.advance() {
            return None;
        }
        let length = self.length();
        let mut message = Vec::with_capacity(usize::try_from(length).ok()?);
        message.extend_from_slice(self.message.get(..8)?);
        message.extend_from_slice(&length.to_be_bytes());
        for span in self.spans() {
            message.extend_from_slice(span.of(self.message));
        }
        message.extend_from_slice(b"7777");
        Some(message)
    }
}
