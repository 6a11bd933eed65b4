//! A part of a plan, prepared for a walk in the order of the destination: the slowest dimension, and all places in units of
//! whole elements.
//!
//! All peers are merged: one list for each dimension, in the order of the destination, and each entry names the coordinate
//! of its source. A combination of coordinates is a source, whose base and steps are looked up once for each row.

use std::ops::Range;

use junctura_layout::{DIMENSIONS_MAX, IndexRun, Local, Order, SharedRuns};
use junctura_model::{Code, Error, Result};

/// Numbers of each dimension, in the order of the walk.
pub(crate) type Each = [u64; DIMENSIONS_MAX];

/// The product of a list for each dimension, slowest first.
#[derive(Clone, Debug)]
pub(crate) struct ListProduct {
    pub(crate) dims: Vec<ProductDim>,
    /// For each combination of coordinates, that of the last dimension quickest.
    pub(crate) sources: Vec<PeerSource>,
    /// Elements before it in the destination.
    pub(crate) base: u64,
    /// Whether the source consists of consecutive blocks.
    pub(crate) is_by_block: bool,
}

/// A source and its arrangement, in elements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerSource {
    /// Which of the memories that are read.
    pub(crate) piece: usize,
    pub(crate) base: u64,
    pub(crate) strides: Each,
    pub(crate) jumps: Each,
}

/// One dimension.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProductDim {
    /// How many different coordinates its entries name.
    pub(crate) coordinates: usize,
    /// Elements from one index to the next in the memory that is written.
    pub(crate) stride: u64,
    /// One list, or one for each block where the destination consists of consecutive blocks.
    pub(crate) lists: Vec<EntryList>,
}

/// Entries, most of which may repeat.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryList {
    /// Indices before it.
    pub(crate) before: u64,
    /// Of one period.
    pub(crate) first: Vec<IndexSegment>,
    /// How many such periods there are.
    pub(crate) periods: u64,
    /// From one to the next.
    pub(crate) step: PeriodStep,
    /// Of the last period, which may be a part of one.
    pub(crate) tail: Vec<IndexSegment>,
}

/// With more entries a packed dimension is written row by row, not block by block: each block has a list of its own.
const BLOCKS_SEGS_MAX: u64 = 1 << 16;

/// Indices that are contiguous in the source and in the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexSegment {
    /// The number of the coordinate.
    pub(crate) source: usize,
    /// The place of the first in the destination, in elements.
    pub(crate) into: u64,
    /// Of the source's blocks.
    pub(crate) block: u64,
    /// Of the source's indices.
    pub(crate) within: u64,
    pub(crate) length: u64,
}

/// From one period to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeriodStep {
    pub(crate) into: u64,
    pub(crate) block: u64,
    pub(crate) within: u64,
}

/// Selects entries of a plan's list, and which side is read and which written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntrySide {
    /// All, from the peers into one's own memory.
    Gather,
    /// Those of one coordinate, out of one's own memory into a dense message.
    Pack(u64),
    /// Those of one coordinate, out of a dense message into one's own memory.
    Unpack(u64),
}

impl ListProduct {
    /// Indices of each dimension.
    pub(crate) fn elements(&self) -> u64 {
        self.dims.iter().map(ProductDim::elements).product()
    }

    /// Bytes of its lists.
    pub(crate) fn bytes(&self) -> usize {
        let of_dims = self.dims.iter().map(ProductDim::bytes).sum::<usize>();
        let (dims, sources) = (self.dims.capacity(), self.sources.capacity());
        dims * size_of::<ProductDim>() + sources * size_of::<PeerSource>() + of_dims
    }

    /// One thread's share of the indices of a dimension.
    pub(crate) fn share(&self, dim: usize, (share, of): (u64, u64)) -> Range<u64> {
        let indices = u128::from(self.dims[dim].elements());
        let end = |share: u64| (indices * u128::from(share) / u128::from(of)) as u64;
        end(share)..end(share + 1)
    }

    /// Returns one thread's share of the rows: the slowest dimension that has several indices, and its range. One row uses
    /// one thread.
    pub(crate) fn split(&self, share: (u64, u64)) -> Option<(usize, Range<u64>)> {
        let last = self.dims.len() - 1;
        match (0..last).find(|&dim| self.dims[dim].elements() > 1) {
            Some(dim) => Some((dim, self.share(dim, share))),
            None => (share.0 == 0).then_some((last, 0..u64::MAX)),
        }
    }

