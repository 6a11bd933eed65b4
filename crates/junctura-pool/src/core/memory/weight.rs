//! The server's own memory besides payloads: each kind counts toward a limit.
//!
//! | kind | counts toward the limit of |
//! |---|---|
//! | attributes of objects and tombstones, with their entries in tables and indexes, and the places of archived objects | the budget of records, as large as that of payloads |
//! | standing selectors, lists, and the first objects of follows | their client, and all together |
//! | waiting offers, except payloads in shared memory | their client, and all together |
//! | objects that requirements are owed | all together |
//!
//! An offer that exceeds the first or the last waits, as one does for payload memory, so nothing is lost. A selector
//! beyond its limit fails with `LimitExceeded`, for its client alone. A place that has no room is not stored.

/// Bytes that an interest takes besides its selector.
pub(in crate::core) const INTEREST_BYTES: usize = 384;

/// While all clients together are at a limit, a client that uses fewer bytes than this is still served.
pub(in crate::core) const FAIR_BYTES: usize = 1 << 20;

/// The same for waiting offers: a client that sends 256 objects within messages before it reads the first reply has
/// less.
pub(in crate::core) const FAIR_OFFER_BYTES: usize = 2 << 20;
