//! Weighted sums of values: a sparse matrix whose memory the caller has, applied to a field.

/// The weights of target points, row by row.
#[derive(Clone, Copy, Debug)]
pub struct SparseRows<'a> {
    /// Where the links of each row begin, and, after the last row, where they end.
    pub starts: &'a [i64],
    /// The source point of each link.
    pub columns: &'a [u32],
    /// The weight of each link.
    pub weights: &'a [f64],
}

impl SparseRows<'_> {
    /// Writes the weighted sum of each row, in the order of its links.
    ///
    /// Missing values (NaN) follow the rule of MIR. A row without links is missing, and so is one whose greatest weight,
    /// the first of several that are equal, is that of a missing value, and one that has missing values only. Of all
    /// others the present values count, and their weights are divided by the sum of these weights.
    ///
    /// Returns false if the parts do not fit together: `made` is then not complete.
    #[must_use]
    pub fn apply(&self, values: &[f64], made: &mut [f64]) -> bool {
        self.starts.len() == made.len() + 1
            && self.columns.len() == self.weights.len()
            && self
                .starts
                .windows(2)
                .zip(made)
                .all(|(ends, sum)| self.row(ends, values).map(|found| *sum = found).is_some())
    }

    fn row(&self, ends: &[i64], values: &[f64]) -> Option<f64> {
        let links = usize::try_from(ends[0]).ok()?..usize::try_from(ends[1]).ok()?;
        let (columns, weights) = (self.columns.get(links.clone())?, self.weights.get(links)?);
        let mut sum = 0.0;
        for (&column, weight) in columns.iter().zip(weights) {
            sum += weight * values.get(column as usize)?;
        }
        if columns.is_empty() {
            return Some(f64::NAN);
        }
        Some(if sum.is_nan() {
            without_missing(columns, weights, values)
        } else {
            sum
        })
    }
}

/// The sum of a row some of whose values are missing; all its columns are within the values.
fn without_missing(columns: &[u32], weights: &[f64], values: &[f64]) -> f64 {
    let links = || {
        weights
            .iter()
            .zip(columns.iter().map(|column| values[*column as usize]))
    };
    let present = || links().filter(|(_, value)| !value.is_nan());
    let total = present().fold(0.0, |sum, (weight, _)| sum + weight);
    let (_, heaviest) = links().fold((f64::NEG_INFINITY, f64::NAN), |most, (weight, value)| {
        if *weight > most.0 { (*weight, value) } else { most }
    });
    if total > 0.0 && !heaviest.is_nan() {
        let factor = 1.0 / total;
        present().fold(0.0, |sum, (weight, value)| sum + weight * factor * value)
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(starts: &[i64], columns: &[u32], weights: &[f64], values: &[f64]) -> Option<Vec<f64>> {
        let rows = SparseRows {
            starts,
            columns,
            weights,
        };
        let mut made = vec![0.0; starts.len() - 1];
        rows.apply(values, &mut made).then_some(made)
    }

    #[test]
    fn rows_are_sums_in_the_order_of_their_links() {
        let found = applied(&[0, 2, 3], &[0, 2, 1], &[0.25, 0.75, 1.0], &[4.0, 5.0, 8.0]);
        assert_eq!(found, Some(vec![7.0, 5.0]));
    }

    #[test]
    fn a_missing_value_counts_where_it_has_the_greatest_weight() {
        let values = [f64::NAN, 6.0, 3.0];
        let found = applied(
            &[0, 2, 4, 4, 5],
            &[0, 1, 0, 2, 0],
            &[0.5, 0.5, 0.25, 0.75, 1.0],
            &values,
        );
        let found = found.unwrap_or_default();
        assert!(
            found[0].is_nan(),
            "the first of two equal weights is that of a missing value"
        );
        assert_eq!(found[1].to_bits(), 3.0_f64.to_bits());
        assert!(found[2].is_nan() && found[3].is_nan());
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        assert_eq!(applied(&[0, 1], &[3], &[1.0], &[1.0]), None);
        assert_eq!(applied(&[0, 2], &[0], &[1.0], &[1.0]), None);
        assert_eq!(applied(&[1, 0], &[0], &[1.0], &[1.0]), None);
        assert_eq!(applied(&[-1, 0], &[0], &[1.0], &[1.0]), None);
        assert_eq!(applied(&[0, 1], &[0], &[1.0, 2.0], &[1.0]), None);
    }
}
