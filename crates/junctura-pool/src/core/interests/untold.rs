//! News that many interests have yet to receive: a new object that they match, or an event.
//!
//! ```text
//!                         the first so many, of clients that have received all earlier news
//!   news of an object -----------------------------------------------------------------------> told at once
//!                     '-- the others --> the queue of their client --so many in each tick----> told
//! ```
//! Each client has a queue of its own, so that a client with very many interests delays only itself, and every interest
//! receives its news in their order. A queued demand has been met: it gets the object, even if the object is removed
//! before its turn; it neither times out nor is met by another object.

use std::collections::{BTreeMap, VecDeque};

use junctura_wire::body::EventBody;

use crate::core::interests::interest_id::InterestId;
use crate::core::interests::table::InterestTable;

/// News that interests have yet to receive.
pub(in crate::core) enum UntoldNews {
    /// A new object.
    Object(u32),
    /// An event about an earlier object, with its place in a store or the reason.
    Later {
        object: u32,
        event: u32,
        location: Option<String>,
        reason: String,
    },
    /// An event that is not about an object.
    Other(Box<EventBody<'static>>),
}

impl UntoldNews {
    /// Returns the object that they are about, and the event.
    pub(in crate::core) fn subject(&self) -> (Option<u32>, u32) {
        match self {
            Self::Object(object) => (Some(*object), junctura_wire::body::events::OFFERED),
            Self::Later { object, event, .. } => (Some(*object), *event),
            Self::Other(happened) => (None, happened.event),
        }
    }
}

/// News for interests of one client.
pub(in crate::core) struct ClientNews {
    pub(in crate::core) news: UntoldNews,
    /// The interests, the next last.
    pub(in crate::core) left: Vec<InterestId>,
    /// The bytes that count toward the client's limit.
    pub(in crate::core) bytes: usize,
    /// A number of its own.
    pub(in crate::core) number: u64,
}

/// The queues; see the module.
#[derive(Default)]
pub(in crate::core) struct UntoldQueues {
    pub(in crate::core) queues: BTreeMap<u32, VecDeque<ClientNews>>,
    /// The client behind this one is the next.
    last: u32,
    /// The number of the latest news.
    pub(in crate::core) newest: u64,
}

impl UntoldQueues {
    pub(in crate::core) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether a client has yet to receive earlier news.
    pub(in crate::core) fn has(&self, client: u32) -> bool {
        !self.queues.is_empty() && self.queues.contains_key(&client)
    }

    pub(in crate::core) fn len_of(&self, client: u32) -> usize {
        self.queues.get(&client).map_or(0, VecDeque::len)
    }

    pub(in crate::core) fn push(&mut self, client: u32, mut news: ClientNews) {
        self.newest += 1;
        news.number = self.newest;
        self.queues.entry(client).or_default().push_back(news);
    }

    /// Returns the new objects that interests have yet to receive.
    pub(in crate::core) fn objects(&self, interests: &InterestTable) -> BTreeMap<u32, Vec<u32>> {
        let mut objects = BTreeMap::<u32, Vec<u32>>::new();
        for news in self.queues.values().flatten() {
            if let UntoldNews::Object(object) = news.news {
                for id in news.left.iter().filter_map(|&id| interests.still(Some(id))) {
                    objects.entry(id).or_default().push(object);
                }
            }
        }
        objects
    }

    /// Returns the client whose turn it is.
    pub(in crate::core) fn next_client(&mut self) -> Option<u32> {
        let after = self
            .last
            .checked_add(1)
            .and_then(|from| self.queues.range(from..).next());
        let (&client, _) = after.or_else(|| self.queues.first_key_value())?;
        self.last = client;
        Some(client)
    }

    /// Takes the first news of a client.
    pub(in crate::core) fn take(&mut self, client: u32) -> Option<ClientNews> {
        let queue = self.queues.get_mut(&client)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&client);
        }
        first
    }

    /// Puts unfinished news back.
    pub(in crate::core) fn put_back(&mut self, client: u32, news: ClientNews) {
        self.queues.entry(client).or_default().push_front(news);
    }
}

/// The interests of each client that receive news later, while these are divided.
#[derive(Default)]
pub(in crate::core) struct LaterInterests {
    of: BTreeMap<u32, Vec<InterestId>>,
}

impl LaterInterests {
    pub(in crate::core) fn push(&mut self, client: u32, interest: InterestId) {
        self.of.entry(client).or_default().push(interest);
    }

    pub(in crate::core) fn into_clients(self) -> impl Iterator<Item = (u32, Vec<InterestId>)> {
        self.of.into_iter().map(|(client, mut left)| {
            left.reverse();
            (client, left)
        })
    }
}

/// News that interests of a client have yet to receive, for checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingNews {
    /// The number of the news.
    pub number: u64,
    /// The client of the interests.
    pub client: u32,
    /// Their requests, in the order of their turns.
    pub requests: Vec<u64>,
    /// The number of turns: an interest that has ended since takes one, too.
    pub turns: usize,
    /// The version that the news are about, if they are about an object.
    pub sequence: Option<u64>,
    /// The event: one bit of [`junctura_wire::body::events`].
    pub event: u32,
}
