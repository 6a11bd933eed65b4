//! The reasons why requests of this command itself wait, as text.

use junctura::reasons::{KeptSum, RequirementReference, WaitingRequest};
use junctura::{Pool, Result};

use super::chains::WaitGraph;
use super::{WAITS_MAX, memory, waits, words};

/// A reader that has released nothing for so long, in milliseconds, is reported to keep a withdrawal waiting.
const STALLED_MS: u64 = 3000;

/// The reasons for which the memory of a pool is full.
#[derive(Clone, Debug)]
pub struct FullMemory {
    /// The reason that keeps the most memory, an example object and the remedy, in one line.
    pub causes: String,
    /// Whether memory becomes free without a withdrawal.
    pub frees_itself: bool,
}

/// Returns the reasons for which the memory of a pool is in use; `None` if no object is in memory.
///
/// # Errors
/// Those of the requests to the server.
pub fn full_memory(pool: &Pool) -> Result<Option<FullMemory>> {
    let keepers = pool.reasons().keepers()?;
    let causes = memory::causes_of(pool, &keepers)?;
    let lines: Vec<&str> = causes.iter().map(|line| line.trim()).collect();
    // Each object has one retention; besides, requirements are owed it and clients hold it.
    let frees_itself = |sum: &KeptSum| match sum.because.as_str() {
        "until_withdrawn" => false,
        "owed" | "held" => sum.alone_bytes > 0,
        _ => sum.bytes > 0,
    };
    Ok((!lines.is_empty()).then(|| FullMemory {
        causes: lines.join("; "),
        frees_itself: keepers.sums.iter().any(frees_itself),
    }))
}

/// Returns what the offers and bundles of a pool's own client wait for, in a line for each reason; `None` if none waits.
///
/// # Errors
/// Those of the requests to the server.
pub fn waits_of_offers(pool: &Pool) -> Result<Option<String>> {
    waits_of(pool, &["offer", "lease", "bundle"], |_| true)
}

/// Returns the reasons for which the withdrawals of a pool's own client wait, as [`waits_of_offers`]; `None` also if the
/// objects have readers that have released something in the last seconds.
///
/// # Errors
/// Those of the requests to the server.
pub fn waits_of_withdrawals(pool: &Pool) -> Result<Option<String>> {
    let is_stalled = |one: &RequirementReference| !one.is_read || one.idle_ms.is_some_and(|idle| idle >= STALLED_MS);
    waits_of(pool, &["withdraw"], |request| {
        let mut named = request.on.iter().filter_map(|one| one.requirement.as_ref());
        named.any(is_stalled)
    })
}

fn waits_of(pool: &Pool, kinds: &[&str], is_reported: impl Fn(&WaitingRequest) -> bool) -> Result<Option<String>> {
    let client = pool.client()?;
    let all = WaitGraph::new(pool.reasons().waits(WAITS_MAX)?);
    let is_one = |request: &&WaitingRequest| kinds.contains(&request.kind.as_str()) && is_reported(request);
    let own: Vec<&WaitingRequest> = all.waits_of(client).filter(is_one).collect();
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
    } else if waits::is_full(&own) {
        lines.extend(memory::holders(&pool.reasons().keepers()?));
    }
    Ok(Some(lines.join("\n  ")))
}
