//! Where a store lies, as a user or the root of another store may write it.

#![no_main]

use junctura_fuzz::{Limits, within};
use junctura_store::fuzzing;
use libfuzzer_sys::fuzz_target;

/// The parts of a place, or an error that quotes it.
const LIMITS: Limits = Limits {
    held_bytes: 2 << 10,
    held_bytes_each: 16,
    steps: 100,
    steps_each: 1,
};

fuzz_target!(|text: &str| within(LIMITS, text.as_bytes(), || fuzzing::place(text)));
