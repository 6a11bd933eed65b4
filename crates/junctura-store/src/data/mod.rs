//! Data files: the bytes of objects, in the order in which one writer appended them.
//!
//! A file belongs to one writer and one dataset. It grows with each flush, and bytes that no commit names are ignored:
//! a crashed writer leaves at most bytes that are never read.

pub(crate) mod buffer;
pub(crate) mod bulk_read;
pub(crate) mod inventory;
pub(crate) mod mapped;
pub(crate) mod open_files;
pub(crate) mod packing;
pub(crate) mod unpacked;

use std::io;
use std::sync::Arc;

use hashbrown::Equivalent;
use junctura_model::{Code, Error, Result};

use crate::maintenance::tier;
use crate::storage::{StorageDisk, StorageFile, refused, sync_range, write_all};

/// Their folder, except for those of tiers.
pub(crate) const FOLDER: &str = "data";
/// Small objects are written together.
const BUFFER_BYTES: usize = 1 << 20;
/// Objects of so many bytes are written as they are.
const DIRECT_BYTES: usize = 256 << 10;
/// A file that has so many bytes is not continued.
pub(crate) const FILE_BYTES_MAX: u64 = if cfg!(test) { 64 << 20 } else { 16 << 30 };

/// Returns whether a file of the store is a data file.
pub(crate) fn is_one(path: &str) -> bool {
    let is_below = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    is_below(FOLDER) || is_below(tier::FOLDER)
}

/// Returns whether a name has the form that a writer uses; files with other names do not belong to the store.
pub(crate) fn is_named(path: &str) -> bool {
    let named = path
        .rsplit_once('/')
        .and_then(|(dataset, file)| Some((dataset, file.split_once('-')?)));
    named.is_some_and(|(dataset, (writer, number))| {
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_dataset(dataset) && crate::is_hex(writer, 8) && is_number
    })
}

/// Whether it is the folder of a dataset's files.
pub(crate) fn is_dataset(path: &str) -> bool {
    is_one(path) && path.rsplit('/').next().is_some_and(|name| crate::is_hex(name, 8))
}

/// A dataset: the number of its schema, and the record of the first level of its keys.
pub(crate) type DatasetName = (usize, Box<[u8]>);

/// The same, borrowed.
#[derive(Hash)]
pub(crate) struct DatasetRef<'a>(pub(crate) usize, pub(crate) &'a [u8]);

impl Equivalent<DatasetName> for DatasetRef<'_> {
    fn equivalent(&self, other: &DatasetName) -> bool {
        (self.0, self.1) == (other.0, &*other.1)
    }
}

/// The names of one writer's files, which are unique.
#[derive(Debug)]
pub(crate) struct DataFileNames {
    /// Of the writer, in the names of its files.
    writer: String,
    made: u64,
}

impl DataFileNames {
    pub(crate) fn new(writer: &[u8; 16]) -> Self {
        Self {
            writer: crate::hex(&writer[..8]),
            made: 0,
        }
    }

    /// The next one: of a file below this folder that has a dataset's objects. `key`: the record of the first level of their keys.
    pub(crate) fn next(&mut self, folder: &str, schema: usize, key: &[u8]) -> String {
        let dataset = xxhash_rust::xxh3::xxh3_64_with_seed(key, schema as u64);
        let name = format!("{folder}/{dataset:016x}/{}-{}", self.writer, self.made);
        self.made += 1;
        name
    }
}

/// One that is being written.
#[derive(Debug)]
pub(crate) struct DataFile {
    name: Arc<str>,
    file: Option<Arc<dyn StorageFile>>,
    /// Everything up to here is committed.
    committed: u64,
    /// Up to here it was handed to the system.
    written: u64,
    buffer: Vec<u8>,
    /// Its name may not be on the disk yet.
    is_new: bool,
    /// Nothing more can be written to it.
    is_sealed: bool,
    /// A commit may name it.
    is_named: bool,
}

