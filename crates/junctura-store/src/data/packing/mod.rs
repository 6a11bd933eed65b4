//! Packed objects: each is a separate frame that the tools of its codec can read.

mod rules;

use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::str::FromStr;

use crc_fast::{CrcAlgorithm, Digest};
use junctura_model::{Code, Error, Result};
use lz4_flex::frame::{BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use zstd::bulk::{Compressor, Decompressor};
use zstd::stream::read::Decoder;

pub use rules::PackingRule;
pub(crate) use rules::SchemaPacking;

/// Smaller objects are stored unpacked, because the frame takes more than it saves.
const PACKED_FROM_BYTES: usize = 256;
/// Kept as it is what does not become smaller by one part of so many.
const WORTH: usize = 16;
const ZSTD_LEVEL: u8 = 3;
const ZSTD_LEVEL_MAX: u8 = 19;
/// One of zstd has blocks of up to 128 KiB, of three bytes or more.
const ZSTD_RATIO_MAX: u64 = 64 << 10;
/// A frame of lz4 has no more bytes in it for each of its own.
const LZ4_RATIO_MAX: u64 = 255;

/// Memory for an object is reserved at once up to so many bytes, or so many for each byte of its frame.
pub(crate) const UNCHECKED_BYTES_MAX: u64 = 64 << 20;
const UNCHECKED_RATIO_MAX: u64 = 16;

/// Bytes that are unpacked at once if the whole object is not needed.
const PIECE_BYTES: usize = 256 << 10;

/// How a writer packs objects, without loss: a trade of time for room.
///
/// ```
/// use junctura_store::Compression;
/// # fn main() -> junctura_model::Result<()> {
/// assert_eq!("zstd".parse::<Compression>()?, Compression::Zstd { level: 3 });
/// assert_eq!("zstd:9".parse::<Compression>()?.to_string(), "zstd:9");
/// assert!("gzip".parse::<Compression>().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Zstandard: smaller. Level 1, the fastest, to 19. Default: 3.
    Zstd {
        /// From 1 to 19.
        level: u8,
    },
    /// LZ4: quicker.
    Lz4,
}

impl FromStr for Compression {
    type Err = Error;

    /// # Errors
    /// `InvalidArgument` for what is none.
    fn from_str(text: &str) -> Result<Self> {
        let level = |text: &str| text.parse().ok().filter(|level| (1..=ZSTD_LEVEL_MAX).contains(level));
        let known = match text.split_once(':') {
            None if text == "zstd" => Some(Self::Zstd { level: ZSTD_LEVEL }),
            None if text == "lz4" => Some(Self::Lz4),
            Some(("zstd", text)) => level(text).map(|level| Self::Zstd { level }),
            _ => None,
        };
        known.ok_or_else(|| {
            let cause = format!("expected zstd, zstd:LEVEL with 1 to {ZSTD_LEVEL_MAX}, or lz4");
            Error::new(Code::InvalidArgument, format!("compression {text:?}"), cause)
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zstd { level: ZSTD_LEVEL } => f.write_str("zstd"),
            Self::Zstd { level } => write!(f, "zstd:{level}"),
            Self::Lz4 => f.write_str("lz4"),
        }
    }
}

/// The codec of an object in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadCodec {
    /// A frame of Zstandard (RFC 8878).
    Zstd,
    /// A frame of LZ4 (the LZ4 frame format, version 1.6).
    Lz4,
}

impl PayloadCodec {
    /// All codecs, in the order of their numbers from 1.
    const ALL: [Self; 2] = [Self::Zstd, Self::Lz4];

    /// Its name: `zstd`, `lz4`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }

    /// As it is written in commits; never 0.
    pub(crate) fn number(self) -> u64 {
        self as u64 + 1
    }

    pub(crate) fn numbered(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.number() == number)
    }
}

/// The packing of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedObject {
    pub(crate) codec: PayloadCodec,
    /// Bytes that it has when it is not.
    pub(crate) length: u64,
}

/// Packs one object after the other.
#[derive(Default)]
pub(crate) struct ObjectPacker {
    zstd: Option<(u8, Compressor<'static>)>,
    packed: Vec<u8>,
}

impl fmt::Debug for ObjectPacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packer")
    }
}

impl ObjectPacker {
    /// The frame of an object; none where it would not be smaller by enough.
    ///
    /// # Errors
    /// `LimitExceeded` when there is no memory for it.
    pub(crate) fn pack(&mut self, bytes: &[u8], with: Compression) -> Result<Option<(PayloadCodec, &[u8])>> {
        if bytes.len() < PACKED_FROM_BYTES {
            return Ok(None);
        }
        let room = bytes.len() - bytes.len() / WORTH;
        self.packed.clear();
        let (codec, is_worth_it) = match with {
            Compression::Zstd { level } => (PayloadCodec::Zstd, self.zstd(bytes, level, room)?),
            Compression::Lz4 => (PayloadCodec::Lz4, self.lz4(bytes, room)),
        };
        Ok(is_worth_it.then_some((codec, &self.packed)))
    }

