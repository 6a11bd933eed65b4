//! Retention for a time: the queue of expiries.
//!
//! Every object that is kept for a time has an entry in one queue, the earliest first. An object that is removed before
//! its time (a newer version, a withdraw) leaves a void entry. Void entries are dropped as soon as one is the earliest,
//! and all at once when they are half of the queue; so the first entry always belongs to an object, and the queue's
//! size follows the number of objects. Objects without a time are never visited.
//!
//! If a requirement is owed an object whose time is over, the object stays until the last such requirement has received
//! it. Of very many objects that expire in one instant, only so many are removed at once, and the others after other
//! clients were served.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slab::Slab;

use crate::core::engine::timers::Nanoseconds;
use crate::core::objects::object::{ObjectRow, RetainedUntil};

/// The time, the object's sequence number, and its id. In one instant, older objects are removed first.
type Entry = (Nanoseconds, u64, u32);

/// The queue of expiries; see the module.
#[derive(Default)]
pub(in crate::core) struct ExpiryQueue {
    pub(in crate::core) queue: BinaryHeap<Reverse<Entry>>,
    pub(in crate::core) void: usize,
}

impl ExpiryQueue {
    /// Returns when the next object expires.
    pub(in crate::core) fn next(&self) -> Option<Nanoseconds> {
        self.queue.peek().map(|&Reverse((at, ..))| at)
    }

    /// Returns the sequence numbers of expired objects, in order.
    pub(in crate::core) fn due(&self, now: Nanoseconds, objects: &Slab<ObjectRow>) -> impl Iterator<Item = u64> {
        let all = self.queue.iter().map(|Reverse(entry)| *entry);
        let due = all.filter(|entry| entry.0 <= now && stands_for_an_object(objects, entry));
        let mut due: Vec<Entry> = due.collect();
        due.sort_unstable();
        due.into_iter().map(|(_, sequence, _)| sequence)
    }

    pub(in crate::core) fn push(&mut self, at: Nanoseconds, sequence: u64, id: u32) {
        self.queue.push(Reverse((at, sequence, id)));
    }

    /// Records that an object with a time was removed before it.
    pub(in crate::core) fn note_void(&mut self, objects: &Slab<ObjectRow>) {
        self.void += 1;
        self.tidy(objects);
    }

    #[cfg(test)]
    pub(in crate::core) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(in crate::core) fn take_due(&mut self, now: Nanoseconds) -> Option<Entry> {
        let due = self.next().is_some_and(|at| at <= now);
        due.then(|| self.queue.pop()).flatten().map(|Reverse(entry)| entry)
    }

    /// Drops void entries, as far as needed.
    pub(in crate::core) fn tidy(&mut self, objects: &Slab<ObjectRow>) {
        while self
            .queue
            .peek()
            .is_some_and(|Reverse(first)| !stands_for_an_object(objects, first))
        {
            self.queue.pop();
            self.void -= 1;
        }
        if self.void > self.queue.len() / 2 {
            self.queue.retain(|Reverse(entry)| stands_for_an_object(objects, entry));
            self.void = 0;
        }
    }
}

fn stands_for_an_object(objects: &Slab<ObjectRow>, &(_, sequence, id): &Entry) -> bool {
    objects.get(id as usize).is_some_and(|object| {
        object.sequence == sequence && object.is_visible() && matches!(object.until, RetainedUntil::Time(_))
    })
}
