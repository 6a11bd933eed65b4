//! An array's shape, the rank of each element, and its place in that rank's memory.

use junctura_model::{Code, Error, Result};

use crate::axis::MemorySpot;
use crate::{Axis, DIMENSIONS_MAX, ELEMENTS_MAX, RANKS_MAX, RankSlabs, Slab};

/// Which dimension varies fastest.
///
/// ```
/// # use junctura_layout::{Layout, Order};
/// # fn main() -> junctura_model::Result<()> {
/// let layout: Layout = "shape=6x4 order=F".parse()?;
/// assert_eq!(layout.order(), Order::F);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last, as in C and in `NumPy`: row-major.
    #[default]
    C,
    /// The first, as in Fortran: column-major.
    F,
}

/// The distribution of elements over ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// A grid of ranks; each dimension is split by itself.
    Grid {
        /// How each dimension is split.
        axes: Vec<Axis>,
        /// How ranks are numbered over the grid.
        ranks: Order,
    },
    /// Boxes of indices for each rank.
    Slabs(RankSlabs),
}

/// The arrangement of one rank's elements in its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Storage {
    /// One array of all indices that a rank has, without gaps.
    #[default]
    Dense,
    /// Block after block, each with the room of a full one.
    Packed,
    /// One array with these distances between neighbors in each dimension, in elements, the same for all ranks.
    Strided(Vec<u64>),
}

/// See the module. It is a value: ranks with the same text have the same layout.
///
/// ```
/// # use junctura_layout::{Layout, Order};
/// # fn main() -> junctura_model::Result<()> {
/// let layout: Layout = "shape=6x4 grid=2x1".parse()?;
/// assert_eq!((layout.ranks(), layout.order()), (2, Order::C));
/// // The owner of an element, and its place there.
/// assert_eq!(layout.locate(&[3, 1]), Some((1, 1)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    shape: Vec<u64>,
    distribution: Distribution,
    order: Order,
    storage: Storage,
}

/// One rank's memory of a grid, or that of one slab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// The number of indices in each dimension.
    pub extents: Vec<u64>,
    /// Elements from one index to the next.
    pub strides: Vec<u64>,
    /// Elements from one block to the next; 0 where blocks are contiguous.
    pub jumps: Vec<u64>,
    /// Elements before it in the rank's memory.
    pub base: u64,
    /// The number of its elements in memory.
    pub room: u64,
}

impl Layout {
    /// Makes a row-major layout without gaps.
    ///
    /// # Errors
    /// `InvalidArgument`, which names the fault: there must be an axis for each dimension, at least one rank, at least
    /// one index in each block, and ascending cuts from 0 to the end; `LimitExceeded` for more than [`DIMENSIONS_MAX`],
    /// [`RANKS_MAX`], [`ELEMENTS_MAX`].
    pub fn new(shape: impl Into<Vec<u64>>, distribution: Distribution) -> Result<Self> {
        let shape = shape.into();
        check_shape(&shape)?;
        if let Distribution::Grid { axes, .. } = &distribution {
            if axes.len() != shape.len() {
                let cause = format!("{} for {} dimensions", axes.len(), shape.len());
                return Err(Error::new(Code::InvalidArgument, "grid", cause));
            }
            for (axis, &extent) in axes.iter().zip(&shape) {
                axis.check(extent)?;
            }
            let ranks = product(axes.iter().map(Axis::parts), RANKS_MAX);
            ranks.ok_or_else(|| Error::new(Code::LimitExceeded, "grid", format!("more than {RANKS_MAX} ranks")))?;
        }
        Ok(Self {
            shape,
            distribution,
            order: Order::C,
            storage: Storage::Dense,
        })
    }

