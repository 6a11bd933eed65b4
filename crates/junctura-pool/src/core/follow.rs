//! Follows: what is there, in order, then what comes, without gap or repetition.
//!
//! ```text
//!   Follow --> first phase (the visible objects with a number <= S, sorted) --> live (all > S, as they become visible)
//! ```
//! At most `window` deliveries are unreleased at once; the rest stands in the follow's queue, which keeps attributes but no
//! payload. Who is gone when its turn comes leaves a gap; who was superseded is left out, since the newer version comes.

use std::collections::VecDeque;

use junctura_model::selector::SelectorSet;
use junctura_model::version::{Cursor, Phase};
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{Follow, Gap, ObjectName};
use junctura_wire::fixed;

use super::client::{Pending, Via};
use super::group::Member;
use super::interest::Interest;
use super::keys::Filed;
use super::object::State;
use super::order::{Incremental, Sorting};
use super::stat::Counters;
use super::{Core, Nanoseconds};
use crate::Effects;

/// One follow.
pub(super) struct Following {
    pub(super) client: u32,
    pub(super) request: u64,
    pub(super) selectors: SelectorSet,
    /// The requirement through which it receives; its objects come from there and not from matching.
    pub(super) requirement: Option<u32>,
    /// Where it is a group's: its objects come from what waits there, and not from a queue of its own.
    pub(super) member: Option<Member>,
    sorting: Sorting,
    pub(super) window: u32,
    pub(super) in_flight: u32,
    until_live: bool,
    /// `None` once the follow is live.
    first_phase: Option<Incremental>,
    live: VecDeque<u32>,
}

impl Following {
    /// A member's.
    pub(super) fn of_member(
        client: u32,
        request: u64,
        selectors: SelectorSet,
        requirement: u32,
        follow: &Follow<'_>,
        member: Member,
    ) -> Self {
        Self {
            client,
            request,
            selectors,
            requirement: Some(requirement),
            member: Some(member),
            sorting: Sorting::default(),
            window: follow.window,
            in_flight: 0,
            until_live: follow.until_live,
            first_phase: None,
            live: VecDeque::new(),
        }
    }

    /// The group that it is a member of.
    fn group(&self) -> Option<u32> {
        self.requirement.filter(|_| self.member.is_some())
    }
}

/// The next step of a follow.
enum Next {
    /// An object of the first phase.
    First(u32),
    /// The first phase is over.
    Live,
    /// An object of the live phase.
    Later(u32),
}

impl Core {
    pub(super) fn follow(
        &mut self,
        client: u32,
        request: u64,
        follow: &Follow<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        if follow.window == 0 {
            return Err(Error::new(
                Code::InvalidArgument,
                "window",
                "a follow holds at least one object",
            ));
        }
        let selectors = self.selectors(&follow.selector)?;
        let sorting = self.sorting(&follow.order)?;
        if let Some(group) = self.group_to_join(client, request, follow)? {
            return self.join_group(group, client, request, follow, fx);
        }
        let requirement = self.requirement_of(client, follow.requirement, follow.requirement_name.as_deref())?;
        let cursor = follow.cursor.as_deref().map(|text| self.own_cursor(text)).transpose()?;
        // What divides the phases: for one that goes on from a cursor it stays what it was, or a second resumption would
        // take what came in between for seen.
        let since = match &cursor {
            Some(Cursor {
                phase: Phase::First { snapshot, .. },
                ..
            }) if requirement.is_none() => *snapshot,
            Some(Cursor {
                phase: Phase::Live { last },
                ..
            }) if requirement.is_none() => *last,
            _ => self.sequence,
        };
        let (first, live, missed) = match (requirement, cursor) {
            (Some(id), _) => (self.owed_waiting(id)?, Vec::new(), Vec::new()),
            (None, None) if follow.only_new => (Vec::new(), Vec::new(), Vec::new()),
            (None, None) => (self.visible_matches(&selectors), Vec::new(), Vec::new()),
            (None, Some(cursor)) => self.resume(&selectors, &sorting, &cursor)?,
        };
        let following = Following {
            client,
            request,
            selectors,
            requirement,
            member: None,
            sorting,
            window: follow.window,
            in_flight: 0,
            until_live: follow.until_live,
            first_phase: Some(Incremental::new(first)),
            live: live.into(),
        };
        let id = self.add_interest(client, request, Interest::Follow(Box::new(following)), Pending::Follow)?;
        self.watch_queue(id);
        if let Some(requirement) = requirement {
            self.read_requirement_by(requirement, Some(id));
        }
        fx.reply(client, request, &Reply::Began(since));
        self.tell_missed(client, request, &missed, fx);
        if let Some(requirement) = requirement {
            self.note_progress(requirement, fx);
            self.tell_lost(requirement, fx);
        }
        self.pump(id, fx);
        Ok(())
    }

