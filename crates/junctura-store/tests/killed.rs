//! Writers, and those who tidy up, that are killed at any moment, as real processes: what writers said was flushed is there, and nothing
//! is there in part.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use junctura_model::{Code, Given, Result, Schema};
use junctura_store::{Ages, Commits, Layout, Listing, Store};

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

/// What a started process does: it moves, gathers, writes checkpoints and compacts, on and on, and says so before it begins.
#[test]
#[ignore = "is started by a test below"]
fn tidy_until_killed() {
    let (path, _) = processes::told();
    let store = Store::open(&path).unwrap();
    let mut out = std::io::stdout().lock();
    for number in 0_u32.. {
        writeln!(out, "begun {number}").unwrap();
        let done = match number % 5 {
            0 => store.move_to("number=0", "cold", |_, _| true).map(drop),
            1 => store.checkpoint().map(drop),
            2 => store.move_to("number=0", "data", |_, _| true).map(drop),
            3 => store.gather(|_, _| true).map(drop),
            _ => store.compact().map(drop),
        };
        // Others were quicker, or what it looked at was too old meanwhile: it will be done another time.
        if let Err(error) = done {
            assert!(matches!(error.code(), Code::Expired | Code::Conflict), "{error}");
        }
    }
}

/// Another process, and what it says with this word.
fn start(test: &str, path: &Path, name: &str, word: &'static str) -> (Child, impl Iterator<Item = String>) {
    let mut child = processes::itself(test, path, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.map_while(std::result::Result::ok);
    (child, said.filter(move |line| line.starts_with(word)))
}

/// Starts a writer and kills it when it has said so many flushes; says how many it has said.
fn killed_after(path: &Path, name: &str, flushes: u32) -> u32 {
    let (mut child, mut said) = start("write_until_killed", path, name, "flushed");
    let before = said.by_ref().take(flushes as usize).count();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it was killed is still in the pipe.
    (before + said.count()) as u32
}

/// Starts somebody who tidies up, and kills it so long after it has begun that often.
fn tidies_until_killed(path: &Path, times: u32, after: Duration) {
    let (mut child, mut begun) = start("tidy_until_killed", path, "", "begun");
    let count = begun.by_ref().take(times as usize).count();
    assert_eq!(count, times as usize, "it has ended by itself");
    let then = Instant::now();
    while then.elapsed() < after {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
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

#[test]
fn whatever_was_flushed_survives_a_kill_of_those_who_tidy_up() {
    tidied(Commits::Appended);
}

#[test]
fn whatever_was_flushed_survives_a_kill_of_those_who_tidy_up_where_each_has_an_object() {
    tidied(Commits::Exclusive);
}

/// Two write and two tidy up, until each of them is killed; so it goes on.
fn tidied(commits: Commits) {
    const ROUNDS: u32 = 4;
    const LIVES: u32 = 4;
    let (folder, cold) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = folder.path();
    let layout = Layout {
        commits: Some(commits),
        ages: Ages {
            snapshot_max: Duration::from_secs(1),
            ..Ages::default()
        },
        ..Layout::default()
    };
    let schemas = [Schema::builtin("mars").unwrap()];
    let store = Store::create_url(path.to_str().unwrap(), &schemas, &layout).unwrap();
    store.add_tier("cold", cold.path().to_str().unwrap()).unwrap();
    let mut said = Vec::new();
    for round in 0..ROUNDS {
        std::thread::scope(|scope| {
            for number in 0..2 {
                scope.spawn(move || {
                    for life in 0..LIVES {
                        // Any moments, the same ones each time.
                        let moment = (round * 2 + number) * LIVES + life;
                        let after = Duration::from_micros(u64::from(moment) * 7919 % 10_000);
                        tidies_until_killed(path, 1 + moment % 11, after);
                    }
                });
            }
            let write = |number: u32| {
                let name = format!("w{round}{number}");
                scope.spawn(move || {
                    let said = killed_after(path, &name, 20 + 11 * number);
                    (name, said)
                })
            };
            let writers: Vec<_> = (0..2).map(write).collect();
            said.extend(writers.into_iter().map(|writer| writer.join().unwrap()));
        });
        for (name, flushes) in &said {
            check(&store, name, *flushes);
        }
    }
    store.compact().unwrap();
    let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!(checked.damaged_count, 0, "{:?}", checked.damaged);
    let there: u32 = said.iter().map(|(_, flushes)| flushes * OBJECTS).sum();
    assert!(store.snapshot().unwrap().list("").unwrap().len() as u32 >= there);
}

/// All flushes that were said, and at most one that was not; each whole.
fn check(store: &Store, name: &str, said: u32) {
    // What is read may have been found too long ago: then it is found anew.
    while let Err(error) = check_now(store, name, said) {
        assert_eq!(error.code(), Code::Expired, "{error}");
    }
}

fn check_now(store: &Store, name: &str, said: u32) -> Result<()> {
    let listing: Listing = store.snapshot()?.list(&format!("expver={name}"))?;
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
        assert!(object.read()? == payload(name, value("step"), value("number")));
    }
    Ok(())
}
