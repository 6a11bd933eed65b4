//! Rows as a Parquet file.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field};
use junctura_model::{AttrId, Code, Error, Result, Schema, Type};
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::{OF_PACKED, OWN, PartChecks};
use crate::catalogue::table::{ObjectLocation, RowTable, TextColumn};

/// Rows of a group: a reader of a few rows must scan this many.
pub(super) const GROUP_ROWS: usize = 128 << 10;
/// After the footer: its length, and the magic number.
pub(super) const FOOTER_TAIL: usize = 8;
const PAGE_ROWS: usize = 8 << 10;
/// Values that are passed to the file's writer at once: a table with many names takes several steps.
const STEP_VALUES: usize = 8 << 20;
/// Digits of a decimal in all, and behind the point.
pub(super) const DECIMAL: (u8, i8) = (38, 18);

/// Encodes the rows of a table as a Parquet file.
///
/// # Errors
/// `Corrupt` if values do not match their types.
pub(crate) fn encode(table: &RowTable, schema: &Schema) -> Result<(Vec<u8>, PartChecks)> {
    encode_in_groups(table, schema, GROUP_ROWS)
}

pub(super) fn encode_in_groups(table: &RowTable, schema: &Schema, group_rows: usize) -> Result<(Vec<u8>, PartChecks)> {
    let mut file = Vec::new();
    let fields: Vec<Field> = table
        .columns()
        .iter()
        .map(|column| field(column, schema))
        .chain(own_fields(table.has_packed()))
        .collect();
    let arrow_schema = Arc::new(arrow_schema::Schema::new(fields));
    let mut writer = ArrowWriter::try_new(&mut file, Arc::clone(&arrow_schema), Some(properties(group_rows)))
        .map_err(|error| refused(&error))?;
    let names: ArrayRef = Arc::new(table.files().iter().map(|name| Some(&**name)).collect::<StringArray>());
    let columns = table.columns().iter();
    let columns = columns.map(|column| arrays(column, type_of(column.id(), schema)));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let step_rows = (STEP_VALUES / table.columns().len().max(1)).clamp(1, group_rows);
    for start in (0..table.len()).step_by(step_rows) {
        let rows = start as u32..table.len().min(start + step_rows) as u32;
        let mut arrays = Vec::new();
        for of_rows in &columns {
            arrays.push(of_rows(rows.clone())?);
        }
        let files = rows.clone().map(|row| table.place(row).file as i32);
        let files = DictionaryArray::new(files.collect::<Int32Array>(), Arc::clone(&names));
        arrays.extend(own_arrays(&rows.map(|row| (table, row)), files, table.has_packed()));
        let batch = RecordBatch::try_new(Arc::clone(&arrow_schema), arrays).map_err(|error| unfit(&error))?;
        writer.write(&batch).map_err(|error| refused(&error))?;
    }
    let metadata = writer.close().map_err(|error| refused(&error))?;
    let checks = PartChecks::of(&file, &metadata);
    Ok((file, checks))
}

impl PartChecks {
    /// Of a whole file.
    fn of(file: &[u8], metadata: &ParquetMetaData) -> Self {
        let tail = file.len() - FOOTER_TAIL;
        let length = file[tail..]
            .first_chunk()
            .map_or(0, |length| u32::from_le_bytes(*length));
        let groups = metadata.row_groups().iter();
        let chunks = groups.flat_map(RowGroupMetaData::columns).map(|column| {
            let (start, length) = column.byte_range();
            crate::checksum(&file[start as usize..(start + length) as usize])
        });
        Self::new(&file[tail - length as usize..], chunks)
    }
}

