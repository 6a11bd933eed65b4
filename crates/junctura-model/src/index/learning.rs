//! Moves selectors away from frequent values.
//!
//! The frequency of values in objects is unknown when selectors arrive: selectors may use `class=xx` as often as
//! `step=6`, although no object has it. Therefore the values of a sample of the objects are counted (see
//! [`census`](super::census)), and selectors are drawn from the candidates of these objects: a selector with a far
//! rarer value is filed again. The sample is large while this helps and small otherwise, so that the long-term cost is
//! low.

use super::census::ValueCensus;
use super::tokens::{Dim, ObjectTokens};
use super::tree::{BranchEntry, ValueNode};

/// One of two to the power of so many objects is in the sample, at first and in the end.
const OFTEN: u32 = 2;
const SELDOM: u32 = 8;
/// The sample stays large for so many objects.
const BEGINNING: u32 = 256;
/// Number of entries that are drawn from the candidates of such an object.
const DRAWS: u32 = 3;
/// The golden ratio of 2^64: its multiples are spread evenly.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// How often objects are worth a look.
pub(super) struct HitRate<Id> {
    rarity: u32,
    draws: u64,
    drawn: Vec<(Dim, BranchEntry<Id>)>,
}

impl<Id> Default for HitRate<Id> {
    fn default() -> Self {
        HitRate {
            rarity: OFTEN,
            draws: 0,
            drawn: Vec::new(),
        }
    }
}

impl<Id: Copy + Ord> HitRate<Id> {
    /// Returns whether the object with this number is in the sample. The sample is spread evenly, and has no period
    /// that could coincide with one of the load.
    pub(super) fn is_turn(&self, object: u64) -> bool {
        object.wrapping_mul(SPREAD) >> (u64::BITS - self.rarity) == 0
    }

    /// Learns from an object of the sample, whose tokens these are.
    pub(super) fn learn(&mut self, tokens: &ObjectTokens, tree: &mut ValueNode<Id>, census: &mut ValueCensus) {
        census.see(tokens.all());
        for _ in 0..DRAWS {
            self.draws = self.draws.wrapping_add(SPREAD);
            tree.survey(tokens, (self.draws >> 16) as usize, &mut self.drawn);
        }
        let drawn = self.drawn.len();
        let mut moved = 0;
        for (dim, entry) in self.drawn.drain(..) {
            let ranks = entry.keys().ranks(census);
            moved += usize::from(ranks.is_far_from_rarest(dim) && tree.refile(&entry, dim, &ranks, census));
        }
        // A few always move where the load changes; that alone is not worth the search.
        self.rarity = if moved * 4 > drawn || census.sampled() < BEGINNING {
            OFTEN.max(self.rarity - 1)
        } else {
            SELDOM.min(self.rarity + 1)
        };
    }
}
