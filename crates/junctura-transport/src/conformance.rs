//! What every carrier must do, as checks that its tests call.
//!
//! Each check takes the two ends of a fresh connection. Nothing waits: a carrier whose two ends are in one process must
//! deliver at once what it has accepted. [`conformance_tests!`](crate::conformance_tests) makes a test of each check.
//!
//! # Panics
//! A check panics where the carrier does not do what it must.

#![allow(clippy::missing_panics_doc, reason = "said once, above")]

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use junctura_model::{Code, Result};
use junctura_wire::fixed::SegmentHead;
use junctura_wire::frame::BODY_BYTES_MAX;
use junctura_wire::{Frame, Kind, Reply, Request};

use crate::{Carrier, Inbox, Outbox, Received, Sent};

/// Two ends of one connection.
pub type Ends = (Box<dyn Carrier>, Box<dyn Carrier>);

/// One test for each check: `conformance_tests!(open)`, where `open` is an expression that makes two connected ends. For a
/// carrier that passes descriptors: `conformance_tests!(open, with descriptors)`; for one that passes them in the stream of
/// bytes, and whose sender learns that the peer is gone: `conformance_tests!(open, with descriptors, in one stream)`.
#[macro_export]
macro_rules! conformance_tests {
    ($open:expr, with descriptors, in one stream) => {
        $crate::conformance_tests!($open, with descriptors);
        $crate::conformance_tests!(@ $open; descriptors_out_of_step_are_refused who_sends_learns_of_the_end);
    };
    ($open:expr, with descriptors) => {
        $crate::conformance_tests!($open);
        $crate::conformance_tests!(@ $open; descriptors_keep_to_their_frames descriptors_through_back_pressure
            a_missing_descriptor_is_refused);
    };
    ($open:expr) => {
        $crate::conformance_tests!(@ $open; order_both_ways torn_at_every_byte frames_of_every_size many_frames_in_one_read
            back_pressure_both_ways a_slow_reader_loses_nothing end_of_stream an_end_within_a_frame garbage_is_refused
            too_large_is_refused who_is_there);
    };
    (@ $open:expr; $($check:ident)*) => {
        $(#[test]
        fn $check() {
            let (near, far) = $open;
            $crate::conformance::$check((Box::new(near), Box::new(far)));
        })*
    };
}

/// One end with its buffers.
struct End {
    carrier: Box<dyn Carrier>,
    inbox: Inbox,
    outbox: Outbox,
}

impl End {
    fn both((near, far): Ends) -> (Self, Self) {
        let end = |carrier| Self {
            carrier,
            inbox: Inbox::new(),
            outbox: Outbox::new(),
        };
        (end(near), end(far))
    }

    fn send(&mut self) -> Sent {
        self.carrier.send(&mut self.outbox).expect("the peer is there")
    }

    fn receive(&mut self) -> Received {
        self.carrier.receive(&mut self.inbox).expect("the stream is in step")
    }

    /// Receives all that is there, handing every frame on.
    fn drain(&mut self, mut each: impl FnMut(Frame<'_>, Option<OwnedFd>)) -> Received {
        loop {
            let received = self.receive();
            while let Some((frame, descriptor)) = self.inbox.next_frame().expect("the stream is in step") {
                each(frame, descriptor);
            }
            if matches!(received, Received::Nothing | Received::End) {
                return received;
            }
        }
    }

    fn say(&mut self, request: u64, length: usize) {
        let text = text(length);
        self.outbox
            .push(|out| Reply::Stats(&text).encode(request, out))
            .expect("a frame within the limits");
    }

    fn raw(&mut self, bytes: &[u8], descriptor: Option<OwnedFd>) {
        self.outbox.push_unchecked(bytes, descriptor);
        assert_eq!(self.send(), Sent::All);
    }
}

fn text(length: usize) -> String {
    (0..length).map(|at| char::from(b'a' + (at % 23) as u8)).collect()
}

fn is_text(frame: Frame<'_>) -> bool {
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
        ..SegmentHead::default()
    })
    .encode(0, &mut bytes);
    bytes
}

