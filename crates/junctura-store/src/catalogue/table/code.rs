//! The encoding of rows in a commit, without repetitions.
//!
//! ```text
//! rows     := count columns column* files file* place* more
//! column   := id u8 [ name ]            0xff: undeclared, by its name
//!             values text*  how u8      0: each row has the one value; 1: numbers follow
//!             [ number* ]               one for each row; 0: none, 1: the first value
//! place    := file offset length check  file 0: the payloads within the commit; offset: behind the end of the row before in
//!                                       that file (zigzag); check u32
//! more     := u8 [ version* ] [ packed* ]  which of them there are: 1 and 2
//! version  := incarnation sequence      incarnation 0: this row has none
//! packed   := codec [ length ]          0: it lies there as it is; 1: zstd, 2: lz4, and its bytes when it is unpacked
//! text, name, file := length bytes
//! ```
//!
//! Numbers are LEB128, at most 64 bits, except those marked u8 and u32 (little-endian).

use std::ops::Range;
use std::sync::Arc;

use junctura_model::limits::{ATTRIBUTES_MAX, LIST_BYTES_MAX, NAME_BYTES_MAX};
use junctura_model::{AttrId, Code, Error, Result, Schema, Version};

use super::{BasicLocation, RowTable, TextColumn};
use crate::data::packing::{PackedObject, PayloadCodec};
use crate::log::leb128::{VarintReader, put, put_difference, put_text};

const WHAT: &str = "rows of a commit";
/// Minimum size of a column in bytes: its attribute, the number of values, one value, and the index of each row.
const COLUMN_BYTES_MIN: usize = 4;
const ONE_VALUE: u8 = 0;
const BY_NUMBER: u8 = 1;
/// Of what may follow the places, which is there.
const VERSIONS: u8 = 1;
const PACKED: u8 = 2;

/// Rows as bytes.
#[derive(Clone, Copy)]
pub(crate) struct EncodedRows<'a> {
    pub(crate) rows: &'a [u8],
    /// The schema of all rows.
    pub(crate) schema: &'a Schema,
    /// The file that contains the rows, and the offset of their payloads.
    pub(crate) file: &'a Arc<str>,
    pub(crate) payloads_at: u64,
}

impl RowTable {
    /// Appends its rows as bytes. All are in one file; `inline`: the payloads are within the commit, from this offset
    /// on.
    pub(crate) fn encode(&self, inline: Option<u64>, out: &mut Vec<u8>) {
        let columns = || self.columns.iter().filter(|column| column.values_len() > 0);
        put(self.len() as u64, out);
        put(columns().count() as u64, out);
        for column in columns() {
            self.encode_column(column, out);
        }
        let files = if inline.is_some() { &[] } else { &self.files[..] };
        put(files.len() as u64, out);
        for file in files {
            put_text(file, out);
        }
        let mut ends = vec![inline.unwrap_or(0); self.files.len()];
        for spot in &self.spots {
            let end = &mut ends[spot.file as usize];
            put(if inline.is_some() { 0 } else { u64::from(spot.file) + 1 }, out);
            put_difference(spot.offset, *end, out);
            put(spot.length, out);
            out.extend_from_slice(&spot.checksum.to_le_bytes());
            *end = spot.offset + spot.length;
        }
        self.encode_more(out);
    }

    fn encode_more(&self, out: &mut Vec<u8>) {
        let (has_versions, has_packed) = (!self.versions.is_empty(), !self.packed.is_empty());
        let which = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
        out.push(which(has_versions, VERSIONS) | which(has_packed, PACKED));
        if has_versions {
            for row in 0..self.len() {
                let version = self.versions.get(row).unwrap_or(Version {
                    incarnation: 0,
                    sequence: 0,
                });
                put(version.incarnation, out);
                put(version.sequence, out);
            }
        }
        if has_packed {
            for row in 0..self.len() {
                match self.packed.get(row) {
                    None => put(0, out),
                    Some(packed) => {
                        put(packed.codec.number(), out);
                        put(packed.length, out);
                    }
                }
            }
        }
    }

    fn encode_column(&self, column: &TextColumn, out: &mut Vec<u8>) {
        out.push(column.id().0);
        if column.id() == AttrId::OPEN {
            put_text(column.name(), out);
        }
        put(column.values_len() as u64, out);
        for text in column.values() {
            put_text(text, out);
        }
        let rows = 0..self.len() as u32;
        if column.values_len() == 1 && column.numbers_of(rows.clone()).all(|number| number == 1) {
            out.push(ONE_VALUE);
            return;
        }
        out.push(BY_NUMBER);
        for number in column.numbers_of(rows) {
            put(number.into(), out);
        }
    }

