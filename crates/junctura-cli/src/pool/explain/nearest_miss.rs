//! The nearest miss of a selector that matches nothing: without which condition something matches, and which values exist there.

use std::collections::BTreeSet;

use junctura::{Pool, Result, TallyOptions};
use junctura_model::nearest;
use junctura_terminal::output::StandardOutput;
use serde_json::{Value, json};

use super::conditions::{conditions, parts};
use super::words;

/// Values that are shown.
const VALUES_SHOWN: usize = 12;

/// The matches of a selector.
#[derive(Default)]
struct MatchCount {
    objects: u64,
    /// They have more values than are collected.
    has_more_values: bool,
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

/// Counts what a selector matches, by the values of an attribute: from the server's index, without a list.
fn count(pool: &Pool, selector: &str, attribute: Option<&str>) -> Result<MatchCount> {
    let by: Vec<&str> = attribute.into_iter().collect();
    let options = TallyOptions {
        by: &by,
        ..TallyOptions::default()
    };
    let tally = pool.tally(selector, options)?;
    let values = tally.groups.iter().flat_map(|group| group.values.iter().flatten());
    Ok(MatchCount {
        objects: tally.objects(),
        has_more_values: tally.others > 0,
        values: values.cloned().collect(),
    })
}

/// Explains why nothing matches.
pub(super) fn explain(pool: &Pool, selector: &str, json: bool, out: &mut StandardOutput) -> Result<()> {
    let visible = count(pool, "", None)?.objects;
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
        "more": miss.count.has_more_values,
        "attribute": miss.attribute,
        "values": values.iter().take(VALUES_SHOWN).collect::<Vec<_>>(),
        "more_values": values.len().saturating_sub(VALUES_SHOWN),
        "nearest": miss.nearest,
    })
}

fn write(miss: &NearMiss<'_>, out: &mut StandardOutput) -> Result<()> {
    let matches = words::count(miss.count.objects, "object");
    writeln!(out, "  without {}: {matches}", miss.condition)?;
    let values = sorted(&miss.count.values);
    let (Some(attribute), false) = (miss.attribute, values.is_empty()) else {
        return Ok(());
    };
    let shown: Vec<&str> = values.iter().take(VALUES_SHOWN).copied().collect();
    let more = match values.len().saturating_sub(VALUES_SHOWN) {
        _ if miss.count.has_more_values => " and more".to_owned(),
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let meant = miss
        .nearest
        .as_ref()
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    writeln!(out, "    {attribute} is {}{more}{meant}", shown.join("/"))
}
