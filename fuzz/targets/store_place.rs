//! Where a store lies, as a user or the root of another store may write it.

#![no_main]

use junctura_fuzz::within_bounds;
use junctura_store::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| within_bounds(text.as_bytes(), || fuzzing::place(text)));
