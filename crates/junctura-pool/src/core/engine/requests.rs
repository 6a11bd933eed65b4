//! Requests: each is carried out by its part of the core, and answered.

use junctura_model::{Code, Error, Result};
use junctura_wire::body::WireFailure;
use junctura_wire::{Reply, Request};

use super::{Core, access};
use crate::Effects;
use crate::core::clients::client::PendingAnswer;
use crate::core::engine::draining::refuse_request;
use crate::core::objects::flow::survey;
use crate::core::objects::offer::OfferContent;

impl Core {
    pub(super) fn answer(&mut self, client: u32, number: u64, request: &Request<'_>, fx: &mut impl Effects) {
        let Some(state) = self.exchange.asked.clients.get(client) else {
            return;
        };
        let known = state.is_known();
        let lacks = access::refusal(state.access, request, &self.exchange.asked.interests);
        if let Some(refusal) = self.refused_by_drain(client, request, known).or(lacks) {
            return self.fail(client, number, &refusal, fx);
        }
        let outcome = match (request, known) {
            (Request::Hello(hello), false) => self.hello(client, number, hello, fx),
            (Request::Hello(_), true) => Err(protocol("Hello", "the client is known already")),
            (_, false) => Err(protocol("first frame", "the first request is Hello")),
            (&Request::Offer { head, record, inline }, _) => {
                self.offer(client, number, None, OfferContent { head, record, inline }, fx);
                return;
            }
            (
                &Request::Stage {
                    bundle,
                    head,
                    record,
                    inline,
                },
                _,
            ) => {
                self.offer(client, number, Some(bundle), OfferContent { head, record, inline }, fx);
                return;
            }
            (Request::Bundle(bundle), _) => self.open_bundle(client, number, bundle, fx),
            (&Request::Seal(which), _) => self.seal(client, number, which, fx),
            (&Request::Abort(which), _) => self.abort(client, number, which, fx),
            (Request::Bundles(bundles), _) => {
                self.exchange
                    .bundles
                    .list_bundles(&self.exchange.asked, client, number, bundles, fx)
            }
            (Request::Consumers(consumers), _) => {
                self.exchange
                    .retention
                    .number_consumers(&mut self.exchange.asked, client, number, consumers, fx)
            }
            (Request::Sync, _) => self
                .exchange
                .asked
                .sync(&mut self.exchange.deferred, client, number, fx),
            (Request::Pack(_), _) => {
                let cause = "a client that shares the pool's memory reads pieces there; a gate packs for others";
                Err(Error::new(Code::Unsupported, "pack", cause))
            }
            (Request::Archived(archived), _) => self.archived(client, number, archived, fx),
            (Request::Release(holdings), _) => self.exchange.release(client, holdings, fx),
            (Request::Lease(lease), _) => self.exchange.lease(client, number, lease, fx),
            (&Request::Return(segment), _) => {
                self.exchange
                    .memory
                    .give_back(&mut self.exchange.asked.clients, client, segment, fx)
            }
            (Request::Demand(demand), _) => self.demand(client, number, demand, fx),
            (&Request::Cancel(which), _) => {
                self.cancel(client, which, fx);
                return;
            }
            (asked @ (Request::List(_) | Request::Tally(_)), _) => survey::look(self, client, number, asked, fx),
            (&Request::More(which), _) => {
                self.exchange
                    .asked
                    .clients
                    .more(&mut self.exchange.objects, client, which, fx);
                return;
            }
            (Request::Follow(follow), _) => self.follow(client, number, follow, fx),
            (Request::Require(require), _) => self.require(client, number, require, fx),
            (Request::Withdraw(withdraw), _) => self.withdraw(client, number, withdraw, fx),
            (Request::WithdrawAll(withdraw), _) => self.withdraw_all(client, number, withdraw, fx),
            (Request::Forget(forget), _) => self.forget(client, number, forget, fx),
            (Request::Subscribe(subscribe), _) => {
                self.exchange
                    .asked
                    .subscribe(&self.exchange.objects, client, number, subscribe, fx)
            }
            (Request::Wanted(wanted), _) => self.wanted(client, number, wanted, fx),
            (Request::Drain(drain), _) => self.drain_for(client, number, drain, fx),
            (Request::Note(note), _) => self.exchange.asked.clients.note(client, &note.text),
            (Request::Retract(retract), _) => self.retract_named(client, number, &retract.name, fx),
            (&Request::Stop(which), _) => self.stop(client, number, which, fx),
            (
                asked
                @ (Request::Stat | Request::Board | Request::Waits(_) | Request::Explain(_) | Request::Keepers(_)),
                _,
            ) => observe(self, client, number, asked, fx),
            (Request::Goodbye, _) => {
                self.dismiss(client, "it disconnected", fx);
                fx.disconnect(client, &Error::new(Code::Closed, "client", "it disconnected"));
                return;
            }
        };
        if let Err(error) = outcome {
            self.fail(client, number, &error, fx);
        }
    }

