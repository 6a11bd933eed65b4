//! Every operation, stopped at each of its calls in turn, or failing there once. All flushed objects are then present,
//! and no others; other processes continue, and their acknowledged objects are durable; the operation succeeds when it
//! is repeated; and no leftovers remain.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Result, Schema};

use crate::data::packing::Compression;
use crate::log::{Commits, LOG_FOLDER};
use crate::maintenance::tier;
use crate::root::{StoreLayout, StoreRoot};
use crate::storage::faulty::{DiskFault, FaultyDisk, StopLoss, be_a_place};
use crate::storage::{StorageDisk, files_in};
use crate::store::Store;
use crate::tests::crash::{Shown, archive, bytes_of, clock, let_a_year_pass, let_it_be, opened, shown, sorted};

const ORDERS: [Commits; 2] = [Commits::Appended, Commits::Exclusive];
/// Each of these is at every fourth call in the gate, so that each call has one of them, and at every sixteenth without
/// `JUNCTURA_SEEDS=all`. `make soak` has all at every call.
fn stride() -> u64 {
    if crate::all_seeds() { 4 } else { 16 }
}
/// The events at a call, and their data loss.
const FAULTS: [(DiskFault, StopLoss); 4] = [
    (DiskFault::Stop, StopLoss::Nothing),
    (DiskFault::Stop, StopLoss::Unsynced),
    (DiskFault::Full, StopLoss::Nothing),
    (DiskFault::Error, StopLoss::Nothing),
];
/// Objects that others archive when they continue.
const OTHERS: u32 = 19;
/// The seed of some hundred bytes.
const SMALL: u64 = 4;
/// The seed of payloads, one of which is stored within its commit, and two in files.
const MEDIUM: u64 = 109;
/// The seed of so many that they are written before a flush.
const LARGE: u64 = 232;

/// The operation, as the command or a program runs it.
struct Verb {
    name: &'static str,
    run: fn(&Store) -> Result<()>,
    /// Whether the operation is complete, according to a reader.
    is_done: fn(&Store) -> Result<bool>,
    /// It adds one commit each time that it is done.
    adds: Option<&'static [u32]>,
}

const VERBS: [Verb; 10] = [
    Verb {
        name: "flush of what a commit has within it",
        run: |store| flush(store, &[(1, SMALL), (2, SMALL)]),
        is_done: |_| Ok(true),
        adds: Some(&[1, 2]),
    },
    Verb {
        name: "flush into data files",
        run: |store| flush(store, &[(1, SMALL), (3, MEDIUM), (6, MEDIUM)]),
        is_done: |_| Ok(true),
        adds: Some(&[1, 3, 6]),
    },
    Verb {
        name: "purge",
        run: |store| store.purge("").map(|_| ()),
        is_done: |store| Ok(store.snapshot()?.masked("")?.is_empty()),
        adds: None,
    },
    Verb {
        name: "wipe",
        run: |store| store.wipe("step=1/12/15").map(|_| ()),
        is_done: |store| Ok(store.snapshot()?.list_all("step=1/12/15")?.is_empty()),
        adds: None,
    },
    Verb {
        name: "gather",
        run: |store| store.gather(|_, _| true).map(|_| ()),
        is_done: |store| Ok(store.scattered()? == (0, 0)),
        adds: None,
    },
    Verb {
        name: "compact",
        run: |store| store.compact().map(|_| ()),
        is_done: |store| store.compact().and_then(|_| Ok(store.unneeded()?.is_empty())),
        adds: None,
    },
    Verb {
        name: "checkpoint",
        run: |store| store.checkpoint().map(|_| ()),
        is_done: |store| Ok(store.checkpoint()?.written_rows == 0),
        adds: None,
    },
    Verb {
        name: "set_schema",
        run: |store| store.set_schema(&Schema::builtin("free").unwrap()).map(|_| ()),
        is_done: |store| Ok(store.anew()?.schema(Some("free")).is_ok()),
        adds: None,
    },
    Verb {
        name: "add_tier and move_to, on the disk that stops",
        run: |store| move_to(store, "memory:here"),
        is_done: has_moved,
        adds: None,
    },
    Verb {
        name: "add_tier and move_to, elsewhere",
        run: |store| move_to(store, "memory:elsewhere"),
        is_done: has_moved,
        adds: None,
    },
];

