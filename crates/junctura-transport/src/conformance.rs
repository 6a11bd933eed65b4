//! The requirements on every carrier, as checks that its tests call.
//!
//! Each check takes the two ends of a fresh connection: `near` is the client's, `far` the server's, which provides
//! segments. [`conformance_tests!`](crate::conformance_tests) makes a test of each check, for three kinds of carriers:
//!
//! - *direct* ones, with nothing between their ends: what one end has sent is available to the other at once, to the byte;
//! - *driven* ones, which a relay forwards frame by frame when the test moves the relay: what was sent is available at
//!   once, too;
//! - those that are relayed *in time*, by threads: a check waits for data, as their owners do. There is no time limit, so
//!   data that does not arrive, or does not wake a waiting end, shows as a test that does not end.
//!
//! # Panics
//! A check panics where the carrier does not do what it must.

#![allow(clippy::missing_panics_doc, reason = "stated once, above")]

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use junctura_model::{Code, Result};
use junctura_wire::fixed::SegmentHead;
use junctura_wire::frame::BODY_BYTES_MAX;
use junctura_wire::{FrameKind, Reply, Request, WireFrame};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, SealFlags};

use crate::{Carrier, ConnectionWatch, Inbox, Outbox, ReceiveResult, SendResult};

/// Two ends of one connection.
pub struct ConnectionEnds {
    near: Box<dyn Carrier>,
    far: Box<dyn Carrier>,
    kind: ConnectionKind,
}

/// The part between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// Nothing.
    Nothing,
    /// A relay of whole frames, which runs when the ends are used.
    Driven,
    /// Other threads, which relay whole frames in their own time.
    Others,
}

impl ConnectionEnds {
    /// The client's end and the server's, and what is between them.
    #[must_use]
    pub fn new(near: impl Carrier + 'static, far: impl Carrier + 'static, kind: ConnectionKind) -> Self {
        Self {
            near: Box::new(near),
            far: Box::new(far),
            kind,
        }
    }
}

/// Makes one test for each check: `conformance_tests!(open)`, where `open` is an expression that makes two connected ends,
/// for a direct carrier; for one whose bytes and descriptors arrive in one stream, and whose sender detects that the peer
/// has closed: `conformance_tests!(open, in one stream)`; for one that is relayed: `conformance_tests!(open, driven)` or
/// `conformance_tests!(open, in time)`.
#[macro_export]
macro_rules! conformance_tests {
    ($open:expr, in one stream) => {
        $crate::conformance_tests!($open);
        $crate::conformance_tests!(@ $open; Nothing; descriptors_out_of_step_are_refused who_sends_learns_of_the_end);
    };
    ($open:expr) => {
        $crate::conformance_tests!(@@ $open; Nothing);
        $crate::conformance_tests!(@ $open; Nothing; who_waits_is_woken who_waits_for_room_is_woken);
    };
    ($open:expr, driven) => {
        $crate::conformance_tests!(@@ $open; Driven);
    };
    ($open:expr, in time) => {
        $crate::conformance_tests!(@@ $open; Others);
        $crate::conformance_tests!(@ $open; Others; who_waits_is_woken who_waits_for_room_is_woken);
    };
    (@@ $open:expr; $between:ident) => {
        $crate::conformance_tests!(@ $open; $between; order_both_ways torn_at_every_byte frames_of_every_size
            many_frames_in_one_read back_pressure_both_ways a_slow_reader_loses_nothing end_of_stream
            kinds_of_later_versions_pass an_end_while_the_other_speaks an_end_within_a_frame garbage_is_refused too_large_is_refused who_is_there
            descriptors_keep_to_their_frames descriptors_through_back_pressure a_missing_descriptor_is_refused
            a_descriptor_says_when_something_has_come);
    };
    (@ $open:expr; $between:ident; $($check:ident)*) => {
        $(#[test]
        fn $check() {
            let (near, far) = $open;
            let between = $crate::conformance::ConnectionKind::$between;
            $crate::conformance::$check($crate::conformance::ConnectionEnds::new(near, far, between));
        })*
    };
}

