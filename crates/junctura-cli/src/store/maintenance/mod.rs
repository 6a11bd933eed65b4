//! Commands that keep a store in order: checkpoints, compaction, verification, removal, other tiers.

pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod remove;
pub(crate) mod tier;
