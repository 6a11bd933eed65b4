//! Which rows of a table a selector asks for.

use junctura_model::Result;
use junctura_model::selector::{AttributeQuestion, SelectorQuestion};

use super::numbers::ByRow;
use super::{RowTable, TextColumn};

/// Some rows of a table, a bit for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowSet {
    words: Vec<u64>,
    len: usize,
}

impl RowSet {
    pub(crate) fn all(len: usize) -> Self {
        let mut rows = Self {
            words: vec![u64::MAX; len.div_ceil(64)],
            len,
        };
        rows.trim();
        rows
    }

    pub(crate) fn none(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(64)],
            len,
        }
    }

    /// These, of a table of so many.
    pub(crate) fn of(len: usize, rows: &[u32]) -> Self {
        let mut all = Self::none(len);
        for &row in rows {
            all.insert(row);
        }
        all
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

    /// Returns whether it contains a row.
    pub(crate) fn contains(&self, row: u32) -> bool {
        self.words[row as usize / 64] >> (row % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, row: u32) {
        self.words[row as usize / 64] |= 1 << (row % 64);
    }

    /// Leaves those that are not among others of the same table.
    pub(crate) fn leave_out(&mut self, others: &Self) {
        self.join(others, |word, others| word & !others);
    }

    pub(crate) fn is_empty(&self) -> bool {
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
enum BeyondTest {
    Considered,
    Passes,
    Fails,
}

impl BeyondTest {
    fn not(self) -> Self {
        match self {
            Self::Considered => self,
            Self::Passes => Self::Fails,
            Self::Fails => Self::Passes,
        }
    }

    /// How this one counts, if attributes from `end` on are beyond.
    fn of(self, asked: AttributeQuestion<'_>, end: usize) -> Self {
        if asked.attribute().index() < end {
            Self::Considered
        } else {
            self
        }
    }
}

/// Rows whose columns a question can be asked of.
pub(crate) trait RowColumns {
    /// Returns the number of rows.
    fn rows(&self) -> usize;
    /// Which values of an attribute pass; none where no row has the attribute.
    fn passing(&self, asked: AttributeQuestion<'_>) -> Result<Option<PassingValues>>;
    /// Shows the column of an attribute, where a row has it.
    fn with_numbers(&self, asked: AttributeQuestion<'_>, take: &mut dyn FnMut(&TextColumn)) -> Result<()>;
}

impl RowColumns for RowTable {
    fn rows(&self) -> usize {
        self.len()
    }

    fn passing(&self, asked: AttributeQuestion<'_>) -> Result<Option<PassingValues>> {
        let column = self.column(asked.attribute(), asked.name());
        Ok(column.map(|column| passing(column, asked)))
    }

    fn with_numbers(&self, asked: AttributeQuestion<'_>, take: &mut dyn FnMut(&TextColumn)) -> Result<()> {
        if let Some(column) = self.column(asked.attribute(), asked.name()) {
            take(column);
        }
        Ok(())
    }
}

/// Which values of a column pass, by their numbers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PassingValues {
    /// These and no others.
    These(Vec<u32>),
    /// Keeps the rows for which this returns true.
    Each(Vec<bool>),
}

/// Which values of a column pass: those that are named are looked up, or else each is asked once.
pub(crate) fn passing(column: &TextColumn, asked: AttributeQuestion<'_>) -> PassingValues {
    let are_fewer = asked
        .named_count()
        .is_some_and(|count| count <= column.values_len() as u128);
    match asked.texts() {
        Some(texts) if are_fewer => PassingValues::These(texts.filter_map(|text| column.number_of(text)).collect()),
        _ => {
            let holds = column.values().map(|text| asked.holds(text));
            PassingValues::each(std::iter::once(false).chain(holds).collect())
        }
    }
}

impl PassingValues {
    fn each(passes: Vec<bool>) -> Self {
        let mut those = (0..).zip(&passes).filter(|(_, passes)| **passes);
        match (those.next(), those.next()) {
            (one, None) => Self::These(one.map(|(number, _)| number).into_iter().collect()),
            _ => Self::Each(passes),
        }
    }

    fn has(&self, number: u32) -> bool {
        match self {
            Self::These(numbers) => numbers.contains(&number),
            Self::Each(passes) => passes[number as usize],
        }
    }

    fn is_none(&self) -> bool {
        match self {
            Self::These(numbers) => numbers.is_empty(),
            // Several do.
            Self::Each(_) => false,
        }
    }
}

/// Returns the rows that match a query.
///
/// # Errors
/// Errors of reading them.
pub(crate) fn select(rows: &impl RowColumns, question: &SelectorQuestion<'_>) -> Result<RowSet> {
    answer(rows, question, usize::MAX, BeyondTest::Considered)
}

/// Returns the rows that may match, according to the attributes of the key (IDs below `key_len`): they include all rows
/// with the key of a matching row.
///
/// # Errors
/// Errors of reading them.
pub(crate) fn select_keys(rows: &impl RowColumns, question: &SelectorQuestion<'_>, key_len: usize) -> Result<RowSet> {
    answer(rows, question, key_len, BeyondTest::Passes)
}

fn answer(rows: &impl RowColumns, question: &SelectorQuestion<'_>, end: usize, beyond: BeyondTest) -> Result<RowSet> {
    match question {
        SelectorQuestion::Everything => Ok(RowSet::all(rows.rows())),
        SelectorQuestion::All(parts) => answer_all(rows, parts, end, beyond),
        SelectorQuestion::Any(parts) => {
            let mut found = RowSet::none(rows.rows());
            for part in parts {
                found.join(&answer(rows, part, end, beyond)?, |a, b| a | b);
            }
            Ok(found)
        }
        SelectorQuestion::Not(inner) => {
            let mut found = answer(rows, inner, end, beyond.not())?;
            found.negate();
            Ok(found)
        }
        SelectorQuestion::Test(asked) => match beyond.of(*asked, end) {
            BeyondTest::Passes => Ok(RowSet::all(rows.rows())),
            BeyondTest::Fails => Ok(RowSet::none(rows.rows())),
            BeyondTest::Considered => match passing_any(rows, *asked)? {
                Some(passes) => marked(rows, *asked, &passes),
                None => Ok(RowSet::none(rows.rows())),
            },
        },
    }
}

/// Values alone can exclude all rows; rows are compared only after all values were tested.
fn answer_all(
    rows: &impl RowColumns,
    parts: &[SelectorQuestion<'_>],
    end: usize,
    beyond: BeyondTest,
) -> Result<RowSet> {
    let mut tests = Vec::new();
    for part in parts {
        let SelectorQuestion::Test(asked) = part else { continue };
        match beyond.of(*asked, end) {
            BeyondTest::Passes => {}
            BeyondTest::Fails => return Ok(RowSet::none(rows.rows())),
            BeyondTest::Considered => match passing_any(rows, *asked)? {
                Some(passes) => tests.push((*asked, passes)),
                None => return Ok(RowSet::none(rows.rows())),
            },
        }
    }
    let mut found = RowSet::all(rows.rows());
    for (asked, passes) in tests {
        if found.is_empty() {
            return Ok(found);
        }
        found.join(&marked(rows, asked, &passes)?, |a, b| a & b);
    }
    for part in parts.iter().filter(|part| !matches!(part, SelectorQuestion::Test(_))) {
        if found.is_empty() {
            return Ok(found);
        }
        found.join(&answer(rows, part, end, beyond)?, |a, b| a & b);
    }
    Ok(found)
}

/// Which values pass, if one does.
fn passing_any(rows: &impl RowColumns, asked: AttributeQuestion<'_>) -> Result<Option<PassingValues>> {
    let passing = rows.passing(asked)?;
    Ok(passing.filter(|passing| !passing.is_none()))
}

/// The rows with values that pass.
fn marked(rows: &impl RowColumns, asked: AttributeQuestion<'_>, passing: &PassingValues) -> Result<RowSet> {
    let mut found = RowSet::none(rows.rows());
    rows.with_numbers(asked, &mut |column| match column.by_row() {
        ByRow::Few(few) => {
            let passing = few.entries().iter().filter(|&&(_, number)| passing.has(number));
            passing.for_each(|&(row, _)| found.insert(row));
        }
        ByRow::One(all) => mark_passing(&mut found.words, all, passing, column.values_len()),
        ByRow::Two(all) => mark_passing(&mut found.words, all, passing, column.values_len()),
        ByRow::Four(all) => mark_passing(&mut found.words, all, passing, column.values_len()),
    })?;
    Ok(found)
}

fn mark_passing<T>(words: &mut [u64], numbers: &[T], passing: &PassingValues, values: usize)
where
    T: Copy + PartialEq + Into<u32> + TryFrom<u32>,
{
    match passing {
        // One is compared with, many at once, where several are looked up.
        PassingValues::These(those) if let [one] = those[..] => {
            if let Ok(one) = T::try_from(one) {
                mark(words, numbers, |number| number == one);
            }
        }
        PassingValues::These(those) => {
            let mut passes = vec![false; values + 1];
            for &number in those {
                passes[number as usize] = true;
            }
            mark(words, numbers, |number| passes[number.into() as usize]);
        }
        PassingValues::Each(passes) => mark(words, numbers, |number| passes[number.into() as usize]),
    }
}

fn mark<T: Copy>(words: &mut [u64], numbers: &[T], passes: impl Fn(T) -> bool) {
    for (word, numbers) in words.iter_mut().zip(numbers.chunks(64)) {
        let mut bits = [0; 64];
        for (bit, &number) in bits.iter_mut().zip(numbers) {
            *bit = u8::from(passes(number));
        }
        *word |= packed(&bits);
    }
}

/// Bytes that are 0 or 1 as bits.
fn packed(bits: &[u8; 64]) -> u64 {
    let (eights, _) = bits.as_chunks::<8>();
    // The product has the eight bytes adjacent in its highest byte.
    let byte = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    eights.iter().rev().fold(0, |word, eight| word << 8 | byte(eight))
}
