//! Requirements and clients that block others are found and broken.

use junctura_model::{Code, Error};
use junctura_wire::body::events;

use crate::core::clients::requests::ClientRequests;
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::engine::timers::{NOBODY, TimerEvent};
use crate::core::exchange::ObjectExchange;
use crate::core::interests::interest::StandingInterest;
use crate::core::interests::named_requirement::seconds;
use crate::core::interests::requirement::{RequirementOwner, RequirementState};
use crate::core::interests::stuck::StuckRequirement;
use crate::core::interests::table::InterestTable;
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::shortage::MemoryShortage;
use crate::core::objects::table::ObjectTable;
use crate::{BrokenRequirement, Effects};

/// The pause before a stuck requirement that keeps nothing is checked again.
const LOOK_AGAIN: Nanoseconds = 1_000_000_000;

/// The timer of the next check; timers of requirements have smaller numbers.
const LOOK: u64 = u64::MAX;

impl Core {
    /// Breaks one requirement that breaks on full, if it is due.
    pub(in crate::core) fn break_on_full(&mut self, fx: &mut impl Effects) -> bool {
        while let Some(id) = self.exchange.asked.interests.breakers.over_quota.pop_last() {
            // A later part of the same event may have reduced it below its quota.
            let over = self
                .exchange
                .asked
                .interests
                .requirement_ref(id)
                .and_then(RequirementState::quota_exceeded);
            if let Some(quota) = over {
                self.break_requirement(id, &format!("it kept more than its quota of {quota} bytes"), fx);
                return true;
            }
        }
        let (memory, interests) = (&self.exchange.memory, &self.exchange.asked.interests);
        if interests.breakers.on_full.is_empty() {
            return false;
        }
        let is_behind = self.exchange.is_behind();
        if !memory.somebody_waits_in_vain(is_behind) && !memory.somebody_lacks(is_behind, MemoryShortage::Records) {
            return false;
        }
        let keeps = |id: u32| {
            let one = interests.requirement_ref(id)?;
            (one.bounds.quota.is_none() && one.kept > 0).then_some((one.kept, id))
        };
        let Some((_, id)) = interests.breakers.on_full.iter().filter_map(keeps).max() else {
            return false;
        };
        self.break_requirement(id, "memory is full", fx);
        true
    }

    /// Breaks stuck requirements until no client waits any longer.
    pub(in crate::core) fn break_stuck(&mut self, fx: &mut impl Effects) {
        self.exchange.memory.watch.looks = None;
        if self.exchange.deferred.serves_later {
            return;
        }
        report_stuck(&mut self.exchange, fx);
        for shortage in MemoryShortage::ALL {
            while self.exchange.memory.somebody_lacks(self.exchange.is_behind(), shortage)
                && let Some(id) = self.exchange.asked.interests.most_stuck(
                    &self.exchange.objects,
                    &self.exchange.asked.timers,
                    shortage,
                )
            {
                let after = self
                    .exchange
                    .asked
                    .interests
                    .requirement_ref(id)
                    .map_or(0, |one| one.bounds.stuck_after);
                let wanted = match shortage {
                    MemoryShortage::Payload => "memory",
                    MemoryShortage::Records => "room for attributes",
                    MemoryShortage::Owed => "requirements to be owed less",
                };
                let why = format!(
                    "it released nothing for {} s while others waited for {wanted}",
                    seconds(after)
                );
                self.break_requirement(id, &why, fx);
                self.follow_up(fx);
            }
        }
        while self.exchange.memory.somebody_waits_in_vain(self.exchange.is_behind())
            && let Some(client) = self.exchange.memory.hoarder(&self.exchange.asked.timers)
        {
            let (memory, now) = (&self.exchange.memory, self.exchange.asked.timers.now);
            let recall = memory.recalled.get(&client);
            let since = recall.map_or(now, |recall| memory.others_wait_since(recall));
            let cause = format!(
                "it kept {} bytes of leased memory empty for {} s while others waited for memory",
                memory.ledger.leased_bytes(client),
                seconds(now - since)
            );
            let error = Error::new(Code::LimitExceeded, "lease", cause);
            self.give_up(client, &error, fx);
            self.follow_up(fx);
        }
    }

