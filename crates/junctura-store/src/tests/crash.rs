//! The store's promises on a file system that fails, fills up and stops at any call, and loses what was not synced.
//!
//! Writers take turns in one thread; what each flush covered is noted, and whether it returned. After each stop the store is
//! opened again, and what it shows is compared: all of every flush that returned, all or nothing of every other.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use junctura_model::selector::testing::TestRandom;
use junctura_model::{Code, Given, Schema};

use crate::data::packing::{Compression, PackingRule};
use crate::log::Commits;
use crate::maintenance::relocate;
use crate::maintenance::remove::Removed;
use crate::root::{StoreLayout, StoreRoot};
use crate::storage::StorageDisk;
use crate::storage::faulty::{DiskFault, FaultyDisk, StopLoss};
use crate::store::Store;
use crate::writer::StoreWriter;

/// Scenarios of the gate; a run without `JUNCTURA_SEEDS=all` includes a few.
fn seeds() -> u64 {
    if crate::all_seeds() { 100 } else { 5 }
}
const STOPS: u64 = 4;

/// An archived object: a step, and the seed of its bytes.
type Objects = Vec<(u32, u64)>;

/// The content of a commit: steps, and their bytes.
pub(crate) type Shown = Vec<(String, Vec<u8>)>;

/// One flush that may be visible.
#[derive(Clone, Debug)]
struct Attempt {
    /// Those that have not been removed since.
    objects: Objects,
    has_returned: bool,
}

/// The operations, in order.
#[derive(Debug, Default)]
struct Past {
    attempts: Vec<Attempt>,
    /// The same without the last removal, when it is not known whether that was made.
    without_removal: Option<Vec<Attempt>>,
}

impl Past {
    fn archived(&mut self, objects: Objects, has_returned: bool) {
        self.attempts.push(Attempt { objects, has_returned });
    }
}

thread_local! {
    /// A clock that only the test moves.
    static NOW: Cell<Duration> = const { Cell::new(Duration::from_hours(500_000)) };
}

pub(crate) fn clock() -> Duration {
    NOW.get()
}

/// After this time, no file is retained.
pub(crate) fn let_a_year_pass() {
    NOW.set(NOW.get() + Duration::from_hours(24 * 365));
}

/// It is that time, again.
pub(crate) fn let_it_be(time: Duration) {
    NOW.set(time);
}

