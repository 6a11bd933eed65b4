//! The memory of one host: the budget and the ledger of payloads, leases, waiting clients, and the file tier.
//!
//! It finds objects and clients in the tables that it is given, and could be one of several.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use junctura_memory::ledger::{self, MemoryLedger};
use junctura_model::Error;
use junctura_wire::Reply;
use junctura_wire::fixed::{self, OfferHead, SlotAddress};

use crate::core::clients::stat::MemoryStat;
use crate::core::clients::table::ClientTable;
use crate::core::engine::timers::{NOBODY, TimerEvent, TimerQueue};
use crate::core::memory::eviction::EvictionQueue;
use crate::core::memory::hoarding::{LeaseRecall, StuckWatch};
use crate::core::memory::lease_queue::{LeaseQueue, WaitingLease};
use crate::core::memory::shortage::{MemoryShortage, StalledOffers};
use crate::core::memory::spill::{FileTier, TierState};
use crate::core::objects::object::{FreedSlots, PayloadLocation};
use crate::core::objects::offer::OfferRefusal;
use crate::core::objects::table::ObjectTable;
use crate::{Effects, PoolConfig};

/// The timer of the first waiting lease, while none may pass it; other timers have smaller numbers.
const FIRST_TIMER: u64 = u64::MAX - 3;

/// The memory for payloads; see the module.
pub(in crate::core) struct PayloadMemory {
    pub(in crate::core) config: Arc<PoolConfig>,
    pub(in crate::core) ledger: MemoryLedger,
    /// The file tier for payloads that do not fit into memory, if there is one.
    pub(in crate::core) tier: Option<FileTier>,
    /// In the order of their requests.
    pub(in crate::core) waiting_leases: LeaseQueue,
    /// Clients whose offers wait.
    pub(in crate::core) stalled: StalledOffers,
    pub(in crate::core) eviction: EvictionQueue,
    /// Clients whose empty leased memory is recalled, and which have put nothing anywhere since.
    pub(in crate::core) recalled: BTreeMap<u32, LeaseRecall>,
    /// Leased segments that have been empty since they were leased, with the clients that lease them.
    pub(in crate::core) unused: BTreeMap<u32, u32>,
    /// By segment: clients that may map it.
    pub(in crate::core) mapping: HashMap<u32, BTreeSet<u32>>,
    /// Slots to return to their clients.
    pub(in crate::core) freed: FreedSlots,
    /// Memory may have become free in this event.
    pub(in crate::core) came_free: bool,
    pub(in crate::core) watch: StuckWatch,
}

impl PayloadMemory {
    pub(in crate::core) fn new(config: &Arc<PoolConfig>) -> Self {
        Self {
            ledger: MemoryLedger::new(ledger::LedgerLimits {
                segments_per_client: config.limits.segments_per_client as u32,
                ..ledger::LedgerLimits::new(config.budget_bytes)
            }),
            tier: config.spill.as_ref().map(|spill| FileTier::new(spill.limit_bytes)),
            config: Arc::clone(config),
            waiting_leases: LeaseQueue::default(),
            stalled: StalledOffers::default(),
            eviction: EvictionQueue::default(),
            recalled: BTreeMap::new(),
            unused: BTreeMap::new(),
            mapping: HashMap::new(),
            freed: FreedSlots::default(),
            came_free: false,
            watch: StuckWatch::default(),
        }
    }
}

impl PayloadMemory {
    /// Whether a client with a waiting lease has no memory to work with.
    pub(in crate::core) fn is_stranded(&self, lease: &WaitingLease) -> bool {
        let enough = lease.slots_before + 1;
        self.ledger.free_slots(lease.client, lease.payload_bytes, enough) < enough
    }

    /// Recalls empty leased segments from their clients.
    pub(in crate::core) fn recall_empty_segments(&mut self, timers: &TimerQueue, fx: &mut impl Effects) {
        for (client, segment) in self.ledger.recallable(0) {
            self.recall_if_wanted(timers, client, segment, fx);
        }
    }

    /// Recalls an empty leased segment if a client waits for memory. Not if every waiting client could use the slots of
    /// that very segment: it has them already.
    pub(in crate::core) fn recall_if_wanted(
        &mut self,
        timers: &TimerQueue,
        client: u32,
        segment: u32,
        fx: &mut impl Effects,
    ) {
        let its_slots = self.ledger.grant(segment).map(|grant| grant.slot_bytes);
        if self.stalled.wait_for(MemoryShortage::Payload) || !self.waiting_leases.are_all(client, its_slots) {
            fx.reply(client, 0, &Reply::Recall(segment));
            self.note_recall(timers, client);
        }
    }

    /// Drops a segment that the ledger has forgotten, and notifies the clients that have mapped it.
    pub(in crate::core) fn drop_segment(&mut self, clients: &mut ClientTable, segment: u32, fx: &mut impl Effects) {
        self.unused.remove(&segment);
        for client in self.mapping.remove(&segment).into_iter().flatten() {
            if let Some(state) = clients.get_mut(client) {
                state.segments.remove(&segment);
                fx.reply(client, 0, &Reply::Dropped(segment));
            }
        }
        fx.drop_segment(segment);
    }

