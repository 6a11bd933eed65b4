//! Leases that wait for memory, in the order of their requests.
//!
//! A lease that is larger than what is free must not block smaller ones without end, and they must not take all memory that becomes free
//! for it:
//!
//! ```text
//!             smaller ones have taken as many bytes as it needs            Config::lease_first_for is over
//!   first, may be passed ------------------------------------> first, alone ------------------------------> last, may be passed
//! ```
//! Among the leases that may pass the first one, the smallest is the next, and of equal ones the earlier one. If the
//! smallest does not fit, no other one does: so no other is tried.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use junctura_memory::classes::{page_up, slot_bytes};

use crate::core::engine::timers::Nanoseconds;

/// A lease that waits for memory.
pub(in crate::core) struct WaitingLease {
    pub(in crate::core) client: u32,
    pub(in crate::core) request: u64,
    pub(in crate::core) payload_bytes: u64,
    /// It is for a member of a bundle.
    pub(in crate::core) staged: bool,
    /// Slots that its client had for it at the time of the request; the client was filling them, or it would not have
    /// asked.
    pub(in crate::core) slots_before: u64,
    /// When it began to wait.
    pub(in crate::core) since: Nanoseconds,
}

impl WaitingLease {
    /// Returns its client, and the size of its slots.
    fn kind(&self) -> (u32, u64) {
        (self.client, slot_bytes(self.payload_bytes))
    }

    /// Returns the bytes of the smallest segment that it could get.
    fn needs(&self) -> u64 {
        page_up(slot_bytes(self.payload_bytes))
    }
}

/// The queue of leases; see the module.
#[derive(Default)]
pub(in crate::core) struct LeaseQueue {
    /// The leases by their turns.
    waiting: BTreeMap<u64, WaitingLease>,
    /// The same, by their bytes and turns.
    sizes: BTreeSet<(u64, u64)>,
    /// The number of a client's leases that wait for slots of a size.
    kinds: BTreeMap<(u32, u64), usize>,
    newest: u64,
    /// Bytes that were leased past the first one.
    passed: u64,
    /// The time during which no lease may pass the first one runs, or has run for an earlier first one.
    is_timed: bool,
}

impl LeaseQueue {
    pub(in crate::core) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(in crate::core) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(in crate::core) fn values(&self) -> impl Iterator<Item = &WaitingLease> {
        self.waiting.values()
    }

    pub(in crate::core) fn take_all(&mut self) -> Vec<WaitingLease> {
        std::iter::from_fn(|| self.remove(self.first()?)).collect()
    }

    /// Whether all belong to one client and wait for slots of this size.
    pub(in crate::core) fn are_all(&self, client: u32, slot_bytes: Option<u64>) -> bool {
        let count = slot_bytes.and_then(|bytes| self.kinds.get(&(client, bytes)));
        count.copied().unwrap_or(0) == self.len()
    }

    /// Returns the turn of the next lease.
    pub(in crate::core) fn next_turn(&self) -> u64 {
        self.newest + 1
    }

    /// Appends a lease.
    pub(in crate::core) fn push(&mut self, lease: WaitingLease) -> u64 {
        self.newest += 1;
        self.sizes.insert((lease.needs(), self.newest));
        *self.kinds.entry(lease.kind()).or_default() += 1;
        self.waiting.insert(self.newest, lease);
        self.newest
    }

    pub(in crate::core) fn remove(&mut self, turn: u64) -> Option<WaitingLease> {
        if self.first() == Some(turn) {
            self.passed = 0;
        }
        let lease = self.waiting.remove(&turn)?;
        self.sizes.remove(&(lease.needs(), turn));
        if let Entry::Occupied(mut count) = self.kinds.entry(lease.kind()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Some(lease)
    }

    pub(in crate::core) fn get(&self, turn: u64) -> Option<&WaitingLease> {
        self.waiting.get(&turn)
    }

    /// Iterates over the turns of leases for members of bundles.
    pub(in crate::core) fn staged(&self) -> impl Iterator<Item = (u64, &WaitingLease)> {
        let all = self.waiting.iter().map(|(&turn, lease)| (turn, lease));
        all.filter(|(_, lease)| lease.staged)
    }

    pub(in crate::core) fn first(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|(&turn, _)| turn)
    }

