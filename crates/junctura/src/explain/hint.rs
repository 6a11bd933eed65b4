//! Hints about a target that nothing matches, what it probably means: in the error of a demand that nothing met in time, and as warnings.

use std::time::Duration;

use junctura_model::selector::quoted;
use junctura_model::{Code, Error, RecordRef, Result};
use junctura_wire::body::TargetBody;

use super::near_miss::{count_objects, mistakes, near_misses};
use crate::pool::Pool;

/// The shortest timeout whose error has a hint: a shorter one is that of a program that polls, which a hint would slow down.
const TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// Conditions that are left out, one at a time, to find a hint.
const CONDITIONS_MAX: usize = 8;
const NO_OBJECTS: &str = "the pool has no objects";

/// Whether the error of a demand with this timeout may have a hint.
pub(crate) fn is_hinted(timeout: Option<Duration>) -> bool {
    timeout.is_some_and(|timeout| timeout >= TIMEOUT_MIN)
}

/// Adds a hint to the `Timeout` of a demand; other errors stay as they are. Blocks for some requests.
pub(crate) fn hinted(pool: &Pool, target: &TargetBody<'_>, error: Error) -> Error {
    if error.code() != Code::Timeout {
        return error;
    }
    let Ok(Some(hint)) = hint(pool, target) else {
        return error;
    };
    let with_hint = Error::new(error.code(), error.subject(), format!("{}; {hint}", error.cause()));
    match error.waited() {
        Some(waited) => with_hint.after(waited),
        None => with_hint,
    }
}

/// Reports the probable mistakes of a selector that matches nothing as warnings of `tracing`. Makes no request unless there is a
/// subscriber and an attribute resembles a declared one.
pub(crate) fn warn_of_mistakes(pool: &Pool, selector: &str) {
    if tracing::enabled!(target: "junctura::selector", tracing::Level::WARN) {
        for mistake in mistakes(pool, selector).unwrap_or_default() {
            tracing::warn!(target: "junctura::selector", selector, "{mistake}");
        }
    }
}

fn hint(pool: &Pool, target: &TargetBody<'_>) -> Result<Option<String>> {
    let Some(selector) = selector_of(pool, target)? else {
        return Ok(None);
    };
    if let Some(mistake) = mistakes(pool, &selector)?.into_iter().next() {
        let is_empty = count_objects(pool, "")? == 0;
        return Ok(Some(if is_empty { NO_OBJECTS.to_owned() } else { mistake }));
    }
    why_nothing_matches(pool, &selector)
}

/// Returns why a selector matches nothing, apart from probable mistakes: the condition without which something matches, and the values
/// that exist; or that the pool has no objects. Blocks for a request for each of the first conditions. `None`: no condition is the
/// only reason.
///
/// # Errors
/// `InvalidSelector`; `Unsupported` from a server of an earlier version.
pub fn why_nothing_matches(pool: &Pool, selector: &str) -> Result<Option<String>> {
    if count_objects(pool, "")? == 0 {
        return Ok(Some(NO_OBJECTS.to_owned()));
    }
    let misses = near_misses(pool, selector, CONDITIONS_MAX)?;
    let best = misses.iter().find(|miss| miss.nearest.is_some()).or(misses.first());
    Ok(best.map(|miss| {
        let values = miss
            .values_text()
            .unwrap_or_else(|| format!("without {}, something matches", miss.condition));
        match (&miss.attribute, &miss.nearest) {
            (Some(attribute), Some(near)) => format!("did you mean {attribute}={near}? {values}"),
            _ => values,
        }
    }))
}

/// Returns the target as a selector; `None` for one that has no conditions to leave out.
fn selector_of(pool: &Pool, target: &TargetBody<'_>) -> Result<Option<String>> {
    let schemas = pool.schemas()?;
    let text = match target {
        TargetBody::Selector(text) => text.to_string(),
        TargetBody::Key { schema, record } => {
            let Some(schema) = schemas.get(usize::from(*schema)) else {
                return Ok(None);
            };
            let attributes = RecordRef::trusted(record).iter();
            let conditions =
                attributes.map(|(id, _, value)| format!("{}={}", schema.attribute(id).name, quoted(value)));
            conditions.collect::<Vec<_>>().join(",")
        }
    };
    Ok((!text.is_empty() && !text.starts_with('{')).then_some(text))
}
