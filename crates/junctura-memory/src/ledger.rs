//! The server's accounts: which client leases which segment, which slots hold objects, and how much of the budget is left.
//!
//! The ledger decides and counts; it owns no memory and makes no system call, so the server's core can be run against it in
//! simulated time. It trusts no request of a client: every segment, slot and length is checked against the leases.
//!
//! ```text
//!            lease                      client_left
//!  (nothing) ─────► leased by a client ─────────────► ownerless ──┐ its last slot is vacated
//!      ▲              │ give_back, or client_left                 │
//!      └──────────────┴── while no slot is occupied               │
//!      └──────────────────────────────────────────────────────────┘
//! ```
//!
//! Counted against the budget: every segment from its lease until it is dropped, used or not, and payloads that the server
//! keeps itself. Segment numbers are never reused, so a late message cannot mean another segment.

mod answers;
mod lengths;

use crate::classes;
use crate::number::NumberMap;

use lengths::SlotLengths;

pub use answers::{ClientMemory, LeaseRefusal, RefusalReason, SegmentError, SegmentGrant, VacatedSlot};

/// The limits of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerLimits {
    /// Bytes of all segments and inline payloads together.
    pub budget_bytes: u64,
    /// Above this, leases no longer grow with use, and idle segments are worth recalling.
    pub high_mark_bytes: u64,
    /// Segments that one client may lease.
    pub segments_per_client: u32,
}

impl LedgerLimits {
    /// The usual limits for a budget: high mark at seven eighths, 1,024 segments for each client.
    #[must_use]
    pub fn new(budget_bytes: u64) -> Self {
        Self {
            budget_bytes,
            high_mark_bytes: budget_bytes - budget_bytes / 8,
            segments_per_client: 1024,
        }
    }
}

/// Sums over the ledger, in bytes except where named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerCounters {
    /// All segments.
    pub leased_bytes: u64,
    /// Slots that hold objects.
    pub occupied_bytes: u64,
    /// Payloads in those slots.
    pub payload_bytes: u64,
    /// Payloads that the server keeps itself.
    pub inline_bytes: u64,
    /// The number of segments.
    pub segments: u32,
    /// The number of segments whose client has left.
    pub ownerless_segments: u32,
    /// The number of slots that hold objects.
    pub occupied_slots: u64,
}

/// The accounts of one server.
#[derive(Debug)]
pub struct MemoryLedger {
    limits: LedgerLimits,
    /// The last number that was given.
    last: u32,
    segments: NumberMap<LedgerSegment>,
    clients: NumberMap<LeasedSegments>,
    /// Bytes of the segments whose client has left.
    ownerless_bytes: u64,
    counters: LedgerCounters,
}

/// The segments that a client leases.
#[derive(Debug, Default)]
struct LeasedSegments {
    numbers: Vec<u32>,
    bytes: u64,
}

#[derive(Debug)]
struct LedgerSegment {
    owner: Option<u32>,
    bytes: u64,
    slot_bytes: u64,
    payload_bytes: u64,
    occupied: u32,
    lengths: SlotLengths,
}

impl MemoryLedger {
    /// Empty accounts.
    #[must_use]
    pub fn new(limits: LedgerLimits) -> Self {
        let (segments, clients) = (NumberMap::default(), NumberMap::default());
        Self {
            limits,
            last: 0,
            segments,
            clients,
            ownerless_bytes: 0,
            counters: LedgerCounters::default(),
        }
    }

    /// Gives a client a new segment whose slots hold payloads of this size: as large as its use suggests, smaller
    /// where memory is short, never less than one slot.
    ///
    /// # Errors
    /// [`LeaseRefusal`] names the limit; only [`RefusalReason::Budget`] is worth waiting for.
    pub fn lease(&mut self, client: u32, payload_bytes: u64) -> Result<SegmentGrant, LeaseRefusal> {
        let slot_bytes = classes::slot_bytes(payload_bytes);
        let full = |reason| self.refusal(reason, payload_bytes);
        if slot_bytes == 0 {
            return Err(full(RefusalReason::Empty));
        }
        if classes::page_up(slot_bytes) > self.limits.budget_bytes {
            return Err(full(RefusalReason::TooLarge));
        }
        let held = self.held_by(client);
        if held.len() >= self.limits.segments_per_client as usize {
            return Err(full(RefusalReason::Segments));
        }
        let segment = self.last.checked_add(1).ok_or_else(|| full(RefusalReason::Numbers))?;
        let bytes = self
            .next_bytes(held, slot_bytes)
            .ok_or_else(|| full(RefusalReason::Budget))?;
        self.last = segment;
        let slots = (bytes / slot_bytes) as u32;
        let lengths = SlotLengths::free(slots);
        let new = LedgerSegment {
            owner: Some(client),
            bytes,
            slot_bytes,
            payload_bytes: 0,
            occupied: 0,
            lengths,
        };
        self.segments.insert(segment, new);
        let held = self.clients.entry(client).or_default();
        held.numbers.push(segment);
        held.bytes += bytes;
        self.counters.leased_bytes += bytes;
        self.counters.segments += 1;
        Ok(SegmentGrant {
            segment,
            bytes,
            slot_bytes,
        })
    }

