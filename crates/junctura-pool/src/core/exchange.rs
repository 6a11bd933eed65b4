//! The exchange of objects between clients: their offer, their delivery to matching interests, and their removal.
//!
//! It owns every state that the life of an object depends on, and is independent of connections and of the end of the
//! pool: [`Core`](crate::core::Core) passes requests and time to it; it never calls the core.

use std::sync::Arc;

use junctura_model::Result;

use crate::PoolConfig;
use crate::core::bundles::BundleTable;
use crate::core::clients::requests::ClientRequests;
use crate::core::deferred::DeferredWork;
use crate::core::durability::DurableOffers;
use crate::core::memory::payload::PayloadMemory;
use crate::core::objects::retention_by_name::RetentionByName;
use crate::core::objects::table::ObjectTable;
use crate::core::objects::withdrawals::WithdrawalQueue;

/// The state of the exchange; see the module.
pub(in crate::core) struct ObjectExchange {
    pub(in crate::core) config: Arc<PoolConfig>,
    pub(in crate::core) asked: ClientRequests,
    pub(in crate::core) objects: ObjectTable,
    pub(in crate::core) memory: PayloadMemory,
    pub(in crate::core) bundles: BundleTable,
    pub(in crate::core) retention: RetentionByName,
    pub(in crate::core) withdrawals: WithdrawalQueue,
    pub(in crate::core) durability: DurableOffers,
    pub(in crate::core) deferred: DeferredWork,
}

impl ObjectExchange {
    pub(in crate::core) fn new(config: &Arc<PoolConfig>) -> Result<Self> {
        Ok(Self {
            config: Arc::clone(config),
            asked: ClientRequests::new(config),
            objects: ObjectTable::new(config),
            memory: PayloadMemory::new(config),
            bundles: BundleTable::new(config),
            retention: RetentionByName::of_schemas(&config.schemas)?,
            withdrawals: WithdrawalQueue::default(),
            durability: DurableOffers::default(),
            deferred: DeferredWork::default(),
        })
    }
}
