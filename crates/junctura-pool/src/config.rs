//! The settings of a pool, with their defaults.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use junctura_model::Schema;
use serde::Serialize;

/// How a pool behaves.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The schemas that the pool knows; the first is the default of an offer.
    pub schemas: Vec<Arc<Schema>>,
    /// The server's incarnation: the first half of every version.
    pub incarnation: u64,
    /// The server's process id, which its clients receive; the server sets it.
    pub pid: u32,
    /// The machine it runs on; the server sets it.
    pub host: String,
    /// Memory for payloads of all clients, in bytes.
    pub budget_bytes: u64,
    /// The file tier for payloads that do not fit into memory; without it, producers block.
    pub spill: Option<SpillConfig>,
    /// Payloads of at most this many bytes travel inside the message.
    pub inline_bytes_max: u64,
    /// Whether payloads carry checksums (mode `checked`).
    pub checked: bool,
    /// The maximum number of tombstones of a dataset. When a dataset reaches it, its oldest few are forgotten at once.
    pub tombstones_per_dataset: usize,
    /// The maximum number of tombstones in the pool; the oldest few are forgotten at once.
    pub tombstones: usize,
    /// The lifetime of a tombstone.
    pub tombstone_age: Duration,
    /// How long a requirement may release nothing, while others wait for memory that it keeps, before it is broken. A
    /// requirement can set its own value.
    pub stuck_after: Duration,
    /// How long a client may keep empty leased memory while others wait for memory, after the server has recalled it
    /// and has received a later request of the client; then the client is disconnected. A client that sends no request
    /// has ten times as long, unless it has never put anything into most of the memory. `None`: as long as
    /// `stuck_after`.
    pub hoarding_after: Option<Duration>,
    /// How long a waiting lease keeps later leases from memory that becomes free, once smaller ones have taken as much
    /// as it needs. After that it waits behind them.
    pub lease_first_for: Duration,
    /// Bytes that attributes, keys and index entries of objects may take; `None`: as many as payloads, and 64 MiB at least.
    pub record_budget_bytes: Option<u64>,
    /// How long an incomplete bundle stays while no client has it open, unless its opener has set another time.
    pub orphan_timeout: Duration,
    /// How many objects one event removes before other events are served. The rest is hidden already and is removed
    /// later.
    pub leaving_at_once: usize,
    /// How many objects an event delivers to follows before others get their turn.
    pub delivered_at_once: usize,
    /// How many interests an object, or an event, reaches at once; the others are reached in turns of their clients.
    pub told_at_once: usize,
    /// How many waiting leases and offers one event serves before other events are served.
    pub served_at_once: usize,
    /// How many timers, and other things that are due at a time, one event handles before other events are served.
    pub due_at_once: usize,
    /// A request that concerns more objects than this is done in parts, between which other requests are served.
    pub changed_at_once: usize,
    /// In a pool with more visible objects than this, a request that looks at them is prepared first, a little at a time.
    pub looked_at_once: usize,
    /// Names of clients: when all have connected and disconnected, the pool drains. Empty: it does not.
    pub until_gone: Vec<String>,
    /// The limits of one client and of all clients together.
    pub limits: PoolLimits,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            schemas: Schema::BUILTIN_NAMES
                .iter()
                .filter_map(|name| Schema::builtin(name))
                .collect(),
            incarnation: 1,
            pid: 0,
            host: String::new(),
            budget_bytes: 4 << 30,
            spill: None,
            inline_bytes_max: 4096,
            checked: false,
            tombstones_per_dataset: 10_000,
            tombstones: 16_384,
            tombstone_age: Duration::from_mins(10),
            stuck_after: Duration::from_mins(1),
            hoarding_after: None,
            lease_first_for: Duration::from_secs(10),
            record_budget_bytes: None,
            orphan_timeout: Duration::from_mins(1),
            leaving_at_once: 256,
            delivered_at_once: 256,
            told_at_once: 256,
            served_at_once: 256,
            due_at_once: 256,
            changed_at_once: 1024,
            looked_at_once: 1000,
            until_gone: Vec::new(),
            limits: PoolLimits::default(),
        }
    }
}

/// The file tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillConfig {
    /// The directory of the file. The file has no name there, and nothing remains when the pool ends or
    /// crashes.
    pub directory: PathBuf,
    /// How much it takes there at most.
    pub limit_bytes: u64,
}

impl SpillConfig {
    /// Default size of the file tier, in memory budgets.
    const BUDGETS: u64 = 4;

