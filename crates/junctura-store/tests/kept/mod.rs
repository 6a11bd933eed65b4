//! Stores that earlier versions wrote, kept as they are: this one opens them, finds everything, and goes on in them.
//!
//! `VERSION-ORDER.tar.gz` is such a store, for each version of the format in each order of commits, and `VERSION.txt` what it shows: the
//! lines of [`shown`]. [`write`] wrote both, when that version was new. They are never written again.

mod write;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use junctura_store::{Commits, Snapshot, Store};

/// Every version that was kept, and what was new in it, with its last commit.
const VERSIONS: [(&str, u64); 3] = [("1", 9), ("1-moved", 11), ("1-gained", 14)];
const ORDERS: [(&str, Commits); 2] = [("appended", Commits::Appended), ("exclusive", Commits::Exclusive)];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept")
}

/// Every version of every object, in the order of commits: a line for each, with what its bytes are.
fn shown(snapshot: &Snapshot) -> String {
    let newest = snapshot.list("").unwrap();
    let newest: Vec<_> = newest
        .iter()
        .map(|object| (object.commit(), object.key(), object.checksum()))
        .collect();
    let mut text = String::new();
    for object in &snapshot.list_all("").unwrap() {
        let (commit, key, checksum) = (object.commit(), object.key(), object.checksum());
        let is_newest = newest.contains(&(commit, key.clone(), checksum));
        let version = object.version().map_or("-".to_owned(), |version| version.to_string());
        let bytes = object.read().unwrap();
        let (schema, described) = (object.schema().name(), object.describe());
        let kind = if is_newest { "newest" } else { "masked" };
        write!(
            text,
            "{commit} {kind} {version} {schema} {key} {} {checksum:08x}",
            bytes.len()
        )
        .unwrap();
        for (name, value) in described.attributes() {
            write!(text, " {name}={value}").unwrap();
        }
        text.push('\n');
    }
    text
}

/// A copy of a kept store, which may be written to.
fn unpacked(version: &str, order: &str) -> (tempfile::TempDir, String) {
    let copy = tempfile::tempdir().unwrap();
    let archive = folder().join(format!("{version}-{order}.tar.gz"));
    let done = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(copy.path())
        .status();
    assert!(done.unwrap().success());
    let tier = copy.path().join("tiers/near.json");
    if let Ok(text) = std::fs::read_to_string(&tier) {
        let here = copy.path().to_str().unwrap();
        std::fs::write(&tier, text.replace(write::HERE, here)).unwrap();
    }
    (
        copy,
        std::fs::read_to_string(folder().join(format!("{version}.txt"))).unwrap(),
    )
}

/// Tells a story of each: where it lies, how its commits have their order, what it shows, and its last commit.
fn each(story: impl Fn(&Path, Commits, &str, u64)) {
    for (version, last) in VERSIONS {
        for (order, commits) in ORDERS {
            let (copy, expected) = unpacked(version, order);
            story(copy.path(), commits, &expected, last);
        }
    }
}

#[test]
fn everything_is_found() {
    each(|path, commits, expected, last| {
        let store = Store::open(path).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(shown(&snapshot), expected);
        assert_eq!((store.commits(), store.ages()), (commits, write::AGES));
        let names: Vec<&str> = store.schemas().iter().map(|schema| schema.name()).collect();
        assert_eq!((names, snapshot.commit()), (vec!["kept", "record"], last));
        let checked = snapshot.check("", None, |_, _| true).unwrap();
        assert_eq!((checked.damaged_count, checked.unnamed.len()), (0, 0));
    });
}

#[test]
fn the_commits_alone_say_the_same() {
    each(|path, _, expected, _| {
        std::fs::remove_dir_all(path.join("checkpoints")).unwrap();
        std::fs::remove_dir_all(path.join("segments")).unwrap();
        assert_eq!(shown(&Store::open(path).unwrap().snapshot().unwrap()), expected);
    });
}

#[test]
fn selectors_and_axes_answer() {
    each(|path, _, _, _| {
        let snapshot = Store::open(path).unwrap().snapshot().unwrap();
        for (selector, count) in [
            ("run=a", 2),
            ("colour=red", 1),
            ("level>=500", 1),
            ("collection=c", 2),
            ("run=wiped", 0),
        ] {
            assert_eq!(snapshot.list(selector).unwrap().len(), count, "{selector}");
        }
        let axes = snapshot.axes("run=a/b").unwrap();
        let steps = axes.iter().find(|axis| axis.name == "step").unwrap();
        assert_eq!(steps.values, ["0-24", "0", "6"]);
    });
}

#[test]
fn it_goes_on() {
    each(|path, _, expected, last| {
        let store = Store::open(path).unwrap();
        let mut writer = store.writer().unwrap();
        write::archive(&mut writer, "run=later,step=0", b"later");
        assert_eq!(writer.flush().unwrap().commit, last + 1);
        assert_eq!(store.checkpoint().unwrap().commit, last + 1);
        store.compact().unwrap();
        let snapshot = Store::open(path).unwrap().snapshot().unwrap();
        let all = shown(&snapshot);
        let (later, before): (Vec<&str>, Vec<&str>) = all
            .lines()
            .partition(|line| line.starts_with(&format!("{} ", last + 1)));
        assert_eq!(before, expected.lines().collect::<Vec<_>>());
        assert!(
            later.len() == 1 && later[0].contains(" newest - kept {run=later}"),
            "{later:?}"
        );
        assert_eq!(store.wipe("run=later").unwrap().commit, last + 2);
        assert_eq!(shown(&store.snapshot().unwrap()), expected);
    });
}
