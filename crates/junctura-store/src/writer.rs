//! A writer: it collects objects until a flush makes them visible.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;
use junctura_model::{Code, Error, IntoGiven, RecordRef, Result, Version};
use minicbor::bytes::{ByteArray, ByteSlice};

use crate::catalogue::names::OpenNames;
use crate::catalogue::table::{ObjectLocation, RowTable};
use crate::data::packing::{Compression, ObjectPacker, PackedObject};
use crate::data::{self, DataFile, DataFileNames, DatasetName, DatasetRef};
use crate::log::commit::{COMMIT, CommitPart, CommitRecord, PARTS_MAX};
use crate::log::{CommitLog, WriteTerm};
use crate::maintenance::ownership;
use crate::store::Store;

/// A flush with at most this many payload bytes stores the payloads in its commit, which needs only one sync.
const INLINE_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of open data files, and of datasets whose files stay open from one flush to the next.
const FILES_MAX: usize = 256;
/// Maximum number of datasets in one flush; readers of commits have the same limit.
const DATASETS_MAX: usize = PARTS_MAX;

/// Archives objects in a store. A drop without a flush discards all objects since the last flush.
#[derive(Debug)]
pub struct StoreWriter {
    store: Store,
    id: [u8; 16],
    datasets: Vec<DatasetWriter>,
    numbers: HashMap<DatasetName, usize>,
    /// Datasets with open files, in the order in which they were opened; it may contain others.
    opened: VecDeque<usize>,
    /// Files of unflushed objects whose datasets have continued in other files.
    ahead: Vec<DataFile>,
    /// The dataset of the previous object.
    last: usize,
    names: DataFileNames,
    /// The names of undeclared attributes that it may write.
    open_names: OpenNames,
    /// The time at which the first unflushed object was archived.
    since: Duration,
    rows: u64,
    /// The number of the last commit.
    commit: u64,
    broken: Option<Error>,
    is_kept_up: bool,
    /// The process that created it.
    process: u32,
    /// The record of an object during its archival.
    scratch: Vec<u8>,
    packer: ObjectPacker,
}

/// Objects of one schema with the same first level of their keys.
#[derive(Debug)]
struct DatasetWriter {
    schema: usize,
    /// The record of this level.
    key: Box<[u8]>,
    file: DataFile,
    /// The time of the last write to the file, or of its creation.
    written: Duration,
    /// Unflushed rows, in the file or in earlier files.
    table: RowTable,
    /// Some rows are in earlier files, which are durable already.
    is_split: bool,
    /// The packing of its objects, if any.
    compression: Option<Compression>,
}

/// The result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    /// The number of its commit: later commits mask earlier ones. If there was nothing to flush, that of the last
    /// commit of this writer; 0 before the first.
    pub commit: u64,
    /// The number of objects.
    pub objects: u64,
}

impl StoreWriter {
    pub(crate) fn new(store: Store) -> Result<Self> {
        let id = crate::random()?;
        Ok(Self {
            id,
            store,
            datasets: Vec::new(),
            numbers: HashMap::new(),
            opened: VecDeque::new(),
            ahead: Vec::new(),
            last: 0,
            names: DataFileNames::new(&id),
            open_names: OpenNames::default(),
            since: Duration::ZERO,
            rows: 0,
            commit: 0,
            broken: None,
            is_kept_up: true,
            process: std::process::id(),
            scratch: Vec::new(),
            packer: ObjectPacker::default(),
        })
    }

