//! Requirements that keep others waiting: a stuck one, or one that has gone over its quota, is *broken*.
//!
//! ```text
//!           its readers released nothing for `stuck_after`, and somebody waits for memory;
//!           or made to break, and over its quota (without one: somebody waits for memory)
//!   whole ------------------------------------------------------------------------------------> broken
//!     ^                                                                                            |
//!     '-------- its readers release what came through it, or demand or follow through it; ----------'
//!               or nobody holds any of it, and its reader, which held as much as a client may, releases something
//! ```
//! At half of that time the event `stuck` reports it, if it keeps something and somebody waits then.
//!
//! Offers may also wait for room for attributes, or for requirements to be owed less ([`Shortage`]): what is stuck then is broken
//! as for memory, the one that keeps most objects, or is owed most, first.
//!
//! What a requirement *keeps* is what it is owed and retention keeps no longer: breaking it frees that, and nobody is broken
//! who keeps nothing, nor while the file tier takes what memory has no room for. Of several that may be broken, the one that keeps most is first. One that is broken is told what it
//! will not get, and counts as one that released: what its readers hold is theirs until they release it, and what comes
//! meanwhile is not owed to it, but told in a gap when it is whole again.

use std::fmt::{Display, Formatter};

use crate::core::containers::ordered_ids::OrderedIds;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::named_requirement::seconds;

/// When a requirement is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) struct StuckBounds {
    /// It is made to break, rather than to make others wait.
    pub(in crate::core) breaks_on_full: bool,
    /// Bytes that it may keep before it does; `None`: any, until somebody waits for memory.
    pub(in crate::core) quota: Option<u64>,
    pub(in crate::core) stuck_after: Nanoseconds,
}

impl Display for StuckBounds {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match (self.breaks_on_full, self.quota) {
            (false, _) => write!(f, "lets offers wait")?,
            (true, None) => write!(f, "breaks when memory is full")?,
            (true, Some(quota)) => write!(f, "breaks beyond {quota} bytes")?,
        }
        write!(f, " and is stuck after {} s", seconds(self.stuck_after))
    }
}

/// A requirement that is broken.
pub(in crate::core) struct StuckRequirement {
    pub(in crate::core) since: Nanoseconds,
    pub(in crate::core) why: String,
}

/// What the core remembers of those that may be broken.
#[derive(Default)]
pub(in crate::core) struct StuckCandidates {
    /// Requirements that are made to break.
    pub(in crate::core) on_full: OrderedIds,
    /// Of them, those that have gone over their quota in this event.
    pub(in crate::core) over_quota: OrderedIds,
}
