//! The root of a store: its identity, and the rules that all its users follow.
//!
//! `store.json` is written once, when the store is created, and never changed. Schemas that were added later are stored
//! elsewhere (`catalogue/schemas.rs`).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, RecordRef, Result, Schema};
use serde::{Deserialize, Serialize};

use crate::catalogue::schemas::{self, NewestSchema};
use crate::catalogue::segment::check_names;
use crate::data::packing::{Compression, PackingRule, SchemaPacking};
use crate::log::{CommitLog, Commits};
use crate::storage::{FileDraft, StorageDisk, check_readable, publish_new, read_whole, refused};
use crate::version;

pub(crate) const NAME: &str = "store.json";
const FORMAT: &str = "junctura-store";
/// The format version that is written, and the only one that is read.
const VERSION: u32 = 1;
pub(crate) const BYTES_MAX: u64 = if cfg!(test) { 4 << 20 } else { 64 << 20 };

/// How long data are kept for processes that may still need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionAges {
    /// The age up to which a snapshot can be read, independent of other processes. Default: 24 hours.
    pub snapshot_max: Duration,
    /// The age up to which archived objects can be flushed. Default: 24 hours.
    pub unflushed_max: Duration,
}

impl Default for RetentionAges {
    fn default() -> Self {
        let day = Duration::from_hours(24);
        Self {
            snapshot_max: day,
            unflushed_max: day,
        }
    }
}

/// The layout of a store: chosen when it is created, and never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreLayout {
    /// The retention ages.
    pub ages: RetentionAges,
    /// How commits are ordered. Default: appended to one file in a folder, exclusive in an object store, where only
    /// that is possible.
    pub commits: Option<Commits>,
    /// The location of the data of large flushes, as [`Store::create_url`](crate::Store::create_url) accepts it.
    /// Default: beside the catalogue. All processes that open the store use this text, so a path must be absolute.
    pub data: Option<String>,
    /// Packing rules for the objects of datasets; the first matching rule applies. Default: none, objects are stored
    /// unpacked.
    pub compression: Vec<PackingRule>,
}

