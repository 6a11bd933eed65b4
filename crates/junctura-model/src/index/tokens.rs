//! Values as 64-bit tokens, so that looking one up costs a hash computed once an object, and no comparison of texts.
//!
//! Two texts with one token cost a comparison more, never an answer: whatever tokens find is checked by the selector itself.
//! An attribute is a *dimension*: its id, or for undeclared ones (of which there is no end) one of 192 by its name.

use std::cell::RefCell;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::record::{RecordRef, text_of};
use crate::schema::AttrId;
use crate::selector::expr::raw_items;
use crate::value::Type;

/// A dimension.
pub(super) type Dim = u8;
/// A value of a dimension.
pub(super) type Token = u64;

const DECLARED_MAX: u8 = 64;
const DIMS: usize = 256;
/// Bits of the masks in which entries keep what they accept.
pub(super) const LANES: usize = 16;
/// This bit means that the object has no value in the dimension.
const ABSENT: u16 = 1 << 15;
/// A mask that accepts everything.
pub(super) const ANY: u16 = u16::MAX;

/// A small set of dimensions.
#[derive(Clone, Copy, Default)]
pub(super) struct DimensionSet([u64; 4]);

impl DimensionSet {
    pub(super) fn contains(self, dim: Dim) -> bool {
        self.0[usize::from(dim >> 6)] >> (dim & 63) & 1 == 1
    }

    pub(super) fn with(mut self, dim: Dim) -> DimensionSet {
        self.0[usize::from(dim >> 6)] |= 1 << (dim & 63);
        self
    }

    pub(super) fn without(mut self, dim: Dim) -> DimensionSet {
        self.0[usize::from(dim >> 6)] &= !(1 << (dim & 63));
        self
    }

    pub(super) fn and(mut self, other: DimensionSet) -> DimensionSet {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        self
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Dim> {
        self.0.into_iter().zip([0, 64, 128, 192]).flat_map(|(mut word, base)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                word &= word.wrapping_sub(1);
                (bit < 64).then(|| base + bit as Dim)
            })
        })
    }
}

/// The dimension of an attribute and the seed of its tokens.
pub(super) fn dimension(id: AttrId, name: &str) -> (Dim, u64) {
    if id != AttrId::OPEN {
        return (id.0, u64::from(id.0));
    }
    let seed = xxh3_64_with_seed(name.as_bytes(), u64::from(AttrId::OPEN.0));
    (
        DECLARED_MAX + (seed % (DIMS as u64 - u64::from(DECLARED_MAX))) as u8,
        seed,
    )
}

/// Returns whether several attributes may have this dimension.
pub(super) fn is_shared(dim: Dim) -> bool {
    dim >= DECLARED_MAX
}

pub(super) fn token(seed: u64, text: &str) -> Token {
    token_of(seed, text.as_bytes())
}

fn token_of(seed: u64, text: &[u8]) -> Token {
    xxh3_64_with_seed(text, seed)
}

/// The bit for a token in the mask of its dimension.
pub(super) fn lane_bit(token: Token) -> u16 {
    // The upper half: tables of children take the lower bits.
    1 << ((token >> 32) % 15)
}

/// The dimensions that any selector uses, and the positions of their masks.
pub(super) struct AskedDimensions {
    counts: Vec<u32>,
    /// The greatest ID of an attribute whose dimension is asked about; that of undeclared ones, where one of theirs is.
    last: Option<AttrId>,
    lists: DimensionSet,
    lanes: [u8; DIMS],
    lanes_given: u8,
}

const NO_LANE: u8 = u8::MAX;

impl Default for AskedDimensions {
    fn default() -> Self {
        AskedDimensions {
            counts: vec![0; DIMS],
            last: None,
            lists: DimensionSet::default(),
            lanes: [NO_LANE; DIMS],
            lanes_given: 0,
        }
    }
}

impl AskedDimensions {
    /// A selector asks about this dimension, whose values may be lists.
    pub(super) fn add(&mut self, dim: Dim, list: bool) {
        self.counts[usize::from(dim)] += 1;
        if self.counts[usize::from(dim)] == 1 {
            self.find_last();
        }
        if list {
            self.lists = self.lists.with(dim);
        }
        let lane = &mut self.lanes[usize::from(dim)];
        if *lane == NO_LANE {
            // The first dimensions have a mask each; later ones share, and reject less.
            *lane = self.lanes_given % LANES as u8;
            self.lanes_given = self.lanes_given.wrapping_add(1);
        }
    }

