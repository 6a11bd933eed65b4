//! The ends of a link without their threads, for tests: each does what it can without blocking, when the test steps it.
//!
//! So a test decides what happens before what, and nothing depends on the clock: no lease ends, since it is long. Everything
//! else is what the threads of a gate and of a client do.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Error, Result};
use junctura_transport::{LocalCarrier, UnixCarrier};

use crate::relay::channel::LinkSide;
use crate::relay::{RelayEnd, RoundResult, StreamRelay};
use crate::stream::LinkStream;
use crate::streams::stream_worker::StreamWorker;
use crate::streams::{SideStreams, StreamsGuard};
use crate::{ClientTls, ServerTls};

const LEASE: Duration = Duration::from_hours(24);

/// One end of a link.
pub struct SteppedEnd {
    /// `None`: it is over here.
    relay: Option<StreamRelay>,
    phase: LinkPhase,
    /// The carriers of the streams beyond the first, as long as they run.
    porters: Vec<StreamWorker>,
}

enum LinkPhase {
    Relays,
    /// Everything was sent; the other end's data until its close is discarded, too.
    Lingers,
    /// The other end's last frames are passed on.
    SaysLastWords,
}

/// The result of a link.
#[derive(Debug)]
pub enum LinkOutcome {
    /// This side has closed, and everything that it sent was passed on.
    Here,
    /// The other end has closed.
    There,
    /// It broke.
    Broken(Error),
}

/// Runs a round, and where it moved nothing another one, as after waking up.
fn take_turn(relay: &mut StreamRelay) -> Result<RoundResult> {
    match relay.round()? {
        RoundResult::Still => {
            relay.look()?;
            relay.round()
        }
        round => Ok(round),
    }
}

impl SteppedEnd {
    /// The client's end: `local` leads to the client, `wire` to the gate.
    ///
    /// # Errors
    /// `Io` when the socket cannot be used.
    pub fn client(local: UnixCarrier, wire: UnixStream, tls: Option<&ClientTls>) -> Result<Self> {
        let tls = tls.map(|tls| tls.connection("127.0.0.1")).transpose()?;
        Ok(Self::new(LinkSide::Client, local, LinkStream::within(wire, tls)?, 0))
    }

    /// Makes the gate's end: `local` leads to the server. The client keeps at most `mirror_bytes` of unheld payloads.
    ///
    /// # Errors
    /// `Io` when the socket cannot be used.
    pub fn gate(local: UnixCarrier, wire: UnixStream, tls: Option<&ServerTls>, mirror_bytes: u64) -> Result<Self> {
        let tls = tls.map(ServerTls::connection).transpose()?;
        Ok(Self::new(
            LinkSide::Server,
            local,
            LinkStream::within(wire, tls)?,
            mirror_bytes,
        ))
    }

    fn new(side: LinkSide, local: UnixCarrier, stream: LinkStream, mirror_bytes: u64) -> Self {
        let relay = StreamRelay::new(side, LocalCarrier::new(local), stream, LEASE, mirror_bytes);
        Self {
            relay: Some(relay),
            phase: LinkPhase::Relays,
            porters: Vec::new(),
        }
    }

    /// The client's end has these streams, too; each leads to the one of the gate's end in the same place. Both have parts of so many
    /// bytes.
    ///
    /// # Errors
    /// `Io` when a socket cannot be used.
    pub fn with_client_sides(self, wires: Vec<UnixStream>, part_bytes: u32, tls: Option<&ClientTls>) -> Result<Self> {
        let streams = wires.into_iter().map(|wire| {
            let tls = tls.map(|tls| tls.connection("127.0.0.1")).transpose()?;
            LinkStream::within(wire, tls)
        });
        self.with_sides(streams.collect::<Result<_>>()?, part_bytes)
    }

    /// As [`Self::with_client_sides`], for the gate's end.
    ///
    /// # Errors
    /// `Io` when a socket cannot be used.
    pub fn with_gate_sides(self, wires: Vec<UnixStream>, part_bytes: u32, tls: Option<&ServerTls>) -> Result<Self> {
        let streams = wires.into_iter().map(|wire| {
            let tls = tls.map(ServerTls::connection).transpose()?;
            LinkStream::within(wire, tls)
        });
        self.with_sides(streams.collect::<Result<_>>()?, part_bytes)
    }

    fn with_sides(mut self, streams: Vec<LinkStream>, part_bytes: u32) -> Result<Self> {
        let lead = StreamsGuard(SideStreams::with_parts(part_bytes)?);
        for (number, stream) in (1..).zip(streams) {
            self.porters
                .push(StreamWorker::new(Arc::clone(&lead.0), number, stream, LEASE)?);
        }
        self.relay = self.relay.map(|relay| relay.with_sides(lead));
        Ok(self)
    }

    /// Does what can be done at once. Whether anything moved; and when the link ends here, how.
    pub fn step(&mut self) -> (bool, Option<LinkOutcome>) {
        let (has_moved, outcome) = self.step_relay();
        let mut have_carried = false;
        self.porters.retain_mut(|porter| {
            let moved = porter.step();
            have_carried |= moved.unwrap_or(true);
            moved.is_some()
        });
        (has_moved || have_carried, outcome)
    }

    fn step_relay(&mut self) -> (bool, Option<LinkOutcome>) {
        let Some(relay) = &mut self.relay else {
            return (false, None);
        };
        let stays = match self.phase {
            LinkPhase::Relays => match take_turn(relay) {
                Ok(RoundResult::Moved) => return (true, None),
                Ok(RoundResult::Still) => return (false, None),
                Ok(RoundResult::Over(ended)) => return self.conclude(Ok(ended)),
                Err(error) => return self.conclude(Err(error)),
            },
            LinkPhase::Lingers => relay.lingers(),
            LinkPhase::SaysLastWords => relay.says_last_words(),
        };
        if !stays {
            self.relay = None;
        }
        (!stays, None)
    }

    /// Whether the link is over here, and nothing more arrives.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.relay.is_none() && self.porters.is_empty()
    }

    fn conclude(&mut self, ended: Result<RelayEnd>) -> (bool, Option<LinkOutcome>) {
        if let Some(relay) = &mut self.relay {
            relay.conclude(&ended);
        }
        let outcome;
        (self.phase, outcome) = match ended {
            Ok(RelayEnd::Here) => (LinkPhase::Lingers, LinkOutcome::Here),
            Ok(RelayEnd::There) => (LinkPhase::SaysLastWords, LinkOutcome::There),
            Err(error) => (LinkPhase::SaysLastWords, LinkOutcome::Broken(error)),
        };
        (true, Some(outcome))
    }
}