pub(crate) fn bytes_of(seed: u64) -> Vec<u8> {
    let mut random = TestRandom(seed);
    // Few are large: copying and comparing their bytes would take most of the time.
    let length = match random.below(32) {
        0..4 => 0,
        4..28 => random.below(2000),
        28..31 => random.below(80_000),
        _ => random.below(400_000),
    };
    // Half of the bytes are compressible.
    let mut bytes = random.number().to_le_bytes().repeat(length.div_ceil(16));
    while bytes.len() < length {
        bytes.extend_from_slice(&random.number().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub(crate) fn archive(writer: &mut StoreWriter, step: u32, seed: u64) -> junctura_model::Result<()> {
    let dataset = if step.is_multiple_of(3) { "0001" } else { "0002" };
    let step = step.to_string();
    let attributes = [
        ("class", "od"),
        ("expver", dataset),
        ("stream", "oper"),
        ("date", "20261120"),
        ("time", "0000"),
        ("type", "fc"),
        ("levtype", "sfc"),
        ("step", &*step),
        ("param", "2t"),
    ];
    writer.archive(
        attributes.map(|(name, value)| (name, Given::Text(value))),
        &bytes_of(seed),
    )
}

/// A store on a disk that may stop while it is made; the disk that is left, and the store, if the disk is not down.
pub(crate) fn opened(disk: FaultyDisk, commits: Commits) -> (Arc<FaultyDisk>, Option<Store>) {
    let disk = Arc::new(disk);
    let schemas = [Schema::builtin("mars").unwrap()];
    let opened = Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock).or_else(|_| {
        // Of the two datasets, one.
        let packing = PackingRule {
            datasets: "expver=0002".to_owned(),
            compression: Compression::Lz4,
        };
        let layout = StoreLayout {
            compression: vec![packing],
            ..StoreLayout::default()
        };
        StoreRoot::create(&*disk, &schemas, commits, &layout)?;
        Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock)
    });
    (disk, opened.ok())
}

/// One life of a machine: writers archive and flush until it stops.
fn live(random: &mut TestRandom, disk: &Arc<FaultyDisk>, store: &Store, past: &mut Past) {
    // Where there is no lock that a failure would leave behind, as two processes.
    let other = match store.commits() {
        Commits::Appended => Ok(store.clone()),
        Commits::Exclusive => Store::open_on(Arc::clone(disk) as Arc<dyn StorageDisk>, clock),
    };
    let Ok(other) = other else { return };
    let mut writers: Vec<(StoreWriter, Objects)> = Vec::new();
    for _ in 0..30 {
        if disk.is_down() {
            return;
        }
        if writers.len() < 3 {
            let store = if random.once_in(2) { store } else { &other };
            match store.writer() {
                Ok(writer) => writers.push((writer, Vec::new())),
                Err(_) => return,
            }
        }
        match random.below(24) {
            0 => _ = store.checkpoint(),
            1 => _ = store.compact(),
            2 if remove(random, disk, store, past).is_none() => return,
            3 => _ = relocate(random, store),
            // Earlier readers were away for a long time.
            4 => let_a_year_pass(),
            5 => _ = store.gather(|_, _| true),
            _ => {}
        }
        let at = random.below(writers.len());
        let (writer, pending) = &mut writers[at];
        for _ in 0..random.below(6) {
            let (step, seed) = (random.below(20) as u32, random.number());
            if archive(writer, step, seed).is_ok() {
                pending.push((step, seed));
            }
        }
        let flushed = writer.flush();
        let is_known = flushed.is_ok() || writer.pending() > 0 && writer.flush_is_known();
        match flushed {
            Ok(flushed) => {
                assert_eq!(flushed.objects as usize, pending.len());
                if !pending.is_empty() {
                    past.archived(std::mem::take(pending), true);
                }
            }
            // Nothing was written, and the writer retries.
            Err(_) if is_known && !disk.is_down() => {}
            Err(_) => {
                past.archived(std::mem::take(pending), false);
                writers.swap_remove(at);
            }
        }
    }
}

/// Takes out one step, or all that is masked. None: the machine has stopped, or it is not known whether that was made.
fn remove(random: &mut TestRandom, disk: &FaultyDisk, store: &Store, past: &mut Past) -> Option<()> {
    let Ok(shown) = shown(store) else {
        return (!disk.is_down()).then_some(());
    };
    settle(&mut past.attempts, &shown).unwrap();
    let before = past.attempts.clone();
    let removed = if random.once_in(2) {
        let step = random.below(20) as u32;
        for attempt in &mut past.attempts {
            attempt.objects.retain(|object| object.0 != step);
        }
        store.wipe(&format!("step={step}"))
    } else {
        let mut newest = std::collections::BTreeSet::new();
        for attempt in past.attempts.iter_mut().rev() {
            let mut objects: Objects = attempt.objects.drain(..).rev().collect();
            objects.retain(|object| newest.insert(object.0));
            attempt.objects = objects.into_iter().rev().collect();
        }
        store.purge("")
    };
    match removed {
        Ok(_) => Some(()),
        Err(_) if !disk.is_down() && !store.log().is_broken() => {
            past.attempts = before;
            Some(())
        }
        Err(_) => {
            past.without_removal = Some(before);
            None
        }
    }
}

/// Moves some objects into other files, which readers do not notice.
fn relocate(random: &mut TestRandom, store: &Store) -> junctura_model::Result<()> {
    let some = format!("step>={}", random.below(20));
    let listing = store.snapshot()?.list_all(&some)?;
    let left = random.below(30);
    let mut objects = listing.by_location();
    objects.truncate(left);
    let mut moved = crate::Moved::default();
    relocate::relocate(store, &objects, &listing, "data", &mut moved, |_, _| true)
}

/// Returns the content of a store: for each commit its objects, and their bytes.
pub(crate) fn shown(store: &Store) -> junctura_model::Result<Vec<Shown>> {
    let listing = store.snapshot()?.list_all("")?;
    let mut commits: Vec<(u64, Shown)> = Vec::new();
    for object in &listing {
        if commits.last().is_none_or(|(number, _)| *number != object.commit()) {
            commits.push((object.commit(), Vec::new()));
        }
        let step = object
            .key()
            .split_once("step=")
            .unwrap()
            .1
            .split_once(',')
            .unwrap()
            .0
            .to_owned();
        commits.last_mut().unwrap().1.push((step, object.read()?));
    }
    Ok(commits.into_iter().map(|(_, objects)| sorted(objects)).collect())
}

pub(crate) fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}

