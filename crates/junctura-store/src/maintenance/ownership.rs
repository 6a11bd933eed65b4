//! Ownership of files at a location.
//!
//! Compaction removes files that no commit names. Therefore `tiers/NAME.owner.json` at a location names the store that
//! owns the tier, and `tiers/data.owner.json` the store whose separate data files are there. A location without such a
//! mark belongs to another store, or is currently unavailable: an unmounted file system looks like an empty one.
//!
//! If the folder of a store is copied, there are two stores with one ID, and each would remove files that only the
//! other names. A mark therefore names one catalogue: its location, and the identity of its `store.json` in the file
//! system. Any other catalogue can read the files, but cannot create or remove any, until a user declares that it is
//! the store ([`Store::adopt`]). Files behind a link within a store may belong to another store: they are removed only
//! if the folder has such a mark.

use std::path::Path;

use junctura_model::{Code, Error, Result};
use serde::{Deserialize, Serialize};

use crate::catalogue::checkpoint;
use crate::catalogue::schemas;
use crate::data;
use crate::log::{COMMITS_FOLDER, LOG_FOLDER};
use crate::maintenance::tier::{self, OWN};
use crate::root;
use crate::storage::{FileDraft, LocalDisk, StorageDisk, check_readable, publish_new, read_whole, refused, write_all};
use crate::store::Store;
use crate::url::StoreUrl;
use crate::version;

const FORMAT: &str = "junctura-tier";
const VERSION: u32 = 1;
pub(crate) const BYTES_MAX: u64 = 1 << 20;

/// The content of such a file, and of the file of a tier beside the catalogue.
#[derive(Deserialize, Serialize)]
pub(crate) struct OwnershipMark {
    format: String,
    version: u32,
    /// The store, by the ID in its root.
    pub(crate) owner: String,
    /// The location of the tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
    /// The location of the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    /// The identity that distinguishes its `store.json` from copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The mark was made by a store that writes there, without an explicit declaration: no other store writes there,
    /// and nothing is removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    claimed: bool,
}

/// The catalogue of a store.
#[derive(Clone, Copy)]
pub(crate) struct OneCatalogue<'a> {
    /// The ID in its root, which a copy shares.
    pub(crate) id: &'a str,
    pub(crate) disk: &'a dyn StorageDisk,
}

impl<'a> OneCatalogue<'a> {
    pub(crate) fn of(store: &'a Store) -> Self {
        Self {
            id: &store.root().id,
            disk: store.disk(),
        }
    }

    fn mark(&self) -> OwnershipMark {
        OwnershipMark {
            store: Some(self.disk.address()),
            file: self.disk.identity(root::NAME),
            ..OwnershipMark::new(self.id, None)
        }
    }

    /// Returns whether a mark with the store's ID names this catalogue, and not a copy.
    fn is_of(&self, mark: &OwnershipMark) -> bool {
        let Some(store) = &mark.store else { return true };
        match (&mark.file, self.disk.identity(root::NAME)) {
            // A catalogue that was moved, and not copied, leaves no file at its old location.
            (Some(file), Some(own)) => is_same(file, &own) && (self.disk.is_at(store) || !is_at(store, self.id)),
            _ => self.disk.is_at(store),
        }
    }

    fn check(&self, mark: &OwnershipMark, subject: String) -> Result<()> {
        if self.is_of(mark) {
            return Ok(());
        }
        let store = mark.store.as_deref().unwrap_or("another place");
        Err(not_its(
            subject,
            &format!("they are those of the store at {store}, of which this one is a copy, or which has moved"),
        ))
    }
}

/// Returns whether a mark has this file identity. Older marks lack the inode number of the folder: a copy by hard links
/// has the same file in another folder.
fn is_same(marked: &str, own: &str) -> bool {
    marked == own || own.split_once('@').is_some_and(|(file, _)| file == marked)
}