fn flush(store: &Store, objects: &[(u32, u64)]) -> Result<()> {
    let mut writer = store.writer()?;
    for &(step, seed) in objects {
        archive(&mut writer, step, seed)?;
    }
    writer.flush().map(|_| ())
}

fn move_to(store: &Store, place: &str) -> Result<()> {
    store.add_tier("cold", place)?;
    store.move_to("step=1/15/21", "cold", |_, _| true).map(|_| ())
}

fn has_moved(store: &Store) -> Result<bool> {
    Ok(store.tiers()?.len() == 1 && store.movable("step=1/15/21", "cold")?.is_empty())
}

/// The content of these flushes.
fn brought(objects: &[(u32, u64)]) -> Shown {
    let objects = objects.iter();
    sorted(
        objects
            .map(|&(step, seed)| (step.to_string(), bytes_of(seed)))
            .collect(),
    )
}

/// Objects of both datasets, within commits of a continued log and in files, masked and removed, in an old checkpoint,
/// in a later one, and after it; and the leftovers of a crashed writer.
fn filled(commits: Commits) -> FaultyDisk {
    let (disk, store) = opened(FaultyDisk::new(1), commits);
    let store = store.unwrap();
    for step in [3, 6, 9, 12] {
        flush(&store, &[(1, SMALL), (step, MEDIUM)]).unwrap();
    }
    let is_on = commits == Commits::Exclusive || disk.list(LOG_FOLDER).unwrap().len() == 4;
    assert!(is_on, "the log has grown");
    store.checkpoint().unwrap();
    flush(&store, &[(15, MEDIUM), (18, MEDIUM), (21, MEDIUM), (16, SMALL)]).unwrap();
    store.wipe("step=3/6/9/15/18").unwrap();
    flush(&store, &[(1, SMALL), (15, MEDIUM), (16, SMALL)]).unwrap();
    let mut dead = store.writer().unwrap();
    archive(&mut dead, 6, LARGE).unwrap();
    // The process is killed without cleanup.
    _ = std::mem::ManuallyDrop::new(dead);
    let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!(checked.unnamed.len(), 1);
    let_a_year_pass();
    store.checkpoint().unwrap();
    flush(&store, &[(4, SMALL)]).unwrap();
    let_a_year_pass();
    disk.after(StopLoss::Nothing)
}

/// A store on a disk that also has its tiers.
fn open(disk: FaultyDisk) -> (Arc<FaultyDisk>, Store) {
    let disk = Arc::new(disk);
    be_a_place("here", &disk);
    let store = Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock).expect("a store that opens");
    (disk, store)
}

/// A store at one moment, from which all begin.
struct Beginning {
    at: Duration,
    disk: FaultyDisk,
    before: Vec<Shown>,
}

impl Beginning {
    fn new(commits: Commits) -> Self {
        let (disk, store) = open(filled(commits));
        let before = shown(&store).unwrap();
        Self {
            at: clock(),
            disk: disk.after(StopLoss::Nothing),
            before,
        }
    }

    fn open(&self) -> (Arc<FaultyDisk>, Store) {
        let_it_be(self.at);
        be_a_place("elsewhere", &Arc::new(FaultyDisk::new(1)));
        open(self.disk.after(StopLoss::Nothing))
    }

    /// The content after a complete operation.
    fn after(&self, verb: &Verb) -> Vec<Shown> {
        let (disk, store) = self.open();
        (verb.run)(&store).unwrap();
        assert!((verb.is_done)(&store).unwrap(), "{}", verb.name);
        let after = shown(&store).unwrap();
        let expected = match verb.name {
            "purge" | "wipe" => return after,
            _ if verb.adds.is_some() => after.last().cloned(),
            _ => None,
        };
        assert_eq!(after.len(), self.before.len() + expected.iter().len());
        assert!(after.starts_with(&self.before), "{}", verb.name);
        drop(disk);
        after
    }

