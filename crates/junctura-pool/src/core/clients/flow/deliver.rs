//! Deliveries and releases: objects that a client holds and releases.

use junctura_memory::ledger::SegmentGrant;
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::fixed::{self, DeliveredHead, ReleasedHolding, SegmentHead};

use crate::Effects;
use crate::core::bundles::staged_flag;
use crate::core::clients::client::{DeliveredVia, HeldDelivery};
use crate::core::clients::requests::ClientRequests;
use crate::core::exchange::ObjectExchange;
use crate::core::memory::payload::PayloadMemory;
use crate::core::objects::object::{PayloadLocation, RetainedUntil};
use crate::core::objects::table::ObjectTable;

/// The delivery of an object to a client.
#[derive(Clone, Copy)]
pub(in crate::core) struct ObjectDelivery {
    pub(in crate::core) client: u32,
    pub(in crate::core) request: u64,
    pub(in crate::core) object: u32,
    pub(in crate::core) flags: u16,
    pub(in crate::core) via: Option<DeliveredVia>,
}

impl ObjectExchange {
    /// A release that counts: for retention, for the requirement that delivered it, and for the window of the follow.
    pub(in crate::core) fn take_back(&mut self, client: u32, held: &HeldDelivery, fx: &mut impl Effects) {
        self.asked.count.released += 1;
        if let Some(state) = self.asked.clients.get(client) {
            let time = self.asked.timers.now.saturating_sub(held.since);
            self.asked.flows.release(state.flow, time);
        }
        let object = &mut self.objects[held.object];
        object.holders -= 1;
        // A client that read the object before it was visible has not consumed it.
        if held.sequence > 0
            && let RetainedUntil::Released(left) = object.until
            && !object.released_by.contains(&client)
        {
            if left > 1 {
                object.until = RetainedUntil::Released(left - 1);
                object.released_by.push(client);
            } else {
                object.until = RetainedUntil::Over;
            }
        }
        if let Some(requirement) = self.asked.interests.still(held.via.and_then(|via| via.requirement)) {
            self.fulfil(requirement, held.object, fx);
        }
        self.settle_in_turn(held.object, fx);
        if let Some(follow) = self.asked.interests.still(held.via.and_then(|via| via.follow)) {
            self.window_opens(follow, fx);
        }
    }

    /// Ends a holding without a release: its client has disconnected, or returns the object unread or unprocessed.
    pub(in crate::core) fn let_go(&mut self, held: &HeldDelivery, was_unread: bool, fx: &mut impl Effects) {
        if let Some(requirement) = self.asked.interests.still(held.via.and_then(|via| via.requirement)) {
            self.owe_again(requirement, held.object, was_unread, fx);
        }
        self.objects[held.object].holders -= 1;
        self.settle_in_turn(held.object, fx);
    }

    /// Takes a holding from its client; with [`fixed::MAPPED`], the client keeps one for the memory.
    fn given_back(&mut self, client: u32, holding: &ReleasedHolding) -> Option<HeldDelivery> {
        if holding.flags.get() & fixed::MAPPED == 0 {
            return self.asked.clients.no_longer_held(client, holding);
        }
        let held = self.asked.clients.keeps_mapped(client, holding)?;
        self.objects[held.object].holders += 1;
        Some(held)
    }

