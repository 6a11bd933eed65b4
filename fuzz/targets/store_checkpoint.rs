//! The list of a checkpoint as somebody else may have written it.

#![no_main]

use junctura_fuzz::{SCHEMA, within_bounds};
use junctura_store::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| within_bounds(bytes, || fuzzing::checkpoint(&SCHEMA, bytes)));
