//! Ends of links beside sockets that act as the other machine.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use junctura_transport::{Carrier, Inbox, Outbox, SendResult, ServerAddress, ServerListener, UnixCarrier};
use junctura_wire::fixed::{OfferHead, SegmentHead};
use junctura_wire::{Reply, Request, body};
use zerocopy::IntoBytes;

use crate::record::PayloadOffset;

use super::*;

/// A relay of a client, its local end, and a socket that acts as the other machine.
fn relay() -> (StreamRelay, UnixCarrier, TcpStream) {
    let (near, far) = UnixCarrier::pair().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    let stream = LinkStream::new(socket, None).unwrap();
    let lease = Duration::from_mins(1);
    (
        StreamRelay::new(LinkSide::Client, LocalCarrier::new(far), stream, lease, 0),
        near,
        other,
    )
}

#[test]
fn last_words_are_more_than_a_link_takes_at_once() {
    const OFFERS: u64 = 40;
    const LENGTH: u64 = 1 << 20;
    let (mut relay, mut near, mut other) = relay();
    let segment = SegmentHead {
        segment: 1.into(),
        writable: 1.into(),
        bytes: LENGTH.into(),
        slot_bytes: LENGTH.into(),
    };
    relay.channels[0].segments().insert(1);
    drop(relay.common.memory.announce(&segment).unwrap());
    let head = OfferHead {
        segment: 1.into(),
        length: LENGTH.into(),
        ..OfferHead::default()
    };
    let mut outbox = Outbox::new();
    for number in 0..OFFERS {
        let offer = Request::Offer {
            head,
            record: &[],
            inline: &[],
        };
        outbox.push(|out| offer.encode(number, out)).unwrap();
    }
    assert_eq!(near.send(&mut outbox).unwrap(), SendResult::All);
    drop(near);

    let (mut arrived, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while relay.take_local().unwrap() || !relay.is_over() || !relay.common.queue.is_empty() {
        relay.flush_stream().unwrap();
        let bytes = other.read(&mut piece).unwrap();
        arrived.extend_from_slice(&piece[..bytes]);
    }
    relay.stream.end();
    other.read_to_end(&mut arrived).unwrap();

    let (mut rest, mut payloads) = (&arrived[..], 0);
    while let Some(record) = LinkRecord::read(rest).unwrap() {
        payloads += u64::from(matches!(record, LinkRecord::Payload(..)));
        rest = &rest[HEADER_BYTES + record.body_bytes() as usize..];
    }
    assert_eq!(payloads, OFFERS);
}

/// A relay of several clients, all of which have disconnected, and a socket that acts as the other machine.
fn shared(side: LinkSide) -> (StreamRelay, UnixStream) {
    let (one, other) = UnixStream::pair().unwrap();
    let stream = LinkStream::within(one, None).unwrap();
    let door = ChannelSource::Out("unix:@nobody".parse().unwrap());
    let mut relay = StreamRelay::with_door(side, door, stream, Duration::from_mins(1), 0);
    relay.newest = 1;
    (relay, other)
}

#[test]
fn a_client_that_stays_silent_gives_its_place_to_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let address: ServerAddress = format!("unix:{}", folder.path().join("door").display())
        .parse()
        .unwrap();
    let (mut relay, _other) = shared(LinkSide::Client);
    relay.newest = 0;
    relay.channels_max = 3;
    relay.door = Some(ChannelSource::In {
        listener: ServerListener::bind(&address).unwrap(),
        stop: Arc::new(crate::relay::channel_source::AcceptStop::new().unwrap()),
    });
    let numbers = |relay: &StreamRelay| {
        let mut numbers: Vec<u32> = relay.channels.iter().map(RelayChannel::number).collect();
        numbers.sort_unstable();
        numbers
    };
    let connect = |relay: &mut StreamRelay| {
        let client = UnixCarrier::connect(&address).unwrap();
        relay.is_called = true;
        relay.round().unwrap();
        (client, numbers(relay))
    };
    let (mut first, _) = connect(&mut relay);
    let mut hello = Outbox::new();
    hello
        .push(|out| Request::Hello(body::Hello::default()).encode(1, out))
        .unwrap();
    first.send(&mut hello).unwrap();
    let silent = [connect(&mut relay), connect(&mut relay)];
    assert_eq!(silent[1].1, [1, 2, 3]);
    // The oldest one that has not introduced itself is evicted, and its error states why.
    let newest = [connect(&mut relay), connect(&mut relay)];
    assert_eq!((&newest[0].1[..], &newest[1].1[..]), (&[1, 3, 4][..], &[1, 4, 5][..]));
    for (mut evicted, _) in silent {
        let mut inbox = Inbox::new();
        evicted.receive(&mut inbox).unwrap();
        let (frame, _) = inbox.next_frame().unwrap().unwrap();
        let Ok(Reply::Failed(failure)) = Reply::decode(&frame) else {
            panic!("{frame:?}");
        };
        assert_eq!(failure.code, Code::LimitExceeded.number());
    }
    // Where all have introduced themselves, a new one is turned away.
    let mut newest = newest.map(|(client, _)| client);
    for client in &mut newest {
        let mut hello = Outbox::new();
        hello
            .push(|out| Request::Hello(body::Hello::default()).encode(1, out))
            .unwrap();
        client.send(&mut hello).unwrap();
    }
    relay.round().unwrap();
    assert_eq!(connect(&mut relay).1, [1, 4, 5]);
}