    /// An object was offered in a slot: it belongs to the pool until it is vacated.
    ///
    /// # Errors
    /// Any error in the client's request; nothing has changed then.
    pub fn occupy(&mut self, client: u32, segment: u32, slot: u32, length: u64) -> Result<(), SegmentError> {
        let known = self.segments.get_mut(&segment).ok_or(SegmentError::NoSuchSegment)?;
        if known.owner != Some(client) {
            return Err(SegmentError::NotLeased);
        }
        if length > known.slot_bytes {
            return Err(SegmentError::TooLong {
                slot_bytes: known.slot_bytes,
            });
        }
        known.lengths.fill(slot, length)?;
        known.occupied += 1;
        known.payload_bytes += length;
        self.counters.occupied_slots += 1;
        self.counters.occupied_bytes += known.slot_bytes;
        self.counters.payload_bytes += length;
        Ok(())
    }

    /// Records that an object left its slot. The server notifies the owner, if there is one, that the slot is free; an
    /// ownerless segment is dropped with its last object. Vacating a slot that is not occupied is a bug of the server.
    pub fn vacate(&mut self, segment: u32, slot: u32) -> VacatedSlot {
        let length = self
            .segments
            .get_mut(&segment)
            .and_then(|known| Some((known.lengths.clear(slot)?, known)));
        debug_assert!(length.is_some(), "slot {slot} of segment {segment} is not occupied");
        let Some((length, known)) = length else {
            return VacatedSlot::default();
        };
        known.occupied -= 1;
        known.payload_bytes -= length;
        self.counters.occupied_slots -= 1;
        self.counters.occupied_bytes -= known.slot_bytes;
        self.counters.payload_bytes -= length;
        let (owner, emptied) = (known.owner, known.occupied == 0);
        let dropped = emptied && owner.is_none();
        if dropped {
            self.counters.ownerless_segments -= 1;
            self.ownerless_bytes -= known.bytes;
            self.remove(segment);
        }
        VacatedSlot {
            owner,
            emptied,
            dropped,
        }
    }

    /// Removes a client, and what it had not offered. Returns its empty segments, which are dropped now; the others are
    /// ownerless from here on.
    pub fn client_left(&mut self, client: u32) -> Vec<u32> {
        let mut dropped = self.clients.remove(&client).unwrap_or_default().numbers;
        dropped.retain(|segment| match self.segments.get_mut(segment) {
            Some(known) if known.occupied > 0 => {
                known.owner = None;
                self.counters.ownerless_segments += 1;
                self.ownerless_bytes += known.bytes;
                false
            }
            known => known.is_some(),
        });
        for &segment in &dropped {
            self.remove(segment);
        }
        dropped
    }

    /// A client returns a segment, which is dropped.
    ///
    /// # Errors
    /// When the client does not lease the segment, or the segment contains an object.
    pub fn give_back(&mut self, client: u32, segment: u32) -> Result<(), SegmentError> {
        let known = self.segments.get(&segment).ok_or(SegmentError::NoSuchSegment)?;
        if known.owner != Some(client) {
            return Err(SegmentError::NotLeased);
        }
        if known.occupied > 0 {
            return Err(SegmentError::InUse {
                occupied: known.occupied,
            });
        }
        let bytes = known.bytes;
        self.remove(segment);
        if let Some(held) = self.clients.get_mut(&client) {
            held.numbers.retain(|&other| other != segment);
            held.bytes -= bytes;
            if held.numbers.is_empty() {
                self.clients.remove(&client);
            }
        }
        Ok(())
    }

    /// Returns the empty segments of other clients, as client and segment, largest first: candidates for a recall when
    /// memory is short. Their owners may be filling them, and then keep them.
    pub fn recallable(&self, excluding: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        let idle = |(&number, segment): (&u32, &LedgerSegment)| {
            let owner = segment
                .owner
                .filter(|&owner| owner != excluding && segment.occupied == 0)?;
            Some((segment.bytes, owner, number))
        };
        let mut found: Vec<_> = self.segments.iter().filter_map(idle).collect();
        found.sort_unstable_by_key(|&(bytes, _, number)| (std::cmp::Reverse(bytes), number));
        found.into_iter().map(|(_, owner, number)| (owner, number))
    }

    /// Takes room for a payload that the server keeps itself; false (and nothing taken) when there is none.
    #[must_use]
    pub fn inline_reserve(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.free_bytes();
        if fits {
            self.counters.inline_bytes += bytes;
        }
        fits
    }

