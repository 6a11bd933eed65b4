//! Retention for a time: which object is to go when.
//!
//! Every object that is kept for a time has an entry in one queue, the earliest first. An object that goes before its time
//! (a newer version, a withdraw) leaves its entry behind, void. Void entries are thrown out as soon as one is the earliest,
//! and all at once when they are half of the queue; so the first entry always stands for an object, and what a queue takes
//! follows the objects that are there. Objects without a time are never looked at.
//!
//! When the time is over and a requirement is owed the object, it stays until the last of them has had it. Of very many in one
//! instant, so many go at once, and the others when others were served.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slab::Slab;

use crate::core::engine::timers::Nanoseconds;
use crate::core::objects::object::{ObjectRow, RetainedUntil};

/// When, the object's sequence number, and where it is. In one instant, older ones go first.
type Entry = (Nanoseconds, u64, u32);

/// See the module's page.
#[derive(Default)]
pub(in crate::core) struct ExpiryQueue {
    pub(in crate::core) queue: BinaryHeap<Reverse<Entry>>,
    pub(in crate::core) void: usize,
}

impl ExpiryQueue {
    /// When the next object is to go.
    pub(in crate::core) fn next(&self) -> Option<Nanoseconds> {
        self.queue.peek().map(|&Reverse((at, ..))| at)
    }

    /// The sequence numbers of objects whose time is over, in their order.
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

    /// An object with a time has gone before it.
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

    /// Throws out void entries, as far as it has to be.
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
