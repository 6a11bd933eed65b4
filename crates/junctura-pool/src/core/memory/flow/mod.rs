//! What is done when memory is short, and for those who wait for it.

pub(in crate::core) mod eviction;
pub(in crate::core) mod fullness;
pub(in crate::core) mod lease;
pub(in crate::core) mod spill;
