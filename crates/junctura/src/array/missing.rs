//! Names the missing pieces of an array when a wait for it times out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use junctura_layout::Layout;
use junctura_model::selector::quoted;
use junctura_model::{Error, RecordRef, Result, Schema, SelectorSet};
use junctura_wire::body;

use crate::pool::Pool;
use crate::verbs::bundles::{BundleEntry, BundleState};
use crate::verbs::list::{Entry, ListOptions};

/// Maximum number of ranks that are named.
const NAMED_MAX: usize = 16;
/// A layout may claim any number of ranks without elements: the search for missing pieces stops after this many.
const RANKS_SEARCHED_MAX: u64 = 1 << 16;
/// Selects the bundles of arrays.
pub(crate) const ARRAYS: &str = "exists(piece_of)";

/// Adds the missing pieces to the error, if the array is incomplete.
pub(super) fn named(pool: &Pool, target: &body::TargetBody<'_>, error: &Error, waited: Duration) -> Error {
    let lacks = lacks(pool, target, error, waited).ok().flatten();
    lacks.unwrap_or_else(|| error.clone())
}

fn lacks(pool: &Pool, target: &body::TargetBody<'_>, error: &Error, waited: Duration) -> Result<Option<Error>> {
    for bundle in pool.bundles(ARRAYS, None)? {
        if let Some(mut lacking) = LackingArray::of(pool, target, &bundle)? {
            lacking.look(pool)?;
            return Ok(Some(lacking.says(error, waited)));
        }
    }
    Ok(None)
}

/// An array that lacks pieces.
#[derive(Debug)]
pub(crate) struct LackingArray<'b> {
    bundle: &'b BundleEntry,
    key: String,
    piece_of: &'b str,
    /// `None`: its text is too long to be stored there.
    layout: Option<Layout>,
    there: BTreeSet<u64>,
}

impl<'b> LackingArray<'b> {
    /// `None` if the bundle is not that of an incomplete array, or of another array.
    pub(crate) fn of(pool: &Pool, target: &body::TargetBody<'_>, bundle: &'b BundleEntry) -> Result<Option<Self>> {
        let Some((piece_of, layout)) = open_array(bundle) else {
            return Ok(None);
        };
        let key = key_if_meant(target, &pool.schemas()?, piece_of)?;
        Ok(key.map(|key| Self {
            bundle,
            key,
            piece_of,
            layout: layout.parse().ok(),
            there: BTreeSet::new(),
        }))
    }

    /// Records which pieces are offered, if their ranks are to be named. Blocks for a list.
    pub(crate) fn look(&mut self, pool: &Pool) -> Result<()> {
        if self.layout.is_none() {
            return Ok(());
        }
        let options = ListOptions {
            bundle: self.bundle.path.as_deref(),
            incomplete: true,
            ..ListOptions::default()
        };
        let rank = |entry: &Entry| entry.get("rank")?.parse::<u64>().ok();
        for page in pool.list_with(&format!("piece_of={}", quoted(self.piece_of)), options)? {
            self.there.extend(page?.iter().filter_map(rank));
        }
        Ok(())
    }

    /// Returns the text of its key.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Returns its layout; `None` if the server does not know the text.
    pub(crate) fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// Returns the number of its pieces that are offered, and of all.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let wanted = self.bundle.declared.unwrap_or(0).saturating_sub(1);
        let there = match &self.layout {
            Some(_) => self.there.len() as u64,
            None => self.bundle.members,
        };
        (there.min(wanted), wanted)
    }

    /// Returns the first ranks whose pieces are missing.
    pub(crate) fn missing_ranks(&self, count_max: usize) -> Vec<u64> {
        let Some(layout) = &self.layout else {
            return Vec::new();
        };
        let missing = (0..layout.ranks().min(RANKS_SEARCHED_MAX))
            .filter(|rank| !self.there.contains(rank) && layout.own(*rank) > 0);
        missing.take(count_max).collect()
    }

    /// Returns the error with the missing pieces.
    pub(crate) fn says(&self, error: &Error, waited: Duration) -> Error {
        Error::new(error.code(), &*self.key, self.missing()).after(waited)
    }

    fn missing(&self) -> String {
        let (there, wanted) = self.counts();
        if self.layout.is_none() {
            return format!("{there} of {wanted} pieces are there");
        }
        let named: Vec<String> = self.missing_ranks(NAMED_MAX).iter().map(u64::to_string).collect();
        let rest = (wanted - there).saturating_sub(named.len() as u64);
        let more = if rest > 0 {
            format!(" and {rest} more")
        } else {
            String::new()
        };
        let ranks = if named.len() == 1 && rest == 0 { "rank" } else { "ranks" };
        format!(
            "of {wanted} pieces, {ranks} {}{more} did not offer theirs",
            named.join(", ")
        )
    }
}

/// Returns the identity and the layout of an incomplete array.
fn open_array(bundle: &BundleEntry) -> Option<(&str, &str)> {
    let attributes = bundle.attributes.as_ref()?;
    let is_open = bundle.state == BundleState::Open;
    is_open.then_some((attributes.get("piece_of")?, attributes.get("layout")?))
}

/// Returns the key of an array, if the target includes it.
fn key_if_meant(target: &body::TargetBody<'_>, schemas: &[Arc<Schema>], piece_of: &str) -> Result<Option<String>> {
    let Some(at) = piece_of.find('{') else { return Ok(None) };
    let (schema, key) = piece_of.split_at(at);
    let Some(number) = schemas.iter().position(|known| known.name() == schema) else {
        return Ok(None);
    };
    let record = schemas[number].parse_key(key)?.into_bytes();
    let record = RecordRef::trusted(&record);
    let is_meant = match target {
        body::TargetBody::Key { schema, record: asked } => {
            usize::from(*schema) == number && **asked == *record.key_bytes(schemas[number].key_len())
        }
        body::TargetBody::Selector(text) => {
            let selectors = SelectorSet::parse(text, schemas)?;
            selectors.of(number).is_some_and(|selector| selector.matches(record))
        }
    };
    Ok(is_meant.then(|| key.to_owned()))
}
