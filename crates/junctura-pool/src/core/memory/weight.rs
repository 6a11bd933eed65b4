//! What the server keeps besides payloads: it has a weight, and a limit.
//!
//! | what | weighs on |
//! |---|---|
//! | attributes of objects and of keys that are gone, with their entries in tables and indexes, and the places where archived objects lie | the budget of records, as large as that of payloads |
//! | standing selectors, lists, and what follows begin with | their client, and all together |
//! | offers that wait, but for payloads in shared memory | their client, and all together |
//! | what requirements are owed | all together |
//!
//! An offer that the first or the last has no room for waits, as one does that memory has no room for, so nothing is lost.
//! A selector beyond its limit is refused with `LimitExceeded`, to its client alone. A place that has no room is not kept.

use std::num::NonZeroU32;

use junctura_model::{Code, Error, RecordRef, Result};

use crate::core::engine::Core;
use crate::core::engine::timers::NOBODY;
use crate::core::interests::interest::Interest;
use crate::core::interests::requirement::{Requirement, Whose};

/// Bytes that an interest takes besides its selector.
pub(in crate::core) const INTEREST_BYTES: usize = 384;
/// While all clients together are at a limit, a client that takes less than so many bytes is still served.
pub(in crate::core) const FAIR_BYTES: usize = 1 << 20;
/// The same of offers that wait: a client that sends 256 objects within messages before it hears of the first has less.
pub(in crate::core) const FAIR_OFFER_BYTES: usize = 2 << 20;

/// Of the interest that has a number, or had it last.
pub(in crate::core) struct Standing {
    /// How many had the number before.
    pub(in crate::core) birth: NonZeroU32,
    client: u32,
    bytes: usize,
}

/// Sums over all that has a weight.
#[derive(Default)]
pub(in crate::core) struct Weights {
    /// Objects that requirements are owed, each as often as it is.
    pub(in crate::core) owed: usize,
}

impl Core {
    /// Whether an object that all requirements want has to wait.
    fn is_owed_as_much_as_may_be(&self) -> bool {
        self.weights.owed + self.requirements.len() > self.config.limits.owed
    }

    /// A requirement is owed one object less.
    pub(in crate::core) fn weigh_owed_no_more(&mut self) {
        self.memory_freed |= self.is_owed_as_much_as_may_be() && !self.stalled.is_empty();
        self.weights.owed -= 1;
    }

    /// Adds an interest that gets this number.
    ///
    /// # Errors
    /// As [`Core::weigh_asked`].
    pub(in crate::core) fn weigh_interest(&mut self, number: u32, interest: &Interest) -> Result<()> {
        let client = client_of(interest);
        let bytes = INTEREST_BYTES + interest.selector_bytes() + queue_bytes(interest);
        self.clients.weigh_asked(client, bytes)?;
        match self.standing.get_mut(number as usize) {
            Some(standing) => (standing.client, standing.bytes) = (client, bytes),
            None => self.standing.push(Standing {
                birth: NonZeroU32::MIN,
                client,
                bytes,
            }),
        }
        Ok(())
    }

    /// A follow has given what was there when it began.
    pub(in crate::core) fn weigh_queue_no_more(&mut self, number: u32) {
        let Some(interest) = self.interests.get(number as usize) else {
            return;
        };
        let bytes = INTEREST_BYTES + interest.selector_bytes();
        let standing = &mut self.standing[number as usize];
        let (client, before) = (standing.client, std::mem::replace(&mut standing.bytes, bytes));
        self.clients.weigh_asked_no_more(client, before - bytes);
    }

    /// The interest of a number is over; the next of this number is another.
    pub(in crate::core) fn weigh_interest_no_more(&mut self, number: u32) {
        let standing = &mut self.standing[number as usize];
        standing.birth = standing.birth.checked_add(1).unwrap_or(NonZeroU32::MIN);
        let (client, bytes) = (standing.client, std::mem::take(&mut standing.bytes));
        self.clients.weigh_asked_no_more(client, bytes);
    }

    /// Whether requirements may be owed one more object each that wants it.
    pub(in crate::core) fn may_be_owed(&mut self, schema: u16, record: &[u8]) -> bool {
        !self.is_owed_as_much_as_may_be()
            || self.weights.owed + self.count_claimants(schema, record) <= self.config.limits.owed
    }

    /// # Errors
    /// `LimitExceeded` where a new requirement would be owed more than all together may.
    pub(in crate::core) fn may_be_owed_at_once(&self, objects: usize) -> Result<()> {
        let limit = self.config.limits.owed;
        if objects > 0 && self.weights.owed + objects > limit {
            let cause = format!(
                "it would be owed {objects} objects, and requirements may be owed {limit} together, of which they are owed {}",
                self.weights.owed
            );
            return Err(Error::new(Code::LimitExceeded, "requirement", cause));
        }
        Ok(())
    }

    /// What else but payloads an offer may wait for, for people.
    pub(in crate::core) fn full_besides(&self) -> String {
        let (records, budget) = (self.objects.record_bytes, self.objects.record_budget_bytes());
        let (owed, limit) = (self.weights.owed, self.config.limits.owed);
        let of_records = format!("; attributes and index entries of objects take {records} of {budget} bytes");
        let of_owed = format!("; requirements are owed {owed} objects, of {limit} that they may be owed together");
        let texts = [
            (self.objects.are_records_full(), of_records),
            (self.is_owed_as_much_as_may_be(), of_owed),
        ];
        texts
            .into_iter()
            .filter(|(is_full, _)| *is_full)
            .map(|(_, text)| text)
            .collect()
    }

    fn count_claimants(&mut self, schema: u16, record: &[u8]) -> usize {
        let mut matched = std::mem::take(&mut self.matched);
        matched.clear();
        self.matching[usize::from(schema)].matches(RecordRef::trusted(record), &mut matched);
        let is_claimant = |&&id: &&u32| self.requirement_ref(id).is_some_and(|one| one.broken.is_none());
        let count = matched.iter().filter(is_claimant).count();
        self.matched = matched;
        count
    }
}

/// Bytes of the objects that a new follow begins with.
fn queue_bytes(interest: &Interest) -> usize {
    match interest {
        Interest::Follow(following) => following.queued() * size_of::<u32>(),
        _ => 0,
    }
}

fn client_of(interest: &Interest) -> u32 {
    match interest {
        Interest::Demand(waiting) => waiting.client,
        Interest::Follow(following) => following.client,
        Interest::Subscription(subscription) => subscription.client,
        Interest::Requirement(requirement) => owner_of(requirement),
    }
}

fn owner_of(requirement: &Requirement) -> u32 {
    match requirement.whose {
        Whose::Client { client, .. } => client,
        Whose::Named(_) => NOBODY,
    }
}
