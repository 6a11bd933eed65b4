//! Requirements begin and cease to be owed objects.

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::RequireRequest;

use crate::Effects;
use crate::core::clients::client::PendingAnswer;
use crate::core::clients::requests::ClientRequests;
use crate::core::deferred::DeferredPart;
use crate::core::deferred::beginning::RequirementStart;
use crate::core::engine::Core;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::interest::StandingInterest;
use crate::core::interests::requirement::{DisownedObjects, RequirementOwner, RequirementState};
use crate::core::objects::object::ObjectState;
use crate::core::objects::table::ObjectTable;

/// While all clients together are at a limit, a client with fewer requirements than this may make another.
const FAIR_REQUIREMENTS: usize = 16;

impl Core {
    pub(in crate::core) fn require(
        &mut self,
        client: u32,
        request: u64,
        require: &RequireRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        if let Some(name) = &require.name {
            return self.require_named(client, request, name, require, fx);
        }
        if require.group {
            let cause = "a group has a name";
            return Err(Error::new(Code::InvalidArgument, "requirement", cause));
        }
        if require.time_to_live_ms.is_some() {
            let cause = "only a requirement with a name outlives its client";
            return Err(Error::new(Code::InvalidArgument, "time to live", cause));
        }
        let selectors = self.exchange.asked.interests.selectors(&require.selector)?;
        let whose = RequirementOwner::Client { client, request };
        let requirement = RequirementState::new(
            whose,
            selectors,
            require.newest_only,
            self.exchange.asked.interests.bounds(require)?,
        );
        self.exchange.asked.clients.may_ask(client, request)?;
        self.exchange.asked.may_require(client)?;
        let id = self.exchange.file_requirement(requirement)?;
        self.exchange.asked.clients.count_requirement(client, 1);
        self.exchange
            .asked
            .clients
            .add_pending(client, request, PendingAnswer::Requirement(id))?;
        if !self.exchange.asked.interests.begins_later(id, (client, request)) {
            fx.reply(client, request, &Reply::Began(self.exchange.objects.sequence));
        }
        Ok(())
    }
}

impl ClientRequests {
    /// Checks that a client may make another requirement without a name.
    fn may_require(&self, client: u32) -> Result<()> {
        let limits = &self.interests.config.limits;
        let its = self.clients.get(client).map_or(0, |state| state.requirements);
        let remedy = "a selector can name several values (step=1/2/3)";
        let cause = if its >= limits.requirements_per_client {
            format!(
                "a client may have {} without a name: {remedy}",
                limits.requirements_per_client
            )
        } else if self.interests.requirements.len() >= limits.requirements && its >= FAIR_REQUIREMENTS {
            format!("all clients have {} together already: {remedy}", limits.requirements)
        } else {
            return Ok(());
        };
        Err(Error::new(Code::LimitExceeded, "requirements", cause))
    }
}

impl ObjectExchange {
    /// Indexes a requirement without a client.
    pub(in crate::core) fn file_requirement(&mut self, mut requirement: RequirementState) -> Result<u32> {
        let sight = self.sight();
        let mut there = self
            .objects
            .matches_to_change(&mut self.asked.clients, sight, &requirement.selectors);
        self.asked.interests.may_be_owed_at_once(there.len())?;
        let left = if there.len() > self.config.changed_at_once {
            std::mem::take(&mut there)
        } else {
            Vec::new()
        };
        let reserved = left.len();
        if reserved > 0 {
            requirement.beginning = Some(Box::new(RequirementStart::new(left, self.objects.sequence)));
        }
        let id = self
            .asked
            .file_interest(StandingInterest::Requirement(Box::new(requirement)))?;
        self.asked.interests.requirements.insert(id);
        self.asked
            .interests
            .watch_over(&mut self.memory.watch, &self.asked.timers, id);
        if reserved > 0 {
            // Requirements made meanwhile do not take its place.
            self.asked.interests.owed += reserved;
            self.deferred
                .go_on_later(DeferredPart::Owe(self.asked.interests.refer(id)));
        }
        for object in there {
            self.asked.owe_from_the_start(&mut self.objects, id, object);
        }
        Ok(id)
    }