    fn cancel(&mut self, client: u32, which: u64, fx: &mut impl Effects) {
        let cancelled = match self.exchange.asked.clients.pending(client, which) {
            Some(PendingAnswer::Demand(_)) if self.drain.has_begun => {
                refuse_request(&mut self.exchange.asked, client, which, fx);
                return;
            }
            Some(PendingAnswer::Demand(id)) if !self.exchange.asked.interests.is_met(*id) => {
                let id = *id;
                self.exchange.drop_interest(id);
                true
            }
            Some(PendingAnswer::Lease(turn)) => {
                self.exchange.memory.waiting_leases.remove(*turn);
                self.exchange.memory.came_free = true;
                true
            }
            Some(PendingAnswer::Withdrawal(id)) => {
                let id = *id;
                self.exchange
                    .withdrawals
                    .drop_withdrawal(&mut self.exchange.objects, id);
                true
            }
            Some(PendingAnswer::Drain) => {
                self.drain.forget_asker(client, which);
                true
            }
            Some(PendingAnswer::Sync) => {
                self.exchange.asked.clients.forget_sync(client, which);
                true
            }
            _ => false,
        };
        if cancelled {
            self.exchange.asked.settle(client, which);
            let error = Error::new(Code::Interrupted, "request", "cancelled by its client");
            fx.reply(client, which, &Reply::Failed(WireFailure::from(&error)));
        }
    }

    fn stop(&mut self, client: u32, number: u64, which: u64, fx: &mut impl Effects) -> Result<()> {
        let exchange = &mut self.exchange;
        match exchange.asked.clients.pending(client, which) {
            Some(&PendingAnswer::Follow(id) | &PendingAnswer::Subscription(id)) => {
                exchange.drop_interest(id);
            }
            Some(&PendingAnswer::Requirement(id)) => _ = exchange.retract(id, "its requirement was retracted", fx),
            Some(&PendingAnswer::Use(id)) => {
                exchange.asked.end_use(id, client, which);
            }
            Some(&PendingAnswer::Bundle(bundle)) => exchange.leave_bundle(client, which, bundle, fx),
            Some(PendingAnswer::List(_)) => {
                exchange
                    .asked
                    .clients
                    .drop_list(&mut exchange.objects, &mut exchange.deferred, client, which);
            }
            _ => {
                return Err(Error::new(
                    Code::NotFound,
                    format!("request {which}"),
                    "no request has this number",
                ));
            }
        }
        exchange.asked.settle(client, which);
        exchange.deferred.answer_in_turn(client, number, 0, fx);
        Ok(())
    }

    pub(in crate::core) fn fail(&mut self, client: u32, number: u64, error: &Error, fx: &mut impl Effects) {
        fx.reply(client, number, &Reply::Failed(WireFailure::from(error)));
        if error.code() != Code::NotWanted {
            let count = &mut self.exchange.asked.count;
            count.failed += 1;
            *count.errors.entry(error.code().number()).or_default() += 1;
        }
        let limit = self.config.limits.errors_per_client;
        let Some(state) = self.exchange.asked.clients.get_mut(client) else {
            return;
        };
        let is_stranger = !state.is_known();
        if matches!(error.code(), Code::Protocol | Code::Denied | Code::Expired) {
            state.errors += 1;
        }
        if is_stranger || state.errors > limit {
            self.give_up(client, error, fx);
        }
    }

    pub(in crate::core) fn give_up(&mut self, client: u32, error: &Error, fx: &mut impl Effects) {
        self.dismiss(client, &format!("given up: {error}"), fx);
        fx.disconnect(client, error);
    }
}

/// Answers requests that only read the state of the server.
fn observe(core: &Core, client: u32, number: u64, request: &Request<'_>, fx: &mut impl Effects) -> Result<()> {
    match request {
        Request::Board => fx.reply_board(client, number),
        Request::Stat => {
            let mut stat = core.stat();
            stat.server = fx.figures();
            fx.reply(client, number, &Reply::Stats(&stat.to_json()));
            Ok(())
        }
        _ => {
            if let Some(reply) = core.reasons().answer(request)? {
                fx.reply(client, number, &reply);
            }
            Ok(())
        }
    }
}

fn protocol(subject: &str, cause: &str) -> Error {
    Error::new(Code::Protocol, subject, cause)
}