    fn watch_queue(&mut self, id: u32) {
        let Some(Interest::Follow(following)) = self.interests.get(id as usize) else {
            return;
        };
        let first = following.first_phase.iter().flat_map(Incremental::entries);
        for &object in first.chain(&following.live) {
            self.objects[object as usize].watchers += 1;
        }
    }

    fn own_cursor(&self, text: &str) -> Result<Cursor> {
        let cursor: Cursor = text.parse()?;
        if cursor.incarnation == self.config.incarnation {
            return Ok(cursor);
        }
        let cause = format!(
            "it belongs to incarnation {} of the server, this is {}: what was visible there is gone, and what came after version \
             {} was not given; follow anew",
            cursor.incarnation,
            self.config.incarnation,
            cursor.version()
        );
        Err(Error::new(Code::Expired, format!("cursor {text}"), cause))
    }

    /// What a follow that had come to `cursor` is still to be given: the rest of its first phase, what became visible
    /// since, and what became visible since and is gone already.
    fn resume(
        &mut self,
        selectors: &SelectorSet,
        sorting: &Sorting,
        cursor: &Cursor,
    ) -> Result<(Vec<u32>, Vec<u32>, Vec<u32>)> {
        let since = match &cursor.phase {
            Phase::First { snapshot, .. } => *snapshot,
            Phase::Live { last } => *last,
        };
        let found = self.visible_matches(selectors);
        let (mut live, there): (Vec<u32>, Vec<u32>) = found
            .into_iter()
            .partition(|&id| self.objects[id as usize].sequence > since);
        live.sort_unstable_by_key(|&id| self.objects[id as usize].sequence);
        let first = match &cursor.phase {
            Phase::Live { .. } => Vec::new(),
            Phase::First {
                last_key,
                last_sort_value,
                ..
            } => {
                let (schema, key) = self.parse_any_key(last_key)?;
                let mut rest = there;
                rest.retain(|&id| {
                    let object = &self.objects[id as usize];
                    self.compare_with(sorting, object, schema, key.as_ref(), last_sort_value.as_deref())
                        .is_gt()
                });
                rest
            }
        };
        let missed = self.tombstones_after(since, selectors);
        Ok((first, live, missed))
    }

