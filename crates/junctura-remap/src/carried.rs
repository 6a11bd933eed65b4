//! The values that ranks of a source grid send to ranks of a target grid, so that each target point is summed once, in one order.
//!
//! If one rank has all sources of a target point, the rank can sum them; then one value is sent in place of the
//! sources. The sources of other target points are sent, and summed by the rank that needs them. Both have the same
//! bits.
//!
//! ```text
//!   rank 0: sums, ascending by target point │ sources, ascending │ rank 1: sums │ sources │ ...      positions 0, 1, 2, ...
//! ```

use std::ops::Range;

use junctura_model::Result;
use xxhash_rust::xxh3::Xxh3;

use crate::links::{LinkRows, invalid};
use crate::weights::{ApplyOptions, NormalizeBy, Weights};

/// The side that computes sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApplySide {
    /// Ranks of the source, if one rank has all sources of a target point.
    Source,
    /// By ranks of the target.
    Target,
    /// The side with which fewer values are sent.
    #[default]
    Fewer,
}

/// The plan; see the module. It is a value: ranks with the same input have the same plan.
#[derive(Clone, Debug)]
pub struct CarriedPlan {
    ranks: Vec<CarriedPart>,
    owners: Vec<u32>,
}

/// The values that one rank of the source sends.
#[derive(Clone, Debug, Default)]
struct CarriedPart {
    /// Its first position.
    start: u64,
    /// The target points that it sums.
    sums: Vec<u32>,
    /// The source points that it sends unchanged.
    sources: Vec<u32>,
}

/// The operation of a rank of the target for a target point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriedTarget {
    /// It has no source.
    Missing,
    /// Its sum has this position.
    Sum(u64),
    /// Its sources are summed; [`CarriedPlan::source`] has the position of each.
    Sources,
}

impl CarriedPlan {
    /// Makes the plan for a source whose point `i` belongs to rank `owners[i]`; `u32::MAX` where no rank has it.
    ///
    /// # Errors
    /// `InvalidArgument` where the list is not as long as the source, or no rank has a point that a target point needs.
    pub fn new(weights: &Weights, owners: Vec<u32>, ranks: u32, side: ApplySide) -> Result<Self> {
        if owners.len() != weights.sources() {
            let cause = format!("{} owners of {} source points", owners.len(), weights.sources());
            return Err(invalid(cause));
        }
        let sources = &weights.rows.sources;
        if let Some(source) = sources.iter().find(|&&source| owners[source as usize] >= ranks) {
            return Err(invalid(format!(
                "no rank has source point {source}, which a target point needs"
            )));
        }
        let made = |at_source| Self::made(weights, &owners, ranks, at_source);
        let parts = match side {
            ApplySide::Source => made(true),
            ApplySide::Target => made(false),
            ApplySide::Fewer => {
                let [source, target] = [made(true), made(false)];
                if carried(&source) < carried(&target) {
                    source
                } else {
                    target
                }
            }
        };
        Ok(Self { ranks: parts, owners })
    }

    fn made(weights: &Weights, owners: &[u32], ranks: u32, at_source: bool) -> Vec<CarriedPart> {
        let mut parts = vec![CarriedPart::default(); ranks as usize];
        let mut travels = vec![false; owners.len()];
        for target in 0..weights.targets() {
            let (sources, _) = weights.rows.row(target);
            let owner = |source: &u32| owners[*source as usize];
            match sources.split_first() {
                None => {}
                Some((first, others)) if at_source && others.iter().all(|source| owner(source) == owner(first)) => {
                    parts[owner(first) as usize].sums.push(target as u32);
                }
                Some(_) => sources.iter().for_each(|&source| travels[source as usize] = true),
            }
        }
        for (source, _) in travels.iter().enumerate().filter(|(_, travels)| **travels) {
            parts[owners[source] as usize].sources.push(source as u32);
        }
        let mut start = 0;
        for part in &mut parts {
            part.start = start;
            start += part.values();
        }
        parts
    }

    /// Returns the positions of a rank's values.
    #[must_use]
    pub fn positions(&self, rank: usize) -> Range<u64> {
        let part = &self.ranks[rank];
        part.start..part.start + part.values()
    }

