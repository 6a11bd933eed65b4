//! Memory for payloads: segments leased to producers, and the queue of leases.

use junctura_memory::ledger::{LeaseRefusal, RefusalReason};
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{LeaseRequest, WireFailure};

use crate::Effects;
use crate::core::bundles::BundleTable;
use crate::core::clients::client::{PendingAnswer, milliseconds};
use crate::core::clients::flow::deliver::segment_head;
use crate::core::clients::requests::ClientRequests;
use crate::core::clients::table::ClientTable;
use crate::core::engine::Core;
use crate::core::engine::timers::TimerEvent;
use crate::core::exchange::ObjectExchange;
use crate::core::memory::lease_queue::WaitingLease;
use crate::core::memory::payload::PayloadMemory;
use crate::core::objects::flow::offer::{serve_waiting_offers, too_large};
use crate::core::objects::table::ObjectTable;

impl Core {
    /// Whether no lease may pass the first waiting one; for the checks of the simulation.
    #[must_use]
    pub fn first_lease_blocks(&self) -> bool {
        !self.exchange.memory.waiting_leases.may_be_passed()
    }

    /// Serves leases and offers that wait for memory, in order; smaller leases pass one that does not fit.
    pub(in crate::core) fn serve_waiting(&mut self, fx: &mut impl Effects) {
        self.exchange.memory.refuse_leases_in_vain(
            &mut self.exchange.asked,
            &self.exchange.objects,
            &self.exchange.bundles,
            fx,
        );
        while let Some(first) = self.exchange.memory.waiting_leases.first() {
            if !self.exchange.deferred.may_serve() {
                return;
            }
            if self.exchange.serve_lease(first, fx).is_some() {
                continue;
            }
            let next = self.exchange.memory.waiting_leases.next_to_pass();
            let Some(bytes) = next.and_then(|turn| self.exchange.serve_lease(turn, fx)) else {
                break;
            };
            self.exchange.memory.note_passed(&mut self.exchange.asked.timers, bytes);
        }
        for client in self.exchange.memory.stalled.clients() {
            if self.exchange.deferred.serves_later {
                return;
            }
            serve_waiting_offers(self, client, fx);
        }
    }
}

impl ObjectExchange {
    /// Leases a segment, if there is memory for one. Returns its bytes.
    pub(in crate::core) fn grant(
        &mut self,
        client: u32,
        request: u64,
        payload_bytes: u64,
        fx: &mut impl Effects,
    ) -> Result<Option<u64>> {
        let grant = match self.memory.ledger.lease(client, payload_bytes) {
            Ok(grant) => grant,
            Err(full) if full.may_wait() => return Ok(None),
            Err(full) => return Err(self.described(full)),
        };
        if let Err(error) = fx.create_segment(grant.segment, grant.bytes) {
            self.memory.ledger.give_back(client, grant.segment)?;
            return Err(error);
        }
        self.memory.unused.insert(grant.segment, client);
        self.asked.count.segments_made += 1;
        fx.reply_segment(client, request, segment_head(grant, true));
        Ok(Some(grant.bytes))
    }

    /// Returns the error that describes what fills the pool.
    pub(in crate::core) fn pool_full(&self, payload_bytes: u64) -> Error {
        let (limits, counters) = (self.memory.ledger.limits(), self.memory.ledger.counters());
        self.described(LeaseRefusal {
            reason: RefusalReason::Budget,
            payload_bytes,
            limits,
            counters,
        })
    }

    pub(in crate::core) fn described(&self, full: LeaseRefusal) -> Error {
        let largest = self.memory.ledger.largest_holders(LeaseRefusal::HOLDERS_NAMED);
        let described = full.into_error(&largest, |client| {
            match self.asked.clients.get(client).and_then(|state| state.peer.as_ref()) {
                Some(peer) => format!("{} (pid {} on {})", peer.name, peer.pid, peer.host),
                None => format!("client {client}"),
            }
        });
        if described.code() != Code::PoolFull {
            return described;
        }
        let tier = self
            .memory
            .tier_text()
            .map_or_else(String::new, |tier| format!("; {tier}"));
        let room = if tier.is_empty() {
            "a larger budget, or spill to a folder: `junctura pool serve --budget SIZE --spill FOLDER`, or the options budget and spill"
        } else {
            "a larger budget: `junctura pool serve --budget SIZE`, or the option budget"
        };
        let cause = format!(
            "{}{tier}{}{}; `junctura explain --memory` shows what keeps it; release or withdraw objects, or give the pool {room} of \
             a pool that the program itself opens",
            described.cause(),
            self.asked.full_besides(&self.objects),
            self.retention.kept_for_those_absent()
        );
        Error::new(Code::PoolFull, described.subject(), cause)
    }

