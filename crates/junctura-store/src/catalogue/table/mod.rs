//! Rows of the catalogue in memory: for each object its attributes, the location of its bytes, and its commit.
//!
//! Each attribute is a column of small indices into the list of its values, so that a selector tests each value once
//! and then only compares numbers; about 45 bytes per row. Rows are appended and never change; a shared table is
//! immutable.

mod code;
mod column;
mod index;
mod keys;
mod numbers;
mod select;
mod sparse;

use std::sync::Arc;

use hashbrown::HashMap;
use junctura_model::{AttrId, Code, Error, Record, RecordRef, Result, Version};

use crate::data::packing::PackedObject;
use crate::log::leb128::Run;

pub(crate) use code::EncodedRows;
pub(crate) use column::TextColumn;
pub(crate) use index::SoughtKey;
pub(crate) use keys::{KeyTexts, SeenRows, datasets};
pub(crate) use select::{PassingValues, RowColumns, RowSet, passing, select, select_keys};
use sparse::SparseColumn;

/// Names of undeclared attributes that tables have which are joined. One that has more stays as it is.
pub(crate) const JOINED_NAMES_MAX: usize = 4096;
/// Rows, and bytes of the texts of one column, that tables have which are joined: Arrow numbers both in 31 bits.
const JOINED_ROWS_MAX: usize = 1 << 30;
const JOINED_TEXT_BYTES_MAX: usize = 1 << 30;

/// The location of an object's bytes, and its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectLocation {
    /// Which of the table's files.
    pub(crate) file: u32,
    pub(crate) offset: u64,
    /// Bytes that it has there.
    pub(crate) length: u64,
    /// CRC-32C of its bytes, which are not packed.
    pub(crate) checksum: u32,
    /// Its packing, if it is packed.
    pub(crate) packed: Option<PackedObject>,
}

impl ObjectLocation {
    /// Bytes of the object.
    pub(crate) fn object_length(&self) -> u64 {
        self.packed.map_or(self.length, |packed| packed.length)
    }
}

/// A place without what few have.
#[derive(Clone, Copy, Debug)]
struct BasicLocation {
    file: u32,
    checksum: u32,
    offset: u64,
    length: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowTable {
    columns: Vec<TextColumn>,
    /// The column of each declared attribute.
    declared: Vec<Option<u32>>,
    /// And that of an undeclared one.
    open: HashMap<Arc<str>, u32>,
    files: Vec<Arc<str>>,
    /// Behind the last object of each.
    ends: Vec<u64>,
    file_numbers: HashMap<Arc<str>, u32>,
    spots: Vec<BasicLocation>,
    /// Rows of each commit: its number, and the row behind its last one.
    commits: Vec<(u64, u32)>,
    /// Rows whose numbers follow each other: the first number, and the row behind the last one.
    numbers: Vec<(u64, u32)>,
    packed: SparseColumn<PackedObject>,
    /// Which version of a pool each is.
    versions: SparseColumn<Version>,
    index: index::LazyIndex,
}

impl RowTable {
    pub(crate) fn len(&self) -> usize {
        self.spots.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spots.is_empty()
    }

    pub(crate) fn columns(&self) -> &[TextColumn] {
        &self.columns
    }

    /// Returns the files of the objects.
    pub(crate) fn files(&self) -> &[Arc<str>] {
        &self.files
    }

    pub(crate) fn place(&self, row: u32) -> ObjectLocation {
        let spot = self.spots[row as usize];
        ObjectLocation {
            file: spot.file,
            offset: spot.offset,
            length: spot.length,
            checksum: spot.checksum,
            packed: self.packed.get(row as usize),
        }
    }

    pub(crate) fn file_of(&self, row: u32) -> &Arc<str> {
        &self.files[self.spots[row as usize].file as usize]
    }

    /// Returns the offset up to which the file of a row is known to be committed; its writer may have continued after
    /// that.
    pub(crate) fn end_of_file(&self, row: u32) -> u64 {
        self.ends[self.spots[row as usize].file as usize]
    }

