//! Interests: demands, follows, requirements, groups and subscriptions, and their gaps.

pub(in crate::core) mod claims;
pub(in crate::core) mod demand;
pub(in crate::core) mod flow;
pub(in crate::core) mod follow;
pub(in crate::core) mod gaps;
pub(in crate::core) mod group;
pub(in crate::core) mod interest;
pub(in crate::core) mod interest_id;
pub(in crate::core) mod named_requirement;
pub(in crate::core) mod readers;
pub(in crate::core) mod requirement;
pub(in crate::core) mod stuck;
pub(in crate::core) mod subscribe;
pub(in crate::core) mod table;
pub(in crate::core) mod untold;
