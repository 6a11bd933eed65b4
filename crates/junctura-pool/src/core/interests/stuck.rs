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
//! Offers may also wait for room for attributes, or for requirements to be owed less ([`Shortage`]): what is stuck then is broken
//! as for memory, the one that keeps most objects, or is owed most, first.
//!
//! What a requirement *keeps* is what it is owed and retention keeps no longer: breaking it frees that, and nobody is broken
//! who keeps nothing, nor while the file tier takes what memory has no room for. Of several that may be broken, the one that keeps most is first. One that is broken is told what it
//! will not get, and counts as one that released: what its readers hold is theirs until they release it, and what comes
//! meanwhile is not owed to it, but told in a gap when it is whole again.

use std::fmt::{Display, Formatter};

use junctura_model::{Code, Error};
use junctura_wire::body::events;

use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::engine::timers::{NOBODY, Timer};
use crate::core::interests::interest::Interest;
use crate::core::interests::named_requirement::seconds;
use crate::core::interests::ordered_ids::OrderedIds;
use crate::core::interests::requirement::{Requirement, Whose};
use crate::core::memory::shortage::Shortage;
use crate::{BrokenRequirement, Effects};

/// How long a requirement that is stuck, but keeps nothing, is left alone before it is looked at again.
const LOOK_AGAIN: Nanoseconds = 1_000_000_000;

/// So many times longer than a client that sends requests, a client that sends none may keep memory that it was asked for: its
/// program may be computing what it fills the memory with, and reads nothing meanwhile.
const SILENT_TIMES: u64 = 10;
/// A request that comes sooner after a client was asked for memory may have been sent before.
const SENT_BEFORE: Nanoseconds = 1_000_000_000;

/// The timer for the next look; requirements have those of smaller numbers.
const LOOK: u64 = u64::MAX;

/// When a requirement is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) struct Bounds {
    /// It is made to break, rather than to make others wait.
    pub(in crate::core) breaks_on_full: bool,
    /// Bytes that it may keep before it does; `None`: any, until somebody waits for memory.
    pub(in crate::core) quota: Option<u64>,
    pub(in crate::core) stuck_after: Nanoseconds,
}

impl Display for Bounds {
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
pub(in crate::core) struct Broken {
    pub(in crate::core) since: Nanoseconds,
    pub(in crate::core) why: String,
}

/// That a client is asked for leased memory in which nothing lies, and has put nothing anywhere since.
pub(in crate::core) struct Recall {
    since: Nanoseconds,
    /// When it first sent a request since then.
    heard: Option<Nanoseconds>,
}

/// What the core remembers of those that may be broken.
#[derive(Default)]
pub(in crate::core) struct Breakers {
    /// Requirements that are made to break.
    pub(in crate::core) on_full: OrderedIds,
    /// Of them, those that have gone over their quota in this event.
    pub(in crate::core) over_quota: OrderedIds,
}

/// When those are looked for that keep others waiting.
#[derive(Default)]
pub(in crate::core) struct StuckWatch {
    /// When the next look for stuck ones is due.
    pub(in crate::core) looks: Option<Nanoseconds>,
    /// Since when somebody waits for memory.
    pub(in crate::core) waits_since: Option<Nanoseconds>,
}

impl Core {
    pub(in crate::core) fn watch_no_more(&mut self, id: u32) {
        self.interests.breakers.on_full.remove(id);
        self.interests.breakers.over_quota.remove(id);
        if self.interests.requirements.is_empty() {
            self.timers.cancel(NOBODY, LOOK);
            self.stuck_watch.looks = None;
        }
    }

    pub(in crate::core) fn somebody_waits_for_memory(&self) -> bool {
        self.stalled.wait_for(Shortage::Payload) || !self.waiting_leases.is_empty()
    }

    /// The same, or for room for records: both are free when objects that a store has leave the pool.
    pub(in crate::core) fn somebody_waits_for_room(&self) -> bool {
        self.somebody_waits_for_memory() || self.stalled.wait_for(Shortage::Records)
    }

    /// Somebody waits for memory, and it does not come from the file tier either, nor from what is on its way out, nor from what
    /// a store has.
    fn somebody_waits_in_vain(&self) -> bool {
        self.somebody_waits_for_memory() && !self.is_spilling() && !self.is_behind() && !self.room.has_spare()
    }

    /// The same for what else an offer may wait for, which no payload makes room for that moves to the file tier.
    fn somebody_lacks(&self, shortage: Shortage) -> bool {
        let waits_in_vain = || self.stalled.wait_for(shortage) && !self.is_behind();
        match shortage {
            Shortage::Payload => self.somebody_waits_in_vain(),
            Shortage::Records => waits_in_vain() && !self.room.has_spare(),
            Shortage::Owed => waits_in_vain(),
        }
    }

