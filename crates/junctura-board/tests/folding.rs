//! Names of clients become names of components.

use junctura_board::{component_group, folded_name};
use proptest::prelude::*;

#[test]
fn numbers_are_folded_and_words_are_not() {
    for (name, folded) in [
        ("member-17", "member-*"),
        ("member-17-of-50", "member-*-of-*"),
        ("junctura put", "junctura put"),
        ("post/worker3", "post/worker*"),
        ("run-deadbeef01", "run-*"),
        ("facade", "facade"),
        ("defacedbread", "defacedbread"),
        ("2026112800", "*"),
        ("a1b2", "a*b*"),
        ("maître-7", "maître-*"),
        ("", ""),
    ] {
        assert_eq!(folded_name(name), folded, "{name:?}");
    }
    assert_eq!(component_group("post/member-*"), Some("post"));
    assert_eq!(component_group("member-*"), None);
}

proptest! {
    #[test]
    fn folding_removes_digits_never_lengthens_and_is_done_once(name in "\\PC{0,40}") {
        let folded = folded_name(&name);
        prop_assert!(!folded.bytes().any(|byte| byte.is_ascii_digit()));
        prop_assert!(folded.len() <= name.len());
        prop_assert_eq!(folded_name(&folded), folded);
    }

    #[test]
    fn names_that_differ_in_numbers_are_one_component(
        words in prop::collection::vec("[g-z]{1,6}", 1..4), one in 0_u64.., other in 0_u64..,
    ) {
        let named = |number: u64| words.iter().map(|word| format!("{word}-{number}")).collect::<Vec<_>>().join("/");
        prop_assert_eq!(folded_name(&named(one)), folded_name(&named(other)));
    }
}
