//! Memory that bytes are read into.

use std::ops::Deref;

/// Where what is read begins is a multiple of this. To addresses that are not even multiples of 32, systems were seen to copy at
/// two thirds of their speed; what an allocator gives for large memory is 16 behind the beginning of a page.
const ALIGNMENT: usize = 64;

/// Memory that bytes are read into, used again from one read to the next: see [`Object::read_into`](crate::Object::read_into).
#[derive(Debug, Default)]
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Without any memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Room for so many bytes, whatever they are now.
    pub(crate) fn room(&mut self, length: usize) -> &mut [u8] {
        if self.memory.len() < length.saturating_add(ALIGNMENT) {
            self.memory = vec![0; length.saturating_add(ALIGNMENT)];
            self.start = self.memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        }
        self.length = length;
        &mut self.memory[self.start..self.start + length]
    }

    /// Room for so many more bytes behind those that it has.
    pub(crate) fn more_room(&mut self, length: usize) -> &mut [u8] {
        let before = self.length;
        if self.memory.len() < before.saturating_add(length).saturating_add(ALIGNMENT) {
            let mut longer = Self::new();
            longer.room(2 * before + length)[..before].copy_from_slice(self);
            *self = longer;
        }
        self.length = before + length;
        &mut self.memory[self.start + before..][..length]
    }
}

/// What was read.
impl Deref for Buffer {
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
        let mut buffer = Buffer::new();
        assert!(buffer.is_empty());
        for length in [10, 3, 0, 100, 1_000_000, 5] {
            buffer.room(length).fill(length as u8);
            assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0, "{length}");
            assert!(buffer.len() == length && buffer.iter().all(|&byte| byte == length as u8));
        }
    }

    #[test]
    fn more_leaves_what_was_there() {
        let mut buffer = Buffer::new();
        buffer.room(0);
        for number in 0..200_u8 {
            buffer.more_room(100).fill(number);
        }
        let (hundreds, _) = buffer.as_chunks::<100>();
        assert!(
            (0..200)
                .zip(hundreds)
                .all(|(number, hundred)| *hundred == [number; 100])
        );
    }
}
