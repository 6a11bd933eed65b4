//! A page of shared memory in which the consumer says how many objects it has taken.
//!
//! It bounds what is on its way at once, which neither rival offers by itself, and costs less than any message would.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;

/// The page.
#[derive(Debug)]
pub(crate) struct Control(MmapRaw);

impl Control {
    /// Maps the page, a file of at least eight bytes.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let page = MmapRaw::map_raw(&file)?;
        if page.len() < size_of::<AtomicU64>() {
            return Err(io::Error::other("the control page is too short"));
        }
        Ok(Self(page))
    }

    /// How many objects were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.word().load(Ordering::Acquire)
    }

    /// Says how many objects were taken.
    pub(crate) fn set_taken(&self, count: u64) {
        self.word().store(count, Ordering::Release);
    }

    #[expect(unsafe_code, reason = "a word of shared memory")]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the map begins on a page, is long enough, lives as long as `self`, and both processes use it as atomic.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast()) }
    }
}
