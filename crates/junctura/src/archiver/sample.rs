//! Sampling: one of every so many objects.

use std::collections::HashMap;

use crate::object::Object;

/// All counts restart when more collocations than this are counted.
const COUNTED_MAX: usize = 1 << 20;

/// Counts objects of each collocation (all levels of the key but the last) separately, so that interleaved producers
/// are not mistaken for one sequence.
#[derive(Debug)]
pub(super) struct CollocationSample {
    every: u64,
    counts: HashMap<Vec<String>, u64>,
}

impl CollocationSample {
    pub(super) fn new(every: u64) -> Self {
        Self {
            every,
            counts: HashMap::new(),
        }
    }

    /// Returns whether the next object is part of the sample; the first is.
    pub(super) fn takes(&mut self, object: &Object) -> bool {
        if self.every <= 1 {
            return true;
        }
        let schema = object.schema();
        let [_, end, _] = schema.level_ends();
        let is_above = |name: &str| schema.find(name).is_some_and(|id| id.index() < end);
        let above = object.attributes().filter(|(name, _)| is_above(name));
        let texts = above.flat_map(|(name, value)| [name, value]);
        let collocation = std::iter::once(schema.name()).chain(texts);
        self.counts(collocation.map(str::to_owned).collect())
    }

    fn counts(&mut self, collocation: Vec<String>) -> bool {
        if self.counts.len() >= COUNTED_MAX {
            self.counts.clear();
        }
        let count = self.counts.entry(collocation).or_default();
        *count += 1;
        (*count - 1).is_multiple_of(self.every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_collocation_is_counted_for_itself() {
        let mut sample = CollocationSample::new(3);
        let taken: Vec<bool> = ["a", "b", "a", "a", "b", "a", "b", "b"]
            .into_iter()
            .map(|one| sample.counts(vec![one.to_owned()]))
            .collect();
        assert_eq!(taken, [true, true, false, false, false, true, false, true]);
    }
}
