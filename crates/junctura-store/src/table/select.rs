//! Which rows of a table a selector asks for.

use junctura_model::AttrId;
use junctura_model::selector::{Asked, Question};

use super::Table;
use super::column::Numbers;

/// Some rows of a table, a bit for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    words: Vec<u64>,
    len: usize,
}

impl Rows {
    pub(super) fn all(len: usize) -> Self {
        let mut rows = Self {
            words: vec![u64::MAX; len.div_ceil(64)],
            len,
        };
        rows.trim();
        rows
    }

    pub(super) fn none(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(64)],
            len,
        }
    }

    /// Bits behind the last row are none.
    fn trim(&mut self) {
        if let Some(last) = self.words.last_mut()
            && !self.len.is_multiple_of(64)
        {
            *last &= (1 << (self.len % 64)) - 1;
        }
    }

    /// The rows, first to last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)))
                .take_while(|&word| word != 0)
                .map(move |word| 64 * at as u32 + word.trailing_zeros())
        })
    }

    /// Whether a row is one of them.
    pub(crate) fn contains(&self, row: u32) -> bool {
        self.words[row as usize / 64] >> (row % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, row: u32) {
        self.words[row as usize / 64] |= 1 << (row % 64);
    }

    /// Leaves those that are not among others of the same table.
    pub(super) fn leave_out(&mut self, others: &Self) {
        self.join(others, |word, others| word & !others);
    }

    fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    fn join(&mut self, other: &Self, how: impl Fn(u64, u64) -> u64) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word = how(*word, *other);
        }
    }

    fn negate(&mut self) {
        for word in &mut self.words {
            *word = !*word;
        }
        self.trim();
    }
}

/// How a test of an attribute that is not considered counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beyond {
    Considered,
    Passes,
    Fails,
}

impl Beyond {
    fn not(self) -> Self {
        match self {
            Self::Considered => self,
            Self::Passes => Self::Fails,
            Self::Fails => Self::Passes,
        }
    }
}

impl Table {
    /// The rows that it asks for.
    pub(crate) fn select(&self, question: &Question<'_>) -> Rows {
        self.answer(question, usize::MAX, Beyond::Considered)
    }

    /// The rows that it may ask for, as far as the attributes of the key say it (ids below `key_len`): all rows with the key of
    /// one that it asks for are among them.
    pub(crate) fn select_keys(&self, question: &Question<'_>, key_len: usize) -> Rows {
        self.answer(question, key_len, Beyond::Passes)
    }

    fn answer(&self, question: &Question<'_>, end: usize, beyond: Beyond) -> Rows {
        match question {
            Question::Everything => Rows::all(self.len()),
            Question::All(parts) => {
                let mut rows = Rows::all(self.len());
                for part in parts {
                    if rows.is_empty() {
                        break;
                    }
                    rows.join(&self.answer(part, end, beyond), |a, b| a & b);
                }
                rows
            }
            Question::Any(parts) => {
                let mut rows = Rows::none(self.len());
                for part in parts {
                    rows.join(&self.answer(part, end, beyond), |a, b| a | b);
                }
                rows
            }
            Question::Not(inner) => {
                let mut rows = self.answer(inner, end, beyond.not());
                rows.negate();
                rows
            }
            Question::Test(asked) if beyond == Beyond::Considered || asked.attribute().index() < end => {
                self.ask(*asked)
            }
            Question::Test(_) if beyond == Beyond::Passes => Rows::all(self.len()),
            Question::Test(_) => Rows::none(self.len()),
        }
    }

    /// Asks each value once.
    fn ask(&self, asked: Asked<'_>) -> Rows {
        let Some(column) = self.column(asked.attribute(), asked.name()) else {
            return Rows::none(self.len());
        };
        let mut passes = vec![false; column.values_len() + 1];
        for (passes, text) in passes[1..].iter_mut().zip(column.values()) {
            *passes = asked.holds(text);
        }
        let mut rows = Rows::none(self.len());
        if passes.contains(&true) {
            match column.numbers() {
                Numbers::One(all) => mark(&mut rows.words, all, |&number| passes[usize::from(number)]),
                Numbers::Two(all) => mark(&mut rows.words, all, |&number| passes[usize::from(number)]),
                Numbers::Four(all) => mark(&mut rows.words, all, |&number| passes[number as usize]),
            }
        }
        rows
    }

    /// The values that some rows have, by column: which of them are used.
    pub(crate) fn used_values(&self, rows: &[u32], id: AttrId, name: &str) -> Vec<&str> {
        let Some(column) = self.column(id, name) else {
            return Vec::new();
        };
        let mut used = vec![false; column.values_len() + 1];
        for &row in rows {
            used[column.number(row) as usize] = true;
        }
        let used = column.values().zip(&used[1..]).filter(|(_, used)| **used);
        used.map(|(text, _)| text).collect()
    }
}

fn mark<T>(words: &mut [u64], numbers: &[T], passes: impl Fn(&T) -> bool) {
    for (word, numbers) in words.iter_mut().zip(numbers.chunks(64)) {
        for (bit, number) in numbers.iter().enumerate() {
            *word |= u64::from(passes(number)) << bit;
        }
    }
}
