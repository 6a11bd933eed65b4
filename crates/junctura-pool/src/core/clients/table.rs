//! The clients of a pool, with their holdings, requests and waiting offers, and the sums over all clients.
//!
//! The table sends nothing: its callers notify clients.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use junctura_memory::ledger::MemoryLedger;
use junctura_model::limits::SCHEMA_BYTES_MAX;
use junctura_model::{Code, Error, Result, Schema, nearest};
use junctura_wire::body::{self, NoteRequest};
use junctura_wire::fixed::ReleasedHolding;

use crate::PoolConfig;
use crate::core::clients::client::{ClientRow, HeldDelivery, PendingAnswer};
use crate::core::clients::listing::OpenListing;
use crate::core::clients::stat::{CLIENTS_SHOWN, ClientStat, NOTES_SHOWN, PoolCounters, ReaderStat};
use crate::core::engine::timers::{NOBODY, TimerEvent, TimerQueue};
use crate::core::memory::weight::{FAIR_BYTES, FAIR_OFFER_BYTES};
use crate::core::objects::offer::{OfferContent, WaitingOffer, waiting_bytes};

/// The clients; see the module.
pub(in crate::core) struct ClientTable {
    pub(in crate::core) config: Arc<PoolConfig>,
    /// The schemas of the pool as YAML, as every client gets them.
    pub(in crate::core) schema_texts: Vec<String>,
    pub(in crate::core) table: HashMap<u32, ClientRow>,
    pub(in crate::core) seen: u32,
    /// Bytes of standing selectors.
    pub(in crate::core) selector_bytes: usize,
    /// The part that belongs to named requirements.
    pub(in crate::core) named_selector_bytes: usize,
    /// Bytes of waiting offers.
    pub(in crate::core) waiting_offer_bytes: usize,
}

impl ClientTable {
    pub(in crate::core) fn new(config: &Arc<PoolConfig>) -> Self {
        Self {
            config: Arc::clone(config),
            schema_texts: config.schemas.iter().map(|schema| schema.to_yaml()).collect(),
            table: HashMap::new(),
            seen: 0,
            selector_bytes: 0,
            named_selector_bytes: 0,
            waiting_offer_bytes: 0,
        }
    }

    pub(in crate::core) fn get(&self, client: u32) -> Option<&ClientRow> {
        self.table.get(&client)
    }

    pub(in crate::core) fn get_mut(&mut self, client: u32) -> Option<&mut ClientRow> {
        self.table.get_mut(&client)
    }

    /// The numbers of clients from this one on, in their order.
    pub(in crate::core) fn numbers_from(&self, client: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.table.keys().copied().filter(|&number| number >= client).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns a pending request of a client.
    pub(in crate::core) fn pending(&self, client: u32, request: u64) -> Option<&PendingAnswer> {
        self.table.get(&client)?.pending.get(&request)
    }

    /// Takes the waiting offers of a client.
    pub(in crate::core) fn take_waiting_offers(&mut self, client: u32) -> VecDeque<WaitingOffer> {
        let Some(state) = self.table.get_mut(&client) else {
            return VecDeque::new();
        };
        self.waiting_offer_bytes -= std::mem::take(&mut state.waiting_offer_bytes);
        std::mem::take(&mut state.waiting_offers)
    }
}

impl ClientTable {
    pub(in crate::core) fn agree_on_schemas(&self, texts: &[String]) -> Result<()> {
        let differing = || texts.iter().filter(|text| !self.schema_texts.contains(text));
        if differing().map(String::len).sum::<usize>() > SCHEMA_BYTES_MAX {
            let cause = format!("they have more than {SCHEMA_BYTES_MAX} bytes together");
            return Err(Error::new(Code::TooLarge, "schemas of a client", cause));
        }
        differing().try_for_each(|text| self.agree_on_schema(text))
    }

