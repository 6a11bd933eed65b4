//! Members of groups: they join, and receive the objects that the group is owed.

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{FollowRequest, GroupTerms, RequireRequest, events};
use junctura_wire::fixed;

use crate::Effects;
use crate::core::clients::client::{DeliveredVia, PendingAnswer};
use crate::core::clients::flow::deliver::ObjectDelivery;
use crate::core::clients::requests::ClientRequests;
use crate::core::clients::table::ClientTable;
use crate::core::deferred::DeferredWork;
use crate::core::engine::Core;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::follow::FollowInterest;
use crate::core::interests::group::FollowMembership;
use crate::core::interests::interest::StandingInterest;
use crate::core::interests::requirement::RequirementState;
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::weight::INTEREST_BYTES;
use crate::core::objects::table::ObjectTable;

impl Core {
    /// Returns the group that a follow names: an existing one or, if the follow states the terms, a new one. Also
    /// whether it is new.
    pub(in crate::core) fn group_of(
        &mut self,
        client: u32,
        request: u64,
        name: &str,
        follow: &FollowRequest<'_>,
    ) -> Result<(u32, bool)> {
        let Some(terms) = &follow.group_terms else {
            let id = self.exchange.asked.interests.find_named(name).map_err(|error| {
                let cause = format!("{}; a follow with this group and a selector creates it", error.cause());
                Error::new(error.code(), error.subject(), cause)
            })?;
            return match self.exchange.asked.interests.group_ref(id) {
                Some(_) => Ok((id, false)),
                None => Err(Error::new(
                    Code::Conflict,
                    format!("requirement {name}"),
                    "it is no group: one follow reads it at a time",
                )),
            };
        };
        let GroupTerms {
            newest_only,
            time_to_live_ms,
        } = *terms;
        let terms = RequireRequest {
            selector: follow.selector.as_ref().into(),
            newest_only,
            time_to_live_ms,
            group: true,
            ..RequireRequest::default()
        };
        let mut asked = self
            .exchange
            .asked
            .interests
            .named_requirement(&self.exchange.asked.timers, name, &terms)?;
        // A follow states no terms for breaking a group.
        if let Some(standing) = self
            .exchange
            .asked
            .interests
            .named
            .get(name)
            .and_then(|&id| self.exchange.asked.interests.requirement_ref(id))
        {
            asked.bounds = standing.bounds;
        } else {
            self.drain.may_come()?;
            self.exchange.asked.clients.may_be_member(client, &asked)?;
        }
        self.exchange.find_or_file(client, request, name, asked)
    }
}

impl ObjectExchange {
    /// Adds a member. It shares from now on, and receives the gaps that the group recorded while it had no member.
    pub(in crate::core) fn join_group(
        &mut self,
        group: (u32, bool),
        client: u32,
        request: u64,
        follow: &FollowRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let ((requirement, is_new), joined) = (group, self.objects.sequence);
        let Some(selectors) = self
            .asked
            .interests
            .requirement_ref(requirement)
            .map(|it| it.selectors.clone())
        else {
            return Ok(());
        };
        let member = FollowMembership {
            turn: 0,
            joined,
            is_live: false,
        };
        let following = FollowInterest::of_member(client, request, selectors, requirement, follow, member);
        let added = self.asked.add_interest(
            client,
            request,
            StandingInterest::Follow(Box::new(following)),
            PendingAnswer::Follow,
        );
        if added.is_err() && is_new {
            let name = follow.group.as_deref().unwrap_or_default();
            self.unmake_named(requirement, name, fx);
        }
        let id = added?;
        if let Some(group) = self.asked.interests.group_mut(requirement) {
            group.members.insert(id);
            group.joining.insert((joined, id));
        }
        self.asked.interests.seat(id);
        self.asked.wind(requirement);
        fx.reply(client, request, &Reply::Began(joined));
        if is_new {
            self.asked
                .tell_about_requirement(requirement, events::REQUIRED, Some(client), "", fx);
        }
        self.asked.note_progress(requirement, fx);
        self.asked.tell_lost(requirement, fx);
        self.hand_out(requirement, fx);
        Ok(())
    }

