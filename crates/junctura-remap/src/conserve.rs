//! Checks of conservation: the integrals of a field and of its remapped result.

use junctura_model::Result;

use crate::links::invalid;
use crate::weights::{ApplyOptions, NormalizeBy, Weights};

/// Integrals over area of a field and of its remapped result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConservedIntegrals {
    /// Over the active part of the source that is not missing.
    pub source: f64,
    /// Over the covered part of the target.
    pub target: f64,
    /// Their difference, relative to the integral of the field's magnitude over the source; 0 if that integral is 0.
    pub relative_error: f64,
}

/// A sum with compensated rounding errors, in the order of its terms.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompensatedSum {
    sum: f64,
    rest: f64,
}

impl CompensatedSum {
    /// Adds a number.
    pub fn add(&mut self, number: f64) {
        let sum = self.sum + number;
        self.rest += if self.sum.abs() >= number.abs() {
            (self.sum - sum) + number
        } else {
            (number - sum) + self.sum
        };
        self.sum = sum;
    }

    /// Returns the sum.
    #[must_use]
    pub fn value(self) -> f64 {
        self.sum + self.rest
    }
}

impl Weights {
    /// Returns the integral of a field of the source, and the integral that the target receives.
    ///
    /// A cell counts with its area, times the fraction that takes part where that is known. A target cell has the amount
    /// that its links bring, whether its value is a mean over the whole cell or over the covered part.
    ///
    /// # Errors
    /// `InvalidArgument` when areas of source or target are not known, or the field does not fit the source.
    pub fn conserved(&self, source: &[f64], how: ApplyOptions) -> Result<ConservedIntegrals> {
        let [from, to] = &self.cells;
        for (side, cells) in [("source", from), ("target", to)] {
            if cells.areas.is_empty() {
                return Err(invalid(format!("the areas of the {side} are unknown")));
            }
        }
        if source.len() != self.sources() {
            let cause = format!(
                "the field has {} values, and the grid {} points",
                source.len(),
                self.sources()
            );
            return Err(invalid(cause));
        }
        let [mut held, mut magnitude, mut got] = [CompensatedSum::default(); 3];
        for (at, &value) in source.iter().enumerate() {
            if from.mask.get(at).copied().unwrap_or(true) && !how.is_missing(value) {
                let area = from.areas[at] * from.fractions.get(at).copied().unwrap_or(1.0);
                held.add(area * value);
                magnitude.add(area * value.abs());
            }
        }
        for row in 0..self.targets() {
            let sum = self.sum(source, row, how);
            if sum.links > 0 && (sum.is_whole || how.norm != NormalizeBy::Whole) {
                let covered = to.fractions.get(row).filter(|_| self.are_by_fraction);
                got.add(to.areas[row] * covered.copied().unwrap_or(1.0) * sum.value);
            }
        }
        let (source, target) = (held.value(), got.value());
        let scale = magnitude.value();
        let relative_error = if scale > 0.0 {
            (target - source).abs() / scale
        } else {
            0.0
        };
        Ok(ConservedIntegrals {
            source,
            target,
            relative_error,
        })
    }
}
