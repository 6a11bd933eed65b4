//! The file tier: payloads that do not fit into memory are written to a file, and consumers read them from there.
//!
//! ```text
//!             no client holds it       memory is short: it is its turn               written, and still not held
//!   in memory ---------------> queued ---------------------------------> being written ----------------> in the file
//!       ^                        |                                          |
//!       '------------------------'------------------------------------------'
//!         a client holds it (again), or the disk has refused it
//! ```
//! Memory is *short* when the occupied bytes are above the high-water mark, or a client waits for memory. Then archived
//! objects are evicted ([`crate::core::memory::eviction`]). When no evictable object is left in memory, payloads are
//! spilled, oldest first: first the objects that only requirements keep, of the requirement that keeps most such
//! objects; then the objects that have been in memory longest without being held. A held object stays where it is. An
//! object never returns into memory: its consumers read it from the file, each in its own time.
//!
//! While a payload is being written no requirement is broken for lack of memory. A disk that refuses a write is not
//! used for a second; meanwhile, and when the tier is full, the pool works as one without a tier.

use std::collections::VecDeque;

use junctura_memory::FileExtents;
use junctura_model::Error;
use slab::Slab;

use crate::core::engine::timers::Nanoseconds;
use crate::core::objects::object::ObjectRow;

/// The maximum of bytes being written at once, and at most an eighth of the memory; a single payload of any length is
/// always allowed.
pub(in crate::core) const BYTES_AT_ONCE: u64 = 32 << 20;

/// The maximum number of payloads being written at once.
pub(in crate::core) const JOBS_AT_ONCE: usize = 256;

/// The number of turns that are determined at once.
pub(in crate::core) const TURNS: usize = 64;

/// How long a disk that has refused a write is not used.
pub(in crate::core) const PAUSE: Nanoseconds = 1_000_000_000;

/// The timer of the pause; timers of requirements and bundles have smaller numbers.
pub(in crate::core) const PAUSE_TIMER: u64 = u64::MAX - 1;

/// The state of an object in the file tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::core) enum TierState {
    /// It is not queued.
    #[default]
    No,
    /// Its entry in the queue has this number.
    Queued(u32),
    /// It is being written, by this job.
    Underway(u32),
}

/// The state of the file tier.
pub(in crate::core) struct FileTier {
    pub(in crate::core) extents: FileExtents,
    pub(in crate::core) jobs: Slab<SpillTask>,
    pub(in crate::core) bytes_underway: u64,
    /// Objects that no client holds, with the numbers of their entries: those that have been unheld longest are first.
    pub(in crate::core) queue: VecDeque<(u32, u32)>,
    pub(in crate::core) entries: u32,
    /// The next objects to spill.
    pub(in crate::core) turns: VecDeque<(u32, u32)>,
    /// No entry of the queue has fitted since room became free, or since an entry was added.
    pub(in crate::core) is_stuck: bool,
    /// The disk has refused a write, and is not used for a while.
    pub(in crate::core) is_paused: bool,
    pub(in crate::core) refusal: Option<Error>,
    pub(in crate::core) count: SpillCounters,
}

#[derive(Clone, Copy, Default)]
pub(in crate::core) struct SpillCounters {
    pub(in crate::core) objects: u64,
    pub(in crate::core) written: u64,
    pub(in crate::core) written_bytes: u64,
    pub(in crate::core) refused: u64,
}

pub(in crate::core) struct SpillTask {
    /// `None` if it was cancelled meanwhile.
    pub(in crate::core) object: Option<u32>,
    pub(in crate::core) at: u64,
    pub(in crate::core) length: u64,
}

impl FileTier {
    pub(in crate::core) fn new(limit_bytes: u64) -> Self {
        Self {
            extents: FileExtents::new(limit_bytes),
            jobs: Slab::new(),
            bytes_underway: 0,
            queue: VecDeque::new(),
            entries: 0,
            turns: VecDeque::new(),
            is_stuck: false,
            is_paused: false,
            refusal: None,
            count: SpillCounters::default(),
        }
    }

    pub(in crate::core) fn enter(&mut self, id: u32, object: &mut ObjectRow) {
        self.entries = self.entries.wrapping_add(1);
        object.leaving = TierState::Queued(self.entries);
        self.queue.push_back((id, self.entries));
        self.is_stuck = false;
    }

    /// Drops void entries, at the front always and elsewhere now and then: so the queue is never much longer than the
    /// number of objects.
    pub(in crate::core) fn tidy(&mut self, objects: &mut Slab<ObjectRow>) {
        while let Some(&entry) = self.queue.front()
            && !still_stands(objects, entry)
        {
            self.queue.pop_front();
        }
        if self.queue.len() > 2 * objects.len() + TURNS {
            self.queue.retain(|&entry| still_stands(objects, entry));
        }
    }

    pub(in crate::core) fn may_write_more(&self, bytes_at_once: u64) -> bool {
        self.jobs.is_empty() || (self.bytes_underway < bytes_at_once && self.jobs.len() < JOBS_AT_ONCE)
    }

    pub(in crate::core) fn limit_bytes(&self) -> u64 {
        self.extents.limit_bytes()
    }
}

/// Whether an entry of the queue is still valid. The entry of a held object ends here: the object is queued again when
/// no client holds it.
pub(in crate::core) fn still_stands(objects: &mut Slab<ObjectRow>, (id, entry): (u32, u32)) -> bool {
    let Some(object) = objects.get_mut(id as usize) else {
        return false;
    };
    if object.leaving != TierState::Queued(entry) {
        return false;
    }
    if object.holders > 0 {
        object.leaving = TierState::No;
    }
    object.holders == 0
}