    /// Compares all that will be read and written with what there is: `rooms` of what is read, `room` of what is written, in elements.
    ///
    /// # Errors
    /// `Corrupt` where a place is outside, which a plan never has.
    pub(crate) fn check(&self, rooms: &[u64], room: u64) -> Result<()> {
        let outside = || {
            Err(Error::new(
                Code::Corrupt,
                "plan",
                "it reaches outside of a rank's memory",
            ))
        };
        let last = |dim: &ProductDim| dim.ends().map(|(_, end)| end.into).max();
        let written = self.dims.iter().map(last).sum::<Option<u64>>();
        if written.is_some_and(|last| self.base + last >= room) {
            return outside();
        }
        let mut ends: Vec<Vec<Vec<PeriodStep>>> = Vec::new();
        for dim in &self.dims {
            let mut of_dim = vec![Vec::new(); dim.coordinates];
            dim.ends().for_each(|(source, end)| of_dim[source].push(end));
            ends.push(of_dim);
        }
        for (number, source) in self.sources.iter().enumerate() {
            let mut left = number;
            let mut last = source.base;
            for (at, of_dim) in ends.iter().enumerate().rev() {
                let place = |end: &PeriodStep| end.block * source.jumps[at] + end.within * source.strides[at];
                last += of_dim[left % of_dim.len()].iter().map(place).max().unwrap_or(0);
                left /= of_dim.len();
            }
            if last >= rooms[source.piece] {
                return outside();
            }
        }
        Ok(())
    }
}

impl ProductDim {
    /// Of a plan's list; `sources` are the coordinates that count, ascending.
    pub(crate) fn new(runs: &SharedRuns, side: EntrySide, sources: &[u64], (stride, jump): (u64, u64)) -> Self {
        let whole = runs.periods().saturating_sub(1);
        let mut placed = PlacedRuns {
            side,
            sources,
            count: 0,
        };
        let mut first: Vec<IndexSegment> = runs
            .of_periods(0, whole.min(1))
            .filter_map(|run| placed.seg(run))
            .collect();
        first.shrink_to_fit();
        let of_period = placed.count;
        let mut next = runs.of_periods(1, 2);
        let step = match (first.first(), next.find_map(|run| placed.seg(run))) {
            (Some(one), Some(two)) => PeriodStep {
                into: two.into - one.into,
                block: two.block - one.block,
                within: two.within - one.within,
            },
            _ => PeriodStep::default(),
        };
        placed.count = of_period * whole;
        let tail = runs.of_periods(whole, whole + 1);
        let mut tail: Vec<IndexSegment> = tail.filter_map(|run| placed.seg(run)).collect();
        tail.shrink_to_fit();
        let entries = EntryList {
            before: 0,
            tail,
            first,
            periods: whole,
            step,
        };
        let is_by_block = jump > 0 && runs.count() <= BLOCKS_SEGS_MAX;
        Self {
            coordinates: sources.len(),
            stride,
            lists: if is_by_block {
                entries.by_block(jump)
            } else {
                vec![entries]
            },
        }
    }

    fn bytes(&self) -> usize {
        let of_list = |list: &EntryList| (list.first.capacity() + list.tail.capacity()) * size_of::<IndexSegment>();
        self.lists.capacity() * size_of::<EntryList>() + self.lists.iter().map(of_list).sum::<usize>()
    }

    /// Makes indices of a dense array into elements.
    pub(crate) fn scale_into(&mut self, stride: u64) {
        for list in &mut self.lists {
            let segs = list.first.iter_mut().chain(&mut list.tail);
            segs.for_each(|seg| seg.into *= stride);
            list.step.into *= stride;
        }
    }

    /// Iterates over all segments, in the order of the destination.
    pub(crate) fn each(&self) -> impl Iterator<Item = IndexSegment> + '_ {
        self.lists.iter().flat_map(EntryList::each)
    }

    pub(crate) fn elements(&self) -> u64 {
        self.lists.iter().map(EntryList::elements).sum()
    }

    /// The places of the last index of each entry, of the last of its periods.
    fn ends(&self) -> impl Iterator<Item = (usize, PeriodStep)> + '_ {
        self.lists.iter().flat_map(EntryList::last).map(|seg| {
            let end = PeriodStep {
                into: seg.into + (seg.length - 1) * self.stride,
                block: seg.block,
                within: seg.within + seg.length - 1,
            };
            (seg.source, end)
        })
    }
}

