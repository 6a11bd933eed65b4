//! Subscriptions: events about objects and clients, without payloads.

use junctura_model::selector::SelectorSet;
use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::body::{Happened, RequirementName, Subscribe, events};

use super::Core;
use super::client::Pending;
use super::interest::Interest;
use super::object::{State, Why};
use crate::Effects;

/// One subscription.
pub(super) struct Subscription {
    pub(super) client: u32,
    pub(super) request: u64,
    pub(super) selectors: SelectorSet,
    pub(super) events: u32,
}

const REMOVALS: u32 = events::WITHDRAWN | events::EXPIRED | events::SUPERSEDED;
const OF_OTHERS: u32 = events::JOINED
    | events::LEFT
    | events::REQUIRED
    | events::RETRACTED
    | events::LAPSED
    | events::BROKEN
    | events::COMPLETED
    | events::ABORTED;

impl Core {
    pub(super) fn subscribe(
        &mut self,
        client: u32,
        request: u64,
        subscribe: &Subscribe<'_>,
        fx: &mut impl Effects,
    ) -> Result<()> {
        if subscribe.events == 0 || subscribe.events & !events::ALL != 0 {
            return Err(Error::new(
                Code::InvalidArgument,
                "events",
                format!("known are {}", events::NAMES.join(", ")),
            ));
        }
        let selectors = self.selectors(&subscribe.selector)?;
        let subscription = Subscription {
            client,
            request,
            selectors,
            events: subscribe.events,
        };
        let id = self.add_interest(
            client,
            request,
            Interest::Subscription(subscription),
            Pending::Subscription,
        )?;
        if subscribe.events & REMOVALS != 0 {
            self.removal_subscriptions += 1;
        }
        if subscribe.events & OF_OTHERS != 0 {
            self.watchers.push(id);
        }
        fx.reply(client, request, &Reply::Began(self.sequence));
        Ok(())
    }

    pub(super) fn end_subscription(&mut self, id: u32, subscription: &Subscription) {
        if subscription.events & REMOVALS != 0 {
            self.removal_subscriptions -= 1;
        }
        self.watchers.retain(|&watcher| watcher != id);
    }

    /// Something happened to an object that matches a subscription.
    pub(super) fn tell_subscription(&mut self, id: u32, object: u32, event: u32, fx: &mut impl Effects) {
        let Some(Interest::Subscription(subscription)) = self.interests.get(id as usize) else {
            return;
        };
        if subscription.events & event == 0 || self.is_overrun(id, fx) {
            return;
        }
        let Some(Interest::Subscription(subscription)) = self.interests.get(id as usize) else {
            return;
        };
        let entry = &self.objects[object as usize];
        let happened = Happened {
            event,
            object: Some(entry.name()),
            length: entry.length,
            client: self.wire_peer(entry.producer),
            reason: "".into(),
            requirement: None,
            bundle: None,
        };
        fx.reply(subscription.client, subscription.request, &Reply::Event(happened));
        self.count.events += 1;
    }

    /// An object has just left the sight of readers.
    pub(super) fn tell_about_removal(&mut self, object: u32, fx: &mut impl Effects) {
        if self.removal_subscriptions == 0 {
            return;
        }
        let entry = &self.objects[object as usize];
        let event = match entry.state {
            State::Visible | State::Staged | State::Dropped => return,
            State::Superseded => events::SUPERSEDED,
            State::Gone(Why::Withdrawn) => events::WITHDRAWN,
            State::Gone(Why::Expired) => events::EXPIRED,
        };
        let mut matched = Vec::new();
        let schema = usize::from(entry.schema);
        self.matching[schema].matches(entry.record(), &mut matched);
        for id in matched {
            self.tell_subscription(id, object, event, fx);
        }
    }

    /// A client joined or left.
    pub(super) fn tell_about_client(&mut self, client: u32, event: u32, reason: &str, fx: &mut impl Effects) {
        for id in self.watchers_of(event, fx) {
            let Some(peer) = self.wire_peer(client) else { continue };
            let happened = Happened {
                event,
                object: None,
                length: 0,
                client: Some(peer),
                reason: reason.into(),
                requirement: None,
                bundle: None,
            };
            self.count.events += u64::from(self.tell(id, happened, fx));
        }
    }

    /// A requirement with a name was made, or ends; or one is broken.
    pub(super) fn tell_about_requirement(
        &mut self,
        requirement: u32,
        event: u32,
        by: Option<u32>,
        reason: &str,
        fx: &mut impl Effects,
    ) {
        for id in self.watchers_of(event, fx) {
            let Some(about) = self.requirement_ref(requirement) else {
                continue;
            };
            let happened = Happened {
                event,
                object: None,
                length: 0,
                client: by.and_then(|client| self.wire_peer(client)),
                reason: reason.into(),
                requirement: Some(RequirementName {
                    name: about.named().map_or("", |named| &named.name).into(),
                    selector: about.selectors.text().into(),
                }),
                bundle: None,
            };
            self.count.events += u64::from(self.tell(id, happened, fx));
        }
    }

    /// A bundle became visible, or was aborted.
    pub(super) fn tell_about_bundle(
        &mut self,
        number: u64,
        event: u32,
        by: Option<u32>,
        reason: &str,
        fx: &mut impl Effects,
    ) {
        for id in self.watchers_of(event, fx) {
            let Some(bundle) = self.bundle_name(number) else {
                continue;
            };
            let happened = Happened {
                event,
                object: None,
                length: 0,
                client: by.and_then(|client| self.wire_peer(client)),
                reason: reason.into(),
                requirement: None,
                bundle: Some(bundle),
            };
            self.count.events += u64::from(self.tell(id, happened, fx));
        }
    }

    /// The subscriptions to an event that is not about an object.
    fn watchers_of(&mut self, event: u32, fx: &mut impl Effects) -> Vec<u32> {
        let mut watchers = self.watchers.clone();
        watchers.retain(|&id| match self.interests.get(id as usize) {
            Some(Interest::Subscription(subscription)) => subscription.events & event != 0 && !self.is_overrun(id, fx),
            _ => false,
        });
        watchers
    }

    pub(super) fn tell(&self, id: u32, happened: Happened<'_>, fx: &mut impl Effects) -> bool {
        let Some(Interest::Subscription(subscription)) = self.interests.get(id as usize) else {
            return false;
        };
        fx.reply(subscription.client, subscription.request, &Reply::Event(happened));
        true
    }

    /// Ends a subscription whose client does not read.
    pub(super) fn is_overrun(&mut self, id: u32, fx: &mut impl Effects) -> bool {
        let Some(Interest::Subscription(subscription)) = self.interests.get(id as usize) else {
            return true;
        };
        let (client, request) = (subscription.client, subscription.request);
        let limit = self.config.limits.event_backlog_bytes;
        if fx.backlog_bytes(client) <= limit {
            return false;
        }
        let error = Error::new(
            Code::LimitExceeded,
            "subscription",
            format!("{limit} bytes of events were not read"),
        );
        self.end_from_here(id, client, request, &error, fx);
        true
    }
}
