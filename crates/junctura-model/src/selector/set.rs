//! One selector text over all schemas of a pool.

use std::collections::HashSet;
use std::sync::Arc;

use super::patterns::PatternCache;
use super::{Selector, SelectorContext, parser, typed};
use crate::error::{Code, Error, Result};
use crate::mars;
use crate::record::RecordRef;
use crate::schema::{Attribute, Schema};

/// An attribute that only pieces have.
const PIECE_OF: &str = "piece_of";

/// A selector, typed by each schema that knows its attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectorSet {
    text: String,
    by_schema: Vec<Option<Selector>>,
}

impl SelectorSet {
    /// Reads a selector, a MARS request, or a key as objects print it, for these schemas.
    ///
    /// # Errors
    /// No schema can read it: the error of the one that declares most of its attributes; of several, that of the one that
    /// got furthest.
    pub fn parse(text: &str, schemas: &[Arc<Schema>]) -> Result<SelectorSet> {
        Self::parse_with(text, schemas, &SelectorContext::default())
    }

    /// As [`Self::parse`], with a context.
    pub fn parse_with(text: &str, schemas: &[Arc<Schema>], context: &SelectorContext) -> Result<SelectorSet> {
        // Each with the number of its attributes that the schema declares.
        let results = if mars::is_request(text) || super::is_key(text) {
            schemas
                .iter()
                .map(|schema| (Selector::parse_with(text, schema, context), 0))
                .collect::<Vec<_>>()
        } else {
            let syntax = parser::parse(text)?;
            let mut patterns = PatternCache::default();
            schemas
                .iter()
                .map(|schema| {
                    let typed = typed::type_by(&syntax, schema, context, &mut patterns).map(Selector::of);
                    let declared = typed.as_ref().map_or_else(|_| syntax.count_declared(schema), |_| 0);
                    (typed, declared)
                })
                .collect()
        };
        let mut by_schema = Vec::with_capacity(results.len());
        let mut nearest: Option<(usize, Error)> = None;
        for (result, declared) in results {
            if let Err(error) = &result
                && nearest
                    .as_ref()
                    .is_none_or(|(most, other)| (*most, other.position()) < (declared, error.position()))
            {
                nearest = Some((declared, error.clone()));
            }
            by_schema.push(result.ok());
        }
        for (selector, schema) in by_schema.iter_mut().zip(schemas) {
            // A selector matches pieces only if it names this attribute.
            if schema.is_aside() && !text.contains(PIECE_OF) {
                *selector = None;
            }
        }
        if by_schema.iter().all(Option::is_none) {
            let unknown = || Error::new(Code::InvalidSelector, "selector", "there is no schema to read it by");
            return Err(nearest.map_or_else(unknown, |(_, error)| error));
        }
        Ok(SelectorSet {
            text: text.to_owned(),
            by_schema,
        })
    }

    /// Matches the objects of one schema of the list that have the key of this record.
    #[must_use]
    pub fn exact_key(record: RecordRef<'_>, schema_index: usize, schemas: &[Arc<Schema>]) -> SelectorSet {
        let selector = |(index, schema): (usize, &Arc<Schema>)| {
            (index == schema_index).then(|| Selector::exact_key(record, schema))
        };
        let by_schema: Vec<Option<Selector>> = schemas.iter().enumerate().map(selector).collect();
        let text = by_schema
            .get(schema_index)
            .and_then(Option::as_ref)
            .map(ToString::to_string)
            .unwrap_or_default();
        SelectorSet { text, by_schema }
    }

    /// The selector for that schema of the list given; None where that schema does not know its attributes.
    #[must_use]
    pub fn of(&self, schema_index: usize) -> Option<&Selector> {
        self.by_schema.get(schema_index)?.as_ref()
    }

    /// The attributes that it asks for and none of these schemas, for which it was read, declares: only objects of open
    /// schemas can have them. Each once, in order.
    #[must_use]
    pub fn undeclared(&self, schemas: &[Arc<Schema>]) -> Vec<&str> {
        let mut names = Vec::new();
        for selector in self.by_schema.iter().flatten() {
            selector.expr().open_attributes(&mut names);
        }
        names.retain(|name| schemas.iter().all(|schema| schema.find(name).is_none()));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The first value of each attribute that it names and that none of these schemas allows, for which it was read. Only objects of
    /// open schemas that do not declare the attribute can have it.
    pub(super) fn disallowed<'a>(&'a self, schemas: &'a [Arc<Schema>]) -> Vec<(&'a Attribute, &'a str)> {
        let (mut refused, mut allowed) = (Vec::new(), HashSet::new());
        for (schema, selector) in schemas.iter().zip(&self.by_schema) {
            let mut named = Vec::new();
            if let Some(selector) = selector {
                selector.expr().named_values(&mut named);
            }
            for (id, value) in named {
                let attribute = schema.attribute(id);
                if attribute.allows(value) && super::slips::rounding_error(attribute, value).is_none() {
                    allowed.insert((attribute.name.as_str(), value));
                } else {
                    refused.push((attribute, value));
                }
            }
        }
        let mut reported = HashSet::new();
        refused.retain(|(attribute, value)| {
            let name = attribute.name.as_str();
            !allowed.contains(&(name, *value)) && reported.insert(name)
        });
        refused
    }

    /// Whether both mean the same, item by item, to every schema, whatever their spaces, aliases and parentheses.
    #[must_use]
    pub fn asks_the_same(&self, other: &SelectorSet) -> bool {
        self.by_schema == other.by_schema
    }

    /// Returns the approximate memory in bytes that it takes in the indexes of all schemas.
    #[must_use]
    pub fn standing_bytes(&self) -> usize {
        let typed: usize = self.by_schema.iter().flatten().map(Selector::standing_bytes).sum();
        self.text.len() + typed
    }

    /// The text as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}