    /// Distributes blocks of this size cyclically over a grid of ranks; row-major, without gaps.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn cyclic(shape: &[u64], grid: &[u64], block: &[u64]) -> Result<Self> {
        for (what, given) in [("grid", grid), ("block", block)] {
            if given.len() != shape.len() {
                let cause = format!("{} for {} dimensions", given.len(), shape.len());
                return Err(Error::new(Code::InvalidArgument, what, cause));
            }
        }
        let dealt = |(&parts, &block): (&u64, &u64)| Axis::Cyclic {
            parts,
            block,
            offset: 0,
        };
        let axes = grid.iter().zip(block).map(dealt).collect();
        Self::new(shape, Distribution::Grid { axes, ranks: Order::C })
    }

    /// Makes a layout in which one rank has all elements.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn one(shape: &[u64]) -> Result<Self> {
        let axes = shape.iter().map(|&extent| Axis::whole(extent)).collect();
        Self::new(shape, Distribution::Grid { axes, ranks: Order::C })
    }

    /// Makes a layout of boxes of indices for each rank; row-major, the boxes of a rank one after another.
    ///
    /// # Errors
    /// As [`RankSlabs::new`].
    pub fn slabs(shape: &[u64], ranks: Vec<Vec<Slab>>) -> Result<Self> {
        check_shape(shape)?;
        Self::new(shape, Distribution::Slabs(RankSlabs::new(shape, ranks)?))
    }

    /// Returns the same layout in another order and storage.
    ///
    /// # Errors
    /// `InvalidArgument` for strides with which elements would overlap, or of slabs; `LimitExceeded` where a rank's
    /// memory would have more than [`ELEMENTS_MAX`].
    pub fn stored(mut self, order: Order, storage: Storage) -> Result<Self> {
        let is_grid = matches!(self.distribution, Distribution::Grid { .. });
        if !is_grid && storage != Storage::Dense {
            let cause = "slabs are always stored contiguously";
            return Err(Error::new(Code::InvalidArgument, "storage", cause));
        }
        (self.order, self.storage) = (order, storage);
        if let Distribution::Grid { axes, .. } = &self.distribution {
            match &self.storage {
                Storage::Dense => {}
                Storage::Packed => check_room(axes, &self.shape)?,
                Storage::Strided(strides) => check_strides(axes, &self.shape, strides)?,
            }
        }
        Ok(self)
    }

    /// Returns the number of indices in each dimension.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the distribution of elements over ranks.
    #[must_use]
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// Returns which dimension varies fastest in memory.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the arrangement of one rank's elements.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the number of elements of the array.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u64 {
        match &self.distribution {
            Distribution::Grid { axes, .. } => axes.iter().map(Axis::parts).product(),
            Distribution::Slabs(slabs) => slabs.ranks().len() as u64,
        }
    }

    /// Checks that each element of the array belongs to exactly one rank, as required of a producer's layout.
    ///
    /// # Errors
    /// `InvalidArgument`, which names an overlap or a missing part.
    pub fn check_cover(&self) -> Result<()> {
        match &self.distribution {
            Distribution::Grid { .. } => Ok(()),
            Distribution::Slabs(slabs) => slabs.check_cover(&self.shape),
        }
    }

    /// Returns the coordinates of a rank in the grid; `None` for an unknown rank, or without a grid.
    #[must_use]
    pub fn coordinates(&self, rank: u64) -> Option<Vec<u64>> {
        let Distribution::Grid { axes, ranks } = &self.distribution else {
            return None;
        };
        (rank < self.ranks()).then(|| {
            let mut left = rank;
            let mut coordinates = vec![0; axes.len()];
            for dimension in quickest_first(*ranks, axes.len()) {
                let parts = axes[dimension].parts();
                coordinates[dimension] = left % parts;
                left /= parts;
            }
            coordinates
        })
    }

    /// Returns the rank at these coordinates of the grid; `None` if there is none.
    #[must_use]
    pub fn rank_at(&self, coordinates: &[u64]) -> Option<u64> {
        let Distribution::Grid { axes, ranks } = &self.distribution else {
            return None;
        };
        let is_there = coordinates.len() == axes.len();
        let is_there = is_there && axes.iter().zip(coordinates).all(|(axis, &at)| at < axis.parts());
        is_there.then(|| {
            let step = |rank: (u64, u64), dimension: usize| {
                let (sum, stride): (u64, u64) = rank;
                (sum + coordinates[dimension] * stride, stride * axes[dimension].parts())
            };
            quickest_first(*ranks, axes.len()).fold((0, 1), step).0
        })
    }

    /// Returns the memory of a rank: one part in a grid, one for each slab. Empty for an unknown rank.
    #[must_use]
    pub fn locals(&self, rank: u64) -> Vec<Local> {
        self.each_local(rank).collect()
    }

    /// Iterates over the same parts, without memory for very many.
    pub fn each_local(&self, rank: u64) -> impl Iterator<Item = Local> + '_ {
        let (of_grid, slabs) = match &self.distribution {
            Distribution::Grid { axes, .. } => {
                let coordinates = self.coordinates(rank);
                (coordinates.map(|at| self.local_of_grid(axes, &at)), None)
            }
            Distribution::Slabs(slabs) => (None, slabs.ranks().get(rank as usize)),
        };
        let of_slabs = slabs.into_iter().flatten().scan(0, |base, slab| {
            let mut local = Local::dense(slab.extents(), self.order);
            local.base = *base;
            *base += local.room;
            Some(local)
        });
        of_grid.into_iter().chain(of_slabs)
    }

    pub(crate) fn local_of_grid(&self, axes: &[Axis], coordinates: &[u64]) -> Local {
        let split = || axes.iter().zip(&self.shape).zip(coordinates);
        let extents: Vec<u64> = split().map(|((axis, &extent), &at)| axis.count(extent, at)).collect();
        match &self.storage {
            Storage::Dense => Local::dense(extents, self.order),
            Storage::Strided(strides) => Local {
                room: strided_room(&extents, strides),
                jumps: vec![0; extents.len()],
                strides: strides.clone(),
                extents,
                base: 0,
            },
            Storage::Packed => {
                let rooms: Vec<u64> = split()
                    .map(|((axis, &extent), &at)| axis.block_room(extent, at))
                    .collect();
                let blocks: Vec<u64> = split().map(|((axis, &extent), &at)| axis.blocks(extent, at)).collect();
                let block = Local::dense(rooms, self.order);
                let mut local = Local::dense(blocks, self.order);
                local.strides.iter_mut().for_each(|jump| *jump *= block.room);
                Local {
                    extents,
                    strides: block.strides,
                    jumps: local.strides,
                    base: 0,
                    room: local.room * block.room,
                }
            }
        }
    }

    /// Returns the indices of a rank of a grid, or one with a single slab, in each dimension, in the order of its
    /// memory. `None` for others.
    #[must_use]
    pub fn indices(&self, rank: u64) -> Option<Vec<Vec<u64>>> {
        match &self.distribution {
            Distribution::Grid { axes, .. } => {
                let coordinates = self.coordinates(rank)?;
                let dimensions = axes.iter().zip(&self.shape).zip(coordinates);
                let indices = dimensions.map(|((axis, &extent), coordinate)| {
                    let count = axis.count(extent, coordinate);
                    (0..count).map(|local| axis.global(coordinate, local)).collect()
                });
                Some(indices.collect())
            }
            Distribution::Slabs(slabs) => match &slabs.ranks().get(rank as usize)?[..] {
                [one] => Some(
                    (0..one.start.len())
                        .map(|at| (one.start[at]..one.stop[at]).collect())
                        .collect(),
                ),
                _ => None,
            },
        }
    }

    /// Returns the first and the last index that a rank of a grid has, or one with a single slab, in a dimension. `None` for others, where it
    /// has no index, and where there is no such dimension.
    ///
    /// ```
    /// # use junctura_layout::Layout;
    /// let columns: Layout = "shape=4x6 grid=1x3".parse()?;
    /// assert_eq!(columns.bounds(2, 1), Some((4, 5)));
    /// # Ok::<(), junctura_model::Error>(())
    /// ```
    #[must_use]
    pub fn bounds(&self, rank: u64, dimension: usize) -> Option<(u64, u64)> {
        match &self.distribution {
            Distribution::Grid { axes, .. } => {
                let (axis, &extent) = (axes.get(dimension)?, self.shape.get(dimension)?);
                let coordinate = *self.coordinates(rank)?.get(dimension)?;
                let last = axis.count(extent, coordinate).checked_sub(1)?;
                Some((axis.global(coordinate, 0), axis.global(coordinate, last)))
            }
            Distribution::Slabs(slabs) => match &slabs.ranks().get(usize::try_from(rank).ok()?)?[..] {
                [one] if one.start.get(dimension)? < one.stop.get(dimension)? => {
                    Some((one.start[dimension], one.stop[dimension] - 1))
                }
                _ => None,
            },
        }
    }

    /// Returns the number of ranks that have elements.
    #[must_use]
    pub fn owners(&self) -> u64 {
        match &self.distribution {
            Distribution::Grid { axes, .. } => {
                let owners = axes.iter().zip(&self.shape).map(|(axis, &extent)| axis.owners(extent));
                owners.product()
            }
            Distribution::Slabs(slabs) => {
                let has_any = |slabs: &&Vec<Slab>| slabs.iter().any(|slab| !slab.is_empty());
                slabs.ranks().iter().filter(has_any).count() as u64
            }
        }
    }

    /// Returns the rank that has the first element; `None` for an empty array.
    #[must_use]
    pub fn first_owner(&self) -> Option<u64> {
        let first = vec![0; self.shape.len()];
        self.locate(&first).map(|(rank, _)| rank)
    }

    /// Returns the number of elements of a rank; 0 for an unknown rank.
    #[must_use]
    pub fn own(&self, rank: u64) -> u64 {
        let locals = self.locals(rank);
        locals.iter().map(|local| local.extents.iter().product::<u64>()).sum()
    }

    /// Returns the number of elements in a rank's memory, gaps included.
    #[must_use]
    pub fn room(&self, rank: u64) -> u64 {
        self.locals(rank).iter().map(|local| local.room).sum()
    }

    /// Returns the rank of an element, and the element's place in its memory; the first of several slabs. `None` when no
    /// rank has the element.
    #[must_use]
    pub fn locate(&self, index: &[u64]) -> Option<(u64, u64)> {
        if index.len() != self.shape.len() || index.iter().zip(&self.shape).any(|(at, extent)| at >= extent) {
            return None;
        }
        match &self.distribution {
            Distribution::Grid { axes, .. } => {
                let coordinates: Vec<u64> = axes.iter().zip(index).map(|(axis, &at)| axis.owner(at)).collect();
                let local = self.local_of_grid(axes, &coordinates);
                let spots = axes.iter().zip(index).map(|(axis, &at)| self.spot(axis, at));
                Some((self.rank_at(&coordinates)?, local.position(spots)))
            }
            Distribution::Slabs(slabs) => {
                let stop: Vec<u64> = index.iter().map(|at| at + 1).collect();
                let one = Slab {
                    start: index.to_vec(),
                    stop,
                };
                let id = slabs.meeting(&one).min()?;
                let locals = self.locals(u64::from(id.0));
                let within = index.iter().zip(&slabs.get(id).start);
                let spots = within.map(|(at, start)| MemorySpot {
                    block: 0,
                    within: at - start,
                });
                Some((u64::from(id.0), locals[id.1 as usize].position(spots)))
            }
        }
    }

    fn spot(&self, axis: &Axis, index: u64) -> MemorySpot {
        let stretch = axis.walk(index, self.is_packed()).next();
        stretch.map_or_else(MemorySpot::default, |stretch| stretch.spot)
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.storage == Storage::Packed
    }
}

