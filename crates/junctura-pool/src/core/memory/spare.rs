//! The choice and the time of the next eviction.

use crate::core::engine::timers::{NOBODY, TimerEvent, TimerQueue};
use crate::core::memory::eviction::{DOUBLED_MAX, ROUND, ROUND_TIMER};
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::shortage::MemoryShortage;
use crate::core::objects::object::PayloadLocation;
use crate::core::objects::table::ObjectTable;

impl PayloadMemory {
    /// Queues a stored object as spare if it is archived and only retention keeps it.
    pub(in crate::core) fn may_be_spare(&mut self, objects: &mut ObjectTable, id: u32) {
        let object = &mut objects[id];
        if object.archived.is_none() || !object.is_spare() {
            return;
        }
        let sequence = object.sequence;
        if let Some(archived) = object.archived.as_mut().filter(|archived| !archived.is_queued) {
            archived.is_queued = true;
            self.eviction.queue.push_back((id, sequence));
            self.eviction.tidy(&objects.table);
        }
    }

    /// Whether an object in memory is spare.
    pub(in crate::core) fn has_spare(&mut self, objects: &mut ObjectTable) -> bool {
        self.first_spare(objects).is_some()
    }

    /// Returns the object to evict next; drops entries on the way that are not spare any longer, or not in memory.
    pub(in crate::core) fn first_spare(&mut self, objects: &mut ObjectTable) -> Option<u32> {
        while let Some(&entry) = self.eviction.queue.front() {
            let is_spare = is_spare_still(objects, entry);
            if is_spare && !matches!(objects[entry.0].place, PayloadLocation::File { .. }) {
                return Some(entry.0);
            }
            self.eviction.queue.pop_front();
            if is_spare {
                self.eviction.in_file.push_back(entry);
            }
        }
        None
    }

    /// Whether a waiting client has no memory to work with, and more may be evicted in this round. When every such
    /// client has been served, the next one is served at once.
    pub(in crate::core) fn is_to_help(&mut self) -> bool {
        let is_somebody_stranded = || self.waiting_leases.values().any(|lease| self.is_stranded(lease));
        let is_offer_stalled = [MemoryShortage::Payload, MemoryShortage::Records]
            .into_iter()
            .any(|shortage| self.stalled.wait_for(shortage));
        if !is_offer_stalled && !is_somebody_stranded() {
            self.eviction.left_bytes = 0;
            return self.eviction.is_urged;
        }
        self.eviction.idle_rounds = 0;
        let limits = self.ledger.limits();
        self.eviction.left_bytes < limits.budget_bytes - limits.high_mark_bytes
    }

    /// Schedules another round while a client waits and more may be evicted.
    pub(in crate::core) fn watch_for_room(&mut self, timers: &mut TimerQueue) {
        if !self.eviction.has_spare() || !self.somebody_waits_for_room() {
            return;
        }
        let at = timers
            .now
            .saturating_add(ROUND << self.eviction.idle_rounds.min(DOUBLED_MAX));
        if self.eviction.next_round.is_none_or(|next| at < next) {
            self.eviction.next_round = Some(at);
            timers.set(at, NOBODY, ROUND_TIMER, TimerEvent::Room);
        }
    }

    /// Begins another round.
    pub(in crate::core) fn go_round(&mut self) {
        self.eviction.next_round = None;
        self.eviction.left_bytes = 0;
        self.eviction.idle_rounds += 1;
        self.eviction.is_urged = true;
    }
}

/// Whether an entry's object is still spare. If not, the entry is void: the object gets another one when it is spare
/// again.
pub(in crate::core) fn is_spare_still(objects: &mut ObjectTable, (id, sequence): (u32, u64)) -> bool {
    let Some(object) = objects.get_mut(id) else {
        return false;
    };
    if object.sequence != sequence {
        return false;
    }
    let is_spare = object.is_spare();
    if let Some(archived) = object.archived.as_mut().filter(|_| !is_spare) {
        archived.is_queued = false;
    }
    is_spare
}
