//! The listing index: which visible objects a selector could match, and the order in which they are given.

use std::cmp::Ordering;

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, RecordRef, Result};
use junctura_wire::body::Order;
use roaring::RoaringBitmap;

use crate::core::interests::interest::typed;
use crate::core::objects::object::Object;
use crate::core::objects::order::Sorting;
use crate::core::objects::table::ObjectTable;

/// Objects that became visible but are not in the listing index yet: most that are gone soon never need to be.
const UNINDEXED_OBJECTS_MAX: usize = 8192;

impl ObjectTable {
    /// Lets objects that have been visible for longer enter the listing index, a few for each that comes: what becomes visible with one bundle
    /// enters it later.
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

    /// Takes an object out of the index, if it is there.
    pub(in crate::core) fn unindex(&mut self, id: u32) {
        let object = &mut self.table[id as usize];
        if std::mem::take(&mut object.is_indexed) {
            let schema = usize::from(object.schema);
            self.listing[schema].remove(id, RecordRef::trusted(&object.record), &self.config.schemas[schema]);
            self.note_unindexed(id);
        }
    }

    /// An object has entered the index: it may match what is looked for.
    pub(in crate::core) fn note_indexed(&mut self, id: u32) {
        for ahead in self.ahead.values_mut() {
            ahead.enter(id);
        }
    }

    /// An object has left the index.
    pub(in crate::core) fn note_unindexed(&mut self, id: u32) {
        for ahead in self.ahead.values_mut() {
            ahead.leave(id);
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
    pub(in crate::core) fn compare(&self, sorting: &Sorting, a: u32, b: u32) -> Ordering {
        let (a, b) = (&self.table[a as usize], &self.table[b as usize]);
        self.compare_with(sorting, a, b.schema, b.record(), sorting.value(b))
    }

    /// Compares an object with a key, and the value that it was sorted by, of an object that may be gone.
    pub(in crate::core) fn compare_with(
        &self,
        sorting: &Sorting,
        a: &Object,
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

    pub(in crate::core) fn sorting(&self, order: &Order<'_>) -> Result<Sorting> {
        let Order::Attribute(name) = order else {
            return Ok(Sorting::default());
        };
        let first: Vec<_> = self.config.schemas.iter().map(|schema| schema.find(name)).collect();
        if first.iter().all(Option::is_none) {
            return Err(Error::new(
                Code::InvalidArgument,
                "order",
                format!("no schema has an attribute {name}"),
            ));
        }
        Ok(Sorting { first: Some(first) })
    }
}