/// One end with its buffers.
struct BufferedEnd {
    carrier: Box<dyn Carrier>,
    inbox: Inbox,
    outbox: Outbox,
    between: ConnectionKind,
}

impl BufferedEnd {
    fn both(ends: ConnectionEnds) -> (Self, Self) {
        let end = |carrier| Self {
            carrier,
            inbox: Inbox::new(),
            outbox: Outbox::new(),
            between: ends.kind,
        };
        (end(ends.near), end(ends.far))
    }

    /// Whether sent data is available at once.
    fn is_prompt(&self) -> bool {
        self.between != ConnectionKind::Others
    }

    fn is_direct(&self) -> bool {
        self.between == ConnectionKind::Nothing
    }

    fn send(&mut self) -> SendResult {
        self.carrier.send(&mut self.outbox).expect("the peer is there")
    }

    fn send_all(&mut self) {
        while self.send() == SendResult::Blocked {
            self.wait();
        }
    }

    fn receive(&mut self) -> ReceiveResult {
        self.carrier.receive(&mut self.inbox).expect("the stream is in step")
    }

    /// The other end is another thread's.
    fn waiting(mut self) -> Self {
        self.between = ConnectionKind::Others;
        self
    }

    /// Waits until something has arrived, or blocked data can be sent.
    fn wait(&mut self) {
        wait_for(&mut [self]);
    }

    /// Nothing has arrived, and more is due.
    fn wait_for_more(&mut self) {
        assert!(!self.is_prompt(), "nothing comes");
        self.wait();
    }

