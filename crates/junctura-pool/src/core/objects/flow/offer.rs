//! Offers: an object is received, checked, made visible as a whole, and delivered to all matching interests.

use junctura_model::{Code, Error, RecordRef, Result, SameKey, size};
use junctura_wire::Reply;
use junctura_wire::body::WireFailure;
use junctura_wire::fixed::{self, OfferHead};

use crate::Effects;
use crate::core::clients::client::milliseconds;
use crate::core::clients::requests::ClientRequests;
use crate::core::clients::table::ClientTable;
use crate::core::durability::DurableOffers;
use crate::core::engine::Core;
use crate::core::engine::timers::TimerQueue;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::flow::demand_probe::{DeclinedOffer, not_wanted};
use crate::core::interests::flow::tell::NewsTeller;
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::shortage::MemoryShortage;
use crate::core::memory::spill::TierState;
use crate::core::objects::key_table::KeyEntry;
use crate::core::objects::object::{ObjectRetention, ObjectRow, ObjectState, PayloadLocation, RetainedUntil};
use crate::core::objects::offer::{ExaminedOffer, OfferContent, OfferOutcome, OfferRefusal, WaitingOffer};
use crate::core::objects::retention_by_name::RetentionByName;
use crate::core::objects::table::ObjectTable;

impl Core {
    /// Handles an offer. An invalid offer fails at once, even where it would have to wait. `bundle` is the request of
    /// the client that has its bundle open, if the offer is for one.
    pub(in crate::core) fn offer(
        &mut self,
        client: u32,
        number: u64,
        bundle: Option<u64>,
        content: OfferContent<'_>,
        fx: &mut impl Effects,
    ) {
        let waits = self
            .exchange
            .asked
            .clients
            .get(client)
            .is_some_and(|state| !state.waiting_offers.is_empty());
        let outcome = if waits {
            let examined = self.exchange.asked.clients.examine(
                &mut self.exchange.objects,
                &self.exchange.retention,
                client,
                content,
            );
            let shortage = self
                .exchange
                .memory
                .stalled
                .shortage_of(client)
                .unwrap_or(MemoryShortage::Payload);
            examined.map_or_else(|flaw| Err(flaw.into()), |_| Err(OfferRefusal::Wait(shortage)))
        } else {
            self.exchange.take_up(client, number, bundle, content, fx)
        };
        match outcome {
            Ok(taken) => self.exchange.durability.acknowledge(
                &mut self.exchange.asked,
                &self.exchange.objects,
                (client, number, bundle),
                taken,
                content.head,
                fx,
            ),
            Err(OfferRefusal::Wait(shortage)) => {
                match self.exchange.asked.clients.wait_for_memory(
                    &mut self.exchange.asked.timers,
                    &mut self.exchange.asked.count,
                    client,
                    number,
                    bundle,
                    content,
                ) {
                    Ok(()) => self
                        .exchange
                        .memory
                        .stall(&self.exchange.asked.timers, client, shortage, fx),
                    Err(error) => self.fail(client, number, &error, fx),
                }
            }
            Err(OfferRefusal::Failed(error)) => self.fail(client, number, &error, fx),
        }
    }
}

/// Resumes offers that waited for memory, each client's in their order: as many as one event may.
pub(in crate::core) fn serve_waiting_offers(core: &mut Core, client: u32, fx: &mut impl Effects) {
    while let Some(offer) = core
        .exchange
        .asked
        .clients
        .get_mut(client)
        .and_then(|state| state.waiting_offers.pop_front())
    {
        if !core.exchange.deferred.may_serve() {
            return core.exchange.asked.clients.put_offer_back(client, offer);
        }
        let outcome = match core
            .exchange
            .take_up(client, offer.number, offer.bundle, offer.content(), fx)
        {
            Ok(taken) => Ok(taken),
            Err(OfferRefusal::Failed(error)) => Err(error),
            Err(OfferRefusal::Wait(shortage)) => {
                core.exchange.asked.clients.put_offer_back(client, offer);
                return core
                    .exchange
                    .memory
                    .stall(&core.exchange.asked.timers, client, shortage, fx);
            }
        };
        core.exchange.asked.timers.cancel(client, offer.number);
        core.exchange.asked.clients.weigh_offer_no_more(client, &offer);
        match outcome {
            Ok(taken) => {
                let now = core.exchange.asked.timers.now;
                if let Some(state) = core.exchange.asked.clients.get_mut(client) {
                    state.proceeded = now;
                }
                let waited = now.saturating_sub(offer.since);
                core.exchange.asked.flows.memory_waits.add(waited);
                core.exchange.durability.acknowledge(
                    &mut core.exchange.asked,
                    &core.exchange.objects,
                    (client, offer.number, offer.bundle),
                    taken,
                    offer.head,
                    fx,
                );
            }
            Err(error) => core.fail(client, offer.number, &error, fx),
        }
        core.exchange
            .asked
            .answer_syncs(&mut core.exchange.deferred, client, offer.syncs, fx);
    }
    core.exchange.memory.stalled.remove(client);
}

