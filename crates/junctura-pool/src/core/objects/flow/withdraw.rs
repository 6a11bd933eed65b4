//! Withdraw and withdraw-all: objects are removed from the pool, after every requirement that was owed them has
//! released them.

use std::collections::BTreeMap;

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{TargetBody, WireFailure, WithdrawRequest};

use crate::Effects;
use crate::core::clients::client::{PendingAnswer, milliseconds};
use crate::core::clients::requests::ClientRequests;
use crate::core::deferred::DeferredPart;
use crate::core::deferred::DeferredWork;
use crate::core::engine::Core;
use crate::core::engine::timers::TimerEvent;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::interest::InterestAim;
use crate::core::interests::interest_id::InterestId;
use crate::core::objects::object::{ObjectRow, ObjectState, RemovalReason};
use crate::core::objects::table::ObjectTable;
use crate::core::objects::withdrawals::WithdrawalQueue;
use crate::core::objects::withdrawals::{PendingWithdrawal, forget_wait};

impl Core {
    pub(in crate::core) fn withdraw(
        &mut self,
        client: u32,
        request: u64,
        withdraw: &WithdrawRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let exchange = &mut self.exchange;
        let InterestAim::Key { identity, text, .. } = exchange.asked.interests.aim(&withdraw.target)? else {
            return Err(Error::new(
                Code::InvalidArgument,
                "withdraw",
                "takes a key; withdraw-all takes a selector",
            ));
        };
        exchange.see_off_key(identity, fx);
        let mut objects = exchange.objects.kept_versions(identity);
        match exchange.objects.look_up(identity, &text) {
            Ok(newest) => objects.extend(newest),
            Err(gone) if objects.is_empty() => return Err(gone),
            Err(_) => {}
        }
        if objects.is_empty() {
            return Err(Error::new(
                Code::NotFound,
                text,
                "no object in the pool has this key; `junctura ls` lists the keys",
            ));
        }
        exchange.take_out(client, request, objects, withdraw, fx)
    }

    pub(in crate::core) fn withdraw_all(
        &mut self,
        client: u32,
        request: u64,
        withdraw: &WithdrawRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let TargetBody::Selector(text) = &withdraw.target else {
            return Err(Error::new(
                Code::InvalidArgument,
                "withdraw-all",
                "takes a selector; withdraw takes a key",
            ));
        };
        let selectors = self.exchange.asked.interests.selectors(text)?;
        let sight = self.exchange.sight();
        let mut objects = self
            .exchange
            .objects
            .matches_to_change(&mut self.exchange.asked.clients, sight, &selectors);
        if objects.len() <= self.config.changed_at_once {
            objects.sort_unstable_by_key(|&id| self.exchange.objects[id].sequence);
        }
        self.exchange.take_out(client, request, objects, withdraw, fx)
    }

    /// Withdraws the next of very many objects. Returns whether there is more to do.
    pub(in crate::core) fn take_out_next(&mut self, id: u32, of: (u32, u64), fx: &mut impl Effects) -> bool {
        // Another withdraw may have its number, if its client has cancelled it or disconnected.
        let withdrawal = self.exchange.withdrawals.table.get_mut(id as usize);
        let Some(withdrawal) = withdrawal.filter(|one| (one.client, one.request) == of) else {
            return false;
        };
        let (force, newest) = (withdrawal.force, withdrawal.newest);
        let Some(object) = withdrawal.left.pop() else {
            self.end_parts(id, fx);
            return false;
        };
        let kept = |one: &ObjectRow| one.sequence <= newest && one.state == ObjectState::Superseded && one.owed > 0;
        if !self
            .exchange
            .objects
            .was_there(self.exchange.asked.timers.now, object, newest)
            && !self.exchange.objects.get(object).is_some_and(kept)
        {
            return true;
        }
        let is_free = force || self.exchange.objects[object].owed == 0;
        let owed_to = if is_free {
            Vec::new()
        } else {
            self.exchange.asked.blockers(&self.exchange.objects, object)
        };
        let is_free = owed_to.is_empty();
        if let Some(withdrawal) = self.exchange.withdrawals.table.get_mut(id as usize) {
            if is_free {
                withdrawal.done += 1;
            } else {
                withdrawal.waits.insert(object, owed_to);
            }
        }
        if is_free {
            self.exchange.record_withdrawer(object, of.0);
            self.exchange.take_one_out(object, fx);
        } else {
            self.exchange.objects[object].watchers += 1;
            self.exchange
                .withdrawals
                .by_object
                .entry(object)
                .or_default()
                .insert(id);
        }
        true
    }

