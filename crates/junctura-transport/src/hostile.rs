//! A peer that writes anything anywhere into the memory of its rings, for tests and fuzzing: the effect on the other end.

use junctura_model::{Code, Result};
use junctura_wire::Reply;
use junctura_wire::frame::BODY_BYTES_MAX;

use crate::{Carrier, ConnectionRings, Inbox, LocalCarrier, Outbox, ReceiveResult, UnixCarrier};

/// Bytes of the rings that are scribbled in.
pub const RING_BYTES: usize = 4096;

/// The next step.
#[derive(Clone, Debug)]
pub enum HostileStep {
    /// The broken peer writes into the memory; bytes outside of the memory are left out.
    Scribble {
        /// From this byte on.
        at: usize,
        /// The bytes to write.
        bytes: Vec<u8>,
    },
    /// The honest end sends a frame with a body of so many bytes.
    Say(usize),
    /// The honest end receives the available frames.
    Hear,
    /// The broken peer sends a frame, as far as it can.
    PeerSays(usize),
    /// The broken peer receives the available frames.
    PeerHears,
}

/// Takes the steps, until the honest end finds that the protocol is broken.
///
/// # Panics
/// When the honest end panics, fails in any other way than `Protocol`, or keeps more than it may.
pub fn run(steps: impl IntoIterator<Item = HostileStep>) {
    let (near, far) = UnixCarrier::pair().expect("a socket");
    let (server, parts) = ConnectionRings::create(RING_BYTES).expect("memory");
    let client = ConnectionRings::join(RING_BYTES, parts).expect("what was made just now");
    let scribbler = client.scribbler();
    let (mut honest, mut broken) = (HostileEnd::new(near, server), HostileEnd::new(far, client));
    for step in steps {
        let outcome = match step {
            HostileStep::Scribble { at, bytes } => {
                scribbler.scribble(at, &bytes);
                Ok(())
            }
            HostileStep::Say(bytes) => honest.say(bytes),
            HostileStep::Hear => honest.hear(),
            HostileStep::PeerSays(bytes) => {
                let _ = broken.say(bytes);
                Ok(())
            }
            HostileStep::PeerHears => {
                let _ = broken.hear();
                Ok(())
            }
        };
        assert!(
            honest.inbox.len() <= 2 * BODY_BYTES_MAX,
            "more is kept than a frame needs"
        );
        if let Err(error) = outcome {
            assert_eq!(error.code(), Code::Protocol, "{error}");
            return;
        }
    }
}

/// One end with its buffers.
struct HostileEnd {
    carrier: LocalCarrier,
    inbox: Inbox,
    outbox: Outbox,
}

impl HostileEnd {
    fn new(socket: UnixCarrier, rings: ConnectionRings) -> Self {
        let mut carrier = LocalCarrier::new(socket);
        carrier.switch(rings, 0);
        Self {
            carrier,
            inbox: Inbox::new(),
            outbox: Outbox::new(),
        }
    }

    fn say(&mut self, bytes: usize) -> Result<()> {
        let text = "x".repeat(bytes);
        self.outbox.push(|out| Reply::Stats(&text).encode(1, out))?;
        self.carrier.send(&mut self.outbox).map(|_| ())
    }

    fn hear(&mut self) -> Result<()> {
        // A peer that keeps changing its words could give something each time; the end need not be reached.
        for _ in 0..16 {
            let received = self.carrier.receive(&mut self.inbox)?;
            while self.inbox.next_frame()?.is_some() {}
            if received == ReceiveResult::Nothing {
                break;
            }
        }
        let _ = self.carrier.incoming().may_sleep();
        Ok(())
    }
}
