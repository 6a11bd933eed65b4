//! Which slot a producer fills next: decided by the producer alone, without asking the server.
//!
//! The producer adds every segment that it leased; from then on each slot is free or in use. A slot is in use from
//! [`SlotAllocator::allocate`] until [`SlotAllocator::free`]: while it is filled, and after its offer until the server
//! reports that it is free. Allocating and freeing take the same short time for any number of slots.
//!
//! Usually the slot that was freed last is used next, because its memory is still in the processor's cache
//! ([`SlotReuse::Latest`]); a measurement that wants cold memory asks for the opposite ([`SlotReuse::Oldest`]).
//!
//! A segment that stayed wholly free from one call of [`SlotAllocator::surplus`] to the next may be returned, but the largest
//! free one of each class stays, so that a producer that works in bursts does not lease anew for each.

use std::collections::VecDeque;

use junctura_model::{Code, Error, Result};

use crate::classes::{CLASSES, SEGMENT_BYTES_MAX, SizeClass};
use crate::number::NumberMap;

/// Which free slot is used next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotReuse {
    /// The one freed last: warm in the cache, and other segments run empty.
    #[default]
    Latest,
    /// The one freed first, from each segment in turn: every slot is reused.
    Oldest,
}

/// The slots of all segments that a producer leases.
#[derive(Debug)]
pub struct SlotAllocator {
    reuse: SlotReuse,
    segments: NumberMap<ProducerSegment>,
    /// By class, large ones last: the segments that have a free slot.
    available: Vec<VecDeque<u32>>,
    /// Counts the calls of `surplus`.
    round: u64,
}

const LARGE: usize = CLASSES;

#[derive(Debug)]
struct ProducerSegment {
    class: usize,
    slot_bytes: u64,
    slots: u32,
    /// Slots from here on were never used.
    fresh: u32,
    freed: VecDeque<u32>,
    used: Box<[u64]>,
    in_use: u32,
    /// The round in which the last slot became free.
    idle_since: u64,
}

impl Default for SlotAllocator {
    fn default() -> Self {
        Self::new()
    }
}

