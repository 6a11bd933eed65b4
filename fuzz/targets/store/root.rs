//! The root of a store as somebody else may have written it, with schemas and the place of the data.

#![no_main]

use junctura_fuzz::{Limits, within};
use junctura_store::fuzzing;
use libfuzzer_sys::fuzz_target;

/// A store, and schemas from their texts.
const LIMITS: Limits = Limits {
    held_bytes: 64 << 10,
    held_bytes_each: 1024,
    steps: 2000,
    steps_each: 16,
};

fuzz_target!(|bytes: &[u8]| within(LIMITS, bytes, || fuzzing::root(bytes)));
