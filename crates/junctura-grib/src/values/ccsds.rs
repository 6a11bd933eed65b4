//! How many samples a stream of CCSDS lossless compression has (CCSDS 121.0-B-3, Lossless Data Compression; GRIB's
//! templates 5.42 and 7.42).
//!
//! ```text
//! interval   block block ... block        the first block of an interval begins with a sample as it is (with preprocessing)
//! block      option | samples             by fundamental sequences (0...01), by bits that were split off, or as they are
//!            0 0    | zero blocks         several blocks in a few bits
//! ```
//! Nothing is decoded: only lengths are read.

/// Bits of the flags of template 5.42.
const PREPROCESSED: u8 = 8;
const RESTRICTED: u8 = 16;
const PADDED: u8 = 32;
/// Zero blocks that mean: all that are left in this segment.
const REST_OF_SEGMENT: u64 = 5;
/// Blocks of a segment.
const SEGMENT: u64 = 64;
/// The bits of a window that are there at any place.
const WHOLE_WINDOW: u64 = !0xff;
/// The largest sum of two samples that the second extension knows.
const PAIR_MAX: u64 = 90;

/// How a stream is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamLayout {
    /// Of a sample, from 1 to 32.
    pub(crate) bits: u64,
    pub(crate) flags: u8,
    /// Samples of a block.
    pub(crate) block: u64,
    /// Blocks of an interval.
    pub(crate) interval: u64,
}

impl StreamLayout {
    /// How many samples are in `bytes`, up to `wanted`; `None` for a layout that the standard does not have.
    pub(crate) fn samples(&self, bytes: &[u8], wanted: u64) -> Option<u64> {
        let option_bits = self.option_bits()?;
        if !matches!(self.block, 8 | 16 | 32 | 64) || !(1..=4096).contains(&self.interval) {
            return None;
        }
        let mut bits = CheckedBits { bytes, at: 0 };
        let mut samples = 0;
        let mut at = 0;
        while samples < wanted {
            let Some(blocks) = self.block_at(at, option_bits, &mut bits) else {
                return Some(samples);
            };
            samples += blocks * self.block;
            at += blocks;
            if at == self.interval {
                at = 0;
                if self.flags & PADDED != 0 {
                    bits.at = bits.at.next_multiple_of(8);
                }
            }
        }
        Some(wanted)
    }

    fn option_bits(&self) -> Option<u64> {
        match (self.bits, self.flags & RESTRICTED != 0) {
            (17..=32, _) => Some(5),
            (9..=16, _) => Some(4),
            (1..=8, false) => Some(3),
            (1..=2, true) => Some(1),
            (3..=4, true) => Some(2),
            _ => None,
        }
    }

    /// Passes over the block that is the `at`-th of its interval; returns the number of blocks that it represents.
    fn block_at(&self, at: u64, option_bits: u64, bits: &mut CheckedBits<'_>) -> Option<u64> {
        let first = u64::from(at == 0 && self.flags & PREPROCESSED != 0);
        let option = bits.take(option_bits)?;
        if option == (1 << option_bits) - 1 {
            return bits.skip(self.block * self.bits).map(|()| 1);
        }
        if option > 0 {
            bits.skip(first * self.bits)?;
            let samples = self.block - first;
            bits.skip_ones(samples)?;
            return bits.skip(samples * (option - 1)).map(|()| 1);
        }
        let is_pairs = bits.take(1)? == 1;
        bits.skip(first * self.bits)?;
        if is_pairs {
            for _ in 0..self.block / 2 {
                bits.zeros().filter(|sum| *sum <= PAIR_MAX)?;
            }
            return Some(1);
        }
        let count = bits.zeros()? + 1;
        let left = self.interval - at;
        let blocks = match count {
            REST_OF_SEGMENT => left.min(SEGMENT - at % SEGMENT),
            _ => count - u64::from(count > REST_OF_SEGMENT),
        };
        (blocks <= left).then_some(blocks)
    }
}

/// Reads bits, and never beyond the end.
struct CheckedBits<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl CheckedBits<'_> {
    fn left(&self) -> u64 {
        (self.bytes.len() as u64 * 8).saturating_sub(self.at)
    }

    fn skip(&mut self, bits: u64) -> Option<()> {
        (bits <= self.left()).then(|| self.at += bits)
    }

    /// A number of 8 bits at most.
    fn take(&mut self, bits: u64) -> Option<u64> {
        let from = self.at;
        self.skip(bits)?;
        Some(self.window(from) >> (64 - bits))
    }

    /// The zeros before the next one, which is passed over, too.
    fn zeros(&mut self) -> Option<u64> {
        let mut zeros = 0;
        while self.left() > 0 {
            let here = u64::from(self.window(self.at).leading_zeros()).min(56);
            if here < 56 {
                self.skip(here + 1)?;
                return Some(zeros + here);
            }
            zeros += here;
            self.at += here;
        }
        None
    }

    /// Skips up to and including the `count`-th one from here; each ends a fundamental sequence.
    fn skip_ones(&mut self, mut count: u64) -> Option<()> {
        while self.left() > 0 {
            let word = self.window(self.at) & WHOLE_WINDOW;
            let ones = u64::from(word.count_ones());
            if ones >= count {
                self.at += nth_one(word, count) + 1;
                return Some(());
            }
            count -= ones;
            self.at += u64::from(WHOLE_WINDOW.count_ones());
        }
        None
    }

    /// At least 57 bits from a place on, in the highest; behind the end all are 0.
    fn window(&self, at: u64) -> u64 {
        let (byte, bit) = ((at / 8) as usize, at % 8);
        let rest = self.bytes.get(byte..).unwrap_or_default();
        let word = rest.first_chunk().map_or_else(
            || {
                let mut last = [0; 8];
                last[..rest.len()].copy_from_slice(rest);
                u64::from_be_bytes(last)
            },
            |bytes| u64::from_be_bytes(*bytes),
        );
        word << bit
    }
}

