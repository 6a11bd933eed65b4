//! Plans: the elements that ranks of two layouts share, when an array of one layout is redistributed to the other.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use junctura_model::{Code, Error, Result};

use crate::runs::{DimensionEnd, OwnSide};
use crate::{Axis, Distribution, IndexRun, Layout, Local, RUNS_MAX, SharedRuns, Slab};

/// Whose plan it is.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura_layout::{Layout, Plan, PlanSide};
/// # fn main() -> junctura_model::Result<()> {
/// let rows: Arc<Layout> = Arc::new("shape=4x4 grid=2x1".parse()?);
/// let columns: Arc<Layout> = Arc::new("shape=4x4 grid=1x2".parse()?);
/// let sent = Plan::whole(&rows, &columns, PlanSide::From, 0)?;
/// assert_eq!(sent.elements(), 8);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlanSide {
    /// A rank that has elements and sends them.
    From,
    /// A rank that requires elements and receives them.
    To,
}

/// The elements that one rank of one side shares with all ranks of the other side.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura_layout::{Layout, Plan, PlanSide};
/// # fn main() -> junctura_model::Result<()> {
/// let rows: Arc<Layout> = Arc::new("shape=4x4 grid=2x1".parse()?);
/// let columns: Arc<Layout> = Arc::new("shape=4x4 grid=1x2".parse()?);
/// let received = Plan::whole(&rows, &columns, PlanSide::To, 1)?;
/// let partners: Vec<_> = received.partners().iter().map(|one| (one.rank, one.elements)).collect();
/// assert_eq!(partners, [(0, 4), (1, 4)]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    from: Arc<Layout>,
    to: Arc<Layout>,
    side: PlanSide,
    rank: u64,
    parts: Vec<PlanPart>,
}

/// A product of lists: each run of one dimension with each run of every other.
///
/// There is one such part between two grids. Where one side has slabs, there is one for each slab that shares elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanPart {
    /// The runs of each dimension.
    pub runs: Vec<SharedRuns>,
    /// Its memory at this rank: the only one in a grid, otherwise that of a slab. Runs are offsets in it, without its
    /// base.
    pub local: Local,
    /// The index of the source array, in each dimension, at which this side's indices begin.
    pub begin: Vec<u64>,
    /// The peer's slab, by its rank and number, where the peers have slabs; otherwise runs name coordinates of a grid.
    pub slab: Option<(u32, u32)>,
}

/// A rank of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanPartner {
    /// Its rank.
    pub rank: u64,
    /// The number of elements that both share.
    pub elements: u64,
}

/// A part of one rank's own memory, and its place in the array.
struct OwnPart<'a> {
    axes: std::borrow::Cow<'a, [Axis]>,
    coordinates: Vec<u64>,
    local: Local,
    /// Its indices in the source array.
    region: Slab,
    is_packed: bool,
}

/// A part of the other side's memory.
struct PeerPart<'a> {
    axes: std::borrow::Cow<'a, [Axis]>,
    region: Slab,
    is_packed: bool,
    slab: Option<(u32, u32)>,
}

/// Visiting so many slabs without a result takes the time of listing one run.
const SLABS_PER_RUN: usize = 16;

/// The runs listed so far, their partners, and the number of runs that may follow.
struct ListedRuns {
    parts: Vec<PlanPart>,
    /// The one rank whose slabs count.
    peer: Option<u64>,
    left: usize,
}

impl ListedRuns {
    fn add(&mut self, part: Option<PlanPart>) -> Result<()> {
        let listed = part.iter().flat_map(|part| &part.runs).map(|runs| runs.first().len());
        // A search without a result takes time, too.
        self.spend(listed.sum::<usize>().max(1))?;
        self.parts.extend(part);
        Ok(())
    }

    /// Counts slabs that were visited and share nothing.
    fn look_in_vain(&mut self, slabs: usize) -> Result<()> {
        self.spend(slabs / SLABS_PER_RUN)
    }

    fn spend(&mut self, runs: usize) -> Result<()> {
        self.left = self
            .left
            .checked_sub(runs)
            .ok_or_else(|| Error::new(Code::LimitExceeded, "plan", "it has more runs than allowed"))?;
        Ok(())
    }
}

impl Plan {
    /// Makes the plan for one rank of one side. `origin` is the index of `from` that is the first of `to`, in each
    /// dimension: `to` may be a part of the array. The time and the memory depend on the size of the lists: own blocks
    /// of one period, and the peers that they meet.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown rank, or if `to` is not a part of `from`; `LimitExceeded` for more than
    /// [`RUNS_MAX`](crate::RUNS_MAX) runs of one dimension.
    pub fn new(from: &Arc<Layout>, to: &Arc<Layout>, origin: &[u64], side: PlanSide, rank: u64) -> Result<Self> {
        Self::limited(from, to, origin, side, rank, usize::MAX)
    }

