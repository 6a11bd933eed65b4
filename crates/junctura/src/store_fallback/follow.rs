//! A follow that begins in the store and continues live in the pool.
//!
//! ```text
//!   pool   ── first phase, by key ──────────── Live ── as they become visible ── Gap: what has gone ──▶
//!   store  ── what the pool has not, by key ──┘                                  '── read from here instead
//! ```
//!
//! The pool is queried first, then the store: objects that had left the pool by then are in the store, if they were
//! archived, and newer objects are in the pool. A follow that continues from a cursor also gets from the store the
//! objects that became visible since and have left the pool, in the order in which they became visible. For a cursor of
//! an earlier incarnation of the server, these objects are in key order.
//!
//! This module decides which source is next, and never blocks. A [`StoreLookup`] blocks on the store; the caller
//! decides where it runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use junctura_model::Result;
use junctura_model::version::{Cursor, Phase};

use super::lookup::{FollowStart, LookupResult, ReplayRows, StoreLookup};
use super::{MergeOrder, MergedList, StoreReader, StoredRow};
use crate::connection::PoolConnection;
use crate::connection::in_flight::ServerMessage;
use crate::object::{Object, ObjectOrigin};
use crate::verbs::follow::Gap;

/// The query to the store at the begin of a follow.
#[derive(Clone, Debug)]
pub(crate) enum StoreRequest {
    /// All objects that a selector matches.
    All(String),
    /// Objects after a cursor.
    After(String, Cursor),
}

/// The next source of a follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowTurn {
    /// The store, which must be queried or read first.
    Lookup,
    /// A report of objects that neither has.
    Gap,
    /// The pool's next message, if there is one.
    Pool,
    /// Unknown until the pool has answered.
    Nobody,
}

/// Objects of the store that a follow has yet to return.
#[derive(Debug)]
pub(crate) struct StoreReplay {
    depot: Arc<StoreReader>,
    origin: Arc<ObjectOrigin>,
    sorting: MergeOrder,
    /// The end of its first phase in the order of this incarnation.
    since: u64,
    /// `None` after the store was queried.
    wants: Option<StoreRequest>,
    first: MergedList,
    /// Objects that became visible later and have left the pool, by sequence number.
    live: BTreeMap<u64, StoredRow>,
    /// Objects that were read and are next.
    read: VecDeque<Result<Object>>,
    /// The pool has no older outstanding objects up to this sequence number.
    clear: u64,
    question: BacklogCheck,
    /// Objects that were returned from the store live, and may yet arrive from the pool.
    given: BTreeSet<u64>,
    /// Objects that neither has: reported after all of `live`.
    gap: Option<Gap>,
}

/// Whether the pool has an object that is older than the store's next live one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BacklogCheck {
    None,
    /// The request is in flight. The answer counts if no object arrives before it.
    Asked {
        up_to: u64,
        counts: bool,
    },
    /// The pool sends nothing while the reader holds as many objects as it may: the next release repeats the request.
    Held,
}

/// Rows and bytes that are read at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAhead {
    pub(crate) rows: usize,
    pub(crate) bytes: u64,
}

impl StoreReplay {
    /// Creates the replay of a follow that the pool has begun at a sequence number. Reads nothing.
    pub(crate) fn new(
        depot: &Arc<StoreReader>,
        origin: Arc<ObjectOrigin>,
        sorting: MergeOrder,
        since: u64,
        wants: Option<StoreRequest>,
    ) -> Self {
        Self {
            depot: Arc::clone(depot),
            origin,
            first: MergedList::new(sorting.clone(), Vec::new()),
            sorting,
            since,
            wants,
            live: BTreeMap::new(),
            read: VecDeque::new(),
            clear: 0,
            question: BacklogCheck::None,
            given: BTreeSet::new(),
            gap: None,
        }
    }

    fn connection(&self) -> &Arc<PoolConnection> {
        &self.origin.connection
    }

