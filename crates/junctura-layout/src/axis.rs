//! One dimension of an array, and the owners of its indices.
//!
//! ```text
//!   blocks of 3 dealt out to 2, from the second index of the cycle on:   offset 1
//!
//!   cycle      |. 0 0|1 1 1|0 0 0|1 1 1|0 ...
//!   index         0 1 2 3 4 5 6 7 ...
//! ```
//! Positions count from where the first cycle begins, `offset` in front of index 0.

use junctura_model::{Code, Error, Result};

/// The split of one dimension among the coordinates of a grid of ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Blocks of the same length, distributed cyclically. With one block each this is a block layout, with blocks of
    /// one index a cyclic layout.
    Cyclic {
        /// The number of coordinates.
        parts: u64,
        /// The number of indices of a block.
        block: u64,
        /// The number of indices by which the first cycle begins before the array.
        offset: u64,
    },
    /// Coordinate `p` has the indices from `cuts[p]` up to, not including, `cuts[p + 1]`.
    Cuts(Vec<u64>),
}

/// The place of consecutive indices of one coordinate in its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemorySpot {
    /// The block, counted from the coordinate's own first; always 0 where blocks are contiguous.
    pub(crate) block: u64,
    /// The place within the block, or within all blocks where they are contiguous.
    pub(crate) within: u64,
}

/// A range of indices of one coordinate that are consecutive in its memory, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexStretch {
    pub(crate) owner: u64,
    pub(crate) start: u64,
    pub(crate) stop: u64,
    /// The place of `start`.
    pub(crate) spot: MemorySpot,
}

impl Axis {
    /// Returns the split in which one coordinate has all indices.
    pub(crate) fn whole(extent: u64) -> Self {
        Self::Cyclic {
            parts: 1,
            block: extent.max(1),
            offset: 0,
        }
    }

    /// Returns the number of coordinates.
    #[must_use]
    pub fn parts(&self) -> u64 {
        match self {
            Self::Cyclic { parts, .. } => *parts,
            Self::Cuts(cuts) => cuts.len() as u64 - 1,
        }
    }

    pub(crate) fn check(&self, extent: u64) -> Result<()> {
        let wrong = |what: &str, cause: String| Err(Error::new(Code::InvalidArgument, what, cause));
        match self {
            Self::Cyclic { parts: 0, .. } => wrong("grid", "a dimension without ranks".to_owned()),
            Self::Cyclic { block: 0, .. } => wrong("block", "a block must have at least one index".to_owned()),
            Self::Cyclic { parts, block, offset } => match parts.checked_mul(*block) {
                Some(cycle) if cycle > crate::ELEMENTS_MAX => {
                    wrong("block", format!("{parts} blocks of {block} are too many indices"))
                }
                None => wrong("block", format!("{parts} blocks of {block} are too many indices")),
                Some(cycle) if *offset >= cycle => wrong(
                    "offset",
                    format!("{offset} is not within the first cycle of {parts} blocks of {block}"),
                ),
                Some(_) => Ok(()),
            },
            Self::Cuts(cuts) => match (cuts.first(), cuts.last()) {
                (Some(0), Some(&last)) if last == extent && cuts.len() > 1 && cuts.is_sorted() => Ok(()),
                _ => wrong("cuts", format!("they must rise from 0 to {extent}")),
            },
        }
    }

    /// Returns the coordinate that has an index.
    #[must_use]
    pub fn owner(&self, index: u64) -> u64 {
        match self {
            Self::Cyclic { parts, block, offset } => (index + offset) / block % parts,
            Self::Cuts(cuts) => cuts.partition_point(|&cut| cut <= index) as u64 - 1,
        }
    }

    /// Returns how many of the first `extent` indices a coordinate has.
    #[must_use]
    pub fn count(&self, extent: u64, coordinate: u64) -> u64 {
        match self {
            Self::Cyclic { .. } => self.own_before(extent, coordinate),
            Self::Cuts(cuts) => cuts[coordinate as usize + 1] - cuts[coordinate as usize],
        }
    }

    /// Returns the number of coordinates that have indices of a dimension of this extent.
    pub(crate) fn owners(&self, extent: u64) -> u64 {
        match self {
            _ if extent == 0 => 0,
            Self::Cyclic { parts, block, offset } => {
                let blocks = (offset + extent - 1) / block - offset / block + 1;
                blocks.min(*parts)
            }
            Self::Cuts(cuts) => cuts.windows(2).filter(|cut| cut[0] < cut[1]).count() as u64,
        }
    }

    /// Returns how many of the indices before this one belong to a coordinate.
    fn own_before(&self, index: u64, coordinate: u64) -> u64 {
        match self {
            Self::Cyclic { parts, block, offset } => {
                let before = |position: u64| {
                    let (cycles, rest) = (position / (parts * block), position % (parts * block));
                    cycles * block + rest.saturating_sub(coordinate * block).min(*block)
                };
                before(index + offset) - before(*offset)
            }
            Self::Cuts(cuts) => {
                let (start, stop) = (cuts[coordinate as usize], cuts[coordinate as usize + 1]);
                index.clamp(start, stop) - start
            }
        }
    }

    /// Returns the offset of an index from the first one of its owner.
    #[must_use]
    pub fn local(&self, index: u64) -> u64 {
        self.own_before(index, self.owner(index))
    }

    /// Returns the index at this offset from a coordinate's first one; the extent decides whether it exists.
    #[must_use]
    pub fn global(&self, coordinate: u64, local: u64) -> u64 {
        match self {
            Self::Cyclic { parts, block, offset } => {
                let position = local + self.missing(coordinate);
                let (cycle, within) = (position / block, position % block);
                (cycle * parts + coordinate) * block + within - offset
            }
            Self::Cuts(cuts) => cuts[coordinate as usize] + local,
        }
    }

