//! A simulated client: its memory between its messages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::clients::network::Road;
use crate::clients::requests::{Ask, Place};

/// The kind of a request, for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The first message.
    Hello,
    /// An offer: the place of its payload, and whether it is durable.
    Offer(Place, bool),
    /// An offer of what is visible, and is to be archived: an object, or the bundle that it completed.
    Durable,
    /// A lease.
    Lease,
    /// A demand, and the wish through which it receives.
    Demand(Option<usize>),
    /// A list; what its pages held.
    #[expect(missing_docs, reason = "as the line above says")]
    List { began: bool, items: Vec<u64> },
    /// The place of its chain.
    Follow(usize),
    /// The place of its wish.
    Require(usize),
    /// A requirement with a name.
    Use(usize),
    /// A bundle that it has open, or had when it became visible.
    Bundle,
    /// An offer into a bundle: the place of its payload, the request that has the bundle open, and whether it is durable.
    Stage(Place, u64, bool),
    /// The end of the bundle of this request.
    Abort(u64),
    /// A withdraw, a withdraw-all, a retraction, a seal, a sync, or a question what is wanted.
    Withdraw,
    /// A subscription.
    Subscribe,
    /// Counters.
    Stat,
    /// The end of another request.
    Stop(u64),
    /// One that is only answered when it fails.
    Loose,
}

/// An object that was delivered and not released.
#[derive(Clone, Debug)]
pub struct Holding {
    /// From the delivery.
    pub holding: u32,
    /// The same.
    pub sequence: u64,
    /// Its slot, if it is in one, and the expected payload.
    pub slot: Option<(u32, u32, u64)>,
    /// The chain through which it arrived.
    pub chain: Option<usize>,
    /// It was released, and its payload is still read.
    pub is_released: bool,
}

/// A segment that the client leases.
#[derive(Clone, Debug, Default)]
pub struct Leased {
    /// Bytes of a slot.
    pub slot_bytes: u64,
    slots: u32,
    next: u32,
    free: Vec<u32>,
    /// Slots that were offered, or are about to be.
    pub busy: BTreeSet<u32>,
}

impl Leased {
    /// All slots free.
    #[must_use]
    pub fn new(bytes: u64, slot_bytes: u64) -> Self {
        Self {
            slot_bytes,
            slots: (bytes / slot_bytes) as u32,
            ..Self::default()
        }
    }

    /// A free slot, if there is one.
    pub fn take(&mut self) -> Option<u32> {
        let slot = self.free.pop().or_else(|| {
            (self.next < self.slots).then(|| {
                self.next += 1;
                self.next - 1
            })
        })?;
        self.busy.insert(slot);
        Some(slot)
    }

    /// A slot is free again; false if it was.
    pub fn give_back(&mut self, slot: u32) -> bool {
        let was_busy = self.busy.remove(&slot);
        if was_busy {
            self.free.push(slot);
        }
        was_busy
    }
}

/// See the module's page.
#[derive(Default)]
pub struct Client {
    /// The number that the server gave it.
    pub id: u32,
    /// It died; the server has not noticed yet.
    pub dead: bool,
    /// It disconnected, or was given up.
    pub leaving: bool,
    /// The server greeted it.
    pub welcomed: bool,
    /// Its last request.
    pub numbers: u64,
    /// Requests that the server has not read yet.
    pub up: VecDeque<(u64, Ask, Vec<u8>)>,
    /// Open requests.
    pub doing: BTreeMap<u64, Doing>,
    /// Unreleased objects.
    pub held: Vec<Holding>,
    /// Segments that it may write.
    pub leased: BTreeMap<u32, Leased>,
    /// Segments that it may read.
    pub mapped: BTreeSet<u32>,
    /// The number of its last offer that became visible, and the sequence number.
    pub acknowledged: (u64, u64),
    /// Staged offers without an answer, with the requests of their bundles.
    pub staged: BTreeMap<u64, u64>,
    /// Its history as a producer.
    pub rows: String,
    /// Its path from another machine, if any.
    pub road: Option<Box<Road>>,
    /// The bytes of the rings that its gate requested.
    pub ring_bytes: Option<u32>,
}

impl Client {
    /// The requests that are of a kind.
    pub fn requests(&self, is_it: impl Fn(&Doing) -> bool) -> Vec<u64> {
        self.doing
            .iter()
            .filter(|(_, doing)| is_it(doing))
            .map(|(&number, _)| number)
            .collect()
    }
}
