//! Schema files of FDB's as a user might write them: reading never panics, what was read can be written as a file of ours, and
//! values of FDB's read or are refused.

use crate::{Limits, text_of, within};
use junctura_model::schema::fdb_value;
use junctura_model::{Given, Schema, Type};

/// The limit of grown rules (`SCHEMA_GROWN_BYTES_MAX`), as schemas, as text, and read again.
const LIMITS: Limits = Limits {
    held_bytes: 64 << 20,
    held_bytes_each: 1024,
    steps: 4_000_000,
    steps_each: 64,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(text_of(bytes)));
}

fn fuzz(text: &str) {
    for schema in Schema::parse_fdb(text, "fuzz").unwrap_or_default() {
        let written = schema.to_yaml();
        assert_eq!(
            Schema::parse_file(&written, "fuzz").expect("our own schema reads"),
            [schema],
            "{written}"
        );
    }
    for kind in Type::ALL {
        let mut canonical = String::new();
        let _ = kind.canonical(Given::Text(&fdb_value(kind, text)), &mut canonical);
    }
}