    /// Receives all that is there, handing every frame on.
    fn drain(&mut self, mut each: impl FnMut(WireFrame<'_>, Option<OwnedFd>)) -> ReceiveResult {
        loop {
            let received = self.receive();
            while let Some((frame, descriptor)) = self.inbox.next_frame().expect("the stream is in step") {
                each(frame, descriptor);
            }
            if matches!(received, ReceiveResult::Nothing | ReceiveResult::End) {
                return received;
            }
        }
    }

    /// Receives until so many frames have arrived.
    fn hear(&mut self, count: usize, mut each: impl FnMut(WireFrame<'_>, Option<OwnedFd>)) {
        let mut heard = 0;
        loop {
            let received = self.drain(|frame, descriptor| {
                heard += 1;
                each(frame, descriptor);
            });
            if heard >= count {
                assert_eq!(heard, count, "more frames arrived than announced");
                return;
            }
            assert_ne!(received, ReceiveResult::End, "{heard} of {count} frames arrived");
            self.wait_for_more();
        }
    }

    /// Receives until the end, handing every frame on.
    fn hear_the_end(&mut self, mut each: impl FnMut(WireFrame<'_>)) {
        while self.drain(|frame, _| each(frame)) != ReceiveResult::End {
            self.wait_for_more();
        }
    }

    /// The last data, after `before` frames, was refused: as out of step; or, by a relay, with the end.
    fn refuses(&mut self, before: usize) {
        let is_direct = self.is_direct();
        // A relay may report why it ends.
        let is_remark =
            |frame: &WireFrame<'_>| !is_direct && frame.kind == FrameKind::Failed as u8 && frame.request == 0;
        let mut heard = 0;
        loop {
            let received = self.carrier.receive(&mut self.inbox);
            let refused = loop {
                match self.inbox.next_frame() {
                    Ok(Some((frame, _))) => heard += usize::from(!is_remark(&frame)),
                    Ok(None) => break code(received.clone()),
                    Err(error) => break Some(error.code()),
                }
            };
            assert!(heard <= before, "a frame that must be refused was delivered");
            match (refused, received) {
                (Some(refused), _) => {
                    assert_eq!((refused, heard), (Code::Protocol, before));
                    return;
                }
                (None, Ok(ReceiveResult::End)) => {
                    assert!(!self.is_direct(), "it was not refused");
                    return;
                }
                (None, Ok(ReceiveResult::Nothing)) => self.wait_for_more(),
                (None, _) => {}
            }
        }
    }

    fn say(&mut self, request: u64, length: usize) {
        let text = text(length);
        self.outbox
            .push(|out| Reply::Stats(&text).encode(request, out))
            .expect("a frame within the limits");
    }

    fn say_segment(&mut self, number: u32) {
        let bytes = segment(number);
        self.outbox
            .push_with_descriptor(descriptor(number), |out| out.extend_from_slice(&bytes))
            .expect("a frame");
    }

    fn raw(&mut self, bytes: &[u8], descriptor: Option<OwnedFd>) {
        self.outbox.push_unchecked(bytes, descriptor);
        assert_eq!(self.send(), SendResult::All);
    }
}

/// Waits until something has arrived at one of these ends, or blocked data can be sent there.
fn wait_for(ends: &mut [&mut BufferedEnd]) {
    for end in &mut *ends {
        if end.inbox.wants_descriptor() || !end.carrier.may_sleep() {
            return;
        }
    }
    let mut all = Vec::new();
    for end in &mut *ends {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, !end.outbox.is_empty() && end.carrier.waits_for_socket());
        all.push(PollFd::from_borrowed_fd(end.carrier.as_fd(), flags));
        all.extend(
            end.carrier
                .bell()
                .map(|bell| PollFd::from_borrowed_fd(bell, PollFlags::IN)),
        );
    }
    poll(&mut all, None).expect("a wait");
    drop(all);
    for end in ends {
        end.carrier.woke();
    }
}

/// Nothing has moved between two ends, and more is due.
fn wait_for_more(near: &mut BufferedEnd, far: &mut BufferedEnd) {
    assert!(!near.is_prompt(), "nothing moves");
    wait_for(&mut [near, far]);
}

fn text(length: usize) -> String {
    (0..length).map(|at| char::from(b'a' + (at % 23) as u8)).collect()
}

fn is_text(frame: WireFrame<'_>) -> bool {
    frame
        .body
        .iter()
        .enumerate()
        .all(|(at, &byte)| byte == b'a' + (at % 23) as u8)
}

fn frame(request: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    Reply::Stats(&text(length)).encode(request, &mut bytes);
    bytes
}

fn segment(number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    Reply::Segment(SegmentHead {
        segment: number.into(),
        bytes: bytes_of(number).into(),
        slot_bytes: bytes_of(number).into(),
        ..SegmentHead::default()
    })
    .encode(0, &mut bytes);
    bytes
}

/// Each segment has a size of its own: a relay may pass on another segment of the same size.
fn bytes_of(number: u32) -> u64 {
    4096 * u64::from(number)
}

/// A descriptor of a segment.
fn descriptor(number: u32) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("conformance", flags).expect("a memory file");
    rustix::fs::ftruncate(&file, bytes_of(number)).expect("a size");
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals).expect("seals");
    file
}

fn is_descriptor_of(number: u32, descriptor: impl AsFd) -> bool {
    let flags = rustix::io::fcntl_getfd(&descriptor).expect("a descriptor");
    assert!(
        flags.contains(rustix::io::FdFlags::CLOEXEC),
        "descriptors must not leak into programs that are started"
    );
    rustix::fs::fstat(&descriptor).expect("a file").st_size as u64 == bytes_of(number)
}

fn code<T>(result: Result<T>) -> Option<Code> {
    result.err().map(|error| error.code())
}

/// Frames of both directions arrive as they were sent, and in that order.
pub fn order_both_ways(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    assert_eq!(near.receive(), ReceiveResult::Nothing);
    assert_eq!(near.send(), SendResult::All);
    for round in 0..50_u64 {
        for number in 0..7 {
            near.outbox
                .push(|out| Request::Cancel(number).encode(round * 7 + number, out))
                .expect("a frame");
            far.say(round * 7 + number, number as usize * 11);
        }
        assert_eq!((near.send(), far.send()), (SendResult::All, SendResult::All));
        let mut asked = round * 7;
        far.hear(7, |frame, none| {
            assert!(none.is_none());
            assert_eq!(frame.request, asked);
            assert_eq!(Request::decode(&frame), Ok(Request::Cancel(asked % 7)));
            asked += 1;
        });
        let mut answered = round * 7;
        near.hear(7, |frame, _| {
            assert_eq!((frame.request, frame.kind), (answered, FrameKind::Stats as u8));
            assert!(frame.body.len() == (answered % 7) as usize * 11 && is_text(frame));
            answered += 1;
        });
    }
}

