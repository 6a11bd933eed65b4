//! The packed conditions of a branch, and the choice of the rarest one.

use std::cmp::Ordering;

use super::census::ValueCensus;
use super::filing::{FilingBranch, LoneCondition};
use super::tokens::{ANY, AskedDimensions, Dim, DimensionSet, LANES, Token, lane_bit};

/// Maximum number of values under which an entry with several lists may be filed. A single list may have any length.
const COPIES_MAX: usize = 16;

/// The conditions of a branch.
pub(super) struct BranchKeys {
    masks: [u16; LANES],
    /// By dimension: the lane of its mask, and where its tokens end.
    ends: Box<[(Dim, u8, u32)]>,
    tokens: Box<[Token]>,
    /// Set where it is filed by order or presence instead.
    pub(super) lone: Option<LoneCondition>,
}

impl BranchKeys {
    pub(super) fn new(branch: &FilingBranch, asked: &AskedDimensions) -> BranchKeys {
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
        BranchKeys {
            masks,
            ends: ends.into(),
            tokens: tokens.into(),
            lone,
        }
    }

    /// Returns whether an object with these bits may match.
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
    fn open(&self, path: DimensionSet, copies: u16) -> impl Iterator<Item = (Dim, &[Token])> {
        let copies = usize::from(copies);
        let allowed = move |len: usize| copies == 1 || len * copies <= COPIES_MAX;
        self.conditions()
            .filter(move |(dim, tokens)| !path.contains(*dim) && allowed(tokens.len()))
    }

    /// Returns whether a dimension is left for filing.
    pub(super) fn has_more(&self, path: DimensionSet, copies: u16) -> bool {
        self.open(path, copies).next().is_some()
    }

    /// All dimensions, the rarest first.
    pub(super) fn ranks(&self, census: &ValueCensus) -> DimensionRanks {
        let mut ranks: Vec<_> = self
            .conditions()
            .map(|(dim, tokens)| ValueRank::new(dim, tokens, census))
            .collect();
        ranks.sort_unstable_by_key(|rank| (rank.class(), rank.others, rank.len, rank.dim));
        DimensionRanks(ranks)
    }

    /// The masks of the rarest dimensions that are not on the path.
    pub(super) fn hints(&self, ranks: &DimensionRanks, path: DimensionSet) -> MaskHints {
        let mut hints = MaskHints::NONE;
        let dims = ranks.0.iter().map(|rank| rank.dim).filter(|&dim| !path.contains(dim));
        for (at, dim) in dims.take(HINTS).enumerate() {
            if let Some(&(_, lane, _)) = self.ends.iter().find(|(known, ..)| *known == dim) {
                hints.lanes[at] = lane;
                hints.masks[at] = self.masks[usize::from(lane)];
            }
        }
        hints
    }
}

/// Number of observations of a value before entries are moved.
const SURE: u32 = 8;

/// How rare the values of one dimension are that an entry asks for.
struct ValueRank {
    dim: Dim,
    /// How often objects have one of these values.
    seen: u32,
    /// How many other selectors use these values.
    others: u64,
    len: usize,
}

impl ValueRank {
    fn new(dim: Dim, tokens: &[Token], census: &ValueCensus) -> ValueRank {
        ValueRank {
            dim,
            seen: census.seen(tokens),
            others: census.others(tokens),
            len: tokens.len(),
        }
    }

    /// Returns the order of magnitude of the frequency, which is as precise as a sample permits.
    fn class(&self) -> u32 {
        u32::BITS - self.seen.leading_zeros()
    }
}

/// The dimensions of an entry, first those whose values the fewest objects bring, then those that the fewest others ask for.
pub(super) struct DimensionRanks(Vec<ValueRank>);

impl DimensionRanks {
    fn open_ranks(&self, path: DimensionSet, copies: u16) -> impl Iterator<Item = &ValueRank> {
        let allowed = move |len: usize| copies == 1 || len * usize::from(copies) <= COPIES_MAX;
        self.0
            .iter()
            .filter(move |rank| !path.contains(rank.dim) && allowed(rank.len))
    }

    /// Those that an entry with so many copies may be filed under below the path.
    pub(super) fn open(&self, path: DimensionSet, copies: u16) -> impl Iterator<Item = Dim> {
        self.open_ranks(path, copies).map(|rank| rank.dim)
    }

    /// Returns a dimension that is rarer than `than` and in which the entry has a single value.
    pub(super) fn rarer(&self, than: Dim, path: DimensionSet, copies: u16) -> Option<Dim> {
        let here = self.0.iter().find(|rank| rank.dim == than)?;
        let there = self.open_ranks(path.with(than), copies).next()?;
        // Not for a trifle, lest entries move to and fro.
        let is_rarer = match there.class().cmp(&here.class()) {
            Ordering::Less => true,
            Ordering::Equal => there.others + there.others / 4 < here.others,
            Ordering::Greater => false,
        };
        (is_rarer && here.len == 1).then_some(there.dim)
    }

    /// Do objects bring the rarest values far less often than those of this dimension? Only where they brought these often
    /// enough is that sure.
    pub(super) fn is_far_from_rarest(&self, dim: Dim) -> bool {
        let here = self.0.iter().find(|rank| rank.dim == dim).map(|rank| rank.seen);
        let best = self.0.first().map(|rank| rank.seen);
        best.zip(here).is_some_and(|(best, here)| best * 2 + SURE < here)
    }
}

/// Number of masks beside an entry.
const HINTS: usize = 3;

/// A few of the masks, to turn most objects away without a look at the others.
#[derive(Clone, Copy)]
pub(super) struct MaskHints {
    lanes: [u8; HINTS],
    masks: [u16; HINTS],
}

impl MaskHints {
    /// Excludes no object.
    pub(super) const NONE: MaskHints = MaskHints {
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
