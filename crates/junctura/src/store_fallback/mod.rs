//! The store behind a pool: the source of objects that have left the pool.
//!
//! A client reads the store itself; the server is not involved. A client queries the pool first and then the store:
//! objects that have left the pool by then were archived before, so none is missed. If both have an object, the pool's
//! is used.
//!
//! Without the feature `store`, a [`StoreReader`] and a [`StoredRow`] have no values: all this code is compiled, and
//! there is never a store.

#![cfg_attr(
    not(feature = "store"),
    allow(clippy::zero_sized_map_values, reason = "rows have no values then")
)]

mod demand;
mod follow;
mod lookup;
mod order;
#[cfg(feature = "store")]
mod store_reader;
#[cfg(not(feature = "store"))]
#[path = "without_store.rs"]
mod store_reader;

use std::cmp::Ordering;
use std::collections::VecDeque;

pub(crate) use demand::StoreDemand;
pub(crate) use follow::{FollowTurn, ReadAhead, StoreReplay, StoreRequest};
pub(crate) use lookup::{LookupResult, StoreLookup};
pub(crate) use order::{MergeOrder, SortPosition};
pub(crate) use store_reader::{StoreReader, StoredRow};

/// Merges the lists of pool and store: the rows before each entry of the pool.
#[derive(Debug)]
pub(crate) struct MergedList {
    sorting: MergeOrder,
    rows: VecDeque<StoredRow>,
}

impl MergedList {
    pub(crate) fn new(sorting: MergeOrder, mut rows: Vec<StoredRow>) -> Self {
        rows.sort_by(|a, b| sorting.compare(a.standing(), b.standing()));
        Self {
            sorting,
            rows: rows.into(),
        }
    }

    /// Returns whether a row precedes a visible object of the pool. A row with the same key is omitted.
    pub(crate) fn has_before(&mut self, standing: SortPosition<'_>) -> bool {
        while let Some(row) = self.rows.front() {
            match self.sorting.compare(row.standing(), standing) {
                Ordering::Less => return true,
                Ordering::Equal => _ = self.rows.pop_front(),
                Ordering::Greater => return false,
            }
        }
        false
    }

    /// Returns the next row, if it precedes an object of the pool. A row with the same key is omitted if the object is
    /// visible.
    pub(crate) fn before(&mut self, standing: SortPosition<'_>, is_visible: bool) -> Option<StoredRow> {
        loop {
            match self.sorting.compare(self.rows.front()?.standing(), standing) {
                Ordering::Less => return self.rows.pop_front(),
                Ordering::Equal if is_visible => _ = self.rows.pop_front(),
                Ordering::Equal | Ordering::Greater => return None,
            }
        }
    }

    /// Returns the next row, independent of the pool.
    pub(crate) fn pop(&mut self) -> Option<StoredRow> {
        self.rows.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Inserts a row in order, and removes one with the same key.
    fn insert(&mut self, row: StoredRow) {
        let at = self
            .rows
            .partition_point(|other| self.sorting.compare(other.standing(), row.standing()).is_lt());
        if let Some(other) = self.rows.get(at)
            && self.sorting.compare(other.standing(), row.standing()).is_eq()
        {
            self.rows[at] = row;
        } else {
            self.rows.insert(at, row);
        }
    }
}
