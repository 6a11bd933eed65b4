//! Rows as a Parquet file, and back.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field};
use bytes::Bytes;
use hashbrown::HashMap;
use junctura_model::{AttrId, Code, Error, Given, Result, Schema, Type, Version};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::OWN;
use crate::table::{Column, Place, Table};

/// Rows that a reader who looks for few has to look at.
const GROUP_ROWS: usize = 128 << 10;
const PAGE_ROWS: usize = 8 << 10;
/// Digits of a decimal in all, and behind the point.
const DECIMAL: (u8, i8) = (38, 18);

/// The rows of a table as a Parquet file.
///
/// # Errors
/// `Corrupt` when values are not what their types say.
pub(crate) fn encode(table: &Table, schema: &Schema) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let fields: Vec<Field> = table
        .columns()
        .iter()
        .map(|column| field(column, schema))
        .chain(own_fields())
        .collect();
    let arrow_schema = Arc::new(arrow_schema::Schema::new(fields));
    let mut writer = ArrowWriter::try_new(&mut file, Arc::clone(&arrow_schema), Some(properties()))
        .map_err(|error| refused(&error))?;
    for start in (0..table.len()).step_by(GROUP_ROWS) {
        let rows = start as u32..table.len().min(start + GROUP_ROWS) as u32;
        let mut arrays = Vec::new();
        for column in table.columns() {
            arrays.push(array(column, type_of(column.id(), schema), rows.clone())?);
        }
        arrays.extend(own_arrays(table, rows));
        let batch = RecordBatch::try_new(Arc::clone(&arrow_schema), arrays).map_err(|error| unfit(&error))?;
        writer.write(&batch).map_err(|error| refused(&error))?;
    }
    writer.close().map_err(|error| refused(&error))?;
    Ok(file)
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by(concat!("junctura ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_column_dictionary_enabled("_number".into(), false)
        .set_column_encoding("_number".into(), Encoding::DELTA_BINARY_PACKED)
        .build()
}

/// The type of a column's values; text where a file of another kind of number would say less.
pub(crate) fn type_of(id: AttrId, schema: &Schema) -> Type {
    match schema.attributes().get(id.index()) {
        Some(attribute) if !attribute.kind.list => attribute.kind.scalar,
        _ => Type::String,
    }
}

fn field(column: &Column, schema: &Schema) -> Field {
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

/// The store's own columns.
pub(crate) fn own_fields() -> Vec<Field> {
    let kinds = [
        text_type(),
        DataType::UInt64,
        DataType::UInt64,
        DataType::UInt32,
        DataType::UInt64,
        DataType::UInt64,
        DataType::UInt64,
        DataType::UInt64,
    ];
    let may_be_null = |name: &str| name == "_incarnation" || name == "_sequence";
    OWN.iter()
        .zip(kinds)
        .map(|(name, kind)| Field::new(*name, kind, may_be_null(name)))
        .collect()
}

/// The values of some rows.
///
/// # Errors
/// `Corrupt` when values are not what their type says.
pub(crate) fn array(column: &Column, kind: Type, rows: std::ops::Range<u32>) -> Result<ArrayRef> {
    /// The value of each row, read once for each distinct text.
    fn typed<T: Copy>(
        column: &Column,
        rows: std::ops::Range<u32>,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<impl Iterator<Item = Option<T>>> {
        let values: Option<Vec<T>> = column.values().map(read).collect();
        let values = values.ok_or_else(|| corrupt("a value is not what its type says"))?;
        let value = move |row| Some(values[column.number(row).checked_sub(1)? as usize]);
        Ok(rows.map(value))
    }
    Ok(match kind {
        Type::Integer => Arc::new(typed(column, rows, |text| text.parse().ok())?.collect::<Int64Array>()),
        Type::Float => Arc::new(typed(column, rows, |text| text.parse().ok())?.collect::<Float64Array>()),
        Type::Bool => Arc::new(typed(column, rows, |text| text.parse().ok())?.collect::<BooleanArray>()),
        Type::Date => {
            let days = |text: &str| Type::Date.order(text).and_then(|days| i32::try_from(days).ok());
            Arc::new(typed(column, rows, days)?.collect::<Date32Array>())
        }
        Type::Decimal => {
            let numbers = typed(column, rows, |text| Type::Decimal.order(text))?.collect::<Decimal128Array>();
            let numbers = numbers.with_precision_and_scale(DECIMAL.0, DECIMAL.1);
            Arc::new(numbers.map_err(|error| unfit(&error))?)
        }
        _ => {
            let numbers = rows.map(|row| column.number(row).checked_sub(1).map(|at| at as i32));
            let values: StringArray = column.values().map(Some).collect();
            let texts = DictionaryArray::try_new(numbers.collect::<Int32Array>(), Arc::new(values));
            Arc::new(texts.map_err(|error| unfit(&error))?)
        }
    })
}

fn own_arrays(table: &Table, rows: std::ops::Range<u32>) -> Vec<ArrayRef> {
    let places = || rows.clone().map(|row| table.place(row));
    let files = places().map(|place| place.file as i32).collect::<Int32Array>();
    let names: StringArray = table.files().iter().map(|name| Some(&**name)).collect();
    let versions = || rows.clone().map(|row| table.version(row));
    vec![
        Arc::new(DictionaryArray::new(files, Arc::new(names))),
        Arc::new(UInt64Array::from_iter_values(places().map(|place| place.offset))),
        Arc::new(UInt64Array::from_iter_values(places().map(|place| place.length))),
        Arc::new(UInt32Array::from_iter_values(places().map(|place| place.checksum))),
        Arc::new(UInt64Array::from_iter_values(rows.clone().map(|row| table.commit(row)))),
        Arc::new(UInt64Array::from_iter_values(rows.clone().map(|row| table.number(row)))),
        Arc::new(
            versions()
                .map(|version| Some(version?.incarnation))
                .collect::<UInt64Array>(),
        ),
        Arc::new(
            versions()
                .map(|version| Some(version?.sequence))
                .collect::<UInt64Array>(),
        ),
    ]
}

/// The table that [`encode`] wrote.
///
/// # Errors
/// `Corrupt` for bytes that it did not write.
pub(crate) fn decode(file: Vec<u8>, schema: &Schema) -> Result<Table> {
    let file = Bytes::from(file);
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()).map_err(|error| refused(&error))?;
    let mut table = Table::default();
    // A batch that went from one group into the next would lose its lists of values.
    for group in 0..metadata.metadata().num_row_groups() {
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
            .with_row_groups(vec![group])
            .with_batch_size(GROUP_ROWS)
            .build()
            .map_err(|error| refused(&error))?;
        for batch in reader {
            take(&mut table, &batch.map_err(|error| unfit(&error))?, schema)?;
        }
    }
    Ok(table)
}

fn take(table: &mut Table, batch: &RecordBatch, schema: &Schema) -> Result<()> {
    let first = u32::try_from(table.len()).map_err(|_| corrupt("it has too many rows"))?;
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let name = field.name();
        if OWN.contains(&&**name) {
            continue;
        }
        let (id, open) = match name.strip_prefix('@') {
            Some(open) => (AttrId::OPEN, open),
            None => (
                schema
                    .find(name)
                    .ok_or_else(|| corrupt("it has a column of no attribute"))?,
                "",
            ),
        };
        take_column(table.column_mut(id, open)?, first, array)?;
    }
    take_own(table, batch)
}

fn take_column(column: &mut Column, first: u32, array: &ArrayRef) -> Result<()> {
    /// Each distinct value is written once.
    fn typed<T: Copy + Eq + std::hash::Hash>(
        column: &mut Column,
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
        DataType::Date32 => typed(column, first, array.as_primitive::<Date32Type>().iter(), |days, out| {
            let date = Date32Type::to_naive_date_opt(days)?.to_string();
            canonical(Type::Date, Given::Text(&date), out)
        }),
        DataType::Decimal128(..) => typed(
            column,
            first,
            array.as_primitive::<Decimal128Type>().iter(),
            |number, out| {
                let sign = if number < 0 { "-" } else { "" };
                let unit = 10_u128.pow(DECIMAL.1 as u32);
                let (whole, fraction) = (number.unsigned_abs() / unit, number.unsigned_abs() % unit);
                canonical(
                    Type::Decimal,
                    Given::Text(&format!("{sign}{whole}.{fraction:018}")),
                    out,
                )
            },
        ),
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
                            .ok_or_else(|| corrupt("it has a value of no list"))?,
                    );
                }
            }
            Ok(())
        }
    }
}