    fn zstd(&mut self, bytes: &[u8], level: u8, room: usize) -> Result<bool> {
        if self.zstd.as_ref().is_none_or(|(of, _)| *of != level) {
            let made = Compressor::new(level.into())
                .map_err(|error| Error::new(Code::LimitExceeded, "zstd", error.to_string()))?;
            self.zstd = Some((level, made));
        }
        self.packed.reserve(room);
        let Some((_, compressor)) = &mut self.zstd else {
            return Ok(false);
        };
        // It fails where there is no room for it, which is not worth it.
        Ok(compressor.compress_to_buffer(bytes, &mut self.packed).is_ok() && self.packed.len() <= room)
    }

    fn lz4(&mut self, bytes: &[u8], room: usize) -> bool {
        // A reader reserves, and clears, room for a block.
        let block_size = match bytes.len() {
            ..=0x1_0000 => BlockSize::Max64KB,
            0x1_0001..=0x4_0000 => BlockSize::Max256KB,
            _ => BlockSize::Max1MB,
        };
        let info = FrameInfo::new()
            .block_size(block_size)
            .content_size(Some(bytes.len() as u64));
        let mut encoder = FrameEncoder::with_frame_info(info, &mut self.packed);
        let written = encoder.write_all(bytes);
        written.is_ok() && encoder.finish().is_ok() && self.packed.len() <= room
    }
}

/// Returns whether a frame with this beginning and length can contain an object of this length: otherwise no memory is
/// reserved for it.
pub(crate) fn can_be(packed: PackedObject, frame: &[u8]) -> bool {
    match packed.codec {
        PayloadCodec::Zstd => {
            let said = zstd::zstd_safe::get_frame_content_size(frame);
            said.is_ok_and(|said| said == Some(packed.length)) && packed.length / ZSTD_RATIO_MAX <= frame.len() as u64
        }
        PayloadCodec::Lz4 => packed.length / LZ4_RATIO_MAX <= frame.len() as u64,
    }
}

/// Whether an object takes so much more memory than its frame that the frame is unpacked as a stream before memory is reserved.
pub(crate) fn is_excessive(packed: PackedObject, frame_bytes: u64) -> bool {
    packed.length > UNCHECKED_BYTES_MAX.max(frame_bytes.saturating_mul(UNCHECKED_RATIO_MAX))
}

/// Unpacks a frame into room for as many bytes as the object has.
///
/// # Errors
/// What is wrong with the frame.
pub(crate) fn unpack(codec: PayloadCodec, frame: &[u8], into: &mut [u8]) -> std::result::Result<(), String> {
    let length = into.len();
    match codec {
        PayloadCodec::Zstd => match zstd::bulk::decompress_to_buffer(frame, into) {
            Ok(written) if written == length => Ok(()),
            Ok(written) => Err(format!("its frame has {written} bytes")),
            Err(error) => Err(error.to_string()),
        },
        PayloadCodec::Lz4 => {
            let mut decoder = FrameDecoder::new(frame);
            decoder.read_exact(into).map_err(|error| error.to_string())?;
            match decoder.read(&mut [0]) {
                Ok(0) => Ok(()),
                Ok(_) => Err("its frame has more bytes".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        }
    }
}

/// The same into empty memory that is reserved for so many bytes.
///
/// # Errors
/// As [`unpack`].
pub(crate) fn unpack_reserved(
    packed: PackedObject,
    frame: &[u8],
    into: &mut Vec<u8>,
) -> std::result::Result<(), String> {
    let unpacked = match packed.codec {
        PayloadCodec::Zstd => Decompressor::new().and_then(|mut all| all.decompress_to_buffer(frame, into)),
        PayloadCodec::Lz4 => {
            let frame = FrameDecoder::new(frame);
            frame.take(packed.length.saturating_add(1)).read_to_end(into)
        }
    };
    unpacked.map_err(|error| error.to_string())?;
    is_length(into.len() as u64, packed.length)
}

fn is_length(found: u64, length: u64) -> std::result::Result<(), String> {
    if found == length {
        return Ok(());
    }
    Err(format!("its frame has {found} bytes"))
}

/// Unpacks a frame as a stream, in memory that does not depend on the size of the object.
pub(crate) enum StreamUnpacker<R: BufRead> {
    Zstd(Box<Decoder<'static, R>>),
    Lz4(Box<FrameDecoder<R>>),
}

impl<R: BufRead> StreamUnpacker<R> {
    pub(crate) fn new(codec: PayloadCodec, frame: R) -> io::Result<Self> {
        match codec {
            PayloadCodec::Zstd => Decoder::with_buffer(frame).map(Box::new).map(Self::Zstd),
            PayloadCodec::Lz4 => Ok(Self::Lz4(Box::new(FrameDecoder::new(frame)))),
        }
    }

    /// The reader of the frame.
    pub(crate) fn source(&self) -> &R {
        match self {
            Self::Zstd(decoder) => decoder.get_ref(),
            Self::Lz4(decoder) => decoder.get_ref(),
        }
    }
}

impl<R: BufRead> Read for StreamUnpacker<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Zstd(decoder) => decoder.read(into),
            Self::Lz4(decoder) => decoder.read(into),
        }
    }
}

