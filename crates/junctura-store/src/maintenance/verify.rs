//! Whether everything is there, and as it was.

use junctura_model::{Code, Error, Result};

use crate::data::bulk_read::{ByteRange, for_each_payload};
use crate::data::inventory::FileInventory;
use crate::maintenance::compact::CompactionRun;
use crate::query::listing::StoredObject;
use crate::query::snapshot::Snapshot;

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Objects that were read.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that are not what was archived, or commits or files of the catalogue that are gone, and why; at most [`DAMAGES_MAX`]
    /// objects.
    pub damaged: Vec<(String, Error)>,
    /// How many of them there are.
    pub damaged_count: u64,
    /// Data files that no commit names, by their names in the store, files of the catalogue that no checkpoint names, drafts, and uploads
    /// to a bucket that have not ended: somebody has died before they had what names them, or is about to write that. None where that
    /// cannot be known, since a file of the catalogue is gone.
    pub unnamed: Vec<String>,
}

/// Damaged objects that are named one by one.
pub const DAMAGES_MAX: usize = 1000;

impl Snapshot {
    /// Reads every object that the selector matches, masked versions too, and compares its bytes with the checksum that it was
    /// archived with; looks for files that nothing names. `progress` is told objects and bytes now and then, and ends the
    /// check by saying false. With a `sample`, only so many objects are read, other ones each time.
    ///
    /// # Errors
    /// `InvalidSelector` for what is no selector; `Interrupted` when `progress` says so; `Expired` when the snapshot has outlived
    /// its time. Damage is no error, but what is reported.
    pub fn check(
        &self,
        selector: &str,
        sample: Option<u64>,
        mut progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Checked> {
        // What was open before shows files that are perhaps not there any more.
        self.store().files().close_all();
        let (readable, lost) = self.readable();
        // Asked for first: who cannot be asked shall not end what has taken hours.
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
        // As far apart as so many can be.
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
        // Of these it is known that nothing of them is left.
        unnamed.retain(|file| self.empty_since(file).is_none());
        unnamed.extend(CompactionRun::begin(self.store()).unnamed_of_catalogue()?);
        let unfinished = FileInventory::of(self.store()).unfinished_files()?;
        unnamed.extend(unfinished.into_iter().map(|file| file.path));
        Ok(unnamed)
    }

    /// Data files that no commit names.
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
            // That says nothing of the object.
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