fn properties(group_rows: usize) -> WriterProperties {
    WriterProperties::builder()
        .set_created_by(concat!("junctura ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_column_dictionary_enabled("_number".into(), false)
        .set_column_encoding("_number".into(), Encoding::DELTA_BINARY_PACKED)
        .build()
}

/// Returns the type of a column's values; text if a number type of the file would lose information.
pub(crate) fn type_of(id: AttrId, schema: &Schema) -> Type {
    match schema.attributes().get(id.index()) {
        Some(attribute) if !attribute.kind.list => attribute.kind.scalar,
        _ => Type::String,
    }
}

fn field(column: &TextColumn, schema: &Schema) -> Field {
    let name = match column.id() {
        AttrId::OPEN => format!("@{}", column.name()),
        id => schema.attribute(id).name.clone(),
    };
    let kind = match type_of(column.id(), schema) {
        Type::Integer => DataType::Int64,
        Type::Decimal => DataType::Decimal128(DECIMAL.0, DECIMAL.1),
        Type::Float => DataType::Float64,
        Type::Bool => DataType::Boolean,
        Type::Date => DataType::Date32,
        _ => text_type(),
    };
    Field::new(name, kind, true)
}

fn text_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Returns the store's own columns, with or without those of packed rows.
pub(crate) fn own_fields(with_packed: bool) -> Vec<Field> {
    let kinds = [
        text_type(),
        DataType::UInt64,
        DataType::UInt64,
        DataType::UInt32,
        DataType::UInt64,
        DataType::UInt64,
        DataType::UInt64,
        DataType::UInt64,
        text_type(),
        DataType::UInt64,
    ];
    let left_out = if with_packed { 0 } else { OF_PACKED };
    let may_be_null = |name: &str| ["_incarnation", "_sequence", "_codec", "_unpacked"].contains(&name);
    OWN[..OWN.len() - left_out]
        .iter()
        .zip(kinds)
        .map(|(name, kind)| Field::new(*name, kind, may_be_null(name)))
        .collect()
}

/// # Errors
/// `LimitExceeded` for a column whose distinct values have more bytes than an array of texts.
pub(crate) fn check_texts(column: &TextColumn) -> Result<()> {
    if i32::try_from(column.text_bytes()).is_ok() {
        return Ok(());
    }
    let cause = format!(
        "its distinct values have more than {} bytes: list fewer objects",
        i32::MAX
    );
    Err(Error::new(Code::LimitExceeded, "attribute", cause))
}

/// Makes the values of some rows, which follow each other.
pub(crate) type OfRows<'a> = Box<dyn Fn(Range<u32>) -> Result<ArrayRef> + 'a>;

/// Returns a function that creates the values of a column's rows: each distinct value is parsed once.
///
/// # Errors
/// `Corrupt` if values do not match their type.
pub(crate) fn arrays(column: &TextColumn, kind: Type) -> Result<OfRows<'_>> {
    fn typed<'a, T: Copy + 'a, A: Array + FromIterator<Option<T>> + 'static>(
        column: &'a TextColumn,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<impl Fn(Range<u32>) -> A + 'a> {
        let values: Option<Vec<T>> = column.values().map(read).collect();
        let values = values.ok_or_else(|| corrupt("a value does not fit its type"))?;
        Ok(move |rows| {
            let value = |number: u32| Some(values[number.checked_sub(1)? as usize]);
            column.numbers_of(rows).map(value).collect()
        })
    }
    fn whole<'a, A: Array + 'static>(of_rows: impl Fn(Range<u32>) -> A + 'a) -> OfRows<'a> {
        Box::new(move |rows| Ok(Arc::new(of_rows(rows))))
    }
    Ok(match kind {
        Type::Integer => whole(typed::<_, Int64Array>(column, |text| text.parse::<i64>().ok())?),
        Type::Float => whole(typed::<_, Float64Array>(column, |text| text.parse::<f64>().ok())?),
        Type::Bool => whole(typed::<_, BooleanArray>(column, |text| text.parse::<bool>().ok())?),
        Type::Date => {
            let days = |text: &str| Type::Date.order(text).and_then(|days| i32::try_from(days).ok());
            whole(typed::<_, Date32Array>(column, days)?)
        }
        Type::Decimal => {
            let numbers = typed::<_, Decimal128Array>(column, |text| Type::Decimal.order(text))?;
            Box::new(move |rows| {
                let numbers = numbers(rows).with_precision_and_scale(DECIMAL.0, DECIMAL.1);
                Ok(Arc::new(numbers.map_err(|error| unfit(&error))?))
            })
        }
        _ => {
            check_texts(column)?;
            let values: ArrayRef = Arc::new(column.values().map(Some).collect::<StringArray>());
            Box::new(move |rows| {
                let numbers = column
                    .numbers_of(rows)
                    .map(|number| number.checked_sub(1).map(|at| at as i32));
                let texts = DictionaryArray::try_new(numbers.collect::<Int32Array>(), Arc::clone(&values));
                Ok(Arc::new(texts.map_err(|error| unfit(&error))?))
            })
        }
    })
}

/// Returns the values of [`own_fields`] for some rows in these files.
pub(crate) fn own_arrays<'t>(
    rows: &(impl Iterator<Item = (&'t RowTable, u32)> + Clone),
    files: DictionaryArray<Int32Type>,
    with_packed: bool,
) -> Vec<ArrayRef> {
    let places = || rows.clone().map(|(table, row)| table.place(row));
    let of_places =
        |number: fn(ObjectLocation) -> u64| -> ArrayRef { numbers(places().map(|place| Some(number(place)))) };
    let versions = || rows.clone().map(|(table, row)| table.version(row));
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(files),
        of_places(|place| place.offset),
        of_places(|place| place.length),
        Arc::new(UInt32Array::from_iter_values(places().map(|place| place.checksum))),
        numbers(rows.clone().map(|(table, row)| Some(table.commit(row)))),
        numbers(rows.clone().map(|(table, row)| Some(table.number(row)))),
        numbers(versions().map(|version| Some(version?.incarnation))),
        numbers(versions().map(|version| Some(version?.sequence))),
    ];
    if with_packed {
        arrays.push(Arc::new(codecs(places())));
        arrays.push(numbers(places().map(|place| Some(place.packed?.length))));
    }
    arrays
}

fn numbers(numbers: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(numbers.collect::<UInt64Array>())
}

fn codecs(places: impl Iterator<Item = ObjectLocation>) -> DictionaryArray<Int32Type> {
    places
        .map(|place| Some(place.packed?.codec.name()))
        .collect::<DictionaryArray<Int32Type>>()
}

pub(super) fn refused(error: &ParquetError) -> Error {
    corrupt(&error.to_string())
}

pub(super) fn unfit(error: &ArrowError) -> Error {
    corrupt(&error.to_string())
}

#[cold]
pub(super) fn corrupt(cause: &str) -> Error {
    Error::new(Code::Corrupt, "segment", cause)
}
