//! The file tier: what memory has no room for is written to a file, and read from there by whoever is given it.
//!
//! ```text
//!             nobody holds it          memory is short: it is its turn               written, and still nobody holds it
//!   in memory ---------------> queued ---------------------------------> being written ----------------> in the file
//!       ^                        |                                          |
//!       '------------------------'------------------------------------------'
//!         somebody holds it (again), or the disk has refused it
//! ```
//! Memory is *short* when what lies in it is above the high mark, or somebody waits for it. What a store has leaves the pool then
//! ([`crate::core::memory::eviction`]). When nothing of that is left in memory, go first, oldest first, the
//! objects that only requirements keep, of the requirement that keeps most so; after them the objects that have lain in memory
//! longest without being held. What somebody holds stays where it is. An object never comes back into memory: its consumers
//! read it from the file, each in its own time.
//!
//! While something is being written nobody is broken for want of memory. A disk that refuses is left alone for a second;
//! meanwhile, and when the tier is full, the pool is as one without it.

use std::collections::VecDeque;

use junctura_memory::Extents;
use junctura_model::{Error, Result};
use junctura_wire::body::events;
use slab::Slab;

use crate::core::clients::stat::SpillStat;
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::engine::timers::{NOBODY, Timer};
use crate::core::objects::object::{Object, Place};
use crate::{Effects, SpillFrom, SpillJob};

/// So much is being written at once, and no more than an eighth of the memory; one payload, however long, may always be.
const BYTES_AT_ONCE: u64 = 32 << 20;
/// So many payloads are.
const JOBS_AT_ONCE: usize = 256;
/// For so many the turn is settled at once.
const TURNS: usize = 64;
/// How long a disk that has refused something is left alone.
const PAUSE: Nanoseconds = 1_000_000_000;
/// The timer of the pause; requirements and bundles have those of smaller numbers.
const PAUSE_TIMER: u64 = u64::MAX - 1;

/// How an object stands to the file tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::core) enum Leaving {
    /// It stays, or has left.
    #[default]
    No,
    /// Its entry in the queue is the one with this number.
    Queued(u32),
    /// It is being written, as this job.
    Underway(u32),
}

/// The accounts of the file tier.
pub(in crate::core) struct Tier {
    extents: Extents,
    jobs: Slab<Job>,
    bytes_underway: u64,
    /// Objects that nobody holds, with the numbers of their entries: those that have been so longest come first.
    queue: VecDeque<(u32, u32)>,
    entries: u32,
    /// Whose turn it is next.
    turns: VecDeque<(u32, u32)>,
    /// Nothing in the queue has fitted since room came free, or something came into the queue.
    is_stuck: bool,
    /// The disk has refused something, and is left alone.
    is_paused: bool,
    refusal: Option<Error>,
    count: Counters,
}

#[derive(Clone, Copy, Default)]
struct Counters {
    objects: u64,
    written: u64,
    written_bytes: u64,
    refused: u64,
}

struct Job {
    /// `None`: it was given up meanwhile.
    object: Option<u32>,
    at: u64,
    length: u64,
}

impl Tier {
    pub(in crate::core) fn new(limit_bytes: u64) -> Self {
        Self {
            extents: Extents::new(limit_bytes),
            jobs: Slab::new(),
            bytes_underway: 0,
            queue: VecDeque::new(),
            entries: 0,
            turns: VecDeque::new(),
            is_stuck: false,
            is_paused: false,
            refusal: None,
            count: Counters::default(),
        }
    }

    fn enter(&mut self, id: u32, object: &mut Object) {
        self.entries = self.entries.wrapping_add(1);
        object.leaving = Leaving::Queued(self.entries);
        self.queue.push_back((id, self.entries));
        self.is_stuck = false;
    }

    /// Leaves out what is not to be spilled any more, at the front always and elsewhere now and then: so the queue is never
    /// much longer than there are objects.
    fn tidy(&mut self, objects: &mut Slab<Object>) {
        while let Some(&entry) = self.queue.front()
            && !still_stands(objects, entry)
        {
            self.queue.pop_front();
        }
        if self.queue.len() > 2 * objects.len() + TURNS {
            self.queue.retain(|&entry| still_stands(objects, entry));
        }
    }

    fn may_write_more(&self, bytes_at_once: u64) -> bool {
        self.jobs.is_empty() || (self.bytes_underway < bytes_at_once && self.jobs.len() < JOBS_AT_ONCE)
    }

    pub(in crate::core) fn limit_bytes(&self) -> u64 {
        self.extents.limit_bytes()
    }
}

/// Whether an entry of the queue is still its object's. That of an object which is held ends here: it comes into the queue
/// again when nobody holds it.
fn still_stands(objects: &mut Slab<Object>, (id, entry): (u32, u32)) -> bool {
    let Some(object) = objects.get_mut(id as usize) else {
        return false;
    };
    if object.leaving != Leaving::Queued(entry) {
        return false;
    }
    if object.holders > 0 {
        object.leaving = Leaving::No;
    }
    object.holders == 0
}

