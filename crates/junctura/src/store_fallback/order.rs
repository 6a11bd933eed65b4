//! The order of a list and of a follow's first phase, identical to the server's.

use std::cmp::Ordering;
use std::sync::Arc;

use junctura_model::{AttrId, Code, Error, RecordRef, Result, Schema};

use super::StoredRow;
use crate::object::ArrivedObject;

/// The sort order: by an attribute of the key, if one is named, then by schema and key.
#[derive(Clone, Debug)]
pub(crate) struct MergeOrder {
    schemas: Vec<Arc<Schema>>,
    /// The first sort attribute of each schema.
    first: Option<Vec<Option<AttrId>>>,
}

/// The sort position of an object: its schema in the pool, and a record that has its key.
#[derive(Clone, Copy)]
pub(crate) struct SortPosition<'a> {
    pub(crate) number: u16,
    pub(crate) record: RecordRef<'a>,
}

impl StoredRow {
    pub(super) fn standing(&self) -> SortPosition<'_> {
        SortPosition {
            number: self.number(),
            record: self.record(),
        }
    }
}

impl ArrivedObject {
    pub(super) fn standing(&self) -> SortPosition<'_> {
        SortPosition {
            number: self.schema,
            record: self.record(),
        }
    }
}

impl MergeOrder {
    /// # Errors
    /// `Unsupported` for an attribute outside the key, in which versions of one object may differ: the versions in pool
    /// and store would have different positions.
    pub(crate) fn new(schemas: &[Arc<Schema>], order_by: Option<&str>) -> Result<Self> {
        let first = order_by.map(|name| {
            let find = |schema: &Arc<Schema>| match schema.find(name) {
                Some(id) if id.index() >= schema.key_len() => {
                    let cause = "with a store behind the pool, objects are in the order of an attribute of the key";
                    Err(Error::new(Code::Unsupported, format!("order by {name}"), cause))
                }
                found => Ok(found),
            };
            schemas.iter().map(find).collect::<Result<Vec<_>>>()
        });
        Ok(Self {
            schemas: schemas.to_vec(),
            first: first.transpose()?,
        })
    }

    pub(super) fn compare(&self, a: SortPosition<'_>, b: SortPosition<'_>) -> Ordering {
        self.compare_first(a, b)
            .then(a.number.cmp(&b.number))
            .then_with(|| self.schemas[usize::from(a.number)].compare_keys(a.record, b.record))
    }

    fn compare_first(&self, a: SortPosition<'_>, b: SortPosition<'_>) -> Ordering {
        match (self.first_of(a), self.first_of(b)) {
            (Some((id, x)), Some((_, y))) => self.schemas[usize::from(a.number)].compare_values(id, x, y),
            (x, y) => x.is_none().cmp(&y.is_none()),
        }
    }

    fn first_of<'a>(&self, of: SortPosition<'a>) -> Option<(AttrId, &'a str)> {
        let id = self.first.as_ref()?[usize::from(of.number)]?;
        Some((id, of.record.get(id)?))
    }

    /// Returns whether a row is behind the position that a follow had reached in its first phase.
    ///
    /// # Errors
    /// `InvalidArgument` for a key that no schema can parse.
    pub(super) fn is_behind(&self, row: &StoredRow, last_key: &str) -> Result<bool> {
        for (number, schema) in self.schemas.iter().enumerate() {
            if let Ok(key) = schema.parse_key(last_key) {
                let last = SortPosition {
                    number: number as u16,
                    record: key.as_ref(),
                };
                return Ok(self.compare(row.standing(), last).is_gt());
            }
        }
        Err(Error::new(Code::InvalidArgument, "cursor", "no schema reads its key"))
    }
}
