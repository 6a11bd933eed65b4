//! Readers of requirements, members of groups, and the next object of a follow.

use crate::core::clients::requests::ClientRequests;
use crate::core::clients::table::ClientTable;
use crate::core::engine::timers::{NOBODY, TimerEvent};
use crate::core::interests::follow::{FollowInterest, NextDelivery};
use crate::core::interests::group::{FollowMembership, place};
use crate::core::interests::interest::StandingInterest;
use crate::core::interests::requirement::{RequirementOwner, RequirementState};
use crate::core::interests::table::InterestTable;
use crate::core::objects::key_table::KeyEntry;
use crate::core::objects::object::ObjectState;
use crate::core::objects::order::IncrementalSort;
use crate::core::objects::table::ObjectTable;

impl InterestTable {
    /// Returns the follow that reads a requirement, if it takes new objects.
    pub(in crate::core) fn reader_that_takes(&self, id: u32) -> Option<u32> {
        let reader = self.requirement_ref(id)?.reader?;
        self.following_ref(reader)
            .is_some_and(|following| !following.is_closing())
            .then_some(reader)
    }

    /// Adds a member with room to the queue of members.
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

    pub(in crate::core) fn unseat(&mut self, follow: u32) {
        let Some(following) = self.following_ref(follow) else {
            return;
        };
        if let (Some(member), Some(requirement)) = (&following.member, following.requirement) {
            let place = place(follow, member, following);
            self.group_mut(requirement).map(|group| group.ready.remove(&place));
        }
    }

    /// Subtracts one object that a member holds.
    pub(in crate::core) fn take_out_of_hand(&mut self, follow: u32) {
        self.unseat(follow);
        if let Some(following) = self.following(follow) {
            following.in_flight -= 1;
        }
        self.seat(follow);
    }

    /// Returns the member whose turn it is. Members whose clients may hold no more are skipped until these release an
    /// object.
    pub(in crate::core) fn next_member(&mut self, clients: &mut ClientTable, id: u32) -> Option<u32> {
        loop {
            let &(_, _, follow) = self.group_ref(id)?.ready.first()?;
            let client = self.following_ref(follow)?.client;
            if clients.may_hold_more(client) {
                return Some(follow);
            }
            self.group_mut(id)?.ready.pop_first();
            clients.get_mut(client)?.paused.insert(follow);
        }
    }

    /// Returns a version to the waiting ones of a group.
    pub(in crate::core) fn wait_again(&mut self, id: u32, sequence: u64) {
        if let Some(group) = self.group_mut(id) {
            group.waiting.insert(sequence);
            self.stir(id);
        }
    }

    /// Marks a group whose waiting objects have changed, for the end of this event.
    pub(in crate::core) fn stir(&mut self, id: u32) {
        if !self.stirred.contains(&id) {
            self.stirred.push(id);
        }
    }

    /// Returns the member that receives notices for a group: the oldest one.
    pub(in crate::core) fn spokesman(&self, requirement: &RequirementState) -> Option<&FollowInterest> {
        self.following_ref(requirement.group.as_ref()?.members.first()?)
    }

    /// Describes the members of a group, for people.
    pub(in crate::core) fn members_of(&self, id: u32) -> String {
        match self.group_ref(id).map_or(0, |group| group.members.len()) {
            0 => "which has no members".to_owned(),
            1 => "which has 1 member".to_owned(),
            count => format!("which {count} members share"),
        }
    }

    /// Returns the follow that reads a requirement, or that receives notices for its members.
    pub(in crate::core) fn reading(&self, requirement: &RequirementState) -> Option<&FollowInterest> {
        match requirement.reader {
            Some(reader) => self.following_ref(reader),
            None => self.spokesman(requirement),
        }
    }

    /// Returns the client that reads a requirement, or else its owner.
    pub(in crate::core) fn person_of(&self, requirement: &RequirementState) -> Option<u32> {
        match (self.reading(requirement), &requirement.whose) {
            (Some(following), _) => Some(following.client),
            (None, RequirementOwner::Client { client, .. }) => Some(*client),
            (None, RequirementOwner::Named(_)) => None,
        }
    }

    /// Describes the reader of a requirement, for people.
    pub(in crate::core) fn reader_of(&self, clients: &ClientTable, id: u32) -> String {
        let reading = self
            .requirement_ref(id)
            .and_then(|requirement| self.reading(requirement));
        reading.map_or_else(|| "nobody".to_owned(), |following| clients.person(following.client))
    }

    /// Describes the owner of a requirement, or its name and its reader, for people.
    pub(in crate::core) fn owner_of(&self, clients: &ClientTable, id: u32) -> String {
        if let Some(following) = self.following_ref(id) {
            let selector = following.selectors.text();
            return format!("{} follows {selector:?}", clients.person(following.client));
        }
        let Some(requirement) = self.requirement_ref(id) else {
            return "nobody".to_owned();
        };
        let selector = requirement.selectors.text();
        match &requirement.whose {
            RequirementOwner::Client { client, .. } => format!("{} requires {selector:?}", clients.person(*client)),
            RequirementOwner::Named(named) if requirement.group.is_some() => {
                format!("group {} ({selector:?}), {}", named.name, self.members_of(id))
            }
            RequirementOwner::Named(named) => format!(
                "requirement {} ({selector:?}), which {} reads",
                named.name,
                self.reader_of(clients, id)
            ),
        }
    }

