//! Requirements that block others: a stuck one, or one that exceeds its quota, is *broken*.
//!
//! ```text
//!           its readers released nothing for `stuck_after`, and a client waits for memory;
//!           or made to break, and over its quota (without one: a client waits for memory)
//!   whole ------------------------------------------------------------------------------------> broken
//!     ^                                                                                            |
//!     '-------- its readers release its objects, or demand or follow through it; -------------------'
//!               or none of its objects is held, and its reader, which held as much as a client may, releases one
//! ```
//! At half this time the event `stuck` reports it, if it keeps objects and a client waits then.
//!
//! Offers may also wait for room for attributes, or for requirements to be owed less ([`Shortage`]): a stuck
//! requirement is broken as for memory, first the one that keeps most objects, or is owed most.
//!
//! A requirement *keeps* the objects that it is owed and that retention no longer keeps: breaking it frees them. A
//! requirement that keeps nothing is not broken, and none is while the file tier takes payloads that do not fit into
//! memory. Of several that may be broken, the one that keeps most is first. A broken requirement gets gaps for the
//! objects that it will not receive, and counts as one that released: its readers hold their objects until they release
//! them. It is not owed objects that become visible meanwhile, but gets a gap for them when it is whole again.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use crate::core::containers::ordered_ids::OrderedIds;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::named_requirement::seconds;

/// The conditions under which a requirement is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) struct StuckBounds {
    /// It breaks, rather than block others.
    pub(in crate::core) breaks_on_full: bool,
    /// The bytes that it may keep before it breaks; `None`: any number, until a client waits for memory.
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

/// A broken requirement.
pub(in crate::core) struct StuckRequirement {
    pub(in crate::core) since: Nanoseconds,
    pub(in crate::core) why: String,
}

/// The requirements that may be broken.
#[derive(Default)]
pub(in crate::core) struct StuckCandidates {
    /// Requirements that break on full.
    pub(in crate::core) on_full: OrderedIds,
    /// The part that has exceeded its quota in this event.
    pub(in crate::core) over_quota: OrderedIds,
    /// Those that are broken now, by their turns among requirements.
    pub(in crate::core) broken: BTreeMap<u64, u32>,
}
