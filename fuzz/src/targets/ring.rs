//! A peer that writes any bytes anywhere into the memory of its rings, while both ends send and receive.

use crate::{Limits, within};
use junctura_transport::hostile::{self, HostileStep};

/// Two inboxes; four bytes of input make a frame of 6,000, which the sender may have to keep.
const LIMITS: Limits = Limits {
    held_bytes: 512 << 10,
    held_bytes_each: 8 << 10,
    steps: 5000,
    steps_each: 64,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(bytes));
}

fn fuzz(bytes: &[u8]) {
    let mut rest = bytes;
    hostile::run(std::iter::from_fn(|| step(&mut rest)));
}

/// Four bytes: the step, its place (two), its length; the bytes to be written follow.
fn step(rest: &mut &[u8]) -> Option<HostileStep> {
    let [what, low, high, much, tail @ ..] = *rest else {
        return None;
    };
    *rest = tail;
    let at = usize::from(u16::from_le_bytes([*low, *high]));
    Some(match what % 5 {
        0 => {
            let (bytes, tail) = tail.split_at(tail.len().min(usize::from(*much)));
            *rest = tail;
            HostileStep::Scribble {
                at,
                bytes: bytes.to_vec(),
            }
        }
        1 => HostileStep::Say(at % 6000),
        2 => HostileStep::Hear,
        3 => HostileStep::PeerSays(at % 6000),
        _ => HostileStep::PeerHears,
    })
}
