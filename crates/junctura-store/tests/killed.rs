//! Writers that are killed at any moment, as real processes: what they said was flushed is there, and nothing is there in part.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use junctura_model::{Given, Schema};
use junctura_store::{Commits, Layout, Store};

mod processes;

const OBJECTS: u32 = 3;

fn payload(writer: &str, flush: u32, object: u32) -> Vec<u8> {
    let word = format!("{writer} {flush} {object} ");
    // Within commits, and in files.
    let length = if flush.is_multiple_of(3) { 40_000 * object } else { 100 };
    word.bytes().cycle().take(length as usize).collect()
}

/// What a started process does: it flushes on and on, and says so each time.
#[test]
#[ignore = "is started by the test below"]
fn write_until_killed() {
    let (path, name) = processes::told();
    let store = Store::open(&path).unwrap();
    let mut writer = store.writer().unwrap();
    let mut out = std::io::stdout().lock();
    for flush in 0.. {
        for object in 0..OBJECTS {
            let (step, number) = (flush.to_string(), object.to_string());
            let attributes = [
                ("class", "od"),
                ("expver", &name),
                ("stream", "enfo"),
                ("date", "20261120"),
                ("time", "0000"),
                ("type", "pf"),
                ("levtype", "sfc"),
                ("step", &step),
                ("number", &number),
                ("param", "2t"),
            ];
            let given = attributes.map(|(name, value)| (name, Given::Text(value)));
            writer.archive(given, &payload(&name, flush, object)).unwrap();
        }
        writer.flush().unwrap();
        writeln!(out, "flushed {flush}").unwrap();
    }
}

/// Starts a writer and kills it when it has said so many flushes; says how many it has said.
fn killed_after(path: &Path, name: &str, flushes: u32) -> u32 {
    let mut child = processes::itself("write_until_killed", path, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = lines.map_while(Result::ok).filter(|line| line.starts_with("flushed"));
    let before = said.by_ref().take(flushes as usize).count();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it was killed is still in the pipe.
    (before + said.count()) as u32
}

#[test]
fn whatever_was_flushed_survives_a_kill() {
    survives(Commits::Appended);
}

#[test]
fn whatever_was_flushed_survives_a_kill_where_each_has_an_object() {
    survives(Commits::Exclusive);
}

fn survives(commits: Commits) {
    const ROUNDS: u32 = 6;
    const WRITERS: u32 = 3;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let layout = Layout {
        commits: Some(commits),
        ..Layout::default()
    };
    let schemas = [Schema::builtin("mars").unwrap()];
    drop(Store::create_url(path.to_str().unwrap(), &schemas, &layout).unwrap());
    let reader = Store::open(path).unwrap();
    for round in 0..ROUNDS {
        let said: Vec<(String, u32)> = std::thread::scope(|scope| {
            let start = |number: u32| {
                let name = format!("w{round}{number}");
                scope.spawn(move || {
                    let said = killed_after(path, &name, 5 + 20 * round + 7 * number);
                    (name, said)
                })
            };
            let writers: Vec<_> = (0..WRITERS).map(start).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        for store in [&reader, &Store::open(path).unwrap()] {
            for (name, flushes) in &said {
                check(store, name, *flushes);
            }
        }
    }
    let checked = reader.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!(checked.damaged_count, 0, "{:?}", checked.damaged);
}

/// All flushes that were said, and at most one that was not; each whole.
fn check(store: &Store, name: &str, said: u32) {
    let listing = store.snapshot().unwrap().list(&format!("expver={name}")).unwrap();
    let count = listing.len() as u32;
    assert!(count.is_multiple_of(OBJECTS), "{name}: a flush in part");
    let flushes = count / OBJECTS;
    assert!(
        flushes == said || flushes == said + 1,
        "{name}: {said} were said, {flushes} are there"
    );
    for object in listing.by_location() {
        let schema = object.schema();
        let value = |name: &str| -> u32 { object.value(schema.find(name).unwrap()).unwrap().parse().unwrap() };
        assert!(object.read().unwrap() == payload(name, value("step"), value("number")));
    }
}
