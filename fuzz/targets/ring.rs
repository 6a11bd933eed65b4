//! A peer that writes anything anywhere into the memory of its rings, between what both ends say and hear.

#![no_main]

use junctura_fuzz::{Limits, within};
use junctura_transport::hostile::{HostileStep, run};
use libfuzzer_sys::fuzz_target;

/// Two inboxes; four bytes of input make a frame of 6,000, which the end that says it may have to keep.
const LIMITS: Limits = Limits {
    held_bytes: 512 << 10,
    held_bytes_each: 8 << 10,
    steps: 5000,
    steps_each: 64,
};

fuzz_target!(|bytes: &[u8]| within(LIMITS, bytes, || fuzz(bytes)));

fn fuzz(bytes: &[u8]) {
    let mut rest = bytes;
    run(std::iter::from_fn(|| step(&mut rest)));
}

/// Four bytes: what, where (two), how much; what is scribbled follows.
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