impl From<RetentionAges> for StoreLayout {
    fn from(ages: RetentionAges) -> Self {
        Self {
            ages,
            ..Self::default()
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct StoreRoot {
    /// Unique among all stores.
    pub(crate) id: String,
    pub(crate) schemas: Vec<Arc<Schema>>,
    /// The folder that states how commits are ordered.
    pub(crate) folder: &'static str,
    pub(crate) ages: RetentionAges,
    pub(crate) commits: Commits,
    /// The location of the data, if separate.
    pub(crate) data: Option<String>,
    /// Rules of a later version concern only later writers.
    pub(crate) compression: Result<Vec<SchemaPacking>>,
}

#[derive(Deserialize, Serialize)]
struct WrittenRoot {
    format: String,
    version: u32,
    id: String,
    schemas: Vec<String>,
    #[serde(default)]
    commits: WrittenOrder,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    compression: Vec<WrittenPacking>,
    snapshot_max_age_ms: u64,
    unflushed_max_age_ms: u64,
}

#[derive(Deserialize, Serialize)]
struct WrittenPacking {
    datasets: String,
    codec: String,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum WrittenOrder {
    #[default]
    Appended,
    Exclusive,
}

/// The root of a store that is to be created.
pub(crate) struct RootDraft {
    written: WrittenRoot,
    commits: Commits,
}

impl RootDraft {
    /// # Errors
    /// `InvalidArgument` for no schema, two schemas with one name, or invalid datasets in packing rules.
    pub(crate) fn new(schemas: &[Arc<Schema>], commits: Commits, layout: &StoreLayout) -> Result<Self> {
        check(schemas)?;
        rules(&layout.compression, schemas)?;
        let milliseconds = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let written = WrittenRoot {
            format: FORMAT.to_owned(),
            version: VERSION,
            id: crate::hex(&crate::random()?),
            schemas: schemas.iter().map(|schema| schema.to_yaml()).collect(),
            commits: match commits {
                Commits::Appended => WrittenOrder::Appended,
                Commits::Exclusive => WrittenOrder::Exclusive,
            },
            data: layout.data.clone(),
            compression: layout.compression.iter().map(WrittenPacking::from).collect(),
            snapshot_max_age_ms: milliseconds(layout.ages.snapshot_max),
            unflushed_max_age_ms: milliseconds(layout.ages.unflushed_max),
        };
        Ok(Self { written, commits })
    }

    /// Unique among all stores.
    pub(crate) fn id(&self) -> &str {
        &self.written.id
    }

    /// Creates the root, if there is none.
    ///
    /// # Errors
    /// `AlreadyExists` if there is one; errors of system calls.
    pub(crate) fn make(self, disk: &dyn StorageDisk) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(&self.written).map_err(|error| corrupt(&error.to_string()))?;
        text.push(b'\n');
        check_readable(NAME, &text, BYTES_MAX)?;
        schemas::parse(&self.written.schemas)?;
        // Checked before any file is created: the first file of an old log must not reappear.
        if !is_there(disk)? {
            CommitLog::create(disk, self.commits)?;
        }
        let beside = format!("{NAME}.{}", self.written.id);
        publish_new(disk, &FileDraft { beside, bytes: text }, NAME)
            .map_err(|error| refused(NAME, "cannot be made", &error))
    }
}

/// Returns whether there is a store.
pub(crate) fn is_there(disk: &dyn StorageDisk) -> Result<bool> {
    match disk.open(NAME) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(refused(NAME, "cannot be looked for", &error)),
    }
}

/// Returns whether there is a store, or a file that may be the root of one: unreadable, or not JSON.
pub(crate) fn may_be_there(disk: &dyn StorageDisk) -> bool {
    match disk.read(NAME, BYTES_MAX) {
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        Ok(text) => serde_json::from_slice(&text).map_or(true, |found: serde_json::Value| {
            found.get("format").is_some_and(|format| format == FORMAT)
        }),
    }
}

/// Returns the ID of the store, as far as it can be read.
pub(crate) fn id_of(disk: &dyn StorageDisk) -> Option<String> {
    let found: serde_json::Value = serde_json::from_slice(&disk.read(NAME, BYTES_MAX).ok()?).ok()?;
    Some(found.get("id")?.as_str()?.to_owned())
}

impl StoreRoot {
    /// Returns how the objects of a dataset are packed; `key`: the record of the first level of its key.
    ///
    /// # Errors
    /// `Unsupported` if the root has rules of a later version.
    pub(crate) fn compression_of(&self, schema: usize, key: &[u8]) -> Result<Option<Compression>> {
        let rules = self.compression.as_ref().map_err(Error::clone)?;
        Ok(SchemaPacking::compression(rules, schema, RecordRef::trusted(key)))
    }

    /// Creates a store, if there is none.
    #[cfg(test)]
    pub(crate) fn create(
        disk: &dyn StorageDisk,
        schemas: &[Arc<Schema>],
        commits: Commits,
        layout: &StoreLayout,
    ) -> Result<()> {
        RootDraft::new(schemas, commits, layout)?.make(disk)
    }

    /// # Errors
    /// `NotFound` if there is no store; `Unsupported` for a later format version; `Corrupt` for an invalid root.
    pub(crate) fn open(disk: &dyn StorageDisk) -> Result<Self> {
        let text = read_whole(disk, NAME, BYTES_MAX)?;
        version::check(NAME, &text, FORMAT, VERSION)?;
        let written: WrittenRoot = serde_json::from_slice(&text).map_err(|error| corrupt(&error.to_string()))?;
        let (schemas, folder) = match NewestSchema::read(disk, &written.id)? {
            Some(newest) => (newest.schemas, schemas::FOLDER),
            None => (schemas::parse(&written.schemas)?, ""),
        };
        let packings = written.compression.iter().map(PackingRule::try_from);
        Ok(Self {
            id: written.id,
            compression: packings
                .collect::<Result<Vec<_>>>()
                .and_then(|packings| rules(&packings, &schemas))
                .map_err(|error| Error::new(Code::Unsupported, NAME, error.to_string())),
            schemas,
            folder,
            commits: match written.commits {
                WrittenOrder::Appended => Commits::Appended,
                WrittenOrder::Exclusive => Commits::Exclusive,
            },
            data: written.data,
            ages: RetentionAges {
                snapshot_max: Duration::from_millis(written.snapshot_max_age_ms),
                unflushed_max: Duration::from_millis(written.unflushed_max_age_ms),
            },
        })
    }

    /// Makes the root durable: its creator may have crashed before it did so.
    ///
    /// # Errors
    /// Errors of system calls.
    pub(crate) fn make_last(&self, disk: &dyn StorageDisk) -> Result<()> {
        let synced = disk.sync_names(self.folder);
        synced.map_err(|error| refused(NAME, "cannot be synced", &error))
    }
}

impl From<&PackingRule> for WrittenPacking {
    fn from(packing: &PackingRule) -> Self {
        Self {
            datasets: packing.datasets.clone(),
            codec: packing.compression.to_string(),
        }
    }
}

impl TryFrom<&WrittenPacking> for PackingRule {
    type Error = Error;

    fn try_from(written: &WrittenPacking) -> Result<Self> {
        Ok(Self {
            datasets: written.datasets.clone(),
            compression: written.codec.parse()?,
        })
    }
}

fn rules(packings: &[PackingRule], schemas: &[Arc<Schema>]) -> Result<Vec<SchemaPacking>> {
    packings
        .iter()
        .map(|packing| SchemaPacking::new(packing, schemas))
        .collect()
}

pub(crate) fn check(schemas: &[Arc<Schema>]) -> Result<()> {
    if schemas.is_empty() {
        return Err(Error::new(
            Code::InvalidArgument,
            "schemas",
            "a store needs one or more",
        ));
    }
    for (at, schema) in schemas.iter().enumerate() {
        check_names(schema)?;
        if schemas[..at].iter().any(|other| other.name() == schema.name()) {
            return Err(Error::new(
                Code::InvalidArgument,
                schema.name(),
                "is the name of two schemas",
            ));
        }
    }
    Ok(())
}

fn corrupt(cause: &str) -> Error {
    Error::new(Code::Corrupt, NAME, cause)
}
