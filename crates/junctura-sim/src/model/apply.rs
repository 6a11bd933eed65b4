//! The state changes of each request, and its due answers.

use std::collections::BTreeMap;

use junctura_model::Code;
use junctura_wire::body::events;

use super::memory::Verdict;
use super::{Fate, Following, Going, Model, Number, WaitingOffer, Want};
use crate::clients::replies::Said;
use crate::clients::requests::{Aim, Ask, Back, Offer, Resume};
use crate::run::universe::{Order, Query};
use crate::world::recorder::Recorder;

impl Model {
    pub(super) fn apply(&mut self, client: u32, number: u64, ask: &Ask, recorder: &Recorder) {
        let Some(is_known) = self.clients.get(&client).map(|state| state.known) else {
            return;
        };
        if let Some(code) = self.refusal(client, ask, is_known) {
            return self.fail(client, number, Some(code));
        }
        let is_draining = self.is_draining();
        let Some(state) = self.clients.get_mut(&client) else {
            return;
        };
        match ask {
            Ask::Hello {
                wrong_version,
                offer_timeout_ms,
                visits,
                component,
            } if !state.known => {
                if *wrong_version {
                    return self.fail(client, number, Some(Code::Unsupported));
                }
                state.known = true;
                state.is_newcomer = is_draining && !visits;
                state.offer_timeout = offer_timeout_ms.map(|ms| ms * 1_000_000);
                state.component = component.filter(|_| !visits);
                self.came.extend(state.component);
                self.want(client, number, Want::Welcome);
                self.tell_of_client(events::JOINED, client);
            }
            Ask::Garbage { fatal } => {
                let code = if *fatal { Code::Protocol } else { Code::Unsupported };
                self.fail(client, number, Some(code));
                if *fatal {
                    self.leave(client);
                }
            }
            _ if !state.known => self.fail(client, number, Some(Code::Protocol)),
            _ => self.apply_known(client, number, ask, recorder),
        }
    }

