//! Interests are indexed, found, satisfied and ended.

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{TargetBody, WireFailure};

use crate::Effects;
use crate::core::clients::client::PendingAnswer;
use crate::core::clients::requests::ClientRequests;
use crate::core::clients::table::ClientTable;
use crate::core::deferred::DeferredWork;
use crate::core::engine::Core;
use crate::core::engine::timers::Nanoseconds;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::demand::WaitingDemand;
use crate::core::interests::interest::{InterestAim, PreparedSelector, StandingInterest, typed};
use crate::core::interests::table::InterestTable;
use crate::core::objects::identity::identity;
use crate::core::objects::look_ahead::LookPurpose;
use crate::core::objects::table::ObjectTable;

impl Core {
    /// Sets the parsed selector for the next request; `None`: there is none.
    ///
    /// Returns the earlier one.
    pub fn prepare(&mut self, selector: Option<PreparedSelector>) -> Option<PreparedSelector> {
        std::mem::replace(&mut self.exchange.asked.interests.prepared, selector)
    }
}

impl ObjectExchange {
    /// Ends an interest, and releases the objects of its queue. The caller settles its client's request.
    pub(in crate::core) fn drop_interest(&mut self, id: u32) {
        let queue = self.asked.end_interest(id);
        self.deferred.release_queue(&mut self.objects, queue);
    }

    /// Passes a new visible object to a matching interest.
    pub(in crate::core) fn satisfy(&mut self, interest: u32, object: u32, event: u32, fx: &mut impl Effects) {
        match self.asked.interests.get(interest) {
            Some(StandingInterest::Follow(_)) => self.follow_meets(interest, object, fx),
            Some(StandingInterest::Subscription(_)) => {
                self.asked.tell_subscription(&self.objects, interest, object, event, fx);
            }
            Some(StandingInterest::Requirement(_)) => self.requirement_meets(interest, object, fx),
            Some(StandingInterest::Demand(_)) => {
                self.asked
                    .demand_meets(&mut self.objects, &mut self.memory, interest, object, fx);
            }
            None => {}
        }
    }
}

impl ClientRequests {
    /// Indexes an interest and records it with its client's request.
    pub(in crate::core) fn add_interest(
        &mut self,
        client: u32,
        request: u64,
        interest: StandingInterest,
        pending: fn(u32) -> PendingAnswer,
    ) -> Result<u32> {
        self.may_add_interest(client, request, &interest)?;
        let id = self.insert_interest(interest);
        self.clients.add_pending(client, request, pending(id))?;
        Ok(id)
    }

    /// Weighs and indexes the interest that is inserted next.
    pub(in crate::core) fn may_add_interest(
        &mut self,
        client: u32,
        request: u64,
        interest: &StandingInterest,
    ) -> Result<()> {
        self.clients.may_ask(client, request)?;
        self.may_file_interest(interest)
    }

    fn may_file_interest(&mut self, interest: &StandingInterest) -> Result<()> {
        let id = self.interests.table.vacant_key() as u32;
        self.interests.weigh_interest(&mut self.clients, id, interest)?;
        if let Err(full) = self.interests.match_with(id, interest) {
            self.interests.weigh_interest_no_more(&mut self.clients, id);
            return Err(full);
        }
        Ok(())
    }

    /// Indexes an interest without a client.
    pub(in crate::core) fn file_interest(&mut self, interest: StandingInterest) -> Result<u32> {
        self.may_file_interest(&interest)?;
        Ok(self.insert_interest(interest))
    }

    /// Inserts an interest that was indexed.
    pub(in crate::core) fn insert_interest(&mut self, interest: StandingInterest) -> u32 {
        let id = self.interests.table.vacant_key() as u32;
        if let StandingInterest::Demand(WaitingDemand { requirement, .. }) = &interest
            && let Some(requirement) = self.interests.still(*requirement)
        {
            self.demand_waits(requirement, true);
        }
        if let StandingInterest::Demand(WaitingDemand { incomplete: true, .. }) = &interest {
            self.interests.lookers.insert(id);
        }
        self.interests.table.insert(interest);
        id
    }

