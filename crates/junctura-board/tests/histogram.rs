//! Buckets of histograms, compared with their definition in real numbers.

use junctura_board::HistogramCounts;
use junctura_board::histogram::{bucket_of, upper_bound};
use proptest::prelude::*;

#[test]
fn powers_of_two_are_the_greatest_values_of_their_buckets() {
    assert_eq!([0, 1].map(bucket_of), [0, 0]);
    for power in 1..64 {
        let value = 1_u64 << power;
        assert_eq!(bucket_of(value), 4 * power - 1, "2^{power}");
        assert!(power < 3 || bucket_of(value + 1) == 4 * power, "2^{power} + 1");
    }
    assert_eq!(bucket_of(u64::MAX), 255);
    assert_eq!([2, 3, 4, 5, 6, 7, 8].map(bucket_of), [3, 6, 7, 9, 10, 11, 11]);
}

#[test]
fn counts_and_sums_are_kept() {
    let mut counts = HistogramCounts::default();
    for value in [0, 1, 4096, 4097] {
        counts.add(value);
    }
    assert_eq!(counts.sum(), 8194);
    assert_eq!(counts.buckets()[0], 2);
    assert_eq!((counts.buckets()[47], counts.buckets()[48]), (1, 1));
}

proptest! {
    #[test]
    fn a_value_is_within_the_bounds_of_its_bucket(value in 2_u64..1 << 52) {
        let bucket = bucket_of(value);
        prop_assert!(value as f64 <= upper_bound(bucket));
        prop_assert!(bucket == 0 || value as f64 > upper_bound(bucket - 1));
    }

    #[test]
    fn buckets_are_in_the_order_of_values(one in any::<u64>(), other in any::<u64>()) {
        prop_assert_eq!(bucket_of(one.min(other)), bucket_of(one).min(bucket_of(other)));
    }
}