    /// As [`Self::new`], for layouts from an untrusted source: it lists at most about `runs_max` runs, over all
    /// dimensions and slabs, and takes time and memory for at most so many.
    ///
    /// # Errors
    /// As [`Self::new`]; `LimitExceeded` for more runs.
    pub fn limited(
        from: &Arc<Layout>,
        to: &Arc<Layout>,
        origin: &[u64],
        side: PlanSide,
        rank: u64,
        runs_max: usize,
    ) -> Result<Self> {
        Self::listing(from, to, origin, side, rank, (None, runs_max))
    }

    /// Like [`Self::limited`], for the elements shared with one peer: of the other side's slabs, it has those of the peer.
    /// A plan with a grid has other ranks, too.
    ///
    /// # Errors
    /// As [`Self::limited`].
    pub fn with_peer(
        from: &Arc<Layout>,
        to: &Arc<Layout>,
        origin: &[u64],
        side: PlanSide,
        (rank, peer): (u64, u64),
        runs_max: usize,
    ) -> Result<Self> {
        Self::listing(from, to, origin, side, rank, (Some(peer), runs_max))
    }

    fn listing(
        from: &Arc<Layout>,
        to: &Arc<Layout>,
        origin: &[u64],
        side: PlanSide,
        rank: u64,
        (peer, runs_max): (Option<u64>, usize),
    ) -> Result<Self> {
        check_within(from, to, origin)?;
        let mut plan = Self {
            from: Arc::clone(from),
            to: Arc::clone(to),
            side,
            rank,
            parts: Vec::new(),
        };
        let (mine, ranks) = (plan.mine(), plan.mine().ranks());
        if rank >= ranks {
            let cause = format!("there is no rank {rank} of {ranks}");
            return Err(Error::new(Code::InvalidArgument, "rank", cause));
        }
        let nowhere = vec![0; origin.len()];
        let (my_origin, their_origin) = match side {
            PlanSide::From => (nowhere.as_slice(), origin),
            PlanSide::To => (origin, nowhere.as_slice()),
        };
        let mut found = ListedRuns {
            parts: Vec::new(),
            peer,
            left: runs_max,
        };
        for_each_part(mine, rank, my_origin, |one| {
            meet(one, plan.theirs(), their_origin, &mut found)
        })?;
        plan.parts = found.parts;
        Ok(plan)
    }

