//! A follow that begins in the store and goes on live.
//!
//! ```text
//!   pool   ── first phase, by key ──────────── Live ── as they become visible ── Gap: what has gone ──▶
//!   store  ── what the pool has not, by key ──┘                                  '── read from here instead
//! ```
//! The pool is asked first. The store is looked at then: what had left the pool by that time lies there, if it was archived, and
//! what is newer comes from the pool. A reader that goes on from a cursor gets what came since, and has left the pool, from the
//! store, too, in the order in which it became visible; so does one whose cursor is of an earlier life of the server, in the
//! order of keys.
//!
//! Here it is decided whose turn it is, and nothing waits. What waits for the store is a [`StoreLookup`], done by whoever may.

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

/// What a follow asks the store for when it begins.
#[derive(Clone, Debug)]
pub(crate) enum StoreRequest {
    /// All that a selector matches.
    All(String),
    /// What comes after a cursor.
    After(String, Cursor),
}

/// Whose turn it is in a follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowTurn {
    /// The store's, which has to be asked or read first.
    Lookup,
    /// What neither has is told.
    Gap,
    /// Its next letter, if there is one.
    Pool,
    /// The pool says first what it has.
    Nobody,
}

/// What of the store a follow has yet to give.
#[derive(Debug)]
pub(crate) struct StoreReplay {
    depot: Arc<StoreReader>,
    origin: Arc<ObjectOrigin>,
    sorting: MergeOrder,
    /// Where its first phase ends in the order of this incarnation.
    since: u64,
    /// `None` once the store was asked.
    wants: Option<StoreRequest>,
    first: MergedList,
    /// By sequence number, what became visible later and has gone.
    live: BTreeMap<u64, StoredRow>,
    /// What was read, and comes next.
    read: VecDeque<Result<Object>>,
    /// What the pool has nothing before: up to here it was asked.
    clear: u64,
    question: BacklogCheck,
    /// What was given live, and may yet come from the pool.
    given: BTreeSet<u64>,
    /// What neither has: told once all of `live` was given.
    gap: Option<Gap>,
}

/// Whether the pool has something older than what the store is to give live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BacklogCheck {
    None,
    /// On its way. The answer counts if nothing comes before it.
    Asked {
        up_to: u64,
        counts: bool,
    },
    /// The pool says nothing while the reader holds all that it may: the next release asks.
    Held,
}

/// Rows that are read at one go, and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAhead {
    pub(crate) rows: usize,
    pub(crate) bytes: u64,
}

impl StoreReplay {
    /// For a follow that the pool has begun at a sequence number. Reads nothing.
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

    /// Whose turn it is before the pool's next letter, if that has come.
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

    /// Whether the next row is due. `None`: the pool has not said yet what it has before that.
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

    /// Whether there is something to do before anything comes from the pool.
    pub(crate) fn is_due(&self, is_live: bool) -> bool {
        let is_next =
            |(&sequence, _): (&u64, &StoredRow)| sequence <= self.clear || self.question == BacklogCheck::None;
        self.has_read()
            || self.wants.is_some()
            || is_live && self.live.first_key_value().is_some_and(is_next)
            || self.gap.is_some() && self.live.is_empty()
    }

    /// Whether the store was not looked at yet.
    pub(crate) fn is_to_begin(&self) -> bool {
        self.wants.is_some()
    }

    /// Whether something that was read comes next.
    pub(crate) fn has_read(&self) -> bool {
        !self.read.is_empty()
    }

    /// What the store has to be asked in a turn that is a lookup's.
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

    /// Of a gap, what is to be looked for in the store.
    pub(crate) fn look_for(&self, mut gap: Gap) -> StoreLookup {
        gap.items.retain(|item| !self.given.contains(&item.version.sequence));
        StoreLookup::Find {
            depot: Arc::clone(&self.depot),
            gap,
        }
    }

    /// What the store has said.
    ///
    /// # Errors
    /// Those of reading it.
    pub(crate) fn was_found(&mut self, found: LookupResult, is_live: bool) -> Result<()> {
        match found {
            LookupResult::Begun(Ok(ReplayRows { first, live }), _) => {
                self.first = first;
                self.live = live;
            }
            LookupResult::Begun(Err(error), wants) => {
                // Whoever asks again begins again.
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

    /// What the store has of a gap is given in its turn. What is left of the gap comes after that.
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

    /// An object comes from the pool; whether it was given from the store before.
    pub(crate) fn has_given(&mut self, sequence: u64) -> bool {
        if let BacklogCheck::Asked { counts, .. } = &mut self.question {
            *counts = false;
        }
        // What is older than what comes does not come any more.
        self.given = self.given.split_off(&sequence);
        self.given.remove(&sequence)
    }

    /// Asks the pool, which is quiet, whether it has something before the next row, unless that was asked. Does not wait.
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

    /// The pool has answered: whatever it had for this reader has come before.
    pub(crate) fn was_answered(&mut self) {
        if let BacklogCheck::Asked { up_to, counts: true } = self.question {
            self.clear = up_to;
        }
        self.question = BacklogCheck::None;
    }
}

/// Whether a reader that goes on from a cursor has not had a row that is no newer than its first phase.
pub(super) fn is_owed(row: &StoredRow, cursor: &Cursor, incarnation: u64, sorting: &MergeOrder) -> Result<bool> {
    let came_since = cursor.incarnation != incarnation && row.version() > cursor.version();
    match &cursor.phase {
        Phase::First { last_key, .. } if !came_since => sorting.is_behind(row, last_key),
        _ => Ok(came_since),
    }
}