    /// It asks no more. The place of its mask stays.
    pub(super) fn drop(&mut self, dim: Dim) {
        self.counts[usize::from(dim)] -= 1;
        if self.counts[usize::from(dim)] == 0 {
            self.find_last();
        }
    }

    fn find_last(&mut self) {
        let last = self.counts.iter().rposition(|&count| count > 0);
        let id_of = |dim: usize| {
            if is_shared(dim as Dim) {
                AttrId::OPEN
            } else {
                AttrId(dim as u8)
            }
        };
        self.last = last.map(id_of);
    }

    pub(super) fn lane(&self, dim: Dim) -> usize {
        usize::from(self.lanes[usize::from(dim)]) % LANES
    }
}

/// The tokens of one object; filled again for each.
pub(super) struct ObjectTokens {
    /// By dimension: the place of its first token in `list`, plus one.
    first: [u16; DIMS],
    list: Vec<(Token, Dim, u16)>,
    /// By lane: the bits of its tokens.
    pub(super) lanes: [u16; LANES],
    /// Those it has.
    pub(super) dims: DimensionSet,
    /// The numbers of its values, as far as they were asked for.
    numbers: RefCell<Vec<(AttrId, Option<i128>)>>,
}

impl Default for ObjectTokens {
    fn default() -> Self {
        ObjectTokens {
            first: [0; DIMS],
            list: Vec::new(),
            lanes: [ABSENT; LANES],
            dims: DimensionSet::default(),
            numbers: RefCell::default(),
        }
    }
}

impl ObjectTokens {
    /// Takes the values of a record in the dimensions that are asked about.
    pub(super) fn fill(&mut self, record: RecordRef<'_>, asked: &AskedDimensions) {
        for &(_, dim, _) in &self.list {
            self.first[usize::from(dim)] = 0;
        }
        self.list.clear();
        self.numbers.get_mut().clear();
        self.lanes = [ABSENT; LANES];
        self.dims = DimensionSet::default();
        let Some(last) = asked.last else { return };
        // Entries are in the order of their IDs. Their bytes are not decoded: most attributes are asked about by no selector.
        for entry in record.entries().take_while(|entry| entry.id <= last) {
            let (dim, seed) = dimension(entry.id, text_of(entry.name));
            if asked.counts[usize::from(dim)] == 0 {
                continue;
            }
            if asked.lists.contains(dim) {
                for item in raw_items(text_of(entry.text)) {
                    self.push(dim, token(seed, item), asked);
                }
            } else {
                self.push(dim, token_of(seed, entry.text), asked);
            }
        }
    }

    fn push(&mut self, dim: Dim, token: Token, asked: &AskedDimensions) {
        let before = self.first[usize::from(dim)];
        self.list.push((token, dim, before));
        // A list's text is at most 16 KiB, so there are fewer than 65,536.
        self.first[usize::from(dim)] = self.list.len() as u16;
        self.dims = self.dims.with(dim);
        let lane = &mut self.lanes[asked.lane(dim)];
        *lane = (*lane & !ABSENT) | lane_bit(token);
    }

    /// The number of the record's value in that attribute, by which it is ordered. The record is the one it was filled with.
    pub(super) fn number(&self, record: RecordRef<'_>, id: AttrId, scalar: Type) -> Option<i128> {
        let mut numbers = self.numbers.borrow_mut();
        if let Some((_, number)) = numbers.iter().find(|(known, _)| *known == id) {
            return *number;
        }
        let number = record.get(id).and_then(|text| scalar.order(text));
        numbers.push((id, number));
        number
    }

    /// The tokens of all dimensions.
    pub(super) fn all(&self) -> impl Iterator<Item = Token> {
        self.list.iter().map(|&(token, ..)| token)
    }

    /// The tokens of a dimension.
    pub(super) fn of(&self, dim: Dim) -> impl Iterator<Item = Token> {
        let mut next = self.first[usize::from(dim)];
        std::iter::from_fn(move || {
            let (token, _, after) = *self.list.get(usize::from(next.checked_sub(1)?))?;
            next = after;
            Some(token)
        })
    }
}
