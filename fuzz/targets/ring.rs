//! A peer that writes anything anywhere into the memory of its rings, between what both ends say and hear: reading never
//! panics, never gives more than there is room for, and fails only as a broken protocol.

#![no_main]

use junctura_model::{Code, Result};
use junctura_transport::{Carrier, Inbox, LocalCarrier, Outbox, Received, Rings, UnixCarrier};
use junctura_wire::Reply;
use libfuzzer_sys::fuzz_target;

const RING_BYTES: usize = 4096;

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

    fn say(&mut self, bytes: usize) -> Result<()> {
        let text = "x".repeat(bytes);
        self.outbox.push(|out| Reply::Stats(&text).encode(1, out))?;
        self.carrier.send(&mut self.outbox).map(drop)
    }

    fn hear(&mut self) -> Result<()> {
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

/// Four bytes a step: what, where (2), how much; what is scribbled follows.
fuzz_target!(|bytes: &[u8]| {
    let (near, far) = UnixCarrier::pair().expect("a socket");
    let (server, parts) = Rings::create(RING_BYTES).expect("memory");
    let client = Rings::join(RING_BYTES, parts).expect("what was made just now");
    let scribble = client.scribbler();
    let (mut honest, mut broken) = (End::new(near, server), End::new(far, client));
    let mut rest = bytes;
    while let [what, low, high, much, tail @ ..] = rest {
        let (at, much) = (usize::from(u16::from_le_bytes([*low, *high])), usize::from(*much));
        rest = tail;
        let outcome = match what % 5 {
            0 => {
                let count = much.min(tail.len());
                scribble(at, &tail[..count]);
                rest = &tail[count..];
                Ok(())
            }
            1 => honest.say(at % 6000),
            2 => honest.hear(),
            3 => {
                let _ = broken.say(at % 6000);
                Ok(())
            }
            _ => {
                let _ = broken.hear();
                Ok(())
            }
        };
        match outcome {
            Ok(()) => assert!(honest.inbox.len() <= 2 << 20, "no more than the largest frame"),
            Err(error) => {
                assert_eq!(error.code(), Code::Protocol, "{error}");
                return;
            }
        }
    }
});
