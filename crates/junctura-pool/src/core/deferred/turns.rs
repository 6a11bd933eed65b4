//! Turns: deferred work is done one object after the other.

use crate::Effects;
use crate::core::deferred::{DeferredItem, DeferredPart, DepartingObject, UnfinishedWork};
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::flow::tell::NewsTeller;
use crate::core::interests::interest::StandingInterest;
use crate::core::objects::index::HiddenObjects;
use crate::core::objects::key_table::KeyEntry;
use crate::core::objects::object::RemovalReason;

impl Core {
    /// Whether follows have more to deliver, or waiting requests to be served: [`Core::tick`] is to be called as soon as
    /// other clients were served.
    #[must_use]
    pub fn is_delivering(&self) -> bool {
        let exchange = &self.exchange;
        !exchange.deferred.delivering.is_empty() || exchange.deferred.serves_later || !exchange.asked.untold.is_empty()
    }

    /// Delivers objects that earlier events left, and serves requests that they left waiting: as many as one event may.
    /// The next event continues with the follows behind the last one.
    pub(in crate::core) fn deliver_more(&mut self, fx: &mut impl Effects) {
        if !self.is_delivering() {
            return;
        }
        let exchange = &mut self.exchange;
        NewsTeller::of(exchange).tell_more(fx);
        for _ in 0..exchange.deferred.may_deliver.min(exchange.deferred.delivering.len()) {
            if exchange.deferred.may_deliver == 0 {
                break;
            }
            let Some(interest) = exchange.deferred.next_delivering() else {
                break;
            };
            match exchange.asked.interests.get(interest) {
                Some(StandingInterest::Follow(_)) => exchange.pump(interest, fx),
                Some(StandingInterest::Requirement(_)) => exchange.hand_out(interest, fx),
                // It has ended, and another interest may have its number.
                Some(StandingInterest::Demand(_) | StandingInterest::Subscription(_)) | None => {}
            }
        }
        exchange.memory.came_free |= std::mem::take(&mut exchange.deferred.serves_later);
        self.follow_up(fx);
    }

    /// Returns the objects that have yet to be removed, in order; for checks.
    #[must_use]
    pub fn departing(&self) -> Vec<DepartingObject> {
        let exchange = &self.exchange;
        let left = exchange.deferred.queue.iter().filter_map(|left| {
            let (id, sequence) = match *left {
                DeferredItem::Object { id, sequence } => (id, sequence),
                DeferredItem::Part { number, .. } => return Some(DepartingObject::Part(number)),
                DeferredItem::Answer { .. } => return None,
            };
            let object = exchange.objects.get(id)?;
            match object.is_visible() {
                _ if object.sequence != sequence || object.departs.is_none() => None,
                true => Some(DepartingObject::Object(sequence)),
                false => Some(DepartingObject::Payload(sequence)),
            }
        });
        let due = exchange
            .objects
            .expiries
            .due(exchange.asked.timers.now, &exchange.objects.table);
        left.chain(due.map(DepartingObject::Time)).collect()
    }

    /// Returns the unfinished partial work, in the order of the queue; for checks.
    #[must_use]
    pub fn unfinished(&self) -> Vec<UnfinishedWork> {
        let parts = self.exchange.deferred.queue.iter().filter_map(|left| match left {
            DeferredItem::Part { number, turns, part } => Some((*number, *turns, part)),
            DeferredItem::Object { .. } | DeferredItem::Answer { .. } => None,
        });
        let unfinished = parts.map(|(number, turns, part)| UnfinishedWork::of(self, number, turns, part));
        unfinished.collect()
    }

    /// Does deferred work of earlier events, as much as one event may do.
    pub(in crate::core) fn catch_up(&mut self, fx: &mut impl Effects) {
        if self.exchange.deferred.queue.is_empty() {
            return;
        }
        self.exchange.memory.freed.gathers = true;
        self.exchange
            .deferred
            .answer_those_in_turn(&self.exchange.asked.clients, &self.exchange.objects, fx);
        while !self.exchange.deferred.queue.is_empty() && self.exchange.deferred.take_turn() {
            match self.exchange.deferred.pop() {
                Some(DeferredItem::Object { id, .. }) => self.exchange.depart(id, fx),
                Some(DeferredItem::Part { number, turns, part }) => self.go_on(number, turns + 1, part, fx),
                Some(DeferredItem::Answer { .. }) | None => {}
            }
            self.exchange
                .deferred
                .answer_those_in_turn(&self.exchange.asked.clients, &self.exchange.objects, fx);
        }
        self.exchange.memory.freed.gathers = false;
        self.exchange.memory.freed.tell(fx);
        self.follow_up(fx);
    }

