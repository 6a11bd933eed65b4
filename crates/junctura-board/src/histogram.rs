//! Histograms with four buckets for each power of two: a count differs from the exact quantile by 9 % at most.

use crate::layout::HISTOGRAM_BUCKETS;

/// The mantissas, with the highest bit set, from which on a number is in the second, third and fourth quarter of its power of two:
/// 2^63 times 2^(1/4), 2^(2/4) and 2^(3/4), rounded up.
const QUARTERS: [u64; 3] = [0x9837_f051_8db8_a970, 0xb504_f333_f9de_6485, 0xd744_fcca_d69d_6af5];

/// Returns the bucket of a value. Bucket `i` has the values greater than 2^(i/4) and not greater than 2^((i+1)/4); the first one
/// also has 0 and 1.
#[must_use]
pub fn bucket_of(value: u64) -> usize {
    if value < 2 {
        return 0;
    }
    let zeros = value.leading_zeros();
    let mantissa = value << zeros;
    let quarter: usize = QUARTERS.iter().map(|&from| usize::from(mantissa >= from)).sum();
    4 * (63 - zeros as usize) + quarter - usize::from(value.is_power_of_two())
}

/// Returns the greatest value of a bucket, as a real number.
#[must_use]
pub fn upper_bound(bucket: usize) -> f64 {
    ((bucket + 1) as f64 / 4.0).exp2()
}

/// A histogram that its owner adds to.
#[derive(Clone, Debug)]
pub struct HistogramCounts {
    buckets: Box<[u64; HISTOGRAM_BUCKETS]>,
    sum: u64,
}

impl Default for HistogramCounts {
    fn default() -> Self {
        Self {
            buckets: Box::new([0; HISTOGRAM_BUCKETS]),
            sum: 0,
        }
    }
}

impl HistogramCounts {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.buckets[bucket_of(value)] += 1;
        self.sum = self.sum.wrapping_add(value);
    }

    /// Returns the counts of the buckets.
    #[must_use]
    pub fn buckets(&self) -> &[u64; HISTOGRAM_BUCKETS] {
        &self.buckets
    }

    /// Returns the sum of the values.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }
}
