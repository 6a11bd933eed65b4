//! Bodies in CBOR (RFC 8949): maps of numbered fields, so that a newer peer may add fields and an older one skips them.

use std::borrow::Cow;

use minicbor::{Decode, Encode};

use crate::look::ListPosition;

/// A client's identity and expectations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Hello<'a> {
    /// [`crate::VERSION`] of the client.
    #[n(0)]
    pub version: u16,
    /// The client's name for itself; shown to others.
    #[n(1)]
    pub name: Cow<'a, str>,
    /// The machine it runs on.
    #[n(2)]
    pub host: Cow<'a, str>,
    /// Its process.
    #[n(3)]
    pub pid: u32,
    /// The schemas that it was written for, as YAML; the server compares them with its own.
    #[n(4)]
    pub schemas: Vec<String>,
    /// How long an offer of this client may wait for memory before it fails with `PoolFull`; `None`: for ever.
    #[n(5)]
    pub offer_timeout_ms: Option<u64>,
    /// Bytes that each ring should have, if the connection is to continue through rings; `None`: it stays on the socket.
    #[n(6)]
    pub ring_bytes: Option<u32>,
    /// It only looks at the pool or asks for the end: it is let in even while the server drains, and served after others.
    #[cbor(n(7), default)]
    pub visits: bool,
    /// The route of the connection, and the reason; shown to others.
    #[n(8)]
    pub route: Option<Cow<'a, str>>,
    /// Its rights, as [`crate::rights::AccessRights::bits`]; `None`: all. Set by the gate that checked its token.
    #[n(9)]
    pub rights: Option<u8>,
    /// The id of its token; `None`: it has none. Set by the gate that checked it.
    #[n(10)]
    pub token: Option<u32>,
}

/// The server's properties that a client needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Welcome<'a> {
    /// [`crate::VERSION`] of the server.
    #[n(0)]
    pub version: u16,
    /// The server's incarnation: the first half of every version that it gives.
    #[n(1)]
    pub incarnation: u64,
    /// The number that the server gave this client.
    #[n(2)]
    pub client: u32,
    /// The pool's schemas as YAML, in the order of their numbers; the first is the default.
    #[n(3)]
    pub schemas: Vec<String>,
    /// Payloads of at most this many bytes travel inside the message.
    #[n(4)]
    pub inline_bytes_max: u64,
    /// The largest payload that the pool takes.
    #[n(5)]
    pub payload_bytes_max: u64,
    /// Whether payloads carry checksums (mode `checked`).
    #[n(6)]
    pub checked: bool,
    /// The server's process.
    #[n(7)]
    pub pid: u32,
    /// The machine it runs on.
    #[n(8)]
    pub host: Cow<'a, str>,
    /// Whether [`PackBody`] is answered on this route; set by a gate, not by the server.
    #[cbor(n(9), default)]
    pub packs: bool,
    /// Whether the server accepts releases with [`crate::fixed::MAPPED`].
    #[cbor(n(10), default)]
    pub keeps_mapped: bool,
}

/// An error, as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct WireFailure<'a> {
    /// The number of the error's code.
    #[n(0)]
    pub code: u16,
    /// Its subject.
    #[n(1)]
    pub subject: Cow<'a, str>,
    /// Why.
    #[n(2)]
    pub cause: Cow<'a, str>,
    /// The byte of the input at fault.
    #[n(3)]
    pub position: Option<u64>,
}

/// Asks the server to end: it takes nothing new, and ends when all that requirements are owed was received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct DrainRequest {
    /// After this it ends anyway; 0: at once; `None`: as long as it takes.
    #[n(0)]
    pub timeout_ms: Option<u64>,
}

/// Asks for memory: a segment whose slots hold payloads of this size.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct LeaseRequest {
    /// Bytes of the payload that is to be placed.
    #[n(0)]
    pub payload_bytes: u64,
    /// How long the client is ready to wait for memory; `None`: for ever.
    #[n(1)]
    pub timeout_ms: Option<u64>,
    /// The payload is for a member of a bundle: it does not wait for what only bundles that are complete could free.
    #[cbor(n(2), default)]
    pub staged: bool,
}

