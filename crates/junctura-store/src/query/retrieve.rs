//! A retrieval: returns all requested objects, or an error that names the missing ones.
//!
//! Values that a selector lists (`step=0/6/12,param=t/u`) are expected in every combination, and so are the values of a
//! range (`step=0/to/12/by/6`), if they are countable. Comparisons, patterns and `or` list no values: for these, at
//! least one object is expected.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use junctura_model::selector::SelectorQuestion;
use junctura_model::text::quote;
use junctura_model::{AttrId, Code, Error, Result, Schema, SelectorSet};

use crate::query::listing::{Listing, StoredObject};
use crate::query::snapshot::Snapshot;

/// Maximum number of combinations that one retrieval may expect.
pub(crate) const EXPECTED_MAX: usize = if cfg!(test) { 10_000 } else { 10_000_000 };
/// Maximum number of missing combinations in an error.
const NAMED_MAX: usize = 5;
/// The remedy in an error for missing objects, if others were found.
const PARTIAL: &str = "; a partial retrieval (`--partial`, or `partial=True` in Python) returns the others";

/// The result of a retrieval: the objects found, and the missing ones.
#[derive(Clone, Debug)]
pub struct RetrieveResult {
    /// The objects found.
    pub listing: Listing,
    /// The missing combinations, by the attributes whose values the selector lists: `{step=6,param=t}`.
    pub missing: Vec<String>,
}

impl RetrieveResult {
    /// Returns whether nothing is missing, and at least one object was found.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && !self.listing.is_empty()
    }

    /// Returns the objects found, if nothing is missing.
    ///
    /// # Errors
    /// `NotFound`, with the missing combinations, if any are missing or nothing matches.
    pub fn complete(self, selector: &str) -> Result<Listing> {
        if self.is_complete() {
            return Ok(self.listing);
        }
        let named: Vec<&str> = self.missing.iter().take(NAMED_MAX).map(String::as_str).collect();
        let named = named.join(", ");
        let remedy = if self.listing.is_empty() { "" } else { PARTIAL };
        let cause = match self.missing.len() {
            0 => "nothing that is there matches; `junctura store axes --store URL` lists the values of each attribute"
                .to_owned(),
            count if count <= NAMED_MAX => format!("missing: {named}{remedy}"),
            count => format!("missing: {named} and {} more{remedy}", count - NAMED_MAX),
        };
        Err(Error::new(Code::NotFound, selector, cause))
    }
}

/// The values that a selector lists, by attribute.
type Named<'a> = BTreeMap<u8, BTreeSet<Cow<'a, str>>>;

impl Snapshot {
    /// Returns the newest version of each key that the selector matches, if none is missing.
    ///
    /// # Errors
    /// `NotFound`, with the missing combinations, if any are missing or nothing matches; otherwise as [`Self::list`],
    /// and `LimitExceeded` for a selector that expects more than ten million objects.
    pub fn retrieve(&self, selector: &str) -> Result<Listing> {
        self.retrieve_partial(selector)?.complete(selector)
    }

    /// As [`Self::retrieve`], but returns the missing combinations in the result.
    ///
    /// # Errors
    /// As [`Self::retrieve`], except for missing objects.
    pub fn retrieve_partial(&self, selector: &str) -> Result<RetrieveResult> {
        let listing = self.list(selector)?;
        let schemas = self.store().schemas();
        let set = SelectorSet::parse(selector, schemas)?;
        let mut missing: Option<Vec<String>> = None;
        for (index, schema) in schemas.iter().enumerate() {
            let Some(selector) = set.of(index) else { continue };
            let question = selector.question();
            let mut named = Named::new();
            collect(&question, &mut named)?;
            if named.is_empty() && !listing.iter().any(|object| object.schema_index() == index) {
                continue;
            }
            let lacks = lacking(&listing, index, schema, &named)?;
            // The request is complete if it is complete in one schema.
            if missing.as_ref().is_none_or(|others| lacks.len() < others.len()) {
                missing = Some(lacks);
            }
        }
        Ok(RetrieveResult {
            listing,
            missing: missing.unwrap_or_default(),
        })
    }
}

