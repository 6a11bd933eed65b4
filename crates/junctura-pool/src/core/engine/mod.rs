//! Requests and time, in order: what each event brings, and what follows from it.

pub(in crate::core) mod drain;
mod draining;
mod follow_ups;
pub(in crate::core) mod lifetime;
pub(in crate::core) mod look_ahead;
mod requests;
pub(in crate::core) mod timers;

use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use junctura_wire::Request;

use crate::core::bundles::Bundles;
use crate::core::clients::requests::ClientRequests;
use crate::core::deferred::DeferredWork;
use crate::core::durability::Durability;
use crate::core::engine::drain::Drain;
use crate::core::engine::lifetime::Components;
use crate::core::engine::timers::{Nanoseconds, Timer};
use crate::core::memory::payload::PayloadMemory;
use crate::core::objects::retention_by_name::RetentionByName;
use crate::core::objects::table::ObjectTable;
use crate::core::objects::withdrawals::Withdrawals;
use crate::{Config, Effects};

/// A pool's state. See the module's page.
pub struct Core {
    pub(in crate::core) config: Arc<Config>,
    pub(in crate::core) asked: ClientRequests,
    pub(in crate::core) objects: ObjectTable,
    pub(in crate::core) memory: PayloadMemory,
    pub(in crate::core) withdrawals: Withdrawals,
    pub(in crate::core) deferred: DeferredWork,
    pub(in crate::core) drain: Drain,
    pub(in crate::core) bundles: Bundles,
    pub(in crate::core) durability: Durability,
    pub(in crate::core) retention: RetentionByName,
    pub(in crate::core) components: Components,
}

impl Core {
    /// An empty pool.
    ///
    /// # Errors
    /// `InvalidArgument` when the configuration names no schema, or two of one name.
    pub fn new(config: Config) -> Result<Self> {
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
            asked: ClientRequests::new(&config),
            objects: ObjectTable::new(&config),
            memory: PayloadMemory::new(&config),
            withdrawals: Withdrawals::default(),
            deferred: DeferredWork::default(),
            drain: Drain::default(),
            bundles: Bundles::new(&config),
            durability: Durability::default(),
            retention: RetentionByName::of_schemas(&config.schemas)?,
            components: Components::new(&config.until_gone),
            config,
        })
    }

    /// A client's message arrived.
    pub fn request(&mut self, now: Nanoseconds, client: u32, number: u64, request: Request<'_>, fx: &mut impl Effects) {
        self.begin(now);
        if !self.memory.recalled.is_empty() {
            self.memory.note_heard(&self.asked.timers, client);
        }
        match self.objects.use_ahead(client, &request) {
            Some(refusal) => self.fail(client, number, &refusal, fx),
            None => self.answer(client, number, request, fx),
        }
        self.objects.forget_ahead(&mut self.asked.clients, client);
        self.follow_up(fx);
        self.deferred.note_left(&mut self.asked.clients, client);
    }

    /// A client's message could not be read: what it asked fails. Where nothing after it can be trusted, the client is
    /// given up.
    pub fn garbage(&mut self, now: Nanoseconds, client: u32, number: u64, error: &Error, fx: &mut impl Effects) {
        self.begin(now);
        self.fail(client, number, error, fx);
        if error.code() == Code::Protocol {
            self.give_up(client, error, fx);
        }
        self.follow_up(fx);
    }

    /// Time has passed. What was due meanwhile is done in the order of the times at which it was, as if this had been called
    /// in time. Where that would take long, a part of it is, and [`Core::is_behind`]: others are served, and it is called again.
    pub fn tick(&mut self, now: Nanoseconds, fx: &mut impl Effects) {
        self.begin(self.asked.timers.now);
        self.catch_up(fx);
        self.deliver_more(fx);
        while let Some(due) = self.next_due().filter(|&due| due <= now) {
            self.moment(due.max(self.asked.timers.now), fx);
            if self.is_behind() {
                break;
            }
        }
        self.asked.timers.now = now;
    }

    /// It is a time at which something is due.
    fn moment(&mut self, now: Nanoseconds, fx: &mut impl Effects) {
        self.asked.timers.now = now;
        // First of all: what goes makes room for offers whose time to wait ends just now.
        self.expire_due(fx);
        self.follow_up(fx);
        while let Some(due) = self.asked.timers.take_due() {
            match due {
                Timer::Demand { client, request } => {
                    self.asked.demand_timed_out(client, request, fx);
                }
                Timer::Lease { client, request } => self.lease_timed_out(client, request, fx),
                Timer::FirstLease => self.memory.put_first_lease_last(&mut self.asked.clients),
                Timer::Withdrawal(id) => {
                    self.withdrawals
                        .withdrawal_timed_out(&mut self.asked, &mut self.objects, id as usize, fx);
                }
                Timer::Offer { client, number } => self.offer_timed_out(client, number, fx),
                Timer::Durable { client, number } => {
                    self.durability.durable_timed_out(&mut self.asked, client, number, fx);
                }
                Timer::Requirement(id) => self.lapse(id, fx),
                Timer::Stuck => self.break_stuck(fx),
                Timer::Bundle(number) => self.orphan(number, fx),
                Timer::Pause => self.memory.end_pause(),
                Timer::Room => self.memory.go_round(),
            }
            self.follow_up(fx);
        }
        self.objects.forget_old_tombstones(self.asked.timers.now);
        self.bundles.forget_past_bundles(&self.asked.timers);
    }

    /// Nothing is to be done right now: some of what was put off can be made up for, as long as [`Core::has_idle_work`].
    pub fn idle(&mut self) {
        const AT_ONCE: usize = 256;
        for _ in 0..AT_ONCE {
            self.objects.index_next();
        }
    }

    /// When [`Core::tick`] is to be called at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanoseconds> {
        if self.is_behind() || self.is_delivering() {
            Some(self.asked.timers.now)
        } else {
            self.next_due()
        }
    }

    fn next_due(&self) -> Option<Nanoseconds> {
        self.asked
            .timers
            .next()
            .into_iter()
            .chain(self.objects.expiries.next())
            .chain(self.drain.deadline())
            .chain(self.objects.tombstones.next_expiry(self.config.tombstone_age))
            .chain(self.bundles.next_past_bundle())
            .min()
    }

    /// Whether [`Core::idle`] has something to do.
    #[must_use]
    pub fn has_idle_work(&self) -> bool {
        !self.objects.unindexed.is_empty()
    }

    /// Whether this client has said who it is, and was welcome.
    #[must_use]
    pub fn has_joined(&self, client: u32) -> bool {
        self.asked
            .clients
            .get(client)
            .is_some_and(|client| client.peer.is_some())
    }

    /// The programs that the pool was for have come and gone.
    #[must_use]
    pub fn is_left_by_its_components(&self) -> bool {
        self.components.are_gone()
    }

    /// Nobody is here, nothing lies here, nothing is required by name and no bundle is open: a server that was started for its
    /// clients may end.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        self.asked.clients.table.is_empty()
            && self.objects.is_empty()
            && self.asked.interests.named.is_empty()
            && !self.bundles.has_open()
    }

    /// Changes limits in the middle of a test.
    #[cfg(test)]
    pub(in crate::core) fn change_config(&mut self, change: impl FnOnce(&mut Config)) {
        change(Arc::make_mut(&mut self.config));
        self.objects.config = Arc::clone(&self.config);
        self.asked.config = Arc::clone(&self.config);
        self.asked.interests.config = Arc::clone(&self.config);
        self.memory.config = Arc::clone(&self.config);
        self.asked.clients.config = Arc::clone(&self.config);
    }
}