/// One object by its key, or whatever matches a selector.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum TargetBody<'a> {
    /// Exactly this key: the record of the key's attributes.
    #[n(0)]
    Key {
        /// The schema's number.
        #[n(0)]
        schema: u16,
        /// The record (`docs/formats/key.md`).
        #[cbor(n(1), with = "minicbor::bytes")]
        record: Cow<'a, [u8]>,
    },
    /// The objects that this selector matches.
    #[n(1)]
    Selector(
        /// Its text.
        #[n(0)]
        Cow<'a, str>,
    ),
}

/// Asks for one object.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct DemandRequest<'a> {
    /// Which one.
    #[n(0)]
    pub target: TargetBody<'a>,
    /// How long to wait for it; 0: not at all; `None`: for ever.
    #[n(1)]
    pub timeout_ms: Option<u64>,
    /// The requirement through which it is received.
    #[n(2)]
    pub requirement: Option<u64>,
    /// The same, by its name.
    #[n(3)]
    pub requirement_name: Option<Cow<'a, str>>,
    /// A member of a bundle that is not complete will do, too.
    #[cbor(n(4), default)]
    pub incomplete: bool,
}

/// In which order a list, or a follow's first phase, gives what is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum ListOrder<'a> {
    /// By canonical key.
    #[default]
    #[n(0)]
    Key,
    /// By the value of this attribute, then by key; objects without it are last.
    #[n(1)]
    Attribute(
        /// Its name.
        #[n(0)]
        Cow<'a, str>,
    ),
}

/// Asks which objects match, without payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ListRequest<'a> {
    /// The selector's text.
    #[n(0)]
    pub selector: Cow<'a, str>,
    /// The order of the answer.
    #[n(1)]
    pub order: ListOrder<'a>,
    /// Members of bundles that are not complete, too.
    #[cbor(n(2), default)]
    pub incomplete: bool,
    /// Only objects offered, or to be offered, into the bundle of this path or one nested in it.
    #[n(3)]
    pub bundle: Option<Cow<'a, str>>,
    /// Only the first so many, from 1 to [`ListPosition::OBJECTS_MAX`]; without the two fields above.
    #[n(4)]
    pub limit: Option<u64>,
    /// Only those behind this place in the order; with a limit.
    #[n(5)]
    pub after: Option<ListPosition<'a>>,
}

/// Opens a bundle, or joins its openers: a term that one opener gives and another omits holds for both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct BundleRequest<'a> {
    /// Its path; `None`: a bundle without a name, of this client alone.
    #[n(0)]
    pub path: Option<Cow<'a, str>>,
    /// How many members make it complete; `None`: until it is sealed.
    #[n(1)]
    pub members: Option<u64>,
    /// How long it stays when no client has it open; `None`: as configured at the server.
    #[n(2)]
    pub orphan_timeout_ms: Option<u64>,
    /// The bundle's attributes.
    #[n(3)]
    pub attributes: Option<BundleAttributes<'a>>,
}

/// The attributes of a bundle: some attributes of a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct BundleAttributes<'a> {
    /// The schema's number.
    #[n(0)]
    pub schema: u16,
    /// The record, in which any attribute may be missing.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub record: Cow<'a, [u8]>,
}

/// Asks which bundles there are, a page at a time, in the order in which they were opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct BundlesRequest<'a> {
    /// The text of a selector over their attributes.
    #[n(0)]
    pub selector: Cow<'a, str>,
    /// Only this path and what is nested in it.
    #[n(1)]
    pub path: Option<Cow<'a, str>>,
    /// Those behind the one of this number; 0: from the first.
    #[n(2)]
    pub after: u64,
}

/// A page of a list of bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct BundlesPage<'a> {
    /// There are no more.
    #[n(0)]
    pub last: bool,
    /// The bundles.
    #[n(1)]
    pub items: Vec<BundleStatus<'a>>,
}

