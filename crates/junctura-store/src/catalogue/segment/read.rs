//! Reads rows of a Parquet file on demand.
//!
//! A query first tests the lists of values of a group's columns. If no value passes, nothing else is read; if few rows
//! match, only these become a table. A repeated query, or one for many rows, reads the whole group, which then stays in
//! memory.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt64Array};
use arrow_schema::DataType;
use bytes::Bytes;
use hashbrown::HashMap;
use junctura_model::selector::{AttributeQuestion, SelectorQuestion};
use junctura_model::{AttrId, Code, Error, Given, Result, Schema, Type, Version};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use super::codes::CodedColumn;
use super::span::FileSpan;
use super::write::{DECIMAL, FOOTER_TAIL, GROUP_ROWS, corrupt, refused, type_of, unfit};
use super::{OWN, PartChecks};
use crate::catalogue::table::{ObjectLocation, PassingValues, RowColumns, RowTable, TextColumn, passing, select};
use crate::data::packing::{PackedObject, PayloadCodec};
use crate::data::{read_exact, read_named};
use crate::log::leb128::Run;
use crate::storage::StorageFile;

/// A file of rows, of which only the footer was read.
pub(crate) struct SegmentFile {
    path: String,
    schema: Arc<Schema>,
    metadata: ArrowReaderMetadata,
    columns: Vec<ColumnKind>,
    source: SegmentSource,
}

enum SegmentSource {
    Whole(FileSpan),
    /// With the checksum of each column of each group.
    Parts(Arc<dyn StorageFile>, Vec<u32>),
}

/// The kinds of columns.
enum ColumnKind {
    Attribute(AttrId, String),
    Own,
}

/// Rows that are stored together in a file.
pub(crate) struct RowGroup {
    segment: Arc<SegmentFile>,
    index: usize,
    /// The chunks of columns that were read.
    chunks: Mutex<HashMap<usize, Arc<ColumnChunk>>>,
    whole: OnceLock<Arc<RowTable>>,
    /// Whether a few of its rows have been read before.
    was_asked: AtomicBool,
}

/// A column of a group.
enum ColumnChunk {
    Codes(CodedColumn, OnceLock<TextColumn>),
    Column(TextColumn),
}

/// The table that [`super::encode`] wrote.
///
/// # Errors
/// `Corrupt` for bytes that it did not write.
pub(crate) fn decode(file: Vec<u8>, schema: &Arc<Schema>) -> Result<RowTable> {
    let bytes = Bytes::from(file);
    let metadata = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::default()).map_err(|error| refused(&error))?;
    let segment = SegmentFile::new(
        "segment",
        schema,
        metadata,
        SegmentSource::Whole(FileSpan { start: 0, bytes }),
    )?;
    let mut table = RowTable::default();
    for group in segment.groups() {
        table.append(&*group.table()?)?;
    }
    Ok(table)
}

