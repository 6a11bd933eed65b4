//! Graceful shutdown: the requests refused from its first moment on, and its end.

use junctura_model::Code;

use super::{Going, Model, NOBODY, Number, Want};
use crate::clients::requests::Ask;
use crate::world::recorder::Recorder;

/// A pool that drains.
#[derive(Clone, Debug)]
pub(super) struct Draining {
    until: Option<u64>,
    /// How it ended: the error if something was left.
    ending: Option<Result<(), Code>>,
    began: u64,
    /// Follows for which the end no longer waits, since their readers released nothing.
    stalled: Vec<Number>,
    /// Follows without a requirement for which the end waits: they had objects in their queue when it began.
    follows: Vec<Number>,
}

/// A reader that releases nothing for this time no longer delays the end.
const PATIENCE_MAX: u64 = 10_000_000_000;

impl Model {
    /// Whether it takes nothing new.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.is_some()
    }

    /// Why a request is not taken any more.
    pub(super) fn refusal(&self, client: u32, ask: &Ask, is_known: bool) -> Option<Code> {
        let is_newcomer = self.clients.get(&client).is_some_and(|client| client.is_newcomer);
        match ask {
            _ if !self.is_draining() => None,
            Ask::Hello { visits: false, .. } if !is_known => (!self.owes_by_name()).then_some(Code::Unavailable),
            Ask::Require { name: Some(name), .. } if is_known && self.names().contains(&(NOBODY, *name as u64)) => None,
            _ if is_known && is_newcomer && asks_for_more(ask) => Some(Code::Unavailable),
            Ask::Offer(_)
            | Ask::Stage { .. }
            | Ask::Bundle { .. }
            | Ask::Lease { .. }
            | Ask::Require { .. }
            | Ask::Wanted { .. }
                if is_known =>
            {
                Some(Code::Closed)
            }
            _ => None,
        }
    }

    /// Whether a requirement with a name is owed something.
    fn owes_by_name(&self) -> bool {
        let is_owed =
            |going: &Going| matches!(going, Going::Require(one) if !one.owed.is_empty() || one.is_to_be_owed());
        self.names()
            .iter()
            .any(|name| self.going.get(name).is_some_and(is_owed))
    }

    pub(super) fn drain(&mut self, client: u32, number: u64, timeout_ms: Option<u64>, recorder: &Recorder) {
        if !self.go_on(client, number, Going::Drain) {
            return;
        }
        let until = self.deadline_in(timeout_ms);
        self.begin_to_drain(until, recorder);
    }

    /// The programs that the pool was for have connected, and the last one has left.
    pub(super) fn drain_without_components(&mut self, recorder: &Recorder) {
        let is_here =
            |(client, state): (&u32, &super::Client)| state.component.is_some() && !self.leaving.contains(client);
        let have_come = self.rules.components > 0 && self.came.len() == self.rules.components;
        if have_come && !self.is_draining() && !self.clients.iter().any(is_here) {
            self.begin_to_drain(None, recorder);
            self.settle();
        }
    }

    fn begin_to_drain(&mut self, until: Option<u64>, recorder: &Recorder) {
        if let Some(draining) = &mut self.draining {
            draining.until = draining.until.into_iter().chain(until).min();
            return;
        }
        let plain = |going: &Going| matches!(going, Going::Follow(one) if one.via.is_none() && one.has_queue());
        let follows = self.going.iter().filter(|(_, going)| plain(going));
        self.draining = Some(Draining {
            until,
            ending: None,
            began: self.now,
            stalled: Vec::new(),
            follows: follows.map(|(&number, _)| number).collect(),
        });
        self.give_up_all();
        let waiting: Vec<Number> = self
            .going
            .iter()
            .filter(|(number, going)| match going {
                Going::Demand { .. } => true,
                // An answer sent before, in this event, was in time.
                Going::Lease { .. } => !recorder.has_settled_lease(**number),
                _ => false,
            })
            .map(|(&number, _)| number)
            .collect();
        for number in waiting {
            self.end(number);
            self.want(number.0, number.1, Want::Failed(Some(Code::Closed)));
        }
        let offers: Vec<Number> = self
            .clients
            .iter_mut()
            .flat_map(|(&client, state)| state.waiting.drain(..).map(move |offer| (client, offer.number)))
            .collect();
        for (client, number) in offers {
            self.want(client, number, Want::Failed(Some(Code::Closed)));
        }
    }

    /// Before an event: follows that were given everything, or whose reader is stuck, no longer delay the end.
    pub(super) fn forget_last_follows(&mut self) {
        let Some(draining) = &self.draining else { return };
        let patience = self.rules.stuck_after_ns.min(PATIENCE_MAX);
        let waits = |number: &&Number| match self.going.get(*number) {
            Some(Going::Follow(one)) => one.has_queue() && one.progress.max(draining.began) + patience > self.now,
            _ => false,
        };
        let has_queue = |number: &Number| matches!(self.going.get(number), Some(Going::Follow(one)) if one.has_queue());
        let (follows, mut others): (_, Vec<Number>) =
            draining.follows.iter().copied().partition(|number| waits(&number));
        others.retain(has_queue);
        if let Some(draining) = &mut self.draining {
            draining.follows = follows;
            draining.stalled.extend(others);
        }
    }

    /// When a follow no longer delays the end; now, if none does any more.
    pub(super) fn last_follows_due(&self) -> Option<u64> {
        let draining = self.draining.as_ref().filter(|draining| draining.ending.is_none())?;
        let is_owed = |going: &Going| matches!(going, Going::Require(one) if !one.owed.is_empty());
        if self.going.values().any(is_owed) || self.is_owing() {
            return None;
        }
        let patience = self.rules.stuck_after_ns.min(PATIENCE_MAX);
        let due = |number: &Number| match self.going.get(number) {
            Some(Going::Follow(one)) if one.has_queue() => Some(one.progress.max(draining.began) + patience),
            _ => None,
        };
        let first = draining.follows.iter().filter_map(due).min();
        first.or_else(|| draining.follows.first().map(|_| self.now))
    }

    /// Whether the next event ends the pool, since the last follow has been given everything in this one.
    #[must_use]
    pub fn ends_next(&self) -> bool {
        self.last_follows_due().is_some_and(|due| due <= self.now)
    }

    /// It is over when nothing is owed any more, or when its time is; the requests to stop get the matching answer.
    pub(super) fn end_drain(&mut self) {
        let is_owed =
            |going: &Going| matches!(going, Going::Require(one) if !one.owed.is_empty() || one.is_to_be_owed());
        let (now, left) = (self.now, self.going.values().any(is_owed));
        let goes_on = self.is_owing() || self.has_untold() || self.refuses_later();
        let has_queue = |number: &Number| matches!(self.going.get(number), Some(Going::Follow(one)) if one.has_queue());
        let undelivered = |draining: &Draining| draining.follows.iter().any(has_queue);
        let left = left || self.draining.as_ref().is_some_and(undelivered);
        let Some(draining) = &mut self.draining else { return };
        let goes_on = left || goes_on || !draining.follows.is_empty();
        let is_late = draining.until.is_some_and(|until| until <= now);
        if draining.ending.is_none() && goes_on && !is_late {
            return;
        }
        let code = if is_late { Code::Timeout } else { Code::Gone };
        let left = left || draining.stalled.iter().any(has_queue);
        let ending = *draining.ending.get_or_insert(if left { Err(code) } else { Ok(()) });
        let askers: Vec<Number> = self
            .going
            .iter()
            .filter(|(_, going)| matches!(going, Going::Drain))
            .map(|(&number, _)| number)
            .collect();
        for number in askers {
            self.end(number);
            let answer = ending.map_or_else(|code| Want::Failed(Some(code)), |()| Want::Done(0));
            self.want(number.0, number.1, answer);
        }
    }

    pub(super) fn drain_deadline(&self) -> Option<u64> {
        self.draining
            .as_ref()
            .filter(|draining| draining.ending.is_none())
            .and_then(|draining| draining.until)
    }
}

/// Whether a client that joined a draining pool asks for more than what a requirement with a name is owed.
fn asks_for_more(ask: &Ask) -> bool {
    match ask {
        Ask::Follow {
            requirement,
            name,
            group,
            ..
        } => requirement.is_none() && name.is_none() && group.is_none(),
        Ask::Demand { requirement, name, .. } => requirement.is_none() && name.is_none(),
        Ask::Offer(_)
        | Ask::Stage { .. }
        | Ask::Bundle { .. }
        | Ask::Forget(_)
        | Ask::Lease { .. }
        | Ask::List { .. }
        | Ask::Require { .. }
        | Ask::Subscribe { .. }
        | Ask::Tally { .. }
        | Ask::Wanted { .. }
        | Ask::Withdraw { .. }
        | Ask::WithdrawAll { .. } => true,
        _ => false,
    }
}