    /// Ends an interest: nothing more is delivered for it. The caller settles its client's request and the queue of a
    /// follow, which is returned.
    #[must_use]
    pub(in crate::core) fn end_interest(&mut self, id: u32) -> Vec<u32> {
        let Some(interest) = self.interests.table.try_remove(id as usize) else {
            return Vec::new();
        };
        self.interests.weigh_interest_no_more(&mut self.clients, id);
        if let Some(selectors) = interest.selectors() {
            self.interests.match_no_more(id, selectors);
        }
        let client = interest.client();
        match interest {
            StandingInterest::Follow(following) => return self.end_follow(id, *following),
            StandingInterest::Subscription(subscription) => self.interests.end_subscription(id, &subscription),
            StandingInterest::Demand(waiting) => {
                if let Some(requirement) = self.interests.still(waiting.requirement) {
                    self.demand_waits(requirement, false);
                }
                if waiting.incomplete {
                    self.interests.lookers.remove(&id);
                }
            }
            StandingInterest::Requirement(requirement) => {
                self.clients.count_requirement(client, -1);
                self.interests.forget_beginning(&requirement);
                self.interests.forget_lost(&requirement.lost);
            }
        }
        Vec::new()
    }

    /// Ends a request from the server's side with the error.
    pub(in crate::core) fn close(&mut self, client: u32, request: u64, error: &Error, fx: &mut impl Effects) {
        self.settle(client, request);
        fx.reply(client, request, &Reply::Ended(WireFailure::from(error)));
    }

    /// Ends a follow from the server's side with the error.
    pub(in crate::core) fn end_from_here(
        &mut self,
        objects: &mut ObjectTable,
        deferred: &mut DeferredWork,
        id: u32,
        error: &Error,
        fx: &mut impl Effects,
    ) {
        let Some(following) = self.interests.following_ref(id) else {
            return;
        };
        let (client, request) = (following.client, following.request);
        let queue = self.end_interest(id);
        deferred.release_queue(objects, queue);
        self.close(client, request, error, fx);
    }
}

impl ObjectTable {
    /// Whether a found object is still visible. `newest`: the newest version at that time; another object may have its
    /// slot.
    pub(in crate::core) fn was_there(&self, now: Nanoseconds, id: u32, newest: u64) -> bool {
        let object = self.get(id);
        object.is_some_and(|one| one.sequence <= newest && one.is_visible() && !one.is_out_of_sight(now))
    }

    /// Returns all matching objects, hidden ones included.
    pub(in crate::core) fn all_matches(&mut self, clients: &mut ClientTable, selectors: &SelectorSet) -> Vec<u32> {
        self.index_all();
        if let Some(ahead) = self.take_ahead(clients, selectors, LookPurpose::Find) {
            return ahead.into_found();
        }
        let mut found = Vec::new();
        for (schema, selector) in typed(selectors, self.listing.len()) {
            for id in self.listing[schema].candidates(selector) {
                if self.get(id).is_some_and(|object| selector.matches(object.record())) {
                    found.push(id);
                }
            }
        }
        found
    }
}

impl InterestTable {
    /// Resolves a target: a selector set, or a key's identity and its text.
    pub(in crate::core) fn aim(&self, target: &TargetBody<'_>) -> Result<InterestAim> {
        match target {
            TargetBody::Selector(text) => Ok(InterestAim::Selectors(self.selectors(text)?)),
            TargetBody::Key { schema: number, record } => {
                let schema = self.config.schemas.get(usize::from(*number)).ok_or_else(|| {
                    Error::new(
                        Code::SchemaMismatch,
                        format!("schema {number}"),
                        "the pool has no schema of this number",
                    )
                })?;
                let record = schema.check(record)?;
                let mut text = String::new();
                schema.key_of(record, &mut text);
                let identity = identity(*number, record.key_bytes(schema.key_len()));
                Ok(InterestAim::Key {
                    identity,
                    text,
                    selectors: SelectorSet::exact_key(record, usize::from(*number), &self.config.schemas),
                })
            }
        }
    }
}
