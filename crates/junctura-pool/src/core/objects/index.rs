//! The listing index: which visible objects a selector could match, the order in which they are given, and look-ups without what is out of
//! sight.

use std::cmp::Ordering;
use std::sync::Arc;

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, RecordRef, Result, Schema};
use junctura_wire::body::ListOrder;
use roaring::RoaringBitmap;

use crate::core::clients::table::ClientTable;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::interest::typed;
use crate::core::objects::look_ahead::LookPurpose;
use crate::core::objects::object::ObjectRow;
use crate::core::objects::order::{IncrementalSort, ResolvedOrder};
use crate::core::objects::table::ObjectTable;
use crate::core::objects::tombstone::MissedObjects;

/// Objects that became visible but are not in the listing index yet: objects that are removed soon never need to be.
const UNINDEXED_OBJECTS_MAX: usize = 8192;

/// The conditions that hide objects from look-ups ([`crate::core::deferred`]).
#[derive(Clone, Copy)]
pub(in crate::core) struct HiddenObjects {
    /// The time, where something may be out of sight.
    pub(in crate::core) departed_by: Option<Nanoseconds>,
}

impl ObjectTable {
    /// Adds objects that have been visible for longer to the listing index, a few for each new one: the objects of one
    /// bundle are added later.
    pub(in crate::core) fn index_some(&mut self) {
        const AT_ONCE: usize = 4;
        for _ in 0..AT_ONCE {
            match self.unindexed.front() {
                Some(&(oldest, its_sequence)) if !self.is_unindexed(oldest, its_sequence) => {
                    self.unindexed.pop_front();
                }
                Some(_) if self.unindexed.len() > UNINDEXED_OBJECTS_MAX => self.index_next(),
                _ => return,
            }
        }
    }

    /// Makes the listing index complete.
    pub(in crate::core) fn index_all(&mut self) {
        while !self.unindexed.is_empty() {
            self.index_next();
        }
    }

    /// Whether an entry of the queue still means a visible object.
    pub(in crate::core) fn is_unindexed(&self, id: u32, sequence: u64) -> bool {
        self.table
            .get(id as usize)
            .is_some_and(|object| object.sequence == sequence && object.is_visible() && !object.is_indexed)
    }

    pub(in crate::core) fn index_next(&mut self) {
        let Some((id, sequence)) = self.unindexed.pop_front() else {
            return;
        };
        if self.is_unindexed(id, sequence) {
            let object = &mut self.table[id as usize];
            object.is_indexed = true;
            let schema = usize::from(object.schema);
            self.listing[schema].insert(id, RecordRef::trusted(&object.record), &self.config.schemas[schema]);
            self.note_indexed(id);
        }
    }

    /// Takes an object that is not visible any more out of the index, if it is there.
    pub(in crate::core) fn unindex(&mut self, id: u32) {
        let object = &mut self.table[id as usize];
        for survey in self.surveys.values_mut() {
            survey.note_hidden(id, object);
        }
        if std::mem::take(&mut object.is_indexed) {
            let schema = usize::from(object.schema);
            self.listing[schema].remove(id, RecordRef::trusted(&object.record), &self.config.schemas[schema]);
            self.note_unindexed(id);
        }
    }

    /// An object has entered the index: it may match what is looked for.
    pub(in crate::core) fn note_indexed(&mut self, id: u32) {
        let sequence = self.table[id as usize].sequence;
        for survey in self.surveys.values_mut() {
            survey.note_indexed(id, sequence);
        }
        for ahead in self.ahead.values_mut() {
            ahead.enter(id);
        }
    }

    /// An object has left the index.
    pub(in crate::core) fn note_unindexed(&mut self, id: u32) {
        for ahead in self.ahead.values_mut() {
            // Its caller settles it.
            self.table[id as usize].watchers -= u32::from(ahead.leave(id));
        }
    }

    /// The indexed objects that may match.
    pub(in crate::core) fn candidates(&self, selectors: &SelectorSet) -> RoaringBitmap {
        let of_schemas = typed(selectors, self.listing.len());
        of_schemas
            .map(|(schema, selector)| self.listing[schema].candidates(selector))
            .fold(RoaringBitmap::new(), |all, some| all | some)
    }

    /// Compares two objects of the table.
    pub(in crate::core) fn compare(&self, sorting: &ResolvedOrder, a: u32, b: u32) -> Ordering {
        #[cfg(test)]
        self.work.set(self.work.get() + 1);
        let (a, b) = (&self.table[a as usize], &self.table[b as usize]);
        self.compare_with(sorting, a, b.schema, b.record(), sorting.value(b))
    }

    /// Compares an object with a key, and its sort value, of an object that may be removed.
    pub(in crate::core) fn compare_with(
        &self,
        sorting: &ResolvedOrder,
        a: &ObjectRow,
        schema: u16,
        key: RecordRef<'_>,
        sort_value: Option<&str>,
    ) -> Ordering {
        let by_attribute = match &sorting.first {
            None => Ordering::Equal,
            Some(first) => {
                let id = first[usize::from(a.schema)];
                match (id, sorting.value(a), sort_value) {
                    (Some(id), Some(x), Some(y)) => self.config.schemas[usize::from(a.schema)].compare_values(id, x, y),
                    (_, x, y) => x.is_none().cmp(&y.is_none()),
                }
            }
        };
        by_attribute
            .then(a.schema.cmp(&schema))
            .then_with(|| self.config.schemas[usize::from(schema)].compare_keys(a.record(), key))
    }

