//! Size classes: how large a slot is, and how large a segment.
//!
//! There are few slot sizes so that a freed one fits the next payload of about the same size. Up to 256 bytes they are
//! multiples of a cache line; above there are four sizes to each doubling, so less than a fifth of a slot is wasted,
//! and from 16 KiB on every slot is made of whole pages. Payloads beyond [`SEGMENT_BYTES_MAX`] get a segment of their
//! own, with one slot rounded up to pages. An empty payload needs no slot.
//!
//! ```text
//!  64 128 192 256 | 320 384 448 512 | 640 768 896 1024 | 1280 … | 40 MiB 48 MiB 56 MiB 64 MiB | pages
//!  class 0 …    3 | 4             7 | 8            11  |        | 72                      75  | large
//! ```
//!
//! Segments start small and double what a client holds of a class, so that fifty producers with one field each do
//! not reserve gigabytes, and a busy one soon leases rarely.

/// Slots of 16 KiB and more, and all segments, are multiples of this.
pub const PAGE_BYTES: u64 = 4096;
/// The first segment of a class has this size, unless one slot is larger.
pub const SEGMENT_BYTES_FIRST: u64 = 256 << 10;
/// No segment of more than one slot is larger.
pub const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// The number of classes below "large".
pub const CLASSES: usize = 76;

const LINE_BYTES: u64 = 64;
/// Up to `1 << FINE_BITS` bytes a slot is a multiple of a cache line.
const FINE_BITS: u32 = 8;

/// One of the [`CLASSES`] sizes of slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeClass(u8);

impl SizeClass {
    /// The smallest class whose slots hold `payload_bytes`; `None` for an empty or a large payload.
    #[must_use]
    pub fn of(payload_bytes: u64) -> Option<Self> {
        if payload_bytes == 0 || payload_bytes > SEGMENT_BYTES_MAX {
            return None;
        }
        if payload_bytes <= 1 << FINE_BITS {
            return Some(Self((payload_bytes.div_ceil(LINE_BYTES) - 1) as u8));
        }
        let power = (payload_bytes - 1).ilog2();
        let quarter = (payload_bytes - (1 << power)).div_ceil(1 << (power - 2));
        Some(Self((4 * (power - FINE_BITS) + 3 + quarter as u32) as u8))
    }

    /// The largest class whose slots fit into `slot_bytes`; `None` for less than the smallest, or for a large slot.
    #[must_use]
    pub fn within(slot_bytes: u64) -> Option<Self> {
        let class = Self::of(slot_bytes)?;
        if class.slot_bytes() == slot_bytes {
            Some(class)
        } else {
            class.0.checked_sub(1).map(Self)
        }
    }

    /// Bytes of this class's slots.
    #[must_use]
    pub fn slot_bytes(self) -> u64 {
        let number = u64::from(self.0);
        if number < 4 {
            return (number + 1) * LINE_BYTES;
        }
        let (power, quarter) = ((number - 4) / 4 + u64::from(FINE_BITS), (number - 4) % 4 + 1);
        (1 << power) + (quarter << (power - 2))
    }

    /// The place of the class among all: less than [`CLASSES`].
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Every class, smallest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..CLASSES as u8).map(Self)
    }
}

/// Bytes of the slot that a payload gets; 0 for an empty one.
#[must_use]
pub fn slot_bytes(payload_bytes: u64) -> u64 {
    match SizeClass::of(payload_bytes) {
        Some(class) => class.slot_bytes(),
        None => page_up(payload_bytes),
    }
}

/// Returns the bytes of the next segment of `slot_bytes`, for a client that holds `held_bytes` of this class, when at
/// most `room_bytes` may be taken: as much as the client holds, less if there is no room, `None` if not even one slot
/// fits.
#[must_use]
pub fn segment_bytes(slot_bytes: u64, held_bytes: u64, room_bytes: u64) -> Option<u64> {
    let least = page_up(slot_bytes);
    if slot_bytes == 0 || least > room_bytes {
        return None;
    }
    if slot_bytes > SEGMENT_BYTES_MAX {
        return Some(least);
    }
    let ideal = held_bytes
        .saturating_add(first_bytes(slot_bytes))
        .min(SEGMENT_BYTES_MAX);
    let slots = ideal.min(page_down(room_bytes)) / slot_bytes;
    Some(page_up(slots * slot_bytes))
}