/// A frame whose parts arrive separately is given out once, when it is whole, wherever it was torn.
pub fn torn_at_every_byte(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    let bytes = [frame(1, 30), frame(2, 0)].concat();
    let first = frame(1, 30).len();
    for cut in 1..bytes.len() {
        let mut seen = Vec::new();
        near.raw(&bytes[..cut], None);
        if far.is_prompt() {
            far.drain(|frame, _| seen.push((frame.request, frame.body.len())));
            assert_eq!(seen.len(), usize::from(cut >= first), "cut at {cut}");
        }
        near.raw(&bytes[cut..], None);
        far.hear(2 - seen.len(), |frame, _| seen.push((frame.request, frame.body.len())));
        assert_eq!(seen, [(1, 30), (2, 0)], "cut at {cut}");
    }
}

/// Frames of every size, up to the largest, arrive unchanged.
pub fn frames_of_every_size(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    let sizes = [
        0,
        1,
        4_095,
        65_519,
        65_520,
        65_521,
        131_072,
        700_001,
        BODY_BYTES_MAX,
        3,
        BODY_BYTES_MAX,
    ];
    let mut due: VecDeque<usize> = sizes.into();
    for (number, size) in sizes.into_iter().enumerate() {
        near.say(number as u64, size);
    }
    while !due.is_empty() {
        let before = (due.len(), near.outbox.len(), far.inbox.len());
        near.send();
        far.drain(|frame, _| {
            assert_eq!(Some(frame.body.len()), due.pop_front());
            assert!(is_text(frame));
        });
        if before == (due.len(), near.outbox.len(), far.inbox.len()) {
            wait_for_more(&mut near, &mut far);
        }
    }
    assert_eq!((near.outbox.len(), far.inbox.len()), (0, 0));
}

/// Frames that were sent together arrive together: a reader that takes one frame and then waits would wait for ever.
pub fn many_frames_in_one_read(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    for number in 0..500 {
        near.say(number, 8);
    }
    assert_eq!(near.send(), SendResult::All);
    let (mut reads, mut seen) = (0, 0);
    while seen < 500 {
        match far.receive() {
            ReceiveResult::Bytes(1..) => reads += 1,
            _ => far.wait_for_more(),
        }
        while let Some((frame, _)) = far.inbox.next_frame().expect("in step") {
            assert_eq!(frame.request, seen);
            seen += 1;
        }
    }
    assert!(reads < 10 || !far.is_prompt(), "{reads} reads for 500 frames");
    assert_eq!(far.receive(), ReceiveResult::Nothing);
}

/// Both ends send until they are blocked; then both read and everything arrives.
pub fn back_pressure_both_ways(ends: ConnectionEnds) {
    // More than there is room for on any way.
    const FRAMES_IN_TIME: u64 = 20_000;
    let (mut near, mut far) = BufferedEnd::both(ends);
    let (mut said, mut heard) = ([0_u64; 2], [0_u64; 2]);
    for (end, said) in [&mut near, &mut far].into_iter().zip(&mut said) {
        loop {
            end.say(*said, 1_000);
            *said += 1;
            let sent = end.send();
            if sent == SendResult::Blocked && end.is_prompt() || *said == FRAMES_IN_TIME && !end.is_prompt() {
                break;
            }
            assert!(*said < 1_000_000, "nothing ever blocks");
        }
        if end.is_prompt() {
            assert!(!end.outbox.is_empty());
            // Still blocked: asking again changes nothing.
            assert_eq!(end.send(), SendResult::Blocked);
        }
        for _ in 0..100 {
            end.say(*said, 1_000);
            *said += 1;
        }
    }
    // One end receives the other end's frames.
    let due = [said[1], said[0]];
    while heard != due {
        let before = heard;
        for ((end, heard), due) in [&mut near, &mut far].into_iter().zip(&mut heard).zip(due) {
            end.send();
            end.drain(|frame, _| {
                assert_eq!(frame.request, *heard);
                assert!(frame.body.len() == 1_000 && is_text(frame));
                *heard += 1;
            });
            assert!(*heard <= due);
        }
        if before == heard {
            wait_for_more(&mut near, &mut far);
        }
    }
}

