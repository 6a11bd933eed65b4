//! Offers into a bundle: an object comes in, is checked, and waits for the others.

use hashbrown::HashMap;
use junctura_memory::classes;
use junctura_model::{Code, Error, Result, SameKey};
use junctura_wire::fixed;

use super::{Bundle, Member};
use crate::Effects;
use crate::core::engine::Core;
use crate::core::interests::interest::Interest;
use crate::core::memory::shortage::Shortage;
use crate::core::memory::spill::Tier;
use crate::core::objects::identity::Identity;
use crate::core::objects::object::{Place, State};
use crate::core::objects::offer::{Content, Examined, Refusal, Taken};

/// Memory that nothing but the end of a bundle can free.
#[derive(Default)]
pub(super) struct Pinned {
    /// How many staged objects lie in each segment.
    segments: HashMap<u32, u32>,
    /// Bytes in the file tier.
    spilled_bytes: u64,
    /// Bytes of those segments, and of staged payloads that came inside messages.
    bytes: u64,
    pub(super) objects: u64,
    pub(super) payload_bytes: u64,
}

impl Core {
    /// Stages an object in a bundle. It has its number if that completed the bundle.
    pub(in crate::core) fn stage(
        &mut self,
        client: u32,
        request: u64,
        through: u64,
        content: Content<'_>,
        fx: &mut impl Effects,
    ) -> std::result::Result<Taken, Refusal> {
        let examined = self.examine(client, content)?;
        if content.head.flags.get() & fixed::IF_WANTED != 0 {
            let cause = "who wants a member is known when its bundle is complete";
            return Err(Error::new(Code::InvalidArgument, "if wanted", cause).into());
        }
        let number = self.clients.bundle_of(client, through)?;
        self.see_off_key(examined.identity.key, fx);
        let earlier = self.may_be_staged(number, &examined, content)?;
        let Content { head, inline, .. } = content;
        if !self.interests.may_be_owed(head.schema.get(), content.record) {
            return Err(Refusal::Wait(Shortage::Owed));
        }
        let place = match self
            .memory
            .occupy(&mut self.objects, client, &head, head.flags.get(), inline)
        {
            Err(Refusal::Wait(shortage)) => return Err(self.no_memory_to_stage(inline.len() as u64, shortage)),
            other => other?,
        };
        if let Some(earlier) = earlier {
            self.unstage(number, examined.identity.key);
            self.drop_staged(earlier, fx);
        }
        let id = self.insert_object(client, content, &examined, place, State::Staged);
        self.objects[id].bundle = number;
        let member = Member {
            object: id,
            bundle: number,
            by: (client, through),
            request,
            keep: examined.keep,
            is_durable: content.head.flags.get() & fixed::DURABLE != 0,
        };
        self.enter_bundle(examined.identity, member);
        self.complete_if_whole(number, Some(client), fx);
        let sequence = self.objects.get(id).map_or(0, |object| object.sequence);
        if sequence == 0 {
            self.show_to_lookers(id, fx);
            self.memory.may_be_spilled(&mut self.objects, id);
            // Others may wait for what only this bundle could free now.
            self.memory.came_free |= !self.memory.stalled.is_empty() || !self.memory.waiting_leases.is_empty();
        }
        Ok(Taken { object: id, sequence })
    }

    /// Whether a bundle takes an object; gives the one of the same key that it takes the place of.
    fn may_be_staged(&self, number: u64, examined: &Examined, content: Content<'_>) -> Result<Option<u32>> {
        let bundle = self.open_one(number)?;
        let members = self.bundles.get(bundle.root).map(|root| &root.members);
        let Some(members) = members else { return Ok(None) };
        let key = || self.objects.key_text(content.head.schema.get(), content.record);
        match members.get(examined.identity.key) {
            Some(member) if member.bundle == number && content.head.flags.get() & fixed::ONCE == 0 => {
                return Ok(Some(member.object));
            }
            Some(member) if member.bundle == number => {
                let cause = "it is staged in this bundle already";
                return Err(Error::new(Code::AlreadyExists, key(), cause));
            }
            Some(member) => {
                let other = self
                    .bundles
                    .get(member.bundle)
                    .map_or_else(String::new, Bundle::subject);
                let cause = format!("it is staged in {other}, which becomes visible with this one");
                return Err(Error::new(Code::Conflict, key(), cause));
            }
            None => {}
        }
        if examined.identity.on_same_key == SameKey::Reject {
            self.refuse_second(examined.identity.key, content)?;
        }
        bundle.room_for_one()?;
        let limit = self.config.limits.members_per_bundle;
        if members.len() as u64 >= limit {
            let cause = format!("{limit} objects become visible together at most");
            return Err(Error::new(Code::LimitExceeded, bundle.subject(), cause));
        }
        self.objects.may_hold_another_object()?;
        Ok(None)
    }

    fn enter_bundle(&mut self, identity: Identity, member: Member) {
        let number = member.bundle;
        let order = self.objects.order_of(member.object);
        let object = &self.objects[member.object];
        let (place, length) = (object.place, object.length);
        self.pin(place, length, true);
        if identity.on_same_key == SameKey::Reject {
            self.bundles.reserved.insert(identity.key, ());
        }
        let Some(bundle) = self.bundles.table.get_mut(&number) else {
            return;
        };
        bundle.objects += 1;
        bundle.bytes += length;
        let root = bundle.root;
        if let Some(root) = self.bundles.table.get_mut(&root) {
            root.members.insert(identity.key, member);
            // Another one of its key has the same place.
            root.sorted.extend(order.map(|order| (order, identity.key)));
        }
    }

