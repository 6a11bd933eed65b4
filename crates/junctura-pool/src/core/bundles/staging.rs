//! Members of an open bundle, and the memory that only its end can free.

use junctura_memory::classes;
use junctura_model::{Code, Error, Result, SameKey, command, size};
use junctura_wire::fixed;

use super::{BundleRow, BundleTable, StagedMember};
use crate::core::engine::timers::Nanoseconds;
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::shortage::MemoryShortage;
use crate::core::memory::spill::FileTier;
use crate::core::objects::identity::ObjectIdentity;
use crate::core::objects::object::PayloadLocation;
use crate::core::objects::offer::{ExaminedOffer, OfferContent, OfferRefusal};
use crate::core::objects::table::ObjectTable;

impl BundleTable {
    /// # Errors
    /// `AlreadyExists` for a key that is, was, or is about to be in the pool.
    pub(in crate::core) fn refuse_second(
        &self,
        objects: &ObjectTable,
        key: u128,
        content: OfferContent<'_>,
        now: Nanoseconds,
    ) -> Result<()> {
        let number = content.head.schema.get();
        let text = || objects.key_text(number, content.record);
        let filed = objects.find_key(key).filter(|filed| !objects.is_marker(*filed));
        let cause = if let Some(filed) = filed {
            let schema = objects.config.schemas.get(usize::from(number));
            let schema = schema.map_or("", |schema| schema.name());
            objects.why_taken(filed, now, &command::forget(&text(), schema))
        } else if self.reserve(key) {
            "an object with this key is staged in a bundle, and its schema rejects another".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(Code::AlreadyExists, text(), cause))
    }

    /// Checks whether a bundle accepts an object; returns the staged object of the same key that it replaces.
    pub(in crate::core) fn may_be_staged(
        &self,
        objects: &ObjectTable,
        number: u64,
        examined: &ExaminedOffer,
        content: OfferContent<'_>,
        now: Nanoseconds,
    ) -> Result<Option<u32>> {
        let bundle = self.open_one(number)?;
        let members = self.get(bundle.root).map(|root| &root.members);
        let Some(members) = members else { return Ok(None) };
        let key = || objects.key_text(content.head.schema.get(), content.record);
        match members.get(examined.identity.key) {
            Some(member) if member.bundle == number && content.head.flags.get() & fixed::ONCE == 0 => {
                return Ok(Some(member.object));
            }
            Some(member) if member.bundle == number => {
                let cause = "it is staged in this bundle already";
                return Err(Error::new(Code::AlreadyExists, key(), cause));
            }
            Some(member) => {
                let other = self.get(member.bundle).map_or_else(String::new, BundleRow::subject);
                let cause = format!("it is staged in {other}, which becomes visible with this one");
                return Err(Error::new(Code::Conflict, key(), cause));
            }
            None => {}
        }
        if examined.identity.on_same_key == SameKey::Reject {
            self.refuse_second(objects, examined.identity.key, content, now)?;
        }
        bundle.room_for_one()?;
        let limit = self.config.limits.members_per_bundle;
        if members.len() as u64 >= limit {
            let cause = format!("{limit} objects become visible together at most");
            return Err(Error::new(Code::LimitExceeded, bundle.subject(), cause));
        }
        objects.may_hold_another_object()?;
        Ok(None)
    }

    pub(in crate::core) fn enter_bundle(
        &mut self,
        objects: &ObjectTable,
        memory: &PayloadMemory,
        identity: ObjectIdentity,
        member: StagedMember,
    ) {
        let number = member.bundle;
        let order = objects.order_of(member.object);
        let object = &objects[member.object];
        let (place, length) = (object.place, object.length);
        self.pin(memory, place, length, true);
        if identity.on_same_key == SameKey::Reject {
            self.reserved.insert(identity.key, number);
        }
        let Some(bundle) = self.table.get_mut(&number) else {
            return;
        };
        bundle.objects += 1;
        bundle.bytes += length;
        let root = bundle.root;
        if let Some(root) = self.table.get_mut(&root) {
            root.members.insert(identity.key, member);
            // Another object of its key has the same place.
            root.sorted.extend(order.map(|order| (order, identity.key)));
        }
    }