/// A reader that takes frames rarely gets all; its inbox does not grow beyond the largest frame.
pub fn a_slow_reader_loses_nothing(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    for number in 0..6_000 {
        near.say(number, 700);
    }
    let (mut heard, mut is_full) = (0, false);
    while heard < 6_000 {
        near.send();
        // Takes the available bytes, without reading a frame, until the inbox reports that it is full.
        let received = far.receive();
        is_full |= received == ReceiveResult::Full;
        assert!(far.inbox.capacity() <= BODY_BYTES_MAX + 16);
        let before = heard;
        while is_full && heard < before + 100 {
            let Some((frame, _)) = far.inbox.next_frame().expect("in step") else {
                break;
            };
            assert_eq!(frame.request, heard);
            heard += 1;
        }
        if received == ReceiveResult::Nothing && heard == before {
            wait_for_more(&mut near, &mut far);
        }
    }
}

/// The reader of a frame judges it: kinds of a later version pass like all others.
pub fn kinds_of_later_versions_pass(ends: ConnectionEnds) {
    const LATER: u8 = 63;
    let (mut near, mut far) = BufferedEnd::both(ends);
    assert_eq!(FrameKind::from_number(LATER), None);
    let mut bytes = frame(7, 30);
    bytes[4] = LATER;
    for end in [&mut near, &mut far] {
        end.raw(&bytes, None);
        end.say(8, 1);
        end.send_all();
    }
    for end in &mut [near, far] {
        let mut seen = Vec::new();
        end.hear(2, |frame, _| seen.push((frame.kind, frame.request, frame.body.len())));
        assert_eq!(seen, [(LATER, 7, 30), (FrameKind::Stats as u8, 8, 1)]);
    }
}

/// Everything that was sent before the end arrives, then the end.
pub fn end_of_stream(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    // Data that the end leaves unread must not remove the frames that it sent.
    far.say(1, 10);
    assert_eq!(far.send(), SendResult::All);
    for number in 0..20 {
        near.say(number, 100);
    }
    assert_eq!(near.send(), SendResult::All);
    drop(near);
    let mut seen = 0;
    far.hear_the_end(|_| seen += 1);
    assert_eq!(seen, 20);
    assert_eq!(far.receive(), ReceiveResult::End);
    assert_eq!(far.inbox.finish(), Ok(()));
}

/// Frames sent before the end arrive, even where the other end continues to send, which is never read.
pub fn an_end_while_the_other_speaks(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    for number in 0..20 {
        far.say(number, 50_000);
    }
    let mut seen = 0;
    while far.send() == SendResult::Blocked {
        if far.is_prompt() {
            near.drain(|_, _| seen += 1);
        } else {
            far.wait();
        }
    }
    drop(far);
    for number in 0..100 {
        near.say(number, 1_000);
        match near.carrier.send(&mut near.outbox) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.code(), Code::Disconnected),
        }
    }
    near.hear_the_end(|frame| {
        assert_eq!((frame.request, frame.body.len()), (seen, 50_000));
        seen += 1;
    });
    assert_eq!(seen, 20);
}

/// Sending to a closed peer is reported.
pub fn who_sends_learns_of_the_end(ends: ConnectionEnds) {
    let (near, mut far) = BufferedEnd::both(ends);
    drop(near);
    far.say(2, 10);
    assert_eq!(code(far.carrier.send(&mut far.outbox)), Some(Code::Disconnected));
    assert_eq!(code(far.carrier.send(&mut far.outbox)), Some(Code::Disconnected));
}

