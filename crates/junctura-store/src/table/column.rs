//! The values of one attribute, by row.

use std::sync::Arc;

use hashbrown::HashTable;
use junctura_model::AttrId;
use xxhash_rust::xxh3::xxh3_64;

/// One attribute: its distinct values, and for each row the number of its value, from 1; 0 where it has none.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    id: AttrId,
    /// Of undeclared attributes.
    name: Arc<str>,
    values: Values,
    numbers: Numbers,
}

/// Distinct texts, numbered in the order in which they came.
#[derive(Clone, Debug, Default)]
struct Values {
    text: String,
    ends: Vec<u32>,
    found: HashTable<u32>,
}

/// As narrow as the number of values allows. Rows behind the last one have none.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

impl Column {
    pub(crate) fn new(id: AttrId, name: &str) -> Self {
        Self {
            id,
            name: if id == AttrId::OPEN { name.into() } else { "".into() },
            values: Values::default(),
            numbers: Numbers::One(Vec::new()),
        }
    }

    pub(crate) fn id(&self) -> AttrId {
        self.id
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_open(&self, name: &str) -> bool {
        self.id == AttrId::OPEN && *self.name == *name
    }

    /// What records sort their attributes by.
    pub(super) fn order(&self) -> (u8, &str) {
        (self.id.0, &self.name)
    }

    /// How many values there are.
    pub(crate) fn values_len(&self) -> usize {
        self.values.ends.len()
    }

    /// The values, in the order of their numbers.
    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.values.ends.len()).map(|at| self.values.get(at))
    }

    /// Those of its values that some rows have.
    pub(crate) fn used_values(&self, rows: impl Iterator<Item = u32>) -> impl Iterator<Item = &str> {
        let mut used = vec![false; self.values_len() + 1];
        for row in rows {
            used[self.number(row) as usize] = true;
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

    /// The number of a value, if it is one of them.
    pub(crate) fn number_of(&self, text: &str) -> Option<u32> {
        self.values.find(text, xxh3_64(text.as_bytes()))
    }

    /// Adds to each row's sum what stands for its value, if it has one. That is made once for each value, or once for each row where
    /// those are fewer.
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
        match &self.numbers {
            Numbers::One(numbers) => add_by_number(numbers, rows, &by_number, sums, add),
            Numbers::Two(numbers) => add_by_number(numbers, rows, &by_number, sums, add),
            Numbers::Four(numbers) => add_by_number(numbers, rows, &by_number, sums, add),
        }
    }

    pub(crate) fn numbers(&self) -> &Numbers {
        &self.numbers
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
    pub(super) fn append(&mut self, first: u32, other: &Column) {
        let numbers: Vec<u32> = other.values().map(|text| self.values.number(text)).collect();
        for row in 0..other.numbers.len() {
            if let Some(at) = other.numbers.get(row).checked_sub(1) {
                self.set(first + row as u32, numbers[at as usize]);
            }
        }
    }

    /// Adds some rows of another column to this one, which has none.
    pub(crate) fn take(&mut self, other: &Column, rows: &[u32]) {
        self.take_numbers(other, rows.iter().map(|&row| other.number(row)));
    }

    /// Adds to this column, which has no rows, some with numbers of another one's values.
    pub(crate) fn take_numbers(&mut self, values: &Column, numbers: impl Iterator<Item = u32>) {
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
        let number_max = self.values_len() as u32;
        if number_max > self.numbers.number_max() {
            self.numbers.widen(number_max);
        }
        match &mut self.numbers {
            Numbers::One(all) => all.extend(numbers.iter().map(|&number| number as u8)),
            Numbers::Two(all) => all.extend(numbers.iter().map(|&number| number as u16)),
            Numbers::Four(all) => all.extend(numbers),
        }
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

impl Values {
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

impl Numbers {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::One(all) => all.len(),
            Self::Two(all) => all.len(),
            Self::Four(all) => all.len(),
        }
    }

    fn get(&self, row: usize) -> u32 {
        let found = match self {
            Self::One(all) => all.get(row).copied().map(u32::from),
            Self::Two(all) => all.get(row).copied().map(u32::from),
            Self::Four(all) => all.get(row).copied(),
        };
        found.unwrap_or(0)
    }

    fn last(&self) -> u32 {
        self.len().checked_sub(1).map_or(0, |row| self.get(row))
    }

    fn set(&mut self, row: usize, number: u32) {
        if number > self.number_max() {
            self.widen(number);
        }
        match self {
            Self::One(all) => put(all, row, number as u8),
            Self::Two(all) => put(all, row, number as u16),
            Self::Four(all) => put(all, row, number),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::One(all) => all.clear(),
            Self::Two(all) => all.clear(),
            Self::Four(all) => all.clear(),
        }
    }

    fn number_max(&self) -> u32 {
        match self {
            Self::One(_) => u8::MAX.into(),
            Self::Two(_) => u16::MAX.into(),
            Self::Four(_) => u32::MAX,
        }
    }

    fn widen(&mut self, number: u32) {
        let all = (0..self.len()).map(|row| self.get(row));
        *self = if number <= u16::MAX.into() {
            Self::Two(all.map(|number| number as u16).collect())
        } else {
            Self::Four(all.collect())
        };
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

fn put<T: Copy + Default>(all: &mut Vec<T>, row: usize, number: T) {
    if let Some(old) = all.get_mut(row) {
        *old = number;
    } else {
        all.resize(row, T::default());
        all.push(number);
    }
}
