//! Clients with all that they have asked for: the tables of clients and of interests, the times at which requests end, and what was counted.
//!
//! It sends replies and events, and knows objects by the table that it is given: what follows from the end of a request for an object is
//! its caller's to carry out.

use std::sync::Arc;

use crate::PoolConfig;
use crate::core::clients::flows::FlowSums;
use crate::core::clients::stat::PoolCounters;
use crate::core::clients::table::ClientTable;
use crate::core::engine::timers::TimerQueue;
use crate::core::interests::table::InterestTable;

/// See the module's page.
pub(in crate::core) struct ClientRequests {
    pub(in crate::core) config: Arc<PoolConfig>,
    pub(in crate::core) clients: ClientTable,
    pub(in crate::core) interests: InterestTable,
    pub(in crate::core) timers: TimerQueue,
    pub(in crate::core) count: PoolCounters,
    pub(in crate::core) flows: FlowSums,
}

impl ClientRequests {
    pub(in crate::core) fn new(config: &Arc<PoolConfig>) -> Self {
        Self {
            config: Arc::clone(config),
            clients: ClientTable::new(config),
            interests: InterestTable::new(config),
            timers: TimerQueue::default(),
            count: PoolCounters::default(),
            flows: FlowSums::default(),
        }
    }

    /// Forgets a request that needs no answer any more.
    pub(in crate::core) fn settle(&mut self, client: u32, request: u64) {
        if let Some(state) = self.clients.get_mut(client) {
            state.pending.remove(&request);
            self.timers.cancel(client, request);
        }
    }
}
