//! Arrays that lie over ranks: layouts, pieces that are offered, and parts that are taken.

mod chunks;
mod layout;
mod offering;
mod taking;

pub(crate) use layout::Layout;
