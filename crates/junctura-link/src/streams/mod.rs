//! The state that the streams of one end of a link share: outgoing and incoming parts of large payloads.
//!
//! ```text
//!   relay ──load──►  parts that nobody has taken   ──►  whichever stream takes more: a porter's, or the relay's own
//!   relay ─announce► parts that have not come      ◄──  whichever stream brings them
//!         ◄──whole── none is left
//! ```
//! One stream is written and read by one thread at each end, and so carries as much as a core can. A link may have *side
//! streams*, each with a thread of its own at both ends ([`crate::streams::stream_worker`]). All control records stay on
//! the first stream; so their order is that of a link of one stream.
//!
//! A stream takes the next part when it has sent the one before: a slow one takes fewer, and delays the others by at most
//! one part.

pub(crate) mod stream_worker;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use rustix::event::{EventfdFlags, eventfd};

use crate::mirror::{IncomingTarget, OutgoingSource};
use crate::record::{LinkRecord, PART_BYTES};
use crate::refused;

/// Streams of one link at most, the first one among them.
pub const STREAMS_MAX: u8 = 8;
/// Payloads of so many parts are sent in parts. Smaller ones are sent before another thread has woken up.
const PARTS_MIN: u64 = 2;
/// Loads that are announced and incomplete.
const LOADS_MAX: usize = 64;
/// How far ahead of its announcement a part may arrive. The buffers of all streams hold far less.
const LEAD_MAX: u64 = 1 << 12;

/// Wakes one thread.
#[derive(Debug)]
pub(crate) struct ThreadWaker(OwnedFd);

