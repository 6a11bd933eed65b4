//! Look-ups of visible objects by selectors, without those that are out of sight.

use junctura_model::selector::SelectorSet;

use crate::core::clients::table::ClientTable;
use crate::core::engine::timers::Nanoseconds;
use crate::core::objects::look_ahead::Ahead;
use crate::core::objects::order::Incremental;
use crate::core::objects::table::ObjectTable;
use crate::core::objects::tombstone::Missed;

/// What look-ups leave out: what is out of sight, and has yet to go ([`crate::core::deferred`]).
#[derive(Clone, Copy)]
pub(in crate::core) struct Sight {
    /// The time, where something may be out of sight.
    pub(in crate::core) departed_by: Option<Nanoseconds>,
}

impl ObjectTable {
    /// The visible objects that match, in no order.
    pub(in crate::core) fn visible_matches(
        &mut self,
        clients: &mut ClientTable,
        sight: Sight,
        selectors: &SelectorSet,
    ) -> Vec<u32> {
        let mut found = self.all_matches(clients, selectors);
        if let Some(now) = sight.departed_by {
            found.retain(|&id| !self[id].is_out_of_sight(now));
        }
        found
    }

    /// Of the visible objects that match, the newest.
    pub(in crate::core) fn newest_match(
        &mut self,
        clients: &mut ClientTable,
        sight: Sight,
        selectors: &SelectorSet,
    ) -> Option<u32> {
        let found = self.visible_matches(clients, sight, selectors);
        found.into_iter().max_by_key(|&id| self[id].sequence)
    }

    /// The visible objects that match, to be changed. Where they are very many, those among them that are out of sight are left out later,
    /// by [`Self::was_there`].
    pub(in crate::core) fn matches_to_change(
        &mut self,
        clients: &mut ClientTable,
        sight: Sight,
        selectors: &SelectorSet,
    ) -> Vec<u32> {
        let mut found = self.all_matches(clients, selectors);
        if let Some(now) = sight.departed_by.filter(|_| found.len() <= self.config.changed_at_once) {
            found.retain(|&id| !self[id].is_out_of_sight(now));
        }
        found
    }

    /// The visible objects that match, to be given in the order of the request that is going on.
    pub(in crate::core) fn sorted_matches(
        &mut self,
        clients: &mut ClientTable,
        sight: Sight,
        selectors: &SelectorSet,
    ) -> Incremental {
        self.index_all();
        match self.take_ahead(clients, selectors).filter(Ahead::is_sorted) {
            Some(ahead) => {
                let mut found = ahead.into_sorted();
                if let Some(now) = sight.departed_by {
                    found.retain(|id| !self[id].is_out_of_sight(now));
                }
                found
            }
            None => Incremental::new(self.visible_matches(clients, sight, selectors)),
        }
    }

    /// What is out of sight and matches, of what became visible after `since`.
    fn out_of_sight_after(
        &mut self,
        clients: &mut ClientTable,
        sight: Sight,
        since: u64,
        selectors: &SelectorSet,
    ) -> Vec<u32> {
        let Some(now) = sight.departed_by else {
            return Vec::new();
        };
        let mut all = self.all_matches(clients, selectors);
        all.retain(|&id| self[id].sequence > since && self[id].is_out_of_sight(now));
        all
    }

    /// What became visible after `since`, matches, and is gone or out of sight, in the order of the numbers.
    pub(in crate::core) fn missed_after(
        &mut self,
        clients: &mut ClientTable,
        sight: Sight,
        since: u64,
        selectors: &SelectorSet,
    ) -> Vec<Missed> {
        let departing = self.out_of_sight_after(clients, sight, since, selectors);
        let gone = self.tombstones_after(since, selectors).into_iter().map(Missed::Gone);
        let mut missed: Vec<Missed> = gone.chain(departing.into_iter().map(Missed::Departing)).collect();
        missed.sort_by_key(|&missed| match missed {
            Missed::Gone(id) => self.tombstones.get(id).sequence,
            Missed::Departing(id) => self[id].sequence,
        });
        missed
    }
}
