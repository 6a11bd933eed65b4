//! Named requirements: they outlive their clients.
//!
//! ```text
//!                     a client uses it
//!             .-----------------------------.
//!   require   v      the last one stops     |   time to live is over
//!  ---------> used --------------------> unused ----------------------> lapsed
//!             '----------------+------------'
//!                              '--- retract, by any client ---> retracted
//! ```
//! A client uses a requirement during its `Require` request, while it follows or waits through it, and while it holds
//! objects that it delivered. One follow reads at a time. Gaps without a reader are stored for the next reader
//! ([`crate::core::interests::gaps`]).

use std::collections::BTreeSet;

use crate::core::engine::timers::Nanoseconds;

/// The state that only a named requirement has.
pub(in crate::core) struct NamedRequirement {
    pub(in crate::core) name: String,
    /// How long it exists while no client uses it.
    pub(in crate::core) time_to_live: Option<Nanoseconds>,
    /// Long-running `Require` requests of clients.
    pub(in crate::core) users: BTreeSet<(u32, u64)>,
    pub(in crate::core) made: Nanoseconds,
    /// The id of the token whose client made it.
    pub(in crate::core) made_by: Option<u32>,
    pub(in crate::core) last_release: Option<Nanoseconds>,
    /// The time at which it expires, unless a client uses it before.
    pub(in crate::core) lapses: Option<Nanoseconds>,
}

impl NamedRequirement {
    pub(in crate::core) fn new(name: &str, time_to_live: Option<Nanoseconds>, now: Nanoseconds) -> Self {
        Self {
            name: name.to_owned(),
            time_to_live,
            users: BTreeSet::new(),
            made: now,
            made_by: None,
            last_release: None,
            lapses: None,
        }
    }
}

pub(in crate::core) fn subject(name: &str) -> String {
    format!("requirement {name}")
}

/// Returns seconds, for people.
pub(in crate::core) fn seconds(time: Nanoseconds) -> f64 {
    time as f64 / 1e9
}
