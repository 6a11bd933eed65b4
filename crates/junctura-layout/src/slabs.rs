//! Explicit boxes of indices for each rank: blocks of a refined mesh, uneven domains, regions with halos.

use junctura_model::{Code, Error, Result};

use crate::{SLABS_MAX, Slab};

/// The slabs of each rank. They are consecutive in a rank's memory, in the given order.
#[derive(Clone, Debug)]
pub struct RankSlabs {
    ranks: Vec<Vec<Slab>>,
    /// For each dimension, all slabs by their start.
    sorted: Vec<SortedSlabs>,
}

/// A slab, by its rank and its number there.
pub(crate) type Id = (u32, u32);

#[derive(Clone, Debug, Default)]
struct SortedSlabs {
    ids: Vec<Id>,
    starts: Vec<u64>,
    /// The largest end up to each slab.
    stops_max: Vec<u64>,
}

impl PartialEq for RankSlabs {
    fn eq(&self, other: &Self) -> bool {
        self.ranks == other.ranks
    }
}

impl Eq for RankSlabs {}

impl RankSlabs {
    /// Makes the slabs for an array of this shape.
    ///
    /// # Errors
    /// `InvalidArgument` when a slab is outside the array; `LimitExceeded` for too many.
    pub fn new(shape: &[u64], ranks: Vec<Vec<Slab>>) -> Result<Self> {
        let count: usize = ranks.iter().map(Vec::len).sum();
        if count > SLABS_MAX || ranks.len() > SLABS_MAX {
            let cause = format!("{count} slabs of {} ranks are more than {SLABS_MAX}", ranks.len());
            return Err(Error::new(Code::LimitExceeded, "slabs", cause));
        }
        for slab in ranks.iter().flatten() {
            let has_its_place = slab.start.len() == shape.len()
                && slab.stop.len() == shape.len()
                && slab.start.iter().zip(&slab.stop).all(|(start, stop)| start <= stop)
                && slab.stop.iter().zip(shape).all(|(stop, extent)| stop <= extent);
            if !has_its_place {
                return Err(Error::new(
                    Code::InvalidArgument,
                    "slabs",
                    format!("{slab} is not within the array"),
                ));
            }
        }
        let sorted = (0..shape.len())
            .map(|dimension| SortedSlabs::new(&ranks, dimension))
            .collect();
        Ok(Self { ranks, sorted })
    }

    /// Returns the slabs of each rank.
    #[must_use]
    pub fn ranks(&self) -> &[Vec<Slab>] {
        &self.ranks
    }

    /// Returns the slabs that share an index with this one.
    pub(crate) fn meeting<'s>(&'s self, slab: &'s Slab) -> impl Iterator<Item = Id> + 's {
        let candidates = self.candidates(slab).iter().copied();
        candidates.filter(|&id| self.get(id).shared(slab).is_some())
    }

    /// Returns the slabs that may share an index with this one: [`Self::meeting`] visits them.
    pub(crate) fn candidates<'s>(&'s self, slab: &Slab) -> &'s [Id] {
        let candidates = |(sorted, (&start, &stop)): (&'s SortedSlabs, (&u64, &u64))| sorted.candidates(start, stop);
        let dimensions = self.sorted.iter().zip(slab.start.iter().zip(&slab.stop));
        dimensions
            .map(candidates)
            .min_by_key(|ids| ids.len())
            .unwrap_or_default()
    }

    pub(crate) fn get(&self, (rank, number): Id) -> &Slab {
        &self.ranks[rank as usize][number as usize]
    }

    /// Checks that each element of the array is in exactly one slab.
    ///
    /// # Errors
    /// `InvalidArgument` that names two slabs that overlap, or a part of the array that no rank has.
    pub fn check_cover(&self, shape: &[u64]) -> Result<()> {
        for (rank, slabs) in self.ranks.iter().enumerate() {
            for (number, slab) in slabs.iter().enumerate() {
                let own = (rank as u32, number as u32);
                if let Some(other) = self.meeting(slab).find(|&id| id != own) {
                    let other_slab = self.get(other);
                    let cause = format!("{slab} of rank {rank} and {other_slab} of rank {} overlap", other.0);
                    return Err(Error::new(Code::InvalidArgument, "slabs", cause));
                }
            }
        }
        let covered: u64 = self.ranks.iter().flatten().map(Slab::elements).sum();
        let whole = Slab::whole(shape);
        if covered == whole.elements() {
            return Ok(());
        }
        let cause = format!("no rank has {}", self.hole(&whole));
        Err(Error::new(Code::InvalidArgument, "slabs", cause))
    }

    /// Returns a part of an array that no slab covers; there must be one.
    fn hole(&self, whole: &Slab) -> Slab {
        let mut hole = whole.clone();
        // Each step leaves a smaller part with a hole, on either side of the slab in the middle, so that few steps are
        // needed.
        loop {
            let met: Vec<Id> = self.meeting(&hole).collect();
            let Some(&id) = met.get(met.len() / 2) else {
                return hole;
            };
            let is_full = |part: &Slab| {
                let had: u64 = self
                    .meeting(part)
                    .filter_map(|id| self.get(id).shared(part))
                    .map(|shared| shared.elements())
                    .sum();
                had == part.elements()
            };
            let parts = hole.without(self.get(id));
            let Some(part) = parts.into_iter().find(|part| !is_full(part)) else {
                return hole;
            };
            hole = part;
        }
    }
}

impl SortedSlabs {
    fn new(ranks: &[Vec<Slab>], dimension: usize) -> Self {
        let mut all: Vec<(u64, u64, Id)> = Vec::with_capacity(ranks.iter().map(Vec::len).sum());
        for (rank, slabs) in ranks.iter().enumerate() {
            let numbered = slabs.iter().enumerate().filter(|(_, slab)| !slab.is_empty());
            all.extend(numbered.map(|(number, slab)| {
                let id = (rank as u32, number as u32);
                (slab.start[dimension], slab.stop[dimension], id)
            }));
        }
        all.sort_unstable();
        let stops_max = all.iter().scan(0, |longest: &mut u64, (_, stop, _)| {
            *longest = (*longest).max(*stop);
            Some(*longest)
        });
        Self {
            stops_max: stops_max.collect(),
            starts: all.iter().map(|(start, ..)| *start).collect(),
            ids: all.into_iter().map(|(.., id)| id).collect(),
        }
    }

    /// Returns the slabs that may share an index of this dimension with a range.
    fn candidates(&self, start: u64, stop: u64) -> &[Id] {
        let from = self.stops_max.partition_point(|&longest| longest <= start);
        let to = self.starts.partition_point(|&begin| begin < stop);
        self.ids.get(from..to).unwrap_or_default()
    }
}
