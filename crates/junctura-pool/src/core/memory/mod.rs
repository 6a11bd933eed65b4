//! Memory: leases of payload memory, the file tier, eviction, and the weight of what the server keeps.

pub(in crate::core) mod eviction;
pub(in crate::core) mod flow;
pub(in crate::core) mod hoarding;
pub(in crate::core) mod lease_queue;
pub(in crate::core) mod payload;
pub(in crate::core) mod shortage;
pub(in crate::core) mod spare;
pub(in crate::core) mod spill;
pub(in crate::core) mod spilling;
pub(in crate::core) mod weight;
