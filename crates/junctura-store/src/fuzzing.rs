//! Stores with arbitrary files, for `fuzz/`: with any content, the store is opened and queried, or an error is
//! returned.
//!
//! Behind the feature `fuzzing`, and not part of the API. A record is given as its kind (u8), its length (u16,
//! little-endian) and its payload, and is framed here, because a fuzzer would not guess the checksum. Input that begins
//! like a frame is used as it is.

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

/// The text of a location.
pub fn place(text: &str) {
    if let Ok(place) = StoreUrl::parse(text) {
        let _ = (place.is_absolute(), place.commits());
    }
}

fn clock() -> Duration {
    Duration::from_hours(500_000)
}

/// Creates a store with this content of one file.
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

/// Writes a file, or overwrites it.
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

/// Queries everything that a store shows.
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