/// The records for a payload of a channel: the announcement of a segment, and its content.
fn payload(announcement: Option<SegmentHead>, at: PayloadOffset) -> Vec<u8> {
    let mut said = LinkRecord::Channel(1).to_bytes().to_vec();
    if let Some(head) = announcement {
        let mut frame = Vec::new();
        Reply::Segment(head).encode(0, &mut frame);
        said.extend(LinkRecord::Frames(frame.len() as u32).to_bytes());
        said.extend(frame);
    }
    said.extend(LinkRecord::Payload(at, 8).to_bytes());
    said.extend([7; 8]);
    said
}

#[test]
fn a_payload_for_one_that_has_gone_harms_nobody_else() {
    let at = PayloadOffset {
        segment: 3,
        slot: 0,
        offset: 0,
    };
    // The server has ended its client while a payload for an offer was in flight.
    let (mut relay, mut other) = shared(LinkSide::Server);
    other.write_all(&payload(None, at)).unwrap();
    assert_eq!(relay.round().unwrap(), RoundResult::Moved);

    // A client has disconnected while a payload for it was in flight; another one receives it, and finds it in the
    // mirror.
    let head = SegmentHead {
        segment: 3.into(),
        bytes: (1 << 20).into(),
        slot_bytes: (1 << 20).into(),
        ..SegmentHead::default()
    };
    let (mut relay, mut other) = shared(LinkSide::Client);
    other.write_all(&payload(Some(head), at)).unwrap();
    assert_eq!(relay.round().unwrap(), RoundResult::Moved);
    let mirror =
        junctura_memory::SegmentMapping::readonly(relay.common.memory.announce(&head).unwrap(), 1 << 20).unwrap();
    assert_eq!(mirror.slice(0, 8).unwrap(), [7; 8]);

    // It is dropped when the server's end sends the order.
    other.write_all(&LinkRecord::Drop(3).to_bytes()).unwrap();
    assert_eq!(relay.round().unwrap(), RoundResult::Moved);
    assert!(!relay.common.memory.knows(3));
}

/// A relay of the server's end with a short lease, the server's end of its connection, and a socket that acts as the
/// other machine.
fn gate() -> (StreamRelay, UnixCarrier, UnixStream) {
    let (near, far) = UnixCarrier::pair().unwrap();
    let (one, other) = UnixStream::pair().unwrap();
    let stream = LinkStream::within(one, None).unwrap();
    let lease = Duration::from_millis(100);
    (
        StreamRelay::new(LinkSide::Server, LocalCarrier::new(far), stream, lease, 0),
        near,
        other,
    )
}

