//! Requirements: matching objects are retained until they were received through the requirement and released.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, Result};
use junctura_wire::{Request, body};

use crate::awaiting::{Awaited, WaitSource};
use crate::connection::in_flight::ServerMessage;
use crate::connection::stream::ServerStream;
use crate::connection::{PoolConnection, unexpected};
use crate::explain::warn_of_mistakes;
use crate::object::Object;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::target::Target;
use crate::verbs::demand::{DemandOptions, DemandThrough, begin_demand, demand};
use crate::verbs::follow::{self, Follow, FollowOptions, Gap, milliseconds};

/// Which versions of a key a requirement retains.
///
/// ```
/// # use junctura::{Pool, RequireOptions, Versions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let newest = RequireOptions { versions: Versions::Newest, ..RequireOptions::default() };
/// let state = pool.require_with("name=state", newest)?;
/// # state.retract()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// Every version.
    #[default]
    All,
    /// Each version until a newer one is visible.
    Newest,
}

/// The behavior when a requirement retains more than fits into memory.
///
/// ```
/// # use junctura::{OnFull, Pool, RequireOptions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// // A monitor that must not block the model.
/// let on_full = OnFull::Break { quota: Some(64 << 20) };
/// let monitor = pool.require_with("", RequireOptions { on_full, ..RequireOptions::default() })?;
/// # monitor.retract()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// Backpressure: offers wait for the readers of the requirement, for as long as these release objects from time to
    /// time.
    #[default]
    Wait,
    /// The requirement is broken: its readers get a gap with the objects that they missed, and offers do not wait for
    /// them.
    Break {
        /// Bytes that only this requirement may retain; `None`: no limit until an offer waits for memory.
        quota: Option<u64>,
    },
}

/// Options of a requirement.
///
/// ```
/// # use junctura::{Pool, RequireOptions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # use std::time::Duration;
/// // Outlives this client, by a day.
/// let options = RequireOptions {
///     name: Some("archive".to_owned()),
///     time_to_live: Some(Duration::from_secs(86_400)),
///     ..RequireOptions::default()
/// };
/// let archive = pool.require_with("kind=result", options)?;
/// assert_eq!(archive.name(), Some("archive"));
/// # archive.retract()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RequireOptions {
    /// Which versions of each key are retained.
    pub versions: Versions,
    /// A name, for a requirement that outlives its client: up to 128 ASCII letters, digits and `._+:-/`.
    pub name: Option<String>,
    /// Time to live of a named requirement while no client uses it; `None`: until it is retracted. Resolution:
    /// milliseconds.
    pub time_to_live: Option<Duration>,
    /// The behavior when memory for retained objects is exhausted.
    pub on_full: OnFull,
    /// How long its readers may release nothing while offers wait for memory that the requirement retains, before it is
    /// broken; `None`: as the pool is configured, usually 1 minute. Resolution: milliseconds.
    pub stuck_after: Option<Duration>,
    /// Makes a named requirement a consumer group ([`Group`](crate::Group)): any number of follows share its
    /// deliveries.
    pub group: bool,
}

/// The location of an object in a store, as reported to the pool by the client that archived it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedLocation {
    /// The number of its version in this incarnation ([`Object::version`]).
    pub sequence: u64,
    /// The location in a form for people and other programs: usually a URI and a range of bytes.
    pub location: String,
}

/// A requirement. Dropping an unnamed one retracts it; dropping a named one only ends its use by this client.
///
/// ```
/// # use junctura::{DemandOptions, FollowOptions, Item, Pool, WithdrawOptions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut requirement = pool.require("name=a/b/c")?;
/// assert_eq!((requirement.selector(), requirement.name(), requirement.sequence()), ("name=a/b/c", None, 0));
/// for name in ["a", "b", "c"] {
///     pool.offer([("name", name)], b"")?;
/// }
/// drop(requirement.demand("name=a", DemandOptions::default())?); // received and released
///
/// // A forced withdrawal is reported as a gap.
/// let force = WithdrawOptions { force: true, ..WithdrawOptions::default() };
/// pool.withdraw_all("name=b", force)?;
/// while requirement.try_gap()?.is_none() {}
///
/// // The rest, object by object; with options, at most one at a time.
/// let mut rest = requirement.follow()?;
/// assert!(matches!(rest.next_item()?, Some(Item::Object(_))));
/// rest.stop()?;
/// let one = FollowOptions { window: Some(1), ..FollowOptions::default() };
/// drop(requirement.follow_with(one)?);
/// requirement.retract()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Requirement {
    connection: Arc<PoolConnection>,
    stream: ServerStream,
    selector: String,
    name: Option<String>,
    is_group: bool,
    sequence: u64,
}

