//! Connections: clients join, agree on schemas, are wound down, and leave.

use std::cmp::Reverse;

use junctura_model::{Code, Error, Result};
use junctura_wire::body::{Hello, Welcome, events};
use junctura_wire::rights::AccessRights;
use junctura_wire::{Reply, VERSION};

use crate::Effects;
use crate::core::clients::client::{ClientAccess, ClientPeer, ClientRow, HeldDelivery, PendingAnswer, milliseconds};
use crate::core::clients::requests::ClientRequests;
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::flow::tell::NewsTeller;
use crate::core::interests::requirement::RequirementState;

impl Core {
    /// Whether there is room for one more client.
    #[must_use]
    pub fn takes_clients(&self) -> bool {
        self.exchange.asked.clients.table.len() < self.config.limits.clients
    }

    /// Adds a client; returns its number.
    ///
    /// # Errors
    /// `LimitExceeded` when there are too many clients.
    pub fn join(&mut self) -> Result<u32> {
        if !self.takes_clients() {
            return Err(Error::new(
                Code::LimitExceeded,
                "clients",
                format!("the pool takes {} at once", self.config.limits.clients),
            ));
        }
        self.exchange.asked.clients.seen += 1;
        self.exchange
            .asked
            .clients
            .table
            .insert(self.exchange.asked.clients.seen, ClientRow::default());
        Ok(self.exchange.asked.clients.seen)
    }

    pub(in crate::core) fn hello(
        &mut self,
        client: u32,
        number: u64,
        hello: &Hello<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        if hello.version != VERSION {
            let cause = format!(
                "the client speaks version {}, the server version {VERSION}",
                hello.version
            );
            return Err(Error::new(Code::Unsupported, "wire format", cause));
        }
        self.exchange.asked.clients.agree_on_schemas(&hello.schemas)?;
        let access = access(hello)?;
        let peer = ClientPeer {
            name: clip(&hello.name),
            host: clip(&hello.host),
            pid: hello.pid,
            route: hello.route.as_deref().map(clip).unwrap_or_default(),
        };
        let asked = &mut self.exchange.asked;
        if let Some(state) = asked.clients.get_mut(client) {
            state.flow = asked.flows.join(&peer.name);
            state.component = (!hello.visits).then(|| self.components.join(&peer.name)).flatten();
            state.peer = Some(peer);
            state.access = access;
            state.is_newcomer = self.drain.has_begun && !hello.visits;
            state.offer_timeout = hello.offer_timeout_ms.map(milliseconds);
        }
        fx.reply(
            client,
            number,
            &Reply::Welcome(Welcome {
                keeps_mapped: true,
                version: VERSION,
                incarnation: self.config.incarnation,
                client,
                schemas: self.exchange.asked.clients.schema_texts.clone(),
                inline_bytes_max: self.config.inline_bytes_max,
                payload_bytes_max: self.config.limits.payload_bytes.min(self.config.budget_bytes),
                checked: self.config.checked,
                pid: self.config.pid,
                host: self.config.host.as_str().into(),
                packs: false,
            }),
        );
        self.exchange.asked.tell_about_client(client, events::JOINED, "", fx);
        Ok(())
    }

    /// Removes a client after an orderly or abrupt disconnect: ends its holdings, requests and leases, and notifies
    /// others.
    pub fn leave(&mut self, now: Nanoseconds, client: u32, reason: &str, fx: &mut impl Effects) {
        self.exchange.begin(now);
        self.dismiss(client, reason, fx);
        self.follow_up(fx);
    }

    /// Ends some requests of a client that is about to leave, if it has very many, and then some of its holdings. Other
    /// clients are served in between; call it again while it returns true. Until it is done, the client is treated as
    /// still connected.
    #[must_use]
    pub fn wind_down(&mut self, now: Nanoseconds, client: u32, fx: &mut impl Effects) -> bool {
        const REQUESTS_MAX: usize = 256;
        const SELECTOR_BYTES_MAX: usize = 4 << 20;
        const OWED_MAX: usize = 250;
        self.exchange
            .objects
            .forget_ahead(&mut self.exchange.asked.clients, &mut self.exchange.deferred, client);
        let Some(state) = self.exchange.asked.clients.get(client) else {
            return false;
        };
        let bytes_left = state.selector_bytes.saturating_sub(SELECTOR_BYTES_MAX);
        // Without requests, the rest belongs to news that its interests have not received.
        let is_little = state.pending.is_empty() || (state.pending.len() <= REQUESTS_MAX && bytes_left == 0);
        if is_little
            && state
                .pending
                .values()
                .map(|one| self.exchange.asked.owed_to(one))
                .sum::<usize>()
                <= OWED_MAX
        {
            return self.let_some_go(now, client, fx);
        }
        let some: Vec<u64> = state.pending.keys().copied().take(REQUESTS_MAX).collect();
        let first = some.iter().filter_map(|request| state.pending.get(request));
        let heavy = first
            .into_iter()
            .find(|one| self.exchange.asked.owed_to(one) > OWED_MAX);
        let heavy = heavy.and_then(PendingAnswer::requirement);
        self.exchange.begin(now);
        if let Some(id) = heavy {
            self.exchange.owe_less(id, OWED_MAX, fx);
            self.follow_up(fx);
            return true;
        }
        let mut owed = 0;
        for request in some {
            let pending = self.exchange.asked.clients.pending(client, request);
            owed += pending.map_or(0, |pending| self.exchange.asked.owed_to(pending));
            self.abandon(client, request, fx);
            let state = self.exchange.asked.clients.get(client);
            if owed > OWED_MAX || state.is_none_or(|state| state.selector_bytes < bytes_left) {
                break;
            }
        }
        self.follow_up(fx);
        true
    }

