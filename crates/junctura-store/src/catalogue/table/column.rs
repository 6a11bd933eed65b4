//! The values of one attribute, by row.

use std::sync::Arc;

use hashbrown::HashTable;
use junctura_model::AttrId;
use xxhash_rust::xxh3::xxh3_64;

use super::RowSet;
use super::numbers::{ByRow, RowNumbers};

/// One attribute: its distinct values, and for each row the number of its value, from 1; 0 where it has none.
#[derive(Clone, Debug)]
pub(crate) struct TextColumn {
    id: AttrId,
    /// The name of an undeclared attribute.
    name: Arc<str>,
    values: DistinctTexts,
    numbers: RowNumbers,
}

/// Distinct texts, numbered in the order of their first occurrence.
#[derive(Clone, Debug, Default)]
struct DistinctTexts {
    text: String,
    ends: Vec<u32>,
    found: HashTable<u32>,
}

impl TextColumn {
    pub(crate) fn new(id: AttrId, name: &str) -> Self {
        Self {
            id,
            name: if id == AttrId::OPEN { name.into() } else { "".into() },
            values: DistinctTexts::default(),
            numbers: RowNumbers::default(),
        }
    }

    pub(crate) fn id(&self) -> AttrId {
        self.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the sort key of attributes in records.
    pub(super) fn order(&self) -> (u8, &str) {
        (self.id.0, &self.name)
    }

    /// Returns the number of values.
    pub(crate) fn values_len(&self) -> usize {
        self.values.ends.len()
    }

    /// The values, in the order of their numbers.
    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.values.ends.len()).map(|at| self.values.get(at))
    }

    /// Returns the values that any row has.
    pub(crate) fn used_values(&self, rows: &RowSet) -> impl Iterator<Item = &str> {
        let mut used = vec![false; self.values_len() + 1];
        match self.numbers.by_row() {
            ByRow::Few(few) => {
                let here = few.entries().iter().filter(|&&(row, _)| rows.contains(row));
                here.for_each(|&(_, number)| used[number as usize] = true);
            }
            _ => rows.iter().for_each(|row| used[self.number(row) as usize] = true),
        }
        let used = self.values().zip(used.into_iter().skip(1));
        used.filter(|(_, is_used)| *is_used).map(|(text, _)| text)
    }

    /// The value of a row.
    pub(crate) fn text(&self, row: u32) -> Option<&str> {
        let number = self.number(row).checked_sub(1)?;
        Some(self.values.get(number as usize))
    }

    /// The number of a row's value; 0: it has none.
    pub(crate) fn number(&self, row: u32) -> u32 {
        self.numbers.get(row as usize)
    }

    /// Returns the number of a value, if it is present.
    pub(crate) fn number_of(&self, text: &str) -> Option<u32> {
        self.values.find(text, xxh3_64(text.as_bytes()))
    }

    /// Adds a term for its value to each row's sum, if it has one. The term is computed once for each value, or once
    /// for each row if these are fewer.
    pub(super) fn add<T: Copy + Default>(
        &self,
        rows: &[u32],
        sums: &mut [T],
        of: impl Fn(&str) -> T,
        add: impl Fn(T, T) -> T,
    ) {
        if rows.len() < self.values_len() {
            for (&row, sum) in rows.iter().zip(sums) {
                *sum = self.text(row).map_or(*sum, |text| add(*sum, of(text)));
            }
            return;
        }
        let by_number: Vec<T> = std::iter::once(T::default()).chain(self.values().map(of)).collect();
        match self.numbers.by_row() {
            ByRow::Few(_) => {
                for (&row, sum) in rows.iter().zip(sums) {
                    *sum = add(*sum, by_number[self.number(row) as usize]);
                }
            }
            ByRow::One(numbers) => add_by_number(numbers, rows, &by_number, sums, add),
            ByRow::Two(numbers) => add_by_number(numbers, rows, &by_number, sums, add),
            ByRow::Four(numbers) => add_by_number(numbers, rows, &by_number, sums, add),
        }
    }

    pub(crate) fn by_row(&self) -> &ByRow {
        self.numbers.by_row()
    }

    /// The numbers of the values of some rows that follow each other; 0: a row has none.
    pub(crate) fn numbers_of(&self, rows: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
        self.numbers.of(rows)
    }

    /// Bytes of the texts of its values.
    pub(crate) fn text_bytes(&self) -> usize {
        self.values.text.len()
    }

    /// Bytes that the numbers of its rows take.
    #[cfg(test)]
    pub(super) fn number_bytes(&self) -> usize {
        self.numbers.bytes()
    }

    pub(super) fn push(&mut self, row: u32, text: &str) {
        let last = self.numbers.last();
        let number = match last.checked_sub(1) {
            Some(at) if self.values.get(at as usize) == text => last,
            _ => self.values.number(text),
        };
        self.set(row, number);
    }

    /// Adds the rows of another column behind the first `first` ones.
    pub(super) fn append(&mut self, first: u32, other: &TextColumn) {
        let numbers: Vec<u32> = other.values().map(|text| self.values.number(text)).collect();
        other
            .numbers
            .each_present(|row, number| self.set(first + row, numbers[number as usize - 1]));
    }

    /// Adds some rows of another column, which rise, to this one, which has none.
    pub(crate) fn take(&mut self, other: &TextColumn, rows: &[u32]) {
        if let ByRow::Few(few) = other.by_row() {
            for &(row, number) in few.entries() {
                if let Ok(at) = rows.binary_search(&row) {
                    let number = self.value_number(other.values.get(number as usize - 1));
                    self.set(at as u32, number);
                }
            }
            return;
        }
        self.take_numbers(other, rows.iter().map(|&row| other.number(row)));
    }

    /// Adds to this column, which has no rows, some with numbers of another one's values.
    pub(crate) fn take_numbers(&mut self, values: &TextColumn, numbers: impl Iterator<Item = u32>) {
        let mut known = vec![0; values.values_len() + 1];
        for (row, number) in (0..).zip(numbers) {
            let Some(at) = number.checked_sub(1) else { continue };
            if known[number as usize] == 0 {
                known[number as usize] = self.values.number(values.values.get(at as usize));
            }
            self.set(row, known[number as usize]);
        }
    }

    /// Adds rows behind the last one, with numbers of values that it has.
    #[cfg(feature = "parquet")]
    pub(crate) fn extend(&mut self, numbers: &[u32]) {
        self.numbers.extend(numbers, self.values.ends.len() as u32);
    }

    /// Forgets all values and rows.
    pub(super) fn clear(&mut self) {
        self.values.text.clear();
        self.values.ends.clear();
        self.values.found.clear();
        self.numbers.clear();
    }

    /// A value's number, and a new one for a new value.
    pub(crate) fn value_number(&mut self, text: &str) -> u32 {
        self.values.number(text)
    }

    pub(crate) fn set(&mut self, row: u32, number: u32) {
        self.numbers.set(row as usize, number);
    }
}

impl DistinctTexts {
    fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }

    fn find(&self, text: &str, hash: u64) -> Option<u32> {
        let is_it = |&at: &u32| self.get(at as usize) == text;
        self.found.find(hash, is_it).map(|at| at + 1)
    }

    fn number(&mut self, text: &str) -> u32 {
        let hash = xxh3_64(text.as_bytes());
        if let Some(number) = self.find(text, hash) {
            return number;
        }
        let at = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        let mut found = std::mem::take(&mut self.found);
        found.insert_unique(hash, at, |&at| xxh3_64(self.get(at as usize).as_bytes()));
        self.found = found;
        at + 1
    }
}

fn add_by_number<N: Copy + Into<u32>, T: Copy>(
    numbers: &[N],
    rows: &[u32],
    by_number: &[T],
    sums: &mut [T],
    add: impl Fn(T, T) -> T,
) {
    for (&row, sum) in rows.iter().zip(sums) {
        let number: u32 = numbers.get(row as usize).map_or(0, |&number| number.into());
        *sum = add(*sum, by_number[number as usize]);
    }
}
