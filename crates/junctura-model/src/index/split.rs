//! A hash table that never grows all at once.
//!
//! A table that is full moves to one of twice the size: of a million entries, that takes tens of milliseconds. This one consists of tables
//! that hold some thousand entries each, and one that is full is split in two by one more bit of the hashes:
//!
//! ```text
//!   directory, by the last bits     tables
//!      00 ---------------------.--> entries whose hashes end in 0
//!      10 ---------------------'
//!      01 ------------------------> … in 01
//!      11 ------------------------> … in 11
//! ```
//! An insertion moves as many entries as one table holds, at most, and copies the directory when that doubles: of sixteen million entries
//! it has 16,384 places.

use std::ops::Range;

use hashbrown::HashTable;

/// A table with more entries is split: as many as fit into 4,096 buckets.
const ENTRIES_MAX: usize = 3584;
/// A table with room for no more entries stays as it is when they leave.
const KEPT_MAX: usize = 64;
/// Bits of a hash that choose the table. Those that a table itself uses are the last ones and the first ones.
const BITS: Range<u32> = 24..38;

/// A set of entries by hashes; several entries may have the same hash.
#[derive(Clone, Debug)]
pub struct SplitTable<T> {
    /// The only table, until it is split.
    first: TableHalf<T>,
    others: Vec<TableHalf<T>>,
    /// The table of each sequence of bits: 0 is the first one. Empty, while that is the only one.
    directory: Vec<u32>,
    len: usize,
}

#[derive(Clone, Debug)]
struct TableHalf<T> {
    entries: HashTable<T>,
    /// By how many bits its entries were chosen.
    bits: u32,
}

impl<T> Default for SplitTable<T> {
    fn default() -> Self {
        let entries = HashTable::new();
        Self {
            first: TableHalf { entries, bits: 0 },
            others: Vec::new(),
            directory: Vec::new(),
            len: 0,
        }
    }
}

impl<T> SplitTable<T> {
    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry of a hash that is equal to what is looked for.
    #[must_use]
    pub fn find(&self, hash: u64, is_equal: impl FnMut(&T) -> bool) -> Option<&T> {
        let entries = match self.at(hash) {
            0 => &self.first.entries,
            at => &self.others[at - 1].entries,
        };
        entries.find(hash, is_equal)
    }

    /// Returns a mutable entry; its hash must not change.
    #[must_use]
    pub fn find_mut(&mut self, hash: u64, is_equal: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let at = self.at(hash);
        self.table(at).entries.find_mut(hash, is_equal)
    }

    /// Takes an entry out. `hash_of` is asked for those of others that move to a smaller table.
    pub fn remove(&mut self, hash: u64, is_equal: impl FnMut(&T) -> bool, hash_of: impl Fn(&T) -> u64) -> Option<T> {
        let at = self.at(hash);
        let entries = &mut self.table(at).entries;
        let (entry, _) = entries.find_entry(hash, is_equal).ok()?.remove();
        if entries.len() * 8 < entries.capacity() && entries.capacity() > KEPT_MAX {
            entries.shrink_to(entries.len() * 2, hash_of);
        }
        self.len -= 1;
        if self.len == 0 && !self.others.is_empty() {
            *self = Self::default();
        }
        Some(entry)
    }

    /// Adds an entry that is equal to no other one. `hash_of` is asked for those of entries that move.
    pub fn insert_unique(&mut self, hash: u64, entry: T, hash_of: impl Fn(&T) -> u64) {
        let mut at = self.at(hash);
        while self.table(at).entries.len() >= ENTRIES_MAX && self.split(at, &hash_of) {
            at = self.at(hash);
        }
        self.table(at).entries.insert_unique(hash, entry, hash_of);
        self.len += 1;
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.tables().flat_map(|table| table.entries.iter())
    }

    /// The same, given away.
    pub fn into_entries(self) -> impl Iterator<Item = T> {
        let tables = std::iter::once(self.first).chain(self.others);
        tables.flat_map(|table| table.entries)
    }

    /// Takes out those entries that are chosen.
    pub fn take_if(&mut self, mut is_chosen: impl FnMut(&mut T) -> bool) -> Vec<T> {
        let tables = std::iter::once(&mut self.first).chain(&mut self.others);
        let taken: Vec<T> = tables
            .flat_map(|table| table.entries.extract_if(&mut is_chosen).collect::<Vec<T>>())
            .collect();
        self.len -= taken.len();
        taken
    }

