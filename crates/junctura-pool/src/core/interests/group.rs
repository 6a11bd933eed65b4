//! Consumer groups: a requirement with a name whose members share what it is owed.
//!
//! ```text
//!             handed out                      released
//!   waiting -------------> with one member -------------> done
//!      ^                          |
//!      '--------------------------'  its client is gone, or gave it back unread
//! ```
//! What is owed is in exactly one of these states. What waits stands by its sequence number, so what comes back is the first
//! to go out again. Whoever has least in hand is next, and of those with the same the one whose turn was longest ago; who has
//! its window full, or whose client may hold no more, is not asked. So after every event either nothing waits or no member
//! has room, and finding the next member costs no look at the others.
//!
//! A member is *live* once nothing waits any more that was owed when it joined; what comes back later may be older.

use std::collections::BTreeSet;

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{Follow, GroupTerms, Require, events};
use junctura_wire::fixed;

use crate::Effects;
use crate::core::clients::client::{Pending, Via};
use crate::core::engine::Core;
use crate::core::interests::follow::Following;
use crate::core::interests::interest::Interest;
use crate::core::interests::ordered_ids::OrderedIds;
use crate::core::interests::requirement::Requirement;
use crate::core::memory::weight::INTEREST_BYTES;

/// What only a group has.
#[derive(Default)]
pub(in crate::core) struct Group {
    /// Sequence numbers of what no member has.
    pub(in crate::core) waiting: BTreeSet<u64>,
    /// The follows of its members, in the order in which they joined.
    pub(in crate::core) members: OrderedIds,
    /// Members with room, the next first.
    ready: BTreeSet<Place>,
    /// Members that are not live, by the newest number when they joined.
    joining: BTreeSet<(u64, u32)>,
    /// Deliveries so far.
    turns: u64,
}

/// How much a member has in hand, its last turn, and its follow.
type Place = (u32, u64, u32);

/// What a follow knows of its membership.
pub(in crate::core) struct Member {
    turn: u64,
    /// The newest sequence number when it joined.
    joined: u64,
    is_live: bool,
}

impl Group {
    /// Whether somebody has yet to hear that it is live.
    pub(in crate::core) fn has_joining(&self) -> bool {
        !self.joining.is_empty()
    }
}

fn place(id: u32, member: &Member, following: &Following) -> Place {
    (following.in_flight, member.turn, id)
}

impl Core {
    fn group_mut(&mut self, id: u32) -> Option<&mut Group> {
        self.requirement_mut(id)?.group.as_deref_mut()
    }

    pub(in crate::core) fn group_ref(&self, id: u32) -> Option<&Group> {
        self.requirement_ref(id)?.group.as_deref()
    }

