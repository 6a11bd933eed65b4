//! The order of values, keys and objects: numbers and times by value, keys attribute by attribute.

use std::cmp::Ordering;

use super::{AttrId, Schema};
use crate::RecordRef;

impl Schema {
    /// Compares two canonical values of an attribute: numbers and times by their value, others as texts.
    #[must_use]
    pub fn compare_values(&self, id: AttrId, x: &str, y: &str) -> Ordering {
        if x == y {
            return Ordering::Equal;
        }
        let scalar = self.attribute(id).kind.scalar;
        match (scalar.order(x), scalar.order(y)) {
            (Some(x), Some(y)) => x.cmp(&y),
            _ => Ordering::Equal,
        }
        .then_with(|| x.cmp(y))
    }

    /// Compares the keys of two records: in the order of the key's attributes, absent first.
    ///
    /// ```
    /// # use junctura_model::Schema;
    /// # use std::cmp::Ordering;
    /// # fn main() -> junctura_model::Result<()> {
    /// let runs = Schema::parse_yaml(
    ///     "{name: runs, key: {dataset: [run], collocation: [], element: [step]}, \
    ///       attributes: {run: {type: string}, step: {type: step}}}",
    /// )?;
    /// let (early, late) = (runs.parse_key("{run=a}{}{step=9}")?, runs.parse_key("{run=a}{}{step=10}")?);
    /// assert_eq!(runs.compare_keys(early.as_ref(), late.as_ref()), Ordering::Less);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn compare_keys(&self, a: RecordRef<'_>, b: RecordRef<'_>) -> Ordering {
        if a.key_bytes(self.key_len()) == b.key_bytes(self.key_len()) {
            return Ordering::Equal;
        }
        let mut left = a.iter().take_while(|(id, ..)| id.index() < self.key_len());
        let mut right = b.iter().take_while(|(id, ..)| id.index() < self.key_len());
        loop {
            return match (left.next(), right.next()) {
                (Some((a, _, x)), Some((b, _, y))) if a == b => match self.compare_values(a, x, y) {
                    Ordering::Equal => continue,
                    other => other,
                },
                (Some((a, ..)), Some((b, ..))) => b.index().cmp(&a.index()),
                (Some(_), None) => Ordering::Greater,
                (None, Some(_)) => Ordering::Less,
                (None, None) => Ordering::Equal,
            };
        }
    }
}
