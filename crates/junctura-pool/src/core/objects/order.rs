//! The order of a list and of a follow's first phase: by key, attribute by attribute, or by a named attribute first.

use std::cmp::Ordering;

use junctura_model::{AttrId, RecordRef, Schema};

use crate::core::objects::object::ObjectRow;

/// How objects are sorted: [`Order`] resolved for every schema of the pool.
#[derive(Clone, Debug, Default)]
pub(in crate::core) struct ResolvedOrder {
    /// Per schema, the first attribute of the order.
    pub(in crate::core) first: Option<Vec<Option<AttrId>>>,
}

impl ResolvedOrder {
    pub(in crate::core) fn value<'a>(&self, object: &'a ObjectRow) -> Option<&'a str> {
        self.value_of(object.schema, object.record())
    }

    /// Returns the value of the first sort attribute in a record of a schema.
    pub(in crate::core) fn value_of<'a>(&self, schema: u16, record: RecordRef<'a>) -> Option<&'a str> {
        let id = self.first.as_ref()?[usize::from(schema)]?;
        record.get(id)
    }
}

/// Returns the key of an object of a schema as bytes that compare as
/// [`crate::core::objects::table::ObjectTable::compare`] does by key, so that values are not read again for each
/// comparison. `None` where a value has no place among numbers (a range of steps): then only pairs can be compared.
pub(in crate::core) fn sortable_key(number: u16, schema: &Schema, record: RecordRef<'_>) -> Option<Box<[u8]>> {
    const ABSENT: u8 = 0;
    const PRESENT: u8 = 1;
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&number.to_be_bytes());
    let mut next = 0;
    for (id, _, text) in record.iter().take_while(|(id, ..)| id.index() < schema.key_len()) {
        bytes.resize(bytes.len() + id.index() - next, ABSENT);
        bytes.push(PRESENT);
        next = id.index() + 1;
        let scalar = schema.attribute(id).kind.scalar;
        if scalar.is_ordered() {
            let order = scalar.order(text)?.cast_unsigned() ^ (1 << 127);
            bytes.extend_from_slice(&order.to_be_bytes());
        } else {
            // A text ends before any longer one that begins with it.
            for &byte in text.as_bytes() {
                bytes.push(byte);
                if byte == 0 {
                    bytes.push(1);
                }
            }
            bytes.extend_from_slice(&[0, 0]);
        }
    }
    bytes.resize(bytes.len() + schema.key_len() - next, ABSENT);
    Some(bytes.into())
}

/// An incremental sort: each call of [`IncrementalSort::next`] does only the work that its result needs, so that the
/// first of a million objects does not wait for the last.
#[derive(Debug, Default)]
pub(in crate::core) struct IncrementalSort {
    /// Unsorted entries that have yet to be returned, the next one last.
    entries: Vec<u32>,
    /// Boundaries: everything from a boundary on precedes everything below it. The last is the nearest.
    boundaries: Vec<usize>,
    /// Sorted runs that have yet to be returned, the next entry of each last. No run is empty.
    runs: Vec<Vec<u32>>,
    /// The run of each place precedes those of the two places below it.
    are_heaped: bool,
}

