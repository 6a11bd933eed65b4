//! An index of rows by key, without a scan: built after a few lookups of single keys.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use hashbrown::HashTable;
use junctura_model::{AttrId, RecordRef, Schema};

use super::RowTable;
use super::keys::{print_of, prints};

/// So many are found by looking at the columns, which is as quick as making an index of the same rows.
const ASKED_MIN: u32 = 8;
/// Prints are made of so many rows at a time.
const ROWS_AT_A_TIME: usize = 1 << 16;

/// An index, if there is one.
#[derive(Debug, Default)]
pub(super) struct LazyIndex {
    asked: AtomicU32,
    made: OnceLock<KeyIndex>,
}

/// Rows by a part of the prints of their keys; about 14 bytes a row.
#[derive(Clone, Debug, Default)]
struct KeyIndex {
    /// Attributes of a key.
    key_len: usize,
    prints: Vec<u32>,
    /// For each row 1 more than the one before it with the same print; 0: there is none.
    before: Vec<u32>,
    /// The last row of each print.
    last: HashTable<u32>,
}

impl Clone for LazyIndex {
    fn clone(&self) -> Self {
        Self {
            asked: AtomicU32::new(self.asked.load(Ordering::Relaxed)),
            made: self.made.clone(),
        }
    }
}

impl LazyIndex {
    fn index(&self, table: &RowTable, schema: &Schema) -> Option<&KeyIndex> {
        if let Some(index) = self.made.get() {
            return Some(index);
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) < ASKED_MIN {
            return None;
        }
        Some(self.made.get_or_init(|| {
            let mut index = KeyIndex {
                key_len: schema.key_len(),
                ..KeyIndex::default()
            };
            index.add_new(table);
            index
        }))
    }

    /// Adds the rows of a table that it does not have yet, if there is an index.
    pub(super) fn add_new(&mut self, table: &RowTable) {
        if let Some(index) = self.made.get_mut() {
            index.add_new(table);
        }
    }
}

impl KeyIndex {
    /// Adds the rows that it does not have yet.
    fn add_new(&mut self, table: &RowTable) {
        self.prints.reserve(table.len() - self.prints.len());
        self.before.reserve(table.len() - self.before.len());
        let rows: Vec<u32> = (self.prints.len() as u32..table.len() as u32).collect();
        for rows in rows.chunks(ROWS_AT_A_TIME) {
            for print in prints(table, self.key_len, rows) {
                self.push(part_of(print));
            }
        }
    }

    fn push(&mut self, print: u32) {
        let row = self.prints.len() as u32;
        self.prints.push(print);
        let prints = &self.prints;
        let of = |&row: &u32| hash(prints[row as usize]);
        match self.last.entry(hash(print), |&row| prints[row as usize] == print, of) {
            hashbrown::hash_table::Entry::Occupied(mut last) => {
                self.before.push(*last.get() + 1);
                *last.get_mut() = row;
            }
            hashbrown::hash_table::Entry::Vacant(free) => {
                self.before.push(0);
                free.insert(row);
            }
        }
    }

    /// The rows with a print, the last one first.
    fn rows(&self, print: u32) -> impl Iterator<Item = u32> {
        let last = self
            .last
            .find(hash(print), |&row| self.prints[row as usize] == print)
            .copied();
        std::iter::successors(last, |&row| self.before[row as usize].checked_sub(1))
    }
}

/// Returns the part of a hash that an index uses.
fn part_of(print: u128) -> u32 {
    print as u32
}

/// A table takes some of the highest bits of a hash, and some of the lowest.
fn hash(print: u32) -> u64 {
    u64::from(print).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A key that is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoughtKey<'a> {
    schema: &'a Schema,
    record: RecordRef<'a>,
    print: u32,
}

impl<'a> SoughtKey<'a> {
    /// That of a record.
    pub(crate) fn new(schema: &'a Schema, record: RecordRef<'a>) -> Self {
        let prints = (0..schema.key_len()).filter_map(|index| {
            let id = AttrId(index as u8);
            Some(print_of(id, record.get(id)?))
        });
        let print = part_of(prints.fold(0, u128::wrapping_add));
        Self { schema, record, print }
    }

    fn is_of(&self, table: &RowTable, row: u32) -> bool {
        let mut columns = table.key_columns(self.schema.key_len());
        columns.all(|(id, column)| column.and_then(|column| column.text(row)) == self.record.get(id))
    }
}

impl RowTable {
    /// Returns the rows with a key, ascending. `None` if an index does not pay yet: the columns must then be scanned.
    pub(crate) fn rows_of_key(&self, key: &SoughtKey<'_>) -> Option<Vec<u32>> {
        let index = self.index.index(self, key.schema)?;
        let mut rows: Vec<u32> = index.rows(key.print).filter(|&row| key.is_of(self, row)).collect();
        rows.reverse();
        Some(rows)
    }
}

#[cfg(test)]
mod tests {
    use junctura_model::Selector;
    use junctura_model::selector::testing::TestRandom;

    use super::super::select;
    use super::super::tests::{schema, table};
    use super::*;

    /// As often as it takes until there is an index.
    fn indexed(table: &RowTable, key: RecordRef<'_>) -> Vec<u32> {
        let schema = schema();
        let mut answers = std::iter::repeat_with(|| table.rows_of_key(&SoughtKey::new(&schema, key)));
        answers.find_map(|rows| rows).unwrap()
    }

    fn looked_for(table: &RowTable, key: RecordRef<'_>) -> Vec<u32> {
        let selector = Selector::exact_key(key, &schema());
        select(table, &selector.question()).unwrap().iter().collect()
    }

    #[test]
    fn it_finds_what_the_columns_say() {
        let mut random = TestRandom(11);
        let (mut all, mut records) = table(&mut random, 300);
        // Keys with several versions, some with many.
        let mut again = RowTable::default();
        for at in 0..2000 {
            let record = &records[at * at % if at % 2 == 0 { 300 } else { 3 }];
            let place = all.place(at as u32 % 300);
            let file = again.file_number(&"data/2".into());
            again
                .push(record.as_ref(), super::super::ObjectLocation { file, ..place }, None)
                .unwrap();
        }
        let (others, more) = table(&mut random, 100);
        records.extend(more);
        for (round, added) in [&RowTable::default(), &again, &others].into_iter().enumerate() {
            all.append(added).unwrap();
            for record in &records {
                assert_eq!(
                    indexed(&all, record.as_ref()),
                    looked_for(&all, record.as_ref()),
                    "{round}"
                );
            }
        }
        let mut copied = all.clone();
        let (last, records) = table(&mut random, 1);
        copied.append(&last).unwrap();
        assert_eq!(indexed(&copied, records[0].as_ref()).last(), Some(&(all.len() as u32)));
        assert!(!indexed(&all, records[0].as_ref()).contains(&(all.len() as u32)));
    }
}
