//! The lines of a list for an object of a pool or a store.

use std::borrow::Cow;
use std::fmt;

use junctura::{Described, Entry, Version};
use serde_json::{Value, json};

use super::pieces::PieceTotal;
use crate::json;

/// See the module.
pub(super) struct ListedObject<'a> {
    pub(super) object: &'a Described,
    /// Of an array in pieces: those of all pieces.
    pub(super) bytes: u64,
    /// The number of pieces of an array in pieces.
    pub(super) pieces: Option<u64>,
    pub(super) since: VisibleSince,
    /// Location of the payload.
    pub(super) place: Cow<'a, str>,
}

/// With what it became visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VisibleSince {
    Version(Version),
    /// It is not yet: a member of this bundle.
    Staged(u64),
    Commit(u64),
}

impl fmt::Display for VisibleSince {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VisibleSince::Version(version) => version.fmt(f),
            VisibleSince::Staged(bundle) => write!(f, "staged in {bundle}"),
            VisibleSince::Commit(number) => write!(f, "commit {number}"),
        }
    }
}

impl<'a> From<&'a Entry> for ListedObject<'a> {
    fn from(entry: &'a Entry) -> Self {
        let since = entry
            .staged_in()
            .map_or_else(|| VisibleSince::Version(entry.version()), VisibleSince::Staged);
        let place = match entry {
            entry if entry.is_archived() => "store",
            entry if entry.is_spilled() => "file",
            _ => "memory",
        };
        ListedObject {
            object: entry,
            bytes: entry.bytes(),
            pieces: None,
            since,
            place: place.into(),
        }
    }
}

impl ListedObject<'_> {
    pub(super) fn schema_name(&self) -> &str {
        self.object.schema().name()
    }

    /// Returns it with the size of its pieces, if it is an array in pieces.
    pub(super) fn in_pieces(self, total: Option<&PieceTotal>) -> Self {
        match total {
            Some(total) => Self {
                bytes: total.bytes,
                pieces: Some(total.pieces),
                ..self
            },
            None => self,
        }
    }

    pub(super) fn document(&self) -> Value {
        let schema = self.object.schema();
        let mut document = json!({
            "key": self.object.key(),
            "schema": schema.name(),
            "bytes": self.bytes,
            "pieces": self.pieces,
            "place": self.place,
            "attributes": json::attributes(schema, self.object.attributes()),
        });
        match self.since {
            VisibleSince::Commit(number) => document["commit"] = number.into(),
            VisibleSince::Version(version) => {
                document["version"] = version.to_string().into();
                document["staged_in"] = Value::Null;
            }
            VisibleSince::Staged(bundle) => {
                document["version"] = Value::Null;
                document["staged_in"] = bundle.into();
            }
        }
        document
    }
}
