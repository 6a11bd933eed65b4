//! Ends of links with one side stream, moved by hand, beside sockets that act as the other machine.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use junctura_memory::SegmentMapping;
use junctura_transport::{Carrier, Inbox, LocalCarrier, Outbox, ReceiveResult, SendResult, ServerAddress, UnixCarrier};
use junctura_wire::fixed::{OfferHead, SegmentHead};
use junctura_wire::{FrameKind, Reply, Request, WireFrame};

use crate::record::{PART_BYTES, PayloadOffset};
use crate::relay::channel::LinkSide;
use crate::relay::channel_source::ChannelSource;
use crate::relay::{RelayEnd, RoundResult, StreamRelay};
use crate::streams::StreamsGuard;

use super::*;

const PART: usize = PART_BYTES as usize;
const SLOT_BYTES: u64 = 4 << 20;
const AT: PayloadOffset = PayloadOffset {
    segment: 3,
    slot: 1,
    offset: 0,
};

/// An end of a link, its local peer, and the other machine's ends of its two streams.
struct End {
    relay: StreamRelay,
    porter: Option<StreamWorker>,
    local: UnixCarrier,
    inbox: Inbox,
    /// The first stream, and the other one.
    wires: [UnixStream; 2],
}

fn wire() -> (LinkStream, UnixStream) {
    let (one, other) = UnixStream::pair().unwrap();
    other.set_nonblocking(true).unwrap();
    (LinkStream::within(one, None).unwrap(), other)
}

fn end_with(lease: Duration, relay: impl FnOnce(LocalCarrier, LinkStream) -> StreamRelay) -> End {
    let (local, far) = UnixCarrier::pair().unwrap();
    let ((first, first_wire), (second, second_wire)) = (wire(), wire());
    let lead = StreamsGuard(SideStreams::new().unwrap());
    let porter = StreamWorker::new(Arc::clone(&lead.0), 1, second, lease).unwrap();
    End {
        relay: relay(LocalCarrier::new(far), first).with_sides(lead),
        porter: Some(porter),
        local,
        inbox: Inbox::new(),
        wires: [first_wire, second_wire],
    }
}

/// A client's.
fn client() -> End {
    let lease = Duration::from_mins(1);
    end_with(lease, |local, stream| {
        StreamRelay::new(LinkSide::Client, local, stream, lease, 0)
    })
}

fn head(is_writable: bool) -> SegmentHead {
    SegmentHead {
        segment: AT.segment.into(),
        writable: u32::from(is_writable).into(),
        bytes: (4 * SLOT_BYTES).into(),
        slot_bytes: SLOT_BYTES.into(),
    }
}

/// The first record of the other end: a segment.
fn announcement() -> Vec<u8> {
    frames(&Reply::Segment(head(false)))
}

fn frames(reply: &Reply<'_>) -> Vec<u8> {
    let mut frame = Vec::new();
    reply.encode(7, &mut frame);
    [&LinkRecord::Frames(frame.len() as u32).to_bytes()[..], &frame].concat()
}

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 1000 + at) as u8).collect()
}

/// A part of a load that is this payload.
fn part(load: u64, number: usize, payload: &[u8]) -> Vec<u8> {
    let body = &payload[number * PART..payload.len().min((number + 1) * PART)];
    let record = LinkRecord::Part(load, number as u32, body.len() as u32);
    [&record.to_bytes()[..], body].concat()
}

impl End {
    /// Moves what can be moved, until nothing can; how the relay ended, if it did.
    fn settle(&mut self) -> Result<Option<RelayEnd>> {
        loop {
            let has_carried = match self.porter.as_mut().map(StreamWorker::step) {
                Some(Some(has_moved)) => has_moved,
                Some(None) => {
                    self.porter = None;
                    true
                }
                None => false,
            };
            match self.relay.round()? {
                RoundResult::Over(ended) => return Ok(Some(ended)),
                RoundResult::Still if !has_carried => {
                    self.relay.look()?;
                    if self.relay.round()? == RoundResult::Still {
                        return Ok(None);
                    }
                }
                _ => {}
            }
        }
    }

