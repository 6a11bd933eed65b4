//! The gate's end gathers the requested parts of an array's pieces, so that only these travel.
//!
//! ```text
//!  client -- Pack: layouts, pieces --> gate -- Demand --> server
//!         <-- Packed … Packed (LAST) --     <-- Delivered --
//!                                           -- Release -->       and the next piece
//! ```
//! Towards the server it acts like the client: it demands one piece after the other on the channel's own connection, under
//! the number of the request, reads it in place, and releases it when the last part is in the queue. No part is made before
//! there is room for it, so a request of any size takes the memory of one part. An error in a request is returned to its
//! client.
//!
//! Layouts are read in the request's turn, and not kept with waiting requests: a text of a layout takes up to fifty times
//! its bytes when it is read. Waiting requests are weighed in bytes, for each client and for all clients of a link
//! ([`LinkPacking`]). Memory for layouts and plans is reserved before they are read and made ([`PlanAccount`]), for a link
//! and for all links of the process. A client that is refused takes whole pieces.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use junctura_copy::{Pack, PlanFingerprint, PlanStore};
use junctura_layout::{DIMENSIONS_MAX, Element, Layout, Plan, PlanSide};
use junctura_memory::{FileMap, SegmentMapping};
use junctura_model::{Code, Error, Result};
use junctura_wire::Request;
use junctura_wire::body::{self, DemandRequest};
use junctura_wire::fixed::{CHECKSUM, DeliveredHead, INLINE, LAST, PackedHead, ReleasedHolding, SUMMED};

use crate::mirror::mirror_index;
use crate::mirror::{LinkMemory, OutgoingSource};

/// The most outstanding requests of one client.
const ASKS_MAX: usize = 64;
/// Bytes of layouts and of outstanding pieces, for one client.
const ASKED_BYTES_MAX: usize = 8 << 20;
/// The same, for all clients of a link.
const LINK_ASKED_BYTES_MAX: usize = 64 << 20;
/// Bytes of a part: much larger than its header, and small enough to stay in a cache.
const PART_BYTES: usize = 256 << 10;
/// Runs that a plan may list. Where 10,000 ranks share a grid with as many, it lists less than half as many.
const LISTED_MAX: usize = 1 << 17;
/// A plan may list so many; one that lists more is begun again with the next, which needs more memory.
const LISTED_STEPS: [usize; 3] = [1 << 9, 1 << 13, LISTED_MAX];
/// Bytes that it takes to make a plan, for each run that it may list.
const MAKING_BYTES_EACH: usize = 1536;
/// Bytes that it takes to read a layout, for each byte of its text.
const READING_BYTES_EACH: usize = 50;
/// Bytes of layouts and plans for all clients of a link: those that are read and made, that are at work and that are kept.
const LINK_PLANNING_BYTES_MAX: usize = 512 << 20;
/// The same, for all links of a process.
const ALL_PLANNING_BYTES_MAX: usize = 1 << 30;
/// While all links together take as much as they may, one that takes less than so much is still served.
const FAIR_PLANNING_BYTES: usize = 1 << 20;
/// Those of all links.
static ALL_PLANNING_BYTES: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);
/// Plans that are kept for all clients of a link.
const KEPT_MAX: usize = 256;
/// Bytes of the retained plans.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Layouts that are kept, as they were read, for all clients of a link.
const LAYOUTS_MAX: usize = 64;
/// Bytes of their texts together, unless only the last two are kept.
const LAYOUT_BYTES_MAX: usize = 256 << 10;
/// Bytes of the texts of all layouts that the links of a process keep together, as they were read.
const ALL_LAYOUT_BYTES_MAX: usize = 4 << 20;
/// Those that are kept.
static ALL_LAYOUT_BYTES: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// The packing state that all channels of a link share.
#[derive(Debug)]
pub(crate) struct LinkPacking {
    plans: PlanStore<MadePack>,
    /// Those that are kept; that which was used last is the first.
    layouts: VecDeque<KeptLayout>,
    /// Bytes of texts of layouts that are kept here and elsewhere.
    layout_bytes: Arc<AtomicUsize>,
    asked_bytes: Arc<AtomicUsize>,
    planning: PlanAccount,
}

