//! Schema files as a user might write them: reading never panics, and what was read is written so that it reads as the
//! same schema.

#![no_main]

use junctura_fuzz::{Limits, within};
use junctura_model::Schema;
use libfuzzer_sys::fuzz_target;

/// Nodes of YAML, and attributes and texts made of them, three times.
const LIMITS: Limits = Limits {
    held_bytes: 64 << 10,
    held_bytes_each: 1024,
    steps: 1000,
    steps_each: 16,
};

fuzz_target!(|text: &str| within(LIMITS, text.as_bytes(), || fuzz(text)));

fn fuzz(text: &str) {
    if let Ok(schema) = Schema::parse_yaml(text) {
        let written = schema.to_yaml();
        let again = Schema::parse_yaml(&written).expect("our own schema reads");
        assert_eq!(again.fingerprint(), schema.fingerprint(), "{written}");
        assert_eq!(again.first_difference(&schema), None);
        assert_eq!(again.to_yaml(), written);
    }
}
