//! The beginning and the end of a drain.

use std::time::Duration;

use junctura_model::{Code, Error, Result};
use junctura_wire::body::{self, WireFailure};
use junctura_wire::{Reply, Request};

use crate::Effects;
use crate::core::clients::client::{PendingAnswer, milliseconds};
use crate::core::clients::requests::ClientRequests;
use crate::core::deferred::DeferredPart;
use crate::core::engine::Core;
use crate::core::engine::drain::DrainState;
use crate::core::engine::timers::Nanoseconds;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::interest::StandingInterest;
use crate::core::interests::requirement::RequirementState;

/// The number of requirements and follows that are named if they are still owed objects.
const NAMED_MAX: usize = 3;

impl DrainState {
    /// Removes a request that waits for the end. The pool ends nevertheless.
    pub(in crate::core) fn forget_asker(&mut self, client: u32, request: u64) {
        self.askers.remove(&(client, request));
    }

    /// # Errors
    /// `Closed` when an absent object can no longer be offered.
    pub(in crate::core) fn may_come(&self) -> Result<()> {
        if self.has_begun {
            return Err(draining(Code::Closed));
        }
        Ok(())
    }

    /// Returns when it ends at the latest.
    pub(in crate::core) fn deadline(&self) -> Option<Nanoseconds> {
        self.until.filter(|_| self.ending.is_none())
    }
}

impl Core {
    /// The error of a request that a draining pool refuses.
    pub(in crate::core) fn refused_by_drain(
        &self,
        client: u32,
        request: &Request<'_>,
        is_known: bool,
    ) -> Option<Error> {
        if !self.drain.has_begun {
            return None;
        }
        let asked = &self.exchange.asked;
        let is_newcomer = asked.clients.get(client).is_some_and(|state| state.is_newcomer);
        match (request, is_known) {
            (Request::Hello(hello), false) if !hello.visits && !asked.owes_by_name() => {
                Some(draining(Code::Unavailable))
            }
            (Request::Require(require), true) if asked.has_requirement(require.name.as_deref()) => None,
            (_, true) if is_newcomer && asks_for_more(request) => Some(draining(Code::Unavailable)),
            (
                Request::Offer { .. }
                | Request::Stage { .. }
                | Request::Bundle(_)
                | Request::Lease(_)
                | Request::Require(_)
                | Request::Wanted(_),
                true,
            ) => Some(draining(Code::Closed)),
            _ => None,
        }
    }

    /// Whether the pool takes nothing new, and ends when nothing is owed any more.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.drain.has_begun
    }

    /// Begins to drain: ends after `timeout` at the latest, if there is one, else when requirements are owed nothing, and
    /// follows have received what was visible. A second call can only shorten the time.
    pub fn drain(&mut self, now: Nanoseconds, timeout: Option<Duration>, fx: &mut impl Effects) {
        self.exchange.begin(now);
        self.begin_to_drain(timeout.map(|time| time.as_nanos() as u64), fx);
        self.follow_up(fx);
    }

    /// Returns its end, once it has ended: complete, or the remaining objects.
    #[must_use]
    pub fn ending(&self) -> Option<&Result<()>> {
        self.drain.ending.as_ref()
    }

    pub(in crate::core) fn drain_for(
        &mut self,
        client: u32,
        request: u64,
        drain: &body::DrainRequest,
        fx: &mut impl Effects,
    ) -> Result<()> {
        self.exchange
            .asked
            .clients
            .add_pending(client, request, PendingAnswer::Drain)?;
        self.begin_to_drain(drain.timeout_ms.map(milliseconds), fx);
        self.drain
            .askers
            .insert((client, request), self.exchange.asked.timers.now);
        Ok(())
    }

    pub(in crate::core) fn begin_to_drain(&mut self, timeout: Option<Nanoseconds>, fx: &mut impl Effects) {
        let drain = &mut self.drain;
        let is_first = !std::mem::replace(&mut drain.has_begun, true);
        let until = timeout.map(|time| self.exchange.asked.timers.now.saturating_add(time));
        drain.until = drain.until.into_iter().chain(until).min();
        if is_first {
            self.drain.began = self.exchange.asked.timers.now;
            self.exchange.abort_all_bundles(fx);
            self.look_at_interests(fx);
            refuse_those_who_wait_for_memory(&mut self.exchange, fx);
        }
    }

    /// Refuses waiting demands, and finds the follows that the end waits for; in turns if the interests are many.
    fn look_at_interests(&mut self, fx: &mut impl Effects) {
        self.drain.looks = true;
        if self.exchange.asked.interests.table.len() > self.config.changed_at_once {
            self.exchange.deferred.go_on_later(DeferredPart::Refuse(0));
        } else {
            let mut next = 0;
            while self.drain.look_at_next(&mut self.exchange.asked, &mut next, fx) {}
        }
    }

    /// Checks whether the drain is complete, and answers the requests that wait for it.
    pub(in crate::core) fn end_if_drained(&mut self, fx: &mut impl Effects) {
        let now = self.exchange.asked.timers.now;
        let is_late = self.drain.until.is_some_and(|until| until <= now);
        if is_late && self.drain.looks {
            // Each demand is answered, and each follow named, before the end.
            self.drain.follows.clear();
            self.drain.stalled.clear();
            let mut next = 0;
            while self.drain.look_at_next(&mut self.exchange.asked, &mut next, fx) {}
        }
        let drain = &mut self.drain;
        let asked = &self.exchange.asked;
        let tells = !asked.untold.is_empty() || drain.looks;
        let goes_on = asked.interests.owed > 0 || tells || !drain.follows.is_empty();
        if drain.ending.is_none() && goes_on && !is_late {
            return;
        }
        let code = if is_late { Code::Timeout } else { Code::Gone };
        let ending = match &drain.ending {
            Some(ending) => ending.clone(),
            None => what_is_left(asked, drain, code).map_or(Ok(()), Err),
        };
        drain.follows.clear();
        drain.stalled.clear();
        drain.ending = Some(ending.clone());
        for (client, request) in std::mem::take(&mut drain.askers).into_keys() {
            self.exchange.asked.settle(client, request);
            match &ending {
                Err(left) => fx.reply(client, request, &Reply::Failed(WireFailure::from(left))),
                Ok(()) => fx.reply(client, request, &Reply::Done(0)),
            }
        }
    }
}

