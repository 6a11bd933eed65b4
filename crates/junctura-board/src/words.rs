//! Access to the words of a board in any memory.

use std::sync::atomic::{Ordering, fence};

use junctura_memory::{SharedWords, WrittenWords};

/// Words that can be read. Each load is relaxed and atomic.
pub trait ReadableWords {
    /// Reads a word.
    fn load(&self, index: usize) -> u64;

    /// Orders the loads before it before those after it.
    fn acquire(&self) {
        fence(Ordering::Acquire);
    }
}

/// Words that this process alone writes. Each store is relaxed and atomic.
pub trait WritableWords: ReadableWords {
    /// Writes a word.
    fn store(&mut self, index: usize, value: u64);

    /// Orders the stores before it before those after it.
    fn release(&self) {
        fence(Ordering::Release);
    }
}

impl ReadableWords for SharedWords {
    fn load(&self, index: usize) -> u64 {
        self.load(index)
    }
}

impl ReadableWords for WrittenWords {
    fn load(&self, index: usize) -> u64 {
        self.load(index)
    }
}

impl WritableWords for WrittenWords {
    fn store(&mut self, index: usize, value: u64) {
        self.store(index, value);
    }
}

/// Words of this process, for tests and copies.
impl ReadableWords for Vec<u64> {
    fn load(&self, index: usize) -> u64 {
        self[index]
    }
}

impl WritableWords for Vec<u64> {
    fn store(&mut self, index: usize, value: u64) {
        self[index] = value;
    }
}
