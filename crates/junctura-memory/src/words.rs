//! Words of 64 bits that one process writes and others read at the same time, in sealed memory.
//!
//! Every access is one relaxed atomic load or store, so no word is torn. Users of the words
//! order them: a reader follows its loads by an acquire fence, and the writer precedes its stores by a release fence.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use junctura_model::Result;
use rustix::mm::ProtFlags;

use crate::mapping::MappedRegion;

/// Words that another process may be writing, mapped for reading only.
#[derive(Debug)]
pub struct SharedWords(MappedRegion);

impl SharedWords {
    /// Maps the sealed memory of `bytes` behind `fd`, and closes `fd`.
    ///
    /// # Errors
    /// Those of [`crate::SegmentMapping::readonly`].
    pub fn map(fd: OwnedFd, bytes: u64) -> Result<Self> {
        MappedRegion::map(fd, bytes, ProtFlags::READ).map(Self)
    }

    /// Returns the number of words.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.words()
    }

    /// Reads a word; 0 beyond the last one.
    #[must_use]
    pub fn load(&self, index: usize) -> u64 {
        // Relaxed: a stronger load of memory that this process may not write is not allowed (`std::sync::atomic`).
        self.0.word(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

/// Words that this process alone writes.
#[derive(Debug)]
pub struct WrittenWords(MappedRegion);

impl WrittenWords {
    /// Maps the sealed memory of `bytes` behind `fd` for writing, and closes `fd`.
    ///
    /// # Errors
    /// Those of [`crate::WritableMapping::new`], apart from its slots.
    pub fn map(fd: OwnedFd, bytes: u64) -> Result<Self> {
        MappedRegion::map(fd, bytes, ProtFlags::READ | ProtFlags::WRITE).map(Self)
    }

    /// Returns the number of words.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.words()
    }

    /// Reads a word; 0 beyond the last one.
    #[must_use]
    pub fn load(&self, index: usize) -> u64 {
        self.0.word(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Writes a word; nothing beyond the last one.
    pub fn store(&mut self, index: usize, value: u64) {
        if let Some(word) = self.0.word(index) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SealedSegment;

    #[test]
    fn a_reader_sees_what_the_writer_wrote_and_nothing_beyond_the_end() {
        let segment = SealedSegment::create(4096).unwrap();
        let mut written = WrittenWords::map(segment.writable().try_clone_to_owned().unwrap(), 4096).unwrap();
        let shared = SharedWords::map(segment.readonly().try_clone_to_owned().unwrap(), 4096).unwrap();
        assert_eq!((written.count(), shared.count()), (512, 512));
        written.store(0, 7);
        written.store(511, u64::MAX);
        written.store(512, 1);
        assert_eq!([0, 1, 511, 512].map(|at| shared.load(at)), [7, 0, u64::MAX, 0]);
        assert_eq!(written.load(511), u64::MAX);
        drop((written, segment));
        assert_eq!(shared.load(0), 7, "the map outlives its writer");
    }

    #[test]
    fn readonly_memory_is_not_mapped_for_writing() {
        let segment = SealedSegment::create(4096).unwrap();
        let refused = WrittenWords::map(segment.readonly().try_clone_to_owned().unwrap(), 4096);
        assert_eq!(refused.unwrap_err().code(), junctura_model::Code::Denied);
        let short = SharedWords::map(segment.readonly().try_clone_to_owned().unwrap(), 8192);
        assert_eq!(short.unwrap_err().code(), junctura_model::Code::Corrupt);
    }
}
