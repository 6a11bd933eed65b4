//! The key of a version, for explanations of a version alone.

use junctura_model::version::Version;
use junctura_model::{Code, Error, Result};

use super::reasons::ExplainedObject;
use crate::pool::Pool;
use crate::target::Target;
use crate::verbs::list::{Entry, ListOptions};

/// Objects of one part of the list.
const PAGE: u32 = 1000;

/// Explains the visible object of a version. No index has versions, so visible objects are listed until it is found, in parts
/// between which the server serves other clients. Nothing is received: a delivery would count as one.
///
/// # Errors
/// `NotFound` if no visible object has it.
pub(super) fn explain(pool: &Pool, version: Version) -> Result<ExplainedObject> {
    let not_found = |cause: &str| Err(Error::new(Code::NotFound, format!("version {version}"), cause));
    if version.incarnation != pool.connection()?.greeting.incarnation {
        return not_found("it is of another incarnation of the server");
    }
    let mut after: Option<Entry> = None;
    loop {
        let options = ListOptions {
            limit: Some(PAGE),
            after: after.as_deref(),
            ..ListOptions::default()
        };
        let page = pool.list_with("", options)?.entries()?;
        if let Some(entry) = page.iter().find(|entry| entry.version() == version) {
            let key = Target::key_text(entry.key()).in_schema(entry.schema().name());
            return pool.reasons().begin_explain(key, Some(version))?.wait();
        }
        let is_last = page.len() < PAGE as usize;
        after = page.into_iter().next_back();
        if is_last || after.is_none() {
            return not_found(
                "no visible object has it: it was removed or superseded, or is yet to come; with its key, a removed one can be explained",
            );
        }
    }
}
