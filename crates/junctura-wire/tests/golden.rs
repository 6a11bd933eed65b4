//! `docs/formats/wire-golden.txt` holds one frame of every kind. This crate must write exactly those bytes and read them
//! back as what they were made of: the format does not change by accident.
//!
//! After a deliberate change, `JUNCTURA_WRITE_GOLDEN=1 cargo test -p junctura-wire --test integration golden` writes the file anew.

#![allow(
    clippy::disallowed_methods,
    reason = "the golden bytes and the format's page are files; the crate itself reads none"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::common::{Words, replies, requests};
use junctura_wire::{FrameKind, Reply, Request, WireFrame};

/// The request number of every golden frame: all its bytes differ.
const REQUEST: u64 = 0x0807_0605_0403_0201;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/wire-golden.txt")
}

fn frames(words: &Words) -> Vec<(&'static str, Vec<u8>)> {
    let framed = |encode: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        bytes
    };
    let requests = requests(words)
        .into_iter()
        .map(|(name, it)| (name, framed(&|out| it.encode(REQUEST, out))));
    let replies = replies(words)
        .into_iter()
        .map(|(name, it)| (name, framed(&|out| it.encode(REQUEST, out))));
    requests.chain(replies).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn golden() -> Vec<(String, Vec<u8>)> {
    let text = std::fs::read_to_string(path()).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, hex)| (name.to_owned(), unhex(hex)))
        .collect()
}

fn whole(bytes: &[u8]) -> WireFrame<'_> {
    let (frame, length) = WireFrame::split(bytes).unwrap().unwrap();
    assert_eq!(length, bytes.len());
    assert_eq!(frame.request, REQUEST);
    frame
}

#[test]
fn what_is_written_is_golden() {
    let words = Words::example();
    if std::env::var_os("JUNCTURA_WRITE_GOLDEN").is_some() {
        let mut text = String::from(
            "# One frame of every kind, header included, as hexadecimal: the wire format, version 1 (see wire.md).\n\
             # Written and checked by crates/junctura-wire/tests/golden.rs.\n",
        );
        for (name, bytes) in frames(&words) {
            let _ = writeln!(text, "{name} {}", hex(&bytes));
        }
        std::fs::write(path(), text).unwrap();
    }
    let golden = golden();
    let written = frames(&words);
    assert_eq!(golden.len(), written.len());
    for ((golden_name, golden), (name, written)) in golden.iter().zip(&written) {
        assert_eq!(golden_name, name);
        assert_eq!(hex(golden), hex(written), "{name}");
    }
}

#[test]
fn what_is_golden_is_read_as_what_it_was_made_of() {
    let words = Words::example();
    let golden = golden();
    let (asked, answered) = golden.split_at(requests(&words).len());
    for ((_, bytes), (name, request)) in asked.iter().zip(requests(&words)) {
        let frame = whole(bytes);
        assert_eq!(frame.descriptors, 0, "{name}");
        assert_eq!(Request::decode(&frame).unwrap(), request, "{name}");
        assert!(Reply::decode(&frame).is_err(), "{name} is no reply");
    }
    for ((_, bytes), (name, reply)) in answered.iter().zip(replies(&words)) {
        let frame = whole(bytes);
        assert_eq!(
            frame.descriptors,
            u8::from(matches!(name, "segment" | "rings" | "board_page")),
            "{name}"
        );
        assert_eq!(Reply::decode(&frame).unwrap(), reply, "{name}");
        assert!(Request::decode(&frame).is_err(), "{name} is no request");
    }
}

#[test]
fn every_kind_has_a_golden_frame() {
    let seen: BTreeSet<u8> = golden().iter().map(|(_, bytes)| bytes[4]).collect();
    let all: BTreeSet<u8> = FrameKind::ALL.iter().map(|&kind| kind as u8).collect();
    assert_eq!(seen, all);
}

#[test]
fn the_page_documents_every_kind() {
    let page = std::fs::read_to_string(path().with_file_name("wire.md")).unwrap();
    for &kind in FrameKind::ALL {
        assert!(
            page.contains(&format!("| {} | `{kind:?}` |", kind as u8)),
            "{kind:?} is not in wire.md"
        );
    }
}
