//! Records of an appended log, each with a checksum: a torn or an earlier record is never taken for a valid one.
//!
//! ```text
//!  0        4        8        12       16
//!  | "JRec" | length | check  | kind   | payload (length bytes) …
//! ```
//! Numbers are little-endian. `check` is the CRC-32C of the record's place in its file (8 bytes), of `length`, of `kind`, and of the
//! payload: bytes of another place are no record here.

use crc_fast::{CrcAlgorithm, Digest};
use junctura_model::{Code, Error, Result};

/// Bytes in front of a payload.
pub(crate) const FRAME_BYTES: usize = 16;
/// A payload is no longer.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 256 << 20;

/// The first bytes of a record.
pub(crate) const MAGIC: [u8; 4] = *b"JRec";

/// A whole record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogFrame<'a> {
    pub(crate) kind: u32,
    pub(crate) payload: &'a [u8],
}

/// The content at an offset of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FrameState<'a> {
    Whole(LogFrame<'a>),
    /// The beginning of a record: this many bytes are needed to decide.
    Needs(usize),
    /// Nothing that was ever whole, or not any more.
    Torn,
}

/// Makes room for a header; the payload is written behind it, and [`close`] completes it. Returns the start of the
/// record.
pub(crate) fn open(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_BYTES]);
    start
}

/// Completes the record that begins at `start` of `out`, for the offset `place` of its file.
///
/// # Errors
/// `TooLarge` if it exceeds the readers' limit.
pub(crate) fn close(out: &mut [u8], start: usize, kind: u32, place: u64) -> Result<()> {
    let record = &mut out[start..];
    let length = check_length(record)?;
    let check = check(place, length as u32, kind, &record[FRAME_BYTES..]);
    record[..4].copy_from_slice(&MAGIC);
    record[4..8].copy_from_slice(&(length as u32).to_le_bytes());
    record[8..12].copy_from_slice(&check.to_le_bytes());
    record[12..16].copy_from_slice(&kind.to_le_bytes());
    Ok(())
}

/// Returns the length of the payload after the space of the header.
///
/// # Errors
/// `TooLarge` if it exceeds the readers' limit.
pub(crate) fn check_length(record: &[u8]) -> Result<usize> {
    let length = record.len() - FRAME_BYTES;
    if length > PAYLOAD_BYTES_MAX {
        let cause = format!("{length} bytes, and a record has {PAYLOAD_BYTES_MAX} at most: flush more often");
        return Err(Error::new(Code::TooLarge, "commit", cause));
    }
    Ok(length)
}

/// Parses the bytes at offset `place` of a log.
pub(crate) fn read(bytes: &[u8], place: u64) -> FrameState<'_> {
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    if bytes.len() < FRAME_BYTES {
        return FrameState::Needs(FRAME_BYTES);
    }
    let (length, kind) = (word(4), word(12));
    if bytes[..4] != MAGIC || length as usize > PAYLOAD_BYTES_MAX {
        return FrameState::Torn;
    }
    let end = FRAME_BYTES + length as usize;
    match bytes.get(FRAME_BYTES..end) {
        None => FrameState::Needs(end),
        Some(payload) if check(place, length, kind, payload) == word(8) => {
            FrameState::Whole(LogFrame { kind, payload })
        }
        Some(_) => FrameState::Torn,
    }
}

fn check(place: u64, length: u32, kind: u32, payload: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    let mut head = [0; 16];
    head[..8].copy_from_slice(&place.to_le_bytes());
    head[8..12].copy_from_slice(&length.to_le_bytes());
    head[12..].copy_from_slice(&kind.to_le_bytes());
    digest.update(&head);
    digest.update(payload);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(place: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let start = open(&mut out);
        out.extend_from_slice(b"what was said");
        close(&mut out, start, 7, place).unwrap();
        out
    }

    #[test]
    fn a_record_reads_back_at_its_place_alone() {
        let bytes = record(4096);
        let (kind, payload) = (7, &b"what was said"[..]);
        assert_eq!(read(&bytes, 4096), FrameState::Whole(LogFrame { kind, payload }));
        assert_eq!(read(&bytes, 4097), FrameState::Torn);
    }

    #[test]
    fn no_part_of_it_and_no_flipped_bit_passes() {
        let bytes = record(0);
        for end in 0..bytes.len() {
            assert!(matches!(read(&bytes[..end], 0), FrameState::Needs(_)), "{end}");
        }
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(read(&flipped, 0), FrameState::Whole(_)), "{bit}");
        }
        assert_eq!(read(&[0; 64], 0), FrameState::Torn);
    }

    #[test]
    fn a_length_that_nobody_wrote_is_torn() {
        let mut bytes = record(0);
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(read(&bytes, 0), FrameState::Torn);
    }
}
