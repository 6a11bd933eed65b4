//! Objects that a follow which goes on from a cursor has missed.

use junctura_model::selector::SelectorSet;

use crate::core::engine::Core;
use crate::core::objects::tombstone::Missed;

impl Core {
    /// What became visible after `since`, matches, and is gone or out of sight, in the order of the numbers.
    pub(in crate::core) fn missed_after(&mut self, since: u64, selectors: &SelectorSet) -> Vec<Missed> {
        let departing = self.out_of_sight_after(since, selectors);
        let gone = self
            .objects
            .tombstones_after(since, selectors)
            .into_iter()
            .map(Missed::Gone);
        let mut missed: Vec<Missed> = gone.chain(departing.into_iter().map(Missed::Departing)).collect();
        missed.sort_by_key(|&missed| match missed {
            Missed::Gone(id) => self.objects.tombstones.get(id).sequence,
            Missed::Departing(id) => self.objects[id].sequence,
        });
        missed
    }
}
