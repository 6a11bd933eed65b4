//! What one event leaves for later: it may let a million objects go, and others are to be served meanwhile.
//!
//! ```text
//!                             the first so many
//!   an event lets objects go ------------------> gone
//!                           '---- the others ---> out of sight ----so many in each tick, in their order----> gone
//! ```
//! So it is when the time of many objects is over at once, when what many are retained for is, with a retire, and when a
//! requirement or a client ends that kept many. What is *out of sight* is given to nobody, stands in no list, is no earlier
//! version of anything, and nobody new is owed it. Whoever comes upon it all the same, by its key or in the queue of a follow,
//! lets it go first. What follows from its end comes with its turn: the events, the tombstone, the memory, the figures.
//!
//! A change of more objects than [`Config::changed_at_once`](crate::Config::changed_at_once) is itself done in parts, in the same queue: a retire, the objects that
//! a new requirement is owed, the end of a requirement or of a reader with a long queue. An object is as it was until its turn has come.
//!
//! Who asked for it, or wants to know that what it said before is in effect, is answered when that has gone. While something
//! goes, nobody is broken for want of memory.

pub(in crate::core) mod beginning;
mod unfinished;

use std::collections::{BTreeSet, VecDeque};

use junctura_model::selector::SelectorSet;
use junctura_wire::Reply;
use slab::Slab;

pub(in crate::core) use beginning::Beginning;
pub use unfinished::{Unfinished, UnfinishedChange};

use crate::Effects;
use crate::core::clients::table::ClientTable;
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::interest::{Interest, InterestId};
use crate::core::interests::requirement::Disowned;
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::spill::Leaving;
use crate::core::objects::key_table::Filed;
use crate::core::objects::object::{Object, Until, Why};
use crate::core::objects::retention_by_name::AwaitedNames;
use crate::core::objects::table::ObjectTable;

/// See the module's page.
#[derive(Default)]
pub(in crate::core) struct DeferredWork {
    queue: VecDeque<Left>,
    /// So many more may go in this event.
    may_go: usize,
    /// So many more are delivered in this event.
    may_deliver: usize,
    /// Follows, and groups, that have more to give than this event may deliver.
    delivering: BTreeSet<u32>,
    /// How much ever came into the queue, how much of it when this event began, and how much has left it.
    came: u64,
    came_before: u64,
    went: u64,
}

/// What has yet to go: the sequence number of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departing {
    /// Out of sight.
    Object(u64),
    /// Its time is over; it goes, unless a requirement is owed it.
    Time(u64),
    /// It has gone; nobody needs its payload any more.
    Payload(u64),
    /// Something that is done in parts, by its number: see [`Core::unfinished`].
    Part(u64),
}

/// What was left for later.
enum Left {
    /// An object, and its number: another may have its place by then.
    Object { id: u32, sequence: u64 },
    /// The answer to a request.
    Answer { client: u32, request: u64, count: u64 },
    /// Something that is done for one object after the other: its number, and how many turns it has had.
    Part { number: u64, turns: u64, part: Part },
}

/// See [`Left::Part`]: what is done.
pub(in crate::core) enum Part {
    /// The withdraw of this number, if it is still that of this client's request.
    TakeOut { id: u32, client: u32, request: u64 },
    /// A new requirement is owed what was there.
    Owe(InterestId),
    /// A requirement has ended that was owed these.
    Disown(Disowned),
    /// A reader has ended in whose queue these stand.
    Unwatch(Vec<u32>),
    /// Names have come that objects wait for.
    Await(AwaitedNames),
}

impl DeferredWork {
    /// Whether a follow, or a group, may give more in this event. Else the rest comes in the next tick.
    pub(in crate::core) fn may_deliver(&mut self, interest: u32) -> bool {
        if self.may_deliver == 0 {
            self.delivering.insert(interest);
        }
        self.may_deliver > 0
    }

    /// One more was given.
    pub(in crate::core) fn count_delivery(&mut self) {
        self.may_deliver = self.may_deliver.saturating_sub(1);
    }

    /// Whether one more may go in this event; if so, it is counted.
    pub(in crate::core) fn take_turn(&mut self) -> bool {
        let may = self.may_go > 0;
        self.may_go -= usize::from(may);
        may
    }

    fn push(&mut self, left: Left) {
        self.came += 1;
        self.queue.push_back(left);
    }

    /// What is next, if it takes no turn: an answer, or an object that has gone meanwhile.
    fn pop_past(&mut self, objects: &Slab<Object>) -> Option<Left> {
        let takes_a_turn = match *self.queue.front()? {
            Left::Object { id, sequence } => objects
                .get(id as usize)
                .is_some_and(|one| one.sequence == sequence && one.departs.is_some()),
            Left::Part { .. } => true,
            Left::Answer { .. } => false,
        };
        if takes_a_turn { None } else { self.pop() }
    }