impl Core {
    /// An object stays: if nobody holds it, it may be spilled from now on.
    pub(in crate::core) fn may_be_spilled(&mut self, id: u32) {
        let Some(tier) = &mut self.tier else { return };
        let object = &mut self.objects[id];
        let is_in_memory = matches!(object.place, Place::Inline | Place::Slot { .. });
        let may_leave = object.holders == 0 && object.leaving == Leaving::No && object.departs.is_none();
        if is_in_memory && object.length > 0 && may_leave {
            tier.enter(id, object);
            tier.tidy(&mut self.objects.table);
        }
    }

    /// Whether the file tier is at work for those who wait for memory.
    pub(in crate::core) fn is_spilling(&self) -> bool {
        self.tier.as_ref().is_some_and(|tier| !tier.jobs.is_empty())
    }

    /// Writes as much as is to be written at once, if memory is short; whether anything was begun.
    pub(in crate::core) fn spill(&mut self, fx: &mut impl Effects) -> bool {
        let mut has_begun = false;
        while self.is_to_spill() && self.spill_next(fx) {
            has_begun = true;
        }
        has_begun
    }

    fn is_to_spill(&self) -> bool {
        let Some(tier) = &self.tier else { return false };
        let limits = self.ledger.limits();
        let bytes_at_once = BYTES_AT_ONCE.min(limits.budget_bytes - limits.high_mark_bytes);
        let may_write = !tier.is_paused && !tier.is_stuck && tier.may_write_more(bytes_at_once);
        may_write && !self.room.has_spare() && self.is_memory_short()
    }

    fn is_memory_short(&self) -> bool {
        self.is_above_high_mark() || self.somebody_waits_for_memory()
    }

    /// Whether more lies in memory, and is not on its way to the file tier, than should.
    pub(in crate::core) fn is_above_high_mark(&self) -> bool {
        let (sums, limits) = (self.ledger.counters(), self.ledger.limits());
        let leaves = self.tier.as_ref().map_or(0, |tier| tier.bytes_underway);
        (sums.occupied_bytes + sums.inline_bytes).saturating_sub(leaves) > limits.high_mark_bytes
    }

    /// Whether memory is short, and the file tier has no room for anything of it.
    pub(in crate::core) fn is_tier_full(&self) -> bool {
        let is_full = |tier: &Tier| tier.is_stuck && !tier.is_paused && !tier.queue.is_empty() && tier.jobs.is_empty();
        self.tier.as_ref().is_some_and(is_full) && self.is_memory_short()
    }

    fn spill_next(&mut self, fx: &mut impl Effects) -> bool {
        if self.spill_whose_turn_it_is(fx) {
            return true;
        }
        let turns = self.settle_turns();
        let Some(tier) = &mut self.tier else { return false };
        tier.turns = turns;
        let has_begun = self.spill_whose_turn_it_is(fx);
        if !has_begun && let Some(tier) = &mut self.tier {
            tier.is_stuck = true;
        }
        has_begun
    }

    fn spill_whose_turn_it_is(&mut self, fx: &mut impl Effects) -> bool {
        while let Some(entry) = self.tier.as_mut().and_then(|tier| tier.turns.pop_front()) {
            if still_stands(&mut self.objects.table, entry) && self.begin_to_spill(entry.0, fx) {
                return true;
            }
        }
        false
    }

    fn settle_turns(&mut self) -> VecDeque<(u32, u32)> {
        let Some(tier) = &mut self.tier else {
            return VecDeque::new();
        };
        tier.tidy(&mut self.objects.table);
        if tier.queue.is_empty() {
            return VecDeque::new();
        }
        let mut turns = self.interests.largest_holding(&self.objects);
        let objects = &mut self.objects.table;
        let queue = self.tier.iter().flat_map(|tier| tier.queue.iter().copied());
        turns.extend(queue.filter(|&entry| still_stands(objects, entry)).take(TURNS));
        turns
    }

    /// Whether there is room for an object in the tier; if so, it is being written from now on.
    fn begin_to_spill(&mut self, id: u32, fx: &mut impl Effects) -> bool {
        let (Some(tier), object) = (&mut self.tier, &mut self.objects[id]) else {
            return false;
        };
        let length = object.length;
        let from = match object.place {
            Place::Inline => SpillFrom::Bytes(&object.inline),
            Place::Slot { segment, slot } => match self.ledger.offset(segment, slot) {
                Some(offset) => SpillFrom::Segment { segment, offset },
                None => return false,
            },
            Place::File { .. } | Place::Freed => return false,
        };
        let Some(at) = tier.extents.take(length) else {
            return false;
        };
        let new = Job {
            object: Some(id),
            at,
            length,
        };
        let job = tier.jobs.insert(new) as u32;
        tier.bytes_underway += length;
        object.leaving = Leaving::Underway(job);
        fx.spill(SpillJob { job, from, length, at });
        true
    }