/// A descriptor of a file that holds `number`.
fn descriptor(number: u32) -> OwnedFd {
    let file = rustix::fs::memfd_create("conformance", rustix::fs::MemfdFlags::CLOEXEC).expect("a memory file");
    rustix::io::pwrite(&file, &number.to_le_bytes(), 0).expect("a write");
    file
}

fn number_in(descriptor: impl AsFd) -> u32 {
    let flags = rustix::io::fcntl_getfd(&descriptor).expect("a descriptor");
    assert!(
        flags.contains(rustix::io::FdFlags::CLOEXEC),
        "descriptors must not leak into programs that are started"
    );
    let mut bytes = [0; 4];
    rustix::io::pread(&descriptor, &mut bytes, 0).expect("a read");
    u32::from_le_bytes(bytes)
}

fn code<T>(result: Result<T>) -> Option<Code> {
    result.err().map(|error| error.code())
}

/// Frames of both directions arrive as they were sent, and in that order.
pub fn order_both_ways(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    assert_eq!(near.receive(), Received::Nothing);
    assert_eq!(near.send(), Sent::All);
    for round in 0..50_u64 {
        for number in 0..7 {
            near.outbox
                .push(|out| Request::Cancel(number).encode(round * 7 + number, out))
                .expect("a frame");
            far.say(round * 7 + number, number as usize * 11);
        }
        assert_eq!((near.send(), far.send()), (Sent::All, Sent::All));
        let mut asked = round * 7;
        far.drain(|frame, none| {
            assert!(none.is_none());
            assert_eq!(frame.request, asked);
            assert_eq!(Request::decode(&frame), Ok(Request::Cancel(asked % 7)));
            asked += 1;
        });
        let mut answered = round * 7;
        near.drain(|frame, _| {
            assert_eq!((frame.request, frame.kind), (answered, Kind::Stats as u8));
            assert!(frame.body.len() == (answered % 7) as usize * 11 && is_text(frame));
            answered += 1;
        });
        assert_eq!((asked, answered), ((round + 1) * 7, (round + 1) * 7));
    }
}

/// A frame whose parts arrive separately is given out once, when it is whole, wherever it was torn.
pub fn torn_at_every_byte(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    let bytes = [frame(1, 30), frame(2, 0)].concat();
    let first = frame(1, 30).len();
    for cut in 1..bytes.len() {
        near.raw(&bytes[..cut], None);
        let mut seen = Vec::new();
        far.drain(|frame, _| seen.push((frame.request, frame.body.len())));
        assert_eq!(seen.len(), usize::from(cut >= first), "cut at {cut}");
        near.raw(&bytes[cut..], None);
        far.drain(|frame, _| seen.push((frame.request, frame.body.len())));
        assert_eq!(seen, [(1, 30), (2, 0)], "cut at {cut}");
    }
}

/// Frames of every size, up to the largest, arrive unchanged.
pub fn frames_of_every_size(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
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
        assert_ne!(before, (due.len(), near.outbox.len(), far.inbox.len()), "nothing moves");
    }
    assert_eq!((near.outbox.len(), far.inbox.len()), (0, 0));
}

/// What was sent together is there together: a reader that takes one frame and then waits would wait for ever.
pub fn many_frames_in_one_read(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    for number in 0..500 {
        near.say(number, 8);
    }
    assert_eq!(near.send(), Sent::All);
    let (mut reads, mut seen) = (0, 0);
    while seen < 500 {
        assert!(matches!(far.receive(), Received::Bytes(1..)));
        reads += 1;
        while let Some((frame, _)) = far.inbox.next_frame().expect("in step") {
            assert_eq!(frame.request, seen);
            seen += 1;
        }
    }
    assert!(reads < 10, "{reads} reads for 500 frames");
    assert_eq!(far.receive(), Received::Nothing);
}

