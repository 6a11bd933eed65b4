//! Old objects of exclusive commits are removed. A process that was absent, slow or suspended neither takes a number
//! twice, nor misses later commits, nor commits files that others have removed meanwhile.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use junctura_model::selector::testing::TestRandom;
use junctura_model::{Code, Error, Result, Schema};

use crate::log::{COMMITS_FOLDER, Commits, object_number};
use crate::root::{RetentionAges, StoreRoot};
use crate::storage::{FileDraft, MemoryDisk, StorageDisk, StorageFile};
use crate::store::Store;
use crate::writer::StoreWriter;

const AGE: Duration = Duration::from_secs(1000);

thread_local! {
    /// A clock that only the test moves.
    static NOW: Cell<Duration> = const { Cell::new(Duration::from_hours(500_000)) };
}

fn clock() -> Duration {
    NOW.get()
}

fn wait(time: Duration) {
    NOW.set(NOW.get() + time);
}

/// A concurrent action.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// A disk on which one process is suspended at one call, while others continue.
#[derive(Default)]
struct Stopped {
    disk: MemoryDisk,
    /// Before a commit is written beside its place.
    before_stage: Mutex<Option<Meanwhile>>,
    before_publish: Mutex<Option<Meanwhile>>,
    after_publish: Mutex<Option<Meanwhile>>,
    /// Before a file of this name is opened.
    before_open: Mutex<Option<(String, Meanwhile)>>,
}

impl std::fmt::Debug for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.disk.fmt(f)
    }
}

impl Stopped {
    fn is_commit(path: &str) -> bool {
        object_number(path).is_some()
    }

    fn stop(meanwhile: &Mutex<Option<Meanwhile>>) {
        let meanwhile = meanwhile.lock().unwrap().take();
        if let Some(happens) = meanwhile {
            happens();
        }
    }
}

