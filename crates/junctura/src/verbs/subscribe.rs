//! Subscriptions to the events of a pool, without payloads.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::version::Version;
use junctura_model::{Code, Described, Error, RecordRef, Result};
use junctura_wire::body::{SubscribeRequest, events};
use junctura_wire::{FrameKind, Reply, Request, WireFrame};

use crate::awaiting::{Awaited, WaitSource};
#[cfg(feature = "async")]
use crate::connection::TaskPlace;
use crate::connection::in_flight::ServerMessage;
use crate::connection::stream::ServerStream;
use crate::connection::{PoolConnection, unexpected};
use crate::explain::warn_of_mistakes;
use crate::iter::iterable;
use crate::pending::Pending;
use crate::pool::Pool;

/// The kinds of events.
///
/// ```
/// # use junctura::EventKind;
/// assert_eq!(EventKind::from_name("offered"), Some(EventKind::Offered));
/// assert!(EventKind::ALL.iter().all(|kind| EventKind::from_name(kind.name()) == Some(*kind)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// An object became visible.
    Offered,
    /// An object was withdrawn.
    Withdrawn,
    /// An object's retention ended.
    Expired,
    /// A client joined.
    Joined,
    /// A client left.
    Left,
    /// A version was superseded by a newer one.
    Superseded,
    /// A named requirement was created.
    Required,
    /// A named requirement was retracted.
    Retracted,
    /// The time to live of a named requirement expired.
    Lapsed,
    /// A requirement was broken because it blocked offers from memory.
    Broken,
    /// An object was not offered because no consumer wanted it.
    Declined,
    /// A client demanded an object that was not offered because no consumer had wanted it.
    Missed,
    /// A bundle became visible.
    Completed,
    /// A bundle was aborted.
    Aborted,
    /// The payload of an object was spilled to the file tier because memory was short.
    Spilled,
    /// An object was archived in a store.
    Archived,
    /// An object could not be archived; it stays in the pool.
    Unarchived,
    /// A requirement keeps others waiting, and has used half of the time after which it is broken.
    Stuck,
}

impl EventKind {
    /// All kinds, in the order of their bits on the wire.
    pub const ALL: [EventKind; 18] = [
        Self::Offered,
        Self::Withdrawn,
        Self::Expired,
        Self::Joined,
        Self::Left,
        Self::Superseded,
        Self::Required,
        Self::Retracted,
        Self::Lapsed,
        Self::Broken,
        Self::Declined,
        Self::Missed,
        Self::Completed,
        Self::Aborted,
        Self::Spilled,
        Self::Archived,
        Self::Unarchived,
        Self::Stuck,
    ];

    /// Returns its name, the same in every language.
    #[must_use]
    pub fn name(self) -> &'static str {
        events::NAMES[self as usize]
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }

    fn from_bit(bit: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.bit() == bit)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A client of the pool, as other clients see it.
///
/// ```
/// # use junctura::{EventKind, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut events = pool.subscribe("", &[EventKind::Joined])?;
/// let viewer = Pool::builder().url(pool.url()).name("viewer").open()?;
/// let event = events.next_event()?.expect("it has not ended");
/// assert_eq!(event.client.map(|peer| peer.name).as_deref(), Some("viewer"));
/// # drop(viewer);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The number that the server assigned to it.
    pub client: u32,
    /// Its name.
    pub name: String,
    /// The host on which it runs.
    pub host: String,
    /// Its process ID.
    pub pid: u32,
    /// The number of objects that it has offered so far, members of bundles included.
    pub offered: u64,
}

/// An event.
///
/// ```
/// # use junctura::{EventKind, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut events = pool.subscribe("", &[EventKind::Offered])?;
/// pool.offer([("name", "a")], b"payload")?;
/// let event = events.next_event()?.expect("it has not ended");
/// let (object, version) = event.object.expect("an offer has an object");
/// assert_eq!((object.get("name"), version.sequence, event.bytes), (Some("a"), 1, 7));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PoolEvent {
    /// Its kind.
    pub kind: EventKind,
    /// The object, and its version.
    pub object: Option<(Described, Version)>,
    /// The size of the object's payload in bytes.
    pub bytes: u64,
    /// The client that joined or left, offered the object, created or retracted the requirement, read a broken
    /// requirement, or completed or aborted the bundle.
    pub client: Option<Peer>,
    /// The requirement: its name and its selector.
    pub requirement: Option<(String, String)>,
    /// The bundle.
    pub bundle: Option<BundleNotice>,
    /// The location of the object in a store, in a form for people and other programs.
    pub location: Option<String>,
    /// The reason.
    pub reason: String,
}