#[test]
fn a_segment_that_was_returned_is_forgotten() {
    let (mut relay, _server, _other) = gate();
    let segment = junctura_memory::segment::SealedSegment::create(4096).unwrap();
    let head = SegmentHead {
        segment: 3.into(),
        writable: 1.into(),
        bytes: 4096.into(),
        slot_bytes: 4096.into(),
    };
    let at = PayloadOffset {
        segment: 3,
        slot: 0,
        offset: 0,
    };
    let leased = segment.writable().try_clone_to_owned().unwrap();
    relay.common.memory.learn(&head, leased, true).unwrap();
    relay.channels[0].segments().insert(3);
    assert!(relay.common.memory.sink(at, 100).is_ok());
    let mut bytes = Vec::new();
    Request::Return(3).encode(1, &mut bytes);
    assert_eq!(relay.pass_in(&bytes), Ok(bytes.len()));
    assert_eq!(relay.common.memory.sink(at, 100).unwrap_err().code(), Code::Protocol);
}

/// Sends heartbeats until the connection ends.
fn beat(mut other: UnixStream) {
    while other.write_all(LinkRecord::Beat.header().as_bytes()).is_ok() {}
}

fn say(count: u64, outbox: &mut Outbox) {
    for number in 0..count {
        outbox
            .push(|out| Reply::Stats(&"x".repeat(60_000)).encode(number, out))
            .unwrap();
    }
}

#[test]
fn who_takes_nothing_after_the_end_keeps_nobody_waiting() {
    let (relay, mut server, other) = gate();
    let running = std::thread::spawn(|| relay.run().0);
    let mut outbox = Outbox::new();
    say(50, &mut outbox);
    while server.send(&mut outbox).unwrap() == SendResult::Blocked {
        junctura_transport::wait(server.as_fd(), junctura_transport::PollInterest::WRITE).unwrap();
    }
    drop(server);
    beat(other);
    let error = running.join().unwrap().unwrap_err();
    assert!(error.cause().contains("read nothing"), "{error}");
}

#[test]
fn who_does_not_leave_after_the_end_keeps_nobody_waiting() {
    let (relay, server, other) = gate();
    let running = std::thread::spawn(|| relay.run().0);
    drop(server);
    beat(other);
    assert_eq!(running.join().unwrap(), Ok(RelayEnd::Here));
}

#[test]
fn a_server_that_does_not_read_last_words_keeps_no_thread() {
    let (relay, server, mut other) = gate();
    let running = std::thread::spawn(|| relay.run().0);
    let mut outbox = Outbox::new();
    say(10, &mut outbox);
    let (frames, _) = outbox.piece().unwrap();
    other
        .write_all(LinkRecord::Frames(frames.len() as u32).header().as_bytes())
        .unwrap();
    other.write_all(frames).unwrap();
    // A socket that is closed with unread heartbeats is reset.
    other.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(running.join().unwrap(), Ok(RelayEnd::There));
    drop((server, other));
}

#[test]
fn answers_that_nobody_reads_are_not_made_without_end() {
    let (near, _far) = UnixCarrier::pair().unwrap();
    let (one, other) = UnixStream::pair().unwrap();
    other.set_nonblocking(true).unwrap();
    let stream = LinkStream::within(one, None).unwrap();
    let lease = Duration::from_mins(1);
    let mut relay = StreamRelay::new(LinkSide::Server, LocalCarrier::new(near), stream, lease, 0);
    // Parts of an array that is none, again and again, and nothing is read.
    let mut frames = Vec::new();
    while frames.len() < 100_000 {
        Request::Pack(body::PackBody::default()).encode(7, &mut frames);
    }
    let record = [&LinkRecord::Frames(frames.len() as u32).to_bytes()[..], &frames].concat();
    let (mut said, mut at) = (0, 0);
    loop {
        let written = (&other).write(&record[at..]).unwrap_or(0);
        said += written;
        at = (at + written) % record.len();
        let round = relay.round().unwrap();
        if written == 0 && round == RoundResult::Still {
            break;
        }
        assert!(said < 64 << 20, "it is read without end");
    }
    assert!(relay.common.queue.is_full() && !relay.takes_stream());
    let (mut heard, mut piece) = (0, vec![0; 1 << 20]);
    // The other end reads; then its records are read again.
    while !relay.takes_stream() {
        heard += (&other).read(&mut piece).unwrap();
        relay.round().unwrap();
    }
    assert!(heard > 0);
}
