//! The budget of records: attributes of objects and tombstones, with their entries in tables and indexes, and the
//! places of archived objects.

use junctura_model::limits::RECORD_BYTES_MAX;

use crate::core::objects::object::ObjectRow;
use crate::core::objects::table::ObjectTable;

/// The smallest budget of records: a pool with a small budget for payloads may still hold many small objects.
const RECORD_BUDGET_BYTES_MIN: u64 = 64 << 20;
/// Bytes that an object takes besides its attributes and its payload.
const OBJECT_BYTES: u64 = size_of::<ObjectRow>() as u64 + 160;
/// Bytes of a tombstone besides its attributes.
const TOMBSTONE_BYTES: u64 = 256;
/// Bytes that a place of archived objects takes besides its name.
const PLACE_BYTES: u64 = 32;
/// Tombstones are forgotten in groups of so many when records have no room.
const FORGOTTEN_AT_ONCE: usize = 64;

fn place_bytes(name: &str) -> u64 {
    PLACE_BYTES + name.len() as u64
}

impl ObjectTable {
    /// Returns the budget of records, in bytes.
    pub(in crate::core) fn record_budget_bytes(&self) -> u64 {
        let usual = || self.config.budget_bytes.max(RECORD_BUDGET_BYTES_MIN);
        self.config.record_budget_bytes.unwrap_or_else(usual)
    }

    /// Whether an object with so many bytes of attributes has room. Tombstones are forgotten to make room first.
    pub(in crate::core) fn has_room_for_record(&mut self, attribute_bytes: u32) -> bool {
        self.has_room_for_bytes(OBJECT_BYTES + u64::from(attribute_bytes))
    }

    /// Whether the name of a place fits into the budget of records. A name longer than any record does not.
    pub(in crate::core) fn has_room_for_place(&mut self, name: &str) -> bool {
        name.len() <= RECORD_BYTES_MAX && self.has_room_for_bytes(place_bytes(name))
    }

    pub(in crate::core) fn has_room_for_bytes(&mut self, bytes: u64) -> bool {
        let budget = self.record_budget_bytes();
        while self.record_bytes + bytes > budget {
            if !self.forget_some_tombstones(FORGOTTEN_AT_ONCE) {
                return false;
            }
        }
        true
    }

    pub(in crate::core) fn weigh_object(&mut self, record: &[u8]) {
        self.record_bytes += OBJECT_BYTES + record.len() as u64;
    }

    /// Subtracts the bytes of a forgotten object.
    pub(in crate::core) fn weigh_object_no_more(&mut self, record: &[u8]) {
        self.free_record_bytes(OBJECT_BYTES + record.len() as u64);
    }

    pub(in crate::core) fn weigh_place(&mut self, name: &str) {
        self.record_bytes += place_bytes(name);
    }

    /// Gives back the bytes of a place that is no longer referred to.
    pub(in crate::core) fn weigh_place_no_more(&mut self, name: &str) {
        self.free_record_bytes(place_bytes(name));
    }

    /// Frees bytes that an offer may have waited for.
    pub(in crate::core) fn free_record_bytes(&mut self, bytes: u64) {
        self.came_free |= self.are_records_full();
        self.record_bytes -= bytes;
    }

    /// Whether a record of the maximum size has no room.
    pub(in crate::core) fn are_records_full(&self) -> bool {
        self.record_bytes + OBJECT_BYTES + RECORD_BYTES_MAX as u64 > self.record_budget_bytes()
    }

    pub(in crate::core) fn weigh_tombstone(&mut self, record_bytes: usize) {
        self.record_bytes += TOMBSTONE_BYTES + record_bytes as u64;
    }

    pub(in crate::core) fn weigh_tombstone_no_more(&mut self, record_bytes: usize) {
        self.free_record_bytes(TOMBSTONE_BYTES + record_bytes as u64);
    }

    /// Whether all memory for records is used by staged objects, and there is no room for more: only the end of a
    /// bundle could free some.
    pub(in crate::core) fn records_are_filled_by(&self, staged: u64) -> bool {
        staged > 0 && self.table.len() as u64 == staged && self.are_records_full()
    }
}
