//! Data files: the bytes of objects, one behind the other, as one writer appended them.
//!
//! A file belongs to one writer and one dataset. It grows from flush to flush, and what a commit does not name is not there: a
//! writer that died leaves at most bytes that nobody reads.

use std::sync::Arc;

use junctura_model::{Code, Error, Result};

use crate::disk::{Disk, File, refused, sync_range, write_all};

/// Where they lie.
pub(crate) const FOLDER: &str = "data";
/// Small objects are written together.
const BUFFER_BYTES: usize = 1 << 20;
/// Objects of so many bytes are written as they are.
const DIRECT_BYTES: usize = 256 << 10;
/// A file that has so many bytes is not continued.
const FILE_BYTES_MAX: u64 = 16 << 30;

/// Whether a file of the store is one of them.
pub(crate) fn is_one(path: &str) -> bool {
    path.strip_prefix(FOLDER).is_some_and(|rest| rest.starts_with('/'))
}

/// One that is being written.
#[derive(Debug)]
pub(crate) struct DataFile {
    name: Arc<str>,
    file: Option<Arc<dyn File>>,
    /// Everything up to here is committed.
    committed: u64,
    /// Up to here it was handed to the system.
    written: u64,
    buffer: Vec<u8>,
    /// Its name may not be on the disk yet.
    is_new: bool,
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
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Where the next object goes.
    pub(crate) fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Where what is not committed begins.
    pub(crate) fn committed(&self) -> u64 {
        self.committed
    }

    /// Bytes that are not committed.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.end() - self.committed
    }

    /// Everything that is not committed, while none of it was handed to the system.
    pub(crate) fn still_here(&self) -> Option<&[u8]> {
        (self.written == self.committed).then_some(&self.buffer)
    }

    /// Whether another file has to be begun for what comes next.
    pub(crate) fn is_full(&self) -> bool {
        self.committed >= FILE_BYTES_MAX
    }

    /// Takes an object's bytes: small ones are copied, large ones are written at once.
    ///
    /// # Errors
    /// What the system refuses; then the object is not there, and may be given again.
    pub(crate) fn append(&mut self, bytes: &[u8], disk: &dyn Disk) -> Result<()> {
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

    fn write_out(&mut self, disk: &dyn Disk) -> Result<()> {
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

    fn write(&mut self, bytes: &[u8], disk: &dyn Disk) -> Result<()> {
        let name = Arc::clone(&self.name);
        let mut write = || {
            let file = match &self.file {
                Some(file) => file,
                None => self.file.insert(disk.create(&name)?),
            };
            write_all(&**file, bytes, self.written)
        };
        write().map_err(|error| refused(&*name, "cannot be written", &error))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Makes everything last that it was given.
    ///
    /// # Errors
    /// What the system refuses; `Err(Err(…))` when it is not known what is on the disk.
    pub(crate) fn sync(&mut self, disk: &dyn Disk) -> Result<Result<()>> {
        self.write_out(disk)?;
        let Some(file) = &self.file else { return Ok(Ok(())) };
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
        Ok(Ok(()))
    }

    /// What it was given is committed. `is_elsewhere`: within the commit itself.
    pub(crate) fn settle(&mut self, is_elsewhere: bool) {
        if is_elsewhere {
            self.buffer.clear();
        }
        self.committed = self.written;
    }

    /// What it was given and is not committed is forgotten.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
        self.written = self.committed;
    }
}

/// Reads an object.
///
/// # Errors
/// `Corrupt` when the file is shorter, or not there.
pub(crate) fn read_exact(file: &dyn File, name: &str, into: &mut [u8], at: u64) -> Result<()> {
    let read = crate::disk::read_full(file, into, at).map_err(|error| refused(name, "cannot be read", &error))?;
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
