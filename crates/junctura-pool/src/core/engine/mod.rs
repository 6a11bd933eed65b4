//! Requests and time, in order: what each event brings, and what follows from it.

pub(in crate::core) mod drain;
pub(in crate::core) mod lifetime;
pub(in crate::core) mod look_ahead;
pub(in crate::core) mod timers;

use junctura_model::{Code, Error, Result};
use junctura_wire::body::Failure;
use junctura_wire::{Reply, Request};

use crate::core::bundles::Bundles;
use crate::core::clients::client::Pending;
use crate::core::clients::table::ClientTable;
use crate::core::deferred::DeferredWork;
use crate::core::durability::Durability;
use crate::core::engine::drain::Drain;
use crate::core::engine::lifetime::Components;
use crate::core::engine::timers::Nanoseconds;
use crate::core::engine::timers::Timers;
use crate::core::interests::table::InterestTable;
use crate::core::memory::payload::PayloadMemory;
use crate::core::objects::retention_by_name::RetentionByName;
use crate::core::objects::table::ObjectTable;
use crate::core::objects::withdrawals::Withdrawals;
use crate::{Config, Effects};
use std::sync::Arc;

/// A pool's state. See the module's page.
pub struct Core {
    pub(in crate::core) config: Arc<Config>,
    pub(in crate::core) clients: ClientTable,
    pub(in crate::core) objects: ObjectTable,
    pub(in crate::core) interests: InterestTable,
    pub(in crate::core) memory: PayloadMemory,
    pub(in crate::core) withdrawals: Withdrawals,
    pub(in crate::core) timers: Timers,
    pub(in crate::core) deferred: DeferredWork,
    pub(in crate::core) drain: Option<Drain>,
    pub(in crate::core) bundles: Bundles,
    pub(in crate::core) durability: Durability,
    pub(in crate::core) retention: RetentionByName,
    pub(in crate::core) components: Components,
    pub(in crate::core) count: crate::core::clients::stat::Counters,
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
            clients: ClientTable::new(&config),
            objects: ObjectTable::new(&config),
            interests: InterestTable::new(&config),
            memory: PayloadMemory::new(&config),
            withdrawals: Withdrawals::default(),
            timers: Timers::default(),
            deferred: DeferredWork::default(),
            drain: None,
            bundles: Bundles::new(&config),
            durability: crate::core::durability::Durability::default(),
            retention: RetentionByName::of_schemas(&config.schemas)?,
            components: Components::new(&config.until_gone),
            count: crate::core::clients::stat::Counters::default(),
            config,
        })
    }

    /// A client's message arrived.
    pub fn request(&mut self, now: Nanoseconds, client: u32, number: u64, request: Request<'_>, fx: &mut impl Effects) {
        self.begin(now);
        if !self.memory.recalled.is_empty() {
            self.memory.note_heard(&self.timers, client);
        }
        match self.use_ahead(client, &request) {
            Some(refusal) => self.fail(client, number, &refusal, fx),
            None => self.answer(client, number, request, fx),
        }
        self.forget_ahead(client);
        self.follow_up(fx);
        self.deferred.note_left(&mut self.clients, client);
    }

    /// What follows from an event for others comes after the event itself, so that nothing changes in the middle of a
    /// change: what waits in groups again, what leaves with the others of its bundle, withdraws whose wait is over, those who wait for memory, objects that leave since a
    /// store has them, payloads that go to the file tier, and requirements that keep others waiting.
    pub(in crate::core) fn follow_up(&mut self, fx: &mut impl Effects) {
        loop {
            self.deferred.answer_those_in_turn(&self.clients, &self.objects, fx);
            if let Some(group) = self.interests.stirred.pop() {
                self.hand_out(group, fx);
            } else if self.retention.has_news() {
                self.let_unneeded_go(fx);
            } else if let Some(bundle) = self.bundles.next_abandoned() {
                self.let_the_rest_go(bundle, fx);
            } else if !self.withdrawals.unblocked.is_empty() {
                self.finish_withdrawals(fx);
            } else if self.durability.has_news() {
                self.answer_durables(fx);
            } else if self.has_memory_come_free() {
                self.serve_waiting(fx);
            } else if !self.make_room(fx)
                && !self.memory.spill(&mut self.objects, &self.interests, fx)
                && !self.make_room_in_file(fx)
                && !self.break_on_full(fx)
            {
                break;
            }
        }
        self.memory.watch_first_lease(&mut self.timers);
        self.watch_for_stuck();
        self.memory.watch_for_room(&mut self.timers);
        if self.drain.is_none() && self.components.are_gone() {
            self.begin_to_drain(None, fx);
        }
        if self.drain.is_some() {
            self.end_if_drained(fx);
        }
    }

    fn answer(&mut self, client: u32, number: u64, request: Request<'_>, fx: &mut impl Effects) {
        let Some(state) = self.clients.get(client) else { return };
        let known = state.is_known();
        if let Some(refusal) = self.refusal(&request, known) {
            return self.fail(client, number, &refusal, fx);
        }
        let outcome = match (request, known) {
            (Request::Hello(hello), false) => self.hello(client, number, &hello, fx),
            (Request::Hello(_), true) => Err(protocol("Hello", "the client is known already")),
            (_, false) => Err(protocol("first frame", "a client says Hello first")),
            (Request::Offer { head, record, inline }, _) => {
                self.offer(
                    client,
                    number,
                    None,
                    crate::core::objects::offer::Content { head, record, inline },
                    fx,
                );
                return;
            }
            (
                Request::Stage {
                    bundle,
                    head,
                    record,
                    inline,
                },
                _,
            ) => {
                self.offer(
                    client,
                    number,
                    Some(bundle),
                    crate::core::objects::offer::Content { head, record, inline },
                    fx,
                );
                return;
            }
            (Request::Bundle(bundle), _) => self.open_bundle(client, number, &bundle, fx),
            (Request::Seal(which), _) => self.seal(client, number, which, fx),
            (Request::Abort(which), _) => self.abort(client, number, which, fx),
            (Request::Bundles(bundles), _) => self.list_bundles(client, number, &bundles, fx),
            (Request::Consumers(consumers), _) => self.number_consumers(client, number, &consumers, fx),
            (Request::Sync, _) => self.sync(client, number, fx),
            (Request::Pack(_), _) => {
                let cause = "whoever shares the pool's memory reads pieces there; a gate packs for others";
                Err(Error::new(Code::Unsupported, "pack", cause))
            }
            (Request::Archived(archived), _) => self.archived(client, number, &archived, fx),
            (Request::Release(holdings), _) => self.release(client, holdings, fx),
            (Request::Lease(lease), _) => self.lease(client, number, &lease, fx),
            (Request::Return(segment), _) => self.give_back(client, segment, fx),
            (Request::Demand(demand), _) => self.demand(client, number, &demand, fx),
            (Request::Cancel(which), _) => {
                self.cancel(client, which, fx);
                return;
            }
            (Request::List(list), _) => self.list(client, number, &list, fx),
            (Request::More(which), _) => {
                self.more(client, which, fx);
                return;
            }
            (Request::Follow(follow), _) => self.follow(client, number, &follow, fx),
            (Request::Require(require), _) => self.require(client, number, &require, fx),
            (Request::Withdraw(withdraw), _) => self.withdraw(client, number, &withdraw, fx),
            (Request::Retire(retire), _) => self.retire(client, number, &retire, fx),
            (Request::Subscribe(subscribe), _) => self.subscribe(client, number, &subscribe, fx),
            (Request::Wanted(wanted), _) => self.wanted(client, number, &wanted, fx),
            (Request::Drain(drain), _) => self.drain_for(client, number, &drain, fx),
            (Request::Retract(retract), _) => self.retract_named(client, number, &retract.name, fx),
            (Request::Stop(which), _) => self.stop(client, number, which, fx),
            (Request::Stat, _) => {
                let mut stat = self.stat();
                stat.server = fx.figures();
                let text = stat.to_json();
                fx.reply(client, number, &Reply::Stats(&text));
                Ok(())
            }
            (Request::Goodbye, _) => {
                self.dismiss(client, "said goodbye", fx);
                fx.disconnect(client, &Error::new(Code::Closed, "client", "said goodbye"));
                return;
            }
        };
        if let Err(error) = outcome {
            self.fail(client, number, &error, fx);
        }
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
        self.begin(self.timers.now);
        self.catch_up(fx);
        self.deliver_more(fx);
        while let Some(due) = self.next_due().filter(|&due| due <= now) {
            self.moment(due.max(self.timers.now), fx);
            if self.is_behind() {
                break;
            }
        }
        self.timers.now = now;
    }

    /// It is a time at which something is due.
    fn moment(&mut self, now: Nanoseconds, fx: &mut impl Effects) {
        self.timers.now = now;
        // First of all: what goes makes room for offers whose time to wait ends just now.
        self.expire_due(fx);
        self.follow_up(fx);
        while let Some(due) = self.timers.take_due() {
            match due {
                crate::core::engine::timers::Timer::Demand { client, request } => {
                    self.demand_timed_out(client, request, fx)
                }
                crate::core::engine::timers::Timer::Lease { client, request } => {
                    self.lease_timed_out(client, request, fx)
                }
                crate::core::engine::timers::Timer::FirstLease => self.put_first_lease_last(),
                crate::core::engine::timers::Timer::Withdrawal(id) => self.withdrawal_timed_out(id as usize, fx),
                crate::core::engine::timers::Timer::Offer { client, number } => {
                    self.offer_timed_out(client, number, fx)
                }
                crate::core::engine::timers::Timer::Durable { client, number } => {
                    self.durable_timed_out(client, number, fx)
                }
                crate::core::engine::timers::Timer::Requirement(id) => self.lapse(id, fx),
                crate::core::engine::timers::Timer::Stuck => self.break_stuck(fx),
                crate::core::engine::timers::Timer::Bundle(number) => self.orphan(number, fx),
                crate::core::engine::timers::Timer::Pause => self.memory.end_pause(),
                crate::core::engine::timers::Timer::Room => self.memory.go_round(),
            }
            self.follow_up(fx);
        }
        self.objects.forget_old_tombstones(self.timers.now);
        self.bundles.forget_past_bundles(&self.timers);
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
            Some(self.timers.now)
        } else {
            self.next_due()
        }
    }

    fn next_due(&self) -> Option<Nanoseconds> {
        self.timers
            .next()
            .into_iter()
            .chain(self.objects.expiries.next())
            .chain(self.drain_deadline())
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
        self.clients.get(client).is_some_and(|client| client.peer.is_some())
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
        self.clients.table.is_empty()
            && self.objects.is_empty()
            && self.interests.named.is_empty()
            && !self.bundles.has_open()
    }

    /// Whether those who wait for memory, or for room for records, may be served since this event; once.
    fn has_memory_come_free(&mut self) -> bool {
        let have_more = std::mem::take(&mut self.objects.came_free) | std::mem::take(&mut self.interests.came_free);
        std::mem::take(&mut self.memory.came_free) || (have_more && !self.memory.stalled.is_empty())
    }

    /// Changes limits in the middle of a test.
    #[cfg(test)]
    pub(in crate::core) fn change_config(&mut self, change: impl FnOnce(&mut Config)) {
        change(Arc::make_mut(&mut self.config));
        self.objects.config = Arc::clone(&self.config);
        self.interests.config = Arc::clone(&self.config);
        self.memory.config = Arc::clone(&self.config);
        self.clients.config = Arc::clone(&self.config);
    }

    pub(in crate::core) fn fail(&mut self, client: u32, number: u64, error: &Error, fx: &mut impl Effects) {
        fx.reply(client, number, &Reply::Failed(Failure::from(error)));
        self.count.failed += u64::from(error.code() != Code::NotWanted);
        let limit = self.config.limits.errors_per_client;
        let Some(state) = self.clients.get_mut(client) else {
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

    fn cancel(&mut self, client: u32, which: u64, fx: &mut impl Effects) {
        let cancelled = match self.clients.get(client).and_then(|state| state.pending.get(&which)) {
            Some(Pending::Demand(id)) => {
                let id = *id;
                self.drop_interest(id);
                true
            }
            Some(Pending::Lease(turn)) => {
                self.memory.waiting_leases.remove(*turn);
                self.memory.came_free = true;
                true
            }
            Some(Pending::Withdrawal(id)) => {
                let id = *id;
                self.withdrawals.drop_withdrawal(&mut self.objects, id);
                true
            }
            Some(Pending::Drain) => {
                self.forget_asker(client, which);
                true
            }
            Some(Pending::Sync) => {
                self.clients.forget_sync(client, which);
                true
            }
            _ => false,
        };
        if cancelled {
            self.clients.settle_pending(&mut self.timers, client, which);
            let error = Error::new(Code::Interrupted, "request", "cancelled by its client");
            fx.reply(client, which, &Reply::Failed(Failure::from(&error)));
        }
    }

    fn stop(&mut self, client: u32, number: u64, which: u64, fx: &mut impl Effects) -> Result<()> {
        match self.clients.get(client).and_then(|state| state.pending.get(&which)) {
            Some(&Pending::Follow(id) | &Pending::Subscription(id)) => self.drop_interest(id),
            Some(&Pending::Requirement(id)) => _ = self.retract(id, "its requirement was retracted", fx),
            Some(&Pending::Use(id)) => self.interests.end_use(&mut self.timers, id, client, which),
            Some(&Pending::Bundle(bundle)) => self.leave_bundle(client, which, bundle, fx),
            Some(Pending::List(_)) => self.drop_list(client, which),
            _ => {
                return Err(Error::new(
                    Code::NotFound,
                    format!("request {which}"),
                    "nothing of this number goes on",
                ));
            }
        }
        self.clients.settle_pending(&mut self.timers, client, which);
        self.deferred.answer_in_turn(client, number, 0, fx);
        Ok(())
    }
}

fn protocol(subject: &str, cause: &str) -> Error {
    Error::new(Code::Protocol, subject, cause)
}
