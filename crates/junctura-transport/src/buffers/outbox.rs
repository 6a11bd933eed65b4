//! Data that is to be sent.
//!
//! ```text
//!  0          sent
//!  | gone …   | frame | frame with descriptor | frame |      descriptors: each bound to the first byte of its frame
//! ```
//! Frames are appended, carriers take pieces from the front. A piece ends where a frame with a descriptor begins, so that a
//! carrier never has more than one descriptor to attach, and always to the first byte of what it sends.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use junctura_wire::WireFrame;
use junctura_wire::frame::{BODY_BYTES_MAX, HEADER_BYTES};

use crate::buffers::high_water::HighWater;

/// Bytes to which an outbox shrinks after a burst.
const BYTES_KEPT: usize = 64 << 10;
/// From here on, sent bytes are cut off when they are the greater part.
const GONE_BYTES_MIN: usize = 64 << 10;

/// The bytes of a header that count descriptors, and that are zero.
const DESCRIPTORS_AND_ZERO: Range<usize> = 5..8;

/// A send buffer: filled with frames, emptied by a [`crate::Carrier`].
///
/// It has no limit of its own: its owner sees [`Outbox::len`] and decides what a peer that does not read may cost.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    descriptors: VecDeque<BoundDescriptor>,
    tide: HighWater,
}

/// A descriptor and where in `bytes` its frame begins.
#[derive(Debug)]
struct BoundDescriptor {
    at: usize,
    descriptor: Arc<OwnedFd>,
}

impl Outbox {
    /// An empty outbox.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the frames that `write` appends (to what is there, which it leaves alone).
    ///
    /// # Errors
    /// `TooLarge` for a frame that no reader would take, `InvalidArgument` for what is no sequence of whole frames without
    /// descriptors. The outbox is as it was before.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let start = self.append(write);
        if is_one_plain_frame(&self.bytes[start..]) {
            return Ok(());
        }
        let mut at = start;
        while at < self.bytes.len() {
            match whole(&self.bytes[at..]) {
                Ok((0, length)) => at += length,
                Ok(_) => return self.take_back(start, no_frames("a frame without the descriptor that it announces")),
                Err(error) => return self.take_back(start, error),
            }
        }
        Ok(())
    }

    /// Appends the one frame that `write` appends, and its descriptor.
    ///
    /// The descriptor is closed here after it was sent, unless it is shared.
    ///
    /// # Errors
    /// As [`Outbox::push`]; `InvalidArgument` for anything but one frame that announces one descriptor.
    pub fn push_with_descriptor(
        &mut self,
        descriptor: impl Into<Arc<OwnedFd>>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let start = self.append(write);
        match whole(&self.bytes[start..]) {
            Ok((1, length)) if start + length == self.bytes.len() => {
                self.descriptors.push_back(BoundDescriptor {
                    at: start,
                    descriptor: descriptor.into(),
                });
                Ok(())
            }
            Ok(_) => self.take_back(start, no_frames("it is not exactly one frame with one descriptor")),
            Err(error) => self.take_back(start, error),
        }
    }

    /// Returns the number of unsent bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether everything was sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Bytes of memory that this outbox uses.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// For carriers: returns the next bytes, and the descriptor for the first byte; `None` when everything was sent.
    #[must_use]
    pub fn piece(&self) -> Option<(&[u8], Option<BorrowedFd<'_>>)> {
        let mut bound = self.descriptors.iter().peekable();
        let first = bound.next_if(|bound| bound.at == self.sent);
        let end = bound.next().map_or(self.bytes.len(), |next| next.at);
        let piece = &self.bytes[self.sent..end];
        (!piece.is_empty()).then(|| (piece, first.map(|bound| bound.descriptor.as_fd())))
    }

    /// For carriers: records that so many bytes of [`Outbox::piece`] were sent (at least one: then its descriptor as well).
    pub fn gone(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len(), "no more than there was");
        if bytes > 0 && self.descriptors.front().is_some_and(|bound| bound.at == self.sent) {
            self.descriptors.pop_front();
        }
        self.sent += bytes;
        if self.is_empty() {
            self.bytes.clear();
            self.sent = 0;
            if let Some(keep) = self.tide.ebb(self.bytes.capacity(), BYTES_KEPT) {
                self.bytes.shrink_to(keep);
            }
        } else if self.sent >= GONE_BYTES_MIN && self.sent >= self.len() {
            self.bytes.drain(..self.sent);
            for bound in &mut self.descriptors {
                bound.at -= self.sent;
            }
            self.sent = 0;
        }
    }

    /// Discards unsent data: there is no receiver.
    pub fn clear(&mut self) {
        self.descriptors.clear();
        self.gone(self.len());
    }

    /// Appends bytes that need be no frames: torn, garbled, or without the descriptor that they announce.
    #[cfg(feature = "conformance")]
    #[doc(hidden)]
    pub fn push_unchecked(&mut self, bytes: &[u8], descriptor: Option<OwnedFd>) {
        let at = self.append(|out| out.extend_from_slice(bytes));
        if let Some(descriptor) = descriptor {
            self.descriptors.push_back(BoundDescriptor {
                at,
                descriptor: Arc::new(descriptor),
            });
        }
    }

    fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.bytes.len();
        write(&mut self.bytes);
        debug_assert!(self.bytes.len() >= start, "frames are appended to what is there");
        self.tide.rise(self.bytes.len());
        start
    }

    fn take_back(&mut self, start: usize, error: Error) -> Result<()> {
        self.bytes.truncate(start);
        Err(error)
    }
}

