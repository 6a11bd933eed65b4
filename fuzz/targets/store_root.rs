//! The root of a store as somebody else may have written it, with schemas and the place of the data.

#![no_main]

use junctura_fuzz::within_bounds;
use junctura_store::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| within_bounds(bytes, || fuzzing::root(bytes)));
