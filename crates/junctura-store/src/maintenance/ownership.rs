//! Whose the files at a place are.
//!
//! What lies at a place and no commit names is removed some day: so `tiers/NAME.owner.json` there says of which store the tier is, and
//! `tiers/data.owner.json` whose data files lie there, if they lie elsewhere than the catalogue. A place that does not say it is another
//! store's, or is not there just now: a file system that is not mounted looks like an empty one.
//!
//! A store whose folder is copied is there twice, with one number, and each of the two would remove what only the other one names. So a mark
//! is of one catalogue: it says where that is, and what its file system tells its `store.json` from others by. From any other one
//! files are read, and none is made or removed, until somebody states that it is the store ([`Store::adopt`]). What lies behind a link within a
//! store may be anybody's: it is removed only where the folder has such a mark.

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

/// What such a file says, and that of a tier beside the catalogue.
#[derive(Deserialize, Serialize)]
pub(crate) struct OwnershipMark {
    format: String,
    version: u32,
    /// The store, by the number in its root.
    pub(crate) owner: String,
    /// Where the tier is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
    /// Where the catalogue is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    /// What tells its `store.json` from copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// It was made by a store that writes there, without a statement: no other store writes there, and nothing is removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    claimed: bool,
}

/// The catalogue of a store.
#[derive(Clone, Copy)]
pub(crate) struct OneCatalogue<'a> {
    /// The number in its root, which a copy has, too.
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

    /// Whether a mark of a store with its number is of this catalogue, and of no copy.
    fn is_of(&self, mark: &OwnershipMark) -> bool {
        let Some(store) = &mark.store else { return true };
        match (&mark.file, self.disk.identity(root::NAME)) {
            // One that moved without a copy leaves nothing where it was.
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

/// Whether a mark says the file of this identity. Those of before have no inode number of the folder: a copy of links has the same file in another.
fn is_same(marked: &str, own: &str) -> bool {
    marked == own || own.split_once('@').is_some_and(|(file, _)| file == marked)
}

/// Whether a store of this number is, or may be, in that folder of this machine.
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
         `junctura tier --adopt`"
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

    /// Where there is no file of this path yet. `beside`: it is written there first.
    ///
    /// # Errors
    /// `AlreadyExists` where there is one; what the system refuses.
    pub(crate) fn publish(&self, disk: &dyn StorageDisk, path: &str, beside: String) -> Result<()> {
        let draft = FileDraft {
            beside,
            bytes: self.bytes(path)?,
        };
        publish_new(disk, &draft, path).map_err(|error| refused(path, "cannot be made", &error))
    }

    /// Where objects get their names with all of their bytes, and data may lie though a name is given twice.
    fn put(&self, disk: &dyn StorageDisk, path: &str) -> Result<()> {
        let bytes = self.bytes(path)?;
        let put = disk.create(path).and_then(|file| {
            write_all(&*file, &bytes, 0)?;
            file.sync()
        });
        put.map_err(|error| refused(path, "cannot be made", &error))
    }

    /// # Errors
    /// `LimitExceeded` for more than a reader takes.
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

    /// The same, if there is one.
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
                "the data of a store at {store} lie there: take another place (if no such store was ever made, remove this file)"
            ),
            _ => format!("the store at {store} has a tier of this name there: take another name"),
        };
        Error::new(Code::AlreadyExists, disk.uri(&path(name)), cause)
    }
}