    /// Adds rows that [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` for bytes that it did not write; then it has as many rows as before, or is not to be used any more.
    pub(crate) fn decode(&mut self, encoded: EncodedRows<'_>) -> Result<()> {
        let first = self.next_row()?;
        let mut reader = VarintReader::new(encoded.rows, WHAT);
        // Each row has six bytes or more.
        let count = reader.count(encoded.rows.len() / 6)?;
        let end = first.checked_add(count as u32).ok_or_else(corrupt)?;
        let mut of_one_value = 0;
        for _ in 0..reader.count(encoded.rows.len() / COLUMN_BYTES_MIN)? {
            of_one_value += usize::from(self.decode_column(&mut reader, first..end, encoded.schema)?);
            // They cost a writer nothing for each row, but no object has more attributes.
            if of_one_value > ATTRIBUTES_MAX {
                return Err(corrupt());
            }
        }
        // Its own file is added to the table only if it contains a payload.
        let mut files = vec![None];
        for _ in 0..reader.count(encoded.rows.len())? {
            let name = Arc::from(reader.text(encoded.rows.len())?);
            files.push(Some(self.file_number(&name)));
        }
        self.decode_places(&mut reader, &mut files, count, &encoded)?;
        self.decode_more(&mut reader, first as usize..end as usize)?;
        if reader.is_empty() { Ok(()) } else { Err(corrupt()) }
    }

    /// Whether each row has its one value.
    fn decode_column(&mut self, reader: &mut VarintReader<'_>, rows: Range<u32>, schema: &Schema) -> Result<bool> {
        let id = AttrId(reader.byte()?);
        let is_open = id == AttrId::OPEN && schema.is_open();
        let name = if is_open { reader.text(NAME_BYTES_MAX)? } else { "" };
        if !is_open && id.index() >= schema.attributes().len() {
            let cause = "it has an attribute that its schema had not when the store was opened here: open it again";
            return Err(Error::new(
                Code::SchemaMismatch,
                format!("schema {}", schema.name()),
                cause,
            ));
        }
        let at = self.column_of(id, name);
        let column = &mut self.columns[at];
        let mut numbers = Vec::new();
        for _ in 0..reader.count(rows.len())? {
            numbers.push(column.value_number(reader.text(LIST_BYTES_MAX)?));
        }
        let how = reader.byte()?;
        match (how, &*numbers) {
            (ONE_VALUE, &[number]) => rows.for_each(|row| column.set(row, number)),
            (BY_NUMBER, numbers) => {
                for row in rows {
                    if let Some(at) = reader.count(numbers.len())?.checked_sub(1) {
                        column.set(row, numbers[at]);
                    }
                }
            }
            _ => return Err(corrupt()),
        }
        Ok(how == ONE_VALUE)
    }

    fn decode_places(
        &mut self,
        reader: &mut VarintReader<'_>,
        files: &mut [Option<u32>],
        count: usize,
        encoded: &EncodedRows<'_>,
    ) -> Result<()> {
        let mut ends = vec![0_u64; files.len()];
        for _ in 0..count {
            let at = reader.count(files.len() - 1)?;
            let offset = ends[at].wrapping_add(reader.difference()?);
            let length = reader.number()?;
            let checksum = u32::from_le_bytes(reader.array()?);
            ends[at] = offset.checked_add(length).ok_or_else(corrupt)?;
            let begins = if at == 0 { encoded.payloads_at } else { 0 };
            let file = match files[at] {
                Some(file) => file,
                None => *files[at].insert(self.file_number(encoded.file)),
            };
            let offset = offset.checked_add(begins).ok_or_else(corrupt)?;
            self.reaches(file, offset.checked_add(length).ok_or_else(corrupt)?);
            self.spots.push(BasicLocation {
                file,
                checksum,
                offset,
                length,
            });
        }
        Ok(())
    }

    fn decode_more(&mut self, reader: &mut VarintReader<'_>, rows: Range<usize>) -> Result<()> {
        let which = reader.byte()?;
        if which & !(VERSIONS | PACKED) != 0 {
            return Err(later(&format!("they have more columns ({which:#04x})")));
        }
        for row in rows.clone() {
            let is_there = which & VERSIONS != 0;
            self.versions.push(row, if is_there { reader.version()? } else { None });
        }
        for row in rows {
            let is_there = which & PACKED != 0;
            self.packed.push(row, if is_there { reader.packed()? } else { None });
        }
        Ok(())
    }
}

impl VarintReader<'_> {
    fn version(&mut self) -> Result<Option<Version>> {
        let (incarnation, sequence) = (self.number()?, self.number()?);
        Ok((incarnation != 0).then_some(Version { incarnation, sequence }))
    }

    fn packed(&mut self) -> Result<Option<PackedObject>> {
        match self.number()? {
            0 => Ok(None),
            codec => Ok(Some(PackedObject {
                codec: PayloadCodec::numbered(codec)
                    .ok_or_else(|| later(&format!("an object is packed by codec {codec}")))?,
                length: self.number()?,
            })),
        }
    }
}

#[cold]
fn corrupt() -> Error {
    Error::new(Code::Corrupt, WHAT, "they are not in canonical form")
}

/// An error for a table that a later version wrote.
#[cold]
fn later(what: &str) -> Error {
    Error::new(Code::Unsupported, WHAT, format!("{what}, which needs a later version"))
}
