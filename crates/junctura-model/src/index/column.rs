//! The values that objects have in one attribute, and which objects have each.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;
use xxhash_rust::xxh3::xxh3_64;

use super::posting::{SlotSet, union};
use super::split::SplitTable;
use crate::selector::expr::raw_items;
use crate::value::Type;

/// A regular expression is tried on the values of an attribute if they are no more.
const TRIED_MAX: usize = 10_000;

/// One attribute's values.
pub(super) struct IndexColumn {
    scalar: Type,
    list: bool,
    values: SplitTable<ColumnValue>,
    /// The values that have an order.
    ordered: BTreeMap<i128, Arc<str>>,
    /// The objects that have the attribute; kept only where some do not have it.
    present: Option<RoaringBitmap>,
}

struct ColumnValue {
    text: Arc<str>,
    posting: SlotSet,
}

impl ColumnValue {
    fn hash(&self) -> u64 {
        xxh3_64(self.text.as_bytes())
    }
}

impl IndexColumn {
    pub(super) fn new(scalar: Type, list: bool, always: bool) -> IndexColumn {
        let present = (!always).then(RoaringBitmap::new);
        IndexColumn {
            scalar,
            list,
            values: SplitTable::default(),
            ordered: BTreeMap::new(),
            present,
        }
    }

    pub(super) fn insert(&mut self, slot: u32, text: &str) {
        if let Some(present) = &mut self.present {
            present.insert(slot);
        }
        if self.list {
            raw_items(text).for_each(|item| self.insert_value(slot, item));
        } else {
            self.insert_value(slot, text);
        }
    }

    fn insert_value(&mut self, slot: u32, text: &str) {
        let hash = xxh3_64(text.as_bytes());
        if let Some(value) = self.values.find_mut(hash, |value| *value.text == *text) {
            return value.posting.insert(slot);
        }
        let text: Arc<str> = text.into();
        if let Some(number) = self.scalar.order(&text) {
            self.ordered.insert(number, Arc::clone(&text));
        }
        self.values.insert_unique(
            hash,
            ColumnValue {
                text,
                posting: SlotSet::One(slot),
            },
            ColumnValue::hash,
        );
    }

    pub(super) fn remove(&mut self, slot: u32, text: &str) {
        if let Some(present) = &mut self.present {
            present.remove(slot);
        }
        if self.list {
            raw_items(text).for_each(|item| self.remove_value(slot, item));
        } else {
            self.remove_value(slot, text);
        }
    }

    fn remove_value(&mut self, slot: u32, text: &str) {
        let hash = xxh3_64(text.as_bytes());
        let is_it = |value: &ColumnValue| *value.text == *text;
        let Some(value) = self.values.find_mut(hash, is_it) else {
            return;
        };
        value.posting.remove(slot);
        if value.posting.is_empty() {
            self.values.remove(hash, is_it, ColumnValue::hash);
            if let Some(number) = self.scalar.order(text) {
                self.ordered.remove(&number);
            }
        }
    }

    /// Has no object this attribute?
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.present.as_ref().is_none_or(RoaringBitmap::is_empty)
    }

    /// The objects that have the attribute; None: all.
    pub(super) fn present(&self) -> Option<&RoaringBitmap> {
        self.present.as_ref()
    }

    /// The objects that have the value.
    pub(super) fn value(&self, text: &str) -> Option<&SlotSet> {
        let hash = xxh3_64(text.as_bytes());
        self.values
            .find(hash, |value| *value.text == *text)
            .map(|value| &value.posting)
    }

    /// Returns the values from `low` to `high`, in order, with their objects.
    pub(super) fn between(&self, low: i128, high: i128) -> impl Iterator<Item = (i128, &SlotSet)> {
        let texts = if low <= high {
            Some(self.ordered.range(low..=high))
        } else {
            None
        };
        texts
            .into_iter()
            .flatten()
            .filter_map(|(&number, text)| Some((number, self.value(text)?)))
    }

    /// Returns each value and a number made of its objects; `None` where there are very many, or an object may have several.
    pub(super) fn counts(&self, count: impl Fn(&SlotSet) -> u64) -> Option<impl Iterator<Item = (&str, u64)>> {
        let are_few = !self.list && self.values.len() <= TRIED_MAX;
        let values = self.values.iter();
        are_few.then(|| values.map(move |value| (&*value.text, count(&value.posting))))
    }

    /// The objects that have a value which passes; None where there are too many values to try.
    pub(super) fn passing(&self, passes: impl Fn(&str) -> bool) -> Option<RoaringBitmap> {
        let tried = self.values.len() <= TRIED_MAX;
        tried.then(|| {
            union(
                self.values
                    .iter()
                    .filter(|value| passes(&value.text))
                    .map(|value| &value.posting),
            )
        })
    }
}
