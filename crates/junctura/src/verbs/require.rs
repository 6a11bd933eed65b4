//! Saying early what will be wanted: what matches stays until it was received through the requirement and released.

use std::sync::Arc;
use std::time::Duration;

use junctura_model::{Code, Error, Result};
use junctura_wire::{Request, body};

use crate::awaiting::{Awaited, WaitSource};
use crate::connection::in_flight::ServerMessage;
use crate::connection::stream::ServerStream;
use crate::connection::{PoolConnection, unexpected};
use crate::object::Object;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::target::Target;
use crate::verbs::demand::{DemandOptions, DemandThrough, begin_demand, demand};
use crate::verbs::follow::{self, Follow, FollowOptions, Gap, milliseconds};

/// Which versions of a key a requirement is owed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// Every one.
    #[default]
    All,
    /// One until a newer one comes.
    Newest,
}

/// What happens when a requirement keeps more than there is room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// Offers wait for its readers, for as long as these release something now and then.
    #[default]
    Wait,
    /// It is broken: its readers are told in a gap what they will not get, and nobody waits for them.
    Break {
        /// Bytes that it may keep though nothing else keeps them; `None`: any, until somebody waits for memory.
        quota: Option<u64>,
    },
}

/// How to require, where it is not the default.
#[derive(Clone, Debug, Default)]
pub struct RequireOptions {
    /// Which versions of each key are kept.
    pub versions: Versions,
    /// A name, for a requirement that outlives its client: up to 128 ASCII letters, digits and `._+:-/`.
    pub name: Option<String>,
    /// How long one with a name stands while no client uses it; `None`: until it is retracted. Counted in milliseconds.
    pub time_to_live: Option<Duration>,
    /// What happens when there is no room for what it keeps.
    pub on_full: OnFull,
    /// For how long its readers may release nothing while others wait for memory that it keeps, before it is broken; `None`:
    /// as long as the pool says, usually a minute. Counted in milliseconds.
    pub stuck_after: Option<Duration>,
    /// One with a name is a consumer group ([`Group`](crate::Group)): any number of follows share what it is owed.
    pub group: bool,
}

/// Where an object lies in a store, as whoever archived it tells the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedLocation {
    /// The number of its version in this incarnation ([`Object::version`]).
    pub sequence: u64,
    /// Where it lies, for people and other programs: usually a URI and a range of bytes.
    pub location: String,
}