impl SegmentFile {
    /// Opens a file of this size, which is read on demand.
    ///
    /// # Errors
    /// `Corrupt` if its footer is damaged; `NotFound` if it was removed after it was opened; errors of system calls.
    pub(crate) fn open(
        path: &str,
        file: Arc<dyn StorageFile>,
        bytes: u64,
        checks: &PartChecks,
        schema: &Arc<Schema>,
    ) -> Result<Arc<Self>> {
        let there = file
            .len()
            .map_err(|error| crate::storage::refused(path, "cannot be looked at", &error))?;
        // A damaged checkpoint must not cause a reservation of more memory than the file has bytes.
        let start = bytes
            .checked_sub(checks.footer)
            .filter(|_| bytes <= there)
            .filter(|_| checks.footer >= FOOTER_TAIL as u64);
        let start = start.ok_or_else(|| about(path, &corrupt("it ends before it begins")))?;
        let mut footer = vec![0; checks.footer as usize];
        read_named(&*file, path, &mut footer, start)?;
        check(path, &footer, checks.footer_checksum)?;
        let metadata = ParquetMetaDataReader::decode_metadata(&footer[..footer.len() - FOOTER_TAIL])
            .and_then(|metadata| ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::default()))
            .map_err(|error| about(path, &refused(&error)))?;
        Self::new(path, schema, metadata, SegmentSource::Parts(file, checks.chunks()?))
    }

    fn new(
        path: &str,
        schema: &Arc<Schema>,
        metadata: ArrowReaderMetadata,
        source: SegmentSource,
    ) -> Result<Arc<Self>> {
        let kind = |name: &str| match name.strip_prefix('@') {
            _ if OWN.contains(&name) => Some(ColumnKind::Own),
            Some(open) => Some(ColumnKind::Attribute(AttrId::OPEN, open.to_owned())),
            None => Some(ColumnKind::Attribute(schema.find(name)?, String::new())),
        };
        let fields = metadata.schema().fields().iter();
        let columns: Option<Vec<ColumnKind>> = fields.map(|field| kind(field.name())).collect();
        let columns = columns.ok_or_else(|| {
            let cause =
                "it has a column of an attribute that its schema had not when the store was opened here: open it again";
            Error::new(Code::SchemaMismatch, path, cause)
        })?;
        if columns.len() != metadata.parquet_schema().num_columns() {
            return Err(about(path, &corrupt("it has a nested column")));
        }
        Ok(Arc::new(Self {
            path: path.to_owned(),
            schema: Arc::clone(schema),
            metadata,
            columns,
            source,
        }))
    }

    /// Its rows, the oldest first.
    pub(crate) fn groups(self: &Arc<Self>) -> impl Iterator<Item = RowGroup> {
        (0..self.metadata.metadata().num_row_groups()).map(|index| RowGroup {
            segment: Arc::clone(self),
            index,
            chunks: Mutex::default(),
            whole: OnceLock::new(),
            was_asked: AtomicBool::new(false),
        })
    }

    fn corrupt(&self, cause: &str) -> Error {
        about(&self.path, &corrupt(cause))
    }

    /// The bytes of a column of a group.
    fn chunk(&self, group: usize, column: usize) -> Result<FileSpan> {
        let (start, length) = self.metadata.metadata().row_group(group).column(column).byte_range();
        let bytes = match &self.source {
            SegmentSource::Whole(span) => span
                .part(start, length)
                .ok_or_else(|| self.corrupt("it is too short"))?,
            SegmentSource::Parts(file, checksums) => {
                let checksum = self.checksum(checksums, group, column)?;
                let mut bytes = vec![0; length as usize];
                read_exact(&**file, &self.path, &mut bytes, start)?;
                check(&self.path, &bytes, checksum)?;
                bytes.into()
            }
        };
        Ok(FileSpan { start, bytes })
    }

    /// The bytes of a whole group.
    fn group(&self, group: usize) -> Result<FileSpan> {
        let (file, checksums) = match &self.source {
            SegmentSource::Whole(span) => return Ok(span.clone()),
            SegmentSource::Parts(file, checksums) => (file, checksums),
        };
        let columns = self.metadata.metadata().row_group(group).columns();
        let ranges = || columns.iter().map(ColumnChunkMetaData::byte_range);
        let start = ranges().map(|(start, _)| start).min().unwrap_or_default();
        let end = ranges().map(|(start, length)| start + length).max().unwrap_or_default();
        let mut bytes = vec![0; (end - start) as usize];
        read_exact(&**file, &self.path, &mut bytes, start)?;
        let span = FileSpan {
            start,
            bytes: bytes.into(),
        };
        for (at, (start, length)) in ranges().enumerate() {
            let bytes = span.part(start, length).unwrap_or_default();
            check(&self.path, &bytes, self.checksum(checksums, group, at)?)?;
        }
        Ok(span)
    }

    fn checksum(&self, checksums: &[u32], group: usize, column: usize) -> Result<u32> {
        let checksum = checksums.get(group * self.columns.len() + column).copied();
        checksum.ok_or_else(|| self.corrupt("it has more columns than checksums"))
    }
}

fn check(path: &str, bytes: &[u8], checksum: u32) -> Result<()> {
    if crate::checksum(bytes) == checksum {
        return Ok(());
    }
    Err(about(path, &corrupt("its checksum does not match")))
}

impl fmt::Debug for RowGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {} of {}", self.index, self.segment.path)
    }
}

impl RowGroup {
    /// Rows.
    pub(crate) fn len(&self) -> usize {
        self.metadata().num_rows() as usize
    }

    fn metadata(&self) -> &RowGroupMetaData {
        self.parquet().row_group(self.index)
    }

    fn parquet(&self) -> &Arc<ParquetMetaData> {
        self.segment.metadata.metadata()
    }

    /// All rows, if they are in memory.
    pub(crate) fn in_memory(&self) -> Option<&Arc<RowTable>> {
        self.whole.get()
    }

