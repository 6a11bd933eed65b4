//! Checks of one record after the other: those of a producer nearly always begin as the last one did.
//!
//! ```text
//!   last    class=od │ expver=0001 │ … │ number=7 │ levelist=500 │ param=t
//!   next    class=od │ expver=0001 │ … │ number=7 │ levelist=500 │ param=u
//!           └──────────── proven, since equal ───────────────────┘ checked
//! ```
//! Whether an entry is valid depends only on the schema, on its bytes, and on the entries before it. So the entries that a
//! record and the last proven one have in common at their beginning need no second proof, and the result is the same as
//! without one.

use std::sync::Arc;

use super::RecordRef;
use crate::error::Result;
use crate::schema::{AttributeBits, Schema};

/// Bytes of a record that are compared with those of the next one.
const COMPARED_BYTES_MAX: usize = 1024;

/// A record that was checked, and two of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedRecord<'a> {
    /// The record.
    pub record: RecordRef<'a>,
    /// The bytes of the key's attributes, as of [`RecordRef::key_bytes`].
    pub key_bytes: &'a [u8],
    /// The bytes of the attributes of the key's first level.
    pub first_level_bytes: &'a [u8],
}

/// A beginning of a record that consists of whole, valid entries of declared attributes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProvenBeginning {
    /// Its length in bytes.
    pub(super) end: usize,
    /// The attributes in it.
    pub(super) seen: AttributeBits,
    /// The end of the last attribute of the key.
    pub(super) key_end: usize,
    /// The end of the last attribute of the key's first level.
    pub(super) level_end: usize,
}

/// Checks records of one schema as [`Schema::check`] does; see the module.
#[derive(Clone, Debug)]
pub struct RecordChecker {
    schema: Arc<Schema>,
    /// The beginning of the last valid record.
    bytes: Vec<u8>,
    /// Its beginnings, one for each entry.
    proven: Vec<ProvenBeginning>,
}

impl RecordChecker {
    /// Returns a checker of records of this schema.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> RecordChecker {
        RecordChecker {
            schema,
            bytes: Vec::new(),
            proven: Vec::new(),
        }
    }

    /// Returns the schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Proves that the bytes are a record of the schema, at the cost of what differs from the beginning of the last record
    /// that was valid.
    ///
    /// # Errors
    /// Those of [`Schema::check`].
    pub fn check<'a>(&mut self, bytes: &'a [u8]) -> Result<CheckedRecord<'a>> {
        let same = same_len(&self.bytes, bytes);
        while self.proven.pop_if(|beginning| beginning.end > same).is_some() {}
        let from = self.proven.last().copied().unwrap_or_default();
        self.bytes.truncate(from.end);
        let proven = &mut self.proven;
        let checked = self
            .schema
            .check_entries(bytes, self.schema.required(), from, |beginning| {
                if beginning.end <= COMPARED_BYTES_MAX {
                    proven.push(beginning);
                }
            });
        if checked.is_ok() {
            let end = self.proven.last().map_or(0, |beginning| beginning.end);
            self.bytes.extend_from_slice(&bytes[from.end..end]);
        } else {
            self.bytes.clear();
            self.proven.clear();
        }
        checked
    }
}

/// Returns the number of bytes that are the same at the beginning of both.
fn same_len(a: &[u8], b: &[u8]) -> usize {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let same = 8 * words.take_while(|(a, b)| a == b).count();
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}
