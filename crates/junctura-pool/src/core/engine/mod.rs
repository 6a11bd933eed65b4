//! Requests and time, in order: the effect of each event, and its consequences.

mod access;
pub(in crate::core) mod drain;
pub(in crate::core) mod draining;
pub(in crate::core) mod farewell;
mod follow_ups;
pub(in crate::core) mod lifetime;
pub(in crate::core) mod look_ahead;
mod requests;
pub(in crate::core) mod timers;

use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use junctura_wire::Request;
use junctura_wire::body::events;

use crate::core::engine::drain::DrainState;
use crate::core::engine::draining::refuse_request;
use crate::core::engine::lifetime::PoolLifetime;
use crate::core::engine::timers::{Nanoseconds, TimerEvent};
use crate::core::exchange::ObjectExchange;
use crate::{Effects, PoolConfig};

/// The state of a pool; see the module.
pub struct Core {
    pub(in crate::core) config: Arc<PoolConfig>,
    pub(in crate::core) exchange: ObjectExchange,
    pub(in crate::core) drain: DrainState,
    pub(in crate::core) components: PoolLifetime,
}

impl Core {
    /// Makes an empty pool.
    ///
    /// # Errors
    /// `InvalidArgument` when the configuration names no schema, or two of one name.
    pub fn new(config: PoolConfig) -> Result<Self> {
        let schemas = config.schemas.len();
        if schemas == 0 || schemas > usize::from(u16::MAX) {
            return Err(Error::new(
                Code::InvalidArgument,
                "schemas",
                "a pool needs at least one schema",
            ));
        }
        let mut names: Vec<_> = config.schemas.iter().map(|schema| schema.name()).collect();
        names.sort_unstable();
        if let Some([twice, _]) = names.array_windows().find(|[one, next]| one == next) {
            return Err(Error::new(
                Code::InvalidArgument,
                "schemas",
                format!("{twice} is given twice"),
            ));
        }
        let config = Arc::new(config);
        Ok(Self {
            exchange: ObjectExchange::new(&config)?,
            drain: DrainState::default(),
            components: PoolLifetime::new(&config.until_gone),
            config,
        })
    }

    /// Handles a client's message.
    pub fn request(
        &mut self,
        now: Nanoseconds,
        client: u32,
        number: u64,
        request: &Request<'_>,
        fx: &mut impl Effects,
    ) {
        self.exchange.begin(now);
        self.drain.forget_follows(&self.exchange.asked.interests, now);
        if !self.exchange.memory.recalled.is_empty() {
            self.exchange.memory.note_heard(&self.exchange.asked.timers, client);
        }
        match self.exchange.objects.use_ahead(client, request) {
            Some(refusal) => self.fail(client, number, &refusal, fx),
            None => self.answer(client, number, request, fx),
        }
        self.exchange
            .objects
            .forget_ahead(&mut self.exchange.asked.clients, &mut self.exchange.deferred, client);
        self.follow_up(fx);
        self.exchange
            .deferred
            .note_left(&mut self.exchange.asked.clients, client);
    }

    /// Handles a message that could not be decoded: its request fails. If nothing after it can be trusted, the client
    /// is disconnected.
    pub fn garbage(&mut self, now: Nanoseconds, client: u32, number: u64, error: &Error, fx: &mut impl Effects) {
        self.exchange.begin(now);
        self.fail(client, number, error, fx);
        if error.code() == Code::Protocol {
            self.give_up(client, error, fx);
        }
        self.follow_up(fx);
    }

    /// Handles the passing of time. Events that were due meanwhile happen in the order of their times, as if this had
    /// been called in time. If that would take long, a part is done, and [`Core::is_behind`] returns true, or
    /// [`Core::deadline`] a time that is over: other clients are served, and this is called again.
    pub fn tick(&mut self, now: Nanoseconds, fx: &mut impl Effects) {
        self.exchange.begin(self.exchange.asked.timers.now);
        self.drain.forget_follows(&self.exchange.asked.interests, now);
        self.catch_up(fx);
        self.deliver_more(fx);
        let mut may = self.config.due_at_once.max(1);
        while may > 0
            && let Some(due) = self.next_due().filter(|&due| due <= now)
        {
            let before = may;
            self.moment(due.max(self.exchange.asked.timers.now), &mut may, fx);
            may -= usize::from(may == before);
            if self.exchange.is_behind() {
                break;
            }
        }
        self.exchange.asked.timers.now = now;
        if self.drain.has_begun {
            self.end_if_drained(fx);
        }
    }

