//! Consumer groups: a requirement with a name whose members share what it is owed.
//!
//! ```text
//!             handed out                      released
//!   waiting -------------> with one member -------------> done
//!      ^                          |
//!      '--------------------------'  its client is gone, or gave it back unread
//! ```
//! What is owed is in exactly one of these states. What waits stands by its sequence number, so what comes back is the first
//! to go out again. Whoever has least in hand is next, and of those with the same the one whose turn was longest ago; who has
//! its window full, or whose client may hold no more, is not asked. So after every event either nothing waits or no member
//! has room, and finding the next member costs no look at the others.
//!
//! A member is *live* once nothing waits any more that was owed when it joined; what comes back later may be older.

use std::collections::BTreeSet;

use crate::core::containers::ordered_ids::OrderedIds;
use crate::core::interests::follow::FollowInterest;

/// What only a group has.
#[derive(Default)]
pub(in crate::core) struct GroupState {
    /// Sequence numbers of what no member has.
    pub(in crate::core) waiting: BTreeSet<u64>,
    /// The follows of its members, in the order in which they joined.
    pub(in crate::core) members: OrderedIds,
    /// Members with room, the next first.
    pub(in crate::core) ready: BTreeSet<Place>,
    /// Members that are not live, by the newest number when they joined.
    pub(in crate::core) joining: BTreeSet<(u64, u32)>,
    /// Deliveries so far.
    pub(in crate::core) turns: u64,
}

/// How much a member has in hand, its last turn, and its follow.
pub(in crate::core) type Place = (u32, u64, u32);

/// What a follow knows of its membership.
pub(in crate::core) struct FollowMembership {
    pub(in crate::core) turn: u64,
    /// The newest sequence number when it joined.
    pub(in crate::core) joined: u64,
    pub(in crate::core) is_live: bool,
}

impl GroupState {
    /// Whether somebody has yet to hear that it is live.
    pub(in crate::core) fn has_joining(&self) -> bool {
        !self.joining.is_empty()
    }
}

pub(in crate::core) fn place(id: u32, member: &FollowMembership, following: &FollowInterest) -> Place {
    (following.in_flight, member.turn, id)
}