impl DataFile {
    /// One that is made when something is written.
    pub(crate) fn new(name: String) -> Self {
        Self {
            name: name.into(),
            file: None,
            committed: 0,
            written: 0,
            buffer: Vec::new(),
            is_new: true,
            is_sealed: false,
            is_named: false,
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the offset of the next object.
    pub(crate) fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Returns the offset at which uncommitted data begin.
    pub(crate) fn committed(&self) -> u64 {
        self.committed
    }

    /// Bytes that are not committed.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.end() - self.committed
    }

    /// Returns all uncommitted bytes, if none was passed to the system.
    pub(crate) fn still_here(&self) -> Option<&[u8]> {
        (self.written == self.committed).then_some(&self.buffer)
    }

    /// Whether it has more than a file should.
    pub(crate) fn is_full(&self) -> bool {
        self.end() >= FILE_BYTES_MAX
    }

    /// Returns whether the next object needs another file: this one is durable, and gets no more writes.
    pub(crate) fn is_done(&self) -> bool {
        self.is_sealed || self.is_full() && self.pending_bytes() == 0
    }

    /// Whether something lasts in it that is not committed.
    pub(crate) fn is_ahead(&self) -> bool {
        self.is_sealed && self.pending_bytes() > 0
    }

    /// Takes an object's bytes: small ones are copied, large ones are written at once.
    ///
    /// # Errors
    /// What the system refuses; then the object is not there, and may be given again.
    pub(crate) fn append(&mut self, bytes: &[u8], disk: &dyn StorageDisk) -> Result<()> {
        if bytes.len() >= DIRECT_BYTES {
            self.write_out(disk)?;
            self.write(bytes, disk)?;
            return Ok(());
        }
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.write_out(disk)?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn write_out(&mut self, disk: &dyn StorageDisk) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = if buffer.is_empty() {
            Ok(())
        } else {
            self.write(&buffer, disk)
        };
        if written.is_ok() {
            buffer.clear();
        }
        self.buffer = buffer;
        written
    }

    fn write(&mut self, bytes: &[u8], disk: &dyn StorageDisk) -> Result<()> {
        let file = self.opened(disk);
        let written = file.and_then(|file| write_all(&*file, bytes, self.written));
        if let Err(error) = written {
            self.cut_off(disk, self.written);
            return Err(refused(&*self.name, "cannot be written", &error));
        }
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn opened(&mut self, disk: &dyn StorageDisk) -> io::Result<Arc<dyn StorageFile>> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let is_there = self.written > 0;
        let file = if is_there {
            disk.open(&self.name)?
        } else {
            disk.create(&self.name)?
        };
        Ok(Arc::clone(self.file.insert(file)))
    }

    /// Frees the space after an offset, and removes the file if it is empty. On failure, a compaction frees the space.
    fn cut_off(&mut self, disk: &dyn StorageDisk, end: u64) {
        if !disk.grows(&self.name) {
            return;
        }
        if end > 0 || self.is_named {
            let file = self.opened(disk);
            _ = file.and_then(|file| file.set_len(end));
        } else if self.file.take().is_some() || self.written > 0 {
            _ = disk.remove(&self.name);
            self.is_new = true;
        }
    }

    /// Whether it takes a descriptor.
    pub(crate) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Makes last what it was given, and gives its descriptor back until something is written to it again; as [`Self::sync`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn close(&mut self, disk: &dyn StorageDisk) -> Result<Result<()>> {
        if disk.grows(&self.name)
            && let Err(unknown) = self.sync(disk)?
        {
            return Ok(Err(unknown));
        }
        if disk.grows(&self.name) {
            self.file = None;
        }
        Ok(Ok(()))
    }

    /// Gives the room back of what no commit names, and will not.
    pub(crate) fn take_back(&mut self, disk: &dyn StorageDisk) {
        self.buffer.clear();
        if self.written > self.committed {
            self.cut_off(disk, self.committed);
            self.written = self.committed;
        }
    }

    /// Makes everything last that it was given.
    ///
    /// # Errors
    /// What the system refuses; `Err(Err(…))` when it is not known what is on the disk.
    pub(crate) fn sync(&mut self, disk: &dyn StorageDisk) -> Result<Result<()>> {
        self.write_out(disk)?;
        let Some(file) = self.file.as_ref().filter(|_| !self.is_sealed) else {
            return Ok(Ok(()));
        };
        if let Err(error) = sync_range(&**file, self.committed, self.written) {
            return Ok(Err(refused(&*self.name, "cannot be synced", &error)));
        }
        if self.is_new {
            let folder = self.name.rsplit_once('/').map_or("", |(folder, _)| folder);
            if let Err(error) = disk.sync_names(folder) {
                return Ok(Err(refused(folder, "cannot be synced", &error)));
            }
            self.is_new = false;
        }
        self.is_sealed = !disk.grows(&self.name);
        Ok(Ok(()))
    }

    /// Records that its objects are committed. `is_elsewhere`: within the commit itself.
    pub(crate) fn settle(&mut self, is_elsewhere: bool) {
        if is_elsewhere {
            self.buffer.clear();
        }
        self.is_named |= self.written > 0 && !is_elsewhere;
        self.committed = self.written;
    }

    /// Discards its uncommitted objects.
    pub(crate) fn forget(&mut self, disk: &dyn StorageDisk) {
        // Another process may be removing it: the next objects use another file.
        self.is_sealed |= self.written > self.committed;
        self.take_back(disk);
        // It may not have been possible.
        self.written = self.committed;
    }
}

/// Reads an object.
///
/// # Errors
/// `Corrupt` when the file is shorter, or not there.
pub(crate) fn read_exact(file: &dyn StorageFile, name: &str, into: &mut [u8], at: u64) -> Result<()> {
    read_named(file, name, into, at).map_err(|error| match error.code() {
        Code::NotFound => Error::new(Code::Corrupt, name, format!("it is missing: {}", error.cause())),
        _ => error,
    })
}

/// Reads from a file that may be removed.
///
/// # Errors
/// `NotFound` if it was removed after it was opened, or if a cache, which opens it only now, does not find it;
/// `Corrupt` if it is shorter.
pub(crate) fn read_named(file: &dyn StorageFile, name: &str, into: &mut [u8], at: u64) -> Result<()> {
    let read = crate::storage::read_full(file, into, at);
    let read = read.map_err(|error| refused(name, "cannot be read", &error))?;
    if read < into.len() {
        let cause = format!(
            "it ends at byte {}, and {} was expected",
            at + read as u64,
            at + into.len() as u64
        );
        return Err(Error::new(Code::Corrupt, name, cause));
    }
    Ok(())
}