impl Local {
    /// Returns an array of these extents without gaps.
    #[must_use]
    pub fn dense(extents: Vec<u64>, order: Order) -> Self {
        let mut strides = vec![0; extents.len()];
        let mut room = 1;
        for dimension in quickest_first(order, extents.len()) {
            strides[dimension] = room;
            room *= extents[dimension];
        }
        Self {
            jumps: vec![0; extents.len()],
            extents,
            strides,
            base: 0,
            room,
        }
    }

    fn position(&self, spots: impl Iterator<Item = MemorySpot>) -> u64 {
        let steps = self.strides.iter().zip(&self.jumps);
        let offsets = spots
            .zip(steps)
            .map(|(spot, (stride, jump))| spot.block * jump + spot.within * stride);
        self.base + offsets.sum::<u64>()
    }
}

/// Iterates over the dimensions, from the one that varies fastest.
pub(crate) fn quickest_first(order: Order, dimensions: usize) -> impl Iterator<Item = usize> {
    (0..dimensions).map(move |at| match order {
        Order::C => dimensions - 1 - at,
        Order::F => at,
    })
}

fn product(mut factors: impl Iterator<Item = u64>, most: u64) -> Option<u64> {
    factors.try_fold(1_u64, |all, one| all.checked_mul(one).filter(|&all| all <= most))
}