    pub(in crate::core) fn sorting(&self, order: &ListOrder<'_>) -> Result<ResolvedOrder> {
        let ListOrder::Attribute(name) = order else {
            return Ok(ResolvedOrder::default());
        };
        let first: Vec<_> = self.config.schemas.iter().map(|schema| schema.find(name)).collect();
        if first.iter().all(Option::is_none) {
            return Err(no_attribute(&self.config.schemas, "order", name));
        }
        Ok(ResolvedOrder { first: Some(first) })
    }

    /// The visible objects that match, in no order.
    pub(in crate::core) fn visible_matches(
        &mut self,
        clients: &mut ClientTable,
        sight: HiddenObjects,
        selectors: &SelectorSet,
    ) -> Vec<u32> {
        let mut found = self.all_matches(clients, selectors);
        if let Some(now) = sight.departed_by {
            found.retain(|&id| !self[id].is_out_of_sight(now));
        }
        found
    }

    /// Of the visible objects that match, the newest.
    pub(in crate::core) fn newest_match(
        &mut self,
        clients: &mut ClientTable,
        sight: HiddenObjects,
        selectors: &SelectorSet,
    ) -> Option<u32> {
        self.index_all();
        if let Some(ahead) = self.take_ahead(clients, selectors, LookPurpose::Newest) {
            let is_hidden = |id: u32| sight.departed_by.is_some_and(|now| self[id].is_out_of_sight(now));
            return ahead.newest(self, |id| !is_hidden(id));
        }
        let found = self.visible_matches(clients, sight, selectors);
        found.into_iter().max_by_key(|&id| self[id].sequence)
    }

    /// The visible objects that match, to be changed. Where they are very many, those among them that are out of sight are left out later,
    /// by [`Self::was_there`].
    pub(in crate::core) fn matches_to_change(
        &mut self,
        clients: &mut ClientTable,
        sight: HiddenObjects,
        selectors: &SelectorSet,
    ) -> Vec<u32> {
        let mut found = self.all_matches(clients, selectors);
        if let Some(now) = sight.departed_by.filter(|_| found.len() <= self.config.changed_at_once) {
            found.retain(|&id| !self[id].is_out_of_sight(now));
        }
        found
    }

    /// The visible objects that match, to be given in the order of the request that is going on. They are watched.
    pub(in crate::core) fn sorted_matches(
        &mut self,
        clients: &mut ClientTable,
        sight: HiddenObjects,
        selectors: &SelectorSet,
    ) -> IncrementalSort {
        self.index_all();
        let Some(ahead) = self.take_ahead(clients, selectors, LookPurpose::Read) else {
            let found = self.visible_matches(clients, sight, selectors);
            watch_all(self, &found);
            return IncrementalSort::new(found);
        };
        let mut found = ahead.into_sorted();
        if let Some(now) = sight.departed_by {
            keep_watching(self, &mut found, |object| !object.is_out_of_sight(now));
        }
        found
    }

    /// Returns the hidden objects that match, and that became visible after `since`.
    fn out_of_sight_after(
        &mut self,
        clients: &mut ClientTable,
        sight: HiddenObjects,
        since: u64,
        selectors: &SelectorSet,
    ) -> Vec<u32> {
        let Some(now) = sight.departed_by else {
            return Vec::new();
        };
        let mut all = self.all_matches(clients, selectors);
        all.retain(|&id| self[id].sequence > since && self[id].is_out_of_sight(now));
        all
    }

    /// Returns the objects that became visible after `since`, match, and are removed or hidden, in the order of their
    /// numbers.
    pub(in crate::core) fn missed_after(
        &mut self,
        clients: &mut ClientTable,
        sight: HiddenObjects,
        since: u64,
        selectors: &SelectorSet,
    ) -> Vec<MissedObjects> {
        let departing = self.out_of_sight_after(clients, sight, since, selectors);
        let gone = self
            .tombstones_after(since, selectors)
            .into_iter()
            .map(MissedObjects::Gone);
        let mut missed: Vec<MissedObjects> = gone
            .chain(departing.into_iter().map(MissedObjects::Departing))
            .collect();
        missed.sort_by_key(|&missed| match missed {
            MissedObjects::Gone(id) => self.tombstones.get(id).sequence,
            MissedObjects::Departing(id) => self[id].sequence,
        });
        missed
    }
}

/// Returns the error for an attribute that no schema has, with the nearest one.
pub(in crate::core) fn no_attribute(schemas: &[Arc<Schema>], subject: &str, name: &str) -> Error {
    let near = schemas.iter().find_map(|schema| schema.nearest_name(name));
    let remedy = near.map_or_else(
        || "`junctura schema show NAME` lists the attributes of a schema".to_owned(),
        |near| format!("did you mean {near}?"),
    );
    let cause = format!("no schema has an attribute {name}; {remedy}");
    Error::new(Code::InvalidArgument, subject, cause)
}

/// Adds a reader's queue to the watchers of its objects.
pub(in crate::core) fn watch_all(objects: &mut ObjectTable, queue: &[u32]) {
    for &id in queue {
        objects[id].watchers += 1;
    }
}

/// Drops watched objects that do not pass, before the first was taken.
pub(in crate::core) fn keep_watching(
    objects: &mut ObjectTable,
    found: &mut IncrementalSort,
    passes: impl Fn(&ObjectRow) -> bool,
) {
    let mut others = Vec::new();
    found.retain(|id| {
        let stays = passes(&objects[id]);
        others.extend((!stays).then_some(id));
        stays
    });
    for id in others {
        objects.unwatch(id);
    }
}