    /// The group that a follow names: one that stands or, if it says on which terms, a new one. Also whether it is new.
    pub(in crate::core) fn group_of(
        &mut self,
        client: u32,
        request: u64,
        name: &str,
        follow: &Follow<'_>,
    ) -> Result<(u32, bool)> {
        let Some(terms) = &follow.group_terms else {
            let id = self.find_named(name)?;
            return match self.group_ref(id) {
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
        let mut asked = self.named_requirement(name, &terms)?;
        // A follow says nothing of when a group is broken.
        if let Some(standing) = self.named.get(name).and_then(|&id| self.requirement_ref(id)) {
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
        let Some(selectors) = self.requirement_ref(requirement).map(|it| it.selectors.clone()) else {
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
        if let Some(group) = self.group_mut(requirement) {
            group.members.insert(id);
            group.joining.insert((joined, id));
        }
        self.seat(id);
        self.wind(requirement);
        fx.reply(client, request, &Reply::Began(joined));
        if is_new {
            self.tell_about_requirement(requirement, events::REQUIRED, Some(client), "", fx);
        }
        self.note_progress(requirement, fx);
        self.tell_lost(requirement, fx);
        self.hand_out(requirement, fx);
        Ok(())
    }

    /// A member's follow is over. What its client has in hand stays with it.
    pub(in crate::core) fn leave_group(&mut self, id: u32, requirement: u32, member: &Member, following: &Following) {
        if let Some(group) = self.group_mut(requirement) {
            group.members.remove(id);
            group.ready.remove(&place(id, member, following));
            group.joining.remove(&(member.joined, id));
        }
        self.wind(requirement);
    }

    /// A new object: straight to a member with room, or to those that wait.
    pub(in crate::core) fn group_meets(&mut self, id: u32, sequence: u64, object: u32, fx: &mut impl Effects) {
        let nothing_waits = self.group_ref(id).is_some_and(|group| group.waiting.is_empty());
        match self.next_member(id).filter(|_| nothing_waits) {
            Some(member) => self.hand_to(id, member, object, fx),
            None => _ = self.group_mut(id).map(|group| group.waiting.insert(sequence)),
        }
    }

    /// Gives what waits to members, as long as one has room.
    pub(in crate::core) fn hand_out(&mut self, id: u32, fx: &mut impl Effects) {
        while self.backlog.may_deliver(id) {
            self.tell_live(id, fx);
            let Some(&sequence) = self.group_ref(id).and_then(|group| group.waiting.first()) else {
                return;
            };
            let Some(member) = self.next_member(id) else { return };
            self.backlog.count_delivery();
            if let Some(group) = self.group_mut(id) {
                group.waiting.pop_first();
            }
            let Some(object) = self.requirement_ref(id).and_then(|it| it.object_of(sequence)) else {
                continue;
            };
            self.see_off(object, fx);
            if self.requirement_ref(id).and_then(|it| it.object_of(sequence)).is_none() {
                continue;
            }
            self.hand_to(id, member, object, fx);
        }
    }

    /// Whose turn it is. Those whose client may hold no more step aside until it releases something.
    fn next_member(&mut self, id: u32) -> Option<u32> {
        loop {
            let &(_, _, follow) = self.group_ref(id)?.ready.first()?;
            let client = self.following_ref(follow)?.client;
            if self.clients.may_hold_more(client) {
                return Some(follow);
            }
            self.group_mut(id)?.ready.pop_first();
            self.clients.get_mut(client)?.paused.insert(follow);
        }
    }

    fn hand_to(&mut self, id: u32, follow: u32, object: u32, fx: &mut impl Effects) {
        self.unseat(follow);
        let Some(group) = self.group_mut(id) else { return };
        group.turns += 1;
        let turn = group.turns;
        let Some(following) = self.following(follow) else {
            return;
        };
        following.in_flight += 1;
        let (client, request) = (following.client, following.request);
        let Some(member) = &mut following.member else { return };
        member.turn = turn;
        let flags = if member.is_live { 0 } else { fixed::FIRST_PHASE };
        self.seat(follow);
        let via = Via {
            follow: Some(self.refer(follow)),
            requirement: Some(self.refer(id)),
        };
        self.deliver(client, request, object, flags, Some(via), fx);
    }

    /// A member that has room takes its place among the others.
    pub(in crate::core) fn seat(&mut self, follow: u32) {
        let Some(following) = self.following_ref(follow) else {
            return;
        };
        if let (Some(member), Some(requirement)) = (&following.member, following.requirement)
            && following.in_flight < following.window
        {
            let place = place(follow, member, following);
            self.group_mut(requirement).map(|group| group.ready.insert(place));
        }
    }

    fn unseat(&mut self, follow: u32) {
        let Some(following) = self.following_ref(follow) else {
            return;
        };
        if let (Some(member), Some(requirement)) = (&following.member, following.requirement) {
            let place = place(follow, member, following);
            self.group_mut(requirement).map(|group| group.ready.remove(&place));
        }
    }

    /// A member has released something, and may be given more.
    pub(in crate::core) fn hand_is_free(&mut self, follow: u32, requirement: u32, fx: &mut impl Effects) {
        self.take_out_of_hand(follow);
        self.hand_out(requirement, fx);
    }

    /// A member has one less in hand.
    pub(in crate::core) fn take_out_of_hand(&mut self, follow: u32) {
        self.unseat(follow);
        if let Some(following) = self.following(follow) {
            following.in_flight -= 1;
        }
        self.seat(follow);
    }

    fn tell_live(&mut self, id: u32, fx: &mut impl Effects) {
        while let Some(group) = self.group_mut(id)
            && let Some(&(joined, follow)) = group.joining.first()
            && group.waiting.first().is_none_or(|&oldest| oldest > joined)
        {
            group.joining.pop_first();
            if let Some(following) = self.following(follow)
                && let Some(member) = &mut following.member
            {
                member.is_live = true;
                self.go_live(follow, fx);
            }
        }
    }

    /// A version waits in a group again.
    pub(in crate::core) fn wait_again(&mut self, id: u32, sequence: u64) {
        if let Some(group) = self.group_mut(id) {
            group.waiting.insert(sequence);
            self.stir(id);
        }
    }

    /// When this event is over, a group is to be looked after: something waits again, or does not any more.
    pub(in crate::core) fn stir(&mut self, id: u32) {
        if !self.stirred.contains(&id) {
            self.stirred.push(id);
        }
    }

    /// Who is told for a group: the member that has been there longest.
    pub(in crate::core) fn spokesman(&self, requirement: &Requirement) -> Option<&Following> {
        self.following_ref(requirement.group.as_ref()?.members.first()?)
    }

    /// Who shares a group, for people.
    pub(in crate::core) fn members_of(&self, id: u32) -> String {
        match self.group_ref(id).map_or(0, |group| group.members.len()) {
            0 => "which has no members".to_owned(),
            1 => "which has 1 member".to_owned(),
            count => format!("which {count} members share"),
        }
    }
}
