//! The list of a checkpoint as another program may have written it.

use crate::{Limits, SCHEMA, within};
use junctura_store::fuzzing;

/// Two stores, and the nodes of JSON.
const LIMITS: Limits = Limits {
    held_bytes: 64 << 10,
    held_bytes_each: 64,
    steps: 1000,
    steps_each: 8,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzzing::checkpoint(&SCHEMA, bytes));
}