    /// An object is not staged any more: its memory is like any other's, and its key is free.
    pub(super) fn unpin(&mut self, key: u128, member: &Member) {
        let object = &self.objects[member.object];
        let (place, length) = (object.place, object.length);
        self.pin(place, length, false);
        self.bundles.reserved.remove(key);
    }

    /// The same key was staged again: the earlier object leaves its bundle.
    fn unstage(&mut self, number: u64, key: u128) {
        let root = self.bundles.get(number).map(|bundle| bundle.root);
        let root = root.and_then(|root| self.bundles.table.get_mut(&root));
        let Some(member) = root.and_then(|root| root.members.remove(key)) else {
            return;
        };
        self.unpin(key, &member);
        if let Some(bundle) = self.bundles.table.get_mut(&number) {
            bundle.objects -= 1;
            bundle.bytes -= self.objects[member.object].length;
        }
    }

    /// A staged object will never be visible: its memory goes with the last who looks at it.
    pub(super) fn drop_staged(&mut self, id: u32, fx: &mut impl Effects) {
        self.objects[id].state = State::Dropped;
        self.await_no_more(id);
        self.settle(id, fx);
    }

    pub(in crate::core) fn pin(&mut self, place: Place, length: u64, staged: bool) {
        let pinned = &mut self.bundles.pinned;
        let add = |sum: &mut u64, bytes: u64| if staged { *sum += bytes } else { *sum -= bytes };
        add(&mut pinned.objects, 1);
        add(&mut pinned.payload_bytes, length);
        match place {
            Place::Inline => add(&mut pinned.bytes, length),
            Place::Slot { segment, .. } => {
                let bytes = self.memory.ledger.grant(segment).map_or(0, |grant| grant.bytes);
                let count = pinned.segments.entry(segment).or_default();
                if staged {
                    *count += 1;
                    pinned.bytes += if *count == 1 { bytes } else { 0 };
                } else {
                    *count -= 1;
                    if *count == 0 {
                        pinned.segments.remove(&segment);
                        pinned.bytes -= bytes;
                    }
                }
            }
            Place::File { .. } => add(&mut pinned.spilled_bytes, length),
            Place::Freed => {}
        }
    }

    fn no_memory_to_stage(&self, bytes: u64, shortage: Shortage) -> Refusal {
        match self.filled_by_bundles(bytes) {
            Some(error) => error.into(),
            None => Refusal::Wait(shortage),
        }
    }

    /// Why it is no use to wait for so many bytes: only the end of a bundle could free them.
    fn filled_by_bundles(&self, bytes: u64) -> Option<Error> {
        let pinned = &self.bundles.pinned;
        if self.objects.records_are_filled_by(pinned.objects) {
            let cause = format!(
                "{} members of bundles that are not complete take all memory for attributes, and only those could free it",
                pinned.objects
            );
            return Some(Error::new(Code::PoolFull, format!("payload of {bytes} bytes"), cause));
        }
        let taken = pinned.bytes + pinned.spilled_bytes;
        let all = self.config.budget_bytes + self.memory.tier.as_ref().map_or(0, Tier::limit_bytes);
        if taken.saturating_add(bytes) <= all {
            return None;
        }
        let cause = format!(
            "of {all} bytes, {taken} are taken by {} members of bundles that are not complete, and only those could free them",
            pinned.objects
        );
        Some(Error::new(Code::PoolFull, format!("payload of {bytes} bytes"), cause))
    }

    /// The same for a segment whose slots hold payloads of this size.
    pub(in crate::core) fn segments_filled_by_bundles(&self, payload_bytes: u64) -> Option<Error> {
        self.filled_by_bundles(classes::page_up(classes::slot_bytes(payload_bytes)))
    }

    /// Demands that take what is staged get it, if they want it.
    fn show_to_lookers(&mut self, id: u32, fx: &mut impl Effects) {
        if self.bundles.lookers.is_empty() {
            return;
        }
        let object = &self.objects[id];
        let wants = |interest: &u32| match self.interests.get(*interest) {
            Some(Interest::Demand(waiting)) => {
                let selector = waiting.selectors.of(usize::from(object.schema));
                selector.is_some_and(|selector| selector.matches(object.record()))
            }
            _ => false,
        };
        let found: Vec<u32> = self.bundles.lookers.iter().copied().filter(wants).collect();
        for interest in found {
            self.demand_meets(interest, id, fx);
        }
    }

    /// A waiting demand takes what is staged, too; or waits no more.
    pub(in crate::core) fn look_at_staged(&mut self, interest: u32, begins: bool) {
        if begins {
            self.bundles.lookers.insert(interest);
        } else {
            self.bundles.lookers.remove(&interest);
        }
    }
}

/// The flag of a delivery, or of an entry of a list, of an object that is not visible yet.
pub(in crate::core) fn staged_flag(sequence: u64) -> u16 {
    if sequence == 0 { fixed::STAGED } else { 0 }
}
