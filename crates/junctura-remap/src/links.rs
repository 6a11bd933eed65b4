//! Links in any order, sorted into rows.

use junctura_model::{Code, Error, Result};

use crate::LINKS_MAX;
use crate::sums::UniformRows;

/// The weight of a source point in a target point. Points count from 0, in the order of the grid's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightLink {
    /// The target point.
    pub target: u64,
    /// The source point.
    pub source: u64,
    /// The weight.
    pub weight: f64,
}

/// Links by rows: those of target point `i` are at `starts[i]..starts[i + 1]`, by source, each source once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkRows {
    pub(crate) starts: Vec<usize>,
    pub(crate) sources: Vec<u32>,
    pub(crate) weights: Vec<f64>,
    pub(crate) uniform: UniformRows,
}

impl LinkRows {
    pub(crate) fn new(starts: Vec<usize>, sources: Vec<u32>, weights: Vec<f64>) -> Self {
        Self {
            uniform: UniformRows::of(&starts, &weights),
            starts,
            sources,
            weights,
        }
    }

    /// Sorts links. Links between the same points are summed in the order of their weights, so that the order of the
    /// given links does not matter. Links without weight are dropped.
    ///
    /// # Errors
    /// `InvalidArgument` that names the first link to an unknown point, or whose weight is not a number;
    /// `LimitExceeded` for too many.
    pub(crate) fn of(links: &[WeightLink], sources: u64, targets: u64) -> Result<Self> {
        if links.len() > LINKS_MAX {
            let cause = format!("{} links are more than {LINKS_MAX}", links.len());
            return Err(Error::new(Code::LimitExceeded, "weights", cause));
        }
        for (number, link) in links.iter().enumerate() {
            check(number, link, sources, targets)?;
        }
        let mut sorted: Vec<&WeightLink> = links.iter().collect();
        sorted.sort_unstable_by(|one, other| {
            (one.target, one.source)
                .cmp(&(other.target, other.source))
                .then(one.weight.total_cmp(&other.weight))
        });
        let mut starts = vec![0; targets as usize + 1];
        let mut sources_at = Vec::with_capacity(links.len());
        let mut weights = Vec::with_capacity(links.len());
        for same in sorted.chunk_by(|one, other| (one.target, one.source) == (other.target, other.source)) {
            let weight: f64 = same.iter().fold(0.0, |sum, link| sum + link.weight);
            if !weight.is_finite() {
                return Err(invalid(format!(
                    "{} links of one pair have the sum {weight}",
                    same.len()
                )));
            }
            if weight != 0.0 {
                starts[same[0].target as usize + 1] += 1;
                sources_at.push(same[0].source as u32);
                weights.push(weight);
            }
        }
        for row in 0..targets as usize {
            starts[row + 1] += starts[row];
        }
        Ok(Self::new(starts, sources_at, weights))
    }

    /// Returns the links of one target point.
    pub(crate) fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let links = self.starts[row]..self.starts[row + 1];
        (&self.sources[links.clone()], &self.weights[links])
    }

    /// Returns the links that a rule, of target and source, keeps.
    pub(crate) fn kept(&self, keeps: impl Fn(usize, u32) -> bool) -> Self {
        let (mut starts, mut kept_sources, mut kept_weights) = (vec![0], Vec::new(), Vec::new());
        for row in 0..self.starts.len() - 1 {
            let (sources, weights) = self.row(row);
            for (&source, &weight) in sources.iter().zip(weights) {
                if keeps(row, source) {
                    kept_sources.push(source);
                    kept_weights.push(weight);
                }
            }
            starts.push(kept_sources.len());
        }
        Self::new(starts, kept_sources, kept_weights)
    }
}

fn check(number: usize, link: &WeightLink, sources: u64, targets: u64) -> Result<()> {
    let of = |what: &str, point: u64, points: u64| {
        invalid(format!(
            "link {number} is of {what} point {point}, and there are {points} (they count from 0)"
        ))
    };
    if link.source >= sources {
        return Err(of("source", link.source, sources));
    }
    if link.target >= targets {
        return Err(of("target", link.target, targets));
    }
    if !link.weight.is_finite() {
        let WeightLink { target, source, weight } = link;
        return Err(invalid(format!(
            "link {number}, of target {target} and source {source}, has the weight {weight}"
        )));
    }
    Ok(())
}

pub(crate) fn invalid(cause: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, "weights", cause)
}