    /// Returns the source that precedes the pool's next message, if that has arrived.
    pub(crate) fn turn(&mut self, letter: Option<&ServerMessage>, is_live: bool) -> FollowTurn {
        if self.wants.is_some() {
            return FollowTurn::Lookup;
        }
        let is_next = match (is_live, letter) {
            (true, letter) => self.is_next_live(letter),
            (false, _) if self.first.is_empty() => Some(false),
            (false, Some(ServerMessage::Delivered(arrived))) => Some(self.first.has_before(arrived.standing())),
            (false, Some(letter)) => Some(matches!(letter, ServerMessage::Live)),
            (false, None) => None,
        };
        match is_next {
            None => FollowTurn::Nobody,
            Some(true) => FollowTurn::Lookup,
            Some(false) if self.gap.is_some() && self.live.is_empty() => FollowTurn::Gap,
            Some(false) => FollowTurn::Pool,
        }
    }

    /// Returns whether the next row is due. `None`: the pool has not answered yet whether it has an older object.
    fn is_next_live(&mut self, letter: Option<&ServerMessage>) -> Option<bool> {
        let Some((&sequence, _)) = self.live.first_key_value() else {
            return Some(false);
        };
        match letter {
            None => (sequence <= self.clear).then_some(true),
            Some(ServerMessage::Delivered(arrived)) if arrived.sequence() == sequence => {
                self.live.remove(&sequence);
                Some(false)
            }
            Some(ServerMessage::Delivered(arrived)) => Some(arrived.sequence() > sequence),
            Some(letter) => Some(matches!(letter, ServerMessage::Ended(_))),
        }
    }

    /// Returns whether there is work before any message from the pool.
    pub(crate) fn is_due(&self, is_live: bool) -> bool {
        let is_next =
            |(&sequence, _): (&u64, &StoredRow)| sequence <= self.clear || self.question == BacklogCheck::None;
        self.has_read()
            || self.wants.is_some()
            || is_live && self.live.first_key_value().is_some_and(is_next)
            || self.gap.is_some() && self.live.is_empty()
    }

    /// Returns whether the store was not queried yet.
    pub(crate) fn is_to_begin(&self) -> bool {
        self.wants.is_some()
    }

    /// Returns whether an object that was read is next.
    pub(crate) fn has_read(&self) -> bool {
        !self.read.is_empty()
    }

    /// Returns the query to the store for a turn that is a lookup.
    pub(crate) fn lookup(&mut self, letter: Option<&ServerMessage>, is_live: bool, ahead: ReadAhead) -> StoreLookup {
        if let Some(wants) = self.wants.take() {
            return StoreLookup::Begin(FollowStart {
                depot: Arc::clone(&self.depot),
                incarnation: self.connection().greeting.incarnation,
                sorting: self.sorting.clone(),
                since: self.since,
                wants,
            });
        }
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < ahead.rows && (rows.is_empty() || bytes < ahead.bytes) {
            let Some(row) = self.next_row(letter, is_live) else {
                break;
            };
            bytes += row.bytes();
            rows.push(row);
        }
        StoreLookup::Read {
            rows,
            origin: Arc::clone(&self.origin),
            is_live,
        }
    }

    fn next_row(&mut self, letter: Option<&ServerMessage>, is_live: bool) -> Option<StoredRow> {
        if !is_live {
            return match letter {
                Some(ServerMessage::Delivered(arrived)) => self.first.before(arrived.standing(), true),
                _ => self.first.pop(),
            };
        }
        self.is_next_live(letter).filter(|&is_next| is_next)?;
        let (sequence, row) = self.live.pop_first()?;
        self.given.insert(sequence);
        Some(row)
    }

    /// Returns the query for the objects of a gap.
    pub(crate) fn look_for(&self, mut gap: Gap) -> StoreLookup {
        gap.items.retain(|item| !self.given.contains(&item.version.sequence));
        StoreLookup::Find {
            depot: Arc::clone(&self.depot),
            gap,
        }
    }

