//! Withdraws that wait until no requirement is owed their objects.

use std::collections::{BTreeMap, BTreeSet};

use slab::Slab;

use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::interest_id::InterestId;
use crate::core::objects::table::ObjectTable;

/// A withdraw that waits for requirements.
pub(in crate::core) struct PendingWithdrawal {
    pub(in crate::core) client: u32,
    pub(in crate::core) request: u64,
    pub(in crate::core) done: u64,
    /// Each object that is still visible, with the requirements that were owed it at the time of the request.
    pub(in crate::core) waits: BTreeMap<u32, Vec<InterestId>>,
    /// Objects that have yet to be visited, where there are very many, and the newest version at the time of the
    /// request.
    pub(in crate::core) left: Vec<u32>,
    pub(in crate::core) newest: u64,
    pub(in crate::core) force: bool,
    pub(in crate::core) timeout_ms: Option<u64>,
    pub(in crate::core) began: Nanoseconds,
}

impl PendingWithdrawal {
    /// Returns the objects that have yet to be visited, and the newest version at the time of the request, if it is
    /// this one.
    pub(in crate::core) fn left(&self, client: u32, request: u64) -> Option<(&[u32], u64)> {
        ((self.client, self.request) == (client, request)).then_some((&self.left, self.newest))
    }
}

/// Removes an object that a withdraw waits for.
pub(in crate::core) fn forget_wait(withdrawing: &mut BTreeMap<u32, BTreeSet<u32>>, object: u32, id: u32) {
    if let Some(ids) = withdrawing.get_mut(&object) {
        ids.remove(&id);
        if ids.is_empty() {
            withdrawing.remove(&object);
        }
    }
}

/// All waiting withdraws.
#[derive(Default)]
pub(in crate::core) struct WithdrawalQueue {
    pub(in crate::core) table: Slab<PendingWithdrawal>,
    /// By object: withdraws that wait for requirements that are owed the object.
    pub(in crate::core) by_object: BTreeMap<u32, BTreeSet<u32>>,
    /// Objects that a requirement ceased to be owed in this event, and that withdraws may wait for.
    pub(in crate::core) unblocked: Vec<u32>,
}

impl WithdrawalQueue {
    /// Forgets a withdraw: the objects that it waited for stay visible.
    pub(in crate::core) fn drop_withdrawal(&mut self, objects: &mut ObjectTable, id: u32) {
        let Some(withdrawal) = self.table.try_remove(id as usize) else {
            return;
        };
        for object in withdrawal.waits.into_keys() {
            forget_wait(&mut self.by_object, object, id);
            objects.unwatch(object);
        }
    }
}