/// Says at the place of a tier, or of data files, that they are this store's.
///
/// # Errors
/// `AlreadyExists` when it says another one; `Conflict` when it says another catalogue of it; what the place refuses.
pub(crate) fn mark(disk: &dyn StorageDisk, name: &str, catalogue: OneCatalogue<'_>) -> Result<()> {
    let path = path(name);
    let mark = catalogue.mark();
    if name == OWN && !disk.grows(&path) {
        mark.put(disk, &path)?;
    } else {
        // Named as data files are: what a killed one leaves is a file that no commit names.
        let beside = data::DataFileNames::new(&crate::random()?).next(&tier::folder(name), 0, &[]);
        match mark.publish(disk, &path, beside) {
            // Another one who says the same may have been quicker.
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

/// Says at such a place that it is this catalogue's, and no longer that of one it was copied from.
///
/// # Errors
/// `AlreadyExists` when it is another store's; what the place refuses.
pub(crate) fn remark(disk: &dyn StorageDisk, name: &str, catalogue: OneCatalogue<'_>) -> Result<()> {
    let path = path(name);
    check_marked(disk, &path, name, catalogue)?;
    put(disk, path, &tier::folder(name), catalogue)
}

/// Whether no mark of another store is there.
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

/// Whether what lies at a place may be changed from this catalogue.
///
/// # Errors
/// `Conflict` when it is that of another one; what the place refuses.
pub(crate) fn check_catalogue(disk: &dyn StorageDisk, name: &str, catalogue: OneCatalogue<'_>) -> Result<()> {
    match OwnershipMark::find(disk, &path(name))? {
        Some(there) => catalogue.check(&there, format!("files at {}", disk.uri(""))),
        // Made before places of data files said whose they are.
        None => Ok(()),
    }
}

impl Store {
    /// States that this folder is the store from now on: its data files that lie elsewhere, its tiers, and the folders behind links within it are
    /// its own, and no longer those of the folder that it was copied or moved from. That one can be read until this one
    /// removes what it has. A store that has all in its own folder needs no such statement.
    ///
    /// # Errors
    /// `AlreadyExists` for a place that is another store's; `Unavailable` for one that is not there, as when it is not mounted; `Conflict` for a link
    /// into the folder of another store; what a place refuses. Where one place or link is refused, none is this folder's.
    pub fn adopt(&self) -> Result<()> {
        OwnershipCheck::of(self).adopt()
    }
}

/// Compares what lies elsewhere, or behind links, with a store's catalogue.
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

    /// Whether what lies behind a link can be this catalogue's.
    ///
    /// # Errors
    /// As [`Self::adopt`].
    fn check_link(&self, link: &str) -> Result<()> {
        let disk = self.store.disk();
        if disk.modified(link).is_err() {
            let cause = "what the link leads to is not there: is it mounted?";
            return Err(Error::new(Code::Unavailable, disk.uri(link), cause));
        }
        if let Some(store) = disk.store_above(link) {
            let cause = format!("it leads into the store at {store}");
            return Err(Error::new(Code::Conflict, disk.uri(link), cause));
        }
        check_marked(disk, &link_mark(link), OWN, self.catalogue)
    }

    /// Whether all that lies elsewhere is this catalogue's, so that files there can be removed.
    ///
    /// # Errors
    /// `Conflict` when it is not, or nothing says so; what the places refuse.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, place) in self.places()? {
            let disk = place.disk(false)?;
            if name == OWN && OwnershipMark::find(&*disk, &path(OWN))?.is_none() && has_data(&*disk)? {
                let cause = "nothing there says that they are this store's";
                return Err(not_its(format!("files at {}", disk.uri("")), cause));
            }
            check_catalogue(&*disk, &name, self.catalogue)?;
        }
        for link in self.links()? {
            let there = OwnershipMark::find(self.store.disk(), &link_mark(&link))?;
            let Some(there) = there.filter(|mark| !mark.claimed || mark.owner != self.catalogue.id) else {
                let subject = format!("files behind the link or mount {}", self.store.disk().uri(&link));
                return Err(not_its(subject, "nothing there says that they are this store's"));
            };
            self.check_behind(&link, &there)?;
        }
        Ok(())
    }

    /// Whether files may be made and changed in the folders of the store: none leads to where those of another one are. What a link leads to,
    /// and two stores would name the same there, is claimed.
    ///
    /// # Errors
    /// `Conflict` where a link or mount point leads into another store, or to what a mark there says is another catalogue's; what the place of a claim
    /// refuses.
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

    /// Says in a folder behind a link that this catalogue writes there.
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
            // Another writer was quicker: one of this store, or of another one.
            Err(error) if error.code() == Code::AlreadyExists => {
                let there = OwnershipMark::read(disk, &path)?;
                self.check_behind(folder, &there)
            }
            claimed => claimed,
        }
    }

    /// Whether what a link leads to is this catalogue's, by its mark.
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

    /// Its tiers, and where its data files lie elsewhere than its catalogue.
    fn places(&self) -> Result<Vec<(String, StoreUrl)>> {
        let own = self.store.root().data.clone().map(|place| (OWN.to_owned(), place));
        let tiers = self.store.tiers()?.into_iter().map(|tier| (tier.name, tier.place));
        let places = own.into_iter().chain(tiers);
        places
            .map(|(name, place)| Ok((name, StoreUrl::parse(&place)?)))
            .collect()
    }

    /// Links where files of the store lie.
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

