//! Concepts: names that a header has where it meets some conditions.
//!
//! A concept has sets of rows, one by the WMO (`master`) and others by centres and projects; a row is a value and the
//! keys that must have given numbers. Of the rows that hold the one with most conditions wins. Between equals the later
//! one wins, but in sets written inside a template (`inline`) the earlier one.

use super::{Map, TextNumbers};

/// A concept by its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConceptId(pub(crate) u16);

#[derive(Debug)]
pub(crate) struct ConceptCondition {
    key: u16,
    /// An array counts as its elements, so the condition on its length counts nothing.
    counts: bool,
    wanted: ConceptValue,
}

impl ConceptCondition {
    pub(crate) fn is_about(&self, key: u16) -> bool {
        self.key == key
    }
}

#[derive(Debug)]
enum ConceptValue {
    One(i64),
    Any(Box<[i64]>),
}

#[derive(Debug)]
struct ConceptRow {
    value: i64,
    conditions: Box<[ConceptCondition]>,
}

/// Rows of one set, in buckets by the key that most rows test.
#[derive(Debug, Default)]
struct ConceptSet {
    rows: Vec<ConceptRow>,
    pivot: u16,
    buckets: Map<i64, Vec<u32>>,
    others: Vec<u32>,
}

#[derive(Default)]
pub(crate) struct ConceptTables {
    names: Map<&'static str, ConceptId>,
    sets: Vec<Vec<(&'static str, ConceptSet)>>,
}

/// The best row so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct BestRow {
    count: u32,
    rank: i64,
    value: i64,
}

pub(crate) fn conditions(text: &'static str, texts: &mut TextNumbers) -> Box<[ConceptCondition]> {
    text.split(' ').filter_map(|word| condition(word, texts)).collect()
}

fn condition(word: &'static str, texts: &mut TextNumbers) -> Option<ConceptCondition> {
    let at = word.find(['=', '~'])?;
    let (key, wanted) = (word.get(..at)?.parse().ok()?, word.get(at + 1..)?);
    let counts = !word.get(at..)?.starts_with('~');
    let wanted = if wanted.contains('|') {
        ConceptValue::Any(wanted.split('|').map(|value| texts.value(value)).collect())
    } else {
        ConceptValue::One(texts.value(wanted))
    };
    Some(ConceptCondition { key, counts, wanted })
}

/// How many conditions hold, if all do.
pub(crate) fn count(conditions: &[ConceptCondition], get: &impl Fn(u16) -> Option<i64>) -> Option<u32> {
    let mut count = 0;
    for condition in conditions {
        let value = get(condition.key)?;
        let holds = match &condition.wanted {
            ConceptValue::One(wanted) => value == *wanted,
            ConceptValue::Any(wanted) => wanted.contains(&value),
        };
        if !holds {
            return None;
        }
        count += u32::from(condition.counts);
    }
    Some(count)
}

impl ConceptSet {
    fn index(&mut self) {
        let mut uses: Map<u16, u32> = Map::default();
        for condition in self.rows.iter().flat_map(|row| &row.conditions) {
            *uses.entry(condition.key).or_default() += u32::from(matches!(condition.wanted, ConceptValue::One(_)));
        }
        self.pivot = uses
            .into_iter()
            .max_by_key(|(key, uses)| (*uses, u16::MAX - key))
            .map_or(0, |(key, _)| key);
        for (at, row) in self.rows.iter().enumerate() {
            let pivot = row.conditions.iter().find(|condition| condition.key == self.pivot);
            match pivot.map(|condition| &condition.wanted) {
                Some(ConceptValue::One(value)) => self.buckets.entry(*value).or_default().push(at as u32),
                _ => self.others.push(at as u32),
            }
        }
    }

    fn best(&self, get: &impl Fn(u16) -> Option<i64>, first_wins: bool, best: &mut Option<BestRow>) {
        let bucket = get(self.pivot).and_then(|value| self.buckets.get(&value));
        for &at in bucket.into_iter().flatten().chain(&self.others) {
            let Some(row) = self.rows.get(at as usize) else {
                continue;
            };
            let Some(count) = count(&row.conditions, get) else {
                continue;
            };
            let rank = if first_wins { -i64::from(at) } else { i64::from(at) };
            let found = BestRow {
                count,
                rank,
                value: row.value,
            };
            if best.is_none_or(|best| (found.count, found.rank) >= (best.count, best.rank)) {
                *best = Some(found);
            }
        }
    }
}

impl ConceptTables {
    pub(crate) fn read(text: &'static str, texts: &mut TextNumbers) -> ConceptTables {
        let mut concepts = ConceptTables::default();
        let mut current = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, set)) = line.strip_prefix('@').and_then(|head| head.split_once(' ')) {
                let id = concepts.id(name);
                if let Some(sets) = concepts.sets.get_mut(usize::from(id.0)) {
                    sets.push((set, ConceptSet::default()));
                }
                current = Some(id);
            } else if let (Some(id), Some((value, rest))) = (current, line.split_once('\t')) {
                let row = ConceptRow {
                    value: texts.value(value),
                    conditions: conditions(rest, texts),
                };
                if let Some((_, set)) = concepts
                    .sets
                    .get_mut(usize::from(id.0))
                    .and_then(|sets| sets.last_mut())
                {
                    set.rows.push(row);
                }
            }
        }
        concepts.sets.iter_mut().flatten().for_each(|(_, set)| set.index());
        concepts
    }

    /// The concept of a name; one that the tables lack has no rows.
    pub(crate) fn id(&mut self, name: &'static str) -> ConceptId {
        let next = ConceptId(self.sets.len() as u16);
        let id = *self.names.entry(name).or_insert(next);
        if id == next {
            self.sets.push(Vec::new());
        }
        id
    }

    /// The value of a concept in the two sets that apply, of which the second wins between equals.
    pub(crate) fn evaluate(&self, id: ConceptId, places: [&str; 2], get: impl Fn(u16) -> Option<i64>) -> Option<i64> {
        let sets = self.sets.get(usize::from(id.0))?;
        let mut best = None;
        if let [("inline", set)] = sets.as_slice() {
            set.best(&get, true, &mut best);
        }
        for place in places {
            let mut here = None;
            if let Some((_, set)) = sets.iter().find(|(name, _)| *name == place) {
                set.best(&get, false, &mut here);
            }
            best = match (best, here) {
                (Some(a), Some(b)) if a.count > b.count => Some(a),
                (a, b) => b.or(a),
            };
        }
        best.map(|best| best.value)
    }
}
