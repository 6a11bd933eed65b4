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
//! objects: no object will become visible. Requests that wait for memory or for an object fail, very many demands in
//! turns. Incomplete bundles are aborted, since they cannot be completed. Visible objects can be read until the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use junctura_model::Result;

use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::follow::FollowInterest;
use crate::core::interests::interest_id::InterestId;
use crate::core::interests::table::InterestTable;

/// The state of a drain; see the module.
#[derive(Default)]
pub(in crate::core) struct DrainState {
    pub(in crate::core) has_begun: bool,
    pub(in crate::core) began: Nanoseconds,
    pub(in crate::core) until: Option<Nanoseconds>,
    /// The clients and requests that wait for the end, and since when.
    pub(in crate::core) askers: BTreeMap<(u32, u64), Nanoseconds>,
    pub(in crate::core) ending: Option<Result<()>>,
    /// Interests have yet to be looked at, in turns: waiting demands are refused, and the last follows are found.
    pub(in crate::core) looks: bool,
    /// The follows that the end waits for. Those behind the first may have received everything by now.
    pub(in crate::core) follows: BTreeSet<LastFollow>,
    /// The follows that it no longer waits for, since their readers released nothing.
    pub(in crate::core) stalled: Vec<LastFollow>,
}

/// A follow without a requirement that had objects to receive when the drain began.
///
/// It delays the end until all were delivered, and as long as its reader releases something within a time:
/// that in which a requirement is stuck, and 10 s at most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::core) struct LastFollow {
    /// It delays the end until then, or longer if its reader has released something since this was found out.
    at: Nanoseconds,
    pub(in crate::core) interest: InterestId,
}

impl LastFollow {
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Returns a follow as one that the end waits for; `None`: it does not.
    fn of(interests: &InterestTable, interest: InterestId, began: Nanoseconds) -> Option<Self> {
        let id = interests.still(Some(interest))?;
        let following = interests.following_ref(id)?;
        let patience = interests.config.stuck_after.min(Self::PATIENCE).as_nanos() as u64;
        let at = following.progress.max(began).saturating_add(patience);
        (interests.yet_to_receive(id) > 0).then_some(Self { at, interest })
    }
}

impl DrainState {
    /// Notes an interest if it is a follow that began before, and has objects to receive.
    pub(in crate::core) fn wait_for(&mut self, interests: &InterestTable, id: u32) {
        let is_plain = |one: &FollowInterest| one.requirement.is_none() && !one.began_in_drain;
        if interests.following_ref(id).is_some_and(is_plain) {
            let last = LastFollow::of(interests, interests.refer(id), self.began);
            self.follows.extend(last);
        }
    }

    /// Forgets the follows that no longer delay the end, so many in one event. This happens before the event, so that
    /// what it delivers is sent before the end.
    pub(in crate::core) fn forget_follows(&mut self, interests: &InterestTable, now: Nanoseconds) {
        for _ in 0..interests.config.due_at_once.max(1) {
            let Some(first) = self.follows.first() else { return };
            let present = LastFollow::of(interests, first.interest, self.began);
            if first.at > now && present.is_some() {
                return;
            }
            self.follows.pop_first();
            match present {
                Some(present) if present.at > now => _ = self.follows.insert(present),
                Some(present) => self.stalled.push(present),
                None => {}
            }
        }
    }

    /// Returns the follows that the end waits for and that have yet to receive objects, with their number.
    pub(in crate::core) fn last_follows(&self, interests: &InterestTable) -> impl Iterator<Item = (u32, usize)> {
        have_yet_to_receive(self.follows.iter(), interests)
    }

    /// Returns all follows that have yet to receive objects, with their number; also those that the end no longer waits for.
    pub(in crate::core) fn unserved_follows(&self, interests: &InterestTable) -> impl Iterator<Item = (u32, usize)> {
        have_yet_to_receive(self.follows.iter().chain(&self.stalled), interests)
    }

    /// Returns when a follow no longer delays the end; the time 0 if none does any more.
    pub(in crate::core) fn follows_due(&self, interests: &InterestTable) -> Option<Nanoseconds> {
        let waits = self.ending.is_none() && interests.owed == 0;
        let mut follows = self.follows.iter().filter(|_| waits).peekable();
        follows.peek()?;
        let is_waiting = |follow: &&LastFollow| LastFollow::of(interests, follow.interest, self.began).is_some();
        Some(follows.find(is_waiting).map_or(0, |follow| follow.at))
    }
}

fn have_yet_to_receive<'a>(
    follows: impl Iterator<Item = &'a LastFollow>,
    interests: &InterestTable,
) -> impl Iterator<Item = (u32, usize)> {
    let still = follows.filter_map(|follow| interests.still(Some(follow.interest)));
    still
        .map(|id| (id, interests.yet_to_receive(id)))
        .filter(|&(_, count)| count > 0)
}