    pub(in crate::core) fn agree_on_schema(&self, text: &str) -> Result<()> {
        let theirs = Schema::parse_yaml(text)?;
        let Some(ours) = self.config.schemas.iter().find(|schema| schema.name() == theirs.name()) else {
            let own = self.config.schemas.iter().filter(|schema| !schema.is_aside());
            let known: Vec<_> = own.map(|schema| schema.name()).collect();
            let meant = nearest(known.iter().copied(), theirs.name())
                .map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let cause = format!(
                "the server has no schema of this name; it has {}{meant}; to add it, stop the server, and serve the pool with --schema",
                known.join(", ")
            );
            return Err(Error::new(
                Code::SchemaMismatch,
                format!("schema {}", theirs.name()),
                cause,
            ));
        };
        match ours.first_difference_between(&theirs, ["the pool", "the program"]) {
            None => Ok(()),
            Some(difference) => {
                let cause = format!(
                    "the server's schema and the client's differ: {difference}; open the pool without it, give it another name, or stop the server \
                     and serve the pool with the client's"
                );
                Err(Error::new(
                    Code::SchemaMismatch,
                    format!("schema {}", theirs.name()),
                    cause,
                ))
            }
        }
    }

    pub(in crate::core) fn add_pending(&mut self, client: u32, request: u64, pending: PendingAnswer) -> Result<()> {
        self.may_ask(client, request)?;
        if let Some(state) = self.table.get_mut(&client) {
            state.pending.insert(request, pending);
        }
        Ok(())
    }

    /// Checks that a client may start another long-running request.
    pub(in crate::core) fn may_ask(&self, client: u32, request: u64) -> Result<()> {
        let limit = self.config.limits.requests_per_client;
        let Some(state) = self.table.get(&client) else {
            return Ok(());
        };
        if state.pending.len() >= limit {
            return Err(Error::new(
                Code::LimitExceeded,
                "requests",
                format!("a client may have at most {limit} unanswered requests"),
            ));
        }
        if state.pending.contains_key(&request) {
            let subject = format!("request {request}");
            return Err(Error::new(Code::Protocol, subject, "the number is in use"));
        }
        Ok(())
    }

    pub(in crate::core) fn wire_peer(&self, client: u32) -> Option<body::PeerBody<'_>> {
        let state = self.table.get(&client)?;
        let peer = state.peer.as_ref()?;
        Some(body::PeerBody {
            client,
            name: peer.name.as_str().into(),
            host: peer.host.as_str().into(),
            pid: peer.pid,
            offered: state.accepted,
        })
    }

    /// Whether a client may hold one more object.
    pub(in crate::core) fn may_hold_more(&self, client: u32) -> bool {
        self.table
            .get(&client)
            .is_some_and(|state| state.held.len() < self.config.limits.held_per_client)
    }

    pub(in crate::core) fn no_longer_held(&mut self, client: u32, holding: &ReleasedHolding) -> Option<HeldDelivery> {
        let held = &mut self.table.get_mut(&client)?.held;
        let place = holding.holding.get() as usize;
        let is_held = held.get(place)?.sequence == holding.sequence.get();
        is_held.then(|| held.remove(place))
    }

    /// Releases an object of which the client still reads the payload: the holding remains, for the memory alone.
    pub(in crate::core) fn keeps_mapped(&mut self, client: u32, holding: &ReleasedHolding) -> Option<HeldDelivery> {
        let held = &mut self.table.get_mut(&client)?.held;
        let kept = held.get_mut(holding.holding.get() as usize)?;
        if kept.sequence != holding.sequence.get() || kept.is_released {
            return None;
        }
        let memory = HeldDelivery {
            via: None,
            is_released: true,
            ..*kept
        };
        Some(std::mem::replace(kept, memory))
    }

