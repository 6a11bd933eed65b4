//! Flows of objects over several states, from the offer to the removal.

pub(in crate::core) mod expiry;
pub(in crate::core) mod forget;
pub(in crate::core) mod list;
pub(in crate::core) mod offer;
pub(in crate::core) mod removal;
pub(in crate::core) mod retention;
pub(in crate::core) mod survey;
pub(in crate::core) mod withdraw;
