//! Statistics of the members of an ensemble, point by point.
//!
//! All statistics are in double precision and take members in the given order, so that the same fields give the same bits:
//! a mean is the sum from the first member to the last, divided by their number. Where the value of one member is missing
//! (NaN), each statistic is.

use std::ops::Range;

/// A statistic of all members at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EnsembleStatistic {
    /// The sum, from the first member to the last.
    Sum,
    /// The arithmetic mean.
    Mean,
    /// The standard deviation, whose divisor is the number of members.
    Spread,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The value below which this many percent of the members are, linear between two members.
    Percentile(f64),
    /// The percentage of members whose values are greater than this.
    Above(f64),
    /// The percentage of members whose values are less than this.
    Below(f64),
    /// The percentage of members whose values are this or greater.
    AtLeast(f64),
    /// The percentage of members whose values are this or less.
    AtMost(f64),
}

/// So many values of all members together are looked at a time: they stay in the nearest caches of a processor.
const BLOCK_VALUES: usize = 4096;
/// At least so many points at a time.
const BLOCK_POINTS_MIN: usize = 64;

/// Writes statistics of members, one field for each statistic.
///
/// Returns false, and writes nothing, if there is no member, or not all of `members` and `made` have one length, or not
/// as many of `made` as there are statistics.
#[must_use]
pub fn ensemble(members: &[&[f64]], statistics: &[EnsembleStatistic], made: &mut [&mut [f64]]) -> bool {
    let Some(points) = members.first().map(|first| first.len()) else {
        return false;
    };
    let is_one_size = members.iter().all(|one| one.len() == points) && made.iter().all(|one| one.len() == points);
    if !is_one_size || statistics.len() != made.len() {
        return false;
    }
    let block = (BLOCK_VALUES / members.len()).max(BLOCK_POINTS_MIN);
    // Those of members in order are last.
    let (sorted, others): (Vec<usize>, Vec<usize>) =
        (0..statistics.len()).partition(|at| matches!(statistics[*at], EnsembleStatistic::Percentile(_)));
    let network = if sorted.is_empty() {
        Vec::new()
    } else {
        comparisons(members.len())
    };
    let mut at_points = MemberBlock::new(members.len(), block);
    for start in (0..points).step_by(block) {
        let range = start..points.min(start + block);
        at_points.take(members, range.clone());
        for &at in &others {
            at_points.write(statistics[at], &mut made[at][range.clone()]);
        }
        at_points.sort(&network);
        for &at in &sorted {
            at_points.write(statistics[at], &mut made[at][range.clone()]);
        }
    }
    true
}

/// The values of all members at some points: member after member.
struct MemberBlock {
    members: usize,
    points: usize,
    values: Vec<f64>,
    is_missing: Vec<bool>,
    mean: Vec<f64>,
}

impl MemberBlock {
    fn new(members: usize, points_max: usize) -> Self {
        Self {
            members,
            points: 0,
            values: Vec::with_capacity(members * points_max),
            is_missing: Vec::with_capacity(points_max),
            mean: Vec::with_capacity(points_max),
        }
    }

