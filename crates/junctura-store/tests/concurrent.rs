//! Writers, readers, compaction, purges, wipes and moves at once, as real processes, in a store that keeps things for a second only:
//! whatever a reader finds is what was visible at one commit, and all that it may be told is that its snapshot is too old.
//!
//! | who | does |
//! |---|---|
//! | 8 writers | flush after flush: objects of their own, a head that each flush masks, and one that all writers mask |
//! | 4 readers | take snapshots, judge each by those before it ([`judge`]), and read old ones until they have expired |
//! | 2 movers | move objects to a tier and back, and gather what is left of mostly empty files |
//! | 2 tidiers | purge, wipe, checkpoint and compact, until nothing is left that nobody needs |

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::judge::{self, Flush, Judge, OBJECTS, payload, place};
use crate::processes;
use junctura_model::{Code, Schema};
use junctura_store::{Commits, Listing, RetentionAges, Store, StoreLayout, StoreWriter, StoredObject};

const SCHEMA: &str = r#"
name: flushes
key:
  dataset: [place]
  element: ["writer?", "flush?", "object?"]
attributes:
  place: {type: string}
  writer: {type: integer}
  flush: {type: integer}
  object: {type: integer}
  of: {type: string, doc: "The writer and the flush that it came with"}
"#;

const WRITERS: u64 = 8;
const READERS: u64 = 4;
const MOVERS: u64 = 2;
const TIDIERS: u64 = 2;
/// How long things are kept.
const AGE: Duration = Duration::from_secs(1);
/// Flushes of each writer: a few seconds, and a minute.
const FLUSHES: u64 = 30;
const SOAK_FLUSHES: u64 = 700;
/// Snapshots that a reader keeps until they expire.
const KEPT_MAX: usize = 3;
/// Objects of each that it reads in between.
const READ_AT_ONCE: usize = 20;

#[test]
fn whatever_happens_at_once_every_snapshot_is_whole() {
    story(Commits::Appended, FLUSHES);
}

#[test]
fn whatever_happens_at_once_every_snapshot_is_whole_where_each_commit_has_an_object() {
    story(Commits::Exclusive, FLUSHES);
}

#[test]
#[ignore = "long: make soak"]
fn soak_everything_at_once() {
    story(Commits::Appended, SOAK_FLUSHES);
    story(Commits::Exclusive, SOAK_FLUSHES);
}

fn story(commits: Commits, flushes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let ages = RetentionAges {
        snapshot_max: AGE,
        unflushed_max: AGE,
    };
    let layout = StoreLayout {
        ages,
        commits: Some(commits),
        ..StoreLayout::default()
    };
    let schemas = [Arc::new(Schema::parse_yaml(SCHEMA).unwrap())];
    let store = Store::create_url(path.to_str().unwrap(), &schemas, &layout).unwrap();
    let start = |role: &str, count: u64| -> Vec<Child> {
        let who = |number| format!("{role} {number} {flushes}");
        let start = |number| {
            processes::itself(take_part, path, &who(number))
                .stdout(Stdio::piped())
                .spawn()
        };
        (0..count).map(|number| start(number).unwrap()).collect()
    };
    let mut writers = start("writer", WRITERS);
    let mut others = start("reader", READERS);
    others.extend(start("mover", MOVERS));
    others.extend(start("tidier", TIDIERS));
    let written = writers.iter_mut().all(|child| child.wait().unwrap().success());
    if !written {
        // The others would wait without end.
        for child in &mut others {
            child.kill().unwrap();
        }
    }
    let done: Vec<bool> = others.iter_mut().map(|child| child.wait().unwrap().success()).collect();
    assert!(written && done.iter().all(|&success| success), "{done:?}");
    writers.iter_mut().chain(&mut others).for_each(pass_on_figures);
    let mut judge = Judge::new(WRITERS, flushes);
    let checked = loop {
        let snapshot = store.snapshot().unwrap();
        let looked = judge.look(&snapshot);
        if let Some(checked) = unless_expired(looked.and_then(|_| snapshot.check("", None, |_, _| true))) {
            break checked;
        }
    };
    assert!(judge.is_complete());
    // Who made a checkpoint that came too late has left segments.
    let data: Vec<&String> = checked
        .unnamed
        .iter()
        .filter(|file| file.starts_with("data/"))
        .collect();
    assert_eq!((checked.damaged_count, &*data), (0, &[][..]), "{:?}", checked.damaged);
}