    /// The other end sends this on one of its streams, as far as it is accepted; returns the remaining bytes.
    fn say<'a>(&mut self, stream: usize, mut bytes: &'a [u8]) -> Result<&'a [u8]> {
        while !bytes.is_empty() {
            match self.wires[stream].write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return Ok(bytes);
                }
            }
            self.settle()?;
        }
        Ok(bytes)
    }

    /// The kinds of the received frames.
    fn told(&mut self) -> Vec<u8> {
        while let Ok(ReceiveResult::Bytes(_)) = self.local.receive(&mut self.inbox) {}
        let mut kinds = Vec::new();
        while let Some((WireFrame { kind, .. }, _)) = self.inbox.next_frame().unwrap() {
            kinds.push(kind);
        }
        kinds
    }

    /// The content of the mirror.
    fn mirrored(&mut self, length: usize) -> Vec<u8> {
        let descriptor = self.relay.memory().announce(&head(false)).unwrap();
        let mirror = SegmentMapping::readonly(descriptor, 4 * SLOT_BYTES).unwrap();
        mirror.slice(SLOT_BYTES, length as u64).unwrap().to_vec()
    }
}

const AFTER: Reply<'_> = Reply::Stats("after");

#[test]
fn what_speaks_of_a_payload_comes_behind_all_of_its_parts() {
    let payload = payload(2 * PART + 5);
    let mut end = client();
    // Ahead of its announcement it waits in its stream.
    let [first, second, third] = [0, 1, 2].map(|number| part(0, number, &payload));
    let rest = end.say(1, &third).unwrap();
    assert!(rest.is_empty());
    assert!(
        !end.say(1, &first).unwrap().is_empty(),
        "nothing more of the stream is read"
    );
    let mut end = client();
    assert!(end.say(1, &third).unwrap().is_empty());
    end.say(0, &announcement()).unwrap();
    end.say(0, &LinkRecord::Load(AT, payload.len() as u32).to_bytes())
        .unwrap();
    assert!(end.say(0, &second).unwrap().is_empty());
    end.say(0, &LinkRecord::Whole.to_bytes()).unwrap();
    end.say(0, &frames(&AFTER)).unwrap();
    assert_eq!(end.told(), [FrameKind::Segment as u8]);
    let (begin, last) = first.split_at(first.len() - 1);
    assert!(end.say(1, begin).unwrap().is_empty());
    assert!(end.told().is_empty());
    end.say(1, last).unwrap();
    end.settle().unwrap();
    assert_eq!(end.told(), [FrameKind::Stats as u8]);
    assert!(end.mirrored(payload.len()) == payload);

    // The next one is received into the same place.
    let payload: Vec<u8> = payload.iter().map(|byte| !byte).collect();
    let said = [
        LinkRecord::Load(AT, payload.len() as u32).to_bytes().to_vec(),
        part(1, 0, &payload),
        part(1, 1, &payload),
        LinkRecord::Whole.to_bytes().to_vec(),
        frames(&AFTER),
    ];
    assert!(end.say(0, &said.concat()).unwrap().is_empty());
    assert!(end.told().is_empty());
    assert!(end.say(1, &part(1, 2, &payload)).unwrap().is_empty());
    end.settle().unwrap();
    assert_eq!(end.told(), [FrameKind::Stats as u8]);
    assert!(end.mirrored(payload.len()) == payload);
}

