//! Follows: their beginning, their next objects, and their end.

use std::collections::VecDeque;

use junctura_model::selector::SelectorSet;
use junctura_model::version::{Cursor, Phase};
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{FollowRequest, GapBody, ObjectName};
use junctura_wire::fixed;

use crate::Effects;
use crate::core::clients::client::{DeliveredVia, PendingAnswer};
use crate::core::clients::flow::deliver::ObjectDelivery;
use crate::core::clients::requests::ClientRequests;
use crate::core::clients::stat::PoolCounters;
use crate::core::deferred::DeferredWork;
use crate::core::engine::Core;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::follow::{FollowInterest, NextDelivery};
use crate::core::interests::interest::StandingInterest;
use crate::core::objects::index::watch_all;
use crate::core::objects::object::ObjectState;
use crate::core::objects::order::{IncrementalSort, ResolvedOrder};
use crate::core::objects::table::ObjectTable;
use crate::core::objects::tombstone::MissedObjects;

/// The initial objects of a follow.
struct FollowBeginning {
    /// The boundary of its phases.
    since: u64,
    first: IncrementalSort,
    live: Vec<u32>,
    missed: Vec<MissedObjects>,
}

impl Core {
    pub(in crate::core) fn follow(
        &mut self,
        client: u32,
        request: u64,
        follow: &FollowRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        if follow.window == 0 {
            return Err(Error::new(
                Code::InvalidArgument,
                "window",
                "a follow holds at least one object",
            ));
        }
        let selectors = self.exchange.asked.interests.selectors(&follow.selector)?;
        let sorting = self.exchange.objects.sorting(&follow.order)?;
        if let Some(group) = self.group_to_join(client, request, follow)? {
            if self.exchange.asked.joins_later(group, (client, request), follow, fx)? {
                return Ok(());
            }
            self.end_beginning(group.0, fx);
            return self.exchange.join_group(group, client, request, follow, fx);
        }
        let requirement = self.exchange.asked.interests.requirement_of(
            &self.exchange.asked.clients,
            client,
            follow.requirement,
            follow.requirement_name.as_deref(),
        )?;
        if let Some(id) = requirement {
            self.end_beginning(id, fx);
        }
        let cursor = follow
            .cursor
            .as_deref()
            .map(|text| self.exchange.objects.own_cursor(text))
            .transpose()?;
        let beginning = self
            .exchange
            .begin_follow(follow, requirement, cursor.as_ref(), (&selectors, &sorting))?;
        let following = FollowInterest {
            client,
            request,
            selectors,
            requirement,
            member: None,
            sorting,
            window: follow.window,
            in_flight: 0,
            progress: 0,
            until_live: follow.until_live,
            began_in_drain: self.drain.has_begun,
            first_phase: Some(beginning.first),
            live: beginning.live.into(),
        };
        let id = add_follow(&mut self.exchange, Box::new(following))?;
        if let Some(requirement) = requirement {
            self.exchange.asked.read_requirement_by(requirement, Some(id));
        }
        fx.reply(client, request, &Reply::Began(beginning.since));
        self.exchange
            .objects
            .tell_missed(&mut self.exchange.asked.count, client, request, &beginning.missed, fx);
        if let Some(requirement) = requirement {
            self.exchange.asked.note_progress(requirement, fx);
            self.exchange.asked.tell_lost(requirement, fx);
        }
        self.exchange.pump(id, fx);
        Ok(())
    }

    /// Returns the group of a follow that is to be a member.
    fn group_to_join(&mut self, client: u32, request: u64, follow: &FollowRequest<'_>) -> Result<Option<(u32, bool)>> {
        let through = follow.requirement.is_some() || follow.requirement_name.is_some();
        if let Some(name) = &follow.group {
            if through {
                let cause = "a follow receives through a group or through a requirement, not both";
                return Err(Error::new(Code::InvalidArgument, "follow", cause));
            }
            return self.group_of(client, request, name, follow).map(Some);
        }
        let requirement = self.exchange.asked.interests.requirement_of(
            &self.exchange.asked.clients,
            client,
            follow.requirement,
            follow.requirement_name.as_deref(),
        )?;
        let Some(id) = requirement.filter(|&id| self.exchange.asked.interests.group_ref(id).is_some()) else {
            return Ok(None);
        };
        match &follow.requirement_name {
            None => Ok(Some((id, false))),
            Some(name) => {
                let cause = "it is a group, whose members share: follow it as a group";
                Err(Error::new(Code::Conflict, format!("requirement {name}"), cause))
            }
        }
    }
}