    /// Owes a new object to a requirement, and passes it to its reader, or to a member.
    pub(in crate::core) fn requirement_meets(&mut self, id: u32, object: u32, fx: &mut impl Effects) {
        match self.asked.interests.requirement_mut(id) {
            Some(one) if one.broken.is_none() => {}
            Some(one) if one.lost.is_counted() => return one.lost.count("broken"),
            _ => return self.asked.interests.keep_gaps(&self.objects, id, &[object], "broken"),
        }
        let sequence = self.asked.owe(&mut self.objects, id, object);
        if self.asked.interests.group_ref(id).is_some() {
            self.asked
                .group_meets(&mut self.objects, &mut self.memory, id, sequence, object, fx);
        } else if let Some(reader) = self.asked.interests.reader_that_takes(id) {
            self.follow_meets(reader, object, fx);
        }
    }

    /// Completes an object that was received through a requirement and released.
    pub(in crate::core) fn fulfil(&mut self, id: u32, object: u32, fx: &mut impl Effects) {
        self.no_longer_owed(id, object);
        self.asked.interests.no_longer_forfeited(&self.objects, id, object);
        self.asked.note_release(id);
        self.asked.note_progress(id, fx);
    }

    /// Forfeits an object that readers of a broken requirement hold: the requirement is not owed it any longer.
    pub(in crate::core) fn forfeit(&mut self, id: u32, object: u32) {
        let sequence = self.objects[object].sequence;
        if let Some(requirement) = self.asked.interests.requirement_mut(id)
            && let Some(owed) = requirement.owed.get(&sequence)
        {
            let deliveries = owed.in_flight;
            requirement.forfeited.insert(sequence, deliveries);
            self.no_longer_owed(id, object);
        }
    }

    /// Owes an object again to the next reader, after a client that received it through a requirement has disconnected
    /// without a release, or has returned it; unless it was removed meanwhile, or only a newer version is required.
    pub(in crate::core) fn owe_again(&mut self, id: u32, object: u32, was_unread: bool, fx: &mut impl Effects) {
        let (sequence, state) = {
            let entry = &self.objects[object];
            (entry.sequence, entry.state)
        };
        let reader = self.asked.interests.reader_that_takes(id);
        let Some(requirement) = self.asked.interests.requirement_mut(id) else {
            return;
        };
        let Some(owed) = requirement.owed.get_mut(&sequence) else {
            if self.asked.interests.no_longer_forfeited(&self.objects, id, object) {
                self.asked.disappoint(&self.objects, id, &[object], "broken", fx);
                self.asked.revive_if_free(id, fx);
            }
            return;
        };
        owed.in_flight -= 1;
        owed.again |= !was_unread;
        requirement.in_flight -= 1;
        if owed.in_flight == 0 {
            match state {
                ObjectState::Gone(why) => self.lose(id, object, why.name(), fx),
                ObjectState::Superseded if requirement.newest_only => self.no_longer_owed(id, object),
                ObjectState::Visible | ObjectState::Superseded if requirement.group.is_some() => {
                    self.asked.interests.wait_again(id, sequence);
                }
                // No requirement is owed an object that was never visible.
                ObjectState::Staged | ObjectState::Dropped => {}
                ObjectState::Visible | ObjectState::Superseded => {
                    let reader = reader.filter(|_| !owed.queued);
                    owed.queued |= reader.is_some();
                    if let Some(reader) = reader {
                        self.follow_meets(reader, object, fx);
                    }
                }
            }
        }
        self.asked.wind(id);
    }

    pub(in crate::core) fn no_longer_owed(&mut self, id: u32, object: u32) {
        let entry = &self.objects[object];
        let (sequence, length) = (entry.sequence, entry.length);
        let Some(requirement) = self.asked.interests.requirement_mut(id) else {
            return;
        };
        let Some(owed) = requirement.owed.remove(&sequence) else {
            return;
        };
        requirement.owed_bytes -= length;
        requirement.kept -= if owed.charged { length } else { 0 };
        requirement.in_flight -= u64::from(owed.in_flight);
        let was_waited_for = requirement
            .group
            .as_mut()
            .is_some_and(|group| group.waiting.remove(&sequence) && group.has_joining());
        if was_waited_for {
            self.asked.interests.stir(id);
        }
        if owed.in_flight > 0 {
            self.asked.wind(id);
        }
        self.asked.interests.weigh_owed_no_more();
        self.owed_by_one_less(object);
    }

    pub(in crate::core) fn owed_by_one_less(&mut self, object: u32) {
        let entry = &mut self.objects[object];
        entry.owed -= 1;
        let is_unrequired = entry.owed == 0;
        if is_unrequired {
            self.durability.note_unrequired(object);
        }
        let entry = &mut self.objects[object];
        if entry.watchers > 0 && !self.withdrawals.table.is_empty() {
            self.withdrawals.unblocked.push(object);
        }
    }