fn check_shape(shape: &[u64]) -> Result<()> {
    if shape.is_empty() {
        return Err(Error::new(
            Code::InvalidArgument,
            "shape",
            "an array has at least one dimension",
        ));
    }
    if shape.len() > DIMENSIONS_MAX {
        let cause = format!("{} dimensions are more than {DIMENSIONS_MAX}", shape.len());
        return Err(Error::new(Code::LimitExceeded, "shape", cause));
    }
    // Dimensions of nothing hide how long others are.
    match product(shape.iter().map(|&extent| extent.max(1)), ELEMENTS_MAX) {
        Some(_) => Ok(()),
        None => Err(Error::new(
            Code::LimitExceeded,
            "shape",
            format!("more than {ELEMENTS_MAX} elements"),
        )),
    }
}

/// Returns the maximum number of indices of a dimension that a rank has.
fn longest(axis: &Axis, extent: u64) -> u64 {
    match axis {
        Axis::Cuts(cuts) => cuts.windows(2).map(|cut| cut[1] - cut[0]).max().unwrap_or(0),
        // The first block may be a part of one; the next is whole, if there is so much.
        Axis::Cyclic { .. } => {
            let first = axis.owner(0);
            let candidates = [first, (first + 1) % axis.parts()];
            candidates.map(|coordinate| axis.count(extent, coordinate))[..]
                .iter()
                .copied()
                .max()
                .unwrap_or(0)
        }
    }
}