impl ObjectExchange {
    /// Returns the visible objects that a follow is to receive first. They are watched.
    fn begin_follow(
        &mut self,
        follow: &FollowRequest<'_>,
        requirement: Option<u32>,
        cursor: Option<&Cursor>,
        (selectors, sorting): (&SelectorSet, &ResolvedOrder),
    ) -> Result<FollowBeginning> {
        // The boundary of the phases: a follow that resumes from a cursor keeps its earlier one, or a second resumption
        // would skip the objects that became visible in between.
        let since = match cursor {
            Some(Cursor {
                phase: Phase::First { snapshot, .. },
                ..
            }) if requirement.is_none() => *snapshot,
            Some(Cursor {
                phase: Phase::Live { last },
                ..
            }) if requirement.is_none() => *last,
            _ => self.objects.sequence,
        };
        let sight = self.sight();
        let (first, live, missed) = match (requirement, cursor) {
            (Some(id), _) => {
                let owed = self.asked.interests.owed_waiting(&self.asked.clients, id)?;
                watch_all(&mut self.objects, &owed);
                (IncrementalSort::new(owed), Vec::new(), Vec::new())
            }
            (None, None) if follow.only_new => (IncrementalSort::default(), Vec::new(), Vec::new()),
            (None, None) => (
                self.objects.sorted_matches(&mut self.asked.clients, sight, selectors),
                Vec::new(),
                Vec::new(),
            ),
            (None, Some(cursor)) => {
                let (first, live, missed) =
                    self.objects
                        .resume(&mut self.asked.clients, sight, selectors, sorting, cursor)?;
                watch_all(&mut self.objects, &first);
                watch_all(&mut self.objects, &live);
                (IncrementalSort::new(first), live, missed)
            }
        };
        Ok(FollowBeginning {
            since,
            first,
            live,
            missed,
        })
    }

    /// Adds a new object to a follow.
    pub(in crate::core) fn follow_meets(&mut self, id: u32, object: u32, fx: &mut impl Effects) {
        let limit = self.config.limits.queued_per_follow;
        let Some(following) = self.asked.interests.following(id).filter(|one| !one.is_closing()) else {
            return;
        };
        if following.live.len() >= limit {
            let cause = format!("{limit} objects wait for it; read faster, or follow less");
            let error = Error::new(Code::LimitExceeded, "follow", cause);
            self.asked
                .end_from_here(&mut self.objects, &mut self.deferred, id, &error, fx);
            return;
        }
        following.live.push_back(object);
        self.objects[object].watchers += 1;
        self.pump(id, fx);
    }

    /// Handles the release of one delivery of a follow.
    pub(in crate::core) fn window_opens(&mut self, id: u32, fx: &mut impl Effects) {
        let now = self.asked.timers.now;
        let Some(following) = self.asked.interests.following(id) else {
            return;
        };
        if let Some(group) = following.group() {
            self.asked.interests.take_out_of_hand(id);
            return self.hand_out(group, fx);
        }
        following.in_flight -= 1;
        following.progress = now;
        self.pump(id, fx);
    }

    /// Returns one delivery of a follow without a release. Objects redelivered to a group are sent out once all those
    /// of one message are back, so that their order is kept.
    pub(in crate::core) fn comes_back_from(&mut self, id: u32, fx: &mut impl Effects) {
        match self.asked.interests.following_ref(id).and_then(FollowInterest::group) {
            Some(group) => {
                self.asked.interests.take_out_of_hand(id);
                self.asked.interests.stir(group);
            }
            None => self.window_opens(id, fx),
        }
    }