/// Determines the outcome of operations that did not return, and requires the effects of all that did.
fn check(store: &Store, past: &mut Past) {
    let shown = shown(store).unwrap();
    let without = past.without_removal.take();
    match (settle(&mut past.attempts, &shown), without) {
        (Ok(()), _) => {}
        (Err(_), Some(mut without)) => {
            settle(&mut without, &shown).unwrap();
            past.attempts = without;
        }
        (Err(wrong), None) => panic!("{wrong}"),
    }
    newest(store, &past.attempts);
}

/// Drops attempts that are not there.
fn settle(attempts: &mut Vec<Attempt>, shown: &[Shown]) -> Result<(), &'static str> {
    let mut shown = shown.iter().peekable();
    let mut settled = Vec::new();
    for attempt in &*attempts {
        let objects = attempt.objects.iter();
        let expected = sorted(
            objects
                .map(|(step, seed)| (step.to_string(), bytes_of(*seed)))
                .collect(),
        );
        let is_there = expected.is_empty() || shown.next_if_eq(&&expected).is_some();
        if attempt.has_returned && !is_there {
            return Err("a flush that returned is lost, or not whole");
        }
        if is_there {
            // A visible object stays visible.
            settled.push(Attempt {
                has_returned: true,
                ..attempt.clone()
            });
        }
    }
    if shown.next().is_some() {
        return Err("something is visible that no flush can have written");
    }
    *attempts = settled;
    Ok(())
}

/// The version of the last commit masks all others.
fn newest(store: &Store, attempts: &[Attempt]) {
    let mut newest = std::collections::BTreeMap::new();
    for (step, seed) in attempts.iter().flat_map(|attempt| &attempt.objects) {
        newest.insert(*step, *seed);
    }
    let listing = store.snapshot().unwrap().list("class=od").unwrap();
    assert_eq!(listing.len(), newest.len());
    for object in listing.by_location() {
        let key = object.key();
        let step: u32 = key
            .split_once("step=")
            .unwrap()
            .1
            .split_once(',')
            .unwrap()
            .0
            .parse()
            .unwrap();
        assert_eq!(object.read().unwrap(), bytes_of(newest[&step]), "{key}");
    }
}

fn story(seed: u64, commits: Commits) {
    let mut random = TestRandom(seed);
    let mut disk = FaultyDisk::new(random.number());
    let mut past = Past::default();
    for _ in 0..STOPS {
        let fault = match random.below(4) {
            0 => DiskFault::Full,
            1 => DiskFault::Error,
            _ => DiskFault::Stop,
        };
        disk.fault_in(random.below(600) as u64, fault);
        let (shared, store) = opened(disk, commits);
        if let Some(store) = &store {
            live(&mut random, &shared, store, &mut past);
        }
        let loss = if random.once_in(2) {
            StopLoss::Nothing
        } else {
            StopLoss::Unsynced
        };
        disk = shared.after(loss);
        let (shared, store) = opened(disk, commits);
        check(&store.expect("a store that opens"), &mut past);
        // An object that a reader has seen stays visible, even without further writes and after a power failure.
        disk = shared.after(StopLoss::Unsynced);
        let (shared, store) = opened(disk, commits);
        check(&store.expect("a store that opens"), &mut past);
        disk = shared.after(StopLoss::Nothing);
        if random.once_in(4) {
            disk = clean(disk, &mut random, &mut past);
        }
    }
}

