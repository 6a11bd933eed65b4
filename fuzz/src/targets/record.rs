//! Attributes as a hostile client might send them: what `check` lets through is a record whose key reads back, and keys
//! as a user might write them.

use crate::{Limits, SCHEMA, within};
use junctura_model::RecordRef;

/// The texts of a record and its key, and an error that quotes one.
const LIMITS: Limits = Limits {
    held_bytes: 4 << 10,
    held_bytes_each: 32,
    steps: 200,
    steps_each: 4,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(bytes));
}

fn fuzz(bytes: &[u8]) {
    if let Ok(record) = SCHEMA.check(bytes) {
        key_reads_back(record);
        let mut dataset = String::new();
        SCHEMA.dataset_of(record, &mut dataset);
    }
    if let Ok(text) = str::from_utf8(bytes)
        && let Ok(key) = SCHEMA.parse_key(text)
    {
        SCHEMA.check(key.as_ref().as_bytes()).expect("a key is a record");
        key_reads_back(key.as_ref());
    }
}

fn key_reads_back(record: RecordRef<'_>) {
    let mut text = String::new();
    SCHEMA.key_of(record, &mut text);
    _ = SCHEMA.key_hash(&text);
    let again = SCHEMA.parse_key(&text).expect("canonical key reads");
    assert_eq!(again.as_ref().as_bytes(), record.key_bytes(SCHEMA.key_len()), "{text}");
}
