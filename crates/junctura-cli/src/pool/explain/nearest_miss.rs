//! The nearest miss of a selector that matches nothing: without which condition something matches, and which values exist there.

use std::collections::BTreeSet;

use junctura::{Code, Error, ListOptions, Pool, Result};
use junctura_model::nearest;
use junctura_terminal::output::StandardOutput;
use serde_json::{Value, json};

use super::conditions::{conditions, parts};
use super::words;

/// Objects that are counted; of more, the text reports it.
const COUNTED_MAX: u64 = 10_000;
/// Values that are shown.
const VALUES_SHOWN: usize = 12;

/// The matches of a selector.
#[derive(Default)]
struct MatchCount {
    objects: u64,
    /// There are more than were counted.
    is_cut: bool,
    /// Values of one attribute.
    values: BTreeSet<String>,
}

/// Objects that match without one condition.
struct NearMiss<'a> {
    condition: &'a str,
    count: MatchCount,
    attribute: Option<&'a str>,
    nearest: Option<String>,
}

/// Counts what a selector matches, and collects the values of an attribute.
fn count(pool: &Pool, selector: &str, attribute: Option<&str>) -> Result<MatchCount> {
    let mut count = MatchCount::default();
    for page in pool.list_with(selector, ListOptions::default())? {
        for entry in page? {
            if count.objects >= COUNTED_MAX {
                count.is_cut = true;
                return Ok(count);
            }
            count.objects += 1;
            let value = attribute.and_then(|name| entry.get(name));
            count.values.extend(value.map(str::to_owned));
        }
    }
    Ok(count)
}

/// Explains why nothing matches.
pub(super) fn explain(pool: &Pool, selector: &str, json: bool, out: &mut StandardOutput) -> Result<()> {
    let visible = visible_objects(pool)?;
    let misses = if visible == 0 {
        Vec::new()
    } else {
        near_misses(pool, selector)?
    };
    if json {
        let without: Vec<Value> = misses.iter().map(document).collect();
        return out.json(&json!({"selector": selector, "matches": 0, "of": visible, "without": without}));
    }
    match visible {
        0 => writeln!(out, "nothing matches: the pool has no objects")?,
        _ => writeln!(out, "nothing matches: 0 of {}", words::count(visible, "object"))?,
    }
    for miss in &misses {
        write(miss, out)?;
    }
    if visible > 0 && misses.is_empty() {
        writeln!(out, "  nothing matches without any single condition either")?;
    }
    Ok(())
}

/// The number of visible objects.
fn visible_objects(pool: &Pool) -> Result<u64> {
    let stat: Value =
        serde_json::from_str(&pool.stat()?).map_err(|error| Error::new(Code::Protocol, "stat", error.to_string()))?;
    Ok(stat["objects"]["visible"].as_u64().unwrap_or_default())
}

fn near_misses<'a>(pool: &Pool, selector: &'a str) -> Result<Vec<NearMiss<'a>>> {
    let conditions = conditions(selector);
    let mut misses = Vec::new();
    for (left_out, &condition) in conditions.iter().enumerate() {
        let others = conditions.iter().enumerate().filter(|(at, _)| *at != left_out);
        let others: Vec<&str> = others.map(|(_, &condition)| condition).collect();
        let (attribute, value) = parts(condition).map_or((None, None), |(name, value)| (Some(name), value));
        let count = count(pool, &others.join(","), attribute)?;
        if count.objects > 0 {
            let near = value.and_then(|value| nearest(count.values.iter().map(String::as_str), value));
            let nearest = near.map(str::to_owned);
            misses.push(NearMiss {
                condition,
                count,
                attribute,
                nearest,
            });
        }
    }
    Ok(misses)
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

fn document(miss: &NearMiss<'_>) -> Value {
    let values = sorted(&miss.count.values);
    json!({
        "condition": miss.condition,
        "matches": miss.count.objects,
        "more": miss.count.is_cut,
        "attribute": miss.attribute,
        "values": values.iter().take(VALUES_SHOWN).collect::<Vec<_>>(),
        "more_values": values.len().saturating_sub(VALUES_SHOWN),
        "nearest": miss.nearest,
    })
}

fn write(miss: &NearMiss<'_>, out: &mut StandardOutput) -> Result<()> {
    let least = if miss.count.is_cut { "more than " } else { "" };
    let matches = words::count(miss.count.objects, "object");
    writeln!(out, "  without {}: {least}{matches}", miss.condition)?;
    let values = sorted(&miss.count.values);
    let (Some(attribute), false) = (miss.attribute, values.is_empty()) else {
        return Ok(());
    };
    let shown: Vec<&str> = values.iter().take(VALUES_SHOWN).copied().collect();
    let more = match values.len().saturating_sub(VALUES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let meant = miss
        .nearest
        .as_ref()
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    writeln!(out, "    {attribute} is {}{more}{meant}", shown.join("/"))
}
