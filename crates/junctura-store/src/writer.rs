//! One writer: what it was given, until a flush makes all of it visible.

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

/// A flush of no more payload bytes keeps them within its commit: one sync is enough then.
const INLINE_BYTES_MAX: u64 = 64 << 10;
/// Data files that are open at once, and datasets whose files stay open from one flush to the next.
const FILES_MAX: usize = 256;
/// Datasets that one flush may have objects of; who reads commits has the same limit.
const DATASETS_MAX: usize = PARTS_MAX;

/// Archives objects into a store. Dropped without a flush, it leaves nothing of what was archived since the last one.
#[derive(Debug)]
pub struct StoreWriter {
    store: Store,
    id: [u8; 16],
    datasets: Vec<DatasetWriter>,
    numbers: HashMap<DatasetName, usize>,
    /// Datasets whose files are open, in the order in which they were opened; and others.
    opened: VecDeque<usize>,
    /// Files of objects that are not flushed whose datasets have gone on in others.
    ahead: Vec<DataFile>,
    /// The dataset of the object before.
    last: usize,
    names: DataFileNames,
    /// Those of undeclared attributes that it may write.
    open_names: OpenNames,
    /// When the first object was archived that is not flushed, if there is one.
    since: Duration,
    rows: u64,
    /// The number of the last commit.
    commit: u64,
    broken: Option<Error>,
    is_kept_up: bool,
    /// The process that it was made in.
    process: u32,
    /// The record of an object, while it is looked at.
    scratch: Vec<u8>,
    packer: ObjectPacker,
}

/// Objects of one schema that have the first level of their keys in common.
#[derive(Debug)]
struct DatasetWriter {
    schema: usize,
    /// The record of that level.
    key: Box<[u8]>,
    file: DataFile,
    /// The file has been written to since then, or is new.
    written: Duration,
    /// Rows that are not flushed, in the file or in some before it.
    table: RowTable,
    /// Some are in files before it, which last already.
    is_split: bool,
    /// How its objects are packed, if they are.
    compression: Option<Compression>,
}

/// What one flush made visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    /// The number of its commit: later ones mask earlier ones. That of the last commit of this writer when there was nothing
    /// to flush; 0 before the first.
    pub commit: u64,
    /// Objects.
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

    /// Takes an object under the first schema of the store. The bytes are copied or written before it returns; they are visible
    /// to nobody before [`Self::flush`]. May write to the disk, and waits for nothing else.
    ///
    /// # Errors
    /// What the schema does not allow; `LimitExceeded` for an undeclared attribute whose name would be one more than a store may have, or for
    /// one dataset more than a flush may have; what the system refuses. In all of these the object was not taken, and others may be.
    pub fn archive<'a, V: IntoGiven<'a>>(
        &mut self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<()> {
        self.archive_at(0, attributes, payload, None)
    }

    /// The same under the schema of this name.
    ///
    /// # Errors
    /// As [`Self::archive`]; `NotFound` when the store has no such schema.
    pub fn archive_in<'a, V: IntoGiven<'a>>(
        &mut self,
        schema: &str,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<()> {
        let at = self.store.schema_index(schema)?;
        self.archive_at(at, attributes, payload, None)
    }

    /// The same, of an object that has this version in a pool.
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

    /// The same with a record that a schema of the store has made: that of this number.
    ///
    /// # Errors
    /// As [`Self::archive`]; `InvalidArgument` when there is no such schema.
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

    /// Which one these objects belong to. One whose file is done goes on in another, and so does one whose file has not been written
    /// to for so long that it may be gone, if nothing in it is left.
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
            // Where nothing is written on after a sync, it need not wait for the flush.
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
            let cause = format!("a flush has objects of {DATASETS_MAX} datasets at most: flush before this object");
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

    /// Objects that were archived and not flushed.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.rows
    }

    /// Whether the last flush that failed is known to have left nothing: then another one may be tried.
    #[must_use]
    pub fn flush_is_known(&self) -> bool {
        self.broken.is_none()
    }

    /// Whether flushes of this writer let a [checkpoint](Store::checkpoint) be made beside them, on a thread, where much was written since
    /// the last one; without being told otherwise they do.
    pub fn set_upkeep(&mut self, is_kept_up: bool) {
        self.is_kept_up = is_kept_up;
    }

    /// Waits until everything archived before it is on the disk, and visible to everybody: all of it at once.
    ///
    /// # Errors
    /// `Expired` when something of it is older than the store keeps it, `TooLarge` when it is more than a commit may have: it is forgotten. What the system refuses: nothing of it is
    /// visible, and a later flush tries again. When a sync failed, or it was stopped for so long in the middle of it that others may have
    /// removed what it wrote (`Unavailable`), it is not known what is there: then this writer takes no more, and whether the flush is visible has to be looked up.
    pub fn flush(&mut self) -> Result<Flushed> {
        self.working()?;
        let objects = self.rows;
        if objects == 0 {
            self.open_names.look_again();
            let commit = self.commit;
            return Ok(Flushed { commit, objects });
        }
        let is_inline = self.is_inline();
        // What is inline is in no file that others could remove.
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
                // The object was taken: that what came before it cannot be written is for the flush to say.
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

    /// Nothing of what was archived is flushed any more.
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

    /// Nobody is to name what was not flushed: its room is there for others at once.
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
            // It may name files of what it was to forget.
            self.broken = Some(error.clone());
            return error;
        }
        if error.code() == Code::Expired {
            return self.forget(Code::Expired, error.cause());
        }
        if error.code() == Code::TooLarge {
            // Another attempt would have the same bytes.
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
        // Of a flush whose end is not known a commit may name them, and what a process has from a fork is its parent's.
        if self.rows > 0 && self.broken.is_none() && self.process == std::process::id() {
            self.take_back();
        }
    }
}
