//! When a buffer gives memory back.
//!
//! A burst makes a buffer large. Giving memory back at once would make a steady load of bursts pay for it each time; never
//! giving it back would keep the largest burst of every connection for ever. So a buffer looks back over its last
//! [`TURNS`] turns (a turn: it became empty) and keeps twice what it needed in them.

/// Turns that are looked back over.
const TURNS: u32 = 64;

/// The high-water mark of a buffer.
#[derive(Debug, Default)]
pub(crate) struct HighWater {
    high: usize,
    turns: u32,
}

impl HighWater {
    /// The buffer holds so many bytes now.
    pub(crate) fn rise(&mut self, bytes: usize) {
        self.high = self.high.max(bytes);
    }

    /// The buffer became empty: how large it should be from here on, if that is smaller than `capacity`.
    pub(crate) fn ebb(&mut self, capacity: usize, least: usize) -> Option<usize> {
        self.turns += 1;
        if self.turns < TURNS {
            return None;
        }
        let keep = (self.high * 2).max(least);
        *self = Self::default();
        (keep < capacity).then_some(keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_back_after_quiet_turns_and_not_between_bursts() {
        let mut tide = HighWater::default();
        tide.rise(1000);
        let burst: Vec<_> = (0..TURNS).filter_map(|_| tide.ebb(1024, 64)).collect();
        assert_eq!(burst, []);
        tide.rise(10);
        let quiet: Vec<_> = (0..TURNS).filter_map(|_| tide.ebb(1024, 64)).collect();
        assert_eq!(quiet, [64]);
    }
}
