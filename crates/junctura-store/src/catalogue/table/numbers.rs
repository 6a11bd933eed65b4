//! The numbers of a column's values, by row: as narrow as the number of values allows, and only those of the rows that have one where
//! few do. A column costs what its rows hold, not as much as its table has rows.

use std::ops::Range;

/// One of so many rows has a value, or fewer: then only those are kept. Eight times as many, and all rows are.
const SPARSE: usize = 64;
const DENSE: usize = SPARSE / 8;

/// See the module. 0: a row has no value. Rows behind the last one have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowNumbers {
    by_row: ByRow,
    /// Rows that have a value.
    present: usize,
}

/// How they are kept.
#[derive(Clone, Debug)]
pub(crate) enum ByRow {
    Few(FewRows),
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

/// The rows that have a value, which rise, each with its number; and how many rows there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct FewRows {
    entries: Vec<(u32, u32)>,
    len: usize,
}

impl Default for ByRow {
    fn default() -> Self {
        Self::One(Vec::new())
    }
}

impl FewRows {
    pub(crate) fn entries(&self) -> &[(u32, u32)] {
        &self.entries
    }

    fn get(&self, row: usize) -> u32 {
        let found = self.entries.binary_search_by_key(&row, |&(row, _)| row as usize);
        found.map_or(0, |at| self.entries[at].1)
    }

    fn set(&mut self, row: usize, number: u32) {
        self.len = self.len.max(row + 1);
        let entry = (row as u32, number);
        if self.entries.last().is_none_or(|&(last, _)| (last as usize) < row) {
            self.entries.push(entry);
            return;
        }
        match self.entries.binary_search_by_key(&entry.0, |&(row, _)| row) {
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
    }
}

impl RowNumbers {
    pub(crate) fn by_row(&self) -> &ByRow {
        &self.by_row
    }

    pub(super) fn get(&self, row: usize) -> u32 {
        let found = match &self.by_row {
            ByRow::Few(few) => return few.get(row),
            ByRow::One(all) => all.get(row).copied().map(u32::from),
            ByRow::Two(all) => all.get(row).copied().map(u32::from),
            ByRow::Four(all) => all.get(row).copied(),
        };
        found.unwrap_or(0)
    }

    /// The number of the last row.
    pub(super) fn last(&self) -> u32 {
        match &self.by_row {
            ByRow::Few(few) => match few.entries.last() {
                Some(&(row, number)) if row as usize + 1 == few.len => number,
                _ => 0,
            },
            ByRow::One(all) => all.last().map_or(0, |&number| number.into()),
            ByRow::Two(all) => all.last().map_or(0, |&number| number.into()),
            ByRow::Four(all) => all.last().copied().unwrap_or_default(),
        }
    }

    /// The numbers of some rows that follow each other.
    pub(super) fn of(&self, rows: Range<u32>) -> impl Iterator<Item = u32> {
        let few = match &self.by_row {
            ByRow::Few(few) => &few.entries[few.entries.partition_point(|&(row, _)| row < rows.start)..],
            _ => &[],
        };
        let is_few = matches!(self.by_row, ByRow::Few(_));
        let mut left = few.iter();
        rows.map(move |row| match left.as_slice().first() {
            _ if !is_few => self.get(row as usize),
            Some(&(next, number)) if next == row => {
                left.next();
                number
            }
            _ => 0,
        })
    }

    /// Hands over each row that has a value, and its number, in rising order.
    pub(super) fn each_present(&self, mut take: impl FnMut(u32, u32)) {
        let mut take_all = |numbers: &mut dyn Iterator<Item = u32>| {
            let present = (0..).zip(numbers).filter(|&(_, number)| number > 0);
            present.for_each(|(row, number)| take(row, number));
        };
        match &self.by_row {
            ByRow::Few(few) => few.entries.iter().for_each(|&(row, number)| take(row, number)),
            ByRow::One(all) => take_all(&mut all.iter().map(|&number| number.into())),
            ByRow::Two(all) => take_all(&mut all.iter().map(|&number| number.into())),
            ByRow::Four(all) => take_all(&mut all.iter().copied()),
        }
    }

