//! What an archiver is told, and what it tells.

use std::time::Duration;

use junctura_model::{Code, Consumers, Error, Result};

use crate::object::Object;
use crate::verbs::follow::{FollowOptions, Gap};
use crate::verbs::require::RequireOptions;

/// The largest window that a server gives.
const WINDOW_MAX: u32 = 65_536;

/// How to archive, where it is not the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiverOptions {
    /// The requirement's name.
    pub requirement: String,
    /// Archives one of so many objects that match, the first of each, and releases the others. Counted by collocation: of the
    /// objects whose keys have all but the last level in common.
    pub every: u64,
    /// Flushes at the latest when so many objects are held; `None`: as many as come together, up to the window.
    pub flush_every: Option<u64>,
    /// For how long objects are held so that more go with one commit; `None`: until nothing more has come. What is held stays in the
    /// pool's memory, and who offers durably waits for it.
    pub flush_interval: Option<Duration>,
    /// Ends when all that is there is archived, and leaves no requirement behind. Where something goes wrong, the requirement stays: it
    /// keeps what was not archived.
    pub until_live: bool,
    /// Writes the catalogue as Parquet files after each so many commits, so that who opens the store has little to read; 0: never.
    pub checkpoint_every: u64,
    /// How many objects may be held at once.
    pub window: u32,
    /// How the store is called where others are told what lies in it; `None`: by the URI of its files.
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
            return refused("every", "one of 0 objects: there is none".to_owned());
        }
        if !(1..=WINDOW_MAX).contains(&self.window) {
            return refused(
                "window",
                format!("{}: 1 to {WINDOW_MAX} objects may be held", self.window),
            );
        }
        match self.flush_every {
            Some(0) => refused("flush_every", "a flush of 0 objects".to_owned()),
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

/// What an archiver has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiverCounts {
    /// Objects that are in the store, flushed.
    pub archived: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that were released and not archived, since only one of so many is.
    pub left_out: u64,
    /// Objects that matched, and went before they could be archived.
    pub missed: u64,
    /// Objects that could not be archived, for a reason of their own or when something ended the archiver: they stay in the pool, for the
    /// next one.
    pub failed: u64,
}

/// What an archiver does, while it does it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArchiverEvent<'a> {
    /// An object is in the store, flushed.
    Archived {
        /// Which; it is released afterwards.
        object: &'a Object,
        /// With which commit of the store: an earlier one, where another archiver has flushed it and died before it said so.
        commit: u64,
    },
    /// All that was archived with this commit, and before it, has been told.
    Flushed {
        /// Its number.
        commit: u64,
    },
    /// Objects that matched went before they could be archived.
    Missed(&'a Gap),
    /// An object cannot be archived, for a reason of its own. It stays in the pool, owed to the next archiver, and the others are archived.
    Unarchived {
        /// Which; it is held until the archiver ends.
        object: &'a Object,
        /// Why.
        error: &'a Error,
    },
    /// The disk has refused a flush, which is tried again if it can be.
    Refused {
        /// How many objects wait for it.
        objects: u64,
        /// What it said.
        error: &'a Error,
    },
    /// The catalogue was not written as Parquet files. Nothing is lost with that.
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
