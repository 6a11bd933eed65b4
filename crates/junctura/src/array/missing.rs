//! Whose pieces an array lacks, for those who have waited for it in vain.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use junctura_layout::Layout;
use junctura_model::selector::quoted;
use junctura_model::{Error, RecordRef, Result, Schema, SelectorSet};
use junctura_wire::body;

use crate::bundles::{BundleEntry, BundleState};
use crate::list::ListOptions;
use crate::pool::Pool;
use crate::target::Target;

/// So many are named.
const NAMED_MAX: usize = 16;

/// The error, with what is missing, if the array is there in part.
pub(super) fn named(pool: &Pool, target: &Target<'_>, error: &Error, waited: Duration) -> Error {
    let lacks = lacks(pool, target).ok().flatten();
    lacks.map_or_else(
        || error.clone(),
        |(key, lacks)| {
            let cause = format!("{lacks}, after {:.1} s", waited.as_secs_f64());
            Error::new(error.code(), key, cause)
        },
    )
}

fn lacks(pool: &Pool, target: &Target<'_>) -> Result<Option<(String, String)>> {
    let schemas = pool.schemas()?;
    for bundle in pool.bundles("exists(piece_of)")? {
        let Some((piece_of, layout)) = open_array(&bundle) else {
            continue;
        };
        if let Some(key) = key_if_meant(pool, target, &schemas, piece_of)? {
            return Ok(Some((key, says(pool, &bundle, piece_of, layout)?)));
        }
    }
    Ok(None)
}

/// What an array that is not complete is, and how it lies.
fn open_array(bundle: &BundleEntry) -> Option<(&str, &str)> {
    let attributes = bundle.attributes.as_ref()?;
    let is_open = bundle.state == BundleState::Open;
    is_open.then_some((attributes.get("piece_of")?, attributes.get("layout")?))
}

/// The key of an array, if it is one that was asked for.
fn key_if_meant(pool: &Pool, target: &Target<'_>, schemas: &[Arc<Schema>], piece_of: &str) -> Result<Option<String>> {
    let Some(at) = piece_of.find('{') else { return Ok(None) };
    let (schema, key) = piece_of.split_at(at);
    let Some(number) = schemas.iter().position(|known| known.name() == schema) else {
        return Ok(None);
    };
    let record = schemas[number].parse_key(key)?.into_bytes();
    let record = RecordRef::trusted(&record);
    let is_meant = match pool.connection()?.resolve(target)? {
        body::Target::Key { schema, record: asked } => {
            usize::from(schema) == number && *asked == *record.key_bytes(schemas[number].key_len())
        }
        body::Target::Selector(text) => {
            let selectors = SelectorSet::parse(&text, schemas)?;
            selectors.of(number).is_some_and(|selector| selector.matches(record))
        }
    };
    Ok(is_meant.then(|| key.to_owned()))
}

fn says(pool: &Pool, bundle: &BundleEntry, piece_of: &str, layout: &str) -> Result<String> {
    let wanted = bundle.declared.unwrap_or(0).saturating_sub(1);
    let Ok(layout) = layout.parse::<Layout>() else {
        return Ok(format!("{} of {wanted} pieces are there", bundle.members.min(wanted)));
    };
    let mut there = BTreeSet::new();
    let options = ListOptions {
        bundle: bundle.path.as_deref(),
        incomplete: true,
        ..ListOptions::default()
    };
    for page in pool.list_with(&options, &format!("piece_of={}", quoted(piece_of)))? {
        let ranks = page?.into_iter();
        there.extend(ranks.filter_map(|entry| entry.get("rank")?.parse::<u64>().ok()));
    }
    let missing = (0..layout.ranks()).filter(|rank| !there.contains(rank) && layout.own(*rank) > 0);
    let named: Vec<String> = missing.clone().take(NAMED_MAX).map(|rank| rank.to_string()).collect();
    let rest = wanted.saturating_sub((there.len() + named.len()) as u64);
    let more = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    let ranks = if named.len() == 1 && rest == 0 { "rank" } else { "ranks" };
    Ok(format!(
        "of {wanted} pieces, {ranks} {}{more} did not offer theirs",
        named.join(", ")
    ))
}