/// Whether files in a folder are this catalogue's, before a commit names such files: a copy may have adopted their place.
///
/// # Errors
/// As [`OwnershipCheck::check`].
pub(crate) fn check_folder(disk: &dyn StorageDisk, folder: &str) -> Result<()> {
    let checked = disk.check_owner(folder);
    checked.map_err(|error| refused(format!("files in {folder}"), "cannot be committed", &error))
}

/// Where a store has files.
const FOLDERS: [&str; 7] = [
    data::FOLDER,
    LOG_FOLDER,
    COMMITS_FOLDER,
    checkpoint::FOLDER,
    checkpoint::SEGMENTS,
    schemas::FOLDER,
    tier::FOLDER,
];

/// Of these, those whose files have numbers for names, so that two stores give the same.
const NUMBERED: [&str; 4] = [LOG_FOLDER, COMMITS_FOLDER, checkpoint::FOLDER, schemas::FOLDER];

/// In the folder that a link leads to.
fn link_mark(link: &str) -> String {
    format!("{link}/.owner.json")
}

/// Takes back what [`mark`] has said of data files, since there will be no such store.
pub(crate) fn unmark(disk: &dyn StorageDisk) {
    let _ = disk.remove(&path(OWN));
}

/// Whether a place says that its tier of this name, or the data files, are this store's.
///
/// # Errors
/// `Unavailable` when it says another one, or nothing; what the place refuses.
pub(crate) fn check(disk: &dyn StorageDisk, name: &str, owner: &str, place: &str) -> Result<()> {
    let subject = match name {
        OWN => format!("the data at {place}"),
        _ => format!("tier {name} at {place}"),
    };
    let cause = match OwnershipMark::find(disk, &path(name))? {
        Some(there) if there.owner == owner => return Ok(()),
        // One that was made before places of data files said whose they are.
        None if name == OWN && has_data(disk)? => return Ok(()),
        Some(_) => "what lies there is another store's",
        None => "it is not there: is it mounted?",
    };
    Err(Error::new(Code::Unavailable, subject, cause))
}

/// Whether there is nothing of a store where one is to be made, or where its data files are to lie.
///
/// # Errors
/// `AlreadyExists` when there is; what the place refuses.
pub(crate) fn check_free(disk: &dyn StorageDisk) -> Result<()> {
    if root::is_there(disk)? {
        return Err(Error::new(
            Code::AlreadyExists,
            disk.uri(root::NAME),
            "a store lies there",
        ));
    }
    if let Some(there) = OwnershipMark::find(disk, &path(OWN))? {
        return Err(there.is_other(disk, OWN));
    }
    if has_data(disk)? {
        let cause = "there are files already, and no store that says what they are: take an empty place";
        return Err(Error::new(Code::AlreadyExists, disk.uri(data::FOLDER), cause));
    }
    Ok(())
}

fn has_data(disk: &dyn StorageDisk) -> Result<bool> {
    let names = disk.list(data::FOLDER);
    let names = names.map_err(|error| refused(data::FOLDER, "cannot be listed", &error))?;
    Ok(!names.is_empty())
}

/// At the place itself.
fn path(name: &str) -> String {
    format!("{}/{name}.owner.json", tier::FOLDER)
}
