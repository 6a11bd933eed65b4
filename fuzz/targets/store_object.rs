//! An object of exclusive commits, likewise.

#![no_main]

use junctura_fuzz::{SCHEMA, within_bounds};
use junctura_store::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| within_bounds(bytes, || fuzzing::object(&SCHEMA, bytes)));
