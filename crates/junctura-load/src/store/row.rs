//! A row of the table: the rates of so many writers and readers.

use serde::Serialize;

use super::LaneFigures;
use super::arguments::{AccessPattern, CatalogueSource, LoadPreset};

/// The measurements of a row; its JSON is a line of the output of `--json`. A rate is that of all processes together.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RateRow {
    /// Processes that write, and as many that read.
    pub(super) writers: u32,
    /// Threads of each.
    pub(super) threads: u32,
    pub(super) write_per_s: f64,
    pub(super) write_gib_per_s: f64,
    /// Of a fresh process of each reader: to open the store, find everything and make the text of each key. Pattern b: to find everything again.
    pub(super) list_per_s: f64,
    /// Every byte is read and compared with its checksum.
    pub(super) read_per_s: f64,
    pub(super) read_gib_per_s: f64,
    /// Objects read back while they were written, from the start to the last object.
    pub(super) read_back_per_s: Option<f64>,
    pub(super) read_back_gib_per_s: Option<f64>,
    /// A plain write of the same bytes, synced as often.
    pub(super) limit_write_per_s: f64,
    pub(super) limit_write_gib_per_s: f64,
    pub(super) checkpoint_s: Option<f64>,
    /// Objects that were flushed and not found, or not in the version that was flushed last.
    pub(super) lost: u64,
    /// Objects whose bytes are not what was written, or those of others.
    pub(super) damaged: u64,
    pub(super) run: RowSubject,
}

/// The subject of the row.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RowSubject {
    pub(super) pattern: AccessPattern,
    pub(super) contended: bool,
    pub(super) catalogue: CatalogueSource,
    pub(super) preset: Option<LoadPreset>,
    pub(super) objects: u64,
    pub(super) payload_bytes: usize,
    pub(super) every: u64,
    pub(super) rewrites: u64,
    pub(super) read_back: f64,
    pub(super) store: String,
    /// The folder of the plain files.
    pub(super) plain: String,
    pub(super) payload_touched: &'static str,
}

/// The results of each kind of process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowFigures {
    pub(super) limit: LaneFigures,
    pub(super) writers: LaneFigures,
    pub(super) readers: LaneFigures,
    pub(super) read_back: Option<LaneFigures>,
    pub(super) checkpoint_s: Option<f64>,
}

impl RateRow {
    pub(super) fn new(writers: u32, threads: u32, done: &RowFigures, run: RowSubject) -> Self {
        let gib = |per_s: f64| per_s * run.payload_bytes as f64 / f64::from(1 << 30);
        let write = per_s(done.writers.written, done.writers.write_ns);
        let read = per_s(done.readers.read, done.readers.read_ns);
        let limit = per_s(done.limit.written, done.limit.write_ns);
        let read_back = done.read_back.map(|back| per_s(back.read, back.read_ns));
        let sum = |get: fn(&LaneFigures) -> u64| get(&done.readers) + done.read_back.as_ref().map_or(0, get);
        Self {
            writers,
            threads,
            write_per_s: write,
            write_gib_per_s: gib(write),
            list_per_s: per_s(done.readers.listed, done.readers.list_ns),
            read_per_s: read,
            read_gib_per_s: gib(read),
            read_back_per_s: read_back,
            read_back_gib_per_s: read_back.map(gib),
            limit_write_per_s: limit,
            limit_write_gib_per_s: gib(limit),
            checkpoint_s: done.checkpoint_s,
            lost: sum(|figures| figures.lost),
            damaged: sum(|figures| figures.damaged),
            run,
        }
    }

    /// The names of the columns for people.
    pub(super) fn heading() -> &'static str {
        "writers threads |  write/s   GiB/s  plain write | read back/s |     list/s |   read/s   GiB/s |  lost damaged"
    }

    /// The row for people.
    pub(super) fn line(&self) -> String {
        let back = self.read_back_per_s.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
        format!(
            "{:>7} {:>7} | {:>8.0} {:>7.3} {:>12.3} | {back:>11} | {:>10.0} | {:>8.0} {:>7.3} | {:>5} {:>7}",
            self.writers,
            self.threads,
            self.write_per_s,
            self.write_gib_per_s,
            self.limit_write_gib_per_s,
            self.list_per_s,
            self.read_per_s,
            self.read_gib_per_s,
            self.lost,
            self.damaged,
        )
    }
}

fn per_s(count: u64, ns: u64) -> f64 {
    count as f64 * 1e9 / ns.max(1) as f64
}