fn check_room(axes: &[Axis], shape: &[u64]) -> Result<()> {
    let room = |(axis, &extent): (&Axis, &u64)| match axis {
        Axis::Cuts(_) => longest(axis, extent),
        Axis::Cyclic { block, .. } => longest(axis, extent).saturating_add(2 * block),
    };
    match product(axes.iter().zip(shape).map(room), ELEMENTS_MAX) {
        Some(_) => Ok(()),
        None => Err(Error::new(
            Code::LimitExceeded,
            "block",
            "whole blocks take up too many elements",
        )),
    }
}

fn check_strides(axes: &[Axis], shape: &[u64], strides: &[u64]) -> Result<()> {
    let wrong = |cause: String| Err(Error::new(Code::InvalidArgument, "strides", cause));
    if strides.len() != shape.len() {
        return wrong(format!("{} for {} dimensions", strides.len(), shape.len()));
    }
    let extents = axes.iter().zip(shape).map(|(axis, &extent)| longest(axis, extent));
    let mut steps: Vec<(u64, u64)> = strides
        .iter()
        .copied()
        .zip(extents)
        .filter(|(_, extent)| *extent > 1)
        .collect();
    steps.sort_unstable();
    // The extent of the dimensions with smaller strides.
    let mut taken = 1_u64;
    for (stride, extent) in steps {
        if stride < taken {
            return wrong(format!("with a stride of {stride}, elements would overlap"));
        }
        let more = stride.checked_mul(extent - 1).and_then(|more| more.checked_add(taken));
        match more.filter(|&taken| taken <= ELEMENTS_MAX) {
            Some(more) => taken = more,
            None => return wrong("a rank's memory would have too many elements".to_owned()),
        }
    }
    Ok(())
}

fn strided_room(extents: &[u64], strides: &[u64]) -> u64 {
    if extents.contains(&0) {
        return 0;
    }
    let last = extents
        .iter()
        .zip(strides)
        .map(|(extent, stride)| (extent - 1) * stride);
    1 + last.sum::<u64>()
}
