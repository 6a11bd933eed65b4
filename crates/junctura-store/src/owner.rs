//! Whose the files at a place are.
//!
//! What lies at a place and no commit names is removed some day: so `tiers/NAME.owner.json` there says of which store the tier is, and
//! `tiers/data.owner.json` whose data files lie there, if they lie elsewhere than the catalogue. A place that does not say it is another
//! store's, or is not there just now: a file system that is not mounted looks like an empty one.

use junctura_model::{Code, Error, Result};
use serde::{Deserialize, Serialize};

use crate::data;
use crate::disk::{Disk, Draft, publish_new, read_whole, refused, write_all};
use crate::root;
use crate::tier::{self, OWN};
use crate::version;

const FORMAT: &str = "junctura-tier";
const VERSION: u32 = 1;
const BYTES_MAX: u64 = 1 << 20;

/// What such a file says, and that of a tier beside the catalogue.
#[derive(Deserialize, Serialize)]
pub(crate) struct Marked {
    format: String,
    version: u32,
    /// The store, by the number in its root.
    pub(crate) owner: String,
    /// Where the tier is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
    /// Where the store is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
}

impl Marked {
    pub(crate) fn new(owner: &str, place: Option<&str>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            owner: owner.to_owned(),
            place: place.map(str::to_owned),
            store: None,
        }
    }

    /// Where there is no file of this path yet. `beside`: it is written there first.
    ///
    /// # Errors
    /// `AlreadyExists` where there is one; what the system refuses.
    pub(crate) fn publish(&self, disk: &dyn Disk, path: &str, beside: String) -> Result<()> {
        let draft = Draft {
            beside,
            bytes: self.bytes(path)?,
        };
        publish_new(disk, &draft, path).map_err(|error| refused(path, "cannot be made", &error))
    }

    /// Where objects get their names with all of their bytes, and data may lie though a name is given twice.
    fn put(&self, disk: &dyn Disk, path: &str) -> Result<()> {
        let bytes = self.bytes(path)?;
        let put = disk.create(path).and_then(|file| {
            write_all(&*file, &bytes, 0)?;
            file.sync()
        });
        put.map_err(|error| refused(path, "cannot be made", &error))
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        let bytes = serde_json::to_vec_pretty(self);
        let mut bytes = bytes.map_err(|error| Error::new(Code::Io, path, error.to_string()))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    pub(crate) fn read(disk: &dyn Disk, path: &str) -> Result<Self> {
        let text = read_whole(disk, path, BYTES_MAX)?;
        version::check(path, &text, FORMAT, VERSION)?;
        serde_json::from_slice(&text).map_err(|error| Error::new(Code::Corrupt, path, error.to_string()))
    }

    /// The same, if there is one.
    fn find(disk: &dyn Disk, path: &str) -> Result<Option<Self>> {
        match Self::read(disk, path) {
            Err(error) if error.code() == Code::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn is_other(&self, disk: &dyn Disk, name: &str) -> Error {
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
/// `AlreadyExists` when it says another one; what the place refuses.
pub(crate) fn mark(disk: &dyn Disk, name: &str, owner: &str, store: &str) -> Result<()> {
    let path = path(name);
    let mark = Marked {
        store: Some(store.to_owned()),
        ..Marked::new(owner, None)
    };
    if name == OWN && !disk.grows(&path) {
        mark.put(disk, &path)?;
    } else {
        // Named as data files are: what a killed one leaves is a file that no commit names.
        let beside = data::Names::new(&crate::random()?).next(&tier::folder(name), 0, &[]);
        match mark.publish(disk, &path, beside) {
            // Another one who says the same may have been quicker.
            Err(error) if error.code() == Code::AlreadyExists => {}
            marked => return marked,
        }
    }
    let there = Marked::read(disk, &path)?;
    if there.owner == owner {
        Ok(())
    } else {
        Err(there.is_other(disk, name))
    }
}

/// Takes back what [`mark`] has said of data files, since there will be no such store.
pub(crate) fn unmark(disk: &dyn Disk) {
    let _ = disk.remove(&path(OWN));
}

/// Whether a place says that its tier of this name, or the data files, are this store's.
///
/// # Errors
/// `Unavailable` when it says another one, or nothing; what the place refuses.
pub(crate) fn check(disk: &dyn Disk, name: &str, owner: &str, place: &str) -> Result<()> {
    let subject = match name {
        OWN => format!("the data at {place}"),
        _ => format!("tier {name} at {place}"),
    };
    let cause = match Marked::find(disk, &path(name))? {
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
pub(crate) fn check_free(disk: &dyn Disk) -> Result<()> {
    if root::is_there(disk)? {
        return Err(Error::new(
            Code::AlreadyExists,
            disk.uri(root::NAME),
            "a store lies there",
        ));
    }
    if let Some(there) = Marked::find(disk, &path(OWN))? {
        return Err(there.is_other(disk, OWN));
    }
    if has_data(disk)? {
        let cause = "there are files already, and no store that says what they are: take an empty place";
        return Err(Error::new(Code::AlreadyExists, disk.uri(data::FOLDER), cause));
    }
    Ok(())
}

fn has_data(disk: &dyn Disk) -> Result<bool> {
    let names = disk.list(data::FOLDER);
    let names = names.map_err(|error| refused(data::FOLDER, "cannot be listed", &error))?;
    Ok(!names.is_empty())
}

/// At the place itself.
fn path(name: &str) -> String {
    format!("{}/{name}.owner.json", tier::FOLDER)
}
