//! Clients: connections, deliveries and releases, synchronization, and the numbers that describe a pool.

pub(in crate::core) mod client;
pub(in crate::core) mod flow;
pub(in crate::core) mod flows;
pub(in crate::core) mod listing;
pub(in crate::core) mod requests;
pub(in crate::core) mod stat;
pub(in crate::core) mod table;
