//! Eviction of archived objects when memory is short.

use crate::Effects;
use crate::core::exchange::ObjectExchange;
use crate::core::memory::spare::is_spare_still;
use crate::core::objects::object::RemovalReason;

impl ObjectExchange {
    /// Evicts one archived object, if memory is short.
    pub(in crate::core) fn make_room(&mut self, fx: &mut impl Effects) -> bool {
        if !self.memory.somebody_waits_for_room() {
            self.memory.eviction.left_bytes = 0;
            self.memory.eviction.idle_rounds = 0;
            self.memory.eviction.is_urged = false;
            if !self.memory.is_above_high_mark() {
                return false;
            }
        }
        let Some(id) = self.memory.first_spare(&mut self.objects) else {
            return false;
        };
        let is_needed = self.memory.is_to_help() || self.memory.is_above_high_mark();
        if !is_needed || !self.deferred.take_turn() {
            return false;
        }
        self.memory.eviction.queue.pop_front();
        self.memory.eviction.left_bytes += self.objects[id].length;
        self.memory.eviction.is_urged = false;
        self.leave_for_store(id, fx);
        true
    }

    /// The same in the file tier, if it is full.
    pub(in crate::core) fn make_room_in_file(&mut self, fx: &mut impl Effects) -> bool {
        if !self.memory.is_tier_full() {
            return false;
        }
        while let Some(entry) = self.memory.eviction.in_file.pop_front() {
            if is_spare_still(&mut self.objects, entry) {
                self.leave_for_store(entry.0, fx);
                return true;
            }
        }
        false
    }

    pub(in crate::core) fn leave_for_store(&mut self, id: u32, fx: &mut impl Effects) {
        let object = &self.objects[id];
        if object.is_out_of_sight(self.asked.timers.now) {
            self.see_off(id, fx);
        } else {
            fx.left_for_store(object.sequence);
            self.remove(id, RemovalReason::Archived, fx);
        }
    }
}
