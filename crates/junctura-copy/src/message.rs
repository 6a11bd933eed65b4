//! The elements that one rank has and another wants, as one message.
//!
//! It is a dense array of all elements that both share; for slabs one for each pair of their slabs that meet, by the
//! taker's number and then the giver's. Its dimensions have the order of the taker's memory, and each the order of its
//! indices: both ends derive all this from their plans.

use junctura_layout::{Distribution, Element, Layout, Local, Plan, PlanPart, PlanSide, SharedRuns};
use junctura_model::{Code, Error, Result};

use crate::elements::ElementChange;
use crate::gather::check_side;
use crate::part::MessageSide;
use crate::product::{self, ListProduct, PeerSource, ProductDim, dense, walk_order};
use crate::work::CopyWork;

/// Gathers what one peer wants out of one's own memory into a message.
#[derive(Clone, Debug)]
pub struct Pack {
    work: CopyWork,
}

/// Puts such a message into one's own memory.
#[derive(Clone, Debug)]
pub struct Unpack {
    work: CopyWork,
}

impl Pack {
    /// Packs by a plan of [`PlanSide::From`](junctura_layout::PlanSide::From). `from` is the type in memory, `to` the type
    /// on the wire.
    ///
    /// # Errors
    /// `Unsupported` where the types cannot be converted; `InvalidArgument` for a plan of the takers' side, or no such
    /// peer.
    pub fn new(plan: &Plan, peer: u64, from: Element, to: Element) -> Result<Self> {
        check_side(plan, PlanSide::From)?;
        let change = ElementChange::new(from, to)?;
        let (mut parts, coordinates) = shared_with(plan, peer)?;
        // The taker walks its own slabs first.
        parts.sort_by_key(|part| part.slab);
        let mut products = Vec::with_capacity(parts.len());
        let mut count = 0;
        // Of a taker with many slabs, those that parts name, in their order.
        let mut locals = plan.theirs().each_local(peer).zip(0..).peekable();
        for part in parts {
            let slab = part.slab.map_or(0, |(_, number)| number);
            while locals.next_if(|(_, number)| *number < slab).is_some() {}
            // A plan names only ranks that there are.
            let Some((theirs, _)) = locals.peek() else { continue };
            let side = |coordinate| product::EntrySide::Pack(coordinate);
            let product = one(part, &coordinates, side, theirs, count);
            count += product.elements();
            products.push(product);
        }
        let room = plan.from().room(plan.rank());
        let work = CopyWork::new(products, change, vec![(plan.rank(), room)], (peer, count))?;
        Ok(Self { work })
    }

    /// The same past the caches, however small it is, to compare with.
    #[doc(hidden)]
    #[must_use]
    pub fn streamed(self) -> Self {
        Self {
            work: self.work.streamed(),
        }
    }

    /// The same by what any machine can do, to compare with.
    #[doc(hidden)]
    #[must_use]
    pub fn portable(self) -> Self {
        Self {
            work: self.work.portable(),
        }
    }

    /// How many elements the message has.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.work.elements()
    }

    /// How many bytes of memory it takes up itself: those that it was made with. Costs time for its lists.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.work.bytes()
    }

    /// `piece` is one's own memory, whole; `message` has the room of [`Self::elements`]. Does not wait.
    ///
    /// # Errors
    /// As [`Gather::run`](crate::Gather::run).
    pub fn run(&self, piece: &[u8], message: &mut [u8], threads: usize) -> Result<()> {
        self.work.run(&[piece], message, threads)
    }

    /// As [`Self::run`], a part of the message: whole elements, from the one with the number `first` on. Costs time for the lists of the plan, too: parts
    /// are better not small.
    ///
    /// # Errors
    /// As [`Self::run`]; `InvalidArgument` when the message has not so many.
    pub fn run_part(&self, piece: &[u8], first: u64, part: &mut [u8]) -> Result<()> {
        let count = (part.len() / self.work.widths().1) as u64;
        self.work
            .part(MessageSide::Written, first, count)?
            .run(&[piece], part, 1)
    }
}

impl Unpack {
    /// From a plan of [`PlanSide::To`](junctura_layout::PlanSide::To). `from` is what travels, `to` what is wanted.
    ///
    /// # Errors
    /// As [`Pack::new`], for a plan of the givers' side.
    pub fn new(plan: &Plan, peer: u64, from: Element, to: Element) -> Result<Self> {
        check_side(plan, PlanSide::To)?;
        let change = ElementChange::new(from, to)?;
        let mut products = Vec::new();
        let mut count = 0;
        let (parts, coordinates) = shared_with(plan, peer)?;
        for part in parts {
            let side = |coordinate| product::EntrySide::Unpack(coordinate);
            let product = one(part, &coordinates, side, &part.local, count);
            count += product.elements();
            products.push(product);
        }
        let room = plan.to().room(plan.rank());
        let work = CopyWork::new(products, change, vec![(peer, count)], (plan.rank(), room))?;
        Ok(Self { work })
    }

