//! Objects become tombstones, and tombstones are forgotten.

use std::time::Duration;

use junctura_model::selector::SelectorSet;

use crate::Effects;
use crate::core::clients::stat::PoolCounters;
use crate::core::containers::byte_arena::ArenaString;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::flow::demand_probe::DeclinedOffer;
use crate::core::interests::flow::follow::send_gap;
use crate::core::objects::key_table::KeyEntry;
use crate::core::objects::object::RemovalReason;
use crate::core::objects::table::ObjectTable;
use crate::core::objects::tombstone::{KeyTombstone, MissedObjects, surplus};

impl ObjectTable {
    /// Whether a key has a marker, and nothing else.
    pub(in crate::core) fn is_marker(&self, filed: KeyEntry) -> bool {
        matches!(filed, KeyEntry::Tombstone(id) if self.tombstones.get(id).why.is_none())
    }

    /// Whether no object has or had this key, as far as is remembered.
    pub(in crate::core) fn is_free(&self, key: u128) -> bool {
        self.find_key(key).is_none_or(|filed| self.is_marker(filed))
    }

    /// Returns why a key is taken under a schema that rejects a second object, and what frees it: a time, or a command.
    pub(in crate::core) fn why_taken(&self, filed: KeyEntry, now: Nanoseconds, forget: &str) -> String {
        const SUPERSEDE: &str = "with `same_key: supersede` in its schema another replaces it";
        let age = self.config.tombstone_age;
        let seconds = |time: Duration| format!("{} s", time.as_millis().div_ceil(1000));
        match filed {
            KeyEntry::Object(_) => {
                format!("an object with this key is in the pool; its key is free at once with {forget}; {SUPERSEDE}")
            }
            KeyEntry::Tombstone(id) => {
                let tombstone = self.tombstones.get(id);
                let gone = Duration::from_nanos(now.saturating_sub(tombstone.buried));
                format!(
                    "an object with this key was in the pool, and {} {} ago; its key is free in {}, or at once with {forget}; {SUPERSEDE}",
                    tombstone.why.map_or("was removed", RemovalReason::sentence),
                    seconds(gone),
                    seconds(age.saturating_sub(gone))
                )
            }
        }
    }

    pub(in crate::core) fn forget_marker(&mut self, filed: KeyEntry) {
        if let KeyEntry::Tombstone(id) = filed {
            self.dig_up(id);
        }
    }

    /// Adds a tombstone for an object that was just removed, under its key.
    pub(in crate::core) fn bury(&mut self, now: Nanoseconds, id: u32, why: RemovalReason) {
        let object = &self.table[id as usize];
        let (key, dataset) = (object.key, object.dataset);
        if !self.make_room_for_tombstone(dataset) {
            self.unfile_key(key, KeyEntry::Object(id));
            return;
        }
        let object = &self.table[id as usize];
        let tombstone = self.tombstones.add(KeyTombstone {
            key,
            sequence: object.sequence,
            record: ArenaString::default(),
            schema: object.schema,
            why: Some(why),
            by: object.withdrawn_by.filter(|_| why == RemovalReason::Withdrawn),
            place: object.archived.as_ref().and_then(|archived| archived.place.clone()),
            dataset,
            buried: now,
        });
        // Only now, as in `insert_object`.
        let record_bytes = object.record.len();
        self.tombstones.table[tombstone as usize].record = self.tombstones.records.write(&object.record);
        self.keys
            .replace(key, KeyEntry::Object(id), KeyEntry::Tombstone(tombstone));
        self.weigh_tombstone(record_bytes);
    }

    /// Adds a marker under a free key: no interest wanted its object.
    pub(in crate::core) fn mark(&mut self, now: Nanoseconds, key: u128, dataset: u64, declined: DeclinedOffer<'_>) {
        if !self.make_room_for_tombstone(dataset) || !self.has_room_for_record(declined.record.len() as u32) {
            return;
        }
        let record = self.tombstones.records.write(declined.record);
        let marker = self.tombstones.add(KeyTombstone {
            key,
            sequence: 0,
            record,
            schema: declined.schema,
            why: None,
            by: None,
            place: None,
            dataset,
            buried: now,
        });
        self.file(key, KeyEntry::Tombstone(marker));
        self.weigh_tombstone(declined.record.len());
    }