impl Pool {
    /// Requires all objects that match a selector and are visible now or later: each is retained until it was received
    /// through this requirement and released. Blocks until the server has answered.
    ///
    /// ```
    /// # use junctura::{DemandOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let requirement = pool.require("space=demo")?;
    /// pool.offer([("space", "demo"), ("name", "first")], b"bytes")?;
    /// let object = requirement.demand("name=first", DemandOptions::default())?;
    /// assert_eq!(&object[..], b"bytes");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`, with the position of the invalid character; `LimitExceeded` if the pool has too many
    /// selectors that consist only of `~`, `!=` or `not`: each offer is compared with all these selectors.
    pub fn require(&self, selector: &str) -> Result<Requirement> {
        self.require_with(selector, RequireOptions::default())
    }

    /// As [`Pool::require`], with options. If a requirement with this name exists, this call joins it.
    ///
    /// A named requirement has no owner: it outlives its creator, until [`Pool::retract`], or until its time to live
    /// has passed since its last use by a client. A client uses it while it has a [`Requirement`] for it, follows or
    /// waits through it, or holds objects received through it. Objects that a crashed client received and did not
    /// release are redelivered.
    ///
    /// ```
    /// # use junctura::{FollowOptions, Item, Pool, RequireOptions};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let options = RequireOptions {
    ///     name: Some("archive".to_owned()),
    ///     ..RequireOptions::default()
    /// };
    /// drop(pool.require_with("space=demo", options)?);
    /// pool.offer([("space", "demo"), ("name", "first")], b"bytes")?;
    ///
    /// // Whoever reads it, in any process:
    /// let options = FollowOptions {
    ///     requirement: Some("archive".to_owned()),
    ///     ..FollowOptions::default()
    /// };
    /// let mut follow = pool.follow_with("", options)?;
    /// assert!(matches!(follow.next_item()?, Some(Item::Object(_))));
    /// # drop(follow);
    /// pool.retract("archive")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The pool *breaks* a requirement that blocks others from memory: one that is stuck because its readers have
    /// released nothing for too long, or one that is configured to break ([`RequireOptions::on_full`]). Its readers
    /// keep the objects that they hold. All other objects are reported in a gap with reason `broken`, and so are later
    /// ones until its readers release an object, or follow or demand through it again. All event subscribers are
    /// notified.
    ///
    /// # Errors
    /// - `Conflict` if the name exists with other terms; the error names them
    /// - `InvalidArgument` for an invalid name, a duration of 0, or a time to live or group without a name
    /// - `LimitExceeded` if the pool has reached its limit of requirements
    /// - those of [`Pool::require`]
    pub fn require_with(&self, selector: &str, options: RequireOptions) -> Result<Requirement> {
        let requirement = self.begin_require(selector, options)?.wait()?;
        warn_of_mistakes(self, selector);
        Ok(requirement)
    }

    /// Non-blocking version of [`Pool::require_with`]. The requirement is effective from the moment at which the server
    /// reads the request. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "options are last, by value, with every verb"
    )]
    pub fn begin_require(&self, selector: &str, options: RequireOptions) -> Result<Pending<Requirement>> {
        let connection = self.connection()?;
        let request = options.request(selector);
        let text = selector.to_owned();
        let (name, is_group) = (options.name.clone(), options.group);
        connection.begin_stream(&request, move |connection, stream, sequence| Requirement {
            connection: Arc::clone(connection),
            stream,
            selector: text,
            name,
            is_group,
            sequence,
        })
    }

    /// Ends a named requirement, whichever client created it; returns the number of objects that were still
    /// outstanding. A follow of its reader ends.
    ///
    /// ```
    /// # use junctura::{Pool, RequireOptions};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let named = RequireOptions { name: Some("archive".to_owned()), ..RequireOptions::default() };
    /// pool.require_with("", named)?;
    /// pool.offer([("name", "a")], b"")?;
    /// assert_eq!(pool.retract("archive")?, 1); // number of outstanding objects
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is none with this name.
    pub fn retract(&self, name: &str) -> Result<u64> {
        self.begin_retract(name)?.wait()
    }

    /// Non-blocking version of [`Pool::retract`]. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; those of [`Pool::retract`] arrive with the answer.
    pub fn begin_retract(&self, name: &str) -> Result<Pending<u64>> {
        begin_retract(&self.connection()?, name)
    }
}