/// Much later, all leftovers are unneeded; compaction removes them, and may be interrupted, too.
fn clean(disk: FaultyDisk, random: &mut TestRandom, past: &mut Past) -> FaultyDisk {
    let_a_year_pass();
    disk.fault_in(random.below(200) as u64, DiskFault::Stop);
    let disk = Arc::new(disk);
    if let Ok(store) = Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock) {
        let _ = store.compact();
    }
    let_a_year_pass();
    let disk = Arc::new(disk.after(StopLoss::Unsynced));
    let store = Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock).expect("a store that opens");
    store.compact().unwrap();
    check(&store, past);
    let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!((checked.damaged_count, checked.unnamed.len()), (0, 0));
    // The newest checkpoint, and the previous one, from which a process may still start.
    assert!(disk.list("checkpoints").unwrap().len() <= 2);
    disk.after(StopLoss::Nothing)
}

#[test]
fn no_flush_is_lost_or_seen_in_part() {
    stories(0..seeds(), Commits::Appended);
}

#[test]
fn no_flush_is_lost_or_seen_in_part_where_each_has_an_object() {
    stories(0..seeds(), Commits::Exclusive);
}

fn stories(seeds: std::ops::Range<u64>, commits: Commits) {
    for seed in seeds {
        let result = std::panic::catch_unwind(|| story(seed, commits));
        assert!(
            result.is_ok(),
            "{commits:?}, replay with: JUNCTURA_SEED={seed} cargo test -p junctura-store one_story -- --ignored"
        );
    }
}

#[test]
#[ignore = "for a seed that is given"]
fn one_story() {
    let seed = std::env::var("JUNCTURA_SEED").expect("JUNCTURA_SEED");
    let seed = seed.parse().expect("a number");
    story(seed, Commits::Appended);
    story(seed, Commits::Exclusive);
}

/// Fresh seeds, from `JUNCTURA_SEED` on or from the clock.
#[test]
#[ignore = "long and random: make soak"]
fn soak_fresh_seeds() {
    let given = std::env::var("JUNCTURA_SEED").ok().and_then(|text| text.parse().ok());
    let first: u64 = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |since| since.as_secs() << 20)
    });
    println!("JUNCTURA_SEED={first}");
    stories(first..first + 33 * seeds(), Commits::Appended);
    stories(first..first + 33 * seeds(), Commits::Exclusive);
}

/// A writer crashes at any call while it continues the log in another file; a writer that continues there, and gets an
/// acknowledgement, is correct.
#[test]
fn nobody_goes_on_behind_a_file_that_may_not_last() {
    let small = (0..10_000)
        .find(|&seed| (40_000..50_000).contains(&bytes_of(seed).len()))
        .unwrap();
    let mut went_on = 0;
    for stop_at in 0..60 {
        let (disk, store) = opened(FaultyDisk::new(stop_at), Commits::Appended);
        let mut writer = store.unwrap().writer().unwrap();
        let mut flush = |step| archive(&mut writer, step, small).and_then(|()| writer.flush());
        // One more is too much for the file.
        while disk.len("log/00000000000000000001").unwrap() < 80_000 {
            flush(0).unwrap();
        }
        disk.fault_in(stop_at, DiskFault::Stop);
        let has_gone_on = flush(0).is_ok();
        // It may have stopped when only the mark was to be noted, without which nothing is lost.
        assert!(has_gone_on || disk.is_down());
        // The machine is still there.
        let (disk, other) = opened(disk.after(StopLoss::Nothing), Commits::Appended);
        let mut writer = other.unwrap().writer().unwrap();
        archive(&mut writer, 1, small).unwrap();
        let commit = writer.flush().unwrap().commit;
        went_on += u32::from(!has_gone_on && disk.list("log").unwrap().len() > 2);
        for _ in 0..4 {
            let (_, left) = opened(disk.after(StopLoss::Unsynced), Commits::Appended);
            let snapshot = left.unwrap().snapshot().unwrap();
            let found = snapshot.list("step=1").unwrap();
            assert_eq!(
                (snapshot.commit(), found.len()),
                (commit, 1),
                "stopped at call {stop_at}"
            );
            found.get(0).unwrap().read().unwrap();
        }
    }
    assert!(went_on > 5, "{went_on}");
}

