//! Data that has arrived and was not yet read.
//!
//! ```text
//!            start                end
//!  | read …  | frame | frame | fra|      free       |     descriptors: in the order of the frames that announce them
//! ```
//! A carrier appends after `end`; frames are returned in place, and `start` moves over them. When the free part becomes
//! small, the torn rest of a frame is moved to the front; the buffer doubles only when it is full of arrived bytes, up to
//! one frame of the largest size. So a peer that claims a large frame and sends nothing costs nothing.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use junctura_model::{Code, Error, Result};
use junctura_wire::frame::{BODY_BYTES_MAX, HEADER_BYTES};
use junctura_wire::{FrameKind, WireFrame};

use crate::buffers::high_water::HighWater;

/// Bytes with which an inbox starts and to which it shrinks.
const BYTES_START: usize = 64 << 10;
/// Bytes of the largest frame, and of the largest inbox.
const BYTES_MAX: usize = HEADER_BYTES + BODY_BYTES_MAX;
/// A carrier should be able to take at least this much at once.
const FREE_BYTES_MIN: usize = 16 << 10;
/// Descriptors that may be stored here at once; beyond, the inbox takes no more before frames are read.
const DESCRIPTORS_MAX: usize = 64;
/// The byte of a header that counts descriptors.
const DESCRIPTORS_AT: usize = 5;

/// A receive buffer: filled by a [`crate::Carrier`], emptied frame by frame.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    descriptors: VecDeque<OwnedFd>,
    /// Descriptors arrive separately from frames, and are fetched when a frame announces one.
    come_apart: bool,
    tide: HighWater,
}

impl Inbox {
    /// Makes an empty inbox; it takes memory when something arrives.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the next whole frame and its descriptor; `None`: no whole frame is left.
    ///
    /// Take out all frames before receiving or waiting again: several may have arrived at once.
    ///
    /// # Errors
    /// `Protocol` when the stream is out of step: a header that is none of ours, or descriptors and the frames that
    /// announce them do not match. It stays so; end the connection.
    pub fn next_frame(&mut self) -> Result<Option<(WireFrame<'_>, Option<OwnedFd>)>> {
        let Some((frame, length)) = self.whole_frame()? else {
            self.no_stray_descriptors()?;
            return Ok(None);
        };
        let WireFrame {
            kind,
            descriptors,
            request,
            body,
        } = frame;
        let body_bytes = body.len();
        let descriptor = self.descriptor(kind, descriptors)?;
        self.start += length;
        let body = &self.bytes[self.start - body_bytes..self.start];
        Ok(Some((
            WireFrame {
                kind,
                descriptors,
                request,
                body,
            },
            descriptor,
        )))
    }