    /// The file tier has written a payload and says its checksum (CRC-32C), or could not.
    pub fn spilled(&mut self, now: Nanoseconds, job: u32, outcome: Result<u32>, fx: &mut impl Effects) {
        self.begin(now);
        let Some(done) = self.tier.as_mut().and_then(|tier| tier.jobs.try_remove(job as usize)) else {
            return;
        };
        if let Some(tier) = &mut self.tier {
            tier.bytes_underway -= done.length;
        }
        let mut has_moved = false;
        match (done.object, outcome) {
            (Some(id), Ok(checksum)) if self.objects[id].holders == 0 => {
                self.move_out(id, done.at, checksum, fx);
                has_moved = true;
            }
            (Some(id), outcome) => {
                self.objects[id].leaving = Leaving::No;
                self.pause_after(outcome);
                self.may_be_spilled(id);
            }
            (None, outcome) => self.pause_after(outcome),
        }
        if !has_moved {
            self.give_room_back(done.at, done.length, fx);
        }
        self.follow_up(fx);
    }

    /// An object's payload lies in the file from now on.
    fn move_out(&mut self, id: u32, at: u64, checksum: u32, fx: &mut impl Effects) {
        let object = &mut self.objects[id];
        object.leaving = Leaving::No;
        object.checksum.get_or_insert(checksum);
        let (from, length, is_staged) = (object.place, object.length, object.is_staged());
        let to = Place::File { at };
        object.place = to;
        if is_staged {
            self.pin(from, length, false);
            self.pin(to, length, true);
            // Others may wait for what only its bundle could free now.
            self.memory_freed = true;
        }
        self.vacate(id, from, fx);
        if let Some(tier) = &mut self.tier {
            tier.count.objects += 1;
            tier.count.written += 1;
            tier.count.written_bytes += length;
        }
        if !is_staged {
            self.tell_about_object(id, events::SPILLED, fx);
        }
    }

    fn pause_after(&mut self, outcome: Result<u32>) {
        let (Some(tier), Err(error)) = (&mut self.tier, outcome) else {
            return;
        };
        tier.count.refused += 1;
        tier.refusal = Some(error);
        tier.is_paused = true;
        let at = self.timers.now.saturating_add(PAUSE);
        self.timers.set(at, NOBODY, PAUSE_TIMER, Timer::Pause);
    }

    /// The disk is tried again.
    pub(in crate::core) fn end_pause(&mut self) {
        if let Some(tier) = &mut self.tier {
            tier.is_paused = false;
            tier.is_stuck = false;
        }
    }

    /// Nobody needs an object's payload any more, which is being written: what comes of that is given back.
    pub(in crate::core) fn give_up_writing(&mut self, id: u32) {
        let leaving = std::mem::take(&mut self.objects[id].leaving);
        if let (Some(tier), Leaving::Underway(job)) = (&mut self.tier, leaving)
            && let Some(job) = tier.jobs.get_mut(job as usize)
        {
            job.object = None;
        }
    }

    /// A payload leaves the file.
    pub(in crate::core) fn leave_tier(&mut self, at: u64, length: u64, fx: &mut impl Effects) {
        if let Some(tier) = &mut self.tier {
            tier.count.objects -= 1;
        }
        self.give_room_back(at, length, fx);
    }

    fn give_room_back(&mut self, at: u64, length: u64, fx: &mut impl Effects) {
        if let Some(tier) = &mut self.tier {
            tier.extents.give(at, length);
            tier.is_stuck = false;
            fx.unspill(at, length);
        }
    }

    /// What the file tier has to do with it that memory is full.
    pub(in crate::core) fn tier_text(&self) -> Option<String> {
        let (tier, spill) = (self.tier.as_ref()?, self.config.spill.as_ref()?);
        let (taken, limit) = (tier.extents.taken_bytes(), tier.limit_bytes());
        let refusal = tier.refusal.as_ref().filter(|_| tier.is_paused);
        let refusal = refusal.map_or_else(String::new, |error| format!(", and refused more: {}", error.cause()));
        let directory = spill.directory.display();
        Some(format!(
            "the file tier in {directory} holds {taken} of {limit} bytes{refusal}"
        ))
    }

    pub(in crate::core) fn spill_stat(&self) -> Option<SpillStat> {
        let (tier, spill) = (self.tier.as_ref()?, self.config.spill.as_ref()?);
        Some(SpillStat {
            directory: spill.directory.display().to_string(),
            limit_bytes: tier.limit_bytes(),
            used_bytes: tier.extents.taken_bytes(),
            objects: tier.count.objects,
            underway: tier.jobs.len() as u64,
            written: tier.count.written,
            written_bytes: tier.count.written_bytes,
            refused: tier.count.refused,
            refusal: tier.refusal.as_ref().map(ToString::to_string),
        })
    }
}