    /// The same past the caches, however small it is, to compare with.
    #[doc(hidden)]
    #[must_use]
    pub fn streamed(self) -> Self {
        Self {
            work: self.work.streamed(),
        }
    }

    /// The same by what any machine can do, to compare with.
    #[doc(hidden)]
    #[must_use]
    pub fn portable(self) -> Self {
        Self {
            work: self.work.portable(),
        }
    }

    /// How many elements the message has.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.work.elements()
    }

    /// `message` is the output of [`Pack`]; `into` is one's own memory, whole. Its gaps, and elements from others, are
    /// unchanged. Does not block.
    ///
    /// # Errors
    /// As [`Gather::run`](crate::Gather::run).
    pub fn run(&self, message: &[u8], into: &mut [u8], threads: usize) -> Result<()> {
        self.work.run(&[message], into, threads)
    }

    /// As [`Self::run`], of a part of the message, as [`Pack::run_part`] made it.
    ///
    /// # Errors
    /// As [`Pack::run_part`].
    pub fn run_part(&self, part: &[u8], first: u64, into: &mut [u8]) -> Result<()> {
        let count = (part.len() / self.work.widths().0) as u64;
        self.work.part(MessageSide::Read, first, count)?.run(&[part], into, 1)
    }
}

/// The parts of a plan that have something of one peer, and its coordinates there.
fn shared_with(plan: &Plan, peer: u64) -> Result<(Vec<&PlanPart>, Vec<u64>)> {
    let layout: &Layout = plan.theirs();
    if peer >= layout.ranks() {
        let cause = format!("there is no rank {peer} of {}", layout.ranks());
        return Err(Error::new(Code::InvalidArgument, "peer", cause));
    }
    let coordinates = match layout.distribution() {
        Distribution::Grid { .. } => layout.coordinates(peer).unwrap_or_default(),
        Distribution::Slabs(_) => vec![0; layout.shape().len()],
    };
    let is_meant = |part: &&PlanPart| {
        let meets = |(runs, at): (&SharedRuns, &u64)| runs.first().iter().any(|run| run.peer == *at);
        part.slab.is_none_or(|(rank, _)| u64::from(rank) == peer) && part.runs.iter().zip(&coordinates).all(meets)
    };
    let parts = plan.parts().iter().filter(is_meant).collect();
    Ok((parts, coordinates))
}

/// Returns the elements shared with one peer. `taker` is the memory that determines the slowest dimension; `base` elements
/// of the message are before it.
fn one(
    part: &PlanPart,
    coordinates: &[u64],
    side: impl Fn(u64) -> product::EntrySide,
    taker: &Local,
    base: u64,
) -> ListProduct {
    let count = |(runs, at): (&SharedRuns, &u64)| {
        runs.peers()
            .into_iter()
            .find(|(peer, _)| peer == at)
            .map_or(0, |(_, count)| count)
    };
    let counts: Vec<u64> = part.runs.iter().zip(coordinates).map(count).collect();
    let order = walk_order(taker, &counts);
    let message = dense(&counts, &order);
    let is_packed = matches!(side(0), product::EntrySide::Pack(_));
    let (read, written) = if is_packed {
        (&part.local.strides, &message)
    } else {
        (&message, &part.local.strides)
    };
    let mut source = PeerSource::default();
    let mut dims = Vec::with_capacity(order.len());
    for (to, &at) in order.iter().enumerate() {
        let coordinate = coordinates[at];
        let jump = if is_packed { 0 } else { part.local.jumps[at] };
        let mut dim = ProductDim::new(&part.runs[at], side(coordinate), &[coordinate], (written[at], jump));
        if is_packed {
            dim.scale_into(message[at]);
        }
        dims.push(dim);
        // One's own places are blocks of one element; a message has no blocks.
        (source.strides[to], source.jumps[to]) = (read[at], u64::from(is_packed));
    }
    let (read_base, written_base) = if is_packed {
        (part.local.base, base)
    } else {
        (base, part.local.base)
    };
    source.base = read_base;
    ListProduct {
        dims,
        sources: vec![source],
        base: written_base,
        is_by_block: is_packed && part.local.jumps.iter().any(|&jump| jump > 0),
    }
}
