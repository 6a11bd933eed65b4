//! Records: the elements of the stream between two machines. A header of 24 bytes, then the body.
//!
//! ```text
//!  0      1        4        8         12     16       24
//!  | kind | 0 0 0  | length | segment | slot | offset |  body (length bytes)
//! ```
//! All numbers are little-endian. `segment`, `slot` and `offset` are the destination of a payload; elsewhere they are zero,
//! except for the number of a channel, which is in `slot`, and for parts, which have their number there and that of their
//! load in `offset`.
//!
//! A link of several streams has all records on the first one, except for the parts of large payloads, which may use any
//! stream. A *load* is announced on the first stream ([`LinkRecord::Load`]), so no part is written to a place before that
//! place is its own; [`LinkRecord::Whole`] precedes records that are valid only when all parts have arrived.

use junctura_model::{Code, Error, Result};
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a record's header.
pub const HEADER_BYTES: usize = 24;
/// Bytes of the largest body. Larger payloads are sent in several pieces.
pub const BODY_BYTES_MAX: u32 = 1 << 30;
/// Bytes of each part of a load; the last part is what is left.
pub const PART_BYTES: u32 = 512 << 10;

/// The header in the stream.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RecordHeader {
    kind: u8,
    zero: [u8; 3],
    length: U32,
    segment: U32,
    slot: U32,
    offset: U64,
}

/// The place of a payload: at a byte of a slot, or of the file tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadOffset {
    /// The segment; [`junctura_wire::fixed::FILE_TIER`]: the file, and `slot` means nothing.
    pub segment: u32,
    /// The slot within it.
    pub slot: u32,
    /// The byte within the slot, or within the file.
    pub offset: u64,
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRecord {
    /// So many bytes of whole frames.
    Frames(u32),
    /// So many bytes of a payload, and their destination. The frame that refers to the payload follows later.
    Payload(PayloadOffset, u32),
    /// From the server: no client there holds this payload; its memory may be reused. For the file tier `offset` is its
    /// start; the body is empty, and `length` is that of the payload.
    Forget(PayloadOffset, u64),
    /// Nothing to send; shows the other end that this one is alive.
    Beat,
    /// The frames from here on are of this channel. From the client's end, a number that is higher than all before begins one.
    Channel(u32),
    /// This end sends no more on this channel.
    Close(u32),
    /// So many bytes of this channel's frames were passed on: there is room for as many more.
    Room(u32, u32),
    /// From the server: no channel is left that knows this segment; its mirror is removed.
    Drop(u32),
    /// A payload of so many bytes that is sent in parts of [`PART_BYTES`], and its destination. The loads that one end
    /// announces are counted from 0.
    Load(PayloadOffset, u32),
    /// The following records are valid when all parts of all loads so far have arrived.
    Whole,
    /// So many bytes of a load, by its number and by that of the part. On any stream.
    Part(u64, u32, u32),
}

impl LinkRecord {
    const FRAMES: u8 = 1;
    const PAYLOAD: u8 = 2;
    const FORGET: u8 = 3;
    const BEAT: u8 = 4;
    const CHANNEL: u8 = 5;
    const CLOSE: u8 = 6;
    const ROOM: u8 = 7;
    const DROP: u8 = 8;
    const LOAD: u8 = 9;
    const WHOLE: u8 = 10;
    const PART: u8 = 11;

    /// The header of this record.
    #[must_use]
    pub fn header(&self) -> RecordHeader {
        let here = |kind, length: u32, at: PayloadOffset| RecordHeader {
            kind,
            zero: [0; 3],
            length: length.into(),
            segment: at.segment.into(),
            slot: at.slot.into(),
            offset: at.offset.into(),
        };
        let nowhere = PayloadOffset {
            segment: 0,
            slot: 0,
            offset: 0,
        };
        let of = |slot| PayloadOffset { slot, ..nowhere };
        match *self {
            Self::Frames(length) => here(Self::FRAMES, length, nowhere),
            Self::Payload(at, length) => here(Self::PAYLOAD, length, at),
            // Of a payload in pieces, the file tier's parts are forgotten piece by piece.
            Self::Forget(at, length) => here(Self::FORGET, length.min(u64::from(BODY_BYTES_MAX)) as u32, at),
            Self::Beat => here(Self::BEAT, 0, nowhere),
            Self::Channel(number) => here(Self::CHANNEL, 0, of(number)),
            Self::Close(number) => here(Self::CLOSE, 0, of(number)),
            Self::Room(number, bytes) => here(Self::ROOM, bytes, of(number)),
            Self::Drop(segment) => here(Self::DROP, 0, PayloadOffset { segment, ..nowhere }),
            Self::Load(at, length) => here(Self::LOAD, length, at),
            Self::Whole => here(Self::WHOLE, 0, nowhere),
            Self::Part(offset, slot, length) => here(
                Self::PART,
                length,
                PayloadOffset {
                    slot,
                    offset,
                    ..nowhere
                },
            ),
        }
    }

