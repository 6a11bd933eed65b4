//! Stores whose files somebody else has written, for `fuzz/`: whatever stands in them, the store is opened and looked at, or an error
//! says why not.
//!
//! Behind the feature `fuzzing`, and no part of the interface. Records come as their kind (u8), their length (u16, little-endian) and
//! their payload, and get whole frames here: a fuzzer would guess no checksum. What begins as a frame does is taken as it is.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Result, Schema};

use crate::log::frame;
use crate::log::{CommitLog, Commits};
use crate::root::{RetentionAges, StoreRoot};
use crate::storage::{MemoryDisk, StorageDisk, write_all};
use crate::store::Store;
use crate::url::{CacheUrl, StoreUrl};

const LOG: &str = "log/00000000000000000001";
const OBJECT: &str = "commits/00000000000000000001";
const CHECKPOINT: &str = "checkpoints/00000000000000000007.json";

/// A commit log.
pub fn log(schema: &Arc<Schema>, bytes: &[u8]) {
    look(stored(schema, Commits::Appended, LOG, &framed(bytes)));
}

/// An object of exclusive commits.
pub fn object(schema: &Arc<Schema>, bytes: &[u8]) {
    look(stored(schema, Commits::Exclusive, OBJECT, &framed(bytes)));
}

/// A checkpoint.
pub fn checkpoint(schema: &Arc<Schema>, text: &[u8]) {
    for commits in [Commits::Appended, Commits::Exclusive] {
        look(stored(schema, commits, CHECKPOINT, text));
    }
}

/// A root.
pub fn root(text: &[u8]) {
    let disk = MemoryDisk::default();
    put(&disk, "store.json", text);
    put(&disk, LOG, b"");
    put(&disk, &format!("{LOG}.synced"), b"");
    look(Store::open_on(Arc::new(disk), clock));
}

/// The text of a place.
pub fn place(text: &str) {
    if let Ok(place) = StoreUrl::parse(text) {
        let _ = (place.is_absolute(), place.commits());
    }
}

fn clock() -> Duration {
    Duration::from_hours(500_000)
}

/// A store of which one file is this.
fn stored(schema: &Arc<Schema>, commits: Commits, path: &str, bytes: &[u8]) -> Result<Store> {
    let disk = MemoryDisk::default();
    CommitLog::create(&disk, commits)?;
    put(&disk, path, bytes);
    let root = StoreRoot {
        id: "fuzzed".to_owned(),
        schemas: vec![Arc::clone(schema)],
        folder: "",
        ages: RetentionAges::default(),
        commits,
        data: None,
        compression: Ok(Vec::new()),
    };
    Ok(Store::with(Arc::new(disk), root, clock, &CacheUrl::default()))
}

/// Puts a file there, or over the one that is there.
fn put(disk: &MemoryDisk, path: &str, bytes: &[u8]) {
    let file = disk.create(path).or_else(|_| disk.open(path));
    let written = file.and_then(|file| write_all(&*file, bytes, 0));
    debug_assert!(written.is_ok(), "memory takes it");
}

fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if bytes.starts_with(b"JRec") {
        return bytes.to_vec();
    }
    while let Some((&[kind, low, high], rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (payload, rest) = rest.split_at(length);
        let start = frame::open(&mut out);
        out.extend_from_slice(payload);
        let closed = frame::close(&mut out, start, kind.into(), start as u64);
        debug_assert!(closed.is_ok(), "it is short");
        bytes = rest;
    }
    out
}

/// Looks at all that a store shows.
fn look(opened: Result<Store>) {
    let snapshot = opened.and_then(|store| store.snapshot());
    let Ok(snapshot) = snapshot else { return };
    let listings = [
        snapshot.list_all(""),
        snapshot.list(""),
        snapshot.masked(""),
        snapshot.versions("s=x"),
    ];
    for listing in listings.into_iter().flatten() {
        listing.for_each_key(|_, object| _ = (object.describe(), object.version(), object.read()));
        _ = listing.numbers();
    }
    _ = snapshot.axes("");
    _ = snapshot.check_commits();
}
