//! Removal of expired objects.

use crate::Effects;
use crate::core::exchange::ObjectExchange;
use crate::core::objects::object::RetainedUntil;

impl ObjectExchange {
    /// Removes objects whose time is over, unless a requirement is owed them: as many as one event may remove. The
    /// others are hidden ([`crate::core::deferred`]).
    pub(in crate::core) fn expire_due(&mut self, fx: &mut impl Effects) {
        self.memory.freed.gathers = true;
        while self
            .objects
            .expiries
            .next()
            .is_some_and(|at| at <= self.asked.timers.now)
            && self.deferred.take_turn()
            && let Some((_, _, id)) = self.objects.expiries.take_due(self.asked.timers.now)
        {
            let object = &mut self.objects[id];
            object.until = RetainedUntil::Over;
            if object.departs.is_none() {
                self.settle(id, fx);
            }
            self.objects.expiries.tidy(&self.objects.table);
        }
        self.memory.freed.gathers = false;
        self.memory.freed.tell(fx);
    }
}