    /// The header's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(self.header().as_bytes());
        bytes
    }

    /// Bytes that follow the header.
    #[must_use]
    pub fn body_bytes(&self) -> u32 {
        match *self {
            Self::Frames(length) | Self::Payload(_, length) | Self::Part(_, _, length) => length,
            Self::Forget(..)
            | Self::Beat
            | Self::Channel(_)
            | Self::Close(_)
            | Self::Room(..)
            | Self::Drop(_)
            | Self::Load(..)
            | Self::Whole => 0,
        }
    }

    /// Reads the header at the front of `bytes`: `None` while it is not whole yet.
    ///
    /// # Errors
    /// `Protocol` when it cannot belong to a record of ours: nothing after it can be understood either.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>> {
        let Ok((header, _)) = RecordHeader::read_from_prefix(bytes) else {
            return Ok(None);
        };
        let length = header.length.get();
        let at = PayloadOffset {
            segment: header.segment.get(),
            slot: header.slot.get(),
            offset: header.offset.get(),
        };
        let is_sound = header.zero == [0; 3] && length <= BODY_BYTES_MAX;
        let is_of_channel = (at.segment, at.offset) == (0, 0);
        let is_nowhere = is_of_channel && at.slot == 0;
        let is_whole_segment = (at.slot, at.offset, length) == (0, 0, 0);
        match header.kind {
            Self::FRAMES if is_sound && is_nowhere => Ok(Some(Self::Frames(length))),
            Self::PAYLOAD if is_sound => Ok(Some(Self::Payload(at, length))),
            Self::FORGET if is_sound => Ok(Some(Self::Forget(at, u64::from(length)))),
            Self::BEAT if is_sound && is_nowhere && length == 0 => Ok(Some(Self::Beat)),
            Self::CHANNEL if is_sound && is_of_channel && length == 0 => Ok(Some(Self::Channel(at.slot))),
            Self::CLOSE if is_sound && is_of_channel && length == 0 => Ok(Some(Self::Close(at.slot))),
            Self::ROOM if is_sound && is_of_channel => Ok(Some(Self::Room(at.slot, length))),
            Self::DROP if is_sound && is_whole_segment => Ok(Some(Self::Drop(at.segment))),
            Self::LOAD if is_sound && length > 0 => Ok(Some(Self::Load(at, length))),
            Self::WHOLE if is_sound && is_nowhere && length == 0 => Ok(Some(Self::Whole)),
            Self::PART if is_sound && at.segment == 0 && length <= PART_BYTES => {
                Ok(Some(Self::Part(at.offset, at.slot, length)))
            }
            kind => {
                let cause = format!("kind {kind}, {length} bytes");
                Err(Error::new(Code::Protocol, "record of a link", cause))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: PayloadOffset = PayloadOffset {
        segment: 7,
        slot: 3,
        offset: 1 << 33,
    };

    #[test]
    fn what_is_written_is_read() {
        for record in [
            LinkRecord::Frames(17),
            LinkRecord::Payload(AT, 1 << 20),
            LinkRecord::Forget(AT, 804 << 10),
            LinkRecord::Beat,
            LinkRecord::Channel(17),
            LinkRecord::Close(u32::MAX),
            LinkRecord::Room(3, 1 << 20),
            LinkRecord::Drop(9),
            LinkRecord::Load(AT, BODY_BYTES_MAX),
            LinkRecord::Whole,
            LinkRecord::Part(u64::MAX, 7, PART_BYTES),
        ] {
            let header = record.header();
            let bytes = header.as_bytes();
            assert_eq!(bytes.len(), HEADER_BYTES);
            assert_eq!(LinkRecord::read(bytes).unwrap(), Some(record));
            assert_eq!(LinkRecord::read(&bytes[..HEADER_BYTES - 1]).unwrap(), None);
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let good = LinkRecord::Payload(AT, 1).header();
        for (at, value) in [(0, 0), (0, 12), (0, 200), (1, 1), (3, 1), (7, 0x40 + 1)] {
            let mut bytes = good.as_bytes().to_vec();
            bytes[at] = value;
            assert_eq!(
                LinkRecord::read(&bytes).unwrap_err().code(),
                Code::Protocol,
                "byte {at}: {value}"
            );
        }
        for (record, at) in [
            (LinkRecord::Beat, 4),
            (LinkRecord::Whole, 4),
            (LinkRecord::Whole, 12),
            (LinkRecord::Part(3, 1, PART_BYTES), 4),
            (LinkRecord::Part(3, 1, 5), 8),
            (LinkRecord::Load(AT, BODY_BYTES_MAX), 4),
        ] {
            let mut bytes = record.to_bytes();
            bytes[at] ^= 1;
            assert_eq!(
                LinkRecord::read(&bytes).unwrap_err().code(),
                Code::Protocol,
                "{record:?}, byte {at}"
            );
        }
        let nothing = LinkRecord::Load(AT, 0).to_bytes();
        assert_eq!(LinkRecord::read(&nothing).unwrap_err().code(), Code::Protocol);
    }
}
