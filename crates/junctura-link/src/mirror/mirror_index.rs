//! The server's end's knowledge of the client's mirror: its payloads, and their holders.
//!
//! A payload is sent once, for any number of deliveries, as long as the mirror has it. The mirror's memory is bounded:
//! beyond its limit, unheld payloads are forgotten, those released first before others: when the next payload is sent, and
//! as soon as one is released. The server's end decides it, in the order of its records; so both ends agree without a
//! request.

use std::collections::VecDeque;

use hashbrown::HashMap;
use junctura_wire::fixed::{DeliveredHead, FILE_TIER, SPILLED, STAGED};

use crate::record::PayloadOffset;

/// Payloads that a mirror keeps beyond those that are held, at most, whatever number of bytes its client claims to have room for.
const COPIES_MAX: usize = 1 << 20;

/// The place of a payload in the mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MirrorSlot {
    Slot(u32, u32),
    File(u64),
}

#[derive(Debug)]
struct MirrorCopy {
    /// The object's number: another payload in the same place has another one.
    sequence: u64,
    length: u64,
    /// Deliveries that were not given back.
    holders: u32,
    /// When it was given back last.
    stamp: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MirrorIndex {
    copies: HashMap<MirrorSlot, MirrorCopy>,
    /// By channel and number, with the number of the object.
    holdings: HashMap<(u32, u32), (MirrorSlot, u64)>,
    /// Payloads that are not held, with their stamps at that time.
    idle: VecDeque<(MirrorSlot, u64)>,
    bytes: u64,
    bytes_max: u64,
    copies_max: usize,
    stamp: u64,
}

impl MirrorIndex {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            copies: HashMap::new(),
            holdings: HashMap::new(),
            idle: VecDeque::new(),
            bytes: 0,
            bytes_max,
            copies_max: COPIES_MAX,
            stamp: 0,
        }
    }

    /// Records a delivery to a channel. Returns whether its payload has to be sent, too.
    pub(crate) fn delivered(&mut self, channel: u32, head: &DeliveredHead) -> bool {
        let place = place(head);
        let (sequence, length) = (head.sequence.get(), head.length.get());
        self.holdings.insert((channel, head.holding.get()), (place, sequence));
        // A staged object has no number that identifies it.
        let is_numbered = head.flags.get() & STAGED == 0;
        if let Some(copy) = self.copies.get_mut(&place) {
            copy.holders += 1;
            if is_numbered && copy.sequence == sequence && copy.length >= length {
                return false;
            }
            copy.sequence = sequence;
            self.bytes = self.bytes + length - copy.length;
            copy.length = length;
            return true;
        }
        let copy = MirrorCopy {
            sequence,
            length,
            holders: 1,
            stamp: 0,
        };
        self.copies.insert(place, copy);
        self.bytes += length;
        true
    }

    /// A delivery was given back. Without effect if the holding is of another object: the server refuses it, too.
    pub(crate) fn released(&mut self, channel: u32, holding: u32, sequence: u64) {
        let key = (channel, holding);
        if let Some(&(place, held)) = self.holdings.get(&key)
            && held == sequence
        {
            self.holdings.remove(&key);
            self.let_go(place);
        }
    }

    /// A channel has ended, and holds nothing any more.
    pub(crate) fn left(&mut self, channel: u32) {
        let held: Vec<_> = self.holdings.extract_if(|(whose, _), _| *whose == channel).collect();
        for (_, (place, _)) in held {
            self.let_go(place);
        }
    }

    fn let_go(&mut self, place: MirrorSlot) {
        let Some(copy) = self.copies.get_mut(&place) else {
            return;
        };
        copy.holders = copy.holders.saturating_sub(1);
        if copy.holders == 0 {
            self.stamp += 1;
            copy.stamp = self.stamp;
            self.idle.push_back((place, self.stamp));
        }
    }

    /// A segment was dropped, with all its contents.
    pub(crate) fn dropped(&mut self, segment: u32) {
        let bytes = &mut self.bytes;
        self.copies.retain(|place, copy| {
            let stays = !matches!(place, MirrorSlot::Slot(number, _) if *number == segment);
            if !stays {
                *bytes -= copy.length;
            }
            stays
        });
    }

    /// Returns the payload that the mirror is to forget next, and its length.
    pub(crate) fn overdue(&mut self) -> Option<(PayloadOffset, u64)> {
        // Most of what is idle was delivered again since.
        if self.idle.len() > 64 + 4 * self.copies.len() {
            let copies = &self.copies;
            self.idle.retain(|(place, stamp)| is_idle(copies.get(place), *stamp));
        }
        while self.bytes > self.bytes_max || self.copies.len() > self.copies_max {
            let (place, stamp) = self.idle.pop_front()?;
            if is_idle(self.copies.get(&place), stamp)
                && let Some(copy) = self.copies.remove(&place)
            {
                self.bytes -= copy.length;
                return Some((place.at(), copy.length));
            }
        }
        None
    }
}

fn is_idle(copy: Option<&MirrorCopy>, stamp: u64) -> bool {
    copy.is_some_and(|copy| copy.holders == 0 && copy.stamp == stamp)
}