/// Collects the values that each part of a conjunction lists.
fn collect<'a>(question: &SelectorQuestion<'a>, named: &mut Named<'a>) -> Result<()> {
    match question {
        SelectorQuestion::All(parts) => parts.iter().try_for_each(|part| collect(part, named)),
        SelectorQuestion::Test(asked) if asked.attribute() != AttrId::OPEN && asked.named_count().is_some() => {
            let values: BTreeSet<_> = asked.named(EXPECTED_MAX).ok_or_else(too_many)?.into_iter().collect();
            match named.entry(asked.attribute().0) {
                Entry::Occupied(mut before) => before.get_mut().retain(|value| values.contains(value)),
                Entry::Vacant(entry) => _ = entry.insert(values),
            }
            Ok(())
        }
        SelectorQuestion::Any(parts) => match parts.as_slice() {
            // Alternative names for a parameter and for the control forecast: `values_of` returns the value of the
            // request.
            [SelectorQuestion::Test(asked), SelectorQuestion::Test(same)]
                if (asked.name(), same.name()) == ("param", "paramId") =>
            {
                collect(&parts[0], named)
            }
            [SelectorQuestion::Test(asked), SelectorQuestion::All(_)] if asked.name() == "number" => {
                collect(&parts[0], named)
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn too_many() -> Error {
    let cause = format!("it names more than {EXPECTED_MAX} combinations of values");
    Error::new(Code::LimitExceeded, "selector", cause)
}

fn lacking(listing: &Listing, index: usize, schema: &Schema, named: &Named<'_>) -> Result<Vec<String>> {
    let count = named
        .values()
        .try_fold(1_usize, |count, values| count.checked_mul(values.len()));
    if count.is_none_or(|count| count > EXPECTED_MAX) {
        return Err(too_many());
    }
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let of_schema = listing.iter().filter(|object| object.schema_index() == index);
    let there: BTreeSet<Vec<String>> = of_schema.map(|object| values_of(&object, schema, named)).collect();
    let mut missing = Vec::new();
    let mut values = Vec::new();
    combine(named, &mut values, &mut |values| {
        if !there.contains(values) {
            missing.push(written(schema, named, values));
        }
    });
    Ok(missing)
}

fn values_of(object: &StoredObject<'_>, schema: &Schema, named: &Named<'_>) -> Vec<String> {
    let value = |(&id, asked): (&u8, &BTreeSet<Cow<'_, str>>)| {
        let value = object.value(AttrId(id));
        let of = |name| schema.find(name).and_then(|id| object.value(id));
        match (&*schema.attribute(AttrId(id)).name, value) {
            ("number", None) if of("type") == Some("cf") => "0".to_owned(),
            ("param", Some(value)) if !asked.contains(value) => {
                let identifier = of("paramId").unwrap_or_default();
                let same = asked.iter().find(|asked| same_parameter(asked, identifier));
                same.map_or(value, |same| same).to_owned()
            }
            _ => value.unwrap_or_default().to_owned(),
        }
    };
    named.iter().map(value).collect()
}

/// Returns whether a parameter by number, such as `167` or `167.128`, has this identifier.
fn same_parameter(asked: &str, identifier: &str) -> bool {
    let (parameter, table) = asked.split_once('.').unwrap_or((asked, "128"));
    match (parameter.parse::<u64>(), table.parse::<u64>()) {
        (Ok(parameter), Ok(128)) => parameter.to_string() == identifier,
        (Ok(parameter), Ok(table)) => (table * 1000 + parameter).to_string() == identifier,
        _ => false,
    }
}

/// Passes each combination of values, in the order of the attributes.
fn combine(named: &Named<'_>, values: &mut Vec<String>, take: &mut dyn FnMut(&Vec<String>)) {
    match named.values().nth(values.len()) {
        None => take(values),
        Some(choices) => {
            for choice in choices {
                values.push(choice.to_string());
                combine(named, values, take);
                values.pop();
            }
        }
    }
}

fn written(schema: &Schema, named: &Named<'_>, values: &[String]) -> String {
    let mut text = String::from("{");
    for (&id, value) in named.keys().zip(values) {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&schema.attribute(AttrId(id)).name);
        text.push('=');
        quote(value, &mut text);
    }
    text.push('}');
    text
}