    /// Resumes the follows of a client that had reached its maximum of held objects and has released one.
    pub(in crate::core) fn resume_paused(&mut self, client: u32, fx: &mut impl Effects) {
        let Some(state) = self.asked.clients.get_mut(client) else {
            return;
        };
        if state.paused.is_empty() {
            return;
        }
        for follow in std::mem::take(&mut state.paused) {
            match self
                .asked
                .interests
                .following_ref(follow)
                .and_then(FollowInterest::group)
            {
                None => self.pump(follow, fx),
                Some(group) => {
                    self.asked.interests.seat(follow);
                    self.hand_out(group, fx);
                }
            }
        }
    }

    /// Delivers as many objects as the window and one event allow.
    pub(in crate::core) fn pump(&mut self, id: u32, fx: &mut impl Effects) {
        let mut gone: Vec<u32> = Vec::new();
        while self.deferred.may_deliver(id)
            && let Some(next) = self
                .asked
                .interests
                .next_of_follow(&self.objects, &mut self.asked.clients, id)
        {
            self.deferred.count_delivery();
            let Some(following) = self.asked.interests.following(id) else {
                return;
            };
            let (via_requirement, is_closing) = (following.requirement, following.is_closing());
            let (object, first_phase) = match next {
                NextDelivery::First(object) => (object, true),
                NextDelivery::Later(object) => (object, false),
                NextDelivery::Live => {
                    self.asked.flush_gap(&mut self.objects, id, &mut gone, fx);
                    self.asked.go_live(&mut self.objects, &mut self.deferred, id, fx);
                    continue;
                }
                NextDelivery::Over => {
                    self.asked.flush_gap(&mut self.objects, id, &mut gone, fx);
                    return self.asked.end_caught_up(&mut self.objects, &mut self.deferred, id, fx);
                }
            };
            self.see_off(object, fx);
            let entry = &self.objects[object];
            let deliverable = match via_requirement {
                Some(requirement) => self.asked.interests.is_owed(&self.objects, requirement, object),
                None => entry.is_visible(),
            };
            if !deliverable {
                let newer_comes = !is_closing && self.asked.interests.is_followed_by_newer(&self.objects, id, object);
                if via_requirement.is_none() && !newer_comes {
                    gone.push(object);
                } else {
                    self.objects.unwatch(object);
                }
                continue;
            }
            self.asked.flush_gap(&mut self.objects, id, &mut gone, fx);
            let Some(following) = self.asked.interests.following(id) else {
                return;
            };
            following.in_flight += 1;
            let (client, request) = (following.client, following.request);
            let via = DeliveredVia {
                follow: Some(self.asked.interests.refer(id)),
                requirement: via_requirement.map(|requirement| self.asked.interests.refer(requirement)),
            };
            let flags = if first_phase { fixed::FIRST_PHASE } else { 0 };
            self.asked.deliver(
                &mut self.objects,
                &mut self.memory,
                ObjectDelivery {
                    client,
                    request,
                    object,
                    flags,
                    via: Some(via),
                },
                fx,
            );
            self.objects[object].watchers -= 1;
        }
        self.asked.flush_gap(&mut self.objects, id, &mut gone, fx);
    }
}

/// Adds a follow whose queue is watched. If it is refused, its queue is no longer watched.
fn add_follow(exchange: &mut ObjectExchange, following: Box<FollowInterest>) -> Result<u32> {
    let (client, request) = (following.client, following.request);
    let mut interest = StandingInterest::Follow(following);
    if let Err(refusal) = exchange.asked.may_add_interest(client, request, &interest) {
        if let StandingInterest::Follow(following) = &mut interest {
            exchange
                .deferred
                .release_queue(&mut exchange.objects, following.take_queue());
        }
        return Err(refusal);
    }
    let id = exchange.asked.insert_interest(interest);
    exchange
        .asked
        .clients
        .add_pending(client, request, PendingAnswer::Follow(id))?;
    Ok(id)
}

impl ClientRequests {
    /// Cleans up a follow that was removed from the table. Returns the objects of its queue, which no longer watches
    /// them.
    pub(in crate::core) fn end_follow(&mut self, id: u32, mut following: FollowInterest) -> Vec<u32> {
        let queue = following.take_queue();
        match (following.requirement, &following.member) {
            (Some(requirement), Some(member)) => {
                self.leave_group(id, requirement, member, &following);
            }
            (Some(requirement), None) => self.read_requirement_by(requirement, None),
            (None, _) => {}
        }
        if let Some(state) = self.clients.get_mut(following.client) {
            state.paused.remove(&id);
        }
        queue
    }