    fn take(&mut self, members: &[&[f64]], points: Range<usize>) {
        self.points = points.len();
        self.values.clear();
        self.mean.clear();
        self.is_missing.clear();
        self.mean.extend_from_slice(&members[0][points.clone()]);
        self.values.extend_from_slice(&self.mean);
        for member in &members[1..] {
            let row = &member[points.clone()];
            for (sum, value) in self.mean.iter_mut().zip(row) {
                *sum += value;
            }
            self.values.extend_from_slice(row);
        }
        // A sum without a number is of a missing value, or of infinite ones of both signs.
        let sums = self.mean.iter().enumerate();
        let is_missing = |(point, sum): (usize, &f64)| {
            sum.is_nan() && members.iter().any(|member| member[points.start + point].is_nan())
        };
        self.is_missing.extend(sums.map(is_missing));
        let count = self.members as f64;
        for sum in &mut self.mean {
            *sum /= count;
        }
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.points)
    }

    /// Puts the values of all members at each point in order.
    fn sort(&mut self, network: &[(usize, usize)]) {
        let points = self.points;
        for &(low, high) in network {
            let (before, after) = self.values.split_at_mut(high * points);
            let pairs = before[low * points..(low + 1) * points]
                .iter_mut()
                .zip(&mut after[..points]);
            for (low, high) in pairs {
                (*low, *high) = if *high < *low { (*high, *low) } else { (*low, *high) };
            }
        }
    }

    fn write(&self, statistic: EnsembleStatistic, into: &mut [f64]) {
        match statistic {
            EnsembleStatistic::Sum => self.fold(into, |sum, value| sum + value),
            EnsembleStatistic::Mean => into.copy_from_slice(&self.mean),
            EnsembleStatistic::Spread => self.spread(into),
            EnsembleStatistic::Min => self.fold(into, |one, other| if other < one { other } else { one }),
            EnsembleStatistic::Max => self.fold(into, |one, other| if other > one { other } else { one }),
            EnsembleStatistic::Percentile(percent) => self.percentile(percent, into),
            EnsembleStatistic::Above(limit) => self.share(into, |value| value > limit),
            EnsembleStatistic::Below(limit) => self.share(into, |value| value < limit),
            EnsembleStatistic::AtLeast(limit) => self.share(into, |value| value >= limit),
            EnsembleStatistic::AtMost(limit) => self.share(into, |value| value <= limit),
        }
    }

    fn spread(&self, into: &mut [f64]) {
        let square = |value: f64, mean: f64| (value - mean) * (value - mean);
        let mut rows = self.rows();
        for (sum, (value, mean)) in into.iter_mut().zip(rows.next().into_iter().flatten().zip(&self.mean)) {
            *sum = square(*value, *mean);
        }
        for row in rows {
            for (sum, (value, mean)) in into.iter_mut().zip(row.iter().zip(&self.mean)) {
                *sum += square(*value, *mean);
            }
        }
        let count = self.members as f64;
        for sum in into {
            *sum = (*sum / count).sqrt();
        }
    }

    fn fold(&self, into: &mut [f64], choose: impl Fn(f64, f64) -> f64) {
        let mut rows = self.rows();
        into.copy_from_slice(rows.next().unwrap_or_default());
        for row in rows {
            for (chosen, value) in into.iter_mut().zip(row) {
                *chosen = choose(*chosen, *value);
            }
        }
        self.miss(into);
    }

    fn share(&self, into: &mut [f64], holds: impl Fn(f64) -> bool) {
        into.fill(0.0);
        for row in self.rows() {
            for (count, value) in into.iter_mut().zip(row) {
                *count += if holds(*value) { 1.0 } else { 0.0 };
            }
        }
        let members = self.members as f64;
        for count in &mut *into {
            *count = 100.0 * *count / members;
        }
        self.miss(into);
    }

    /// Of members in order.
    fn percentile(&self, percent: f64, into: &mut [f64]) {
        let last = self.members - 1;
        let place = last as f64 * (percent.clamp(0.0, 100.0) / 100.0);
        let below = place.floor() as usize;
        let share = place - below as f64;
        let row = |number: usize| &self.values[number * self.points..(number + 1) * self.points];
        let pairs = row(below).iter().zip(row((below + 1).min(last)));
        for (made, (low, high)) in into.iter_mut().zip(pairs) {
            let difference = high - low;
            // From the nearer end, so that it is met exactly.
            *made = if share < 0.5 {
                low + difference * share
            } else {
                high - difference * (1.0 - share)
            };
        }
        self.miss(into);
    }

    fn miss(&self, into: &mut [f64]) {
        for (made, is_missing) in into.iter_mut().zip(&self.is_missing) {
            *made = if *is_missing { f64::NAN } else { *made };
        }
    }
}

