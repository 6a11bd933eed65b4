//! The objects of a pool with all their indexes: keys, tombstones, the listing index, expiries, and the budget of
//! records.
//!
//! The table has no effects and is independent of clients: its callers notify clients.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use junctura_model::index::ObjectIndex;
use junctura_model::{Code, Error, RecordChecker, RecordRef, Result};
use slab::Slab;

use crate::PoolConfig;
use crate::core::engine::timers::Nanoseconds;
use crate::core::memory::eviction::ArchivedCopy;
use crate::core::objects::expiry::ExpiryQueue;
use crate::core::objects::identity::{ObjectIdentity, dataset, identity};
use crate::core::objects::key_table::{KeyEntry, KeyTable, hash};
use crate::core::objects::look_ahead::PreparedRequest;
use crate::core::objects::object::{ObjectRow, ObjectState, RemovalReason, RetainedUntil, SpareBuffers};
use crate::core::objects::order::sortable_key;
use crate::core::objects::survey::OpenSurvey;
use crate::core::objects::tombstone::TombstoneTable;

/// Address space for the first objects. A table of this size is a mapping of its own, which grows without being copied;
/// memory is used as it is filled.
const OBJECT_TABLE_BYTES: usize = 64 << 20;

/// The table; see the module.
pub(in crate::core) struct ObjectTable {
    /// The number of comparisons of objects, and of objects that were verified.
    #[cfg(test)]
    pub(in crate::core) work: std::cell::Cell<u64>,
    pub(in crate::core) config: Arc<PoolConfig>,
    pub(in crate::core) table: Slab<ObjectRow>,
    /// Per schema: what proves that the records of offers are valid.
    checkers: Vec<RecordChecker>,
    /// The newest sequence number.
    pub(in crate::core) sequence: u64,
    /// Earlier versions that requirements were owed when newer ones became visible, by key.
    pub(in crate::core) superseded: BTreeSet<(u128, u32)>,
    pub(in crate::core) keys: KeyTable,
    pub(in crate::core) tombstones: TombstoneTable,
    /// Per schema: the visible objects that a selector could match.
    pub(in crate::core) listing: Vec<ObjectIndex>,
    pub(in crate::core) unindexed: VecDeque<(u32, u64)>,
    /// The preparations of the next requests of clients.
    pub(in crate::core) ahead: BTreeMap<u32, PreparedRequest>,
    /// The client whose prepared request is running.
    pub(in crate::core) ahead_of: Option<u32>,
    /// The surveys of the next requests, by client.
    pub(in crate::core) surveys: BTreeMap<u32, Box<OpenSurvey>>,
    pub(in crate::core) expiries: ExpiryQueue,
    pub(in crate::core) spare: SpareBuffers,
    /// Bytes of records.
    pub(in crate::core) record_bytes: u64,
    /// Records had no room for one of the maximum size, and have more room since this event.
    pub(in crate::core) came_free: bool,
    /// The place of the newest archived object, as long as an object or a tombstone refers to it: many objects share a
    /// place.
    pub(in crate::core) newest_place: Option<Arc<str>>,
}

impl ObjectTable {
    pub(in crate::core) fn new(config: &Arc<PoolConfig>) -> Self {
        Self {
            #[cfg(test)]
            work: std::cell::Cell::default(),
            config: Arc::clone(config),
            table: Slab::with_capacity(OBJECT_TABLE_BYTES / size_of::<ObjectRow>()),
            checkers: config.schemas.iter().cloned().map(RecordChecker::new).collect(),
            sequence: 0,
            superseded: BTreeSet::new(),
            keys: KeyTable::default(),
            tombstones: TombstoneTable::default(),
            listing: config.schemas.iter().map(|_| ObjectIndex::default()).collect(),
            unindexed: VecDeque::new(),
            ahead: BTreeMap::new(),
            ahead_of: None,
            surveys: BTreeMap::new(),
            expiries: ExpiryQueue::default(),
            spare: SpareBuffers::default(),
            record_bytes: 0,
            came_free: false,
            newest_place: None,
        }
    }

    pub(in crate::core) fn get(&self, id: u32) -> Option<&ObjectRow> {
        self.table.get(id as usize)
    }

