//! What a follow has to wait for in the store, apart from the follow: it can be done by whoever may wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctura_model::Result;

use super::follow::is_owed;
use super::{Depot, Merge, Row, Sorting, Wants};
use crate::object::{Object, Origin};
use crate::verbs::follow::Gap;

/// A question to the store.
pub(crate) enum Lookup {
    /// What it has when a follow begins.
    Begin(Beginning),
    /// The bytes of these.
    Read {
        rows: Vec<Row>,
        origin: Arc<Origin>,
        is_live: bool,
    },
    /// What has left the pool before it was given.
    Find { depot: Arc<Depot>, gap: Gap },
}

/// What it said.
pub(crate) enum Found {
    Begun(Result<Rows>, Wants),
    Read(Vec<Result<Object>>),
    /// For each item of the gap, its row, if it has one.
    Gap(Gap, Result<Vec<Option<Row>>>),
}

/// A follow that begins.
pub(crate) struct Beginning {
    pub(super) depot: Arc<Depot>,
    pub(super) incarnation: u64,
    pub(super) sorting: Sorting,
    /// Where its first phase ends in the order of this incarnation.
    pub(super) since: u64,
    pub(super) wants: Wants,
}

/// What the store has for a follow that begins: by key, and by sequence number.
pub(crate) struct Rows {
    pub(super) first: Merge,
    pub(super) live: BTreeMap<u64, Row>,
}

impl Lookup {
    /// Waits for the store.
    pub(crate) fn run(self) -> Found {
        match self {
            Self::Begin(beginning) => Found::Begun(beginning.run(), beginning.wants),
            Self::Read { rows, origin, is_live } => {
                let read = |row: Row| Object::new(&origin, row.read(!is_live)?);
                Found::Read(rows.into_iter().map(read).collect())
            }
            Self::Find { depot, gap } => {
                let rows = depot.find_gap(&gap);
                Found::Gap(gap, rows)
            }
        }
    }
}

impl Beginning {
    fn run(&self) -> Result<Rows> {
        let (mut first, mut live) = (Vec::new(), BTreeMap::new());
        let (Wants::All(selector) | Wants::After(selector, _)) = &self.wants;
        for row in self.depot.newest(selector)? {
            let is_after = row.is_after(self.incarnation, self.since);
            match &self.wants {
                Wants::After(_, cursor) if is_after && cursor.incarnation == self.incarnation => {
                    live.insert(row.version().sequence, row);
                }
                Wants::After(_, cursor) if !is_after && is_owed(&row, cursor, self.incarnation, &self.sorting)? => {
                    first.push(row);
                }
                Wants::All(_) if !is_after => first.push(row),
                _ => {}
            }
        }
        let first = Merge::new(self.sorting.clone(), first);
        Ok(Rows { first, live })
    }
}