    /// Returns the number of values that are sent.
    #[must_use]
    pub fn values(&self) -> u64 {
        carried(&self.ranks)
    }

    /// Returns the target points that a rank sums, and the source points that it sends, each ascending.
    #[must_use]
    pub fn of_rank(&self, rank: usize) -> (&[u32], &[u32]) {
        (&self.ranks[rank].sums, &self.ranks[rank].sources)
    }

    /// Returns the operation for a target point.
    #[must_use]
    pub fn target(&self, weights: &Weights, target: usize) -> CarriedTarget {
        let Some(first) = weights.rows.row(target).0.first() else {
            return CarriedTarget::Missing;
        };
        let part = &self.ranks[self.owners[*first as usize] as usize];
        match part.sums.binary_search(&(target as u32)) {
            Ok(at) => CarriedTarget::Sum(part.start + at as u64),
            Err(_) => CarriedTarget::Sources,
        }
    }

    /// Returns the position of a source point that is sent.
    #[must_use]
    pub fn source(&self, source: u32) -> Option<u64> {
        let part = self.ranks.get(*self.owners.get(source as usize)? as usize)?;
        let at = part.sources.binary_search(&source).ok()?;
        Some(part.start + (part.sums.len() + at) as u64)
    }

    /// Returns a number that differs, except in one case of 2^24, if the plan, the weights or the options differ. It is
    /// exact in single precision.
    #[must_use]
    pub fn fingerprint(&self, weights: &Weights, how: ApplyOptions) -> u32 {
        let mut sum = Xxh3::new();
        for row in 0..weights.targets() {
            let (sources, parts) = weights.rows.row(row);
            sum.update(&(sources.len() as u64).to_le_bytes());
            for (source, part) in sources.iter().zip(parts) {
                sum.update(&source.to_le_bytes());
                sum.update(&part.to_le_bytes());
            }
        }
        for part in &self.ranks {
            sum.update(&(part.sums.len() as u64).to_le_bytes());
            part.sources.iter().for_each(|source| sum.update(&source.to_le_bytes()));
        }
        let norm = match how.norm {
            NormalizeBy::Whole => 0,
            NormalizeBy::Destination => 1,
            NormalizeBy::Fraction => 2_u8,
        };
        sum.update(&[norm, u8::from(how.missing.is_some())]);
        sum.update(&how.missing.unwrap_or(0.0).to_le_bytes());
        sum.digest() as u32 >> 8
    }
}

impl CarriedPart {
    fn values(&self) -> u64 {
        (self.sums.len() + self.sources.len()) as u64
    }
}

fn carried(parts: &[CarriedPart]) -> u64 {
    parts.iter().map(CarriedPart::values).sum()
}

impl Weights {
    /// Returns some target points alone, from another arrangement of the source: `moved` is the new number of each
    /// source point. Links keep their order, and so sums their bits.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown target point, and for a new number that is not below `sources`.
    pub fn arranged(&self, targets: &[u32], sources: u64, moved: impl Fn(u32) -> Option<u64>) -> Result<Self> {
        let (mut starts, mut sources_at, mut weights) = (vec![0], Vec::new(), Vec::new());
        for &target in targets {
            if target as usize >= self.targets() {
                return Err(invalid(format!("there is no target point {target}")));
            }
            let (old, parts) = self.rows.row(target as usize);
            for &source in old {
                let new = moved(source).filter(|&new| new < sources && u32::try_from(new).is_ok());
                let new = new.ok_or_else(|| invalid(format!("source point {source} has no new number")))?;
                sources_at.push(new as u32);
            }
            weights.extend(parts);
            starts.push(sources_at.len());
        }
        Ok(Self {
            rows: LinkRows::new(starts, sources_at, weights),
            shapes: [vec![sources], vec![targets.len() as u64]],
            cells: Default::default(),
            are_by_fraction: self.are_by_fraction,
        })
    }

    /// Returns the source points of a target point, ascending.
    ///
    /// # Panics
    /// For an unknown target point.
    #[must_use]
    pub fn sources_at(&self, target: usize) -> &[u32] {
        self.rows.row(target).0
    }
}
