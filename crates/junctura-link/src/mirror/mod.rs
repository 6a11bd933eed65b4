//! The segments that one end of a link knows, and the source and destination of payloads.
//!
//! The server's end has the pool's own segments, as any client of its machine. The client's end makes, for each segment
//! that a frame announces, a segment of its own of the same size and number: the mirror. A payload is in both at the same
//! place.

pub(crate) mod gather;
pub(crate) mod mirror_index;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use hashbrown::HashMap;
use junctura_memory::segment::SealedSegment;
use junctura_memory::{SegmentMapping, SlotMut, SlotPart, WritableMapping};
use junctura_model::{Code, Error, Result};
use junctura_wire::fixed::{FILE_TIER, SegmentHead};
use rustix::fs::{FallocateFlags, MemfdFlags};

use crate::record::PayloadOffset;
use crate::refused;

/// Bytes of a file that are looked at together.
const FILE_PIECE_BYTES: usize = 256 << 10;
/// A file tier may not be longer than what a sparse file may be.
const FILE_BYTES_MAX: u64 = 1 << 50;

/// A segment, as far as it is known here.
#[derive(Debug, Default)]
struct KnownSegment {
    slot_bytes: u64,
    /// Payloads are sent from here.
    source: Option<Arc<SegmentMapping>>,
    /// Payloads are received to here.
    sink: Option<Arc<WritableMapping>>,
    /// The segment, on the side that has made it.
    mirror: Option<SealedSegment>,
    /// It was announced to be read.
    is_read: bool,
    /// It is leased to a client.
    is_leased: bool,
    /// The server's end: channels that it was announced to.
    channels: u32,
}

/// All that one end knows.
#[derive(Debug, Default)]
pub(crate) struct LinkMemory {
    segments: HashMap<u32, KnownSegment>,
    file: Option<Arc<File>>,
}

/// The destination for the rest of an incoming payload.
#[derive(Debug)]
pub(crate) enum IncomingTarget {
    Slot {
        slot: SlotMut,
        at: usize,
    },
    /// Others write into the same slot.
    Part {
        part: SlotPart,
        at: usize,
    },
    File {
        file: Arc<File>,
        at: u64,
    },
    /// It is dropped.
    Nowhere,
}

/// An outgoing payload.
#[derive(Debug)]
pub(crate) enum OutgoingSource {
    Mapped {
        mapping: Arc<SegmentMapping>,
        at: u64,
        length: u64,
    },
    File {
        file: Arc<File>,
        at: u64,
        length: u64,
    },
}

impl LinkMemory {
    /// The server's end: notes a segment of the pool, or its file tier; `is_new`: to this channel.
    pub(crate) fn learn(&mut self, head: &SegmentHead, descriptor: OwnedFd, is_new: bool) -> Result<()> {
        if head.segment.get() == FILE_TIER {
            self.file = Some(Arc::new(File::from(descriptor)));
            return Ok(());
        }
        let (bytes, slot_bytes) = (head.bytes.get(), head.slot_bytes.get());
        let known = self.segments.entry(head.segment.get()).or_default();
        known.channels += u32::from(is_new);
        known.slot_bytes = slot_bytes;
        if head.writable.get() == 1 {
            known.is_leased = true;
            // Pieces of arrays of any producer are read here.
            let again = duplicate(descriptor.as_fd())?;
            known.source = Some(Arc::new(SegmentMapping::readonly(again, bytes)?));
            known.sink = Some(Arc::new(SegmentMapping::writable(descriptor, bytes, slot_bytes)?));
        } else {
            known.is_read = true;
            known.source = Some(Arc::new(SegmentMapping::readonly(descriptor, bytes)?));
        }
        Ok(())
    }

    /// The client's end: returns the mirror's descriptor, for an announcement.
    ///
    /// # Errors
    /// `Protocol` when the announcement is not the one of before; `Io` and `LimitExceeded` when the system gives no memory.
    pub(crate) fn announce(&mut self, head: &SegmentHead) -> Result<OwnedFd> {
        if head.segment.get() == FILE_TIER {
            return self.announce_file();
        }
        let (number, bytes, slot_bytes) = (head.segment.get(), head.bytes.get(), head.slot_bytes.get());
        let known = self.segments.entry(number).or_default();
        if known.mirror.is_none() {
            known.mirror = Some(SealedSegment::create(bytes)?);
            known.slot_bytes = slot_bytes;
        }
        let Some(mirror) = &known.mirror else {
            return Err(unknown(number));
        };
        if mirror.bytes() != bytes || known.slot_bytes != slot_bytes {
            let cause = format!("announced with {bytes} bytes, and before with {}", mirror.bytes());
            return Err(Error::new(Code::Protocol, format!("segment {number}"), cause));
        }
        if head.writable.get() == 1 {
            known.is_leased = true;
            known.source = Some(Arc::new(SegmentMapping::readonly(
                duplicate(mirror.readonly())?,
                bytes,
            )?));
            duplicate(mirror.writable())
        } else {
            known.is_read = true;
            known.sink = Some(Arc::new(SegmentMapping::writable(
                duplicate(mirror.writable())?,
                bytes,
                slot_bytes,
            )?));
            duplicate(mirror.readonly())
        }
    }

