//! Data for the other end, in order: frames that were copied, payloads in place.
//!
//! Where other streams help, a large payload is sent in parts: this stream takes one when the one before was sent, and
//! continues when none is left.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use junctura_model::Result;
use zerocopy::IntoBytes;

use crate::mirror::OutgoingSource;
use crate::record::{BODY_BYTES_MAX, HEADER_BYTES, LinkRecord, PayloadOffset};
use crate::stream::LinkStream;
use crate::streams::SideStreams;

/// Frames are gathered up to about this many bytes.
const GATHERED_BYTES: usize = 64 << 10;
/// Pieces that are written together.
const SLICES_MAX: usize = 16;
/// Buffers that are kept for the next frames.
const SPARES_MAX: usize = 8;
/// From here on nothing more is taken in. One payload may be larger.
const BYTES_MAX: u64 = 4 << 20;

#[derive(Debug)]
enum QueuePiece {
    Bytes {
        bytes: Vec<u8>,
        gone: usize,
    },
    Payload(OutgoingSource),
    /// Parts of this load, as long as there are some.
    Load(u64),
}

/// A send buffer.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    pieces: VecDeque<QueuePiece>,
    /// The record of frames that is being gathered; its header is written when it is closed.
    gathered: Vec<u8>,
    bytes: u64,
    spares: Vec<Vec<u8>>,
    /// The streams that help.
    sides: Option<Arc<SideStreams>>,
}

impl SendQueue {
    /// Large payloads use these streams, too.
    pub(crate) fn share(&mut self, sides: Arc<SideStreams>) {
        self.sides = Some(sides);
    }

    /// Whether nothing is left to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.gathered.is_empty()
    }

    /// Whether it takes no more now.
    pub(crate) fn is_full(&self) -> bool {
        let untaken = self.sides.as_ref().map_or(0, |sides| sides.untaken());
        self.bytes + untaken >= BYTES_MAX
    }

    /// One whole frame.
    pub(crate) fn frame(&mut self, parts: [&[u8]; 2]) {
        if self.gathered.is_empty() {
            self.gathered = self.spares.pop().unwrap_or_default();
            self.gathered.resize(HEADER_BYTES, 0);
        }
        for part in parts {
            self.gathered.extend_from_slice(part);
            self.bytes += part.len() as u64;
        }
        if self.gathered.len() >= GATHERED_BYTES {
            self.close();
        }
    }

    /// A payload, and where it belongs.
    pub(crate) fn payload(
        &mut self,
        at: PayloadOffset,
        mut next: impl FnMut(PayloadOffset, u64) -> Result<OutgoingSource>,
        length: u64,
    ) -> Result<()> {
        let mut gone = 0;
        while gone < length {
            let piece = (length - gone).min(u64::from(BODY_BYTES_MAX));
            let at = PayloadOffset {
                offset: at.offset + gone,
                ..at
            };
            let source = next(at, piece)?;
            match self.sides.as_ref().filter(|sides| sides.divides(piece)) {
                None => {
                    self.record(LinkRecord::Payload(at, piece as u32));
                    self.bytes += piece;
                    self.pieces.push_back(QueuePiece::Payload(source));
                }
                Some(sides) => {
                    let number = sides.load(source);
                    self.record(LinkRecord::Load(at, piece as u32));
                    self.pieces.push_back(QueuePiece::Load(number));
                    self.record(LinkRecord::Whole);
                }
            }
            gone += piece;
        }
        Ok(())
    }

    /// A part of a load, alone.
    pub(crate) fn part(&mut self, record: LinkRecord, source: OutgoingSource) {
        self.record(record);
        self.bytes += source.left();
        self.pieces.push_back(QueuePiece::Payload(source));
    }

    /// A record without a body.
    pub(crate) fn record(&mut self, record: LinkRecord) {
        self.close();
        let mut bytes = self.spares.pop().unwrap_or_default();
        bytes.extend_from_slice(record.header().as_bytes());
        self.bytes += HEADER_BYTES as u64;
        self.pieces.push_back(QueuePiece::Bytes { bytes, gone: 0 });
    }

    fn close(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        let mut bytes = std::mem::take(&mut self.gathered);
        let record = LinkRecord::Frames((bytes.len() - HEADER_BYTES) as u32);
        bytes[..HEADER_BYTES].copy_from_slice(record.header().as_bytes());
        self.bytes += HEADER_BYTES as u64;
        self.pieces.push_back(QueuePiece::Bytes { bytes, gone: 0 });
    }

    /// Sends as much as possible without blocking. Returns whether anything was sent.
    pub(crate) fn flush(&mut self, stream: &mut LinkStream) -> Result<bool> {
        self.close();
        let mut has_moved = false;
        while !self.pieces.is_empty() {
            self.fetch()?;
            let slices: Vec<IoSlice<'_>> = self
                .pieces
                .iter()
                .take(SLICES_MAX)
                .map_while(QueuePiece::slice)
                .map(IoSlice::new)
                .collect();
            let count = stream.write(&slices)?;
            if count == 0 {
                return Ok(has_moved);
            }
            self.gone(count as u64);
            has_moved = true;
        }
        stream.flush()?;
        Ok(has_moved)
    }

    /// If parts of a load are next, takes one; if a piece of a file is next, reads it.
    fn fetch(&mut self) -> Result<()> {
        if let (Some(QueuePiece::Load(number)), Some(sides)) = (self.pieces.front(), &self.sides) {
            match sides.take_of(*number) {
                Some((record, source)) => {
                    let bytes = record.to_bytes().to_vec();
                    self.bytes += bytes.len() as u64 + source.left();
                    self.pieces.push_front(QueuePiece::Payload(source));
                    self.pieces.push_front(QueuePiece::Bytes { bytes, gone: 0 });
                }
                // The record that it has to be whole follows.
                None => drop(self.pieces.pop_front()),
            }
        }
        if let Some(QueuePiece::Payload(source)) = self.pieces.front_mut()
            && source.mapped().is_none()
        {
            let bytes = source.read()?;
            if source.left() == 0 {
                self.pieces.pop_front();
            }
            self.pieces.push_front(QueuePiece::Bytes { bytes, gone: 0 });
        }
        Ok(())
    }

    fn gone(&mut self, mut count: u64) {
        self.bytes -= count;
        while count > 0
            && let Some(front) = self.pieces.front_mut()
        {
            let went = count.min(front.left());
            front.go(went);
            count -= went;
            if front.left() == 0
                && let Some(QueuePiece::Bytes { mut bytes, .. }) = self.pieces.pop_front()
                && self.spares.len() < SPARES_MAX
                && bytes.capacity() <= 2 * GATHERED_BYTES
            {
                bytes.clear();
                self.spares.push(bytes);
            }
        }
    }
}

impl QueuePiece {
    fn slice(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes { bytes, gone } => Some(&bytes[*gone..]),
            Self::Payload(source) => source.mapped(),
            Self::Load(_) => None,
        }
    }

    fn left(&self) -> u64 {
        match self {
            Self::Bytes { bytes, gone } => (bytes.len() - gone) as u64,
            Self::Payload(source) => source.left(),
            Self::Load(_) => 0,
        }
    }

    fn go(&mut self, count: u64) {
        match self {
            Self::Bytes { gone, .. } => *gone += count as usize,
            Self::Payload(source) => source.gone(count),
            Self::Load(_) => {}
        }
    }
}
