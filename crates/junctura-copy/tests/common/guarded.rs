//! Memory between pages that may not be touched: one byte too many that is read or written ends the test.

use std::ptr::null_mut;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

const PAGE_BYTES: usize = 4096;

/// Bytes that end where such a page begins, or begin where one ends.
pub(crate) struct GuardedBytes {
    map: *mut u8,
    pages: usize,
    from: usize,
    length: usize,
}

impl GuardedBytes {
    pub(crate) fn new(bytes: &[u8], is_at_end: bool) -> Self {
        let length = bytes.len();
        let inside = length.div_ceil(PAGE_BYTES) * PAGE_BYTES;
        let pages = inside + 2 * PAGE_BYTES;
        let from = PAGE_BYTES + if is_at_end { inside - length } else { 0 };
        // SAFETY: a new map at an address that the system chooses; its inner pages are then writable.
        let map = unsafe {
            let map = mmap_anonymous(null_mut(), pages, ProtFlags::empty(), MapFlags::PRIVATE).unwrap();
            let writable = MprotectFlags::READ | MprotectFlags::WRITE;
            if inside > 0 {
                mprotect(map.cast::<u8>().add(PAGE_BYTES).cast(), inside, writable).unwrap();
            }
            map.cast::<u8>()
        };
        let mut made = Self {
            map,
            pages,
            from,
            length,
        };
        made.bytes_mut().copy_from_slice(bytes);
        made
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `length` bytes from `from` on are in the inner pages, which live as long as this.
        unsafe { std::slice::from_raw_parts(self.map.add(self.from), self.length) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.map.add(self.from), self.length) }
    }
}

impl Drop for GuardedBytes {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the map; slices of it borrow this.
        unsafe { munmap(self.map.cast(), self.pages).unwrap() };
    }
}