    /// Ends the scan of very many objects.
    fn end_parts(&mut self, id: u32, fx: &mut impl Effects) {
        let Some(withdrawal) = self.exchange.withdrawals.table.get(id as usize) else {
            return;
        };
        let (client, request, done) = (withdrawal.client, withdrawal.request, withdrawal.done);
        if withdrawal.waits.is_empty() {
            self.exchange.withdrawals.table.try_remove(id as usize);
            self.exchange.asked.settle(client, request);
            fx.reply(client, request, &Reply::Done(done));
        } else if withdrawal.timeout_ms == Some(0) {
            let error = self.exchange.asked.still_wanted(&self.exchange.objects, withdrawal);
            self.exchange
                .withdrawals
                .drop_withdrawal(&mut self.exchange.objects, id);
            self.exchange.asked.settle(client, request);
            self.fail(client, request, &error, fx);
        } else if let Some(timeout) = withdrawal.timeout_ms {
            let at = withdrawal
                .began
                .saturating_add(milliseconds(timeout))
                .max(self.exchange.asked.timers.now);
            self.exchange
                .asked
                .timers
                .set(at, client, request, TimerEvent::Withdrawal(id));
        }
    }
}

impl ObjectExchange {
    pub(in crate::core) fn take_out(
        &mut self,
        client: u32,
        request: u64,
        objects: Vec<u32>,
        how: &WithdrawRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let mut withdrawal = PendingWithdrawal {
            client,
            request,
            done: 0,
            waits: BTreeMap::new(),
            left: Vec::new(),
            newest: self.objects.sequence,
            force: how.force,
            timeout_ms: how.timeout_ms,
            began: self.asked.timers.now,
        };
        if objects.len() > self.config.changed_at_once {
            withdrawal.left = objects;
            return self
                .withdrawals
                .take_out_in_parts(&mut self.asked, &mut self.deferred, withdrawal);
        }
        let mut free = Vec::new();
        for object in objects {
            let is_free = how.force || self.objects[object].owed == 0;
            let owed_to = if is_free {
                Vec::new()
            } else {
                self.asked.blockers(&self.objects, object)
            };
            if owed_to.is_empty() {
                free.push(object);
            } else {
                withdrawal.waits.insert(object, owed_to);
            }
        }
        let waits = !withdrawal.waits.is_empty() && how.timeout_ms != Some(0);
        if waits {
            // Before any object is withdrawn.
            self.asked.clients.may_ask(client, request)?;
        }
        for object in free {
            self.record_withdrawer(object, client);
            self.take_out_in_turn(object, fx);
            withdrawal.done += 1;
        }
        if withdrawal.waits.is_empty() {
            self.deferred.answer_in_turn(client, request, withdrawal.done, fx);
            return Ok(());
        }
        if how.timeout_ms == Some(0) {
            return Err(self.asked.still_wanted(&self.objects, &withdrawal));
        }
        let id = self.withdrawals.table.vacant_key() as u32;
        self.asked
            .clients
            .add_pending(client, request, PendingAnswer::Withdrawal(id))?;
        for &object in withdrawal.waits.keys() {
            self.objects[object].watchers += 1;
            self.withdrawals.by_object.entry(object).or_default().insert(id);
        }
        self.withdrawals.table.insert(withdrawal);
        if let Some(timeout) = how.timeout_ms {
            self.asked.timers.set(
                self.asked.timers.now.saturating_add(milliseconds(timeout)),
                client,
                request,
                TimerEvent::Withdrawal(id),
            );
        }
        Ok(())
    }

    /// Records the component of the client that withdraws an object, for explanations.
    fn record_withdrawer(&mut self, object: u32, client: u32) {
        self.objects[object].withdrawn_by = self.asked.clients.get(client).map(|state| state.flow);
    }

    pub(in crate::core) fn take_one_out(&mut self, object: u32, fx: &mut impl Effects) {
        if self.objects[object].is_visible() {
            self.remove(object, RemovalReason::Withdrawn, fx);
        } else {
            self.gap_requirements(object, RemovalReason::Withdrawn.name(), fx);
            self.settle(object, fx);
        }
    }

    /// Continues withdraws after some requirements stopped being owed some objects, if they waited only for these.
    pub(in crate::core) fn finish_withdrawals(&mut self, fx: &mut impl Effects) {
        for object in std::mem::take(&mut self.withdrawals.unblocked) {
            let waiting = self.withdrawals.by_object.get(&object);
            for id in waiting.map_or(Vec::new(), |ids| ids.iter().copied().collect()) {
                self.take_up_withdrawal(id as usize, object, fx);
            }
        }
    }

