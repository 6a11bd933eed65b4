//! News of objects and events reach the interests that match: some at once, the others in turns of their clients.

use junctura_model::{Code, Error};
use junctura_wire::body::{BundlePeer, EventBody, PeerBody, RequirementName, events};

use crate::Effects;
use crate::core::clients::requests::ClientRequests;
use crate::core::engine::Core;
use crate::core::exchange::ObjectExchange;
use crate::core::interests::interest::StandingInterest;
use crate::core::interests::interest_id::InterestId;
use crate::core::interests::subscribe::ArchiveState;
use crate::core::interests::table::InterestTable;
use crate::core::interests::untold::{ClientNews, LaterInterests, PendingNews, UntoldNews};
use crate::core::objects::table::ObjectTable;

/// The interests of one client that receive news in one of its turns.
const PART: usize = 32;

/// Returns the news that interests have yet to receive, for checks.
#[must_use]
pub fn pending_news(core: &Core) -> Vec<PendingNews> {
    let exchange = &core.exchange;
    let request = |id: u32| exchange.asked.interests.get(id).map(StandingInterest::request);
    let pending = |client: u32, news: &ClientNews| {
        let (object, event) = news.news.subject();
        let left = news.left.iter().rev();
        PendingNews {
            number: news.number,
            client,
            requests: left
                .filter_map(|&id| exchange.asked.interests.still(Some(id)).and_then(request))
                .collect(),
            turns: news.left.len(),
            sequence: object.and_then(|id| exchange.objects.get(id)).map(|one| one.sequence),
            event,
        }
    };
    let queues = exchange.asked.untold.queues.iter();
    queues
        .flat_map(|(&client, queue)| queue.iter().map(move |news| pending(client, news)))
        .collect()
}

/// Returns the number of the latest news that an interest had to wait for, received or not; for checks.
#[must_use]
pub fn latest_news(core: &Core) -> u64 {
    core.exchange.asked.untold.newest
}

/// Tells the interests of an exchange what they are to receive.
pub(in crate::core) struct NewsTeller<'a> {
    exchange: &'a mut ObjectExchange,
}

impl<'a> NewsTeller<'a> {
    pub(in crate::core) fn of(exchange: &'a mut ObjectExchange) -> Self {
        Self { exchange }
    }

    /// Passes a new visible object to interests: to the others in turns of their clients.
    pub(in crate::core) fn tell_of_object(&mut self, matched: &[u32], object: u32, fx: &mut impl Effects) {
        if self.exchange.asked.may_tell_at_once(matched.len()) {
            for &interest in matched {
                self.exchange.satisfy(interest, object, events::OFFERED, fx);
            }
            return;
        }
        let mut may = self.exchange.config.told_at_once.max(1);
        let mut later = LaterInterests::default();
        for &interest in matched {
            // It may have ended just now.
            if self.exchange.asked.interests.get(interest).is_none() || self.exchange.asked.interests.is_met(interest) {
                continue;
            }
            let client = self.exchange.asked.interests.standing[interest as usize].client;
            if may > 0 && !self.exchange.asked.untold.has(client) {
                may -= 1;
                self.exchange.satisfy(interest, object, events::OFFERED, fx);
            } else {
                later.push(client, self.exchange.asked.interests.refer(interest));
            }
        }
        for (client, left) in later.into_clients() {
            self.exchange.objects[object].holders += 1;
            let news = UntoldNews::Object(object);
            if let Some(refused) = self.exchange.asked.tell_later(client, news, left, fx) {
                self.let_go(&refused, fx);
            }
        }
    }

    /// Passes news of earlier events to interests: to as many as one event may.
    pub(in crate::core) fn tell_more(&mut self, fx: &mut impl Effects) {
        let mut may = self.exchange.config.told_at_once.max(1);
        while may > 0
            && let Some(client) = self.exchange.asked.untold.next_client()
        {
            let part = PART.min(may);
            may -= part - self.tell_some(client, part, fx);
        }
    }

