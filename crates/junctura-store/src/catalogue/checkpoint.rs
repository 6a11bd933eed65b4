//! A checkpoint: a list of files that together contain all rows visible at one commit.
//!
//! `checkpoints/NUMBER.json` is written once; its name is the number of the commit. A process that opens the store
//! reads the newest checkpoint, its files, and the log from the recorded position; any program that reads only these
//! files sees every object up to the commit, each version once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, Result, Schema};
use serde::{Deserialize, Serialize};

use crate::catalogue::Emptied;
use crate::catalogue::row_overlay::RowOverlay;
use crate::catalogue::segment::{self, PartChecks, SegmentFile};
use crate::catalogue::table::RowTable;
use crate::catalogue::unreadable::{RowDatasets, UnreadableRows, gone};
use crate::log::{LogPosition, first_of};
use crate::storage::{FileDraft, StorageDisk, check_readable, publish_new, read_whole, refused, write_all};
use crate::version;

pub(crate) const FOLDER: &str = "checkpoints";
/// The folder of their files.
pub(crate) const SEGMENTS: &str = "segments";
const FORMAT: &str = "junctura-checkpoint";
const VERSION: u32 = 1;
const BYTES_MAX: u64 = 64 << 20;
/// Commits and rows that there may have been.
const COUNTED_MAX: u64 = u64::MAX / 2;
const SEGMENT_BYTES_MAX: u64 = 64 << 30;

/// A file of rows.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct CheckpointSegment {
    pub(crate) path: String,
    /// Which of the store's schemas its rows are of.
    pub(crate) schema: usize,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// CRC-32C of the file.
    pub(crate) checksum: u32,
    /// The checks of its parts; without these the file is read as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<PartChecks>,
    /// The datasets of its rows, if these are few: for queries after the file has become unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    datasets: Option<RowDatasets>,
}

/// See the module.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Checkpoint {
    format: String,
    version: u32,
    /// The last commit that it covers.
    pub(crate) commit: u64,
    /// The log, and the byte behind that commit.
    log: String,
    log_end: u64,
    /// When it was made, in milliseconds since 1970 (UTC).
    pub(crate) at_ms: u64,
    /// The paths of the segments, for readers of only these.
    files: Vec<String>,
    /// The segments: for each schema the oldest rows first.
    pub(crate) segments: Vec<CheckpointSegment>,
    #[serde(flatten)]
    rest: CheckpointRest,
}

/// Further state at a commit.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct CheckpointRest {
    /// Rows of each schema that were ever committed.
    counts: Vec<u64>,
    /// Data files of which nothing is left, and since when: milliseconds since 1970 (UTC).
    emptied: BTreeMap<String, u64>,
}

impl CheckpointRest {
    pub(crate) fn new(counts: &[u64], emptied: Emptied) -> Self {
        let milliseconds = |at: Duration| u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        Self {
            counts: counts.to_vec(),
            emptied: emptied
                .into_iter()
                .map(|(file, at)| (file.as_ref().to_owned(), milliseconds(at)))
                .collect(),
        }
    }
}

