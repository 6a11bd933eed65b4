//! What a store has makes room first: when memory is short, objects that were archived leave before their retention is over.
//!
//! ```text
//!              archived, and only retention keeps it            memory is short, and it is its turn
//!   in the pool ------------------------------------> spare ----------------------------------------> gone, archived
//!        ^                                              |
//!        '----------------------------------------------'
//!          somebody holds it (again), or is owed it
//! ```
//! An object is *spare* when somebody has said that it is archived, nobody holds it, no requirement is owed it, and it waits for
//! no name that is still to come. Of them, the one that has been so longest goes first, as if its retention had ended then.
//! Nothing goes to the file tier, and nobody is broken, while there are spare ones in memory; those that lie in the file tier go
//! when it has no room for what memory has no room for.
//!
//! Memory is short when what lies in it is above the high mark: then so many go that it is not. It is also short while somebody
//! waits for it; but what goes is free for him only when those who lease it have given it back, and a producer whose pool is full
//! has a lease that waits while it works with the slots that come free. So an eighth of the memory goes at once at most, only for
//! those who have nothing to go on with, and again after a while. Who waits and seems to have something may have it in his hands, all
//! of it: for him one object goes after a while, and another after twice that time, and so on.

use std::collections::VecDeque;
use std::sync::Arc;

use slab::Slab;

use crate::core::engine::timers::Nanoseconds;
use crate::core::objects::object::{ObjectRow, RetainedUntil};

/// How long those who lease what has come free have for giving it back, before more goes.
pub(in crate::core) const ROUND: Nanoseconds = 100_000_000;

/// So often the time between them is doubled, at most.
pub(in crate::core) const DOUBLED_MAX: u32 = 20;

/// The timer of the rounds; requirements and bundles have those of smaller numbers.
pub(in crate::core) const ROUND_TIMER: u64 = u64::MAX - 2;

/// So many entries are no reason to look for void ones.
const ENTRIES: usize = 64;

/// That an object lies in a store, too.
pub(in crate::core) struct ArchivedCopy {
    /// As its archiver states it; `None` if records had no room for that.
    pub(in crate::core) place: Option<Arc<str>>,
    /// It has an entry in a queue of [`EvictionQueue`].
    pub(in crate::core) is_queued: bool,
}

/// Objects by where they are and their numbers, in the order in which they became spare. What has gone, or is not spare any
/// more, leaves its entry behind, void.
pub(in crate::core) type Queue = VecDeque<(u32, u64)>;

/// See the module's page.
#[derive(Default)]
pub(in crate::core) struct EvictionQueue {
    pub(in crate::core) queue: Queue,
    /// Of them, those that were found to lie in the file tier.
    pub(in crate::core) in_file: Queue,
    /// Bytes that have left in this round.
    pub(in crate::core) left_bytes: u64,
    /// When the next round begins; its timer is set.
    pub(in crate::core) next_round: Option<Nanoseconds>,
    /// How often in succession a round has begun with nobody in need.
    pub(in crate::core) idle_rounds: u32,
    /// One may leave in any case.
    pub(in crate::core) is_urged: bool,
}

impl EvictionQueue {
    /// Whether something in memory is spare. Right when [`ObjectExchange::make_room`](crate::core::exchange::ObjectExchange::make_room) has looked.
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

/// The object of an entry, if it is still there.
fn object_of<'a>(objects: &'a Slab<ObjectRow>, &(id, sequence): &(u32, u64)) -> Option<&'a ObjectRow> {
    let object = objects.get(id as usize)?;
    (object.sequence == sequence && object.is_visible()).then_some(object)
}

impl ObjectRow {
    /// Whether a store has it, and only retention keeps it.
    pub(in crate::core) fn is_spare(&self) -> bool {
        let is_kept_for_nobody =
            self.holders == 0 && self.owed == 0 && !matches!(self.until, RetainedUntil::Awaited { .. });
        self.is_visible() && is_kept_for_nobody && self.departs.is_none() && self.length > 0
    }
}