    fn break_requirement(&mut self, id: u32, why: &str, fx: &mut impl Effects) {
        self.end_beginning(id, fx);
        let exchange = &mut self.exchange;
        let since = exchange.asked.timers.now;
        let Some(requirement) = exchange.asked.interests.requirement_mut(id) else {
            return;
        };
        requirement.broken = Some(StuckRequirement {
            since,
            why: why.to_owned(),
        });
        let (waiting, in_flight) = requirement.owed_by_place();
        exchange.asked.interests.note_broken(id);
        exchange.asked.disappoint(&exchange.objects, id, &waiting, "broken", fx);
        exchange.asked.count.broken += 1;
        exchange.asked.report_broken(id, why, fx);
        let whose = exchange
            .asked
            .interests
            .requirement_ref(id)
            .and_then(|one| exchange.asked.interests.person_of(one));
        exchange
            .asked
            .tell_about_requirement(id, events::BROKEN, whose, why, fx);
        for &object in &in_flight {
            exchange.forfeit(id, object);
            exchange.settle_in_turn(object, fx);
        }
        for &object in &waiting {
            exchange.no_longer_owed(id, object);
            exchange.settle_in_turn(object, fx);
        }
    }
}

/// Reports requirements that have used half of their time, each once.
fn report_stuck(exchange: &mut ObjectExchange, fx: &mut impl Effects) {
    let is_behind = exchange.is_behind();
    let lacks = MemoryShortage::ALL.map(|one| exchange.memory.somebody_lacks(is_behind, one).then_some(one));
    let (objects, now) = (&exchange.objects, exchange.asked.timers.now);
    let is_half = |one: &RequirementState| {
        let is_watched = one.broken.is_none() && !one.is_reported && one.owed_len() > 0;
        let keeps = || lacks.into_iter().flatten().any(|lack| one.kept_of(objects, lack) > 0);
        is_watched && one.half_at() <= now && now < one.stuck_at() && keeps()
    };
    let interests = &exchange.asked.interests;
    let found = interests.requirements.iter();
    let found: Vec<u32> = found
        .filter(|&id| interests.requirement_ref(id).is_some_and(is_half))
        .collect();
    for id in found {
        let Some(one) = exchange.asked.interests.requirement_mut(id) else {
            continue;
        };
        one.is_reported = true;
        let (idle, left) = (now - one.progress, one.stuck_at() - now);
        let why = format!(
            "it has released nothing for {} s while others wait, and is broken in {} s",
            seconds(idle),
            seconds(left)
        );
        let reader = exchange.asked.interests.requirement_ref(id);
        let reader = reader.and_then(|one| exchange.asked.interests.person_of(one));
        exchange
            .asked
            .tell_about_requirement(id, events::STUCK, reader, &why, fx);
    }
}

impl PayloadMemory {
    /// Whether a client waits for memory that neither the file tier, nor pending removals, nor eviction will free.
    pub(in crate::core) fn somebody_waits_in_vain(&self, is_behind: bool) -> bool {
        self.somebody_waits_for_memory() && !self.is_spilling() && !is_behind && !self.eviction.has_spare()
    }

    /// The same for other resources that an offer may wait for: spilling does not free them.
    pub(in crate::core) fn somebody_lacks(&self, is_behind: bool, shortage: MemoryShortage) -> bool {
        let waits_in_vain = || self.stalled.wait_for(shortage) && !is_behind;
        match shortage {
            MemoryShortage::Payload => self.somebody_waits_in_vain(is_behind),
            MemoryShortage::Records => waits_in_vain() && !self.eviction.has_spare(),
            MemoryShortage::Owed => waits_in_vain(),
        }
    }

