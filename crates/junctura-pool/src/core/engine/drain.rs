//! The graceful shutdown of a pool: it accepts nothing new, delivers what requirements are owed, and ends.
//!
//! ```text
//!  serving ---drain---> draining ---nothing is owed any more---> over
//!                          '-----------its time ends-----------> over, with a report of the rest
//! ```
//! Follows without a requirement are live readers, and are owed nothing: what was visible when the drain began is delivered
//! to them, and delays the end as long as they take it ([`LastFollow`]).
//!
//! From the beginning of the drain the pool admits no new client, with two exceptions: visitors, which read the
//! counters or shorten the drain, and, while a named requirement is owed something, readers, which may receive what
//! such a requirement is owed, and nothing else. Offers, leases and new requirements fail, and so do demands for absent
//! objects: no object will become visible. Requests that wait for memory or for an object fail at once. Incomplete
//! bundles are aborted, since they cannot be completed. Visible objects can be read until the end.

use std::collections::BTreeMap;
use std::time::Duration;

use junctura_model::Result;

use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::interest::StandingInterest;
use crate::core::interests::interest_id::InterestId;
use crate::core::interests::table::InterestTable;

/// The state of a drain; see the module.
#[derive(Default)]
pub(in crate::core) struct DrainState {
    pub(in crate::core) has_begun: bool,
    pub(in crate::core) until: Option<Nanoseconds>,
    /// The clients and requests that wait for the end, and since when.
    pub(in crate::core) askers: BTreeMap<(u32, u64), Nanoseconds>,
    pub(in crate::core) ending: Option<Result<()>>,
    /// The follows that the end waits for.
    pub(in crate::core) follows: Vec<LastFollow>,
    /// The follows that it no longer waits for, since their readers released nothing.
    pub(in crate::core) stalled: Vec<LastFollow>,
}

/// A follow without a requirement that had objects to receive when the drain began.
///
/// It delays the end until all of them were delivered, and as long as its reader releases something within a time:
/// that in which a requirement is stuck, and 10 s at most.
#[derive(Clone, Copy)]
pub(in crate::core) struct LastFollow {
    pub(in crate::core) interest: InterestId,
    pub(in crate::core) began: Nanoseconds,
}

impl LastFollow {
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Returns when it no longer delays the end; `None`: it does not any more.
    pub(in crate::core) fn until(&self, interests: &InterestTable) -> Option<Nanoseconds> {
        let following = interests
            .still(Some(self.interest))
            .and_then(|id| interests.following_ref(id))?;
        let patience = interests.config.stuck_after.min(Self::PATIENCE).as_nanos() as u64;
        let since = following.progress.max(self.began);
        (following.queued() > 0).then_some(since.saturating_add(patience))
    }
}

impl DrainState {
    /// Notes the follows that have objects to receive.
    pub(in crate::core) fn wait_for_follows(&mut self, interests: &InterestTable, began: Nanoseconds) {
        let plain = |interest: &StandingInterest| match interest {
            StandingInterest::Follow(following) => following.requirement.is_none() && following.queued() > 0,
            _ => false,
        };
        let found = interests.table.iter().filter(|(_, interest)| plain(interest));
        let follows = found.map(|(id, _)| LastFollow {
            interest: interests.refer(id as u32),
            began,
        });
        self.follows = follows.collect();
    }

    /// Forgets the follows that no longer delay the end. This happens before an event, so that what the event delivers
    /// is sent before the end.
    pub(in crate::core) fn forget_follows(&mut self, interests: &InterestTable, now: Nanoseconds) {
        let (stalled, until) = (&mut self.stalled, |follow: &LastFollow| follow.until(interests));
        self.follows.retain(|follow| {
            let waits = until(follow).is_some_and(|until| until > now);
            if !waits && until(follow).is_some() {
                stalled.push(*follow);
            }
            waits
        });
    }

    /// Returns the number of objects that the follows have yet to receive.
    pub(in crate::core) fn undelivered(&self, interests: &InterestTable) -> u64 {
        let following = |follow: &LastFollow| interests.following_ref(interests.still(Some(follow.interest))?);
        let follows = self.follows.iter().filter_map(following);
        follows.map(|following| following.queued() as u64).sum()
    }

    /// Returns when a follow no longer delays the end; the time 0 if one does not any more.
    pub(in crate::core) fn follows_due(&self, interests: &InterestTable) -> Option<Nanoseconds> {
        let waits = !self.follows.is_empty() && self.ending.is_none() && interests.owed == 0;
        let due = |follow: &LastFollow| follow.until(interests).unwrap_or_default();
        self.follows.iter().filter(|_| waits).map(due).min()
    }
}