impl Checkpoint {
    pub(crate) fn new(
        position: LogPosition,
        log: String,
        at_ms: u64,
        segments: Vec<CheckpointSegment>,
        rest: CheckpointRest,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            commit: position.number,
            log,
            log_end: position.end,
            at_ms,
            files: segments.iter().map(|segment| segment.path.clone()).collect(),
            segments,
            rest,
        }
    }

    /// Rows of each schema that were ever committed.
    ///
    /// # Errors
    /// `SchemaMismatch` when there are some of others than so many schemas.
    pub(crate) fn counts(&self, schemas: usize) -> Result<Vec<u64>> {
        let mut counts = self.rest.counts.clone();
        if let Some(more) = counts
            .get(schemas..)
            .and_then(|more| more.iter().position(|&count| count > 0))
        {
            return Err(unknown(&self.path(), schemas + more));
        }
        counts.resize(schemas, 0);
        Ok(counts)
    }

    /// Data files of which nothing is left, and since when.
    pub(crate) fn emptied(&self) -> Emptied {
        let emptied = self.rest.emptied.iter();
        emptied
            .map(|(file, at)| (file.as_str().into(), Duration::from_millis(*at)))
            .collect()
    }

    /// The position in the log at which uncovered records begin.
    pub(crate) fn position(&self) -> LogPosition {
        LogPosition {
            log: first_of(&self.log).unwrap_or_default(),
            end: self.log_end,
            number: self.commit,
            // A reader that begins with it has no time since which it is the newest.
            as_of: None,
        }
    }

    /// Whether it was made before a time.
    pub(crate) fn is_before(&self, time: Duration) -> bool {
        Duration::from_millis(self.at_ms) < time
    }

    /// Returns the files of the objects that it shows.
    ///
    /// # Errors
    /// `Corrupt` for a damaged segment; `NotFound` for a missing one.
    pub(crate) fn files(&self, disk: &dyn StorageDisk, schemas: &[Arc<Schema>]) -> Result<BTreeSet<Arc<str>>> {
        let mut files = BTreeSet::new();
        for segment in &self.segments {
            for piece in segment.open(disk, schemas)? {
                files.extend(piece.files()?);
            }
        }
        Ok(files)
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> String {
        format!("{FOLDER}/{:020}.json", self.commit)
    }

    /// Publishes the checkpoint. False: another one of the same commit exists, which is equivalent.
    ///
    /// # Errors
    /// `LimitExceeded` if it exceeds the readers' limit; errors of system calls.
    pub(crate) fn publish(&self, disk: &dyn StorageDisk) -> Result<bool> {
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|error| Error::new(Code::Io, "checkpoint", error.to_string()))?;
        text.push(b'\n');
        let name = self.path();
        check_readable(&name, &text, BYTES_MAX)?;
        let draft = FileDraft {
            beside: format!("{FOLDER}/.{}", crate::hex(&crate::random()?)),
            bytes: text,
        };
        match publish_new(disk, &draft, &name) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            done => done
                .map(|()| true)
                .map_err(|error| refused(name, "cannot be written", &error)),
        }
    }

    /// The newest one, if there is one.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported` for one that cannot be read; what the system refuses.
    pub(crate) fn newest(disk: &dyn StorageDisk) -> Result<Option<Self>> {
        let mut tried = None;
        loop {
            let Some(name) = names(disk)?.pop() else {
                return Ok(None);
            };
            match Self::read(disk, &name) {
                // A newer one was made meanwhile, and this one removed.
                Err(error) if error.code() == Code::NotFound && tried.as_ref() != Some(&name) => tried = Some(name),
                read => return read.map(Some),
            }
        }
    }

    /// # Errors
    /// `Corrupt`, `Unsupported` for one that cannot be read; what the system refuses.
    pub(crate) fn read(disk: &dyn StorageDisk, path: &str) -> Result<Self> {
        let text = read_whole(disk, path, BYTES_MAX)?;
        version::check(path, &text, FORMAT, VERSION)?;
        let read: Self =
            serde_json::from_slice(&text).map_err(|error| Error::new(Code::Corrupt, path, error.to_string()))?;
        // Later numbers continue from here in 64 bits.
        let counted = read.rest.counts.iter().chain([&read.commit]);
        if read.commit.to_string() != number_of(path) || counted.into_iter().any(|&number| number > COUNTED_MAX) {
            let cause = "it states another commit than its name, or impossible numbers";
            return Err(Error::new(Code::Corrupt, path, cause));
        }
        // These files are removed some day: only files of this store may be named.
        if let Some(other) = read
            .segments
            .iter()
            .find(|segment| !segment.path.starts_with("segments/"))
        {
            let cause = format!("it names {:?} as a segment", other.path);
            return Err(Error::new(Code::Corrupt, path, cause));
        }
        Ok(read)
    }
}

/// The number in a checkpoint's path, without zeros in front.
fn number_of(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let number = name.trim_end_matches(".json").trim_start_matches('0');
    if number.is_empty() { "0" } else { number }
}

/// The last commit that the newest checkpoint covers; 0 where there is none.
///
/// # Errors
/// What the system refuses.
pub(crate) fn newest_commit(disk: &dyn StorageDisk) -> Result<u64> {
    let newest = names(disk)?.pop();
    Ok(newest.map_or(0, |name| commit_of(&name)))
}

/// Makes all checkpoints durable: their makers may have crashed before they did so.
///
/// # Errors
/// Errors of system calls.
pub(crate) fn make_last(disk: &dyn StorageDisk) -> Result<()> {
    let synced = disk.sync_names(FOLDER);
    synced.map_err(|error| refused(FOLDER, "cannot be synced", &error))
}

/// The last commit that a checkpoint covers, by its path.
pub(crate) fn commit_of(path: &str) -> u64 {
    // Reading a file with an invalid number fails.
    number_of(path).parse().unwrap_or(u64::MAX)
}