    fn apply_known(&mut self, client: u32, number: u64, ask: &Ask, recorder: &Recorder) {
        match ask {
            Ask::Hello { .. } | Ask::Garbage { .. } => self.fail(client, number, Some(Code::Protocol)),
            Ask::Offer(offer) => self.offer(client, number, None, &self.named(client, offer)),
            Ask::Stage { bundle, offer } => self.offer(client, number, Some(*bundle), &self.named(client, offer)),
            Ask::Consumers(bits) => self.number_names(client, number, *bits),
            Ask::Bundle {
                path,
                members,
                orphan_ms,
            } => self.open_bundle(client, number, *path, *members, *orphan_ms),
            Ask::Seal(which) => self.seal(client, number, *which),
            Ask::Abort(which) => self.abort(client, number, *which),
            Ask::Lease {
                bytes,
                timeout_ms,
                staged,
            } => self.lease(client, number, (*bytes, *staged), *timeout_ms, recorder),
            Ask::Wanted {
                key, size, declines, ..
            } => self.asked_if_wanted(client, number, (*key, *size), *declines),
            Ask::Return(segment) => self.give_back(client, number, *segment),
            Ask::Demand {
                aim,
                timeout_ms,
                requirement,
                name,
            } => match self.through(client, *requirement, *name) {
                Ok(Some(group)) if self.is_group(group) && self.held_by(client) < self.rules.held_per_client => {
                    self.fail(client, number, Some(Code::Unsupported));
                }
                Ok(requirement) => self.demand(client, number, aim, *timeout_ms, requirement),
                Err(()) if self.held_by(client) >= self.rules.held_per_client => {
                    self.fail(client, number, Some(Code::LimitExceeded));
                }
                Err(()) => self.fail(client, number, Some(Code::NotFound)),
            },
            Ask::Cancel(which) => self.cancel(client, *which),
            Ask::List { query, order } => self.list(client, number, query, *order),
            Ask::Tally {
                query,
                by_size,
                filed_only,
                ..
            } => self.tally(client, number, query, *by_size, *filed_only),
            Ask::More(which) => {
                if let Some(Going::List { .. }) = self.going.get(&(client, *which)) {
                    self.want(client, *which, Want::Page);
                }
            }
            Ask::Follow { .. } => self.follow(client, number, ask),
            Ask::Release(holdings) => self.release(client, number, holdings, None),
            Ask::ReleaseMapped(holdings) => self.release_mapped(client, number, holdings),
            Ask::GiveBack(holdings, back) => self.release(client, number, holdings, Some(*back)),
            Ask::Require { terms, name: None } => self.require(client, number, terms),
            Ask::Require {
                terms,
                name: Some(name),
            } => self.require_named(client, number, *name, terms),
            Ask::Retract(name) => self.retract(client, number, *name),
            Ask::Withdraw { key, timeout_ms, force } => self.withdraw(client, number, *key, *timeout_ms, *force),
            Ask::WithdrawAll {
                query,
                timeout_ms,
                force,
            } if self.take_out_in_parts((client, number), &self.all_matches(query), *timeout_ms, *force) => {}
            Ask::WithdrawAll {
                query,
                timeout_ms,
                force,
            } => {
                let mut targets = self.visible_matches(query, Order::Key);
                targets.sort_unstable();
                self.take_all_out(client, number, &targets, *timeout_ms, *force);
            }
            Ask::Forget(aim) => {
                let known = self.tombstones.len();
                let gone = |stone: &super::Tombstone| stone.sequence > 0 && self.is_aimed_at(aim, stone.sequence);
                let left = self.tombstones.iter().filter(|stone| !gone(stone)).cloned().collect();
                self.tombstones = left;
                let freed = known - self.tombstones.len();
                self.free_paths();
                self.want(client, number, Want::Done(freed as u64));
            }
            Ask::Drain { timeout_ms } => self.drain(client, number, *timeout_ms, recorder),
            Ask::Subscribe { query, events } => self.subscribe(client, number, query, *events),
            Ask::Stop(which) => self.stop(client, number, *which),
            Ask::Sync => self.sync(client, number),
            Ask::Archived { name, sequences, fails } => self.archived(client, number, *name, sequences, *fails),
            Ask::Stat => self.want(client, number, Want::Stats),
            Ask::Goodbye => self.leave(client),
        }
    }

    fn offer(&mut self, client: u32, number: u64, bundle: Option<u64>, offer: &Offer) {
        let limit = self.rules.waiting_offers_per_client;
        let waiting = self.clients.get(&client).map_or(0, |state| state.waiting.len());
        let verdict = if waiting > 0 {
            self.flaw(offer).unwrap_or(Verdict::Waits)
        } else {
            self.verdict_of(client, bundle, offer)
        };
        match verdict {
            Verdict::Visible => {
                let sequence = self.take_up(client, number, bundle, offer);
                self.want(client, number, Want::Offered(sequence));
                self.await_archive(client, number, bundle, offer, sequence);
            }
            Verdict::Fails(code) => self.fail(client, number, code),
            Verdict::Declined => self.decline_offer(client, number, offer),
            Verdict::Waits if waiting >= limit => self.fail(client, number, Some(Code::PoolFull)),
            Verdict::Waits => {
                let now = self.now;
                let Some(state) = self.clients.get_mut(&client) else {
                    return;
                };
                let deadline = state.offer_timeout.map(|timeout| now + timeout);
                state.waiting.push_back(WaitingOffer {
                    number,
                    bundle,
                    offer: offer.clone(),
                    deadline,
                });
            }
        }
    }

