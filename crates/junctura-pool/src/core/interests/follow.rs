//! Follows: what is there, in order, then what comes, without gap or repetition.
//!
//! ```text
//!   Follow --> first phase (the visible objects with a number <= S, sorted) --> live (all > S, as they become visible)
//!                                                                                 '-- until_live: only what has come by now
//! ```
//! At most `window` deliveries are unreleased at once; the rest stands in the follow's queue, which keeps attributes but no
//! payload. Who is gone when its turn comes leaves a gap; who was superseded is left out, since the newer version comes. One that is
//! to end when it has caught up takes nothing new once it is live, gives what stands in its queue, and ends; there a newer version
//! does not come any more, and the older one leaves a gap.

use std::collections::VecDeque;

use junctura_model::selector::SelectorSet;
use junctura_wire::body::FollowRequest;

use crate::core::interests::group::FollowMembership;
use crate::core::objects::order::{IncrementalSort, ResolvedOrder};

/// One follow.
pub(in crate::core) struct FollowInterest {
    pub(in crate::core) client: u32,
    pub(in crate::core) request: u64,
    pub(in crate::core) selectors: SelectorSet,
    /// The requirement through which it receives; its objects come from there and not from matching.
    pub(in crate::core) requirement: Option<u32>,
    /// Where it is a group's: its objects come from what waits there, and not from a queue of its own.
    pub(in crate::core) member: Option<FollowMembership>,
    pub(in crate::core) sorting: ResolvedOrder,
    pub(in crate::core) window: u32,
    pub(in crate::core) in_flight: u32,
    /// It ends when it has caught up.
    pub(in crate::core) until_live: bool,
    /// `None` once the follow is live.
    pub(in crate::core) first_phase: Option<IncrementalSort>,
    pub(in crate::core) live: VecDeque<u32>,
}

impl FollowInterest {
    /// A member's.
    pub(in crate::core) fn of_member(
        client: u32,
        request: u64,
        selectors: SelectorSet,
        requirement: u32,
        follow: &FollowRequest<'_>,
        member: FollowMembership,
    ) -> Self {
        Self {
            client,
            request,
            selectors,
            requirement: Some(requirement),
            member: Some(member),
            sorting: ResolvedOrder::default(),
            window: follow.window,
            in_flight: 0,
            until_live: follow.until_live,
            first_phase: None,
            live: VecDeque::new(),
        }
    }

    /// How many objects stand in its queue.
    pub(in crate::core) fn queued(&self) -> usize {
        let first = self.first_phase.as_ref().map_or(0, IncrementalSort::len);
        first + self.live.len()
    }

    /// The group that it is a member of.
    pub(in crate::core) fn group(&self) -> Option<u32> {
        self.requirement.filter(|_| self.member.is_some())
    }

    /// It has caught up, and takes nothing new: it ends with what stands in its queue.
    pub(in crate::core) fn is_closing(&self) -> bool {
        self.until_live && self.first_phase.is_none() && self.member.is_none()
    }
}

/// The next step of a follow.
pub(in crate::core) enum NextDelivery {
    /// An object of the first phase.
    First(u32),
    /// The first phase is over.
    Live,
    /// An object of the live phase.
    Later(u32),
    /// It was to end when it has caught up, and has.
    Over,
}