    /// Ends the staging of an object: its memory can be freed as usual, and its key is free.
    pub(in crate::core) fn unpin(
        &mut self,
        objects: &ObjectTable,
        memory: &PayloadMemory,
        key: u128,
        member: &StagedMember,
    ) {
        let object = &objects[member.object];
        let (place, length) = (object.place, object.length);
        self.pin(memory, place, length, false);
        if self.reserved.get(key) == Some(&member.bundle) {
            self.reserved.remove(key);
        }
    }

    /// Removes a staged object from its bundle: its key was staged again.
    pub(in crate::core) fn unstage(&mut self, objects: &ObjectTable, memory: &PayloadMemory, number: u64, key: u128) {
        let root = self.get(number).map(|bundle| bundle.root);
        let root = root.and_then(|root| self.table.get_mut(&root));
        let Some(member) = root.and_then(|root| root.members.remove(key)) else {
            return;
        };
        self.unpin(objects, memory, key, &member);
        if let Some(bundle) = self.table.get_mut(&number) {
            bundle.objects -= 1;
            bundle.bytes -= objects[member.object].length;
        }
    }

    pub(in crate::core) fn pin(&mut self, memory: &PayloadMemory, place: PayloadLocation, length: u64, staged: bool) {
        let pinned = &mut self.pinned;
        let add = |sum: &mut u64, bytes: u64| if staged { *sum += bytes } else { *sum -= bytes };
        add(&mut pinned.objects, 1);
        add(&mut pinned.payload_bytes, length);
        match place {
            PayloadLocation::Inline => add(&mut pinned.bytes, length),
            PayloadLocation::Slot { segment, .. } => {
                let bytes = memory.ledger.grant(segment).map_or(0, |grant| grant.bytes);
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
            PayloadLocation::File { .. } => add(&mut pinned.spilled_bytes, length),
            PayloadLocation::Freed => {}
        }
    }

    pub(in crate::core) fn no_memory_to_stage(
        &self,
        objects: &ObjectTable,
        memory: &PayloadMemory,
        bytes: u64,
        shortage: MemoryShortage,
    ) -> OfferRefusal {
        match self.filled_by_bundles(objects, memory, bytes) {
            Some(error) => error.into(),
            None => OfferRefusal::Wait(shortage),
        }
    }

    /// Returns why waiting for so many bytes is of no use: only the end of a bundle could free them.
    pub(in crate::core) fn filled_by_bundles(
        &self,
        objects: &ObjectTable,
        memory: &PayloadMemory,
        bytes: u64,
    ) -> Option<Error> {
        if self.has_dropped() {
            return None;
        }
        let pinned = &self.pinned;
        if objects.records_are_filled_by(pinned.objects) {
            let cause = format!(
                "{} members of bundles that are not complete take all memory for attributes, and only those could free it",
                pinned.objects
            );
            return Some(Error::new(
                Code::PoolFull,
                format!("payload of {}", size::bytes(bytes)),
                cause,
            ));
        }
        let taken = pinned.bytes + pinned.spilled_bytes;
        let all = self.config.budget_bytes + memory.tier.as_ref().map_or(0, FileTier::limit_bytes);
        if taken.saturating_add(bytes) <= all {
            return None;
        }
        let cause = format!(
            "of {}, {} are taken by {} members of bundles that are not complete, and only those could free them",
            size::bytes(all),
            size::bytes(taken),
            pinned.objects
        );
        Some(Error::new(
            Code::PoolFull,
            format!("payload of {}", size::bytes(bytes)),
            cause,
        ))
    }

    /// The same for a segment with slots for payloads of this size.
    pub(in crate::core) fn segments_filled_by_bundles(
        &self,
        objects: &ObjectTable,
        memory: &PayloadMemory,
        payload_bytes: u64,
    ) -> Option<Error> {
        self.filled_by_bundles(objects, memory, classes::page_up(classes::slot_bytes(payload_bytes)))
    }
}
