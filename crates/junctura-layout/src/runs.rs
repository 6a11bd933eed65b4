//! The intersection of two ranks, or of one and all others, in one dimension: ranges that are contiguous on both sides.
//!
//! Two cyclic dimensions repeat after the least common multiple of their cycles. The list has one such period; later ones
//! are a fixed step further on both sides.

use junctura_model::{Code, Error, Result};

use crate::Axis;
use crate::axis::MemorySpot;

/// A run of indices that a rank and a peer have in common, contiguous in the memory of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexRun {
    /// The peer's coordinate in this dimension.
    pub peer: u64,
    /// The first index in the rank's own layout.
    pub start: u64,
    /// The number of indices.
    pub length: u64,
    /// The offset of the first index in the rank's own memory, in elements.
    pub mine: u64,
    /// Blocks before it in the peer's memory; 0 where the peer's blocks are contiguous.
    pub their_block: u64,
    /// Indices before it in the peer's memory, or in that block.
    pub theirs: u64,
}

/// The runs that one coordinate of a dimension shares with all coordinates of the other side, in the order of its
/// memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRuns {
    first: Vec<IndexRun>,
    /// The number of indices after which the list repeats.
    period: u64,
    /// The number of full periods.
    whole: u64,
    /// The number of indices after them.
    rest: u64,
    start: u64,
    step: RunStep,
}

/// The distance from one period to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RunStep {
    mine: u64,
    theirs: MemorySpot,
}

/// One side of a dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DimensionEnd<'a> {
    pub(crate) axis: &'a Axis,
    pub(crate) is_packed: bool,
}

/// The rank's own side of a dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnSide<'a> {
    pub(crate) end: DimensionEnd<'a>,
    pub(crate) coordinate: u64,
    pub(crate) stride: u64,
    pub(crate) jump: u64,
    /// The indices of both sides, as the rank's own side counts them.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// The period after which a dimension repeats.
#[derive(Clone, Copy, Debug)]
enum RepeatPeriod {
    Always,
    After(u64),
    Never,
}

impl OwnSide<'_> {
    /// As [`DimensionEnd::repeats`]; one's own strides also show whether packed blocks have no gaps between them.
    fn repeats(&self) -> RepeatPeriod {
        match self.end.axis {
            Axis::Cyclic { parts: 1, block, .. } if block.checked_mul(self.stride) == Some(self.jump) => {
                RepeatPeriod::Always
            }
            _ => self.end.repeats(),
        }
    }

    /// Returns the elements of one's own memory between an index and the one so many indices further, if the dimension
    /// repeats there.
    fn step(&self, indices: u64) -> u64 {
        if let RepeatPeriod::Always = self.repeats() {
            return indices * self.stride;
        }
        let step = self.end.step(indices);
        step.block * self.jump + step.within * self.stride
    }
}

impl DimensionEnd<'_> {
    fn repeats(&self) -> RepeatPeriod {
        match self.axis {
            // One coordinate has all indices, and its blocks are contiguous.
            Axis::Cyclic { parts: 1, .. } if !self.is_packed => RepeatPeriod::Always,
            axis => axis.cycle().map_or(RepeatPeriod::Never, RepeatPeriod::After),
        }
    }

    /// Returns the place so many indices further, if the dimension repeats there.
    fn step(&self, indices: u64) -> MemorySpot {
        match self.axis {
            Axis::Cyclic { parts, block, .. } => {
                let cycles = indices / (parts * block);
                match self.repeats() {
                    RepeatPeriod::Always => MemorySpot {
                        block: 0,
                        within: indices,
                    },
                    _ if self.is_packed => MemorySpot {
                        block: cycles,
                        within: 0,
                    },
                    _ => MemorySpot {
                        block: 0,
                        within: cycles * block,
                    },
                }
            }
            Axis::Cuts(_) => MemorySpot::default(),
        }
    }
}