impl SlotAllocator {
    /// No segments yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_reuse(SlotReuse::Latest)
    }

    /// No segments yet, and this rule for the next slot.
    #[must_use]
    pub fn with_reuse(reuse: SlotReuse) -> Self {
        let available = (0..=LARGE).map(|_| VecDeque::new()).collect();
        Self {
            reuse,
            segments: NumberMap::default(),
            available,
            round: 0,
        }
    }

    /// Adds a leased segment, all of whose slots are free.
    ///
    /// # Errors
    /// `Protocol` when the segment is there already, or has no slots, or smaller ones than there are classes.
    pub fn add_segment(&mut self, segment: u32, slot_bytes: u64, slots: u32) -> Result<()> {
        let class = match SizeClass::within(slot_bytes) {
            Some(class) => class.index(),
            None if slot_bytes > SEGMENT_BYTES_MAX => LARGE,
            None => return Err(refused(segment, format!("slots of {slot_bytes} bytes"))),
        };
        if slots == 0 || self.segments.contains_key(&segment) {
            return Err(refused(segment, if slots == 0 { "no slots" } else { "leased twice" }));
        }
        let used = vec![0; slots.div_ceil(64) as usize].into();
        let idle_since = self.round;
        let new = ProducerSegment {
            class,
            slot_bytes,
            slots,
            fresh: 0,
            freed: VecDeque::new(),
            used,
            in_use: 0,
            idle_since,
        };
        self.segments.insert(segment, new);
        self.available[class].push_back(segment);
        Ok(())
    }

    /// A free slot for a payload, as segment and slot: of its own size, or else of one that is at most half empty.
    /// `None` when the producer has to lease, and for an empty payload, which needs no slot.
    pub fn allocate(&mut self, payload_bytes: u64) -> Option<(u32, u32)> {
        let most = payload_bytes.saturating_mul(2);
        if let Some(class) = SizeClass::of(payload_bytes) {
            let wider = SizeClass::all()
                .skip(class.index() + 1)
                .take_while(|wider| wider.slot_bytes() <= most);
            let fits = |class: &SizeClass| !self.available[class.index()].is_empty();
            if let Some(class) = std::iter::once(class).chain(wider).find(fits) {
                return self.take(class.index(), 0);
            }
        }
        let place = self.large_fit(payload_bytes, most)?;
        self.take(LARGE, place)
    }

    /// Makes a slot free again: the server reported it, or its payload was never offered. Returns false (and changes
    /// nothing) when that slot is not in use here.
    #[must_use]
    pub fn free(&mut self, segment: u32, slot: u32) -> bool {
        let Some(known) = self.segments.get_mut(&segment) else {
            return false;
        };
        if !known.clear(slot) {
            return false;
        }
        known.freed.push_back(slot);
        if known.in_use == known.slots {
            self.available[known.class].push_back(segment);
        }
        known.in_use -= 1;
        if known.in_use == 0 {
            known.idle_since = self.round;
        }
        true
    }

    /// Forgets a segment that is returned or dropped. Returns false (and changes nothing) when one of its slots is in use,
    /// or the segment is unknown.
    #[must_use]
    pub fn remove_segment(&mut self, segment: u32) -> bool {
        let Some(known) = self.segments.get(&segment).filter(|known| known.in_use == 0) else {
            return false;
        };
        self.available[known.class].retain(|&other| other != segment);
        self.segments.remove(&segment);
        true
    }

    /// The segments that may be returned: wholly free since before the last call, except for the largest free one of
    /// each class. Call it now and then (once a second), and [`Self::remove_segment`] those that are returned.
    pub fn surplus(&mut self) -> Vec<u32> {
        let mut kept = [(0_u64, 0_u32); CLASSES + 1];
        for (&number, segment) in self.segments.iter().filter(|(_, segment)| segment.in_use == 0) {
            let best = &mut kept[segment.class];
            *best = (*best).max((segment.bytes(), number));
        }
        let round = self.round;
        let idle = |segment: &ProducerSegment| segment.in_use == 0 && segment.idle_since < round;
        let may_go = self
            .segments
            .iter()
            .filter(|&(&number, segment)| idle(segment) && kept[segment.class].1 != number);
        let mut surplus: Vec<u32> = may_go.map(|(&number, _)| number).collect();
        surplus.sort_unstable();
        self.round += 1;
        surplus
    }

    /// Whether a segment is known and wholly free, so that it can be returned when the server asks for it.
    #[must_use]
    pub fn is_idle(&self, segment: u32) -> bool {
        self.segments.get(&segment).is_some_and(|known| known.in_use == 0)
    }

    /// Bytes of a segment's slots; `None` when it is not known.
    #[must_use]
    pub fn slot_bytes(&self, segment: u32) -> Option<u64> {
        self.segments.get(&segment).map(|known| known.slot_bytes)
    }

    /// The number of segments.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The number of slots in use, over all segments.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.segments.values().map(|segment| u64::from(segment.in_use)).sum()
    }

    /// Takes a slot of the class's next segment, which is the one at `place` for large ones.
    fn take(&mut self, class: usize, place: usize) -> Option<(u32, u32)> {
        let available = &mut self.available[class];
        let place = match self.reuse {
            _ if class == LARGE => place,
            SlotReuse::Latest => available.len().checked_sub(1)?,
            SlotReuse::Oldest => 0,
        };
        let segment = *available.get(place)?;
        let known = self.segments.get_mut(&segment)?;
        let slot = known.next(self.reuse)?;
        if known.in_use == known.slots {
            available.remove(place);
        } else if self.reuse == SlotReuse::Oldest {
            available.rotate_left(1);
        }
        Some((segment, slot))
    }

    /// The place of the smallest free large slot that holds the payload and is at most half empty.
    fn large_fit(&self, payload_bytes: u64, most: u64) -> Option<usize> {
        let sizes = self.available[LARGE].iter().enumerate().filter_map(|(place, segment)| {
            let slot_bytes = self.segments.get(segment)?.slot_bytes;
            (payload_bytes > 0 && (payload_bytes..=most).contains(&slot_bytes)).then_some((slot_bytes, place))
        });
        sizes.min().map(|(_, place)| place)
    }
}

impl ProducerSegment {
    fn bytes(&self) -> u64 {
        self.slot_bytes.saturating_mul(u64::from(self.slots))
    }

    /// Takes a free slot.
    fn next(&mut self, reuse: SlotReuse) -> Option<u32> {
        let fresh = (self.fresh < self.slots).then_some(self.fresh);
        let slot = match reuse {
            SlotReuse::Latest => self.freed.pop_back().or(fresh),
            SlotReuse::Oldest => fresh.or_else(|| self.freed.pop_front()),
        }?;
        if Some(slot) == fresh {
            self.fresh += 1;
        }
        self.used[slot as usize / 64] |= 1 << (slot % 64);
        self.in_use += 1;
        Some(slot)
    }

    /// Marks a slot as not in use; false when it was not.
    fn clear(&mut self, slot: u32) -> bool {
        let Some(word) = self.used.get_mut(slot as usize / 64) else {
            return false;
        };
        let bit = 1 << (slot % 64);
        let was_used = *word & bit != 0;
        *word &= !bit;
        was_used
    }
}

