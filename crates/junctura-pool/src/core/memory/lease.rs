//! Memory for payloads: segments leased to producers, and what waits when there is none.

use junctura_memory::ledger::{Full, Reason};
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{Failure, Lease};

use crate::Effects;
use crate::core::clients::client::{Pending, milliseconds};
use crate::core::clients::deliver::segment_head;
use crate::core::engine::Core;
use crate::core::engine::timers::{NOBODY, Timer};
use crate::core::memory::lease_queue::WaitingLease;
use crate::core::memory::shortage::Shortage;

/// The timer of the first lease that waits, while none may pass it; those of others have smaller numbers.
const FIRST_TIMER: u64 = u64::MAX - 3;

impl Core {
    pub(in crate::core) fn lease(
        &mut self,
        client: u32,
        request: u64,
        lease: &Lease,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let limit = self.config.limits.payload_bytes.min(self.config.budget_bytes);
        if lease.payload_bytes > limit {
            let cause = format!("{} bytes; the pool takes {limit}", lease.payload_bytes);
            return Err(Error::new(Code::TooLarge, "payload", cause));
        }
        if self.waiting_leases.may_be_passed()
            && let Some(bytes) = self.grant(client, request, lease.payload_bytes, fx)?
        {
            self.note_passed(bytes);
            return Ok(());
        }
        if lease.staged
            && let Some(full) = self.segments_filled_by_bundles(lease.payload_bytes)
        {
            return Err(full);
        }
        // What a store has leaves first.
        if lease.timeout_ms == Some(0) && !self.has_spare() {
            return Err(self.pool_full(lease.payload_bytes));
        }
        let turn = self.waiting_leases.next_turn();
        self.clients.add_pending(client, request, Pending::Lease(turn))?;
        let slots_before = self.ledger.free_slots(client, lease.payload_bytes, u64::MAX);
        let waiting = WaitingLease {
            client,
            request,
            payload_bytes: lease.payload_bytes,
            staged: lease.staged,
            slots_before,
        };
        self.waiting_leases.push(waiting);
        if let Some(timeout) = lease.timeout_ms {
            self.timers.set(
                self.timers.now.saturating_add(milliseconds(timeout)),
                client,
                request,
                Timer::Lease { client, request },
            );
        }
        self.count.leases_waited += 1;
        self.recall_empty_segments(fx);
        Ok(())
    }

    /// Whether a client whose lease waits has nothing else to go on with.
    pub(in crate::core) fn is_stranded(&self, lease: &WaitingLease) -> bool {
        let enough = lease.slots_before + 1;
        self.ledger.free_slots(lease.client, lease.payload_bytes, enough) < enough
    }

    /// Leases a segment, if there is memory for one. Gives its bytes.
    fn grant(&mut self, client: u32, request: u64, payload_bytes: u64, fx: &mut impl Effects) -> Result<Option<u64>> {
        let grant = match self.ledger.lease(client, payload_bytes) {
            Ok(grant) => grant,
            Err(full) if full.may_wait() => return Ok(None),
            Err(full) => return Err(self.described(full)),
        };
        if let Err(error) = fx.create_segment(grant.segment, grant.bytes) {
            self.ledger.give_back(client, grant.segment)?;
            return Err(error);
        }
        self.unused.insert(grant.segment, client);
        self.count.segments_made += 1;
        fx.reply_segment(client, request, segment_head(grant, true));
        Ok(Some(grant.bytes))
    }

    pub(in crate::core) fn give_back(&mut self, client: u32, segment: u32, fx: &mut impl Effects) -> Result<()> {
        self.ledger.give_back(client, segment)?;
        self.recalled.remove(&client);
        self.drop_segment(segment, fx);
        self.memory_freed = true;
        Ok(())
    }

    /// Clients with leased segments in which nothing lies are asked to give them back.
    pub(in crate::core) fn recall_empty_segments(&mut self, fx: &mut impl Effects) {
        for (client, segment) in self.ledger.recallable(0) {
            self.recall_if_wanted(client, segment, fx);
        }
    }

    /// Nothing lies in a segment that is still leased: if somebody waits for memory, it is asked for. Not if all who wait
    /// could use the slots of that very segment: they have them already.
    pub(in crate::core) fn recall_if_wanted(&mut self, client: u32, segment: u32, fx: &mut impl Effects) {
        let its_slots = self.ledger.grant(segment).map(|grant| grant.slot_bytes);
        if self.stalled.wait_for(Shortage::Payload) || !self.waiting_leases.are_all(client, its_slots) {
            fx.reply(client, 0, &Reply::Recall(segment));
            self.note_recall(client);
        }
    }

    /// A segment that the ledger has forgotten goes, and whoever has it mapped is told.
    pub(in crate::core) fn drop_segment(&mut self, segment: u32, fx: &mut impl Effects) {
        self.unused.remove(&segment);
        for client in self.mapping.remove(&segment).into_iter().flatten() {
            if let Some(state) = self.clients.get_mut(client) {
                state.segments.remove(&segment);
                fx.reply(client, 0, &Reply::Dropped(segment));
            }
        }
        fx.drop_segment(segment);
    }

