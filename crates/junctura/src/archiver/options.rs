//! Options, counters and events of an archiver.

use std::time::Duration;

use junctura_model::{Code, Consumers, Error, Result};

use crate::object::Object;
use crate::verbs::follow::{FollowOptions, Gap};
use crate::verbs::require::RequireOptions;

/// The largest window that a server permits.
const WINDOW_MAX: u32 = 65_536;

/// Options of an archiver.
///
/// ```
/// # use std::time::Duration;
/// # use junctura::ArchiverOptions;
/// // One commit per minute, of every tenth object.
/// let minute = Some(Duration::from_secs(60));
/// let options = ArchiverOptions { every: 10, flush_interval: minute, ..ArchiverOptions::default() };
/// assert_eq!((options.requirement.as_str(), options.window), ("archive", 1024));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiverOptions {
    /// The name of the requirement.
    pub requirement: String,
    /// Archives the first of every so many matching objects, and releases the others. Counted by collocation: among the
    /// objects whose keys differ only in the last level.
    pub every: u64,
    /// Maximum number of objects per flush; `None`: all that arrive together, up to the window.
    pub flush_every: Option<u64>,
    /// How long objects are held to put more into one commit; `None`: until no more have arrived. Objects held occupy
    /// the pool's memory and delay durable offers.
    pub flush_interval: Option<Duration>,
    /// Ends when the snapshot is archived, and retracts the requirement. After an error the requirement remains and
    /// retains the objects that were not archived.
    pub until_live: bool,
    /// Writes a checkpoint of the catalogue (Parquet files) after every so many commits, so that opening the store
    /// reads little; 0: never.
    pub checkpoint_every: u64,
    /// The maximum number of objects held at once.
    pub window: u32,
    /// The location of the store in events; `None`: the URI of its files.
    pub location: Option<String>,
}

impl Default for ArchiverOptions {
    fn default() -> Self {
        Self {
            requirement: Consumers::ARCHIVE.to_owned(),
            every: 1,
            flush_every: None,
            flush_interval: None,
            until_live: false,
            checkpoint_every: 1000,
            window: 1024,
            location: None,
        }
    }
}

impl ArchiverOptions {
    pub(super) fn terms(&self) -> RequireOptions {
        RequireOptions {
            name: Some(self.requirement.clone()),
            ..RequireOptions::default()
        }
    }

    pub(super) fn follow(&self) -> FollowOptions {
        FollowOptions {
            window: Some(self.window),
            until_live: self.until_live,
            ..FollowOptions::default()
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let refused = |name: &str, cause: String| Err(Error::new(Code::InvalidArgument, name, cause));
        if self.every == 0 {
            return refused("every", "0: must be at least 1".to_owned());
        }
        if !(1..=WINDOW_MAX).contains(&self.window) {
            return refused(
                "window",
                format!("{}: 1 to {WINDOW_MAX} objects may be held", self.window),
            );
        }
        match self.flush_every {
            Some(0) => refused("flush_every", "0: must be at least 1".to_owned()),
            Some(objects) if objects > u64::from(self.window) => {
                let window = self.window;
                refused(
                    "flush_every",
                    format!("{objects}, and no more than {window} are held (window)"),
                )
            }
            _ => Ok(()),
        }
    }
}

/// Counters of an archiver.
///
/// ```
/// # use junctura::{Archiver, ArchiverCounts, ArchiverOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("archive").display().to_string();
/// # let store = junctura_store::Store::create_url(&path, &pool.schemas()?, &Default::default())?;
/// let archiver = Archiver::start(&pool, &store, "", &ArchiverOptions::default())?;
/// pool.offer([("name", "a")], b"12345678")?;
/// assert_eq!(archiver.stop()?, ArchiverCounts { archived: 1, bytes: 8, ..Default::default() });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiverCounts {
    /// Objects that are in the store, flushed.
    pub archived: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Objects that were released without being archived, because only a sample is archived.
    pub left_out: u64,
    /// Matching objects that were removed before they could be archived.
    pub missed: u64,
    /// Objects that could not be archived, for a reason of their own or because the archiver ended with an error: they
    /// stay in the pool, for the next archiver.
    pub failed: u64,
}

/// An event of an archiver.
///
/// ```
/// # use junctura::{Archiver, ArchiverEvent, ArchiverOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("archive").display().to_string();
/// # let store = junctura_store::Store::create_url(&path, &pool.schemas()?, &Default::default())?;
/// pool.offer([("name", "a")], b"payload")?;
/// let options = ArchiverOptions { until_live: true, ..ArchiverOptions::default() };
/// let mut names = Vec::new();
/// Archiver::new(&pool, &store, "", &options)?.run(&mut |event| {
///     if let ArchiverEvent::Archived { object, .. } = event {
///         names.push(object.get("name").unwrap_or_default().to_owned());
///     }
///     Ok(())
/// })?;
/// assert_eq!(names, ["a"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ArchiverEvent<'a> {
    /// An object is in the store, flushed.
    Archived {
        /// The object; it is released afterwards.
        object: &'a Object,
        /// The commit of the store; an earlier one, if another archiver has flushed the object and crashed before it
        /// reported that.
        commit: u64,
    },
    /// All objects of this commit and of earlier ones have been reported.
    Flushed {
        /// The number of the commit.
        commit: u64,
    },
    /// Matching objects were removed before they could be archived.
    Missed(&'a Gap),
    /// An object cannot be archived, for a reason of its own. It stays in the pool for the next archiver, and the
    /// others are archived.
    Unarchived {
        /// The object; it is held until the archiver ends.
        object: &'a Object,
        /// The reason.
        error: &'a Error,
    },
    /// The disk has failed a flush, which is retried if possible.
    Refused {
        /// The number of objects that wait for it.
        objects: u64,
        /// The error of the disk.
        error: &'a Error,
    },
    /// The checkpoint of the catalogue failed. No data is lost.
    NoCheckpoint(&'a Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_kept_to_is_refused() {
        let refused = |options: ArchiverOptions| options.check().unwrap_err().subject().to_owned();
        let default = ArchiverOptions::default;
        assert!(default().check().is_ok());
        assert_eq!(refused(ArchiverOptions { every: 0, ..default() }), "every");
        assert_eq!(refused(ArchiverOptions { window: 0, ..default() }), "window");
        let flush_every = Some(9);
        assert!(
            ArchiverOptions {
                flush_every,
                window: 9,
                ..default()
            }
            .check()
            .is_ok()
        );
        assert_eq!(
            refused(ArchiverOptions {
                flush_every,
                window: 8,
                ..default()
            }),
            "flush_every"
        );
        assert_eq!(
            refused(ArchiverOptions {
                flush_every: Some(0),
                ..default()
            }),
            "flush_every"
        );
    }
}
