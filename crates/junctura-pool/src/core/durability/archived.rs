//! Reports of archivers, and the answers of requests that wait for them.

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{ArchivedBody, WireFailure, events};

use super::{ArchiveWaiter, AwaitedTree, NOTHING_REQUIRES, UNARCHIVED};
use crate::Effects;
use crate::core::clients::client::PendingAnswer;
use crate::core::clients::requests::ClientRequests;
use crate::core::durability::DurableOffers;
use crate::core::engine::Core;
use crate::core::engine::timers::TimerEvent;
use crate::core::interests::subscribe::ArchiveState;
use crate::core::objects::object::ObjectRow;
use crate::core::objects::offer::OfferOutcome;
use crate::core::objects::table::ObjectTable;

impl Core {
    /// Takes a reader's report on objects that it holds: archived, or why not.
    pub(in crate::core) fn archived(
        &mut self,
        client: u32,
        number: u64,
        archived: &ArchivedBody<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        let exchange = &mut self.exchange;
        let requirement = exchange.asked.interests.find_named(&archived.requirement)?;
        let mut count = 0;
        for one in &archived.objects {
            let owed = exchange.asked.interests.requirement_ref(requirement);
            let Some(object) = owed.and_then(|owed| owed.object_of(one.sequence)) else {
                continue;
            };
            count += 1;
            match &archived.failure {
                None => {
                    exchange.asked.count.archived += 1;
                    exchange.objects.note_place(object, &one.location);
                    let place = ArchiveState {
                        location: Some(&one.location),
                        reason: "",
                    };
                    exchange
                        .asked
                        .tell_about_object_where(&mut exchange.objects, object, events::ARCHIVED, place, fx);
                    exchange.durability.end_durable(&mut exchange.asked, object, None, fx);
                }
                Some(reason) => {
                    exchange.asked.count.unarchived += 1;
                    let place = ArchiveState { location: None, reason };
                    exchange.asked.tell_about_object_where(
                        &mut exchange.objects,
                        object,
                        events::UNARCHIVED,
                        place,
                        fx,
                    );
                    exchange
                        .durability
                        .end_durable(&mut exchange.asked, object, Some(reason), fx);
                }
            }
        }
        fx.reply(client, number, &Reply::Done(count));
        Ok(())
    }
}

impl DurableOffers {
    /// Defers the answer to an offer whose object is visible until the object is archived, or cannot be.
    pub(in crate::core) fn await_archive(
        &mut self,
        asked: &mut ClientRequests,
        objects: &ObjectTable,
        client: u32,
        number: u64,
        taken: OfferOutcome,
        fx: &mut impl Effects,
    ) {
        if let Err(error) = self.note_durable(asked, objects, client, number, taken) {
            fx.reply(client, number, &Reply::Failed(WireFailure::from(&error)));
        }
    }

    /// # Errors
    /// `Io` when no requirement is owed it; `LimitExceeded` when the client has too many waiting requests.
    pub(in crate::core) fn note_durable(
        &mut self,
        asked: &mut ClientRequests,
        objects: &ObjectTable,
        client: u32,
        number: u64,
        taken: OfferOutcome,
    ) -> Result<()> {
        let OfferOutcome { object, sequence } = taken;
        let is_owed = |one: &ObjectRow| one.sequence == sequence && one.owed > 0;
        if !objects.get(object).is_some_and(is_owed) {
            return Err(not_archived(NOTHING_REQUIRES));
        }
        asked
            .clients
            .add_pending(client, number, PendingAnswer::Durable(AwaitedTree::Object(object)))?;
        self.waiting.insert(object, ArchiveWaiter::Offer(client, number));
        asked.limit_wait(client, number);
        Ok(())
    }

    /// Answers an offer whose object is archived, or cannot be.
    pub(in crate::core) fn end_durable(
        &mut self,
        asked: &mut ClientRequests,
        object: u32,
        failure: Option<&str>,
        fx: &mut impl Effects,
    ) {
        match self.waiting.remove(&object) {
            None => {}
            Some(ArchiveWaiter::Offer(client, number)) => {
                asked.answer_durable(client, number, failure.map(not_archived).as_ref(), fx);
            }
            Some(ArchiveWaiter::Bundle(root)) => self.note_member(root, failure),
        }
    }

    /// Answers offers whose objects cannot be archived any longer, and requests that have waited for bundles.
    pub(in crate::core) fn answer_durables(&mut self, asked: &mut ClientRequests, fx: &mut impl Effects) {
        for (client, number) in std::mem::take(&mut self.forsaken) {
            asked.answer_durable(client, number, Some(&not_archived(UNARCHIVED)), fx);
        }
        self.answer_settled(asked, fx);
    }

    pub(in crate::core) fn durable_timed_out(
        &mut self,
        asked: &mut ClientRequests,
        client: u32,
        number: u64,
        fx: &mut impl Effects,
    ) {
        let pending = asked.clients.pending(client, number);
        let Some(&PendingAnswer::Durable(awaits)) = pending else {
            return;
        };
        self.forget(client, number, awaits);
        let error = Error::new(
            Code::Timeout,
            "durability",
            match awaits {
                AwaitedTree::Object(_) => "the object is visible, and was not archived in time",
                AwaitedTree::Bundle(_) => "the bundle is visible, and was not archived in time",
            },
        );
        asked.answer_durable(client, number, Some(&error), fx);
    }
}

impl ClientRequests {
    /// Limits the wait for archiving to the timeout of the offer.
    pub(in crate::core) fn limit_wait(&mut self, client: u32, number: u64) {
        if let Some(timeout) = self.clients.get(client).and_then(|state| state.offer_timeout) {
            let timer = TimerEvent::Durable { client, number };
            self.timers
                .set(self.timers.now.saturating_add(timeout), client, number, timer);
        }
    }

    pub(in crate::core) fn answer_durable(
        &mut self,
        client: u32,
        number: u64,
        failure: Option<&Error>,
        fx: &mut impl Effects,
    ) {
        self.settle(client, number);
        match failure {
            None => fx.reply(client, number, &Reply::Done(0)),
            Some(error) => fx.reply(client, number, &Reply::Failed(WireFailure::from(error))),
        }
    }
}

fn not_archived(why: &str) -> Error {
    Error::new(
        Code::Io,
        "durability",
        format!("the object is visible, and not archived: {why}"),
    )
}