impl RequireOptions {
    fn request<'a>(&'a self, selector: &'a str) -> Request<'a> {
        let (breaks_on_full, quota_bytes) = match self.on_full {
            OnFull::Wait => (false, None),
            OnFull::Break { quota } => (true, quota),
        };
        Request::Require(body::RequireRequest {
            selector: selector.into(),
            newest_only: self.versions == Versions::Newest,
            name: self.name.as_deref().map(Into::into),
            time_to_live_ms: self.time_to_live.map(milliseconds),
            breaks_on_full,
            quota_bytes,
            stuck_after_ms: self.stuck_after.map(milliseconds),
            group: self.group,
        })
    }
}

fn begin_retract(connection: &Arc<PoolConnection>, name: &str) -> Result<Pending<u64>> {
    connection.begin_count(&Request::Retract(body::RetractRequest { name: name.into() }))
}

impl Requirement {
    /// Returns its selector.
    #[must_use]
    pub fn selector(&self) -> &str {
        &self.selector
    }

    /// Returns its name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the newest sequence number at the time when it was created or joined.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Acknowledges that objects, which were received through this requirement and are still held, have been archived
    /// in a store. Durable offers of these objects return, and event subscribers are notified. Returns how many of the
    /// objects were still outstanding. Release the objects afterwards.
    ///
    /// ```
    /// # use junctura::{ArchivedLocation, DemandOptions, EventKind, Pool, RequireOptions};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let named = RequireOptions { name: Some("archive".to_owned()), ..RequireOptions::default() };
    /// let requirement = pool.require_with("", named)?;
    /// let mut events = pool.subscribe("", &[EventKind::Archived, EventKind::Unarchived])?;
    /// pool.offer([("name", "a")], b"payload")?;
    ///
    /// let object = requirement.demand("name=a", DemandOptions::default())?;
    /// let sequence = object.version().sequence;
    /// requirement.not_archived(&[sequence], "the disk is full")?; // it is tried again
    /// requirement.archived(&[ArchivedLocation { sequence, location: "file:///archive/a".to_owned() }])?;
    /// drop(object);
    /// assert_eq!(events.next_event()?.expect("it continues").reason, "the disk is full");
    /// assert_eq!(events.next_event()?.expect("it continues").location.as_deref(), Some("file:///archive/a"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for an unnamed requirement; `NotFound` if it was retracted.
    pub fn archived(&self, objects: &[ArchivedLocation]) -> Result<u64> {
        let objects = objects.iter().map(|object| body::ArchivedObject {
            sequence: object.sequence,
            location: object.location.as_str().into(),
        });
        self.say_archived(objects.collect(), None)
    }

    /// Reports that the objects with these sequence numbers could not be archived, and why. Durable offers of these
    /// objects fail, and event subscribers are notified. The objects are retained until they are archived and released.
    /// Returns how many of the objects were still outstanding.
    ///
    /// # Errors
    /// As [`Requirement::archived`].
    pub fn not_archived(&self, sequences: &[u64], why: &str) -> Result<u64> {
        let objects = sequences.iter().map(|&sequence| body::ArchivedObject {
            sequence,
            ..body::ArchivedObject::default()
        });
        self.say_archived(objects.collect(), Some(why))
    }

    fn say_archived(&self, objects: Vec<body::ArchivedObject<'_>>, failure: Option<&str>) -> Result<u64> {
        let Some(name) = &self.name else {
            let cause = "archived objects are reported through a named requirement";
            return Err(Error::new(Code::InvalidArgument, "requirement", cause));
        };
        let request = Request::Archived(body::ArchivedBody {
            requirement: name.as_str().into(),
            objects,
            failure: failure.map(Into::into),
        });
        self.connection.begin_count(&request)?.wait()
    }

    /// Receives all objects that it requires; for a group, a share.
    ///
    /// # Errors
    /// `Conflict` if another follow reads it.
    pub fn follow(&self) -> Result<Follow> {
        self.follow_with(FollowOptions::default())
    }

    /// As [`Requirement::follow`], with options.
    ///
    /// # Errors
    /// `Conflict` if another follow reads it; `InvalidArgument` for options that select or order objects: a requirement
    /// delivers all its objects in the order in which they became visible.
    pub fn follow_with(&self, options: FollowOptions) -> Result<Follow> {
        self.begin_follow(options)?.wait()
    }

