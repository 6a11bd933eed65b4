//! What is taken out: from the next snapshot on nobody sees it, and its bytes go when no snapshot can need them any more.

use junctura_model::{Code, Error, Result};

use crate::log::CommitLog;
use crate::log::removal::{REMOVAL, RemovalRecord};
use crate::query::listing::Listing;
use crate::query::snapshot::Snapshot;
use crate::store::Store;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The number of the commit that removed it; 0 when there was nothing to remove.
    pub commit: u64,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Store {
    /// Removes what is masked: of all that the selector matches the versions that newer ones mask. Reads and writes on the disk.
    ///
    /// # Errors
    /// As [`Snapshot::list`] and [`Self::remove`].
    pub fn purge(&self, selector: &str) -> Result<Removed> {
        self.remove(&self.snapshot()?.masked(selector)?)
    }

    /// Removes all that the selector matches, with all its versions. Reads and writes on the disk.
    ///
    /// # Errors
    /// As [`Snapshot::list`] and [`Self::remove`].
    pub fn wipe(&self, selector: &str) -> Result<Removed> {
        self.remove(&self.snapshot()?.versions(selector)?)
    }

    /// Removes these objects, at once and for everybody; snapshots of before show them as long as they can be read. What has been
    /// removed meanwhile, or archived, stays as it is. It returns when that is on the disk. The bytes of objects go with
    /// [`Self::compact`], file by file, when nothing of a file is left and no snapshot can need it.
    ///
    /// # Errors
    /// `InvalidArgument` for objects of another store; `TooLarge` for more than one record can name; what the system refuses. When a sync failed it is not known whether they are
    /// removed, and that has to be looked up.
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
    /// All versions of each key whose newest version the selector matches: what [`Store::wipe`] removes.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn versions(&self, selector: &str) -> Result<Listing> {
        self.find(selector, crate::query::snapshot::VersionChoice::OfKeys)
    }

    /// Of those the ones that newer ones mask: what [`Store::purge`] removes.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn masked(&self, selector: &str) -> Result<Listing> {
        self.find(selector, crate::query::snapshot::VersionChoice::Masked)
    }
}