/// The place of the `count`-th one of a word that has so many, from its highest bit.
fn nth_one(word: u64, mut count: u64) -> u64 {
    [32, 16, 8, 4, 2, 1].into_iter().fold(0, |at, width| {
        let ones = u64::from(((word << at) >> (64 - width)).count_ones());
        if ones >= count {
            return at;
        }
        count -= ones;
        at + width
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(bits: u64, flags: u8, interval: u64) -> StreamLayout {
        StreamLayout {
            bits,
            flags,
            block: 8,
            interval,
        }
    }

    /// Bits as text become bytes; blanks are for readers.
    fn bytes(text: &str) -> Vec<u8> {
        let bits: Vec<u8> = text
            .bytes()
            .filter(|byte| *byte != b' ')
            .map(|byte| byte - b'0')
            .collect();
        let octet = |bits: &[u8]| bits.iter().fold(0, |sum, bit| sum << 1 | bit) << (8 - bits.len());
        bits.chunks(8).map(octet).collect()
    }

    #[test]
    fn samples_as_they_are() {
        let layout = stream(8, 0, 4);
        let mut whole = bytes(&format!("111 {}", "10101010".repeat(8)));
        assert_eq!(layout.samples(&whole, 100), Some(8));
        whole.pop();
        assert_eq!(layout.samples(&whole, 100), Some(0));
    }

    #[test]
    fn samples_that_are_split() {
        // Option 2: one bit of each is split off; eight sequences, then eight bits.
        let text = format!("010 {} {}", "001 1 01 1 1 1 1 0001", "10110110");
        assert_eq!(stream(8, 0, 4).samples(&bytes(&text), 8), Some(8));
        // With preprocessing the first sample is there as it is.
        let text = format!("010 11111111 {} {}", "1 01 1 1 1 1 0001", "1011011");
        let layout = stream(8, PREPROCESSED, 4);
        assert_eq!(layout.samples(&bytes(&text), 8), Some(8));
        assert_eq!(layout.samples(&bytes(&text)[..3], 8), Some(0));
    }

    #[test]
    fn pairs_have_a_largest_sum() {
        let layout = stream(8, 0, 4);
        assert_eq!(layout.samples(&bytes("000 1 1 01 1 1"), 8), Some(8));
        let text = format!("000 1 {}1 1 1 1", "0".repeat(91));
        assert_eq!(layout.samples(&bytes(&text), 8), Some(0));
    }

    #[test]
    fn zero_blocks_are_counted_as_the_standard_does() {
        for (zeros, blocks) in [(0, 1), (3, 4), (5, 5), (6, 6)] {
            let text = format!("000 0 {}1", "0".repeat(zeros));
            assert_eq!(
                stream(8, 0, 100).samples(&bytes(&text), 10_000),
                Some(blocks * 8),
                "{zeros}"
            );
        }
        // Four zeros: the rest of the segment, or of the interval.
        assert_eq!(stream(8, 0, 100).samples(&bytes("000 0 00001"), 10_000), Some(64 * 8));
        assert_eq!(stream(8, 0, 10).samples(&bytes("000 0 00001"), 10_000), Some(10 * 8));
        // More than an interval has.
        assert_eq!(stream(8, 0, 2).samples(&bytes("000 0 0001"), 10_000), Some(0));
    }

    #[test]
    fn an_interval_may_end_with_its_octet() {
        let text = "000 0 1 000  000 0 1 000";
        assert_eq!(stream(8, PADDED, 1).samples(&bytes(text), 100), Some(16));
    }

    #[test]
    fn layouts_of_no_standard_are_not_known() {
        for bits in [0, 33] {
            assert_eq!(stream(bits, 0, 4).samples(&[0; 8], 8), None);
        }
        assert_eq!(stream(5, RESTRICTED, 4).samples(&[0; 8], 8), None);
        assert_eq!(stream(8, 0, 0).samples(&[0; 8], 8), None);
        assert_eq!(
            StreamLayout {
                block: 7,
                ..stream(8, 0, 4)
            }
            .samples(&[0; 8], 8),
            None
        );
    }

    #[test]
    fn ones_are_counted_across_windows() {
        let text: String = (0..300).map(|at| if at % 7 == 3 { '1' } else { '0' }).collect();
        let bytes = bytes(&text);
        for count in 1..=42 {
            let mut bits = CheckedBits { bytes: &bytes, at: 0 };
            assert_eq!(bits.skip_ones(count), Some(()));
            assert_eq!(bits.at, (count - 1) * 7 + 4);
        }
        assert_eq!(CheckedBits { bytes: &bytes, at: 0 }.skip_ones(44), None);
    }

    #[test]
    fn long_runs_of_zeros_are_passed_over() {
        let mut bits = CheckedBits {
            bytes: &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0b0001_0000],
            at: 3,
        };
        assert_eq!(bits.zeros(), Some(80));
        assert_eq!(bits.zeros(), None);
    }
}