/// The state of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct BundleStatus<'a> {
    /// Its number: later ones have higher ones.
    #[n(0)]
    pub number: u64,
    /// Its path.
    #[n(1)]
    pub path: Option<Cow<'a, str>>,
    /// 0: open; 1: complete, and waits for the bundle that it is nested in; 2: visible.
    #[n(2)]
    pub state: u8,
    /// How many members make it complete, where declared.
    #[n(3)]
    pub declared: Option<u64>,
    /// How many are there: objects, and nested bundles that are complete.
    #[n(4)]
    pub members: u64,
    /// Bytes of its objects' payloads, while they are staged.
    #[n(5)]
    pub bytes: u64,
    /// How many have it, or one nested in it, open.
    #[n(6)]
    pub openers: u32,
    /// In how many milliseconds it is aborted if no client opens it.
    #[n(7)]
    pub orphaned_for_ms: Option<u64>,
    /// The bundle's attributes.
    #[n(8)]
    pub attributes: Option<BundleAttributes<'a>>,
    /// The first sequence number of its tree, once it is visible; 0 where it was empty.
    #[n(9)]
    pub first: u64,
    /// Its objects that are still visible.
    #[n(10)]
    pub visible: u64,
    /// The number of the bundle that it is nested in.
    #[n(11)]
    pub parent: Option<u64>,
}

/// Names of requirements and groups: the answer is a number, and offers with that number stay until all these consumers
/// have had them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ConsumerNames {
    /// The names.
    #[n(0)]
    pub names: Vec<String>,
}

/// Asks for everything that matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct FollowRequest<'a> {
    /// The selector's text.
    #[n(0)]
    pub selector: Cow<'a, str>,
    /// The order of the first phase.
    #[n(1)]
    pub order: ListOrder<'a>,
    /// Deliveries that may be unreleased at once.
    #[n(2)]
    pub window: u32,
    /// The position of an earlier follow of the same selector and order.
    #[n(3)]
    pub cursor: Option<Cow<'a, str>>,
    /// Skip the first phase: only future objects.
    #[n(4)]
    pub only_new: bool,
    /// The requirement through which objects are received.
    #[n(5)]
    pub requirement: Option<u64>,
    /// End after catching up: with the objects that were visible when it went live.
    #[n(6)]
    pub until_live: bool,
    /// The name of the requirement through which objects are received: all its objects, whatever the selector.
    #[n(7)]
    pub requirement_name: Option<Cow<'a, str>>,
    /// The group whose member the follow is.
    #[n(20)]
    pub group: Option<Cow<'a, str>>,
    /// The terms, beside the selector, on which the group exists or is to be made; `None`: it exists, whatever the
    /// selector.
    #[n(21)]
    pub group_terms: Option<GroupTerms>,
}

/// The terms of a new group, beside its name and its selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct GroupTerms {
    /// Only the newest version of each key is kept.
    #[n(0)]
    pub newest_only: bool,
    /// How long it exists while no client uses it; `None`: until it is retracted.
    #[n(1)]
    pub time_to_live_ms: Option<u64>,
}

/// Announces future needs: matching objects stay until they were received through the requirement and released.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct RequireRequest<'a> {
    /// The selector's text.
    #[n(0)]
    pub selector: Cow<'a, str>,
    /// Only the newest version of each key is kept.
    #[n(1)]
    pub newest_only: bool,
    /// Its name, for one that outlives its client.
    #[n(2)]
    pub name: Option<Cow<'a, str>>,
    /// How long a named one exists while no client uses it; `None`: until it is retracted.
    #[n(3)]
    pub time_to_live_ms: Option<u64>,
    /// Break it rather than make others wait for memory: it gets a gap for what it will not get.
    #[cbor(n(4), default)]
    pub breaks_on_full: bool,
    /// Bytes that one which breaks may keep though nothing else keeps them; `None`: any, until memory is full.
    #[n(5)]
    pub quota_bytes: Option<u64>,
    /// How long it may release nothing while others wait for memory that it keeps; `None`: the pool's default.
    #[n(6)]
    pub stuck_after_ms: Option<u64>,
    /// Members share what it is owed; only with a name.
    #[cbor(n(20), default)]
    pub group: bool,
}

/// Ends a named requirement, made by any client.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct RetractRequest<'a> {
    /// Its name.
    #[n(0)]
    pub name: Cow<'a, str>,
}