    /// All rows.
    ///
    /// # Errors
    /// `Corrupt` for what is not what was written; what the system refuses.
    pub(crate) fn table(&self) -> Result<Arc<RowTable>> {
        if let Some(table) = self.whole.get() {
            return Ok(Arc::clone(table));
        }
        // Held meanwhile, so that others wait for the same table.
        let mut chunks = self.chunks();
        if let Some(table) = self.whole.get() {
            return Ok(Arc::clone(table));
        }
        let span = self.segment.group(self.index)?;
        let mut table = RowTable::default();
        for at in self.attributes() {
            let chunk = match chunks.remove(&at) {
                Some(chunk) => chunk,
                None => Arc::new(self.read(at, &span)?),
            };
            table.adopt(match Arc::try_unwrap(chunk) {
                Ok(chunk) => self.whole_column(chunk)?,
                Err(shared) => self.column_of(&shared)?.clone(),
            });
        }
        self.take_own(&mut table, &span, None)?;
        let table = Arc::new(table);
        Ok(Arc::clone(self.whole.get_or_init(|| table)))
    }

    /// Returns a few rows, ascending, as a separate table; `None` if the whole group should be read.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub(crate) fn only(&self, rows: &[u32]) -> Result<Option<RowTable>> {
        let are_few = rows.len() * FEW < self.len();
        if self.was_asked.swap(true, Ordering::Relaxed) || !are_few {
            return Ok(None);
        }
        let span = self.segment.group(self.index)?;
        let mut table = RowTable::default();
        for at in self.attributes() {
            let known = self.chunks().get(&at).cloned();
            let chunk = match known {
                Some(chunk) => chunk,
                None => Arc::new(self.read(at, &span)?),
            };
            let (id, name) = self.attribute(at);
            let into = table.column_mut(id, name);
            match &*chunk {
                ColumnChunk::Codes(codes, column) if column.get().is_none() => {
                    let numbers = codes.of_rows(rows).ok_or_else(|| self.garbled())?;
                    into.take_numbers(codes.values(), numbers.into_iter());
                }
                chunk => into.take(self.column_of(chunk)?, rows),
            }
        }
        self.take_own(&mut table, &span, Some(rows))?;
        Ok(Some(table))
    }

    /// Whether it can have rows with numbers in one of these runs.
    pub(crate) fn may_have(&self, runs: &[Run]) -> bool {
        let span = self.span_of("_number");
        span.is_none_or(|(min, max)| runs.iter().any(|run| run.start <= max && run.end > min))
    }

    /// Returns the highest commit number that a row can have.
    pub(crate) fn last_commit(&self) -> u64 {
        self.span_of("_commit").map_or(u64::MAX, |(_, max)| max)
    }

    /// Returns the minimum and maximum of one of the store's own columns, if the file has them.
    fn span_of(&self, column: &str) -> Option<(u64, u64)> {
        let at = self.segment.metadata.schema().index_of(column).ok()?;
        match self.metadata().column(at).statistics()? {
            // The file stores them as signed numbers.
            Statistics::Int64(numbers) => Some((*numbers.min_opt()? as u64, *numbers.max_opt()? as u64)),
            _ => None,
        }
    }

    /// Returns the files of the objects.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub(crate) fn files(&self) -> Result<Vec<Arc<str>>> {
        let at = self
            .segment
            .metadata
            .schema()
            .index_of("_file")
            .map_err(|error| unfit(&error))?;
        let chunk = self.chunk(at)?;
        Ok(chunk.values().values().map(Arc::from).collect())
    }

    /// The names of undeclared attributes that its file has.
    pub(crate) fn open_names(&self) -> impl Iterator<Item = &str> {
        let named = self.attributes().map(|at| self.attribute(at));
        named.filter_map(|(id, name)| (id == AttrId::OPEN).then_some(name))
    }

    /// Whether its rows have no attributes but the first ones of their schema, so many.
    pub(crate) fn has_keys_only(&self, key_len: usize) -> bool {
        self.attributes().all(|at| self.attribute(at).0.index() < key_len)
    }

    /// Hands over each value that a row has which a question asks for.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub(crate) fn each_value(&self, question: &SelectorQuestion<'_>, mut take: impl FnMut(AttrId, &str)) -> Result<()> {
        let rows = select(self, question)?;
        if rows.is_empty() {
            return Ok(());
        }
        let are_all = rows.iter().count() == self.len();
        for at in self.attributes() {
            let (id, chunk) = (self.attribute(at).0, self.chunk(at)?);
            if are_all {
                chunk.values().values().for_each(|text| take(id, text));
            } else {
                let column = self.column_of(&chunk)?;
                column.used_values(&rows).for_each(|text| take(id, text));
            }
        }
        Ok(())
    }

    /// The columns of attributes.
    fn attributes(&self) -> impl Iterator<Item = usize> {
        let columns = self.segment.columns.iter().enumerate();
        columns
            .filter(|(_, kind)| matches!(kind, ColumnKind::Attribute(..)))
            .map(|(at, _)| at)
    }

    /// Returns the attribute of a column; for one of the store's own, an attribute without a name.
    fn attribute(&self, at: usize) -> (AttrId, &str) {
        match &self.segment.columns[at] {
            ColumnKind::Attribute(id, name) => (*id, name),
            ColumnKind::Own => (AttrId::OPEN, ""),
        }
    }

    fn chunks(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Arc<ColumnChunk>>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A column, which stays.
    fn chunk(&self, at: usize) -> Result<Arc<ColumnChunk>> {
        let mut chunks = self.chunks();
        if let Some(chunk) = chunks.get(&at) {
            return Ok(Arc::clone(chunk));
        }
        let chunk = Arc::new(self.read(at, &self.segment.chunk(self.index, at)?)?);
        chunks.insert(at, Arc::clone(&chunk));
        Ok(chunk)
    }

    fn read(&self, at: usize, span: &FileSpan) -> Result<ColumnChunk> {
        let (id, name) = self.attribute(at);
        let (rows, metadata) = (self.len(), self.metadata().column(at));
        let empty = || TextColumn::new(id, name);
        let (start, length) = metadata.byte_range();
        let bytes = span.part(start, length).ok_or_else(|| self.garbled())?;
        let kind = type_of(id, &self.segment.schema);
        let codes = CodedColumn::read(&FileSpan { start, bytes }, metadata, rows, empty(), kind);
        if let Some(codes) = codes.map_err(|error| about(&self.segment.path, &refused(&error)))? {
            return Ok(ColumnChunk::Codes(codes, OnceLock::new()));
        }
        let mut column = empty();
        let mut first = 0;
        self.batches(&[at], span, None, |batch| {
            take_column(&mut column, first, batch.column(0))?;
            first += batch.num_rows() as u32;
            Ok(())
        })?;
        Ok(ColumnChunk::Column(column))
    }

    fn column_asked(&self, asked: AttributeQuestion<'_>) -> Option<usize> {
        let is_it = |&at: &usize| match &self.segment.columns[at] {
            ColumnKind::Attribute(AttrId::OPEN, name) => asked.attribute() == AttrId::OPEN && name == asked.name(),
            ColumnKind::Attribute(id, _) => asked.attribute() == *id,
            ColumnKind::Own => false,
        };
        self.attributes().find(is_it)
    }

    fn column_of<'a>(&self, chunk: &'a ColumnChunk) -> Result<&'a TextColumn> {
        match chunk {
            ColumnChunk::Column(column) => Ok(column),
            ColumnChunk::Codes(codes, column) => {
                if let Some(column) = column.get() {
                    return Ok(column);
                }
                let read = codes.column().ok_or_else(|| self.garbled())?;
                Ok(column.get_or_init(|| read))
            }
        }
    }

    fn whole_column(&self, chunk: ColumnChunk) -> Result<TextColumn> {
        match chunk {
            ColumnChunk::Column(column) => Ok(column),
            ColumnChunk::Codes(codes, column) => match column.into_inner() {
                Some(column) => Ok(column),
                None => codes.column().ok_or_else(|| self.garbled()),
            },
        }
    }

    /// Adds the store's own columns, of some rows or of all.
    fn take_own(&self, table: &mut RowTable, span: &FileSpan, rows: Option<&[u32]>) -> Result<()> {
        let columns = self.segment.columns.iter().enumerate();
        let own: Vec<usize> = columns
            .filter(|(_, kind)| matches!(kind, ColumnKind::Own))
            .map(|(at, _)| at)
            .collect();
        self.batches(&own, span, rows.map(selection), |batch| take_own(table, batch))?;
        let expected = rows.map_or(self.len(), <[u32]>::len);
        if table.len() == expected {
            Ok(())
        } else {
            Err(self.garbled())
        }
    }

    /// Hands over the values of some columns.
    fn batches(
        &self,
        columns: &[usize],
        span: &FileSpan,
        rows: Option<RowSelection>,
        mut take: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let metadata = self.segment.metadata.clone();
        let mask = ProjectionMask::leaves(metadata.parquet_schema(), columns.iter().copied());
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(span.clone(), metadata)
            .with_row_groups(vec![self.index])
            .with_projection(mask)
            .with_batch_size(GROUP_ROWS);
        if let Some(rows) = rows {
            builder = builder.with_row_selection(rows);
        }
        let about = |error: Error| about(&self.segment.path, &error);
        let reader = builder.build().map_err(|error| about(refused(&error)))?;
        for batch in reader {
            take(&batch.map_err(|error| about(unfit(&error)))?).map_err(about)?;
        }
        Ok(())
    }

    fn garbled(&self) -> Error {
        self.segment.corrupt("it has malformed rows")
    }
}

