//! The root of a store as another program may have written it, with schemas and the place of the data.

use crate::{Limits, within};
use junctura_store::fuzzing;

/// A store, and schemas from their texts.
const LIMITS: Limits = Limits {
    held_bytes: 64 << 10,
    held_bytes_each: 1024,
    steps: 2000,
    steps_each: 16,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzzing::root(bytes));
}
