//! Selectors and MARS requests as a user might write them: reading never panics, an error points into the text, and the
//! canonical text reads as the same selector.

#![no_main]

use junctura_fuzz::SCHEMA;
use junctura_model::Selector;
use junctura_model::selector::{Context, explain_error};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let context = Context {
        today: Some(20_261_120),
    };
    match Selector::parse_with(text, &SCHEMA, &context) {
        Ok(selector) => {
            let canonical = selector.to_string();
            let again = Selector::parse(&canonical, &SCHEMA).expect("canonical text reads");
            assert_eq!(again, selector, "{canonical}");
            assert_eq!(again.to_string(), canonical);
            _ = selector.explain();
        }
        Err(error) => {
            if let Some(at) = error.position() {
                assert!(at <= text.len() && text.is_char_boundary(at), "{error}");
            }
            _ = explain_error(text, &error);
        }
    }
});
