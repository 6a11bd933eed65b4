//! Versions of objects, and positions of readers.
//!
//! A [`Version`] is a position in the order in which one incarnation of a server made objects visible; it prints as
//! `1.42`. A [`Cursor`] is a position in a follow, printed as one opaque word with a checksum: a corrupt cursor is
//! rejected and never resumes at another position.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Code, Error, Result};
use crate::limits::CURSOR_BYTES_MAX;

/// The position at which an object became visible: newer versions compare greater.
///
/// ```
/// # use junctura_model::Version;
/// # fn main() -> junctura_model::Result<()> {
/// let version: Version = "1.42".parse()?;
/// assert_eq!((version.incarnation, version.sequence), (1, 42));
/// assert!(version < Version { incarnation: 1, sequence: 43 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// The incarnation of the server.
    pub incarnation: u64,
    /// The sequence number in that incarnation, over all keys; unique.
    pub sequence: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.incarnation, self.sequence)
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Version> {
        let parts = text
            .split_once('.')
            .and_then(|(incarnation, sequence)| Some((number(incarnation)?, number(sequence)?)));
        let (incarnation, sequence) = parts.ok_or_else(|| {
            Error::new(
                Code::InvalidArgument,
                "version",
                format!("{text:?} is not a version such as 1.42"),
            )
        })?;
        Ok(Version { incarnation, sequence })
    }
}

/// Parses a number as versions print it: digits, without leading zeros.
fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

/// A position in a follow.
///
/// ```
/// # use junctura_model::{Cursor, Version};
/// # fn main() -> junctura_model::Result<()> {
/// # let printed = Cursor { incarnation: 1, phase: junctura_model::version::Phase::Live { last: 42 } }.to_string();
/// let cursor: Cursor = printed.parse()?; // as a follow printed it
/// let newest: Version = "1.42".parse()?;
/// assert_eq!(cursor.version(), newest);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The incarnation of the server that returned it.
    pub incarnation: u64,
    /// The progress of the follow.
    pub phase: Phase,
}

/// The progress of a follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Within the snapshot.
    First {
        /// The sequence number of the snapshot: later objects have larger numbers.
        snapshot: u64,
        /// The sort value of the last object, if not sorted by key.
        last_sort_value: Option<String>,
        /// The key of the last object.
        last_key: String,
    },
    /// After the snapshot.
    Live {
        /// The sequence number of the last object.
        last: u64,
    },
}

/// The prefix of every printed cursor: the version of the format.
const PREFIX: &str = "c1";
const FIRST: u8 = 1;
const FIRST_SORTED: u8 = 2;
const LIVE: u8 = 3;

impl Cursor {
    /// Returns the position of the follow in the order in which objects became visible: it had not returned objects
    /// newer than this version. In the first phase it had returned only some of the older ones.
    #[must_use]
    pub fn version(&self) -> Version {
        let sequence = match self.phase {
            Phase::First { snapshot, .. } => snapshot,
            Phase::Live { last } => last,
        };
        Version {
            incarnation: self.incarnation,
            sequence,
        }
    }

