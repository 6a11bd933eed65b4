//! Subscriptions: events about objects and clients, without payloads.

use junctura_model::selector::SelectorSet;
use junctura_wire::body::events;

/// A subscription.
pub(in crate::core) struct SubscriptionState {
    pub(in crate::core) client: u32,
    pub(in crate::core) request: u64,
    pub(in crate::core) selectors: SelectorSet,
    pub(in crate::core) events: u32,
}

/// The place of an object in a store, or the reason why it is not archived.
#[derive(Clone, Copy, Default)]
pub(in crate::core) struct ArchiveState<'a> {
    pub(in crate::core) location: Option<&'a str>,
    pub(in crate::core) reason: &'a str,
}

/// Kinds of events that concern objects after their offer.
pub(in crate::core) const LATER: u32 =
    events::WITHDRAWN | events::EXPIRED | events::SUPERSEDED | events::SPILLED | events::ARCHIVED | events::UNARCHIVED;