    fn demand(&mut self, client: u32, number: u64, aim: &Aim, timeout_ms: Option<u64>, requirement: Option<Number>) {
        if self.held_by(client) >= self.rules.held_per_client {
            return self.fail(client, number, Some(Code::LimitExceeded));
        }
        if let Some(requirement) = requirement {
            self.end_beginning(requirement);
            self.go_forward(requirement);
        }
        let found = match aim {
            Aim::Key(key) => {
                if self.is_gone(*key) {
                    return self.fail(client, number, Some(Code::Gone));
                }
                if self.is_declined(*key) {
                    return self.refuse_declined(client, number, *key);
                }
                self.visible.get(key).copied()
            }
            Aim::Query(query) => self.visible_matches(query, Order::Key).into_iter().max(),
        };
        if let Some(sequence) = found {
            return self.want(client, number, Want::Delivered { sequence, requirement });
        }
        if timeout_ms == Some(0) {
            return self.fail(client, number, Some(Code::NotFound));
        }
        if self.is_draining() {
            return self.fail(client, number, Some(Code::Closed));
        }
        let deadline = self.deadline_in(timeout_ms);
        self.go_on(
            client,
            number,
            Going::Demand {
                aim: aim.clone(),
                requirement,
                deadline,
            },
        );
    }

    /// Adds a long-running request; returns false, and the request fails, when the client has too many.
    pub(super) fn go_on(&mut self, client: u32, number: u64, going: Going) -> bool {
        if self.is_full_of_requests(client) {
            self.fail(client, number, Some(Code::LimitExceeded));
            return false;
        }
        self.going.insert((client, number), going);
        true
    }

    fn cancel(&mut self, client: u32, which: u64) {
        if let Some(
            Going::Demand { .. } | Going::Lease { .. } | Going::Withdraw { .. } | Going::Drain | Going::Sync(_),
        ) = self.going.get(&(client, which))
        {
            self.end((client, which));
            self.want(client, which, Want::Failed(Some(Code::Interrupted)));
        }
    }

    fn list(&mut self, client: u32, number: u64, query: &Query, order: Order) {
        let rest = self.visible_matches(query, order).into();
        if self.go_on(client, number, Going::List { rest }) {
            self.want(client, number, Want::Began(self.sequence));
            self.want(client, number, Want::Page);
        }
    }

    fn follow(&mut self, client: u32, number: u64, ask: &Ask) {
        let Ask::Follow {
            query,
            order,
            window,
            cursor,
            only_new,
            until_live,
            requirement,
            name,
            group,
        } = ask
        else {
            return;
        };
        if *window == 0 {
            return self.fail(client, number, Some(Code::InvalidArgument));
        }
        if let Some(share) = group {
            return self.share(client, number, share, *window, *until_live);
        }
        let Ok(via) = self.through(client, *requirement, *name) else {
            return self.fail(client, number, Some(Code::NotFound));
        };
        if let Some(group) = via.filter(|&via| self.is_group(via)) {
            return match name {
                Some(_) => self.fail(client, number, Some(Code::Conflict)),
                None => self.join_group(client, number, group, *window, *until_live),
            };
        }
        if let Some(via) = via {
            self.end_beginning(via);
        }
        if cursor.as_ref().is_some_and(|cursor| cursor.foreign) {
            return self.fail(client, number, Some(Code::Expired));
        }
        let mut follow = Following {
            query: query.clone(),
            window: *window,
            in_flight: 0,
            progress: 0,
            via,
            joined: None,
            until_live: *until_live,
            said_live: false,
            is_closing: false,
            perhaps: [].into(),
            is_over: false,
            missed: [].into(),
            first: [].into(),
            live: [].into(),
            given: [].into(),
        };
        let mut since = self.sequence;
        match (via.and_then(|via| self.going.get(&via)), cursor) {
            (Some(Going::Require(one)), _) if one.reader.is_some() => {
                return self.fail(client, number, Some(Code::Conflict));
            }
            (Some(Going::Require(one)), _) => {
                let waiting = one.owed.iter().filter(|(_, in_flight)| **in_flight == 0);
                follow.first = waiting.map(|(&sequence, _)| sequence).collect();
            }
            (_, Some(cursor)) => {
                since = cursor.since;
                self.resume(&mut follow, cursor, *order);
            }
            _ if *only_new => {}
            _ => follow.first = self.visible_matches(query, *order).into(),
        }
        if !self.go_on(client, number, Going::Follow(Box::new(follow))) {
            return;
        }
        self.want(client, number, Want::Began(since));
        if let Some(Going::Require(one)) = via.and_then(|via| self.going.get_mut(&via)) {
            one.reader = Some((client, number));
            one.lapses = None;
        }
        if let Some(via) = via {
            self.go_forward(via);
            self.tell_lost(via);
        }
    }

