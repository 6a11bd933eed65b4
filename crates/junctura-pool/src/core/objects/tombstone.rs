//! Tombstones: keys that were visible and are gone, remembered for a time and up to a count.
//!
//! A tombstone is what can still be said of an object: its attributes, its version, why it went. It stands in two queues,
//! that of all and that of its dataset, and leaves both when it is too old, when there are too many, or when its key is
//! offered again.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use junctura_model::RecordRef;
use junctura_model::selector::SelectorSet;
use junctura_wire::body::ObjectName;
use slab::Slab;

use crate::Effects;
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::demand_probe::Declined;
use crate::core::interests::follow::send_gap;
use crate::core::objects::byte_arena::{Line, Pages};
use crate::core::objects::key_table::Filed;
use crate::core::objects::linked_queue::{Links, Queue};
use crate::core::objects::object::Why;

/// What is remembered of an object that is gone.
pub(in crate::core) struct Tombstone {
    pub(in crate::core) key: u128,
    pub(in crate::core) sequence: u64,
    record: Line,
    pub(in crate::core) schema: u16,
    /// `None`: it was never here, since nothing wanted it.
    pub(in crate::core) why: Option<Why>,
    /// Where it lies, if a store has it.
    pub(in crate::core) place: Option<Arc<str>>,
    dataset: u64,
    buried: Nanoseconds,
    by_age: Links,
    in_dataset: Links,
}

/// What a follow that goes on from a cursor has missed.
#[derive(Clone, Copy)]
pub(in crate::core) enum Missed {
    /// Its tombstone.
    Gone(u32),
    /// The object, which is out of sight.
    Departing(u32),
}

/// All tombstones.
#[derive(Default)]
pub(in crate::core) struct Tombstones {
    table: Slab<Tombstone>,
    by_age: Queue,
    datasets: HashMap<u64, OfDataset>,
    records: Pages,
}

#[derive(Default)]
struct OfDataset {
    by_age: Queue,
    count: usize,
}

impl Tombstones {
    pub(in crate::core) fn len(&self) -> usize {
        self.table.len()
    }

    pub(in crate::core) fn get(&self, id: u32) -> &Tombstone {
        &self.table[id as usize]
    }