    /// Breaks one requirement that is made to break, if it is time to.
    pub(in crate::core) fn break_on_full(&mut self, fx: &mut impl Effects) -> bool {
        while let Some(id) = self.interests.breakers.over_quota.pop_last() {
            // What follows in the same event may have brought it below again.
            let over = self.interests.requirement_ref(id).and_then(Requirement::quota_exceeded);
            if let Some(quota) = over {
                self.break_requirement(id, &format!("it kept more than its quota of {quota} bytes"), fx);
                return true;
            }
        }
        let is_full = self.somebody_waits_in_vain() || self.somebody_lacks(Shortage::Records);
        if self.interests.breakers.on_full.is_empty() || !is_full {
            return false;
        }
        let keeps = |id: u32| {
            let one = self.interests.requirement_ref(id)?;
            (one.bounds.quota.is_none() && one.kept > 0).then_some((one.kept, id))
        };
        let Some((_, id)) = self.interests.breakers.on_full.iter().filter_map(keeps).max() else {
            return false;
        };
        self.break_requirement(id, "memory is full", fx);
        true
    }

    /// While somebody waits for memory, the time is watched at which the next requirement may be stuck.
    pub(in crate::core) fn watch_for_stuck(&mut self) {
        if self.somebody_waits_for_memory() {
            if self.stuck_watch.waits_since.is_none() {
                self.stuck_watch.waits_since = Some(self.timers.now);
                // What clients sent while nobody waited says nothing of what they have read since.
                for recall in self.recalled.values_mut() {
                    recall.heard = None;
                }
            }
        } else {
            self.stuck_watch.waits_since = None;
        }
        let lacks = Shortage::ALL.map(|shortage| self.somebody_lacks(shortage).then_some(shortage));
        if self.stuck_watch.looks.is_some() || lacks == [None; 3] {
            return;
        }
        let keeps_nothing = |one: &Requirement| {
            lacks
                .into_iter()
                .flatten()
                .all(|lack| self.interests.kept_by(&self.objects, one, lack) == 0)
        };
        let whole = self
            .interests
            .requirements
            .iter()
            .filter_map(|id| self.interests.requirement_ref(id));
        let next = whole
            .filter(|one| one.broken.is_none())
            .map(|one| {
                let is_owed = one.owed_len() > 0;
                let since = if is_owed { one.progress } else { self.timers.now };
                let at = since.saturating_add(one.bounds.stuck_after);
                if at <= self.timers.now && keeps_nothing(one) {
                    self.timers.now + LOOK_AGAIN
                } else {
                    at
                }
            })
            .min();
        let hoarders = self
            .recalled
            .iter()
            .map(|(&client, recall)| self.hoards_until(client, recall));
        let hoarders = hoarders.filter(|&at| at < Nanoseconds::MAX).map(|at| {
            if at > self.timers.now {
                at
            } else {
                self.timers.now + LOOK_AGAIN
            }
        });
        if let Some(at) = next.into_iter().chain(hoarders).min() {
            self.stuck_watch.looks = Some(at);
            self.timers.set(at, NOBODY, LOOK, Timer::Stuck);
        }
    }

    /// Breaks those that are stuck, until nobody waits any more.
    pub(in crate::core) fn break_stuck(&mut self, fx: &mut impl Effects) {
        self.stuck_watch.looks = None;
        for shortage in Shortage::ALL {
            while self.somebody_lacks(shortage)
                && let Some(id) = self.interests.most_stuck(&self.objects, &self.timers, shortage)
            {
                let after = self
                    .interests
                    .requirement_ref(id)
                    .map_or(0, |one| one.bounds.stuck_after);
                let wanted = match shortage {
                    Shortage::Payload => "memory",
                    Shortage::Records => "room for attributes",
                    Shortage::Owed => "requirements to be owed less",
                };
                let why = format!(
                    "it released nothing for {} s while others waited for {wanted}",
                    seconds(after)
                );
                self.break_requirement(id, &why, fx);
                self.follow_up(fx);
            }
        }
        while self.somebody_waits_in_vain()
            && let Some(client) = self.hoarder()
        {
            let since = self
                .recalled
                .get(&client)
                .map_or(self.timers.now, |recall| self.others_wait_since(recall));
            let cause = format!(
                "it kept {} bytes of leased memory in which nothing lay for {} s while others waited for memory",
                self.ledger.leased_bytes(client),
                seconds(self.timers.now - since)
            );
            let error = Error::new(Code::LimitExceeded, "lease", cause);
            self.give_up(client, &error, fx);
            self.follow_up(fx);
        }
    }

    /// A client is asked for leased memory in which nothing lies.
    pub(in crate::core) fn note_recall(&mut self, client: u32) {
        if !self.recalled.contains_key(&client) {
            let recall = Recall {
                since: self.timers.now,
                heard: None,
            };
            self.recalled.insert(client, recall);
            self.stuck_watch.looks = None;
        }
    }

    /// A client sends a request: it could have read that it is asked for memory.
    pub(in crate::core) fn note_heard(&mut self, client: u32) {
        let now = self.timers.now;
        let is_silent =
            |recall: &&mut Recall| recall.heard.is_none() && recall.since.saturating_add(SENT_BEFORE) <= now;
        if let Some(recall) = self.recalled.get_mut(&client).filter(is_silent) {
            recall.heard = Some(now);
            self.stuck_watch.looks = None;
        }
    }