impl StorageDisk for Stopped {
    fn create(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.disk.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn StorageFile>> {
        let meanwhile = self.before_open.lock().unwrap().take_if(|(name, _)| name == path);
        if let Some((_, happens)) = meanwhile {
            happens();
        }
        self.disk.open(path)
    }

    fn stage(&self, draft: &FileDraft) -> io::Result<()> {
        if draft.beside.starts_with(COMMITS_FOLDER) {
            Self::stop(&self.before_stage);
        }
        self.disk.stage(draft)
    }

    fn publish(&self, draft: &FileDraft, to: &str) -> io::Result<()> {
        if !Self::is_commit(to) {
            return self.disk.publish(draft, to);
        }
        Self::stop(&self.before_publish);
        let published = self.disk.publish(draft, to);
        Self::stop(&self.after_publish);
        published
    }

    fn discard(&self, draft: &FileDraft) {
        self.disk.discard(draft);
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn modified(&self, path: &str) -> io::Result<Duration> {
        self.disk.modified(path)
    }

    fn uri(&self, path: &str) -> String {
        self.disk.uri(path)
    }

    fn sync_names(&self, folder: &str) -> io::Result<()> {
        self.disk.sync_names(folder)
    }
}

fn place() -> Arc<Stopped> {
    place_with(Commits::Exclusive)
}

fn place_with(commits: Commits) -> Arc<Stopped> {
    let disk = Stopped {
        disk: MemoryDisk::with_clock(clock),
        ..Stopped::default()
    };
    let ages = RetentionAges {
        snapshot_max: AGE,
        unflushed_max: AGE,
    };
    let schemas = [Schema::builtin("free").unwrap()];
    StoreRoot::create(&disk, &schemas, commits, &ages.into()).unwrap();
    Arc::new(disk)
}

fn open(disk: &Arc<Stopped>) -> Store {
    Store::open_on(Arc::clone(disk) as Arc<dyn StorageDisk>, clock).unwrap()
}

/// Objects that are large according to their name are in a separate file.
fn bytes_of(name: &str) -> Vec<u8> {
    let times = if name.starts_with("large") { 14_000 } else { 1 };
    name.repeat(times).into_bytes()
}

fn try_write(writer: &mut StoreWriter, name: &str) -> Result<u64> {
    writer.archive([("name", name)], &bytes_of(name)).unwrap();
    writer.flush().map(|flushed| flushed.commit)
}

fn write(writer: &mut StoreWriter, name: &str) -> u64 {
    try_write(writer, name).unwrap()
}

/// Names, and their commits. Each has the bytes that it was written with.
fn try_shown(store: &Store) -> Result<BTreeMap<String, u64>> {
    let listing = store.snapshot()?.list("")?;
    let one = |object: crate::StoredObject<'_>| {
        let key = object.key();
        let name = key.split_once("name=").unwrap().1.trim_end_matches('}').to_owned();
        assert!(object.read()? == bytes_of(&name), "{name}");
        Ok((name, object.commit()))
    };
    listing.iter().map(one).collect()
}

fn shown(store: &Store) -> BTreeMap<String, u64> {
    try_shown(store).unwrap()
}

fn objects(disk: &Arc<Stopped>) -> Vec<u64> {
    let names = disk.list(COMMITS_FOLDER).unwrap();
    let numbers = names
        .iter()
        .filter_map(|name| object_number(&format!("{COMMITS_FOLDER}/{name}")));
    numbers.collect()
}

/// Compacts every day.
fn compact_for(store: &Store, time: Duration) {
    let steps = 10;
    for _ in 0..steps {
        wait(time / steps);
        store.compact().unwrap();
    }
}

/// Removes unneeded files, as slowly as permitted.
fn cut(store: &Store) {
    store.gather(|_, _| true).unwrap();
    compact_for(store, 3 * AGE);
}

fn is_whole(store: &Store) {
    let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!((checked.damaged_count, checked.unnamed.len()), (0, 0), "{checked:?}");
}

#[test]
fn whoever_was_away_finds_all_and_takes_no_number_twice() {
    for stays in [false, true] {
        for away in [0, 1, 9, 10, 11, 15, 19, 20, 21, 25, 30, 31, 50] {
            let disk = place();
            let (store, reader) = (open(&disk), open(&disk));
            let mut writer = store.writer().unwrap();
            let mut away_writer = open(&disk).writer().unwrap();
            write(&mut away_writer, "first");
            assert_eq!(shown(&reader).len(), 1);
            for number in 0..10 {
                write(&mut writer, &format!("{number}"));
            }
            if !stays {
                store.gather(|_, _| true).unwrap();
            }
            if stays {
                // One object has no rows left, and precedes others that have rows.
                store.wipe("name=0").unwrap();
            }
            store.checkpoint().unwrap();
            compact_for(&store, away * AGE / 10);
            let all = shown(&store);
            let last = store.snapshot().unwrap().commit();
            assert_eq!(shown(&reader), all, "away for {away}");
            assert_eq!(write(&mut away_writer, "away"), last + 1, "away for {away}");
            assert_eq!(shown(&reader).get("away"), Some(&(last + 1)));
            assert_eq!(shown(&reader), shown(&open(&disk)));
            assert_eq!(write(&mut open(&disk).writer().unwrap(), "fresh"), last + 2);
            is_whole(&reader);
            let left = objects(&disk);
            if away > 25 {
                assert!(!left.contains(&2), "{left:?}");
            }
            if away < 20 {
                assert_eq!(left.len() as u64, last + 2, "too early");
            }
        }
    }
}

#[test]
fn nothing_is_left_of_old_commits_that_were_gathered() {
    let disk = place();
    let store = open(&disk);
    let mut writer = store.writer().unwrap();
    for round in 0..5 {
        for number in 0..50 {
            write(&mut writer, &format!("{round}-{number}"));
        }
        cut(&store);
        let newest = crate::catalogue::checkpoint::newest_commit(store.disk()).unwrap();
        assert!(objects(&disk).into_iter().all(|number| number > newest));
        assert!(store.unneeded().unwrap().is_empty());
        assert_eq!(shown(&store).len(), 50 * (round + 1));
        // A process with a very old position would not detect the loss.
        write(&mut writer, &format!("{round}-0"));
        store.log().check(1).unwrap();
        assert_eq!(shown(&open(&disk)), shown(&store));
        is_whole(&store);
    }
}

/// Others take the number that a writer is about to take, and the object is removed again before the writer continues.
fn take_and_cut(disk: &Arc<Stopped>) -> Meanwhile {
    let disk = Arc::clone(disk);
    Box::new(move || {
        let store = open(&disk);
        write(&mut store.writer().unwrap(), "other");
        cut(&store);
    })
}

#[test]
fn who_was_stopped_before_it_took_a_number_does_not_say_that_it_has_it() {
    let disk = place();
    let (store, reader) = (open(&disk), open(&disk));
    let mut writer = store.writer().unwrap();
    write(&mut writer, "first");
    assert_eq!(shown(&reader).len(), 1);
    *disk.before_publish.lock().unwrap() = Some(take_and_cut(&disk));
    let error = try_write(&mut writer, "stray").unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert_eq!(objects(&disk), [2]);
    // Its remains are invisible.
    for other in [&reader, &open(&disk), &store] {
        assert_eq!(shown(other).into_keys().collect::<Vec<_>>(), ["first", "other"]);
        is_whole(other);
    }
    let last = reader.snapshot().unwrap().commit();
    let mut writer = open(&disk).writer().unwrap();
    assert_eq!(write(&mut writer, "again"), last + 1);
    let removed = reader.compact().unwrap().removed;
    assert!(removed.contains(&format!("{COMMITS_FOLDER}/{:020}", 2)), "{removed:?}");
    assert_eq!(shown(&reader).len(), 3);
}

#[test]
fn whoever_was_away_does_not_believe_what_nobody_reads() {
    let disk = place();
    let (store, reader) = (open(&disk), open(&disk));
    let mut writer = store.writer().unwrap();
    write(&mut writer, "first");
    write(&mut writer, "second");
    assert_eq!(shown(&reader).len(), 2);
    let other = Arc::clone(&disk);
    let meanwhile = move || {
        // A commit without rows, and the last one.
        let store = open(&other);
        store.wipe("name=second").unwrap();
        store.checkpoint().unwrap();
        compact_for(&store, 3 * AGE);
    };
    *disk.before_publish.lock().unwrap() = Some(Box::new(meanwhile));
    assert_eq!(try_write(&mut writer, "stray").unwrap_err().code(), Code::Unavailable);
    assert!(objects(&disk).contains(&3));
    for other in [&reader, &store, &open(&disk)] {
        assert_eq!(shown(other).into_keys().collect::<Vec<_>>(), ["first"]);
    }
}

#[test]
fn who_took_long_is_told_that_it_has_its_number_where_that_is_sure() {
    let disk = place();
    let mut writer = open(&disk).writer().unwrap();
    write(&mut writer, "first");
    let other = Arc::clone(&disk);
    let meanwhile = move || {
        wait(AGE * 3 / 2);
        open(&other).checkpoint().unwrap();
    };
    *disk.after_publish.lock().unwrap() = Some(Box::new(meanwhile));
    assert_eq!(write(&mut writer, "second"), 2);
    assert_eq!(write(&mut writer, "third"), 3);
}

#[test]
fn who_was_stopped_commits_nothing_that_others_have_removed() {
    for commits in [Commits::Appended, Commits::Exclusive] {
        for (stop, is_in_time) in [(9, true), (11, false), (30, false)] {
            let disk = place_with(commits);
            let reader = open(&disk);
            let mut writer = open(&disk).writer().unwrap();
            let other = Arc::clone(&disk);
            let meanwhile: Meanwhile = Box::new(move || compact_for(&open(&other), stop * AGE / 10));
            // Behind the last look of the writer itself.
            match commits {
                Commits::Appended => {
                    let log = "log/00000000000000000001".to_owned();
                    *disk.before_open.lock().unwrap() = Some((log, meanwhile));
                }
                Commits::Exclusive => *disk.before_stage.lock().unwrap() = Some(meanwhile),
            }
            let written = try_write(&mut writer, "large");
            let expected = if is_in_time { Ok(1) } else { Err(Code::Expired) };
            assert_eq!(written.map_err(|error| error.code()), expected, "{commits:?} {stop}");
            assert_eq!(shown(&reader).len(), usize::from(is_in_time));
            // No later write contains these objects.
            let next = write(&mut writer, "large-again");
            assert_eq!(next, 1 + u64::from(is_in_time));
            assert_eq!(shown(&reader).get("large-again"), Some(&next));
            let checked = open(&disk).snapshot().unwrap().check("", None, |_, _| true).unwrap();
            assert_eq!(checked.damaged_count, 0, "{checked:?}");
        }
    }
}

#[test]
fn who_was_stopped_while_it_committed_does_not_say_that_all_is_there() {
    let disk = place();
    let mut writer = open(&disk).writer().unwrap();
    write(&mut writer, "first");
    let other = Arc::clone(&disk);
    let meanwhile = move || compact_for(&open(&other), 3 * AGE);
    *disk.before_publish.lock().unwrap() = Some(Box::new(meanwhile));
    let error = try_write(&mut writer, "large").unwrap_err();
    assert_eq!((error.code(), writer.flush_is_known()), (Code::Unavailable, false));
    let checked = open(&disk).snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!((checked.objects, checked.damaged_count), (2, 1), "{checked:?}");
}

#[test]
fn who_begins_while_others_go_on_finds_all() {
    for (opened, writes) in [(4, false), (6, false), (8, false), (9, false), (8, true), (9, true)] {
        let disk = place();
        let store = open(&disk);
        let mut writer = store.writer().unwrap();
        for number in 1..9 {
            write(&mut writer, &number.to_string());
            if number == 3 {
                store.checkpoint().unwrap();
            }
        }
        let other = Arc::clone(&disk);
        let meanwhile = move || {
            let store = open(&other);
            write(&mut store.writer().unwrap(), "other");
            cut(&store);
        };
        let name = format!("{COMMITS_FOLDER}/{opened:020}");
        *disk.before_open.lock().unwrap() = Some((name, Box::new(meanwhile)));
        let late = open(&disk);
        if writes {
            let mut writer = late.writer().unwrap();
            // When it has found where to write, it is too old.
            assert_eq!(try_write(&mut writer, "late").unwrap_err().code(), Code::Expired);
            let commit = write(&mut writer, "late");
            assert_eq!(shown(&late).get("late"), Some(&commit));
        }
        let number = late.snapshot().unwrap().commit();
        assert_eq!(number, open(&disk).snapshot().unwrap().commit(), "{opened}");
        assert_eq!(shown(&late), shown(&open(&disk)));
        assert!(disk.before_open.lock().unwrap().is_none());
    }
}

#[test]
fn who_was_stopped_after_it_took_a_number_has_lost_nothing() {
    for (stop, others_read, is_told) in [(9, true, true), (30, false, true), (30, true, false)] {
        let disk = place();
        let store = open(&disk);
        let mut writer = store.writer().unwrap();
        write(&mut writer, "first");
        let other = Arc::clone(&disk);
        let meanwhile = move || {
            if others_read {
                cut(&open(&other));
                // Times are those of the writer.
                NOW.set(NOW.get().checked_sub(3 * AGE).unwrap());
            }
            wait(stop * AGE / 10);
        };
        *disk.after_publish.lock().unwrap() = Some(Box::new(meanwhile));
        let written = try_write(&mut writer, "second");
        let expected = if is_told { Ok(2) } else { Err(Code::Unavailable) };
        assert_eq!(written.map_err(|error| error.code()), expected);
        assert_eq!(shown(&open(&disk)).get("second"), Some(&2), "stopped for {stop}");
    }
}

#[test]
fn who_reads_for_long_finds_all() {
    for opened in [2, 3, 8, 9] {
        let disk = place();
        let (store, reader) = (open(&disk), open(&disk));
        let mut writer = store.writer().unwrap();
        write(&mut writer, "first");
        shown(&reader);
        for number in 0..8 {
            write(&mut writer, &number.to_string());
        }
        for reader in [&reader, &open(&disk)] {
            let other = Arc::clone(&disk);
            let meanwhile = move || {
                let store = open(&other);
                write(&mut store.writer().unwrap(), &format!("{:?}", clock()));
                cut(&store);
            };
            let name = format!("{COMMITS_FOLDER}/{opened:020}");
            *disk.before_open.lock().unwrap() = Some((name, Box::new(meanwhile)));
            let snapshot = reader.snapshot().unwrap();
            assert_eq!(snapshot.commit(), open(&disk).snapshot().unwrap().commit());
            assert_eq!(shown(reader), shown(&open(&disk)));
        }
    }
}

#[test]
fn what_is_gone_and_in_no_checkpoint_is_told() {
    for commits in [2, 9] {
        let disk = place();
        let store = open(&disk);
        let mut writer = store.writer().unwrap();
        for number in 0..9 {
            write(&mut writer, &number.to_string());
        }
        store.wipe("").unwrap();
        let gone = format!("{COMMITS_FOLDER}/{commits:020}");
        disk.remove(&gone).unwrap();
        let opened = open(&disk);
        for _ in 0..2 {
            let error = opened.snapshot().unwrap_err();
            assert_eq!((error.code(), error.subject()), (Code::Corrupt, &*gone));
        }
        let snapshot = opened.until_damage().snapshot().unwrap();
        assert_eq!(snapshot.commit(), commits - 1);
        assert_eq!(snapshot.damage().unwrap().subject(), gone);
        assert!(snapshot.check("", None, |_, _| true).unwrap().damaged_count > 0);
    }
}

/// Several readers and writers, each suspended at random, and a compaction.
struct Crowd {
    disk: Arc<Stopped>,
    readers: Vec<Store>,
    writers: Vec<StoreWriter>,
    /// Objects whose flush was acknowledged.
    written: BTreeMap<String, u64>,
    /// Objects that may also be visible.
    unknown: BTreeSet<String>,
}

impl Crowd {
    fn new() -> Self {
        let disk = place();
        let readers = (0..3).map(|_| open(&disk)).collect();
        let writers = (0..3).map(|_| open(&disk).writer().unwrap()).collect();
        Self {
            disk,
            readers,
            writers,
            written: BTreeMap::new(),
            unknown: BTreeSet::new(),
        }
    }