fn refused(segment: u32, cause: impl Into<String>) -> Error {
    Error::new(Code::Protocol, format!("segment {segment}"), cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::slot_bytes;

    #[test]
    fn nothing_to_allocate_from() {
        let mut slots = SlotAllocator::new();
        assert_eq!(slots.allocate(1), None);
        assert_eq!(slots.allocate(1 << 40), None);
        assert_eq!(slots.allocate(u64::MAX), None);
        assert!(slots.surplus().is_empty());
        assert!(!slots.free(1, 0));
        assert!(!slots.remove_segment(1));
    }

    #[test]
    fn an_empty_payload_needs_no_slot() {
        let mut slots = SlotAllocator::new();
        slots.add_segment(1, 64, 10).unwrap();
        assert_eq!(slots.allocate(0), None);
    }

    #[test]
    fn full_and_one_too_many() {
        let mut slots = SlotAllocator::new();
        slots.add_segment(7, 1024, 3).unwrap();
        let given: Vec<_> = std::iter::from_fn(|| slots.allocate(1000)).collect();
        assert_eq!(given, [(7, 0), (7, 1), (7, 2)]);
        assert!(!slots.remove_segment(7));
        assert!(slots.free(7, 1));
        assert!(!slots.free(7, 1), "freed twice");
        assert!(!slots.free(7, 3), "no such slot");
        assert!(!slots.free(7, u32::MAX));
        assert_eq!(slots.allocate(1000), Some((7, 1)));
        assert_eq!(slots.allocate(1000), None);
    }

    #[test]
    fn the_latest_slot_comes_first_and_the_oldest_last() {
        for (reuse, expected) in [(SlotReuse::Latest, [1, 0, 2]), (SlotReuse::Oldest, [2, 0, 1])] {
            let mut slots = SlotAllocator::with_reuse(reuse);
            slots.add_segment(1, 64, 3).unwrap();
            assert_eq!((slots.allocate(64), slots.allocate(64)), (Some((1, 0)), Some((1, 1))));
            assert!(slots.free(1, 0) && slots.free(1, 1));
            let order: Vec<u32> = std::iter::from_fn(|| slots.allocate(64))
                .map(|(_, slot)| slot)
                .collect();
            assert_eq!(order, expected);
        }
    }

    #[test]
    fn oldest_brings_every_slot_round() {
        let mut slots = SlotAllocator::with_reuse(SlotReuse::Oldest);
        slots.add_segment(1, 4096, 5).unwrap();
        slots.add_segment(2, 4096, 5).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10 {
            let (segment, slot) = slots.allocate(4096).unwrap();
            assert!(seen.insert((segment, slot)));
            assert!(slots.free(segment, slot));
        }
        assert_eq!(seen.len(), 10);
    }

    #[test]
    fn wider_slots_serve_up_to_half_empty() {
        let mut slots = SlotAllocator::new();
        slots.add_segment(1, 2048, 8).unwrap();
        assert_eq!(slots.allocate(1023), None);
        assert_eq!(slots.allocate(1024), Some((1, 0)));
        assert_eq!(slots.allocate(2049), None);
        slots.add_segment(2, 1024, 8).unwrap();
        assert_eq!(slots.allocate(1024), Some((2, 0)), "its own size is preferred");
    }

    #[test]
    fn large_payloads_take_the_tightest_fit() {
        let mut slots = SlotAllocator::new();
        let sizes = [5 << 30, 100 << 20, 6 << 30].map(slot_bytes);
        for (number, size) in (1..).zip(sizes) {
            slots.add_segment(number, size, 1).unwrap();
        }
        assert_eq!(slots.allocate((4 << 30) + 1), Some((1, 0)));
        assert_eq!(slots.allocate((4 << 30) + 1), Some((3, 0)));
        assert_eq!(slots.allocate((4 << 30) + 1), None);
        assert_eq!(slots.allocate(40 << 20), None, "more than half empty");
        assert_eq!(slots.allocate(60 << 20), Some((2, 0)));
        assert!(slots.free(1, 0));
        assert_eq!(slots.allocate(5 << 30), Some((1, 0)));
    }

    #[test]
    fn strange_segments_are_refused() {
        let mut slots = SlotAllocator::new();
        assert!(slots.add_segment(1, 0, 1).is_err());
        assert!(slots.add_segment(1, 63, 1).is_err());
        assert!(slots.add_segment(1, 64, 0).is_err());
        slots.add_segment(1, 100, 1).unwrap();
        assert_eq!(slots.add_segment(1, 64, 1).unwrap_err().code(), Code::Protocol);
        assert_eq!(slots.allocate(65), None);
        assert_eq!(slots.allocate(64), Some((1, 0)));
    }

    #[test]
    fn surplus_waits_a_round_and_keeps_the_largest() {
        let mut slots = SlotAllocator::new();
        for (number, count) in [(1, 1), (2, 4), (3, 2)] {
            slots.add_segment(number, 1 << 20, count).unwrap();
        }
        slots.add_segment(4, 64, 1).unwrap();
        assert!(slots.surplus().is_empty(), "not idle for long enough");
        assert_eq!(slots.surplus(), [1, 3]);
        let (segment, slot) = slots.allocate(1 << 20).unwrap();
        assert_eq!(segment, 3);
        assert_eq!(slots.surplus(), [1]);
        assert!(slots.free(segment, slot));
        assert_eq!(slots.surplus(), [1], "idle only since this round");
        assert!(slots.remove_segment(1));
        assert_eq!(slots.surplus(), [3]);
        assert!(slots.remove_segment(3));
        assert!(slots.surplus().is_empty());
        assert_eq!(slots.segments(), 2);
    }
}
