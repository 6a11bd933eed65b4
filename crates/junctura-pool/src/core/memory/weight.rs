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
    pub(in crate::core) client: u32,
    pub(in crate::core) bytes: usize,
}

impl Core {
    /// What else but payloads an offer may wait for, for people.
    pub(in crate::core) fn full_besides(&self) -> String {
        let (records, budget) = (self.objects.record_bytes, self.objects.record_budget_bytes());
        let (owed, limit) = (self.interests.owed, self.config.limits.owed);
        let of_records = format!("; attributes and index entries of objects take {records} of {budget} bytes");
        let of_owed = format!("; requirements are owed {owed} objects, of {limit} that they may be owed together");
        let texts = [
            (self.objects.are_records_full(), of_records),
            (self.interests.is_owed_as_much_as_may_be(), of_owed),
        ];
        texts
            .into_iter()
            .filter(|(is_full, _)| *is_full)
            .map(|(_, text)| text)
            .collect()
    }
}

/// Bytes of the objects that a new follow begins with.
pub(in crate::core) fn queue_bytes(interest: &Interest) -> usize {
    match interest {
        Interest::Follow(following) => following.queued() * size_of::<u32>(),
        _ => 0,
    }
}

pub(in crate::core) fn client_of(interest: &Interest) -> u32 {
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