    /// Resumes after the last key with visible objects with a number up to S, then live with all above S; and with gaps
    /// of remembered objects that became visible since.
    fn resume(&self, follow: &mut Following, cursor: &Resume, order: Order) {
        let visible = self.visible_matches(&follow.query, order);
        let (there, mut live): (Vec<u64>, Vec<u64>) =
            visible.into_iter().partition(|&sequence| sequence <= cursor.since);
        live.sort_unstable();
        follow.live = live.into();
        if let Some((key, value)) = cursor.first {
            let last = (&self.universe.keys[key], value);
            let after = |&sequence: &u64| {
                let key = self.key_of(sequence);
                order
                    .compare((key, order.value(key, self.object(sequence).offer.size)), last)
                    .is_gt()
            };
            follow.first = there.into_iter().filter(after).collect();
        }
        let departing = self.visible.values().copied();
        let departing = departing.filter(|&sequence| self.is_out_of_sight(sequence));
        let gone = self.tombstones.iter().map(|stone| stone.sequence);
        let mut missed: Vec<u64> = gone.chain(departing).collect();
        missed.retain(|&sequence| sequence > cursor.since && self.matches(&follow.query, sequence));
        missed.sort_unstable();
        follow.missed = missed.into();
    }

    fn release(&mut self, client: u32, number: u64, holdings: &[(u32, u64)], back: Option<Back>) {
        let mut is_wrong = false;
        for &(holding, sequence) in holdings {
            match self.held.get(&(client, holding)) {
                Some(held) if held.sequence == sequence => {
                    if let Some(held) = self.held.remove(&(client, holding)) {
                        match back {
                            _ if held.is_released => self.take_back(client, &held, false),
                            Some(back) => self.come_back(client, &held, back),
                            None => self.take_back(client, &held, true),
                        }
                        self.end_retentions();
                    }
                }
                _ => is_wrong = true,
            }
        }
        self.readers_have_room(client);
        if is_wrong {
            self.fail(client, number, Some(Code::Expired));
        }
    }

    /// A mapped release counts as a release; the memory is held until the next release.
    fn release_mapped(&mut self, client: u32, number: u64, holdings: &[(u32, u64)]) {
        let mut is_wrong = false;
        for &(holding, sequence) in holdings {
            let kept = self.held.get_mut(&(client, holding));
            let Some(kept) = kept.filter(|held| held.sequence == sequence && !held.is_released) else {
                is_wrong = true;
                continue;
            };
            let held = kept.clone();
            *kept = super::Held {
                sequence,
                follow: None,
                requirement: None,
                is_released: true,
            };
            self.object_mut(sequence).holders += 1;
            self.take_back(client, &held, true);
            self.end_retentions();
        }
        self.readers_have_room(client);
        if is_wrong {
            self.fail(client, number, Some(Code::Expired));
        }
    }

    fn withdraw(&mut self, client: u32, number: u64, key: usize, timeout_ms: Option<u64>, force: bool) {
        let kept = |&sequence: &u64| {
            let object = self.object(sequence);
            object.offer.key == key && object.fate == Fate::Superseded && object.owed > 0
        };
        let mut targets: Vec<u64> = self.unfreed.iter().copied().filter(kept).collect();
        targets.extend(self.visible.get(&key));
        if targets.is_empty() {
            let is_gone = self.is_gone(key);
            return self.fail(client, number, Some(if is_gone { Code::Gone } else { Code::NotFound }));
        }
        let all = targets.iter().copied().collect();
        if !self.take_out_in_parts((client, number), &all, timeout_ms, force) {
            self.take_all_out(client, number, &targets, timeout_ms, force);
        }
    }

