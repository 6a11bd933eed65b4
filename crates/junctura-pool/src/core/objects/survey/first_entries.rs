//! The first objects of an order, among those that were looked at.

use junctura_model::RecordRef;
use junctura_wire::look::ListPosition;

use crate::core::objects::order::ResolvedOrder;
use crate::core::objects::table::ObjectTable;

/// See the module. Each object is watched.
pub(in crate::core) struct FirstEntries {
    sorting: ResolvedOrder,
    limit: usize,
    after: Option<ListPosition<'static>>,
    /// In order.
    entries: Vec<u32>,
}

impl FirstEntries {
    pub(super) fn new(sorting: ResolvedOrder, limit: usize, after: Option<&ListPosition<'_>>) -> Self {
        let after = after.map(|after| ListPosition {
            schema: after.schema,
            record: after.record.to_vec().into(),
        });
        Self {
            sorting,
            limit,
            after,
            entries: Vec::new(),
        }
    }

    /// Adds an object that matches, if it is among the first.
    pub(super) fn add(&mut self, objects: &mut ObjectTable, id: u32) {
        if !self.is_behind_the_position(objects, id) {
            return;
        }
        let last = self.entries.last().filter(|_| self.entries.len() == self.limit);
        if last.is_some_and(|&last| objects.compare(&self.sorting, id, last).is_gt()) {
            return;
        }
        let at = self
            .entries
            .partition_point(|&other| objects.compare(&self.sorting, other, id).is_lt());
        self.entries.insert(at, id);
        objects[id].watchers += 1;
        if self.entries.len() > self.limit
            && let Some(beyond) = self.entries.pop()
        {
            objects.unwatch(beyond);
        }
    }

    fn is_behind_the_position(&self, objects: &ObjectTable, id: u32) -> bool {
        let Some(after) = &self.after else { return true };
        let record = RecordRef::trusted(&after.record);
        let value = self.sorting.value_of(after.schema, record);
        objects
            .compare_with(&self.sorting, &objects[id], after.schema, record, value)
            .is_gt()
    }

    pub(super) fn entries(&self) -> &[u32] {
        &self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        self.limit * size_of::<u32>()
    }

    /// Gives away the order and the objects, which stay watched.
    pub(in crate::core) fn into_parts(self) -> (ResolvedOrder, Vec<u32>) {
        (self.sorting, self.entries)
    }
}
