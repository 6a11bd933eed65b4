//! Follows: the visible objects in order, then the later ones, without gap or repetition.
//!
//! ```text
//!   Follow --> first phase (the visible objects with a number <= S, sorted) --> live (all > S, as they become visible)
//!                                                                                 '-- until_live: only what has come by now
//! ```
//! At most `window` deliveries are unreleased at once; the rest is in the follow's queue, which keeps attributes but no
//! payload. An object that is removed before its turn leaves a gap; a superseded one is left out, since the newer
//! version follows. A follow that ends when it has caught up takes nothing new once it is live, delivers the rest of
//! its queue, and ends; there the newer version is not delivered, and the older one leaves a gap.

use std::collections::VecDeque;

use junctura_model::selector::SelectorSet;
use junctura_wire::body::FollowRequest;

use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::group::FollowMembership;
use crate::core::objects::order::{IncrementalSort, ResolvedOrder};

/// One follow.
pub(in crate::core) struct FollowInterest {
    pub(in crate::core) client: u32,
    pub(in crate::core) request: u64,
    pub(in crate::core) selectors: SelectorSet,
    /// The requirement through which it receives; then it receives that requirement's objects instead of matching ones.
    pub(in crate::core) requirement: Option<u32>,
    /// Its membership, if it reads a group: it receives waiting objects of the group, and has no queue.
    pub(in crate::core) member: Option<FollowMembership>,
    pub(in crate::core) sorting: ResolvedOrder,
    pub(in crate::core) window: u32,
    pub(in crate::core) in_flight: u32,
    /// When its reader released an object last.
    pub(in crate::core) progress: Nanoseconds,
    /// It ends when it has caught up.
    pub(in crate::core) until_live: bool,
    /// The pool was draining when it began.
    pub(in crate::core) began_in_drain: bool,
    /// `None` once the follow is live.
    pub(in crate::core) first_phase: Option<IncrementalSort>,
    pub(in crate::core) live: VecDeque<u32>,
}

impl FollowInterest {
    /// Returns the follow of a member.
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
            progress: 0,
            until_live: follow.until_live,
            began_in_drain: false,
            first_phase: None,
            live: VecDeque::new(),
        }
    }

    /// Returns the number of objects in its queue.
    pub(in crate::core) fn queued(&self) -> usize {
        let first = self.first_phase.as_ref().map_or(0, IncrementalSort::len);
        first + self.live.len()
    }

    /// Takes its queue, in no order.
    pub(in crate::core) fn take_queue(&mut self) -> Vec<u32> {
        let mut queue = Vec::from(std::mem::take(&mut self.live));
        if let Some(mut phase) = self.first_phase.take() {
            queue.extend(phase.take_all());
        }
        queue
    }

    /// Returns the group of a member.
    pub(in crate::core) fn group(&self) -> Option<u32> {
        self.requirement.filter(|_| self.member.is_some())
    }

    /// Whether it has caught up, and takes nothing new: it ends after the rest of its queue.
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
    /// It was to end when it has caught up, and it has.
    Over,
}
