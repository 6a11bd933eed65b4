//! All elements that one rank wants, from the memories of all ranks that have them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use junctura_layout::{Element, Local, Plan, PlanPart, PlanSide, SharedRuns, Storage};
use junctura_model::{Code, Error, Result};

use crate::elements::ElementChange;
use crate::product::{self, ListProduct, PeerSource, ProductDim, walk_order};
use crate::work::CopyWork;

/// The copies that one rank makes from its peers, prepared once and run many times, from a plan of [`PlanSide::To`](junctura_layout::PlanSide::To).
#[derive(Clone, Debug)]
pub struct Gather {
    peers: Vec<u64>,
    work: CopyWork,
}

impl Gather {
    /// `from` is the type in the pieces, `to` the wanted type. Costs time and memory for the entries of the plan.
    ///
    /// # Errors
    /// `Unsupported` where the types cannot be converted: kinds must be the same, or `f4` and `f8`; byte orders may differ.
    /// `InvalidArgument` for a plan of the givers' side.
    pub fn new(plan: &Plan, from: Element, to: Element) -> Result<Self> {
        check_side(plan, PlanSide::To)?;
        let change = ElementChange::new(from, to)?;
        let mut locals = PeerLocals::of(plan);
        let parts = plan
            .parts()
            .iter()
            .map(|part| CombinedPart::new(plan, part, &mut locals));
        let parts: Vec<CombinedPart> = parts.collect();
        let ranks: BTreeSet<u64> = parts.iter().flat_map(|part| &part.ranks).copied().collect();
        let peers: Vec<u64> = ranks.into_iter().collect();
        let products = parts.into_iter().map(|part| part.product(&peers)).collect();
        let read = peers.iter().map(|&rank| (rank, plan.from().room(rank))).collect();
        let written = (plan.rank(), plan.to().room(plan.rank()));
        let work = CopyWork::new(products, change, read, written)?;
        Ok(Self { peers, work })
    }

    /// The same past the caches, however small it is, to compare with.
    #[doc(hidden)]
    #[must_use]
    pub fn streamed(self) -> Self {
        Self {
            work: self.work.streamed(),
            ..self
        }
    }

    /// The same by what any machine can do, to compare with.
    #[doc(hidden)]
    #[must_use]
    pub fn portable(self) -> Self {
        Self {
            work: self.work.portable(),
            ..self
        }
    }

    /// The ranks whose memory is needed, ascending.
    #[must_use]
    pub fn peers(&self) -> &[u64] {
        &self.peers
    }

    /// How many elements are taken.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.work.elements()
    }

    /// Checks that `pieces` are valid for [`Self::run`], for a caller that allocates the destination afterwards.
    ///
    /// # Errors
    /// `InvalidArgument` for those that have not the length that they must have.
    pub fn check(&self, pieces: &[&[u8]]) -> Result<()> {
        self.work.check(pieces)
    }

    /// `pieces` has the memory of each of [`Self::peers`], whole, in that order; `into` is that of one's own rank, whole
    /// ([`Layout::room`](junctura_layout::Layout::room) elements). Its gaps stay as they are. Does not wait; with several `threads` (one to 256, whatever is
    /// asked for) each writes its part of the rows.
    ///
    /// # Errors
    /// `InvalidArgument` for memories that have not the length that they must have, before anything is written.
    pub fn run(&self, pieces: &[&[u8]], into: &mut [u8], threads: usize) -> Result<()> {
        self.work.run(pieces, into, threads)
    }
}

pub(crate) fn check_side(plan: &Plan, side: PlanSide) -> Result<()> {
    if plan.side() == side {
        return Ok(());
    }
    let cause = format!("it is one of Side::{:?}, and Side::{side:?} is needed", plan.side());
    Err(Error::new(Code::InvalidArgument, "plan", cause))
}

/// The memories of peers. Those of a peer with slabs are listed once: as many parts as there are slabs may name it.
struct PeerLocals<'p> {
    plan: &'p Plan,
    of_slabs: BTreeMap<u64, Vec<Local>>,
}

impl<'p> PeerLocals<'p> {
    fn of(plan: &'p Plan) -> Self {
        Self {
            plan,
            of_slabs: BTreeMap::new(),
        }
    }

    /// The peer that a part names by these coordinates, and its memory. A plan names only ranks that there are.
    fn find(&mut self, part: &PlanPart, coordinates: &[u64]) -> Option<(u64, Cow<'_, Local>)> {
        let Some((rank, number)) = part.slab else {
            let (rank, local) = self.plan.their_local(part, coordinates)?;
            return Some((rank, Cow::Owned(local)));
        };
        let rank = u64::from(rank);
        let layout = self.plan.theirs();
        let locals = self.of_slabs.entry(rank).or_insert_with(|| layout.locals(rank));
        Some((rank, Cow::Borrowed(locals.get(number as usize)?)))
    }
}

/// A part of a plan with the ranks that it names.
struct CombinedPart {
    product: ListProduct,
    /// Of each source.
    ranks: Vec<u64>,
}

impl CombinedPart {
    fn new(plan: &Plan, part: &PlanPart, locals: &mut PeerLocals<'_>) -> Self {
        let counts: Vec<u64> = part.runs.iter().map(SharedRuns::elements).collect();
        let order = walk_order(&part.local, &counts);
        let coordinates: Vec<Vec<u64>> = order.iter().map(|&at| coordinates(&part.runs[at])).collect();
        let mut combined = Self {
            product: ListProduct {
                dims: Vec::new(),
                sources: Vec::new(),
                base: part.local.base,
                is_by_block: *plan.from().storage() == Storage::Packed,
            },
            ranks: Vec::new(),
        };
        for (&at, sources) in order.iter().zip(&coordinates) {
            let steps = (part.local.strides[at], part.local.jumps[at]);
            let dim = ProductDim::new(&part.runs[at], product::EntrySide::Gather, sources, steps);
            combined.product.dims.push(dim);
        }
        let combinations: usize = coordinates.iter().map(Vec::len).product();
        for number in 0..combinations {
            combined.add_source(part, locals, &order, &coordinates, number);
        }
        combined
    }

    fn add_source(
        &mut self,
        part: &PlanPart,
        locals: &mut PeerLocals<'_>,
        order: &[usize],
        coordinates: &[Vec<u64>],
        number: usize,
    ) {
        let mut chosen = vec![0; order.len()];
        let mut left = number;
        for (&at, list) in order.iter().zip(coordinates).rev() {
            chosen[at] = list[left % list.len()];
            left /= list.len();
        }
        let Some((rank, local)) = locals.find(part, &chosen) else {
            return;
        };
        let mut source = PeerSource {
            base: local.base,
            ..PeerSource::default()
        };
        for (to, &at) in order.iter().enumerate() {
            (source.strides[to], source.jumps[to]) = (local.strides[at], local.jumps[at]);
        }
        self.product.sources.push(source);
        self.ranks.push(rank);
    }

    fn product(self, peers: &[u64]) -> ListProduct {
        let mut product = self.product;
        for (source, rank) in product.sources.iter_mut().zip(&self.ranks) {
            source.piece = peers.partition_point(|peer| peer < rank);
        }
        product
    }
}

/// Those that something is shared with, ascending.
fn coordinates(runs: &SharedRuns) -> Vec<u64> {
    runs.peers().into_iter().map(|(peer, _)| peer).collect()
}