/// Returns whether a store with this ID is, or may be, in that folder of this machine.
fn is_at(uri: &str, id: &str) -> bool {
    let folder = uri.strip_prefix("file://").map(Path::new);
    folder.is_some_and(|folder| {
        let disk = LocalDisk::new(folder);
        root::id_of(&disk).map_or_else(|| root::may_be_there(&disk), |found| found == id)
    })
}

#[cold]
fn not_its(subject: String, cause: &str) -> Error {
    let cause = format!(
        "{cause}: files there are read, and none is made or removed; if this folder is the store from now on, state that with \
         `junctura store tier --adopt --store URL`"
    );
    Error::new(Code::Conflict, subject, cause)
}

impl OwnershipMark {
    pub(crate) fn new(owner: &str, place: Option<&str>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            owner: owner.to_owned(),
            place: place.map(str::to_owned),
            store: None,
            file: None,
            claimed: false,
        }
    }

    /// Publishes the mark if there is no file at this path yet. `beside`: the temporary path at which it is written
    /// first.
    ///
    /// # Errors
    /// `AlreadyExists` if there is one; errors of system calls.
    pub(crate) fn publish(&self, disk: &dyn StorageDisk, path: &str, beside: String) -> Result<()> {
        let draft = FileDraft {
            beside,
            bytes: self.bytes(path)?,
        };
        publish_new(disk, &draft, path).map_err(|error| refused(path, "cannot be made", &error))
    }

    /// Writes the mark to an object store, where a name becomes visible with all its bytes, and which may be used for
    /// data even without conditional put.
    fn put(&self, disk: &dyn StorageDisk, path: &str) -> Result<()> {
        let bytes = self.bytes(path)?;
        let put = disk.create(path).and_then(|file| {
            write_all(&*file, &bytes, 0)?;
            file.sync()
        });
        put.map_err(|error| refused(path, "cannot be made", &error))
    }

    /// # Errors
    /// `LimitExceeded` for more bytes than a reader accepts.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        let bytes = serde_json::to_vec_pretty(self);
        let mut bytes = bytes.map_err(|error| Error::new(Code::Io, path, error.to_string()))?;
        bytes.push(b'\n');
        check_readable(path, &bytes, BYTES_MAX)?;
        Ok(bytes)
    }

    pub(crate) fn read(disk: &dyn StorageDisk, path: &str) -> Result<Self> {
        let text = read_whole(disk, path, BYTES_MAX)?;
        version::check(path, &text, FORMAT, VERSION)?;
        serde_json::from_slice(&text).map_err(|error| Error::new(Code::Corrupt, path, error.to_string()))
    }

    /// As [`Self::read`]; `None` if there is no mark.
    fn find(disk: &dyn StorageDisk, path: &str) -> Result<Option<Self>> {
        match Self::read(disk, path) {
            Err(error) if error.code() == Code::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn is_other(&self, disk: &dyn StorageDisk, name: &str) -> Error {
        let store = self.store.as_deref().unwrap_or("another place");
        let cause = match name {
            OWN => format!(
                "it has the data of a store at {store}: choose another place (if no such store was ever made, remove this file)"
            ),
            _ => format!("the store at {store} has a tier of this name there: take another name"),
        };
        Error::new(Code::AlreadyExists, disk.uri(&path(name)), cause)
    }
}

/// Marks the location of a tier, or of data files, as owned by this store.
///
/// # Errors
/// `AlreadyExists` if it is marked by another store; `Conflict` if it is marked by another catalogue of this store;
/// errors of the location.
pub(crate) fn mark(disk: &dyn StorageDisk, name: &str, catalogue: OneCatalogue<'_>) -> Result<()> {
    let path = path(name);
    let mark = catalogue.mark();
    if name == OWN && !disk.grows(&path) {
        mark.put(disk, &path)?;
    } else {
        // Named as a data file: a crash leaves a file that no commit names.
        let beside = data::DataFileNames::new(&crate::random()?).next(&tier::folder(name), 0, &[]);
        match mark.publish(disk, &path, beside) {
            // Another process may have written the same mark first.
            Err(error) if error.code() == Code::AlreadyExists => {}
            marked => return marked,
        }
    }
    let there = OwnershipMark::read(disk, &path)?;
    if there.owner == catalogue.id {
        catalogue.check(&there, disk.uri(&path))
    } else {
        Err(there.is_other(disk, name))
    }
}

/// Transfers the mark to this catalogue from the one that it was copied from.
///
/// # Errors
/// `AlreadyExists` if it belongs to another store; errors of the location.
pub(crate) fn remark(disk: &dyn StorageDisk, name: &str, catalogue: OneCatalogue<'_>) -> Result<()> {
    let path = path(name);
    check_marked(disk, &path, name, catalogue)?;
    put(disk, path, &tier::folder(name), catalogue)
}

/// Checks that there is no mark of another store.
fn check_marked(disk: &dyn StorageDisk, path: &str, name: &str, catalogue: OneCatalogue<'_>) -> Result<()> {
    match OwnershipMark::find(disk, path)? {
        Some(there) if there.owner != catalogue.id => Err(there.is_other(disk, name)),
        _ => Ok(()),
    }
}

fn put(disk: &dyn StorageDisk, path: String, folder: &str, catalogue: OneCatalogue<'_>) -> Result<()> {
    let draft = FileDraft {
        beside: data::DataFileNames::new(&crate::random()?).next(folder, 0, &[]),
        bytes: catalogue.mark().bytes(&path)?,
    };
    let replaced = disk.replace(&draft, &path);
    let above = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let replaced = replaced.and_then(|()| disk.sync_names(above));
    replaced.map_err(|error| refused(path, "cannot be made", &error))
}

/// Checks that files at a location may be changed from this catalogue.
///
/// # Errors
/// `Conflict` if the location belongs to another catalogue; errors of the location.
pub(crate) fn check_catalogue(disk: &dyn StorageDisk, name: &str, catalogue: OneCatalogue<'_>) -> Result<()> {
    match OwnershipMark::find(disk, &path(name))? {
        Some(there) => catalogue.check(&there, format!("files at {}", disk.uri(""))),
        // Created before locations of data files were marked.
        None => Ok(()),
    }
}

impl Store {
    /// Declares that this folder is the store from now on: it owns its separate data files, its tiers, and the folders
    /// behind links within it. The folder from which it was copied or moved no longer owns these; it stays readable
    /// until this store removes files. A store whose files are all in its own folder needs no declaration.
    ///
    /// # Errors
    /// `AlreadyExists` for a location that belongs to another store; `Unavailable` for a missing location, for example
    /// one that is not mounted; `Conflict` for a link into the folder of another store; errors of a location. If one
    /// location or link is rejected, none is adopted.
    pub fn adopt(&self) -> Result<()> {
        OwnershipCheck::of(self).adopt()
    }
}

/// Compares separate locations, and folders behind links, with a store's catalogue.
pub(crate) struct OwnershipCheck<'a> {
    store: &'a Store,
    catalogue: OneCatalogue<'a>,
}

