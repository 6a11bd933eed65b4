//! The reasons why requests of this command itself wait, as text.

use junctura::reasons::WaitingRequest;
use junctura::{Pool, Result};

use super::chains::WaitGraph;
use super::{WAITS_MAX, memory, waits, words};

/// Returns what the offers and bundles of a pool's own client wait for, in a line for each reason; `None` if none waits.
///
/// # Errors
/// Those of the requests to the server.
pub(crate) fn waits_of_offers(pool: &Pool) -> Result<Option<String>> {
    let client = pool.client()?;
    let all = WaitGraph::new(pool.reasons().waits(WAITS_MAX)?);
    let is_offer = |request: &&WaitingRequest| ["offer", "lease", "bundle"].contains(&request.kind.as_str());
    let own: Vec<&WaitingRequest> = all.waits_of(client).filter(is_offer).collect();
    let Some(first) = own.first() else {
        return Ok(None);
    };
    let ends = first
        .ends_in_ms
        .map_or_else(String::new, |ends| format!(", at most {} more", words::time(ends)));
    let mut lines = vec![format!("{}{ends}", words::cause(first))];
    lines.extend(first.on.iter().map(words::reference));
    if waits::lacks_memory(&own) {
        lines.extend(memory::causes(pool)?);
    }
    Ok(Some(lines.join("\n  ")))
}