/// An end within a frame is distinguished from one between frames; where whole frames are relayed, no part of the frame
/// arrives.
pub fn an_end_within_a_frame(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    near.raw(&frame(1, 30)[..20], None);
    drop(near);
    far.hear_the_end(|_| panic!("a torn frame"));
    let finished = code(far.inbox.finish());
    assert_eq!(finished, far.is_direct().then_some(Code::Disconnected));
}

/// A header that is none of ours ends the stream for good, after the frames before it.
pub fn garbage_is_refused(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    near.raw(&frame(1, 3), None);
    far.hear(1, |_, _| {});
    near.raw(b"GET / HTTP/1.1\r\nHost: junctura\r\n", None);
    far.refuses(0);
    if far.is_direct() {
        far.refuses(0);
    }
}

/// A frame over the limit is refused where it is made, and where it arrives: by its header, before its body.
pub fn too_large_is_refused(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    let large = text(BODY_BYTES_MAX + 1);
    let refused = near.outbox.push(|out| Reply::Stats(&large).encode(1, out));
    assert_eq!(code(refused), Some(Code::TooLarge));
    assert!(near.outbox.is_empty());
    near.raw(&frame(1, BODY_BYTES_MAX + 1)[..16], None);
    far.refuses(0);
    assert!(far.inbox.capacity() <= 64 << 10);
}

/// Both ends of a connection within one process see this process.
pub fn who_is_there(ends: ConnectionEnds) {
    let uid = rustix::process::geteuid().as_raw();
    for carrier in [ends.near, ends.far] {
        assert_eq!(
            (carrier.peer().uid, carrier.peer().pid),
            (uid, Some(std::process::id()))
        );
    }
}

/// Each descriptor arrives with its frame, however frames with and without are mixed and torn.
pub fn descriptors_keep_to_their_frames(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    let check = |frame: WireFrame<'_>, given: Option<OwnedFd>, seen: &mut Vec<u32>| match Reply::decode(&frame) {
        Ok(Reply::Segment(head)) => {
            assert!(is_descriptor_of(head.segment.get(), given.expect("its descriptor")));
            seen.push(head.segment.get());
        }
        _ => assert!(given.is_none()),
    };
    let mut said = 0;
    for number in 1..=40 {
        for _ in 0..number % 3 {
            far.say(7, 5);
            said += 1;
        }
        far.say_segment(number);
        said += 1;
    }
    far.say(7, 5);
    assert_eq!(far.send(), SendResult::All);
    let mut seen = Vec::new();
    near.hear(said + 1, |frame, given| check(frame, given, &mut seen));
    assert_eq!(seen, (1..=40).collect::<Vec<_>>());

    let bytes = [frame(7, 5), segment(9)].concat();
    for cut in 1..bytes.len() - frame(7, 5).len() {
        seen.clear();
        far.raw(&frame(7, 5), None);
        far.raw(&segment(9)[..cut], Some(descriptor(9)));
        near.hear(1, |frame, given| check(frame, given, &mut seen));
        assert_eq!(seen, []);
        far.raw(&[&segment(9)[cut..], &frame(7, 5)[..]].concat(), None);
        near.hear(2, |frame, given| check(frame, given, &mut seen));
        assert_eq!(seen, [9], "cut at {cut}");
    }
}

/// Descriptors stay with their frames when the sender is blocked between and within frames.
pub fn descriptors_through_back_pressure(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    let bulk = frame(7, 60_000);
    let mut due = VecDeque::new();
    for number in 0..300 {
        let number = number % 40 + 1;
        far.outbox.push(|out| out.extend_from_slice(&bulk)).expect("a frame");
        far.say_segment(number);
        due.push_back(number);
    }
    let mut blocked = false;
    while !due.is_empty() {
        blocked |= far.send() == SendResult::Blocked;
        let before = due.len();
        near.drain(|frame, given| {
            if let Some(given) = given {
                assert_eq!(frame.kind, FrameKind::Segment as u8);
                let number = due.pop_front().expect("one that is due");
                assert!(is_descriptor_of(number, given));
            }
        });
        if before == due.len() {
            wait_for_more(&mut near, &mut far);
        }
    }
    assert!(blocked || !near.is_prompt(), "nothing ever blocked");
}

