//! Moves selectors away from values that objects turn out to have.
//!
//! Which values objects bring, nobody knows when selectors arrive: `class=xx` may be asked for as often as `step=6`, and yet
//! no object has it. So of a sample of the objects the values are counted (see [`census`](super::census)) and the selectors
//! that they met in vain are noted. One of those that asks for something far rarer than all it is filed under is filed again.
//! The sample is large while that helps and small when it no longer does, so that learning costs little in the long run.

use super::census::Census;
use super::tokens::{Dims, Tokens};
use super::tree::{Entry, Node};

/// One in two to the power of so many objects is in the sample, at least and at most.
const OFTEN: u32 = 3;
const SELDOM: u32 = 8;
/// Of one object so many selectors are noted.
const NOTED_MAX: usize = 16;
/// So often a value was seen before anything moves because of it.
const SURE: u32 = 8;

/// What was met in vain, and how often it is worth a look.
pub(super) struct Learning<Id> {
    rarity: u32,
    vain: Vec<Entry<Id>>,
}

impl<Id> Default for Learning<Id> {
    fn default() -> Self {
        Learning {
            rarity: OFTEN,
            vain: Vec::new(),
        }
    }
}

impl<Id: Copy + Ord> Learning<Id> {
    /// Is the object of this number in the sample? They are spread evenly, but no period of a load meets a period of theirs.
    pub(super) fn is_turn(&self, object: u64) -> bool {
        object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - self.rarity) == 0
    }

    /// An object of the sample met the entry in vain.
    pub(super) fn note(&mut self, entry: &Entry<Id>) {
        if self.vain.len() < NOTED_MAX && !self.vain.iter().any(|known| known.is(entry)) {
            self.vain.push(entry.clone());
        }
    }

    /// Learns from an object of the sample, whose tokens these are.
    pub(super) fn learn(&mut self, tokens: &Tokens, tree: &mut Node<Id>, census: &mut Census) {
        census.see(tokens.all());
        let mut moved = false;
        for entry in self.vain.drain(..) {
            moved |= refile(&entry, tree, census);
        }
        self.rarity = if moved {
            OFTEN.max(self.rarity - 1)
        } else {
            SELDOM.min(self.rarity + 1)
        };
    }
}

/// Files an entry again if it would be met less than half as often.
fn refile<Id: Copy + Ord>(met: &Entry<Id>, tree: &mut Node<Id>, census: &Census) -> bool {
    let ranks = met.keys().ranks(census);
    let entry = met.anew();
    let Some(path) = tree.find(&entry, &ranks, Dims::default()) else {
        return false;
    };
    let is_better = ranks.is_far_rarer_off(path, SURE);
    if is_better && tree.remove(&entry, &ranks, Dims::default()) {
        tree.insert(&entry, &ranks, Dims::default(), census);
    }
    is_better
}
