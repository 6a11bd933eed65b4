//! What is encoded is decoded as it was; what comes from a stranger is refused or understood, never a panic.

use crate::common::{Words, replies, requests};
use crate::limits::Limits;
use junctura_model::Code;
use junctura_wire::fixed::{MemberVersion, ReleasedHolding, SlotAddress};
use junctura_wire::frame::{BODY_BYTES_MAX, HEADER_BYTES};
use junctura_wire::{FrameKind, Reply, Request, WireFrame};
use proptest::array;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// The frame again, and lists of what its body has: the smallest item of a list is a byte on the wire.
const LIMITS: Limits = Limits {
    held_bytes: 4096,
    held_bytes_each: 128,
    steps: 100,
    steps_each: 4,
};

fn words() -> impl Strategy<Value = Words> {
    let texts = array::uniform4(".{0,20}");
    let numbers = (
        array::uniform4(any::<u64>()),
        array::uniform6(any::<u32>()),
        array::uniform2(any::<u16>()),
    );
    let bytes = || vec(any::<u8>(), 0..60);
    let holdings = vec((any::<u32>(), any::<u64>()), 0..5);
    let slots = vec((any::<u32>(), any::<u32>()), 0..5);
    let rest = (any::<Option<u64>>(), any::<[bool; 2]>(), bytes(), bytes(), bytes());
    (texts, vec(".{0,20}", 0..4), numbers, holdings, slots, rest).prop_map(
        |(texts, schemas, (longs, ints, shorts), holdings, slots, (maybe, flags, record, payload, page))| Words {
            texts,
            schemas,
            longs,
            ints,
            shorts,
            maybe,
            flags,
            record,
            payload,
            members: holdings
                .iter()
                .map(|&(request, sequence)| MemberVersion {
                    request: u64::from(request).into(),
                    sequence: sequence.into(),
                })
                .collect(),
            holdings: holdings
                .into_iter()
                .map(|(holding, sequence)| ReleasedHolding {
                    holding: holding.into(),
                    sequence: sequence.into(),
                    ..ReleasedHolding::default()
                })
                .collect(),
            slots: slots
                .into_iter()
                .map(|(segment, slot)| SlotAddress {
                    segment: segment.into(),
                    slot: slot.into(),
                })
                .collect(),
            page,
        },
    )
}

fn encoded(words: &Words) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (_, request) in requests(words) {
        let mut bytes = Vec::new();
        request.encode(words.longs[3], &mut bytes);
        frames.push(bytes);
    }
    for (_, reply) in replies(words) {
        let mut bytes = Vec::new();
        reply.encode(words.longs[3], &mut bytes);
        frames.push(bytes);
    }
    frames
}

/// Reads everything that can be read, within limits; what is understood must survive another round.
fn read(bytes: &[u8]) {
    LIMITS.hold(bytes.len(), || read_frames(bytes));
}

fn read_frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, length))) = WireFrame::split(rest) {
        rest = &rest[length..];
        let mut again = Vec::new();
        if let Ok(request) = Request::decode(&frame) {
            request.encode(frame.request, &mut again);
            let (frame, _) = WireFrame::split(&again).unwrap().unwrap();
            assert_eq!(Request::decode(&frame).unwrap(), request);
        }
        again.clear();
        if let Ok(reply) = Reply::decode(&frame) {
            reply.encode(frame.request, &mut again);
            let (frame, _) = WireFrame::split(&again).unwrap().unwrap();
            assert_eq!(Reply::decode(&frame).unwrap(), reply);
            if let Reply::Listed(page) = reply {
                let bytes: usize = page.iter().flatten().map(|(_, record)| record.len()).sum();
                assert!(bytes <= page.entries.len());
            }
        }
    }
}

fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&[kind, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(body);
    bytes
}

fn refusal(kind: FrameKind, body: &[u8]) -> (Code, String) {
    let bytes = framed(kind as u8, body);
    let (frame, _) = WireFrame::split(&bytes).unwrap().unwrap();
    let error = if (kind as u8) < 64 {
        Request::decode(&frame).map(|_| ()).unwrap_err()
    } else {
        Reply::decode(&frame).map(|_| ()).unwrap_err()
    };
    (error.code(), error.cause().to_owned())
}

