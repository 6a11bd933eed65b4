//! The counters and the contents of a pool, in numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::PoolLimits;
use crate::core::engine::lifetime::ComponentStat;
use crate::core::objects::retention_by_name::AwaitedStat;

/// A stat must fit into a message: of more clients than this, the first are shown.
pub(in crate::core) const CLIENTS_SHOWN: usize = 1000;
/// Bytes of the notes of clients in a stat.
pub(in crate::core) const NOTES_SHOWN: usize = 128 << 10;

#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::core) struct PoolCounters {
    pub(in crate::core) offered: u64,
    pub(in crate::core) offered_bytes: u64,
    pub(in crate::core) delivered: u64,
    pub(in crate::core) delivered_bytes: u64,
    pub(in crate::core) released: u64,
    pub(in crate::core) superseded: u64,
    pub(in crate::core) withdrawn: u64,
    pub(in crate::core) expired: u64,
    pub(in crate::core) dropped_archived: u64,
    pub(in crate::core) events: u64,
    pub(in crate::core) gaps: u64,
    pub(in crate::core) broken: u64,
    pub(in crate::core) declined: u64,
    pub(in crate::core) archived: u64,
    pub(in crate::core) unarchived: u64,
    pub(in crate::core) failed: u64,
    /// The failed requests by the number of their code.
    pub(in crate::core) errors: BTreeMap<u16, u64>,
    pub(in crate::core) offers_waiting: u64,
    pub(in crate::core) leases_waited: u64,
    pub(in crate::core) segments_made: u64,
    pub(in crate::core) visible: u64,
    pub(in crate::core) visible_bytes: u64,
}

/// A pool's numbers; its JSON is what `stat` prints.
#[derive(Clone, Debug, Serialize)]
pub struct PoolStat {
    /// The server's incarnation.
    pub incarnation: u64,
    /// The newest sequence number.
    pub sequence: u64,
    /// Visible objects.
    pub objects: ObjectsStat,
    /// Bundles.
    pub bundles: BundlesStat,
    /// Events since the server began.
    pub totals: StatTotals,
    /// Payload memory.
    pub memory: MemoryStat,
    /// The file tier, where there is one.
    pub spill: Option<SpillStat>,
    /// Standing interests and waiting requests.
    pub interests: InterestsStat,
    /// While the pool drains: the reasons why it has not ended.
    pub draining: Option<DrainStat>,
    /// Requirements with a name, in the order of their names; those that a message has room for.
    pub named_requirements: Vec<RequirementStat>,
    /// Programs whose end is the pool's.
    pub until_gone: Vec<ComponentStat>,
    /// Names that objects are retained for and that no requirement has yet.
    pub awaited: Vec<AwaitedStat>,
    /// Requirements that are broken now; those that a message has room for.
    pub broken_requirements: Vec<BrokenStat>,
    /// How many are connected.
    pub clients_connected: u64,
    /// Connected clients.
    pub clients: Vec<ClientStat>,
    /// The schemas of the pool.
    pub schemas: Vec<SchemaStat>,
    /// Bytes that attributes, keys and index entries may take; `memory.record_bytes` is what they take.
    pub record_budget_bytes: u64,
    /// The limits in force.
    pub limits: PoolLimits,
    /// Figures of the server's process, filled in by the server.
    pub server: Option<serde_json::Value>,
}

/// See [`PoolStat::objects`].
#[derive(Clone, Debug, Serialize)]
pub struct ObjectsStat {
    /// Visible objects.
    pub visible: u64,
    /// Bytes of their payloads.
    pub visible_bytes: u64,
    /// Versions that are not visible but kept for clients that hold them or have yet to receive them.
    pub kept: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Deliveries that are not released.
    pub held: u64,
}

/// See [`PoolStat::bundles`].
#[derive(Clone, Debug, Serialize)]
pub struct BundlesStat {
    /// Those that are not visible yet.
    pub open: u64,
    /// Those that are, or were, and whose paths are remembered.
    pub remembered: u64,
    /// Objects staged in them.
    pub staged: u64,
    /// Bytes of their payloads.
    pub staged_bytes: u64,
    /// Those that became visible since the server began.
    pub completed: u64,
    /// Those that were aborted since then.
    pub aborted: u64,
}

