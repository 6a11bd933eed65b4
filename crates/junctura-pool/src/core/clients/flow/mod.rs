//! Flows of clients over several states: connections, deliveries, synchronization, and the numbers of a pool.

pub(in crate::core) mod board;
pub(in crate::core) mod deliver;
pub(in crate::core) mod join_leave;
pub(in crate::core) mod report;
pub(in crate::core) mod sync;