    /// A file tier in a directory; without a limit, of four times the pool's memory.
    #[must_use]
    pub fn new(directory: PathBuf, limit_bytes: Option<u64>, budget_bytes: u64) -> Self {
        let usual = budget_bytes.saturating_mul(Self::BUDGETS);
        Self {
            directory,
            limit_bytes: limit_bytes.unwrap_or(usual),
        }
    }
}

/// Upper bounds on requests of clients. A client that exceeds one gets `LimitExceeded`; other clients are unaffected.
#[derive(Clone, Debug, Serialize)]
pub struct PoolLimits {
    /// Clients at once.
    pub clients: usize,
    /// Visible and remembered objects at once.
    pub objects: usize,
    /// Segments leased by one client.
    pub segments_per_client: usize,
    /// Objects that one client holds unreleased.
    pub held_per_client: usize,
    /// Requests of one client that are not answered yet, follows, lists and subscriptions included.
    pub requests_per_client: usize,
    /// Offers of one client that wait for memory.
    pub waiting_offers_per_client: usize,
    /// Bytes of these offers besides payloads in shared memory.
    pub waiting_offer_bytes_per_client: usize,
    /// The same, of all clients together; beyond, a client may have 2 MiB.
    pub waiting_offer_bytes: usize,
    /// Objects that one follow has yet to be given.
    pub queued_per_follow: usize,
    /// Bytes of events that one client has not read.
    pub event_backlog_bytes: usize,
    /// Unread bytes of all clients together above which a client with more than 1 MiB of unread bytes gets no more
    /// events.
    pub unread_bytes: usize,
    /// Bytes of the standing selectors of one client, and of all requirements with a name: those of demands that wait, follows,
    /// requirements and subscriptions.
    pub selector_bytes_per_client: usize,
    /// The same, of all clients together; above it, a client may have 1 MiB of selectors.
    pub selector_bytes: usize,
    /// Objects that requirements are owed, each counted for each requirement; offers beyond wait.
    pub owed: usize,
    /// Standing selectors that no index helps with.
    pub unindexed_interests: usize,
    /// Requirements of one client without a name.
    pub requirements_per_client: usize,
    /// Requirements of all clients together; beyond, a client may have 16 without a name.
    pub requirements: usize,
    /// Requirements with a name.
    pub named_requirements: usize,
    /// Bytes of each requirement for the names of lost objects that no reader has received yet; beyond, they are only
    /// counted.
    pub gap_bytes_per_requirement: usize,
    /// The same, of all requirements together.
    pub gap_bytes: usize,
    /// Bundles that are not visible yet.
    pub bundles_open: usize,
    /// Objects that become visible together, and what a bundle may declare.
    pub members_per_bundle: u64,
    /// Bundles that are visible, or were, and are remembered by their paths; beyond, the oldest are forgotten.
    pub bundles_remembered: usize,
    /// Bytes of a bundle's path.
    pub bundle_path_bytes: usize,
    /// How deep bundles are nested.
    pub bundle_depth: usize,
    /// Bytes of a bundle's attributes.
    pub bundle_attribute_bytes: usize,
    /// Sets of names that one client's offers may be retained for.
    pub consumers_per_client: usize,
    /// The same, of all clients, including sets that objects of disconnected clients still use.
    pub consumers: usize,
    /// Malformed requests of one client before it is disconnected.
    pub errors_per_client: u32,
    /// The largest payload, in bytes.
    pub payload_bytes: u64,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            clients: 4096,
            objects: 16_000_000,
            segments_per_client: 4096,
            held_per_client: 1 << 20,
            requests_per_client: 1 << 20,
            waiting_offers_per_client: 4096,
            waiting_offer_bytes_per_client: 16 << 20,
            waiting_offer_bytes: 1 << 30,
            queued_per_follow: 4_000_000,
            event_backlog_bytes: 64 << 20,
            unread_bytes: 256 << 20,
            selector_bytes_per_client: 224 << 20,
            selector_bytes: 1 << 30,
            owed: 6_000_000,
            unindexed_interests: 1000,
            requirements_per_client: 16_384,
            requirements: 65_536,
            named_requirements: 1024,
            gap_bytes_per_requirement: 4 << 20,
            gap_bytes: 256 << 20,
            bundles_open: 4096,
            members_per_bundle: 100_000,
            bundles_remembered: 16_384,
            bundle_path_bytes: 512,
            bundle_depth: 16,
            bundle_attribute_bytes: 4096,
            consumers_per_client: 256,
            consumers: 4096,
            errors_per_client: 1000,
            payload_bytes: 1 << 40,
        }
    }
}
