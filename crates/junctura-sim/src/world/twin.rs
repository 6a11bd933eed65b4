//! A second core, which gets the same inputs as the first and must give the same orders.
//!
//! Several servers can keep one pool only if a core depends on nothing but its inputs: not on the order of a hash table,
//! not on addresses. So each event of a run is given to two cores. [`Tape`] has the orders of the first, byte for byte and
//! in order; [`Twin`] compares the orders of the second with it.
//!
//! An effect's *return value* is an input of a core, too: whether there was memory for a segment, and how much a client has
//! yet to read. The second core gets the answers that the first one got. [`Core::look_ahead`] and [`Core::idle`] are inputs
//! as well: they change no answer but `stat` and refusals at a limit, since the state prepared for a request weighs on its
//! client.

use std::cell::RefCell;
use std::collections::VecDeque;

use junctura_model::{Code, Error, Result};
use junctura_pool::core::Core;
use junctura_pool::{BrokenRequirement, Effects, PoolConfig, SpillFrom, SpillJob};
use junctura_wire::Reply;
use junctura_wire::fixed::SegmentHead;
use junctura_wire::{Request, frame::WireFrame};

use crate::clients::replies::Said;
use crate::world::Checked;

/// An input of a core.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    /// A message of a client.
    Message(u32, &'a WireFrame<'a>),
    /// A client's connection has ended.
    Left(u32),
    /// Time has passed.
    Tick,
    /// The file tier has done a job, and this is the checksum; `None`: it has failed to.
    Spilled(u32, Option<u32>),
}

impl Input<'_> {
    /// Gives it to a core.
    pub(crate) fn tell(self, core: &mut Core, now: u64, effects: &mut impl Effects) {
        match self {
            Self::Message(client, frame) => match Request::decode(frame) {
                Ok(request) => {
                    while !core.look_ahead(client, &request) {}
                    core.request(now, client, frame.request, &request, effects);
                }
                Err(error) => core.garbage(now, client, frame.request, &error, effects),
            },
            Self::Left(client) => core.leave(now, client, "lost", effects),
            Self::Tick => core.tick(now, effects),
            Self::Spilled(job, checksum) => {
                let outcome = checksum.ok_or_else(|| Error::new(Code::Io, "disk", "it is full"));
                core.spilled(now, job, outcome, effects);
            }
        }
    }
}

/// One call of an effect, with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Reply {
        client: u32,
        request: u64,
        bytes: Bytes,
    },
    Segment {
        client: u32,
        request: u64,
        head: SegmentHead,
    },
    BacklogBytes(u32),
    CreateSegment {
        segment: u32,
        bytes: u64,
    },
    DropSegment(u32),
    Spill {
        job: u32,
        /// Segment and offset; `None`: the bytes are part of the order.
        from: Option<(u32, u64)>,
        length: u64,
        at: u64,
    },
    Unspill {
        at: u64,
        length: u64,
    },
    Broken(String),
    LeftForStore(u64),
    Disconnect(u32, Error),
}

/// A reply as it is sent.
#[derive(PartialEq, Eq)]
pub(crate) struct Bytes(Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match Said::decode(&self.0) {
            Ok((_, said)) => write!(f, "{said:?} ({} bytes)", self.0.len()),
            Err(_) => write!(f, "{:?}", self.0),
        }
    }
}

impl Order {
    pub(crate) fn reply(client: u32, request: u64, bytes: &[u8]) -> Self {
        let bytes = Bytes(bytes.to_vec());
        Self::Reply { client, request, bytes }
    }

    pub(crate) fn spill(job: &SpillJob<'_>) -> Self {
        let from = match job.from {
            SpillFrom::Segment { segment, offset } => Some((segment, offset)),
            SpillFrom::Bytes(_) => None,
        };
        Self::Spill {
            job: job.job,
            from,
            length: job.length,
            at: job.at,
        }
    }
}

/// Bytes that are shown on both sides of a difference.
const SHOWN_BYTES: usize = 24;

impl Order {
    /// Where two replies differ.
    fn first_difference(&self, other: &Self) -> Option<String> {
        let (Self::Reply { bytes: Bytes(one), .. }, Self::Reply { bytes: Bytes(two), .. }) = (self, other) else {
            return None;
        };
        let at = one.iter().zip(two).take_while(|(one, two)| one == two).count();
        let shown = |bytes: &[u8]| {
            let around = at.saturating_sub(SHOWN_BYTES)..bytes.len().min(at + SHOWN_BYTES);
            String::from_utf8_lossy(&bytes[around]).into_owned()
        };
        Some(format!(": at byte {at}, {:?} and {:?}", shown(one), shown(two)))
    }
}

/// The orders of one core in one event, and the return value of each order (0: nothing, or no error).
#[derive(Default)]
pub(crate) struct Tape(RefCell<VecDeque<(Order, usize)>>);

