//! A column of a group whose pages are indices into a list of values. The list alone shows whether a selector can
//! match, and the indices become those of a [`TextColumn`] without access to any value.
//!
//! The encodings are `PLAIN`, for the list, and `RLE_DICTIONARY`, for the indices, of the [Parquet
//! format](https://parquet.apache.org/docs/file-format/data-pages/encodings/).

use std::sync::Arc;

use bytes::Bytes;
use junctura_model::{Given, Type};
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageReader};
use parquet::errors::Result as Read;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::span::FileSpan;
use crate::catalogue::table::TextColumn;

/// See the module.
pub(super) struct CodedColumn {
    /// The values, and no rows.
    values: TextColumn,
    /// The number in `values` of each value of the list.
    numbers: Vec<u32>,
    pages: Vec<CodedPage>,
}

struct CodedPage {
    first: u32,
    rows: u32,
    is_nullable: bool,
    bytes: Bytes,
}

impl CodedColumn {
    /// None where not all pages are numbers, or what they are is not understood.
    pub(super) fn read(
        span: &FileSpan,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        empty: TextColumn,
        kind: Type,
    ) -> Read<Option<Self>> {
        let mut reader = SerializedPageReader::new(Arc::new(span.clone()), chunk, rows, None)?;
        let is_nullable = chunk.column_descr().max_def_level() > 0;
        let (mut list, mut pages, mut first) = (None, Vec::new(), 0);
        while let Some(page) = reader.get_next_page()? {
            match page {
                Page::DictionaryPage { buf, num_values, .. } => {
                    list = texts(&buf, num_values as usize, chunk.column_type(), kind);
                }
                Page::DataPage {
                    buf,
                    num_values,
                    encoding: Encoding::RLE_DICTIONARY,
                    ..
                } => {
                    pages.push(CodedPage {
                        first,
                        rows: num_values,
                        is_nullable,
                        bytes: buf,
                    });
                    first += num_values;
                }
                _ => return Ok(None),
            }
        }
        let (Some(list), true) = (list, first as usize == rows) else {
            return Ok(None);
        };
        let mut values = empty;
        let numbers = list.iter().map(|text| values.value_number(text)).collect();
        Ok(Some(Self { values, numbers, pages }))
    }

    /// The values, as a column without rows.
    pub(super) fn values(&self) -> &TextColumn {
        &self.values
    }

    /// The whole column; none for pages that are not what a writer writes.
    pub(super) fn column(&self) -> Option<TextColumn> {
        let mut column = self.values.clone();
        let mut numbers = Vec::new();
        for page in &self.pages {
            page.numbers(&self.numbers, &mut numbers)?;
            column.extend(&numbers);
        }
        Some(column)
    }

    /// The numbers of the values of some rows, which rise.
    pub(super) fn of_rows(&self, rows: &[u32]) -> Option<Vec<u32>> {
        let (mut found, mut numbers) = (Vec::with_capacity(rows.len()), Vec::new());
        let mut left = rows;
        for page in &self.pages {
            let here = left.partition_point(|&row| row < page.first + page.rows);
            if here > 0 {
                page.numbers(&self.numbers, &mut numbers)?;
                found.extend(left[..here].iter().map(|&row| numbers[(row - page.first) as usize]));
                left = &left[here..];
            }
        }
        left.is_empty().then_some(found)
    }
}

impl CodedPage {
    /// The number of each row's value; 0: it has none.
    fn numbers(&self, of_list: &[u32], into: &mut Vec<u32>) -> Option<()> {
        let rows = self.rows as usize;
        let mut bytes = &self.bytes[..];
        let mut present = Vec::new();
        let mut count = rows;
        if self.is_nullable {
            let (length, rest) = bytes.split_first_chunk()?;
            let (levels, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            unpack(levels, 1, rows, &mut present)?;
            count = present.iter().filter(|&&level| level == 1).count();
            bytes = rest;
        }
        into.clear();
        if count > 0 {
            let (&width, codes) = bytes.split_first()?;
            unpack(codes, width, count, into)?;
        }
        for code in &mut *into {
            *code = *of_list.get(*code as usize)?;
        }
        if count < rows {
            let mut codes = into.iter();
            let spread = present
                .iter()
                .map(|&level| if level == 1 { codes.next().copied() } else { Some(0) });
            *into = spread.collect::<Option<_>>()?;
        }
        Some(())
    }
}

/// Numbers of so many bits, in runs of equal ones and runs of packed ones.
fn unpack(mut bytes: &[u8], width: u8, count: usize, into: &mut Vec<u32>) -> Option<()> {
    if width > 32 {
        return None;
    }
    let width = usize::from(width);
    into.reserve(count);
    let end = into.len() + count;
    while into.len() < end {
        let left = end - into.len();
        let header = varint(&mut bytes)?;
        let length = usize::try_from(header >> 1).ok().filter(|&length| length > 0)?;
        if header & 1 == 0 {
            let (value, rest) = bytes.split_at_checked(width.div_ceil(8))?;
            bytes = rest;
            let value = value.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            into.resize(into.len() + length.min(left), value);
        } else {
            let (packed, rest) = bytes.split_at_checked(length.checked_mul(width)?.min(bytes.len()))?;
            bytes = rest;
            unpack_run(packed, width, length.checked_mul(8)?.min(left), into)?;
        }
    }
    Some(())
}

fn unpack_run(packed: &[u8], width: usize, count: usize, into: &mut Vec<u32>) -> Option<()> {
    if (count * width).div_ceil(8) > packed.len() {
        return None;
    }
    if width == 8 {
        into.extend(packed[..count].iter().map(|&byte| u32::from(byte)));
        return Some(());
    }
    let mask = (1_u64 << width) - 1;
    into.extend((0..count).map(|at| {
        let bit = at * width;
        let from = &packed[(bit / 8).min(packed.len())..];
        let word = match from.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => from.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        (word >> (bit % 8) & mask) as u32
    }));
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The canonical texts of a list of values.
fn texts(mut bytes: &[u8], count: usize, physical: Physical, kind: Type) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    for _ in 0..count {
        let mut text = String::new();
        match physical {
            Physical::INT64 => {
                let number = i64::from_le_bytes(*take(&mut bytes)?);
                kind.canonical(Given::Integer(number), &mut text).ok()?;
            }
            Physical::DOUBLE => {
                let number = f64::from_le_bytes(*take(&mut bytes)?);
                kind.canonical(Given::Float(number), &mut text).ok()?;
            }
            Physical::INT32 => super::read::date(i32::from_le_bytes(*take(&mut bytes)?), &mut text)?,
            Physical::FIXED_LEN_BYTE_ARRAY => super::read::decimal(i128::from_be_bytes(*take(&mut bytes)?), &mut text)?,
            Physical::BYTE_ARRAY => {
                let length = u32::from_le_bytes(*take(&mut bytes)?) as usize;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                text.push_str(std::str::from_utf8(value).ok()?);
            }
            _ => return None,
        }
        texts.push(text);
    }
    Some(texts)
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (array, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(array)
}