    /// Returns the request that receives a requirement's gaps, if there is one.
    pub(in crate::core) fn hearer(&self, requirement: &RequirementState) -> Option<(u32, u64)> {
        match (self.reading(requirement), &requirement.whose) {
            (Some(following), _) => Some((following.client, following.request)),
            (None, RequirementOwner::Client { client, request }) => Some((*client, *request)),
            (None, RequirementOwner::Named(_)) => None,
        }
    }

    pub(in crate::core) fn next_of_phase(
        &self,
        objects: &ObjectTable,
        id: u32,
        phase: &mut IncrementalSort,
    ) -> Option<u32> {
        let Some(StandingInterest::Follow(following)) = self.table.get(id as usize) else {
            return None;
        };
        let sequence = |id: u32| objects[id].sequence;
        phase.next(|a, b| match following.requirement {
            Some(_) => sequence(a).cmp(&sequence(b)),
            None => objects.compare(&following.sorting, a, b),
        })
    }

    /// Returns the next object of a follow, if its window is open.
    pub(in crate::core) fn next_of_follow(
        &mut self,
        objects: &ObjectTable,
        clients: &mut ClientTable,
        id: u32,
    ) -> Option<NextDelivery> {
        let following = self.following(id)?;
        let (client, has_room) = (following.client, following.in_flight < following.window);
        let goes_live = following.first_phase.as_ref().is_some_and(IncrementalSort::is_empty);
        if goes_live && following.until_live && self.is_behind(id) {
            // Objects that are visible by now belong to it.
            return None;
        }
        let following = self.following(id)?;
        match &following.first_phase {
            None if following.live.is_empty() => return following.is_closing().then_some(NextDelivery::Over),
            Some(_) if goes_live => {
                following.first_phase = None;
                return Some(NextDelivery::Live);
            }
            _ if !has_room => return None,
            _ => {}
        }
        if !clients.may_hold_more(client) {
            if let Some(state) = clients.get_mut(client) {
                state.paused.insert(id);
            }
            return None;
        }
        let following = self.following(id)?;
        if following.first_phase.is_none() {
            return following.live.pop_front().map(NextDelivery::Later);
        }
        let mut phase = following.first_phase.take()?;
        let next = self.next_of_phase(objects, id, &mut phase);
        self.following(id)?.first_phase = Some(phase);
        next.map(NextDelivery::First)
    }

    /// Whether a version was superseded, and the reader receives the newest version of the key: its object, or its gap
    /// if it was removed. If the newest version does not match, nothing more would follow.
    pub(in crate::core) fn is_followed_by_newer(&self, objects: &ObjectTable, id: u32, object: u32) -> bool {
        let object = &objects[object];
        let Some(StandingInterest::Follow(following)) = self.table.get(id as usize) else {
            return false;
        };
        if object.state != ObjectState::Superseded {
            return false;
        }
        let newest = match objects.find_key(object.key) {
            Some(KeyEntry::Object(newest)) => objects[newest].record(),
            Some(KeyEntry::Tombstone(newest)) => objects.tombstones.record(objects.tombstones.get(newest)),
            None => return false,
        };
        let selector = following.selectors.of(usize::from(object.schema));
        selector.is_some_and(|selector| selector.matches(newest))
    }
}

impl ClientRequests {
    /// Starts or stops the time to live of a requirement, after a use has begun or ended.
    pub(in crate::core) fn wind(&mut self, id: u32) {
        let now = self.timers.now;
        let Some(requirement) = self.interests.requirement_mut(id) else {
            return;
        };
        let is_read = requirement.is_read() || requirement.demands > 0 || requirement.in_flight > 0;
        let RequirementOwner::Named(named) = &mut requirement.whose else {
            return;
        };
        if is_read || !named.users.is_empty() {
            if named.lapses.take().is_some() {
                self.timers.cancel(NOBODY, u64::from(id));
            }
        } else if let Some(time) = named.time_to_live {
            let at = now.saturating_add(time);
            named.lapses = Some(at);
            self.timers.set(at, NOBODY, u64::from(id), TimerEvent::Requirement(id));
        }
    }

    /// Ends a client's `Require` of a named requirement; the requirement remains.
    pub(in crate::core) fn end_use(&mut self, id: u32, client: u32, request: u64) {
        if let Some(named) = self.interests.named_mut(id) {
            named.users.remove(&(client, request));
            self.wind(id);
        }
    }

    pub(in crate::core) fn read_requirement_by(&mut self, id: u32, follow: Option<u32>) {
        if let Some(requirement) = self.interests.requirement_mut(id) {
            requirement.reader = follow;
            self.wind(id);
        }
    }

    /// Counts a demand that waits through a requirement, or no longer does.
    pub(in crate::core) fn demand_waits(&mut self, requirement: u32, begins: bool) {
        if let Some(through) = self.interests.requirement_mut(requirement) {
            through.demands = if begins {
                through.demands + 1
            } else {
                through.demands - 1
            };
            self.wind(requirement);
        }
    }

    /// Ends a member's follow. The objects that its client holds remain with it.
    pub(in crate::core) fn leave_group(
        &mut self,
        id: u32,
        requirement: u32,
        member: &FollowMembership,
        following: &FollowInterest,
    ) {
        if let Some(group) = self.interests.group_mut(requirement) {
            group.members.remove(id);
            group.ready.remove(&place(id, member, following));
            group.joining.remove(&(member.joined, id));
        }
        self.wind(requirement);
    }

    pub(in crate::core) fn note_release(&mut self, id: u32) {
        let now = self.timers.now;
        if let Some(named) = self.interests.named_mut(id) {
            named.last_release = Some(now);
        }
    }
}
