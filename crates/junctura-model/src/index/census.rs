//! How many selectors ask for each value, and how often objects bring it.
//!
//! Only values that are asked for are counted. Of the objects a sample is, and what was seen long ago weighs less: half
//! after each [`EPOCH`] of the sample; it never weighs nothing.

use super::split::SplitTable;
use super::tokens::Token;

/// After so many objects of the sample, the weight of earlier observations is half.
const EPOCH: u32 = 256;

/// The values that are asked for.
#[derive(Default)]
pub(super) struct ValueCensus {
    values: SplitTable<CensusValue>,
    /// Objects that were looked at.
    sampled: u32,
}

struct CensusValue {
    token: Token,
    asked: u32,
    /// How often it was seen, as it weighed in that epoch.
    seen: u16,
    epoch: u16,
}

impl CensusValue {
    fn seen(&self, now: u16) -> u16 {
        let age = u32::from(now.wrapping_sub(self.epoch));
        self.seen.checked_shr(age).unwrap_or(0).max(self.seen.min(1))
    }
}

impl ValueCensus {
    /// A selector asks for these.
    pub(super) fn add(&mut self, tokens: &[Token]) {
        let epoch = self.epoch();
        for &token in tokens {
            if let Some(value) = self.values.find_mut(token, |value| value.token == token) {
                value.asked += 1;
            } else {
                let value = CensusValue {
                    token,
                    asked: 1,
                    seen: 0,
                    epoch,
                };
                self.values.insert_unique(token, value, |value| value.token);
            }
        }
    }

    /// It asks no more.
    pub(super) fn drop(&mut self, tokens: &[Token]) {
        for &token in tokens {
            let is_it = |value: &CensusValue| value.token == token;
            if let Some(value) = self.values.find_mut(token, is_it) {
                value.asked -= 1;
                if value.asked == 0 {
                    self.values.remove(token, is_it, |value| value.token);
                }
            }
        }
    }

    /// An object of the sample has these.
    pub(super) fn see(&mut self, tokens: impl Iterator<Item = Token>) {
        self.sampled = self.sampled.wrapping_add(1);
        let now = self.epoch();
        for token in tokens {
            if let Some(value) = self.values.find_mut(token, |value| value.token == token) {
                value.seen = value.seen(now) + 1;
                value.epoch = now;
            }
        }
    }

    /// How often objects brought one of these, by weight: up to twice an epoch for a value that all have.
    pub(super) fn seen(&self, tokens: &[Token]) -> u32 {
        let now = self.epoch();
        self.counted(tokens).map(|value| u32::from(value.seen(now))).sum()
    }

    /// Returns how many other selectors use these values.
    pub(super) fn others(&self, tokens: &[Token]) -> u64 {
        self.counted(tokens).map(|value| u64::from(value.asked - 1)).sum()
    }

    /// Returns the number of objects observed.
    pub(super) fn sampled(&self) -> u32 {
        self.sampled
    }

    fn counted(&self, tokens: &[Token]) -> impl Iterator<Item = &CensusValue> {
        tokens
            .iter()
            .filter_map(|&token| self.values.find(token, |value| value.token == token))
    }

    fn epoch(&self) -> u16 {
        (self.sampled / EPOCH) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_long_ago_weighs_little_but_something() {
        let mut census = ValueCensus::default();
        census.add(&[1, 2, 3]);
        (0..EPOCH).for_each(|_| census.see([1].into_iter()));
        assert_eq!(census.seen(&[1]), EPOCH / 2);
        (0..20 * EPOCH).for_each(|_| census.see([2].into_iter()));
        assert_eq!((census.seen(&[1]), census.seen(&[3])), (1, 0));
        assert!(census.seen(&[2]) >= EPOCH - 1);
        assert_eq!(census.seen(&[1, 2]), 1 + census.seen(&[2]));
    }

    #[test]
    fn only_what_is_asked_for_is_counted() {
        let mut census = ValueCensus::default();
        census.add(&[1]);
        census.add(&[1]);
        census.see([1, 2].into_iter());
        assert_eq!((census.others(&[1]), census.others(&[2]), census.seen(&[2])), (1, 0, 0));
        census.drop(&[1]);
        census.drop(&[1]);
        assert_eq!(census.seen(&[1]), 0);
    }
}