    /// Gives the room of such a payload back.
    pub fn inline_free(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.counters.inline_bytes, "more given back than was taken");
        self.counters.inline_bytes = self.counters.inline_bytes.saturating_sub(bytes);
    }

    /// The limits that it was made with.
    #[must_use]
    pub fn limits(&self) -> LedgerLimits {
        self.limits
    }

    /// The sums; at once.
    #[must_use]
    pub fn counters(&self) -> LedgerCounters {
        self.counters
    }

    /// Bytes that count against the budget.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.counters.leased_bytes + self.counters.inline_bytes
    }

    /// Bytes of the budget that are left.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.limits.budget_bytes.saturating_sub(self.used_bytes())
    }

    /// Whether memory is short enough to ask idle segments back.
    #[must_use]
    pub fn above_high_mark(&self) -> bool {
        self.used_bytes() > self.limits.high_mark_bytes
    }

    /// Returns the offset of an object's slot in the segment, in bytes. `None` for a slot that does not exist.
    #[must_use]
    pub fn offset(&self, segment: u32, slot: u32) -> Option<u64> {
        let known = self
            .segments
            .get(&segment)
            .filter(|known| slot < known.lengths.count())?;
        Some(u64::from(slot) * known.slot_bytes)
    }

    /// Returns the grant of a segment; `None` when it was dropped.
    #[must_use]
    pub fn grant(&self, segment: u32) -> Option<SegmentGrant> {
        let known = self.segments.get(&segment)?;
        Some(SegmentGrant {
            segment,
            bytes: known.bytes,
            slot_bytes: known.slot_bytes,
        })
    }

    /// Returns the memory of each client, largest first; `None` represents disconnected clients. Walks over all
    /// segments.
    #[must_use]
    pub fn holders(&self) -> Vec<ClientMemory> {
        self.largest_holders(usize::MAX)
    }

    /// Returns the memory of those that lease most, as many as `most`. Walks over the clients, and over their segments.
    #[must_use]
    pub fn largest_holders(&self, most: usize) -> Vec<ClientMemory> {
        let clients = self.clients.iter().map(|(&client, held)| (held.bytes, Some(client)));
        let ownerless = (self.counters.ownerless_segments > 0).then_some((self.ownerless_bytes, None));
        let mut holders: Vec<_> = clients.chain(ownerless).collect();
        holders.sort_unstable_by_key(|&(bytes, client)| (std::cmp::Reverse(bytes), client));
        let largest = holders.into_iter().take(most);
        largest.map(|(_, client)| self.sum(client)).collect()
    }

    /// Bytes of the segments that a client leases; at once.
    #[must_use]
    pub fn leased_bytes(&self, client: u32) -> u64 {
        self.clients.get(&client).map_or(0, |held| held.bytes)
    }

    /// Returns the number of empty slots among those that a client leases for payloads of this size; it may be filling
    /// them. Counts no further than `most`. Walks over its segments.
    #[must_use]
    pub fn free_slots(&self, client: u32, payload_bytes: u64, most: u64) -> u64 {
        let slot_bytes = classes::slot_bytes(payload_bytes);
        let held = self.held_by(client);
        let segments = held.iter().filter_map(|number| self.segments.get(number));
        let mut free = 0;
        for segment in segments.filter(|one| one.slot_bytes == slot_bytes) {
            free += u64::from(segment.lengths.count() - segment.occupied);
            if free >= most {
                return most;
            }
        }
        free
    }

    /// Returns the current refusal for lack of memory, for a waiting payload of this size.
    #[must_use]
    pub fn full(&self, payload_bytes: u64) -> LeaseRefusal {
        self.refusal(RefusalReason::Budget, payload_bytes)
    }

    fn refusal(&self, reason: RefusalReason, payload_bytes: u64) -> LeaseRefusal {
        LeaseRefusal {
            reason,
            payload_bytes,
            limits: self.limits,
            counters: self.counters,
        }
    }

    fn held_by(&self, client: u32) -> &[u32] {
        self.clients.get(&client).map_or(&[], |held| held.numbers.as_slice())
    }

    fn sum(&self, client: Option<u32>) -> ClientMemory {
        let mut holder = ClientMemory {
            client,
            ..ClientMemory::default()
        };
        let mut add = |segment: &LedgerSegment| {
            holder.segments += 1;
            holder.leased_bytes += segment.bytes;
            holder.occupied_bytes += segment.slot_bytes * u64::from(segment.occupied);
            holder.payload_bytes += segment.payload_bytes;
            holder.occupied_slots += u64::from(segment.occupied);
        };
        match client {
            Some(client) => {
                let held = self.held_by(client).iter();
                held.filter_map(|number| self.segments.get(number)).for_each(add);
            }
            None => self
                .segments
                .values()
                .filter(|one| one.owner.is_none())
                .for_each(&mut add),
        }
        holder
    }

    /// Bytes of the next segment for a client that holds these: above the high mark no more than a first segment.
    fn next_bytes(&self, held: &[u32], slot_bytes: u64) -> Option<u64> {
        let same = held
            .iter()
            .filter_map(|number| self.segments.get(number))
            .filter(|one| one.slot_bytes == slot_bytes);
        let held_bytes = same.map(|segment| segment.bytes).sum();
        let below_mark = self.limits.high_mark_bytes.saturating_sub(self.used_bytes());
        let room = below_mark.max(classes::first_bytes(slot_bytes)).min(self.free_bytes());
        classes::segment_bytes(slot_bytes, held_bytes, room)
    }

    fn remove(&mut self, segment: u32) {
        if let Some(gone) = self.segments.remove(&segment) {
            self.counters.leased_bytes -= gone.bytes;
            self.counters.segments -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
