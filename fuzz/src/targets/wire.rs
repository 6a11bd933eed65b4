//! Frames as a hostile peer might send them: reading never panics, and what was read is written so that it reads the
//! same again.

use crate::{Limits, within};
use junctura_wire::{Reply, Request, WireFrame};

/// Lists of at least a byte for each item on the wire, and the frame again.
const LIMITS: Limits = Limits {
    held_bytes: 4 << 10,
    held_bytes_each: 128,
    steps: 100,
    steps_each: 4,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(bytes));
}

fn fuzz(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, length))) = WireFrame::split(rest) {
        read(&frame);
        rest = &rest[length..];
    }
}

fn read(frame: &WireFrame<'_>) {
    if let Ok(request) = Request::decode(frame) {
        let mut written = Vec::new();
        request.encode(frame.request, &mut written);
        let again = again(&written);
        assert_eq!(Request::decode(&again).as_ref(), Ok(&request));
    }
    if let Ok(reply) = Reply::decode(frame) {
        if let Reply::Listed(page) = &reply {
            page.iter().for_each(drop);
        }
        let mut written = Vec::new();
        reply.encode(frame.request, &mut written);
        let again = again(&written);
        assert_eq!(Reply::decode(&again).as_ref(), Ok(&reply));
    }
}

fn again(written: &[u8]) -> WireFrame<'_> {
    let (frame, length) = WireFrame::split(written).expect("our own frame").expect("whole");
    assert_eq!(length, written.len());
    frame
}