    fn write(&mut self, at: usize, name: String) {
        if name.starts_with("large") {
            nobody_is_stopped_while_it_names_files(&self.disk);
        }
        match try_write(&mut self.writers[at], &name) {
            Ok(commit) => {
                let others = self.written.values().filter(|other| **other == commit);
                assert_eq!(others.count(), 0, "commit {commit} was given twice");
                self.written.insert(name, commit);
            }
            Err(error) => {
                is_allowed(&error);
                self.unknown.insert(name);
                self.writers[at] = open(&self.disk).writer().unwrap();
            }
        }
    }

    fn look(&mut self, at: usize) {
        let shown = loop {
            // It may have been stopped for so long.
            match try_shown(&self.readers[at]) {
                Ok(shown) => break shown,
                Err(error) => is_allowed(&error),
            }
        };
        for (name, commit) in &self.written {
            assert_eq!(shown.get(name), Some(commit), "{name}");
        }
        for (name, commit) in shown {
            let known = self.written.get(&name) == Some(&commit);
            // A visible object stays visible.
            assert!(known || self.unknown.remove(&name), "{name}");
            self.written.insert(name, commit);
        }
    }
}

/// Unnamed files are retained for two ages: this test excludes a writer that is suspended for longer in the call that
/// names them.
fn nobody_is_stopped_while_it_names_files(disk: &Stopped) {
    *disk.before_publish.lock().unwrap() = None;
}

fn gather(disk: &Stopped, store: &Store) {
    nobody_is_stopped_while_it_names_files(disk);
    if let Err(error) = store.gather(|_, _| true) {
        is_allowed(&error);
    }
}

fn is_allowed(error: &Error) {
    assert!(matches!(error.code(), Code::Expired | Code::Unavailable), "{error}");
}

/// Some commits and a compaction, and as much time as it may take.
fn others_go_on(disk: &Arc<Stopped>, seed: u64) -> Meanwhile {
    let (disk, here) = (Arc::clone(disk), thread::current().id());
    Box::new(move || {
        if thread::current().id() != here {
            // Threads that read payloads for another thread have a different clock.
            return;
        }
        let mut random = TestRandom(seed);
        for _ in 0..random.below(5) {
            let store = open(&disk);
            match random.below(5) {
                0 => gather(&disk, &store),
                1 => wait(AGE * random.below(25) as u32 / 10),
                _ => _ = store.compact().map_err(|error| is_allowed(&error)),
            }
        }
    })
}

fn story(seed: u64) -> u64 {
    let mut random = TestRandom(seed);
    let mut crowd = Crowd::new();
    let mut cut = 0;
    for step in 0..150 {
        let at = random.below(3);
        let disk = &crowd.disk;
        match random.below(50) {
            0 => *disk.before_publish.lock().unwrap() = Some(others_go_on(disk, random.number())),
            1 => *disk.after_publish.lock().unwrap() = Some(others_go_on(disk, random.number())),
            2 => {
                let name = format!("{COMMITS_FOLDER}/{:020}", crowd.written.len());
                *disk.before_open.lock().unwrap() = Some((name, others_go_on(disk, random.number())));
            }
            3 => *disk.before_stage.lock().unwrap() = Some(others_go_on(disk, random.number())),
            _ => {}
        }
        match random.below(12) {
            0 => crowd.write(at, format!("large{step}")),
            1..5 => crowd.write(at, format!("{step}")),
            5..7 => crowd.look(at),
            7 => gather(&crowd.disk, &crowd.readers[at]),
            8 => _ = crowd.readers[at].checkpoint().map_err(|error| is_allowed(&error)),
            9 => wait(AGE * random.below(30) as u32 / 10),
            _ => match crowd.readers[at].compact() {
                Ok(done) => cut += done.removed.iter().filter(|file| Stopped::is_commit(file)).count() as u64,
                Err(error) => is_allowed(&error),
            },
        }
        if random.once_in(30) {
            crowd.readers[at] = open(&crowd.disk);
        }
    }
    (0..3).for_each(|at| crowd.look(at));
    crowd.readers[0] = open(&crowd.disk);
    crowd.look(0);
    let checked = crowd.readers[0]
        .snapshot()
        .unwrap()
        .check("", None, |_, _| true)
        .unwrap();
    assert_eq!(checked.damaged_count, 0, "{checked:?}");
    cut
}

#[test]
fn whatever_happens_no_number_is_given_twice_and_nothing_is_missed() {
    let seeds = if crate::all_seeds() { 150 } else { 10 };
    let mut cut = 0;
    for seed in 0..seeds {
        let told = std::panic::catch_unwind(|| story(seed));
        cut += told.unwrap_or_else(|_| panic!("seed {seed}"));
    }
    assert!(cut > 10 * seeds, "{cut}");
}
