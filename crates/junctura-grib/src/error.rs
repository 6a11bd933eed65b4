//! Errors that state which message is damaged, where, and how.

use std::fmt;

use crate::values::packed::PARALLELS_MAX;

/// The fault of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageFault {
    /// The edition number is neither 1 nor 2.
    Edition(u8),
    /// The length in the header is less than the smallest message of that edition.
    Length(u64),
    /// The length in the header reaches beyond the bytes that there are.
    Truncated {
        /// Bytes that the header announces.
        needed: u64,
        /// Bytes from the start of the message to the end of the input.
        present: u64,
    },
    /// The four bytes at the announced end are not `7777`.
    EndMark,
    /// A section's length is less than its fixed part, or reaches beyond the message.
    Section {
        /// Number of the section.
        section: u8,
        /// Its length as announced.
        length: u64,
    },
    /// A section is in an invalid place, or a required one is missing.
    Order {
        /// Number of the section found (or missing).
        section: u8,
    },
    /// A message has more sections than the limit.
    TooManySections,
    /// A section has fewer bytes of values, or of its bitmap, than the message announces.
    Values {
        /// Number of the section.
        section: u8,
        /// Bytes that are announced.
        needed: u64,
        /// Bytes that are there.
        present: u64,
    },
    /// Two places of a message state different numbers of values.
    Count {
        /// Values that are announced.
        values: u64,
        /// Values by the bitmap or the groups.
        present: u64,
    },
    /// Rows and columns make another number of points than is announced.
    Points {
        /// Points that are announced.
        points: u64,
        /// Points by rows and columns.
        present: u64,
    },
    /// No parallels between a pole and the equator, or more than are decoded.
    Parallels(u64),
    /// No value has that many bits, or that precision.
    Bits(u64),
    /// The fields of a message take too many bytes as messages of their own.
    Split {
        /// Bytes of all fields together.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The bitmap is not in the message: its indicator.
    Bitmap(u8),
}

/// A damaged message: which one, at which byte, and what is wrong there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GribError {
    /// Which message of the input, from 1. Good and damaged messages count alike.
    pub message: u64,
    /// First byte of the message in the input.
    pub start: u64,
    /// The byte in the input where the fault shows.
    pub offset: u64,
    /// The fault.
    pub fault: MessageFault,
}

impl fmt::Display for GribError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GRIB message {} at byte {}: ", self.message, self.start)?;
        match self.fault {
            MessageFault::Edition(edition) => write!(f, "edition {edition} is neither 1 nor 2")?,
            MessageFault::Length(length) => write!(f, "length {length} is too small")?,
            MessageFault::Truncated { needed, present } => {
                write!(f, "{needed} bytes are announced, {present} are present")?;
            }
            MessageFault::EndMark => write!(f, "no 7777 where the announced length ends")?,
            MessageFault::Section { section, length } => write!(f, "section {section} cannot be {length} bytes long")?,
            MessageFault::Order { section } => write!(f, "section {section} is missing or out of place")?,
            MessageFault::Values {
                section,
                needed,
                present,
            } => write!(
                f,
                "section {section} announces {needed} bytes of values, {present} are present"
            )?,
            MessageFault::Count { values, present } => {
                write!(f, "{values} values are announced, {present} are present")?;
            }
            MessageFault::Points { points, present } => {
                write!(f, "{points} points are announced, rows and columns make {present}")?;
            }
            MessageFault::Parallels(parallels) => write!(
                f,
                "a Gaussian grid of {parallels} parallels between pole and equator, 1 to {PARALLELS_MAX} are decoded"
            )?,
            MessageFault::Bits(bits) => write!(f, "{bits} bits per value, or this precision, are not valid")?,
            MessageFault::Split { bytes, bytes_max } => {
                write!(
                    f,
                    "its fields take {bytes} bytes as messages of their own, at most {bytes_max} are made"
                )?;
            }
            MessageFault::Bitmap(indicator) => write!(f, "bitmap {indicator} is not in the message")?,
            MessageFault::TooManySections => write!(f, "more than {} sections", crate::sections::SECTIONS_MAX)?,
        }
        write!(f, " (byte {})", self.offset)
    }
}

impl std::error::Error for GribError {}