/// The number of a commit, as it names a checkpoint.
fn is_number(text: &str) -> bool {
    text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The paths of all checkpoints, the oldest first.
///
/// # Errors
/// What the system refuses.
pub(crate) fn names(disk: &dyn StorageDisk) -> Result<Vec<String>> {
    let names = disk
        .list(FOLDER)
        .map_err(|error| refused(FOLDER, "cannot be listed", &error))?;
    let is_one = |name: &String| name.strip_suffix(".json").is_some_and(is_number);
    let mut paths: Vec<String> = names
        .into_iter()
        .filter(is_one)
        .map(|name| format!("{FOLDER}/{name}"))
        .collect();
    paths.sort();
    Ok(paths)
}

/// Whether a file of the store has the name of a segment.
pub(crate) fn is_segment(path: &str) -> bool {
    let name = path.strip_prefix(SEGMENTS).and_then(|rest| rest.strip_prefix('/'));
    name.and_then(|name| name.strip_suffix(".parquet"))
        .is_some_and(|name| crate::is_hex(name, 16))
}

impl CheckpointSegment {
    /// Writes a table's rows into a separate file, which is unused until a checkpoint names it.
    ///
    /// # Errors
    /// Errors of system calls.
    pub(crate) fn write(disk: &dyn StorageDisk, index: usize, schema: &Schema, table: &RowTable) -> Result<Self> {
        let (bytes, checks) = segment::encode(table, schema)?;
        let path = format!("{SEGMENTS}/{}.parquet", crate::hex(&crate::random()?));
        let make = || {
            let file = disk.create(&path)?;
            write_all(&*file, &bytes, 0)?;
            file.sync()?;
            disk.sync_names(SEGMENTS)
        };
        if let Err(error) = make() {
            // No catalogue refers to it, and its room may be what was missing.
            _ = disk.remove(&path);
            return Err(refused(path, "cannot be written", &error));
        }
        Ok(Self {
            schema: index,
            rows: table.len() as u64,
            bytes: bytes.len() as u64,
            checksum: crate::checksum(&bytes),
            parts: Some(checks),
            datasets: RowDatasets::of(table, schema),
            path,
        })
    }

    /// Opens its rows, oldest first, which are read on demand.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged; `NotFound` if it is missing.
    pub(crate) fn open(&self, disk: &dyn StorageDisk, schemas: &[Arc<Schema>]) -> Result<Vec<RowOverlay>> {
        let schema = self.schema(schemas)?;
        let pieces: Vec<RowOverlay> = match &self.parts {
            Some(checks) => {
                let file = disk.open(&self.path);
                let file = file.map_err(|error| refused(&*self.path, "cannot be read", &error))?;
                let file = SegmentFile::open(&self.path, file, self.bytes, checks, schema)?;
                file.groups().map(RowOverlay::from).collect()
            }
            None => vec![self.read(disk, schema)?.into()],
        };
        if pieces.iter().map(|piece| piece.len() as u64).sum::<u64>() != self.rows {
            return Err(self.corrupt("it has another number of rows than was written"));
        }
        Ok(pieces)
    }

    /// Returns the available information about its rows when it cannot be opened; `commit`: that of the checkpoint.
    ///
    /// # Errors
    /// `SchemaMismatch` if the store had no such schema.
    pub(crate) fn lost(&self, schemas: &[Arc<Schema>], commit: u64, error: &Error) -> Result<RowOverlay> {
        let schema = self.schema(schemas)?;
        Ok(RowOverlay::from(UnreadableRows {
            error: gone(error),
            // No table has more.
            rows: self.rows.min(u32::MAX.into()) as usize,
            last_commit: commit,
            is_unopened: true,
            datasets: self.datasets.as_ref().and_then(|datasets| datasets.known(schema)),
        }))
    }

    fn schema<'s>(&self, schemas: &'s [Arc<Schema>]) -> Result<&'s Arc<Schema>> {
        let schema = schemas.get(self.schema);
        schema.ok_or_else(|| unknown(&self.path, self.schema))
    }

    /// All of its rows.
    fn read(&self, disk: &dyn StorageDisk, schema: &Arc<Schema>) -> Result<RowTable> {
        let bytes = read_whole(disk, &self.path, SEGMENT_BYTES_MAX)?;
        if crate::checksum(&bytes) != self.checksum {
            return Err(self.corrupt("its checksum does not match"));
        }
        segment::decode(bytes, schema)
    }

    fn corrupt(&self, cause: &str) -> Error {
        Error::new(Code::Corrupt, &*self.path, cause)
    }
}

/// Returns the error for a schema that was added after the store was opened here.
pub(crate) fn unknown(subject: &str, schema: usize) -> Error {
    let cause = format!("the store had no schema {schema} when it was opened here: open it again");
    Error::new(Code::SchemaMismatch, subject, cause)
}
