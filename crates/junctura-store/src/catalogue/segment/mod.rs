//! Segments: rows in Parquet files that other programs can read, with a column for each attribute, and columns for the
//! location of the bytes.
//!
//! | column | type | content |
//! |---|---|---|
//! | the name of an attribute | integer: `INT64`; decimal: `DECIMAL(38, 18)`; float: `DOUBLE`; bool: `BOOLEAN`; date: `DATE`; all others: their canonical text | null if the object does not have it |
//! | `@name` | text | an undeclared attribute of an open schema |
//! | `_file`, `_offset`, `_length` | text, `UINT_64` | the location of its bytes, in a file of the store |
//! | `_checksum` | `UINT_32` | the CRC-32C of its unpacked bytes |
//! | `_commit` | `UINT_64` | its commit: of the rows with one key, the last one with the highest number is the newest |
//! | `_number` | `UINT_64` | the number of the row among all rows ever committed of its schema, from 0 |
//! | `_incarnation`, `_sequence` | `UINT_64` | its version in a pool, or null |
//! | `_codec`, `_unpacked` | text, `UINT_64` | for a packed object, the codec and the unpacked size in bytes; present only if a row has them |

mod checks;
#[cfg(feature = "parquet")]
mod codes;
#[cfg(feature = "parquet")]
mod read;
#[cfg(feature = "parquet")]
mod span;
#[cfg(not(feature = "parquet"))]
mod without;
#[cfg(feature = "parquet")]
mod write;

use junctura_model::{Code, Error, Result, Schema};

pub(crate) use checks::PartChecks;
#[cfg(feature = "parquet")]
pub(crate) use read::{RowGroup, SegmentFile, decode};
#[cfg(not(feature = "parquet"))]
pub(crate) use without::{RowGroup, SegmentFile, decode, encode};
#[cfg(feature = "parquet")]
pub(crate) use write::{arrays, check_texts, encode, own_arrays, own_fields, type_of};

/// The columns that are the store's own.
const OWN: [&str; 10] = [
    "_file",
    "_offset",
    "_length",
    "_checksum",
    "_commit",
    "_number",
    "_incarnation",
    "_sequence",
    "_codec",
    "_unpacked",
];
/// The last columns, which exist only if a row uses them.
#[cfg(feature = "parquet")]
const OF_PACKED: usize = 2;

/// Checks that a schema's attributes do not conflict with the store's own columns.
///
/// # Errors
/// `SchemaMismatch`, with the name of the attribute.
pub(crate) fn check_names(schema: &Schema) -> Result<()> {
    let taken = schema
        .attributes()
        .iter()
        .find(|attribute| OWN.contains(&&*attribute.name));
    taken.map_or(Ok(()), |attribute| {
        let cause = "is a column of the store's own";
        Err(Error::new(Code::SchemaMismatch, &*attribute.name, cause))
    })
}

#[cfg(all(test, feature = "parquet"))]
mod tests;