    pub(in crate::core) fn take_up_withdrawal(&mut self, id: usize, object: u32, fx: &mut impl Effects) {
        let waits = self
            .withdrawals
            .table
            .get_mut(id)
            .and_then(|w| w.waits.get_mut(&object));
        let Some(mut blockers) = waits.map(std::mem::take) else {
            return;
        };
        blockers.retain(|&blocker| {
            self.asked
                .interests
                .still(Some(blocker))
                .is_some_and(|id| self.asked.interests.is_owed(&self.objects, id, object))
        });
        if !blockers.is_empty() {
            if let Some(waits) = self
                .withdrawals
                .table
                .get_mut(id)
                .and_then(|w| w.waits.get_mut(&object))
            {
                *waits = blockers;
            }
            return;
        }
        if let Some(withdrawal) = self.withdrawals.table.get(id) {
            self.record_withdrawer(object, withdrawal.client);
        }
        self.take_out_in_turn(object, fx);
        forget_wait(&mut self.withdrawals.by_object, object, id as u32);
        let Some(withdrawal) = self.withdrawals.table.get_mut(id) else {
            return;
        };
        withdrawal.waits.remove(&object);
        withdrawal.done += 1;
        let (client, request, done) = (withdrawal.client, withdrawal.request, withdrawal.done);
        if withdrawal.waits.is_empty() && withdrawal.left.is_empty() {
            self.withdrawals.table.try_remove(id);
            self.asked.settle(client, request);
            self.deferred.answer_in_turn(client, request, done, fx);
        }
        self.objects.unwatch(object);
    }
}

impl WithdrawalQueue {
    /// Withdraws very many objects, one in each turn of the backlog. An object that is requested before its turn is
    /// still found.
    pub(in crate::core) fn take_out_in_parts(
        &mut self,
        asked: &mut ClientRequests,
        deferred: &mut DeferredWork,
        withdrawal: PendingWithdrawal,
    ) -> Result<()> {
        let (client, request) = (withdrawal.client, withdrawal.request);
        let id = self.table.vacant_key() as u32;
        asked
            .clients
            .add_pending(client, request, PendingAnswer::Withdrawal(id))?;
        self.table.insert(withdrawal);
        deferred.go_on_later(DeferredPart::TakeOut { id, client, request });
        Ok(())
    }

    pub(in crate::core) fn withdrawal_timed_out(
        &mut self,
        asked: &mut ClientRequests,
        objects: &mut ObjectTable,
        id: usize,
        fx: &mut impl Effects,
    ) {
        let Some(withdrawal) = self.table.get(id) else {
            return;
        };
        let (client, request) = (withdrawal.client, withdrawal.request);
        let error = asked.still_wanted(objects, withdrawal);
        self.drop_withdrawal(objects, id as u32);
        asked.settle(client, request);
        fx.reply(client, request, &Reply::Failed(WireFailure::from(&error)));
    }
}

impl ClientRequests {
    /// Returns the requirements that are owed an object.
    fn blockers(&mut self, objects: &ObjectTable, object: u32) -> Vec<InterestId> {
        let claimants = self.interests.claimants(objects, object);
        claimants.into_iter().map(|id| self.interests.refer(id)).collect()
    }

    pub(in crate::core) fn still_wanted(&self, objects: &ObjectTable, withdrawal: &PendingWithdrawal) -> Error {
        let (object, blockers) = withdrawal
            .waits
            .iter()
            .next()
            .map_or((0, &[][..]), |(o, b)| (*o, b.as_slice()));
        let entry = &objects[object];
        let whose = |&blocker: &InterestId| match self.interests.still(Some(blocker)) {
            Some(id) => self.interests.owner_of(&self.clients, id),
            None => "a requirement that has ended and has many objects to release".to_owned(),
        };
        let who: Vec<String> = blockers.iter().map(whose).collect();
        let others = withdrawal.waits.len() - 1;
        let more = if others == 0 {
            String::new()
        } else {
            format!("; {others} other objects are wanted too")
        };
        let cause = format!(
            "still offered, since it is wanted: {}{more}; {} withdrawn",
            who.join(", "),
            withdrawal.done
        );
        Error::new(Code::Timeout, objects.key_text(entry.schema, &entry.record), cause)
    }
}