    fn pop(&mut self) -> Option<Left> {
        self.went += u64::from(!self.queue.is_empty());
        self.queue.pop_front()
    }

    /// The entry that was taken is not done yet.
    fn put_back(&mut self, left: Left) {
        self.went -= 1;
        self.queue.push_front(left);
    }

    fn has_grown(&self) -> bool {
        self.came > self.came_before
    }
}

impl Core {
    /// An event begins.
    pub(in crate::core) fn begin(&mut self, now: Nanoseconds) {
        self.timers.now = now;
        self.deferred.may_go = self.config.leaving_at_once.max(1);
        self.deferred.may_deliver = self.config.delivered_at_once.max(1);
        self.deferred.came_before = self.deferred.came;
    }

    /// Objects are out of sight that have yet to go: [`Core::tick`] is to be called as soon as others were served.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        !self.deferred.queue.is_empty() || self.objects.expiries.next().is_some_and(|at| at <= self.timers.now)
    }

    /// Follows have more to give: [`Core::tick`] is to be called as soon as others were served.
    #[must_use]
    pub fn is_delivering(&self) -> bool {
        !self.deferred.delivering.is_empty()
    }

    /// Delivers what earlier events had no time for, as much as may be in one.
    pub(in crate::core) fn deliver_more(&mut self, fx: &mut impl Effects) {
        let delivering = std::mem::take(&mut self.deferred.delivering);
        if delivering.is_empty() {
            return;
        }
        for interest in delivering {
            match self.interests.get(interest) {
                Some(Interest::Follow(_)) => self.pump(interest, fx),
                Some(Interest::Requirement(_)) => self.hand_out(interest, fx),
                // It has ended, and another may have its number.
                Some(Interest::Demand(_) | Interest::Subscription(_)) | None => {}
            }
        }
        self.follow_up(fx);
    }

    /// What has yet to go, in the order of its turns; for those who check.
    #[must_use]
    pub fn departing(&self) -> Vec<Departing> {
        let left = self.deferred.queue.iter().filter_map(|left| {
            let (id, sequence) = match *left {
                Left::Object { id, sequence } => (id, sequence),
                Left::Part { number, .. } => return Some(Departing::Part(number)),
                Left::Answer { .. } => return None,
            };
            let object = self.objects.get(id)?;
            match object.is_visible() {
                _ if object.sequence != sequence || object.departs.is_none() => None,
                true => Some(Departing::Object(sequence)),
                false => Some(Departing::Payload(sequence)),
            }
        });
        let due = self.objects.expiries.due(self.timers.now, &self.objects.table);
        left.chain(due.map(Departing::Time)).collect()
    }

    /// What is done in parts and is not done yet, in the order of the queue; for those who check.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Unfinished> {
        let parts = self.deferred.queue.iter().filter_map(|left| match left {
            Left::Part { number, turns, part } => Some((*number, *turns, part)),
            Left::Object { .. } | Left::Answer { .. } => None,
        });
        let unfinished = parts.map(|(number, turns, part)| Unfinished::of(self, number, turns, part));
        unfinished.collect()
    }

    /// An object that may be gone as soon as nobody has it is let go as far as nothing keeps it, now or in its turn.
    pub(in crate::core) fn settle_in_turn(&mut self, id: u32, fx: &mut impl Effects) {
        let Some(object) = self.objects.get(id) else {
            return;
        };
        if object.departs.is_some() {
            return;
        }
        if object.may_go() && !self.deferred.take_turn() {
            return self
                .deferred
                .leave_for_later(&mut self.objects, &mut self.memory, id, Why::Expired);
        }
        self.settle(id, fx);
    }

    /// An object is withdrawn, now or in its turn.
    pub(in crate::core) fn take_out_in_turn(&mut self, id: u32, fx: &mut impl Effects) {
        if self.objects[id].departs.is_some() {
            return;
        }
        if self.objects[id].is_visible() && !self.deferred.take_turn() {
            return self
                .deferred
                .leave_for_later(&mut self.objects, &mut self.memory, id, Why::Withdrawn);
        }
        self.take_one_out(id, fx);
    }

    /// Lets go what earlier events have left, as much as may go in one.
    pub(in crate::core) fn catch_up(&mut self, fx: &mut impl Effects) {
        if self.deferred.queue.is_empty() {
            return;
        }
        self.memory.freed.gathers = true;
        self.deferred.answer_those_in_turn(&self.clients, &self.objects, fx);
        while !self.deferred.queue.is_empty() && self.deferred.take_turn() {
            match self.deferred.pop() {
                Some(Left::Object { id, .. }) => self.depart(id, fx),
                Some(Left::Part { number, turns, part }) => self.go_on(number, turns + 1, part, fx),
                Some(Left::Answer { .. }) | None => {}
            }
            self.deferred.answer_those_in_turn(&self.clients, &self.objects, fx);
        }
        self.memory.freed.gathers = false;
        self.memory.freed.tell(fx);
        self.follow_up(fx);
    }

    /// Does it for one more object.
    fn go_on(&mut self, number: u64, turns: u64, mut part: Part, fx: &mut impl Effects) {
        let has_more = match &mut part {
            &mut Part::TakeOut { id, client, request } => self.take_out_next(id, (client, request), fx),
            Part::Owe(id) => self.owe_next(*id, fx),
            Part::Disown(owed) => self.disown_next(owed, fx),
            Part::Await(coming) => self.await_next(coming, fx),
            Part::Unwatch(queue) => match queue.pop() {
                Some(object) => {
                    self.objects.unwatch(object);
                    true
                }
                None => false,
            },
        };
        if has_more {
            self.deferred.put_back(Left::Part { number, turns, part });
        }
    }

    fn depart(&mut self, id: u32, fx: &mut impl Effects) {
        let object = &mut self.objects[id];
        match object.departs.take() {
            Some(why) if object.is_visible() => self.remove(id, why, fx),
            _ => self.settle(id, fx),
        }
    }

    /// Whether a visible object is seen by nobody any more: it goes when its turn comes.
    pub(in crate::core) fn is_out_of_sight(&self, object: &Object) -> bool {
        let is_over = || object.owed == 0 && matches!(object.until, Until::Time(at) if at <= self.timers.now);
        object.is_visible() && (object.departs.is_some() || is_over())
    }

    /// Somebody comes upon an object: if it is out of sight, it goes before its turn.
    pub(in crate::core) fn see_off(&mut self, id: u32, fx: &mut impl Effects) {
        let object = &self.objects[id];
        if self.is_out_of_sight(object) {
            let why = object.departs.unwrap_or(Why::Expired);
            self.remove(id, why, fx);
        }
    }

    /// Somebody asks for a key: what is out of sight under it goes before its turn.
    pub(in crate::core) fn see_off_key(&mut self, key: u128, fx: &mut impl Effects) {
        if self.is_behind()
            && let Some(Filed::Object(id)) = self.objects.find_key(key)
        {
            self.see_off(id, fx);
        }
    }

    /// What is out of sight and matches, of what became visible after `since`.
    pub(in crate::core) fn out_of_sight_after(&mut self, since: u64, selectors: &SelectorSet) -> Vec<u32> {
        if !self.is_behind() {
            return Vec::new();
        }
        let all = self.all_matches(selectors);
        let is_missed = |id: &u32| {
            let object = &self.objects[*id];
            object.sequence > since && self.is_out_of_sight(object)
        };
        all.into_iter().filter(is_missed).collect()
    }
}