#[test]
fn compaction_removes_what_nobody_needs() {
    removes_what_nobody_needs(Commits::Appended);
    removes_what_nobody_needs(Commits::Exclusive);
}

fn removes_what_nobody_needs(commits: Commits) {
    let (disk, store) = opened(FaultyDisk::new(1), commits);
    let store = store.unwrap();
    let names = |folder: &str| disk.list(folder).unwrap().len();
    let mut dead = store.writer().unwrap();
    let mut seeds = 0..;
    while names("data") == 0 {
        archive(&mut dead, 0, seeds.next().unwrap()).unwrap();
    }
    // The process is killed without cleanup.
    _ = std::mem::ManuallyDrop::new(dead);
    let mut writer = store.writer().unwrap();
    for step in 0..20 {
        archive(&mut writer, step % 5, 1).unwrap();
        writer.flush().unwrap();
        store.compact().unwrap();
    }
    assert_eq!(
        (names("checkpoints"), names("data")),
        (20, 1),
        "readers may still need them"
    );
    let_a_year_pass();
    let compacted = store.compact().unwrap();
    assert_eq!((names("checkpoints"), names("data")), (1, 0), "{compacted:?}");
    assert_eq!(names("segments"), compacted.checkpoint.segments);
    assert_eq!(compacted.checkpoint.rows, 20);
}

#[test]
fn a_disk_that_is_full_at_any_call_of_a_compaction_loses_nothing() {
    for commits in [Commits::Appended, Commits::Exclusive] {
        let calls = (0..).take_while(|&calls| full_while_compacting(calls, commits));
        assert!(calls.count() > 20, "{commits:?}");
    }
}

/// Whether it made so many calls.
fn full_while_compacting(calls: u64, commits: Commits) -> bool {
    let (disk, store) = opened(FaultyDisk::new(calls), commits);
    let (store, mut past) = (store.unwrap(), Past::default());
    let mut writer = store.writer().unwrap();
    for step in 0..6 {
        // In a file, or within its commit.
        let objects = vec![(step, if step == 1 { 7 } else { 12 }), (step % 3, 11)];
        for &(step, seed) in &objects {
            archive(&mut writer, step, seed).unwrap();
        }
        writer.flush().unwrap();
        past.archived(objects, true);
        if step % 3 == 0 {
            store.checkpoint().unwrap();
        }
    }
    let_a_year_pass();
    disk.fault_in(calls, DiskFault::Full);
    let compacted = store.compact();
    if disk.has_yet_to_fail() {
        compacted.unwrap();
        return false;
    }
    let another = || Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock).unwrap();
    check(&store, &mut past);
    check(&another(), &mut past);
    // There is room again.
    for store in [&store, &another()] {
        let_a_year_pass();
        store.compact().unwrap();
        check(store, &mut past);
    }
    assert_eq!(disk.list("checkpoints").unwrap().len(), 1);
    let (_, store) = opened(disk.after(StopLoss::Unsynced), commits);
    check(&store.unwrap(), &mut past);
    true
}

#[test]
fn bytes_that_were_removed_go_when_no_snapshot_can_need_them() {
    let (disk, store) = opened(FaultyDisk::new(1), Commits::Appended);
    let store = store.unwrap();
    let data = |folder: &str| {
        let datasets = disk.list(folder).unwrap();
        datasets
            .iter()
            .map(|name| disk.list(&format!("data/{name}")).unwrap().len())
            .sum::<usize>()
    };
    let large = (0..100).find(|&seed| bytes_of(seed).len() > 100_000).unwrap();
    let mut writer = store.writer().unwrap();
    // One file each, since they are of two datasets.
    archive(&mut writer, 3, large).unwrap();
    archive(&mut writer, 4, large).unwrap();
    writer.flush().unwrap();
    let before = store.snapshot().unwrap();
    assert_eq!(store.wipe("step=3").unwrap().objects, 1);
    store.compact().unwrap();
    assert_eq!(before.list("").unwrap().len(), 2);
    assert_eq!(
        before.list("step=3").unwrap().iter().next().unwrap().read().unwrap(),
        bytes_of(large)
    );
    // Another one that opens the store knows it, too, from the checkpoint alone.
    let_a_year_pass();
    let other = Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock).unwrap();
    let removed = other.compact().unwrap().removed;
    assert_eq!(
        removed.iter().filter(|file| file.starts_with("data/")).count(),
        1,
        "{removed:?}"
    );
    assert_eq!(data("data"), 1);
    assert_eq!(before.list("").unwrap_err().code(), Code::Expired);
    // The writer does not continue in a file that was removed.
    archive(&mut writer, 3, large).unwrap();
    writer.flush().unwrap();
    let listing = other.snapshot().unwrap().list("").unwrap();
    assert_eq!(listing.len(), 2);
    assert!(listing.iter().all(|object| object.read().unwrap() == bytes_of(large)));
    assert_eq!(data("data"), 2);
}