/// The checksum of what is in a frame, which is unpacked piece by piece.
///
/// # Errors
/// What is wrong with the frame.
pub(crate) fn checksum_of(packed: PackedObject, frame: impl BufRead) -> std::result::Result<u32, String> {
    let summed = StreamUnpacker::new(packed.codec, frame).and_then(|unpacker| sum(unpacker, packed.length));
    let (checksum, found) = summed.map_err(|error| error.to_string())?;
    is_length(found, packed.length).map(|()| checksum)
}

/// The checksum of all bytes, and how many they are; of not many more than so many.
pub(crate) fn sum(mut bytes: impl Read, length: u64) -> std::io::Result<(u32, u64)> {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    let (mut piece, mut found) = (vec![0; PIECE_BYTES], 0);
    while found <= length {
        let read = bytes.read(&mut piece)?;
        if read == 0 {
            break;
        }
        digest.update(&piece[..read]);
        found += read as u64;
    }
    Ok((digest.finalize() as u32, found))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Compression; 3] = [
        Compression::Zstd { level: 1 },
        Compression::Zstd { level: 19 },
        Compression::Lz4,
    ];

    fn repeating(count: usize) -> Vec<u8> {
        (0..count).map(|at| (at % 100) as u8).collect()
    }

    #[test]
    fn what_is_worth_it_is_packed_and_comes_back() {
        let mut packer = ObjectPacker::default();
        for with in ALL {
            for count in [PACKED_FROM_BYTES, 5000, (1 << 20) - 1, 3 << 20] {
                let bytes = repeating(count);
                let (codec, frame) = packer.pack(&bytes, with).unwrap().unwrap();
                assert!(
                    frame.len() < count * 15 / 16 + 1,
                    "{with}: {count} became {}",
                    frame.len()
                );
                let length = count as u64;
                assert!(can_be(PackedObject { codec, length }, frame));
                let mut back = vec![0; count];
                unpack(codec, frame, &mut back).unwrap();
                assert_eq!(back, bytes);
                let said = PackedObject { codec, length };
                let mut back = Vec::with_capacity(count);
                unpack_reserved(said, frame, &mut back).unwrap();
                assert_eq!(back, bytes);
                assert_eq!(checksum_of(said, frame).unwrap(), crate::checksum(&bytes));
            }
        }
    }

    #[test]
    fn what_is_not_stays() {
        let noise: Vec<u8> = (0..10_000_u64)
            .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect();
        let mixed = crate::checksum(&noise);
        let mut state = u64::from(mixed);
        let random: Vec<u8> = (0..10_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let mut packer = ObjectPacker::default();
        for with in ALL {
            assert!(packer.pack(&repeating(PACKED_FROM_BYTES - 1), with).unwrap().is_none());
            assert!(packer.pack(&random, with).unwrap().is_none());
            assert!(packer.pack(b"", with).unwrap().is_none());
        }
    }

    #[test]
    fn a_frame_of_another_length_is_told() {
        let mut packer = ObjectPacker::default();
        let bytes = repeating(5000);
        for with in ALL {
            let (codec, frame) = packer.pack(&bytes, with).unwrap().unwrap();
            for count in [4999, 5001] {
                unpack(codec, frame, &mut vec![0; count]).unwrap_err();
                let said = PackedObject {
                    codec,
                    length: count as u64,
                };
                unpack_reserved(said, frame, &mut Vec::with_capacity(count)).unwrap_err();
                checksum_of(said, frame).unwrap_err();
            }
            assert!(!can_be(PackedObject { codec, length: 1 << 40 }, frame));
        }
    }

    proptest! {
        #[test]
        fn damaged_frames_are_told_or_give_other_bytes(at in 0_usize..400, to: u8, cut in 0_usize..400) {
            let bytes = repeating(5000);
            let mut packer = ObjectPacker::default();
            for with in ALL {
                let (codec, frame) = packer.pack(&bytes, with).unwrap().unwrap();
                let mut frame = frame.to_vec();
                let at = at % frame.len();
                frame[at] = to;
                frame.truncate(frame.len() - cut % frame.len());
                let _ = can_be(PackedObject { codec, length: 5000 }, &frame);
                let _ = unpack(codec, &frame, &mut vec![0; 5000]);
            }
        }
    }
}