/// Both ends send until they are blocked; then both read and everything arrives.
pub fn back_pressure_both_ways(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    let (mut said, mut heard) = ([0_u64; 2], [0_u64; 2]);
    for (end, said) in [&mut near, &mut far].into_iter().zip(&mut said) {
        loop {
            end.say(*said, 1_000);
            *said += 1;
            if end.send() == Sent::Blocked {
                break;
            }
            assert!(*said < 1_000_000, "nothing ever blocks");
        }
        assert!(!end.outbox.is_empty());
        // Still blocked: asking again changes nothing.
        assert_eq!(end.send(), Sent::Blocked);
        for _ in 0..100 {
            end.say(*said, 1_000);
            *said += 1;
        }
    }
    while heard != said {
        let before = heard;
        for (end, heard) in [&mut near, &mut far].into_iter().zip(&mut heard) {
            end.send();
            end.drain(|frame, _| {
                assert_eq!(frame.request, *heard);
                assert!(frame.body.len() == 1_000 && is_text(frame));
                *heard += 1;
            });
        }
        assert_ne!(before, heard, "both ends wait for each other");
    }
}

/// A reader that takes frames rarely gets all of them; its inbox does not grow beyond the largest frame.
pub fn a_slow_reader_loses_nothing(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    let (mut said, mut heard, mut full) = (0, 0, false);
    while heard < 6_000 {
        while said < 6_000 && near.outbox.len() < 1 << 20 {
            near.say(said, 700);
            said += 1;
        }
        near.send();
        // Takes what there is, without reading a frame, until the inbox says that it is full.
        full |= far.receive() == Received::Full;
        assert!(far.inbox.capacity() <= BODY_BYTES_MAX + 16);
        if full || near.outbox.is_empty() {
            for _ in 0..100 {
                let Some((frame, _)) = far.inbox.next_frame().expect("in step") else {
                    break;
                };
                assert_eq!(frame.request, heard);
                heard += 1;
            }
        }
    }
    assert!(full, "the inbox never said that it is full");
}

/// Everything that was sent before the end arrives, then the end.
pub fn end_of_stream(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    // What the end leaves unread must not take away what it said.
    far.say(1, 10);
    assert_eq!(far.send(), Sent::All);
    for number in 0..20 {
        near.say(number, 100);
    }
    assert_eq!(near.send(), Sent::All);
    drop(near);
    let mut seen = 0;
    assert_eq!(far.drain(|_, _| seen += 1), Received::End);
    assert_eq!(seen, 20);
    assert_eq!(far.receive(), Received::End);
    assert_eq!(far.inbox.finish(), Ok(()));
}

/// Sending to who is gone is told.
pub fn who_sends_learns_of_the_end(ends: Ends) {
    let (near, mut far) = End::both(ends);
    drop(near);
    far.say(2, 10);
    assert_eq!(code(far.carrier.send(&mut far.outbox)), Some(Code::Disconnected));
    assert_eq!(code(far.carrier.send(&mut far.outbox)), Some(Code::Disconnected));
}

/// An end within a frame is told apart from one between frames.
pub fn an_end_within_a_frame(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    near.raw(&frame(1, 30)[..20], None);
    drop(near);
    assert_eq!(far.drain(|_, _| panic!("a torn frame")), Received::End);
    assert_eq!(code(far.inbox.finish()), Some(Code::Disconnected));
}

/// A header that is none of ours ends the stream for good, after the frames before it.
pub fn garbage_is_refused(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    near.raw(&frame(1, 3), None);
    near.raw(b"GET / HTTP/1.1\r\nHost: junctura\r\n", None);
    assert!(matches!(far.receive(), Received::Bytes(_)));
    assert!(far.inbox.next_frame().expect("in step").is_some());
    while far.receive() != Received::Nothing {}
    assert_eq!(code(far.inbox.next_frame()), Some(Code::Protocol));
    assert_eq!(code(far.inbox.next_frame()), Some(Code::Protocol));
}

/// A frame over the limit is refused where it is made, and where it arrives: by its header, before its body.
pub fn too_large_is_refused(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    let large = text(BODY_BYTES_MAX + 1);
    let refused = near.outbox.push(|out| Reply::Stats(&large).encode(1, out));
    assert_eq!(code(refused), Some(Code::TooLarge));
    assert!(near.outbox.is_empty());
    near.raw(&frame(1, BODY_BYTES_MAX + 1)[..16], None);
    assert_eq!(far.receive(), Received::Bytes(16));
    assert_eq!(code(far.inbox.next_frame()), Some(Code::Protocol));
    assert!(far.inbox.capacity() <= 64 << 10);
}

