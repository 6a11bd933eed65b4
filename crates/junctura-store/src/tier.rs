//! Other places where objects of a store may lie: slower and larger ones, most of the time.
//!
//! `tiers/NAME.json` says where a tier is, for everybody, and is never changed. Its data files are there under `tiers/NAME/`.

use std::io;
use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Draft, publish_new, read_whole, refused};
use crate::place::Place;
use crate::store::Store;

/// Where they are said, and what the data files of all begin with.
pub(crate) const FOLDER: &str = "tiers";
/// The tier where objects lie that were not moved.
pub(crate) const OWN: &str = "data";
const FORMAT: &str = "junctura-tier";
const VERSION: u32 = 1;
const NAME_BYTES_MAX: usize = 64;
const BYTES_MAX: u64 = 1 << 20;

/// Another place for objects of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Its name in the store.
    pub name: String,
    /// The path or URL of its place, as [`Store::create_url`] takes it.
    pub place: String,
}

#[derive(Deserialize, Serialize)]
struct Written {
    format: String,
    version: u32,
    place: String,
}

impl Store {
    /// Says where a tier is, to which objects can be moved: for everybody who uses the store, and for good.
    ///
    /// # Errors
    /// `AlreadyExists` for a name that is taken by another place; `InvalidArgument` for what is no name (up to 64 of `a`–`z`, `0`–`9`, `-`
    /// and `_`; `data` is where objects lie that were not moved), and for a place that is none, or not the same for everybody; what
    /// the place says that is asked whether it can be written to.
    pub fn add_tier(&self, name: &str, place: &str) -> Result<()> {
        check_name(name)?;
        let parsed = Place::parse(place)?;
        if !parsed.is_absolute() {
            let cause = "others, who open the store elsewhere, would look for it in another place";
            return Err(Error::new(Code::InvalidArgument, format!("tier {name}"), cause));
        }
        parsed.disk(true)?.probe(false)?;
        let written = Written {
            format: FORMAT.to_owned(),
            version: VERSION,
            place: place.to_owned(),
        };
        let mut text = serde_json::to_vec_pretty(&written)
            .map_err(|error| Error::new(Code::InvalidArgument, name, error.to_string()))?;
        text.push(b'\n');
        let path = path(name);
        let draft = Draft {
            beside: format!("{FOLDER}/.{}", crate::hex(&crate::random()?)),
            bytes: text,
        };
        match publish_new(self.disk(), &draft, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && read(self.disk(), name)?.place == place => {
                Ok(())
            }
            published => published.map_err(|error| refused(path, "cannot be written", &error)),
        }
    }

    /// Its tiers, in the order of their names, without the place where objects lie that were not moved.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported` for one that cannot be read; what the system refuses.
    pub fn tiers(&self) -> Result<Vec<Tier>> {
        let mut files = self.files_in(FOLDER)?;
        files.sort();
        let names = files.iter().filter_map(|file| {
            let name = file.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".json")?;
            check_name(name).is_ok().then_some(name)
        });
        names.map(|name| read(self.disk(), name)).collect()
    }

    /// The folder of a tier's data files.
    ///
    /// # Errors
    /// `NotFound` when the store has no such tier.
    pub(crate) fn tier_folder(&self, name: &str) -> Result<String> {
        if name == OWN {
            return Ok(crate::data::FOLDER.to_owned());
        }
        check_name(name)?;
        match read(self.disk(), name) {
            Err(error) if error.code() == Code::NotFound => {
                let tiers = self.tiers()?;
                let names: Vec<&str> = tiers.iter().map(|tier| &*tier.name).chain([OWN]).collect();
                let cause = format!("the store has no such tier (it has {})", names.join(", "));
                Err(Error::new(Code::NotFound, format!("tier {name}"), cause))
            }
            read => read.map(|_| format!("{FOLDER}/{name}")),
        }
    }
}

/// The tier that has a file; that of the store itself where none has.
pub(crate) fn of(file: &str) -> &str {
    let below = file.strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/'));
    below
        .and_then(|rest| rest.split_once('/'))
        .map_or(OWN, |(name, _)| name)
}

/// What a tier is reached through.
pub(crate) fn open(catalogue: &dyn Disk, name: &str) -> io::Result<Arc<dyn Disk>> {
    check_name(name)
        .and_then(|()| Place::parse(&read(catalogue, name)?.place)?.disk(false))
        .map_err(|error| {
            let kind = match error.code() {
                Code::NotFound => io::ErrorKind::NotFound,
                Code::Denied => io::ErrorKind::PermissionDenied,
                Code::Unavailable => io::ErrorKind::TimedOut,
                _ => io::ErrorKind::Other,
            };
            io::Error::new(kind, format!("tier {name}: {error}"))
        })
}

fn path(name: &str) -> String {
    format!("{FOLDER}/{name}.json")
}

fn read(disk: &dyn Disk, name: &str) -> Result<Tier> {
    let path = path(name);
    let text = read_whole(disk, &path, BYTES_MAX)?;
    let written: Written =
        serde_json::from_slice(&text).map_err(|error| Error::new(Code::Corrupt, &*path, error.to_string()))?;
    if written.format != FORMAT || written.version != VERSION {
        let cause = format!(
            "it is {} {}, and this is for {FORMAT} {VERSION}",
            written.format, written.version
        );
        return Err(Error::new(Code::Unsupported, path, cause));
    }
    Ok(Tier {
        name: name.to_owned(),
        place: written.place,
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
