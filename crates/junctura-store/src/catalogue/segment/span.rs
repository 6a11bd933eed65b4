//! Some bytes of a file, for a reader that expects the whole file.

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct FileSpan {
    /// Their offset in the file.
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

impl FileSpan {
    /// Returns the bytes from an offset on; `None` if some are missing.
    pub(super) fn part(&self, start: u64, length: u64) -> Option<Bytes> {
        let from = usize::try_from(start.checked_sub(self.start)?).ok()?;
        let end = from.checked_add(usize::try_from(length).ok()?)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(from..end))
    }
}

impl Length for FileSpan {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for FileSpan {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let length = self.len().saturating_sub(start);
        Ok(self.part(start, length).ok_or_else(behind)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.part(start, length as u64).ok_or_else(behind)
    }
}

fn behind() -> ParquetError {
    ParquetError::EOF("it states more bytes than it has".to_owned())
}
