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
    /// By dimension: where its tokens end.
    ends: Box<[(Dim, u32)]>,
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
            ends.push((condition.dim, tokens.len() as u32));
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
        self.ends.iter().map(move |&(dim, end)| {
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
        self.ends.iter().map(|&(dim, _)| dim)
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

    pub(super) fn has_more(&self, path: Dims, copies: u16) -> bool {
        self.open(path, copies).next().is_some()
    }

    /// The dimension with the rarest values, if there is one left.
    pub(super) fn rarest(&self, path: Dims, copies: u16, counts: &Counts) -> Option<Dim> {
        self.open(path, copies)
            .min_by_key(|(_, tokens)| counts.of(tokens))
            .map(|(dim, _)| dim)
    }

    /// Those dimensions, rarest first.
    pub(super) fn by_rarity(&self, path: Dims, copies: u16, counts: &Counts) -> Vec<(u64, Dim)> {
        let mut dims: Vec<_> = self
            .open(path, copies)
            .map(|(dim, tokens)| (counts.of(tokens), dim))
            .collect();
        dims.sort_unstable();
        dims
    }

    /// A dimension in which it is much rarer than in the one where it stands under a single value.
    pub(super) fn rarer(&self, than: Dim, path: Dims, copies: u16, counts: &Counts) -> Option<Dim> {
        let [token] = self.tokens(than) else { return None };
        let here = counts.of(&[*token]);
        let (least, dim) = self
            .open(path.with(than), copies)
            .map(|(dim, tokens)| (counts.of(tokens), dim))
            .min()?;
        (least * 2 < here).then_some(dim)
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

    fn of(&self, tokens: &[Token]) -> u64 {
        let count = |token: Token| {
            self.0
                .find(token, |(known, _)| *known == token)
                .map_or(0, |(_, count)| *count)
        };
        tokens.iter().map(|&token| u64::from(count(token))).sum()
    }
}
