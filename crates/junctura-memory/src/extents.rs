//! Which parts of the file tier are taken: pure accounts, as the ledger keeps them for memory.
//!
//! A payload has one extent of the file to itself. Freed extents are reused, the best fit first; where nothing fits, the
//! file grows. The limit is on used bytes, not on positions: a file with holes takes no more room on a disk than its
//! contents.

use std::collections::{BTreeMap, BTreeSet};

/// Stretches begin at multiples of this.
pub const UNIT_BYTES: u64 = 512;

/// The accounts of one file.
#[derive(Debug)]
pub struct FileExtents {
    limit_bytes: u64,
    taken_bytes: u64,
    /// Nothing beyond is taken.
    end: u64,
    /// Free stretches before the end: where they begin, and how long they are.
    free: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
}

impl FileExtents {
    /// Of an empty file that may hold so many bytes.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            taken_bytes: 0,
            end: 0,
            free: BTreeMap::new(),
            by_length: BTreeSet::new(),
        }
    }

    /// Takes an extent for so many bytes (at least one) and returns its start; `None` (and nothing taken) when the file
    /// would contain too much.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        if !self.has_room_for(bytes) {
            return None;
        }
        let length = whole_units(bytes);
        self.taken_bytes += length;
        let Some(&(found, at)) = self.by_length.range((length, 0)..).next() else {
            let at = self.end;
            self.end += length;
            return Some(at);
        };
        self.remove(at, found);
        if found > length {
            self.insert(at + length, found - length);
        }
        Some(at)
    }

    /// Gives back a stretch that was taken for so many bytes.
    pub fn give(&mut self, at: u64, bytes: u64) {
        let mut length = whole_units(bytes);
        debug_assert!(
            length <= self.taken_bytes && at + length <= self.end,
            "only what was taken is given back"
        );
        self.taken_bytes = self.taken_bytes.saturating_sub(length);
        let mut at = at;
        if let Some((&before, &its)) = self.free.range(..at).next_back()
            && before + its == at
        {
            self.remove(before, its);
            (at, length) = (before, its + length);
        }
        if let Some(&its) = self.free.get(&(at + length)) {
            self.remove(at + length, its);
            length += its;
        }
        if at + length == self.end {
            self.end = at;
        } else {
            self.insert(at, length);
        }
    }

    /// Whether so many bytes (at least one) may be taken.
    #[must_use]
    pub fn has_room_for(&self, bytes: u64) -> bool {
        whole_units(bytes) <= self.limit_bytes.saturating_sub(self.taken_bytes)
    }

    /// Bytes that are taken.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Bytes that may be taken in all.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    fn insert(&mut self, at: u64, length: u64) {
        self.free.insert(at, length);
        self.by_length.insert((length, at));
    }

    fn remove(&mut self, at: u64, length: u64) {
        self.free.remove(&at);
        self.by_length.remove(&(length, at));
    }
}

/// Returns the units that a payload takes. One that is too long for any file takes more than any limit.
fn whole_units(bytes: u64) -> u64 {
    bytes.max(1).checked_next_multiple_of(UNIT_BYTES).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_given_back_is_used_again_and_the_limit_holds() {
        let mut extents = FileExtents::new(4 * UNIT_BYTES);
        let (first, second, third) = (extents.take(1), extents.take(2 * UNIT_BYTES), extents.take(UNIT_BYTES));
        assert_eq!((first, second, third), (Some(0), Some(512), Some(1536)));
        assert_eq!(extents.take(1), None);
        extents.give(512, 2 * UNIT_BYTES);
        assert_eq!(extents.take(100), Some(512));
        extents.give(0, 1);
        // One unit at each of two places: the file grows, since both together would hold it.
        assert_eq!(extents.take(2 * UNIT_BYTES), Some(2048));
        assert_eq!(extents.take(u64::MAX), None);
        assert_eq!(extents.taken_bytes(), 4 * UNIT_BYTES);
    }

    proptest! {
        #[test]
        fn no_two_stretches_overlap_and_nothing_is_left_over(steps in prop::collection::vec((any::<bool>(), 1u64..5000, any::<prop::sample::Index>()), 1..300)) {
            let mut extents = FileExtents::new(100_000);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (takes, bytes, which) in steps {
                if takes {
                    let sum: u64 = taken.iter().map(|&(_, bytes)| bytes.next_multiple_of(UNIT_BYTES)).sum();
                    let fits = sum + bytes.next_multiple_of(UNIT_BYTES) <= 100_000;
                    prop_assert_eq!(extents.taken_bytes(), sum);
                    match extents.take(bytes) {
                        Some(at) => {
                            prop_assert!(fits);
                            prop_assert!(at.is_multiple_of(UNIT_BYTES));
                            let is_apart = |&(other, its): &(u64, u64)| at + bytes <= other || other + its <= at;
                            prop_assert!(taken.iter().all(is_apart));
                            taken.push((at, bytes));
                        }
                        None => prop_assert!(!fits),
                    }
                } else if !taken.is_empty() {
                    let (at, bytes) = taken.swap_remove(which.index(taken.len()));
                    extents.give(at, bytes);
                }
            }
            for (at, bytes) in taken {
                extents.give(at, bytes);
            }
            prop_assert_eq!((extents.taken_bytes(), extents.end, extents.free.len()), (0, 0, 0));
            prop_assert!(extents.by_length.is_empty());
        }
    }
}
