//! An object of exclusive commits, likewise.

#![no_main]

use junctura_fuzz::{Limits, SCHEMA, within};
use junctura_store::fuzzing;
use libfuzzer_sys::fuzz_target;

/// A store, rows and columns, and the objects of a listing.
const LIMITS: Limits = Limits {
    held_bytes: 256 << 10,
    held_bytes_each: 512,
    steps: 5000,
    steps_each: 32,
};

fuzz_target!(|bytes: &[u8]| within(LIMITS, bytes, || fuzzing::object(&SCHEMA, bytes)));
