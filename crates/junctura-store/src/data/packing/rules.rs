//! Packing rules in the root of a store: which datasets are packed, and how.

use std::sync::Arc;

use junctura_model::{Code, Error, RecordRef, Result, Schema, Selector, SelectorSet};

use super::Compression;
use crate::query::snapshot::asks_beyond;

/// How the objects of some datasets are packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackingRule {
    /// The datasets: a selector that uses only attributes of the first level of a key. An empty one matches all.
    pub datasets: String,
    /// The compression.
    pub compression: Compression,
}

impl From<Compression> for PackingRule {
    /// Applies to all datasets.
    fn from(compression: Compression) -> Self {
        let datasets = String::new();
        Self { datasets, compression }
    }
}

/// A rule, for the schemas of a store.
#[derive(Clone, Debug)]
pub(crate) struct SchemaPacking {
    /// For each schema the matching datasets, if any are possible.
    of_schemas: Vec<Option<Selector>>,
    compression: Compression,
}

impl SchemaPacking {
    /// # Errors
    /// `InvalidSelector` for an invalid selector; `InvalidArgument` for one that in each schema uses attributes outside
    /// the first level.
    pub(crate) fn new(packing: &PackingRule, schemas: &[Arc<Schema>]) -> Result<Self> {
        let set = SelectorSet::parse(&packing.datasets, schemas)?;
        let of_schema = |(index, schema): (usize, &Arc<Schema>)| {
            let selector = set.of(index)?;
            let is_of_datasets = !asks_beyond(&selector.question(), schema.level_ends()[0]);
            is_of_datasets.then(|| selector.clone())
        };
        let of_schemas: Vec<Option<Selector>> = schemas.iter().enumerate().map(of_schema).collect();
        if of_schemas.iter().all(Option::is_none) {
            let cause = "it selects by an attribute that is not in the first level of a key, which decides the place of objects";
            let selector = format!("compression of {:?}", packing.datasets);
            return Err(Error::new(Code::InvalidArgument, selector, cause));
        }
        let compression = packing.compression;
        Ok(Self {
            of_schemas,
            compression,
        })
    }

    /// Returns how the objects of a dataset are packed, by the first matching rule. `key`: the first level of its key,
    /// as a record.
    pub(crate) fn compression(rules: &[Self], schema: usize, key: RecordRef<'_>) -> Option<Compression> {
        let matches = |rule: &&Self| {
            let selector = rule.of_schemas.get(schema).and_then(Option::as_ref);
            selector.is_some_and(|selector| selector.matches(key))
        };
        rules.iter().find(matches).map(|rule| rule.compression)
    }
}