    /// Ends a requirement: it is owed nothing any longer, and its reader continues without it. The caller settles its
    /// client's request, if it has one. Returns the number of objects that it was still owed.
    pub(in crate::core) fn retract(&mut self, id: u32, why: &str, fx: &mut impl Effects) -> u64 {
        let Some(requirement) = self.asked.interests.requirement_mut(id) else {
            return 0;
        };
        let group = requirement.group.as_ref();
        let members: Vec<u32> = group.map_or(Vec::new(), |group| group.members.iter().collect());
        let readers = requirement.reader.take().into_iter().chain(members);
        for reader in readers {
            let error = Error::new(Code::Closed, "follow", why);
            self.asked
                .end_from_here(&mut self.objects, &mut self.deferred, reader, &error, fx);
        }
        let count = self.asked.interests.owed_len(id);
        if count > self.config.changed_at_once {
            let owed = self
                .asked
                .interests
                .requirement_mut(id)
                .map(|one| std::mem::take(&mut one.owed));
            self.deferred
                .go_on_later(DeferredPart::Disown(DisownedObjects(owed.unwrap_or_default())));
        }
        let owed: Vec<u32> = self
            .asked
            .interests
            .requirement_ref(id)
            .into_iter()
            .flat_map(RequirementState::objects)
            .collect();
        for object in owed {
            self.no_longer_owed(id, object);
            self.settle_in_turn(object, fx);
        }
        self.asked.interests.note_whole(id);
        self.asked.interests.requirements.remove(id);
        // Offers may wait for requirements to be owed less.
        self.memory.came_free |= !self.memory.stalled.is_empty();
        self.asked.watch_no_more(&mut self.memory, id);
        self.drop_interest(id);
        count as u64
    }

    /// Releases the next object of an ended requirement. Returns whether there are more.
    pub(in crate::core) fn disown_next(&mut self, disowned: &mut DisownedObjects, fx: &mut impl Effects) -> bool {
        let Some((_, owed)) = disowned.0.pop_first() else {
            self.memory.came_free |= !self.memory.stalled.is_empty();
            return false;
        };
        self.asked.interests.weigh_owed_no_more();
        self.owed_by_one_less(owed.object);
        if self.objects[owed.object].departs.is_none() {
            self.settle(owed.object, fx);
        }
        true
    }

    /// Subtracts objects that a requirement about to end is owed.
    pub(in crate::core) fn owe_less(&mut self, id: u32, count: usize, fx: &mut impl Effects) {
        let owed = self
            .asked
            .interests
            .requirement_ref(id)
            .map(|requirement| requirement.owed.values());
        let some: Vec<u32> = owed.into_iter().flatten().take(count).map(|owed| owed.object).collect();
        for object in some {
            self.no_longer_owed(id, object);
            self.settle_in_turn(object, fx);
        }
        self.memory.came_free |= !self.memory.stalled.is_empty();
    }

    /// Sends gaps of a removed object to the requirements that wait for it; those that have delivered it are
    /// unaffected.
    pub(in crate::core) fn gap_requirements(&mut self, object: u32, reason: &'static str, fx: &mut impl Effects) {
        for id in self.asked.interests.claimants(&self.objects, object) {
            if self.asked.interests.waits_for(&self.objects, id, object) {
                self.lose(id, object, reason, fx);
            }
        }
    }

    pub(in crate::core) fn lose(&mut self, id: u32, object: u32, reason: &'static str, fx: &mut impl Effects) {
        self.no_longer_owed(id, object);
        self.asked.disappoint(&self.objects, id, &[object], reason, fx);
    }

    /// Ends the claims of requirements for newest versions to a superseded object that they have not received.
    pub(in crate::core) fn drop_superseded_claims(&mut self, object: u32) {
        if self.objects[object].owed == 0 {
            return;
        }
        for id in self.asked.interests.claimants(&self.objects, object) {
            if self.asked.interests.requirement_ref(id).is_some_and(|r| r.newest_only)
                && self.asked.interests.waits_for(&self.objects, id, object)
            {
                self.no_longer_owed(id, object);
            }
        }
    }
}

impl ClientRequests {
    /// Owes a new requirement an object that was visible before.
    pub(in crate::core) fn owe_from_the_start(&mut self, objects: &mut ObjectTable, id: u32, object: u32) {
        let sequence = self.owe(objects, id, object);
        if self.interests.group_ref(id).is_some() {
            self.interests.wait_again(id, sequence);
        }
        if self.interests.may_charge() && !objects[object].is_kept_by_retention() {
            self.interests.charge(objects, object);
        }
    }
}
