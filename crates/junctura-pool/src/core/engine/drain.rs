//! The end of a pool in good order: it takes nothing new, gives what requirements are owed, and is over.
//!
//! ```text
//!  serving ---drain---> draining ---nothing is owed any more---> over
//!                          '-----------its time ends-----------> over, and what was left is said
//! ```
//! From the first moment on the pool admits no new client except visitors, which read the counters or hasten the end, and, while a
//! requirement with a name is owed something, readers: they may take what such a requirement is owed, and nothing else. Offers,
//! leases and new requirements are refused, and so are demands for what is not there: nothing will come any more. Whoever
//! waited for memory or for an object is told at once. Bundles that are not complete are aborted, since what they lack will
//! not come. What is there can be looked at until the end.

use std::collections::BTreeMap;

use junctura_model::Result;

use crate::core::engine::timers::Nanoseconds;

/// See the module's page.
#[derive(Default)]
pub(in crate::core) struct DrainState {
    pub(in crate::core) has_begun: bool,
    pub(in crate::core) until: Option<Nanoseconds>,
    /// Client and request of those who wait for the end, and since when.
    pub(in crate::core) askers: BTreeMap<(u32, u64), Nanoseconds>,
    pub(in crate::core) ending: Option<Result<()>>,
}