    /// Removes a disconnected client from those that may map a segment.
    pub(in crate::core) fn maps_no_more(&mut self, client: u32, segment: u32) {
        if let Some(clients) = self.mapping.get_mut(&segment) {
            clients.remove(&client);
            if clients.is_empty() {
                self.mapping.remove(&segment);
            }
        }
    }

    /// Records that a lease has passed the first waiting one. If no further one may, the first one has some time alone.
    pub(in crate::core) fn note_passed(&mut self, timers: &mut TimerQueue, bytes: u64) {
        if self.waiting_leases.note_passed(bytes) {
            let time = u64::try_from(self.config.lease_first_for.as_nanos()).unwrap_or(u64::MAX);
            timers.set(
                timers.now.saturating_add(time),
                NOBODY,
                FIRST_TIMER,
                TimerEvent::FirstLease,
            );
        }
    }

    /// Updates the timer of the first waiting lease, which this event may have changed.
    pub(in crate::core) fn watch_first_lease(&mut self, timers: &mut TimerQueue) {
        if self.waiting_leases.forgets_time() {
            timers.cancel(NOBODY, FIRST_TIMER);
        }
    }

    pub(in crate::core) fn somebody_waits_for_memory(&self) -> bool {
        self.stalled.wait_for(MemoryShortage::Payload) || !self.waiting_leases.is_empty()
    }

    /// The same, or for room for records: eviction frees both.
    pub(in crate::core) fn somebody_waits_for_room(&self) -> bool {
        self.somebody_waits_for_memory() || self.stalled.wait_for(MemoryShortage::Records)
    }

    pub(in crate::core) fn occupy(
        &mut self,
        objects: &mut ObjectTable,
        client: u32,
        head: &OfferHead,
        flags: u16,
        inline: &[u8],
    ) -> std::result::Result<PayloadLocation, OfferRefusal> {
        if !objects.has_room_for_record(head.record_length.get()) {
            return Err(OfferRefusal::Wait(MemoryShortage::Records));
        }
        if flags & fixed::INLINE != 0 {
            return if self.ledger.inline_reserve(inline.len() as u64) {
                Ok(PayloadLocation::Inline)
            } else {
                Err(OfferRefusal::Wait(MemoryShortage::Payload))
            };
        }
        let (segment, slot) = (head.segment.get(), head.slot.get());
        self.ledger
            .occupy(client, segment, slot, head.length.get())
            .map_err(Error::from)?;
        if !self.recalled.is_empty() {
            self.recalled.remove(&client);
        }
        if !self.unused.is_empty() {
            self.unused.remove(&segment);
        }
        Ok(PayloadLocation::Slot { segment, slot })
    }

    /// Frees the place of an object's payload.
    pub(in crate::core) fn vacate(
        &mut self,
        objects: &mut ObjectTable,
        clients: &mut ClientTable,
        timers: &TimerQueue,
        id: u32,
        place: PayloadLocation,
        fx: &mut impl Effects,
    ) {
        let object = &mut objects[id];
        match place {
            PayloadLocation::Freed => {}
            PayloadLocation::File { at } => {
                let length = object.length;
                self.leave_tier(at, length, fx);
            }
            PayloadLocation::Inline => {
                let inline = std::mem::take(&mut object.inline);
                self.ledger.inline_free(inline.len() as u64);
                objects.spare.keep(inline);
                self.came_free = true;
            }
            PayloadLocation::Slot { segment, slot } => {
                let vacated = self.ledger.vacate(segment, slot);
                if let Some(owner) = vacated.owner {
                    let slot = SlotAddress {
                        segment: segment.into(),
                        slot: slot.into(),
                    };
                    self.freed.note(owner, slot, fx);
                    if vacated.emptied {
                        self.freed.tell(fx);
                        self.recall_if_wanted(timers, owner, segment, fx);
                    }
                } else if vacated.dropped {
                    self.drop_segment(clients, segment, fx);
                    self.came_free = true;
                }
            }
        }
    }

    pub(in crate::core) fn free_payload(
        &mut self,
        objects: &mut ObjectTable,
        clients: &mut ClientTable,
        timers: &TimerQueue,
        id: u32,
        fx: &mut impl Effects,
    ) {
        let object = &mut objects[id];
        let place = std::mem::replace(&mut object.place, PayloadLocation::Freed);
        object.departs = None;
        if object.leaving != TierState::No {
            self.give_up_writing(objects, id);
        }
        self.vacate(objects, clients, timers, id, place, fx);
    }

    pub(in crate::core) fn memory_stat(&self, objects: &ObjectTable) -> MemoryStat {
        let sums = self.ledger.counters();
        MemoryStat {
            budget_bytes: self.config.budget_bytes,
            used_bytes: self.ledger.used_bytes(),
            segment_bytes: sums.leased_bytes,
            inline_bytes: sums.inline_bytes,
            occupied_bytes: sums.occupied_bytes,
            slots_occupied: sums.occupied_slots,
            segments: u64::from(sums.segments),
            leases_waiting: self.waiting_leases.len() as u64,
            record_bytes: objects.record_bytes,
        }
    }
}