/// A bundle in an event.
///
/// ```
/// # use junctura::{EventKind, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut events = pool.subscribe("", &[EventKind::Completed])?;
/// pool.bundled(|bundle| bundle.offer([("name", "a")], b"").map(drop))?;
/// let event = events.next_event()?.expect("it has not ended");
/// assert_eq!(event.bundle.expect("it is about a bundle").members, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleNotice {
    /// Its path, if it has one.
    pub path: Option<String>,
    /// The number of its members at the time of the event.
    pub members: u64,
    /// The declared number of members, if any.
    pub declared: Option<u64>,
}

/// A subscription; dropping it ends it. With the feature `async` it is a stream.
///
/// ```
/// # use junctura::{EventKind, Pool, WithdrawOptions};
/// # use std::time::Duration;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut events = pool.subscribe("", &[EventKind::Offered, EventKind::Withdrawn])?;
/// assert!(events.try_next()?.is_none() && !events.is_over());
/// pool.offer([("name", "a")], b"payload")?;
/// pool.withdraw_all("", WithdrawOptions::default())?;
/// let offered = events.next_event()?.expect("it has not ended");
/// assert_eq!((offered.kind, offered.bytes), (EventKind::Offered, 7));
/// let withdrawn = events.next_within(Duration::from_secs(10))?.expect("it has not ended");
/// assert_eq!(withdrawn.kind, EventKind::Withdrawn);
/// events.stop()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Subscription {
    pub(crate) connection: Arc<PoolConnection>,
    stream: ServerStream,
    #[cfg(feature = "async")]
    pub(crate) place: TaskPlace,
}

impl Pool {
    /// Subscribes to events of these kinds (an empty list: all kinds), for objects that match a selector. Events of
    /// clients, requirements and bundles are independent of the selector. Blocks until the server has answered.
    ///
    /// ```
    /// # use junctura::{EventKind, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let mut events = pool.subscribe("space=demo", &[EventKind::Offered])?;
    /// pool.offer([("space", "demo"), ("name", "first")], b"bytes")?;
    /// let event = events.next_event()?.expect("it has not ended");
    /// assert_eq!((event.kind, event.bytes), (EventKind::Offered, 5));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`, with the position of the invalid character; `LimitExceeded` if the pool has too many
    /// selectors that consist only of `~`, `!=` or `not`: each offer is compared with all these selectors.
    pub fn subscribe(&self, selector: &str, kinds: &[EventKind]) -> Result<Subscription> {
        let subscription = self.begin_subscribe(selector, kinds)?.wait()?;
        warn_of_mistakes(self, selector);
        Ok(subscription)
    }

    /// Non-blocking version of [`Pool::subscribe`]. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_subscribe(&self, selector: &str, kinds: &[EventKind]) -> Result<Pending<Subscription>> {
        let request = request(selector, kinds);
        self.connection()?
            .begin_stream(&request, |connection, stream, _| Subscription {
                connection: Arc::clone(connection),
                stream,
                #[cfg(feature = "async")]
                place: TaskPlace::default(),
            })
    }
}

fn request<'a>(selector: &'a str, kinds: &[EventKind]) -> Request<'a> {
    let bits = kinds.iter().fold(0, |bits, kind| bits | kind.bit());
    let events = if kinds.is_empty() { events::ALL } else { bits };
    Request::Subscribe(SubscribeRequest {
        selector: selector.into(),
        events,
    })
}

impl Subscription {
    /// Returns the next event; `None` if the subscription has ended. Blocks until there is one.
    ///
    /// # Errors
    /// `LimitExceeded` if events arrived faster than they were read and some were lost; `Disconnected`. The
    /// subscription ends after an error, unless that is `Interrupted`.
    pub fn next_event(&mut self) -> Result<Option<PoolEvent>> {
        self.next_until(None)
    }