    /// Makes the plan for a whole array.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn whole(from: &Arc<Layout>, to: &Arc<Layout>, side: PlanSide, rank: u64) -> Result<Self> {
        Self::new(from, to, &vec![0; to.shape().len()], side, rank)
    }

    fn mine(&self) -> &Layout {
        match self.side {
            PlanSide::From => &self.from,
            PlanSide::To => &self.to,
        }
    }

    /// Returns the other side's layout.
    #[must_use]
    pub fn theirs(&self) -> &Layout {
        match self.side {
            PlanSide::From => &self.to,
            PlanSide::To => &self.from,
        }
    }

    /// Returns the layout of the ranks that have the elements.
    #[must_use]
    pub fn from(&self) -> &Arc<Layout> {
        &self.from
    }

    /// Returns the layout of the ranks that want the elements.
    #[must_use]
    pub fn to(&self) -> &Arc<Layout> {
        &self.to
    }

    /// Returns the side of the rank.
    #[must_use]
    pub fn side(&self) -> PlanSide {
        self.side
    }

    /// Returns the rank.
    #[must_use]
    pub fn rank(&self) -> u64 {
        self.rank
    }

    /// Returns the products of the plan.
    #[must_use]
    pub fn parts(&self) -> &[PlanPart] {
        &self.parts
    }

    /// Returns the number of elements shared with all ranks together.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.parts.iter().map(PlanPart::elements).sum()
    }

    /// Returns the number of boxes shared with all ranks together: products of runs.
    #[must_use]
    pub fn boxes(&self) -> u64 {
        let boxes = |part: &PlanPart| part.runs.iter().map(SharedRuns::count).product::<u64>();
        self.parts.iter().map(boxes).sum()
    }

    /// Returns the number of listed runs, over all dimensions: the size of the plan itself.
    #[must_use]
    pub fn listed(&self) -> usize {
        let lists = self.parts.iter().flat_map(|part| &part.runs);
        lists.map(|runs| runs.first().len()).sum()
    }

    /// Returns the ranks that share elements, and how many, by rank.
    #[must_use]
    pub fn partners(&self) -> Vec<PlanPartner> {
        let mut all = BTreeMap::new();
        for part in &self.parts {
            self.each_partner(part, |rank, elements| *all.entry(rank).or_default() += elements);
        }
        let partner = |(rank, elements)| PlanPartner { rank, elements };
        all.into_iter().map(partner).collect()
    }

    /// Calls back with each shared box: the peer's rank, and the indices in the source array, from the first to one past
    /// the last. There are [`Self::boxes`] calls.
    pub fn for_each_box(&self, mut tell: impl FnMut(u64, &Slab)) {
        for part in &self.parts {
            let lists: Vec<Vec<IndexRun>> = part.runs.iter().map(|runs| runs.each().collect()).collect();
            for_each_combination(&lists, |chosen| {
                let coordinates: Vec<u64> = chosen.iter().map(|run| run.peer).collect();
                let peer = match part.slab {
                    Some((rank, _)) => Some(u64::from(rank)),
                    None => self.theirs().rank_at(&coordinates),
                };
                let start: Vec<u64> = chosen
                    .iter()
                    .zip(&part.begin)
                    .map(|(run, begin)| begin + run.start)
                    .collect();
                let stop = start
                    .iter()
                    .zip(chosen)
                    .map(|(start, run)| start + run.length)
                    .collect();
                if let Some(peer) = peer {
                    tell(peer, &Slab { start, stop });
                }
            });
        }
    }

    fn each_partner(&self, part: &PlanPart, mut tell: impl FnMut(u64, u64)) {
        if let Some((rank, _)) = part.slab {
            return tell(u64::from(rank), part.elements());
        }
        let peers: Vec<Vec<(u64, u64)>> = part.runs.iter().map(SharedRuns::peers).collect();
        for_each_combination(&peers, |chosen| {
            let coordinates: Vec<u64> = chosen.iter().map(|(peer, _)| *peer).collect();
            let elements = chosen.iter().map(|(_, count)| count).product();
            if let Some(rank) = self.theirs().rank_at(&coordinates) {
                tell(rank, elements);
            }
        });
    }

    /// Returns the memory of a peer, for runs of this part that name these coordinates.
    #[must_use]
    pub fn their_local(&self, part: &PlanPart, coordinates: &[u64]) -> Option<(u64, Local)> {
        match (self.theirs().distribution(), part.slab) {
            (Distribution::Grid { axes, .. }, _) => {
                let rank = self.theirs().rank_at(coordinates)?;
                Some((rank, self.theirs().local_of_grid(axes, coordinates)))
            }
            (Distribution::Slabs(_), Some((rank, number))) => {
                let local = self.theirs().locals(u64::from(rank)).into_iter().nth(number as usize)?;
                Some((u64::from(rank), local))
            }
            (Distribution::Slabs(_), None) => None,
        }
    }
}

impl PlanPart {
    /// Returns the number of shared elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.runs.iter().map(SharedRuns::elements).product()
    }
}

impl fmt::Display for Plan {
    /// Prints for each dimension its runs of one period, then the peers.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            PlanSide::From => "gives",
            PlanSide::To => "takes",
        };
        writeln!(formatter, "rank {} {side} {} elements", self.rank, self.elements())?;
        for part in &self.parts {
            for (dimension, runs) in part.runs.iter().enumerate() {
                let (count, period) = (runs.count(), runs.period());
                writeln!(
                    formatter,
                    "dimension {dimension}: {count} runs, the first of each {period} indices:"
                )?;
                for IndexRun {
                    peer, start, length, ..
                } in runs.first()
                {
                    writeln!(formatter, "  {start}:{} with {peer}", start + length)?;
                }
            }
        }
        for PlanPartner { rank, elements } in self.partners() {
            writeln!(formatter, "{elements} with rank {rank}")?;
        }
        Ok(())
    }
}

/// Calls `tell` with one item of each list, for all combinations; the last list varies fastest.
fn for_each_combination<T: Copy>(lists: &[Vec<T>], mut tell: impl FnMut(&[T])) {
    if lists.iter().any(Vec::is_empty) {
        return;
    }
    let mut at = vec![0; lists.len()];
    let mut chosen: Vec<T> = lists.iter().map(|list| list[0]).collect();
    loop {
        tell(&chosen);
        let Some(dimension) = (0..lists.len())
            .rev()
            .find(|&dimension| at[dimension] + 1 < lists[dimension].len())
        else {
            return;
        };
        at[dimension] += 1;
        at[dimension + 1..].fill(0);
        for later in dimension..lists.len() {
            chosen[later] = lists[later][at[later]];
        }
    }
}

fn check_within(from: &Layout, to: &Layout, origin: &[u64]) -> Result<()> {
    let dimensions = from.shape().len();
    let bounds = origin.iter().zip(to.shape()).zip(from.shape());
    let is_within = to.shape().len() == dimensions
        && origin.len() == dimensions
        && bounds.fold(true, |is, ((start, extent), whole)| {
            is && start.checked_add(*extent).is_some_and(|stop| stop <= *whole)
        });
    if is_within {
        return Ok(());
    }
    let cause = format!("{:?} at {origin:?} is not within {:?}", to.shape(), from.shape());
    Err(Error::new(Code::InvalidArgument, "shape", cause))
}