    /// Adds to the bytes of a client's requests, and to the sum of all clients.
    ///
    /// # Errors
    /// `LimitExceeded` if the client, or all together, have reached their limit.
    pub(in crate::core) fn weigh_asked(&mut self, client: u32, bytes: usize) -> Result<()> {
        let limits = &self.config.limits;
        let all = self.selector_bytes + bytes;
        let its = match self.table.get_mut(&client) {
            Some(state) => &mut state.selector_bytes,
            None => &mut self.named_selector_bytes,
        };
        let limit = limits.selector_bytes_per_client;
        if *its + bytes > limit {
            let whose = if client == NOBODY {
                "requirements with a name"
            } else {
                "a client"
            };
            let cause = format!("standing selectors and lists of {whose} take at most {limit} bytes together");
            return Err(Error::new(Code::LimitExceeded, "selectors", cause));
        }
        if all > limits.selector_bytes && *its + bytes > FAIR_BYTES {
            let cause = format!(
                "standing selectors of all clients take {} bytes already",
                limits.selector_bytes
            );
            return Err(Error::new(Code::LimitExceeded, "selectors", cause));
        }
        *its += bytes;
        self.selector_bytes = all;
        Ok(())
    }

    pub(in crate::core) fn weigh_asked_no_more(&mut self, client: u32, bytes: usize) {
        self.selector_bytes -= bytes;
        match self.table.get_mut(&client) {
            Some(state) => state.selector_bytes -= bytes,
            None => self.named_selector_bytes -= bytes,
        }
    }

    /// Counts a requirement without a name that a client makes or ends.
    pub(in crate::core) fn count_requirement(&mut self, client: u32, change: isize) {
        if let Some(state) = self.table.get_mut(&client) {
            state.requirements = state.requirements.saturating_add_signed(change);
        }
    }

    /// Subtracts an offer that no longer waits.
    pub(in crate::core) fn weigh_offer_no_more(&mut self, client: u32, offer: &WaitingOffer) {
        if let Some(state) = self.table.get_mut(&client) {
            state.waiting_offer_bytes -= offer.bytes();
            self.waiting_offer_bytes -= offer.bytes();
        }
    }

    /// Returns the set of a client's number.
    pub(in crate::core) fn consumers_of(&self, client: u32, number: u32) -> Result<u32> {
        let sets = self.table.get(&client).map(|state| &state.consumers);
        sets.and_then(|sets| sets.get(number as usize)).copied().ok_or_else(|| {
            let cause = format!("this client has named no consumer under the number {number}");
            Error::new(Code::InvalidArgument, "retention", cause)
        })
    }

    /// Returns the bundle that this request of the client has open.
    pub(in crate::core) fn bundle_of(&self, client: u32, request: u64) -> Result<u64> {
        let pending = self.pending(client, request);
        if let Some(&PendingAnswer::Bundle(number)) = pending {
            return Ok(number);
        }
        let cause = "this client has not opened it, or it was aborted";
        Err(Error::new(Code::Closed, format!("bundle {request}"), cause))
    }

    pub(in crate::core) fn take_listing(&mut self, client: u32, request: u64) -> Option<Box<OpenListing>> {
        let state = self.table.get_mut(&client)?;
        match state.pending.remove(&request) {
            Some(PendingAnswer::List(listing)) => Some(listing),
            Some(other) => {
                state.pending.insert(request, other);
                None
            }
            None => None,
        }
    }

    pub(in crate::core) fn put_listing(&mut self, client: u32, request: u64, listing: Box<OpenListing>) {
        if listing.rest.is_empty() {
            self.weigh_asked_no_more(client, listing.bytes);
        } else if let Some(state) = self.table.get_mut(&client) {
            state.pending.insert(request, PendingAnswer::List(listing));
        }
    }

    pub(in crate::core) fn forget_sync(&mut self, client: u32, number: u64) {
        if let Some(state) = self.table.get_mut(&client) {
            for offer in &mut state.waiting_offers {
                offer.syncs.retain(|&sync| sync != number);
            }
        }
    }

    pub(in crate::core) fn person(&self, client: u32) -> String {
        match self.table.get(&client).and_then(|state| state.peer.as_ref()) {
            Some(peer) => format!("{} (pid {} on {})", peer.name, peer.pid, peer.host),
            None => format!("client {client}"),
        }
    }