    /// Archives an object under the first schema of the store. The payload is copied or written before the call
    /// returns; it is invisible to readers until [`Self::flush`]. May write to the disk, and waits for nothing else.
    ///
    /// # Errors
    /// Errors of the schema; `LimitExceeded` if an undeclared attribute would exceed the store's limit of names, or the
    /// object the limit of datasets per flush; errors of system calls. In all these cases the object was not archived,
    /// and the writer remains usable.
    pub fn archive<'a, V: IntoGiven<'a>>(
        &mut self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<()> {
        self.archive_at(0, attributes, payload, None)
    }

    /// As [`Self::archive`], under the schema with this name.
    ///
    /// # Errors
    /// As [`Self::archive`]; `NotFound` if the store has no such schema.
    pub fn archive_in<'a, V: IntoGiven<'a>>(
        &mut self,
        schema: &str,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<()> {
        let at = self.store.schema_index(schema)?;
        self.archive_at(at, attributes, payload, None)
    }

    /// As [`Self::archive_in`], for an object that has this version in a pool.
    ///
    /// # Errors
    /// As [`Self::archive_in`].
    pub fn archive_version<'a, V: IntoGiven<'a>>(
        &mut self,
        schema: &str,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
        version: Version,
    ) -> Result<()> {
        let at = self.store.schema_index(schema)?;
        self.archive_at(at, attributes, payload, Some(version))
    }

    fn archive_at<'a, V: IntoGiven<'a>>(
        &mut self,
        at: usize,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
        version: Option<Version>,
    ) -> Result<()> {
        let mut record = std::mem::take(&mut self.scratch);
        record.clear();
        let schema = &self.store.schemas()[at];
        let attributes = attributes.into_iter();
        let given = attributes.map(|(name, value)| (name, value.into_given()));
        let made = schema.record(given, &mut record);
        let taken = made.and_then(|()| self.take(at, RecordRef::trusted(&record), payload, version));
        self.scratch = record;
        taken
    }

    /// As [`Self::archive`], with a record that the store's schema of this number has made.
    ///
    /// # Errors
    /// As [`Self::archive`]; `InvalidArgument` if there is no such schema.
    pub fn archive_record(
        &mut self,
        schema: usize,
        record: RecordRef<'_>,
        payload: &[u8],
        version: Option<Version>,
    ) -> Result<()> {
        let known = self.store.schemas().get(schema).ok_or_else(|| {
            let cause = format!("the store has {}", self.store.schemas().len());
            Error::new(Code::InvalidArgument, format!("schema {schema}"), cause)
        })?;
        known.check(record.as_bytes())?;
        self.take(schema, record, payload, version)
    }

    fn take(&mut self, schema: usize, record: RecordRef<'_>, payload: &[u8], version: Option<Version>) -> Result<()> {
        self.working()?;
        if self.rows == 0 {
            self.since = self.store.now();
        }
        if self.store.schemas()[schema].is_open() {
            self.open_names.admit(&self.store, schema, record)?;
        }
        let level_end = self.store.schemas()[schema].level_ends()[0];
        let key = record.key_bytes(level_end);
        let number = self.dataset(schema, key)?;
        let dataset = &mut self.datasets[number];
        let packed = match dataset.compression {
            Some(compression) => self.packer.pack(payload, compression)?,
            None => None,
        };
        let (bytes, packed) = match packed {
            Some((codec, frame)) => {
                let length = payload.len() as u64;
                (frame, Some(PackedObject { codec, length }))
            }
            None => (payload, None),
        };
        let place = ObjectLocation {
            file: dataset.table.file_number(dataset.file.name()),
            offset: dataset.file.end(),
            length: bytes.len() as u64,
            checksum: crate::checksum(payload),
            packed,
        };
        let was_open = dataset.file.is_open();
        dataset.file.append(bytes, self.store.disk())?;
        dataset.table.push(record, place, version)?;
        self.rows += 1;
        if dataset.file.is_open() && !was_open {
            self.opened.push_back(number);
            return self.close_others(number);
        }
        Ok(())
    }

    /// Returns the index of a dataset. A dataset continues in another file if its file is complete, or if it was not
    /// written to for so long that the file may have been removed, because none of its objects is left.
    fn dataset(&mut self, schema: usize, key: &[u8]) -> Result<usize> {
        let is_last = |dataset: &&DatasetWriter| dataset.schema == schema && *dataset.key == *key;
        let known = match self.datasets.get(self.last).filter(is_last) {
            Some(_) => Some(self.last),
            None => self.numbers.get(&DatasetRef(schema, key)).copied(),
        };
        self.last = match known {
            Some(known) => known,
            None => self.begin_dataset(schema, key)?,
        };
        let disk = self.store.disk();
        let dataset = &mut self.datasets[self.last];
        if dataset.file.is_full() && !disk.grows(dataset.file.name()) {
            // A file that gets no more writes after a sync need not wait for the flush.
            dataset.file.sync(disk)??;
        }
        let is_old = self.since.saturating_sub(dataset.written) > self.store.ages().unflushed_max;
        if dataset.file.is_done() || is_old && dataset.file.pending_bytes() == 0 {
            dataset.is_split |= dataset.file.is_ahead();
            let file = self.begin_file(schema, key);
            let before = std::mem::replace(&mut self.datasets[self.last].file, file);
            if before.is_ahead() {
                self.ahead.push(before);
            }
        }
        Ok(self.last)
    }

    fn begin_dataset(&mut self, schema: usize, key: &[u8]) -> Result<usize> {
        let number = self.datasets.len();
        if number >= DATASETS_MAX {
            let cause =
                format!("a flush may have objects of at most {DATASETS_MAX} datasets: flush before this object");
            return Err(Error::new(Code::LimitExceeded, "flush", cause));
        }
        let compression = self.store.root().compression_of(schema, key)?;
        let dataset = DatasetWriter {
            schema,
            key: key.into(),
            file: self.begin_file(schema, key),
            written: self.since,
            table: RowTable::default(),
            is_split: false,
            compression,
        };
        self.numbers.insert((schema, key.into()), number);
        self.datasets.push(dataset);
        Ok(number)
    }

    fn begin_file(&mut self, schema: usize, key: &[u8]) -> DataFile {
        DataFile::new(self.names.next(data::FOLDER, schema, key))
    }

    /// Returns the number of unflushed objects.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.rows
    }

    /// Returns whether the last failed flush is known to have left nothing: it may then be retried.
    #[must_use]
    pub fn flush_is_known(&self) -> bool {
        self.broken.is_none()
    }

    /// Sets whether flushes of this writer start a [checkpoint](Store::checkpoint) on a background thread when much was
    /// written since the last one. Default: true.
    pub fn set_upkeep(&mut self, is_kept_up: bool) {
        self.is_kept_up = is_kept_up;
    }

    /// Blocks until everything archived before is on disk and visible to all readers, atomically.
    ///
    /// # Errors
    /// - `Expired` if an object is older than the store keeps unflushed objects; `TooLarge` if the objects exceed the
    ///   limit of a commit. All unflushed objects are discarded.
    /// - Errors of system calls: nothing is visible, and a later flush retries.
    /// - If a sync failed, or the process was suspended for so long that other processes may have removed its files
    ///   (`Unavailable`), the outcome is unknown: this writer accepts no more objects, and the caller must look up
    ///   whether the flush is visible.
    pub fn flush(&mut self) -> Result<Flushed> {
        self.working()?;
        let objects = self.rows;
        if objects == 0 {
            self.open_names.look_again();
            let commit = self.commit;
            return Ok(Flushed { commit, objects });
        }
        let is_inline = self.is_inline();
        // Inline payloads are in no file that other processes could remove.
        let term = self.term(!is_inline);
        term.check(self.store.now()).map_err(|error| self.failed(error))?;
        if !is_inline {
            self.sync_files()?;
            ownership::check_folder(self.store.disk(), data::FOLDER)?;
        }
        let record = self.record(is_inline);
        let appended = self.store.append(COMMIT, record, Some(term));
        let commit = appended.map_err(|error| self.failed(error))?;
        self.commit = commit;
        self.settle(is_inline);
        if self.is_kept_up {
            self.store.upkeep().committed(objects, &self.store);
        }
        Ok(Flushed { commit, objects })
    }

    fn is_inline(&self) -> bool {
        let pending = || self.datasets.iter().filter(|dataset| !dataset.table.is_empty());
        let bytes: u64 = pending().map(|dataset| dataset.file.pending_bytes()).sum();
        bytes <= INLINE_BYTES_MAX && pending().all(|dataset| dataset.file.still_here().is_some() && !dataset.is_split)
    }

    fn sync_files(&mut self) -> Result<()> {
        let disk = self.store.disk();
        let are_many = self.datasets.len() > FILES_MAX;
        for dataset in self.datasets.iter_mut().filter(|dataset| !dataset.table.is_empty()) {
            let synced = if are_many {
                dataset.file.close(disk)?
            } else {
                dataset.file.sync(disk)?
            };
            if let Err(unknown) = synced {
                self.broken = Some(unknown.clone());
                return Err(unknown);
            }
        }
        Ok(())
    }

    /// Closes the files that were opened first, while too many are open besides that of this dataset.
    fn close_others(&mut self, number: usize) -> Result<()> {
        while self.opened.len() > FILES_MAX
            && let Some(first) = self.opened.pop_front()
        {
            let others = self.datasets.get_mut(first).filter(|_| first != number);
            let closed = others.map_or(Ok(Ok(())), |dataset| dataset.file.close(self.store.disk()));
            match closed {
                Ok(Ok(())) => {}
                Ok(Err(unknown)) => {
                    self.broken = Some(unknown.clone());
                    return Err(unknown);
                }
                // The object was accepted: the flush reports the failure to write earlier ones.
                Err(_) => {
                    self.opened.push_back(first);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn record(&self, is_inline: bool) -> Vec<u8> {
        let pending: Vec<&DatasetWriter> = self
            .datasets
            .iter()
            .filter(|dataset| !dataset.table.is_empty())
            .collect();
        let rows: Vec<Vec<u8>> = pending
            .iter()
            .map(|dataset| {
                let mut rows = Vec::new();
                dataset
                    .table
                    .encode(is_inline.then(|| dataset.file.committed()), &mut rows);
                rows
            })
            .collect();
        let commit = CommitRecord {
            at: u64::try_from(self.store.now().as_nanos()).unwrap_or(u64::MAX),
            writer: ByteArray::from(self.id),
            parts: pending
                .iter()
                .zip(&rows)
                .map(|(dataset, rows)| CommitPart {
                    schema: dataset.schema as u32,
                    rows: <&ByteSlice>::from(&**rows),
                    payloads: <&ByteSlice>::from(dataset.file.still_here().filter(|_| is_inline).unwrap_or_default()),
                })
                .collect(),
        };
        let mut record = CommitLog::begin();
        commit.encode_into(&mut record);
        record
    }

    fn settle(&mut self, is_inline: bool) {
        for dataset in self.datasets.iter_mut().filter(|dataset| !dataset.table.is_empty()) {
            dataset.file.settle(is_inline);
            dataset.written = self.since;
            dataset.table.clear();
            dataset.is_split = false;
        }
        self.nothing_pending();
    }

    fn term(&self, names_files: bool) -> WriteTerm {
        WriteTerm {
            since: self.since,
            age_max: self.store.ages().unflushed_max,
            names_files,
        }
    }

    /// Discards all unflushed objects.
    fn forget(&mut self, code: Code, cause: &str) -> Error {
        for file in &mut self.ahead {
            file.take_back(self.store.disk());
        }
        for dataset in &mut self.datasets {
            dataset.file.forget(self.store.disk());
            dataset.table.clear();
            dataset.is_split = false;
        }
        let forgotten = format!("{} objects", self.rows);
        self.nothing_pending();
        Error::new(code, forgotten, cause)
    }

    /// Frees the space of unflushed objects at once: no commit will name them.
    fn take_back(&mut self) {
        let files = self.datasets.iter_mut().map(|dataset| &mut dataset.file);
        for file in files.chain(&mut self.ahead) {
            file.take_back(self.store.disk());
        }
    }

    fn nothing_pending(&mut self) {
        self.rows = 0;
        self.ahead.clear();
        self.open_names.look_again();
        if self.datasets.len() > FILES_MAX {
            self.datasets.clear();
            self.numbers.clear();
            self.opened.clear();
        }
    }

    fn failed(&mut self, error: Error) -> Error {
        if self.store.log().is_broken() {
            // It may name files of the discarded objects.
            self.broken = Some(error.clone());
            return error;
        }
        if error.code() == Code::Expired {
            return self.forget(Code::Expired, error.cause());
        }
        if error.code() == Code::TooLarge {
            // A retry would have the same bytes.
            return self.forget(Code::TooLarge, error.cause());
        }
        error
    }

    fn working(&self) -> Result<()> {
        match &self.broken {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        // After a flush with unknown outcome, a commit may name the files; files that were inherited in a fork belong
        // to the parent.
        if self.rows > 0 && self.broken.is_none() && self.process == std::process::id() {
            self.take_back();
        }
    }
}
