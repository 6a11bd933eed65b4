//! The program that writes what is kept: `JUNCTURA_KEEP=tests/kept cargo test -p junctura-store --test integration keep_one -- --ignored`,
//! once for each version of the format.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use junctura_model::{Given, Record, Schema, Version};
use junctura_store::{Compression, PackingRule, RetentionAges, Store, StoreLayout, StoreWriter};

use super::{ORDERS, shown};

/// The version of the format that is written, and what is new in it.
const VERSION: &str = "1-gained";
pub(crate) const AGES: RetentionAges = RetentionAges {
    snapshot_max: Duration::from_hours(3),
    unflushed_max: Duration::from_hours(2),
};
/// A tier in the store's own folder, so that it is kept with it, and what stands for that folder in its file.
const NEAR: &str = "near";
pub(crate) const HERE: &str = "@HERE@";
const SCHEMA: &str = r#"
name: kept
key:
  dataset: [run]
  element: [step, "day?", "level?", "count?"]
open: true
attributes:
  run: {type: string}
  step: {type: step}
  day: {type: date}
  level: {type: decimal}
  count: {type: integer}
  part: {type: float}
  final: {type: bool}
  at: {type: timestamp}
  levels: {type: list of decimal}
"#;

pub(crate) fn archive(writer: &mut StoreWriter, attributes: &str, payload: &[u8]) {
    let pairs = attributes.split(',').map(|pair| pair.split_once('=').unwrap());
    let items: Vec<Given<'_>> = ["1", "2.5"].map(Given::Text).into();
    let given = pairs.map(|(name, value)| match name {
        "levels" => (name, Given::List(&items)),
        name => (name, Given::Text(value)),
    });
    writer.archive(given, payload).unwrap();
}

/// A record of a pool, of which this is a version.
fn archive_version(store: &Store, writer: &mut StoreWriter, sequence: u64) {
    let mut record = Vec::new();
    let text = sequence.to_string();
    let given = [("collection", "c"), ("producer", "p"), ("sequence", &*text)];
    let given = given.map(|(name, value)| (name, Given::Text(value)));
    store.schemas()[1].record(given, &mut record).unwrap();
    let version = Version {
        incarnation: 1_795_271_438_931,
        sequence,
    };
    let record = Record::trusted(record);
    writer
        .archive_record(1, record.as_ref(), text.as_bytes(), Some(version))
        .unwrap();
}

/// More than a commit has within it.
fn large(word: &str) -> Vec<u8> {
    word.bytes().cycle().take(70_000).collect()
}

/// Commits of all kinds: before the checkpoint and behind it; small ones and large ones; removals; objects that were moved away and back.
fn fill(store: &Store) -> Store {
    let mut writer = store.writer().unwrap();
    let everything =
        "run=a,step=6,day=20260228,level=0.5,count=-7,part=0.1,final=true,at=2026-11-20T12:00:00Z,levels=two";
    archive(&mut writer, everything, b"all types");
    archive(
        &mut writer,
        "run=a,step=0-24,colour=red,shade=a b",
        b"undeclared attributes",
    );
    archive(&mut writer, "run=empty,step=0", b"");
    writer.flush().unwrap();
    archive(&mut writer, "run=b,step=0,level=1000", &large("in a file "));
    archive(&mut writer, "run=b,step=0,level=1000", &large("twice in one commit "));
    archive(&mut writer, "run=wiped,step=0", &large("nothing of this file is left "));
    writer.flush().unwrap();
    archive_version(store, &mut writer, 7);
    archive_version(store, &mut writer, 8);
    writer.flush().unwrap();
    archive(
        &mut writer,
        &everything.replace("part=0.1", "part=0.2"),
        b"masks the first",
    );
    archive(&mut writer, "run=b,step=6", b"small");
    writer.flush().unwrap();
    assert_eq!(store.wipe("run=wiped").unwrap().commit, 5);
    assert_eq!(store.checkpoint().unwrap().commit, 5);
    // The place where it was is not kept, and nothing of it is left there.
    let away = tempfile::tempdir().unwrap();
    store.add_tier("away", away.path().to_str().unwrap()).unwrap();
    for tier in ["away", "data"] {
        store.move_to("run=b,step=0", tier, |_, _| true).unwrap();
    }
    archive(&mut writer, "run=b,step=6", b"masks what the checkpoint has");
    writer.flush().unwrap();
    assert_eq!(store.purge("run=b,step=0").unwrap().objects, 1);
    archive(&mut writer, "run=wiped,step=6", b"this, too");
    archive(&mut writer, "run=b,step=12", &large("behind the checkpoint "));
    writer.flush().unwrap();
    assert_eq!(store.wipe("run=wiped or step=12").unwrap().commit, 11);
    gain(store)
}

