//! Events for subscriptions.

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{BundlePeer, EventBody, RequirementName, SubscribeRequest, events};

use crate::Effects;
use crate::core::clients::client::PendingAnswer;
use crate::core::clients::requests::ClientRequests;
use crate::core::interests::flow::tell::{owned_event, tell_all};
use crate::core::interests::interest::StandingInterest;
use crate::core::interests::subscribe::{ArchiveState, LATER, SubscriptionState};
use crate::core::memory::weight::FAIR_BYTES;
use crate::core::objects::object::{ObjectState, RemovalReason};
use crate::core::objects::table::ObjectTable;

const OF_OTHERS: u32 = events::JOINED
    | events::LEFT
    | events::REQUIRED
    | events::RETRACTED
    | events::LAPSED
    | events::BROKEN
    | events::STUCK
    | events::COMPLETED
    | events::ABORTED;

/// The subject of an event that is not about an object.
enum EventSubject<'a> {
    Client(u32),
    Requirement(u32),
    Bundle(BundlePeer<'a>),
}

impl ClientRequests {
    pub(in crate::core) fn subscribe(
        &mut self,
        objects: &ObjectTable,
        client: u32,
        request: u64,
        subscribe: &SubscribeRequest<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        if subscribe.events == 0 || subscribe.events & !events::ALL != 0 {
            return Err(Error::new(
                Code::InvalidArgument,
                "events",
                format!("known are {}", events::NAMES.join(", ")),
            ));
        }
        let selectors = self.interests.selectors(&subscribe.selector)?;
        let subscription = SubscriptionState {
            client,
            request,
            selectors,
            events: subscribe.events,
        };
        let id = self.add_interest(
            client,
            request,
            StandingInterest::Subscription(subscription),
            PendingAnswer::Subscription,
        )?;
        if subscribe.events & LATER != 0 {
            self.interests.later_subscriptions += 1;
        }
        if subscribe.events & OF_OTHERS != 0 {
            self.interests.watchers.insert(id);
        }
        fx.reply(client, request, &Reply::Began(objects.sequence));
        Ok(())
    }

    /// Sends an event of a matching object to a subscription.
    pub(in crate::core) fn tell_subscription(
        &mut self,
        objects: &ObjectTable,
        id: u32,
        object: u32,
        event: u32,
        fx: &mut impl Effects,
    ) {
        self.tell_subscription_where(objects, id, object, event, ArchiveState::default(), fx);
    }

    pub(in crate::core) fn tell_subscription_where(
        &mut self,
        objects: &ObjectTable,
        id: u32,
        object: u32,
        event: u32,
        place: ArchiveState<'_>,
        fx: &mut impl Effects,
    ) {
        if !self.hears(id, event, fx) {
            return;
        }
        let entry = &objects[object];
        let happened = EventBody {
            event,
            object: Some(entry.name()),
            length: entry.length,
            client: self.clients.wire_peer(entry.producer),
            location: place.location.map(Into::into),
            reason: place.reason.into(),
            ..EventBody::default()
        };
        self.count.events += u64::from(self.interests.tell(id, happened, fx));
    }

    /// Sends the event of an object that was just hidden from readers.
    pub(in crate::core) fn tell_about_removal(
        &mut self,
        objects: &mut ObjectTable,
        object: u32,
        fx: &mut impl Effects,
    ) {
        let entry = &objects[object];
        let event = match entry.state {
            ObjectState::Visible | ObjectState::Staged | ObjectState::Dropped => return,
            ObjectState::Superseded => events::SUPERSEDED,
            ObjectState::Gone(RemovalReason::Withdrawn) => events::WITHDRAWN,
            ObjectState::Gone(RemovalReason::Expired | RemovalReason::Archived) => events::EXPIRED,
        };
        if entry.state != ObjectState::Gone(RemovalReason::Archived) {
            return self.tell_about_object(objects, object, event, fx);
        }
        let location = entry.archived.as_ref().and_then(|archived| archived.place.clone());
        let place = ArchiveState {
            location: location.as_deref(),
            reason: "evicted: it is archived, and memory was short",
        };
        self.tell_about_object_where(objects, object, event, place, fx);
    }

    /// Sends an event of an earlier object.
    pub(in crate::core) fn tell_about_object(
        &mut self,
        objects: &mut ObjectTable,
        object: u32,
        event: u32,
        fx: &mut impl Effects,
    ) {
        self.tell_about_object_where(objects, object, event, ArchiveState::default(), fx);
    }

