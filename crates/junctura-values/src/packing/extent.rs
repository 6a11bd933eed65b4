//! The parameters of a packing: minimum, maximum and number of the present values, in one pass.

#![allow(
    clippy::inline_always,
    reason = "the code is compiled for each level of instructions where it is inlined"
)]

use junctura_model::InstructionSet;

use super::vectors::{VectorWork, vectorized};

/// The extent of some values. A value that is NaN is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueExtent {
    /// How many values are present.
    pub present: usize,
    least: f64,
    greatest: f64,
}

impl ValueExtent {
    /// Returns the extent of values.
    #[must_use]
    pub fn new(set: InstructionSet, values: &[f64]) -> Self {
        vectorized(set, ExtentPass(values))
    }

    /// The least and the greatest value; None if there is none, or one is infinite.
    pub(super) fn limits(&self) -> Option<(f64, f64)> {
        (self.least.is_finite() && self.greatest.is_finite()).then_some((self.least, self.greatest))
    }
}

/// So many values are compared at a time.
const LANES: usize = 32;

struct ExtentPass<'a>(&'a [f64]);

impl VectorWork for ExtentPass<'_> {
    type Made = ValueExtent;

    #[inline(always)]
    fn run(self) -> ValueExtent {
        let mut least = [f64::INFINITY; LANES];
        let mut greatest = [f64::NEG_INFINITY; LANES];
        let mut missing = [0_u64; LANES];
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                let value = chunk[lane];
                // Comparisons are false for NaN.
                least[lane] = if value < least[lane] { value } else { least[lane] };
                greatest[lane] = if value > greatest[lane] { value } else { greatest[lane] };
                missing[lane] += u64::from(value.is_nan());
            }
        }
        for &value in rest {
            least[0] = if value < least[0] { value } else { least[0] };
            greatest[0] = if value > greatest[0] { value } else { greatest[0] };
            missing[0] += u64::from(value.is_nan());
        }
        ValueExtent {
            present: self.0.len() - missing.iter().sum::<u64>() as usize,
            least: least.into_iter().fold(f64::INFINITY, f64::min),
            greatest: greatest.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}
