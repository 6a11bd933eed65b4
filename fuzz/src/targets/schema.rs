//! Schema files as a user might write them: reading never panics, and what was read is written so that it reads as the
//! same schema.

use crate::{Limits, text_of, within};
use junctura_model::Schema;

/// Nodes of YAML, and their attributes and texts, three times.
const LIMITS: Limits = Limits {
    held_bytes: 64 << 10,
    held_bytes_each: 1024,
    steps: 1000,
    steps_each: 16,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(text_of(bytes)));
}

fn fuzz(text: &str) {
    if let Ok(schema) = Schema::parse_yaml(text) {
        let written = schema.to_yaml();
        let again = Schema::parse_yaml(&written).expect("our own schema reads");
        assert_eq!(again.fingerprint(), schema.fingerprint(), "{written}");
        assert_eq!(again.first_difference(&schema), None);
        assert_eq!(again.to_yaml(), written);
    }
}
