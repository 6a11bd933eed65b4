//! An N-dimensional box of indices.

use std::fmt;

use junctura_model::{Code, Error, Result};

/// The indices from `start` up to, not including, `stop`, in each dimension: a hyperslab in HDF5 and netCDF, without
/// steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slab {
    /// The first index of each dimension.
    pub start: Vec<u64>,
    /// The index after the last one of each dimension.
    pub stop: Vec<u64>,
}

impl Slab {
    /// Makes a slab of these bounds.
    ///
    /// # Errors
    /// `InvalidArgument` unless there are as many stops as starts, each not before its start.
    pub fn new(start: impl Into<Vec<u64>>, stop: impl Into<Vec<u64>>) -> Result<Self> {
        let slab = Self {
            start: start.into(),
            stop: stop.into(),
        };
        let is_forward = slab.start.iter().zip(&slab.stop).all(|(start, stop)| start <= stop);
        if slab.start.len() != slab.stop.len() || !is_forward {
            let cause = format!("{slab} does not begin before it ends, in each dimension");
            return Err(Error::new(Code::InvalidArgument, "slab", cause));
        }
        Ok(slab)
    }

    /// Returns the slab of a whole array.
    #[must_use]
    pub fn whole(shape: &[u64]) -> Self {
        Self {
            start: vec![0; shape.len()],
            stop: shape.to_vec(),
        }
    }

    /// Returns the number of indices in each dimension.
    #[must_use]
    pub fn extents(&self) -> Vec<u64> {
        self.start
            .iter()
            .zip(&self.stop)
            .map(|(start, stop)| stop - start)
            .collect()
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.extents().iter().product()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start.iter().zip(&self.stop).any(|(start, stop)| start >= stop)
    }

    /// Returns the intersection with another one of the same dimensions, if any.
    #[must_use]
    pub fn shared(&self, other: &Self) -> Option<Self> {
        let start: Vec<u64> = self.start.iter().zip(&other.start).map(|(&a, &b)| a.max(b)).collect();
        let stop: Vec<u64> = self.stop.iter().zip(&other.stop).map(|(&a, &b)| a.min(b)).collect();
        let shared = Self { start, stop };
        let is_any = shared.start.iter().zip(&shared.stop).all(|(start, stop)| start < stop);
        is_any.then_some(shared)
    }

    /// Returns the difference from another one: at most two slabs for each dimension.
    #[must_use]
    pub fn without(&self, other: &Self) -> Vec<Self> {
        let Some(shared) = self.shared(other) else {
            return vec![self.clone()];
        };
        let mut left = Vec::new();
        let mut rest = self.clone();
        for dimension in 0..self.start.len() {
            let (start, stop) = (shared.start[dimension], shared.stop[dimension]);
            if rest.start[dimension] < start {
                let mut before = rest.clone();
                before.stop[dimension] = start;
                left.push(before);
            }
            if stop < rest.stop[dimension] {
                let mut after = rest.clone();
                after.start[dimension] = stop;
                left.push(after);
            }
            (rest.start[dimension], rest.stop[dimension]) = (start, stop);
        }
        left
    }
}

impl fmt::Display for Slab {
    /// `0:10x5:8`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (dimension, (start, stop)) in self.start.iter().zip(&self.stop).enumerate() {
            let between = if dimension == 0 { "" } else { "x" };
            write!(formatter, "{between}{start}:{stop}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_and_what_is_left_make_the_whole() {
        let slab = Slab::new([2, 3, 0], [9, 8, 4]).unwrap();
        for other in [
            Slab::new([0, 0, 0], [5, 5, 5]).unwrap(),
            Slab::new([4, 4, 1], [6, 6, 2]).unwrap(),
            Slab::new([20, 20, 20], [30, 30, 30]).unwrap(),
            slab.clone(),
        ] {
            let left = slab.without(&other);
            let shared = slab.shared(&other);
            let elements: u64 = left.iter().chain(&shared).map(Slab::elements).sum();
            assert_eq!(elements, slab.elements());
            let parts: Vec<&Slab> = left.iter().chain(&shared).collect();
            for (at, one) in parts.iter().enumerate() {
                assert!(parts[at + 1..].iter().all(|two| one.shared(two).is_none()));
            }
        }
        assert!(Slab::new([1], [0]).is_err() && Slab::new([1], [1, 2]).is_err());
        assert_eq!(slab.to_string(), "2:9x3:8x0:4");
    }
}
