//! Claims: the objects that requirements are owed, their number, and the objects that they will not receive.

use std::collections::VecDeque;

use junctura_model::{Code, Error, RecordRef, Result};

use crate::core::clients::requests::ClientRequests;
use crate::core::clients::table::ClientTable;
use crate::core::engine::timers::TimerQueue;
use crate::core::interests::gaps::{LostObject, LostObjects};
use crate::core::interests::requirement::{FEW, OwedObjects, RequirementState};
use crate::core::interests::table::InterestTable;
use crate::core::memory::hoarding::StuckWatch;
use crate::core::memory::shortage::MemoryShortage;
use crate::core::memory::spill::TierState;
use crate::core::objects::table::ObjectTable;

impl InterestTable {
    pub(in crate::core) fn is_owed(&self, objects: &ObjectTable, id: u32, object: u32) -> bool {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        let sequence = objects[object].sequence;
        self.requirement_ref(id)
            .is_some_and(|requirement| requirement.owed.contains_key(&sequence))
    }

    pub(in crate::core) fn waits_for(&self, objects: &ObjectTable, id: u32, object: u32) -> bool {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        let sequence = objects[object].sequence;
        self.requirement_ref(id)
            .and_then(|r| r.owed.get(&sequence))
            .is_some_and(|owed| owed.in_flight == 0)
    }

    /// Returns the requirements that are owed an object, in the order of their creation. If there are many, the index
    /// of selectors finds them.
    pub(in crate::core) fn claimants(&mut self, objects: &ObjectTable, object: u32) -> Vec<u32> {
        let entry = &objects[object];
        let mut found = Vec::new();
        if entry.owed == 0 {
            return found;
        }
        if self.requirements.len() <= FEW {
            found.extend(self.requirements.iter());
        } else {
            self.matching[usize::from(entry.schema)].matches(entry.record(), &mut found);
        }
        found.retain(|&id| self.is_owed(objects, id, object));
        found.sort_unstable_by_key(|&id| self.requirements.turn_of(id));
        found
    }

    pub(in crate::core) fn count_claimants(&mut self, schema: u16, record: &[u8]) -> usize {
        let mut matched = std::mem::take(&mut self.matched);
        matched.clear();
        self.matching[usize::from(schema)].matches(RecordRef::trusted(record), &mut matched);
        let is_claimant = |&&id: &&u32| self.requirement_ref(id).is_some_and(|one| one.broken.is_none());
        let count = matched.iter().filter(is_claimant).count();
        self.matched = matched;
        count
    }

    /// Whether each requirement that matches may be owed one more object.
    pub(in crate::core) fn may_be_owed(&mut self, schema: u16, record: &[u8]) -> bool {
        !self.is_owed_as_much_as_may_be() || self.owed + self.count_claimants(schema, record) <= self.config.limits.owed
    }

    /// # Errors
    /// `LimitExceeded` where a new requirement would be owed more than all together may.
    pub(in crate::core) fn may_be_owed_at_once(&self, objects: usize) -> Result<()> {
        let limit = self.config.limits.owed;
        if objects > 0 && self.owed + objects > limit {
            let cause = format!(
                "it would be owed {objects} objects, and requirements may be owed {limit} together, of which they are owed {}",
                self.owed
            );
            return Err(Error::new(Code::LimitExceeded, "requirement", cause));
        }
        Ok(())
    }

    /// Whether an object that all requirements match has to wait.
    pub(in crate::core) fn is_owed_as_much_as_may_be(&self) -> bool {
        self.owed + self.requirements.len() > self.config.limits.owed
    }

    /// Subtracts one object that a requirement is owed.
    pub(in crate::core) fn weigh_owed_no_more(&mut self) {
        self.came_free |= self.is_owed_as_much_as_may_be();
        self.owed -= 1;
    }

