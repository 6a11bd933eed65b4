//! The order of a list and of a follow's first phase: by key, attribute by attribute, or by a named attribute first.

use std::cmp::Ordering;

use junctura_model::{AttrId, Code, Error, RecordRef, Result, Schema};
use junctura_wire::body::Order;

use super::Core;
use super::object::Object;

/// How objects are sorted: [`Order`] resolved for every schema of the pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorting {
    /// Per schema, the attribute that comes first.
    first: Option<Vec<Option<AttrId>>>,
}

impl Sorting {
    fn value<'a>(&self, object: &'a Object) -> Option<&'a str> {
        let id = self.first.as_ref()?[usize::from(object.schema)]?;
        object.record().get(id)
    }
}

impl Core {
    pub(super) fn sorting(&self, order: &Order<'_>) -> Result<Sorting> {
        let Order::Attribute(name) = order else {
            return Ok(Sorting::default());
        };
        let first: Vec<_> = self.config.schemas.iter().map(|schema| schema.find(name)).collect();
        if first.iter().all(Option::is_none) {
            return Err(Error::new(
                Code::InvalidArgument,
                "order",
                format!("no schema has an attribute {name}"),
            ));
        }
        Ok(Sorting { first: Some(first) })
    }

    /// Compares two objects of the table.
    pub(super) fn compare(&self, sorting: &Sorting, a: u32, b: u32) -> Ordering {
        let (a, b) = (&self.objects[a as usize], &self.objects[b as usize]);
        self.compare_with(sorting, a, b.schema, b.record(), sorting.value(b))
    }

    /// Compares an object with a key, and the value that it was sorted by, of an object that may be gone.
    pub(super) fn compare_with(
        &self,
        sorting: &Sorting,
        a: &Object,
        schema: u16,
        key: RecordRef<'_>,
        sort_value: Option<&str>,
    ) -> Ordering {
        let by_attribute = match &sorting.first {
            None => Ordering::Equal,
            Some(first) => {
                let id = first[usize::from(a.schema)];
                match (id, sorting.value(a), sort_value) {
                    (Some(id), Some(x), Some(y)) => {
                        compare_values(&self.config.schemas[usize::from(a.schema)], id, x, y)
                    }
                    (_, x, y) => x.is_none().cmp(&y.is_none()),
                }
            }
        };
        by_attribute
            .then(a.schema.cmp(&schema))
            .then_with(|| compare_keys(&self.config.schemas[usize::from(schema)], a.record(), key))
    }
}

/// Compares two keys of one schema: in the order of the key's attributes, numbers and times by their value, absent first.
fn compare_keys(schema: &Schema, a: RecordRef<'_>, b: RecordRef<'_>) -> Ordering {
    if a.key_bytes(schema.key_len()) == b.key_bytes(schema.key_len()) {
        return Ordering::Equal;
    }
    let mut left = a.iter().take_while(|(id, ..)| id.index() < schema.key_len());
    let mut right = b.iter().take_while(|(id, ..)| id.index() < schema.key_len());
    loop {
        return match (left.next(), right.next()) {
            (Some((a, _, x)), Some((b, _, y))) if a == b => match compare_values(schema, a, x, y) {
                Ordering::Equal => continue,
                other => other,
            },
            (Some((a, ..)), Some((b, ..))) => b.index().cmp(&a.index()),
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (None, None) => Ordering::Equal,
        };
    }
}

fn compare_values(schema: &Schema, id: AttrId, x: &str, y: &str) -> Ordering {
    if x == y {
        return Ordering::Equal;
    }
    let scalar = schema.attribute(id).kind.scalar;
    match (scalar.order(x), scalar.order(y)) {
        (Some(x), Some(y)) => x.cmp(&y),
        _ => Ordering::Equal,
    }
    .then_with(|| x.cmp(y))
}

/// Sorts a little at a time: each call of [`Incremental::next`] does only the work that its answer needs, so that the first
/// of a million objects does not wait for the last.
#[derive(Debug, Default)]
pub(super) struct Incremental {
    /// What is yet to be given, the next one last.
    entries: Vec<u32>,
    /// Boundaries: everything from a boundary on comes before everything below it. The last is the nearest.
    boundaries: Vec<usize>,
}

impl Incremental {
    pub(super) fn new(entries: Vec<u32>) -> Self {
        Self {
            entries,
            boundaries: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is yet to be given, in no order.
    pub(super) fn entries(&self) -> &[u32] {
        &self.entries
    }

    pub(super) fn next(&mut self, mut compare: impl FnMut(u32, u32) -> Ordering) -> Option<u32> {
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
        self.entries.pop()
    }

    pub(super) fn drain(&mut self) -> std::vec::Drain<'_, u32> {
        self.boundaries.clear();
        self.entries.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::Incremental;

    #[test]
    fn gives_everything_in_order() {
        for count in [0u32, 1, 2, 63, 64, 65, 1000, 4099] {
            let mixed: Vec<u32> = (0..count).map(|i| i.wrapping_mul(2_654_435_761) % 997).collect();
            let mut sorted = mixed.clone();
            sorted.sort_unstable();
            let mut incremental = Incremental::new(mixed);
            let given: Vec<u32> = std::iter::from_fn(|| incremental.next(|a, b| a.cmp(&b))).collect();
            assert_eq!(given, sorted);
        }
    }
}