/// Both ends of a connection within one process see this process.
pub fn who_is_there(ends: Ends) {
    let uid = rustix::process::geteuid().as_raw();
    for carrier in [ends.0, ends.1] {
        assert_eq!(
            (carrier.peer().uid, carrier.peer().pid),
            (uid, Some(std::process::id()))
        );
    }
}

/// Each descriptor comes with its frame, however frames with and without are mixed and torn.
pub fn descriptors_keep_to_their_frames(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    let check = |frame: Frame<'_>, given: Option<OwnedFd>, seen: &mut Vec<u32>| match Reply::decode(&frame) {
        Ok(Reply::Segment(head)) => {
            assert_eq!(number_in(given.expect("its descriptor")), head.segment.get());
            seen.push(head.segment.get());
        }
        _ => assert!(given.is_none()),
    };
    for number in 0..40 {
        for _ in 0..number % 3 {
            near.say(7, 5);
        }
        let bytes = segment(number);
        near.outbox
            .push_with_descriptor(descriptor(number), |out| out.extend_from_slice(&bytes))
            .expect("a frame");
    }
    near.say(7, 5);
    assert_eq!(near.send(), Sent::All);
    let mut seen = Vec::new();
    far.drain(|frame, given| check(frame, given, &mut seen));
    assert_eq!(seen, (0..40).collect::<Vec<_>>());

    let bytes = [frame(7, 5), segment(9)].concat();
    for cut in 1..bytes.len() - frame(7, 5).len() {
        seen.clear();
        near.raw(&frame(7, 5), None);
        near.raw(&segment(9)[..cut], Some(descriptor(9)));
        far.drain(|frame, given| check(frame, given, &mut seen));
        assert_eq!(seen, []);
        near.raw(&[&segment(9)[cut..], &frame(7, 5)[..]].concat(), None);
        far.drain(|frame, given| check(frame, given, &mut seen));
        assert_eq!(seen, [9], "cut at {cut}");
    }
}

/// Descriptors stay with their frames when the sender is blocked between and within frames.
pub fn descriptors_through_back_pressure(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    let bulk = frame(7, 60_000);
    for number in 0..100 {
        near.outbox.push(|out| out.extend_from_slice(&bulk)).expect("a frame");
        let bytes = segment(number);
        near.outbox
            .push_with_descriptor(descriptor(number), |out| out.extend_from_slice(&bytes))
            .expect("a frame");
    }
    let mut blocked = false;
    let mut due = 0..100;
    while !due.is_empty() {
        blocked |= near.send() == Sent::Blocked;
        far.drain(|frame, given| {
            if let Some(given) = given {
                assert_eq!(frame.kind, Kind::Segment as u8);
                assert_eq!(Some(number_in(given)), due.next());
            }
        });
    }
    assert!(blocked, "nothing ever blocked");
}

/// A frame without its descriptor ends the connection.
pub fn a_missing_descriptor_is_refused(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    near.raw(&segment(1), None);
    assert!(matches!(far.receive(), Received::Bytes(_)));
    let refused = match far.inbox.next_frame() {
        Ok(None) => far.carrier.receive(&mut far.inbox).map(|_| ()),
        other => other.map(|_| ()),
    };
    assert_eq!(code(refused), Some(Code::Protocol));
}

/// In one stream, a frame without its descriptor, and a descriptor without its frame, end the stream.
pub fn descriptors_out_of_step_are_refused(ends: Ends) {
    let (mut near, mut far) = End::both(ends);
    near.raw(&segment(1), None);
    far.raw(&frame(1, 3), Some(descriptor(1)));
    for mut end in [near, far] {
        assert!(matches!(end.receive(), Received::Bytes(_)));
        let mut refused = None;
        for _ in 0..2 {
            refused = refused.or(code(end.inbox.next_frame()));
        }
        assert_eq!(refused, Some(Code::Protocol));
    }
}