impl IncrementalSort {
    pub(in crate::core) fn new(entries: Vec<u32>) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }

    /// Returns the order of sorted runs, the first entry of each last, and of unsorted entries.
    pub(in crate::core) fn merged(mut runs: Vec<Vec<u32>>, entries: Vec<u32>) -> Self {
        runs.retain(|run| !run.is_empty());
        Self {
            entries,
            runs,
            ..Self::default()
        }
    }

    /// Returns the number of remaining entries.
    pub(in crate::core) fn len(&self) -> usize {
        self.entries.len() + self.runs.iter().map(Vec::len).sum::<usize>()
    }

    /// Returns the number of sorted runs that have yet to be merged.
    pub(in crate::core) fn runs(&self) -> usize {
        self.runs.len()
    }

    pub(in crate::core) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.runs.is_empty()
    }

    /// Iterates over the remaining entries, in no order.
    pub(in crate::core) fn iter(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().chain(self.runs.iter().flatten()).copied()
    }

    /// Adds more entries, before the first was taken.
    pub(in crate::core) fn extend(&mut self, more: impl IntoIterator<Item = u32>) {
        self.entries.extend(more);
    }

    /// Drops entries that do not pass, before the first was taken.
    pub(in crate::core) fn retain(&mut self, mut passes: impl FnMut(u32) -> bool) {
        self.entries.retain(|&id| passes(id));
        for run in &mut self.runs {
            run.retain(|&id| passes(id));
        }
        self.runs.retain(|run| !run.is_empty());
    }

    pub(in crate::core) fn next(&mut self, mut compare: impl FnMut(u32, u32) -> Ordering) -> Option<u32> {
        self.sort_next(&mut compare);
        if !self.are_heaped {
            self.are_heaped = true;
            for place in (0..self.runs.len() / 2).rev() {
                self.sink(place, &mut compare);
            }
        }
        match (self.entries.last(), self.head(0)) {
            (Some(&entry), Some(head)) if compare(entry, head).is_lt() => self.entries.pop(),
            (_, Some(_)) => self.pop_run(&mut compare),
            (_, None) => self.entries.pop(),
        }
    }

    /// Moves the first of the entries to their end.
    fn sort_next(&mut self, compare: &mut impl FnMut(u32, u32) -> Ordering) {
        const SORTED_AT_ONCE: usize = 64;
        while self.boundaries.last() == Some(&self.entries.len()) {
            self.boundaries.pop();
        }
        let mut start = self.boundaries.last().copied().unwrap_or(0);
        while self.entries.len() - start > SORTED_AT_ONCE {
            let rest = &mut self.entries[start..];
            let middle = rest.len() / 2;
            rest.select_nth_unstable_by(middle, |&a, &b| compare(b, a));
            start += middle;
            self.boundaries.push(start);
        }
        if self.entries.len() - start > 1 {
            self.entries[start..].sort_unstable_by(|&a, &b| compare(b, a));
            self.boundaries.extend(start + 1..self.entries.len());
        }
    }

    /// Returns the first entry of a run.
    fn head(&self, place: usize) -> Option<u32> {
        self.runs.get(place)?.last().copied()
    }

    fn pop_run(&mut self, compare: &mut impl FnMut(u32, u32) -> Ordering) -> Option<u32> {
        let next = self.runs.first_mut()?.pop();
        if self.runs[0].is_empty() {
            self.runs.swap_remove(0);
        }
        self.sink(0, compare);
        next
    }

    /// Moves the run of a place down until those below follow it.
    fn sink(&mut self, mut place: usize, compare: &mut impl FnMut(u32, u32) -> Ordering) {
        let mut is_before = |runs: &Self, one: usize, other: usize| match (runs.head(one), runs.head(other)) {
            (Some(one), Some(other)) => compare(one, other).is_lt(),
            _ => false,
        };
        loop {
            let below = 2 * place + 1;
            let first = if is_before(self, below + 1, below) {
                below + 1
            } else {
                below
            };
            if !is_before(self, first, place) {
                return;
            }
            self.runs.swap(first, place);
            place = first;
        }
    }

    /// Takes all remaining entries, in no order.
    pub(in crate::core) fn take_all(&mut self) -> Vec<u32> {
        let all = std::mem::take(self);
        all.entries.into_iter().chain(all.runs.into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use junctura_model::{Given, RecordRef, Schema};
    use proptest::prelude::*;

    use super::{IncrementalSort, sortable_key};

    const SCHEMA: &str = "
name: s
key: {dataset: [\"a?\", \"n?\"], collocation: [\"t?\"], element: [\"x?\", \"s?\"]}
attributes:
  a: {type: string}
  n: {type: integer}
  t: {type: time}
  x: {type: decimal}
  s: {type: step}
";

    proptest! {
        #[test]
        fn sortable_keys_compare_as_keys_do(
            texts in proptest::array::uniform2(proptest::option::of("[ab\u{0}\u{1}]{0,3}")),
            numbers in proptest::array::uniform2(proptest::option::of(-300i64..300)),
            times in proptest::array::uniform2(proptest::option::of(0usize..3)),
            steps in proptest::array::uniform2(proptest::option::of(0i64..40)),
        ) {
            let schema = Schema::parse_yaml(SCHEMA).unwrap();
            let record = |at: usize| {
                let mut given = Vec::new();
                given.extend(texts[at].as_deref().map(|text| ("a", Given::Text(text))));
                given.extend(numbers[at].map(|number| ("n", Given::Integer(number))));
                given.extend(times[at].map(|time| ("t", Given::Text(["0000", "0630", "1200"][time]))));
                given.extend(numbers[1 - at].map(|number| ("x", Given::Integer(number / 2))));
                given.extend(steps[at].map(|step| ("s", Given::Integer(step))));
                let mut out = Vec::new();
                schema.record(given, &mut out).unwrap();
                out
            };
            let (a, b) = (record(0), record(1));
            let (a, b) = (RecordRef::trusted(&a), RecordRef::trusted(&b));
            let sortable = |record| sortable_key(0, &schema, record).unwrap();
            prop_assert_eq!(sortable(a).cmp(&sortable(b)), schema.compare_keys(a, b));
        }
    }

    #[test]
    fn gives_everything_in_order() {
        for count in [0u32, 1, 2, 63, 64, 65, 1000, 4099] {
            let mixed: Vec<u32> = (0..count).map(|i| i.wrapping_mul(2_654_435_761) % 997).collect();
            let mut sorted = mixed.clone();
            sorted.sort_unstable();
            let mut incremental = IncrementalSort::new(mixed);
            let given: Vec<u32> = std::iter::from_fn(|| incremental.next(|a, b| a.cmp(&b))).collect();
            assert_eq!(given, sorted);
        }
    }

    proptest! {
        #[test]
        fn merges_what_is_sorted_with_what_is_not(
            runs in proptest::collection::vec(proptest::collection::vec(0u32..50, 0..20), 0..12),
            entries in proptest::collection::vec(0u32..50, 0..200),
        ) {
            let mut sorted: Vec<u32> = runs.iter().flatten().chain(&entries).copied().filter(|id| id % 7 != 0).collect();
            sorted.sort_unstable();
            let mut runs = runs;
            for run in &mut runs {
                run.sort_unstable_by(|a, b| b.cmp(a));
            }
            let mut merged = IncrementalSort::merged(runs, Vec::new());
            merged.extend(entries);
            merged.retain(|id| id % 7 != 0);
            let mut there: Vec<u32> = merged.iter().collect();
            there.sort_unstable();
            prop_assert_eq!(&there, &sorted);
            let mut given = Vec::new();
            while let Some(next) = merged.next(|a, b| a.cmp(&b)) {
                given.push(next);
                prop_assert_eq!(merged.len() + given.len(), sorted.len());
                prop_assert_eq!(merged.is_empty(), given.len() == sorted.len());
            }
            prop_assert_eq!(given, sorted);
        }
    }
}
