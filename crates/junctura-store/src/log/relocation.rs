//! A record that relocates the bytes of rows: a CBOR map with numbered fields, which later versions may extend.
//!
//! | field | content |
//! |---|---|
//! | 0 | its time, in nanoseconds since 1970 (UTC) |
//! | 1 | parts, one for each schema: its number in the root (0), the rows (1), encoded as in a removal, and their new locations (2) |
//!
//! ```text
//! where := files file* place*
//! place := file offset          one for each row: which file, from 0; offset: behind where the row before in that file begins (zigzag)
//! file  := length bytes
//! ```
//! The bytes at the new location are identical: the same length, and the same packing.

use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use crate::log::leb128::{Run, VarintReader, put, put_difference, put_runs, put_text};

/// The kind of a log's record that is a relocation.
pub(crate) const RELOCATION: u32 = 3;
const WHAT: &str = "relocation";

#[derive(Debug, Decode, Encode, PartialEq)]
#[cbor(map)]
pub(crate) struct RelocationRecord {
    #[n(0)]
    pub(crate) at: u64,
    #[n(1)]
    parts: Vec<RelocationPart>,
}

#[derive(Debug, Decode, Encode, PartialEq)]
#[cbor(map)]
struct RelocationPart {
    #[n(0)]
    schema: u32,
    #[n(1)]
    rows: ByteVec,
    #[n(2)]
    places: ByteVec,
}

/// Rows of one schema, and their new locations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RelocatedRows {
    pub(crate) runs: Vec<Run>,
    pub(crate) files: Vec<Arc<str>>,
    /// For each row which of the files, and from which byte on.
    pub(crate) places: Vec<(u32, u64)>,
}

/// The rows of one schema, by their numbers, with the file and the byte of each.
pub(crate) type Rows = Vec<(u64, Arc<str>, u64)>;

impl RelocationRecord {
    /// Of these rows of each schema.
    pub(crate) fn new(at: u64, rows: Vec<Rows>) -> Self {
        let parts = rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
        Self {
            at,
            parts: parts.map(|(schema, rows)| RelocationPart::new(schema, rows)).collect(),
        }
    }

    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        let result = minicbor::encode(self, out);
        debug_assert!(result.is_ok(), "writing to a vector does not fail");
    }

    /// # Errors
    /// `Corrupt` for bytes that are none.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        minicbor::decode(bytes).map_err(|error| Error::new(Code::Corrupt, WHAT, error.to_string()))
    }

    /// Returns the relocated rows of each schema in the record.
    ///
    /// # Errors
    /// `Corrupt` for invalid bytes.
    pub(crate) fn relocated(&self) -> impl Iterator<Item = Result<(usize, RelocatedRows)>> {
        let decoded = |part: &RelocationPart| Ok((part.schema as usize, part.read()?));
        self.parts.iter().map(decoded)
    }
}

impl RelocationPart {
    fn new(schema: usize, mut rows: Rows) -> Self {
        rows.sort_unstable_by_key(|(number, ..)| *number);
        let mut files: Vec<&Arc<str>> = rows.iter().map(|(_, file, _)| file).collect();
        files.sort_unstable();
        files.dedup();
        let mut places = Vec::new();
        put(files.len() as u64, &mut places);
        for file in &files {
            put_text(file, &mut places);
        }
        let mut before = vec![0; files.len()];
        for (_, file, offset) in &rows {
            // Every file is in the list.
            let at = files.binary_search(&file).unwrap_or_default();
            put(at as u64, &mut places);
            put_difference(*offset, before[at], &mut places);
            before[at] = *offset;
        }
        let numbers: Vec<u64> = rows.iter().map(|(number, ..)| *number).collect();
        let mut runs = Vec::new();
        put_runs(&numbers, &mut runs);
        Self {
            schema: schema as u32,
            rows: runs.into(),
            places: places.into(),
        }
    }

    fn read(&self) -> Result<RelocatedRows> {
        let runs = VarintReader::new(&self.rows, WHAT).runs()?;
        let mut reader = VarintReader::new(&self.places, WHAT);
        let mut files: Vec<Arc<str>> = Vec::new();
        for _ in 0..reader.count(self.places.len())? {
            files.push(reader.text(self.places.len())?.into());
        }
        let mut before = vec![0_u64; files.len()];
        let mut places = Vec::new();
        while !reader.is_empty() {
            let Some(last) = files.len().checked_sub(1) else {
                return Err(reader.corrupt());
            };
            let at = reader.count(last)?;
            before[at] = before[at].wrapping_add(reader.difference()?);
            places.push((at as u32, before[at]));
        }
        let rows = runs
            .iter()
            .try_fold(0_u64, |sum, run| sum.checked_add(run.end - run.start));
        if rows != Some(places.len() as u64) {
            return Err(reader.corrupt());
        }
        Ok(RelocatedRows { runs, files, places })
    }
}

#[cfg(test)]
mod tests {
    use junctura_model::selector::testing::TestRandom;

    use super::*;

    fn rows(random: &mut TestRandom) -> Rows {
        let mut number = 0;
        let mut rows = Rows::new();
        for _ in 0..random.below(200) {
            number += 1 + if random.once_in(5) {
                random.below(1000) as u64
            } else {
                0
            };
            let file = format!("data/{}/1", random.below(3));
            rows.push((number, file.into(), random.below(1 << 40) as u64));
        }
        rows
    }

    #[test]
    fn what_is_written_is_read() {
        let mut random = TestRandom(1);
        for _ in 0..200 {
            let given = vec![rows(&mut random), Rows::new(), rows(&mut random)];
            let mut bytes = Vec::new();
            RelocationRecord::new(7, given.clone()).encode_into(&mut bytes);
            let read = RelocationRecord::read(&bytes).unwrap();
            let mut found = vec![Rows::new(); 3];
            for part in read.relocated() {
                let (schema, relocated) = part.unwrap();
                let numbers = relocated.runs.iter().cloned().flatten();
                let row = |(number, (file, offset)): (u64, &(u32, u64))| {
                    (number, Arc::clone(&relocated.files[*file as usize]), *offset)
                };
                found[schema] = numbers.zip(&relocated.places).map(row).collect();
            }
            assert_eq!((read.at, found), (7, given));
        }
    }

    #[test]
    fn bytes_that_are_none_are_refused_or_harmless() {
        let mut random = TestRandom(2);
        let mut bytes = Vec::new();
        let given = vec![(1..20).map(|number| (number, "data/a/1".into(), number * 7)).collect()];
        RelocationRecord::new(7, given).encode_into(&mut bytes);
        for end in 0..bytes.len() {
            assert!(RelocationRecord::read(&bytes[..end]).is_err());
        }
        for _ in 0..5000 {
            let mut damaged = bytes.clone();
            let at = random.below(damaged.len());
            damaged[at] ^= 1 << random.below(8);
            if let Ok(read) = RelocationRecord::read(&damaged) {
                let _ = read.relocated().collect::<Result<Vec<_>>>();
            }
        }
    }
}
