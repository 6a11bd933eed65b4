//! Distributed arrays: layouts, offered pieces, and received parts.

mod chunks;
mod layout;
mod offering;
mod plan;
mod taking;

pub(crate) use layout::PyLayout;
pub(crate) use plan::PyPlan;