    /// Ends the oldest holdings of a client that has very many; its last requests end first, so that it receives
    /// nothing more. Returns whether there may be more.
    fn let_some_go(&mut self, now: Nanoseconds, client: u32, fx: &mut impl Effects) -> bool {
        const HELD_MAX: usize = 256;
        let has_much_news = self.exchange.asked.untold.len_of(client) > HELD_MAX;
        let Some(state) = self
            .exchange
            .asked
            .clients
            .get_mut(client)
            .filter(|state| state.held.len() > HELD_MAX || has_much_news)
        else {
            return false;
        };
        if state.pending.is_empty() && state.leaves.is_empty() {
            let places = state.held.iter().map(|(place, held)| Reverse((held.sequence, place)));
            state.leaves = places.collect::<Vec<_>>().into();
        }
        self.exchange.begin(now);
        self.abandon_all(client, fx);
        if has_much_news {
            NewsTeller::of(&mut self.exchange).forget(client, HELD_MAX, fx);
            self.follow_up(fx);
            return true;
        }
        for _ in 0..HELD_MAX {
            let state = self.exchange.asked.clients.get_mut(client);
            let oldest = state.and_then(|state| state.held.try_remove(state.leaves.pop()?.0.1));
            if let Some(held) = oldest {
                self.exchange.let_go(&held, false, fx);
            }
        }
        self.follow_up(fx);
        true
    }

    fn abandon_all(&mut self, client: u32, fx: &mut impl Effects) {
        let requests = self
            .exchange
            .asked
            .clients
            .get(client)
            .map(|state| state.pending.keys().copied().collect::<Vec<u64>>());
        for request in requests.into_iter().flatten() {
            self.abandon(client, request, fx);
        }
    }

    pub(in crate::core) fn dismiss(&mut self, client: u32, reason: &str, fx: &mut impl Effects) {
        if !self.exchange.asked.clients.table.contains_key(&client) {
            return;
        }
        self.exchange
            .objects
            .forget_ahead(&mut self.exchange.asked.clients, &mut self.exchange.deferred, client);
        self.exchange.asked.tell_about_client(client, events::LEFT, reason, fx);
        self.abandon_all(client, fx);
        let exchange = &mut self.exchange;
        NewsTeller::of(exchange).forget(client, usize::MAX, fx);
        let Some(state) = exchange.asked.clients.table.remove(&client) else {
            return;
        };
        if let Some(component) = state.component {
            self.components.leave(component);
        }
        if state.is_known() {
            exchange.asked.flows.leave(state.flow);
        }
        exchange.memory.stalled.remove(client);
        exchange.asked.clients.waiting_offer_bytes -= state.waiting_offer_bytes;
        for offer in &state.waiting_offers {
            exchange.asked.timers.cancel(client, offer.number);
        }
        let mut held: Vec<HeldDelivery> = state.held.into_iter().map(|(_, held)| held).collect();
        held.sort_unstable_by_key(|held| held.sequence);
        for held in held {
            exchange.let_go(&held, false, fx);
        }
        exchange.retention.release(&state.consumers);
        for segment in &state.segments {
            exchange.memory.maps_no_more(client, *segment);
        }
        for segment in exchange.memory.ledger.client_left(client) {
            exchange.memory.drop_segment(&mut exchange.asked.clients, segment, fx);
        }
        // Last: what it held may have emptied a segment that it leased.
        exchange.memory.recalled.remove(&client);
        exchange.memory.came_free = true;
    }

    fn abandon(&mut self, client: u32, request: u64, fx: &mut impl Effects) {
        let exchange = &mut self.exchange;
        match exchange.asked.clients.pending(client, request) {
            Some(&(PendingAnswer::Demand(id) | PendingAnswer::Follow(id) | PendingAnswer::Subscription(id))) => {
                exchange.drop_interest(id);
            }
            Some(&PendingAnswer::Requirement(id)) => _ = exchange.retract(id, "its requirement was retracted", fx),
            Some(&PendingAnswer::Use(id)) => {
                exchange.asked.end_use(id, client, request);
            }
            Some(&PendingAnswer::Bundle(bundle)) => exchange.leave_bundle(client, request, bundle, fx),
            Some(&PendingAnswer::Withdrawal(id)) => exchange.withdrawals.drop_withdrawal(&mut exchange.objects, id),
            Some(PendingAnswer::List(_)) => {
                exchange
                    .asked
                    .clients
                    .drop_list(&mut exchange.objects, &mut exchange.deferred, client, request);
            }
            Some(PendingAnswer::Drain) => self.drain.forget_asker(client, request),
            Some(&PendingAnswer::Durable(awaits)) => exchange.durability.forget(client, request, awaits),
            Some(PendingAnswer::Lease(turn)) => _ = exchange.memory.waiting_leases.remove(*turn),
            Some(PendingAnswer::Sync) | None => {}
        }
        exchange.asked.settle(client, request);
    }
}

impl ClientRequests {
    /// Returns the number of objects that a request's requirement is owed.
    pub(in crate::core) fn owed_to(&self, pending: &PendingAnswer) -> usize {
        let requirement = pending.requirement().and_then(|id| self.interests.requirement_ref(id));
        requirement.map_or(0, RequirementState::owed_count)
    }
}

/// Returns the rights and the token that a gate states for a client.
fn access(hello: &Hello<'_>) -> Result<ClientAccess> {
    let rights = hello.rights.map_or(Some(AccessRights::ALL), AccessRights::from_bits);
    let unknown = || Error::new(Code::Protocol, "Hello", "it states unknown rights");
    Ok(ClientAccess {
        rights: rights.ok_or_else(unknown)?,
        token: hello.token,
    })
}

/// Clips a name, which others see: no longer than a line, no control characters.
fn clip(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(128).collect()
}
