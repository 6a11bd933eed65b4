//! The matches of a selector, and the reasons why it matches nothing.

use junctura_model::{Code, Result};
use serde::Serialize;

use super::near_miss::{count_objects, mistakes, near_misses};
use super::{arrays, conditions};
use crate::explain::reasons::{ClientReference, ExplainedObject};
use crate::pool::Pool;
use crate::target::Target;
use crate::verbs::list::ListOptions;

/// Objects that are explained one by one; others are counted.
const OBJECTS_MAX: u32 = 10;

/// Why the objects that a selector matches are in memory, or why it matches none:
/// [`PoolReasons::explain_selector`](crate::PoolReasons::explain_selector).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExplainedSelector {
    /// The selector.
    pub selector: String,
    /// The number of visible objects that match.
    pub matches: u64,
    /// The number of all visible objects.
    pub of: u64,
    /// The first ten that match.
    pub objects: Vec<ExplainedObject>,
    /// How many more match.
    pub more: u64,
    /// If none matches: the conditions without which objects match, of at most 32.
    pub without: Vec<NearMiss>,
    /// If none matches: probable mistakes in the selector, as texts.
    pub mistakes: Vec<String>,
    /// Arrays that it means and that lack pieces.
    pub arrays: Vec<IncompleteArray>,
}

/// A condition without which a selector matches objects.
///
/// ```
/// # use junctura::{Pool, reasons::NearMiss};
/// # fn main() -> junctura::Result<()> {
/// let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "a"), ("level", "850")], b"")?;
/// let miss: &NearMiss = &pool.reasons().explain_selector("level=85")?.without[0];
/// assert_eq!((miss.nearest.as_deref(), miss.values_text().as_deref()), (Some("850"), Some("level is 850")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NearMiss {
    /// The condition.
    pub condition: String,
    /// The number of objects that match without it.
    pub matches: u64,
    /// Whether they have more values of the attribute than were counted.
    pub more: bool,
    /// The attribute, if the condition is about one.
    pub attribute: Option<String>,
    /// The first twelve values of the attribute.
    pub values: Vec<String>,
    /// The number of further values.
    pub more_values: u64,
    /// The value that resembles the one in the condition.
    pub nearest: Option<String>,
}

/// An array of which pieces are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IncompleteArray {
    /// The text of its key.
    pub key: String,
    /// Its epoch, if it has one.
    pub epoch: Option<i64>,
    /// The number of pieces that are offered.
    pub pieces: u64,
    /// The number of all its pieces.
    pub of: u64,
    /// The first sixteen missing pieces. Empty if the server does not know the layout.
    pub missing: Vec<MissingPiece>,
    /// The number of further missing pieces.
    pub more: u64,
    /// The clients that have offered pieces and are connected.
    pub clients: Vec<ClientReference>,
}

/// A piece of an array that no rank has offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MissingPiece {
    /// Its rank in the layout.
    pub rank: u64,
    /// Its elements, as slices: `[0:15, 14:28]`. Blocks that are apart have their bounds: `[0:30, 0:41] in blocks`.
    pub boxes: Vec<String>,
}

impl NearMiss {
    /// Returns the values as a text; `None` without an attribute or a value.
    #[must_use]
    pub fn values_text(&self) -> Option<String> {
        let attribute = self.attribute.as_ref().filter(|_| !self.values.is_empty())?;
        let more = match self.more_values {
            _ if self.more => " and more".to_owned(),
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("{attribute} is {}{more}", self.values.join("/")))
    }
}

/// Explains what a selector matches, or why it matches nothing.
pub(super) fn explain(pool: &Pool, selector: &str) -> Result<ExplainedSelector> {
    let matches = count_objects(pool, selector)?;
    let mut explained = ExplainedSelector {
        selector: selector.to_owned(),
        matches,
        of: count_objects(pool, "")?,
        arrays: arrays::incomplete(pool, selector)?,
        ..ExplainedSelector::default()
    };
    if matches == 0 {
        if explained.of > 0 {
            explained.without = near_misses(pool, selector, conditions::CONDITIONS_MAX)?;
        }
        explained.mistakes = mistakes(pool, selector)?;
        return Ok(explained);
    }
    let first = ListOptions {
        limit: Some(OBJECTS_MAX),
        ..ListOptions::default()
    };
    for entry in pool.list_with(selector, first)?.entries()? {
        if entry.is_archived() || explained.objects.len() >= OBJECTS_MAX as usize {
            continue;
        }
        let key = Target::key_text(entry.key()).in_schema(entry.schema().name());
        match pool.reasons().explain(key) {
            Ok(object) => explained.objects.push(object),
            // It has left since it was listed.
            Err(error) if error.code() == Code::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    explained.more = matches.saturating_sub(explained.objects.len() as u64);
    Ok(explained)
}