    fn hoarding_after(&self) -> Nanoseconds {
        let after = self.config.hoarding_after.unwrap_or(self.config.stuck_after);
        u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)
    }

    fn others_wait_since(&self, recall: &Recall) -> Nanoseconds {
        recall.since.max(self.stuck_watch.waits_since.unwrap_or(recall.since))
    }

    /// Until when a client may keep what it was asked for.
    fn hoards_until(&self, client: u32, recall: &Recall) -> Nanoseconds {
        let (since, after) = (self.others_wait_since(recall), self.hoarding_after());
        if self.keeps_most_unused(client) {
            return since.saturating_add(after);
        }
        let silent = since.saturating_add(after.saturating_mul(SILENT_TIMES));
        let heard = recall.heard.map(|at| at.max(since).saturating_add(after));
        heard.map_or(silent, |heard| heard.min(silent))
    }

    /// Whether a client leases more than half of the memory in segments in which it has never put anything: that is not what a
    /// program leases to fill it.
    fn keeps_most_unused(&self, client: u32) -> bool {
        let its = self.unused.iter().filter(|(_, owner)| **owner == client);
        let bytes = its
            .filter_map(|(&segment, _)| self.ledger.grant(segment))
            .map(|grant| grant.bytes);
        bytes.sum::<u64>() > self.config.budget_bytes / 2
    }

    /// A client that has kept leased memory in which nothing lies for too long, while another one waits for memory.
    fn hoarder(&self) -> Option<u32> {
        let is_waited_for = |client: u32| {
            let mut leases = self.waiting_leases.values().map(|lease| lease.client);
            self.stalled.others_wait_for(Shortage::Payload, client) || leases.any(|other| other != client)
        };
        let is_late = |client: &u32| {
            self.recalled
                .get(client)
                .is_some_and(|recall| self.hoards_until(*client, recall) <= self.timers.now)
        };
        let empty = self.ledger.recallable(0).map(|(client, _)| client);
        empty.filter(is_late).find(|&client| is_waited_for(client))
    }

    fn break_requirement(&mut self, id: u32, why: &str, fx: &mut impl Effects) {
        self.end_beginning(id, fx);
        let since = self.timers.now;
        let Some(requirement) = self.interests.requirement_mut(id) else {
            return;
        };
        requirement.broken = Some(Broken {
            since,
            why: why.to_owned(),
        });
        let (waiting, in_flight) = requirement.owed_by_place();
        self.disappoint(id, &waiting, "broken", fx);
        self.count.broken += 1;
        self.report_broken(id, why, fx);
        let whose = self
            .interests
            .requirement_ref(id)
            .and_then(|one| self.interests.person_of(one));
        self.tell_about_requirement(id, events::BROKEN, whose, why, fx);
        for &object in &in_flight {
            self.forfeit(id, object);
            self.settle_in_turn(object, fx);
        }
        for &object in &waiting {
            self.no_longer_owed(id, object);
            self.settle_in_turn(object, fx);
        }
    }

    fn report_broken(&self, id: u32, why: &str, fx: &mut impl Effects) {
        let Some(requirement) = self.interests.requirement_ref(id) else {
            return;
        };
        let which = match &requirement.whose {
            &Whose::Client { client, request } => BrokenRequirement::Of { client, request },
            Whose::Named(named) => BrokenRequirement::Named(&named.name),
        };
        fx.broken(
            which,
            &format!("{} was broken: {why}", self.interests.owner_of(&self.clients, id)),
        );
    }

    /// A client that held as much as it may has released something: the broken requirements that it reads are whole, unless
    /// a release of what came through them is still to come.
    pub(in crate::core) fn revive_paused(&mut self, client: u32, fx: &mut impl Effects) {
        let Some(state) = self.clients.get(client).filter(|state| !state.paused.is_empty()) else {
            return;
        };
        for follow in state.paused.clone() {
            if let Some(Interest::Follow(following)) = self.interests.get(follow)
                && let Some(requirement) = following.requirement
            {
                self.revive_if_free(requirement, fx);
            }
        }
    }

    /// Nobody holds what came through a broken requirement, and somebody reads it: nothing else would make it whole.
    pub(in crate::core) fn revive_if_free(&mut self, id: u32, fx: &mut impl Effects) {
        let is_free = |one: &Requirement| one.broken.is_some() && one.is_read() && !one.is_forfeiting();
        if self.interests.requirement_ref(id).is_some_and(is_free) {
            self.note_progress(id, fx);
        }
    }

    /// The readers of a requirement do something.
    pub(in crate::core) fn note_progress(&mut self, id: u32, fx: &mut impl Effects) {
        let now = self.timers.now;
        let Some(requirement) = self.interests.requirement_mut(id) else {
            return;
        };
        requirement.progress = now;
        if requirement.broken.take().is_some() {
            self.tell_lost(id, fx);
        }
    }
}