    /// Receives one object through this requirement, as [`Pool::demand_with`] does.
    ///
    /// # Errors
    /// Also `Unsupported` for a group, which assigns objects to its members itself; `InvalidArgument` for options that
    /// name a requirement or include staged objects.
    pub fn demand<'a>(&self, target: impl Into<Target<'a>>, options: DemandOptions<'_>) -> Result<Object> {
        let through = self.through(&options)?;
        demand(&self.connection, &target.into(), options.timeout, &through)
    }

    /// Non-blocking version of [`Requirement::follow_with`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "options are last, by value, with every verb"
    )]
    pub fn begin_follow(&self, options: FollowOptions) -> Result<Pending<Follow>> {
        let through = follow::FollowThrough::Number(self.stream.number(), self.is_group);
        follow::begin_follow(&self.connection, &options, &self.selector, &through)
    }

    /// Non-blocking version of [`Requirement::demand`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_demand<'a>(
        &self,
        target: impl Into<Target<'a>>,
        options: DemandOptions<'_>,
    ) -> Result<Pending<Object>> {
        let through = self.through(&options)?;
        begin_demand(&self.connection, &target.into(), options.timeout, &through)
    }

    fn through(&self, options: &DemandOptions<'_>) -> Result<DemandThrough<'static>> {
        if options.requirement.is_some() || options.incomplete {
            let cause = "through this requirement: not through another one, and nothing that is staged";
            return Err(Error::new(Code::InvalidArgument, "demand", cause));
        }
        Ok(DemandThrough::Number(self.stream.number()))
    }

    /// Ends its use by this client, as dropping it does, without blocking. An unnamed requirement is retracted.
    ///
    /// ```
    /// # use junctura::{DemandOptions, FollowOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut requirement = pool.require("")?;
    /// pool.offer([("name", "a")], b"payload")?;
    /// drop(requirement.begin_demand("name=a", DemandOptions::default())?.wait()?);
    /// drop(requirement.begin_follow(FollowOptions::default())?.wait()?);
    /// requirement.begin_stop()?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; its use has then ended, too.
    pub fn begin_stop(&mut self) -> Result<Pending<()>> {
        self.stream.begin_stop()
    }

    /// Returns the objects that the reader missed because a client withdrew them by force or the requirement was
    /// broken, if a report has arrived. Does not block. While a follow receives through the requirement, the follow
    /// gets the gaps; gaps of a named requirement are only reported to a follow.
    ///
    /// # Errors
    /// `Closed` if it was retracted; `Disconnected`. After an error there are no more gaps.
    pub fn try_gap(&mut self) -> Result<Option<Gap>> {
        if self.stream.is_over() {
            return Ok(None);
        }
        let letter = self.stream.try_next();
        self.come(letter)
    }

    /// As [`Requirement::try_gap`], from messages that have been read.
    #[cfg(feature = "async")]
    pub(crate) fn take_gap(&mut self) -> Result<Option<Gap>> {
        if self.stream.is_over() {
            return Err(Error::new(Code::Closed, self.selector(), "the requirement has ended"));
        }
        let letter = self.stream.take();
        self.come(letter)
    }

    /// Handles a message. After an error there are no more gaps.
    fn come(&mut self, letter: Result<Option<ServerMessage>>) -> Result<Option<Gap>> {
        let gap = letter.and_then(|letter| letter.map(|letter| self.gap(letter)).transpose());
        self.stream.fuse(gap)
    }

    #[cfg(feature = "async")]
    pub(crate) fn connection(&self) -> &Arc<PoolConnection> {
        &self.connection
    }

    fn gap(&self, letter: ServerMessage) -> Result<Gap> {
        match letter {
            ServerMessage::Gap(body) => Gap::read(&self.connection, &body),
            ServerMessage::Ended(error) | ServerMessage::Failed(error) => Err(error),
            _ => Err(unexpected("for a requirement")),
        }
    }

    /// Ends the requirement for all clients: objects that only this requirement retained may be removed.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn retract(self) -> Result<()> {
        self.begin_retract()?.wait()
    }

    /// Non-blocking version of [`Requirement::retract`]. See [`Pending`].
    ///
    /// # Errors
    /// As [`Requirement::retract`].
    pub fn begin_retract(mut self) -> Result<Pending<()>> {
        let Some(name) = &self.name else {
            return self.stream.begin_stop();
        };
        let retracted = begin_retract(&self.connection, name)?;
        Ok(retracted.then(move |retracted| {
            let stopped = self.stream.begin_stop()?;
            Ok(stopped.map(move |stopped| match retracted {
                // Another client retracted it first.
                Err(error) if error.code() == Code::NotFound => stopped,
                retracted => stopped.and(retracted.map(drop)),
            }))
        }))
    }
}

impl Awaited for Requirement {
    /// Waits for a gap, or for its end.
    fn awaiting(&self) -> WaitSource {
        self.stream.awaiting()
    }
}
