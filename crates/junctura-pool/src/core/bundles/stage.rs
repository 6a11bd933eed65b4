//! Offers into a bundle: an object is received and checked, and waits for the other members.

use hashbrown::HashMap;
use junctura_model::{Code, Error};
use junctura_wire::fixed;

use super::StagedMember;
use crate::Effects;
use crate::core::clients::requests::ClientRequests;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::interest::StandingInterest;
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::shortage::MemoryShortage;
use crate::core::objects::object::ObjectState;
use crate::core::objects::offer::{OfferContent, OfferOutcome, OfferRefusal};
use crate::core::objects::table::ObjectTable;

/// Memory that only the end of a bundle can free.
#[derive(Default)]
pub(super) struct PinnedMemory {
    /// The number of staged objects in each segment.
    pub(super) segments: HashMap<u32, u32>,
    /// Bytes in the file tier.
    pub(super) spilled_bytes: u64,
    /// Bytes of those segments, and of staged payloads inside messages.
    pub(super) bytes: u64,
    pub(super) objects: u64,
    pub(super) payload_bytes: u64,
}

impl ObjectExchange {
    /// Stages an object in a bundle. The object has its number if it completed the bundle.
    pub(in crate::core) fn stage(
        &mut self,
        client: u32,
        request: u64,
        through: u64,
        content: OfferContent<'_>,
        fx: &mut impl Effects,
    ) -> std::result::Result<OfferOutcome, OfferRefusal> {
        let examined = self
            .asked
            .clients
            .examine(&mut self.objects, &self.retention, client, content)?;
        if content.head.flags.get() & fixed::IF_WANTED != 0 {
            let cause = "the consumers of a member are determined when its bundle is complete";
            return Err(Error::new(Code::InvalidArgument, "if wanted", cause).into());
        }
        let number = self.asked.clients.bundle_of(client, through)?;
        self.see_off_key(examined.identity.key, fx);
        let earlier = self
            .bundles
            .may_be_staged(&self.objects, number, &examined, content, self.asked.timers.now)?;
        let OfferContent { head, inline, .. } = content;
        if !self.asked.interests.may_be_owed(head.schema.get(), content.record) {
            return Err(OfferRefusal::Wait(MemoryShortage::Owed));
        }
        let place = match self
            .memory
            .occupy(&mut self.objects, client, &head, head.flags.get(), inline)
        {
            Err(OfferRefusal::Wait(shortage)) => {
                return Err(self.bundles.no_memory_to_stage(
                    &self.objects,
                    &self.memory,
                    inline.len() as u64,
                    shortage,
                ));
            }
            other => other?,
        };
        if let Some(earlier) = earlier {
            self.bundles
                .unstage(&self.objects, &self.memory, number, examined.identity.key);
            self.drop_staged(earlier, fx);
        }
        let id = self.objects.insert_object(
            &mut self.retention,
            client,
            content,
            &examined,
            place,
            ObjectState::Staged,
        );
        self.objects[id].bundle = number;
        let member = StagedMember {
            object: id,
            bundle: number,
            by: (client, through),
            request,
            keep: examined.keep,
            is_durable: content.head.flags.get() & fixed::DURABLE != 0,
        };
        self.bundles
            .enter_bundle(&self.objects, &self.memory, examined.identity, member);
        self.complete_if_whole(number, Some(client), fx);
        let sequence = self.objects.get(id).map_or(0, |object| object.sequence);
        if sequence == 0 {
            self.asked.show_to_lookers(&mut self.objects, &mut self.memory, id, fx);
            self.memory.may_be_spilled(&mut self.objects, id);
            // Others may wait for memory that only this bundle could free now.
            self.memory.came_free |= !self.memory.stalled.is_empty() || !self.memory.waiting_leases.is_empty();
        }
        Ok(OfferOutcome { object: id, sequence })
    }

    /// Drops a staged object that cannot become visible: its memory is freed with its last holder.
    pub(in crate::core) fn drop_staged(&mut self, id: u32, fx: &mut impl Effects) {
        self.objects[id].state = ObjectState::Dropped;
        self.retention.await_no_more(&mut self.objects, id);
        self.settle(id, fx);
    }
}

impl ClientRequests {
    /// Delivers a staged object to demands that match staged objects.
    pub(in crate::core) fn show_to_lookers(
        &mut self,
        objects: &mut ObjectTable,
        memory: &mut PayloadMemory,
        id: u32,
        fx: &mut impl Effects,
    ) {
        if self.interests.lookers.is_empty() {
            return;
        }
        let object = &objects[id];
        let wants = |interest: &u32| match self.interests.get(*interest) {
            Some(StandingInterest::Demand(waiting)) if !self.interests.is_met(*interest) => {
                let selector = waiting.selectors.of(usize::from(object.schema));
                selector.is_some_and(|selector| selector.matches(object.record()))
            }
            _ => false,
        };
        let found: Vec<u32> = self.interests.lookers.iter().copied().filter(wants).collect();
        for interest in found {
            self.demand_meets(objects, memory, interest, id, fx);
        }
    }
}

/// Returns the flag of a delivery, or of an entry of a list, of an object that is not visible yet.
pub(in crate::core) fn staged_flag(sequence: u64) -> u16 {
    if sequence == 0 { fixed::STAGED } else { 0 }
}
