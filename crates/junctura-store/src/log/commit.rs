//! The content of a commit: a CBOR map with numbered fields, which later versions may extend.
//!
//! | field | content |
//! |---|---|
//! | 0 | its time, in nanoseconds since 1970 (UTC) |
//! | 1 | its writer: 16 random bytes |
//! | 2 | parts, one for each dataset: the number of its schema in the root (0), rows (1, see `catalogue/table/code.rs`), small payloads (2) |

use minicbor::bytes::{ByteArray, ByteSlice};
use minicbor::{Decode, Encode};

use junctura_model::{Code, Error, Result};

/// The kind of a log's record that is a commit.
pub(crate) const COMMIT: u32 = 1;
/// Datasets that one commit may have rows of.
pub(crate) const PARTS_MAX: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

#[derive(Debug, Decode, Encode, PartialEq)]
#[cbor(map)]
pub(crate) struct CommitRecord<'b> {
    #[n(0)]
    pub(crate) at: u64,
    #[n(1)]
    pub(crate) writer: ByteArray<16>,
    #[b(2)]
    pub(crate) parts: Vec<CommitPart<'b>>,
}

#[derive(Debug, Decode, Encode, PartialEq)]
#[cbor(map)]
pub(crate) struct CommitPart<'b> {
    #[n(0)]
    pub(crate) schema: u32,
    #[b(1)]
    pub(crate) rows: &'b ByteSlice,
    #[b(2)]
    pub(crate) payloads: &'b ByteSlice,
}

impl<'b> CommitRecord<'b> {
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        let result = minicbor::encode(self, out);
        debug_assert!(result.is_ok(), "writing to a vector does not fail");
    }

    /// # Errors
    /// `Corrupt` for bytes that are none.
    pub(crate) fn read(bytes: &'b [u8]) -> Result<Self> {
        let commit: Self =
            minicbor::decode(bytes).map_err(|error| Error::new(Code::Corrupt, "commit", error.to_string()))?;
        if commit.parts.len() > PARTS_MAX {
            return Err(Error::new(Code::LimitExceeded, "commit", "of too many datasets"));
        }
        Ok(commit)
    }
}