    /// Returns how many indices of a coordinate are in the part of the first cycle before the array.
    fn missing(&self, coordinate: u64) -> u64 {
        match self {
            Self::Cyclic { block, offset, .. } => offset.saturating_sub(coordinate * block).min(*block),
            Self::Cuts(_) => 0,
        }
    }

    /// Returns the number of a coordinate's blocks, partial ones at both ends included.
    pub(crate) fn blocks(&self, extent: u64, coordinate: u64) -> u64 {
        match self {
            Self::Cyclic { block, .. } => match self.count(extent, coordinate) {
                0 => 0,
                count => (self.missing(coordinate) % block + count).div_ceil(*block),
            },
            Self::Cuts(_) => u64::from(self.count(extent, coordinate) > 0),
        }
    }

    /// Returns the size of a block in memory: that of the longest block.
    pub(crate) fn block_room(&self, extent: u64, coordinate: u64) -> u64 {
        match self {
            Self::Cyclic { block, .. } => *block,
            Self::Cuts(_) => self.count(extent, coordinate),
        }
    }

    /// Returns the number of indices after which the split repeats, if it does.
    pub(crate) fn cycle(&self) -> Option<u64> {
        match self {
            Self::Cyclic { parts, block, .. } => Some(parts * block),
            Self::Cuts(_) => None,
        }
    }

    /// Walks over the stretches of all coordinates, from that of an index on.
    pub(crate) fn walk(&self, index: u64, is_packed: bool) -> AxisWalk<'_> {
        AxisWalk {
            axis: self,
            is_packed,
            is_whole: self.parts() == 1 && !is_packed,
            at: match self {
                Self::Cyclic { parts, block, offset } => {
                    let number = (index + offset) / block;
                    AxisBlock {
                        cycle: number / parts,
                        owner: number % parts,
                        stop: (number + 1) * block - offset,
                    }
                }
                Self::Cuts(_) => {
                    let owner = self.owner(index);
                    AxisBlock {
                        cycle: 0,
                        owner,
                        stop: index,
                    }
                }
            },
            index,
        }
    }

    /// Returns the first index of a coordinate, and the distance between its blocks.
    pub(crate) fn own(&self, coordinate: u64) -> OwnIndices {
        match self {
            Self::Cyclic { parts, block, offset } => {
                let begin = coordinate * block;
                let cycle = parts * block;
                let begin = if begin + block <= *offset { begin + cycle } else { begin };
                OwnIndices {
                    // The first block may begin in front of the array.
                    stop: begin + block - offset,
                    block: *block,
                    cycle,
                }
            }
            Self::Cuts(cuts) => {
                let (start, stop) = (cuts[coordinate as usize], cuts[coordinate as usize + 1]);
                OwnIndices {
                    stop,
                    block: stop - start,
                    cycle: u64::MAX / 2,
                }
            }
        }
    }

    /// Returns the place of an index in its owner's memory.
    fn spot(&self, cycle: u64, owner: u64, within: u64, is_packed: bool) -> MemorySpot {
        match self {
            Self::Cyclic { block, .. } if is_packed => MemorySpot {
                block: cycle - u64::from(self.missing(owner) == *block),
                within,
            },
            Self::Cyclic { block, .. } => MemorySpot {
                block: 0,
                within: cycle * block + within - self.missing(owner),
            },
            Self::Cuts(_) => MemorySpot { block: 0, within },
        }
    }
}

/// See [`Axis::own`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnIndices {
    /// Behind the first block.
    pub(crate) stop: u64,
    pub(crate) block: u64,
    pub(crate) cycle: u64,
}

/// The current block of a walk.
#[derive(Clone, Copy, Debug)]
struct AxisBlock {
    cycle: u64,
    owner: u64,
    stop: u64,
}

/// See [`Axis::walk`].
#[derive(Debug)]
pub(crate) struct AxisWalk<'a> {
    axis: &'a Axis,
    is_packed: bool,
    /// One has all, one behind the other.
    is_whole: bool,
    at: AxisBlock,
    index: u64,
}

impl Iterator for AxisWalk<'_> {
    type Item = IndexStretch;

    /// Without an end in cyclic dimensions.
    fn next(&mut self) -> Option<IndexStretch> {
        let (start, block) = (self.index, self.at);
        if self.is_whole {
            // Behind all that there could be.
            self.index = u64::MAX / 4;
            return Some(IndexStretch {
                owner: 0,
                start,
                stop: self.index,
                spot: MemorySpot {
                    block: 0,
                    within: start,
                },
            });
        }
        match self.axis {
            Axis::Cyclic {
                parts, block: length, ..
            } => {
                let within = length - (block.stop - start);
                self.index = block.stop;
                self.at.stop += length;
                self.at.owner += 1;
                if self.at.owner == *parts {
                    (self.at.owner, self.at.cycle) = (0, block.cycle + 1);
                }
                Some(IndexStretch {
                    owner: block.owner,
                    start,
                    stop: block.stop,
                    spot: self.axis.spot(block.cycle, block.owner, within, self.is_packed),
                })
            }
            Axis::Cuts(cuts) => {
                let mut owner = block.owner as usize;
                // Some have nothing.
                while *cuts.get(owner + 1)? <= start {
                    owner += 1;
                }
                self.index = cuts[owner + 1];
                self.at.owner = owner as u64 + 1;
                let within = start - cuts[owner];
                Some(IndexStretch {
                    owner: owner as u64,
                    start,
                    stop: self.index,
                    spot: MemorySpot { block: 0, within },
                })
            }
        }
    }
}