    /// A client is gone that could map a segment.
    pub(in crate::core) fn maps_no_more(&mut self, client: u32, segment: u32) {
        if let Some(clients) = self.mapping.get_mut(&segment) {
            clients.remove(&client);
            if clients.is_empty() {
                self.mapping.remove(&segment);
            }
        }
    }

    /// Memory may have come free: leases and offers that wait are served in their order; smaller leases pass one that there is no memory for.
    pub(in crate::core) fn serve_waiting(&mut self, fx: &mut impl Effects) {
        self.refuse_leases_in_vain(fx);
        while let Some(first) = self.waiting_leases.first() {
            if self.serve_lease(first, fx).is_some() {
                continue;
            }
            let next = self.waiting_leases.next_to_pass();
            let Some(bytes) = next.and_then(|turn| self.serve_lease(turn, fx)) else {
                break;
            };
            self.note_passed(bytes);
        }
        for client in self.stalled.clients() {
            self.serve_waiting_offers(client, fx);
        }
    }

    /// Answers a lease that waits, if there is memory for it or it can only fail. Gives the bytes that it got; `None`: it still waits.
    fn serve_lease(&mut self, turn: u64, fx: &mut impl Effects) -> Option<u64> {
        let lease = self.waiting_leases.get(turn)?;
        let (client, request, payload_bytes) = (lease.client, lease.request, lease.payload_bytes);
        let bytes = match self.grant(client, request, payload_bytes, fx) {
            Ok(bytes) => bytes?,
            Err(error) => {
                fx.reply(client, request, &Reply::Failed(Failure::from(&error)));
                0
            }
        };
        self.waiting_leases.remove(turn);
        self.clients.settle_pending(&mut self.timers, client, request);
        Some(bytes)
    }

    /// A lease has passed the first one that waits. When it was the last that may, the first one has some time alone.
    fn note_passed(&mut self, bytes: u64) {
        if self.waiting_leases.note_passed(bytes) {
            let time = u64::try_from(self.config.lease_first_for.as_nanos()).unwrap_or(u64::MAX);
            self.timers.set(
                self.timers.now.saturating_add(time),
                NOBODY,
                FIRST_TIMER,
                Timer::FirstLease,
            );
        }
    }

    /// The first lease that waits may be another one since this event.
    pub(in crate::core) fn watch_first_lease(&mut self) {
        if self.waiting_leases.forgets_time() {
            self.timers.cancel(NOBODY, FIRST_TIMER);
        }
    }

    /// The first lease that waits has kept others waiting for as long as it may: it waits behind them now.
    pub(in crate::core) fn put_first_lease_last(&mut self) {
        if self.waiting_leases.may_be_passed() {
            // It is another one.
            return;
        }
        if let Some(turn) = self.waiting_leases.put_first_last()
            && let Some(lease) = self.waiting_leases.get(turn)
            && let Some(state) = self.clients.get_mut(lease.client)
        {
            state.pending.insert(lease.request, Pending::Lease(turn));
            self.memory_freed = true;
        }
    }

    /// Leases for members of bundles wait no more when only bundles fill the memory.
    fn refuse_leases_in_vain(&mut self, fx: &mut impl Effects) {
        let in_vain = self.waiting_leases.staged().filter_map(|(turn, lease)| {
            let full = self.segments_filled_by_bundles(lease.payload_bytes)?;
            Some((turn, lease.client, lease.request, full))
        });
        for (turn, client, request, full) in in_vain.collect::<Vec<_>>() {
            self.waiting_leases.remove(turn);
            self.clients.settle_pending(&mut self.timers, client, request);
            fx.reply(client, request, &Reply::Failed(Failure::from(&full)));
        }
    }

    pub(in crate::core) fn lease_timed_out(&mut self, client: u32, request: u64, fx: &mut impl Effects) {
        let Some(Pending::Lease(turn)) = self.clients.get(client).and_then(|state| state.pending.get(&request)) else {
            return;
        };
        let Some(lease) = self.waiting_leases.remove(*turn) else {
            return;
        };
        let error = self.pool_full(lease.payload_bytes);
        self.memory_freed = true;
        self.clients.settle_pending(&mut self.timers, client, request);
        fx.reply(client, request, &Reply::Failed(Failure::from(&error)));
    }

    /// Says what fills the pool.
    pub(in crate::core) fn pool_full(&self, payload_bytes: u64) -> Error {
        let (limits, counters) = (self.ledger.limits(), self.ledger.counters());
        self.described(Full {
            reason: Reason::Budget,
            payload_bytes,
            limits,
            counters,
        })
    }

    fn described(&self, full: Full) -> Error {
        let described = full.into_error(&self.ledger.holders(), |client| {
            match self.clients.get(client).and_then(|state| state.peer.as_ref()) {
                Some(peer) => format!("{} (pid {} on {})", peer.name, peer.pid, peer.host),
                None => format!("client {client}"),
            }
        });
        if described.code() != Code::PoolFull {
            return described;
        }
        let tier = self.tier_text().map_or_else(String::new, |tier| format!("; {tier}"));
        let cause = format!(
            "{}{tier}{}{}",
            described.cause(),
            self.full_besides(),
            self.kept_for_those_absent()
        );
        Error::new(Code::PoolFull, described.subject(), cause)
    }
}
