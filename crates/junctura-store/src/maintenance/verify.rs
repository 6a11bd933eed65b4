//! Verification: all objects exist, and match their checksums.

use junctura_model::{Code, Error, Result};

use crate::data::bulk_read::{ByteRange, for_each_payload};
use crate::data::inventory::FileInventory;
use crate::maintenance::compact::CompactionRun;
use crate::query::listing::StoredObject;
use crate::query::snapshot::Snapshot;

/// The result of a verification.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The number of objects that were read.
    pub objects: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Corrupt objects, or missing commits or files of the catalogue, with the error; at most [`DAMAGES_MAX`] objects.
    pub damaged: Vec<(String, Error)>,
    /// The number of corrupt objects.
    pub damaged_count: u64,
    /// Data files that no commit names, by their names in the store, files of the catalogue that no checkpoint names,
    /// drafts, and unfinished uploads to a bucket: their writer has crashed, or is about to commit. Empty if this
    /// cannot be determined because a file of the catalogue is missing.
    pub unnamed: Vec<String>,
}

/// Maximum number of corrupt objects that are listed.
pub const DAMAGES_MAX: usize = 1000;

impl Snapshot {
    /// Reads every object that the selector matches, including masked versions, and compares its bytes with the
    /// checksum that was archived with it; searches for unnamed files. Blocks. `progress` receives the number of
    /// objects and bytes from time to time, and returns false to stop. With a `sample`, only so many objects are read,
    /// different ones each time.
    ///
    /// # Errors
    /// `InvalidSelector` for an invalid selector; `Interrupted` if `progress` returns false; `Expired` if the snapshot
    /// has expired. Damage is reported in the result, not as an error.
    pub fn check(
        &self,
        selector: &str,
        sample: Option<u64>,
        mut progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Checked> {
        // Files that are open may have been removed.
        self.store().files().close_all();
        let (readable, lost) = self.readable();
        // Determined first, so that an error here does not end a check after hours.
        let unnamed = if lost.is_empty() { self.unnamed()? } else { Vec::new() };
        let listing = readable.list_all(selector)?;
        let mut checked = Checked {
            unnamed,
            ..Checked::default()
        };
        let objects = listing.by_location();
        let count = objects.len() as u64;
        let sample = sample.map_or(count, |sample| sample.min(count)).max(1);
        let start = u64::from_le_bytes(crate::random()?[..8].try_into().unwrap_or_default()) % count.max(1);
        // Distributed as evenly as possible.
        let chosen = (0..sample.min(count)).map(|number| (start + number * count / sample) % count);
        let mut chosen: Vec<usize> = chosen.map(|at| at as usize).collect();
        chosen.sort_unstable();
        let chosen = chosen.iter().map(|&at| objects[at]);
        for_each_payload(chosen, listing.reads_at_once(), ByteRange::None, |object, read| {
            checked.take(&object, read.map(|_| ()))?;
            if progress(checked.objects, checked.bytes) {
                return Ok(());
            }
            Err(Error::new(Code::Interrupted, "check", "it was stopped"))
        })?;
        let commits = self.check_commits().err();
        for error in lost.iter().cloned().chain(commits) {
            checked.damaged_count += 1;
            checked.damaged.push((error.subject().to_owned(), error));
        }
        Ok(checked)
    }

    fn unnamed(&self) -> Result<Vec<String>> {
        let mut unnamed = self.unnamed_files()?;
        // These files are known to be empty.
        unnamed.retain(|file| self.empty_since(file).is_none());
        unnamed.extend(CompactionRun::begin(self.store()).unnamed_of_catalogue()?);
        let unfinished = FileInventory::of(self.store()).unfinished_files()?;
        unnamed.extend(unfinished.into_iter().map(|file| file.path));
        Ok(unnamed)
    }

    /// Returns data files that no commit names.
    pub(crate) fn unnamed_files(&self) -> Result<Vec<String>> {
        let named = self.files()?;
        let mut unnamed = FileInventory::of(self.store()).data_files()?;
        unnamed.retain(|file| !named.contains(&**file));
        unnamed.sort();
        Ok(unnamed)
    }
}

impl Checked {
    fn take(&mut self, object: &StoredObject<'_>, read: Result<()>) -> Result<()> {
        self.objects += 1;
        self.bytes += object.bytes();
        match read {
            // This error does not concern the object.
            Err(error)
                if matches!(
                    error.code(),
                    Code::Expired | Code::Unavailable | Code::Denied | Code::TooLarge
                ) =>
            {
                return Err(error);
            }
            Err(error) => {
                self.damaged_count += 1;
                if self.damaged.len() < DAMAGES_MAX {
                    self.damaged.push((object.key(), error));
                }
            }
            Ok(()) => {}
        }
        Ok(())
    }
}