fn period(mine: RepeatPeriod, theirs: RepeatPeriod, extent: u64) -> u64 {
    match (mine, theirs) {
        (RepeatPeriod::Never, _) | (_, RepeatPeriod::Never) | (RepeatPeriod::Always, RepeatPeriod::Always) => extent,
        (RepeatPeriod::After(cycle), RepeatPeriod::Always) | (RepeatPeriod::Always, RepeatPeriod::After(cycle)) => {
            cycle
        }
        (RepeatPeriod::After(one), RepeatPeriod::After(two)) => (one / gcd(one, two)).saturating_mul(two),
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl SharedRuns {
    /// Returns the intersection of `own` with all coordinates of `theirs`, whose index is one's own plus `shift`.
    ///
    /// # Errors
    /// `LimitExceeded` for more than `runs_max` runs, those that join included.
    pub(crate) fn between(own: &OwnSide<'_>, theirs: &DimensionEnd<'_>, shift: i64, runs_max: usize) -> Result<Self> {
        let extent = own.to.saturating_sub(own.from);
        let period = period(own.repeats(), theirs.repeats(), extent).clamp(1, extent.max(1));
        let mut runs = Self {
            first: Vec::new(),
            period,
            whole: extent / period,
            rest: extent % period,
            start: own.from,
            step: RunStep {
                mine: own.step(period),
                theirs: theirs.step(period),
            },
        };
        if extent > 0 {
            runs.sweep(own, theirs, shift, runs_max).ok_or_else(|| {
                let cause = format!("more than {runs_max} runs of one dimension");
                Error::new(Code::LimitExceeded, "plan", cause)
            })?;
            runs.first.shrink_to_fit();
        }
        Ok(runs)
    }

    /// Lists the first period: each of one's own blocks, and the peers that it meets. `None` for more runs than are left.
    fn sweep(&mut self, own: &OwnSide<'_>, theirs: &DimensionEnd<'_>, shift: i64, mut left: usize) -> Option<()> {
        let limit = own.from + self.period;
        let blocks = own.end.axis.own(own.coordinate);
        let (length, cycle, mut stop) = match own.repeats() {
            RepeatPeriod::Always => (u64::MAX / 4, u64::MAX / 4, limit),
            _ => (blocks.block, blocks.cycle, blocks.stop),
        };
        if stop <= own.from {
            stop += ((own.from - stop) / cycle + 1) * cycle;
        }
        let mut spot = None;
        while stop.saturating_sub(length) < limit {
            let start = stop.saturating_sub(length).max(own.from);
            let end = stop.min(limit);
            if start < end {
                let at = spot.unwrap_or_else(|| spot_of(&own.end, start));
                self.meet(own, theirs, (start, end, at), shift, &mut left)?;
                let next = if own.end.is_packed {
                    MemorySpot {
                        block: at.block + 1,
                        within: 0,
                    }
                } else {
                    MemorySpot {
                        block: 0,
                        within: at.within + (end - start),
                    }
                };
                spot = Some(next);
            }
            stop = stop.saturating_add(cycle);
        }
        Some(())
    }

    /// Lists the peers that one of one's own blocks meets.
    fn meet(
        &mut self,
        own: &OwnSide<'_>,
        theirs: &DimensionEnd<'_>,
        (start, end, spot): (u64, u64, MemorySpot),
        shift: i64,
        left: &mut usize,
    ) -> Option<()> {
        let mut index = start;
        let mut mine = spot.block * own.jump + spot.within * own.stride;
        for met in theirs.axis.walk(start.wrapping_add_signed(shift), theirs.is_packed) {
            let stop = met.stop.wrapping_add_signed(-shift).min(end);
            let length = stop - index;
            let run = IndexRun {
                peer: met.owner,
                start: index,
                length,
                mine,
                their_block: met.spot.block,
                theirs: met.spot.within,
            };
            // Runs that join the last one take time, too.
            *left = left.checked_sub(1)?;
            self.push(run, own.stride);
            mine += length * own.stride;
            index = stop;
            if index == end {
                break;
            }
        }
        Some(())
    }

    /// Adds a run, merged with the last one if it follows that on both sides.
    fn push(&mut self, run: IndexRun, stride: u64) {
        if let Some(last) = self.first.last_mut() {
            let is_next = last.peer == run.peer
                && last.start + last.length == run.start
                && last.mine + last.length * stride == run.mine
                && last.their_block == run.their_block
                && last.theirs + last.length == run.theirs;
            if is_next {
                last.length += run.length;
                return;
            }
        }
        self.first.push(run);
    }

    /// Returns the runs of one period.
    #[must_use]
    pub fn first(&self) -> &[IndexRun] {
        &self.first
    }

    /// Returns the number of indices after which they repeat.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Returns the number of periods; the last one may be partial.
    #[must_use]
    pub fn periods(&self) -> u64 {
        self.whole + u64::from(self.rest > 0)
    }

    /// Iterates over all runs, in the order of one's own memory.
    pub fn each(&self) -> impl Iterator<Item = IndexRun> + '_ {
        self.of_periods(0, self.periods())
    }

    /// Iterates over the runs of some periods.
    pub fn of_periods(&self, from: u64, to: u64) -> impl Iterator<Item = IndexRun> + '_ {
        let last = self.start + self.rest;
        (from..to.min(self.periods())).flat_map(move |number| {
            let is_part = number == self.whole;
            let within = self.first.iter().take_while(move |run| !is_part || run.start < last);
            within.map(move |run| {
                let length = if is_part {
                    run.length.min(last - run.start)
                } else {
                    run.length
                };
                IndexRun {
                    peer: run.peer,
                    start: run.start + number * self.period,
                    length,
                    mine: run.mine + number * self.step.mine,
                    their_block: run.their_block + number * self.step.theirs.block,
                    theirs: run.theirs + number * self.step.theirs.within,
                }
            })
        })
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn count(&self) -> u64 {
        let rest = self.first.partition_point(|run| run.start < self.start + self.rest) as u64;
        self.first.len() as u64 * self.whole + if self.rest > 0 { rest } else { 0 }
    }

    /// Returns the number of their indices.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.first.iter().map(|run| self.length_of(run)).sum()
    }

    /// Whether nothing is shared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns the number of all indices of a run and its repetitions.
    fn length_of(&self, run: &IndexRun) -> u64 {
        run.length * self.whole + (self.start + self.rest).saturating_sub(run.start).min(run.length)
    }

    /// Returns the coordinates that share indices, and how many, by coordinate.
    #[must_use]
    pub fn peers(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<(u64, u64)> = self.first.iter().map(|run| (run.peer, self.length_of(run))).collect();
        all.sort_unstable();
        all.dedup_by(|(peer, more), (last, sum)| {
            let is_same = peer == last;
            if is_same {
                *sum += *more;
            }
            is_same
        });
        all
    }
}

fn spot_of(end: &DimensionEnd<'_>, index: u64) -> MemorySpot {
    let met = end.axis.walk(index, end.is_packed).next();
    met.map_or_else(MemorySpot::default, |met| met.spot)
}
