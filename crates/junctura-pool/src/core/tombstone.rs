//! Tombstones: keys that were visible and are gone, remembered for a time and up to a count.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;
use junctura_model::selector::SelectorSet;
use slab::Slab;

use super::object::Object;
use super::{Core, Nanoseconds};

/// Which objects of the table are tombstones.
///
/// The queues may also name objects whose key was offered again; such entries count for nothing, never stand first in
/// `ages`, and are thrown out before they are more than those that count.
#[derive(Default)]
pub(super) struct Tombstones {
    /// Oldest first.
    ages: VecDeque<Tombstone>,
    datasets: HashMap<u64, OfDataset>,
    count: usize,
}

#[derive(Clone, Copy)]
struct Tombstone {
    object: u32,
    sequence: u64,
    buried: Nanoseconds,
}

#[derive(Default)]
struct OfDataset {
    /// Oldest first: objects and their sequence numbers.
    ages: VecDeque<(u32, u64)>,
    count: usize,
}

/// Queues up to this length are not worth cleaning.
const LEFTOVERS_MAX: usize = 64;

impl Tombstones {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// When the oldest is to be forgotten.
    pub(super) fn next_expiry(&self, age: Duration) -> Option<Nanoseconds> {
        self.ages
            .front()
            .map(|oldest| oldest.buried.saturating_add(age.as_nanos() as u64))
    }

    /// Throws out entries that count for nothing: all at the front, the others when there are many.
    fn clean(&mut self, objects: &Slab<Object>) {
        while self
            .ages
            .front()
            .is_some_and(|oldest| !is_tombstone(objects, oldest.object, oldest.sequence))
        {
            self.ages.pop_front();
        }
        if self.ages.len() > 2 * self.count + LEFTOVERS_MAX {
            self.ages.retain(|one| is_tombstone(objects, one.object, one.sequence));
        }
    }
}

fn is_tombstone(objects: &Slab<Object>, id: u32, sequence: u64) -> bool {
    objects
        .get(id as usize)
        .is_some_and(|object| object.is_tombstone && object.sequence == sequence)
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
        let (sequence, dataset) = (object.sequence, object.dataset);
        self.tombstones.ages.push_back(Tombstone {
            object: id,
            sequence,
            buried: now,
        });
        self.tombstones.count += 1;
        let of_dataset = self.tombstones.datasets.entry(dataset).or_default();
        of_dataset.ages.push_back((id, sequence));
        of_dataset.count += 1;
        if of_dataset.count > self.config.tombstones_per_dataset {
            let objects = &self.objects;
            let oldest =
                std::iter::from_fn(|| of_dataset.ages.pop_front()).find(|&(id, s)| is_tombstone(objects, id, s));
            if let Some((oldest, its_sequence)) = oldest {
                self.dig_up(oldest, its_sequence);
            }
        }
        if self.tombstones.count > self.config.tombstones {
            self.forget_oldest();
        }
    }

    /// The key is offered again, or too old: its tombstone goes.
    pub(super) fn dig_up(&mut self, id: u32, sequence: u64) {
        if !is_tombstone(&self.objects, id, sequence) {
            return;
        }
        let dataset = self.objects[id as usize].dataset;
        let object = &mut self.objects[id as usize];
        object.is_tombstone = false;
        if self.keys.get(&object.key) == Some(&id) {
            self.keys.remove(&object.key);
        }
        self.tombstones.count -= 1;
        if let Some(of_dataset) = self.tombstones.datasets.get_mut(&dataset) {
            of_dataset.count -= 1;
            if of_dataset.count == 0 {
                self.tombstones.datasets.remove(&dataset);
            } else if of_dataset.ages.len() > 2 * of_dataset.count + LEFTOVERS_MAX {
                let objects = &self.objects;
                of_dataset
                    .ages
                    .retain(|&(id, sequence)| is_tombstone(objects, id, sequence));
            }
        }
        self.tombstones.clean(&self.objects);
        self.forget_if_unneeded(id);
    }

    /// Tombstones of objects that became visible after `since` and match, in the order of their numbers.
    pub(super) fn tombstones_after(&self, since: u64, selectors: &SelectorSet) -> Vec<u32> {
        let is_missed = |tombstone: &&Tombstone| {
            tombstone.sequence > since && is_tombstone(&self.objects, tombstone.object, tombstone.sequence) && {
                let object = &self.objects[tombstone.object as usize];
                selectors
                    .of(usize::from(object.schema))
                    .is_some_and(|one| one.matches(object.record()))
            }
        };
        let mut missed: Vec<_> = self.tombstones.ages.iter().filter(is_missed).collect();
        missed.sort_unstable_by_key(|tombstone| tombstone.sequence);
        missed.into_iter().map(|tombstone| tombstone.object).collect()
    }

    pub(super) fn forget_old_tombstones(&mut self, now: Nanoseconds) {
        while self
            .tombstones
            .next_expiry(self.config.tombstone_age)
            .is_some_and(|at| at <= now)
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(&Tombstone { object, sequence, .. }) = self.tombstones.ages.front() {
            self.dig_up(object, sequence);
        }
    }
}
