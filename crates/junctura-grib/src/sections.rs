//! Where the sections of a message are, checked before anything is read from them.
//!
//! ```text
//! edition 1   GRIB len[3] 1 | 1: len[3] ... | 2? len[3] ... | 3? len[3] ... | 4: len[3] ... | 7777
//! edition 2   GRIB -- disc 2 len[8] | 1: len[4] n ... | (2? (3 (4 5 6 7)+)+)+ | 7777
//! ```
//! An edition 2 message may hold several fields: the sections from 2, 3 or 4 on are repeated, and sections that are not
//! repeated stay in force. The places kept are those of the first field.

use crate::error::MessageFault;
use crate::octets::unsigned;

/// A message of more sections is refused: that is some 5,000 fields.
pub(crate) const SECTIONS_MAX: u32 = 20_000;

/// Where a section starts and ends in its message; empty where it is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SectionSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl SectionSpan {
    pub(crate) fn of(self, message: &[u8]) -> &[u8] {
        message.get(self.start..self.end).unwrap_or_default()
    }
}

/// The sections of a message's first field, by their number, and how many fields there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SectionTable {
    pub(crate) edition: u8,
    pub(crate) by_number: [SectionSpan; 8],
    pub(crate) fields: u32,
}

/// Walks the sections of a whole message; a fault includes its place in the message.
pub(crate) fn walk(message: &[u8]) -> Result<SectionTable, (usize, MessageFault)> {
    match message.get(7) {
        Some(1) => walk1(message),
        Some(2) => walk2(message),
        edition => Err((7, MessageFault::Edition(edition.copied().unwrap_or(0)))),
    }
}

fn walk1(message: &[u8]) -> Result<SectionTable, (usize, MessageFault)> {
    let end = message.len().saturating_sub(4);
    let mut sections = SectionTable {
        edition: 1,
        fields: 1,
        ..SectionTable::default()
    };
    let mut at = 8;
    let flags = message.get(15).copied().unwrap_or(0);
    let present = [(1, true, 28), (2, flags & 0x80 != 0, 6), (3, flags & 0x40 != 0, 6)];
    for (number, _, least) in present.into_iter().filter(|(_, present, _)| *present) {
        let length = unsigned(message, at, 3).unwrap_or(0) as usize;
        if length < least || length > end.saturating_sub(at) {
            return Err((
                at,
                MessageFault::Section {
                    section: number,
                    length: length as u64,
                },
            ));
        }
        sections.by_number[usize::from(number)] = SectionSpan {
            start: at,
            end: at + length,
        };
        at += length;
    }
    // The data section ends where the message does: its own length is small in the large messages of ECMWF.
    if end.saturating_sub(at) < 11 {
        return Err((
            at,
            MessageFault::Section {
                section: 4,
                length: end.saturating_sub(at) as u64,
            },
        ));
    }
    sections.by_number[4] = SectionSpan { start: at, end };
    Ok(sections)
}

fn walk2(message: &[u8]) -> Result<SectionTable, (usize, MessageFault)> {
    let end = message.len().saturating_sub(4);
    let mut sections = SectionTable {
        edition: 2,
        ..SectionTable::default()
    };
    let (mut at, mut previous, mut count) = (16, 0_u8, 0);
    while at < end {
        let length = unsigned(message, at, 4).unwrap_or(0);
        let number = message.get(at + 4).copied().unwrap_or(0);
        if length < 5 || length > (end - at) as u64 {
            return Err((
                at,
                MessageFault::Section {
                    section: number,
                    length,
                },
            ));
        }
        if !may_follow(previous, number) {
            return Err((at + 4, MessageFault::Order { section: number }));
        }
        count += 1;
        if count > SECTIONS_MAX {
            return Err((at, MessageFault::TooManySections));
        }
        if sections.fields == 0 {
            sections.by_number[usize::from(number)] = SectionSpan {
                start: at,
                end: at + length as usize,
            };
        }
        sections.fields += u32::from(number == 7);
        previous = number;
        at += length as usize;
    }
    if previous != 7 {
        return Err((at, MessageFault::Order { section: previous + 1 }));
    }
    Ok(sections)
}

fn may_follow(previous: u8, number: u8) -> bool {
    match previous {
        0 => number == 1,
        1 => matches!(number, 2 | 3),
        7 => matches!(number, 2..=4),
        _ => number == previous + 1,
    }
}