    /// Returns the next event. Blocks for at most `timeout`.
    ///
    /// # Errors
    /// As [`Subscription::next_event`]; also `Timeout` if there was none in time.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<PoolEvent>> {
        self.next_until(Instant::now().checked_add(timeout))
    }

    /// Returns the next event if one has arrived. Does not block.
    ///
    /// # Errors
    /// As [`Subscription::next_event`].
    pub fn try_next(&mut self) -> Result<Option<PoolEvent>> {
        if self.stream.is_over() {
            return Ok(None);
        }
        let letter = self.stream.try_next();
        self.come(letter)
    }

    /// Returns the next event if it has been read, as [`Pending::take`]. `None`: none has been read, or the
    /// subscription has ended ([`Subscription::is_over`]).
    pub(crate) fn take_next(&mut self) -> Result<Option<PoolEvent>> {
        let letter = self.stream.take();
        self.come(letter)
    }

    /// Ends the subscription after an error, other than one of a task's wait.
    #[cfg(feature = "async")]
    pub(crate) fn fuse<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.stream.fuse(outcome)
    }

    /// Returns whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stream.is_over()
    }

    /// Non-blocking version of [`Subscription::stop`].
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut events = pool.subscribe("", &[])?;
    /// events.begin_stop()?.wait()?;
    /// assert!(events.is_over());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; the subscription has then ended, too.
    pub fn begin_stop(&mut self) -> Result<Pending<()>> {
        self.stream.begin_stop()
    }

    /// Ends the subscription.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; the subscription has then ended, too.
    pub fn stop(mut self) -> Result<()> {
        self.stream.stop()
    }

    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<PoolEvent>> {
        if self.stream.is_over() {
            return Ok(None);
        }
        let too_late = || Error::new(Code::Timeout, "subscription", "nothing happened in time");
        let letter = self.stream.next(deadline);
        let letter = letter.and_then(|letter| letter.ok_or_else(too_late));
        self.come(letter.map(Some))
    }

    /// Handles a message. After an error there are no more events.
    fn come(&mut self, letter: Result<Option<ServerMessage>>) -> Result<Option<PoolEvent>> {
        let event = letter.and_then(|letter| letter.map_or(Ok(None), |letter| self.event(letter)));
        self.stream.fuse(event)
    }

    fn event(&self, letter: ServerMessage) -> Result<Option<PoolEvent>> {
        match letter {
            ServerMessage::Event(body) => PoolEvent::read(&self.connection, &body).map(Some),
            ServerMessage::Ended(error) if error.code() == Code::Closed => Ok(None),
            ServerMessage::Ended(error) | ServerMessage::Failed(error) => Err(error),
            _ => Err(unexpected("in a subscription")),
        }
    }
}

impl Awaited for Subscription {
    fn awaiting(&self) -> WaitSource {
        self.stream.awaiting()
    }
}

iterable!(Subscription, PoolEvent, next_event);

impl PoolEvent {
    fn read(connection: &PoolConnection, body: &[u8]) -> Result<Self> {
        let frame = WireFrame {
            kind: FrameKind::Event as u8,
            descriptors: 0,
            request: 0,
            body,
        };
        let Reply::Event(happened) = Reply::decode(&frame)? else {
            return Err(unexpected("no event"));
        };
        let kind = EventKind::from_bit(happened.event).ok_or_else(|| unexpected("an unknown kind of event"))?;
        let object = match happened.object {
            None => None,
            Some(name) => {
                let schema = connection.known_schema(name.schema)?;
                Some((
                    Described::new(schema, RecordRef::trusted(&name.record).to_owned()),
                    connection.version(name.sequence),
                ))
            }
        };
        let client = happened.client.map(|peer| Peer {
            client: peer.client,
            name: peer.name.into_owned(),
            host: peer.host.into_owned(),
            pid: peer.pid,
            offered: peer.offered,
        });
        Ok(Self {
            kind,
            object,
            bytes: happened.length,
            client,
            requirement: happened
                .requirement
                .map(|it| (it.name.into_owned(), it.selector.into_owned())),
            bundle: happened.bundle.map(|it| BundleNotice {
                path: it.path.map(std::borrow::Cow::into_owned),
                members: it.members,
                declared: it.declared,
            }),
            location: happened.location.map(Into::into),
            reason: happened.reason.into_owned(),
        })
    }
}
