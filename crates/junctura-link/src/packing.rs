//! The gate's end gathers what a client wants of the pieces of an array, so that nothing else of them travels.
//!
//! ```text
//!  client -- Pack: layouts, pieces --> gate -- Demand --> server
//!         <-- Packed … Packed (LAST) --     <-- Delivered --
//!                                           -- Release -->       and the next piece
//! ```
//! It is to the server what the client would be: it demands one piece after the other on the channel's own connection, under the number of what
//! was asked, reads it where it lies, and gives it back when the last part of it is in the queue. No part is made before there is room for it, so
//! what is asked takes no memory but one part's, however large it is. What is wrong with what is asked is told to who asked it.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;

use junctura_copy::{Fingerprint, Kept, Pack};
use junctura_layout::{Element, Layout, Plan, Side};
use junctura_memory::{FileMap, Mapping};
use junctura_model::{Code, Error, Result};
use junctura_wire::Request;
use junctura_wire::body::{self, Demand};
use junctura_wire::fixed::{CHECKSUM, DeliveredHead, Holding, INLINE, LAST, PackedHead, SUMMED};

use crate::mirror::{Memory, Source};
use crate::shadow;

/// What one client may have asked for at a time.
const ASKS_MAX: usize = 64;
/// Bytes of what is told of pieces that are still to come, for one client.
const ASKED_BYTES_MAX: usize = 8 << 20;
/// Bytes of a part: much more than what is said of it, and little enough to stay in a cache.
const PART_BYTES: usize = 256 << 10;
/// Runs that a plan may list.
const LISTED_MAX: usize = 1 << 20;
/// Plans that are kept for all clients of a link.
const KEPT_MAX: usize = 256;

/// Plans, for all channels of a link.
pub(crate) fn plans() -> Kept<Pack> {
    Kept::new(KEPT_MAX, 4 * LISTED_MAX)
}

/// What the client of one channel has asked for.
#[derive(Debug, Default)]
pub(crate) struct Packing {
    /// The first one is being answered.
    asks: VecDeque<Ask>,
    asked_bytes: usize,
    /// The elements of the part that goes next.
    part: Vec<u8>,
}

#[derive(Debug)]
struct Ask {
    request: u64,
    from: Arc<Layout>,
    to: Arc<Layout>,
    /// What its plans are made from, but for the giver.
    fingerprint: Fingerprint,
    /// Whose they are, and what demands them.
    pieces: VecDeque<(u64, Vec<u8>)>,
    now: Now,
}

#[derive(Debug)]
enum Now {
    Between,
    /// The server was asked for the piece of this rank.
    Demands(u64),
    /// As that, but the client wants no answer any more.
    GivenUp,
    Packs(Box<Held>),
}

/// A piece that is being packed.
#[derive(Debug)]
struct Held {
    holding: Holding,
    payload: Payload,
    pack: Arc<Pack>,
    /// Elements that have gone.
    gone: u64,
    is_summed: bool,
}

#[derive(Debug)]
enum Payload {
    Here(Vec<u8>),
    Mapped(Arc<Mapping>, u64, u64),
    File(FileMap, u64, u64),
}

/// What is to be done next.
#[derive(Debug)]
pub(crate) enum Step<'p> {
    /// Nothing, before something comes.
    Nothing,
    /// The server is to be told this.
    Ask(Vec<u8>),
    /// A part goes to the client; then a piece may have to be given back.
    Part(u64, PackedHead, &'p [u8], Option<Holding>),
    /// The client is told what is wrong; a piece may have to be given back.
    Failed(u64, Error, Option<Holding>),
    /// Nobody wants this piece any more.
    GiveBack(Holding),
}

impl Packing {
    /// Whether the next answer to `request` is one to this end.
    pub(crate) fn expects(&self, request: u64) -> bool {
        self.asks
            .front()
            .is_some_and(|ask| ask.request == request && matches!(ask.now, Now::Demands(_) | Now::GivenUp))
    }