    /// Sends the same event with the object's place in a store, or the reason why it is not archived.
    pub(in crate::core) fn tell_about_object_where(
        &mut self,
        objects: &mut ObjectTable,
        object: u32,
        event: u32,
        place: ArchiveState<'_>,
        fx: &mut impl Effects,
    ) {
        if self.interests.later_subscriptions == 0 {
            return;
        }
        let entry = &objects[object];
        let mut matched = Vec::new();
        let schema = usize::from(entry.schema);
        self.interests.matching[schema].matches(entry.record(), &mut matched);
        self.tell_subscriptions(objects, &matched, (object, event), place, fx);
    }

    /// Sends the event that a client joined or left; a client that was never admitted has none.
    pub(in crate::core) fn tell_about_client(&mut self, client: u32, event: u32, reason: &str, fx: &mut impl Effects) {
        self.tell_watchers(event, Some(client), reason, &EventSubject::Client(client), fx);
    }

    /// Sends the event that a named requirement was made or ends, or that one is broken.
    pub(in crate::core) fn tell_about_requirement(
        &mut self,
        requirement: u32,
        event: u32,
        by: Option<u32>,
        reason: &str,
        fx: &mut impl Effects,
    ) {
        self.tell_watchers(event, by, reason, &EventSubject::Requirement(requirement), fx);
    }

    /// Sends the event that a bundle became visible, or was aborted.
    pub(in crate::core) fn tell_about_bundle(
        &mut self,
        bundle: Option<BundlePeer<'_>>,
        event: u32,
        by: Option<u32>,
        reason: &str,
        fx: &mut impl Effects,
    ) {
        if let Some(bundle) = bundle {
            self.tell_watchers(event, by, reason, &EventSubject::Bundle(bundle), fx);
        }
    }

    /// Sends an event that is not about an object to its subscriptions: the actor, the reason, and the subject.
    fn tell_watchers(
        &mut self,
        event: u32,
        by: Option<u32>,
        reason: &str,
        about: &EventSubject<'_>,
        fx: &mut impl Effects,
    ) {
        let watchers: Vec<u32> = self.interests.watchers.iter().collect();
        if !self.may_tell_at_once(watchers.len()) {
            let Some(about) = self.happened(about) else { return };
            let happened = owned_event(EventBody {
                event,
                client: by.and_then(|client| self.clients.wire_peer(client)),
                reason: reason.into(),
                ..about
            });
            return tell_all(self, &watchers, &happened, fx);
        }
        for id in watchers {
            if !self.hears(id, event, fx) {
                continue;
            }
            let Some(about) = self.happened(about) else { return };
            let happened = EventBody {
                event,
                client: by.and_then(|client| self.clients.wire_peer(client)),
                reason: reason.into(),
                ..about
            };
            self.count.events += u64::from(self.interests.tell(id, happened, fx));
        }
    }

    /// Returns the subject of an event, while it is known.
    fn happened<'a>(&'a self, about: &'a EventSubject<'_>) -> Option<EventBody<'a>> {
        match about {
            &EventSubject::Client(client) => self.clients.wire_peer(client).map(|_| EventBody::default()),
            &EventSubject::Requirement(id) => {
                let requirement = self.interests.requirement_ref(id)?;
                Some(EventBody {
                    requirement: Some(RequirementName {
                        name: requirement.named().map_or("", |named| &named.name).into(),
                        selector: requirement.selectors.text().into(),
                    }),
                    ..EventBody::default()
                })
            }
            EventSubject::Bundle(bundle) => Some(EventBody {
                bundle: Some(bundle.clone()),
                ..EventBody::default()
            }),
        }
    }

    /// Whether this is a subscription to an event, and its client reads.
    pub(in crate::core) fn hears(&mut self, id: u32, event: u32, fx: &mut impl Effects) -> bool {
        let is_asked_for = matches!(self.interests.get(id),
            Some(StandingInterest::Subscription(subscription)) if subscription.events & event != 0);
        is_asked_for && !self.is_overrun(id, fx)
    }

    /// Ends a subscription whose client does not read.
    pub(in crate::core) fn is_overrun(&mut self, id: u32, fx: &mut impl Effects) -> bool {
        let Some(StandingInterest::Subscription(subscription)) = self.interests.get(id) else {
            return true;
        };
        let (client, request) = (subscription.client, subscription.request);
        let limit = self.config.limits.event_backlog_bytes;
        let (unread, limit_of_all) = (fx.backlog_bytes(client), self.config.limits.unread_bytes);
        let cause = if unread > limit {
            format!("{limit} bytes of events were not read")
        } else if unread > FAIR_BYTES && fx.backlog_bytes_of_all() > limit_of_all {
            format!("clients have not read {limit_of_all} bytes together, {unread} by this client alone")
        } else {
            return false;
        };
        let error = Error::new(Code::LimitExceeded, "subscription", cause);
        // A subscription has no queue.
        _ = self.end_interest(id);
        self.close(client, request, &error, fx);
        true
    }
}