    /// Passes news to so many interests of a client. Returns how many fewer there were.
    fn tell_some(&mut self, client: u32, mut part: usize, fx: &mut impl Effects) -> usize {
        while part > 0
            && let Some(mut news) = self.exchange.asked.untold.take(client)
        {
            while part > 0
                && let Some(interest) = news.left.pop()
            {
                self.tell_one(&news.news, interest, fx);
                part -= 1;
            }
            if news.left.is_empty() {
                self.exchange.asked.clients.weigh_asked_no_more(client, news.bytes);
                self.let_go(&news.news, fx);
            } else {
                self.exchange.asked.untold.put_back(client, news);
            }
        }
        part
    }

    fn tell_one(&mut self, news: &UntoldNews, interest: InterestId, fx: &mut impl Effects) {
        let Some(id) = self.exchange.asked.interests.still(Some(interest)) else {
            return;
        };
        self.exchange.asked.interests.standing[id as usize].untold -= 1;
        match news {
            &UntoldNews::Object(object) => self.exchange.satisfy(id, object, events::OFFERED, fx),
            UntoldNews::Later {
                object,
                event,
                location,
                reason,
            } => {
                let place = ArchiveState {
                    location: location.as_deref(),
                    reason,
                };
                self.exchange
                    .asked
                    .tell_subscription_where(&self.exchange.objects, id, *object, *event, place, fx);
            }
            UntoldNews::Other(happened) => tell_if_heard(&mut self.exchange.asked, id, happened, fx),
        }
    }

    /// Forgets news that its interests have received: they keep the object no longer.
    fn let_go(&mut self, news: &UntoldNews, fx: &mut impl Effects) {
        match *news {
            UntoldNews::Object(object) => {
                self.exchange.objects[object].holders -= 1;
                self.exchange.settle_in_turn(object, fx);
            }
            UntoldNews::Later { object, .. } => self.exchange.objects.unwatch(object),
            UntoldNews::Other(_) => {}
        }
    }

    /// Forgets so many of the news of a client that leaves.
    pub(in crate::core) fn forget(&mut self, client: u32, count: usize, fx: &mut impl Effects) {
        for _ in 0..count {
            let Some(news) = self.exchange.asked.untold.take(client) else {
                return;
            };
            self.exchange.asked.clients.weigh_asked_no_more(client, news.bytes);
            self.let_go(&news.news, fx);
        }
    }
}

impl ClientRequests {
    /// Whether so many interests receive news at once.
    pub(in crate::core) fn may_tell_at_once(&self, interests: usize) -> bool {
        interests <= self.config.told_at_once && self.untold.is_empty()
    }

    /// Queues news for interests of a client. Returns the news if the client has too many, and is disconnected.
    #[must_use]
    fn tell_later(
        &mut self,
        client: u32,
        news: UntoldNews,
        left: Vec<InterestId>,
        fx: &mut impl Effects,
    ) -> Option<UntoldNews> {
        let bytes = size_of::<ClientNews>() + left.capacity() * size_of::<InterestId>();
        if self.clients.weigh_asked(client, bytes).is_err() {
            let cause =
                "its interests have not received too many objects and events; it has too many that match the same";
            fx.disconnect(client, &Error::new(Code::LimitExceeded, "client", cause));
            return Some(news);
        }
        for interest in &left {
            self.interests.standing[interest.number as usize].untold += 1;
        }
        self.untold.push(
            client,
            ClientNews {
                news,
                left,
                bytes,
                number: 0,
            },
        );
        None
    }

