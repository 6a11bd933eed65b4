//! Memory for reads.

use std::ops::Deref;

use junctura_model::{Code, Error, Result};

/// Alignment of the beginning of a read. Systems copy to addresses that are not multiples of 32 at two thirds of their
/// speed; large allocations begin 16 bytes after the beginning of a page.
const ALIGNMENT: usize = 64;

/// Size from which an allocation is checked first.
const LARGE_BYTES: usize = 64 << 20;

/// Returns empty memory with this capacity.
///
/// # Errors
/// `TooLarge` if memory is insufficient.
pub(crate) fn reserved(length: usize) -> Result<Vec<u8>> {
    let mut memory = Vec::new();
    let reserved = memory.try_reserve_exact(length);
    reserved.map_err(|_| {
        Error::new(
            Code::TooLarge,
            "object",
            format!("there is no memory for {length} bytes: read it piece by piece (`read_range`, in Python `open`)"),
        )
    })?;
    Ok(memory)
}

/// Returns this number of bytes with undefined content.
///
/// # Errors
/// As [`reserved`], for large sizes.
pub(crate) fn room(length: usize) -> Result<Vec<u8>> {
    if length < LARGE_BYTES {
        return Ok(vec![0; length]);
    }
    let mut memory = reserved(length)?;
    memory.resize(length, 0);
    Ok(memory)
}

/// Memory for reads, reused from one read to the next: see [`Object::read_into`](crate::StoredObject::read_into).
#[derive(Debug, Default)]
pub struct ReadBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl ReadBuffer {
    /// Creates a buffer without memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns this number of bytes, with undefined content.
    ///
    /// # Errors
    /// As [`room`].
    pub(crate) fn room(&mut self, length: usize) -> Result<&mut [u8]> {
        if self.memory.len() < length.saturating_add(ALIGNMENT) {
            // Frees the old memory first, because both may exceed the available memory.
            *self = Self::new();
            self.memory = room(length.saturating_add(ALIGNMENT))?;
            self.start = self.memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        }
        self.length = length;
        Ok(&mut self.memory[self.start..self.start + length])
    }

    /// Clears the buffer; keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// Appends this number of bytes, with undefined content.
    ///
    /// # Errors
    /// As [`room`].
    pub(crate) fn more_room(&mut self, length: usize) -> Result<&mut [u8]> {
        let before = self.length;
        if self.memory.len() < before.saturating_add(length).saturating_add(ALIGNMENT) {
            let mut longer = Self::new();
            longer.room((2 * before).saturating_add(length))?[..before].copy_from_slice(self);
            *self = longer;
        }
        self.length = before + length;
        Ok(&mut self.memory[self.start + before..][..length])
    }
}

/// The bytes that were read.
impl Deref for ReadBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_bytes_begin_where_a_cache_line_does() {
        let mut buffer = ReadBuffer::new();
        assert!(buffer.is_empty());
        for length in [10, 3, 0, 100, 1_000_000, 5] {
            buffer.room(length).unwrap().fill(length as u8);
            assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0, "{length}");
            assert!(buffer.len() == length && buffer.iter().all(|&byte| byte == length as u8));
        }
    }

    #[test]
    fn more_leaves_what_was_there() {
        let mut buffer = ReadBuffer::new();
        buffer.room(0).unwrap();
        for number in 0..200_u8 {
            buffer.more_room(100).unwrap().fill(number);
        }
        let (hundreds, _) = buffer.as_chunks::<100>();
        assert!(
            (0..200)
                .zip(hundreds)
                .all(|(number, hundred)| *hundred == [number; 100])
        );
    }

    #[test]
    fn more_than_there_is_is_refused() {
        let mut buffer = ReadBuffer::new();
        for length in [1 << 60, usize::MAX] {
            assert_eq!(reserved(length).unwrap_err().code(), Code::TooLarge);
            assert_eq!(room(length).unwrap_err().code(), Code::TooLarge);
            assert_eq!(buffer.room(length).unwrap_err().code(), Code::TooLarge);
            assert_eq!(buffer.more_room(length).unwrap_err().code(), Code::TooLarge);
        }
        buffer.room(10).unwrap();
        assert_eq!(buffer.len(), 10);
    }
}