impl ThreadWaker {
    pub(crate) fn new() -> Result<Self> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map(Self)
            .map_err(|errno| refused(Code::LimitExceeded, "eventfd", "cannot be opened", errno))
    }

    pub(crate) fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Records that data was received.
    pub(crate) fn heard(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for ThreadWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// How far a link is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LinkStage {
    #[default]
    Running,
    /// Everything was sent: the streams end in order.
    Closing,
    /// It is over.
    Stopped,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SideStreams {
    state: Mutex<StreamsState>,
    /// Bytes of each part of a load, but for the last.
    part_bytes: u32,
    /// Bytes of loads that no stream has taken.
    untaken: AtomicU64,
    /// When a side stream last took something, in milliseconds since `began`.
    went_ms: AtomicU64,
    began: Instant,
    /// The relay's.
    bell: ThreadWaker,
}

#[derive(Debug, Default)]
struct StreamsState {
    stage: LinkStage,
    failure: Option<Error>,
    /// Bells of the threads that carry side streams.
    porters: Vec<Arc<ThreadWaker>>,
    going: VecDeque<OutgoingLoad>,
    /// Loads that were begun here.
    loads: u64,
    /// Parts that side streams have taken and not sent.
    under_way: usize,
    coming: VecDeque<IncomingLoad>,
    /// Loads that the other end has announced.
    announced: u64,
}

/// A load of which not all parts are taken.
#[derive(Debug)]
struct OutgoingLoad {
    number: u64,
    source: OutgoingSource,
    next: u32,
}

/// A load of which not all parts have arrived.
#[derive(Debug)]
struct IncomingLoad {
    number: u64,
    length: u32,
    /// The destinations of parts that have not begun to arrive.
    parts: Vec<Option<IncomingTarget>>,
    left: usize,
}

impl SideStreams {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Self::with_parts(PART_BYTES)
    }

    /// For tests, parts of so many bytes.
    pub(crate) fn with_parts(part_bytes: u32) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            state: Mutex::default(),
            part_bytes: part_bytes.clamp(1, PART_BYTES),
            untaken: AtomicU64::new(0),
            went_ms: AtomicU64::new(0),
            began: Instant::now(),
            bell: ThreadWaker::new()?,
        }))
    }

    fn state(&self) -> MutexGuard<'_, StreamsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of each part of a load, but for the last.
    pub(crate) fn part_bytes(&self) -> u32 {
        self.part_bytes
    }

    /// Returns the bell of the relay: a load is whole, everything was sent, or an error occurred.
    pub(crate) fn bell(&self) -> &ThreadWaker {
        &self.bell
    }

    /// Attaches another stream; returns the bell of its thread.
    pub(crate) fn attach(&self) -> Result<Arc<ThreadWaker>> {
        let bell = Arc::new(ThreadWaker::new()?);
        self.state().porters.push(Arc::clone(&bell));
        Ok(bell)
    }

    // Outgoing data.

    /// Whether a payload of this length is sent in parts.
    pub(crate) fn divides(&self, length: u64) -> bool {
        length >= PARTS_MIN * u64::from(self.part_bytes) && !self.state().porters.is_empty()
    }

    /// Adds an outgoing payload; returns its number. Its announcement must be sent before the relay takes a part.
    pub(crate) fn load(&self, source: OutgoingSource) -> u64 {
        self.untaken.fetch_add(source.left(), Ordering::Relaxed);
        let mut state = self.state();
        let number = state.loads;
        state.loads += 1;
        // The relay takes one, too.
        let others = source.left().div_ceil(u64::from(self.part_bytes)) as usize - 1;
        state.going.push_back(OutgoingLoad {
            number,
            source,
            next: 0,
        });
        for bell in state.porters.iter().take(others) {
            bell.ring();
        }
        number
    }

    /// Bytes that no stream has taken yet.
    pub(crate) fn untaken(&self) -> u64 {
        self.untaken.load(Ordering::Relaxed)
    }

    /// The first stream takes the next part of this load. `None`: all are taken.
    pub(crate) fn take_of(&self, number: u64) -> Option<(LinkRecord, OutgoingSource)> {
        let mut state = self.state();
        let is_next = state.going.front().is_some_and(|going| going.number == number);
        if is_next { self.take_from(&mut state) } else { None }
    }

    /// Takes the next part for a side stream, which reports when it [was sent](Self::sent).
    pub(crate) fn take(&self) -> Option<(LinkRecord, OutgoingSource)> {
        let mut state = self.state();
        let taken = self.take_from(&mut state)?;
        state.under_way += 1;
        Some(taken)
    }

    fn take_from(&self, state: &mut StreamsState) -> Option<(LinkRecord, OutgoingSource)> {
        let going = state.going.front_mut()?;
        let from = u64::from(going.next) * u64::from(self.part_bytes);
        let part = going.source.part(from, u64::from(self.part_bytes));
        let record = LinkRecord::Part(going.number, going.next, part.left() as u32);
        going.next += 1;
        if from + part.left() >= going.source.left() {
            state.going.pop_front();
        }
        self.untaken.fetch_sub(part.left(), Ordering::Relaxed);
        Some((record, part))
    }

    /// Records that some bytes of a part were sent.
    pub(crate) fn went(&self) {
        let since = self.began.elapsed().as_millis() as u64;
        self.went_ms.fetch_max(since, Ordering::Relaxed);
    }

    /// When a side stream last took something.
    pub(crate) fn last_went(&self) -> Instant {
        self.began + Duration::from_millis(self.went_ms.load(Ordering::Relaxed))
    }

    /// A part that a side stream had taken was sent.
    pub(crate) fn sent(&self) {
        let mut state = self.state();
        state.under_way -= 1;
        if state.has_drained() {
            self.bell.ring();
        }
    }

    /// Whether all outgoing data was sent.
    pub(crate) fn has_drained(&self) -> bool {
        self.state().has_drained()
    }

    // Incoming data.

    /// The other end has begun a load, whose parts belong there.
    ///
    /// # Errors
    /// `Protocol` when too many have begun.
    pub(crate) fn announce(&self, parts: Vec<IncomingTarget>, length: u32) -> Result<()> {
        let mut state = self.state();
        if state.coming.len() >= LOADS_MAX {
            let cause = format!("{LOADS_MAX} loads have begun before one was whole");
            return Err(Error::new(Code::Protocol, "record of a link", cause));
        }
        let number = state.announced;
        state.announced += 1;
        state.coming.push_back(IncomingLoad {
            number,
            length,
            left: parts.len(),
            parts: parts.into_iter().map(Some).collect(),
        });
        for bell in &state.porters {
            bell.ring();
        }
        Ok(())
    }

    /// Returns the destination of an incoming part. `None`: it was not announced yet.
    ///
    /// # Errors
    /// `Protocol` when it is impossible, or has arrived already.
    pub(crate) fn begin(&self, number: u64, part: u32, bytes: u32) -> Result<Option<IncomingTarget>> {
        let refuse = |cause: &str| {
            let subject = format!("part {part} of load {number}");
            Error::new(Code::Protocol, subject, cause)
        };
        let mut state = self.state();
        if let Some(ahead) = number.checked_sub(state.announced) {
            return if ahead < LEAD_MAX {
                Ok(None)
            } else {
                Err(refuse("it arrived long before its announcement"))
            };
        }
        let coming = state.coming.iter_mut().find(|coming| coming.number == number);
        let coming = coming.ok_or_else(|| refuse("the load is complete already"))?;
        let part_bytes = u64::from(self.part_bytes);
        let rest = u64::from(coming.length).saturating_sub(u64::from(part) * part_bytes);
        if u64::from(bytes) != rest.min(part_bytes) {
            return Err(refuse("it has another length"));
        }
        let sink = coming.parts.get_mut(part as usize).and_then(Option::take);
        sink.map(Some).ok_or_else(|| refuse("it has arrived already"))
    }

    /// Records that a part has arrived, and its [`IncomingTarget`] was dropped. Returns whether no load is left.
    pub(crate) fn landed(&self, number: u64) -> bool {
        let mut state = self.state();
        if let Some(place) = state.coming.iter().position(|coming| coming.number == number) {
            state.coming[place].left -= 1;
            if state.coming[place].left == 0 {
                state.coming.remove(place);
            }
        }
        state.coming.is_empty()
    }

    /// Whether all loads so far are there.
    pub(crate) fn is_whole(&self) -> bool {
        self.state().coming.is_empty()
    }

    // State.

    pub(crate) fn stage(&self) -> LinkStage {
        self.state().stage
    }

    /// Everything was sent.
    pub(crate) fn close(&self) {
        self.enter(LinkStage::Closing);
    }

    /// Ends the link in any state: nothing more is sent or received.
    pub(crate) fn stop(&self) {
        self.enter(LinkStage::Stopped);
    }

    fn enter(&self, stage: LinkStage) {
        let mut all = self.state();
        all.stage = stage;
        if stage == LinkStage::Stopped {
            all.going.clear();
            all.coming.clear();
        }
        for bell in &all.porters {
            bell.ring();
        }
    }

    /// Reports an error of a side stream to the relay.
    pub(crate) fn fail(&self, number: u8, error: &Error) {
        let mut state = self.state();
        if state.stage == LinkStage::Running && state.failure.is_none() {
            let cause = format!("stream {number} of the link: {}", error.cause());
            state.failure = Some(Error::new(error.code(), error.subject(), cause));
            self.bell.ring();
        }
    }

    /// Returns the error, if any.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state().failure.clone()
    }
}