    /// A client asks.
    ///
    /// # Errors
    /// Those of texts that cannot be read; `InvalidArgument` for what is no part of the array; `LimitExceeded` when it asks for too much
    /// at a time.
    pub(crate) fn ask(&mut self, request: u64, pack: &body::Pack<'_>) -> Result<()> {
        let ask = Ask::new(request, pack)?;
        let bytes = self.asked_bytes + ask.bytes();
        if self.asks.len() >= ASKS_MAX || bytes > ASKED_BYTES_MAX {
            let cause = format!("{} others wait, and together they name too much", self.asks.len());
            return Err(Error::new(Code::LimitExceeded, "pack", cause));
        }
        self.asked_bytes = bytes;
        self.asks.push_back(ask);
        Ok(())
    }

    /// The client wants no answer to `request` any more. `None`: it did not ask that here.
    pub(crate) fn stop(&mut self, request: u64) -> Option<Step<'static>> {
        let at = self.asks.iter().position(|ask| ask.request == request)?;
        if let Now::Demands(_) = self.asks[at].now {
            self.asks[at].now = Now::GivenUp;
            return Some(Step::Nothing);
        }
        Some(self.end(at).map_or(Step::Nothing, Step::GiveBack))
    }

    /// What was asked is over. Which piece is to be given back.
    fn end(&mut self, at: usize) -> Option<Holding> {
        let ask = self.asks.remove(at)?;
        self.asked_bytes -= ask.bytes();
        match ask.now {
            Now::Packs(piece) => Some(piece.holding),
            _ => None,
        }
    }

    /// The server has no such piece. Whether the client is to hear it.
    pub(crate) fn failed(&mut self) -> bool {
        let is_awaited = !matches!(self.asks.front().map(|ask| &ask.now), Some(Now::GivenUp));
        self.end(0);
        is_awaited
    }

    /// A piece has come.
    pub(crate) fn delivered(
        &mut self,
        head: &DeliveredHead,
        inline: &[u8],
        memory: &Memory,
        plans: &Kept<Pack>,
    ) -> Step<'static> {
        let demanded = self.asks.front_mut().and_then(|ask| match ask.now {
            Now::Demands(rank) => Some((ask, rank)),
            _ => None,
        });
        let Some((ask, rank)) = demanded else {
            self.end(0);
            return Step::GiveBack(held_by(head));
        };
        match ask.hold(rank, (head, inline), memory, plans) {
            Ok(piece) => {
                ask.now = Now::Packs(Box::new(piece));
                Step::Nothing
            }
            Err(error) => {
                let request = ask.request;
                self.end(0);
                Step::Failed(request, error, Some(held_by(head)))
            }
        }
    }

    /// What goes next, for which there is room.
    pub(crate) fn step(&mut self) -> Step<'_> {
        let Some(ask) = self.asks.front_mut() else {
            return Step::Nothing;
        };
        let request = ask.request;
        match &mut ask.now {
            Now::Demands(_) | Now::GivenUp => Step::Nothing,
            Now::Between => {
                if let Some((rank, demand)) = ask.pieces.pop_front() {
                    self.asked_bytes -= demand.len();
                    ask.now = Now::Demands(rank);
                    return Step::Ask(demand);
                }
                // There were no pieces.
                self.end(0);
                let head = PackedHead {
                    flags: LAST.into(),
                    ..PackedHead::default()
                };
                Step::Part(request, head, &[], None)
            }
            Now::Packs(piece) => match piece.next(&mut self.part, ask.fingerprint.elements.1) {
                Err(error) => {
                    let holding = self.end(0);
                    Step::Failed(request, error, holding)
                }
                Ok(mut head) => {
                    if piece.gone < piece.pack.elements() {
                        return Step::Part(request, head, &self.part, None);
                    }
                    let holding = piece.holding;
                    ask.now = Now::Between;
                    if ask.pieces.is_empty() {
                        head.flags |= LAST;
                        self.end(0);
                    }
                    Step::Part(request, head, &self.part, Some(holding))
                }
            },
        }
    }
}

