//! The commit log of a store, frames and what they have in them, as somebody else may have written it: it is read and what it
//! shows is looked at, or refused.

#![no_main]

use junctura_fuzz::{SCHEMA, within_bounds};
use junctura_store::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| within_bounds(bytes, || fuzzing::log(&SCHEMA, bytes)));
