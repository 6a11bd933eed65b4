//! A peer that writes anything anywhere into the memory of its rings harms itself alone: the other end gets frames or
//! garbage, an error that says so, or nothing; never more than there is room for, and never a panic.

use junctura_model::Code;
use junctura_transport::ConnectionRings;
use junctura_transport::hostile::{HostileStep, RING_BYTES, run};
use proptest::prelude::*;

fn step() -> impl Strategy<Value = HostileStep> {
    let rubbish = (0..3 * RING_BYTES + 100, prop::collection::vec(any::<u8>(), 0..300));
    // Where the positions and flags of both rings lie.
    let words = prop::sample::select(vec![0_usize, 8, 16, 128, 136, 256, 264, 272, 384, 392]);
    let value = prop_oneof![0..20_000_u64, any::<u64>(), (0..3_u64).prop_map(|less| u64::MAX - less)];
    prop_oneof![
        rubbish.prop_map(|(at, bytes)| HostileStep::Scribble { at, bytes }),
        (words, value).prop_map(|(at, value)| HostileStep::Scribble {
            at,
            bytes: value.to_ne_bytes().to_vec()
        }),
        (0..6000_usize).prop_map(HostileStep::Say),
        Just(HostileStep::Hear),
        (0..6000_usize).prop_map(HostileStep::PeerSays),
        Just(HostileStep::PeerHears),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_broken_peer_harms_itself_alone(steps in prop::collection::vec(step(), 1..40)) {
        run(steps);
    }
}

#[test]
fn what_is_no_memory_of_rings_is_refused() {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    let parts = || ConnectionRings::create(RING_BYTES).unwrap().1;
    for wrong in [0, 4095, 5000, 2 * RING_BYTES, 1 << 21] {
        let error = ConnectionRings::join(wrong, parts()).unwrap_err();
        assert!(
            matches!(error.code(), Code::Protocol | Code::Corrupt),
            "{wrong}: {error}"
        );
    }
    // Of the right size, but the peer could make it smaller.
    let [_, server_bell, client_bell] = parts();
    let unsealed = memfd_create("unsealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&unsealed, (4096 + 2 * RING_BYTES) as u64).unwrap();
    let error = ConnectionRings::join(RING_BYTES, [unsealed, server_bell, client_bell]).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
}