    /// Returns false if no tombstone is to be kept.
    pub(in crate::core) fn make_room_for_tombstone(&mut self, dataset: u64) -> bool {
        let (in_dataset_max, all_max) = (self.config.tombstones_per_dataset, self.config.tombstones);
        if in_dataset_max == 0 || all_max == 0 {
            return false;
        }
        if self.tombstones.of_dataset(dataset) >= in_dataset_max {
            self.dig_up_all(&self.tombstones.oldest_of(dataset, surplus(in_dataset_max)));
        } else if self.tombstones.len() >= all_max {
            self.dig_up_all(&self.tombstones.oldest(surplus(all_max)));
        }
        true
    }

    /// Forgets the oldest tombstones, so many at most; returns false if there are none.
    pub(in crate::core) fn forget_some_tombstones(&mut self, count: usize) -> bool {
        let oldest = self.tombstones.oldest(count);
        self.dig_up_all(&oldest);
        !oldest.is_empty()
    }

    /// Forgets several tombstones at once: old keys are far apart in memory, and a processor fetches many in little
    /// more time than one.
    pub(in crate::core) fn dig_up_all(&mut self, oldest: &[u32]) {
        self.keys.fetch(
            oldest
                .iter()
                .map(|&id| (self.tombstones.get(id).key, KeyEntry::Tombstone(id))),
        );
        for &id in oldest {
            self.dig_up(id);
        }
    }

    /// Forgets a tombstone: its key is offered again, or it is too old, or there are too many.
    pub(in crate::core) fn dig_up(&mut self, id: u32) {
        let tombstone = self.tombstones.remove(id);
        self.unfile_key(tombstone.key, KeyEntry::Tombstone(id));
        self.weigh_tombstone_no_more(self.tombstones.records.read(tombstone.record).len());
        self.tombstones.records.erase(tombstone.record);
        self.forget_place(tombstone.place);
    }

    /// Returns the tombstone of a key; markers are none.
    pub(in crate::core) fn tombstone_of(&self, identity: u128) -> Option<u32> {
        match self.find_key(identity)? {
            KeyEntry::Tombstone(id) if self.tombstones.get(id).why.is_some() => Some(id),
            KeyEntry::Tombstone(_) | KeyEntry::Object(_) => None,
        }
    }

    pub(in crate::core) fn tombstones_after(&self, since: u64, selectors: &SelectorSet) -> Vec<u32> {
        let is_missed = |tombstone: &KeyTombstone| {
            tombstone.sequence > since
                && selectors
                    .of(usize::from(tombstone.schema))
                    .is_some_and(|one| one.matches(self.tombstones.record(tombstone)))
        };
        let all = self.tombstones.table.iter();
        all.filter(|(_, tombstone)| is_missed(tombstone))
            .map(|(id, _)| id as u32)
            .collect()
    }

    /// Sends a follow the gaps that it has missed.
    pub(in crate::core) fn tell_missed(
        &mut self,
        count: &mut PoolCounters,
        client: u32,
        request: u64,
        missed: &[MissedObjects],
        fx: &mut impl Effects,
    ) {
        let why = |missed: MissedObjects| match missed {
            MissedObjects::Gone(id) => self.tombstones.get(id).why,
            MissedObjects::Departing(id) => self.table[id as usize].departs.or(Some(RemovalReason::Expired)),
        };
        for same in missed.chunk_by(|&one, &next| why(one) == why(next)) {
            let names = same.iter().map(|&missed| match missed {
                MissedObjects::Gone(id) => self.tombstones.name(id),
                MissedObjects::Departing(id) => self.table[id as usize].name(),
            });
            let reason = why(same[0]).map_or("", RemovalReason::name);
            send_gap(count, client, request, names, reason, fx);
        }
    }

    /// Forgets tombstones that are too old, of which so many may be forgotten now.
    pub(in crate::core) fn forget_old_tombstones(&mut self, now: Nanoseconds, may: &mut usize) {
        let age = self.config.tombstone_age;
        while *may > 0
            && self.tombstones.next_expiry(age).is_some_and(|at| at <= now)
            && let Some(oldest) = self.tombstones.by_age.first()
        {
            self.dig_up(oldest);
            *may -= 1;
        }
    }
}