impl Tape {
    pub(crate) fn note(&self, order: Order) {
        self.note_answer(order, 0);
    }

    pub(crate) fn note_answer(&self, order: Order, answer: usize) {
        self.0.borrow_mut().push_back((order, answer));
    }

    pub(crate) fn clear(&mut self) {
        self.0.get_mut().clear();
    }
}

/// See the module's page.
pub(crate) struct Twin(Core);

impl Twin {
    /// # Errors
    /// What the pool has against its configuration.
    pub(crate) fn new(config: PoolConfig) -> Result<Self> {
        Core::new(config).map(Self)
    }

    /// A client connects.
    ///
    /// # Errors
    /// The second core gives them another number than the first.
    pub(crate) fn join(&mut self, first: u32) -> Checked {
        match self.0.join() {
            Ok(second) if second == first => Ok(()),
            other => Err(format!("client {first} is {other:?} to the second core")),
        }
    }

    /// Nothing is to be done right now.
    pub(crate) fn idle(&mut self) {
        self.0.idle();
    }

    /// Prepares a request by one step.
    ///
    /// # Errors
    /// One core is ready for it, and the other is not.
    pub(crate) fn look_ahead(&mut self, client: u32, request: &Request<'_>, is_ready: bool) -> Checked {
        if self.0.look_ahead(client, request) == is_ready {
            Ok(())
        } else {
            let first = if is_ready { "first" } else { "second" };
            Err(format!(
                "only the {first} core is ready for {request:?} of client {client}"
            ))
        }
    }

    /// Gives the second core the input of the first, whose orders are on the tape.
    ///
    /// # Errors
    /// It orders something else, or wants to be called at another time.
    pub(crate) fn follow(&mut self, input: Input<'_>, now: u64, tape: &Tape, first: &Core) -> Checked {
        let mut comparison = Comparison {
            tape,
            difference: RefCell::new(None),
        };
        input.tell(&mut self.0, now, &mut comparison);
        if let Some(difference) = comparison.difference.into_inner() {
            return Err(difference);
        }
        if let Some((order, _)) = tape.0.borrow_mut().pop_front() {
            return Err(format!("the second core does not order {order:?}"));
        }
        let (first, second) = (first.deadline(), self.0.deadline());
        if first != second {
            return Err(format!(
                "the first core wants to be called at {first:?}, the second at {second:?}"
            ));
        }
        Ok(())
    }
}

/// The effects of the second core: compared, not carried out.
struct Comparison<'a> {
    tape: &'a Tape,
    /// The first one.
    difference: RefCell<Option<String>>,
}

impl Comparison<'_> {
    /// Returns what the order returned to the first core.
    fn compare(&self, second: &Order) -> usize {
        match self.tape.0.borrow_mut().pop_front() {
            Some((first, answer)) if first == *second => answer,
            first => {
                let first = first.map(|(order, _)| order);
                let place = first.as_ref().and_then(|first| first.first_difference(second));
                let place = place.unwrap_or_default();
                let difference = || format!("the first core orders {first:?}, the second {second:?}{place}");
                self.difference.borrow_mut().get_or_insert_with(difference);
                0
            }
        }
    }
}

impl Effects for Comparison<'_> {
    fn reply(&mut self, client: u32, request: u64, reply: &Reply<'_>) {
        let mut bytes = Vec::new();
        reply.encode(request, &mut bytes);
        let bytes = Bytes(bytes);
        self.compare(&Order::Reply { client, request, bytes });
    }

    fn reply_segment(&mut self, client: u32, request: u64, head: SegmentHead) {
        self.compare(&Order::Segment { client, request, head });
    }

    fn backlog_bytes(&self, client: u32) -> usize {
        self.compare(&Order::BacklogBytes(client))
    }

    fn create_segment(&mut self, segment: u32, bytes: u64) -> Result<()> {
        match self.compare(&Order::CreateSegment { segment, bytes }) {
            0 => Ok(()),
            _ => Err(no_descriptors()),
        }
    }

    fn spill(&mut self, job: SpillJob<'_>) {
        self.compare(&Order::spill(&job));
    }

    fn unspill(&mut self, at: u64, length: u64) {
        self.compare(&Order::Unspill { at, length });
    }

    fn drop_segment(&mut self, segment: u32) {
        self.compare(&Order::DropSegment(segment));
    }

    fn broken(&mut self, requirement: BrokenRequirement<'_>, text: &str) {
        self.compare(&Order::Broken(format!("{requirement:?}: {text}")));
    }

    fn left_for_store(&mut self, sequence: u64) {
        self.compare(&Order::LeftForStore(sequence));
    }

    fn disconnect(&mut self, client: u32, why: &Error) {
        self.compare(&Order::Disconnect(client, why.clone()));
    }
}

/// The error of a segment that cannot be made.
pub(crate) fn no_descriptors() -> Error {
    Error::new(Code::Io, "segment", "no descriptors left")
}
