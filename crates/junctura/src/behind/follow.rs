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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use junctura_model::Result;
use junctura_model::version::{Cursor, Phase};

use super::{Depot, Merge, Row, Sorting};
use crate::connection::Connection;
use crate::follow::Gap;
use crate::mail::Letter;
use crate::stream::Stream;

/// What a follow asks the store for when it begins.
#[derive(Clone, Copy)]
pub(crate) enum Wants<'a> {
    /// Only what comes.
    New,
    /// All that a selector matches.
    All(&'a str),
    /// What comes after a cursor.
    After(&'a str, &'a Cursor),
}

/// Whose turn it is in a follow.
pub(crate) enum Turn {
    Store(Row),
    /// Its next letter.
    Pool,
    /// What the pool has was not said in time, and decides.
    Nobody,
}

/// What of the store a follow has yet to give.
#[derive(Debug)]
pub(crate) struct Replay {
    depot: Arc<Depot>,
    connection: Arc<Connection>,
    /// Where its first phase ends in the order of this incarnation.
    since: u64,
    first: Merge,
    /// By sequence number, what became visible later and has gone.
    live: BTreeMap<u64, Row>,
    /// What the pool has nothing before: up to here it was asked.
    clear: u64,
    /// What was given live, and may yet come from the pool.
    given: BTreeSet<u64>,
    /// What neither has: told once all of `live` was given.
    gap: Option<Gap>,
}

impl Replay {
    /// For a follow that the pool has begun at a sequence number.
    ///
    /// # Errors
    /// Those of reading the store.
    pub(crate) fn new(
        depot: &Arc<Depot>,
        connection: &Arc<Connection>,
        sorting: Sorting,
        since: u64,
        wants: Wants<'_>,
    ) -> Result<Self> {
        let incarnation = connection.greeting.incarnation;
        let rows = match wants {
            Wants::New => Vec::new(),
            Wants::All(selector) | Wants::After(selector, _) => depot.newest(selector)?,
        };
        let (mut first, mut live) = (Vec::new(), BTreeMap::new());
        for row in rows {
            let is_after = row.is_after(incarnation, since);
            match wants {
                Wants::After(_, cursor) if is_after && cursor.incarnation == incarnation => {
                    live.insert(row.version().sequence, row);
                }
                Wants::After(_, cursor) if !is_after && is_owed(&row, cursor, incarnation, &sorting)? => {
                    first.push(row);
                }
                Wants::All(_) if !is_after => first.push(row),
                _ => {}
            }
        }
        Ok(Self {
            depot: Arc::clone(depot),
            connection: Arc::clone(connection),
            since,
            first: Merge::new(sorting, first),
            live,
            clear: 0,
            given: BTreeSet::new(),
            gap: None,
        })
    }

    /// Whether something goes before the pool's next letter.
    ///
    /// # Errors
    /// `Disconnected`, as from the pool.
    pub(crate) fn next(&mut self, stream: &mut Stream, is_live: bool, deadline: Option<Instant>) -> Result<Turn> {
        let row = if is_live {
            self.next_live(stream)?
        } else if self.first.is_empty() {
            None
        } else {
            match stream.peek(deadline)? {
                Some(Letter::Delivered(arrived)) => self.first.before(arrived.standing(), true),
                Some(Letter::Live) => self.first.pop(),
                Some(_) => None,
                None => return Ok(Turn::Nobody),
            }
        };
        Ok(row.map_or(Turn::Pool, Turn::Store))
    }

    fn next_live(&mut self, stream: &mut Stream) -> Result<Option<Row>> {
        let Some((&sequence, _)) = self.live.first_key_value() else {
            return Ok(None);
        };
        if stream.try_peek()?.is_none() && self.clear < sequence {
            // What the pool has for this reader comes before its answer.
            let newest = self.live.last_key_value().map_or(sequence, |(&newest, _)| newest);
            self.connection.sync()?;
            self.clear = newest;
        }
        let is_next = match stream.try_peek()? {
            Some(Letter::Delivered(arrived)) if arrived.sequence() == sequence => {
                self.live.remove(&sequence);
                return Ok(None);
            }
            Some(Letter::Delivered(arrived)) => arrived.sequence() > sequence,
            Some(Letter::Ended(_)) | None => true,
            Some(_) => false,
        };
        Ok(if is_next {
            self.given.insert(sequence);
            self.live.remove(&sequence)
        } else {
            None
        })
    }

    /// Whether an object that comes from the pool was given from the store before.
    pub(crate) fn has_given(&mut self, sequence: u64) -> bool {
        // What is older than what comes does not come any more.
        self.given = self.given.split_off(&sequence);
        self.given.remove(&sequence)
    }

    /// Takes out of a gap what the store has, which is given in its turn. What is left of the gap comes after that.
    ///
    /// # Errors
    /// Those of reading the store.
    pub(crate) fn fill(&mut self, mut gap: Gap, is_live: bool) -> Result<()> {
        let snapshot = self.depot.store.snapshot()?;
        let mut missing = Vec::new();
        for item in gap.items {
            if self.given.contains(&item.version.sequence) {
                continue;
            }
            let schema = item.object.schema();
            let key = schema.parse_key(item.object.key())?;
            let row = self.depot.version(&snapshot, schema, key.as_ref(), item.version)?;
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
        Ok(())
    }

    /// A gap whose turn has come.
    pub(crate) fn take_gap(&mut self) -> Option<Gap> {
        self.gap.take_if(|_| self.live.is_empty())
    }
}

/// Whether a reader that goes on from a cursor has not had a row that is no newer than its first phase.
fn is_owed(row: &Row, cursor: &Cursor, incarnation: u64, sorting: &Sorting) -> Result<bool> {
    let came_since = cursor.incarnation != incarnation && row.version() > cursor.version();
    match &cursor.phase {
        Phase::First { last_key, .. } if !came_since => sorting.is_behind(row, last_key),
        _ => Ok(came_since),
    }
}
