//! Reasons: what waits, why an object is in memory or was removed, and what keeps memory.
//!
//! These requests read only. Each answer is bounded in rows looked at and in bytes; a reader asks for the next part with the place that the
//! last answer returned, so nothing is kept for it here.
//!
//! | request | walks | at most in one answer |
//! |---|---|---|
//! | `Waits` | clients in order, the requests of each | [`ROWS_MAX`] requests, [`LOOKS_MAX`] looks for causes |
//! | `Explain` | one object; deliveries of clients for its holders | [`HELD_MAX`] deliveries |
//! | `Keepers` | the table of objects, then deliveries | [`ROWS_MAX`] rows with something in them |

mod causes;
mod explain;
mod keepers;
mod references;
mod waits;

use junctura_model::Result;
use junctura_wire::reasons::ReasonReference;
use junctura_wire::{Reply, Request};

use crate::PoolConfig;
use crate::core::engine::Core;
use crate::core::engine::drain::DrainState;
use crate::core::exchange::ObjectExchange;

/// Rows that one answer looks at.
pub(in crate::core) const ROWS_MAX: usize = 4096;
/// Looks at other objects, offers and requirements for the causes in one answer.
const LOOKS_MAX: usize = 4096;
/// Of them, for one request.
const LOOKS_EACH: usize = 512;
/// Deliveries that are looked at for the holders of an object.
const HELD_MAX: usize = 1 << 16;
/// References of one request.
const REFERENCES_MAX: usize = 5;
/// Characters of a selector or a key.
const TEXT_MAX: usize = 300;
/// Holders of an object, and requirements that are owed it.
const NAMED_MAX: usize = 100;
/// Requirements and bundles that keep most.
const KEEPERS_MAX: usize = 20;

/// A pool, to be read for reasons.
#[derive(Clone, Copy)]
pub struct PoolReasons<'a> {
    config: &'a PoolConfig,
    exchange: &'a ObjectExchange,
    drain: &'a DrainState,
}

impl Core {
    /// Returns the pool, to be read for reasons.
    #[must_use]
    pub fn reasons(&self) -> PoolReasons<'_> {
        PoolReasons {
            config: &self.config,
            exchange: &self.exchange,
            drain: &self.drain,
        }
    }
}

impl PoolReasons<'_> {
    /// Returns the answer to a request about reasons.
    pub(in crate::core) fn answer(self, asked: &Request<'_>) -> Result<Option<Reply<'static>>> {
        Ok(Some(match asked {
            Request::Waits(asked) => Reply::Waiting(self.waits(asked)),
            Request::Explain(asked) => Reply::Explained(Box::new(self.explain(asked)?)),
            Request::Keepers(asked) => Reply::Kept(Box::new(self.keepers(asked))),
            _ => return Ok(None),
        }))
    }
}

/// Why a request waits, and for what.
struct WaitCause {
    because: &'static str,
    on: Vec<ReasonReference>,
    more: u64,
}

impl WaitCause {
    fn of(because: &'static str) -> Self {
        Self {
            because,
            on: Vec::new(),
            more: 0,
        }
    }

    fn on(because: &'static str, on: impl IntoIterator<Item = ReasonReference>) -> Self {
        let mut all = on.into_iter();
        let on = all.by_ref().take(REFERENCES_MAX).collect();
        let more = all.count() as u64;
        Self { because, on, more }
    }
}

/// How many more looks an answer may take.
struct LookBudget {
    left: usize,
}

impl LookBudget {
    /// Looks for one cause.
    fn for_one(&self) -> usize {
        self.left.min(LOOKS_EACH)
    }

    fn spend(&mut self, looks: usize) {
        self.left = self.left.saturating_sub(looks);
    }
}

/// The beginning of a text.
fn short(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

fn to_milliseconds(time: u64) -> u64 {
    time / 1_000_000
}