/// A schema that has gained an attribute, objects that lie packed in another way, and some that lie in a tier, in two checkpoints.
fn gain(store: &Store) -> Store {
    let gained = Schema::builtin("record").unwrap().to_yaml() + "  station: {type: string}\n";
    let store = store.set_schema(&Schema::parse_yaml(&gained).unwrap()).unwrap();
    let mut writer = store.writer().unwrap();
    let record = [("producer", "p"), ("sequence", "9"), ("station", "x")];
    writer.archive_in("record", record, b"with what is new").unwrap();
    archive(&mut writer, "run=quick,step=0", &large("packed by lz4 "));
    archive(&mut writer, "run=quick,step=6,levels=two", &large("and away "));
    archive(&mut writer, "run=near,step=0,part=0.5", &large("as it is "));
    assert_eq!(writer.flush().unwrap().commit, 12);
    assert_eq!(store.checkpoint().unwrap().commit, 12);
    let moved = store.move_to("run=near or step=6 and run=quick", NEAR, |_, _| true);
    assert_eq!(moved.unwrap().commit, 13);
    archive(&mut writer, "run=near,step=6", b"behind the second checkpoint");
    assert_eq!(writer.flush().unwrap().commit, 14);
    store
}

#[test]
#[ignore = "writes what is kept"]
fn keep_one() {
    let into = std::env::var("JUNCTURA_KEEP").expect("JUNCTURA_KEEP");
    for (order, commits) in ORDERS {
        let store = tempfile::tempdir().unwrap();
        let packing = |datasets: &str, compression| PackingRule {
            datasets: datasets.to_owned(),
            compression,
        };
        let layout = StoreLayout {
            ages: AGES,
            commits: Some(commits),
            compression: vec![
                packing("run=b", Compression::Zstd { level: 3 }),
                packing("run=quick", Compression::Lz4),
            ],
            ..StoreLayout::default()
        };
        let schemas = [
            Schema::parse_yaml(SCHEMA).unwrap().into(),
            Schema::builtin("record").unwrap(),
        ];
        let made = Store::create_url(store.path().to_str().unwrap(), &schemas, &layout).unwrap();
        let path = store.path();
        made.add_tier(NEAR, path.join(NEAR).to_str().unwrap()).unwrap();
        let made = fill(&made);
        std::fs::remove_file(path.join("tiers/away.json")).unwrap();
        let tier = path.join("tiers/near.json");
        let text = std::fs::read_to_string(&tier).unwrap();
        let into = Path::new(&into);
        std::fs::write(into.join(format!("{VERSION}.txt")), shown(&made.snapshot().unwrap())).unwrap();
        std::fs::write(&tier, text.replace(path.to_str().unwrap(), HERE)).unwrap();
        let archive = into.join(format!("{VERSION}-{order}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.args([
            "--sort=name",
            "--mtime=@0",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "-czf",
        ]);
        let done = tar.arg(archive).arg("-C").arg(store.path()).arg(".").status();
        assert!(done.unwrap().success());
    }
}
