//! A peer that writes anything anywhere into the memory of its rings harms itself alone: the other end gets frames or
//! garbage, an error that says so, or nothing; never more than there is room for, and never a panic.

#![allow(clippy::unwrap_used, reason = "so a test fails")]

use junctura_model::Code;
use junctura_transport::{Carrier, Inbox, LocalCarrier, Outbox, Received, Rings, UnixCarrier};
use junctura_wire::Reply;
use proptest::prelude::*;

const RING_BYTES: usize = 4096;

#[derive(Clone, Debug)]
enum Step {
    Scribble {
        at: usize,
        bytes: Vec<u8>,
    },
    /// A whole word, where the positions and flags lie.
    SetWord {
        at: usize,
        value: u64,
    },
    Say(usize),
    Hear,
    PeerSays(usize),
    PeerHears,
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![0..20_000_u64, any::<u64>(), (0..3_u64).prop_map(|less| u64::MAX - less)];
    let words = prop::sample::select(vec![0_usize, 8, 128, 136, 256, 264, 384, 392]);
    prop_oneof![
        (0..3 * RING_BYTES + 100, prop::collection::vec(any::<u8>(), 0..300))
            .prop_map(|(at, bytes)| Step::Scribble { at, bytes }),
        (words, value).prop_map(|(at, value)| Step::SetWord { at, value }),
        (0..6000_usize).prop_map(Step::Say),
        Just(Step::Hear),
        (0..6000_usize).prop_map(Step::PeerSays),
        Just(Step::PeerHears),
    ]
}

/// One end with its buffers.
struct End {
    carrier: LocalCarrier,
    inbox: Inbox,
    outbox: Outbox,
}

impl End {
    fn new(socket: UnixCarrier, rings: Rings) -> Self {
        let mut carrier = LocalCarrier::new(socket);
        carrier.switch(rings, 0);
        Self {
            carrier,
            inbox: Inbox::new(),
            outbox: Outbox::new(),
        }
    }

    fn say(&mut self, bytes: usize) -> junctura_model::Result<()> {
        let text = "x".repeat(bytes);
        self.outbox.push(|out| Reply::Stats(&text).encode(1, out))?;
        self.carrier.send(&mut self.outbox).map(|_| ())
    }

    fn hear(&mut self) -> junctura_model::Result<()> {
        // A peer that keeps changing its words could give something each time; nobody has to listen to the end.
        for _ in 0..16 {
            let received = self.carrier.receive(&mut self.inbox)?;
            while self.inbox.next_frame()?.is_some() {}
            if received == Received::Nothing {
                break;
            }
        }
        let _ = self.carrier.incoming().may_sleep();
        Ok(())
    }
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (near, far) = UnixCarrier::pair().unwrap();
    let (server, parts) = Rings::create(RING_BYTES).unwrap();
    let client = Rings::join(RING_BYTES, parts).unwrap();
    let scribble = client.scribbler();
    let (mut honest, mut broken) = (End::new(near, server), End::new(far, client));
    for step in steps {
        let outcome = match step {
            Step::Scribble { at, bytes } => {
                scribble(at, &bytes);
                Ok(())
            }
            Step::SetWord { at, value } => {
                scribble(at, &value.to_ne_bytes());
                Ok(())
            }
            Step::Say(bytes) => honest.say(bytes),
            Step::Hear => honest.hear(),
            Step::PeerSays(bytes) => {
                let _ = broken.say(bytes);
                Ok(())
            }
            Step::PeerHears => {
                let _ = broken.hear();
                Ok(())
            }
        };
        prop_assert!(honest.inbox.len() <= 2 << 20);
        if let Err(error) = outcome {
            prop_assert_eq!(error.code(), Code::Protocol, "{}", error);
            return Ok(());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn a_broken_peer_harms_itself_alone(steps in prop::collection::vec(step(), 1..40)) {
        run(steps)?;
    }
}

#[test]
fn what_is_no_memory_of_rings_is_refused() {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    let parts = || Rings::create(RING_BYTES).unwrap().1;
    for wrong in [0, 4095, 5000, 2 * RING_BYTES, 1 << 21] {
        let error = Rings::join(wrong, parts()).unwrap_err();
        assert!(
            matches!(error.code(), Code::Protocol | Code::Corrupt),
            "{wrong}: {error}"
        );
    }
    // Of the right size, but the peer could make it smaller.
    let [_, server_bell, client_bell] = parts();
    let unsealed = memfd_create("unsealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&unsealed, (4096 + 2 * RING_BYTES) as u64).unwrap();
    let error = Rings::join(RING_BYTES, [unsealed, server_bell, client_bell]).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt);
}