    pub(in crate::core) fn get_mut(&mut self, id: u32) -> Option<&mut ObjectRow> {
        self.table.get_mut(id as usize)
    }

    pub(in crate::core) fn len(&self) -> usize {
        self.table.len()
    }

    pub(in crate::core) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

impl Index<u32> for ObjectTable {
    type Output = ObjectRow;

    fn index(&self, id: u32) -> &ObjectRow {
        &self.table[id as usize]
    }
}

impl IndexMut<u32> for ObjectTable {
    fn index_mut(&mut self, id: u32) -> &mut ObjectRow {
        &mut self.table[id as usize]
    }
}

impl ObjectTable {
    /// Finds the entry of a key.
    pub(in crate::core) fn find_key(&self, key: u128) -> Option<KeyEntry> {
        let is_it = |filed: &KeyEntry| filed.key(&self.table, &self.tombstones) == key;
        self.keys.0.find(hash(key), is_it).copied()
    }

    /// Adds a new object under its key, which must be free.
    pub(in crate::core) fn file_key(&mut self, key: u128, id: u32) {
        self.file(key, KeyEntry::Object(id));
    }

    pub(in crate::core) fn file(&mut self, key: u128, filed: KeyEntry) {
        let hash_of = |filed: &KeyEntry| hash(filed.key(&self.table, &self.tombstones));
        self.keys.0.insert_unique(hash(key), filed, hash_of);
    }

    /// Removes a key, if its entry is `filed`, which must still exist.
    pub(in crate::core) fn unfile_key(&mut self, key: u128, filed: KeyEntry) {
        let hash_of = |filed: &KeyEntry| hash(filed.key(&self.table, &self.tombstones));
        self.keys.0.remove(hash(key), |&other| other == filed, hash_of);
    }

    /// Returns the visible object of a key.
    ///
    /// # Errors
    /// `Gone` while its tombstone is remembered.
    pub(in crate::core) fn look_up(&self, identity: u128, text: &str) -> Result<Option<u32>> {
        match self.find_key(identity) {
            None => Ok(None),
            Some(KeyEntry::Object(id)) => Ok(Some(id)),
            Some(KeyEntry::Tombstone(id)) => {
                let tombstone = self.tombstones.get(id);
                let Some(why) = tombstone.why else { return Ok(None) };
                let version = format!("{}.{}", self.config.incarnation, tombstone.sequence);
                let place = tombstone.place.as_deref();
                let place = place.map_or_else(String::new, |place| format!("; a store has it: {place}"));
                let cause = match why {
                    RemovalReason::Archived => {
                        format!("version {version} was evicted: it is archived, and memory was short{place}")
                    }
                    RemovalReason::Withdrawn | RemovalReason::Expired => {
                        format!("version {version} was {}{place}", why.name())
                    }
                };
                Err(Error::new(Code::Gone, text, cause))
            }
        }
    }

    /// Returns the superseded versions of a key that requirements still keep.
    pub(in crate::core) fn kept_versions(&self, key: u128) -> Vec<u32> {
        let versions = self.superseded.range((key, 0)..=(key, u32::MAX)).map(|&(_, id)| id);
        versions.filter(|&id| self.table[id as usize].owed > 0).collect()
    }

    pub(in crate::core) fn key_text(&self, schema: u16, record: &[u8]) -> String {
        let mut text = String::new();
        if let Some(schema) = self.config.schemas.get(usize::from(schema)) {
            schema.key_of(RecordRef::trusted(record), &mut text);
        }
        text
    }

    /// Returns the first level of a record's key: `class=od,expver=0001`.
    pub(in crate::core) fn dataset_text(&self, schema: u16, record: RecordRef<'_>) -> String {
        let Some(schema) = self.config.schemas.get(usize::from(schema)) else {
            return String::new();
        };
        let level = record.iter().filter(|(id, ..)| id.index() < schema.level_ends()[0]);
        let attributes = level.map(|(id, _, value)| format!("{}={value}", schema.attribute(id).name));
        attributes.collect::<Vec<_>>().join(",")
    }