impl DrainState {
    /// Looks at the interest of this place. Returns whether there may be more.
    pub(in crate::core) fn look_at_next(
        &mut self,
        asked: &mut ClientRequests,
        next: &mut usize,
        fx: &mut impl Effects,
    ) -> bool {
        self.looks &= *next < asked.interests.standing.len();
        if self.looks {
            refuse_demand(asked, *next as u32, fx);
            self.wait_for(&asked.interests, *next as u32);
            *next += 1;
        }
        self.looks
    }
}

fn refuse_those_who_wait_for_memory(exchange: &mut ObjectExchange, fx: &mut impl Effects) {
    let error = draining(Code::Closed);
    let refusal = Reply::Failed(WireFailure::from(&error));
    for lease in exchange.memory.waiting_leases.take_all() {
        exchange.asked.settle(lease.client, lease.request);
        fx.reply(lease.client, lease.request, &refusal);
    }
    for client in std::mem::take(&mut exchange.memory.stalled).clients() {
        let offers = exchange.asked.clients.take_waiting_offers(client);
        for offer in offers {
            exchange.asked.timers.cancel(client, offer.number);
            fx.reply(client, offer.number, &refusal);
            exchange
                .asked
                .answer_syncs(&mut exchange.deferred, client, offer.syncs, fx);
        }
    }
}

/// Refuses the demand of a request: it has yet to be refused in its turn.
pub(in crate::core) fn refuse_request(asked: &mut ClientRequests, client: u32, request: u64, fx: &mut impl Effects) {
    if let Some(&PendingAnswer::Demand(id)) = asked.clients.pending(client, request) {
        refuse_demand(asked, id, fx);
    }
}

/// Refuses a demand that waits, and has not been met, since the pool drains.
fn refuse_demand(asked: &mut ClientRequests, id: u32, fx: &mut impl Effects) {
    let Some(StandingInterest::Demand(waiting)) = asked.interests.get(id).filter(|_| !asked.interests.is_met(id))
    else {
        return;
    };
    let (client, request) = (waiting.client, waiting.request);
    // A demand has no queue.
    _ = asked.end_interest(id);
    asked.settle(client, request);
    let refusal = draining(Code::Closed);
    fx.reply(client, request, &Reply::Failed(WireFailure::from(&refusal)));
}

/// Whether a client that connects to a draining pool requests more than objects that a named requirement is owed.
fn asks_for_more(request: &Request<'_>) -> bool {
    match request {
        Request::Follow(follow) => {
            follow.group.is_none() && follow.requirement_name.is_none() && follow.requirement.is_none()
        }
        Request::Demand(demand) => demand.requirement_name.is_none() && demand.requirement.is_none(),
        Request::Offer { .. }
        | Request::Stage { .. }
        | Request::Bundle(_)
        | Request::Bundles(_)
        | Request::Forget(_)
        | Request::Lease(_)
        | Request::List(_)
        | Request::Require(_)
        | Request::Subscribe(_)
        | Request::Tally(_)
        | Request::Wanted(_)
        | Request::Withdraw(_)
        | Request::WithdrawAll(_) => true,
        _ => false,
    }
}

impl ClientRequests {
    /// Whether a named requirement is owed objects, which a client may connect to receive.
    fn owes_by_name(&self) -> bool {
        self.interests.named.values().any(|&id| self.still_owed(id) > 0)
    }

    fn has_requirement(&self, name: Option<&str>) -> bool {
        name.is_some_and(|name| self.interests.named.contains_key(name))
    }

    /// Number of objects that a requirement is owed.
    fn still_owed(&self, id: u32) -> usize {
        let requirement = self.interests.requirement_ref(id);
        self.interests.owed_len(id) + requirement.map_or(0, RequirementState::to_be_owed)
    }
}

/// Describes what requirements are owed, and what follows have yet to receive, as an error with this code; `None`: nothing.
fn what_is_left(asked: &ClientRequests, drain: &DrainState, code: Code) -> Option<Error> {
    let interests = &asked.interests;
    let requirements = interests.requirements.iter().map(|id| (id, asked.still_owed(id)));
    let requirements = requirements.filter(|&(_, count)| count > 0);
    let owing: Vec<(u32, usize)> = requirements.chain(drain.unserved_follows(interests)).collect();
    let total: usize = owing.iter().map(|&(_, count)| count).sum();
    if total == 0 {
        return None;
    }
    let mut who: Vec<String> = owing
        .iter()
        .take(NAMED_MAX)
        .map(|&(id, count)| format!("{} ({count})", interests.owner_of(&asked.clients, id)))
        .collect();
    if owing.len() > NAMED_MAX {
        who.push(format!("and {} other interests", owing.len() - NAMED_MAX));
    }
    let cause = format!("ended before all was received; left: {total}, {}", who.join("; "));
    Some(Error::new(code, "pool", cause))
}

fn draining(code: Code) -> Error {
    let cause = "draining: it takes nothing new, and ends when what is owed has been received";
    Error::new(code, "pool", cause)
}