#[test]
fn what_was_not_announced_ends_the_link() {
    let payload = payload(PART + 5);
    let announced = [
        announcement(),
        LinkRecord::Load(AT, payload.len() as u32).to_bytes().to_vec(),
    ]
    .concat();
    let short = [&LinkRecord::Part(0, 1, 4).to_bytes()[..], &[0; 4]].concat();
    let refused: [Vec<u8>; 7] = [
        [part(0, 1, &payload), part(0, 1, &payload)].concat(),
        short,
        LinkRecord::Part(0, 2, 0).to_bytes().to_vec(),
        LinkRecord::Part(1 << 40, 0, PART_BYTES).to_bytes().to_vec(),
        LinkRecord::Payload(AT, 5).to_bytes().to_vec(),
        LinkRecord::Whole.to_bytes().to_vec(),
        vec![0xff; HEADER_BYTES],
    ];
    for said in refused {
        let mut end = client();
        assert!(end.say(0, &announced).unwrap().is_empty());
        let error = end.say(1, &said).and_then(|_| end.settle()).unwrap_err();
        assert_eq!(error.code(), Code::Protocol, "{said:?}");
        assert!(error.cause().contains("stream 1 of the link"), "{error}");
    }
    // On the first stream no payload can arrive early.
    let mut end = client();
    let error = end
        .say(0, &part(0, 1, &payload))
        .and_then(|_| end.settle())
        .unwrap_err();
    assert_eq!(error.code(), Code::Protocol);
    // An incomplete record has no effect.
    for record in [
        LinkRecord::Frames(0),
        LinkRecord::Beat,
        LinkRecord::Payload(AT, 5),
        LinkRecord::Forget(AT, 5),
    ] {
        let mut end = client();
        assert!(end.say(0, &announced).unwrap().is_empty());
        let error = end.say(0, &record.to_bytes()).and_then(|_| end.settle()).unwrap_err();
        assert_eq!(error.code(), Code::Protocol, "{record:?}");
    }
    // A link of one stream has no parts.
    for record in [LinkRecord::Load(AT, 5), LinkRecord::Whole, LinkRecord::Part(0, 0, 5)] {
        let (local, far) = UnixCarrier::pair().unwrap();
        let (stream, mut other) = wire();
        let mut relay = StreamRelay::new(
            LinkSide::Client,
            LocalCarrier::new(far),
            stream,
            Duration::from_mins(1),
            0,
        );
        other.write_all(&record.to_bytes()).unwrap();
        assert_eq!(relay.round().unwrap_err().code(), Code::Protocol, "{record:?}");
        drop(local);
    }
}

#[test]
fn a_place_that_nobody_announced_is_none() {
    let mut end = client();
    let load = LinkRecord::Load(AT, PART_BYTES);
    assert_eq!(end.say(0, &load.to_bytes()).unwrap_err().code(), Code::Protocol);
    let mut end = client();
    end.say(0, &announcement()).unwrap();
    let beyond = LinkRecord::Load(
        PayloadOffset {
            offset: SLOT_BYTES,
            ..AT
        },
        PART_BYTES,
    );
    assert!(end.say(0, &beyond.to_bytes()).and_then(|_| end.settle()).is_err());
}

#[test]
fn a_stream_that_is_cut_ends_the_link_and_nothing_is_told_of_what_it_brought() {
    let payload = payload(2 * PART);
    for cut in [0, 1, HEADER_BYTES, HEADER_BYTES + 1000, HEADER_BYTES + PART] {
        let mut end = client();
        end.say(0, &announcement()).unwrap();
        end.say(0, &LinkRecord::Load(AT, payload.len() as u32).to_bytes())
            .unwrap();
        end.say(1, &part(0, 0, &payload)[..cut]).unwrap();
        end.say(0, &[&LinkRecord::Whole.to_bytes()[..], &frames(&AFTER)].concat())
            .unwrap();
        end.wires[1].shutdown(std::net::Shutdown::Both).unwrap();
        let error = end.settle().unwrap_err();
        assert_eq!(error.code(), Code::Disconnected, "{error}");
        assert!(error.cause().contains("stream 1 of the link"), "{error}");
        assert_eq!(end.told(), [FrameKind::Segment as u8]);
    }
}

#[test]
fn what_was_said_before_a_stream_was_cut_is_heard() {
    let mut end = client();
    end.wires[1].shutdown(std::net::Shutdown::Both).unwrap();
    end.wires[0].write_all(&frames(&AFTER)).unwrap();
    assert_eq!(end.settle().unwrap_err().code(), Code::Disconnected);
    assert_eq!(end.told(), [FrameKind::Stats as u8]);
}

