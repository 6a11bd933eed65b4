//! Tombstones: keys of removed objects, remembered for a time and up to a count.
//!
//! A tombstone has the attributes of an object, its version, and the reason of its removal. It is in two queues, that
//! of the pool and that of its dataset, and leaves both when it is too old, when there are too many, or when its key is
//! offered again.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use junctura_model::RecordRef;
use junctura_wire::body::ObjectName;
use slab::Slab;

use crate::core::containers::byte_arena::{ArenaString, ByteArena};
use crate::core::containers::linked_queue::{LinkedQueue, QueueLinks};
use crate::core::engine::timers::Nanoseconds;
use crate::core::objects::object::RemovalReason;

/// The record of a removed object.
pub(in crate::core) struct KeyTombstone {
    pub(in crate::core) key: u128,
    pub(in crate::core) sequence: u64,
    pub(in crate::core) record: ArenaString,
    pub(in crate::core) schema: u16,
    /// `None`: the object was never offered, since no interest wanted it.
    pub(in crate::core) why: Option<RemovalReason>,
    /// The place of the component that has withdrawn it.
    pub(in crate::core) by: Option<u8>,
    /// The place in a store, if it is archived.
    pub(in crate::core) place: Option<Arc<str>>,
    pub(in crate::core) dataset: u64,
    pub(in crate::core) buried: Nanoseconds,
}

/// The objects that a follow from a cursor has missed.
#[derive(Clone, Copy)]
pub(in crate::core) enum MissedObjects {
    /// Its tombstone.
    Gone(u32),
    /// The hidden object.
    Departing(u32),
}

/// All tombstones.
#[derive(Default)]
pub(in crate::core) struct TombstoneTable {
    pub(in crate::core) table: Slab<KeyTombstone>,
    pub(in crate::core) by_age: LinkedQueue,
    by_age_links: QueueLinks,
    pub(in crate::core) datasets: HashMap<u64, OfDataset>,
    in_dataset_links: QueueLinks,
    pub(in crate::core) records: ByteArena,
}

#[derive(Default)]
pub(in crate::core) struct OfDataset {
    pub(in crate::core) by_age: LinkedQueue,
    pub(in crate::core) count: usize,
}

impl TombstoneTable {
    pub(in crate::core) fn len(&self) -> usize {
        self.table.len()
    }

    pub(in crate::core) fn get(&self, id: u32) -> &KeyTombstone {
        &self.table[id as usize]
    }

    /// Returns the attributes of the object.
    pub(in crate::core) fn record(&self, tombstone: &KeyTombstone) -> RecordRef<'_> {
        RecordRef::trusted(self.records.read(tombstone.record))
    }

    pub(in crate::core) fn name(&self, id: u32) -> ObjectName<'_> {
        let tombstone = self.get(id);
        ObjectName {
            schema: tombstone.schema,
            sequence: tombstone.sequence,
            record: self.records.read(tombstone.record).into(),
        }
    }

    /// Returns when the oldest is to be forgotten.
    pub(in crate::core) fn next_expiry(&self, age: Duration) -> Option<Nanoseconds> {
        let oldest = self.get(self.by_age.first()?);
        Some(oldest.buried.saturating_add(age.as_nanos() as u64))
    }

    pub(in crate::core) fn of_dataset(&self, dataset: u64) -> usize {
        self.datasets.get(&dataset).map_or(0, |of_dataset| of_dataset.count)
    }

    pub(in crate::core) fn oldest(&self, count: usize) -> Vec<u32> {
        self.by_age.iter(&self.by_age_links).take(count).collect()
    }

    pub(in crate::core) fn oldest_of(&self, dataset: u64, count: usize) -> Vec<u32> {
        let queue = self
            .datasets
            .get(&dataset)
            .map(|of_dataset| of_dataset.by_age)
            .unwrap_or_default();
        queue.iter(&self.in_dataset_links).take(count).collect()
    }

    pub(in crate::core) fn add(&mut self, tombstone: KeyTombstone) -> u32 {
        let of_dataset = self.datasets.entry(tombstone.dataset).or_default();
        of_dataset.count += 1;
        let id = self.table.insert(tombstone) as u32;
        of_dataset.by_age.push(&mut self.in_dataset_links, id);
        self.by_age.push(&mut self.by_age_links, id);
        id
    }

    pub(in crate::core) fn remove(&mut self, id: u32) -> KeyTombstone {
        let dataset = self.get(id).dataset;
        if let Some(of_dataset) = self.datasets.get_mut(&dataset) {
            of_dataset.count -= 1;
            of_dataset.by_age.remove(&mut self.in_dataset_links, id);
            if of_dataset.count == 0 {
                self.datasets.remove(&dataset);
            }
        }
        self.by_age.remove(&mut self.by_age_links, id);
        self.table.remove(id as usize)
    }
}

/// Returns how many to remove at once for such a maximum.
pub(in crate::core) fn surplus(count_max: usize) -> usize {
    1 + count_max / 256
}