    fn announce_file(&mut self) -> Result<OwnedFd> {
        if self.file.is_none() {
            let memory = rustix::fs::memfd_create("junctura-file", MemfdFlags::CLOEXEC)
                .map_err(|errno| refused(Code::Io, "file tier", "cannot be mirrored", errno))?;
            self.file = Some(Arc::new(File::from(memory)));
        }
        let file = self.file.as_ref().ok_or_else(|| unknown(FILE_TIER))?;
        let duplicate = file.try_clone();
        duplicate
            .map(OwnedFd::from)
            .map_err(|error| refused(Code::LimitExceeded, "file tier", "cannot be mirrored", error))
    }

    /// Returns an outgoing payload of the pool, or of a leased segment.
    pub(crate) fn source(&self, at: PayloadOffset, length: u64) -> Result<OutgoingSource> {
        if at.segment == FILE_TIER {
            let file = self.file.clone().ok_or_else(|| unknown(at.segment))?;
            return Ok(OutgoingSource::File {
                file,
                at: at.offset,
                length,
            });
        }
        let known = self.segments.get(&at.segment).ok_or_else(|| unknown(at.segment))?;
        let mapping = known.source.clone().ok_or_else(|| unknown(at.segment))?;
        let start = u64::from(at.slot)
            .saturating_mul(known.slot_bytes)
            .saturating_add(at.offset);
        mapping.slice(start, length)?;
        Ok(OutgoingSource::Mapped {
            mapping,
            at: start,
            length,
        })
    }

    /// Whether it was announced, and is not forgotten.
    pub(crate) fn knows(&self, segment: u32) -> bool {
        segment == FILE_TIER || self.segments.contains_key(&segment)
    }

    /// Returns the destination of an incoming payload.
    ///
    /// # Errors
    /// `Protocol` when it belongs nowhere that was announced.
    pub(crate) fn sink(&self, at: PayloadOffset, length: u64) -> Result<IncomingTarget> {
        let end = at.offset.checked_add(length);
        if at.segment == FILE_TIER {
            let file = self.file.clone().ok_or_else(|| unknown(at.segment))?;
            if end.is_none_or(|end| end > FILE_BYTES_MAX) {
                return Err(unknown(at.segment));
            }
            return Ok(IncomingTarget::File { file, at: at.offset });
        }
        let known = self.segments.get(&at.segment).ok_or_else(|| unknown(at.segment))?;
        let sink = known.sink.as_ref().ok_or_else(|| unknown(at.segment))?;
        let slot = sink.take(at.slot, end.unwrap_or(u64::MAX))?;
        Ok(IncomingTarget::Slot {
            slot,
            at: at.offset as usize,
        })
    }

    /// Returns the destinations of the parts of an incoming load, each of so many bytes except for the last.
    ///
    /// # Errors
    /// As [`Self::sink`].
    pub(crate) fn parts(&self, at: PayloadOffset, length: u64, part_bytes: u32) -> Result<Vec<IncomingTarget>> {
        Ok(match self.sink(at, length)? {
            IncomingTarget::Slot { slot, at } => {
                let parts = slot.divide(at, part_bytes as usize);
                parts
                    .into_iter()
                    .map(|part| IncomingTarget::Part { part, at: 0 })
                    .collect()
            }
            IncomingTarget::File { file, at } => {
                let parts = 0..length.div_ceil(u64::from(part_bytes));
                let piece = |part| IncomingTarget::File {
                    file: Arc::clone(&file),
                    at: at + part * u64::from(part_bytes),
                };
                parts.map(piece).collect()
            }
            IncomingTarget::Part { .. } | IncomingTarget::Nowhere => IncomingTarget::nowhere(length, part_bytes),
        })
    }

    /// Whether the client wrote a payload of this segment itself, so that both ends have it.
    pub(crate) fn is_leased(&self, segment: u32) -> bool {
        self.segments.get(&segment).is_some_and(|known| known.is_leased)
    }

    /// The client returned a segment. Data read from it later is sent again, to the same mirror.
    pub(crate) fn returned(&mut self, segment: u32) {
        if let Some(known) = self.segments.get_mut(&segment) {
            known.is_leased = false;
            if !known.is_read {
                self.segments.remove(&segment);
            }
        }
    }

    /// The segment was dropped.
    pub(crate) fn dropped(&mut self, segment: u32) {
        self.segments.remove(&segment);
    }

    /// The server's end: a channel that knew the segment has ended. Returns whether it was the last one, and the segment is
    /// forgotten.
    pub(crate) fn leave(&mut self, segment: u32) -> bool {
        let Some(known) = self.segments.get_mut(&segment) else {
            return false;
        };
        known.channels = known.channels.saturating_sub(1);
        let is_last = known.channels == 0;
        if is_last {
            self.segments.remove(&segment);
        }
        is_last
    }

