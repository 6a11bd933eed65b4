//! Flows of memory over several states: leases, eviction and the file tier.

pub(in crate::core) mod eviction;
pub(in crate::core) mod fullness;
pub(in crate::core) mod lease;
pub(in crate::core) mod spill;