impl StreamsState {
    fn has_drained(&self) -> bool {
        self.going.is_empty() && self.under_way == 0
    }
}

/// A relay's hold on the streams beside its own: dropped, they stop, unless they are closing.
#[derive(Debug)]
pub(crate) struct StreamsGuard(pub(crate) Arc<SideStreams>);

impl std::ops::Deref for StreamsGuard {
    type Target = SideStreams;

    fn deref(&self) -> &SideStreams {
        &self.0
    }
}

impl Drop for StreamsGuard {
    fn drop(&mut self) {
        if self.0.stage() == LinkStage::Running {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const PART: u64 = PART_BYTES as u64;

    fn source(length: u64) -> OutgoingSource {
        let file = Arc::new(File::from(
            rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap(),
        ));
        OutgoingSource::File { file, at: 100, length }
    }

    fn placed((record, source): (LinkRecord, OutgoingSource)) -> (LinkRecord, u64) {
        let OutgoingSource::File { at, length, .. } = source else {
            panic!("it lies in a file")
        };
        assert_eq!(u64::from(record.body_bytes()), length);
        (record, at)
    }

    #[test]
    fn each_part_is_taken_once_by_whoever_comes() {
        let sides = SideStreams::new().unwrap();
        assert!(!sides.divides(u64::MAX), "there is nobody to divide with");
        sides.attach().unwrap();
        assert!(!sides.divides(2 * PART - 1));
        assert!(sides.divides(2 * PART));
        let first = sides.load(source(2 * PART + 5));
        let second = sides.load(source(2 * PART));
        assert_eq!((first, second, sides.untaken()), (0, 1, 4 * PART + 5));
        assert_eq!(placed(sides.take().unwrap()), (LinkRecord::Part(0, 0, PART_BYTES), 100));
        assert!(sides.take_of(1).is_none(), "the first stream takes them in their order");
        assert_eq!(
            placed(sides.take_of(0).unwrap()),
            (LinkRecord::Part(0, 1, PART_BYTES), 100 + PART)
        );
        assert_eq!(
            placed(sides.take().unwrap()),
            (LinkRecord::Part(0, 2, 5), 100 + 2 * PART)
        );
        assert!(sides.take_of(0).is_none());
        assert_eq!(placed(sides.take().unwrap()).0, LinkRecord::Part(1, 0, PART_BYTES));
        assert_eq!(placed(sides.take_of(1).unwrap()).0, LinkRecord::Part(1, 1, PART_BYTES));
        assert!(sides.take().is_none());
        assert_eq!(sides.untaken(), 0);
        for _ in 0..3 {
            assert!(!sides.has_drained());
            sides.sent();
        }
        assert!(sides.has_drained());
    }

    #[test]
    fn a_part_comes_when_it_was_announced_and_once() {
        let sides = SideStreams::new().unwrap();
        let refused = |number, part, bytes| sides.begin(number, part, bytes).unwrap_err().code();
        assert!(sides.is_whole());
        assert!(sides.begin(0, 0, PART_BYTES).unwrap().is_none(), "not yet");
        assert!(sides.begin(LEAD_MAX - 1, 0, PART_BYTES).unwrap().is_none());
        assert_eq!(refused(LEAD_MAX, 0, PART_BYTES), Code::Protocol);
        assert_eq!(refused(u64::MAX, 0, PART_BYTES), Code::Protocol);
        sides
            .announce(IncomingTarget::nowhere(PART + 7, PART_BYTES), PART_BYTES + 7)
            .unwrap();
        assert!(!sides.is_whole());
        for (part, bytes) in [
            (0, 7),
            (0, 0),
            (1, 6),
            (1, PART_BYTES),
            (2, 0),
            (u32::MAX, 0),
            (u32::MAX, 7),
        ] {
            assert_eq!(refused(0, part, bytes), Code::Protocol, "part {part}, {bytes} bytes");
        }
        assert!(sides.begin(0, 1, 7).unwrap().is_some());
        assert_eq!(refused(0, 1, 7), Code::Protocol, "twice");
        assert!(!sides.landed(0));
        assert!(sides.begin(0, 0, PART_BYTES).unwrap().is_some());
        assert!(!sides.is_whole(), "it has begun, and is not there");
        assert!(sides.landed(0));
        assert_eq!(refused(0, 0, PART_BYTES), Code::Protocol, "after all have come");
        assert!(sides.begin(1, 0, PART_BYTES).unwrap().is_none());
    }

    #[test]
    fn loads_that_never_come_are_counted() {
        let sides = SideStreams::new().unwrap();
        for _ in 0..LOADS_MAX {
            sides.announce(IncomingTarget::nowhere(1, PART_BYTES), 1).unwrap();
        }
        assert_eq!(
            sides
                .announce(IncomingTarget::nowhere(1, PART_BYTES), 1)
                .unwrap_err()
                .code(),
            Code::Protocol
        );
    }

    #[test]
    fn the_first_failure_is_told_while_the_link_lasts() {
        let sides = SideStreams::new().unwrap();
        let lead = StreamsGuard(Arc::clone(&sides));
        assert_eq!(sides.failure(), None);
        let error = |cause: &str| Error::new(Code::Disconnected, "", cause);
        sides.fail(3, &error("first"));
        sides.fail(2, &error("second"));
        let told = sides.failure().unwrap();
        assert!(told.cause().contains("stream 3 of the link: first"), "{told}");
        drop(lead);
        assert_eq!(sides.stage(), LinkStage::Stopped);

        let sides = SideStreams::new().unwrap();
        let lead = StreamsGuard(Arc::clone(&sides));
        lead.close();
        sides.fail(2, &error("late"));
        assert_eq!(sides.failure(), None);
        drop(lead);
        assert_eq!(sides.stage(), LinkStage::Closing, "who closes says everything");
    }
}
