//! Checks of the parts of a segment's file, so that a part can be verified without reading the whole file.

#[cfg(feature = "parquet")]
use junctura_model::{Code, Error, Result};
use serde::{Deserialize, Serialize};

#[cfg(feature = "parquet")]
const DIGITS: usize = 8;

/// See the module.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct PartChecks {
    /// The size of the footer, in bytes, which has the positions of all parts.
    pub(super) footer: u64,
    /// CRC-32C of the footer.
    pub(super) footer_checksum: u32,
    /// CRC-32C of each column of each group, in eight hexadecimal digits.
    chunks: String,
}

#[cfg(feature = "parquet")]
impl PartChecks {
    pub(super) fn new(footer: &[u8], chunks: impl Iterator<Item = u32>) -> Self {
        let bytes: Vec<u8> = chunks.flat_map(u32::to_be_bytes).collect();
        Self {
            footer: footer.len() as u64,
            footer_checksum: crate::checksum(footer),
            chunks: crate::hex(&bytes),
        }
    }

    /// The checksum of each column of each group.
    ///
    /// # Errors
    /// `Corrupt` when they are none.
    pub(super) fn chunks(&self) -> Result<Vec<u32>> {
        let digits = self.chunks.as_bytes().chunks(DIGITS);
        let read = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).ok()?;
            u32::from_str_radix(text, 16).ok().filter(|_| text.len() == DIGITS)
        };
        let all: Option<Vec<u32>> = digits.map(read).collect();
        all.ok_or_else(|| Error::new(Code::Corrupt, "checkpoint", "its checksums are malformed"))
    }
}