impl EntryList {
    pub(crate) fn each(&self) -> impl Iterator<Item = IndexSegment> + '_ {
        self.of_periods(0, self.periods).chain(self.tail.iter().copied())
    }

    pub(crate) fn of_periods(&self, from: u64, to: u64) -> impl Iterator<Item = IndexSegment> + '_ {
        let segs = move |number| self.first.iter().map(move |seg| seg.moved(self.step, number));
        (from..to).flat_map(segs)
    }

    /// All from the one on that has this of its indices, each with the index of its first.
    pub(crate) fn from(&self, index: u64) -> impl Iterator<Item = (u64, IndexSegment)> + '_ {
        let of_period: u64 = self.first.iter().map(|seg| seg.length).sum();
        let skipped = index.checked_div(of_period).unwrap_or(0).min(self.periods);
        let all = self.of_periods(skipped, self.periods).chain(self.tail.iter().copied());
        let counted = all.scan(skipped * of_period, |next, seg| {
            let at = *next;
            *next += seg.length;
            Some((at, seg))
        });
        counted.skip_while(move |(at, seg)| at + seg.length <= index)
    }

    pub(crate) fn count(&self) -> u64 {
        self.first.len() as u64 * self.periods + self.tail.len() as u64
    }

    /// Each entry, in the last of its periods.
    fn last(&self) -> impl Iterator<Item = IndexSegment> + '_ {
        self.of_periods(self.periods.saturating_sub(1), self.periods)
            .chain(self.tail.iter().copied())
    }

    pub(crate) fn elements(&self) -> u64 {
        let count = |segs: &[IndexSegment]| segs.iter().map(|seg| seg.length).sum::<u64>();
        count(&self.first) * self.periods + count(&self.tail)
    }

    /// Makes one for each block of the destination; the blocks are so many elements apart.
    fn by_block(&self, jump: u64) -> Vec<Self> {
        let mut lists: Vec<Self> = Vec::new();
        let mut before = 0;
        let mut block = None;
        for seg in self.each() {
            if block.replace(seg.into / jump) != Some(seg.into / jump) {
                lists.push(Self {
                    before,
                    ..Self::default()
                });
            }
            before += seg.length;
            if let Some(list) = lists.last_mut() {
                list.tail.push(seg);
            }
        }
        lists
    }
}

impl IndexSegment {
    /// Of its indices those from `from` to `to`.
    pub(crate) fn part(mut self, from: u64, to: u64, stride: u64) -> Self {
        self.into += from * stride;
        self.within += from;
        self.length = to - from;
        self
    }

    pub(crate) fn moved(mut self, by: PeriodStep, times: u64) -> Self {
        self.into += by.into * times;
        self.block += by.block * times;
        self.within += by.within * times;
        self
    }
}

/// Turns runs into entries.
struct PlacedRuns<'s> {
    side: EntrySide,
    sources: &'s [u64],
    /// Indices that a dense message has so far.
    count: u64,
}

impl PlacedRuns<'_> {
    fn seg(&mut self, run: IndexRun) -> Option<IndexSegment> {
        let before = self.count;
        let mut seg = IndexSegment {
            source: 0,
            into: run.mine,
            block: 0,
            within: before,
            length: run.length,
        };
        match self.side {
            EntrySide::Gather => {
                seg.source = self.sources.binary_search(&run.peer).ok()?;
                (seg.block, seg.within) = (run.their_block, run.theirs);
            }
            EntrySide::Pack(peer) | EntrySide::Unpack(peer) if peer != run.peer => return None,
            // One's own places are in elements already: as blocks of one.
            EntrySide::Pack(_) => (seg.into, seg.block, seg.within) = (before, run.mine, 0),
            EntrySide::Unpack(_) => {}
        }
        self.count += run.length;
        Some(seg)
    }
}

/// Returns the dimensions of a memory, slowest first, with these counts: dimensions with a single index do not count.
pub(crate) fn walk_order(local: &Local, counts: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&at| {
        let is_long = counts[at] > 1;
        (is_long, std::cmp::Reverse((local.strides[at], local.jumps[at])))
    });
    order
}

/// Returns the steps of a dense array whose dimensions have this order, slowest first.
pub(crate) fn dense(counts: &[u64], order: &[usize]) -> Vec<u64> {
    let turned = order.iter().map(|&at| counts[at]).collect();
    let local = Local::dense(turned, Order::C);
    let mut strides = vec![0; counts.len()];
    for (&at, stride) in order.iter().zip(local.strides) {
        strides[at] = stride;
    }
    strides
}