    /// Returns the objects that a follow through the requirement begins with; they must be put into its queue.
    ///
    /// # Errors
    /// `Conflict` where another follow reads it.
    pub(in crate::core) fn owed_waiting(&mut self, clients: &ClientTable, id: u32) -> Result<Vec<u32>> {
        self.refuse_second_reader(clients, id)?;
        let Some(requirement) = self.requirement_mut(id) else {
            return Ok(Vec::new());
        };
        let mut waiting = Vec::new();
        for owed in requirement.owed.values_mut() {
            owed.queued = owed.in_flight == 0;
            if owed.queued {
                waiting.push(owed.object);
            }
        }
        Ok(waiting)
    }

    pub(in crate::core) fn refuse_second_reader(&self, clients: &ClientTable, id: u32) -> Result<()> {
        let Some(requirement) = self.requirement_ref(id) else {
            return Ok(());
        };
        let (subject, cause) = match (requirement.reader, requirement.named()) {
            (None, _) => return Ok(()),
            (Some(_), None) => (
                requirement.selectors.text().to_owned(),
                "a follow reads this requirement already".to_owned(),
            ),
            (Some(_), Some(named)) => (
                format!("requirement {}", named.name),
                format!("{} reads it, and one reads at a time", self.reader_of(clients, id)),
            ),
        };
        Err(Error::new(Code::Conflict, subject, cause))
    }

    /// Ends a delivery of a forfeited object; returns true for the last one.
    pub(in crate::core) fn no_longer_forfeited(&mut self, objects: &ObjectTable, id: u32, object: u32) -> bool {
        let sequence = objects[object].sequence;
        let Some(requirement) = self.requirement_mut(id) else {
            return false;
        };
        let Some(deliveries) = requirement.forfeited.get_mut(&sequence) else {
            return false;
        };
        *deliveries -= 1;
        let was_last = *deliveries == 0;
        if was_last {
            requirement.forfeited.remove(&sequence);
        }
        was_last
    }

    /// Counts an object that only requirements keep toward their quotas.
    pub(in crate::core) fn charge(&mut self, objects: &ObjectTable, object: u32) {
        let entry = &objects[object];
        let (sequence, length) = (entry.sequence, entry.length);
        let claimants = match self.breakers.on_full.len() {
            0..=FEW => self.breakers.on_full.iter().collect(),
            _ => self.claimants(objects, object),
        };
        for id in claimants {
            let is_over = self
                .requirement_mut(id)
                .filter(|one| one.bounds.breaks_on_full)
                .is_some_and(|one| one.charge(sequence, length) && one.quota_exceeded().is_some());
            if is_over {
                self.breakers.over_quota.insert(id);
            }
        }
    }

    pub(in crate::core) fn may_charge(&self) -> bool {
        !self.breakers.on_full.is_empty()
    }

    /// Returns the stuck requirement that keeps most.
    pub(in crate::core) fn most_stuck(
        &self,
        objects: &ObjectTable,
        timers: &TimerQueue,
        shortage: MemoryShortage,
    ) -> Option<u32> {
        let is_stuck = |one: &RequirementState| {
            one.broken.is_none()
                && one.owed_len() > 0
                && one.progress.saturating_add(one.bounds.stuck_after) <= timers.now
        };
        let keeps = |id: u32| {
            let one = self.requirement_ref(id).filter(|one| is_stuck(one))?;
            let kept = one.kept_of(objects, shortage);
            (kept > 0).then_some((kept, id))
        };
        self.requirements.iter().filter_map(keeps).max().map(|(_, id)| id)
    }

    /// Returns the spillable objects of the requirement that keeps most, oldest first.
    pub(in crate::core) fn largest_holding(&self, objects: &ObjectTable) -> VecDeque<(u32, u32)> {
        let queued = |id: u32| {
            let object = &objects[id];
            match object.leaving {
                TierState::Queued(entry) if object.holders == 0 && !object.is_kept_by_retention() => {
                    Some((object.length, (id, entry)))
                }
                _ => None,
            }
        };
        let mut largest = (0, Vec::new());
        for requirement in self.requirements.iter().filter_map(|id| self.requirement_ref(id)) {
            let bytes: u64 = requirement.objects().filter_map(queued).map(|(length, _)| length).sum();
            if bytes > largest.0 {
                let its = requirement.objects().filter_map(queued).map(|(_, entry)| entry);
                largest = (bytes, its.collect());
            }
        }
        largest.1.into()
    }

