//! Bytes of any peer: an inbox takes memory for those that have come, not for those that a header claims.

use crate::limits::Limits;
use junctura_model::Result;
use junctura_transport::{Inbox, ServerAddress};
use proptest::prelude::*;

/// The first buffer, and one of twice as many bytes as have come while they are copied into it.
const INBOX: Limits = Limits {
    held_bytes: 256 << 10,
    held_bytes_each: 4,
    steps: 1000,
    steps_each: 1,
};
/// The name or the path, and an error that quotes it.
const ADDRESS: Limits = Limits {
    held_bytes: 1024,
    held_bytes_each: 16,
    steps: 50,
    steps_each: 1,
};

/// Frames whose headers claim any length.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let lengths = prop_oneof![4 => 0_u32..200, 1 => 0_u32..1 << 22, 1 => any::<u32>()];
    let frame = (lengths, any::<u8>(), any::<u64>(), 0_usize..200);
    prop::collection::vec(frame, 0..20).prop_map(|frames| {
        let mut bytes = Vec::new();
        for (length, kind, request, body) in frames {
            bytes.extend(length.to_le_bytes());
            bytes.extend([kind, 0, 0, 0]);
            bytes.extend(request.to_le_bytes());
            bytes.resize(bytes.len() + body.min(length as usize), 7);
        }
        bytes
    })
}

/// The connection ends with the first error.
fn fill(inbox: &mut Inbox, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let space = inbox.space();
        let count = bytes.len().min(space.len());
        space[..count].copy_from_slice(&bytes[..count]);
        inbox.filled(count);
        bytes = &bytes[count..];
        while inbox.next_frame()?.is_some() {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn claims_of_frames_cost_nothing(stream in stream(), cuts in prop::collection::vec(1_usize..300, 1..8)) {
        INBOX.hold(stream.len(), || {
            let (mut inbox, mut rest) = (Inbox::new(), &stream[..]);
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at(rest.len().min(*cut));
                if now.is_empty() || fill(&mut inbox, now).is_err() {
                    break;
                }
                rest = later;
            }
        });
    }

    #[test]
    fn addresses_are_read_or_refused(text in "(unix:)?[@/]?.{0,80}|\\PC{0,60}") {
        ADDRESS.hold(text.len(), || drop(text.parse::<ServerAddress>()));
    }
}
