//! The store behind a pool: what the pool does not have any more comes from there.
//!
//! A client reads the store itself; the server knows nothing of it. Whoever asks begins in the pool, and looks into the store
//! after that: what has left the pool by then was archived before, so that nothing falls between the two. What both have
//! comes from the pool.
//!
//! Without the feature `store`, a [`StoreReader`] and a [`StoredRow`] have no values: all of this is compiled, and there is never a store.

#![cfg_attr(
    not(feature = "store"),
    allow(clippy::zero_sized_map_values, reason = "rows have no values then")
)]

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

pub(crate) use follow::{FollowTurn, ReadAhead, StoreReplay, StoreRequest};
pub(crate) use lookup::{LookupResult, StoreLookup};
pub(crate) use order::{MergeOrder, SortPosition};
pub(crate) use store_reader::{StoreReader, StoredRow};

/// What the pool and the store have, as one list: the rows that stand before an entry of the pool.
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

    /// Whether a row stands before an object of the pool that is visible. One with its key is left out.
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

    /// The next row, if it stands before an object of the pool. One with its key is left out, if the object is visible.
    pub(crate) fn before(&mut self, standing: SortPosition<'_>, is_visible: bool) -> Option<StoredRow> {
        loop {
            match self.sorting.compare(self.rows.front()?.standing(), standing) {
                Ordering::Less => return self.rows.pop_front(),
                Ordering::Equal if is_visible => _ = self.rows.pop_front(),
                Ordering::Equal | Ordering::Greater => return None,
            }
        }
    }

    /// The next row, whatever the pool has.
    pub(crate) fn pop(&mut self) -> Option<StoredRow> {
        self.rows.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Puts a row in its place, and out what has its key.
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