#[test]
fn a_link_that_ends_before_a_load_is_whole_was_cut() {
    let mut end = client();
    end.say(0, &announcement()).unwrap();
    end.say(0, &LinkRecord::Load(AT, PART_BYTES).to_bytes()).unwrap();
    end.wires[0].shutdown(std::net::Shutdown::Write).unwrap();
    let error = end.settle().unwrap_err();
    assert!(error.cause().contains("in the middle of a message"), "{error}");
}

#[test]
fn a_stream_that_ends_in_order_is_not_missed() {
    let mut end = client();
    end.say(1, &LinkRecord::Close(0).to_bytes()).unwrap();
    end.wires[1].shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(end.settle(), Ok(None));
    end.wires[0].shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(end.settle(), Ok(Some(RelayEnd::There)));
    end.relay.conclude(&Ok(RelayEnd::There));
    assert!(end.porter.unwrap().step().is_none());
}

/// Everything that can be read of a stream now.
fn heard(wire: &mut UnixStream, into: &mut Vec<u8>) -> bool {
    let before = into.len();
    let ended = wire.read_to_end(into);
    if let Err(error) = ended {
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
    into.len() > before
}

/// The records of a stream, and their bodies.
fn records(mut bytes: &[u8]) -> Vec<(LinkRecord, &[u8])> {
    let mut found = Vec::new();
    while let Some(record) = LinkRecord::read(bytes).unwrap() {
        let (body, rest) = bytes[HEADER_BYTES..].split_at(record.body_bytes() as usize);
        found.push((record, body));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "only whole records");
    found
}

#[test]
fn all_streams_carry_what_is_offered_and_the_link_ends_behind_the_last() {
    const OFFERS: usize = 12;
    let payload = payload(3 * PART + 17);
    let mut end = client();
    let descriptor = end.relay.memory().announce(&head(true)).unwrap();
    end.relay.know(AT.segment);
    let mapping = Arc::new(SegmentMapping::writable(descriptor, 4 * SLOT_BYTES, SLOT_BYTES).unwrap());
    mapping
        .take(AT.slot, payload.len() as u64)
        .unwrap()
        .copy_from_slice(&payload);
    let offer = OfferHead {
        segment: AT.segment.into(),
        slot: AT.slot.into(),
        length: (payload.len() as u64).into(),
        ..OfferHead::default()
    };
    let mut outbox = Outbox::new();
    for number in 0..OFFERS {
        let offer = Request::Offer {
            head: offer,
            record: &[],
            inline: &[],
        };
        outbox.push(|out| offer.encode(number as u64, out)).unwrap();
    }
    assert_eq!(end.local.send(&mut outbox).unwrap(), SendResult::All);
    let End { local, .. } = &mut end;
    drop(std::mem::replace(local, UnixCarrier::pair().unwrap().0));

    let (mut said, mut ended) = ([Vec::new(), Vec::new()], None);
    while ended.is_none() {
        // The first stream alone is incomplete while the other one is not read.
        let mut has_come = heard(&mut end.wires[0], &mut said[0]);
        ended = end.settle().unwrap();
        if !has_come && ended.is_none() {
            has_come = heard(&mut end.wires[1], &mut said[1]);
            ended = end.settle().unwrap();
            assert!(has_come, "it continues");
        }
    }
    assert_eq!(ended, Some(RelayEnd::Here));
    end.relay.conclude(&Ok(RelayEnd::Here));
    end.wires[0].shutdown(std::net::Shutdown::Write).unwrap();
    end.wires[1].shutdown(std::net::Shutdown::Write).unwrap();
    while end.porter.as_mut().unwrap().step().is_some() {}
    end.porter = None;
    drop(end.relay);
    for (wire, said) in end.wires.iter_mut().zip(&mut said) {
        heard(wire, said);
    }

    // The first stream: for each offer a load, parts of the payload, then the mark that it must be complete, then the
    // offer.
    let first = records(&said[0]);
    let (mut loads, mut parts, mut wholes) = (0, Vec::new(), 0);
    for (record, body) in &first {
        match record {
            LinkRecord::Load(at, length) => {
                assert_eq!((*at, *length as usize, loads), (AT, payload.len(), wholes));
                loads += 1;
            }
            LinkRecord::Part(load, part, _) => {
                assert_eq!(*load + 1, loads);
                parts.push((*load, *part, *body));
            }
            LinkRecord::Whole => wholes += 1,
            LinkRecord::Frames(_) => assert_eq!(loads, wholes),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((loads, wholes), (OFFERS as u64, OFFERS as u64));
    let (close, second) = records(&said[1])
        .split_last()
        .map(|(last, rest)| (last.0, rest.to_vec()))
        .unwrap();
    assert_eq!(close, LinkRecord::Close(0));
    assert!(!second.is_empty(), "the other stream has carried some");
    for (record, body) in second {
        let LinkRecord::Part(load, part, _) = record else {
            panic!("{record:?}")
        };
        parts.push((load, part, body));
    }
    parts.sort_unstable_by_key(|(load, part, _)| (*load, *part));
    let bodies: Vec<u8> = parts.iter().flat_map(|(_, _, body)| body.iter().copied()).collect();
    assert!(bodies == payload.repeat(OFFERS), "each part once, with its contents");
}

#[test]
fn a_stream_that_is_not_heard_of_ends_the_link_after_its_lease() {
    let lease = Duration::from_millis(100);
    let end = end_with(lease, |local, stream| {
        StreamRelay::new(LinkSide::Server, local, stream, lease, 0)
    });
    let [mut first, second] = end.wires;
    first.set_nonblocking(false).unwrap();
    // Heartbeats arrive on the first stream, and nothing is read from it.
    let beating = std::thread::spawn(move || while first.write_all(&LinkRecord::Beat.to_bytes()).is_ok() {});
    let porter = end.porter.unwrap();
    let carrying = std::thread::spawn(|| porter.run());
    let error = end.relay.run().0.unwrap_err();
    assert_eq!(error.code(), Code::Disconnected);
    assert!(
        error.cause().contains("stream 1 of the link: nothing was received"),
        "{error}"
    );
    carrying.join().unwrap();
    beating.join().unwrap();
    drop((second, end.local));
}

#[test]
fn who_carries_ends_with_the_link_whatever_it_waits_for() {
    // A part that is never announced.
    let mut end = client();
    end.say(1, &LinkRecord::Part(5, 0, PART_BYTES).to_bytes()).unwrap();
    let porter = end.porter.take().unwrap();
    let carrying = std::thread::spawn(|| porter.run());
    drop(end.relay);
    carrying.join().unwrap();
    // A payload in pieces, of which the last is missing.
    let mut end = client();
    end.say(0, &announcement()).unwrap();
    end.say(0, &LinkRecord::Load(AT, PART_BYTES).to_bytes()).unwrap();
    end.say(1, &LinkRecord::Part(0, 0, PART_BYTES).to_bytes()).unwrap();
    let porter = end.porter.take().unwrap();
    let carrying = std::thread::spawn(|| porter.run());
    end.relay
        .conclude(&Err(Error::new(Code::Protocol, "", "something else")));
    carrying.join().unwrap();
}

#[test]
fn parts_for_one_that_has_gone_are_read_over() {
    let lease = Duration::from_mins(1);
    let mut end = end_with(lease, |_, stream| {
        let door = ChannelSource::Out(ServerAddress::Path("/nowhere".into()));
        StreamRelay::with_door(LinkSide::Server, door, stream, lease, 0)
    });
    let payload = payload(2 * PART);
    let said = [
        LinkRecord::Load(AT, payload.len() as u32).to_bytes().to_vec(),
        part(0, 1, &payload),
        LinkRecord::Whole.to_bytes().to_vec(),
    ];
    assert!(end.say(0, &said.concat()).unwrap().is_empty());
    assert!(!end.relay.takes_stream());
    assert!(end.say(1, &part(0, 0, &payload)).unwrap().is_empty());
    assert_eq!(end.settle(), Ok(None));
    assert!(end.relay.takes_stream());
}
