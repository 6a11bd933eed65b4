//! The nearest misses of a selector that matches nothing: without which condition something matches, and which values exist there.

use std::collections::BTreeSet;
use std::sync::Arc;

use junctura_model::selector::{SelectorContext, slips};
use junctura_model::{Result, Schema, nearest};

use super::conditions::{conditions, parts};
use super::reasons::NearMiss;
use crate::pool::Pool;
use crate::verbs::list::ListOptions;
use crate::verbs::list::tally::TallyOptions;

/// Values that are returned.
const VALUES_MAX: usize = 12;

/// Objects that are looked at for their attributes, and how many the pool may have at most: the server looks at each.
const SAMPLE: u32 = 256;
const SAMPLED_OF_MAX: u64 = 100_000;

/// The matches of a selector.
struct MatchCount {
    objects: u64,
    /// They have more values than are collected.
    has_more_values: bool,
    /// Values of one attribute.
    values: BTreeSet<String>,
}

/// Counts what a selector matches, by the values of an attribute: from the server's index, without a list.
fn count(pool: &Pool, selector: &str, attribute: Option<&str>) -> Result<MatchCount> {
    let by: Vec<&str> = attribute.into_iter().collect();
    let options = TallyOptions {
        by: &by,
        ..TallyOptions::default()
    };
    // `tally` would report mistakes itself.
    let tally = pool.begin_tally(selector, options)?.wait()?;
    let values = tally.groups.iter().flat_map(|group| group.values.iter().flatten());
    Ok(MatchCount {
        objects: tally.objects(),
        has_more_values: tally.others > 0,
        values: values.cloned().collect(),
    })
}

/// Returns the number of visible objects that match.
pub(super) fn count_objects(pool: &Pool, selector: &str) -> Result<u64> {
    Ok(count(pool, selector, None)?.objects)
}

/// Returns the conditions without which something matches; leaves out one of the first `conditions_max` at a time.
pub(super) fn near_misses(pool: &Pool, selector: &str, conditions_max: usize) -> Result<Vec<NearMiss>> {
    let conditions = conditions(selector);
    let mut misses = Vec::new();
    for (left_out, &condition) in conditions.iter().enumerate().take(conditions_max) {
        let others = conditions.iter().enumerate().filter(|(at, _)| *at != left_out);
        let others: Vec<&str> = others.map(|(_, &condition)| condition).collect();
        let (attribute, value) = parts(condition).map_or((None, None), |(name, value)| (Some(name), value));
        let count = count(pool, &others.join(","), attribute)?;
        if count.objects > 0 {
            let near = value.and_then(|value| nearest(count.values.iter().map(String::as_str), value));
            let values = sorted(&count.values);
            misses.push(NearMiss {
                condition: condition.to_owned(),
                matches: count.objects,
                more: count.has_more_values,
                attribute: attribute.map(str::to_owned),
                more_values: values.len().saturating_sub(VALUES_MAX) as u64,
                nearest: near.map(str::to_owned),
                values: values.into_iter().take(VALUES_MAX).map(str::to_owned).collect(),
            });
        }
    }
    Ok(misses)
}

/// Returns the probable mistakes in a selector, as texts. Makes a request for each attribute that may be misspelled.
pub(super) fn mistakes(pool: &Pool, selector: &str) -> Result<Vec<String>> {
    let others = || undeclared_attributes(pool).unwrap_or_default();
    Ok(texts(selector, &pool.schemas()?, |asked| exists(pool, asked), others))
}

/// Returns whether a selector may have a mistake, without a request.
pub(super) fn is_suspect(pool: &Pool, selector: &str) -> Result<bool> {
    let schemas = pool.schemas()?;
    let has_undeclared = !slips::undeclared(selector, &schemas, &SelectorContext::default()).is_empty();
    Ok(has_undeclared || !texts(selector, &schemas, |_| Ok(false), Vec::new).is_empty())
}

fn texts(
    selector: &str,
    schemas: &[Arc<Schema>],
    exists: impl Fn(&str) -> Result<bool>,
    others: impl Fn() -> Vec<String>,
) -> Vec<String> {
    let found = slips::of(selector, schemas, &SelectorContext::default(), exists, others);
    found.iter().map(|slip| slip.cause().to_owned()).collect()
}

/// See [`crate::PoolReasons::undeclared_attributes`].
pub(super) fn undeclared_attributes(pool: &Pool) -> Result<Vec<String>> {
    let schemas = pool.schemas()?;
    let selector = of_open_schemas(&schemas);
    if pool.depot().is_some() || count_objects(pool, &selector)? > SAMPLED_OF_MAX {
        return Ok(Vec::new());
    }
    let first = ListOptions {
        limit: Some(SAMPLE),
        ..ListOptions::default()
    };
    // `list` would report mistakes itself.
    let mut pages = pool.begin_list(&selector, first)?.wait()?;
    let mut names = BTreeSet::new();
    while let Some(page) = pages.next_page()? {
        for entry in &page {
            let undeclared = entry.attributes().map(|(name, _)| name);
            let undeclared = undeclared.filter(|name| entry.schema().find(name).is_none());
            names.extend(undeclared.map(str::to_owned));
        }
    }
    Ok(names.into_iter().collect())
}

/// Returns a selector without objects of schemas that declare all attributes, where it can exclude them: these have an attribute
/// that no open schema declares.
fn of_open_schemas(schemas: &[Arc<Schema>]) -> String {
    let (open, closed): (Vec<_>, Vec<_>) = schemas.iter().partition(|schema| schema.is_open());
    let own = closed.iter().filter_map(|schema| {
        let mut attributes = schema.attributes().iter().filter(|attribute| !attribute.optional);
        attributes.find(|attribute| open.iter().all(|open| open.find(&attribute.name).is_none()))
    });
    let absent: BTreeSet<String> = own.map(|attribute| format!("not exists({})", attribute.name)).collect();
    Vec::from_iter(absent).join(" and ")
}

/// Whether the pool, or the store behind it, has an object that matches.
fn exists(pool: &Pool, selector: &str) -> Result<bool> {
    if pool.depot().is_none() {
        return Ok(count_objects(pool, selector)? > 0);
    }
    let first = ListOptions {
        limit: Some(1),
        ..ListOptions::default()
    };
    let mut pages = pool.list_with(selector, first)?;
    Ok(pages.next_page()?.is_some_and(|page| !page.is_empty()))
}

/// Values in their order: numbers by size.
fn sorted(values: &BTreeSet<String>) -> Vec<&str> {
    let mut values: Vec<&str> = values.iter().map(String::as_str).collect();
    let number = |value: &&str| value.parse::<f64>().ok();
    if values.iter().all(|value| number(value).is_some()) {
        values.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(std::cmp::Ordering::Equal));
    }
    values
}