/// Counts the memory that layouts and plans of a link take, and those of all links.
#[derive(Debug)]
struct PlanAccount {
    link: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

/// One part.
#[derive(Debug)]
struct PlannedPart {
    link: PlanReservation,
    all: PlanReservation,
}

/// A layout, and the memory that it takes.
#[derive(Debug)]
struct ReadLayout {
    layout: Arc<Layout>,
    _planned: PlannedPart,
}

/// One that is kept, and its text.
#[derive(Debug)]
struct KeptLayout {
    text: String,
    read: Arc<ReadLayout>,
    _bytes: PlanReservation,
}

/// The result of a plan, and the memory that it takes.
#[derive(Debug)]
struct MadePack {
    pack: Pack,
    _planned: PlannedPart,
}

/// A part of what the channels of a link may take together. It is given back when this is dropped.
#[derive(Debug)]
struct PlanReservation {
    taken: Arc<AtomicUsize>,
    amount: usize,
}

impl Default for LinkPacking {
    fn default() -> Self {
        Self {
            plans: PlanStore::new(KEPT_MAX, KEPT_BYTES_MAX),
            layouts: VecDeque::new(),
            layout_bytes: Arc::clone(&ALL_LAYOUT_BYTES),
            asked_bytes: Arc::default(),
            planning: PlanAccount {
                link: Arc::default(),
                all: Arc::clone(&ALL_PLANNING_BYTES),
            },
        }
    }
}

impl PlanAccount {
    /// Reserves memory.
    ///
    /// # Errors
    /// `LimitExceeded` where the link, or all links, take as much as they may.
    fn take(&self, bytes: usize) -> Result<PlannedPart> {
        let refused = |whose: &str, most: usize| {
            let cause = format!("layouts and plans of {whose} take at most {most} bytes; {bytes} more are needed");
            Error::new(Code::LimitExceeded, "pack", cause)
        };
        let link = PlanReservation::take(&self.link, bytes, LINK_PLANNING_BYTES_MAX)
            .ok_or_else(|| refused("a link", LINK_PLANNING_BYTES_MAX))?;
        let is_small = self.link.load(Ordering::Relaxed) <= FAIR_PLANNING_BYTES;
        let most = if is_small { usize::MAX } else { ALL_PLANNING_BYTES_MAX };
        let all = PlanReservation::take(&self.all, bytes, most)
            .ok_or_else(|| refused("all links", ALL_PLANNING_BYTES_MAX))?;
        Ok(PlannedPart { link, all })
    }

    /// Whether all links take so much that nothing more is to be kept.
    fn is_short(&self) -> bool {
        self.all.load(Ordering::Relaxed) > ALL_PLANNING_BYTES_MAX / 2
    }
}

impl PlannedPart {
    /// Keeps so much.
    fn keep(&mut self, bytes: usize) {
        for reserved in [&mut self.link, &mut self.all] {
            reserved.give_back(reserved.amount.saturating_sub(bytes));
        }
    }
}

impl LinkPacking {
    /// Reserves memory for a layout or a plan; plans that are kept make room.
    ///
    /// # Errors
    /// As [`PlanAccount::take`].
    fn take(&self, bytes: usize) -> Result<PlannedPart> {
        self.planning.take(bytes).or_else(|_| {
            self.plans.clear();
            self.planning.take(bytes)
        })
    }