    /// Runs an operation with this fault after so many calls, and then checks all consequences; returns whether it made
    /// so many calls.
    fn step(&self, verb: &Verb, after: &[Shown], calls: u64, (fault, loss): (DiskFault, StopLoss)) -> bool {
        let (mut disk, mut store) = self.open();
        // Read-only operations change nothing.
        store.snapshot().unwrap();
        disk.fault_in(calls, fault);
        let has_returned = (verb.run)(&store).is_ok();
        if disk.has_yet_to_fail() {
            assert!(has_returned);
            return false;
        }
        // The state of the write is unknown: the store is opened again.
        if disk.is_down() || store.log().is_broken() {
            (disk, store) = open(disk.after(loss));
        }
        let found = shown(&store).unwrap();
        assert!(
            found == after || found == self.before && !has_returned,
            "all or nothing"
        );
        let others_first = (calls / 4).is_multiple_of(2);
        let mut expected = found.clone();
        if others_first {
            flush(&store, &[(OTHERS, SMALL)]).unwrap();
            expected.push(brought(&[(OTHERS, SMALL)]));
            (disk, store) = open(disk.after(StopLoss::Unsynced));
            assert!(shown(&store).unwrap() == expected, "flushed objects of others");
        }
        (verb.run)(&store).unwrap();
        if verb.adds.is_some() {
            expected.extend(after.last().cloned());
        } else {
            expected = [after, &expected[found.len()..]].concat();
        }
        (disk, store) = open(disk.after(StopLoss::Unsynced));
        assert!((verb.is_done)(&store).unwrap(), "done when it is begun again");
        assert!(shown(&store).unwrap() == expected, "objects after a restart");
        clean(&disk, &store, &expected);
        true
    }
}

/// There is no damage, and no unneeded file remains.
fn clean(disk: &FaultyDisk, store: &Store, expected: &[Shown]) {
    for _ in 0..2 {
        let_a_year_pass();
        store.compact().unwrap();
    }
    let (disk, store) = open(disk.after(StopLoss::Unsynced));
    assert!(shown(&store).unwrap() == expected, "objects at the end");
    store.compact().unwrap();
    let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!(
        (checked.damaged_count, &*checked.unnamed),
        (0, &[][..]),
        "{:?}",
        checked.damaged
    );
    for folder in ["", "checkpoints", "commits", "schemas", tier::FOLDER] {
        let names = disk.list(folder).unwrap();
        let is_draft = |name: &String| name.starts_with('.') || name.starts_with("store.json.");
        assert!(!names.iter().any(is_draft), "{folder:?}: {names:?}");
    }
}

/// Runs steps with faults at each call in turn, up to the last call: each kind of fault at the given interval of calls.
fn at_each_call(name: &str, stride: u64, mut step: impl FnMut(u64, (DiskFault, StopLoss)) -> bool) {
    for (turn, fault) in FAULTS.into_iter().enumerate() {
        let mut calls = turn as u64 % stride;
        loop {
            let stepped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| step(calls, fault)));
            let Ok(goes_on) = stepped else {
                panic!("{name}: {fault:?} at call {calls}");
            };
            if !goes_on {
                break;
            }
            calls += stride;
        }
        assert!(calls > 3, "{name}: {calls}");
    }
}

fn step_through(commits: Commits, stride: u64) {
    let beginning = Beginning::new(commits);
    for verb in &VERBS {
        let after = beginning.after(verb);
        let name = format!("{}, {commits:?}", verb.name);
        at_each_call(&name, stride, |calls, fault| beginning.step(verb, &after, calls, fault));
    }
}

#[test]
fn every_verb_that_stops_at_any_call_is_done_when_it_is_begun_again() {
    step_through(ORDERS[0], stride());
}

#[test]
fn every_verb_that_stops_at_any_call_is_done_when_it_is_begun_again_where_each_commit_has_an_object() {
    step_through(ORDERS[1], stride());
}

#[test]
#[ignore = "long: make soak"]
fn soak_every_verb_with_every_fault_at_each_call() {
    for commits in ORDERS {
        step_through(commits, 1);
    }
}

