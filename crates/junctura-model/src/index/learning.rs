//! Moves selectors away from values that objects turn out to have.
//!
//! Which values objects bring, nobody knows when selectors arrive: `class=xx` may be asked for as often as `step=6`, and yet
//! no object has it. So of a sample of the objects the values are counted (see [`census`](super::census)) and the selectors
//! that they met in vain, or whose node they went through, are noted. What asks for something far rarer is filed again.
//! The sample is large while that helps and small when it no longer does, so that learning costs little in the long run.

use super::census::Census;
use super::tokens::{Dims, Tokens};
use super::tree::{Entry, Node};

/// One in two to the power of so many objects is in the sample, at least and at most.
const OFTEN: u32 = 3;
const SELDOM: u32 = 8;
/// The sample stays large for so many objects.
const BEGINNING: u32 = 256;
/// Of one object so many selectors are noted.
const NOTED_MAX: usize = 8;

/// What was met in vain, and how often it is worth a look.
pub(super) struct Learning<Id> {
    rarity: u32,
    noted: Vec<Entry<Id>>,
}

impl<Id> Default for Learning<Id> {
    fn default() -> Self {
        Learning {
            rarity: OFTEN,
            noted: Vec::new(),
        }
    }
}

impl<Id: Copy + Ord> Learning<Id> {
    /// Is the object of this number in the sample? The sample is spread evenly, and has no period that one of a load could meet.
    pub(super) fn is_turn(&self, object: u64) -> bool {
        object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - self.rarity) == 0
    }

    /// An object of the sample met the entry in vain, or came to its node.
    pub(super) fn note(&mut self, entry: &Entry<Id>) {
        if self.noted.len() < NOTED_MAX && !self.noted.iter().any(|known| known.is(entry)) {
            self.noted.push(entry.clone());
        }
    }

    /// Learns from an object of the sample, whose tokens these are.
    pub(super) fn learn(&mut self, tokens: &Tokens, tree: &mut Node<Id>, census: &mut Census) {
        census.see(tokens.all());
        let from = census.sampled() as usize;
        tree.survey(tokens, from, &mut |entry| self.note(entry));
        let mut moved = 0;
        for entry in self.noted.drain(..) {
            moved += u32::from(refile(&entry, tree, census));
        }
        self.rarity = if moved > 0 || census.sampled() < BEGINNING {
            OFTEN.max(self.rarity - 1)
        } else {
            SELDOM.min(self.rarity + 1)
        };
    }
}

/// Files an entry again if it stands where too many objects come.
fn refile<Id: Copy + Ord>(noted: &Entry<Id>, tree: &mut Node<Id>, census: &Census) -> bool {
    let entry = noted.anew();
    let ranks = entry.keys().ranks(census);
    let found = tree.find(&entry, &ranks, Dims::default());
    let is_misfiled = found.is_some_and(|found| ranks.is_misfiled(&found));
    if is_misfiled && tree.remove(&entry, &ranks, Dims::default()) {
        tree.insert(&entry, &ranks, Dims::default(), census);
    }
    is_misfiled
}