    pub(in crate::core) fn keep_gaps(&mut self, objects: &ObjectTable, id: u32, lost: &[u32], reason: &'static str) {
        const BYTES_EACH: usize = size_of::<LostObject>();
        let (limit_each, limit) = (
            self.config.limits.gap_bytes_per_requirement,
            self.config.limits.gap_bytes,
        );
        for &object in lost {
            let entry = &objects[object];
            let (schema, sequence) = (entry.schema, entry.sequence);
            let bytes = BYTES_EACH + entry.record.len();
            let is_full = self.gap_bytes + bytes > limit;
            let Some(requirement) = self.requirement_mut(id) else {
                return;
            };
            requirement.lost.is_full |= requirement.lost.bytes + bytes > limit_each;
            if is_full || requirement.lost.is_counted() {
                requirement.lost.count(reason);
                continue;
            }
            let record = objects[object].record.clone();
            if let Some(requirement) = self.requirement_mut(id) {
                requirement.lost.bytes += bytes;
                requirement.lost.items.push(LostObject {
                    schema,
                    sequence,
                    record,
                    reason,
                });
                self.gap_bytes += bytes;
            }
        }
    }

    /// Gives back the bytes of recorded gaps after they were sent, or after their last reader has ended.
    pub(in crate::core) fn forget_lost(&mut self, lost: &LostObjects) {
        self.gap_bytes -= lost.bytes;
    }

    /// Takes back the objects that an ending requirement has yet to be owed.
    pub(in crate::core) fn forget_beginning(&mut self, requirement: &RequirementState) {
        if let Some(beginning) = &requirement.beginning {
            self.owed -= beginning.left.len();
            self.came_free = true;
        }
    }

    /// Starts to watch a new requirement, which may be broken later.
    pub(in crate::core) fn watch_over(&mut self, watch: &mut StuckWatch, timers: &TimerQueue, id: u32) {
        let Some(bounds) = self.requirement_ref(id).map(|one| one.bounds) else {
            return;
        };
        if bounds.breaks_on_full {
            self.breakers.on_full.insert(id);
        }
        let may_be_stuck = timers.now.saturating_add(bounds.stuck_after / 2);
        watch.looks = watch.looks.filter(|&at| at <= may_be_stuck);
    }
}

impl ClientRequests {
    /// Marks an object as delivered through a requirement; returns whether this is a redelivery after a client was
    /// lost.
    pub(in crate::core) fn mark_in_flight(
        &mut self,
        objects: &ObjectTable,
        id: u32,
        object: u32,
        from_queue: bool,
    ) -> bool {
        let sequence = objects[object].sequence;
        let Some(requirement) = self.interests.requirement_mut(id) else {
            return false;
        };
        let Some(owed) = requirement.owed.get_mut(&sequence) else {
            if let Some(deliveries) = requirement.forfeited.get_mut(&sequence) {
                *deliveries += 1;
            }
            return false;
        };
        owed.in_flight += 1;
        owed.queued &= !from_queue;
        requirement.in_flight += 1;
        let again = owed.again;
        self.wind(id);
        again
    }

    /// Owes the requirement an object; returns the object's sequence number.
    pub(in crate::core) fn owe(&mut self, objects: &mut ObjectTable, id: u32, object: u32) -> u64 {
        let entry = &objects[object];
        let (sequence, length, since) = (entry.sequence, entry.length, self.timers.now);
        let queued = self.interests.reader_that_takes(id).is_some();
        let Some(requirement) = self.interests.requirement_mut(id) else {
            return sequence;
        };
        if requirement.owed.is_empty() {
            requirement.progress = since;
            requirement.is_reported = false;
        }
        let owed = OwedObjects {
            object,
            in_flight: 0,
            queued,
            charged: false,
            again: false,
            since,
        };
        if requirement.owed.insert(sequence, owed).is_none() {
            requirement.owed_bytes += length;
            self.interests.owed += 1;
            objects[object].owed += 1;
        }
        sequence
    }
}