    /// The frame that [`Inbox::next_frame`] takes out next, left where it is; `None`: nothing whole is left.
    ///
    /// # Errors
    /// `Protocol` for a header that is none of ours.
    pub fn peek(&self) -> Result<Option<WireFrame<'_>>> {
        Ok(self.whole_frame()?.map(|(frame, _)| frame))
    }

    /// Takes out the frame that [`Inbox::peek`] has returned, and that has no descriptor: so many bytes, its header included.
    pub fn skip(&mut self, frame_bytes: usize) {
        debug_assert!(
            matches!(self.whole_frame(), Ok(Some((frame, length))) if frame.descriptors == 0 && length == frame_bytes),
            "it is the next frame"
        );
        self.start = (self.start + frame_bytes).min(self.end);
    }

    /// The frame at the start, where it and its descriptor are here, and its length in bytes.
    fn whole_frame(&self) -> Result<Option<(WireFrame<'_>, usize)>> {
        let Some((frame, length)) = WireFrame::split(&self.bytes[self.start..self.end])? else {
            return Ok(None);
        };
        let lacks_descriptor = self.come_apart && frame.descriptors > 0 && self.descriptors.is_empty();
        Ok((!lacks_descriptor).then_some((frame, length)))
    }

    /// Checks that the stream may end here. Call it after [`crate::ReceiveResult::End`], when all frames are taken out.
    ///
    /// # Errors
    /// `Disconnected` when the peer ended within a frame.
    pub fn finish(&self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Code::Disconnected,
            "",
            format!("the peer ended within a frame, {} bytes into it", self.len()),
        ))
    }

    /// Returns the number of unread bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether nothing is here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Bytes of memory that this inbox uses.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// For carriers: returns the space for new data. Empty: the inbox is full, frames must be taken out first.
    pub fn space(&mut self) -> &mut [u8] {
        if self.descriptors.len() >= DESCRIPTORS_MAX {
            return &mut [];
        }
        if self.is_empty() {
            self.start = 0;
            self.end = 0;
            if let Some(keep) = self.tide.ebb(self.bytes.len(), BYTES_START) {
                self.bytes.truncate(keep);
                self.bytes.shrink_to_fit();
            }
        }
        if self.bytes.len() - self.end < FREE_BYTES_MIN {
            self.make_room();
        }
        &mut self.bytes[self.end..]
    }

    /// For carriers: so many bytes of [`Inbox::space`] were filled.
    pub fn filled(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.bytes.len() - self.end, "no more than there was space for");
        self.end = (self.end + bytes).min(self.bytes.len());
        self.tide.rise(self.len());
    }

    /// For carriers: descriptors arrive separately from frames; [`Self::wants_descriptor`] returns when one is to be
    /// fetched.
    pub fn descriptors_come_apart(&mut self) {
        self.come_apart = true;
    }

    /// For carriers: whether the next frame waits for its descriptor, which has to be fetched.
    #[must_use]
    pub fn wants_descriptor(&self) -> bool {
        self.come_apart
            && self.descriptors.is_empty()
            && self.bytes[self.start..self.end]
                .get(DESCRIPTORS_AT)
                .is_some_and(|&announced| announced > 0)
            && matches!(WireFrame::split(&self.bytes[self.start..self.end]), Ok(Some(_)))
    }

    /// For carriers: adds a descriptor that arrived not later than the first byte of its frame.
    pub fn push_descriptor(&mut self, descriptor: OwnedFd) {
        self.descriptors.push_back(descriptor);
    }

    fn make_room(&mut self) {
        let used = self.len();
        if self.start > 0 && (self.start >= used || self.bytes.len() == BYTES_MAX) {
            // Costs no more than was read since the last time, or once in a frame of the largest size.
            self.bytes.copy_within(self.start..self.end, 0);
            self.start = 0;
            self.end = used;
        }
        if self.bytes.len() - self.end < FREE_BYTES_MIN && self.bytes.len() < BYTES_MAX {
            // Zeros come from the system for nothing; `resize` would write each.
            let mut larger = vec![0; (self.bytes.len() * 2).clamp(BYTES_START, BYTES_MAX)];
            larger[..used].copy_from_slice(&self.bytes[self.start..self.end]);
            self.bytes = larger;
            self.start = 0;
            self.end = used;
        }
    }

    /// The descriptor that a frame of this kind announces.
    fn descriptor(&mut self, kind: u8, announced: u8) -> Result<Option<OwnedFd>> {
        if FrameKind::from_number(kind).is_some_and(|kind| kind.descriptors() != announced) {
            return Err(out_of_step(format!(
                "a frame of kind {kind} with {announced} descriptors"
            )));
        }
        if announced == 0 {
            return Ok(None);
        }
        match self.descriptors.pop_front() {
            Some(descriptor) => Ok(Some(descriptor)),
            None => Err(out_of_step(format!(
                "a frame of kind {kind} arrived without its descriptor"
            ))),
        }
    }

    /// Refuses descriptors that belong to no frame, once all whole frames are read.
    fn no_stray_descriptors(&self) -> Result<()> {
        let torn = &self.bytes[self.start..self.end];
        let may_wait = match torn.get(DESCRIPTORS_AT) {
            Some(&announced) => usize::from(announced),
            None => usize::from(!torn.is_empty()),
        };
        if self.descriptors.len() > may_wait {
            return Err(out_of_step("a descriptor arrived that no frame announces".to_owned()));
        }
        Ok(())
    }
}

fn out_of_step(cause: String) -> Error {
    Error::new(Code::Protocol, "descriptors", cause)
}

#[cfg(test)]
mod tests {
    use junctura_wire::{Reply, Request};
    use proptest::prelude::*;

    use super::*;

    fn fill(inbox: &mut Inbox, bytes: &[u8]) -> usize {
        let space = inbox.space();
        let count = bytes.len().min(space.len());
        space[..count].copy_from_slice(&bytes[..count]);
        inbox.filled(count);
        count
    }

    fn stats(request: u64, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        Reply::Stats(&"x".repeat(length)).encode(request, &mut bytes);
        bytes
    }

    fn segment() -> Vec<u8> {
        let mut bytes = Vec::new();
        Reply::Segment(junctura_wire::fixed::SegmentHead::default()).encode(0, &mut bytes);
        bytes
    }

    fn descriptor() -> OwnedFd {
        rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
    }

    #[test]
    fn a_claim_costs_nothing_and_a_full_inbox_says_so() {
        let mut inbox = Inbox::new();
        let frame = stats(1, BODY_BYTES_MAX);
        fill(&mut inbox, &frame[..100]);
        assert!(inbox.next_frame().unwrap().is_none());
        assert_eq!(inbox.capacity(), BYTES_START);
        let mut sent = 100;
        while sent < frame.len() {
            let count = fill(&mut inbox, &frame[sent..]);
            assert!(count > 0);
            sent += count;
            assert!(inbox.capacity() <= (sent * 2 + FREE_BYTES_MIN * 2).clamp(BYTES_START, BYTES_MAX));
        }
        assert_eq!(inbox.space().len(), 0);
        assert_eq!(inbox.next_frame().unwrap().unwrap().0.body.len(), BODY_BYTES_MAX);
        assert!(!inbox.space().is_empty());
    }

