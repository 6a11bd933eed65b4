//! Places where other things lie, or another store's: nobody's files are taken for one's own, and so none are removed.
//!
//! Of what was asked for it shows D: what a store has flushed stays, whatever else lies there.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Result, Schema};
use junctura_store::{Ages, Layout, Store};
use tempfile::TempDir;

/// So large that it does not lie within a commit.
const LARGE: usize = 1 << 20;

fn free() -> Arc<Schema> {
    Schema::builtin("free").unwrap()
}

/// One whose data lie elsewhere, and in which nothing is kept for long.
fn create(root: &Path, data: &Path) -> Result<Store> {
    let layout = Layout {
        data: Some(data.display().to_string()),
        ..brief().into()
    };
    Store::create(root, &[free()], layout)
}

fn brief() -> Ages {
    Ages {
        snapshot_max: Duration::from_mins(1),
        unflushed_max: Duration::from_mins(1),
    }
}

fn archive(store: &Store, name: &str, bytes: usize) -> Result<()> {
    let mut writer = store.writer()?;
    writer.archive([("name", name)], &vec![1; bytes])?;
    writer.flush().map(|_| ())
}

fn read(store: &Store, name: &str) -> Result<usize> {
    let listing = store.snapshot()?.list(&format!("name={name}"))?;
    listing.get(0).unwrap().read().map(|bytes| bytes.len())
}

fn code<T>(result: Result<T>) -> Code {
    result.map(|_| ()).unwrap_err().code()
}

#[test]
fn a_place_has_the_data_of_one_store() {
    let folder = TempDir::new().unwrap();
    let (first, second, data) = (
        folder.path().join("a"),
        folder.path().join("b"),
        folder.path().join("data"),
    );
    create(&first, &data).unwrap();
    let refused = create(&second, &data).unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert!(refused.to_string().contains(&first.display().to_string()), "{refused}");
    // Nor is it where a store is, or the other way round.
    assert_eq!(code(create(&second, &first)), Code::AlreadyExists);
    assert_eq!(
        code(Store::create(&data, &[free()], Ages::default())),
        Code::AlreadyExists
    );
    // Nothing is left of what was refused.
    create(&second, &folder.path().join("other")).unwrap();
    Store::open(&second).unwrap();
}

#[test]
fn what_is_not_the_stores_stays() {
    let folder = TempDir::new().unwrap();
    let (root, data) = (folder.path().join("store"), folder.path().join("place"));
    let theirs = data.join("data/mine/file.nc");
    fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    fs::write(&theirs, b"theirs").unwrap();
    assert_eq!(code(create(&root, &data)), Code::AlreadyExists);
    assert_eq!(code(Store::create(&data, &[free()], brief())), Code::AlreadyExists);
    fs::remove_dir_all(data.join("data")).unwrap();
    let store = create(&root, &data).unwrap();
    archive(&store, "ours", LARGE).unwrap();
    fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    let besides = [
        theirs,
        data.join("data/readme"),
        root.join("segments/.nfs0001"),
        root.join("checkpoints/.nfs1"),
    ];
    store.compact().unwrap();
    for file in &besides {
        fs::write(file, b"theirs").unwrap();
        // As if it were there for long.
        let long_ago = std::time::SystemTime::now() - Duration::from_hours(1);
        fs::File::open(file).unwrap().set_modified(long_ago).unwrap();
    }
    assert_eq!(store.compact().unwrap().removed, Vec::<String>::new());
    assert!(besides.iter().all(|file| file.exists()));
}

#[test]
fn what_nobody_names_is_found() {
    let folder = TempDir::new().unwrap();
    let store = Store::create(folder.path(), &[free()], Ages::default()).unwrap();
    archive(&store, "x", 10).unwrap();
    store.compact().unwrap();
    let id = "0123456789abcdef";
    let left = [
        format!("data/{id}/{id}-0"),
        format!("checkpoints/.{id}{id}"),
        format!("segments/{id}{id}.parquet"),
    ];
    for file in &left {
        fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
        fs::write(folder.path().join(file), b"left").unwrap();
    }
    let checked = store.snapshot().unwrap().check("", None, |_, _| true).unwrap();
    assert_eq!((checked.damaged_count, &*checked.unnamed), (0, &left[..]));
}

#[test]
fn data_that_are_not_mounted_are_not_gone() {
    let folder = TempDir::new().unwrap();
    let (root, data) = (folder.path().join("store"), folder.path().join("data"));
    let store = create(&root, &data).unwrap();
    archive(&store, "large", LARGE).unwrap();
    archive(&store, "small", 10).unwrap();
    let away = folder.path().join("away");
    fs::rename(&data, &away).unwrap();
    fs::create_dir(&data).unwrap();
    let store = Store::open(&root).unwrap();
    assert_eq!(code(read(&store, "large")), Code::Unavailable);
    assert_eq!(code(archive(&store, "other", LARGE)), Code::Unavailable);
    assert!(fs::read_dir(&data).unwrap().next().is_none());
    // All else is served.
    assert_eq!(read(&store, "small").unwrap(), 10);
    archive(&store, "other", 10).unwrap();
    fs::remove_dir(&data).unwrap();
    fs::rename(&away, &data).unwrap();
    assert_eq!(read(&store, "large").unwrap(), LARGE);
    archive(&store, "more", LARGE).unwrap();
}

#[test]
fn a_place_from_before_it_said_whose_it_is_is_read() {
    let folder = TempDir::new().unwrap();
    let (root, data) = (folder.path().join("store"), folder.path().join("data"));
    archive(&create(&root, &data).unwrap(), "large", LARGE).unwrap();
    fs::remove_dir_all(data.join("tiers")).unwrap();
    assert_eq!(read(&Store::open(&root).unwrap(), "large").unwrap(), LARGE);
}
