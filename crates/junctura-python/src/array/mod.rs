//! Arrays that lie over ranks: layouts, pieces that are offered, and parts that are taken.

mod chunks;
mod layout;
mod offering;
mod plan;
mod taking;

pub(crate) use layout::PyLayout;
pub(crate) use plan::PyPlan;