    /// The client's end: this payload is no longer held.
    pub(crate) fn forget(&self, at: PayloadOffset, length: u64) -> Result<()> {
        if at.segment == FILE_TIER {
            let Some(file) = &self.file else { return Ok(()) };
            let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            return match rustix::fs::fallocate(file, how, at.offset, length) {
                Ok(()) => Ok(()),
                Err(errno) => Err(refused(Code::Io, "file tier", "cannot punch a hole", errno)),
            };
        }
        match self.segments.get(&at.segment) {
            Some(KnownSegment {
                mirror: Some(mirror),
                slot_bytes,
                is_leased: false,
                ..
            }) => mirror.punch(u64::from(at.slot) * slot_bytes, *slot_bytes),
            _ => Ok(()),
        }
    }
}

impl IncomingTarget {
    /// For the parts of a load that are dropped.
    pub(crate) fn nowhere(length: u64, part_bytes: u32) -> Vec<Self> {
        let parts = length.div_ceil(u64::from(part_bytes));
        (0..parts).map(|_| Self::Nowhere).collect()
    }

    /// Where the next `left` bytes may be received to directly; empty: use [`Self::write`].
    pub(crate) fn space(&mut self, left: u32) -> &mut [u8] {
        match self {
            Self::Slot { slot, at } => {
                let end = (*at + left as usize).min(slot.len());
                &mut slot[*at..end]
            }
            Self::Part { part, at } => {
                let end = (*at + left as usize).min(part.len());
                &mut part[*at..end]
            }
            Self::File { .. } | Self::Nowhere => &mut [],
        }
    }

    /// So many bytes were received into [`Self::space`].
    pub(crate) fn filled(&mut self, bytes: usize) {
        match self {
            Self::Slot { at, .. } | Self::Part { at, .. } => *at += bytes,
            Self::File { at, .. } => *at += bytes as u64,
            Self::Nowhere => {}
        }
    }

    /// Writes the next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Slot { slot, at } => copy_to(slot, *at, bytes)?,
            Self::Part { part, at } => copy_to(part, *at, bytes)?,
            Self::File { file, at } => file
                .write_all_at(bytes, *at)
                .map_err(|error| refused(Code::Io, "file tier", "cannot write into its mirror", error))?,
            Self::Nowhere => {}
        }
        self.filled(bytes.len());
        Ok(())
    }
}

impl OutgoingSource {
    /// Returns the number of unsent bytes.
    pub(crate) fn left(&self) -> u64 {
        match self {
            Self::Mapped { length, .. } | Self::File { length, .. } => *length,
        }
    }

    /// Returns so many of the unsent bytes, from `from` on, or as many as are left.
    pub(crate) fn part(&self, from: u64, bytes: u64) -> Self {
        let cut = |at: u64, length: u64| (at + from, bytes.min(length.saturating_sub(from)));
        match self {
            Self::Mapped { mapping, at, length } => {
                let (at, length) = cut(*at, *length);
                let mapping = Arc::clone(mapping);
                Self::Mapped { mapping, at, length }
            }
            Self::File { file, at, length } => {
                let (at, length) = cut(*at, *length);
                let file = Arc::clone(file);
                Self::File { file, at, length }
            }
        }
    }

    /// Returns the next bytes in memory; `None`: [`Self::read`] them.
    pub(crate) fn mapped(&self) -> Option<&[u8]> {
        match self {
            Self::Mapped { mapping, at, length } => mapping.slice(*at, *length).ok(),
            Self::File { .. } => None,
        }
    }

    /// Reads the next bytes from the file.
    pub(crate) fn read(&mut self) -> Result<Vec<u8>> {
        let Self::File { file, at, length } = self else {
            return Ok(Vec::new());
        };
        let mut piece = vec![0; (*length).min(FILE_PIECE_BYTES as u64) as usize];
        file.read_exact_at(&mut piece, *at)
            .map_err(|error| refused(Code::Io, "file tier", "cannot be read", error))?;
        self.gone(piece.len() as u64);
        Ok(piece)
    }

    /// Records that so many bytes were sent.
    pub(crate) fn gone(&mut self, bytes: u64) {
        match self {
            Self::Mapped { at, length, .. } | Self::File { at, length, .. } => {
                *at += bytes;
                *length -= bytes;
            }
        }
    }
}

fn copy_to(space: &mut [u8], at: usize, bytes: &[u8]) -> Result<()> {
    let Some(space) = space.get_mut(at..at + bytes.len()) else {
        return Err(Error::new(Code::Protocol, "payload", "it is longer than announced"));
    };
    space.copy_from_slice(bytes);
    Ok(())
}

fn duplicate(descriptor: std::os::fd::BorrowedFd<'_>) -> Result<OwnedFd> {
    descriptor
        .try_clone_to_owned()
        .map_err(|error| refused(Code::LimitExceeded, "segment", "cannot be passed on", error))
}

fn unknown(segment: u32) -> Error {
    let cause = "a payload belongs there, but it was never announced";
    Error::new(Code::Protocol, format!("segment {segment}"), cause)
}
