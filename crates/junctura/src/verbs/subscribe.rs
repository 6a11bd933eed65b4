//! Hearing what happens in a pool, without payloads.

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
use crate::iter::iterable;
use crate::pending::Pending;
use crate::pool::Pool;

/// What can happen.
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
    /// A requirement with a name was made.
    Required,
    /// A requirement with a name was retracted.
    Retracted,
    /// A requirement with a name came to the end of its time to live.
    Lapsed,
    /// A requirement was broken, since it kept others waiting for memory.
    Broken,
    /// An object was not offered, since nothing wanted it.
    Declined,
    /// Somebody demanded an object that was not offered, since nothing had wanted it.
    Missed,
    /// A bundle became visible.
    Completed,
    /// A bundle was aborted.
    Aborted,
    /// The payload of an object was written to the file tier, since memory was short, and lies there from now on.
    Spilled,
    /// An object lies in a store.
    Archived,
    /// An object could not be put into a store; it stays where it is.
    Unarchived,
}

impl EventKind {
    /// All of them, in the order of their bits on the wire.
    pub const ALL: [EventKind; 17] = [
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
    ];

    /// Its name, the same in every language.
    #[must_use]
    pub fn name(self) -> &'static str {
        events::NAMES[self as usize]
    }

    /// The kind of this name.
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

/// A client of the pool, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The number that the server gave it.
    pub client: u32,
    /// What it calls itself.
    pub name: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process.
    pub pid: u32,
}

/// Something that happened.
#[derive(Debug)]
pub struct PoolEvent {
    /// What.
    pub kind: EventKind,
    /// The object it happened to, and its version.
    pub object: Option<(Described, Version)>,
    /// Bytes of the object's payload.
    pub bytes: u64,
    /// The client that joined or left, that offered the object, that made or retracted the requirement, that read a broken
    /// one, or that completed or aborted the bundle.
    pub client: Option<Peer>,
    /// The requirement it happened to: its name and its selector.
    pub requirement: Option<(String, String)>,
    /// The bundle it happened to.
    pub bundle: Option<BundleNotice>,
    /// Where the object lies in a store, for people and other programs.
    pub location: Option<String>,
    /// Why.
    pub reason: String,
}

/// A bundle that something happened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleNotice {
    /// Its path; `None`: it has none.
    pub path: Option<String>,
    /// How many members were there.
    pub members: u64,
    /// How many make it complete, where that was said.
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
    /// Subscribes to events: of these kinds (none named: all), for objects that match a selector. Events of clients,
    /// requirements and bundles come whatever the selector says.
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
    /// `InvalidSelector`, pointing at the character; `LimitExceeded` for one selector too many of those that only say `~`, `!=` or
    /// `not`: each offer is checked against them.
    pub fn subscribe(&self, selector: &str, kinds: &[EventKind]) -> Result<Subscription> {
        self.begin_subscribe(selector, kinds)?.wait()
    }

    /// As [`Pool::subscribe`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
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
    /// The next event; waits for it. `None`: the subscription has ended.
    ///
    /// # Errors
    /// `LimitExceeded` when events came faster than they were read, and some were lost; `Disconnected`. It has ended after an error,
    /// unless that is `Interrupted`.
    pub fn next_event(&mut self) -> Result<Option<PoolEvent>> {
        self.next_until(None)
    }

    /// The next event.
    ///
    /// # Errors
    /// Also `Timeout` when none came in time.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<PoolEvent>> {
        self.next_until(Instant::now().checked_add(timeout))
    }

    /// The next event, if one has come.
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

    /// The next event, if it has been read: as [`Pending::take`]. `None`: none has, or the subscription has ended
    /// ([`Subscription::is_over`]).
    pub(crate) fn take_next(&mut self) -> Result<Option<PoolEvent>> {
        let letter = self.stream.take();
        self.come(letter)
    }

    /// Nothing comes after an error of a task's wait.
    #[cfg(feature = "async")]
    pub(crate) fn fuse<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.stream.fuse(outcome)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stream.is_over()
    }

    /// As [`Subscription::stop`], without waiting.
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
    /// `Disconnected` or `Closed` when there is no server any more: then it has ended, too.
    pub fn begin_stop(&mut self) -> Result<Pending<()>> {
        self.stream.begin_stop()
    }

    /// Ends it.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more: then it has ended, too.
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

    /// What has come. Nothing comes after an error.
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