    /// The layout of this text. It is kept, unless all links keep too much already.
    ///
    /// # Errors
    /// Those of a text that is none, and as [`PlanAccount::take`].
    fn layout(&mut self, text: &str) -> Result<Arc<ReadLayout>> {
        let at = self.layouts.iter().position(|known| known.text == text);
        if let Some(known) = at.and_then(|at| self.layouts.remove(at)) {
            let read = Arc::clone(&known.read);
            self.layouts.push_front(known);
            return Ok(read);
        }
        self.make_room(text.len());
        let planned = self.take(text.len().saturating_mul(READING_BYTES_EACH))?;
        let read = Arc::new(ReadLayout {
            layout: Arc::new(text.parse()?),
            _planned: planned,
        });
        if let Some(bytes) = PlanReservation::take(&self.layout_bytes, text.len(), ALL_LAYOUT_BYTES_MAX) {
            self.layouts.push_front(KeptLayout {
                text: text.to_owned(),
                read: Arc::clone(&read),
                _bytes: bytes,
            });
        }
        Ok(read)
    }

    /// Makes room for one more layout, whose text has so many bytes. That which was used last stays.
    fn make_room(&mut self, bytes: usize) {
        let (mut bytes, mut fitting) = (bytes, 0);
        for known in self.layouts.iter().take(LAYOUTS_MAX - 1) {
            bytes += known.text.len();
            if fitting >= 1 && bytes > LAYOUT_BYTES_MAX {
                break;
            }
            fitting += 1;
        }
        self.layouts.truncate(fitting);
    }
}

impl PlanReservation {
    fn take(taken: &Arc<AtomicUsize>, amount: usize, max: usize) -> Option<Self> {
        let add = |sum: usize| sum.checked_add(amount).filter(|&sum| sum <= max);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Self {
            taken: Arc::clone(taken),
            amount,
        })
    }

    fn give_back(&mut self, amount: usize) {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        self.taken.fetch_sub(amount, Ordering::Relaxed);
    }
}

impl Drop for PlanReservation {
    fn drop(&mut self) {
        self.give_back(self.amount);
    }
}

/// The requests of the client of one channel.
#[derive(Debug, Default)]
pub(crate) struct ChannelPacking {
    /// The first one is being answered.
    asks: VecDeque<PackRequest>,
    asked_bytes: usize,
    /// The elements of the next part.
    part: Vec<u8>,
}

#[derive(Debug)]
struct PackRequest {
    request: u64,
    /// The inputs of its plans, except for the giver.
    fingerprint: PlanFingerprint,
    /// Whose they are, and what demands them.
    pieces: VecDeque<(u64, Vec<u8>)>,
    now: PackState,
    /// Its bytes among those of the link.
    reserved: Option<PlanReservation>,
}

#[derive(Debug)]
enum PackState {
    /// Its turn is still to be reached.
    Waits,
    Between,
    /// The server was asked for the piece of this rank.
    Demands(u64),
    /// As that, but the client wants no answer any more.
    GivenUp,
    Packs(Box<PackedPiece>),
}

/// A piece that is being packed.
#[derive(Debug)]
struct PackedPiece {
    holding: ReleasedHolding,
    payload: PackedPayload,
    plan: Arc<MadePack>,
    /// Elements that were sent.
    gone: u64,
    is_summed: bool,
}

#[derive(Debug)]
enum PackedPayload {
    Here(Vec<u8>),
    Mapped(Arc<SegmentMapping>, u64, u64),
    File(FileMap, u64, u64),
}

/// The next action.
#[derive(Debug)]
pub(crate) enum PackStep<'p> {
    /// Nothing, before something arrives.
    Nothing,
    /// Send this to the server.
    Ask(Vec<u8>),
    /// Send a part to the client; then a piece may have to be released.
    Part(u64, PackedHead, &'p [u8], Option<ReleasedHolding>),
    /// Send the client an error; a piece may have to be released.
    Failed(u64, Error, Option<ReleasedHolding>),
    /// This piece is no longer needed.
    GiveBack(ReleasedHolding),
}

impl ChannelPacking {
    /// Whether the next answer to `request` is one to this end.
    pub(crate) fn expects(&self, request: u64) -> bool {
        self.asks
            .front()
            .is_some_and(|ask| ask.request == request && matches!(ask.now, PackState::Demands(_) | PackState::GivenUp))
    }