impl Ask {
    fn new(request: u64, pack: &body::Pack<'_>) -> Result<Self> {
        let (from, to): (Layout, Layout) = (pack.from.parse()?, pack.to.parse()?);
        let elements: (Element, Element) = (pack.element.parse()?, pack.travels.parse()?);
        let demand = |piece: &body::PieceName<'_>| {
            let demand = Demand {
                target: piece.target.clone(),
                timeout_ms: Some(0),
                requirement: None,
                requirement_name: None,
                incomplete: false,
            };
            let mut bytes = Vec::new();
            Request::Demand(demand).encode(request, &mut bytes);
            (piece.rank, bytes)
        };
        Ok(Self {
            request,
            from: Arc::new(from),
            to: Arc::new(to),
            fingerprint: Fingerprint {
                from: pack.from.clone().into_owned(),
                to: pack.to.clone().into_owned(),
                origin: pack.origin.clone(),
                rank: 0,
                peer: Some(pack.rank),
                elements,
            },
            pieces: pack.pieces.iter().map(demand).collect(),
            now: Now::Between,
        })
    }

    fn bytes(&self) -> usize {
        let pieces = self.pieces.iter().map(|(_, demand)| demand.len());
        pieces.sum::<usize>() + self.fingerprint.from.len() + self.fingerprint.to.len()
    }

    /// Makes ready to pack a piece.
    fn hold(
        &self,
        rank: u64,
        (head, inline): (&DeliveredHead, &[u8]),
        memory: &Memory,
        plans: &Kept<Pack>,
    ) -> Result<Held> {
        let payload = Payload::of(head, inline, memory)?;
        let is_summed = head.flags.get() & CHECKSUM != 0;
        if is_summed && crc32c::crc32c(payload.bytes()?) != head.checksum.get() {
            let cause = "its payload is not what was offered";
            return Err(Error::new(Code::Corrupt, format!("piece of rank {rank}"), cause));
        }
        // Compared before anything is planned: so a plan is bounded by what there is.
        let element = self.fingerprint.elements.0.kind.bytes();
        let (room, length) = (self.from.room(rank), head.length.get());
        if u128::from(room) * element as u128 != u128::from(length) {
            let cause = format!("it has {length} bytes, and {room} elements of {element} bytes in this layout");
            return Err(Error::new(
                Code::InvalidArgument,
                format!("piece of rank {rank}"),
                cause,
            ));
        }
        let fingerprint = Fingerprint {
            rank,
            ..self.fingerprint.clone()
        };
        let pack = plans.get(fingerprint, || self.plan(rank))?;
        Ok(Held {
            holding: held_by(head),
            payload,
            pack,
            gone: 0,
            is_summed,
        })
    }

    fn plan(&self, rank: u64) -> Result<(Pack, usize)> {
        let Fingerprint {
            origin, peer, elements, ..
        } = &self.fingerprint;
        let plan = Plan::limited(&self.from, &self.to, origin, Side::From, rank, LISTED_MAX)?;
        let pack = Pack::new(&plan, peer.unwrap_or_default(), elements.0, elements.1)?;
        Ok((pack, plan.listed()))
    }
}

impl Held {
    /// The next part of it.
    fn next(&mut self, part: &mut Vec<u8>, travels: Element) -> Result<PackedHead> {
        let width = travels.kind.bytes();
        let elements = (self.pack.elements() - self.gone).min((PART_BYTES / width) as u64);
        part.resize(elements as usize * width, 0);
        self.pack.run_part(self.payload.bytes()?, self.gone, part)?;
        self.gone += elements;
        let mut head = PackedHead::default();
        if self.is_summed {
            head.flags = SUMMED.into();
            head.checksum = crc32c::crc32c(part).into();
        }
        Ok(head)
    }
}

impl Payload {
    fn of(head: &DeliveredHead, inline: &[u8], memory: &Memory) -> Result<Self> {
        let (flags, length) = (head.flags.get(), head.length.get());
        if flags & INLINE != 0 || length == 0 {
            return Ok(Self::Here(inline.to_vec()));
        }
        match memory.source(shadow::at(head), length)? {
            Source::Mapped { mapping, at, length } => Ok(Self::Mapped(mapping, at, length)),
            Source::File { file, at, length } => {
                let map = FileMap::new(file.as_fd(), at.saturating_add(length))?;
                Ok(Self::File(map, at, length))
            }
        }
    }

    fn bytes(&self) -> Result<&[u8]> {
        match self {
            Self::Here(bytes) => Ok(bytes),
            Self::Mapped(mapping, at, length) => mapping.slice(*at, *length),
            Self::File(map, at, length) => map.slice(*at, *length),
        }
    }
}

/// What gives a piece back.
fn held_by(head: &DeliveredHead) -> Holding {
    Holding {
        holding: head.holding,
        sequence: head.sequence,
        ..Holding::default()
    }
}