/// Asks whether an object that is not made yet is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct WantedRequest<'a> {
    /// The schema's number.
    #[n(0)]
    pub schema: u16,
    /// Its record, as that of an offer.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub record: Cow<'a, [u8]>,
    /// If it is not wanted, later demands of its key fail with `NotWanted`.
    #[n(2)]
    pub declines: bool,
}

/// Takes one object out of the pool.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct WithdrawRequest<'a> {
    /// Its key.
    #[n(0)]
    pub target: TargetBody<'a>,
    /// How long to wait for requirements that are owed it; `None`: for ever.
    #[n(1)]
    pub timeout_ms: Option<u64>,
    /// Do not wait: requirements that are owed it get a gap.
    #[n(2)]
    pub force: bool,
}

/// Forgets objects that are gone: their keys can be offered again.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ForgetRequest<'a> {
    /// Which objects.
    #[n(0)]
    pub target: TargetBody<'a>,
}

/// The work of a client, in its own words, for the commands that show the pool.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct NoteRequest<'a> {
    /// The text, which replaces the last one; empty: none. At most [`NoteRequest::BYTES_MAX`], without control characters.
    #[n(0)]
    pub text: Cow<'a, str>,
}

impl NoteRequest<'_> {
    /// The largest length of a note in bytes.
    pub const BYTES_MAX: usize = 1024;

    /// Returns why a text is no note; `None`: it is one.
    #[must_use]
    pub fn refusal(text: &str) -> Option<&'static str> {
        if text.len() > Self::BYTES_MAX {
            Some("it has more than 1,024 bytes")
        } else if text.contains(char::is_control) {
            Some("it has a control character")
        } else {
            None
        }
    }
}

/// Which events a subscription asks for; a bit set.
pub mod events {
    /// An object became visible.
    pub const OFFERED: u32 = 1;
    /// An object was withdrawn.
    pub const WITHDRAWN: u32 = 2;
    /// An object's retention ended.
    pub const EXPIRED: u32 = 4;
    /// A client joined.
    pub const JOINED: u32 = 8;
    /// A client left.
    pub const LEFT: u32 = 16;
    /// A version was superseded by a newer one.
    pub const SUPERSEDED: u32 = 32;
    /// A requirement with a name was made.
    pub const REQUIRED: u32 = 64;
    /// A requirement with a name was retracted.
    pub const RETRACTED: u32 = 128;
    /// The time to live of a named requirement expired.
    pub const LAPSED: u32 = 256;
    /// A requirement was broken, since it kept others waiting.
    pub const BROKEN: u32 = 512;
    /// An object was not offered, since nothing wanted it.
    pub const DECLINED: u32 = 1024;
    /// A client demanded an object that was not offered, since nothing had wanted it.
    pub const MISSED: u32 = 2048;
    /// A bundle became visible.
    pub const COMPLETED: u32 = 4096;
    /// A bundle was aborted: its members are removed.
    pub const ABORTED: u32 = 8192;
    /// The payload of an object was written to the file tier, and stays there.
    pub const SPILLED: u32 = 16384;
    /// An object is in a store.
    pub const ARCHIVED: u32 = 32768;
    /// An object could not be put into a store; it stays where it is.
    pub const UNARCHIVED: u32 = 65536;
    /// A requirement has used half of the time after which it is broken.
    pub const STUCK: u32 = 131_072;
    /// All events.
    pub const ALL: u32 = 262_143;
    /// Their names, in the order of their bits.
    pub const NAMES: [&str; 18] = [
        "offered",
        "withdrawn",
        "expired",
        "joined",
        "left",
        "superseded",
        "required",
        "retracted",
        "lapsed",
        "broken",
        "declined",
        "missed",
        "completed",
        "aborted",
        "spilled",
        "archived",
        "unarchived",
        "stuck",
    ];
}

/// Asks for events.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SubscribeRequest<'a> {
    /// Selects objects' events; those of clients, of requirements and of bundles are sent regardless.
    #[n(0)]
    pub selector: Cow<'a, str>,
    /// Bits of [`events`].
    #[n(1)]
    pub events: u32,
}