/// As many times more rows has a group from which few are read.
const FEW: usize = 8;

/// Converts ascending rows to runs of skipped and selected rows.
fn selection(rows: &[u32]) -> RowSelection {
    let mut runs: Vec<Range<u32>> = Vec::new();
    for &row in rows {
        match runs.last_mut() {
            Some(run) if run.end == row => run.end += 1,
            _ => runs.push(row..row + 1),
        }
    }
    let mut end = 0;
    let both = runs.into_iter().flat_map(|run| {
        let skipped = run.start - end;
        end = run.end;
        [RowSelector::skip(skipped as usize), RowSelector::select(run.len())]
    });
    both.collect::<Vec<_>>().into()
}

impl RowColumns for RowGroup {
    fn rows(&self) -> usize {
        self.len()
    }

    fn passing(&self, asked: AttributeQuestion<'_>) -> Result<Option<PassingValues>> {
        let Some(at) = self.column_asked(asked) else {
            return Ok(None);
        };
        Ok(Some(passing(self.chunk(at)?.values(), asked)))
    }

    fn with_numbers(&self, asked: AttributeQuestion<'_>, take: &mut dyn FnMut(&TextColumn)) -> Result<()> {
        if let Some(at) = self.column_asked(asked) {
            take(self.column_of(&*self.chunk(at)?)?);
        }
        Ok(())
    }
}

