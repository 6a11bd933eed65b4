//! What a follow has to wait for in the store, apart from the follow: it can be done by whoever may wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctura_model::Result;

use super::follow::is_owed;
use super::{MergeOrder, MergedList, StoreReader, StoreRequest, StoredRow};
use crate::object::{Object, ObjectOrigin};
use crate::verbs::follow::Gap;

/// A question to the store.
pub(crate) enum StoreLookup {
    /// What it has when a follow begins.
    Begin(FollowStart),
    /// The bytes of these.
    Read {
        rows: Vec<StoredRow>,
        origin: Arc<ObjectOrigin>,
        is_live: bool,
    },
    /// What has left the pool before it was given.
    Find { depot: Arc<StoreReader>, gap: Gap },
}

/// What it said.
pub(crate) enum LookupResult {
    Begun(Result<ReplayRows>, StoreRequest),
    Read(Vec<Result<Object>>),
    /// For each item of the gap, its row, if it has one.
    Gap(Gap, Result<Vec<Option<StoredRow>>>),
}

/// A follow that begins.
pub(crate) struct FollowStart {
    pub(super) depot: Arc<StoreReader>,
    pub(super) incarnation: u64,
    pub(super) sorting: MergeOrder,
    /// Where its first phase ends in the order of this incarnation.
    pub(super) since: u64,
    pub(super) wants: StoreRequest,
}

/// What the store has for a follow that begins: by key, and by sequence number.
pub(crate) struct ReplayRows {
    pub(super) first: MergedList,
    pub(super) live: BTreeMap<u64, StoredRow>,
}

impl StoreLookup {
    /// Waits for the store.
    pub(crate) fn run(self) -> LookupResult {
        match self {
            Self::Begin(beginning) => LookupResult::Begun(beginning.run(), beginning.wants),
            Self::Read { rows, origin, is_live } => {
                let read = |row: StoredRow| Object::new(&origin, row.read(!is_live)?);
                LookupResult::Read(rows.into_iter().map(read).collect())
            }
            Self::Find { depot, gap } => {
                let rows = depot.find_gap(&gap);
                LookupResult::Gap(gap, rows)
            }
        }
    }
}

impl FollowStart {
    fn run(&self) -> Result<ReplayRows> {
        let (mut first, mut live) = (Vec::new(), BTreeMap::new());
        let (StoreRequest::All(selector) | StoreRequest::After(selector, _)) = &self.wants;
        for row in self.depot.newest(selector)? {
            let is_after = row.is_after(self.incarnation, self.since);
            match &self.wants {
                StoreRequest::After(_, cursor) if is_after && cursor.incarnation == self.incarnation => {
                    live.insert(row.version().sequence, row);
                }
                StoreRequest::After(_, cursor)
                    if !is_after && is_owed(&row, cursor, self.incarnation, &self.sorting)? =>
                {
                    first.push(row);
                }
                StoreRequest::All(_) if !is_after => first.push(row),
                _ => {}
            }
        }
        let first = MergedList::new(self.sorting.clone(), first);
        Ok(ReplayRows { first, live })
    }
}