fn texts(array: &ArrayRef) -> Result<(&DictionaryArray<Int32Type>, &StringArray)> {
    let texts = array.as_dictionary_opt::<Int32Type>();
    let found = texts.and_then(|texts| Some((texts, texts.values().as_string_opt::<i32>()?)));
    found.ok_or_else(|| corrupt("it has a column of another type"))
}

fn take_own(table: &mut Table, batch: &RecordBatch) -> Result<()> {
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
    for row in 0..batch.num_rows() {
        let file = files.key(row).and_then(|at| names.get(at));
        let place = Place {
            file: *file.ok_or_else(|| corrupt("it has a row of no file"))?,
            offset: offsets.value(row),
            length: lengths.value(row),
            checksum: checksums.value(row),
        };
        if place.offset.checked_add(place.length).is_none() {
            return Err(corrupt("it has a row of no place"));
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

fn refused(error: &ParquetError) -> Error {
    corrupt(&error.to_string())
}

fn unfit(error: &ArrowError) -> Error {
    corrupt(&error.to_string())
}

#[cold]
fn corrupt(cause: &str) -> Error {
    Error::new(Code::Corrupt, "segment", cause)
}

#[cfg(test)]
mod tests {
    use junctura_model::selector::testing::Random;

    use super::*;
    use crate::table::tests::{rows_of, schema, table};

    #[test]
    fn rows_read_back_from_a_file() {
        // More than a group, where that does not take long.
        let many = if cfg!(debug_assertions) {
            10_000
        } else {
            GROUP_ROWS + 10
        };
        for rows in [0, 1, 3000, many] {
            let (mut table, _) = table(&mut Random(1), rows);
            table.committed(7);
            let file = encode(&table, &schema()).unwrap();
            let read = decode(file, &schema()).unwrap();
            assert!(rows_of(&read) == rows_of(&table));
            assert!((0..rows as u32).all(|row| read.commit(row) == 7));
        }
    }

    #[test]
    fn values_of_all_types_read_back() {
        let mut text = "name: all\nkey:\n  dataset: [string]\nopen: true\nattributes:\n".to_owned();
        text.extend(Type::ALL.map(|kind| format!("  {kind}: {{type: {kind}}}\n  l{kind}: {{type: list of {kind}}}\n")));
        let schema = Schema::parse_yaml(&text).unwrap();
        let mut random = Random(2);
        let mut table = Table::default();
        let place = Place {
            file: table.file_number(&"data/1".into()),
            offset: 0,
            length: 0,
            checksum: 0,
        };
        for _ in 0..500 {
            let record = junctura_model::selector::testing::random_record(&mut random, &schema);
            table.push(record.as_ref(), place, None).unwrap();
        }
        let read = decode(encode(&table, &schema).unwrap(), &schema).unwrap();
        assert!(rows_of(&read) == rows_of(&table));
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let (table, _) = table(&mut Random(3), 200);
        let file = encode(&table, &schema()).unwrap();
        let mut random = Random(4);
        for end in (0..file.len()).step_by(97) {
            assert!(decode(file[..end].to_vec(), &schema()).is_err());
        }
        for _ in 0..300 {
            let mut damaged = file.clone();
            let at = random.below(damaged.len());
            damaged[at] ^= 1 << random.below(8);
            // Whatever it says, it does no harm.
            let _ = std::panic::catch_unwind(|| decode(damaged, &schema())).expect("no panic");
        }
    }
}