    /// Schedules the time at which the next requirement may be stuck, while a client waits for memory.
    pub(in crate::core) fn watch_for_stuck(
        &mut self,
        asked: &mut ClientRequests,
        objects: &ObjectTable,
        is_behind: bool,
    ) {
        if self.stalled.is_empty() && self.waiting_leases.is_empty() {
            self.watch.waits_since = None;
            return;
        }
        if self.somebody_waits_for_memory() {
            if self.watch.waits_since.is_none() {
                self.watch.waits_since = Some(asked.timers.now);
                // Requests that clients sent while no client waited do not show that they have read the recall since.
                for recall in self.recalled.values_mut() {
                    recall.heard = None;
                }
            }
        } else {
            self.watch.waits_since = None;
        }
        let lacks = MemoryShortage::ALL.map(|shortage| self.somebody_lacks(is_behind, shortage).then_some(shortage));
        if self.watch.looks.is_some() || lacks == [None; 3] {
            return;
        }
        let keeps_nothing =
            |one: &RequirementState| lacks.into_iter().flatten().all(|lack| one.kept_of(objects, lack) == 0);
        let whole = asked
            .interests
            .requirements
            .iter()
            .filter_map(|id| asked.interests.requirement_ref(id));
        let next = whole
            .filter(|one| one.broken.is_none())
            .map(|one| {
                let is_owed = one.owed_len() > 0;
                let since = if is_owed { one.progress } else { asked.timers.now };
                let at = since.saturating_add(one.bounds.stuck_after);
                if is_owed && !one.is_reported && one.stuck_at() > asked.timers.now && !keeps_nothing(one) {
                    return one.half_at().max(asked.timers.now);
                }
                if at <= asked.timers.now && keeps_nothing(one) {
                    asked.timers.now + LOOK_AGAIN
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
            if at > asked.timers.now {
                at
            } else {
                asked.timers.now + LOOK_AGAIN
            }
        });
        if let Some(at) = next.into_iter().chain(hoarders).min() {
            self.watch.looks = Some(at);
            asked.timers.set(at, NOBODY, LOOK, TimerEvent::Stuck);
        }
    }
}

impl InterestTable {
    fn note_broken(&mut self, id: u32) {
        if let Some(turn) = self.requirements.turn_of(id) {
            self.breakers.broken.insert(turn, id);
        }
    }

    /// Records that a requirement is not broken, or ends.
    pub(in crate::core) fn note_whole(&mut self, id: u32) {
        if let Some(turn) = self.requirements.turn_of(id) {
            self.breakers.broken.remove(&turn);
        }
    }
}

impl ClientRequests {
    pub(in crate::core) fn report_broken(&self, id: u32, why: &str, fx: &mut impl Effects) {
        let Some(requirement) = self.interests.requirement_ref(id) else {
            return;
        };
        let which = match &requirement.whose {
            &RequirementOwner::Client { client, request } => BrokenRequirement::Of { client, request },
            RequirementOwner::Named(named) => BrokenRequirement::Named(&named.name),
        };
        fx.broken(
            which,
            &format!("{} was broken: {why}", self.interests.owner_of(&self.clients, id)),
        );
    }

    /// Makes the broken requirements that a client reads whole after it had reached its maximum of held objects and has
    /// released one, unless it has yet to release objects that they delivered.
    pub(in crate::core) fn revive_paused(&mut self, client: u32, fx: &mut impl Effects) {
        let Some(state) = self.clients.get(client).filter(|state| !state.paused.is_empty()) else {
            return;
        };
        for follow in state.paused.clone() {
            if let Some(StandingInterest::Follow(following)) = self.interests.get(follow)
                && let Some(requirement) = following.requirement
            {
                self.revive_if_free(requirement, fx);
            }
        }
    }

    /// Makes a broken requirement whole if no client holds an object that it delivered, and it has a reader: no release
    /// would make it whole.
    pub(in crate::core) fn revive_if_free(&mut self, id: u32, fx: &mut impl Effects) {
        let is_free = |one: &RequirementState| one.broken.is_some() && one.is_read() && !one.is_forfeiting();
        if self.interests.requirement_ref(id).is_some_and(is_free) {
            self.note_progress(id, fx);
        }
    }

    /// Records an action of a requirement's readers.
    pub(in crate::core) fn note_progress(&mut self, id: u32, fx: &mut impl Effects) {
        let now = self.timers.now;
        let Some(requirement) = self.interests.requirement_mut(id) else {
            return;
        };
        requirement.progress = now;
        requirement.is_reported = false;
        if requirement.broken.take().is_some() {
            self.interests.note_whole(id);
            self.tell_lost(id, fx);
        }
    }

    pub(in crate::core) fn watch_no_more(&mut self, memory: &mut PayloadMemory, id: u32) {
        self.interests.breakers.on_full.remove(id);
        self.interests.breakers.over_quota.remove(id);
        if self.interests.requirements.is_empty() {
            self.timers.cancel(NOBODY, LOOK);
            memory.watch.looks = None;
        }
    }
}