    pub(in crate::core) fn reader_stat(&self, client: u32) -> Option<ReaderStat> {
        let peer = self.table.get(&client)?.peer.clone()?;
        Some(ReaderStat {
            client,
            name: peer.name,
            host: peer.host,
            pid: peer.pid,
        })
    }

    pub(in crate::core) fn client_stats(&self, ledger: &MemoryLedger) -> Vec<ClientStat> {
        // A client without an identity has just connected, or only probes the socket.
        let known = self.table.iter().filter(|(_, state)| state.is_known());
        let mut known: Vec<u32> = known.map(|(&client, _)| client).collect();
        known.sort_unstable();
        let shown = known.into_iter().take(CLIENTS_SHOWN);
        let mut clients: Vec<_> = shown.filter_map(|client| self.client_stat(client, ledger)).collect();
        let mut room = NOTES_SHOWN;
        for client in &mut clients {
            let note = self.table.get(&client.client).map_or("", |state| &state.note);
            if let Some(left) = room.checked_sub(note.len()) {
                room = left;
                note.clone_into(&mut client.note);
            }
        }
        clients
    }

    fn client_stat(&self, client: u32, ledger: &MemoryLedger) -> Option<ClientStat> {
        let state = self.get(client)?;
        let peer = state.peer.clone()?;
        Some(ClientStat {
            client,
            name: peer.name,
            host: peer.host,
            pid: peer.pid,
            offered: state.offered,
            delivered: state.delivered,
            held: state.held.len() as u64,
            requests: state.pending.len() as u64,
            offers_waiting: state.waiting_offers.len() as u64,
            leased_bytes: ledger.leased_bytes(client),
            transport: peer.route,
            note: String::new(),
        })
    }

    /// Replaces the note of a client.
    ///
    /// # Errors
    /// `InvalidArgument` for a text that is no note.
    pub(in crate::core) fn note(&mut self, client: u32, text: &str) -> Result<()> {
        if let Some(cause) = NoteRequest::refusal(text) {
            return Err(Error::new(Code::InvalidArgument, "note", cause));
        }
        if let Some(state) = self.table.get_mut(&client) {
            state.note = text.into();
        }
        Ok(())
    }

    pub(in crate::core) fn wait_for_memory(
        &mut self,
        timers: &mut TimerQueue,
        count: &mut PoolCounters,
        client: u32,
        number: u64,
        bundle: Option<u64>,
        OfferContent { head, record, inline }: OfferContent<'_>,
    ) -> Result<()> {
        let limit = self.config.limits.waiting_offers_per_client;
        let Some(state) = self.table.get_mut(&client) else {
            return Ok(());
        };
        if state.waiting_offers.len() >= limit {
            let cause = format!("{limit} offers of this client wait for memory already");
            return Err(Error::new(Code::PoolFull, "offer", cause));
        }
        let limits = &self.config.limits;
        let bytes = waiting_bytes(record, inline);
        let (its, all) = (state.waiting_offer_bytes + bytes, self.waiting_offer_bytes + bytes);
        let full = |whose: &str, limit: usize| {
            let cause = format!("offers of {whose} that wait for memory take {limit} bytes already");
            Err(Error::new(Code::PoolFull, "offer", cause))
        };
        if !state.waiting_offers.is_empty() && its > limits.waiting_offer_bytes_per_client {
            return full("this client", limits.waiting_offer_bytes_per_client);
        }
        if its > FAIR_OFFER_BYTES && all > limits.waiting_offer_bytes {
            return full("all clients", limits.waiting_offer_bytes);
        }
        state.waiting_offer_bytes = its;
        self.waiting_offer_bytes = all;
        let waiting = WaitingOffer {
            number,
            bundle,
            head,
            record: record.to_vec(),
            inline: inline.to_vec(),
            syncs: Vec::new(),
            since: timers.now,
        };
        state.waiting_offers.push_back(waiting);
        if let Some(timeout) = state.offer_timeout {
            timers.set(
                timers.now + timeout,
                client,
                number,
                TimerEvent::Offer { client, number },
            );
        }
        count.offers_waiting += 1;
        Ok(())
    }
}
