//! Tiers: other locations for objects of a store, usually slower and larger.
//!
//! `tiers/NAME.json` records the location of a tier for all users, and is never changed. The data files are at that
//! location under `tiers/NAME/`. Separate data files of a store are reached in the same way.

use std::io;
use std::sync::Arc;

use junctura_model::{Code, Error, Result};

use crate::maintenance::ownership::{self, OneCatalogue, OwnershipMark};
use crate::storage::{DataPlaces, StorageDisk, files_in, refused};
use crate::store::Store;
use crate::url::{CacheUrl, StoreUrl};

/// The folder of tier files, and the prefix of their data files.
pub(crate) const FOLDER: &str = "tiers";
/// The tier of objects that were not moved.
pub(crate) const OWN: &str = "data";
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// Another location for objects of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Its name in the store.
    pub name: String,
    /// The path or URL of its location, as [`Store::create_url`] accepts it.
    pub place: String,
}

impl Store {
    /// Adds a tier to which objects can be moved: for all users of the store, permanently. Several stores may have
    /// tiers with different names at one location; the first store to use a name owns it.
    ///
    /// # Errors
    /// `AlreadyExists` for a name with another location, or that another store uses there; `InvalidArgument` for an
    /// invalid name (up to 64 of `a`–`z`, `0`–`9`, `-` and `_`; `data` is reserved for objects that were not moved),
    /// and for a location that is invalid, or not the same for all users; `LimitExceeded` for a location of more than 1
    /// MiB; errors of the write test at the location.
    pub fn add_tier(&self, name: &str, place: &str) -> Result<()> {
        check_name(name)?;
        if has_tier(self.disk(), name, place)? {
            return sync_tiers(self.disk());
        }
        let written = OwnershipMark::new(&self.root().id, Some(place));
        written.bytes(&path(name))?;
        let disk = place_of_tier(self.disk(), name, place)?.disk(true)?;
        disk.probe(false)?;
        ownership::mark(&*disk, name, OneCatalogue::of(self))?;
        let beside = format!("{FOLDER}/.{}", crate::hex(&crate::random()?));
        match written.publish(self.disk(), &path(name), beside) {
            Err(error) if error.code() == Code::AlreadyExists => has_tier(self.disk(), name, place).map(|_| ())?,
            published => published?,
        }
        // Opened at once; the handle stays open.
        files_in(self.disk(), &folder(name)).map(|_| ())
    }

    /// Returns its tiers, ordered by name, without the location of objects that were not moved.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported` for one that cannot be read; errors of system calls.
    pub fn tiers(&self) -> Result<Vec<Tier>> {
        let mut files = files_in(self.disk(), FOLDER)?;
        files.sort();
        let names = files.iter().filter_map(|file| {
            let name = file.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".json")?;
            check_name(name).is_ok().then_some(name)
        });
        names.map(|name| read(self.disk(), name)).collect()
    }
}