impl ObjectExchange {
    pub(in crate::core) fn take_up(
        &mut self,
        client: u32,
        number: u64,
        bundle: Option<u64>,
        content: OfferContent<'_>,
        fx: &mut impl Effects,
    ) -> std::result::Result<OfferOutcome, OfferRefusal> {
        let taken = match bundle {
            None => self.publish(client, content, fx),
            Some(bundle) => self.stage(client, number, bundle, content, fx),
        };
        if let (Ok(_), Some(state)) = (&taken, self.asked.clients.get_mut(client)) {
            state.accepted += 1;
        }
        // Before the next offer of the same event, which may have the same key.
        if self.retention.has_news() {
            self.let_unneeded_go(fx);
        }
        taken
    }

    /// Makes an object visible; if it fails, nothing has changed.
    pub(in crate::core) fn publish(
        &mut self,
        client: u32,
        content: OfferContent<'_>,
        fx: &mut impl Effects,
    ) -> std::result::Result<OfferOutcome, OfferRefusal> {
        let examined = self
            .asked
            .clients
            .examine(&mut self.objects, &self.retention, client, content)?;
        if examined.keep == ObjectRetention::Together {
            let cause = "only a member of a bundle can stay as long as the other members";
            return Err(Error::new(Code::InvalidArgument, "retention", cause).into());
        }
        let identity = examined.identity;
        self.see_off_key(identity.key, fx);
        let OfferContent { head, record, inline } = content;
        if identity.on_same_key == SameKey::Reject {
            self.bundles
                .refuse_second(&self.objects, identity.key, content, self.asked.timers.now)?;
        }
        let (schema, length) = (head.schema.get(), head.length.get());
        if head.flags.get() & fixed::IF_WANTED != 0 && self.asked.interests.count_wanting(schema, record) == 0 {
            let declined = DeclinedOffer { schema, record, length };
            self.decline(client, identity, declined, fx);
            return Err(not_wanted(&self.objects.key_text(schema, record)).into());
        }
        self.objects.may_hold_another_object()?;
        if !self.asked.interests.may_be_owed(schema, record) {
            return Err(OfferRefusal::Wait(MemoryShortage::Owed));
        }
        let place = self
            .memory
            .occupy(&mut self.objects, client, &head, head.flags.get(), inline)?;

        // Only now: the earlier tombstone of the key may have been forgotten to make room for the record.
        if let Some(earlier) = self.objects.find_key(identity.key) {
            self.supersede(earlier, fx);
        }
        self.objects.sequence += 1;
        let sequence = self.objects.sequence;
        let id = self.objects.insert_object(
            &mut self.retention,
            client,
            content,
            &examined,
            place,
            ObjectState::Visible,
        );
        self.objects[id].sequence = sequence;
        self.appear(id, examined.keep, fx);
        Ok(OfferOutcome { object: id, sequence })
    }

    /// Makes an object that has its number visible: it is indexed, counted, and delivered to matching interests.
    pub(in crate::core) fn appear(&mut self, id: u32, keep: ObjectRetention, fx: &mut impl Effects) {
        let object = &mut self.objects[id];
        object.visible_at = self.asked.timers.now;
        let (key, sequence, length, client) = (object.key, object.sequence, object.length, object.producer);
        self.objects.file_key(key, id);
        match keep {
            ObjectRetention::For(time) => {
                self.objects
                    .expire_at(self.asked.timers.now.saturating_add(time), id, sequence);
            }
            ObjectRetention::ReleasedBy(_) => self.retention.await_those_absent(&mut self.objects, id),
            ObjectRetention::UntilWithdrawn | ObjectRetention::Released(_) | ObjectRetention::Together => {}
        }
        self.objects.unindexed.push_back((id, sequence));
        self.asked.count.offered += 1;
        self.asked.count.offered_bytes += length;
        self.asked.count.visible += 1;
        self.asked.count.visible_bytes += length;
        let objects = &self.objects;
        let (object, flows) = (&objects[id], &mut self.asked.flows);
        flows.appear(object.component, object.dataset, length, || {
            objects.dataset_text(object.schema, object.record())
        });
        if let Some(state) = self.asked.clients.get_mut(client) {
            state.offered += 1;
        }
        self.announce(id, fx);
        self.memory.may_be_spilled(&mut self.objects, id);
    }

