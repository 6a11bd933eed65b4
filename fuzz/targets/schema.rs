//! Schema files as a user might write them: reading never panics, and what was read is written so that it reads as the
//! same schema.

#![no_main]

use junctura_model::Schema;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(schema) = Schema::parse_yaml(text) {
        let written = schema.to_yaml();
        let again = Schema::parse_yaml(&written).expect("our own schema reads");
        assert_eq!(again.fingerprint(), schema.fingerprint(), "{written}");
        assert_eq!(again.first_difference(&schema), None);
        assert_eq!(again.to_yaml(), written);
    }
});
