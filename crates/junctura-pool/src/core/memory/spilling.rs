//! The choice and the time of the next payload to spill.

use std::collections::VecDeque;

use junctura_model::{Result, size};

use crate::core::clients::stat::SpillStat;
use crate::core::engine::timers::{NOBODY, TimerEvent, TimerQueue};
use crate::core::interests::table::InterestTable;
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::spill::{
    BYTES_AT_ONCE, FileTier, PAUSE, PAUSE_TIMER, SpillTask, TURNS, TierState, still_stands,
};
use crate::core::objects::object::PayloadLocation;
use crate::core::objects::table::ObjectTable;
use crate::{Effects, SpillFrom, SpillJob};

impl PayloadMemory {
    /// Queues a stored object for spilling if no client holds it.
    pub(in crate::core) fn may_be_spilled(&mut self, objects: &mut ObjectTable, id: u32) {
        let Some(tier) = &mut self.tier else { return };
        let object = &mut objects[id];
        let is_in_memory = matches!(object.place, PayloadLocation::Inline | PayloadLocation::Slot { .. });
        let may_leave = object.holders == 0 && object.leaving == TierState::No && object.departs.is_none();
        if is_in_memory && object.length > 0 && may_leave {
            tier.enter(id, object);
            tier.tidy(&mut objects.table);
        }
    }

    /// Whether the file tier is writing for waiting clients.
    pub(in crate::core) fn is_spilling(&self) -> bool {
        self.tier.as_ref().is_some_and(|tier| !tier.jobs.is_empty())
    }

    pub(in crate::core) fn is_to_spill(&self) -> bool {
        let Some(tier) = &self.tier else { return false };
        let limits = self.ledger.limits();
        let bytes_at_once = BYTES_AT_ONCE.min(limits.budget_bytes - limits.high_mark_bytes);
        let may_write = !tier.is_paused && !tier.is_stuck && tier.may_write_more(bytes_at_once);
        may_write && !self.eviction.has_spare() && self.is_memory_short()
    }

    pub(in crate::core) fn is_memory_short(&self) -> bool {
        self.is_above_high_mark() || self.somebody_waits_for_memory()
    }

    /// Whether more bytes are in memory, and not being spilled, than the high-water mark.
    pub(in crate::core) fn is_above_high_mark(&self) -> bool {
        let (sums, limits) = (self.ledger.counters(), self.ledger.limits());
        let leaves = self.tier.as_ref().map_or(0, |tier| tier.bytes_underway);
        (sums.occupied_bytes + sums.inline_bytes).saturating_sub(leaves) > limits.high_mark_bytes
    }

    /// Whether memory is short, and the file tier has no room for a payload.
    pub(in crate::core) fn is_tier_full(&self) -> bool {
        let is_full =
            |tier: &FileTier| tier.is_stuck && !tier.is_paused && !tier.queue.is_empty() && tier.jobs.is_empty();
        self.tier.as_ref().is_some_and(is_full) && self.is_memory_short()
    }

    /// Starts as many writes as are allowed at once, if memory is short. Returns whether any was started.
    pub(in crate::core) fn spill(
        &mut self,
        objects: &mut ObjectTable,
        interests: &InterestTable,
        fx: &mut impl Effects,
    ) -> bool {
        let mut has_begun = false;
        while self.is_to_spill() && self.spill_next(objects, interests, fx) {
            has_begun = true;
        }
        has_begun
    }

    pub(in crate::core) fn spill_next(
        &mut self,
        objects: &mut ObjectTable,
        interests: &InterestTable,
        fx: &mut impl Effects,
    ) -> bool {
        if self.spill_whose_turn_it_is(objects, fx) {
            return true;
        }
        let turns = self.settle_turns(objects, interests);
        let Some(tier) = &mut self.tier else { return false };
        tier.turns = turns;
        let has_begun = self.spill_whose_turn_it_is(objects, fx);
        if !has_begun && let Some(tier) = &mut self.tier {
            tier.is_stuck = true;
        }
        has_begun
    }

    pub(in crate::core) fn spill_whose_turn_it_is(&mut self, objects: &mut ObjectTable, fx: &mut impl Effects) -> bool {
        while let Some(entry) = self.tier.as_mut().and_then(|tier| tier.turns.pop_front()) {
            if still_stands(&mut objects.table, entry) && self.begin_to_spill(objects, entry.0, fx) {
                return true;
            }
        }
        false
    }