    /// A client asks.
    ///
    /// # Errors
    /// `InvalidArgument` for invalid elements; `LimitExceeded` when the client, or its link, requests too much at a time.
    /// Errors in the layouts are reported in the request's turn.
    pub(crate) fn ask(&mut self, request: u64, pack: &body::PackBody<'_>, link: &LinkPacking) -> Result<()> {
        let limit = |cause: String| Err(Error::new(Code::LimitExceeded, "pack", cause));
        if self.asks.len() >= ASKS_MAX {
            return limit(format!("{ASKS_MAX} other requests of this client are waiting"));
        }
        let mut ask = PackRequest::new(request, pack)?;
        let bytes = ask.bytes();
        if self.asked_bytes + bytes > ASKED_BYTES_MAX {
            return limit(format!(
                "its {bytes} bytes, and those of {} other requests of this client, are more than {ASKED_BYTES_MAX}",
                self.asks.len()
            ));
        }
        ask.reserved = PlanReservation::take(&link.asked_bytes, bytes, LINK_ASKED_BYTES_MAX);
        if ask.reserved.is_none() {
            return limit(format!(
                "its {bytes} bytes, and those of all clients of this link, are more than {LINK_ASKED_BYTES_MAX}"
            ));
        }
        self.asked_bytes += bytes;
        self.asks.push_back(ask);
        Ok(())
    }

    /// The client wants no answer to `request` any more. `None`: it did not ask that here.
    pub(crate) fn stop(&mut self, request: u64) -> Option<PackStep<'static>> {
        let at = self.asks.iter().position(|ask| ask.request == request)?;
        if let PackState::Demands(_) = self.asks[at].now {
            self.asks[at].now = PackState::GivenUp;
            return Some(PackStep::Nothing);
        }
        Some(self.end(at).map_or(PackStep::Nothing, PackStep::GiveBack))
    }

    /// Ends a request. Returns the piece to release.
    fn end(&mut self, at: usize) -> Option<ReleasedHolding> {
        let ask = self.asks.remove(at)?;
        self.asked_bytes -= ask.bytes();
        match ask.now {
            PackState::Packs(piece) => Some(piece.holding),
            _ => None,
        }
    }

    /// The server has no such piece. Returns whether the client gets the error.
    pub(crate) fn failed(&mut self) -> bool {
        let is_awaited = !matches!(self.asks.front().map(|ask| &ask.now), Some(PackState::GivenUp));
        self.end(0);
        is_awaited
    }

    /// A piece has arrived.
    pub(crate) fn delivered(
        &mut self,
        head: &DeliveredHead,
        inline: &[u8],
        memory: &LinkMemory,
        link: &mut LinkPacking,
    ) -> PackStep<'static> {
        let demanded = self.asks.front_mut().and_then(|ask| match ask.now {
            PackState::Demands(rank) => Some((ask, rank)),
            _ => None,
        });
        let Some((ask, rank)) = demanded else {
            self.end(0);
            return PackStep::GiveBack(held_by(head));
        };
        match ask.hold(rank, (head, inline), memory, link) {
            Ok(piece) => {
                ask.now = PackState::Packs(Box::new(piece));
                PackStep::Nothing
            }
            Err(error) => {
                let request = ask.request;
                self.end(0);
                PackStep::Failed(request, error, Some(held_by(head)))
            }
        }
    }

    /// Returns the next action, for which there is room.
    pub(crate) fn step(&mut self, link: &mut LinkPacking) -> PackStep<'_> {
        let Some(ask) = self.asks.front_mut() else {
            return PackStep::Nothing;
        };
        let request = ask.request;
        if let PackState::Waits = ask.now {
            ask.now = PackState::Between;
            if let Err(error) = ask.layouts(link) {
                self.end(0);
                return PackStep::Failed(request, error, None);
            }
        }
        let Some(ask) = self.asks.front_mut() else {
            return PackStep::Nothing;
        };
        match &mut ask.now {
            PackState::Waits | PackState::Demands(_) | PackState::GivenUp => PackStep::Nothing,
            PackState::Between => {
                if let Some((rank, demand)) = ask.pieces.pop_front() {
                    let bytes = piece_bytes(&demand);
                    self.asked_bytes -= bytes;
                    if let Some(reserved) = &mut ask.reserved {
                        reserved.give_back(bytes);
                    }
                    ask.now = PackState::Demands(rank);
                    return PackStep::Ask(demand);
                }
                // There were no pieces.
                self.end(0);
                let head = PackedHead {
                    flags: LAST.into(),
                    ..PackedHead::default()
                };
                PackStep::Part(request, head, &[], None)
            }
            PackState::Packs(piece) => match piece.next(&mut self.part, ask.fingerprint.elements.1) {
                Err(error) => {
                    let holding = self.end(0);
                    PackStep::Failed(request, error, holding)
                }
                Ok(mut head) => {
                    if piece.gone < piece.plan.pack.elements() {
                        return PackStep::Part(request, head, &self.part, None);
                    }
                    let holding = piece.holding;
                    ask.now = PackState::Between;
                    if ask.pieces.is_empty() {
                        head.flags |= LAST;
                        self.end(0);
                    }
                    PackStep::Part(request, head, &self.part, Some(holding))
                }
            },
        }
    }
}