    /// Removes from a follow's queue the superseded objects whose newer version follows.
    pub(in crate::core) fn leave_out_superseded(&mut self, objects: &mut ObjectTable, id: u32) {
        let Some(following) = self.interests.following(id).filter(|one| one.requirement.is_none()) else {
            return;
        };
        let queue = std::mem::take(&mut following.live);
        let (left_out, stays): (VecDeque<u32>, VecDeque<u32>) = queue
            .into_iter()
            .partition(|&object| self.interests.is_followed_by_newer(objects, id, object));
        for object in left_out {
            objects.unwatch(object);
        }
        if let Some(following) = self.interests.following(id) {
            following.live = stays;
        }
    }

    pub(in crate::core) fn flush_gap(
        &mut self,
        objects: &mut ObjectTable,
        id: u32,
        gone: &mut Vec<u32>,
        fx: &mut impl Effects,
    ) {
        if gone.is_empty() {
            return;
        }
        if let Some(following) = self.interests.following(id) {
            let (client, request) = (following.client, following.request);
            self.tell_gap(objects, client, request, gone, fx);
        }
        for object in gone.drain(..) {
            objects.unwatch(object);
        }
    }

    pub(in crate::core) fn tell_gap(
        &mut self,
        objects: &ObjectTable,
        client: u32,
        request: u64,
        gone: &[u32],
        fx: &mut impl Effects,
    ) {
        let object = |id: u32| &objects[id];
        for same in gone.chunk_by(|&one, &next| object(one).state == object(next).state) {
            let reason = match object(same[0]).state {
                ObjectState::Gone(why) => why.name(),
                ObjectState::Visible | ObjectState::Superseded | ObjectState::Staged | ObjectState::Dropped => {
                    "superseded"
                }
            };
            let names = same.iter().map(|&id| object(id).name());
            send_gap(&mut self.count, client, request, names, reason, fx);
        }
    }

    /// Ends the first phase.
    pub(in crate::core) fn go_live(
        &mut self,
        objects: &mut ObjectTable,
        deferred: &mut DeferredWork,
        id: u32,
        fx: &mut impl Effects,
    ) {
        let Some(following) = self.interests.following(id) else {
            return;
        };
        let (client, request, is_to_end) = (following.client, following.request, following.until_live);
        let is_closing = following.is_closing();
        self.interests.weigh_queue_no_more(&mut self.clients, id);
        fx.reply(client, request, &Reply::Live);
        if is_closing {
            self.leave_out_superseded(objects, id);
        } else if is_to_end {
            // Objects that a group is owed wait for its other members.
            self.end_caught_up(objects, deferred, id, fx);
        }
    }

    pub(in crate::core) fn end_caught_up(
        &mut self,
        objects: &mut ObjectTable,
        deferred: &mut DeferredWork,
        id: u32,
        fx: &mut impl Effects,
    ) {
        let error = Error::new(Code::Closed, "follow", "it was asked to end here");
        self.end_from_here(objects, deferred, id, &error, fx);
    }
}

/// Sends a reader the gap of objects that it will not receive.
pub(in crate::core) fn send_gap<'a>(
    count: &mut PoolCounters,
    client: u32,
    request: u64,
    gone: impl IntoIterator<Item = ObjectName<'a>>,
    reason: &str,
    fx: &mut impl Effects,
) {
    const BYTES_PER_FRAME: usize = 256 << 10;
    let mut gone = gone.into_iter().peekable();
    while gone.peek().is_some() {
        let mut bytes = 0;
        let mut items = Vec::new();
        while bytes <= BYTES_PER_FRAME
            && let Some(name) = gone.next()
        {
            bytes += name.record.len();
            items.push(name);
        }
        count.gaps += items.len() as u64;
        let reason = reason.into();
        fx.reply(
            client,
            request,
            &Reply::Gap(GapBody {
                items,
                reason,
                unnamed: None,
            }),
        );
    }
}
