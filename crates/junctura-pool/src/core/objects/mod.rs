//! Objects: the contents of the pool, their keys, their orders, and their retention.

pub(in crate::core) mod expiry;
pub(in crate::core) mod flow;
pub(in crate::core) mod identity;
pub(in crate::core) mod index;
pub(in crate::core) mod key_table;
pub(in crate::core) mod look_ahead;
pub(in crate::core) mod object;
pub(in crate::core) mod offer;
pub(in crate::core) mod order;
pub(in crate::core) mod record_budget;
pub(in crate::core) mod removed_keys;
pub(in crate::core) mod retention_by_name;
pub(in crate::core) mod table;
pub(in crate::core) mod tombstone;
pub(in crate::core) mod withdrawals;
