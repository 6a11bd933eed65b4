//! Copied and moved stores, stores within stores, and locations that several stores share: one store never removes
//! objects of another.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use junctura_model::{Code, Schema};
use tempfile::TempDir;

use crate::root::{RetentionAges, StoreLayout};
use crate::storage::LocalDisk;
use crate::store::Store;
use crate::writer::StoreWriter;

/// So large that an object is not stored within a commit.
const LARGE: usize = 100 << 10;

thread_local! {
    /// How far the clock is ahead.
    static AHEAD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + AHEAD.get()
}

fn create(root: &Path, data: Option<&Path>) -> Store {
    let hour = Duration::from_hours(1);
    let layout = StoreLayout {
        data: data.map(|place| place.display().to_string()),
        ..RetentionAges {
            snapshot_max: hour,
            unflushed_max: hour,
        }
        .into()
    };
    Store::create(root, &[Schema::builtin("free").unwrap()], layout).unwrap();
    open(root)
}

fn open(root: &Path) -> Store {
    Store::open_on(Arc::new(LocalDisk::new(root)), clock).unwrap()
}

fn archived(store: &Store, names: &[&str]) -> StoreWriter {
    let mut writer = store.writer().unwrap();
    writer.set_upkeep(false);
    for name in names {
        writer.archive([("name", *name)], &vec![1; LARGE]).unwrap();
    }
    writer
}

fn archive(store: &Store, names: &[&str]) {
    archived(store, names).flush().unwrap();
}

fn move_to(store: &Store, tier: &str) {
    store.move_to("", tier, |_, _| true).unwrap();
}

fn copy(from: &Path, to: &Path) {
    each_file(from, to, &|from, to| _ = fs::copy(from, to).unwrap());
}

fn each_file(from: &Path, to: &Path, make: &dyn Fn(&Path, &Path)) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            each_file(&from, &to, make);
        } else {
            make(&from, &to);
        }
    }
}

/// Runs all operations that remove or move files, repeatedly while time passes. Rejected operations are allowed.
fn ravage(root: &Path) {
    for selector in ["name=one", ""] {
        let store = open(root);
        _ = store.purge("");
        for tier in store.tiers().unwrap_or_default() {
            _ = store.move_to("", &tier.name, |_, _| true);
        }
        _ = store.move_to("", "data", |_, _| true);
        _ = store.gather(|_, _| true);
        _ = store.wipe(selector);
        tidy(&store);
    }
    AHEAD.set(Duration::ZERO);
}

fn tidy(store: &Store) {
    for _ in 0..3 {
        _ = store.compact();
        AHEAD.set(AHEAD.get() + Duration::from_hours(10));
    }
}

fn has_files(folder: &Path) -> bool {
    let mut paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.any(|path| path.is_file() || has_files(&path))
}

fn check(root: &Path, objects: usize, scene: &str) {
    let snapshot = open(root).snapshot().unwrap();
    assert_eq!(snapshot.list("").unwrap().len(), objects, "{scene}");
    let checked = snapshot.check("", None, |_, _| true).unwrap();
    assert_eq!(checked.damaged_count, 0, "{scene}: {:?}", checked.damaged);
}

/// One of each kind that has `one` elsewhere: in a place of data, in a tier.
fn apart(folder: &Path) -> [PathBuf; 2] {
    let (with_data, with_tier) = (folder.join("S"), folder.join("T"));
    archive(&create(&with_data, Some(&folder.join("data"))), &["one"]);
    let store = create(&with_tier, None);
    store.add_tier("cold", folder.join("cold").to_str().unwrap()).unwrap();
    archive(&store, &["one"]);
    move_to(&store, "cold");
    [with_data, with_tier]
}

fn put_elsewhere(root: &Path, names: &[&str]) {
    let store = open(root);
    archive(&store, names);
    if !store.tiers().unwrap().is_empty() {
        move_to(&store, "cold");
    }
}

#[test]
fn a_copy_removes_nothing_of_its_original_and_the_original_nothing_of_one_that_adopted() {
    let folder = TempDir::new().unwrap();
    for original in apart(folder.path()) {
        let [copied, second] = ["copy", "second"].map(|name| original.with_extension(name));
        copy(&original, &copied);
        put_elsewhere(&original, &["two"]);
        ravage(&copied);
        check(&original, 2, "a copy");

        copy(&original, &second);
        open(&second).adopt().unwrap();
        put_elsewhere(&second, &["three"]);
        ravage(&original);
        check(&second, 3, "the original of one that adopted");

        let third = original.with_extension("third");
        copy(&second, &third);
        put_elsewhere(&second, &["four"]);
        ravage(&third);
        ravage(&copied);
        check(&second, 4, "a copy of a copy");
    }
}

