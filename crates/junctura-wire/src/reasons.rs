//! Reasons: why requests wait, why objects are in memory or were removed, and what keeps memory.
//!
//! The bodies of `Waits`, `Explain` and `Keepers` and of their answers. Every answer is bounded; the next part is asked for with the place
//! that the last one returned, so the server keeps nothing for its readers. The same types are JSON for programs: the names of fields and
//! the codes below are stable, and `docs/guide/why.md` lists them.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::body::TargetBody;

/// Kinds of requests that wait: [`WaitingRequest::kind`].
pub const WAIT_KINDS: [&str; 8] = [
    "demand", "lease", "offer", "withdraw", "drain", "sync", "durable", "bundle",
];

/// Causes of waits: [`WaitingRequest::because`].
pub const WAIT_CAUSES: [&str; 16] = [
    "nothing_matches",
    "staged",
    "offer_waits",
    "memory",
    "behind",
    "records",
    "owed_limit",
    "working",
    "owed",
    "offers",
    "unarchived",
    "members",
    "unsealed",
    "nested",
    "enclosing",
    "followers",
];

/// What keeps an object in memory: [`ExplainedObject::because`].
pub const KEPT_CAUSES: [&str; 5] = ["retention", "owed", "held", "staged", "leaving"];

/// Rules of retention: [`RetentionReason::rule`], and with [`KEPT_CAUSES`] [`KeptSum::because`].
pub const RETENTION_RULES: [&str; 6] = ["until_withdrawn", "released", "for", "released_by", "together", "over"];

/// States of objects: [`ExplainedObject::state`].
pub const OBJECT_STATES: [&str; 6] = ["visible", "superseded", "leaving", "staged", "gone", "declined"];

/// The largest number of requests in one answer to `Waits`.
pub const WAITS_MAX: u32 = 500;

/// Asks what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct WaitsRequest {
    /// The place that the last answer returned; `None`: from the first.
    #[n(0)]
    pub after: Option<WaitPlace>,
    /// How many requests to return, at most [`WAITS_MAX`].
    #[n(1)]
    pub limit: u32,
}

/// A place in the order of requests: by client, then by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct WaitPlace {
    /// The client.
    #[n(0)]
    pub client: u32,
    /// The number of its request.
    #[n(1)]
    pub request: u64,
}

/// A part of the requests that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct WaitsPage {
    /// The requests.
    #[n(0)]
    pub requests: Vec<WaitingRequest>,
    /// Where the next part begins; `None`: this is the last one.
    #[n(1)]
    pub next: Option<WaitPlace>,
}

/// A request that waits, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct WaitingRequest {
    /// Its client.
    #[n(0)]
    pub client: ClientReference,
    /// Its number.
    #[n(1)]
    pub request: u64,
    /// One of [`WAIT_KINDS`].
    #[n(2)]
    pub kind: String,
    /// Its selector, key, path or size; a long text is cut.
    #[n(3)]
    pub what: String,
    /// How long it has waited; `None`: not known.
    #[n(4)]
    pub waits_ms: Option<u64>,
    /// When it fails at the latest; `None`: it has no time limit.
    #[n(5)]
    pub ends_in_ms: Option<u64>,
    /// One of [`WAIT_CAUSES`].
    #[n(6)]
    pub because: String,
    /// What it waits for; of many, the first.
    #[n(7)]
    pub on: Vec<ReasonReference>,
    /// How many more of these there are.
    #[n(8)]
    pub on_more: u64,
    /// Offers of the same client that wait behind this one.
    #[n(9)]
    pub behind_it: u64,
}

/// One thing that a request waits for: one of its fields is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct ReasonReference {
    /// A client.
    #[n(0)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientReference>,
    /// A requirement.
    #[n(1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirement: Option<RequirementReference>,
    /// A bundle.
    #[n(2)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleReference>,
}

/// A client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct ClientReference {
    /// The number that the server gave it.
    #[n(0)]
    pub client: u32,
    /// Its name for itself; empty if it is not connected any more.
    #[n(1)]
    pub name: String,
    /// Its machine.
    #[n(2)]
    pub host: String,
    /// Its process.
    #[n(3)]
    pub pid: u32,
}

