//! A record that removes rows: a CBOR map with numbered fields, which later versions may extend.
//!
//! | field | content |
//! |---|---|
//! | 0 | its time, in nanoseconds since 1970 (UTC) |
//! | 1 | parts, one for each schema: its number in the root (0), and the rows (1) |
//!
//! The rows of a schema are numbered in the order of the log, from 0; the number of a row never changes. The rows are
//! encoded as runs: for each run the gap after the previous one, and its length, as LEB128 numbers.

use junctura_model::{Code, Error, Result};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use crate::log::leb128::{Run, VarintReader, put_runs};

/// The kind of a log's record that is a removal.
pub(crate) const REMOVAL: u32 = 2;
const WHAT: &str = "removal";

#[derive(Debug, Decode, Encode, PartialEq)]
#[cbor(map)]
pub(crate) struct RemovalRecord {
    #[n(0)]
    pub(crate) at: u64,
    #[n(1)]
    parts: Vec<RemovalPart>,
}

#[derive(Debug, Decode, Encode, PartialEq)]
#[cbor(map)]
struct RemovalPart {
    #[n(0)]
    schema: u32,
    #[n(1)]
    rows: ByteVec,
}

impl RemovalRecord {
    /// Of these rows of each schema, whose numbers rise.
    pub(crate) fn new(at: u64, rows: &[Vec<u64>]) -> Self {
        let parts = rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty());
        let part = |(schema, rows): (usize, &Vec<u64>)| {
            let mut runs = Vec::new();
            put_runs(rows, &mut runs);
            RemovalPart {
                schema: schema as u32,
                rows: runs.into(),
            }
        };
        Self {
            at,
            parts: parts.map(part).collect(),
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

    /// The runs of each schema that it has any of.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are none.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Result<(usize, Vec<Run>)>> {
        let decoded = |part: &RemovalPart| Ok((part.schema as usize, VarintReader::new(&part.rows, WHAT).runs()?));
        self.parts.iter().map(decoded)
    }
}

#[cfg(test)]
mod tests {
    use junctura_model::selector::testing::TestRandom;

    use super::*;

    fn rows(random: &mut TestRandom) -> Vec<u64> {
        let mut rows = std::collections::BTreeSet::new();
        for _ in 0..random.below(20) {
            let start = random.below(1 << 20) as u64;
            rows.extend(start..start + random.below(50) as u64);
        }
        rows.into_iter().collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut random = TestRandom(1);
        for _ in 0..200 {
            let given = [rows(&mut random), Vec::new(), rows(&mut random)];
            let mut bytes = Vec::new();
            RemovalRecord::new(7, &given).encode_into(&mut bytes);
            let read = RemovalRecord::read(&bytes).unwrap();
            let mut found = vec![Vec::new(); 3];
            for part in read.runs() {
                let (schema, runs) = part.unwrap();
                found[schema] = runs.into_iter().flatten().collect();
            }
            assert_eq!((read.at, &found[..]), (7, &given[..]));
        }
    }

    #[test]
    fn bytes_that_are_none_are_refused_or_harmless() {
        let mut bytes = Vec::new();
        RemovalRecord::new(7, &[vec![1, 2, 3, 1000, 1001, u64::MAX - 1]]).encode_into(&mut bytes);
        for end in 0..bytes.len() {
            assert!(RemovalRecord::read(&bytes[..end]).is_err());
        }
        let mut random = TestRandom(2);
        for _ in 0..2000 {
            let mut damaged = bytes.clone();
            let at = random.below(damaged.len());
            damaged[at] ^= 1 << random.below(8);
            if let Ok(read) = RemovalRecord::read(&damaged) {
                let _ = read.runs().collect::<Result<Vec<_>>>();
            }
        }
    }
}