    /// Does the work for one more object.
    fn go_on(&mut self, number: u64, turns: u64, mut part: DeferredPart, fx: &mut impl Effects) {
        let has_more = match &mut part {
            &mut DeferredPart::TakeOut { id, client, request } => self.take_out_next(id, (client, request), fx),
            DeferredPart::Owe(id) => self.owe_next(*id, fx),
            DeferredPart::Disown(owed) => self.exchange.disown_next(owed, fx),
            DeferredPart::Await(coming) => self.exchange.await_next(coming, fx),
            DeferredPart::Drop(members) => members.drop_next(&mut self.exchange, fx),
            DeferredPart::Refuse(next) => self.drain.look_at_next(&mut self.exchange.asked, next, fx),
            DeferredPart::Unwatch(queue) => match queue.pop() {
                Some(object) => {
                    self.exchange.objects.unwatch(object);
                    true
                }
                None => false,
            },
        };
        if has_more {
            self.exchange
                .deferred
                .put_back(DeferredItem::Part { number, turns, part });
        }
    }
}

impl ObjectExchange {
    /// Begins an event.
    pub(in crate::core) fn begin(&mut self, now: Nanoseconds) {
        self.asked.timers.now = now;
        self.deferred.may_go = self.config.leaving_at_once.max(1);
        self.deferred.may_deliver = self.config.delivered_at_once.max(1);
        self.deferred.may_drop = self.config.changed_at_once;
        self.deferred.may_serve = self.config.served_at_once.max(1);
        self.deferred.came_before = self.deferred.came;
    }

    /// Whether there are hidden objects.
    pub(in crate::core) fn is_behind(&self) -> bool {
        !self.deferred.queue.is_empty()
            || self
                .objects
                .expiries
                .next()
                .is_some_and(|at| at <= self.asked.timers.now)
    }

    /// Returns the conditions that hide objects from look-ups now.
    pub(in crate::core) fn sight(&self) -> HiddenObjects {
        HiddenObjects {
            departed_by: self.is_behind().then_some(self.asked.timers.now),
        }
    }

    /// Settles an object that nothing may need any longer: frees the parts that nothing keeps, now or in its turn.
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
                .leave_for_later(&mut self.objects, &mut self.memory, id, RemovalReason::Expired);
        }
        self.settle(id, fx);
    }

    /// Withdraws an object, now or in its turn.
    pub(in crate::core) fn take_out_in_turn(&mut self, id: u32, fx: &mut impl Effects) {
        if self.objects[id].departs.is_some() {
            return;
        }
        if self.objects[id].is_visible() && !self.deferred.take_turn() {
            return self
                .deferred
                .leave_for_later(&mut self.objects, &mut self.memory, id, RemovalReason::Withdrawn);
        }
        self.take_one_out(id, fx);
    }

    pub(in crate::core) fn depart(&mut self, id: u32, fx: &mut impl Effects) {
        let object = &mut self.objects[id];
        match object.departs.take() {
            Some(why) if object.is_visible() => self.remove(id, why, fx),
            _ => self.settle(id, fx),
        }
    }

    /// Removes an object before its turn if it is hidden, since a request has reached it.
    pub(in crate::core) fn see_off(&mut self, id: u32, fx: &mut impl Effects) {
        let object = &self.objects[id];
        if object.is_out_of_sight(self.asked.timers.now) {
            let why = object.departs.unwrap_or(RemovalReason::Expired);
            self.remove(id, why, fx);
        }
    }

    /// Removes the hidden object of a requested key before its turn.
    pub(in crate::core) fn see_off_key(&mut self, key: u128, fx: &mut impl Effects) {
        if self.is_behind()
            && let Some(KeyEntry::Object(id)) = self.objects.find_key(key)
        {
            self.see_off(id, fx);
        }
    }
}