    /// Handles a time at which an event is due: of several, so many.
    fn moment(&mut self, now: Nanoseconds, may: &mut usize, fx: &mut impl Effects) {
        self.exchange.asked.timers.now = now;
        // Before anything else: expiry makes room for offers whose timeout ends just now.
        self.exchange.expire_due(fx);
        self.follow_up(fx);
        while let Some(due) = self.exchange.asked.timers.take_due(may) {
            match due {
                TimerEvent::Demand { client, request } if self.drain.has_begun => {
                    refuse_request(&mut self.exchange.asked, client, request, fx);
                }
                TimerEvent::Demand { client, request } => {
                    self.exchange.asked.demand_timed_out(client, request, fx);
                }
                TimerEvent::Lease { client, request } => self.exchange.lease_timed_out(client, request, fx),
                TimerEvent::FirstLease => self
                    .exchange
                    .memory
                    .put_first_lease_last(&mut self.exchange.asked.clients),
                TimerEvent::Withdrawal(id) => {
                    self.exchange.withdrawals.withdrawal_timed_out(
                        &mut self.exchange.asked,
                        &mut self.exchange.objects,
                        id as usize,
                        fx,
                    );
                }
                TimerEvent::Offer { client, number } => self.exchange.offer_timed_out(client, number, fx),
                TimerEvent::Durable { client, number } => {
                    self.exchange
                        .durability
                        .durable_timed_out(&mut self.exchange.asked, client, number, fx);
                }
                TimerEvent::Requirement(id) => _ = self.exchange.end_named(id, events::LAPSED, None, fx),
                TimerEvent::Stuck => self.break_stuck(fx),
                TimerEvent::Bundle(number) => self.orphan(number, fx),
                TimerEvent::Pause => self.exchange.memory.end_pause(),
                TimerEvent::Room => self.exchange.memory.go_round(),
            }
            self.follow_up(fx);
        }
        self.exchange
            .objects
            .forget_old_tombstones(self.exchange.asked.timers.now, may);
        self.exchange
            .bundles
            .forget_past_bundles(&self.exchange.asked.timers, may);
    }

    /// Does postponed work, in a moment without other work, as long as [`Core::has_idle_work`].
    pub fn idle(&mut self) {
        const AT_ONCE: usize = 256;
        for _ in 0..AT_ONCE {
            self.exchange.objects.index_next();
        }
    }

    /// Returns when [`Core::tick`] is to be called at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanoseconds> {
        if self.exchange.is_behind() || self.is_delivering() {
            Some(self.exchange.asked.timers.now)
        } else {
            let follows = self.drain.follows_due(&self.exchange.asked.interests);
            self.next_due().into_iter().chain(follows).min()
        }
    }

    fn next_due(&self) -> Option<Nanoseconds> {
        self.exchange
            .asked
            .timers
            .next()
            .into_iter()
            .chain(self.exchange.objects.expiries.next())
            .chain(self.drain.deadline())
            .chain(self.exchange.objects.tombstones.next_expiry(self.config.tombstone_age))
            .chain(self.exchange.bundles.next_past_bundle())
            .min()
    }

    /// Whether there are hidden objects to remove: [`Core::tick`] is to be called as soon as other clients were served.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.exchange.is_behind()
    }

    /// Whether [`Core::idle`] has work.
    #[must_use]
    pub fn has_idle_work(&self) -> bool {
        !self.exchange.objects.unindexed.is_empty()
    }

    /// Whether this client has stated its identity and was admitted.
    #[must_use]
    pub fn has_joined(&self, client: u32) -> bool {
        self.exchange
            .asked
            .clients
            .get(client)
            .is_some_and(|client| client.peer.is_some())
    }

    /// Whether the programs that the pool was for have connected and disconnected.
    #[must_use]
    pub fn is_left_by_its_components(&self) -> bool {
        self.components.are_gone()
    }

    /// Whether the pool is unused: no client, no object, no named requirement and no open bundle; a server that was
    /// started on demand may end.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        let exchange = &self.exchange;
        exchange.asked.clients.table.is_empty()
            && exchange.objects.is_empty()
            && exchange.asked.interests.named.is_empty()
            && !exchange.bundles.has_open()
    }

    /// Changes limits in the middle of a test.
    #[cfg(test)]
    pub(in crate::core) fn change_config(&mut self, change: impl FnOnce(&mut PoolConfig)) {
        change(Arc::make_mut(&mut self.config));
        self.exchange.config = Arc::clone(&self.config);
        self.exchange.objects.config = Arc::clone(&self.config);
        self.exchange.asked.config = Arc::clone(&self.config);
        self.exchange.asked.interests.config = Arc::clone(&self.config);
        self.exchange.memory.config = Arc::clone(&self.config);
        self.exchange.asked.clients.config = Arc::clone(&self.config);
    }
}