impl ColumnChunk {
    /// A column with its values, and perhaps without rows.
    fn values(&self) -> &TextColumn {
        match self {
            Self::Codes(codes, _) => codes.values(),
            Self::Column(column) => column,
        }
    }
}

/// Adds the name of the file to an error.
fn about(path: &str, error: &Error) -> Error {
    Error::new(error.code(), path, error.cause())
}

fn take_column(column: &mut TextColumn, first: u32, array: &ArrayRef) -> Result<()> {
    /// Each distinct value is written once.
    fn typed<T: Copy + Eq + std::hash::Hash>(
        column: &mut TextColumn,
        first: u32,
        values: impl Iterator<Item = Option<T>>,
        write: impl Fn(T, &mut String) -> Option<()>,
    ) -> Result<()> {
        let mut numbers: HashMap<T, u32> = HashMap::new();
        let mut text = String::new();
        for (row, value) in (first..).zip(values) {
            let Some(value) = value else { continue };
            let number = if let Some(&number) = numbers.get(&value) {
                number
            } else {
                text.clear();
                write(value, &mut text).ok_or_else(|| corrupt("it has a value that its type does not allow"))?;
                *numbers.entry(value).or_insert(column.value_number(&text))
            };
            column.set(row, number);
        }
        Ok(())
    }
    let canonical = |kind: Type, given: Given<'_>, out: &mut String| kind.canonical(given, out).ok();
    match array.data_type() {
        DataType::Int64 => typed(
            column,
            first,
            array.as_primitive::<Int64Type>().iter(),
            |number, out| canonical(Type::Integer, Given::Integer(number), out),
        ),
        DataType::Float64 => {
            let bits = array
                .as_primitive::<Float64Type>()
                .iter()
                .map(|number| number.map(f64::to_bits));
            typed(column, first, bits, |bits, out| {
                canonical(Type::Float, Given::Float(f64::from_bits(bits)), out)
            })
        }
        DataType::Boolean => typed(column, first, array.as_boolean().iter(), |truth, out| {
            canonical(Type::Bool, Given::Bool(truth), out)
        }),
        DataType::Date32 => typed(column, first, array.as_primitive::<Date32Type>().iter(), date),
        DataType::Decimal128(..) => typed(column, first, array.as_primitive::<Decimal128Type>().iter(), decimal),
        _ => {
            let (texts, values) = texts(array)?;
            let numbers: Vec<u32> = values
                .iter()
                .map(|text| column.value_number(text.unwrap_or_default()))
                .collect();
            for (row, at) in (first..).zip(texts.keys()) {
                if let Some(at) = at {
                    column.set(
                        row,
                        *numbers
                            .get(at as usize)
                            .ok_or_else(|| corrupt("it has a value outside its dictionary"))?,
                    );
                }
            }
            Ok(())
        }
    }
}

