//! Connected clients, the objects that they hold, and their removal.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use hashbrown::HashSet;
use junctura_wire::rights::AccessRights;
use slab::Slab;

use crate::core::clients::listing::OpenListing;
use crate::core::durability::AwaitedTree;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::interest_id::InterestId;
use crate::core::objects::offer::WaitingOffer;

/// The identity that a client states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientPeer {
    /// The name that it states.
    pub name: String,
    /// The host on which it runs.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// The route of the connection; empty if the client has not stated one.
    pub route: String,
}

/// The rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) struct ClientAccess {
    pub(in crate::core) rights: AccessRights,
    /// The id of its token; `None` if it has none, and belongs to the server's own user.
    pub(in crate::core) token: Option<u32>,
}

impl Default for ClientAccess {
    fn default() -> Self {
        Self {
            rights: AccessRights::ALL,
            token: None,
        }
    }
}

/// A delivered object that is not released yet.
pub(in crate::core) struct HeldDelivery {
    pub(in crate::core) object: u32,
    pub(in crate::core) sequence: u64,
    /// The follow or requirement that delivered it.
    pub(in crate::core) via: Option<DeliveredVia>,
    /// When it was delivered.
    pub(in crate::core) since: Nanoseconds,
    /// The client has released the object, and still reads its payload.
    pub(in crate::core) is_released: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::core) struct DeliveredVia {
    pub(in crate::core) follow: Option<InterestId>,
    pub(in crate::core) requirement: Option<InterestId>,
}

/// A pending request.
pub(in crate::core) enum PendingAnswer {
    Demand(u32),
    Follow(u32),
    Subscription(u32),
    Requirement(u32),
    /// Of a named requirement.
    Use(u32),
    /// It has this bundle open, or had when it became visible.
    Bundle(u64),
    List(Box<OpenListing>),
    /// Its turn in the queue of leases.
    Lease(u64),
    Withdrawal(u32),
    Drain,
    /// It waits behind offers.
    Sync,
    /// A durable offer, or the request that completed a bundle with durable members.
    Durable(AwaitedTree),
}

impl PendingAnswer {
    /// Returns the requirement that ends with the request.
    pub(in crate::core) fn requirement(&self) -> Option<u32> {
        match self {
            Self::Requirement(id) => Some(*id),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(in crate::core) struct ClientRow {
    pub(in crate::core) peer: Option<ClientPeer>,
    /// The rights of its token.
    pub(in crate::core) access: ClientAccess,
    /// It has connected during the drain, to receive objects that a named requirement is owed.
    pub(in crate::core) is_newcomer: bool,
    /// The component of the pool that it belongs to.
    pub(in crate::core) component: Option<usize>,
    /// The place of its folded name ([`crate::core::clients::flows`]).
    pub(in crate::core) flow: u8,
    pub(in crate::core) offer_timeout: Option<Nanoseconds>,
    pub(in crate::core) held: Slab<HeldDelivery>,
    /// The versions and slots of its holdings, while it leaves in turns.
    pub(in crate::core) leaves: BinaryHeap<Reverse<(u64, usize)>>,
    pub(in crate::core) pending: BTreeMap<u64, PendingAnswer>,
    /// Segments that it may map read-only.
    pub(in crate::core) segments: HashSet<u32>,
    pub(in crate::core) waiting_offers: VecDeque<WaitingOffer>,
    /// When one of these was accepted last.
    pub(in crate::core) proceeded: Nanoseconds,
    /// Follows that are blocked until it releases something, from any follow.
    pub(in crate::core) paused: BTreeSet<u32>,
    /// The sets of names that its offers may be retained for, indexed by the client's numbers.
    pub(in crate::core) consumers: Vec<u32>,
    /// The number of removals that its requests have deferred ([`crate::core::deferred`]).
    pub(in crate::core) left: u64,
    /// Its requirements without a name.
    pub(in crate::core) requirements: usize,
    /// Bytes of its standing selectors.
    pub(in crate::core) selector_bytes: usize,
    /// Bytes of its waiting offers, besides payloads in shared memory.
    pub(in crate::core) waiting_offer_bytes: usize,
    pub(in crate::core) errors: u32,
    /// The work that it has stated.
    pub(in crate::core) note: Box<str>,
    /// Accepted offers, including those into incomplete bundles.
    pub(in crate::core) accepted: u64,
    pub(in crate::core) offered: u64,
    pub(in crate::core) delivered: u64,
}

impl ClientRow {
    /// Whether one of its requests belongs to a requirement.
    pub(in crate::core) fn stands_by(&self, request: u64, requirement: u32) -> bool {
        let pending = self.pending.get(&request);
        matches!(pending, Some(&(PendingAnswer::Requirement(id) | PendingAnswer::Use(id))) if id == requirement)
    }

    pub(in crate::core) fn is_known(&self) -> bool {
        self.peer.is_some()
    }
}

pub(in crate::core) fn milliseconds(count: u64) -> Nanoseconds {
    count.saturating_mul(1_000_000)
}