/// Marks the line in which a started process says how much it has done.
const FIGURES: &str = "figures: ";

fn pass_on_figures(child: &mut Child) {
    let said = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    let line = said.lines().find_map(|line| line.split_once(FIGURES));
    println!("{}", line.expect("figures").1);
}

/// What a started process does.
#[test]
#[ignore = "is started by the tests above"]
fn take_part() {
    let Some((path, who)) = processes::told() else { return };
    let path = Path::new(&path);
    let [role, number, flushes]: [&str; 3] = who.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let (number, flushes) = (number.parse().unwrap(), flushes.parse().unwrap());
    match role {
        "writer" => write(path, number, flushes),
        "reader" => read(path, number, flushes),
        "mover" => relocate(path, number, flushes),
        _ => tidy(path, number, flushes),
    }
}

fn write(path: &Path, number: u64, flushes: u64) {
    let store = Store::open(path).unwrap();
    let mut writer = store.writer().unwrap();
    let mut expired = 0;
    for flush in 0..flushes {
        let flush = Flush { writer: number, flush };
        loop {
            archive(&mut writer, flush);
            match writer.flush() {
                Ok(done) => break assert_eq!(done.objects, OBJECTS + 2),
                // The machine was busy with others: nothing of it is there.
                Err(error) => assert_eq!(error.code(), Code::Expired, "{error}"),
            }
            expired += 1;
        }
    }
    println!("{FIGURES}writer {number}: {flushes} flushes, {expired} more too late");
}

fn archive(writer: &mut StoreWriter, flush: Flush) {
    let (number, of) = (&*flush.writer.to_string(), &*flush.to_string());
    let (place, in_order) = (&*place(flush.flush), &*flush.flush.to_string());
    for object in 0..OBJECTS {
        let payload = payload(flush, object);
        let object = &*object.to_string();
        let key = [
            ("place", place),
            ("writer", number),
            ("flush", in_order),
            ("object", object),
        ];
        writer.archive(key.into_iter().chain([("of", of)]), &payload).unwrap();
    }
    let head = [("place", "heads"), ("writer", number), ("of", of)];
    writer.archive(head, of.as_bytes()).unwrap();
    writer.archive([("place", "last"), ("of", of)], of.as_bytes()).unwrap();
}

fn read(path: &Path, number: u64, flushes: u64) {
    let mut store = Store::open(path).unwrap();
    let mut judge = Judge::new(WRITERS, flushes);
    let mut kept = VecDeque::new();
    let (mut next, mut read_in_the_end, mut snapshots, mut expired) = (0, 0, 0, 0);
    for turn in number.. {
        if turn.is_multiple_of(4) {
            store = Store::open(path).unwrap();
        }
        let found = judge.look(&store.snapshot().unwrap());
        snapshots += 1;
        if let Some(listing) = unless_expired(found)
            && kept.len() < KEPT_MAX
            && !listing.is_empty()
        {
            kept.push_back(listing);
        }
        let Some(oldest) = kept.front() else { continue };
        if unless_expired(read_some(oldest, &mut next)).is_none() {
            kept.pop_front();
            expired += 1;
        } else if judge.is_complete() {
            read_in_the_end += READ_AT_ONCE;
            if expired > 0 && read_in_the_end >= oldest.len() {
                break;
            }
        }
    }
    println!("{FIGURES}reader {number}: {snapshots} snapshots, {next} objects read, {expired} kept until they expired");
}