    /// `phase u8 │ incarnation u64 LE │ number u64 LE │ [sorted only: len u32 LE, value] │ [first only: key]`
    fn to_bytes(&self) -> Vec<u8> {
        let head =
            |kind: u8, number: u64| [&[kind][..], &self.incarnation.to_le_bytes(), &number.to_le_bytes()].concat();
        match &self.phase {
            Phase::Live { last } => head(LIVE, *last),
            Phase::First {
                snapshot,
                last_sort_value: None,
                last_key,
            } => [head(FIRST, *snapshot), last_key.as_bytes().to_vec()].concat(),
            Phase::First {
                snapshot,
                last_sort_value: Some(value),
                last_key,
            } => {
                let len = (value.len() as u32).to_le_bytes();
                [
                    &head(FIRST_SORTED, *snapshot)[..],
                    &len,
                    value.as_bytes(),
                    last_key.as_bytes(),
                ]
                .concat()
            }
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Cursor> {
        let (&kind, bytes) = bytes.split_first()?;
        let (incarnation, bytes) = bytes.split_first_chunk()?;
        let (number, rest) = bytes.split_first_chunk()?;
        let (incarnation, number) = (u64::from_le_bytes(*incarnation), u64::from_le_bytes(*number));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let phase = match kind {
            LIVE if rest.is_empty() => Phase::Live { last: number },
            FIRST => Phase::First {
                snapshot: number,
                last_sort_value: None,
                last_key: text(rest)?,
            },
            FIRST_SORTED => {
                let (len, rest) = rest.split_first_chunk()?;
                let (value, key) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
                Phase::First {
                    snapshot: number,
                    last_sort_value: Some(text(value)?),
                    last_key: text(key)?,
                }
            }
            _ => return None,
        };
        Some(Cursor { incarnation, phase })
    }
}

/// Returns a checksum of four bytes.
fn check_of(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.to_bytes();
        write!(f, "{PREFIX}{:08x}", check_of(&bytes))?;
        bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cursor> {
        let refused = |why: &str| Error::new(Code::InvalidArgument, "cursor", why);
        if text.len() > CURSOR_BYTES_MAX {
            return Err(refused("longer than any cursor"));
        }
        let hex = text
            .strip_prefix(PREFIX)
            .ok_or_else(|| refused("it does not begin like a cursor"))?;
        let bytes = unhex(hex).ok_or_else(|| refused("after its prefix a cursor has only pairs of 0-9 and a-f"))?;
        let (check, bytes) = bytes.split_first_chunk().ok_or_else(|| refused("cut off"))?;
        if u32::from_be_bytes(*check) != check_of(bytes) {
            return Err(refused("damaged"));
        }
        Cursor::from_bytes(bytes).ok_or_else(|| refused("made by another version"))
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_print_read_and_order() {
        let version = Version {
            incarnation: 1,
            sequence: 42,
        };
        assert_eq!(version.to_string(), "1.42");
        assert_eq!("1.42".parse(), Ok(version));
        assert!(
            version
                < Version {
                    incarnation: 1,
                    sequence: 43
                }
        );
        assert!(
            version
                < Version {
                    incarnation: 2,
                    sequence: 0
                }
        );
        for bad in [
            "",
            ".",
            "1",
            "1.",
            ".1",
            "1.2.3",
            "+1.2",
            "01.2",
            "1.18446744073709551616",
            "1 .2",
            "1.-2",
        ] {
            assert_eq!(
                bad.parse::<Version>().unwrap_err().code(),
                Code::InvalidArgument,
                "{bad}"
            );
        }
    }

    fn cursors() -> [Cursor; 4] {
        let first = |value: Option<&str>, key: &str| Phase::First {
            snapshot: 7,
            last_sort_value: value.map(str::to_owned),
            last_key: key.to_owned(),
        };
        let of = |phase| Cursor { incarnation: 3, phase };
        [
            of(Phase::Live { last: u64::MAX }),
            of(first(None, "")),
            of(first(None, "{a=é}{}{}")),
            of(first(Some(""), "{}")),
        ]
    }

    #[test]
    fn cursors_print_and_read_back() {
        for cursor in cursors() {
            let text = cursor.to_string();
            assert!(text.bytes().all(|b| b.is_ascii_alphanumeric()));
            assert_eq!(text.parse(), Ok(cursor));
        }
    }

    #[test]
    fn a_cursor_knows_what_was_given_before_it() {
        let versions = cursors().map(|cursor| cursor.version().to_string());
        assert_eq!(versions, ["3.18446744073709551615", "3.7", "3.7", "3.7"]);
    }

    #[test]
    fn a_cursor_with_any_character_changed_or_missing_is_refused() {
        for cursor in cursors() {
            let text = cursor.to_string();
            for at in 0..text.len() {
                assert!(text[..at].parse::<Cursor>().is_err());
                let other = if &text[at..=at] == "0" { "1" } else { "0" };
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                assert_eq!(changed.parse::<Cursor>().unwrap_err().code(), Code::InvalidArgument);
            }
        }
        assert!("é".repeat(20_000).parse::<Cursor>().is_err());
        assert!("c1é".parse::<Cursor>().is_err());
    }
}
