//! Tombstones: keys that were visible and are gone, remembered for a time and up to a count.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;
use junctura_model::selector::SelectorSet;

use super::{Core, Nanoseconds};

/// Which objects of the table are tombstones, oldest first.
#[derive(Default)]
pub(super) struct Tombstones {
    ages: VecDeque<Tombstone>,
    datasets: HashMap<u64, VecDeque<(u32, u64)>>,
    count: usize,
}

struct Tombstone {
    object: u32,
    sequence: u64,
    dataset: u64,
    buried: Nanoseconds,
}

impl Tombstones {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// When the oldest is to be forgotten.
    pub(super) fn next_expiry(&self, age: Duration) -> Option<Nanoseconds> {
        self.ages.front().map(|oldest| oldest.buried + age.as_nanos() as u64)
    }
}

impl Core {
    /// Remembers an object that has just gone.
    pub(super) fn bury(&mut self, now: Nanoseconds, id: u32) {
        if self.config.tombstones == 0 || self.config.tombstones_per_dataset == 0 {
            let key = self.objects[id as usize].key;
            self.keys.remove(&key);
            return;
        }
        let object = &mut self.objects[id as usize];
        object.is_tombstone = true;
        let sequence = object.sequence;
        let dataset = self.dataset_of(id);
        self.tombstones.ages.push_back(Tombstone { object: id, sequence, dataset, buried: now });
        self.tombstones.count += 1;
        let of_dataset = self.tombstones.datasets.entry(dataset).or_default();
        of_dataset.push_back((id, sequence));
        if of_dataset.len() > self.config.tombstones_per_dataset
            && let Some((oldest, its_sequence)) = of_dataset.pop_front()
        {
            self.dig_up(oldest, its_sequence);
        }
        while self.tombstones.ages.len() > self.config.tombstones {
            self.forget_oldest();
        }
    }

    /// The key is offered again, or too old: its tombstone goes.
    pub(super) fn dig_up(&mut self, id: u32, sequence: u64) {
        let Some(object) = self.objects.get_mut(id as usize) else { return };
        if object.sequence != sequence || !object.is_tombstone {
            return;
        }
        object.is_tombstone = false;
        self.tombstones.count -= 1;
        if self.keys.get(&object.key) == Some(&id) {
            self.keys.remove(&object.key);
        }
        self.forget_if_unneeded(id);
    }

    /// Tombstones of objects that became visible after `since` and match, in the order of their numbers.
    pub(super) fn tombstones_after(&self, since: u64, selectors: &SelectorSet) -> Vec<u32> {
        let is_missed = |tombstone: &&Tombstone| {
            tombstone.sequence > since
                && self.objects.get(tombstone.object as usize).is_some_and(|object| {
                    object.sequence == tombstone.sequence
                        && object.is_tombstone
                        && selectors.of(usize::from(object.schema)).is_some_and(|one| one.matches(object.record()))
                })
        };
        let mut missed: Vec<_> = self.tombstones.ages.iter().filter(is_missed).collect();
        missed.sort_unstable_by_key(|tombstone| tombstone.sequence);
        missed.into_iter().map(|tombstone| tombstone.object).collect()
    }

    pub(super) fn forget_old_tombstones(&mut self, now: Nanoseconds) {
        while self.tombstones.next_expiry(self.config.tombstone_age).is_some_and(|at| at <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.tombstones.ages.pop_front() else { return };
        if let Some(of_dataset) = self.tombstones.datasets.get_mut(&oldest.dataset) {
            if of_dataset.front().is_some_and(|&(_, sequence)| sequence == oldest.sequence) {
                of_dataset.pop_front();
            }
            if of_dataset.is_empty() {
                self.tombstones.datasets.remove(&oldest.dataset);
            }
        }
        self.dig_up(oldest.object, oldest.sequence);
    }

    fn dataset_of(&self, id: u32) -> u64 {
        let object = &self.objects[id as usize];
        let end = self.config.schemas[usize::from(object.schema)].level_ends()[0];
        let bytes = object.record().key_bytes(end);
        xxhash_rust::xxh3::xxh3_64_with_seed(bytes, u64::from(object.schema))
    }
}
