//! Flows of interests over several states.

pub(in crate::core) mod demand;
pub(in crate::core) mod demand_probe;
pub(in crate::core) mod follow;
pub(in crate::core) mod gaps;
pub(in crate::core) mod group;
pub(in crate::core) mod interest;
pub(in crate::core) mod named_requirement;
pub(in crate::core) mod requirement;
pub(in crate::core) mod resume;
pub(in crate::core) mod stuck;
pub(in crate::core) mod subscribe;
pub(in crate::core) mod tell;
