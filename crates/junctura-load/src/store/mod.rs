//! `junctura load store`: the load of an archive, in separate processes, beside a plain write of the same bytes.
//!
//! ```text
//!            limit ──► write ─► (checkpoint) ─► read              pattern a: what is written is then read, each object once
//!                      + read back
//!            limit ──► fill  ─► (checkpoint) ─► re-write + read   pattern b: what is read is re-written meanwhile
//! ```
//! Each step is done by `--writers` processes of `--threads` lanes each, and there are as many readers as writers. Lane
//! `l` of `L` has the objects `n % L == l`: writers and readers derive the name and the content of an object from `n`.
//! A row of the table has a forecast of its own, so that several rows may share a store.

mod arguments;
mod coordinator;
mod crew;
mod limit;
mod objects;
mod plot;
mod reader;
mod row;
mod writer;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use junctura::{Code, Error, Result};
use junctura_store::Store;
use serde::{Deserialize, Serialize};

pub(crate) use self::arguments::StoreLoadArguments;
pub(crate) use self::coordinator::run;
use self::objects::RowObjects;
use crate::messages::{OrderReader, WorkerReport, begin, listen, say, sleep};
use crate::stamp::now_ns;

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum StoreRole {
    /// Writes the bytes into plain files.
    Limit,
    Writer,
    /// Lists everything, then reads its share.
    Reader,
    /// Reads a share of its share while it is written, each object once.
    ReaderBack,
    /// Reads its share again and again while it is re-written.
    ReaderAgain,
}

impl StoreRole {
    /// Whether it runs until the others are done.
    fn follows(self) -> bool {
        matches!(self, StoreRole::ReaderBack | StoreRole::ReaderAgain)
    }
}

/// The task of one process of a store's load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StorePlan {
    role: StoreRole,
    index: u32,
    threads: u32,
    url: String,
    /// For plain files.
    folder: PathBuf,
    objects: RowObjects,
    /// Of each object these versions are written.
    versions: Range<u64>,
    /// Which share is read back.
    read_back: f64,
}

/// The results of a process, or of one of its lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneFigures {
    written: u64,
    /// From the start to the last sync.
    write_ns: u64,
    listed: u64,
    list_ns: u64,
    read: u64,
    /// From the start to the last object read back; of other readers what reading took.
    read_ns: u64,
    lost: u64,
    damaged: u64,
}

impl LaneFigures {
    /// Adds the results of parallel lanes: objects add up, and the longest time counts.
    fn add(&mut self, other: &LaneFigures) {
        self.written += other.written;
        self.listed += other.listed;
        self.read += other.read;
        self.lost += other.lost;
        self.damaged += other.damaged;
        self.write_ns = self.write_ns.max(other.write_ns);
        self.list_ns = self.list_ns.max(other.list_ns);
        self.read_ns = self.read_ns.max(other.read_ns);
    }
}

/// One of the parallel lanes of a process. Its resources are ready before the start.
trait LoadLane: Send {
    fn run(&mut self, start: &LaneStart) -> Result<LaneFigures>;
}

/// The start time of lanes, the orders that they read, and the receiver of their progress.
#[derive(Default)]
struct LaneStart {
    at_ns: u64,
    orders: OrderReader,
    done: AtomicU64,
    next_word_ns: AtomicU64,
}

impl LaneStart {
    fn elapsed_ns(&self) -> u64 {
        now_ns().saturating_sub(self.at_ns)
    }

    /// Reports progress, from time to time.
    fn did_one(&self) -> Result<()> {
        const WORD_EVERY_NS: u64 = 200_000_000;
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let (now, next) = (now_ns(), self.next_word_ns.load(Ordering::Relaxed));
        let is_mine = now >= next
            && self
                .next_word_ns
                .compare_exchange(next, now + WORD_EVERY_NS, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_mine {
            say(&WorkerReport::<LaneFigures>::Progress { done })?;
        }
        Ok(())
    }
}

/// Does one process's part.
pub(crate) fn work(
    plan: &StorePlan,
    mut told: impl Iterator<Item = std::io::Result<String>> + Send + 'static,
) -> Result<()> {
    let mut lanes = plan.lanes()?;
    let at_ns = begin::<LaneFigures>(&mut told)?;
    let start = LaneStart {
        at_ns,
        orders: listen(told),
        ..LaneStart::default()
    };
    let start = &start;
    sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns())));
    let done: Vec<Result<LaneFigures>> = std::thread::scope(|scope| {
        let lanes: Vec<_> = lanes
            .iter_mut()
            .map(|lane| scope.spawn(move || lane.run(start)))
            .collect();
        let panicked = || Error::new(Code::Protocol, "load", "a thread of the load has panicked");
        let outcome = |lane: std::thread::ScopedJoinHandle<'_, _>| lane.join().unwrap_or_else(|_| Err(panicked()));
        lanes.into_iter().map(outcome).collect()
    });
    let mut figures = LaneFigures::default();
    for lane in done {
        figures.add(&lane?);
    }
    say(&WorkerReport::Report(Box::new(figures)))
}

impl StorePlan {
    fn lanes(&self) -> Result<Vec<Box<dyn LoadLane>>> {
        let first = u64::from(self.index * self.threads);
        let opened = Arc::new(OpenedStore::new(&self.url));
        let lane = |lane| -> Result<Box<dyn LoadLane>> {
            Ok(match self.role {
                StoreRole::Limit => Box::new(limit::PlainFile::new(self, lane)?),
                StoreRole::Writer => Box::new(writer::WritingLane::new(self, lane, &opened)?),
                _ => Box::new(reader::ReadingLane::new(self, lane, &opened)?),
            })
        };
        (first..first + u64::from(self.threads)).map(lane).collect()
    }
}

/// The store of a process, opened on first use.
struct OpenedStore {
    url: String,
    store: Mutex<Option<Store>>,
}

impl OpenedStore {
    fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            store: Mutex::new(None),
        }
    }

    fn get(&self) -> Result<Store> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*store {
            return Ok(store.clone());
        }
        Ok(store.insert(Store::open_url(&self.url)?).clone())
    }
}
