//! The network path of a client on another machine: the real ends of a link, and between them a network that the run
//! controls.
//!
//! ```text
//!   near ──► End of the client ──► wire ··(bytes, in pieces, later, or cut off)··► wire ──► End of the gate ──► far
//! ```
//! The ends are those of `junctura_link`, moved step by step: their records, their accounts of the mirror, their segments.
//! Only the network is simulated: it carries as many bytes at a time as the run decides, and ends at any byte. A link may
//! have several streams, each with a wire of its own; their parts are small, so that the small payloads here are sent in
//! parts.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use junctura_link::stepped::SteppedEnd;
use junctura_model::{Error, Result};
use junctura_transport::{Carrier, Inbox, LocalCarrier, Outbox, ReceiveResult, UnixCarrier};
use junctura_wire::frame::HEADER_BYTES;

use crate::run::rng::Rng;

/// The possible actions on a link besides its wires.
const MOVES: usize = 4;
/// Bytes of the parts of payloads, where a link has several streams.
const PART_BYTES: u32 = 7;

/// A connection within one machine, and its buffers.
struct Local {
    carrier: LocalCarrier,
    inbox: Inbox,
    outbox: Outbox,
}

/// The path of one stream.
struct Wire {
    /// The connections to the client's end, and to the gate's.
    ends: [Option<UnixStream>; 2],
    /// Up, and down.
    ways: [Way; 2],
    is_cut: bool,
}

/// One direction of a wire.
#[derive(Default)]
struct Way {
    bytes: VecDeque<u8>,
    /// Nothing more is received.
    has_ended: bool,
    /// The other end has seen the end.
    is_told: bool,
}

/// The next message that one side receives.
pub enum Heard {
    /// A frame, whole, and its descriptor.
    Frame(Vec<u8>, Option<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The connection is over.
    End,
}

/// See the module's page.
pub struct Road {
    near: Option<Local>,
    far: Option<Local>,
    /// The client's, and the gate's.
    ends: [Option<SteppedEnd>; 2],
    /// The first stream's, and those of the others.
    wires: Vec<Wire>,
    /// One was cut: it may end at any moment, for both.
    pub is_cut: bool,
    /// The server sends nothing any more.
    is_closing: bool,
    /// Memory that the client writes, or reads.
    leased: BTreeMap<u32, File>,
    read: BTreeMap<u32, File>,
}

impl Local {
    fn over(carrier: UnixCarrier) -> Self {
        Self {
            carrier: LocalCarrier::new(carrier),
            inbox: Inbox::new(),
            outbox: Outbox::new(),
        }
    }

    /// Sends as much as possible. Returns whether anything was sent.
    fn send(&mut self) -> bool {
        let before = self.outbox.len();
        if self.carrier.send(&mut self.outbox).is_err() {
            self.outbox.clear();
        }
        self.outbox.len() < before
    }

    fn hear(&mut self) -> Result<Heard> {
        loop {
            if let Some((frame, descriptor)) = self.inbox.next_frame()? {
                let mut bytes = Vec::with_capacity(HEADER_BYTES + frame.body.len());
                bytes.extend_from_slice(&(frame.body.len() as u32).to_le_bytes());
                bytes.extend_from_slice(&[frame.kind, frame.descriptors, 0, 0]);
                bytes.extend_from_slice(&frame.request.to_le_bytes());
                bytes.extend_from_slice(frame.body);
                return Ok(Heard::Frame(bytes, descriptor));
            }
            match self.carrier.receive(&mut self.inbox)? {
                ReceiveResult::Bytes(_) | ReceiveResult::Full => {}
                ReceiveResult::Nothing => return Ok(Heard::Nothing),
                ReceiveResult::End => return Ok(Heard::End),
            }
        }
    }
}

impl Wire {
    /// Makes a wire, and the client's and the gate's end.
    fn new() -> Result<(Self, UnixStream, UnixStream)> {
        let io = |error: std::io::Error| Error::new(junctura_model::Code::Io, "road", error.to_string());
        let (to_client, of_client) = UnixStream::pair().map_err(io)?;
        let (to_gate, of_gate) = UnixStream::pair().map_err(io)?;
        for end in [&to_client, &to_gate] {
            end.set_nonblocking(true).map_err(io)?;
        }
        let wire = Self {
            ends: [Some(to_client), Some(to_gate)],
            ways: [Way::default(), Way::default()],
            is_cut: false,
        };
        Ok((wire, of_client, of_gate))
    }