    pub(in crate::core) fn settle_turns(
        &mut self,
        objects: &mut ObjectTable,
        interests: &InterestTable,
    ) -> VecDeque<(u32, u32)> {
        let Some(tier) = &mut self.tier else {
            return VecDeque::new();
        };
        tier.tidy(&mut objects.table);
        if tier.queue.is_empty() {
            return VecDeque::new();
        }
        let mut turns = interests.largest_holding(objects);
        let objects = &mut objects.table;
        let queue = self.tier.iter().flat_map(|tier| tier.queue.iter().copied());
        turns.extend(queue.filter(|&entry| still_stands(objects, entry)).take(TURNS));
        turns
    }

    /// Starts to write an object if the tier has room for it.
    pub(in crate::core) fn begin_to_spill(
        &mut self,
        objects: &mut ObjectTable,
        id: u32,
        fx: &mut impl Effects,
    ) -> bool {
        let (Some(tier), object) = (&mut self.tier, &mut objects[id]) else {
            return false;
        };
        let length = object.length;
        let from = match object.place {
            PayloadLocation::Inline => SpillFrom::Bytes(&object.inline),
            PayloadLocation::Slot { segment, slot } => match self.ledger.offset(segment, slot) {
                Some(offset) => SpillFrom::Segment { segment, offset },
                None => return false,
            },
            PayloadLocation::File { .. } | PayloadLocation::Freed => return false,
        };
        let Some(at) = tier.extents.take(length) else {
            return false;
        };
        let new = SpillTask {
            object: Some(id),
            at,
            length,
        };
        let job = tier.jobs.insert(new) as u32;
        tier.bytes_underway += length;
        object.leaving = TierState::Underway(job);
        fx.spill(SpillJob { job, from, length, at });
        true
    }

    pub(in crate::core) fn pause_after(&mut self, timers: &mut TimerQueue, outcome: Result<u32>) {
        let (Some(tier), Err(error)) = (&mut self.tier, outcome) else {
            return;
        };
        tier.count.refused += 1;
        tier.refusal = Some(error);
        tier.is_paused = true;
        let at = timers.now.saturating_add(PAUSE);
        timers.set(at, NOBODY, PAUSE_TIMER, TimerEvent::Pause);
    }

    /// Uses the disk again.
    pub(in crate::core) fn end_pause(&mut self) {
        if let Some(tier) = &mut self.tier {
            tier.is_paused = false;
            tier.is_stuck = false;
        }
    }

    /// Cancels the spilling of a payload that is no longer needed while it is being written: its room is given back.
    pub(in crate::core) fn give_up_writing(&mut self, objects: &mut ObjectTable, id: u32) {
        let leaving = std::mem::take(&mut objects[id].leaving);
        if let (Some(tier), TierState::Underway(job)) = (&mut self.tier, leaving)
            && let Some(job) = tier.jobs.get_mut(job as usize)
        {
            job.object = None;
        }
    }

    /// Frees the room of a payload in the file.
    pub(in crate::core) fn leave_tier(&mut self, at: u64, length: u64, fx: &mut impl Effects) {
        if let Some(tier) = &mut self.tier {
            tier.count.objects -= 1;
        }
        self.give_room_back(at, length, fx);
    }

    pub(in crate::core) fn give_room_back(&mut self, at: u64, length: u64, fx: &mut impl Effects) {
        if let Some(tier) = &mut self.tier {
            tier.extents.give(at, length);
            tier.is_stuck = false;
            fx.unspill(at, length);
        }
    }

    /// Describes how the file tier contributes to memory being full.
    pub(in crate::core) fn tier_text(&self) -> Option<String> {
        let (tier, spill) = (self.tier.as_ref()?, self.config.spill.as_ref()?);
        let (taken, limit) = (tier.extents.taken_bytes(), tier.limit_bytes());
        let refusal = tier.refusal.as_ref().filter(|_| tier.is_paused);
        let refusal = refusal.map_or_else(String::new, |error| format!(", and refused more: {}", error.cause()));
        let directory = spill.directory.display();
        Some(format!(
            "the file tier in {directory} holds {} of {}{refusal}",
            size::bytes(taken),
            size::bytes(limit)
        ))
    }

    pub(in crate::core) fn spill_stat(&self) -> Option<SpillStat> {
        let (tier, spill) = (self.tier.as_ref()?, self.config.spill.as_ref()?);
        Some(SpillStat {
            directory: spill.directory.display().to_string(),
            limit_bytes: tier.limit_bytes(),
            used_bytes: tier.extents.taken_bytes(),
            objects: tier.count.objects,
            underway: tier.jobs.len() as u64,
            written: tier.count.written,
            written_bytes: tier.count.written_bytes,
            refused: tier.count.refused,
            refusal: tier.refusal.as_ref().map(ToString::to_string),
        })
    }
}