/// Reads some objects from one on, and goes on in front after the last one.
fn read_some(listing: &Listing, next: &mut usize) -> Result<(), junctura_model::Error> {
    for _ in 0..READ_AT_ONCE.min(listing.len()) {
        let object = listing.get(*next % listing.len()).unwrap();
        let bytes = object.read()?;
        assert!(bytes == judge::bytes_of(&object), "{}", object.key());
        *next += 1;
    }
    Ok(())
}

fn relocate(path: &Path, number: u64, flushes: u64) {
    let store = Store::open(path).unwrap();
    let cold = path.join("slow");
    store.add_tier("cold", cold.to_str().unwrap()).unwrap();
    let mut objects = 0;
    for turn in number..flushes + number {
        let (some, tier) = (
            format!("place={}", place(turn / 2)),
            ["cold", "data"][turn as usize % 2],
        );
        let done = match turn % 5 {
            4 => store.gather(|_, _| true),
            3 => store.move_to("", tier, |_, _| true),
            _ => store.move_to(&some, tier, |_, _| true),
        };
        if let Some(moved) = unless_expired(done) {
            assert_eq!(moved.damaged_count, 0, "{:?}", moved.damaged);
            objects += moved.objects;
        }
    }
    println!("{FIGURES}mover {number}: {objects} objects moved");
}

/// The only error that anybody is told.
fn unless_expired<T>(result: Result<T, junctura_model::Error>) -> Option<T> {
    result
        .map_err(|error| assert_eq!(error.code(), Code::Expired, "{error}"))
        .ok()
}

fn tidy(path: &Path, number: u64, flushes: u64) {
    let mut judge = Judge::new(WRITERS, flushes);
    let store = Store::open(path).unwrap();
    let (mut objects, mut files) = (0, 0);
    for turn in number.. {
        let wiped = format!("place={}", place(turn));
        let done = match turn % 4 {
            0 => store.purge("").map(|purged| objects += purged.objects),
            1 if judge::is_wiped(turn) => store.wipe(&wiped).map(|wiped| objects += wiped.objects),
            2 => Store::open(path).unwrap().checkpoint().map(|_| ()),
            _ => store.compact().map(|compacted| files += compacted.removed.len()),
        };
        unless_expired(done);
        let listing = unless_expired(judge.look(&store.snapshot().unwrap()));
        if judge.is_complete() && listing.is_some_and(|listing| is_tidy(path, &listing)) {
            break;
        }
    }
    println!("{FIGURES}tidier {number}: {objects} objects purged and wiped, {files} files removed");
}

/// Whether there is no file that nobody needs.
fn is_tidy(path: &Path, listing: &Listing) -> bool {
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(path.join(folder)).into_iter().flatten();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        entries.map(|entry| format!("{folder}/{}", name(entry))).collect()
    };
    let there: BTreeSet<String> = names("data").iter().flat_map(|dataset| names(dataset)).collect();
    // An object without bytes has no file, perhaps, though it names one.
    let all = data_files(listing.iter());
    let needed = data_files(listing.iter().filter(|object| object.bytes() > 0));
    needed.is_subset(&there) && there.is_subset(&all) && names("checkpoints").len() == 1 && {
        // Of exclusive commits, those are left in which objects lie, and those that no checkpoint covers.
        let newest = leaf(&names("checkpoints")[0]).trim_end_matches(".json").to_owned();
        let files: BTreeSet<String> = listing
            .iter()
            .map(|object| object.location().file.to_string())
            .collect();
        let mut commits = names("commits").into_iter();
        commits.all(|commit| files.contains(&commit) || *leaf(&commit) > *newest)
    }
}

fn leaf(path: &str) -> &str {
    path.rsplit_once('/').unwrap().1
}

fn data_files<'a>(objects: impl Iterator<Item = StoredObject<'a>>) -> BTreeSet<String> {
    let files = objects.map(|object| object.location().file.to_string());
    files.filter(|file| file.starts_with("data/")).collect()
}