    /// Returns whether rows may be packed.
    #[cfg(feature = "parquet")]
    pub(crate) fn has_packed(&self) -> bool {
        !self.packed.is_empty()
    }

    pub(crate) fn version(&self, row: u32) -> Option<Version> {
        self.versions.get(row as usize)
    }

    /// Returns the number of a row's commit.
    pub(crate) fn commit(&self, row: u32) -> u64 {
        let at = self.commits.partition_point(|&(_, end)| end <= row);
        self.commits.get(at).map_or(0, |&(number, _)| number)
    }

    /// Returns the highest commit number of the rows; 0 without rows.
    pub(crate) fn last_commit(&self) -> u64 {
        self.commits.last().map_or(0, |&(number, _)| number)
    }

    /// The number that a row has among all that were ever committed of its schema, from 0.
    pub(crate) fn number(&self, row: u32) -> u64 {
        let at = self.numbers.partition_point(|&(_, end)| end <= row);
        let first = self.numbers.get(at).map_or(0, |&(first, _)| first);
        first.saturating_add(u64::from(row - self.numbered_from(at)))
    }

    /// The rows with numbers in a run.
    pub(crate) fn rows_numbered(&self, run: &Run) -> impl Iterator<Item = u32> {
        let begin = self.numbers.partition_point(|&(first, end)| {
            // Spans rise, and none has more numbers than rows up to its end.
            first.saturating_add(u64::from(end)) <= run.start
        });
        let run = run.clone();
        (begin..self.numbers.len())
            .take_while(move |&at| self.numbers[at].0 < run.end)
            .flat_map(move |at| {
                let first = self.numbers[at].0;
                let numbers = first.max(run.start)..self.numbers_behind(at).min(run.end);
                numbers.map(move |number| self.numbered_from(at) + (number - first) as u32)
            })
    }

    /// Moves the location of a row to this file and offset. The previous file may then be empty.
    pub(crate) fn relocate(&mut self, row: u32, file: &Arc<str>, offset: u64) {
        let file = self.file_number(file);
        let spot = &mut self.spots[row as usize];
        (spot.file, spot.offset) = (file, offset);
        let end = offset.saturating_add(spot.length);
        self.reaches(file, end);
    }

    /// Something in a file ends there.
    fn reaches(&mut self, file: u32, end: u64) {
        let known = &mut self.ends[file as usize];
        *known = end.max(*known);
    }

    /// The rows that have no numbers yet get those from `first` on.
    pub(crate) fn numbered(&mut self, first: u64) {
        let rows = self.len() as u32;
        let spans = self.numbers.len();
        if self.numbered_from(spans) == rows {
            return;
        }
        match spans.checked_sub(1) {
            Some(last) if self.numbers_behind(last) == first => self.numbers[last].1 = rows,
            _ => self.numbers.push((first, rows)),
        }
    }

    /// The first row of a span of numbers.
    fn numbered_from(&self, span: usize) -> u32 {
        span.checked_sub(1).map_or(0, |before| self.numbers[before].1)
    }

    /// The number behind those of a span.
    fn numbers_behind(&self, span: usize) -> u64 {
        let (first, end) = self.numbers[span];
        first.saturating_add(u64::from(end - self.numbered_from(span)))
    }

    /// Some of its rows, which rise, as a table of their own.
    pub(crate) fn only(&self, rows: &[u32]) -> Self {
        let mut only = Self::default();
        for column in &self.columns {
            let mut taken = TextColumn::new(column.id(), column.name());
            taken.take(column, rows);
            // Names that only removed rows use are dropped.
            if taken.values_len() > 0 {
                only.adopt(taken);
            }
        }
        let mut files = vec![None; self.files.len()];
        for &row in rows {
            let place = self.place(row);
            let file = *files[place.file as usize].get_or_insert_with(|| only.file_number(self.file_of(row)));
            only.push_place(ObjectLocation { file, ..place }, self.version(row));
            only.committed(self.commit(row));
            only.numbered(self.number(row));
        }
        only
    }

