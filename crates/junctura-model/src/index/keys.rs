//! What a branch of a selector can be filed under, packed; and how many selectors ask for each value.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

use super::filing::{Branch, Lone};
use super::tokens::{ANY, Asked, Dim, Dims, LANES, Token, lane_bit};

/// Under how many values an entry with several lists may stand. One list may always, whatever its length.
const COPIES_MAX: usize = 16;

/// The conditions of a branch.
pub(super) struct Keys {
    masks: [u16; LANES],
    /// By dimension: the lane of its mask, and where its tokens end.
    ends: Box<[(Dim, u8, u32)]>,
    tokens: Box<[Token]>,
    /// Set where it is filed by order or presence instead.
    pub(super) lone: Option<Lone>,
}

impl Keys {
    pub(super) fn new(branch: &Branch, asked: &Asked) -> Keys {
        let mut masks = [ANY; LANES];
        let (mut ends, mut tokens) = (Vec::with_capacity(branch.conditions.len()), Vec::new());
        for condition in &branch.conditions {
            let mask = &mut masks[asked.lane(condition.dim)];
            // Where two dimensions share a lane, the first is enough: a mask may accept too much.
            if *mask == ANY {
                *mask = condition.tokens.iter().fold(0, |mask, &token| mask | lane_bit(token));
            }
            tokens.extend_from_slice(&condition.tokens);
            ends.push((condition.dim, asked.lane(condition.dim) as u8, tokens.len() as u32));
        }
        let lone = branch.lone.clone().filter(|_| branch.conditions.is_empty());
        Keys {
            masks,
            ends: ends.into(),
            tokens: tokens.into(),
            lone,
        }
    }

    /// May an object with these bits be matched?
    pub(super) fn accept(&self, lanes: &[u16; LANES]) -> bool {
        let mut rejected = false;
        for (mask, lane) in self.masks.iter().zip(lanes) {
            rejected |= mask & lane == 0;
        }
        !rejected
    }

    fn conditions(&self) -> impl Iterator<Item = (Dim, &[Token])> {
        let mut start = 0;
        self.ends.iter().map(move |&(dim, _, end)| {
            let tokens = &self.tokens[start..end as usize];
            start = end as usize;
            (dim, tokens)
        })
    }

    /// The values in that dimension.
    pub(super) fn tokens(&self, dim: Dim) -> &[Token] {
        self.conditions()
            .find(|(known, _)| *known == dim)
            .map_or(&[], |(_, tokens)| tokens)
    }

    pub(super) fn dims(&self) -> impl Iterator<Item = Dim> {
        self.ends.iter().map(|&(dim, ..)| dim)
    }

    /// All values, over all dimensions.
    pub(super) fn all_tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The dimensions that an entry may still be filed under.
    fn open(&self, path: Dims, copies: u16) -> impl Iterator<Item = (Dim, &[Token])> {
        let copies = usize::from(copies);
        let allowed = move |len: usize| copies == 1 || len * copies <= COPIES_MAX;
        self.conditions()
            .filter(move |(dim, tokens)| !path.contains(*dim) && allowed(tokens.len()))
    }

    /// Is there a dimension left to file under?
    pub(super) fn has_more(&self, path: Dims, copies: u16) -> bool {
        self.open(path, copies).next().is_some()
    }

    /// All dimensions, those whose values the fewest others ask for first.
    pub(super) fn ranks(&self, counts: &Counts) -> Ranks {
        let mut ranks: Vec<_> = self
            .conditions()
            .map(|(dim, tokens)| (counts.others(tokens), tokens.len() as u32, dim))
            .collect();
        ranks.sort_unstable();
        Ranks(ranks)
    }

    /// The masks of the rarest dimensions that are not on the path.
    pub(super) fn hints(&self, ranks: &Ranks, path: Dims) -> Hints {
        let mut hints = Hints::NONE;
        let dims = ranks.0.iter().map(|&(.., dim)| dim).filter(|&dim| !path.contains(dim));
        for (at, dim) in dims.take(HINTS).enumerate() {
            if let Some(&(_, lane, _)) = self.ends.iter().find(|(known, ..)| *known == dim) {
                hints.lanes[at] = lane;
                hints.masks[at] = self.masks[usize::from(lane)];
            }
        }
        hints
    }
}

/// The dimensions of an entry by how many others ask for its values there, few first.
pub(super) struct Ranks(Vec<(u64, u32, Dim)>);

impl Ranks {
    /// Those that an entry with so many copies may be filed under below the path.
    pub(super) fn open(&self, path: Dims, copies: u16) -> impl Iterator<Item = Dim> {
        let allowed = move |len: u32| copies == 1 || len as usize * usize::from(copies) <= COPIES_MAX;
        self.0
            .iter()
            .filter(move |&&(_, len, dim)| !path.contains(dim) && allowed(len))
            .map(|&(.., dim)| dim)
    }

    /// A dimension that is rarer than one where it stands under a single value.
    pub(super) fn rarer(&self, than: Dim, path: Dims, copies: u16) -> Option<Dim> {
        let rank = |dim: Dim| self.0.iter().find(|(.., known)| *known == dim);
        let &(here, 1, _) = rank(than)? else { return None };
        let best = self.open(path.with(than), copies).next()?;
        let &(there, ..) = rank(best)?;
        // Not for a trifle, lest entries move to and fro.
        (there + there / 4 < here).then_some(best)
    }
}

/// How many masks stand beside an entry.
const HINTS: usize = 3;

/// A few of the masks, to turn most objects away without a look at the others.
#[derive(Clone, Copy)]
pub(super) struct Hints {
    lanes: [u8; HINTS],
    masks: [u16; HINTS],
}

impl Hints {
    /// Turns nobody away.
    pub(super) const NONE: Hints = Hints {
        lanes: [0; HINTS],
        masks: [ANY; HINTS],
    };

    pub(super) fn accept(&self, lanes: &[u16; LANES]) -> bool {
        let mut rejected = false;
        for (mask, lane) in self.masks.iter().zip(self.lanes) {
            rejected |= mask & lanes[usize::from(lane) % LANES] == 0;
        }
        !rejected
    }
}

/// How many selectors ask for a value.
#[derive(Default)]
pub(super) struct Counts(HashTable<(Token, u32)>);

impl Counts {
    pub(super) fn add(&mut self, tokens: &[Token]) {
        for &token in tokens {
            match self.0.entry(token, |(known, _)| *known == token, |(known, _)| *known) {
                Place::Occupied(mut place) => place.get_mut().1 += 1,
                Place::Vacant(place) => {
                    place.insert((token, 1));
                }
            }
        }
    }

    pub(super) fn drop(&mut self, tokens: &[Token]) {
        for &token in tokens {
            if let Ok(mut place) = self.0.find_entry(token, |(known, _)| *known == token) {
                place.get_mut().1 -= 1;
                if place.get().1 == 0 {
                    place.remove();
                }
            }
        }
        if self.0.len() * 8 < self.0.capacity() {
            self.0.shrink_to(self.0.len() * 2, |(known, _)| *known);
        }
    }

    /// How many others ask for these values, which one asks for.
    fn others(&self, tokens: &[Token]) -> u64 {
        let count = |token: Token| {
            self.0
                .find(token, |(known, _)| *known == token)
                .map_or(1, |(_, count)| *count)
        };
        tokens.iter().map(|&token| u64::from(count(token) - 1)).sum()
    }
}
