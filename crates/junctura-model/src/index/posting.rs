//! The objects that have a value: small numbers, in the smallest form that is still quick to join.

use roaring::RoaringBitmap;

/// More are kept as a bitmap.
const FEW_MAX: usize = 16;

/// A set of slots.
#[derive(Clone, Debug)]
pub(super) enum Posting {
    One(u32),
    /// Sorted.
    Few(Vec<u32>),
    Many(Box<RoaringBitmap>),
}

impl Default for Posting {
    fn default() -> Self {
        Posting::Few(Vec::new())
    }
}

impl Posting {
    pub(super) fn len(&self) -> u64 {
        match self {
            Posting::One(_) => 1,
            Posting::Few(slots) => slots.len() as u64,
            Posting::Many(slots) => slots.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Posting::Few(slots) if slots.is_empty())
    }

    pub(super) fn insert(&mut self, slot: u32) {
        match self {
            Posting::Many(slots) => {
                slots.insert(slot);
            }
            Posting::One(one) if *one == slot => {}
            Posting::One(one) => *self = Posting::Few(vec![slot.min(*one), slot.max(*one)]),

            Posting::Few(slots) if slots.is_empty() => *self = Posting::One(slot),
            Posting::Few(slots) => {
                if let Err(at) = slots.binary_search(&slot) {
                    slots.insert(at, slot);
                }
                if slots.len() > FEW_MAX {
                    *self = Posting::Many(Box::new(slots.iter().copied().collect()));
                }
            }
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        match self {
            Posting::One(one) if *one == slot => *self = Posting::default(),
            Posting::One(_) => {}
            Posting::Few(slots) => slots.retain(|&known| known != slot),
            Posting::Many(slots) => {
                slots.remove(slot);
                // Its length is a sum over all its parts.
                if slots.iter().nth(FEW_MAX / 2).is_none() {
                    *self = Posting::Few(slots.iter().collect());
                }
            }
        }
    }

    #[cfg(test)]
    fn contains(&self, slot: u32) -> bool {
        match self {
            Posting::One(one) => *one == slot,
            Posting::Few(slots) => slots.binary_search(&slot).is_ok(),
            Posting::Many(slots) => slots.contains(slot),
        }
    }

    fn bitmap(&self) -> RoaringBitmap {
        match self {
            Posting::One(slot) => RoaringBitmap::from_iter([*slot]),
            Posting::Few(slots) => slots.iter().copied().collect(),
            Posting::Many(slots) => (**slots).clone(),
        }
    }

    /// Keeps of `all` what is in here too.
    pub(super) fn narrow(&self, all: &mut RoaringBitmap) {
        match self {
            Posting::Many(slots) => *all &= &**slots,
            small => {
                let kept: RoaringBitmap = small.small().filter(|&slot| all.contains(slot)).collect();
                *all = kept;
            }
        }
    }

    fn small(&self) -> impl Iterator<Item = u32> {
        let slots: &[u32] = match self {
            Posting::One(slot) => std::slice::from_ref(slot),
            Posting::Few(slots) => slots,
            Posting::Many(_) => &[],
        };
        slots.iter().copied()
    }
}

/// The slots that are in any of them.
pub(super) fn union<'p>(postings: impl Iterator<Item = &'p Posting>) -> RoaringBitmap {
    let (mut small, mut all): (Vec<u32>, Option<RoaringBitmap>) = (Vec::new(), None);
    for posting in postings {
        match (posting, &mut all) {
            (Posting::Many(slots), Some(all)) => *all |= &**slots,
            (Posting::Many(_), None) => all = Some(posting.bitmap()),
            (posting, _) => small.extend(posting.small()),
        }
    }
    small.sort_unstable();
    let mut union = all.unwrap_or_default();
    // One by one into a bitmap that is there, in one go into an empty one.
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
        let mut posting = Posting::default();
        let slots: Vec<u32> = (0..100).map(|n| n * 7919 % 1000).collect();
        for (at, &slot) in slots.iter().enumerate() {
            posting.insert(slot);
            posting.insert(slot);
            assert_eq!(posting.len(), at as u64 + 1);
            assert!(posting.contains(slot) && !posting.contains(5000));
        }
        let mut all: RoaringBitmap = (0..500).collect();
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