/// A requirement or a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct RequirementReference {
    /// Its number in the server.
    #[n(0)]
    pub number: u32,
    /// Its name; empty if it has none.
    #[n(1)]
    pub name: String,
    /// Its selector; a long text is cut.
    #[n(2)]
    pub selector: String,
    /// Objects that it is owed.
    #[n(3)]
    pub owed: u64,
    /// Bytes of their payloads.
    #[n(4)]
    pub owed_bytes: u64,
    /// Their deliveries that are not released.
    #[n(5)]
    pub in_flight: u64,
    /// Clients that read it; of many, the first. Without a reader, the client whose requirement it is.
    #[n(6)]
    pub readers: Vec<ClientReference>,
    /// It is a group.
    #[n(7)]
    pub is_group: bool,
    /// It is broken.
    #[n(8)]
    pub is_broken: bool,
    /// How long its readers have released nothing, while it is owed something.
    #[n(9)]
    pub idle_ms: Option<u64>,
    /// When it is broken, if its readers release nothing and others still wait for memory.
    #[n(10)]
    pub breaks_in_ms: Option<u64>,
    /// A client reads it.
    #[n(11)]
    pub is_read: bool,
}

/// A bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct BundleReference {
    /// Its number.
    #[n(0)]
    pub number: u64,
    /// Its path; empty if it has none.
    #[n(1)]
    pub path: String,
    /// `open`, `complete` or `visible`.
    #[n(2)]
    pub state: String,
    /// Members that are there: objects, and nested bundles that are complete.
    #[n(3)]
    pub members: u64,
    /// How many make it complete; `None`: until it is sealed.
    #[n(4)]
    pub declared: Option<u64>,
    /// Bytes of the payloads that are staged in it.
    #[n(5)]
    pub bytes: u64,
    /// Clients that have it open; of many, the first.
    #[n(6)]
    pub openers: Vec<ClientReference>,
    /// When it is aborted, if no client opens it.
    #[n(7)]
    pub ends_in_ms: Option<u64>,
}

/// Asks why an object is in memory, or was removed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ExplainRequest<'a> {
    /// Its key.
    #[n(0)]
    pub target: TargetBody<'a>,
    /// Its sequence number; `None`: the newest version.
    #[n(1)]
    pub sequence: Option<u64>,
}

/// Why an object is in memory, or was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct ExplainedObject {
    /// Its schema.
    #[n(0)]
    pub schema: String,
    /// Its key.
    #[n(1)]
    pub key: String,
    /// Its version; empty for a member of a bundle that is not visible.
    #[n(2)]
    pub version: String,
    /// One of [`OBJECT_STATES`].
    #[n(3)]
    pub state: String,
    /// What keeps it in memory, as in [`KEPT_CAUSES`].
    #[n(4)]
    pub because: Vec<String>,
    /// Bytes of its payload.
    #[n(5)]
    pub bytes: u64,
    /// Where its payload is: `slot`, `message`, `file` or `freed`.
    #[n(6)]
    pub place: String,
    /// The segment of its slot.
    #[n(7)]
    pub segment: Option<u32>,
    /// Its slot.
    #[n(8)]
    pub slot: Option<u32>,
    /// The client that offered it.
    #[n(9)]
    pub producer: Option<ClientReference>,
    /// How long its retention keeps it.
    #[n(10)]
    pub retention: Option<RetentionReason>,
    /// Clients that hold it, of many the first.
    #[n(11)]
    pub holders: Vec<ObjectHolder>,
    /// The number of its deliveries that are not released.
    #[n(12)]
    pub holder_count: u64,
    /// Requirements that are owed it, of many the first.
    #[n(13)]
    pub owed: Vec<OwedReason>,
    /// How many requirements are owed it.
    #[n(14)]
    pub owed_count: u64,
    /// Its bundle.
    #[n(15)]
    pub bundle: Option<BundleReference>,
    /// A store has it: its place there, empty if that is not known.
    #[n(16)]
    pub archived: Option<String>,
    /// Its payload is being written to the file tier.
    #[n(17)]
    pub is_spilling: bool,
    /// Earlier versions that requirements keep.
    #[n(18)]
    pub kept_versions: u64,
    /// Why it was removed: `withdrawn`, `expired` or `archived`.
    #[n(19)]
    pub reason: Option<String>,
    /// The time since it was removed.
    #[n(20)]
    pub gone_ms: Option<u64>,
    /// The component of the client that withdrew it: its name, in which each number is `*`.
    #[n(21)]
    pub withdrawn_by: Option<String>,
}