    /// Delivers waiting objects to members, as long as one has room.
    pub(in crate::core) fn hand_out(&mut self, id: u32, fx: &mut impl Effects) {
        while self.deferred.may_deliver(id) {
            self.asked.tell_live(&mut self.objects, &mut self.deferred, id, fx);
            let Some(&sequence) = self
                .asked
                .interests
                .group_ref(id)
                .and_then(|group| group.waiting.first())
            else {
                return;
            };
            let Some(member) = self.asked.interests.next_member(&mut self.asked.clients, id) else {
                return;
            };
            self.deferred.count_delivery();
            if let Some(group) = self.asked.interests.group_mut(id) {
                group.waiting.pop_first();
            }
            let Some(object) = self
                .asked
                .interests
                .requirement_ref(id)
                .and_then(|it| it.object_of(sequence))
            else {
                continue;
            };
            self.see_off(object, fx);
            if self
                .asked
                .interests
                .requirement_ref(id)
                .and_then(|it| it.object_of(sequence))
                .is_none()
            {
                continue;
            }
            self.asked
                .hand_to(&mut self.objects, &mut self.memory, id, member, object, fx);
        }
    }
}

impl ClientRequests {
    pub(in crate::core) fn tell_live(
        &mut self,
        objects: &mut ObjectTable,
        deferred: &mut DeferredWork,
        id: u32,
        fx: &mut impl Effects,
    ) {
        while let Some(group) = self.interests.group_mut(id)
            && let Some(&(joined, follow)) = group.joining.first()
            && group.waiting.first().is_none_or(|&oldest| oldest > joined)
        {
            group.joining.pop_first();
            if let Some(following) = self.interests.following(follow)
                && let Some(member) = &mut following.member
            {
                member.is_live = true;
                self.go_live(objects, deferred, follow, fx);
            }
        }
    }

    /// Delivers a new object to a member with room, or adds it to the waiting ones.
    pub(in crate::core) fn group_meets(
        &mut self,
        objects: &mut ObjectTable,
        memory: &mut PayloadMemory,
        id: u32,
        sequence: u64,
        object: u32,
        fx: &mut impl Effects,
    ) {
        let nothing_waits = self
            .interests
            .group_ref(id)
            .is_some_and(|group| group.waiting.is_empty());
        match self
            .interests
            .next_member(&mut self.clients, id)
            .filter(|_| nothing_waits)
        {
            Some(member) => self.hand_to(objects, memory, id, member, object, fx),
            None => {
                _ = self.interests.group_mut(id).map(|group| group.waiting.insert(sequence));
            }
        }
    }

    pub(in crate::core) fn hand_to(
        &mut self,
        objects: &mut ObjectTable,
        memory: &mut PayloadMemory,
        id: u32,
        follow: u32,
        object: u32,
        fx: &mut impl Effects,
    ) {
        self.interests.unseat(follow);
        let Some(group) = self.interests.group_mut(id) else {
            return;
        };
        group.turns += 1;
        let turn = group.turns;
        let Some(following) = self.interests.following(follow) else {
            return;
        };
        following.in_flight += 1;
        let (client, request) = (following.client, following.request);
        let Some(member) = &mut following.member else { return };
        member.turn = turn;
        let flags = if member.is_live { 0 } else { fixed::FIRST_PHASE };
        self.interests.seat(follow);
        let via = DeliveredVia {
            follow: Some(self.interests.refer(follow)),
            requirement: Some(self.interests.refer(id)),
        };
        self.deliver(
            objects,
            memory,
            ObjectDelivery {
                client,
                request,
                object,
                flags,
                via: Some(via),
            },
            fx,
        );
    }
}

impl ClientTable {
    /// Checks whether a client may join a new group; otherwise none is made.
    pub(in crate::core) fn may_be_member(&mut self, client: u32, group: &RequirementState) -> Result<()> {
        let bytes = INTEREST_BYTES + group.selectors.standing_bytes();
        self.weigh_asked(client, bytes)?;
        self.weigh_asked_no_more(client, bytes);
        Ok(())
    }
}
