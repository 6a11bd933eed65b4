//! How many commits there were is nothing that a store keeps: after a compaction it is as large as if there had been few.

use std::sync::Arc;

use junctura_model::Schema;

use crate::log::Commits;
use crate::root::{RetentionAges, StoreRoot};
use crate::storage::{MemoryDisk, StorageDisk};
use crate::store::Store;
use crate::tests::crash::{clock, let_a_year_pass};

const OBJECTS: usize = 2000;
const FOLDERS: [&str; 4] = ["log", "commits", "segments", "checkpoints"];

/// Files, their bytes, and tables in memory of a store of the same objects, in so many commits.
fn size(commits: Commits, count: usize) -> (usize, u64, usize) {
    let disk: Arc<dyn StorageDisk> = Arc::new(MemoryDisk::with_clock(clock));
    let schemas = [Schema::builtin("free").unwrap()];
    StoreRoot::create(&*disk, &schemas, commits, &RetentionAges::default().into()).unwrap();
    let store = Store::open_on(Arc::clone(&disk), clock).unwrap();
    let mut writer = store.writer().unwrap();
    for number in 0..OBJECTS {
        writer
            .archive([("name", &*number.to_string())], &[number as u8; 1000])
            .unwrap();
        if (number + 1) % (OBJECTS / count) == 0 {
            writer.flush().unwrap();
        }
    }
    assert_eq!(store.snapshot().unwrap().commit(), count as u64);
    store.gather(|_, _| true).unwrap();
    // Leftovers are removed when no process can need them, together with the previous checkpoint.
    for name in ["later", "last"] {
        let_a_year_pass();
        writer.archive([("name", name)], b"").unwrap();
        writer.flush().unwrap();
        store.compact().unwrap();
    }
    let_a_year_pass();
    store.compact().unwrap();
    let data = disk
        .list("data")
        .unwrap()
        .into_iter()
        .map(|name| format!("data/{name}"));
    let folders = FOLDERS.map(str::to_owned).into_iter().chain(data);
    let files = folders.flat_map(|folder| {
        let names = disk.list(&folder).unwrap().into_iter();
        names.map(move |name| format!("{folder}/{name}"))
    });
    let files: Vec<String> = files.collect();
    let bytes = files.iter().map(|file| disk.len(file).unwrap()).sum();
    let snapshot = Store::open_on(disk, clock).unwrap().snapshot().unwrap();
    let found = snapshot.list("").unwrap();
    assert_eq!(found.len(), OBJECTS + 2);
    assert!(
        found
            .iter()
            .all(|object| object.read().unwrap().len() == object.bytes() as usize)
    );
    (files.len(), bytes, snapshot.tables().iter().flatten().count())
}

#[test]
fn a_store_of_many_commits_is_as_large_as_one_of_few() {
    for commits in [Commits::Appended, Commits::Exclusive] {
        let (many, few) = (size(commits, OBJECTS), size(commits, 4));
        assert_eq!((many.0, many.2), (few.0, few.2), "{commits:?}: {many:?} and {few:?}");
        assert!(many.1.abs_diff(few.1) < few.1 / 10, "{commits:?}: {many:?} and {few:?}");
    }
}
