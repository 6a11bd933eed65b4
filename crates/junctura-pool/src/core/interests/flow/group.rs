//! Members of groups: they join, and are handed what the group is owed.

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{Follow, GroupTerms, Require, events};
use junctura_wire::fixed;

use crate::Effects;
use crate::core::clients::client::{Pending, Via};
use crate::core::engine::Core;
use crate::core::interests::follow::Following;
use crate::core::interests::group::Member;
use crate::core::interests::interest::Interest;
use crate::core::interests::requirement::Requirement;
use crate::core::memory::weight::INTEREST_BYTES;

impl Core {
    /// The group that a follow names: one that stands or, if it says on which terms, a new one. Also whether it is new.
    pub(in crate::core) fn group_of(
        &mut self,
        client: u32,
        request: u64,
        name: &str,
        follow: &Follow<'_>,
    ) -> Result<(u32, bool)> {
        let Some(terms) = &follow.group_terms else {
            let id = self.interests.find_named(name)?;
            return match self.interests.group_ref(id) {
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
        let terms = Require {
            selector: follow.selector.as_ref().into(),
            newest_only,
            time_to_live_ms,
            group: true,
            ..Require::default()
        };
        let mut asked = self.interests.named_requirement(&self.timers, name, &terms)?;
        // A follow says nothing of when a group is broken.
        if let Some(standing) = self
            .interests
            .named
            .get(name)
            .and_then(|&id| self.interests.requirement_ref(id))
        {
            asked.bounds = standing.bounds;
        } else {
            self.may_come()?;
            self.may_be_member(client, &asked)?;
        }
        self.find_or_file(client, request, name, asked)
    }

    /// Whether a client may follow as a member of a new group: one that may not makes none.
    fn may_be_member(&mut self, client: u32, group: &Requirement) -> Result<()> {
        let bytes = INTEREST_BYTES + group.selectors.standing_bytes();
        self.clients.weigh_asked(client, bytes)?;
        self.clients.weigh_asked_no_more(client, bytes);
        Ok(())
    }

    /// A new member. It shares from now on; what the group lost while it had none is told to it.
    pub(in crate::core) fn join_group(
        &mut self,
        group: (u32, bool),
        client: u32,
        request: u64,
        follow: &Follow<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let ((requirement, is_new), joined) = (group, self.objects.sequence);
        let Some(selectors) = self
            .interests
            .requirement_ref(requirement)
            .map(|it| it.selectors.clone())
        else {
            return Ok(());
        };
        let member = Member {
            turn: 0,
            joined,
            is_live: false,
        };
        let following = Following::of_member(client, request, selectors, requirement, follow, member);
        let added = self.add_interest(client, request, Interest::Follow(Box::new(following)), Pending::Follow);
        if added.is_err() && is_new {
            let name = follow.group.as_deref().unwrap_or_default();
            self.unmake_named(requirement, name, fx);
        }
        let id = added?;
        if let Some(group) = self.interests.group_mut(requirement) {
            group.members.insert(id);
            group.joining.insert((joined, id));
        }
        self.interests.seat(id);
        self.interests.wind(&mut self.timers, requirement);
        fx.reply(client, request, &Reply::Began(joined));
        if is_new {
            self.tell_about_requirement(requirement, events::REQUIRED, Some(client), "", fx);
        }
        self.note_progress(requirement, fx);
        self.tell_lost(requirement, fx);
        self.hand_out(requirement, fx);
        Ok(())
    }

    /// A new object: straight to a member with room, or to those that wait.
    pub(in crate::core) fn group_meets(&mut self, id: u32, sequence: u64, object: u32, fx: &mut impl Effects) {
        let nothing_waits = self
            .interests
            .group_ref(id)
            .is_some_and(|group| group.waiting.is_empty());
        match self
            .interests
            .next_member(&mut self.clients, id)
            .filter(|_| nothing_waits)
        {
            Some(member) => self.hand_to(id, member, object, fx),
            None => _ = self.interests.group_mut(id).map(|group| group.waiting.insert(sequence)),
        }
    }

    /// Gives what waits to members, as long as one has room.
    pub(in crate::core) fn hand_out(&mut self, id: u32, fx: &mut impl Effects) {
        while self.deferred.may_deliver(id) {
            self.tell_live(id, fx);
            let Some(&sequence) = self.interests.group_ref(id).and_then(|group| group.waiting.first()) else {
                return;
            };
            let Some(member) = self.interests.next_member(&mut self.clients, id) else {
                return;
            };
            self.deferred.count_delivery();
            if let Some(group) = self.interests.group_mut(id) {
                group.waiting.pop_first();
            }
            let Some(object) = self.interests.requirement_ref(id).and_then(|it| it.object_of(sequence)) else {
                continue;
            };
            self.see_off(object, fx);
            if self
                .interests
                .requirement_ref(id)
                .and_then(|it| it.object_of(sequence))
                .is_none()
            {
                continue;
            }
            self.hand_to(id, member, object, fx);
        }
    }

    fn hand_to(&mut self, id: u32, follow: u32, object: u32, fx: &mut impl Effects) {
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
        let via = Via {
            follow: Some(self.interests.refer(follow)),
            requirement: Some(self.interests.refer(id)),
        };
        self.deliver(client, request, object, flags, Some(via), fx);
    }

    /// A member has released something, and may be given more.
    pub(in crate::core) fn hand_is_free(&mut self, follow: u32, requirement: u32, fx: &mut impl Effects) {
        self.interests.take_out_of_hand(follow);
        self.hand_out(requirement, fx);
    }

    fn tell_live(&mut self, id: u32, fx: &mut impl Effects) {
        while let Some(group) = self.interests.group_mut(id)
            && let Some(&(joined, follow)) = group.joining.first()
            && group.waiting.first().is_none_or(|&oldest| oldest > joined)
        {
            group.joining.pop_first();
            if let Some(following) = self.interests.following(follow)
                && let Some(member) = &mut following.member
            {
                member.is_live = true;
                self.go_live(follow, fx);
            }
        }
    }
}