impl<'a> OwnershipCheck<'a> {
    pub(crate) fn of(store: &'a Store) -> Self {
        Self {
            store,
            catalogue: OneCatalogue::of(store),
        }
    }

    /// See [`Store::adopt`].
    fn adopt(&self) -> Result<()> {
        let mut places = Vec::new();
        for (name, place) in self.places()? {
            let disk = place.disk(false)?;
            check_marked(&*disk, &path(&name), &name, self.catalogue)?;
            check(&*disk, &name, self.catalogue.id, &disk.uri(""))?;
            places.push((name, disk));
        }
        let links = self.links()?;
        links.iter().try_for_each(|link| self.check_link(link))?;
        for (name, disk) in &places {
            remark(&**disk, name, self.catalogue)?;
        }
        links
            .iter()
            .try_for_each(|link| put(self.store.disk(), link_mark(link), link, self.catalogue))
    }

    /// Checks that the target of a link can belong to this catalogue.
    ///
    /// # Errors
    /// As [`Self::adopt`].
    fn check_link(&self, link: &str) -> Result<()> {
        let disk = self.store.disk();
        if disk.modified(link).is_err() {
            let cause = "the target of the link does not exist: is it mounted?";
            return Err(Error::new(Code::Unavailable, disk.uri(link), cause));
        }
        if let Some(store) = disk.store_above(link) {
            let cause = format!("it leads into the store at {store}");
            return Err(Error::new(Code::Conflict, disk.uri(link), cause));
        }
        check_marked(disk, &link_mark(link), OWN, self.catalogue)
    }

