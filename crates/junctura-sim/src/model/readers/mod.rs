//! Objects owed to follows, demands, requirements and groups.

pub(in crate::model) mod demand_probe;
pub(in crate::model) mod group;
pub(in crate::model) mod interest;
pub(in crate::model) mod named_requirement;
pub(in crate::model) mod stuck;