fn place(head: &DeliveredHead) -> MirrorSlot {
    let (segment, slot) = (head.segment.get(), head.slot.get());
    if head.flags.get() & SPILLED == 0 {
        MirrorSlot::Slot(segment, slot)
    } else {
        MirrorSlot::File(u64::from(segment) << 32 | u64::from(slot))
    }
}

/// Returns the place of a delivery's payload.
pub(crate) fn at(head: &DeliveredHead) -> PayloadOffset {
    place(head).at()
}

impl MirrorSlot {
    fn at(self) -> PayloadOffset {
        match self {
            Self::Slot(segment, slot) => PayloadOffset {
                segment,
                slot,
                offset: 0,
            },
            Self::File(offset) => PayloadOffset {
                segment: FILE_TIER,
                slot: 0,
                offset,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(holding: u32, slot: u32, sequence: u64) -> DeliveredHead {
        DeliveredHead {
            sequence: sequence.into(),
            segment: 1.into(),
            slot: slot.into(),
            length: 100.into(),
            holding: holding.into(),
            ..DeliveredHead::default()
        }
    }

    #[test]
    fn a_payload_goes_once_while_the_mirror_has_it() {
        let mut shadow = MirrorIndex::new(1000);
        assert!(shadow.delivered(0, &delivery(0, 5, 1)));
        assert!(!shadow.delivered(0, &delivery(1, 5, 1)));
        shadow.released(0, 0, 1);
        shadow.released(0, 1, 1);
        assert!(!shadow.delivered(0, &delivery(0, 5, 1)), "given back, and still there");
        assert!(
            shadow.delivered(0, &delivery(1, 5, 2)),
            "another object in the same slot"
        );
        shadow.dropped(1);
        assert!(
            shadow.delivered(0, &delivery(2, 5, 2)),
            "another segment of the same number"
        );
    }

    #[test]
    fn what_is_staged_always_goes() {
        let mut shadow = MirrorIndex::new(1000);
        let mut head = delivery(0, 5, 0);
        head.flags = STAGED.into();
        assert!(shadow.delivered(0, &head));
        head.holding = 1.into();
        assert!(shadow.delivered(0, &head));
    }

    #[test]
    fn beyond_the_limit_what_was_given_back_first_is_forgotten_first() {
        let mut shadow = MirrorIndex::new(250);
        for slot in 0..4 {
            assert!(shadow.delivered(0, &delivery(slot, slot, u64::from(slot) + 1)));
        }
        assert_eq!(shadow.overdue(), None, "all are held");
        for holding in [2, 0, 3] {
            shadow.released(0, holding, u64::from(holding) + 1);
        }
        // Held again: it stays, although it was the first.
        assert!(!shadow.delivered(0, &delivery(9, 2, 3)));
        let forgotten: Vec<_> = std::iter::from_fn(|| shadow.overdue())
            .map(|(at, length)| (at.slot, length))
            .collect();
        assert_eq!(forgotten, [(0, 100), (3, 100)]);
        assert!(shadow.delivered(0, &delivery(0, 0, 1)), "it has to go again");
    }

    #[test]
    fn channels_share_what_is_there() {
        let mut shadow = MirrorIndex::new(100);
        assert!(shadow.delivered(1, &delivery(0, 5, 1)));
        assert!(!shadow.delivered(2, &delivery(0, 5, 1)));
        shadow.released(1, 0, 1);
        assert!(shadow.delivered(3, &delivery(0, 6, 2)));
        shadow.left(3);
        let forgotten: Vec<_> = std::iter::from_fn(|| shadow.overdue()).map(|(at, _)| at.slot).collect();
        assert_eq!(forgotten, [6], "the other one is still held by channel 2");
        shadow.left(2);
        assert!(shadow.holdings.is_empty());
    }

    #[test]
    fn few_payloads_are_kept_whatever_room_a_client_claims() {
        let mut shadow = MirrorIndex::new(u64::MAX);
        assert_eq!(shadow.copies_max, COPIES_MAX);
        shadow.copies_max = 2;
        for slot in 0..4 {
            shadow.delivered(0, &delivery(slot, slot, u64::from(slot) + 1));
        }
        assert_eq!(shadow.overdue(), None, "all are held");
        for holding in 0..4 {
            shadow.released(0, holding, u64::from(holding) + 1);
        }
        let forgotten: Vec<_> = std::iter::from_fn(|| shadow.overdue()).map(|(at, _)| at.slot).collect();
        assert_eq!(forgotten, [0, 1]);
    }

    #[test]
    fn a_release_of_another_object_changes_nothing() {
        let mut shadow = MirrorIndex::new(0);
        assert!(shadow.delivered(0, &delivery(0, 5, 1)));
        shadow.released(0, 0, 1_000_003);
        assert_eq!(shadow.overdue(), None, "it is held");
        shadow.released(0, 0, 1);
        assert_eq!(shadow.overdue().map(|(at, _)| at.slot), Some(5));
    }

    #[test]
    fn its_own_memory_is_bounded() {
        let mut shadow = MirrorIndex::new(1 << 40);
        for _ in 0..10_000 {
            shadow.delivered(0, &delivery(0, 5, 1));
            shadow.released(0, 0, 1);
            shadow.overdue();
        }
        assert!(shadow.idle.len() < 100);
        assert!(shadow.holdings.is_empty());
    }
}