#[test]
fn rows_that_were_removed_are_in_no_file_of_a_checkpoint() {
    rows_go_from_checkpoints(Commits::Appended);
    rows_go_from_checkpoints(Commits::Exclusive);
}

fn rows_go_from_checkpoints(commits: Commits) {
    let (disk, store) = opened(FaultyDisk::new(1), commits);
    let store = store.unwrap();
    let mut writer = store.writer().unwrap();
    for step in 0..40 {
        archive(&mut writer, step % 8, 2).unwrap();
        writer.flush().unwrap();
    }
    store.checkpoint().unwrap();
    assert_eq!(store.purge("step=0/1").unwrap().objects, 8);
    assert_eq!(
        store.purge("step=0/1").unwrap(),
        Removed::default(),
        "nothing is left to remove"
    );
    assert_eq!(store.checkpoint().unwrap().rows, 32);
    let other = Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock).unwrap();
    assert_eq!(other.snapshot().unwrap().list_all("").unwrap().len(), 32);
    // Rows keep their numbers, independent of the reader.
    archive(&mut writer, 9, 2).unwrap();
    writer.flush().unwrap();
    assert_eq!(other.wipe("step=7/9").unwrap().objects, 6);
    for store in [
        &store,
        &other,
        &Store::open_on(Arc::clone(&disk) as Arc<dyn StorageDisk>, clock).unwrap(),
    ] {
        let snapshot = store.snapshot().unwrap();
        assert_eq!(
            (snapshot.list_all("").unwrap().len(), snapshot.list("").unwrap().len()),
            (27, 7)
        );
    }
    store.wipe("").unwrap();
    assert_eq!(store.checkpoint().unwrap().rows, 0);
    assert!(other.snapshot().unwrap().list_all("").unwrap().is_empty());
}

/// The same short story, stopped at each call in turn.
#[test]
fn a_stop_at_any_call_of_one_flush_leaves_all_or_nothing() {
    stop_at_any_call(Commits::Appended);
    stop_at_any_call(Commits::Exclusive);
}

fn stop_at_any_call(commits: Commits) {
    for (small, loss) in [
        (true, StopLoss::Nothing),
        (true, StopLoss::Unsynced),
        (false, StopLoss::Nothing),
        (false, StopLoss::Unsynced),
    ] {
        let mut calls = 0;
        loop {
            let (disk, store) = opened(FaultyDisk::new(calls), commits);
            let store = store.unwrap();
            let mut past = Past::default();
            let mut writer = store.writer().unwrap();
            archive(&mut writer, 1, 2).unwrap();
            writer.flush().unwrap();
            past.archived(vec![(1, 2)], true);
            let seeds = if small { [11, 12, 13] } else { [7, 8, 9] };
            disk.fault_in(calls, DiskFault::Stop);
            let archived = seeds.iter().all(|&seed| archive(&mut writer, 2, seed).is_ok());
            let has_returned = archived && writer.flush().is_ok();
            if archived {
                past.archived(seeds.map(|seed| (2, seed)).into(), has_returned);
            }
            let has_stopped = disk.is_down();
            let (_, store) = opened(disk.after(loss), commits);
            check(&store.unwrap(), &mut past);
            if !has_stopped {
                break;
            }
            calls += 1;
        }
        assert!(calls > 3, "{calls}");
    }
}