    /// The number is not 0.
    pub(super) fn set(&mut self, row: usize, number: u32) {
        if row >= self.len() {
            self.present += 1;
            // Only a row that leaves others out makes a column sparse.
            if row > self.len() && self.present * SPARSE < row {
                self.thin_out();
            }
        } else if self.get(row) == 0 {
            self.present += 1;
        }
        self.widen_for(number);
        match &mut self.by_row {
            ByRow::Few(few) => {
                few.set(row, number);
                self.fill_up();
            }
            ByRow::One(all) => put(all, row, number as u8),
            ByRow::Two(all) => put(all, row, number as u16),
            ByRow::Four(all) => put(all, row, number),
        }
    }

    /// Adds rows behind the last one.
    #[cfg(feature = "parquet")]
    pub(super) fn extend(&mut self, numbers: &[u32], number_max: u32) {
        let present = numbers.iter().filter(|&&number| number > 0).count();
        self.present += present;
        if self.present * SPARSE < self.len() + numbers.len() {
            self.thin_out();
        }
        self.widen_for(number_max);
        match &mut self.by_row {
            ByRow::Few(few) => {
                let rows = (few.len as u32..).zip(numbers.iter().copied());
                few.entries.extend(rows.filter(|&(_, number)| number > 0));
                few.len += numbers.len();
                self.fill_up();
            }
            ByRow::One(all) => all.extend(numbers.iter().map(|&number| number as u8)),
            ByRow::Two(all) => all.extend(numbers.iter().map(|&number| number as u16)),
            ByRow::Four(all) => all.extend(numbers),
        }
    }

    pub(super) fn clear(&mut self) {
        self.present = 0;
        match &mut self.by_row {
            ByRow::Few(few) => {
                few.entries.clear();
                few.len = 0;
            }
            ByRow::One(all) => all.clear(),
            ByRow::Two(all) => all.clear(),
            ByRow::Four(all) => all.clear(),
        }
    }

    /// Bytes that they take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        match &self.by_row {
            ByRow::Few(few) => 8 * few.entries.capacity(),
            ByRow::One(all) => all.capacity(),
            ByRow::Two(all) => 2 * all.capacity(),
            ByRow::Four(all) => 4 * all.capacity(),
        }
    }

    fn len(&self) -> usize {
        match &self.by_row {
            ByRow::Few(few) => few.len,
            ByRow::One(all) => all.len(),
            ByRow::Two(all) => all.len(),
            ByRow::Four(all) => all.len(),
        }
    }

    /// Keeps only those of rows that have a value.
    fn thin_out(&mut self) {
        if matches!(self.by_row, ByRow::Few(_)) {
            return;
        }
        let mut few = FewRows {
            entries: Vec::new(),
            len: self.len(),
        };
        self.each_present(|row, number| few.entries.push((row, number)));
        self.by_row = ByRow::Few(few);
    }

    /// Keeps those of all rows, where many have a value.
    fn fill_up(&mut self) {
        if let ByRow::Few(few) = &self.by_row
            && self.present * DENSE >= few.len
        {
            let mut all = vec![0; few.len];
            few.entries.iter().for_each(|&(row, number)| all[row as usize] = number);
            let number_max = all.iter().copied().max().unwrap_or_default();
            self.by_row = narrow(&mut all.into_iter(), number_max);
        }
    }

    fn widen_for(&mut self, number: u32) {
        let number_max = match &self.by_row {
            ByRow::One(_) => u8::MAX.into(),
            ByRow::Two(_) => u16::MAX.into(),
            ByRow::Few(_) | ByRow::Four(_) => u32::MAX,
        };
        if number > number_max {
            self.by_row = narrow(&mut (0..self.len()).map(|row| self.get(row)), number);
        }
    }
}

/// Numbers up to this one, as narrow as that allows.
fn narrow(all: &mut dyn Iterator<Item = u32>, number_max: u32) -> ByRow {
    if number_max <= u8::MAX.into() {
        ByRow::One(all.map(|number| number as u8).collect())
    } else if number_max <= u16::MAX.into() {
        ByRow::Two(all.map(|number| number as u16).collect())
    } else {
        ByRow::Four(all.collect())
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
