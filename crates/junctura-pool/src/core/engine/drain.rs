//! The graceful shutdown of a pool: it accepts nothing new, delivers what requirements are owed, and ends.
//!
//! ```text
//!  serving ---drain---> draining ---nothing is owed any more---> over
//!                          '-----------its time ends-----------> over, with a report of the rest
//! ```
//! From the beginning of the drain the pool admits no new client, with two exceptions: visitors, which read the
//! counters or shorten the drain, and, while a named requirement is owed something, readers, which may receive what
//! such a requirement is owed, and nothing else. Offers, leases and new requirements fail, and so do demands for absent
//! objects: no object will become visible. Requests that wait for memory or for an object fail, very many
//! demands in turns. Incomplete bundles are aborted, since they cannot be completed. Visible objects can be read until the end.

use std::collections::BTreeMap;

use junctura_model::Result;

use crate::core::engine::timers::Nanoseconds;

/// The state of a drain; see the module.
#[derive(Default)]
pub(in crate::core) struct DrainState {
    pub(in crate::core) has_begun: bool,
    pub(in crate::core) until: Option<Nanoseconds>,
    /// The clients and requests that wait for the end, and since when.
    pub(in crate::core) askers: BTreeMap<(u32, u64), Nanoseconds>,
    pub(in crate::core) ending: Option<Result<()>>,
    /// Demands have yet to be refused, in turns.
    pub(in crate::core) refuses: bool,
}