    /// Delivers a new object to all matching interests.
    pub(in crate::core) fn announce(&mut self, id: u32, fx: &mut impl Effects) {
        let mut matched = std::mem::take(&mut self.asked.interests.matched);
        matched.clear();
        let object = &self.objects[id];
        let schema = usize::from(object.schema);
        self.asked.interests.matching[schema].matches(object.record(), &mut matched);
        // Requirements are owed the object before it is delivered through them.
        if !self.asked.interests.requirements.is_empty() {
            let mut others = 0;
            for at in 0..matched.len() {
                let interest = matched[at];
                if self.asked.interests.requirement_ref(interest).is_some() {
                    self.requirement_meets(interest, id, fx);
                } else {
                    matched[others] = interest;
                    others += 1;
                }
            }
            matched.truncate(others);
        }
        NewsTeller::of(self).tell_of_object(&matched, id, fx);
        self.asked.interests.matched = matched;
    }

    /// Replaces `earlier` by a newer version of the same key.
    pub(in crate::core) fn supersede(&mut self, earlier: KeyEntry, fx: &mut impl Effects) {
        let earlier = match earlier {
            KeyEntry::Object(id) => id,
            KeyEntry::Tombstone(id) => {
                self.objects.dig_up(id);
                return;
            }
        };
        self.hide(earlier, ObjectState::Superseded);
        let object = &self.objects[earlier];
        if object.owed > 0 {
            self.objects.superseded.insert((object.key, earlier));
        }
        self.asked.count.superseded += 1;
        self.asked.tell_about_removal(&mut self.objects, earlier, fx);
        let key = self.objects[earlier].key;
        self.objects.unfile_key(key, KeyEntry::Object(earlier));
        self.drop_superseded_claims(earlier);
        self.settle(earlier, fx);
    }

    pub(in crate::core) fn offer_timed_out(&mut self, client: u32, number: u64, fx: &mut impl Effects) {
        let Some(state) = self.asked.clients.get_mut(client) else {
            return;
        };
        let waiting = &mut state.waiting_offers;
        let Some(at) = waiting.iter().position(|offer| offer.number == number) else {
            return;
        };
        let Some(offer) = waiting.remove(at) else { return };
        self.asked.clients.weigh_offer_no_more(client, &offer);
        let error = self.pool_full(offer.inline.len() as u64);
        fx.reply(client, number, &Reply::Failed(WireFailure::from(&error)));
        self.asked
            .pass_syncs_on(&mut self.deferred, client, at, offer.syncs, fx);
        self.memory.came_free = true;
    }
}

impl DurableOffers {
    /// Answers an offer; a durable one is answered again when its objects are archived.
    pub(in crate::core) fn acknowledge(
        &mut self,
        asked: &mut ClientRequests,
        objects: &ObjectTable,
        (client, number, bundle): (u32, u64, Option<u64>),
        taken: OfferOutcome,
        head: OfferHead,
        fx: &mut impl Effects,
    ) {
        fx.reply(client, number, &Reply::Offered(taken.sequence));
        if head.flags.get() & fixed::DURABLE == 0 || taken.sequence == 0 {
            return;
        }
        match bundle.and_then(|through| asked.clients.bundle_of(client, through).ok()) {
            None => self.await_archive(asked, objects, client, number, taken, fx),
            Some(bundle) => self.answer_completing(asked, (client, number), bundle, 0, fx),
        }
    }
}

impl ClientTable {
    /// Makes an offer the first that its client waits for again.
    fn put_offer_back(&mut self, client: u32, offer: WaitingOffer) {
        if let Some(state) = self.get_mut(client) {
            state.waiting_offers.push_front(offer);
        }
    }