    /// The column of an attribute, where a row has it.
    pub(crate) fn column(&self, id: AttrId, name: &str) -> Option<&TextColumn> {
        if id == AttrId::OPEN {
            return self.open.get(name).map(|&at| &self.columns[at as usize]);
        }
        let at = self.declared.get(id.index()).copied().flatten()?;
        self.columns.get(at as usize)
    }

    /// Returns all attributes of a row.
    pub(crate) fn record(&self, row: u32) -> Record {
        let mut bytes = Vec::new();
        let mut present: Vec<(&TextColumn, &str)> = self
            .columns
            .iter()
            .filter_map(|column| Some((column, column.text(row)?)))
            .collect();
        present.sort_unstable_by_key(|(column, _)| column.order());
        for (column, text) in present {
            bytes.push(column.id().0);
            if column.id() == AttrId::OPEN {
                bytes.push(column.name().len() as u8);
                bytes.extend_from_slice(column.name().as_bytes());
            }
            bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        Record::trusted(bytes)
    }

    /// Adds a row. Its attributes are of one schema, that of all rows.
    ///
    /// # Errors
    /// `LimitExceeded` for more rows than there may be.
    pub(crate) fn push(
        &mut self,
        record: RecordRef<'_>,
        place: ObjectLocation,
        version: Option<Version>,
    ) -> Result<()> {
        let row = self.next_row()?;
        for (id, name, text) in record.iter() {
            let at = self.column_of(id, name.unwrap_or_default());
            self.columns[at].push(row, text);
        }
        self.push_place(place, version);
        self.index = index::LazyIndex::default();
        Ok(())
    }

    /// Forgets all rows, and the names of undeclared attributes; the memory is kept for others like them.
    pub(crate) fn clear(&mut self) {
        if !self.open.is_empty() {
            self.open.clear();
            self.columns.retain(|column| column.id() != AttrId::OPEN);
            self.declared.clear();
            for (at, column) in self.columns.iter().enumerate() {
                let index = column.id().index();
                self.declared.resize(self.declared.len().max(index + 1), None);
                self.declared[index] = Some(at as u32);
            }
        }
        for column in &mut self.columns {
            column.clear();
        }
        self.files.clear();
        self.ends.clear();
        self.file_numbers.clear();
        self.spots.clear();
        self.packed.clear();
        self.commits.clear();
        self.numbers.clear();
        self.versions.clear();
        self.index = index::LazyIndex::default();
    }

    /// Records the commit of the rows since the last one.
    pub(crate) fn committed(&mut self, number: u64) {
        let rows = self.len() as u32;
        match self.commits.last_mut() {
            Some((last, end)) if *last == number => *end = rows,
            Some((_, end)) if *end == rows => {}
            None if rows == 0 => {}
            _ => self.commits.push((number, rows)),
        }
    }

    /// The column of an attribute, new where no row has it.
    #[cfg(feature = "parquet")]
    pub(crate) fn column_mut(&mut self, id: AttrId, name: &str) -> &mut TextColumn {
        let at = self.column_of(id, name);
        &mut self.columns[at]
    }

    /// Takes a column over that it does not have.
    pub(crate) fn adopt(&mut self, column: TextColumn) {
        let at = self.column_of(column.id(), column.name());
        self.columns[at] = column;
    }

    /// The names of the undeclared attributes that its rows have.
    pub(crate) fn open_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.open.keys()
    }

    /// Bytes of the texts of the column that has most.
    pub(crate) fn text_bytes_max(&self) -> usize {
        self.columns
            .iter()
            .map(TextColumn::text_bytes)
            .max()
            .unwrap_or_default()
    }

    /// Returns whether it is so large that further rows need another table.
    pub(crate) fn is_full(&self) -> bool {
        let open = self.open.len() > JOINED_NAMES_MAX;
        open || self.len() > JOINED_ROWS_MAX || self.text_bytes_max() > JOINED_TEXT_BYTES_MAX
    }