    /// Checks a record, and returns the identity of its object.
    pub(in crate::core) fn identify(&mut self, number: u16, record: &[u8]) -> Result<ObjectIdentity> {
        let checker = self.checkers.get_mut(usize::from(number)).ok_or_else(|| {
            Error::new(
                Code::SchemaMismatch,
                format!("schema {number}"),
                "the pool has no schema of this number",
            )
        })?;
        let ends = checker.check(record)?;
        Ok(ObjectIdentity {
            key: identity(number, ends.key_bytes),
            dataset: dataset(number, ends.first_level_bytes),
            on_same_key: checker.schema().on_same_key(),
        })
    }

    pub(in crate::core) fn may_hold_another_object(&self) -> Result<()> {
        if self.table.len() + self.tombstones.len() >= self.config.limits.objects {
            let cause = format!("the pool holds {} objects", self.config.limits.objects);
            return Err(Error::new(Code::LimitExceeded, "objects", cause));
        }
        Ok(())
    }

    /// Records the place of an archived object.
    pub(in crate::core) fn note_place(&mut self, id: u32, name: &str) {
        let place = self.place_of(name);
        let object = &mut self.table[id as usize];
        let is_queued = object.archived.as_ref().is_some_and(|known| known.is_queued);
        let before = object.archived.replace(ArchivedCopy { place, is_queued });
        self.forget_place(before.and_then(|archived| archived.place));
    }

    /// Returns the place of this name, which successive objects share. `None` if records have no room for it.
    pub(in crate::core) fn place_of(&mut self, name: &str) -> Option<Arc<str>> {
        if let Some(newest) = self.newest_place.as_ref().filter(|newest| ***newest == *name) {
            return Some(Arc::clone(newest));
        }
        if !self.has_room_for_place(name) {
            return None;
        }
        let place: Arc<str> = name.into();
        self.weigh_place(name);
        self.newest_place = Some(Arc::clone(&place));
        Some(place)
    }

    /// Removes a reference to a place. The last one gives back the place's bytes.
    pub(in crate::core) fn forget_place(&mut self, place: Option<Arc<str>>) {
        let Some(place) = place else { return };
        let newest = self
            .newest_place
            .take_if(|newest| Arc::ptr_eq(newest, &place) && Arc::strong_count(newest) == 2);
        drop(newest);
        if Arc::strong_count(&place) == 1 {
            self.weigh_place_no_more(&place);
        }
    }

    /// Forgets an object that is no longer needed.
    pub(in crate::core) fn forget_if_unneeded(&mut self, id: u32) {
        let object = &self.table[id as usize];
        let stays = matches!(object.state, ObjectState::Visible | ObjectState::Staged);
        let is_used = object.watchers > 0 || object.holders > 0 || object.owed > 0;
        // A hidden object has a payload, which is freed in its turn.
        let needed = stays || is_used || object.departs.is_some();
        if !needed {
            if object.state == ObjectState::Superseded {
                self.superseded.remove(&(object.key, id));
            }
            let object = self.table.remove(id as usize);
            self.weigh_object_no_more(&object.record);
            self.forget_place(object.archived.and_then(|archived| archived.place));
            self.spare.keep(object.record);
        }
    }

    /// Removes a reader's queue from the watchers of an object.
    pub(in crate::core) fn unwatch(&mut self, id: u32) {
        let object = &mut self.table[id as usize];
        object.watchers -= 1;
        if object.watchers == 0 && !object.is_visible() {
            self.forget_if_unneeded(id);
        }
    }

    /// Schedules the expiry of an object.
    pub(in crate::core) fn expire_at(&mut self, at: Nanoseconds, id: u32, sequence: u64) {
        self.table[id as usize].until = RetainedUntil::Time(at);
        self.expiries.push(at, sequence, id);
    }

    /// Records that an object with a time was hidden from readers before it.
    pub(in crate::core) fn went_before_its_time(&mut self) {
        self.expiries.note_void(&self.table);
    }

    pub(in crate::core) fn order_of(&self, id: u32) -> Option<Box<[u8]>> {
        let object = &self.table[id as usize];
        let schema = &self.config.schemas[usize::from(object.schema)];
        sortable_key(object.schema, schema, object.record())
    }
}