    /// Sends an event about an object to the subscriptions among interests: to the others in turns of their clients.
    pub(in crate::core) fn tell_subscriptions(
        &mut self,
        objects: &mut ObjectTable,
        matched: &[u32],
        (object, event): (u32, u32),
        place: ArchiveState<'_>,
        fx: &mut impl Effects,
    ) {
        if self.may_tell_at_once(matched.len()) {
            for &id in matched {
                self.tell_subscription_where(objects, id, object, event, place, fx);
            }
            return;
        }
        let mut may = self.config.told_at_once.max(1);
        let mut later = LaterInterests::default();
        for &id in matched {
            if !self.interests.is_subscribed(id, event) {
                continue;
            }
            let client = self.interests.standing[id as usize].client;
            if may > 0 && !self.untold.has(client) {
                may -= 1;
                self.tell_subscription_where(objects, id, object, event, place, fx);
            } else {
                later.push(client, self.interests.refer(id));
            }
        }
        for (client, left) in later.into_clients() {
            objects[object].watchers += 1;
            let news = UntoldNews::Later {
                object,
                event,
                location: place.location.map(str::to_owned),
                reason: place.reason.to_owned(),
            };
            if self.tell_later(client, news, left, fx).is_some() {
                objects[object].watchers -= 1;
            }
        }
    }
}

/// Sends an event that is not about an object to those of these subscriptions that are for it: to the others in turns
/// of their clients.
pub(in crate::core) fn tell_all(
    asked: &mut ClientRequests,
    watchers: &[u32],
    happened: &EventBody<'static>,
    fx: &mut impl Effects,
) {
    let mut may = asked.config.told_at_once.max(1);
    let mut later = LaterInterests::default();
    for &id in watchers {
        if !asked.interests.is_subscribed(id, happened.event) {
            continue;
        }
        let client = asked.interests.standing[id as usize].client;
        if may > 0 && !asked.untold.has(client) {
            may -= 1;
            tell_if_heard(asked, id, happened, fx);
        } else {
            later.push(client, asked.interests.refer(id));
        }
    }
    for (client, left) in later.into_clients() {
        let news = UntoldNews::Other(Box::new(happened.clone()));
        _ = asked.tell_later(client, news, left, fx);
    }
}

fn tell_if_heard(asked: &mut ClientRequests, id: u32, happened: &EventBody<'_>, fx: &mut impl Effects) {
    if asked.hears(id, happened.event, fx) {
        asked.count.events += u64::from(asked.interests.tell(id, happened.clone(), fx));
    }
}

impl InterestTable {
    /// Whether a demand has been met, and has yet to get its object.
    pub(in crate::core) fn is_met(&self, id: u32) -> bool {
        self.standing[id as usize].untold > 0 && matches!(self.get(id), Some(StandingInterest::Demand(_)))
    }

    /// Whether an interest has yet to receive news.
    pub(in crate::core) fn is_behind(&self, id: u32) -> bool {
        self.standing[id as usize].untold > 0
    }

    /// Returns the number of objects that a follow has yet to receive: its queue, and news of visible objects.
    pub(in crate::core) fn yet_to_receive(&self, id: u32) -> usize {
        let untold = self.standing[id as usize].untold as usize;
        self.following_ref(id)
            .map_or(0, |following| following.queued() + untold)
    }

    fn is_subscribed(&self, id: u32, event: u32) -> bool {
        matches!(self.get(id), Some(StandingInterest::Subscription(subscription)) if subscription.events & event != 0)
    }
}

/// Returns an event that is not about an object, without borrows.
pub(in crate::core) fn owned_event(happened: EventBody<'_>) -> EventBody<'static> {
    let owned = |text: std::borrow::Cow<'_, str>| std::borrow::Cow::Owned(text.into_owned());
    EventBody {
        event: happened.event,
        object: None,
        length: happened.length,
        client: happened.client.map(|peer| PeerBody {
            client: peer.client,
            name: owned(peer.name),
            host: owned(peer.host),
            pid: peer.pid,
            offered: peer.offered,
        }),
        reason: owned(happened.reason),
        requirement: happened.requirement.map(|one| RequirementName {
            name: owned(one.name),
            selector: owned(one.selector),
        }),
        bundle: happened.bundle.map(|one| BundlePeer {
            path: one.path.map(owned),
            members: one.members,
            declared: one.declared,
        }),
        location: happened.location.map(owned),
    }
}