    /// Handles the result of a lookup.
    ///
    /// # Errors
    /// Those of reading the store.
    pub(crate) fn was_found(&mut self, found: LookupResult, is_live: bool) -> Result<()> {
        match found {
            LookupResult::Begun(Ok(ReplayRows { first, live }), _) => {
                self.first = first;
                self.live = live;
            }
            LookupResult::Begun(Err(error), wants) => {
                // A retry begins again.
                self.wants = Some(wants);
                return Err(error);
            }
            LookupResult::Read(objects) => self.read.extend(objects),
            LookupResult::Gap(gap, Ok(rows)) => self.is_missing(gap, rows, is_live),
            LookupResult::Gap(gap, Err(error)) => {
                self.is_missing(gap, Vec::new(), is_live);
                return Err(error);
            }
        }
        Ok(())
    }

    pub(crate) fn take_read(&mut self) -> Option<Result<Object>> {
        self.read.pop_front()
    }

    /// Queues the objects of a gap that the store has. The rest of the gap is reported after them.
    fn is_missing(&mut self, mut gap: Gap, rows: Vec<Option<StoredRow>>, is_live: bool) {
        let mut missing = Vec::new();
        let rows = rows.into_iter().chain(std::iter::repeat_with(|| None));
        for (item, row) in gap.items.into_iter().zip(rows) {
            let comes_live = is_live || item.version.sequence > self.since;
            match row {
                Some(row) if comes_live => _ = self.live.insert(item.version.sequence, row),
                Some(row) => self.first.insert(row),
                None => missing.push(item),
            }
        }
        gap.items = missing;
        if let Some(earlier) = self.gap.take() {
            gap.items.splice(..0, earlier.items);
            gap.unnamed += earlier.unnamed;
        }
        self.gap = (!gap.items.is_empty() || gap.unnamed > 0).then_some(gap);
    }

    pub(crate) fn take_gap(&mut self) -> Option<Gap> {
        self.gap.take()
    }

    /// Returns whether an object from the pool was returned from the store before.
    pub(crate) fn has_given(&mut self, sequence: u64) -> bool {
        if let BacklogCheck::Asked { counts, .. } = &mut self.question {
            *counts = false;
        }
        // Objects arrive in order: older entries are no longer needed.
        self.given = self.given.split_off(&sequence);
        self.given.remove(&sequence)
    }

    /// Asks the idle pool whether it has an object before the next row, unless that request is outstanding. Does not
    /// block.
    ///
    /// # Errors
    /// `Disconnected` or `Closed`.
    pub(crate) fn ask(&mut self, window: u32) -> Result<()> {
        let Some((&up_to, _)) = self.live.last_key_value() else {
            return Ok(());
        };
        if self.question != BacklogCheck::None {
            return Ok(());
        }
        if self.origin.holds_less_than(window) {
            self.question = BacklogCheck::Asked { up_to, counts: true };
            return self.origin.ask();
        }
        self.question = BacklogCheck::Held;
        self.origin.ask_when_released(window)
    }

    /// Handles the pool's answer: all objects that it had for this reader have arrived before.
    pub(crate) fn was_answered(&mut self) {
        if let BacklogCheck::Asked { up_to, counts: true } = self.question {
            self.clear = up_to;
        }
        self.question = BacklogCheck::None;
    }
}

/// Returns whether a reader that continues from a cursor has not received a row that is not newer than its first phase.
pub(super) fn is_owed(row: &StoredRow, cursor: &Cursor, incarnation: u64, sorting: &MergeOrder) -> Result<bool> {
    let came_since = cursor.incarnation != incarnation && row.version() > cursor.version();
    match &cursor.phase {
        Phase::First { last_key, .. } if !came_since => sorting.is_behind(row, last_key),
        _ => Ok(came_since),
    }
}