#[test]
fn a_copy_that_was_made_while_a_writer_was_open_removes_nothing_of_it() {
    let folder = TempDir::new().unwrap();
    for original in apart(folder.path()) {
        let store = open(&original);
        let mut writer = archived(&store, &["two"]);
        let copied = original.with_extension("copy");
        copy(&original, &copied);
        ravage(&copied);
        writer.flush().unwrap();
        check(&original, 2, "a copy beside an open writer");
    }
}

#[test]
fn copies_that_have_all_in_their_folders_are_free() {
    let folder = TempDir::new().unwrap();
    let [original, copied, linked] = ["S", "copy", "links"].map(|name| folder.path().join(name));
    let store = create(&original, None);
    archive(&store, &["one", "two"]);
    let mut writer = archived(&store, &["three"]);
    copy(&original, &copied);
    each_file(&original, &linked, &|from, to| fs::hard_link(from, to).unwrap());
    // Not more, since it has the log of its original.
    tidy(&open(&linked));
    AHEAD.set(Duration::ZERO);
    archive(&open(&copied), &["other"]);
    writer.flush().unwrap();
    check(&copied, 3, "a copy");
    ravage(&copied);
    assert!(!has_files(&copied.join("data")), "all files were removed");
    check(&original, 3, "the original");
}

#[test]
fn a_store_that_moved_is_not_disturbed_by_what_is_put_in_its_old_place() {
    let folder = TempDir::new().unwrap();
    for root in apart(folder.path()) {
        let [moved, kept] = ["moved", "kept"].map(|name| root.with_extension(name));
        copy(&root, &kept);
        fs::rename(&root, &moved).unwrap();
        put_elsewhere(&moved, &["two"]);
        check(&moved, 2, "a store that moved");
        // A backup is put where it was.
        fs::rename(&kept, &root).unwrap();
        ravage(&root);
        check(&moved, 2, "a copy in the old place");
    }
}

#[test]
fn a_store_within_another_one_is_left_alone_and_leaves_it_alone() {
    let id = "0123456789abcdef";
    let places = [
        "inner".to_owned(),
        "data/inner".to_owned(),
        format!("data/{id}"),
        format!("data/{id}/{id}-0"),
        format!("segments/{id}{id}.parquet"),
        "checkpoints/00000000000000000009.json".to_owned(),
        format!("checkpoints/.{id}{id}"),
        "log/00000000000000000009".to_owned(),
        "schemas/inner".to_owned(),
        "tiers/cold".to_owned(),
        format!("tiers/cold/{id}/{id}-0"),
    ];
    for place in places {
        let folder = TempDir::new().unwrap();
        let outer = folder.path().join("S");
        archive(&create(&outer, None), &["one", "two"]);
        let inner = outer.join(&place);
        archive(&create(&inner, None), &["one", "two"]);
        ravage_where_it_can_be_read(&outer);
        check(&inner, 2, &place);

        let folder = TempDir::new().unwrap();
        let outer = folder.path().join("S");
        archive(&create(&outer, None), &["one", "two"]);
        archive(&create(&outer.join(&place), None), &["one"]);
        ravage(&outer.join(&place));
        if is_readable(&outer) {
            check(&outer, 2, &place);
        }
    }
}

/// A folder that has the name of a checkpoint or of a log is damage of the outer store.
fn is_readable(root: &Path) -> bool {
    open(root).snapshot().is_ok()
}

fn ravage_where_it_can_be_read(root: &Path) {
    if is_readable(root) {
        ravage(root);
    }
}

#[test]
fn tiers_of_two_stores_in_one_place_are_each_its_own() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("place");
    let roots = ["A", "B"].map(|name| folder.path().join(name));
    for (root, tier) in roots.iter().zip(["cold", "warm"]) {
        let store = create(root, None);
        store.add_tier(tier, place.to_str().unwrap()).unwrap();
        archive(&store, &["one", "two"]);
        move_to(&store, tier);
    }
    let taken = open(&roots[1]).add_tier("cold", place.to_str().unwrap());
    assert_eq!(taken.unwrap_err().code(), Code::AlreadyExists);
    // And a store whose own folder that place is.
    archive(&create(&place, None), &["one", "two"]);
    ravage(&place);
    ravage(&roots[0]);
    check(&roots[1], 2, "the other tier");
}