/// See [`PoolStat::totals`].
#[derive(Clone, Debug, Serialize)]
pub struct StatTotals {
    /// Objects that became visible.
    pub offered: u64,
    /// Bytes of their payloads.
    pub offered_bytes: u64,
    /// Deliveries.
    pub delivered: u64,
    /// Bytes of their payloads.
    pub delivered_bytes: u64,
    /// Releases.
    pub released: u64,
    /// Versions that a newer one replaced.
    pub superseded: u64,
    /// Objects that were withdrawn.
    pub withdrawn: u64,
    /// Objects whose retention ended.
    pub expired: u64,
    /// Objects that left before that, since a store has them and memory was short.
    pub dropped_archived: u64,
    /// Events sent.
    pub events: u64,
    /// Objects named in gaps.
    pub gaps: u64,
    /// Times that a requirement was broken.
    pub broken: u64,
    /// Objects that were not offered, since nothing wanted them.
    pub declined: u64,
    /// Times that a client reported an object as archived.
    pub archived: u64,
    /// Times that an object could not be put there.
    pub unarchived: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Offers that had to wait for memory.
    pub offers_waited: u64,
    /// Leases that had to wait for memory.
    pub leases_waited: u64,
    /// Segments made.
    pub segments_made: u64,
}

/// See [`PoolStat::memory`]. All in bytes, but for the counts.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryStat {
    /// The memory budget.
    pub budget_bytes: u64,
    /// The memory in use: leased segments and payloads inside messages.
    pub used_bytes: u64,
    /// The part in segments.
    pub segment_bytes: u64,
    /// The part in payloads inside messages.
    pub inline_bytes: u64,
    /// Bytes of occupied slots.
    pub occupied_bytes: u64,
    /// Occupied slots.
    pub slots_occupied: u64,
    /// Segments.
    pub segments: u64,
    /// Leases that wait for memory now.
    pub leases_waiting: u64,
    /// Attributes, keys and index entries of objects, and of tombstones.
    pub record_bytes: u64,
}

/// See [`PoolStat::spill`].
#[derive(Clone, Debug, Serialize)]
pub struct SpillStat {
    /// Where it is.
    pub directory: String,
    /// Bytes that it may take.
    pub limit_bytes: u64,
    /// Bytes that it has taken, those being written included.
    pub used_bytes: u64,
    /// Objects whose payloads are in the file now.
    pub objects: u64,
    /// Payloads that are being written.
    pub underway: u64,
    /// Payloads written since the server began.
    pub written: u64,
    /// Bytes of these payloads.
    pub written_bytes: u64,
    /// Payloads that the disk has refused.
    pub refused: u64,
    /// Why it did so last.
    pub refusal: Option<String>,
}

/// See [`PoolStat::interests`].
#[derive(Clone, Debug, Serialize)]
pub struct InterestsStat {
    /// Standing demands, follows, requirements and subscriptions.
    pub standing: u64,
    /// The part that is checked against every offer, since no index helps.
    pub unindexed: u64,
    /// Requirements.
    pub requirements: u64,
    /// The part with a name.
    pub named: u64,
    /// Bytes of recorded gaps that no reader has received yet.
    pub gap_bytes: u64,
    /// Bytes of standing selectors.
    pub selector_bytes: u64,
    /// Objects that requirements are owed, each counted for each requirement.
    pub owed: u64,
    /// Withdraws that wait.
    pub withdrawals: u64,
}

/// See [`PoolStat::draining`].
#[derive(Clone, Debug, Serialize)]
pub struct DrainStat {
    /// Versions that requirements are owed, counted for each requirement.
    pub owed: u64,
    /// Objects that follows without a requirement have yet to receive, counted for each follow that the end waits for.
    pub undelivered: u64,
}