proptest! {
    #[test]
    fn requests_and_replies_survive_the_way(words in words()) {
        for (name, request) in requests(&words) {
            let mut bytes = Vec::new();
            request.encode(words.longs[3], &mut bytes);
            let (frame, length) = WireFrame::split(&bytes).unwrap().unwrap();
            prop_assert_eq!(length, bytes.len());
            prop_assert_eq!(frame.request, words.longs[3]);
            prop_assert_eq!(Request::decode(&frame).unwrap(), request, "{}", name);
        }
        for (name, reply) in replies(&words) {
            let mut bytes = Vec::new();
            reply.encode(words.longs[3], &mut bytes);
            let (frame, _) = WireFrame::split(&bytes).unwrap().unwrap();
            prop_assert_eq!(Reply::decode(&frame).unwrap(), reply, "{}", name);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        read(&bytes);
        for &kind in FrameKind::ALL {
            read(&framed(kind as u8, &bytes));
        }
    }

    #[test]
    fn mutated_frames_never_panic(
        words in words(),
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
        cut in any::<Option<Index>>(),
    ) {
        for mut bytes in encoded(&words) {
            for (at, value) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            if let Some(cut) = &cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            // The length put right again, so that the body is looked at even after a cut.
            if let Some(body) = bytes.len().checked_sub(HEADER_BYTES) {
                read(&bytes);
                bytes[..4].copy_from_slice(&(body as u32).to_le_bytes());
            }
            read(&bytes);
        }
    }

    #[test]
    fn a_torn_frame_is_waited_for(words in words(), cut in any::<Index>()) {
        for bytes in encoded(&words) {
            prop_assert_eq!(WireFrame::split(&bytes[..cut.index(bytes.len())]).unwrap(), None);
        }
    }
}

#[test]
fn a_header_that_is_none_of_ours_is_refused() {
    let mut header = framed(1, &[]);
    header[..4].copy_from_slice(&(BODY_BYTES_MAX as u32).to_le_bytes());
    assert_eq!(WireFrame::split(&header).unwrap(), None);
    header[..4].copy_from_slice(&(BODY_BYTES_MAX as u32 + 1).to_le_bytes());
    assert_eq!(WireFrame::split(&header).unwrap_err().code(), Code::Protocol);
    for (at, value) in [(5, 2), (6, 1), (7, 1)] {
        let mut header = framed(1, &[]);
        header[at] = value;
        assert_eq!(WireFrame::split(&header).unwrap_err().code(), Code::Protocol);
    }
}

#[test]
fn an_unknown_kind_is_told_apart_from_a_broken_body() {
    for unknown in [0, 21, 63, 81, 255] {
        let bytes = framed(unknown, &[1, 2, 3]);
        let (frame, _) = WireFrame::split(&bytes).unwrap().unwrap();
        assert_eq!(Request::decode(&frame).unwrap_err().code(), Code::Unsupported);
        assert_eq!(Reply::decode(&frame).unwrap_err().code(), Code::Unsupported);
    }
    assert_eq!(refusal(FrameKind::Hello, &[]).0, Code::Protocol);
    assert_eq!(refusal(FrameKind::Offer, &[0; 31]).0, Code::Protocol);
    assert_eq!(refusal(FrameKind::Release, &[0; 17]).0, Code::Protocol);
    assert_eq!(refusal(FrameKind::Cancel, &[0; 9]).0, Code::Protocol);
    assert_eq!(refusal(FrameKind::Listed, &[2]).0, Code::Protocol);
    assert_eq!(refusal(FrameKind::Stats, &[0xff]).0, Code::Protocol);
}

#[test]
fn lengths_inside_an_offer_must_agree() {
    let words = Words::example();
    for (name, request) in requests(&words)
        .into_iter()
        .filter(|(name, _)| name.starts_with("offer"))
    {
        let mut bytes = Vec::new();
        request.encode(1, &mut bytes);
        let record_length = HEADER_BYTES + 8;
        for wrong in [words.record.len() as u32 + 1, u32::MAX] {
            bytes[record_length..record_length + 4].copy_from_slice(&wrong.to_le_bytes());
            let (frame, _) = WireFrame::split(&bytes).unwrap().unwrap();
            assert_eq!(Request::decode(&frame).unwrap_err().code(), Code::Protocol, "{name}");
        }
    }
}

#[test]
fn counts_that_the_frame_cannot_hold_are_refused_before_anything_is_built() {
    let huge = [&[0xa1, 4, 0x9b][..], &u64::MAX.to_be_bytes()].concat();
    assert_eq!(
        refusal(FrameKind::Hello, &huge),
        (Code::Protocol, "more items announced than bytes left".to_owned())
    );
    let huge = [&[0xa1, 0, 0x9a][..], &u32::MAX.to_be_bytes(), &[0; 64]].concat();
    assert_eq!(
        refusal(FrameKind::Gap, &huge),
        (Code::Protocol, "more items announced than bytes left".to_owned())
    );
    // Two million empty texts would make a vector 24 times as large as their frame.
    let many = BODY_BYTES_MAX as u32 - 16;
    let empty = [&[0xa1, 4, 0x9a][..], &many.to_be_bytes(), &vec![0x60; many as usize]].concat();
    assert_eq!(
        refusal(FrameKind::Hello, &empty),
        (Code::Protocol, "too many items".to_owned())
    );
    let deep = [&[0xa1, 0x18, 99][..], &vec![0x81; BODY_BYTES_MAX - 16], &[0]].concat();
    assert_eq!(
        refusal(FrameKind::Subscribe, &deep),
        (Code::Protocol, "nested too deep".to_owned())
    );
    assert_eq!(
        refusal(FrameKind::Hello, &[0xbf, 0xff]),
        (Code::Protocol, "indefinite length".to_owned())
    );
}

#[test]
fn a_field_that_a_newer_peer_added_is_skipped() {
    // Lease { payload_bytes: 8 } with a field 9 that nests.
    let body = [0xa2, 0, 8, 9, 0x82, 0xa1, 0, 1, 0x41, 0xff];
    let bytes = framed(FrameKind::Lease as u8, &body);
    let (frame, _) = WireFrame::split(&bytes).unwrap().unwrap();
    let expected = junctura_wire::body::LeaseRequest {
        payload_bytes: 8,
        timeout_ms: None,
        staged: false,
    };
    assert_eq!(Request::decode(&frame).unwrap(), Request::Lease(expected));
}
