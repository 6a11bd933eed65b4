//! Schema files of FDB's as a user might write them: reading never panics, what was read can be written as a file of ours, and
//! values of FDB's read or are refused.

#![no_main]

use junctura_model::schema::fdb_value;
use junctura_model::{Given, Schema, Type};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
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
});
