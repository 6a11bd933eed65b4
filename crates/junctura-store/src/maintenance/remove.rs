//! Removal of objects: later snapshots do not show them, and their bytes are removed when no snapshot can need them any
//! more.

use junctura_model::{Code, Error, Result};

use crate::log::CommitLog;
use crate::log::removal::{REMOVAL, RemovalRecord};
use crate::query::listing::Listing;
use crate::query::snapshot::Snapshot;
use crate::store::Store;

/// The result of a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The number of the commit that removed the objects; 0 if there was nothing to remove.
    pub commit: u64,
    /// The number of objects.
    pub objects: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Store {
    /// Removes the masked versions of all objects that the selector matches. Blocks; reads and writes on the disk.
    ///
    /// # Errors
    /// As [`Snapshot::list`] and [`Self::remove`].
    pub fn purge(&self, selector: &str) -> Result<Removed> {
        self.remove(&self.snapshot()?.masked(selector)?)
    }

    /// Removes all objects that the selector matches, with all their versions. Blocks; reads and writes on the disk.
    ///
    /// # Errors
    /// As [`Snapshot::list`] and [`Self::remove`].
    pub fn wipe(&self, selector: &str) -> Result<Removed> {
        self.remove(&self.snapshot()?.versions(selector)?)
    }

    /// Removes these objects atomically, for all readers; older snapshots show them as long as they can be read.
    /// Objects that were removed or archived meanwhile are unaffected. Blocks until the removal is on disk.
    /// [`Self::compact`] removes the files of payloads when none of their objects is left and no snapshot can need
    /// them.
    ///
    /// # Errors
    /// `InvalidArgument` for objects of another store; `TooLarge` for more objects than one record can name; errors of
    /// system calls. If a sync failed, it is unknown whether the objects are removed, and the caller must look that up.
    pub fn remove(&self, listing: &Listing) -> Result<Removed> {
        if listing.store().root().id != self.root().id {
            let cause = "its objects are those of another store";
            return Err(Error::new(Code::InvalidArgument, "listing", cause));
        }
        if listing.is_empty() {
            return Ok(Removed::default());
        }
        let at = u64::try_from(self.now().as_nanos()).unwrap_or(u64::MAX);
        let mut record = CommitLog::begin();
        RemovalRecord::new(at, &listing.numbers()).encode_into(&mut record);
        let commit = self.append(REMOVAL, record, None)?;
        Ok(Removed {
            commit,
            objects: listing.len() as u64,
            bytes: listing.bytes(),
        })
    }
}

impl Snapshot {
    /// Returns all versions of each key whose newest version the selector matches: the objects that [`Store::wipe`]
    /// removes.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn versions(&self, selector: &str) -> Result<Listing> {
        self.find(selector, crate::query::snapshot::VersionChoice::OfKeys)
    }

    /// Returns the masked versions among these: the objects that [`Store::purge`] removes.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn masked(&self, selector: &str) -> Result<Listing> {
        self.find(selector, crate::query::snapshot::VersionChoice::Masked)
    }
}
