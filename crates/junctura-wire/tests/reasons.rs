//! The codes of reasons are those of `docs/guide/why.md`.

#![allow(
    clippy::disallowed_methods,
    reason = "the guide's page is a file; the crate itself reads none"
)]

use std::collections::BTreeSet;

use junctura_wire::reasons::{KEPT_CAUSES, OBJECT_STATES, RETENTION_RULES, WAIT_CAUSES, WAIT_KINDS};

/// The words in backquotes of the tables behind "Codes".
fn documented() -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/why.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (_, codes) = guide.split_once("## Codes\n").unwrap();
    let rows = codes.lines().filter(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_guide_has_every_code_and_no_other() {
    let columns = [
        "kind", "state", "because", "rule", "place", "slot", "message", "file", "freed",
    ];
    let coded = [
        &WAIT_KINDS[..],
        &WAIT_CAUSES,
        &KEPT_CAUSES,
        &RETENTION_RULES,
        &OBJECT_STATES,
        &columns,
    ];
    let coded: BTreeSet<String> = coded.concat().into_iter().map(str::to_owned).collect();
    assert_eq!(documented(), coded);
}