/// A requirement. Dropping one without a name retracts it; dropping one with a name ends this client's use of it.
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
/// // What was taken away by force is told.
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
    /// Requires everything that matches a selector, from what is visible now on: it cannot go before it was received through
    /// this requirement and released.
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
    /// `InvalidSelector`, pointing at the character; `LimitExceeded` for one selector too many of those that only say `~`, `!=` or
    /// `not`: each offer is checked against them.
    pub fn require(&self, selector: &str) -> Result<Requirement> {
        self.require_with(selector, RequireOptions::default())
    }

    /// As [`Pool::require`], with options. One with a name that stands already is joined.
    ///
    /// One with a name belongs to nobody: it stands when its maker is gone, until [`Pool::retract`], or until its time to live
    /// has passed since a client last used it. A client uses it while it has a [`Requirement`] of it, follows or waits through
    /// it, or holds what came through it. What a client that died had received and not released is owed again.
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
    /// One that keeps others waiting for memory is *broken*: stuck, since its readers have released nothing for a while, or
    /// made to break ([`RequireOptions::on_full`]). Its readers hold what they hold; the rest is a gap, reason `broken`, and so
    /// is what comes until they release something, or follow or demand through it again. All who subscribe are told.
    ///
    /// # Errors
    /// Also `Conflict` where the name stands on other terms, and says which; `InvalidArgument` for a name with other
    /// characters, a length of time of 0, or a time to live or a group without a name; `LimitExceeded` where the pool has as many as it
    /// keeps.
    pub fn require_with(&self, selector: &str, options: RequireOptions) -> Result<Requirement> {
        self.begin_require(selector, options)?.wait()
    }

    /// As [`Pool::require_with`], without waiting. The requirement stands from the moment at which the server reads of it. See [`Pending`].
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "options come last, by value, with every verb"
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

    /// Ends a requirement that has a name, whoever made it; gives the number of objects that it was still owed. Its reader's
    /// follow ends.
    ///
    /// ```
    /// # use junctura::{Pool, RequireOptions};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let named = RequireOptions { name: Some("archive".to_owned()), ..RequireOptions::default() };
    /// pool.require_with("", named)?;
    /// pool.offer([("name", "a")], b"")?;
    /// assert_eq!(pool.retract("archive")?, 1); // so many it was still owed
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` where there is none of this name.
    pub fn retract(&self, name: &str) -> Result<u64> {
        self.begin_retract(name)?.wait()
    }

    /// As [`Pool::retract`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Pool::retract`] come with the answer.
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
    /// What it requires.
    #[must_use]
    pub fn selector(&self) -> &str {
        &self.selector
    }

    /// Its name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The newest sequence number when it began, or was joined.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Says that objects which were received through it, and are still held, lie in a store: durable offers of them return, and
    /// those who subscribe are told. Gives how many it was still owed of them. Release them afterwards.
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
    /// assert_eq!(events.next_event()?.expect("it goes on").reason, "the disk is full");
    /// assert_eq!(events.next_event()?.expect("it goes on").location.as_deref(), Some("file:///archive/a"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a requirement without a name; `NotFound` when it was retracted.
    pub fn archived(&self, objects: &[ArchivedLocation]) -> Result<u64> {
        let objects = objects.iter().map(|object| body::ArchivedObject {
            sequence: object.sequence,
            location: object.location.as_str().into(),
        });
        self.say_archived(objects.collect(), None)
    }

    /// Says that objects of these sequence numbers could not be put into a store, and why: durable offers of them fail, and those who
    /// subscribe are told. They stay, until they are archived and released. Gives how many it was still owed of them.
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
            let cause = "what is archived is told through a requirement with a name";
            return Err(Error::new(Code::InvalidArgument, "requirement", cause));
        };
        let request = Request::Archived(body::ArchivedBody {
            requirement: name.as_str().into(),
            objects,
            failure: failure.map(Into::into),
        });
        self.connection.begin_count(&request)?.wait()
    }

    /// Receives everything that it requires; of a group, a share of it.
    ///
    /// # Errors
    /// `Conflict` where another follow reads it.
    pub fn follow(&self) -> Result<Follow> {
        self.follow_with(FollowOptions::default())
    }

    /// As [`Requirement::follow`], with options.
    ///
    /// # Errors
    /// `Conflict` where another follow reads it; `InvalidArgument` for options that choose what is given, or in which order:
    /// all that it is owed comes, in the order in which it became visible.
    pub fn follow_with(&self, options: FollowOptions) -> Result<Follow> {
        self.begin_follow(options)?.wait()
    }

    /// Receives one object through this requirement, as [`Pool::demand_with`].
    ///
    /// # Errors
    /// Also `Unsupported` through a group: which member gets which object is the group's choice; `InvalidArgument` for options that
    /// name a requirement, or ask for what is staged.
    pub fn demand<'a>(&self, target: impl Into<Target<'a>>, options: DemandOptions<'_>) -> Result<Object> {
        let through = self.through(&options)?;
        demand(&self.connection, &target.into(), options.timeout, &through)
    }

    /// As [`Requirement::follow_with`], without waiting.
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "options come last, by value, with every verb"
    )]
    pub fn begin_follow(&self, options: FollowOptions) -> Result<Pending<Follow>> {
        let through = follow::FollowThrough::Number(self.stream.number(), self.is_group);
        follow::begin_follow(&self.connection, &options, &self.selector, &through)
    }

    /// As [`Requirement::demand`], without waiting.
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
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

    /// Ends this client's use of it, as dropping it does, without waiting. One without a name is retracted.
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
    /// `Disconnected` or `Closed` when there is no server any more: then it has ended, too.
    pub fn begin_stop(&mut self) -> Result<Pending<()>> {
        self.stream.begin_stop()
    }

    /// Objects that it was owed and will not get, because somebody withdrew them by force or the
    /// requirement was broken, if any are known by now. While a
    /// follow receives through the requirement, gaps come there; for one with a name they come to a follow alone.
    ///
    /// # Errors
    /// `Closed` where somebody retracted it; `Disconnected`. Nothing comes after an error.
    pub fn try_gap(&mut self) -> Result<Option<Gap>> {
        if self.stream.is_over() {
            return Ok(None);
        }
        let letter = self.stream.try_next();
        self.come(letter)
    }

    /// As [`Requirement::try_gap`], of what has been read.
    #[cfg(feature = "async")]
    pub(crate) fn take_gap(&mut self) -> Result<Option<Gap>> {
        if self.stream.is_over() {
            return Err(Error::new(Code::Closed, self.selector(), "the requirement has ended"));
        }
        let letter = self.stream.take();
        self.come(letter)
    }

    /// What has come. Nothing comes after an error.
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

    /// Gives it up, for all who use it: what only it kept may go.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn retract(self) -> Result<()> {
        self.begin_retract()?.wait()
    }

    /// As [`Requirement::retract`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_retract(mut self) -> Result<Pending<()>> {
        let Some(name) = &self.name else {
            return self.stream.begin_stop();
        };
        let retracted = begin_retract(&self.connection, name)?;
        Ok(retracted.then(move |retracted| {
            let stopped = self.stream.begin_stop()?;
            Ok(stopped.map(move |stopped| match retracted {
                // Another client was faster.
                Err(error) if error.code() == Code::NotFound => stopped,
                retracted => stopped.and(retracted.map(drop)),
            }))
        }))
    }
}

impl Awaited for Requirement {
    /// A gap, or its end.
    fn awaiting(&self) -> WaitSource {
        self.stream.awaiting()
    }
}
