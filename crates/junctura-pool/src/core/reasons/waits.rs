//! Waits: all requests that wait, in the order of clients and of their numbers.
//!
//! Of the offers of a client that wait for memory the first is returned, with the number of those behind it; its place is behind the other
//! requests of its client.

use std::ops::Bound;

use junctura_wire::reasons::{WAITS_MAX, WaitPlace, WaitingRequest, WaitsPage, WaitsRequest};

use super::{LOOKS_MAX, LookBudget, PoolReasons, ROWS_MAX, WaitCause, short, to_milliseconds};
use crate::core::clients::client::{ClientRow, PendingAnswer};
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::interest::StandingInterest;

/// The place of the first offer of a client that waits.
const OFFER_PLACE: u64 = u64::MAX;

/// What is known of a request that waits.
struct KnownWait {
    kind: &'static str,
    what: String,
    since: Option<Nanoseconds>,
    cause: WaitCause,
}

impl PoolReasons<'_> {
    /// Returns requests that wait, and why.
    #[must_use]
    pub fn waits(&self, asked: &WaitsRequest) -> WaitsPage {
        let limit = asked.limit.clamp(1, WAITS_MAX) as usize;
        let mut page = WaitsPage::default();
        let mut budget = LookBudget { left: LOOKS_MAX };
        let mut rows = 0;
        let after = asked.after.unwrap_or_default();
        for client in self.exchange.asked.clients.numbers_from(after.client) {
            let from = if client == after.client && asked.after.is_some() {
                Bound::Excluded(after.request)
            } else {
                Bound::Unbounded
            };
            let Some(state) = self.exchange.asked.clients.get(client) else {
                continue;
            };
            for (request, place) in places(state, from) {
                if page.requests.len() >= limit || rows >= ROWS_MAX || budget.left == 0 {
                    return page;
                }
                rows += 1;
                page.requests
                    .extend(self.waiting_request(client, request, place, &mut budget));
                page.next = Some(WaitPlace { client, request: place });
            }
        }
        page.next = None;
        page
    }

    fn waiting_request(
        &self,
        client: u32,
        request: u64,
        place: u64,
        budget: &mut LookBudget,
    ) -> Option<WaitingRequest> {
        let asked = &self.exchange.asked;
        let state = asked.clients.get(client)?;
        let known = if place == OFFER_PLACE {
            self.offer_that_waits(client, state, budget)?
        } else {
            self.pending_that_waits(client, state.pending.get(&request)?, budget)?
        };
        let now = asked.timers.now;
        let ends = match known.kind {
            "drain" => self.drain.until,
            _ => asked.timers.time_of(client, request),
        };
        let since = known
            .since
            .or_else(|| self.drain.askers.get(&(client, request)).copied());
        Some(WaitingRequest {
            client: asked.clients.client_reference(client),
            request,
            kind: known.kind.to_owned(),
            what: known.what,
            waits_ms: since.map(|since| to_milliseconds(now.saturating_sub(since))),
            ends_in_ms: ends.map(|at| to_milliseconds(at.saturating_sub(now))),
            because: known.cause.because.to_owned(),
            on: known.cause.on,
            on_more: known.cause.more,
            behind_it: if place == OFFER_PLACE {
                state.waiting_offers.len() as u64 - 1
            } else {
                0
            },
        })
    }

    fn offer_that_waits(&self, client: u32, state: &ClientRow, budget: &mut LookBudget) -> Option<KnownWait> {
        let first = state.waiting_offers.front()?;
        let key = self.exchange.objects.key_text(first.head.schema.get(), &first.record);
        Some(KnownWait {
            kind: "offer",
            what: short(&key),
            // Until then the offers before it were accepted one after the other.
            since: Some(first.since.max(state.proceeded)),
            cause: self.cause_of_offer(client, budget),
        })
    }

    /// Returns nothing for a request that does not wait: a follow, a subscription, a requirement, a list.
    fn pending_that_waits(&self, client: u32, pending: &PendingAnswer, budget: &mut LookBudget) -> Option<KnownWait> {
        let exchange = &self.exchange;
        let known = |kind, what: &str, since, cause| {
            Some(KnownWait {
                kind,
                what: short(what),
                since,
                cause,
            })
        };
        match *pending {
            PendingAnswer::Demand(id) => {
                let Some(StandingInterest::Demand(waiting)) = exchange.asked.interests.get(id) else {
                    return None;
                };
                let cause = self.cause_of_demand(waiting, budget);
                known("demand", waiting.selectors.text(), Some(waiting.since), cause)
            }
            PendingAnswer::Lease(turn) => {
                let lease = exchange.memory.waiting_leases.get(turn)?;
                let what = format!("{} bytes", lease.payload_bytes);
                known(
                    "lease",
                    &what,
                    Some(lease.since),
                    self.cause_of_lease(turn, client, budget),
                )
            }
            PendingAnswer::Withdrawal(id) => {
                let withdrawal = exchange.withdrawals.table.get(id as usize)?;
                let what = self.withdrawn_text(withdrawal);
                let cause = self.cause_of_withdrawal(withdrawal);
                known("withdraw", &what, Some(withdrawal.began), cause)
            }
            PendingAnswer::Drain => known("drain", "", None, self.cause_of_drain(budget)),
            PendingAnswer::Sync => known("sync", "", None, self.cause_of_sync(client)),
            PendingAnswer::Durable(awaited) => {
                let (what, cause) = self.cause_of_durable(awaited, budget);
                known("durable", &what, None, cause)
            }
            PendingAnswer::Bundle(number) => {
                let (what, cause) = self.cause_of_bundle(number, budget)?;
                known("bundle", &what, None, cause)
            }
            PendingAnswer::Follow(_)
            | PendingAnswer::Subscription(_)
            | PendingAnswer::Requirement(_)
            | PendingAnswer::Use(_)
            | PendingAnswer::List(_) => None,
        }
    }
}

/// Returns the requests of a client behind a place, with their places.
fn places(state: &ClientRow, from: Bound<u64>) -> impl Iterator<Item = (u64, u64)> {
    let pending = state
        .pending
        .range((from, Bound::Unbounded))
        .map(|(&number, _)| (number, number));
    let first = state
        .waiting_offers
        .front()
        .filter(|_| from != Bound::Excluded(OFFER_PLACE));
    pending.chain(first.map(|offer| (offer.number, OFFER_PLACE)))
}
