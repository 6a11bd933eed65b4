//! The list of a checkpoint as somebody else may have written it.

#![no_main]

use junctura_fuzz::{Limits, SCHEMA, within};
use junctura_store::fuzzing;
use libfuzzer_sys::fuzz_target;

/// Two stores, and the nodes of JSON.
const LIMITS: Limits = Limits {
    held_bytes: 64 << 10,
    held_bytes_each: 64,
    steps: 1000,
    steps_each: 8,
};

fuzz_target!(|bytes: &[u8]| within(LIMITS, bytes, || fuzzing::checkpoint(&SCHEMA, bytes)));
