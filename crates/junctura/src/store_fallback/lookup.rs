//! Store lookups of a follow, separated from the follow so that they run where blocking is allowed.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctura_model::Result;

use super::follow::is_owed;
use super::{MergeOrder, MergedList, StoreReader, StoreRequest, StoredRow};
use crate::object::{Object, ObjectOrigin};
use crate::verbs::follow::Gap;

/// A query to the store.
pub(crate) enum StoreLookup {
    /// The objects at the begin of a follow.
    Begin(FollowStart),
    /// The payloads of these rows.
    Read {
        rows: Vec<StoredRow>,
        origin: Arc<ObjectOrigin>,
        is_live: bool,
    },
    /// The objects that left the pool before they were delivered.
    Find { depot: Arc<StoreReader>, gap: Gap },
}

/// The result of a lookup.
pub(crate) enum LookupResult {
    Begun(Result<ReplayRows>, StoreRequest),
    Read(Vec<Result<Object>>),
    /// For each item of the gap, its row, if the store has it.
    Gap(Gap, Result<Vec<Option<StoredRow>>>),
}

/// The begin of a follow.
pub(crate) struct FollowStart {
    pub(super) depot: Arc<StoreReader>,
    pub(super) incarnation: u64,
    pub(super) sorting: MergeOrder,
    /// The end of its first phase in the order of this incarnation.
    pub(super) since: u64,
    pub(super) wants: StoreRequest,
}

/// The rows for a follow that begins: by key, and by sequence number.
pub(crate) struct ReplayRows {
    pub(super) first: MergedList,
    pub(super) live: BTreeMap<u64, StoredRow>,
}

impl StoreLookup {
    /// Runs the lookup. Blocks on the store.
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