    fn cut(&mut self, rng: &mut Rng) {
        self.is_cut = true;
        for way in &mut self.ways {
            way.bytes.truncate(rng.below(way.bytes.len() + 1));
            way.has_ended = true;
        }
        // One end may see it at once.
        if let Some(first) = rng.percent(50).then(|| rng.below(2)) {
            self.ends[first] = None;
        }
    }

    /// Takes what an end has passed to the network.
    fn carry_in(&mut self, way: usize) -> bool {
        if self.is_cut || self.ways[way].has_ended {
            return false;
        }
        let Some(wire) = &mut self.ends[way] else { return false };
        let mut piece = [0; 16 << 10];
        let mut moved = false;
        loop {
            match wire.read(&mut piece) {
                Ok(0) => self.ways[way].has_ended = true,
                Ok(bytes) => {
                    self.ways[way].bytes.extend(&piece[..bytes]);
                    moved = true;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return moved,
                Err(_) => self.ways[way].has_ended = true,
            }
            return true;
        }
    }

    /// So many bytes arrive.
    fn carry_out(&mut self, way: usize, bytes: usize) -> bool {
        let one = &mut self.ways[way];
        let Some(wire) = &mut self.ends[1 - way] else {
            return !std::mem::take(&mut one.bytes).is_empty();
        };
        let mut moved = false;
        let mut left = bytes.min(one.bytes.len());
        while left > 0 {
            let (front, _) = one.bytes.as_slices();
            match wire.write(&front[..left.min(front.len())]) {
                Ok(bytes) => {
                    one.bytes.drain(..bytes);
                    left -= bytes;
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return moved,
                Err(_) => {
                    one.bytes.clear();
                    return true;
                }
            }
        }
        if one.bytes.is_empty() && one.has_ended && !one.is_told {
            one.is_told = true;
            if self.is_cut {
                self.ends[1 - way] = None;
            } else {
                let _ = wire.shutdown(Shutdown::Write);
            }
            return true;
        }
        moved
    }
}

impl Road {
    /// Makes an unused path, of so many streams; the client keeps `mirror_bytes` of unheld payloads at most.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn open(mirror_bytes: u64, streams: usize) -> Result<Self> {
        let (near, client) = UnixCarrier::pair()?;
        let (gate, far) = UnixCarrier::pair()?;
        let (mut wires, mut of_client, mut of_gate) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..streams.max(1) {
            let (wire, one, other) = Wire::new()?;
            wires.push(wire);
            of_client.push(one);
            of_gate.push(other);
        }
        let mut client = SteppedEnd::client(client, of_client.remove(0), None)?;
        let mut gate = SteppedEnd::gate(gate, of_gate.remove(0), None, mirror_bytes)?;
        if streams > 1 {
            client = client.with_client_sides(of_client, PART_BYTES, None)?;
            gate = gate.with_gate_sides(of_gate, PART_BYTES, None)?;
        }
        Ok(Self {
            near: Some(Local::over(near)),
            far: Some(Local::over(far)),
            ends: [Some(client), Some(gate)],
            wires,
            is_cut: false,
            is_closing: false,
            leased: BTreeMap::new(),
            read: BTreeMap::new(),
        })
    }

    /// The client sends a frame.
    pub fn say_up(&mut self, frame: &[u8]) {
        if let Some(near) = &mut self.near {
            // Also what no library would send: then the link ends.
            near.outbox.push_unchecked(frame, None);
        }
    }

    /// The server sends a frame.
    ///
    /// # Errors
    /// It is no frame.
    pub fn say_down(&mut self, frame: &[u8], descriptor: Option<OwnedFd>) -> Result<()> {
        let Some(far) = &mut self.far else { return Ok(()) };
        match descriptor {
            None => far.outbox.push(|out| out.extend_from_slice(frame)),
            Some(descriptor) => far
                .outbox
                .push_with_descriptor(descriptor, |out| out.extend_from_slice(frame)),
        }
    }

    /// The server continues through rings, as a client that connects through a gate requests.
    ///
    /// # Errors
    /// The system has no more memory or descriptors.
    pub fn offer_rings(&mut self, ring_bytes: u32) -> Result<()> {
        match &mut self.far {
            Some(far) => far.carrier.offer_rings(&mut far.outbox, ring_bytes as usize),
            None => Ok(()),
        }
    }

    /// The server ends the connection after its sent data.
    pub fn close(&mut self) {
        self.is_closing = true;
    }

    /// The client's process crashes, and its end of the link with it. Data that it had passed to the network may arrive, up
    /// to any byte.
    pub fn die(&mut self, rng: &mut Rng) {
        self.near = None;
        self.ends[0] = None;
        for wire in &mut self.wires {
            wire.carry_in(0);
            let up = &mut wire.ways[0];
            up.has_ended = true;
            if rng.percent(50) {
                up.bytes.truncate(rng.below(up.bytes.len() + 1));
            }
        }
    }

    /// The network is cut, or one of several streams: data in flight is lost from any byte on, and the two sides see the
    /// end, sooner or later.
    pub fn cut(&mut self, rng: &mut Rng) {
        self.is_cut = true;
        let only = (self.wires.len() > 1 && rng.percent(50)).then(|| rng.below(self.wires.len()));
        for (number, wire) in self.wires.iter_mut().enumerate() {
            if only.is_none_or(|only| only == number) {
                wire.cut(rng);
            }
        }
    }

    /// Some of what can happen happens.
    pub fn stir(&mut self, rng: &mut Rng) {
        for _ in 0..rng.between(1, 12) {
            let bytes = match rng.below(4) {
                0 => 1,
                1 => rng.between(1, 64) as usize,
                2 => rng.between(1, 5000) as usize,
                _ => usize::MAX,
            };
            self.make(rng.below(MOVES + 2 * self.wires.len()), bytes);
        }
    }

    /// Everything that can happen happens.
    pub fn settle(&mut self) {
        let moves = MOVES + 2 * self.wires.len();
        while (0..moves).any(|one| self.make(one, usize::MAX)) {}
    }

    fn make(&mut self, one: usize, bytes: usize) -> bool {
        match one {
            0 => self.near.as_mut().is_some_and(Local::send),
            1 | 2 => {
                let end = &mut self.ends[one - 1];
                let moved = end.as_mut().is_some_and(|end| end.step().0);
                if end.as_ref().is_some_and(SteppedEnd::is_over) {
                    *end = None;
                }
                moved
            }
            3 => {
                let moved = self.far.as_mut().is_some_and(Local::send);
                if self.is_closing && self.far.as_ref().is_some_and(|far| far.outbox.is_empty()) {
                    self.far = None;
                    return true;
                }
                moved
            }
            _ => {
                let (wire, way) = (&mut self.wires[(one - MOVES) / 2], (one - MOVES) % 2);
                let came = wire.carry_in(way);
                wire.carry_out(way, bytes) || came
            }
        }
    }

    /// Returns the next message for the server.
    ///
    /// # Errors
    /// The received data is no frame.
    pub fn hear_up(&mut self) -> Result<Heard> {
        match &mut self.far {
            Some(far) => far.hear(),
            None => Ok(Heard::End),
        }
    }

    /// Returns the next message for the client.
    ///
    /// # Errors
    /// The received data is no frame.
    pub fn hear_down(&mut self) -> Result<Heard> {
        match &mut self.near {
            Some(near) => near.hear(),
            None => Ok(Heard::End),
        }
    }

    /// The client has a segment from now on.
    pub fn map(&mut self, segment: u32, is_writable: bool, descriptor: OwnedFd) {
        let maps = if is_writable { &mut self.leased } else { &mut self.read };
        maps.insert(segment, File::from(descriptor));
    }

    /// The client has it no more.
    pub fn unmap(&mut self, segment: u32, is_writable: bool) {
        let maps = if is_writable { &mut self.leased } else { &mut self.read };
        maps.remove(&segment);
    }

    /// The client writes a payload.
    ///
    /// # Errors
    /// It does not have the segment.
    pub fn write(&self, segment: u32, at: u64, payload: u64, length: u64) -> std::result::Result<(), String> {
        let file = self.leased.get(&segment).ok_or("it leases no such segment")?;
        write(file, at, payload, length)
    }

    /// Whether a payload is in the place that the client reads.
    #[must_use]
    pub fn has(&self, segment: u32, at: u64, payload: u64, length: u64) -> bool {
        self.read
            .get(&segment)
            .is_some_and(|file| has(file, at, payload, length))
    }
}

/// The bytes of a payload: its number, again and again.
fn bytes_of(payload: u64, length: u64) -> Vec<u8> {
    let number = payload.to_le_bytes();
    number.iter().copied().cycle().take(length as usize).collect()
}

/// Writes a payload into memory that others see.
///
/// # Errors
/// The system refuses.
pub fn write(file: &File, at: u64, payload: u64, length: u64) -> std::result::Result<(), String> {
    file.write_all_at(&bytes_of(payload, length), at)
        .map_err(|error| error.to_string())
}

/// Whether a payload is there.
#[must_use]
pub fn has(file: &File, at: u64, payload: u64, length: u64) -> bool {
    let mut there = vec![0; length as usize];
    file.read_exact_at(&mut there, at).is_ok() && there == bytes_of(payload, length)
}