/// Whether this is one frame without descriptors, as nearly always. Reads only the necessary fields: the frame was written
/// a moment ago piece by piece, and reading the whole frame would wait until all earlier writes are in the cache.
fn is_one_plain_frame(bytes: &[u8]) -> bool {
    let (Some(length), Some([0, 0, 0])) = (bytes.first_chunk(), bytes.get(DESCRIPTORS_AND_ZERO)) else {
        return false;
    };
    let body_bytes = u32::from_le_bytes(*length) as usize;
    body_bytes <= BODY_BYTES_MAX && bytes.len() == HEADER_BYTES + body_bytes
}

/// Descriptors and length of the frame at the front of `bytes`.
fn whole(bytes: &[u8]) -> Result<(u8, usize)> {
    match WireFrame::split(bytes) {
        Ok(Some((frame, length))) => Ok((frame.descriptors, length)),
        Ok(None) => Err(no_frames("a torn frame")),
        Err(error) => Err(Error::new(Code::TooLarge, error.subject(), error.cause())),
    }
}

fn no_frames(cause: &str) -> Error {
    Error::new(Code::InvalidArgument, "frame to be sent", cause)
}

#[cfg(test)]
mod tests {
    use junctura_wire::fixed::SegmentHead;
    use junctura_wire::{Reply, Request};

    use super::*;

    fn descriptor() -> OwnedFd {
        rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
    }

    fn segment(out: &mut Vec<u8>) {
        Reply::Segment(SegmentHead::default()).encode(0, out);
    }

    #[test]
    fn a_piece_ends_where_a_descriptor_begins() {
        let mut outbox = Outbox::new();
        assert!(outbox.piece().is_none());
        outbox.push(|out| Request::Stat.encode(1, out)).unwrap();
        outbox.push_with_descriptor(descriptor(), segment).unwrap();
        outbox.push(|out| Request::Stat.encode(2, out)).unwrap();
        outbox.push_with_descriptor(Arc::new(descriptor()), segment).unwrap();
        assert_eq!(outbox.len(), 16 + 40 + 16 + 40);
        let mut pieces = Vec::new();
        while let Some((piece, descriptor)) = outbox.piece() {
            pieces.push((piece.len(), descriptor.is_some()));
            // Torn: the descriptor is sent with the first byte and never again.
            outbox.gone(1);
            if let Some((rest, None)) = outbox.piece() {
                let rest = rest.len();
                outbox.gone(rest);
            }
        }
        assert_eq!(pieces, [(16, false), (56, true), (40, true)]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn what_no_reader_would_take_is_not_sent() {
        let mut outbox = Outbox::new();
        outbox.push(|out| Request::Stat.encode(1, out)).unwrap();
        let large = "x".repeat(BODY_BYTES_MAX + 1);
        let refused = [
            (Code::TooLarge, outbox.push(|out| Reply::Stats(&large).encode(1, out))),
            (Code::InvalidArgument, outbox.push(|out| out.push(1))),
            (Code::InvalidArgument, outbox.push(segment)),
            (Code::InvalidArgument, outbox.push_with_descriptor(descriptor(), |_| {})),
            (
                Code::InvalidArgument,
                outbox.push_with_descriptor(descriptor(), |out| Request::Stat.encode(1, out)),
            ),
            (
                Code::InvalidArgument,
                outbox.push_with_descriptor(descriptor(), |out| {
                    segment(out);
                    Request::Stat.encode(1, out);
                }),
            ),
        ];
        for (code, result) in refused {
            assert_eq!(result.unwrap_err().code(), code);
        }
        assert_eq!(outbox.len(), 16);
        assert!(outbox.piece().unwrap().1.is_none());
    }

    #[test]
    fn what_is_forgotten_leaves_nothing_behind() {
        let mut outbox = Outbox::new();
        for _ in 0..3 {
            outbox.push(|out| Request::Stat.encode(1, out)).unwrap();
            outbox.push_with_descriptor(descriptor(), segment).unwrap();
        }
        outbox.gone(20);
        outbox.clear();
        assert!(outbox.is_empty() && outbox.piece().is_none());
        outbox.push(|out| Request::Stat.encode(2, out)).unwrap();
        let (piece, descriptor) = outbox.piece().unwrap();
        assert_eq!((piece.len(), descriptor.is_some()), (16, false));
    }

    #[test]
    fn what_has_gone_takes_no_memory() {
        let mut outbox = Outbox::new();
        let text = "x".repeat(1000);
        for turn in 0..5_000_u64 {
            outbox.push(|out| Reply::Stats(&text).encode(turn, out)).unwrap();
            outbox.push_with_descriptor(descriptor(), segment).unwrap();
            if turn >= 100 {
                let mut left = 1016 + 40;
                while left > 0 {
                    let piece = outbox.piece().unwrap().0.len().min(left);
                    outbox.gone(piece);
                    left -= piece;
                }
            }
        }
        assert!(outbox.capacity() < 1 << 20, "{}", outbox.capacity());
        assert_eq!(outbox.descriptors.len(), 100);
    }

    #[test]
    fn memory_goes_back_after_a_burst() {
        let mut outbox = Outbox::new();
        let text = "x".repeat(BODY_BYTES_MAX);
        outbox.push(|out| Reply::Stats(&text).encode(1, out)).unwrap();
        for _ in 0..200 {
            let length = outbox.len();
            outbox.gone(length);
            outbox.push(|out| Request::Stat.encode(1, out)).unwrap();
        }
        assert!(outbox.capacity() <= BYTES_KEPT, "{}", outbox.capacity());
    }
}