/// Bytes of the first segment of a class; also what a lease gets at most when memory is short.
#[must_use]
pub fn first_bytes(slot_bytes: u64) -> u64 {
    page_up(slot_bytes).max(SEGMENT_BYTES_FIRST)
}

/// The next multiple of a page (the last one, at the end of the numbers).
#[must_use]
pub fn page_up(bytes: u64) -> u64 {
    page_down(bytes.saturating_add(PAGE_BYTES - 1))
}

fn page_down(bytes: u64) -> u64 {
    bytes - bytes % PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rise_four_to_a_doubling() {
        let sizes: Vec<u64> = SizeClass::all().map(SizeClass::slot_bytes).collect();
        assert_eq!(
            sizes[..12],
            [64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024]
        );
        assert_eq!(sizes[CLASSES - 1], SEGMENT_BYTES_MAX);
        assert!(sizes.is_sorted());
        for (index, class) in SizeClass::all().enumerate() {
            assert_eq!(class.index(), index);
            assert_eq!(SizeClass::of(class.slot_bytes()), Some(class));
            assert_eq!(SizeClass::within(class.slot_bytes()), Some(class));
            let more = SizeClass::of(class.slot_bytes() + 1);
            assert_eq!(more.map(SizeClass::index), (index + 1 < CLASSES).then_some(index + 1));
            assert_eq!(SizeClass::within(class.slot_bytes() + 1), more.map(|_| class));
            let aligned = if class.slot_bytes() < 16 << 10 {
                LINE_BYTES
            } else {
                PAGE_BYTES
            };
            assert_eq!(class.slot_bytes() % aligned, 0);
        }
    }

    #[test]
    fn waste_is_bounded() {
        for power in 8..40 {
            for payload in [
                (1_u64 << power) + 1,
                3 << (power - 1),
                (3 << (power - 1)) + 1,
                (1 << (power + 1)) - 1,
            ] {
                let slot = slot_bytes(payload);
                assert!(slot >= payload);
                assert!((slot - payload) * 4 <= slot, "{payload} in {slot}");
            }
        }
        assert_eq!(slot_bytes(1), 64);
        assert_eq!(slot_bytes(65), 128);
    }

    #[test]
    fn empty_and_enormous() {
        assert_eq!(slot_bytes(0), 0);
        assert_eq!(SizeClass::of(0), None);
        assert_eq!(SizeClass::within(63), None);
        assert_eq!(slot_bytes(SEGMENT_BYTES_MAX + 1), SEGMENT_BYTES_MAX + PAGE_BYTES);
        assert_eq!(slot_bytes((5 << 30) + 1), (5 << 30) + PAGE_BYTES);
        assert!(slot_bytes(u64::MAX).is_multiple_of(PAGE_BYTES));
        assert_eq!(segment_bytes(0, 0, u64::MAX), None);
        assert_eq!(segment_bytes(slot_bytes(5 << 30), 1 << 40, u64::MAX), Some(5 << 30));
    }

    #[test]
    fn segments_double_to_the_limit() {
        let slot = slot_bytes(804 << 10);
        let (mut held, mut slots) = (0, Vec::new());
        for _ in 0..9 {
            let bytes = segment_bytes(slot, held, u64::MAX).unwrap();
            slots.push(bytes / slot);
            held += bytes;
        }
        assert_eq!(slots, [1, 2, 4, 8, 16, 32, 64, 73, 73]);
        assert_eq!(segment_bytes(64, 0, u64::MAX), Some(SEGMENT_BYTES_FIRST));
        assert_eq!(segment_bytes(320, 0, u64::MAX), Some(SEGMENT_BYTES_FIRST));
        assert_eq!(segment_bytes(slot_bytes(40 << 20), 80 << 20, u64::MAX), Some(40 << 20));
    }

    #[test]
    fn segments_shrink_to_the_room() {
        for class in SizeClass::all() {
            let slot = class.slot_bytes();
            let least = page_up(slot);
            for room in [0, least - 1, least, least + 1, 3 * least + 5, u64::MAX] {
                match segment_bytes(slot, 1 << 40, room) {
                    Some(bytes) => assert!((slot..=room.min(SEGMENT_BYTES_MAX)).contains(&bytes), "{slot} {room}"),
                    None => assert!(room < least),
                }
            }
        }
    }
}