impl PackRequest {
    fn new(request: u64, pack: &body::PackBody<'_>) -> Result<Self> {
        let elements: (Element, Element) = (pack.element.parse()?, pack.travels.parse()?);
        if pack.origin.len() > DIMENSIONS_MAX {
            let cause = format!(
                "its origin has {} dimensions, more than {DIMENSIONS_MAX}",
                pack.origin.len()
            );
            return Err(Error::new(Code::InvalidArgument, "pack", cause));
        }
        let demand = |piece: &body::PieceName<'_>| {
            let demand = DemandRequest {
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
            fingerprint: PlanFingerprint {
                from: pack.from.clone().into_owned(),
                to: pack.to.clone().into_owned(),
                origin: pack.origin.clone(),
                rank: 0,
                peer: Some(pack.rank),
                elements,
            },
            pieces: pack.pieces.iter().map(demand).collect(),
            now: PackState::Waits,
            reserved: None,
        })
    }

    fn bytes(&self) -> usize {
        let pieces = self.pieces.iter().map(|(_, demand)| piece_bytes(demand));
        pieces.sum::<usize>() + self.layout_bytes()
    }

    fn layout_bytes(&self) -> usize {
        self.fingerprint.from.len() + self.fingerprint.to.len()
    }

    /// Returns the array's layout, and the requested one.
    fn layouts(&self, link: &mut LinkPacking) -> Result<(Arc<ReadLayout>, Arc<ReadLayout>)> {
        Ok((link.layout(&self.fingerprint.from)?, link.layout(&self.fingerprint.to)?))
    }

    /// Makes ready to pack a piece.
    fn hold(
        &self,
        rank: u64,
        (head, inline): (&DeliveredHead, &[u8]),
        memory: &LinkMemory,
        link: &mut LinkPacking,
    ) -> Result<PackedPiece> {
        let payload = PackedPayload::of(head, inline, memory)?;
        let is_summed = head.flags.get() & CHECKSUM != 0;
        if is_summed && crc32c::crc32c(payload.bytes()?) != head.checksum.get() {
            let cause = "its payload differs from the offered one";
            return Err(Error::new(Code::Corrupt, format!("piece of rank {rank}"), cause));
        }
        // Compared before anything is planned: so a plan is bounded by what there is.
        let element = self.fingerprint.elements.0.kind.bytes();
        let (from, to) = self.layouts(link)?;
        let (room, length) = (from.layout.room(rank), head.length.get());
        if u128::from(room) * element as u128 != u128::from(length) {
            let cause = format!("it has {length} bytes, but {room} elements of {element} bytes in this layout");
            return Err(Error::new(
                Code::InvalidArgument,
                format!("piece of rank {rank}"),
                cause,
            ));
        }
        let fingerprint = PlanFingerprint {
            rank,
            ..self.fingerprint.clone()
        };
        let plan = link
            .plans
            .get(fingerprint, || self.plan(rank, (&from.layout, &to.layout), link))?;
        Ok(PackedPiece {
            holding: held_by(head),
            payload,
            plan,
            gone: 0,
            is_summed,
        })
    }

    /// Returns what a piece is packed by, and its weight among those that are kept.
    ///
    /// # Errors
    /// Those of [`Plan::with_peer`] and [`Pack::new`], and as [`PlanAccount::take`].
    fn plan(&self, rank: u64, layouts: (&Arc<Layout>, &Arc<Layout>), link: &LinkPacking) -> Result<(MadePack, usize)> {
        let mut made = self.plan_listing(LISTED_STEPS[0], rank, layouts, link);
        for &listed_max in &LISTED_STEPS[1..] {
            if !made.as_ref().is_err_and(|error| error.code() == Code::LimitExceeded) {
                break;
            }
            made = self.plan_listing(listed_max, rank, layouts, link);
        }
        let made = made?;
        let weight = made.pack.bytes() + self.layout_bytes();
        let is_kept = !link.planning.is_short();
        Ok((made, if is_kept { weight } else { usize::MAX }))
    }

    /// The same, by a plan that lists so many runs at most.
    fn plan_listing(
        &self,
        listed_max: usize,
        rank: u64,
        (from, to): (&Arc<Layout>, &Arc<Layout>),
        link: &LinkPacking,
    ) -> Result<MadePack> {
        let PlanFingerprint {
            origin, peer, elements, ..
        } = &self.fingerprint;
        let peer = peer.unwrap_or_default();
        let mut planned = link.take(listed_max * MAKING_BYTES_EACH + self.layout_bytes())?;
        let plan = Plan::with_peer(from, to, origin, PlanSide::From, (rank, peer), listed_max)?;
        let pack = Pack::new(&plan, peer, elements.0, elements.1)?;
        // The retained plan has the texts of its layouts, too.
        planned.keep(pack.bytes() + self.layout_bytes());
        Ok(MadePack {
            pack,
            _planned: planned,
        })
    }
}