#[test]
fn a_store_whose_making_stops_at_any_call_is_there_or_can_be_made_again() {
    for commits in ORDERS {
        at_each_call(&format!("{commits:?}"), stride(), |calls, fault| {
            make_in_steps(calls, commits, fault)
        });
    }
}

/// Whether it made so many calls.
fn make_in_steps(calls: u64, commits: Commits, (fault, loss): (DiskFault, StopLoss)) -> bool {
    let disk = FaultyDisk::new(calls);
    disk.fault_in(calls, fault);
    let (disk, _) = opened(disk, commits);
    if disk.has_yet_to_fail() {
        return false;
    }
    let (disk, store) = opened(disk.after(loss), commits);
    flush(&store.expect("a store that opens"), &[(OTHERS, SMALL)]).unwrap();
    let (disk, store) = open(disk.after(StopLoss::Unsynced));
    let expected = [brought(&[(OTHERS, SMALL)])];
    assert!(shown(&store).unwrap() == expected, "flushed objects");
    clean(&disk, &store, &expected);
    true
}

#[test]
fn a_store_with_data_elsewhere_can_be_made_where_a_disk_was_full() {
    let create = || {
        let layout = StoreLayout {
            data: Some("memory:full-data".to_owned()),
            ..StoreLayout::default()
        };
        Store::create_url("memory:full-root", &[Schema::builtin("free").unwrap()], &layout)
    };
    for calls in 0.. {
        let disk = Arc::new(FaultyDisk::new(calls));
        be_a_place("full-root", &disk);
        be_a_place("full-data", &Arc::new(FaultyDisk::new(1)));
        disk.fault_in(calls, DiskFault::Full);
        let made = create();
        if disk.has_yet_to_fail() {
            made.unwrap();
            assert!(calls > 3);
            break;
        }
        if made.is_err() {
            // It is there when only its name could not be made last.
            let store = create().or_else(|_| Store::open_url("memory:full-root"));
            let reached = store.and_then(|store| files_in(store.disk(), "data"));
            assert!(reached.is_ok(), "call {calls}: {reached:?}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_not_taken_for_damaged() {
    let packings = [Some(Compression::Zstd { level: 1 }), Some(Compression::Lz4), None];
    for compression in packings {
        let disk = Arc::new(FaultyDisk::new(1));
        let layout = StoreLayout {
            compression: compression.into_iter().map(Into::into).collect(),
            ..StoreLayout::default()
        };
        let schemas = [Schema::builtin("free").unwrap()];
        StoreRoot::create(&*disk, &schemas, Commits::Appended, &layout).unwrap();
        let store = Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock).unwrap();
        let mut writer = store.writer().unwrap();
        let payload: Vec<u8> = (0..400_000_u32)
            .flat_map(|at| (at / 3).wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        writer.archive([("name", "large")], &payload).unwrap();
        writer.flush().unwrap();
        let listing = store.snapshot().unwrap().list("").unwrap();
        let mut refused = 0;
        loop {
            disk.fault_in(refused, DiskFault::Error);
            let verified = listing.get(0).unwrap().verify_stored();
            if disk.has_yet_to_fail() {
                verified.unwrap();
                break;
            }
            assert_eq!(verified.unwrap_err().code(), Code::Io, "{compression:?} {refused}");
            refused += 1;
        }
        assert!(refused > 1, "{compression:?}");
    }
}

#[test]
fn a_store_is_made_though_its_mark_cannot_be_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let layout = StoreLayout {
        data: Some("memory:marked".to_owned()),
        ..StoreLayout::default()
    };
    let (mut calls, mut made) = (0, 0);
    loop {
        let disk = Arc::new(FaultyDisk::new(1));
        be_a_place("marked", &disk);
        disk.fault_in(calls, DiskFault::Full);
        let root = folder.path().join(calls.to_string());
        let created = Store::create(&root, &[Schema::builtin("free").unwrap()], layout.clone());
        if disk.has_yet_to_fail() {
            created.unwrap();
            break;
        }
        if Store::open(&root).is_ok() {
            let refused = created.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!refused.contains("owner.json: cannot be made"), "{calls}: {refused}");
            made += 1;
        }
        calls += 1;
    }
    assert!(made > 0);
}