    fn tables(&self) -> impl Iterator<Item = &TableHalf<T>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn table(&mut self, at: usize) -> &mut TableHalf<T> {
        match at {
            0 => &mut self.first,
            _ => &mut self.others[at - 1],
        }
    }

    fn at(&self, hash: u64) -> usize {
        if self.directory.is_empty() {
            return 0;
        }
        let place = (hash >> BITS.start) as usize & (self.directory.len() - 1);
        self.directory[place] as usize
    }

    /// Splits a table by one more bit, unless all bits are used.
    fn split(&mut self, at: usize, hash_of: &impl Fn(&T) -> u64) -> bool {
        let bit = self.table(at).bits;
        if bit == BITS.end - BITS.start {
            return false;
        }
        if self.directory.is_empty() {
            self.directory.push(0);
        }
        if self.directory.len() == 1 << bit {
            self.directory.extend_from_within(..);
        }
        let is_one = |hash: u64| hash >> (BITS.start + bit) & 1 == 1;
        let table = self.table(at);
        table.bits += 1;
        let mut entries = HashTable::with_capacity(table.entries.len() / 2);
        for entry in table.entries.extract_if(|entry| is_one(hash_of(entry))) {
            entries.insert_unique(hash_of(&entry), entry, hash_of);
        }
        let new = self.others.len() as u32 + 1;
        let places = self.directory.iter_mut().enumerate();
        for (_, table) in places.filter(|(place, table)| **table == at as u32 && place >> bit & 1 == 1) {
            *table = new;
        }
        self.others.push(TableHalf { entries, bits: bit + 1 });
        true
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Of numbers, spread over all bits, or all in one of the last tables.
    fn hash(number: u64, is_spread: bool) -> u64 {
        if is_spread {
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        } else {
            number & 0xff_ffff
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_holds_what_was_put_into_it(
            steps in proptest::collection::vec((0_u64..20_000, 0_u64..9000, any::<bool>()), 1..12),
            is_spread: bool,
        ) {
            let hash = |number: &u64| hash(*number, is_spread);
            let mut table = SplitTable::default();
            let mut model = BTreeSet::new();
            for (from, count, adds) in steps {
                for number in from..from + count {
                    let is_it = |other: &u64| *other == number;
                    prop_assert_eq!(table.find(hash(&number), is_it).is_some(), model.contains(&number));
                    if adds && model.insert(number) {
                        table.insert_unique(hash(&number), number, hash);
                    } else if !adds {
                        prop_assert_eq!(table.remove(hash(&number), is_it, hash).is_some(), model.remove(&number));
                    }
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert_eq!(table.iter().copied().collect::<BTreeSet<_>>(), model.clone());
            }
            let odd: BTreeSet<u64> = table.take_if(|number| *number % 2 == 1).into_iter().collect();
            prop_assert!(odd.iter().eq(model.iter().filter(|&number| number % 2 == 1)));
            prop_assert_eq!(table.len(), model.len() - odd.len());
            let even: BTreeSet<u64> = table.into_entries().collect();
            prop_assert!(even.iter().eq(model.difference(&odd)));
        }
    }

    #[test]
    fn an_insertion_moves_no_more_than_a_table_holds() {
        let asked = Cell::new(0);
        let hash_of = |number: &u64| {
            asked.set(asked.get() + 1);
            hash(*number, true)
        };
        let mut table = SplitTable::default();
        let mut most = 0;
        for number in 0..1_000_000 {
            asked.set(0);
            table.insert_unique(hash(number, true), number, hash_of);
            most = most.max(asked.get());
        }
        // Each once to choose, and those that move once more; rarely a half is full at once.
        assert!(most <= 4 * ENTRIES_MAX, "{most} hashes for one insertion");
        let most_full = table.tables().map(|one| one.entries.len()).max();
        assert!(most_full <= Some(ENTRIES_MAX) && table.directory.len() <= 1 << 14);
        for number in 0..1_000_000 {
            asked.set(0);
            assert!(
                table
                    .remove(hash(number, true), |other| *other == number, hash_of)
                    .is_some()
            );
            assert!(asked.get() <= ENTRIES_MAX);
        }
        assert!(table.is_empty() && table.others.is_empty());
    }
}