    fn take_all_out(&mut self, client: u32, number: u64, targets: &[u64], timeout_ms: Option<u64>, force: bool) {
        let (mut waits, mut done) = (BTreeMap::new(), 0);
        let is_to_wait = !force && targets.iter().any(|&sequence| !self.owed_to(sequence).is_empty());
        if is_to_wait && timeout_ms != Some(0) && self.is_full_of_requests(client) {
            return self.fail(client, number, Some(Code::LimitExceeded));
        }
        for &sequence in targets {
            let blockers = if force { Vec::new() } else { self.owed_to(sequence) };
            if blockers.is_empty() {
                self.take_out(sequence);
                done += 1;
            } else {
                waits.insert(sequence, blockers.into_iter().collect());
            }
        }
        if waits.is_empty() {
            self.want(client, number, Want::Done(done));
        } else if timeout_ms == Some(0) {
            self.fail(client, number, Some(Code::Timeout));
        } else {
            let deadline = self.deadline_in(timeout_ms);
            let began = self.event;
            let withdraw = Going::Withdraw {
                waits,
                done,
                deadline,
                began,
                retiring: None,
            };
            self.go_on(client, number, withdraw);
        }
    }

    fn subscribe(&mut self, client: u32, number: u64, query: &Query, wanted: u32) {
        if wanted == 0 || wanted & !events::ALL != 0 {
            return self.fail(client, number, Some(Code::InvalidArgument));
        }
        if self.go_on(
            client,
            number,
            Going::Subscribe {
                query: query.clone(),
                events: wanted,
            },
        ) {
            self.want(client, number, Want::Began(self.sequence));
        }
    }

    fn stop(&mut self, client: u32, number: u64, which: u64) {
        match self.going.get(&(client, which)) {
            Some(
                Going::Follow(_)
                | Going::Subscribe { .. }
                | Going::Require(_)
                | Going::Use(_)
                | Going::Bundle(_)
                | Going::List { .. },
            ) => {
                self.forget_untold((client, which));
                self.end((client, which));
                self.want(client, number, Want::Done(0));
            }
            _ => self.fail(client, number, Some(Code::NotFound)),
        }
    }

    /// Handles the passing of time: requests that have timed out fail, unless replies show that they were met first;
    /// requirements expire. If some were broken, or expire while a client waits for memory, [`Model::make_room`]
    /// handles all of this in turns.
    pub(super) fn time_out(&mut self, recorder: &Recorder) {
        if self.in_turns {
            return;
        }
        for (client, number, said) in &recorder.said {
            if let Said::Failed(code) = **said {
                self.time_out_one((*client, *number), code);
            }
        }
        self.lapse((self.now, u64::MAX));
    }

    pub(super) fn time_out_one(&mut self, number: Number, code: Option<Code>) {
        let now = self.now;
        if let Some(&Going::Withdraw {
            deadline: Some(deadline),
            began,
            ..
        }) = self.going.get(&number)
        {
            self.lapse((deadline.min(now), began));
            self.settle();
        }
        let due = match self.going.get(&number) {
            Some(Going::Demand { deadline, .. } | Going::Withdraw { deadline, .. }) if code == Some(Code::Timeout) => {
                *deadline
            }
            Some(Going::Lease { deadline, .. }) if code == Some(Code::PoolFull) => *deadline,
            _ => None,
        };
        if due.is_some_and(|deadline| deadline <= now) {
            self.end(number);
            self.want(number.0, number.1, Want::Failed(code));
        }
        let Some(state) = self.clients.get_mut(&number.0) else {
            return;
        };
        let is_due =
            |offer: &WaitingOffer| offer.number == number.1 && offer.deadline.is_some_and(|deadline| deadline <= now);
        if code == Some(Code::PoolFull)
            && let Some(at) = state.waiting.iter().position(is_due)
        {
            state.waiting.remove(at);
            self.want(number.0, number.1, Want::Failed(code));
        }
    }
}