    /// Whether tables with so many rows, and so many bytes in one column, are joined.
    pub(crate) fn may_have(rows: usize, text_bytes: usize) -> bool {
        rows <= JOINED_ROWS_MAX && text_bytes <= JOINED_TEXT_BYTES_MAX
    }

    /// The number of a file in this table.
    pub(crate) fn file_number(&mut self, name: &Arc<str>) -> u32 {
        if let Some(last) = self.files.last()
            && last == name
        {
            return self.files.len() as u32 - 1;
        }
        let next = self.files.len() as u32;
        let number = *self.file_numbers.entry(Arc::clone(name)).or_insert(next);
        if number == next {
            self.files.push(Arc::clone(name));
            self.ends.push(0);
        }
        number
    }

    /// Adds all rows of a table that has none but later commits.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(crate) fn append(&mut self, other: &RowTable) -> Result<()> {
        let first = self.next_row()?;
        if self.len() + other.len() > u32::MAX as usize {
            return Err(too_many_rows());
        }
        for column in &other.columns {
            let at = self.column_of(column.id(), column.name());
            self.columns[at].append(first, column);
        }
        let files: Vec<u32> = other.files.iter().map(|name| self.file_number(name)).collect();
        for (&file, &end) in files.iter().zip(&other.ends) {
            self.reaches(file, end);
        }
        self.packed.append(self.len(), &other.packed, other.len());
        self.versions.append(self.len(), &other.versions, other.len());
        let spots = other.spots.iter().map(|&spot| BasicLocation {
            file: files[spot.file as usize],
            ..spot
        });
        self.spots.extend(spots);
        let commits = other.commits.iter().map(|&(number, end)| (number, first + end));
        self.commits.extend(commits);
        let numbers = other.numbers.iter().map(|&(number, end)| (number, first + end));
        self.numbers.extend(numbers);
        let mut index = std::mem::take(&mut self.index);
        index.add_new(self);
        self.index = index;
        Ok(())
    }

    /// The columns of a key's attributes, so many.
    fn key_columns(&self, key_len: usize) -> impl Iterator<Item = (AttrId, Option<&TextColumn>)> {
        (0..key_len).map(|index| {
            let id = AttrId(index as u8);
            (id, self.column(id, ""))
        })
    }

    fn next_row(&self) -> Result<u32> {
        u32::try_from(self.len())
            .ok()
            .filter(|&row| row < u32::MAX)
            .ok_or_else(too_many_rows)
    }

    /// Adds what is known of a row beside its attributes.
    pub(crate) fn push_place(&mut self, place: ObjectLocation, version: Option<Version>) {
        self.packed.push(self.len(), place.packed);
        self.versions.push(self.len(), version);
        self.reaches(place.file, place.offset.saturating_add(place.length));
        self.spots.push(BasicLocation {
            file: place.file,
            checksum: place.checksum,
            offset: place.offset,
            length: place.length,
        });
    }

    fn column_of(&mut self, id: AttrId, name: &str) -> usize {
        let next = self.columns.len();
        let known = if id == AttrId::OPEN {
            self.open.get(name).copied()
        } else {
            self.declared.get(id.index()).copied().flatten()
        };
        if let Some(known) = known {
            return known as usize;
        }
        let column = TextColumn::new(id, name);
        if id == AttrId::OPEN {
            self.open.insert(Arc::clone(column.shared_name()), next as u32);
        } else {
            self.declared.resize(self.declared.len().max(id.index() + 1), None);
            self.declared[id.index()] = Some(next as u32);
        }
        self.columns.push(column);
        next
    }
}

#[cold]
fn too_many_rows() -> Error {
    Error::new(Code::LimitExceeded, "rows", "one table has no more than 4,294,967,295")
}

#[cfg(test)]
pub(crate) mod tests;