impl PackedPiece {
    /// Makes its next part.
    fn next(&mut self, part: &mut Vec<u8>, travels: Element) -> Result<PackedHead> {
        let width = travels.kind.bytes();
        let elements = (self.plan.pack.elements() - self.gone).min((PART_BYTES / width) as u64);
        part.resize(elements as usize * width, 0);
        self.plan.pack.run_part(self.payload.bytes()?, self.gone, part)?;
        self.gone += elements;
        let mut head = PackedHead::default();
        if self.is_summed {
            head.flags = SUMMED.into();
            head.checksum = crc32c::crc32c(part).into();
        }
        Ok(head)
    }
}

impl PackedPayload {
    fn of(head: &DeliveredHead, inline: &[u8], memory: &LinkMemory) -> Result<Self> {
        let (flags, length) = (head.flags.get(), head.length.get());
        if flags & INLINE != 0 || length == 0 {
            return Ok(Self::Here(inline.to_vec()));
        }
        match memory.source(mirror_index::at(head), length)? {
            OutgoingSource::Mapped { mapping, at, length } => Ok(Self::Mapped(mapping, at, length)),
            OutgoingSource::File { file, at, length } => {
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

/// Returns the bytes of an outstanding piece.
fn piece_bytes(demand: &[u8]) -> usize {
    size_of::<(u64, Vec<u8>)>() + demand.len()
}

/// Returns the holding that releases a piece.
fn held_by(head: &DeliveredHead) -> ReleasedHolding {
    ReleasedHolding {
        holding: head.holding,
        sequence: head.sequence,
        ..ReleasedHolding::default()
    }
}

#[cfg(test)]
mod tests;