    /// Whether a new lease that fits need not wait: the first one does not fit, and may be passed.
    pub(in crate::core) fn may_be_passed(&self) -> bool {
        let first = self.waiting.first_key_value();
        first.is_none_or(|(_, first)| self.passed < first.needs())
    }

    /// Returns the lease that passes the first one, if it fits.
    pub(in crate::core) fn next_to_pass(&self) -> Option<u64> {
        let &(_, smallest) = self.sizes.first()?;
        (self.may_be_passed() && self.first() != Some(smallest)).then_some(smallest)
    }

    /// Records that a lease of so many bytes has passed the first one. Returns whether no further one may.
    pub(in crate::core) fn note_passed(&mut self, bytes: u64) -> bool {
        let before = self.may_be_passed();
        self.passed += if self.is_empty() { 0 } else { bytes };
        let was_last = before && !self.may_be_passed();
        self.is_timed |= was_last;
        was_last
    }

    /// Whether the running time of the first lease is void, since that lease is no longer in the queue.
    pub(in crate::core) fn forgets_time(&mut self) -> bool {
        self.is_timed && self.may_be_passed() && std::mem::take(&mut self.is_timed)
    }

    /// Moves the first lease to the end.
    pub(in crate::core) fn put_first_last(&mut self) -> Option<u64> {
        let first = self.first()?;
        let lease = self.remove(first)?;
        Some(self.push(lease))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(sizes: &[u64]) -> LeaseQueue {
        let mut queue = LeaseQueue::default();
        for (request, &payload_bytes) in (1..).zip(sizes) {
            queue.push(WaitingLease {
                client: 1,
                request,
                payload_bytes,
                staged: false,
                slots_before: 0,
                since: 0,
            });
        }
        queue
    }

    #[test]
    fn the_smallest_passes_until_the_first_is_alone_and_then_last() {
        let mut queue = queue(&[1 << 20, 1 << 16, 1 << 14, 1 << 14]);
        assert_eq!((queue.first(), queue.next_to_pass()), (Some(1), Some(3)));
        assert!(!queue.are_all(1, Some(slot_bytes(1 << 20))));
        assert!(!queue.note_passed((1 << 20) - 1) && queue.note_passed(1));
        assert_eq!((queue.next_to_pass(), queue.may_be_passed()), (None, false));
        assert!(!queue.note_passed(1), "it was so before");
        assert_eq!(queue.put_first_last(), Some(5));
        assert_eq!((queue.first(), queue.next_to_pass()), (Some(2), Some(3)));
        queue.remove(3);
        queue.remove(4);
        assert_eq!(queue.next_to_pass(), None, "the first one is the smallest");
        queue.remove(2);
        assert_eq!((queue.first(), queue.len(), queue.may_be_passed()), (Some(5), 1, true));
        assert!(queue.are_all(1, Some(slot_bytes(1 << 20))) && !queue.are_all(2, Some(slot_bytes(1 << 20))));
    }

    #[test]
    fn what_has_passed_counts_for_the_first_one_alone() {
        let mut queue = queue(&[1 << 20, 1 << 20, 1 << 12]);
        assert!(queue.note_passed(1 << 20));
        queue.remove(2);
        assert!(!queue.may_be_passed());
        assert!(!queue.forgets_time());
        queue.remove(1);
        assert!(queue.may_be_passed() && queue.forgets_time() && !queue.forgets_time());
        queue.remove(3);
        assert!(!queue.note_passed(1 << 30) && queue.may_be_passed());
    }
}