    pub(in crate::core) fn lease(
        &mut self,
        client: u32,
        request: u64,
        lease: &LeaseRequest,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let limit = self.config.limits.payload_bytes.min(self.config.budget_bytes);
        if lease.payload_bytes > limit {
            let cause = too_large(lease.payload_bytes, limit);
            return Err(Error::new(Code::TooLarge, "payload", cause));
        }
        if self.memory.waiting_leases.may_be_passed()
            && let Some(bytes) = self.grant(client, request, lease.payload_bytes, fx)?
        {
            self.memory.note_passed(&mut self.asked.timers, bytes);
            return Ok(());
        }
        if lease.staged
            && let Some(full) =
                self.bundles
                    .segments_filled_by_bundles(&self.objects, &self.memory, lease.payload_bytes)
        {
            return Err(full);
        }
        // Archived objects are evicted first.
        if lease.timeout_ms == Some(0) && !self.memory.has_spare(&mut self.objects) {
            return Err(self.pool_full(lease.payload_bytes));
        }
        let turn = self.memory.waiting_leases.next_turn();
        self.asked
            .clients
            .add_pending(client, request, PendingAnswer::Lease(turn))?;
        let slots_before = self.memory.ledger.free_slots(client, lease.payload_bytes, u64::MAX);
        let waiting = WaitingLease {
            client,
            request,
            payload_bytes: lease.payload_bytes,
            staged: lease.staged,
            slots_before,
            since: self.asked.timers.now,
        };
        self.memory.waiting_leases.push(waiting);
        if let Some(timeout) = lease.timeout_ms {
            self.asked.timers.set(
                self.asked.timers.now.saturating_add(milliseconds(timeout)),
                client,
                request,
                TimerEvent::Lease { client, request },
            );
        }
        self.asked.count.leases_waited += 1;
        self.memory.recall_empty_segments(&self.asked.timers, fx);
        Ok(())
    }

    /// Answers a waiting lease, if there is memory for it or it can only fail. Returns its bytes; `None`: it still
    /// waits.
    pub(in crate::core) fn serve_lease(&mut self, turn: u64, fx: &mut impl Effects) -> Option<u64> {
        let lease = self.memory.waiting_leases.get(turn)?;
        let (client, request, payload_bytes) = (lease.client, lease.request, lease.payload_bytes);
        let waited = self.asked.timers.now.saturating_sub(lease.since);
        let bytes = match self.grant(client, request, payload_bytes, fx) {
            Ok(bytes) => {
                let bytes = bytes?;
                self.asked.flows.memory_waits.add(waited);
                bytes
            }
            Err(error) => {
                fx.reply(client, request, &Reply::Failed(WireFailure::from(&error)));
                0
            }
        };
        self.memory.waiting_leases.remove(turn);
        self.asked.settle(client, request);
        Some(bytes)
    }

    pub(in crate::core) fn lease_timed_out(&mut self, client: u32, request: u64, fx: &mut impl Effects) {
        let Some(PendingAnswer::Lease(turn)) = self.asked.clients.pending(client, request) else {
            return;
        };
        let Some(lease) = self.memory.waiting_leases.remove(*turn) else {
            return;
        };
        let error = self.pool_full(lease.payload_bytes);
        self.memory.came_free = true;
        self.asked.settle(client, request);
        fx.reply(client, request, &Reply::Failed(WireFailure::from(&error)));
    }
}

impl PayloadMemory {
    pub(in crate::core) fn give_back(
        &mut self,
        clients: &mut ClientTable,
        client: u32,
        segment: u32,
        fx: &mut impl Effects,
    ) -> Result<()> {
        self.ledger.give_back(client, segment)?;
        self.recalled.remove(&client);
        self.drop_segment(clients, segment, fx);
        self.came_free = true;
        Ok(())
    }

    /// Moves the first waiting lease, which has blocked others for as long as it may, behind them.
    pub(in crate::core) fn put_first_lease_last(&mut self, clients: &mut ClientTable) {
        if self.waiting_leases.may_be_passed() {
            // The first lease has changed.
            return;
        }
        if let Some(turn) = self.waiting_leases.put_first_last()
            && let Some(lease) = self.waiting_leases.get(turn)
            && let Some(state) = clients.get_mut(lease.client)
        {
            state.pending.insert(lease.request, PendingAnswer::Lease(turn));
            self.came_free = true;
        }
    }

    /// Refuses leases for members of bundles when only bundles fill the memory.
    pub(in crate::core) fn refuse_leases_in_vain(
        &mut self,
        asked: &mut ClientRequests,
        objects: &ObjectTable,
        bundles: &BundleTable,
        fx: &mut impl Effects,
    ) {
        let in_vain = self.waiting_leases.staged().filter_map(|(turn, lease)| {
            let full = bundles.segments_filled_by_bundles(objects, self, lease.payload_bytes)?;
            Some((turn, lease.client, lease.request, full))
        });
        for (turn, client, request, full) in in_vain.collect::<Vec<_>>() {
            self.waiting_leases.remove(turn);
            asked.settle(client, request);
            fx.reply(client, request, &Reply::Failed(WireFailure::from(&full)));
        }
    }
}