/// Returns a region with the indices of the other side.
fn moved(slab: &Slab, by: &[u64]) -> Slab {
    let add = |bounds: &[u64]| bounds.iter().zip(by).map(|(bound, by)| bound + by).collect();
    Slab {
        start: add(&slab.start),
        stop: add(&slab.stop),
    }
}

/// Calls a function with each part of the rank's own memory, without memory for very many.
fn for_each_part(
    layout: &Layout,
    rank: u64,
    origin: &[u64],
    mut act: impl FnMut(&OwnPart<'_>) -> Result<()>,
) -> Result<()> {
    let mut locals = layout.each_local(rank);
    match layout.distribution() {
        Distribution::Grid { axes, .. } => locals.try_for_each(|local| {
            act(&OwnPart {
                axes: axes.into(),
                coordinates: layout.coordinates(rank).unwrap_or_default(),
                local,
                region: moved(&Slab::whole(layout.shape()), origin),
                is_packed: layout.is_packed(),
            })
        }),
        Distribution::Slabs(slabs) => {
            let slabs = slabs.ranks().get(rank as usize).into_iter().flatten();
            slabs.zip(locals).try_for_each(|(slab, local)| {
                act(&OwnPart {
                    axes: whole_axes(slab),
                    coordinates: vec![0; slab.start.len()],
                    local,
                    region: moved(slab, origin),
                    is_packed: false,
                })
            })
        }
    }
}

fn whole_axes(slab: &Slab) -> std::borrow::Cow<'static, [Axis]> {
    slab.extents().into_iter().map(Axis::whole).collect::<Vec<_>>().into()
}

/// Lists the elements that a part of the rank shares with the other side.
fn meet(mine: &OwnPart<'_>, layout: &Layout, origin: &[u64], found: &mut ListedRuns) -> Result<()> {
    match layout.distribution() {
        Distribution::Grid { axes, .. } => {
            let theirs = PeerPart {
                axes: axes.into(),
                region: moved(&Slab::whole(layout.shape()), origin),
                is_packed: layout.is_packed(),
                slab: None,
            };
            found.add(shared(mine, &theirs, found.left)?)?;
        }
        Distribution::Slabs(slabs) => {
            let Some(asked) = mine.region.shared(&moved(&Slab::whole(layout.shape()), origin)) else {
                return Ok(());
            };
            let back = |bounds: &[u64]| bounds.iter().zip(origin).map(|(bound, by)| bound - by).collect();
            let asked = Slab {
                start: back(&asked.start),
                stop: back(&asked.stop),
            };
            let is_meant = |&(rank, _): &(u32, u32)| found.peer.is_none_or(|peer| peer == u64::from(rank));
            let mut met: Vec<(u32, u32)> = slabs.meeting(&asked).filter(is_meant).collect();
            found.look_in_vain(slabs.candidates(&asked).len() - met.len())?;
            met.sort_unstable();
            for id in met {
                let slab = slabs.get(id);
                let theirs = PeerPart {
                    axes: whole_axes(slab),
                    region: moved(slab, origin),
                    is_packed: false,
                    slab: Some(id),
                };
                found.add(shared(mine, &theirs, found.left)?)?;
            }
        }
    }
    Ok(())
}

/// Returns the shared runs; `None` if there are none.
fn shared(mine: &OwnPart<'_>, theirs: &PeerPart<'_>, runs_max: usize) -> Result<Option<PlanPart>> {
    let Some(region) = mine.region.shared(&theirs.region) else {
        return Ok(None);
    };
    let mut runs = Vec::with_capacity(region.start.len());
    for dimension in 0..region.start.len() {
        let begin = mine.region.start[dimension];
        let own = OwnSide {
            end: DimensionEnd {
                axis: &mine.axes[dimension],
                is_packed: mine.is_packed,
            },
            coordinate: mine.coordinates[dimension],
            stride: mine.local.strides[dimension],
            jump: mine.local.jumps[dimension],
            from: region.start[dimension] - begin,
            to: region.stop[dimension] - begin,
        };
        let end = DimensionEnd {
            axis: &theirs.axes[dimension],
            is_packed: theirs.is_packed,
        };
        let shift = begin as i64 - theirs.region.start[dimension] as i64;
        let list = SharedRuns::between(&own, &end, shift, runs_max.min(RUNS_MAX))?;
        if list.is_empty() {
            return Ok(None);
        }
        runs.push(list);
    }
    Ok(Some(PlanPart {
        runs,
        local: mine.local.clone(),
        begin: mine.region.start.clone(),
        slab: theirs.slab,
    }))
}
