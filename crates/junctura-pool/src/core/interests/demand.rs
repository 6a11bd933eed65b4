//! Demands: one object, now or when it becomes visible.

use junctura_model::selector::SelectorSet;

use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::interest_id::InterestId;

/// A waiting demand.
pub(in crate::core) struct WaitingDemand {
    pub(in crate::core) client: u32,
    pub(in crate::core) request: u64,
    pub(in crate::core) requirement: Option<InterestId>,
    pub(in crate::core) selectors: SelectorSet,
    /// Staged objects match, too.
    pub(in crate::core) incomplete: bool,
    /// When it began to wait.
    pub(in crate::core) since: Nanoseconds,
}