impl DeferredWork {
    /// What a client said has left something for later.
    pub(in crate::core) fn note_left(&mut self, clients: &mut ClientTable, client: u32) {
        if self.has_grown()
            && let Some(state) = clients.get_mut(client)
        {
            state.left = self.came;
        }
    }

    /// What a client said before is in effect: it is told so, when nothing that it has left is left.
    pub(in crate::core) fn answer_sync(
        &mut self,
        clients: &ClientTable,
        client: u32,
        request: u64,
        fx: &mut impl Effects,
    ) {
        let left = clients.get(client).map_or(0, |state| state.left);
        if left > self.went {
            self.push(Left::Answer {
                client,
                request,
                count: 0,
            });
        } else {
            fx.reply(client, request, &Reply::Done(0));
        }
    }

    /// A request is answered when what this event has left for later has gone.
    pub(in crate::core) fn answer_in_turn(&mut self, client: u32, request: u64, count: u64, fx: &mut impl Effects) {
        if self.has_grown() {
            self.push(Left::Answer { client, request, count });
        } else {
            fx.reply(client, request, &Reply::Done(count));
        }
    }

    pub(in crate::core) fn leave_for_later(
        &mut self,
        objects: &mut ObjectTable,
        memory: &mut PayloadMemory,
        id: u32,
        why: Why,
    ) {
        let object = &mut objects[id];
        object.departs = Some(why);
        if object.leaving != Leaving::No {
            memory.give_up_writing(objects, id);
        }
        let object = &objects[id];
        let sequence = object.sequence;
        self.push(Left::Object { id, sequence });
    }

    /// Something is done in its turn, one object after the other.
    pub(in crate::core) fn go_on_later(&mut self, part: Part) {
        let number = self.came + 1;
        self.push(Left::Part { number, turns: 0, part });
    }

    /// Those whose turn has come are answered.
    pub(in crate::core) fn answer_those_in_turn(
        &mut self,
        clients: &ClientTable,
        objects: &ObjectTable,
        fx: &mut impl Effects,
    ) {
        while let Some(left) = self.pop_past(&objects.table) {
            if let Left::Answer { client, request, count } = left
                && clients.table.contains_key(&client)
            {
                fx.reply(client, request, &Reply::Done(count));
            }
        }
    }
}
