//! Tombstones: keys that were visible and are gone, remembered for a time and up to a count.
//!
//! A tombstone is what can still be said of an object: its attributes, its version, why it went. It stands in two queues,
//! that of all and that of its dataset, and leaves both when it is too old, when there are too many, or when its key is
//! offered again.

use std::time::Duration;

use hashbrown::HashMap;
use junctura_model::RecordRef;
use junctura_model::selector::SelectorSet;
use junctura_wire::body::ObjectName;
use slab::Slab;

use super::follow::send_gap;
use super::keys::Filed;
use super::object::{Spare, Why};
use super::queue::{Links, Queue};
use super::{Core, Nanoseconds};
use crate::Effects;

/// What is remembered of an object that is gone.
pub(super) struct Tombstone {
    pub(super) key: u128,
    pub(super) sequence: u64,
    record: Vec<u8>,
    schema: u16,
    pub(super) why: Why,
    dataset: u64,
    buried: Nanoseconds,
    by_age: Links,
    in_dataset: Links,
}

/// All tombstones.
#[derive(Default)]
pub(super) struct Tombstones {
    table: Slab<Tombstone>,
    by_age: Queue,
    datasets: HashMap<u64, OfDataset>,
    /// Apart from those of objects: these have long left the processor's cache, and a new object's attributes are read again
    /// as soon as they are written.
    spare: Spare,
}

#[derive(Default)]
struct OfDataset {
    by_age: Queue,
    count: usize,
}

impl Tombstone {
    pub(super) fn record(&self) -> RecordRef<'_> {
        RecordRef::trusted(&self.record)
    }

    fn name(&self) -> ObjectName<'_> {
        ObjectName {
            schema: self.schema,
            sequence: self.sequence,
            record: self.record.as_slice().into(),
        }
    }
}

impl Tombstones {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn get(&self, id: u32) -> &Tombstone {
        &self.table[id as usize]
    }

    /// When the oldest is to be forgotten.
    pub(super) fn next_expiry(&self, age: Duration) -> Option<Nanoseconds> {
        let oldest = self.get(self.by_age.first()?);
        Some(oldest.buried.saturating_add(age.as_nanos() as u64))
    }

    fn of_dataset(&self, dataset: u64) -> usize {
        self.datasets.get(&dataset).map_or(0, |of_dataset| of_dataset.count)
    }

    fn oldest_of(&self, dataset: u64) -> Option<u32> {
        self.datasets.get(&dataset)?.by_age.first()
    }

    fn add(&mut self, tombstone: Tombstone) -> u32 {
        let of_dataset = self.datasets.entry(tombstone.dataset).or_default();
        of_dataset.count += 1;
        let id = self.table.insert(tombstone) as u32;
        of_dataset.by_age.push(&mut self.table, id, |one| &mut one.in_dataset);
        self.by_age.push(&mut self.table, id, |one| &mut one.by_age);
        id
    }

    fn remove(&mut self, id: u32) -> Tombstone {
        let dataset = self.get(id).dataset;
        if let Some(of_dataset) = self.datasets.get_mut(&dataset) {
            of_dataset.count -= 1;
            of_dataset.by_age.remove(&mut self.table, id, |one| &mut one.in_dataset);
            if of_dataset.count == 0 {
                self.datasets.remove(&dataset);
            }
        }
        self.by_age.remove(&mut self.table, id, |one| &mut one.by_age);
        self.table.remove(id as usize)
    }
}

impl Core {
    /// Remembers an object that has just gone: from now on its key stands for the tombstone.
    pub(super) fn bury(&mut self, now: Nanoseconds, id: u32, why: Why) {
        let object = &self.objects[id as usize];
        let (key, dataset) = (object.key, object.dataset);
        let (in_dataset_max, all_max) = (self.config.tombstones_per_dataset, self.config.tombstones);
        if in_dataset_max == 0 || all_max == 0 {
            self.keys.remove(key, Filed::Object(id));
            return;
        }
        if self.tombstones.of_dataset(dataset) >= in_dataset_max {
            self.dig_up_oldest(in_dataset_max, |tombstones| tombstones.oldest_of(dataset));
        } else if self.tombstones.len() >= all_max {
            self.dig_up_oldest(all_max, |tombstones| tombstones.by_age.first());
        }
        let object = &self.objects[id as usize];
        let tombstone = self.tombstones.add(Tombstone {
            key,
            sequence: object.sequence,
            record: Vec::new(),
            schema: object.schema,
            why,
            dataset,
            buried: now,
            by_age: Links::default(),
            in_dataset: Links::default(),
        });
        // Only now, for the same reason as a new object's.
        let record = self.tombstones.spare.filled(&object.record);
        self.tombstones.table[tombstone as usize].record = record;
        self.keys.replace(key, Filed::Object(id), Filed::Tombstone(tombstone));
    }

    /// Makes room among `count`: for more than one, since what is known of old keys lies far apart in memory, and a
    /// processor fetches for many at once in little more time than for one.
    fn dig_up_oldest(&mut self, count: usize, oldest: impl Fn(&Tombstones) -> Option<u32>) {
        const ONE_IN: usize = 256;
        for _ in 0..=count / ONE_IN {
            if let Some(oldest) = oldest(&self.tombstones) {
                self.dig_up(oldest);
            }
        }
    }

    /// Forgets a tombstone: its key is offered again, or it is too old, or there are too many.
    pub(super) fn dig_up(&mut self, id: u32) {
        let tombstone = self.tombstones.remove(id);
        self.keys.remove(tombstone.key, Filed::Tombstone(id));
        self.tombstones.spare.keep(tombstone.record);
    }

    /// Tombstones of objects that became visible after `since` and match, in the order of their numbers.
    pub(super) fn tombstones_after(&self, since: u64, selectors: &SelectorSet) -> Vec<u32> {
        let is_missed = |tombstone: &Tombstone| {
            tombstone.sequence > since
                && selectors
                    .of(usize::from(tombstone.schema))
                    .is_some_and(|one| one.matches(tombstone.record()))
        };
        let all = self.tombstones.table.iter();
        let mut missed: Vec<_> = all.filter(|(_, tombstone)| is_missed(tombstone)).collect();
        missed.sort_unstable_by_key(|(_, tombstone)| tombstone.sequence);
        missed.into_iter().map(|(id, _)| id as u32).collect()
    }

    /// Tells a follow what it has missed.
    pub(super) fn tell_missed(&mut self, client: u32, request: u64, missed: &[u32], fx: &mut impl Effects) {
        let why = |id: u32| self.tombstones.get(id).why;
        for same in missed.chunk_by(|&one, &next| why(one) == why(next)) {
            let names = same.iter().map(|&id| self.tombstones.get(id).name());
            send_gap(&mut self.count, client, request, names, why(same[0]).name(), fx);
        }
    }

    pub(super) fn forget_old_tombstones(&mut self, now: Nanoseconds) {
        let age = self.config.tombstone_age;
        while self.tombstones.next_expiry(age).is_some_and(|at| at <= now)
            && let Some(oldest) = self.tombstones.by_age.first()
        {
            self.dig_up(oldest);
        }
    }
}
