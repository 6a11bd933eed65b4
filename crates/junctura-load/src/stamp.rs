//! The stamp that a producer writes into a payload, and that a consumer checks.
//!
//! ```text
//!   0          8         16       24                                   n-8
//!   | producer | number  | time   | filling (touch, verify)  …         | number |
//! ```

/// Bytes that every payload has at least.
pub(crate) const BYTES_MIN: usize = 64;

/// The first bytes of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadStamp {
    pub(crate) producer: u64,
    pub(crate) number: u64,
    /// When it was offered: nanoseconds of the machine's monotonic clock.
    pub(crate) offered_ns: u64,
}

impl PayloadStamp {
    /// Writes first and last cache line.
    pub(crate) fn write(&self, payload: &mut [u8]) {
        payload[0..8].copy_from_slice(&self.producer.to_le_bytes());
        payload[8..16].copy_from_slice(&self.number.to_le_bytes());
        payload[16..24].copy_from_slice(&self.offered_ns.to_le_bytes());
        let end = payload.len() - 8;
        payload[end..].copy_from_slice(&self.number.to_le_bytes());
    }

    /// Reads it back; `None` when first and last cache line do not belong together.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(payload.get(at..at + 8)?.try_into().ok()?));
        let stamp = Self {
            producer: word(0)?,
            number: word(8)?,
            offered_ns: word(16)?,
        };
        (payload.len() >= BYTES_MIN && word(payload.len() - 8)? == stamp.number).then_some(stamp)
    }
}

/// Fills everything between the stamps with what only this object has.
pub(crate) fn fill(payload: &mut [u8], seed: u64) {
    let end = payload.len() - 8;
    let mut value = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = payload[24..end].as_chunks_mut::<8>();
    for word in words {
        *word = value.to_le_bytes();
        value = value.wrapping_add(0x0101_0101_0101_0101);
    }
    rest.fill(seed as u8);
}

/// Reads every byte; the sum is of no use but cannot be left out.
pub(crate) fn read_all(payload: &[u8]) -> u64 {
    let (words, rest) = payload.as_chunks::<8>();
    let mut sums = [0u64; 4];
    let (fours, left) = words.as_chunks::<4>();
    for four in fours {
        for (sum, word) in sums.iter_mut().zip(four) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    let tail = left
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .fold(0u64, u64::wrapping_add);
    let bytes = rest.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    sums.into_iter().fold(tail.wrapping_add(bytes), u64::wrapping_add)
}

/// Whether everything between the stamps is what [`fill`] wrote.
pub(crate) fn is_filled(payload: &[u8], seed: u64) -> bool {
    let end = payload.len() - 8;
    let mut value = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = payload[24..end].as_chunks::<8>();
    words.iter().all(|word| {
        let expected = value;
        value = value.wrapping_add(0x0101_0101_0101_0101);
        u64::from_le_bytes(*word) == expected
    }) && rest.iter().all(|&byte| byte == seed as u8)
}

/// Nanoseconds of the machine's monotonic clock, the same in every process.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_found_and_damage_is_seen() {
        for length in [BYTES_MIN, 100, 4096] {
            let mut payload = vec![0; length];
            let stamp = PayloadStamp {
                producer: 3,
                number: 77,
                offered_ns: 5,
            };
            fill(&mut payload, 77);
            stamp.write(&mut payload);
            assert_eq!(PayloadStamp::read(&payload), Some(stamp));
            assert!(is_filled(&payload, 77));
            payload[30] ^= 1;
            assert!(!is_filled(&payload, 77));
            payload[length - 1] ^= 1;
            assert_eq!(PayloadStamp::read(&payload), None);
        }
        assert_eq!(PayloadStamp::read(&[0; 10]), None);
    }
}
