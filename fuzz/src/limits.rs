//! Limits of memory and work, for the fuzz targets and for the tests of all crates.
//!
//! An allocator counts what the calling thread takes. Counts are the same in each run, which times are not. A program of tests includes
//! this file once (`#[path]`) and gets the allocator with it.

#![allow(unsafe_code, reason = "an allocator that counts")]
#![allow(dead_code, unreachable_pub, reason = "each program uses a part of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes of an allocation that count as one more step.
const STEP_BYTES: usize = 256;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// The limits of a call: a constant, and a multiple of the bytes of its input.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes held at a time, whatever the input.
    pub held_bytes: usize,
    /// Bytes held at a time, for each byte of the input.
    pub held_bytes_each: usize,
    /// Steps for any input: allocations, and one more for each 256 bytes. Copies and lists are allocated.
    pub steps: usize,
    /// Steps for each byte of the input.
    pub steps_each: usize,
}

impl Limits {
    /// Returns the result of a call that acts on so many bytes of input.
    ///
    /// # Panics
    /// If the call exceeds the limits.
    pub fn hold<T>(self, input_bytes: usize, call: impl FnOnce() -> T) -> T {
        let (result, cost) = cost_of(call);
        let check = |what: &str, count: usize, constant: usize, each: usize| {
            let most = each.saturating_mul(input_bytes).saturating_add(constant);
            assert!(
                count <= most,
                "{input_bytes} bytes of input cost {count} {what}, more than {most}"
            );
        };
        check("bytes held", cost.held_bytes, self.held_bytes, self.held_bytes_each);
        check("steps", cost.steps, self.steps, self.steps_each);
        result
    }
}

/// The cost of a call on its thread.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The most bytes that it held at a time, beyond those of before.
    pub held_bytes: usize,
    /// Bytes that its result holds.
    pub kept_bytes: usize,
    /// Allocations, and one more for each 256 bytes.
    pub steps: usize,
}

/// Returns the result of a call and what it cost.
pub fn cost_of<T>(call: impl FnOnce() -> T) -> (T, Cost) {
    let (held_before, steps_before) = (HELD.get(), STEPS.get());
    PEAK.set(held_before);
    let result = call();
    let cost = Cost {
        held_bytes: PEAK.get() - held_before,
        kept_bytes: HELD.get().saturating_sub(held_before),
        steps: STEPS.get() - steps_before,
    };
    (result, cost)
}

/// Counts an allocation. Counters of a thread that ends are gone.
fn take(bytes: usize, instead_of: usize) {
    let _ = HELD.try_with(|held| {
        // A copy into a larger place holds both.
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get() + bytes)));
        held.set((held.get() + bytes).saturating_sub(instead_of));
    });
    let _ = STEPS.try_with(|steps| steps.set(steps.get() + 1 + bytes / STEP_BYTES));
}

fn give_back(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

struct Counting;

// SAFETY: the system's allocator does all work; this one counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        take(bytes, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(old, layout, bytes) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(old, layout) }
    }
}