    #[test]
    fn memory_goes_back_after_a_burst() {
        let mut inbox = Inbox::new();
        let (large, small) = (stats(1, BODY_BYTES_MAX), stats(1, 10));
        let mut sent = 0;
        while sent < large.len() {
            sent += fill(&mut inbox, &large[sent..]);
        }
        assert!(inbox.next_frame().unwrap().is_some());
        for _ in 0..200 {
            fill(&mut inbox, &small);
            assert!(inbox.next_frame().unwrap().is_some());
        }
        assert_eq!(inbox.capacity(), BYTES_START);
    }

    #[test]
    fn descriptors_and_frames_must_match() {
        let mut inbox = Inbox::new();
        inbox.push_descriptor(descriptor());
        assert_eq!(inbox.next_frame().unwrap_err().code(), Code::Protocol);

        let mut inbox = Inbox::new();
        fill(&mut inbox, &segment());
        assert_eq!(inbox.next_frame().unwrap_err().code(), Code::Protocol);
        assert_eq!(inbox.next_frame().unwrap_err().code(), Code::Protocol);

        let mut inbox = Inbox::new();
        inbox.push_descriptor(descriptor());
        for byte in segment() {
            fill(&mut inbox, &[byte]);
            assert!(inbox.len() == segment().len() || inbox.next_frame().unwrap().is_none());
        }
        assert!(inbox.next_frame().unwrap().unwrap().1.is_some());

        // The rest of a frame that announces none.
        let mut inbox = Inbox::new();
        inbox.push_descriptor(descriptor());
        fill(&mut inbox, &stats(1, 10)[..6]);
        assert_eq!(inbox.next_frame().unwrap_err().code(), Code::Protocol);

        // A kind without descriptors announces one.
        let mut inbox = Inbox::new();
        inbox.push_descriptor(descriptor());
        let mut bytes = Vec::new();
        Request::Stat.encode(1, &mut bytes);
        bytes[DESCRIPTORS_AT] = 1;
        fill(&mut inbox, &bytes);
        assert_eq!(inbox.next_frame().unwrap_err().code(), Code::Protocol);
    }

    #[test]
    fn descriptors_that_pile_up_stop_the_inbox() {
        let mut inbox = Inbox::new();
        for _ in 0..DESCRIPTORS_MAX {
            fill(&mut inbox, &segment());
            inbox.push_descriptor(descriptor());
        }
        assert_eq!(inbox.space().len(), 0);
        assert!(inbox.next_frame().unwrap().unwrap().1.is_some());
        assert!(!inbox.space().is_empty());
    }

    #[test]
    fn a_frame_that_was_looked_at_is_skipped() {
        let mut inbox = Inbox::new();
        fill(&mut inbox, &[stats(1, 10), stats(2, 0)].concat());
        let peeked = inbox.peek().unwrap().unwrap();
        let frame_bytes = HEADER_BYTES + peeked.body.len();
        inbox.skip(frame_bytes);
        assert_eq!(inbox.next_frame().unwrap().unwrap().0.request, 2);
        assert!(inbox.is_empty());
    }

    #[test]
    fn an_end_within_a_frame_is_told() {
        let mut inbox = Inbox::new();
        assert_eq!(inbox.finish(), Ok(()));
        fill(&mut inbox, &stats(1, 3)[..7]);
        assert_eq!(inbox.finish().unwrap_err().code(), Code::Disconnected);
    }

    proptest! {
        #[test]
        fn frames_are_the_same_however_they_were_cut(
            lengths in prop::collection::vec(prop_oneof![0_usize..40, 0_usize..40_000], 1..20),
            cuts in prop::collection::vec(prop_oneof![1_usize..30, 1_usize..90_000], 1..20),
        ) {
            let mut stream = Vec::new();
            for (at, &length) in lengths.iter().enumerate() {
                stream.extend_from_slice(&stats(at as u64, length));
            }
            let (mut inbox, mut seen, mut sent, mut turn) = (Inbox::new(), Vec::new(), 0, 0);
            while sent < stream.len() {
                let cut = cuts[turn % cuts.len()].min(stream.len() - sent);
                sent += fill(&mut inbox, &stream[sent..sent + cut]);
                // Every third time the reader pauses.
                while turn % 3 != 0 || sent == stream.len() {
                    let Some((frame, _)) = inbox.next_frame().unwrap() else { break };
                    prop_assert_eq!(frame.request, seen.len() as u64);
                    seen.push(frame.body.len());
                }
                turn += 1;
            }
            prop_assert_eq!(seen, lengths);
        }
    }
}