    pub(in crate::core) fn release(
        &mut self,
        client: u32,
        holdings: &[ReleasedHolding],
        fx: &mut impl Effects,
    ) -> Result<()> {
        let mut wrong = None;
        self.memory.freed.gathers = true;
        for holding in holdings {
            match self.given_back(client, holding) {
                Some(held) if held.is_released => self.let_go(&held, false, fx),
                // Its client has not completed it: that is no release.
                Some(held) if holding.flags.get() & (fixed::UNREAD | fixed::UNDONE) != 0 => {
                    let was_unread = holding.flags.get() & fixed::UNREAD != 0;
                    self.let_go(&held, was_unread, fx);
                    if let Some(follow) = self.asked.interests.still(held.via.and_then(|via| via.follow)) {
                        self.comes_back_from(follow, fx);
                    }
                }
                Some(held) => self.take_back(client, &held, fx),
                None => wrong = Some(holding.sequence.get()),
            }
        }
        self.memory.freed.gathers = false;
        self.memory.freed.tell(fx);
        self.asked.revive_paused(client, fx);
        self.resume_paused(client, fx);
        match wrong {
            None => Ok(()),
            Some(sequence) => {
                let subject = format!("object {}.{sequence}", self.config.incarnation);
                Err(Error::new(Code::Expired, subject, "this client does not hold it"))
            }
        }
    }
}

impl ClientRequests {
    /// Delivers an object to a client, which holds it from now on.
    pub(in crate::core) fn deliver(
        &mut self,
        objects: &mut ObjectTable,
        memory: &mut PayloadMemory,
        delivery: ObjectDelivery,
        fx: &mut impl Effects,
    ) {
        let ObjectDelivery {
            client,
            request,
            object: id,
            mut flags,
            via,
        } = delivery;
        if let Some(requirement) = self.interests.still(via.and_then(|via| via.requirement)) {
            let from_queue = via.is_some_and(|via| via.follow.is_some());
            if self.mark_in_flight(objects, requirement, id, from_queue) {
                flags |= fixed::REDELIVERED;
            }
        }
        let Some(state) = self.clients.get_mut(client) else {
            return;
        };
        let object = &mut objects[id];
        let holding = state.held.insert(HeldDelivery {
            object: id,
            sequence: object.sequence,
            via,
            since: self.timers.now,
            is_released: false,
        }) as u32;
        state.delivered += 1;
        object.holders += 1;
        self.count.delivered += 1;
        self.count.delivered_bytes += object.length;
        let delay = self.timers.now.saturating_sub(object.visible_at);
        let delay = (object.sequence > 0).then_some(delay);
        self.flows.deliver(object.component, state.flow, object.length, delay);
        let (segment, slot, place_flag) = match object.place {
            PayloadLocation::Slot { segment, slot } => {
                if state.segments.insert(segment)
                    && let Some(grant) = memory.ledger.grant(segment)
                {
                    memory.mapping.entry(segment).or_default().insert(client);
                    fx.reply_segment(client, 0, segment_head(grant, false));
                }
                (segment, slot, 0)
            }
            PayloadLocation::File { at } => {
                if state.segments.insert(fixed::FILE_TIER) {
                    fx.reply_segment(client, 0, SegmentHead::default());
                }
                ((at >> 32) as u32, at as u32, fixed::SPILLED)
            }
            PayloadLocation::Inline | PayloadLocation::Freed => (0, 0, fixed::INLINE),
        };
        let checksum_flag = if object.checksum.is_some() { fixed::CHECKSUM } else { 0 };
        let head = DeliveredHead {
            sequence: object.sequence.into(),
            schema: object.schema.into(),
            flags: (flags | place_flag | checksum_flag | staged_flag(object.sequence)).into(),
            record_length: (object.record.len() as u32).into(),
            checksum: object.checksum.unwrap_or(0).into(),
            producer: object.producer.into(),
            segment: segment.into(),
            slot: slot.into(),
            length: object.length.into(),
            holding: holding.into(),
            rest: object.rest.into(),
        };
        fx.reply(
            client,
            request,
            &Reply::Delivered {
                head,
                record: &object.record,
                inline: &object.inline,
            },
        );
    }
}

/// The description of a segment for its client.
pub(in crate::core) fn segment_head(grant: SegmentGrant, writable: bool) -> SegmentHead {
    SegmentHead {
        segment: grant.segment.into(),
        writable: u32::from(writable).into(),
        bytes: grant.bytes.into(),
        slot_bytes: grant.slot_bytes.into(),
    }
}
