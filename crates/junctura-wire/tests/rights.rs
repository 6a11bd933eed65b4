//! The table of rights in `docs/guide/security.md` is the one in the code, with every request.

#![allow(
    clippy::disallowed_methods,
    reason = "the guide's page is a file; the crate itself reads none"
)]

use junctura_wire::FrameKind;
use junctura_wire::rights::needed;

/// Rows of the guide's table: names of frames, and what they need.
fn documented() -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/security.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (_, table) = guide.split_once("| request | needs | of clients that |\n").unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let mut found = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names = cells[1].split(", ").map(|name| name.trim_matches('`').to_owned());
        found.extend(names.map(|name| (name, cells[2].trim_matches('`').replace("` or `", " or "))));
    }
    found
}

#[test]
fn the_guide_has_the_right_of_every_request() {
    let requests = FrameKind::ALL.iter().filter(|kind| (**kind as u8) < 64);
    let mut coded: Vec<_> = requests
        .map(|kind| (format!("{kind:?}"), needed(*kind).text()))
        .collect();
    let mut documented = documented();
    coded.sort();
    documented.sort();
    assert_eq!(documented, coded);
}