/// See [`PoolStat::named_requirements`].
#[derive(Clone, Debug, Serialize)]
pub struct RequirementStat {
    /// Its name.
    pub name: String,
    /// Its selector; a long text is cut.
    pub selector: String,
    /// Which versions: `all` or `newest`.
    pub versions: &'static str,
    /// Objects that it is owed.
    pub owed: u64,
    /// Bytes of their payloads.
    pub owed_bytes: u64,
    /// Deliveries through it that are not released.
    pub in_flight: u64,
    /// The oldest object that it is owed: its sequence number.
    pub oldest_owed: Option<u64>,
    /// Seconds for which it has been owed that one.
    pub oldest_owed_age_s: Option<f64>,
    /// Objects that were removed while it had no reader; the next reader receives a gap.
    pub lost: u64,
    /// Requests of clients that use it.
    pub users: u32,
    /// The client that reads it, where one reads at a time.
    pub reader: Option<ReaderStat>,
    /// Of a group.
    pub group: Option<GroupStat>,
    /// Seconds since it was made.
    pub age_s: f64,
    /// Seconds since the last release of an object that it delivered.
    pub last_release_age_s: Option<f64>,
    /// It is broken, and owed nothing until it is read again.
    pub broken: bool,
    /// `wait`, or `break`.
    pub on_full: &'static str,
    /// Bytes that one which breaks may keep; without, any until memory is full.
    pub quota_bytes: Option<u64>,
    /// Seconds without a release after which it is stuck.
    pub stuck_after_s: f64,
    /// Its time to live while unused, in seconds.
    pub time_to_live_s: Option<f64>,
    /// Seconds until it expires, if it stays unused.
    pub lapses_in_s: Option<f64>,
}

/// See [`PoolStat::broken_requirements`].
#[derive(Clone, Debug, Serialize)]
pub struct BrokenStat {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its selector; a long text is cut.
    pub selector: String,
    /// The client that reads it, or else whose it is.
    pub client: Option<ReaderStat>,
    /// Why it is broken.
    pub why: String,
    /// Seconds since it is.
    pub age_s: f64,
    /// Lost objects that its readers have yet to receive as gaps.
    pub lost: u64,
}

/// See [`RequirementStat::reader`].
#[derive(Clone, Debug, Serialize)]
pub struct ReaderStat {
    /// The number that the server gave it.
    pub client: u32,
    /// The name that it states.
    pub name: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process.
    pub pid: u32,
}

/// See [`RequirementStat::group`].
#[derive(Clone, Debug, Serialize)]
pub struct GroupStat {
    /// Objects that no client has.
    pub waiting: u64,
    /// How many share them.
    pub member_count: u64,
    /// The members in the order in which they joined; of many, the first.
    pub members: Vec<MemberStat>,
}

/// See [`GroupStat::members`].
#[derive(Clone, Debug, Serialize)]
pub struct MemberStat {
    /// The number that the server gave its client.
    pub client: u32,
    /// The name that the client states.
    pub name: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// Objects that were delivered to it and are not released.
    pub in_flight: u32,
    /// So many at most.
    pub window: u32,
}

/// See [`PoolStat::clients`].
#[derive(Clone, Debug, Serialize)]
pub struct ClientStat {
    /// The number that the server gave it.
    pub client: u32,
    /// The name that it states.
    pub name: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// Objects it has offered.
    pub offered: u64,
    /// Objects it was given.
    pub delivered: u64,
    /// The part that is not released.
    pub held: u64,
    /// Its long-running requests.
    pub requests: u64,
    /// Its offers that wait for memory.
    pub offers_waiting: u64,
    /// Bytes of the segments leased to it.
    pub leased_bytes: u64,
    /// How its payloads travel.
    pub transport: String,
    /// The work that it has stated; left out where a message has no room for all notes.
    pub note: String,
}

/// See [`PoolStat::schemas`].
#[derive(Clone, Debug, Serialize)]
pub struct SchemaStat {
    /// Its name.
    pub name: String,
    /// Its generation.
    pub generation: u32,
    /// Its identity among schemas.
    pub fingerprint: String,
}

impl PoolStat {
    /// The numbers as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
