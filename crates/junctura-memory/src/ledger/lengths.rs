//! Which slots of a segment hold objects, and how long those are.

use super::SegmentError;

/// By slot: 0 when free, else one more than the payload's length. Only a slot that is alone in its segment can be so
/// long that its length needs more than four bytes.
#[derive(Debug)]
pub(super) enum SlotLengths {
    One(u64),
    Many(Box<[u32]>),
}

impl SlotLengths {
    /// All slots are free.
    pub(super) fn free(slots: u32) -> Self {
        if slots == 1 {
            Self::One(0)
        } else {
            Self::Many(vec![0; slots as usize].into())
        }
    }

    /// The number of slots.
    pub(super) fn count(&self) -> u32 {
        match self {
            Self::One(_) => 1,
            Self::Many(lengths) => lengths.len() as u32,
        }
    }

    /// An object of this length enters a slot.
    pub(super) fn fill(&mut self, slot: u32, length: u64) -> Result<(), SegmentError> {
        let no_such_slot = SegmentError::NoSuchSlot { slots: self.count() };
        match self {
            Self::One(place) if slot == 0 && *place == 0 => *place = length + 1,
            Self::One(_) => {
                return Err(if slot == 0 {
                    SegmentError::Occupied
                } else {
                    no_such_slot
                });
            }
            Self::Many(lengths) => match lengths.get_mut(slot as usize) {
                // Where there are several slots, each is far smaller than 4 GiB.
                Some(place @ 0) => *place = length as u32 + 1,
                Some(_) => return Err(SegmentError::Occupied),
                None => return Err(no_such_slot),
            },
        }
        Ok(())
    }

    /// The object leaves its slot; its length, if there was one.
    pub(super) fn clear(&mut self, slot: u32) -> Option<u64> {
        match self {
            Self::One(place) if slot == 0 => std::mem::take(place).checked_sub(1),
            Self::Many(lengths) => std::mem::take(lengths.get_mut(slot as usize)?)
                .checked_sub(1)
                .map(u64::from),
            Self::One(_) => None,
        }
    }
}
