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

use crate::Effects;
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::engine::timers::{NOBODY, Timer};
use crate::core::memory::shortage::Shortage;
use crate::core::objects::object::{Object, Place, Until, Why};

/// How long those who lease what has come free have for giving it back, before more goes.
const ROUND: Nanoseconds = 100_000_000;
/// So often the time between them is doubled, at most.
const DOUBLED_MAX: u32 = 20;
/// The timer of the rounds; requirements and bundles have those of smaller numbers.
const ROUND_TIMER: u64 = u64::MAX - 2;
/// So many entries are no reason to look for void ones.
const ENTRIES: usize = 64;

/// That an object lies in a store, too.
pub(in crate::core) struct Archived {
    /// As its archiver states it; `None` if records had no room for that.
    pub(in crate::core) place: Option<Arc<str>>,
    /// It has an entry in a queue of [`Room`].
    pub(in crate::core) is_queued: bool,
}

/// Objects by where they are and their numbers, in the order in which they became spare. What has gone, or is not spare any
/// more, leaves its entry behind, void.
type Queue = VecDeque<(u32, u64)>;

/// See the module's page.
#[derive(Default)]
pub(in crate::core) struct Room {
    queue: Queue,
    /// Of them, those that were found to lie in the file tier.
    in_file: Queue,
    /// Bytes that have left in this round.
    left_bytes: u64,
    /// When the next round begins; its timer is set.
    next_round: Option<Nanoseconds>,
    /// How often in succession a round has begun with nobody in need.
    idle_rounds: u32,
    /// One may leave in any case.
    is_urged: bool,
}

impl Room {
    /// Whether something in memory is spare. Right when [`Core::make_room`] has looked.
    pub(in crate::core) fn has_spare(&self) -> bool {
        !self.queue.is_empty()
    }

    fn tidy(&mut self, objects: &Slab<Object>) {
        for queue in [&mut self.queue, &mut self.in_file] {
            if queue.len() > 2 * objects.len() + ENTRIES {
                queue.retain(|entry| object_of(objects, entry).is_some());
            }
        }
    }
}

/// The object of an entry, if it is still there.
fn object_of<'a>(objects: &'a Slab<Object>, &(id, sequence): &(u32, u64)) -> Option<&'a Object> {
    let object = objects.get(id as usize)?;
    (object.sequence == sequence && object.is_visible()).then_some(object)
}

impl Object {
    /// Whether a store has it, and only retention keeps it.
    fn is_spare(&self) -> bool {
        let is_kept_for_nobody = self.holders == 0 && self.owed == 0 && !matches!(self.until, Until::Awaited { .. });
        self.is_visible() && is_kept_for_nobody && self.departs.is_none() && self.length > 0
    }
}

impl Core {
    /// An object stays: if only retention keeps it, and a store has it, it is spare from now on.
    pub(in crate::core) fn may_be_spare(&mut self, id: u32) {
        let object = &mut self.objects[id];
        if object.archived.is_none() || !object.is_spare() {
            return;
        }
        let sequence = object.sequence;
        if let Some(archived) = object.archived.as_mut().filter(|archived| !archived.is_queued) {
            archived.is_queued = true;
            self.room.queue.push_back((id, sequence));
            self.room.tidy(&self.objects.table);
        }
    }

    /// Whether something in memory is spare.
    pub(in crate::core) fn has_spare(&mut self) -> bool {
        self.first_spare().is_some()
    }

    /// Lets one object go that a store has, if memory is short.
    pub(in crate::core) fn make_room(&mut self, fx: &mut impl Effects) -> bool {
        if !self.somebody_waits_for_room() {
            self.room.left_bytes = 0;
            self.room.idle_rounds = 0;
            self.room.is_urged = false;
            if !self.is_above_high_mark() {
                return false;
            }
        }
        let Some(id) = self.first_spare() else { return false };
        let is_needed = self.is_to_help() || self.is_above_high_mark();
        if !is_needed || !self.backlog.take_turn() {
            return false;
        }
        self.room.queue.pop_front();
        self.room.left_bytes += self.objects[id].length;
        self.room.is_urged = false;
        self.leave_for_store(id, fx);
        true
    }

    /// The same, in the file tier, if that is full.
    pub(in crate::core) fn make_room_in_file(&mut self, fx: &mut impl Effects) -> bool {
        if !self.is_tier_full() {
            return false;
        }
        while let Some(entry) = self.room.in_file.pop_front() {
            if self.is_spare_still(entry) {
                self.leave_for_store(entry.0, fx);
                return true;
            }
        }
        false
    }

    fn leave_for_store(&mut self, id: u32, fx: &mut impl Effects) {
        let object = &self.objects[id];
        if self.is_out_of_sight(object) {
            self.see_off(id, fx);
        } else {
            fx.left_for_store(object.sequence);
            self.remove(id, Why::Archived, fx);
        }
    }

    /// Who is next; what is not spare any more, or not in memory, leaves the queue on the way.
    fn first_spare(&mut self) -> Option<u32> {
        while let Some(&entry) = self.room.queue.front() {
            let is_spare = self.is_spare_still(entry);
            if is_spare && !matches!(self.objects[entry.0].place, Place::File { .. }) {
                return Some(entry.0);
            }
            self.room.queue.pop_front();
            if is_spare {
                self.room.in_file.push_back(entry);
            }
        }
        None
    }

    /// Whether an entry's object is spare. If not, the entry is void: it gets another when it is spare again.
    fn is_spare_still(&mut self, (id, sequence): (u32, u64)) -> bool {
        let Some(object) = self.objects.get_mut(id) else {
            return false;
        };
        if object.sequence != sequence {
            return false;
        }
        let is_spare = object.is_spare();
        if let Some(archived) = object.archived.as_mut().filter(|_| !is_spare) {
            archived.is_queued = false;
        }
        is_spare
    }

    /// Whether somebody who waits for memory has nothing to go on with, and more may leave in this round. When everybody has
    /// been helped, the next is helped at once.
    fn is_to_help(&mut self) -> bool {
        let is_somebody_stranded = || self.waiting_leases.values().any(|lease| self.is_stranded(lease));
        let is_offer_stalled = [Shortage::Payload, Shortage::Records]
            .into_iter()
            .any(|shortage| self.stalled.wait_for(shortage));
        if !is_offer_stalled && !is_somebody_stranded() {
            self.room.left_bytes = 0;
            return self.room.is_urged;
        }
        self.room.idle_rounds = 0;
        let limits = self.ledger.limits();
        self.room.left_bytes < limits.budget_bytes - limits.high_mark_bytes
    }

    /// While somebody waits, and more may leave, there is another round.
    pub(in crate::core) fn watch_for_room(&mut self) {
        if !self.room.has_spare() || !self.somebody_waits_for_room() {
            return;
        }
        let at = self
            .timers
            .now
            .saturating_add(ROUND << self.room.idle_rounds.min(DOUBLED_MAX));
        if self.room.next_round.is_none_or(|next| at < next) {
            self.room.next_round = Some(at);
            self.timers.set(at, NOBODY, ROUND_TIMER, Timer::Room);
        }
    }

    /// Another round.
    pub(in crate::core) fn go_round(&mut self) {
        self.room.next_round = None;
        self.room.left_bytes = 0;
        self.room.idle_rounds += 1;
        self.room.is_urged = true;
    }
}
