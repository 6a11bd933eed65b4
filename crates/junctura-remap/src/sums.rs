//! Sums of the links of target points. Where all target points have as many links, their starts are not read; where all weights are
//! equal, the weights are not read: large matrices are limited by memory bandwidth.

use std::ops::Range;

use crate::links::LinkRows;

/// The properties that all rows share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UniformRows {
    /// The number of links of each row.
    links: Option<usize>,
    weight: Option<f64>,
}

impl UniformRows {
    pub(crate) fn of(starts: &[usize], weights: &[f64]) -> Self {
        let first = starts.get(1).copied();
        let has_first = |first: &usize| starts.windows(2).all(|row| row[1] - row[0] == *first);
        let weight = weights.first().copied();
        let is_only = |first: &f64| weights.iter().all(|weight| weight.to_bits() == first.to_bits());
        Self {
            links: first.filter(has_first),
            weight: weight.filter(is_only),
        }
    }
}

impl LinkRows {
    /// Sums some rows, each by source; `unknown` is the value of a row without links, or whose sum is NaN.
    pub(crate) fn sums(&self, source: &[f64], rows: Range<usize>, into: &mut [f64], unknown: impl Fn(usize) -> f64) {
        match self.uniform.links {
            Some(1) => self.sums_of::<1>(source, rows, into, unknown),
            Some(2) => self.sums_of::<2>(source, rows, into, unknown),
            Some(3) => self.sums_of::<3>(source, rows, into, unknown),
            Some(4) => self.sums_of::<4>(source, rows, into, unknown),
            _ => self.sums_of_any(source, rows, into, unknown),
        }
    }

    fn sums_of<const LINKS: usize>(
        &self,
        source: &[f64],
        rows: Range<usize>,
        into: &mut [f64],
        unknown: impl Fn(usize) -> f64,
    ) {
        let links = LINKS * rows.start..LINKS * rows.end;
        let (sources, _) = self.sources[links.clone()].as_chunks::<LINKS>();
        let sum = |sources: &[u32; LINKS], weights: &[f64; LINKS]| {
            let links = sources.iter().zip(weights);
            links.fold(0.0, |sum, (&at, weight)| sum + weight * source[at as usize])
        };
        let known = |sum: f64, row: usize| if sum.is_nan() { unknown(row) } else { sum };
        let places = rows.zip(into);
        if let Some(weight) = self.uniform.weight {
            for ((row, place), sources) in places.zip(sources) {
                *place = known(sum(sources, &[weight; LINKS]), row);
            }
        } else {
            let (weights, _) = self.weights[links].as_chunks::<LINKS>();
            for ((row, place), (sources, weights)) in places.zip(sources.iter().zip(weights)) {
                *place = known(sum(sources, weights), row);
            }
        }
    }

    fn sums_of_any(&self, source: &[f64], rows: Range<usize>, into: &mut [f64], unknown: impl Fn(usize) -> f64) {
        let starts = &self.starts[rows.start..=rows.end];
        let mut begin = starts[0];
        let mut sources = &self.sources[begin..];
        let mut weights = &self.weights[begin..];
        for ((row, &end), value) in rows.zip(&starts[1..]).zip(into) {
            let (row_sources, others) = sources.split_at(end - begin);
            let (row_weights, other_weights) = weights.split_at(end - begin);
            (sources, weights, begin) = (others, other_weights, end);
            let links = row_sources.iter().zip(row_weights);
            let sum = links.fold(0.0, |sum, (&at, weight)| sum + weight * source[at as usize]);
            *value = if row_sources.is_empty() || sum.is_nan() {
                unknown(row)
            } else {
                sum
            };
        }
    }
}
