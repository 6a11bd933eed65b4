//! The place of a store, as a user or the root of another store may write it.

use crate::{Limits, text_of, within};
use junctura_store::fuzzing;

/// The parts of a place, or an error that quotes it.
const LIMITS: Limits = Limits {
    held_bytes: 2 << 10,
    held_bytes_each: 16,
    steps: 100,
    steps_each: 1,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzzing::place(text_of(bytes)));
}
