//! Eviction: when memory is short, archived objects are removed before their retention is over.
//!
//! ```text
//!              archived, and only retention keeps it            memory is short, and it is its turn
//!   in the pool ------------------------------------> spare ----------------------------------------> gone, archived
//!        ^                                              |
//!        '----------------------------------------------'
//!          a client holds it (again), or is owed it
//! ```
//! An object is *spare* when it is reported as archived, no client holds it, no requirement is owed it, and it waits
//! for no absent name. The object that has been spare for the longest time is evicted first, as if its retention had
//! ended then. While there are spare objects in memory, nothing is spilled to the file tier and no requirement is
//! broken; spare objects in the file tier are evicted when it has no room for payloads to be spilled.
//!
//! Memory is short when the occupied bytes are above the high-water mark: then so many objects are evicted that they
//! are not. It is also short while a client waits for memory. But the client can use evicted memory only after the
//! clients that lease it have returned it, and a producer whose pool is full has a waiting lease while it works with
//! the slots that become free. So at most an eighth of the memory is evicted at once, only for clients that have no
//! memory left to work with, and again after a pause. A waiting client that seems to have slots may be using all of
//! them: for it one object is evicted after a pause, another after twice that time, and so on.

use std::collections::VecDeque;
use std::sync::Arc;

use slab::Slab;

use crate::core::engine::timers::Nanoseconds;
use crate::core::objects::object::{ObjectRow, RetainedUntil};

/// How long lease holders have for returning freed memory before more is evicted.
pub(in crate::core) const ROUND: Nanoseconds = 100_000_000;

/// The maximum number of times that the pause is doubled.
pub(in crate::core) const DOUBLED_MAX: u32 = 20;

/// The timer of the rounds; timers of requirements and bundles have smaller numbers.
pub(in crate::core) const ROUND_TIMER: u64 = u64::MAX - 2;

/// With so few entries the queue is not searched for void ones.
const ENTRIES: usize = 64;

/// The archived copy of an object.
pub(in crate::core) struct ArchivedCopy {
    /// The place that its archiver reported; `None` if records had no room for it.
    pub(in crate::core) place: Option<Arc<str>>,
    /// It has an entry in a queue of [`EvictionQueue`].
    pub(in crate::core) is_queued: bool,
}

/// Objects by id and sequence number, in the order in which they became spare. An object that was removed, or is not
/// spare any longer, leaves a void entry.
pub(in crate::core) type Queue = VecDeque<(u32, u64)>;

/// The spare objects; see the module.
#[derive(Default)]
pub(in crate::core) struct EvictionQueue {
    pub(in crate::core) queue: Queue,
    /// The part that was found to be in the file tier.
    pub(in crate::core) in_file: Queue,
    /// Bytes that were evicted in this round.
    pub(in crate::core) left_bytes: u64,
    /// The time of the next round; its timer is set.
    pub(in crate::core) next_round: Option<Nanoseconds>,
    /// The number of successive rounds that began with no client in need.
    pub(in crate::core) idle_rounds: u32,
    /// One object may be evicted in any case.
    pub(in crate::core) is_urged: bool,
}

impl EvictionQueue {
    /// Whether an object in memory is spare. Exact after a call of
    /// [`ObjectExchange::make_room`](crate::core::exchange::ObjectExchange::make_room).
    pub(in crate::core) fn has_spare(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(in crate::core) fn tidy(&mut self, objects: &Slab<ObjectRow>) {
        for queue in [&mut self.queue, &mut self.in_file] {
            if queue.len() > 2 * objects.len() + ENTRIES {
                queue.retain(|entry| object_of(objects, entry).is_some());
            }
        }
    }
}

/// Returns the object of an entry, if it still exists.
fn object_of<'a>(objects: &'a Slab<ObjectRow>, &(id, sequence): &(u32, u64)) -> Option<&'a ObjectRow> {
    let object = objects.get(id as usize)?;
    (object.sequence == sequence && object.is_visible()).then_some(object)
}

impl ObjectRow {
    /// Whether it is archived, and only retention keeps it.
    pub(in crate::core) fn is_spare(&self) -> bool {
        let is_kept_for_nobody =
            self.holders == 0 && self.owed == 0 && !matches!(self.until, RetainedUntil::Awaited { .. });
        self.is_visible() && is_kept_for_nobody && self.departs.is_none() && self.length > 0
    }
}