/// A frame without its descriptor ends the connection.
pub fn a_missing_descriptor_is_refused(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    far.raw(&segment(1), None);
    near.refuses(0);
}

/// In one stream, a frame without its descriptor, and a descriptor without its frame, end the stream.
pub fn descriptors_out_of_step_are_refused(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    near.raw(&segment(1), None);
    far.raw(&frame(1, 3), Some(descriptor(1)));
    for mut end in [near, far] {
        assert!(matches!(end.receive(), ReceiveResult::Bytes(_)));
        let mut refused = None;
        for _ in 0..2 {
            refused = refused.or(code(end.inbox.next_frame()));
        }
        assert_eq!(refused, Some(Code::Protocol));
    }
}

/// One descriptor notifies a foreign loop that something has arrived; not before, and not after it was taken.
pub fn a_descriptor_says_when_something_has_come(ends: ConnectionEnds) {
    let (mut near, mut far) = BufferedEnd::both(ends);
    let watch = ConnectionWatch::new(far.carrier.as_fd(), far.carrier.bell()).expect("a descriptor");
    let is_readable = |wait: bool| {
        let mut one = [PollFd::new(&watch, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut one, (!wait).then_some(&now)).expect("a wait") > 0
    };
    for number in 0..100 {
        assert!(far.carrier.may_sleep(), "no wake-up was requested");
        assert!(!is_readable(false), "no wake-up was requested, {number}");
        near.say(number, 10);
        near.send_all();
        let mut heard = 0;
        while heard == 0 {
            // A driven relay moves when it is used.
            if far.between != ConnectionKind::Driven {
                assert!(far.inbox.wants_descriptor() || !far.carrier.may_sleep() || is_readable(true));
                far.carrier.woke();
            }
            far.drain(|frame, _| {
                assert_eq!(frame.request, number);
                heard += 1;
            });
        }
    }
    drop(near);
    if far.between != ConnectionKind::Driven {
        assert!(is_readable(true), "the end is reported");
    }
    far.hear_the_end(|_| {});
}

/// Each arrival wakes a waiting end: two ends that each wait for the other's frame both end.
pub fn who_waits_is_woken(ends: ConnectionEnds) {
    const ROUNDS: u64 = 3_000;
    let (mut near, far) = BufferedEnd::both(ends);
    let answering = std::thread::spawn(move || {
        let mut far = far.waiting();
        for round in 0..ROUNDS {
            far.hear(1, |frame, _| assert_eq!(frame.request, round));
            far.say(round, (round % 50) as usize);
            far.send_all();
        }
        far.hear_the_end(|_| {});
    });
    near = near.waiting();
    for round in 0..ROUNDS {
        near.say(round, (round % 70) as usize);
        near.send_all();
        near.hear(1, |frame, _| assert_eq!(frame.request, round));
    }
    drop(near);
    answering.join().expect("the other end");
}

/// Free room wakes an end that waits for room: a writer that is always ahead, and a reader that reads everything.
pub fn who_waits_for_room_is_woken(ends: ConnectionEnds) {
    const FRAMES: u64 = 3_000;
    let (near, far) = BufferedEnd::both(ends);
    let reading = std::thread::spawn(move || {
        let (mut far, mut next) = (far.waiting(), 0);
        far.hear_the_end(|frame| {
            assert_eq!((frame.request, frame.body.len()), (next, 10_000));
            next += 1;
        });
        assert_eq!(next, FRAMES);
    });
    let mut near = near.waiting();
    for number in 0..FRAMES {
        near.say(number, 10_000);
        near.send_all();
    }
    drop(near);
    reading.join().expect("the reader");
}