/// Which two of so many are compared, one after the other, to put them in order.
///
/// The network of K. E. Batcher, "Sorting networks and their applications" (AFIPS 1968), for any number as in D. E. Knuth,
/// The Art of Computer Programming 3, 5.2.2, algorithm M. Each comparison is of whole rows at once.
fn comparisons(count: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let top = count.next_power_of_two() / 2;
    let mut p = top;
    while p > 0 {
        let (mut q, mut r, mut distance) = (top, 0, p);
        loop {
            found.extend(
                (0..count.saturating_sub(distance))
                    .filter(|i| i & p == r)
                    .map(|i| (i, i + distance)),
            );
            if q == p {
                break;
            }
            (distance, q, r) = (q - p, q / 2, p);
        }
        p /= 2;
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::float_cmp, reason = "the same bits are expected")]

    use super::*;
    use proptest::prelude::*;

    const ALL: [EnsembleStatistic; 12] = [
        EnsembleStatistic::Sum,
        EnsembleStatistic::Mean,
        EnsembleStatistic::Percentile(10.0),
        EnsembleStatistic::Spread,
        EnsembleStatistic::Min,
        EnsembleStatistic::Max,
        EnsembleStatistic::Percentile(50.0),
        EnsembleStatistic::Percentile(100.0),
        EnsembleStatistic::Above(0.5),
        EnsembleStatistic::Below(0.5),
        EnsembleStatistic::AtLeast(0.5),
        EnsembleStatistic::AtMost(0.5),
    ];

    /// One point at a time, by definition.
    fn expected(values: &[f64], statistic: EnsembleStatistic) -> f64 {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let percentage =
            |holds: &dyn Fn(f64) -> bool| 100.0 * values.iter().filter(|value| holds(**value)).count() as f64 / count;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        match statistic {
            EnsembleStatistic::Sum => values.iter().sum(),
            EnsembleStatistic::Mean => mean,
            EnsembleStatistic::Spread => {
                (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
            }
            EnsembleStatistic::Min => sorted[0],
            EnsembleStatistic::Max => sorted[sorted.len() - 1],
            EnsembleStatistic::Percentile(percent) => {
                let place = (count - 1.0) * (percent / 100.0);
                let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
                low + (high - low) * place.fract()
            }
            EnsembleStatistic::Above(limit) => percentage(&|value| value > limit),
            EnsembleStatistic::Below(limit) => percentage(&|value| value < limit),
            EnsembleStatistic::AtLeast(limit) => percentage(&|value| value >= limit),
            EnsembleStatistic::AtMost(limit) => percentage(&|value| value <= limit),
        }
    }

    fn of(members: &[Vec<f64>], statistics: &[EnsembleStatistic]) -> Vec<Vec<f64>> {
        let mut made = vec![vec![0.0; members[0].len()]; statistics.len()];
        let members: Vec<&[f64]> = members.iter().map(Vec::as_slice).collect();
        let mut into: Vec<&mut [f64]> = made.iter_mut().map(Vec::as_mut_slice).collect();
        assert!(ensemble(&members, statistics, &mut into));
        made
    }

    proptest! {
        #[test]
        fn each_point_has_its_statistics(count in 1_usize..70, points in 0_usize..200, seed in any::<u32>()) {
            // Some values are alike, and some are thresholds.
            let value = |number: usize| f64::from((number as u32 ^ seed).wrapping_mul(2_654_435_761) >> 22) / 512.0 - 0.5;
            let member = |number: usize| (0..points).map(|point| value(number * points + point)).collect();
            let members: Vec<Vec<f64>> = (0..count).map(member).collect();
            let made = of(&members, &ALL);
            for point in 0..points {
                let values: Vec<f64> = members.iter().map(|member| member[point]).collect();
                for (statistic, made) in ALL.iter().zip(&made) {
                    let expected = expected(&values, *statistic);
                    prop_assert!((made[point] - expected).abs() < 1e-14, "{:?} {} {}", statistic, made[point], expected);
                }
            }
        }
    }

    #[test]
    fn a_point_that_one_member_lacks_has_no_statistic() {
        let members = [vec![1.0, f64::NAN, 3.0], vec![2.0, 2.0, f64::NAN], vec![3.0, 4.0, 5.0]];
        for made in of(&members, &ALL) {
            assert_eq!(
                made.iter().map(|value| value.is_nan()).collect::<Vec<_>>(),
                [false, true, true]
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (one, two) = ([0.0; 3], [0.0; 4]);
        let mut made = [0.0; 3];
        assert!(!ensemble(&[], &[EnsembleStatistic::Mean], &mut [&mut made]));
        assert!(!ensemble(&[&one, &two], &[EnsembleStatistic::Mean], &mut [&mut made]));
        assert!(!ensemble(&[&two], &[EnsembleStatistic::Mean], &mut [&mut made]));
        assert!(!ensemble(&[&one], &[], &mut [&mut made]));
    }
}