/// Returns whether there is a tier with this name, at this location.
///
/// # Errors
/// `AlreadyExists` for one at another location.
fn has_tier(disk: &dyn StorageDisk, name: &str, place: &str) -> Result<bool> {
    match read(disk, name) {
        Ok(known) if known.place == place => Ok(true),
        Ok(known) => {
            let cause = format!("it is at {} already", known.place);
            Err(Error::new(Code::AlreadyExists, format!("tier {name}"), cause))
        }
        Err(error) if error.code() == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// # Errors
/// `InvalidArgument` for a location that is invalid, or not the same for all users.
fn place_of_tier(disk: &dyn StorageDisk, name: &str, place: &str) -> Result<StoreUrl> {
    let parsed = StoreUrl::parse(place)?;
    let is_lasting = |uri: &str| !uri.starts_with("memory:");
    let cause = if !parsed.is_absolute() {
        "other clients, which open the store elsewhere, would search another place"
    } else if !is_lasting(place) && is_lasting(&disk.uri("store.json")) {
        "memory is lost with the process"
    } else {
        return Ok(parsed);
    };
    Err(Error::new(Code::InvalidArgument, format!("tier {name}"), cause))
}

/// Returns the folder of a tier's data files.
///
/// # Errors
/// `NotFound` if the store has no such tier.
pub(crate) fn folder_of(store: &Store, name: &str) -> Result<String> {
    if name == OWN {
        return Ok(crate::data::FOLDER.to_owned());
    }
    check_name(name)?;
    match read(store.disk(), name) {
        Err(error) if error.code() == Code::NotFound => {
            let tiers = store.tiers()?;
            let names: Vec<&str> = tiers.iter().map(|tier| &*tier.name).chain([OWN]).collect();
            let cause = format!("the store has no such tier (it has {})", names.join(", "));
            Err(Error::new(Code::NotFound, format!("tier {name}"), cause))
        }
        read => read.map(|_| folder(name)),
    }
}

/// Makes the tier files durable: a process that added one may have crashed before it did so.
pub(crate) fn sync_tiers(disk: &dyn StorageDisk) -> Result<()> {
    let synced = disk.sync_names(FOLDER);
    synced.map_err(|error| refused(FOLDER, "cannot be synced", &error))
}

/// Returns the tier of a file; for a file without a tier, that of the store itself.
pub(crate) fn of(file: &str) -> &str {
    let below = file.strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/'));
    below
        .and_then(|rest| rest.split_once('/'))
        .map_or(OWN, |(name, _)| name)
}

/// The locations of a store's data files, and how they are reached.
#[derive(Debug)]
pub(crate) struct OfStore {
    /// The store, by the ID in its root.
    pub(crate) owner: String,
    /// The location of objects that were not moved, if not beside the catalogue.
    pub(crate) data: Option<String>,
    /// The cache for all locations without their own.
    pub(crate) cache: CacheUrl,
}

impl DataPlaces for OfStore {
    fn check_owner(&self, catalogue: &dyn StorageDisk, name: &str, tier: &dyn StorageDisk) -> io::Result<()> {
        let catalogue = OneCatalogue {
            id: &self.owner,
            disk: catalogue,
        };
        ownership::check_catalogue(tier, name, catalogue).map_err(|error| {
            let kind = match error.code() {
                Code::Conflict => io::ErrorKind::ResourceBusy,
                Code::Denied => io::ErrorKind::PermissionDenied,
                Code::Unavailable => io::ErrorKind::TimedOut,
                _ => io::ErrorKind::Other,
            };
            io::Error::new(kind, error.to_string())
        })
    }

    fn has_data(&self) -> bool {
        self.data.is_some()
    }

    fn open(&self, catalogue: &dyn StorageDisk, name: &str) -> io::Result<Arc<dyn StorageDisk>> {
        self.reached(catalogue, name).map_err(|error| {
            let kind = match error.code() {
                Code::NotFound => io::ErrorKind::NotFound,
                Code::Denied => io::ErrorKind::PermissionDenied,
                Code::Unavailable => io::ErrorKind::TimedOut,
                _ => io::ErrorKind::Other,
            };
            io::Error::new(kind, error.to_string())
        })
    }
}

impl OfStore {
    fn reached(&self, catalogue: &dyn StorageDisk, name: &str) -> Result<Arc<dyn StorageDisk>> {
        let (owner, place) = match &self.data {
            Some(place) if name == OWN => (self.owner.clone(), place.clone()),
            _ => {
                check_name(name)?;
                let written = OwnershipMark::read(catalogue, &path(name))?;
                (written.owner, written.place.unwrap_or_default())
            }
        };
        let disk = StoreUrl::parse(&place)?.behind(&self.cache).disk(false)?;
        ownership::check(&*disk, name, &owner, &place)?;
        Ok(disk)
    }
}

/// Returns the folder of its data files.
pub(crate) fn folder(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

fn path(name: &str) -> String {
    format!("{FOLDER}/{name}.json")
}

fn read(disk: &dyn StorageDisk, name: &str) -> Result<Tier> {
    let written = OwnershipMark::read(disk, &path(name))?;
    Ok(Tier {
        name: name.to_owned(),
        place: written.place.unwrap_or_default(),
    })
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    if name != OWN && (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    let cause = format!("a tier's name is up to {NAME_BYTES_MAX} of a-z, 0-9, - and _, and not {OWN}");
    Err(Error::new(Code::InvalidArgument, format!("tier {name:?}"), cause))
}
