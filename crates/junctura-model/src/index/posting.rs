//! The objects that have a value: small numbers, in the smallest form that is still quick to join.

use roaring::RoaringBitmap;

/// More are kept as a bitmap.
const FEW_MAX: usize = 16;

/// A set of slots.
#[derive(Clone, Debug)]
pub(super) enum SlotSet {
    One(u32),
    /// Sorted.
    Few(Vec<u32>),
    Many(Box<RoaringBitmap>),
}

impl Default for SlotSet {
    fn default() -> Self {
        SlotSet::Few(Vec::new())
    }
}

impl SlotSet {
    pub(super) fn len(&self) -> u64 {
        match self {
            SlotSet::One(_) => 1,
            SlotSet::Few(slots) => slots.len() as u64,
            SlotSet::Many(slots) => slots.len(),
        }
    }

    /// Returns how many of these slots are in `all`.
    pub(super) fn len_among(&self, all: &RoaringBitmap) -> u64 {
        match self {
            SlotSet::Many(slots) => slots.intersection_len(all),
            small => small.small().filter(|&slot| all.contains(slot)).count() as u64,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, SlotSet::Few(slots) if slots.is_empty())
    }

    pub(super) fn insert(&mut self, slot: u32) {
        match self {
            SlotSet::Many(slots) => {
                slots.insert(slot);
            }
            SlotSet::One(one) if *one == slot => {}
            SlotSet::One(one) => *self = SlotSet::Few(vec![slot.min(*one), slot.max(*one)]),

            SlotSet::Few(slots) if slots.is_empty() => *self = SlotSet::One(slot),
            SlotSet::Few(slots) => {
                if let Err(at) = slots.binary_search(&slot) {
                    slots.insert(at, slot);
                }
                if slots.len() > FEW_MAX {
                    *self = SlotSet::Many(Box::new(slots.iter().copied().collect()));
                }
            }
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        match self {
            SlotSet::One(one) if *one == slot => *self = SlotSet::default(),
            SlotSet::One(_) => {}
            SlotSet::Few(slots) => slots.retain(|&known| known != slot),
            SlotSet::Many(slots) => {
                slots.remove(slot);
                // Its length is a sum over all its parts.
                if slots.iter().nth(FEW_MAX / 2).is_none() {
                    *self = SlotSet::Few(slots.iter().collect());
                }
            }
        }
    }

    #[cfg(test)]
    fn contains(&self, slot: u32) -> bool {
        match self {
            SlotSet::One(one) => *one == slot,
            SlotSet::Few(slots) => slots.binary_search(&slot).is_ok(),
            SlotSet::Many(slots) => slots.contains(slot),
        }
    }

    fn bitmap(&self) -> RoaringBitmap {
        match self {
            SlotSet::One(slot) => RoaringBitmap::from_iter([*slot]),
            SlotSet::Few(slots) => slots.iter().copied().collect(),
            SlotSet::Many(slots) => (**slots).clone(),
        }
    }

    /// Keeps of `all` what is in here too.
    pub(super) fn narrow(&self, all: &mut RoaringBitmap) {
        match self {
            SlotSet::Many(slots) => *all &= &**slots,
            small => {
                let kept: RoaringBitmap = small.small().filter(|&slot| all.contains(slot)).collect();
                *all = kept;
            }
        }
    }

    fn small(&self) -> impl Iterator<Item = u32> {
        let slots: &[u32] = match self {
            SlotSet::One(slot) => std::slice::from_ref(slot),
            SlotSet::Few(slots) => slots,
            SlotSet::Many(_) => &[],
        };
        slots.iter().copied()
    }
}

/// Returns the union of the slots.
pub(super) fn union<'p>(postings: impl Iterator<Item = &'p SlotSet>) -> RoaringBitmap {
    let (mut small, mut all): (Vec<u32>, Option<RoaringBitmap>) = (Vec::new(), None);
    for posting in postings {
        match (posting, &mut all) {
            (SlotSet::Many(slots), Some(all)) => *all |= &**slots,
            (SlotSet::Many(_), None) => all = Some(posting.bitmap()),
            (posting, _) => small.extend(posting.small()),
        }
    }
    small.sort_unstable();
    let mut union = all.unwrap_or_default();
    // Adds them one by one to an existing bitmap, or all at once to an empty one.
    if union.is_empty() {
        return small.into_iter().collect();
    }
    union.extend(small);
    union
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_shrinks_as_a_set() {
        let mut posting = SlotSet::default();
        let slots: Vec<u32> = (0..100).map(|n| n * 7919 % 1000).collect();
        for (at, &slot) in slots.iter().enumerate() {
            posting.insert(slot);
            posting.insert(slot);
            assert_eq!(posting.len(), at as u64 + 1);
            assert!(posting.contains(slot) && !posting.contains(5000));
        }
        let mut all: RoaringBitmap = (0..500).collect();
        assert_eq!(
            posting.len_among(&all),
            slots.iter().filter(|&&slot| slot < 500).count() as u64
        );
        posting.narrow(&mut all);
        assert!(all.iter().all(|slot| slots.contains(&slot)));
        for &slot in &slots {
            posting.remove(slot);
            posting.remove(slot);
            assert!(!posting.contains(slot));
        }
        assert!(posting.is_empty());
    }
}
