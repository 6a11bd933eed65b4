//! Consumer groups: named requirements whose members share the objects that the requirement is owed.
//!
//! ```text
//!             handed out                      released
//!   waiting -------------> with one member -------------> done
//!      ^                          |
//!      '--------------------------'  its client has disconnected, or returned it unread
//! ```
//! An owed object is in exactly one of these states. Waiting objects are ordered by sequence number, so a redelivered
//! object is the first to be delivered again. The next member is the one with the fewest objects in flight, and of
//! equal ones the one whose turn was longest ago; a member whose window is full, or whose client may hold no more, is
//! skipped. So after every event either no object waits or no member has room, and the next member is found without a
//! look at the others.
//!
//! A member is *live* once no object waits that was owed when it joined; objects that are redelivered later may be
//! older.

use std::collections::BTreeSet;

use crate::core::containers::ordered_ids::OrderedIds;
use crate::core::interests::follow::FollowInterest;

/// The state that only a group has.
#[derive(Default)]
pub(in crate::core) struct GroupState {
    /// Sequence numbers of objects that no member has.
    pub(in crate::core) waiting: BTreeSet<u64>,
    /// The follows of its members, in the order in which they joined.
    pub(in crate::core) members: OrderedIds,
    /// Members with room, the next first.
    pub(in crate::core) ready: BTreeSet<Place>,
    /// Members that are not live, by the newest number when they joined.
    pub(in crate::core) joining: BTreeSet<(u64, u32)>,
    /// The number of deliveries so far.
    pub(in crate::core) turns: u64,
}

/// The number of objects that a member holds, its last turn, and its follow.
pub(in crate::core) type Place = (u32, u64, u32);

/// The membership of a follow.
pub(in crate::core) struct FollowMembership {
    pub(in crate::core) turn: u64,
    /// The newest sequence number when it joined.
    pub(in crate::core) joined: u64,
    pub(in crate::core) is_live: bool,
}

impl GroupState {
    /// Whether a member has yet to be notified that it is live.
    pub(in crate::core) fn has_joining(&self) -> bool {
        !self.joining.is_empty()
    }
}

pub(in crate::core) fn place(id: u32, member: &FollowMembership, following: &FollowInterest) -> Place {
    (following.in_flight, member.turn, id)
}