    /// The attributes of the object.
    pub(in crate::core) fn record(&self, tombstone: &Tombstone) -> RecordRef<'_> {
        RecordRef::trusted(self.records.read(tombstone.record))
    }

    fn name(&self, id: u32) -> ObjectName<'_> {
        let tombstone = self.get(id);
        ObjectName {
            schema: tombstone.schema,
            sequence: tombstone.sequence,
            record: self.records.read(tombstone.record).into(),
        }
    }

    /// When the oldest is to be forgotten.
    pub(in crate::core) fn next_expiry(&self, age: Duration) -> Option<Nanoseconds> {
        let oldest = self.get(self.by_age.first()?);
        Some(oldest.buried.saturating_add(age.as_nanos() as u64))
    }

    fn of_dataset(&self, dataset: u64) -> usize {
        self.datasets.get(&dataset).map_or(0, |of_dataset| of_dataset.count)
    }

    fn oldest(&self, count: usize) -> Vec<u32> {
        self.by_age.iter(&self.table, |one| &one.by_age).take(count).collect()
    }

    fn oldest_of(&self, dataset: u64, count: usize) -> Vec<u32> {
        let queue = self
            .datasets
            .get(&dataset)
            .map(|of_dataset| of_dataset.by_age)
            .unwrap_or_default();
        queue.iter(&self.table, |one| &one.in_dataset).take(count).collect()
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

/// How many go at once where there may be so many.
fn surplus(count_max: usize) -> usize {
    1 + count_max / 256
}

impl Core {
    /// Remembers an object that has just gone: from now on its key stands for the tombstone.
    pub(in crate::core) fn bury(&mut self, id: u32, why: Why) {
        let object = &self.objects[id as usize];
        let (key, dataset) = (object.key, object.dataset);
        if !self.make_room_for_tombstone(dataset) {
            self.unfile_key(key, Filed::Object(id));
            return;
        }
        let object = &self.objects[id as usize];
        let place = object.archived.as_ref().and_then(|archived| archived.place.clone());
        let record = self.tombstones.records.write(&object.record);
        let record_bytes = object.record.len();
        let tombstone = self.tombstones.add(Tombstone {
            key,
            sequence: object.sequence,
            record,
            schema: object.schema,
            why: Some(why),
            place,
            dataset,
            buried: self.now,
            by_age: Links::default(),
            in_dataset: Links::default(),
        });
        self.keys.replace(key, Filed::Object(id), Filed::Tombstone(tombstone));
        self.weigh_tombstone(record_bytes);
    }

    /// Remembers that nothing wanted the object of a key, which stands for nothing.
    pub(in crate::core) fn mark(&mut self, key: u128, dataset: u64, declined: Declined<'_>) {
        if !self.make_room_for_tombstone(dataset) || !self.has_room_for_record(declined.record.len() as u32) {
            return;
        }
        let record = self.tombstones.records.write(declined.record);
        let marker = self.tombstones.add(Tombstone {
            key,
            sequence: 0,
            record,
            schema: declined.schema,
            why: None,
            place: None,
            dataset,
            buried: self.now,
            by_age: Links::default(),
            in_dataset: Links::default(),
        });
        self.file(key, Filed::Tombstone(marker));
        self.weigh_tombstone(declined.record.len());
    }

    /// False where none is to be kept.
    fn make_room_for_tombstone(&mut self, dataset: u64) -> bool {
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

    /// Forgets the oldest of them, so many at most; false where there are none.
    pub(in crate::core) fn forget_some_tombstones(&mut self, count: usize) -> bool {
        let oldest = self.tombstones.oldest(count);
        self.dig_up_all(&oldest);
        !oldest.is_empty()
    }

    /// Makes room for more than one, since what is known of old keys lies far apart in memory, and a processor fetches for
    /// many at once in little more time than for one.
    fn dig_up_all(&mut self, oldest: &[u32]) {
        self.keys.fetch(
            oldest
                .iter()
                .map(|&id| (self.tombstones.get(id).key, Filed::Tombstone(id))),
        );
        for &id in oldest {
            self.dig_up(id);
        }
    }

    /// Forgets a tombstone: its key is offered again, or it is too old, or there are too many.
    pub(in crate::core) fn dig_up(&mut self, id: u32) {
        let tombstone = self.tombstones.remove(id);
        self.unfile_key(tombstone.key, Filed::Tombstone(id));
        self.weigh_tombstone_no_more(self.tombstones.records.read(tombstone.record).len());
        self.tombstones.records.erase(tombstone.record);
        self.forget_place(tombstone.place);
    }

    /// What became visible after `since`, matches, and is gone or out of sight, in the order of the numbers.
    pub(in crate::core) fn missed_after(&mut self, since: u64, selectors: &SelectorSet) -> Vec<Missed> {
        let departing = self.out_of_sight_after(since, selectors);
        let gone = self.tombstones_after(since, selectors).into_iter().map(Missed::Gone);
        let mut missed: Vec<Missed> = gone.chain(departing.into_iter().map(Missed::Departing)).collect();
        missed.sort_by_key(|&missed| match missed {
            Missed::Gone(id) => self.tombstones.get(id).sequence,
            Missed::Departing(id) => self.objects[id as usize].sequence,
        });
        missed
    }

    fn tombstones_after(&self, since: u64, selectors: &SelectorSet) -> Vec<u32> {
        let is_missed = |tombstone: &Tombstone| {
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

    /// Tells a follow what it has missed.
    pub(in crate::core) fn tell_missed(&mut self, client: u32, request: u64, missed: &[Missed], fx: &mut impl Effects) {
        let why = |missed: Missed| match missed {
            Missed::Gone(id) => self.tombstones.get(id).why,
            Missed::Departing(id) => self.objects[id as usize].departs.or(Some(Why::Expired)),
        };
        for same in missed.chunk_by(|&one, &next| why(one) == why(next)) {
            let names = same.iter().map(|&missed| match missed {
                Missed::Gone(id) => self.tombstones.name(id),
                Missed::Departing(id) => self.objects[id as usize].name(),
            });
            let reason = why(same[0]).map_or("", Why::name);
            send_gap(&mut self.count, client, request, names, reason, fx);
        }
    }

    pub(in crate::core) fn forget_old_tombstones(&mut self) {
        let age = self.config.tombstone_age;
        while self.tombstones.next_expiry(age).is_some_and(|at| at <= self.now)
            && let Some(oldest) = self.tombstones.by_age.first()
        {
            self.dig_up(oldest);
        }
    }
}
