//! Selectors and MARS requests as a user might write them: reading never panics, an error points into the text, and the
//! canonical text reads as the same selector.

use crate::{Limits, SCHEMA, text_of, within};
use junctura_model::Selector;
use junctura_model::selector::{SelectorContext, explain_error};

/// Compiled regular expressions up to their limits (`PATTERNS_BYTES_MAX`), twice, and otherwise nodes and texts.
const LIMITS: Limits = Limits {
    held_bytes: 8 << 20,
    held_bytes_each: 512,
    steps: 400_000,
    steps_each: 64,
};

pub(crate) fn run(bytes: &[u8]) {
    within(LIMITS, bytes, || fuzz(text_of(bytes)));
}

fn fuzz(text: &str) {
    let context = SelectorContext {
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
}
