//! One target under libFuzzer: the one that `JUNCTURA_FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

use junctura_fuzz::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("JUNCTURA_FUZZ_TARGET").expect("JUNCTURA_FUZZ_TARGET names the target");
    let found = TARGETS.iter().find(|(each, _)| *each == name);
    found.unwrap_or_else(|| panic!("no target is named {name}")).1
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