    fn parse_any_key(&self, text: &str) -> Result<(u16, junctura_model::Record)> {
        let mut outcome = Err(Error::new(Code::InvalidArgument, "cursor", "no schema reads its key"));
        for (number, schema) in self.config.schemas.iter().enumerate() {
            outcome = schema.parse_key(text).map(|record| (number as u16, record));
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    pub(super) fn following(&mut self, id: u32) -> Option<&mut Following> {
        match self.interests.get_mut(id as usize) {
            Some(Interest::Follow(following)) => Some(following),
            _ => None,
        }
    }

    pub(super) fn following_ref(&self, id: u32) -> Option<&Following> {
        match self.interests.get(id as usize) {
            Some(Interest::Follow(following)) => Some(following),
            _ => None,
        }
    }

    /// The group of a follow that is to be a member's.
    fn group_to_join(&mut self, client: u32, request: u64, follow: &Follow<'_>) -> Result<Option<(u32, bool)>> {
        let through = follow.requirement.is_some() || follow.requirement_name.is_some();
        if let Some(name) = &follow.group {
            if through {
                let cause = "a follow receives through a group or through a requirement, not both";
                return Err(Error::new(Code::InvalidArgument, "follow", cause));
            }
            return self.group_of(client, request, name, follow).map(Some);
        }
        let requirement = self.requirement_of(client, follow.requirement, follow.requirement_name.as_deref())?;
        let Some(id) = requirement.filter(|&id| self.group_ref(id).is_some()) else {
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

    /// A new object for a follow.
    pub(super) fn follow_meets(&mut self, _now: Nanoseconds, id: u32, object: u32, fx: &mut impl Effects) {
        let limit = self.config.limits.queued_per_follow;
        let Some(following) = self.following(id) else { return };
        if following.live.len() >= limit {
            let (client, request) = (following.client, following.request);
            let cause = format!("{limit} objects wait for it; read faster, or follow less");
            let error = Error::new(Code::LimitExceeded, "follow", cause);
            self.end_from_here(id, client, request, &error, fx);
            return;
        }
        following.live.push_back(object);
        self.objects[object as usize].watchers += 1;
        self.pump(id, fx);
    }

    /// One delivery of a follow was released.
    pub(super) fn window_opens(&mut self, _now: Nanoseconds, id: u32, fx: &mut impl Effects) {
        let Some(following) = self.following(id) else { return };
        if let Some(group) = following.group() {
            return self.hand_is_free(id, group, fx);
        }
        following.in_flight -= 1;
        self.pump(id, fx);
    }

    /// One delivery of a follow was given back without a release. What comes back to a group goes out when all that comes
    /// with one message is there, so that it goes in order.
    pub(super) fn comes_back_from(&mut self, now: Nanoseconds, id: u32, fx: &mut impl Effects) {
        match self.following_ref(id).and_then(Following::group) {
            Some(group) => {
                self.take_out_of_hand(id);
                self.stir(group);
            }
            None => self.window_opens(now, id, fx),
        }
    }

    /// A client that held as much as it may has released something: its follows that waited for that go on.
    pub(super) fn resume_paused(&mut self, client: u32, fx: &mut impl Effects) {
        let Some(state) = self.clients.get_mut(&client) else {
            return;
        };
        if state.paused.is_empty() {
            return;
        }
        for follow in std::mem::take(&mut state.paused) {
            match self.following_ref(follow).and_then(Following::group) {
                None => self.pump(follow, fx),
                Some(group) => {
                    self.seat(follow);
                    self.hand_out(group, fx);
                }
            }
        }
    }

    /// Delivers as much as the window allows.
    fn pump(&mut self, id: u32, fx: &mut impl Effects) {
        let mut gone: Vec<u32> = Vec::new();
        while let Some(next) = self.next_of_follow(id) {
            let Some(following) = self.following(id) else { return };
            let via_requirement = following.requirement;
            let (object, first_phase) = match next {
                Next::First(object) => (object, true),
                Next::Later(object) => (object, false),
                Next::Live => {
                    self.flush_gap(id, &mut gone, fx);
                    if self.go_live(id, fx) {
                        continue;
                    }
                    return;
                }
            };
            let entry = &self.objects[object as usize];
            let deliverable = match via_requirement {
                Some(requirement) => self.is_owed(requirement, object),
                None => entry.is_visible(),
            };
            if !deliverable {
                if via_requirement.is_none() && !self.is_followed_by_newer(id, object) {
                    gone.push(object);
                } else {
                    self.unwatch(object);
                }
                continue;
            }
            self.flush_gap(id, &mut gone, fx);
            let Some(following) = self.following(id) else { return };
            following.in_flight += 1;
            let (client, request) = (following.client, following.request);
            let via = Via {
                follow: Some(id),
                requirement: via_requirement,
            };
            let flags = if first_phase { fixed::FIRST_PHASE } else { 0 };
            self.deliver(client, request, object, flags, Some(via), fx);
            self.objects[object as usize].watchers -= 1;
        }
        self.flush_gap(id, &mut gone, fx);
    }

    /// What comes next in a follow, as far as its window is open.
    fn next_of_follow(&mut self, id: u32) -> Option<Next> {
        let following = self.following(id)?;
        if following.first_phase.is_none() && following.live.is_empty() {
            return None;
        }
        let (client, has_room) = (following.client, following.in_flight < following.window);
        let mut phase = following.first_phase.take();
        if phase.as_ref().is_some_and(Incremental::is_empty) {
            return Some(Next::Live);
        }
        let is_open = has_room && self.may_hold_more(client);
        if has_room
            && !is_open
            && let Some(state) = self.clients.get_mut(&client)
        {
            state.paused.insert(id);
        }
        let next = match &mut phase {
            Some(phase) if is_open => self.next_of_phase(id, phase).map(Next::First),
            None if is_open => self.following(id)?.live.pop_front().map(Next::Later),
            _ => None,
        };
        self.following(id)?.first_phase = phase;
        next
    }

    fn next_of_phase(&self, id: u32, phase: &mut Incremental) -> Option<u32> {
        let Some(Interest::Follow(following)) = self.interests.get(id as usize) else {
            return None;
        };
        let sequence = |id: u32| self.objects[id as usize].sequence;
        phase.next(|a, b| match following.requirement {
            Some(_) => sequence(a).cmp(&sequence(b)),
            None => self.compare(&following.sorting, a, b),
        })
    }

    /// The first phase is over; false when the follow is, too.
    pub(super) fn go_live(&mut self, id: u32, fx: &mut impl Effects) -> bool {
        let Some(following) = self.following(id) else {
            return false;
        };
        let (client, request, is_over) = (following.client, following.request, following.until_live);
        fx.reply(client, request, &Reply::Live);
        if is_over {
            let error = Error::new(Code::Closed, "follow", "it was asked to end here");
            self.end_from_here(id, client, request, &error, fx);
        }
        !is_over
    }

    /// Whether a version was superseded, and the reader hears of the key again: from the newest one, which it is given, or
    /// told of if that is gone. Where the newest does not match, nothing more would come.
    fn is_followed_by_newer(&self, id: u32, object: u32) -> bool {
        let object = &self.objects[object as usize];
        let Some(Interest::Follow(following)) = self.interests.get(id as usize) else {
            return false;
        };
        if object.state != State::Superseded {
            return false;
        }
        let newest = match self.find_key(object.key) {
            Some(Filed::Object(newest)) => self.objects[newest as usize].record(),
            Some(Filed::Tombstone(newest)) => self.tombstones.record(self.tombstones.get(newest)),
            None => return false,
        };
        let selector = following.selectors.of(usize::from(object.schema));
        selector.is_some_and(|selector| selector.matches(newest))
    }

    fn flush_gap(&mut self, id: u32, gone: &mut Vec<u32>, fx: &mut impl Effects) {
        if gone.is_empty() {
            return;
        }
        if let Some(following) = self.following(id) {
            let (client, request) = (following.client, following.request);
            self.tell_gap(client, request, gone, fx);
        }
        for object in gone.drain(..) {
            self.unwatch(object);
        }
    }

    fn tell_gap(&mut self, client: u32, request: u64, gone: &[u32], fx: &mut impl Effects) {
        let object = |id: u32| &self.objects[id as usize];
        for same in gone.chunk_by(|&one, &next| object(one).state == object(next).state) {
            let reason = match object(same[0]).state {
                State::Gone(why) => why.name(),
                State::Visible | State::Superseded | State::Staged | State::Dropped => "superseded",
            };
            let names = same.iter().map(|&id| object(id).name());
            send_gap(&mut self.count, client, request, names, reason, fx);
        }
    }

    /// Clean-up of a follow that was taken from the table.
    pub(super) fn end_follow(&mut self, id: u32, mut following: Following) {
        if let Some(mut phase) = following.first_phase.take() {
            for object in phase.drain() {
                self.unwatch(object);
            }
        }
        for object in following.live.drain(..) {
            self.unwatch(object);
        }
        match (following.requirement, &following.member) {
            (Some(requirement), Some(member)) => self.leave_group(id, requirement, member, &following),
            (Some(requirement), None) => self.read_requirement_by(requirement, None),
            (None, _) => {}
        }
        if let Some(state) = self.clients.get_mut(&following.client) {
            state.paused.remove(&id);
        }
        self.detach(following.client, |via| {
            via.follow = via.follow.filter(|&follow| follow != id);
        });
    }
}

/// Tells a reader of objects that it will not get.
pub(super) fn send_gap<'a>(
    count: &mut Counters,
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
            &Reply::Gap(Gap {
                items,
                reason,
                unnamed: None,
            }),
        );
    }
}
