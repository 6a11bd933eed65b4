//! Who is connected, what they hold, and what happens when they go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hashbrown::HashSet;
use junctura_wire::rights::AccessRights;
use slab::Slab;

use crate::core::clients::listing::OpenListing;
use crate::core::durability::AwaitedTree;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::interest_id::InterestId;
use crate::core::objects::offer::WaitingOffer;

/// Who a client says it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientPeer {
    /// What it calls itself.
    pub name: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// By which way it comes; empty: it did not say.
    pub route: String,
}

/// The rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) struct ClientAccess {
    pub(in crate::core) rights: AccessRights,
    /// The id of its token; `None`: it has none, and is of the server's own user.
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

/// An object that was delivered and not released yet.
pub(in crate::core) struct HeldDelivery {
    pub(in crate::core) object: u32,
    pub(in crate::core) sequence: u64,
    /// The follow, or the requirement, through which it came.
    pub(in crate::core) via: Option<DeliveredVia>,
    /// The client has released the object, and still reads its payload.
    pub(in crate::core) is_released: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::core) struct DeliveredVia {
    pub(in crate::core) follow: Option<InterestId>,
    pub(in crate::core) requirement: Option<InterestId>,
}

/// A request that is not over.
pub(in crate::core) enum PendingAnswer {
    Demand(u32),
    Follow(u32),
    Subscription(u32),
    Requirement(u32),
    /// Of a requirement with a name.
    Use(u32),
    /// It has this bundle open, or had when it became visible.
    Bundle(u64),
    List(Box<OpenListing>),
    /// By its place among those that wait.
    Lease(u64),
    Withdrawal(u32),
    Drain,
    /// It waits behind offers.
    Sync,
    /// An offer whose object is to be archived, or what completed a bundle with such members.
    Durable(AwaitedTree),
}

impl PendingAnswer {
    /// The requirement that ends with it.
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
    /// It has connected while the pool drained, for what a requirement with a name is owed.
    pub(in crate::core) is_newcomer: bool,
    /// Which of the programs it belongs to that the pool is for.
    pub(in crate::core) component: Option<usize>,
    /// The place of its folded name ([`crate::core::clients::flows`]).
    pub(in crate::core) flow: u8,
    pub(in crate::core) offer_timeout: Option<Nanoseconds>,
    pub(in crate::core) held: Slab<HeldDelivery>,
    /// The places of what it holds, the newest first, while it leaves in turns.
    pub(in crate::core) leaves: Vec<usize>,
    pub(in crate::core) pending: BTreeMap<u64, PendingAnswer>,
    /// Segments that it may map read-only.
    pub(in crate::core) segments: HashSet<u32>,
    pub(in crate::core) waiting_offers: VecDeque<WaitingOffer>,
    /// Follows that may give it no more until it releases something, whatever it came through.
    pub(in crate::core) paused: BTreeSet<u32>,
    /// The sets of names that its offers may be retained for, by the numbers that it was told.
    pub(in crate::core) consumers: Vec<u32>,
    /// What it said has left so much for later ([`crate::core::deferred`]).
    pub(in crate::core) left: u64,
    /// Bytes of its standing selectors.
    pub(in crate::core) selector_bytes: usize,
    /// Bytes of its offers that wait, besides payloads in shared memory.
    pub(in crate::core) waiting_offer_bytes: usize,
    pub(in crate::core) errors: u32,
    /// Offers that were accepted, also into bundles that are not complete.
    pub(in crate::core) accepted: u64,
    pub(in crate::core) offered: u64,
    pub(in crate::core) delivered: u64,
}

impl ClientRow {
    /// Whether a request of its stands for a requirement.
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
