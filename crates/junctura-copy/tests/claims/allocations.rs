//! An allocator that counts the bytes that a call holds at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

pub(crate) struct Counting;

fn note(more: usize, less: usize) {
    // Where a thread ends, its counters are gone.
    let _ = HELD.try_with(|held| {
        held.set((held.get() + more).saturating_sub(less));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: it hands on what it is asked to the system's allocator, and only counts beside that.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Returns the result of a call and the most bytes that it held on this thread.
pub(crate) fn peak_of<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = call();
    (result, PEAK.get() - before)
}