/// Something happened in the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct EventBody<'a> {
    /// One bit of [`events`].
    #[n(0)]
    pub event: u32,
    /// The object it happened to.
    #[n(1)]
    pub object: Option<ObjectName<'a>>,
    /// Bytes of its payload.
    #[n(2)]
    pub length: u64,
    /// The client that joined or left, that offered the object, that made or retracted the requirement, or that completed or
    /// aborted the bundle.
    #[n(3)]
    pub client: Option<PeerBody<'a>>,
    /// Why.
    #[n(4)]
    pub reason: Cow<'a, str>,
    /// The requirement it happened to.
    #[n(5)]
    pub requirement: Option<RequirementName<'a>>,
    /// The bundle it happened to.
    #[n(6)]
    pub bundle: Option<BundlePeer<'a>>,
    /// The object's location in a store.
    #[n(7)]
    pub location: Option<Cow<'a, str>>,
}

/// Reports on objects that were received through a requirement, and are still held: archived in a store, or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ArchivedBody<'a> {
    /// The requirement's name.
    #[n(0)]
    pub requirement: Cow<'a, str>,
    /// Which objects.
    #[n(1)]
    pub objects: Vec<ArchivedObject<'a>>,
    /// Why they could not be archived.
    #[n(2)]
    pub failure: Option<Cow<'a, str>>,
}

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ArchivedObject<'a> {
    /// Its sequence number.
    #[n(0)]
    pub sequence: u64,
    /// Its location, for people and other programs.
    #[n(1)]
    pub location: Cow<'a, str>,
}

/// Requests the elements that one rank wants of pieces of an array, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct PackBody<'a> {
    /// The layout of the array at its producers (`docs/formats/layout.md`).
    #[n(0)]
    pub from: Cow<'a, str>,
    /// How it is wanted.
    #[n(1)]
    pub to: Cow<'a, str>,
    /// The index of the array at which that begins, in each dimension.
    #[n(2)]
    pub origin: Vec<u64>,
    /// The rank that wants it.
    #[n(3)]
    pub rank: u64,
    /// The element type of the pieces (`<f8`).
    #[n(4)]
    pub element: Cow<'a, str>,
    /// The element type on the wire.
    #[n(5)]
    pub travels: Cow<'a, str>,
    /// The pieces, in the order in which they are answered.
    #[n(6)]
    pub pieces: Vec<PieceName<'a>>,
}

/// One piece.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct PieceName<'a> {
    /// The rank whose piece it is.
    #[n(0)]
    pub rank: u64,
    /// The object.
    #[n(1)]
    pub target: TargetBody<'a>,
}

/// A bundle, as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct BundlePeer<'a> {
    /// Its path.
    #[n(0)]
    pub path: Option<Cow<'a, str>>,
    /// How many members were there.
    #[n(1)]
    pub members: u64,
    /// How many make it complete, where declared.
    #[n(2)]
    pub declared: Option<u64>,
}

/// A requirement, as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct RequirementName<'a> {
    /// Its name; empty where it has none.
    #[n(0)]
    pub name: Cow<'a, str>,
    /// Its selector's text.
    #[n(1)]
    pub selector: Cow<'a, str>,
}

/// A client, as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct PeerBody<'a> {
    /// The number that the server gave it.
    #[n(0)]
    pub client: u32,
    /// The client's name for itself.
    #[n(1)]
    pub name: Cow<'a, str>,
    /// The machine it runs on.
    #[n(2)]
    pub host: Cow<'a, str>,
    /// Its process.
    #[n(3)]
    pub pid: u32,
    /// The objects that it has offered so far, members of bundles included.
    #[cbor(n(4), default)]
    pub offered: u64,
}

/// One version of one object.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ObjectName<'a> {
    /// The schema's number.
    #[n(0)]
    pub schema: u16,
    /// Its sequence number.
    #[n(1)]
    pub sequence: u64,
    /// The record of all its attributes.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub record: Cow<'a, [u8]>,
}

/// Objects that a reader will not get.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct GapBody<'a> {
    /// Which.
    #[n(0)]
    pub items: Vec<ObjectName<'a>>,
    /// Why: `withdrawn`, `expired`, ….
    #[n(1)]
    pub reason: Cow<'a, str>,
    /// The number of further ones, whose names are no longer known.
    #[n(2)]
    pub unnamed: Option<u64>,
}
