//! An object of exclusive commits, likewise.

use crate::{Limits, SCHEMA, within};
use junctura_store::fuzzing;

/// A store, rows and columns, and the objects of a listing.
const LIMITS: Limits = Limits {
    held_bytes: 256 << 10,
    held_bytes_each: 512,
    steps: 5000,
    steps_each: 32,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzzing::object(&SCHEMA, bytes));
}
