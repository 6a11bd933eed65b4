//! Interests are filed, found, satisfied and dropped.

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{Failure, Target};

use crate::Effects;
use crate::core::clients::client::Pending;
use crate::core::engine::Core;
use crate::core::interests::demand::Waiting;
use crate::core::interests::interest::{Aim, Interest, Prepared, typed};
use crate::core::objects::identity::identity;
use crate::core::objects::look_ahead::Ahead;
use crate::core::objects::order::Incremental;

impl Core {
    /// Files an interest and notes it with its client's request.
    pub(in crate::core) fn add_interest(
        &mut self,
        client: u32,
        request: u64,
        interest: Interest,
        pending: fn(u32) -> Pending,
    ) -> Result<u32> {
        self.clients.may_ask(client, request)?;
        let id = self.file_interest(interest)?;
        self.clients.add_pending(client, request, pending(id))?;
        Ok(id)
    }

    /// Files an interest that is no client's.
    pub(in crate::core) fn file_interest(&mut self, interest: Interest) -> Result<u32> {
        let id = self.interests.table.vacant_key() as u32;
        self.interests.weigh_interest(&mut self.clients, id, &interest)?;
        if let Err(full) = self.interests.match_with(id, &interest) {
            self.interests.weigh_interest_no_more(&mut self.clients, id);
            return Err(full);
        }
        if let Interest::Demand(Waiting { requirement, .. }) = &interest
            && let Some(requirement) = self.interests.still(*requirement)
        {
            self.interests.demand_waits(&mut self.timers, requirement, true);
        }
        if let Interest::Demand(Waiting { incomplete: true, .. }) = &interest {
            self.bundles.look_at_staged(id, true);
        }
        self.interests.table.insert(interest);
        Ok(id)
    }

    /// Ends an interest: nothing more is delivered for it. Its client's request is the caller's to settle.
    pub(in crate::core) fn drop_interest(&mut self, id: u32) {
        let Some(interest) = self.interests.table.try_remove(id as usize) else {
            return;
        };
        self.interests.weigh_interest_no_more(&mut self.clients, id);
        if let Some(selectors) = interest.selectors() {
            self.interests.match_no_more(id, selectors);
        }
        match interest {
            Interest::Follow(following) => self.end_follow(id, *following),
            Interest::Subscription(subscription) => self.interests.end_subscription(id, &subscription),
            Interest::Demand(waiting) => {
                if let Some(requirement) = self.interests.still(waiting.requirement) {
                    self.interests.demand_waits(&mut self.timers, requirement, false);
                }
                if waiting.incomplete {
                    self.bundles.look_at_staged(id, false);
                }
            }
            Interest::Requirement(requirement) => {
                self.interests.forget_beginning(&requirement);
                self.interests.forget_lost(&requirement.lost);
            }
        }
    }

    /// A new visible object matches an interest.
    pub(in crate::core) fn satisfy(&mut self, interest: u32, object: u32, event: u32, fx: &mut impl Effects) {
        match self.interests.get(interest) {
            Some(Interest::Follow(_)) => self.follow_meets(interest, object, fx),
            Some(Interest::Subscription(_)) => self.tell_subscription(interest, object, event, fx),
            Some(Interest::Requirement(_)) => self.requirement_meets(interest, object, fx),
            Some(Interest::Demand(_)) => self.demand_meets(interest, object, fx),
            None => {}
        }
    }

    /// Ends a follow or a subscription from the server's side and says why.
    pub(in crate::core) fn end_from_here(
        &mut self,
        id: u32,
        client: u32,
        request: u64,
        error: &Error,
        fx: &mut impl Effects,
    ) {
        self.drop_interest(id);
        self.clients.settle_pending(&mut self.timers, client, request);
        fx.reply(client, request, &Reply::Ended(Failure::from(error)));
    }

    /// The next request may have a selector that was read before; `None`: no request has.
    ///
    /// Gives back what was there before.
    pub fn prepare(&mut self, selector: Option<Prepared>) -> Option<Prepared> {
        std::mem::replace(&mut self.interests.prepared, selector)
    }

    /// The visible objects that match, in no order.
    pub(in crate::core) fn visible_matches(&mut self, selectors: &SelectorSet) -> Vec<u32> {
        let mut found = self.all_matches(selectors);
        if self.is_behind() {
            found.retain(|&id| !self.is_out_of_sight(&self.objects[id]));
        }
        found
    }

    /// The same, to be changed. Where they are very many, those among them that are out of sight are left out later, by
    /// [`Self::was_there`].
    pub(in crate::core) fn matches_to_change(&mut self, selectors: &SelectorSet) -> Vec<u32> {
        let mut found = self.all_matches(selectors);
        if self.is_behind() && found.len() <= self.config.changed_at_once {
            found.retain(|&id| !self.is_out_of_sight(&self.objects[id]));
        }
        found
    }

    /// Whether an object that was found is visible still. `newest`: the newest version then; another object may have its place.
    pub(in crate::core) fn was_there(&self, id: u32, newest: u64) -> bool {
        let object = self.objects.get(id);
        object.is_some_and(|one| one.sequence <= newest && one.is_visible() && !self.is_out_of_sight(one))
    }

    /// The visible objects that match, to be given in the order of the request that is going on.
    pub(in crate::core) fn sorted_matches(&mut self, selectors: &SelectorSet) -> Incremental {
        self.objects.index_all();
        match self.take_ahead(selectors).filter(Ahead::is_sorted) {
            Some(ahead) => {
                let mut found = ahead.into_sorted();
                if self.is_behind() {
                    found.retain(|id| !self.is_out_of_sight(&self.objects[id]));
                }
                found
            }
            None => Incremental::new(self.visible_matches(selectors)),
        }
    }

    /// Those that match, what is out of sight included.
    pub(in crate::core) fn all_matches(&mut self, selectors: &SelectorSet) -> Vec<u32> {
        self.objects.index_all();
        if let Some(ahead) = self.take_ahead(selectors) {
            return ahead.into_found();
        }
        let mut found = Vec::new();
        for (schema, selector) in typed(selectors, self.objects.listing.len()) {
            for id in self.objects.listing[schema].candidates(selector) {
                if self
                    .objects
                    .get(id)
                    .is_some_and(|object| selector.matches(object.record()))
                {
                    found.push(id);
                }
            }
        }
        found
    }

    /// What a target names: a selector set, or a key's identity and its text.
    pub(in crate::core) fn aim(&self, target: &Target<'_>) -> Result<Aim> {
        match target {
            Target::Selector(text) => Ok(Aim::Selectors(self.interests.selectors(text)?)),
            Target::Key { schema: number, record } => {
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
                Ok(Aim::Key {
                    identity,
                    text,
                    selectors: SelectorSet::exact_key(record, usize::from(*number), &self.config.schemas),
                })
            }
        }
    }
}
