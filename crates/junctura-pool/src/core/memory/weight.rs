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

/// Bytes that an interest takes besides its selector.
pub(in crate::core) const INTEREST_BYTES: usize = 384;

/// While all clients together are at a limit, a client that takes less than so many bytes is still served.
pub(in crate::core) const FAIR_BYTES: usize = 1 << 20;

/// The same of offers that wait: a client that sends 256 objects within messages before it hears of the first has less.
pub(in crate::core) const FAIR_OFFER_BYTES: usize = 2 << 20;