    /// Checks that all separate locations belong to this catalogue, so that files there can be removed.
    ///
    /// # Errors
    /// `Conflict` if one belongs to another catalogue, or has no mark; errors of the locations.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, place) in self.places()? {
            let disk = place.disk(false)?;
            if name == OWN && OwnershipMark::find(&*disk, &path(OWN))?.is_none() && has_data(&*disk)? {
                let cause = "nothing there states that they are this store's";
                return Err(not_its(format!("files at {}", disk.uri("")), cause));
            }
            check_catalogue(&*disk, &name, self.catalogue)?;
        }
        for link in self.links()? {
            let there = OwnershipMark::find(self.store.disk(), &link_mark(&link))?;
            let Some(there) = there.filter(|mark| !mark.claimed || mark.owner != self.catalogue.id) else {
                let subject = format!("files behind the link or mount {}", self.store.disk().uri(&link));
                return Err(not_its(subject, "nothing there states that they are this store's"));
            };
            self.check_behind(&link, &there)?;
        }
        Ok(())
    }

    /// Checks that files may be created and changed in the folders of the store: none leads to the files of another
    /// store. Claims the target of a link in which two stores would use the same file names.
    ///
    /// # Errors
    /// `Conflict` if a link or mount point leads into another store, or to a location that is marked by another
    /// catalogue; errors of the location of a claim.
    pub(crate) fn check_ways(&self) -> Result<()> {
        let disk = self.store.disk();
        for folder in FOLDERS {
            let checked = disk.check_way(folder);
            let is_link = checked.map_err(|error| refused(folder, "cannot be written to", &error))?;
            if !is_link {
                continue;
            }
            match OwnershipMark::find(disk, &link_mark(folder))? {
                Some(there) => self.check_behind(folder, &there)?,
                None if NUMBERED.contains(&folder) && disk.modified(folder).is_ok() => self.claim(folder)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Claims a folder behind a link for this catalogue.
    ///
    /// # Errors
    /// As [`Self::check_ways`].
    fn claim(&self, folder: &str) -> Result<()> {
        let (disk, path) = (self.store.disk(), link_mark(folder));
        let mark = OwnershipMark {
            claimed: true,
            ..self.catalogue.mark()
        };
        let beside = data::DataFileNames::new(&crate::random()?).next(folder, 0, &[]);
        match mark.publish(disk, &path, beside) {
            // Another writer was first: of this store, or of another.
            Err(error) if error.code() == Code::AlreadyExists => {
                let there = OwnershipMark::read(disk, &path)?;
                self.check_behind(folder, &there)
            }
            claimed => claimed,
        }
    }

    /// Checks by its mark that the target of a link belongs to this catalogue.
    fn check_behind(&self, link: &str, mark: &OwnershipMark) -> Result<()> {
        let subject = format!("files behind the link or mount {}", self.store.disk().uri(link));
        if mark.owner == self.catalogue.id {
            return self.catalogue.check(mark, subject);
        }
        let store = mark.store.as_deref().unwrap_or("another place");
        let cause = format!(
            "they are those of the store at {store}: they are read, and none is made or removed; remove that link or mount, or put a copy of \
             what it leads to in its place"
        );
        Err(Error::new(Code::Conflict, subject, cause))
    }

    /// Returns its tiers, and the separate location of its data files, if any.
    fn places(&self) -> Result<Vec<(String, StoreUrl)>> {
        let own = self.store.root().data.clone().map(|place| (OWN.to_owned(), place));
        let tiers = self.store.tiers()?.into_iter().map(|tier| (tier.name, tier.place));
        let places = own.into_iter().chain(tiers);
        places
            .map(|(name, place)| Ok((name, StoreUrl::parse(&place)?)))
            .collect()
    }

    /// Returns links in the folders of the store.
    fn links(&self) -> Result<Vec<String>> {
        let tiers = self.store.tiers()?.into_iter().map(|tier| tier::folder(&tier.name));
        let folders = FOLDERS.iter().map(|&folder| folder.to_owned()).chain(tiers);
        let mut links = Vec::new();
        for folder in folders {
            let found = self.store.disk().links(&folder);
            links.extend(found.map_err(|error| refused(folder, "cannot be listed", &error))?);
        }
        Ok(links)
    }
}

/// Checks that files in a folder belong to this catalogue, before a commit names such files: a copy may have adopted
/// their location.
///
/// # Errors
/// As [`OwnershipCheck::check`].
pub(crate) fn check_folder(disk: &dyn StorageDisk, folder: &str) -> Result<()> {
    let checked = disk.check_owner(folder);
    checked.map_err(|error| refused(format!("files in {folder}"), "cannot be committed", &error))
}

/// The folders of a store.
const FOLDERS: [&str; 7] = [
    data::FOLDER,
    LOG_FOLDER,
    COMMITS_FOLDER,
    checkpoint::FOLDER,
    checkpoint::SEGMENTS,
    schemas::FOLDER,
    tier::FOLDER,
];

/// The folders in which files have numbers as names, so that two stores use the same names.
const NUMBERED: [&str; 4] = [LOG_FOLDER, COMMITS_FOLDER, checkpoint::FOLDER, schemas::FOLDER];

/// Returns the path of the mark in the target folder of a link.
fn link_mark(link: &str) -> String {
    format!("{link}/.owner.json")
}

/// Removes the mark of data files, because the store is not created.
pub(crate) fn unmark(disk: &dyn StorageDisk) {
    let _ = disk.remove(&path(OWN));
}

/// Checks that a location has the mark of this store for a tier of this name, or for its data files.
///
/// # Errors
/// `Unavailable` if it has the mark of another store, or none; errors of the location.
pub(crate) fn check(disk: &dyn StorageDisk, name: &str, owner: &str, place: &str) -> Result<()> {
    let subject = match name {
        OWN => format!("the data at {place}"),
        _ => format!("tier {name} at {place}"),
    };
    let cause = match OwnershipMark::find(disk, &path(name))? {
        Some(there) if there.owner == owner => return Ok(()),
        // Created before locations of data files were marked.
        None if name == OWN && has_data(disk)? => return Ok(()),
        Some(_) => "it has data of another store",
        None => "it is not there: is it mounted?",
    };
    Err(Error::new(Code::Unavailable, subject, cause))
}

/// Checks that there are no files of a store at the location of a new store, or of its data files.
///
/// # Errors
/// `AlreadyExists` if there are; errors of the location.
pub(crate) fn check_free(disk: &dyn StorageDisk) -> Result<()> {
    if root::is_there(disk)? {
        return Err(Error::new(
            Code::AlreadyExists,
            disk.uri(root::NAME),
            "a store exists here; open it, or choose another place",
        ));
    }
    if let Some(there) = OwnershipMark::find(disk, &path(OWN))? {
        return Err(there.is_other(disk, OWN));
    }
    if has_data(disk)? {
        let cause = "it has files already, and no store that describes them: choose an empty place";
        return Err(Error::new(Code::AlreadyExists, disk.uri(data::FOLDER), cause));
    }
    Ok(())
}

fn has_data(disk: &dyn StorageDisk) -> Result<bool> {
    let names = disk.list(data::FOLDER);
    let names = names.map_err(|error| refused(data::FOLDER, "cannot be listed", &error))?;
    Ok(!names.is_empty())
}

/// Returns the path at the location itself.
fn path(name: &str) -> String {
    format!("{}/{name}.owner.json", tier::FOLDER)
}