    /// Checks whether an offer is valid, independent of the contents of the pool.
    pub(in crate::core) fn examine(
        &self,
        objects: &mut ObjectTable,
        retention: &RetentionByName,
        client: u32,
        content: OfferContent<'_>,
    ) -> Result<ExaminedOffer> {
        let OfferContent { head, record, inline } = content;
        let number = head.schema.get();
        let identity = objects.identify(number, record)?;
        check_length(head.length.get(), self.config.limits.payload_bytes)?;
        if head.flags.get() & fixed::INLINE != 0 {
            check_length(inline.len() as u64, self.config.inline_bytes_max)?;
        }
        let keep = self.keep(retention, client, &head, RecordRef::trusted(record))?;
        let component = self.get(client).map_or(0, |state| state.flow);
        Ok(ExaminedOffer {
            identity,
            keep,
            component,
        })
    }

    /// Returns the retention that an offer, or else its schema, sets; the record is one of the schema.
    pub(in crate::core) fn keep(
        &self,
        retention: &RetentionByName,
        client: u32,
        head: &OfferHead,
        record: RecordRef<'_>,
    ) -> Result<ObjectRetention> {
        let (flags, given) = (head.flags.get(), head.releases.get());
        if flags & fixed::DEFAULT_RETENTION != 0 {
            let usual = self.config.schemas[usize::from(head.schema.get())].retention_of(record);
            Ok(retention.keep(usual))
        } else if flags & fixed::FOR_A_TIME != 0 {
            if given == 0 {
                return Err(Error::new(
                    Code::InvalidArgument,
                    "retention",
                    "for no time: no consumer could receive it",
                ));
            }
            Ok(ObjectRetention::For(milliseconds(u64::from(given))))
        } else if flags & fixed::TOGETHER != 0 {
            Ok(ObjectRetention::Together)
        } else if flags & fixed::BY_CONSUMERS != 0 {
            self.consumers_of(client, given).map(ObjectRetention::ReleasedBy)
        } else if given == 0 {
            Ok(ObjectRetention::UntilWithdrawn)
        } else {
            Ok(ObjectRetention::Released(given))
        }
    }
}

impl ObjectTable {
    /// Adds an object to the table; it is not visible yet.
    pub(in crate::core) fn insert_object(
        &mut self,
        retention: &mut RetentionByName,
        client: u32,
        OfferContent { head, record, inline }: OfferContent<'_>,
        examined: &ExaminedOffer,
        place: PayloadLocation,
        state: ObjectState,
    ) -> u32 {
        let flags = head.flags.get();
        let id = self.table.insert(ObjectRow {
            key: examined.identity.key,
            dataset: examined.identity.dataset,
            sequence: 0,
            visible_at: 0,
            length: head.length.get(),
            bundle: 0,
            record: Vec::new(),
            inline: Vec::new(),
            place,
            leaving: TierState::No,
            checksum: (flags & fixed::CHECKSUM != 0).then(|| head.checksum.get()),
            producer: client,
            rest: 0,
            schema: head.schema.get(),
            component: examined.component,
            state,
            until: RetainedUntil::from(examined.keep),
            archived: None,
            departs: None,
            withdrawn_by: None,
            released_by: Vec::new(),
            holders: 0,
            owed: 0,
            watchers: 0,
            is_indexed: false,
        }) as u32;
        // Only now: data written before in other places would have to reach memory before the object could move to its
        // own place.
        self.weigh_object(record);
        let object = &mut self.table[id as usize];
        object.record = self.spare.filled(record);
        object.inline = self.spare.filled(inline);
        if let ObjectRetention::ReleasedBy(consumers) = examined.keep {
            retention.hold(consumers);
        }
        self.index_some();
        id
    }
}

impl PayloadMemory {
    /// Records the resource that the first waiting offer of a client waits for.
    pub(in crate::core) fn stall(
        &mut self,
        timers: &TimerQueue,
        client: u32,
        shortage: MemoryShortage,
        fx: &mut impl Effects,
    ) {
        if self.stalled.note(client, shortage) && shortage == MemoryShortage::Payload {
            self.recall_empty_segments(timers, fx);
        }
    }
}

/// Returns the cause of an error for a payload above the largest one.
pub(in crate::core) fn too_large(bytes: u64, limit: u64) -> String {
    format!(
        "{}; this pool takes at most {}; serve it with a larger budget, or divide the payload",
        size::exact_bytes(bytes),
        size::exact_bytes(limit)
    )
}

fn check_length(length: u64, limit: u64) -> Result<()> {
    if length <= limit {
        return Ok(());
    }
    let cause = too_large(length, limit);
    Err(Error::new(Code::TooLarge, "payload", cause))
}
