//! Clients with all their requests: the tables of clients and of interests, the times at which requests end, and
//! counters.
//!
//! It sends replies and events, and finds objects in the table that it is given: the caller carries out what the end of
//! a request means for an object.

use std::sync::Arc;

use crate::PoolConfig;
use crate::core::clients::flows::FlowSums;
use crate::core::clients::stat::PoolCounters;
use crate::core::clients::table::ClientTable;
use crate::core::engine::timers::TimerQueue;
use crate::core::interests::table::InterestTable;
use crate::core::interests::untold::UntoldQueues;

/// The requests of clients; see the module.
pub(in crate::core) struct ClientRequests {
    pub(in crate::core) config: Arc<PoolConfig>,
    pub(in crate::core) clients: ClientTable,
    pub(in crate::core) interests: InterestTable,
    pub(in crate::core) untold: UntoldQueues,
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
            untold: UntoldQueues::default(),
            timers: TimerQueue::default(),
            count: PoolCounters::default(),
            flows: FlowSums::default(),
        }
    }

    /// Forgets a request that needs no further answer.
    pub(in crate::core) fn settle(&mut self, client: u32, request: u64) {
        if let Some(state) = self.clients.get_mut(client) {
            state.pending.remove(&request);
            self.timers.cancel(client, request);
        }
    }
}