/// Writes the canonical text of a day that is so many after 1970-01-01.
pub(super) fn date(days: i32, out: &mut String) -> Option<()> {
    let date = Date32Type::to_naive_date_opt(days)?.to_string();
    Type::Date.canonical(Given::Text(&date), out).ok()
}

/// Writes the canonical text of a decimal that is so many of its smallest units.
pub(super) fn decimal(number: i128, out: &mut String) -> Option<()> {
    let sign = if number < 0 { "-" } else { "" };
    let unit = 10_u128.pow(DECIMAL.1 as u32);
    let (whole, fraction) = (number.unsigned_abs() / unit, number.unsigned_abs() % unit);
    let text = format!("{sign}{whole}.{fraction:018}");
    Type::Decimal.canonical(Given::Text(&text), out).ok()
}

fn texts(array: &ArrayRef) -> Result<(&DictionaryArray<Int32Type>, &StringArray)> {
    let texts = array.as_dictionary_opt::<Int32Type>();
    let found = texts.and_then(|texts| Some((texts, texts.values().as_string_opt::<i32>()?)));
    found.ok_or_else(|| corrupt("it has a column of another type"))
}

/// Returns the packing of each row, if any.
fn packed(codecs: &ArrayRef, lengths: &UInt64Array) -> Result<Vec<Option<PackedObject>>> {
    let (codecs, names) = texts(codecs)?;
    let known: Vec<Option<PayloadCodec>> = names.iter().map(|name| PayloadCodec::named(name?)).collect();
    let of_row = |(row, at): (usize, Option<usize>)| {
        let Some(at) = at else { return Ok(None) };
        let codec = known.get(at).copied().flatten();
        let codec = codec.ok_or_else(|| corrupt("it has an object in an unknown compression"))?;
        let length = lengths.value(row);
        Ok(Some(PackedObject { codec, length }))
    };
    codecs.keys_iter().enumerate().map(of_row).collect()
}

fn take_own(table: &mut RowTable, batch: &RecordBatch) -> Result<()> {
    let own = |name: &str| {
        batch
            .column_by_name(name)
            .ok_or_else(|| corrupt("it lacks a column of the store's own"))
    };
    let numbers = |name: &str| {
        let numbers = own(name)?.as_primitive_opt::<UInt64Type>();
        numbers.ok_or_else(|| corrupt("it has a column of another type"))
    };
    let (files, names) = texts(own("_file")?)?;
    let names: Vec<u32> = names
        .iter()
        .map(|name| table.file_number(&name.unwrap_or_default().into()))
        .collect();
    let checksums = own("_checksum")?.as_primitive_opt::<UInt32Type>();
    let checksums = checksums.ok_or_else(|| corrupt("it has a column of another type"))?;
    let (offsets, lengths, commits) = (numbers("_offset")?, numbers("_length")?, numbers("_commit")?);
    let row_numbers = numbers("_number")?;
    let (incarnations, sequences) = (numbers("_incarnation")?, numbers("_sequence")?);
    let packed = match batch.column_by_name("_codec") {
        Some(codecs) => packed(codecs, numbers("_unpacked")?)?,
        None => Vec::new(),
    };
    for row in 0..batch.num_rows() {
        let file = files.key(row).and_then(|at| names.get(at));
        let place = ObjectLocation {
            file: *file.ok_or_else(|| corrupt("it has a row without a file"))?,
            offset: offsets.value(row),
            length: lengths.value(row),
            checksum: checksums.value(row),
            packed: packed.get(row).copied().flatten(),
        };
        if place.offset.checked_add(place.length).is_none() {
            return Err(corrupt("it has a row without a place"));
        }
        let version = incarnations.is_valid(row).then(|| Version {
            incarnation: incarnations.value(row),
            sequence: sequences.value(row),
        });
        table.push_place(place, version);
        table.committed(commits.value(row));
        table.numbered(row_numbers.value(row));
    }
    Ok(())
}