/// What the retention of an object waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct RetentionReason {
    /// One of [`RETENTION_RULES`].
    #[n(0)]
    pub rule: String,
    /// Releases that are missing.
    #[n(1)]
    pub releases: Option<u32>,
    /// When it ends.
    #[n(2)]
    pub ends_in_ms: Option<u64>,
    /// Names without a requirement.
    #[n(3)]
    pub names: Vec<String>,
}

/// A client that holds an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct ObjectHolder {
    /// The client.
    #[n(0)]
    pub client: ClientReference,
    /// The number of the requirement that it was delivered through.
    #[n(1)]
    pub requirement: Option<u32>,
    /// It has released the object, and still reads the payload.
    #[n(2)]
    pub is_released: bool,
    /// The time since the delivery; `None`: from a server of an earlier version.
    #[n(3)]
    pub held_ms: Option<u64>,
}

/// A requirement that is owed an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct OwedReason {
    /// The requirement.
    #[n(0)]
    pub requirement: RequirementReference,
    /// Deliveries of the object through it that are not released.
    #[n(1)]
    pub in_flight: u64,
    /// How long it has been owed.
    #[n(2)]
    pub owed_ms: u64,
}

/// Asks what keeps memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct KeepersRequest {
    /// The place that the last answer returned; `None`: from the first.
    #[n(0)]
    pub after: Option<KeepersPlace>,
}

/// A place in the walk over objects, and then over what clients hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct KeepersPlace {
    /// The client; 0 while objects are counted.
    #[n(0)]
    pub client: u32,
    /// The row of the object, or of what the client holds.
    #[n(1)]
    pub row: u64,
}

/// A part of what keeps memory. Sums of all parts together are the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct MemoryKeepers {
    /// Where the next part begins; `None`: this is the last one.
    #[n(0)]
    #[serde(skip)]
    pub next: Option<KeepersPlace>,
    /// The memory in use; in the first part.
    #[n(1)]
    pub memory: Option<MemoryUse>,
    /// Payloads by what keeps them.
    #[n(2)]
    pub sums: Vec<KeptSum>,
    /// Requirements that are owed most; in the first part.
    #[n(3)]
    pub requirements: Vec<RequirementReference>,
    /// Clients that lease or hold memory.
    #[n(4)]
    pub clients: Vec<KeptByClient>,
    /// Bundles that are not visible and have most bytes; in the first part.
    #[n(5)]
    pub bundles: Vec<BundleReference>,
    /// Names that objects are retained for, and that have no requirement yet; in the first part.
    #[n(6)]
    pub names: Vec<KeptForName>,
}

/// The memory of a pool, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct MemoryUse {
    /// What the pool may take.
    #[n(0)]
    pub budget_bytes: u64,
    /// What it has taken.
    #[n(1)]
    pub used_bytes: u64,
    /// Of these, segments.
    #[n(2)]
    pub segment_bytes: u64,
    /// Of these, payloads inside messages.
    #[n(3)]
    pub inline_bytes: u64,
    /// Slots that hold payloads.
    #[n(4)]
    pub occupied_bytes: u64,
    /// Payloads in the file tier.
    #[n(5)]
    pub spilled_bytes: u64,
}

/// Payloads that one cause keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct KeptSum {
    /// One of [`RETENTION_RULES`]; if retention does not keep them, one of [`KEPT_CAUSES`].
    #[n(0)]
    pub because: String,
    /// Objects.
    #[n(1)]
    pub objects: u64,
    /// Bytes of their payloads.
    #[n(2)]
    pub bytes: u64,
    /// Of these, bytes that nothing else keeps.
    #[n(3)]
    pub alone_bytes: u64,
}

/// The memory of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct KeptByClient {
    /// The client.
    #[n(0)]
    pub client: ClientReference,
    /// Bytes of the segments that it leases.
    #[n(1)]
    pub leased_bytes: u64,
    /// Of these, bytes of slots without a payload.
    #[n(2)]
    pub unused_bytes: u64,
    /// Deliveries that it has not released.
    #[n(3)]
    pub held: u64,
    /// Bytes of their payloads in memory.
    #[n(4)]
    pub held_bytes: u64,
}

/// Objects that are retained for a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize)]
#[cbor(map)]
pub struct KeptForName {
    /// The name.
    #[n(0)]
    pub name: String,
    /// Objects.
    #[n(1)]
    pub objects: u64,
    /// Bytes of their payloads.
    #[n(2)]
    pub bytes: u64,
}
