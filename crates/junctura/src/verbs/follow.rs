//! Follows: all matching objects, first a snapshot, then new ones.
//!
//! ```text
//!  follow --> objects that were there, by key --> Live --> objects as they become visible … --> stop
//!               '--- Gap: what went before it could be given, in its place, at any point ---'
//! ```

mod blocking_step;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::version::{Cursor, Version};
use junctura_model::{Code, Described, Error, RecordRef, Result};
use junctura_wire::body::ListOrder;
use junctura_wire::{FrameKind, Reply, Request, WireFrame, body};

#[cfg(feature = "async")]
use crate::aio::FollowTask;
use crate::awaiting::{Awaited, WaitSource};
use crate::connection::in_flight::ServerMessage;
use crate::connection::stream::ServerStream;
use crate::connection::{PoolConnection, unexpected};
use crate::explain::warn_of_mistakes;
use crate::iter::iterable;
use crate::object::{ArrivedObject, FollowSnapshot, Object, ObjectOrigin};
use crate::pending::Pending;
use crate::pool::Pool;
use crate::store_fallback::{MergeOrder, StoreReader, StoreReplay, StoreRequest};
use crate::verbs::require::Versions;
pub use blocking_step::BlockingStep;
use blocking_step::BlockingSteps;

/// Options of a follow.
///
/// ```
/// # use junctura::{FollowOptions, Item, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "b")], b"")?;
/// pool.offer([("name", "a")], b"")?;
/// // The visible objects in the order of an attribute, then the end.
/// let order_by = Some("name".to_owned());
/// let options = FollowOptions { order_by, until_live: true, ..FollowOptions::default() };
/// let mut names = Vec::new();
/// for item in pool.follow_with("", options)? {
///     if let Item::Object(object) = item? {
///         names.push(object.get("name").unwrap_or_default().to_owned());
///     }
/// }
/// assert_eq!(names, ["a", "b"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct FollowOptions {
    /// Flow control: the number of objects that may be in flight or held at once; a reader at this limit gets no more.
    /// `None`: 256, or 8 for a member of a group, because objects in flight to one member are unavailable to the
    /// others.
    pub window: Option<u32>,
    /// The attribute by whose value the snapshot is ordered; `None`: by key.
    pub order_by: Option<String>,
    /// Continues an earlier follow with the same selector and order: the output of [`Follow::cursor`].
    pub cursor: Option<String>,
    /// Skips the snapshot: only new objects.
    pub only_new: bool,
    /// Ends the follow when it has caught up. It then has returned all objects of the snapshot, or all since its
    /// cursor, and the objects that became visible meanwhile, up to [`Item::Live`]. An object that is superseded after
    /// that moment, before its delivery, is reported in a [`Gap`], because its newer version is no longer part of the
    /// follow. A follow of a group ends when all objects of the snapshot have been delivered to any member.
    pub until_live: bool,
    /// Receives through the requirement with this name: all outstanding objects, oldest first, then new ones. Such a
    /// follow has no selector of its own.
    pub requirement: Option<String>,
    /// Receives as a member of this group, which is created if it does not exist.
    pub group: Option<Group>,
    /// Receives as an additional member of the existing group with this name, on the terms of the group. Such a follow
    /// has no selector of its own.
    pub join: Option<String>,
}

/// A consumer group: its members share the matching objects; each object is delivered to one member at a time.
///
/// A group is a named requirement: it outlives its members, its outstanding objects are retained, a withdraw waits for
/// it, and [`Pool::retract`] ends it. An object is completed when a member releases it. Objects that a member received
/// and did not release before its connection ended are redelivered to another member, marked as
/// [`Object::redelivered`].
///
/// ```
/// # use junctura::{FollowOptions, Group, Item, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let options = FollowOptions { group: Some(Group::from("workers")), ..FollowOptions::default() };
/// let mut member = pool.follow_with("kind=task", options)?;
/// pool.offer([("kind", "task"), ("name", "1")], b"")?;
/// let task = loop {
///     if let Some(Item::Object(task)) = member.next_item()? {
///         break task;
///     }
/// };
/// assert_eq!(task.get("name"), Some("1"));
/// task.release()?; // completed: no other member receives it
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name: up to 128 ASCII letters, digits and `._+:-/`.
    pub name: String,
    /// Which versions of each key it retains.
    pub versions: Versions,
    /// Its time to live while no client uses it; `None`: until it is retracted. Resolution: milliseconds.
    pub time_to_live: Option<Duration>,
}

impl From<&str> for Group {
    /// A group with this name, with every version, until it is retracted.
    fn from(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }
}

/// Default number of objects in flight or held.
const WINDOW: u32 = 256;
/// Default for a member of a group.
const WINDOW_OF_MEMBER: u32 = 8;

/// An item of a follow.
///
/// ```
/// # use junctura::{Item, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "a")], b"payload")?;
/// for item in pool.follow("")? {
///     match item? {
///         Item::Object(object) => assert_eq!(&object[..], b"payload"),
///         Item::Gap(gap) => println!("missed {} objects: {}", gap.items.len(), gap.reason),
///         Item::Live => break,
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub enum Item {
    /// A matching object.
    Object(Object),
    /// The snapshot is complete; the objects that follow are new.
    Live,
    /// Objects that were removed before their delivery.
    Gap(Gap),
}

/// A report of objects that the reader missed.
///
/// ```
/// # use junctura::{FollowOptions, GapItem, Item, Pool, Target, WithdrawOptions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "a")], b"")?;
/// pool.offer([("name", "b")], b"")?;
/// let options = FollowOptions { window: Some(1), until_live: true, ..FollowOptions::default() };
/// let follow = pool.follow_with("", options)?;
/// pool.withdraw(Target::key([("name", "b")]), WithdrawOptions::default())?; // before its delivery
/// let gap = follow.into_iter().find_map(|item| match item {
///     Ok(Item::Gap(gap)) => Some(gap),
///     _ => None,
/// });
/// let gap = gap.expect("b is missing");
/// let missed: &GapItem = &gap.items[0];
/// assert_eq!((gap.reason.as_str(), missed.object.get("name")), ("withdrawn", Some("b")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Gap {
    /// The missed objects, as far as they can be named.
    pub items: Vec<GapItem>,
    /// The number of missed objects that cannot be named.
    pub unnamed: u64,
    /// The reason: `withdrawn`, `expired`, ….
    pub reason: String,
}

/// One version of an object that the reader missed.
#[derive(Debug)]
pub struct GapItem {
    /// Its attributes.
    pub object: Described,
    /// Its version.
    pub version: Version,
}

/// A follow; dropping it ends it. Objects that it returned stay held until they are dropped themselves.
///
/// As an iterator it blocks for each item, and ends when the follow ends.
///
/// ```
/// # use junctura::{FollowOptions, Item, Pool};
/// # use std::time::Duration;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "early")], b"")?;
/// let mut follow = pool.follow("")?;
/// assert_eq!((follow.snapshot_sequence(), follow.window()), (1, 256));
/// while !follow.is_live() {
///     follow.next_item()?; // `None`: it has ended
/// }
/// assert!(follow.try_next()?.is_none() && !follow.is_over()); // no item yet
/// pool.offer([("name", "late")], b"")?;
/// let late = follow.next_within(Duration::from_secs(10))?;
/// assert!(matches!(late, Some(Item::Object(object)) if object.get("name") == Some("late")));
///
/// // A later follow, in any process, continues there.
/// let cursor = follow.cursor().map(|cursor| cursor.to_string());
/// follow.stop()?;
/// let resumed = pool.follow_with("", FollowOptions { cursor, ..Default::default() })?;
/// # Ok(())
/// # }
/// ```
pub struct Follow {
    stream: ServerStream,
    origin: Arc<ObjectOrigin>,
    snapshot: u64,
    window: u32,
    live: bool,
    last: Option<LastObject>,
    /// Objects from the store behind the pool.
    replay: Option<Box<StoreReplay>>,
    errands: BlockingSteps,
    /// The task that waits for it.
    #[cfg(feature = "async")]
    pub(crate) task: FollowTask,
}

/// The last object that was returned.
struct LastObject {
    sequence: u64,
    /// The key is needed only within the snapshot.
    first_phase: Option<Cursor>,
}

impl Pool {
    /// Follows all objects that match a selector; the empty one matches everything. Blocks until the server has
    /// answered.
    ///
    /// Each version of each object is delivered at most once, and no object between the snapshot and the new objects is
    /// missed.
    ///
    /// ```
    /// # use junctura::{Item, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("space", "demo"), ("name", "early")], b"")?;
    /// let mut follow = pool.follow("space=demo")?;
    /// pool.offer([("space", "demo"), ("name", "late")], b"")?;
    ///
    /// let mut names = Vec::new();
    /// while names.len() < 2 {
    ///     if let Some(Item::Object(object)) = follow.next_item()? {
    ///         names.push(object.get("name").map(str::to_owned));
    ///     }
    /// }
    /// assert_eq!(names, [Some("early".to_owned()), Some("late".to_owned())]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`, with the position of the invalid character; `LimitExceeded` if the pool has too many
    /// selectors that consist only of `~`, `!=` or `not`: each offer is compared with all these selectors.
    pub fn follow(&self, selector: &str) -> Result<Follow> {
        self.follow_with(selector, FollowOptions::default())
    }

    /// As [`Pool::follow`], with options.
    ///
    /// ```
    /// # use junctura::{FollowOptions, Item, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "a"), ("size", "2")], b"")?;
    /// pool.offer([("name", "b"), ("size", "1")], b"")?;
    /// let newest_first = FollowOptions { until_live: true, ..FollowOptions::default() };
    /// let objects = pool.follow_with("", newest_first)?.into_iter().filter(|item| matches!(item, Ok(Item::Object(_))));
    /// assert_eq!(objects.count(), 2); // only the snapshot
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The members of a group share the objects:
    /// ```
    /// # use junctura::{FollowOptions, Item, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let options = FollowOptions { group: Some("workers".into()), ..FollowOptions::default() };
    /// let mut first = pool.follow_with("space=demo", options)?;
    /// let joins = FollowOptions { join: Some("workers".to_owned()), ..FollowOptions::default() };
    /// let mut second = pool.follow_with("", joins)?;
    /// pool.offer([("space", "demo"), ("name", "one")], b"")?;
    /// pool.offer([("space", "demo"), ("name", "two")], b"")?;
    ///
    /// // Each gets one.
    /// let mut names = Vec::new();
    /// for member in [&mut first, &mut second] {
    ///     while let Some(item) = member.next_item()? {
    ///         let Item::Object(object) = item else { continue };
    ///         names.extend(object.get("name").map(str::to_owned));
    ///         break;
    ///     }
    /// }
    /// assert_eq!(names, ["one", "two"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - `Expired` for a cursor of another incarnation of the server, whose position is lost
    /// - `NotFound` if there is no requirement or group with the given name
    /// - `Conflict` if another follow reads the requirement, the group exists with other terms, or the name of a group
    ///   to join is that of a requirement for one reader
    /// - `InvalidArgument` for options that exclude each other
    /// - `Unsupported` for a selector together with the name of a requirement, or of a group to join
    /// - those of [`Pool::follow`]
    pub fn follow_with(&self, selector: &str, options: FollowOptions) -> Result<Follow> {
        let follow = self.begin_follow(selector, options)?.wait()?;
        warn_of_mistakes(self, selector);
        Ok(follow)
    }

    /// Non-blocking version of [`Pool::follow_with`]. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "options are last, by value, with every verb"
    )]
    pub fn begin_follow(&self, selector: &str, options: FollowOptions) -> Result<Pending<Follow>> {
        options.check(selector)?;
        let connection = self.connection()?;
        let Some(depot) = self.depot().filter(|_| options.is_plain()) else {
            return begin_follow(&connection, &options, selector, &options.through());
        };
        let behind = StoreFollow::new(depot, &connection, &options, selector)?;
        let follow = begin_follow(&connection, &behind.of_pool, selector, &FollowThrough::Nothing)?;
        Ok(follow.then(|follow| follow?.begin_behind(behind)))
    }
}

impl FollowOptions {
    /// Returns whether it uses neither a requirement nor a group, which retain outstanding objects.
    fn is_plain(&self) -> bool {
        self.requirement.is_none() && self.group.is_none() && self.join.is_none()
    }

    fn check(&self, selector: &str) -> Result<()> {
        if self.group.is_some() && self.join.is_some() {
            let cause = "a follow either names the terms of a group or joins an existing one";
            return Err(Error::new(Code::InvalidArgument, "follow", cause));
        }
        if (self.requirement.is_some() || self.join.is_some()) && !selector.is_empty() {
            return Err(takes_no_selector(selector));
        }
        Ok(())
    }

    fn through(&self) -> FollowThrough<'_> {
        match (&self.group, &self.join) {
            (Some(group), _) => FollowThrough::Group(&group.name, Some(group)),
            (None, Some(name)) => FollowThrough::Group(name, None),
            (None, None) => FollowThrough::Nothing,
        }
    }
}

fn takes_no_selector(selector: &str) -> Error {
    let cause = "a follow through a requirement receives all its objects, and takes no selector";
    Error::new(Code::Unsupported, selector, cause)
}

/// The requirement through which a follow receives, besides the one that its options name.
pub(crate) enum FollowThrough<'a> {
    Nothing,
    /// A requirement of this connection, by its number; whether it is a group.
    Number(u64, bool),
    /// A group, by its name and on these terms.
    Group(&'a str, Option<&'a Group>),
}

pub(crate) fn too_late() -> Error {
    Error::new(Code::Timeout, "follow", "nothing arrived in time")
}

/// A follow that also includes the store behind the pool.
struct StoreFollow {
    depot: Arc<StoreReader>,
    sorting: MergeOrder,
    wants: Option<StoreRequest>,
    /// The request to the pool.
    of_pool: FollowOptions,
}

impl StoreFollow {
    fn new(
        depot: &Arc<StoreReader>,
        connection: &PoolConnection,
        options: &FollowOptions,
        selector: &str,
    ) -> Result<Self> {
        let cursor: Option<Cursor> = options.cursor.as_deref().map(str::parse).transpose()?;
        let is_foreign = |cursor: &Cursor| cursor.incarnation != connection.greeting.incarnation;
        // Objects of an earlier incarnation of the server are in the store or lost.
        let of_pool = FollowOptions {
            cursor: options
                .cursor
                .clone()
                .filter(|_| !cursor.as_ref().is_some_and(is_foreign)),
            ..options.clone()
        };
        let wants = match cursor {
            _ if options.only_new => None,
            None => Some(StoreRequest::All(selector.to_owned())),
            Some(cursor) => Some(StoreRequest::After(selector.to_owned(), cursor)),
        };
        Ok(Self {
            depot: Arc::clone(depot),
            sorting: MergeOrder::new(connection.greeting.schemas.all(), options.order_by.as_deref())?,
            wants,
            of_pool,
        })
    }
}

pub(crate) fn begin_follow(
    connection: &Arc<PoolConnection>,
    options: &FollowOptions,
    selector: &str,
    through: &FollowThrough<'_>,
) -> Result<Pending<Follow>> {
    let (request, window) = request(options, selector, through)?;
    let order_by = options.order_by.clone();
    connection.begin_stream(&request, move |connection, stream, snapshot| {
        Follow::made(connection, stream, snapshot, order_by, window)
    })
}

/// Returns the request to the server, and the window.
fn request<'a>(
    options: &'a FollowOptions,
    selector: &'a str,
    through: &FollowThrough<'a>,
) -> Result<(Request<'a>, u32)> {
    let chooses = options.order_by.is_some() || options.cursor.is_some() || options.only_new;
    let (requirement, group, is_member) = match *through {
        FollowThrough::Nothing => (None, None, false),
        FollowThrough::Number(number, is_group) => (Some(number), None, is_group),
        FollowThrough::Group(name, terms) => (None, Some((name, terms)), true),
    };
    if chooses && (requirement.is_some() || is_member || options.requirement.is_some()) {
        let cause = "a follow through a requirement delivers all objects that it is owed, in the order in which they became visible: no order, cursor or only_new";
        return Err(Error::new(Code::InvalidArgument, "follow", cause));
    }
    let window = options
        .window
        .unwrap_or(if is_member { WINDOW_OF_MEMBER } else { WINDOW });
    let request = Request::Follow(body::FollowRequest {
        selector: selector.into(),
        order: order(options.order_by.as_deref()),
        window: window.max(1),
        cursor: options.cursor.as_deref().map(Into::into),
        only_new: options.only_new,
        requirement,
        until_live: options.until_live,
        requirement_name: options.requirement.as_deref().map(Into::into),
        group: group.map(|(name, _)| name.into()),
        group_terms: group.and_then(|(_, terms)| terms).map(|terms| body::GroupTerms {
            newest_only: terms.versions == Versions::Newest,
            time_to_live_ms: terms.time_to_live.map(milliseconds),
        }),
    });
    Ok((request, window))
}

/// Returns milliseconds, rounded up.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000) as u64
}

pub(crate) fn order(by: Option<&str>) -> ListOrder<'_> {
    by.map_or(ListOrder::Key, |name| ListOrder::Attribute(name.into()))
}

impl Follow {
    fn made(
        connection: &Arc<PoolConnection>,
        stream: ServerStream,
        snapshot: u64,
        order_by: Option<String>,
        window: u32,
    ) -> Self {
        let began = FollowSnapshot {
            sequence: snapshot,
            order_by,
        };
        let origin = Arc::new(ObjectOrigin::of_follow(connection, &stream, began));
        Self {
            stream,
            origin,
            snapshot,
            window,
            live: false,
            last: None,
            replay: None,
            errands: BlockingSteps::default(),
            #[cfg(feature = "async")]
            task: FollowTask::default(),
        }
    }

    /// Must be called before anything is taken.
    fn begin_in(&mut self, behind: StoreFollow) {
        let StoreFollow {
            depot, sorting, wants, ..
        } = behind;
        let replay = StoreReplay::new(&depot, Arc::clone(&self.origin), sorting, self.snapshot, wants);
        self.replay = Some(Box::new(replay));
    }

    /// Returns the next item; `None` if the follow has ended. Blocks until there is one.
    ///
    /// # Errors
    /// `Disconnected`; `LimitExceeded` if the server's limit of queued items for one reader is exceeded. After an error
    /// the follow has ended and returns `None`, with two exceptions: an error of the wait (`Interrupted`, `Timeout`),
    /// and an object that cannot be read: `Corrupt` if its payload does not match its checksum (mode `checked`), or an
    /// error of a disk or of the store behind the pool.
    pub fn next_item(&mut self) -> Result<Option<Item>> {
        self.next_until(None)
    }

    /// Returns the next item. Blocks for at most `timeout`.
    ///
    /// # Errors
    /// As [`Follow::next_item`]; also `Timeout` if there was none in time.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Item>> {
        self.next_until(Instant::now().checked_add(timeout))
    }

    /// Returns the next item if one has arrived. Does not block. `None`: there is none yet, or the follow has ended
    /// ([`Follow::is_over`]).
    ///
    /// # Errors
    /// As [`Follow::next_item`].
    pub fn try_next(&mut self) -> Result<Option<Item>> {
        if self.stream.has_failed() {
            return Ok(None);
        }
        #[cfg(feature = "async")]
        if self.is_left_by_task() {
            match self.left_by_task(Some(Instant::now())) {
                Err(error) if error.code() == Code::Timeout => return Ok(None),
                Ok(None) => {}
                left => return left,
            }
        }
        if self.replay.is_some() {
            return self.try_next_behind();
        }
        if self.stream.is_over() {
            return Ok(None);
        }
        match self.stream.try_next()? {
            Some(letter) => self.item(letter),
            None => Ok(None),
        }
    }

    /// Returns whether the follow has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stream.is_over()
    }

    /// Returns whether the complete snapshot was returned.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Returns the newest sequence number of the snapshot: objects of the snapshot have at most this number, new ones
    /// have larger numbers.
    #[must_use]
    pub fn snapshot_sequence(&self) -> u64 {
        self.snapshot
    }

    /// Returns the number of its objects that may be in flight or held at once.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Returns a cursor from which a later follow continues after the last object of this one; `None` before the first
    /// object.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        let last = self.last.as_ref()?;
        if let Some(cursor) = &last.first_phase {
            return Some(cursor.clone());
        }
        let incarnation = self.origin.connection.greeting.incarnation;
        Some(Cursor {
            incarnation,
            phase: junctura_model::version::Phase::Live { last: last.sequence },
        })
    }

    /// Ends the follow; objects in flight are given back.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; the follow has then ended, too.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        self.stream.stop()
    }

    /// Non-blocking version of [`Follow::stop`]: once the answer has arrived, no objects of the follow are in flight.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut follow = pool.follow("")?;
    /// follow.begin_stop()?.wait()?;
    /// assert!(follow.is_over());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; the follow has then ended, too.
    pub fn begin_stop(&mut self) -> Result<Pending<()>> {
        self.stream.begin_stop()
    }

    /// Ends the follow after an error, other than one of a task's wait.
    #[cfg(feature = "async")]
    pub(crate) fn fuse<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.stream.fuse(outcome)
    }

    #[cfg(feature = "async")]
    pub(crate) fn connection(&self) -> &Arc<PoolConnection> {
        &self.origin.connection
    }

    fn try_next_behind(&mut self) -> Result<Option<Item>> {
        loop {
            match self.next_until(Some(Instant::now())) {
                // The descriptor becomes readable only when more has arrived.
                Err(error) if error.code() == Code::Timeout && !self.stream.has_come()? => return Ok(None),
                Err(error) if error.code() == Code::Timeout => {}
                item => return item,
            }
        }
    }

    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Item>> {
        if self.stream.has_failed() {
            return Ok(None);
        }
        #[cfg(feature = "async")]
        if let Some(item) = self.left_by_task(deadline)? {
            return Ok(Some(item));
        }
        if self.replay.is_some() {
            return self.next_behind(deadline);
        }
        if self.stream.is_over() {
            return Ok(None);
        }
        match self.stream.next(deadline)? {
            Some(letter) => self.item(letter),
            None => Err(too_late()),
        }
    }

    /// Remembers this object as the last one returned.
    pub(crate) fn note(&mut self, object: &Object) {
        let first_phase = if object.in_snapshot() { object.cursor() } else { None };
        self.last = Some(LastObject {
            sequence: object.version().sequence,
            first_phase,
        });
    }

    /// As [`Follow::try_next`], from the pool alone. An object whose payload cannot be read is returned with the error,
    /// for a reader that keeps it.
    #[cfg(feature = "store")]
    pub(crate) fn try_next_unread(&mut self) -> Result<Option<(Item, Option<Error>)>> {
        if self.stream.is_over() {
            return Ok(None);
        }
        match self.stream.try_next()? {
            Some(ServerMessage::Delivered(arrived)) => {
                let (object, unread) = self.received(arrived);
                Ok(Some((Item::Object(object), unread)))
            }
            Some(letter) => Ok(self.item(letter)?.map(|item| (item, None))),
            None => Ok(None),
        }
    }

    fn received(&mut self, arrived: ArrivedObject) -> (Object, Option<Error>) {
        let (object, unread) = Object::received(&self.origin, arrived);
        if unread.is_none() {
            self.note(&object);
        }
        (object, unread)
    }

    fn item(&mut self, letter: ServerMessage) -> Result<Option<Item>> {
        Ok(Some(match letter {
            ServerMessage::Delivered(arrived) => match self.received(arrived) {
                (object, None) => Item::Object(object),
                (_, Some(error)) => return Err(error),
            },
            ServerMessage::Live => {
                self.live = true;
                Item::Live
            }
            ServerMessage::Gap(body) => {
                let gap = Gap::read(&self.origin.connection, &body);
                Item::Gap(self.stream.fuse(gap)?)
            }
            ServerMessage::Ended(error) if error.code() == Code::Closed => return Ok(None),
            ServerMessage::Ended(error) | ServerMessage::Failed(error) => return self.stream.fuse(Err(error)),
            _ => return self.stream.fuse(Err(unexpected("in a follow"))),
        }))
    }
}

impl Awaited for Follow {
    fn awaiting(&self) -> WaitSource {
        if self.stream.has_failed() {
            return WaitSource::ready();
        }
        match self.is_due() {
            Some(true) => WaitSource::ready(),
            Some(false) => self.stream.awaiting(),
            None => WaitSource::never(),
        }
    }
}

iterable!(Follow, Item, next_item);

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Follow(from {}, live: {})", self.snapshot, self.live)
    }
}

impl Gap {
    /// Parses the body of a frame.
    pub(crate) fn read(connection: &PoolConnection, body: &[u8]) -> Result<Self> {
        let frame = WireFrame {
            kind: FrameKind::Gap as u8,
            descriptors: 0,
            request: 0,
            body,
        };
        let Reply::Gap(gap) = Reply::decode(&frame)? else {
            return Err(unexpected("no gap"));
        };
        let items = gap.items.iter().map(|name| {
            let schema = connection.known_schema(name.schema)?;
            let version = connection.version(name.sequence);
            Ok(GapItem {
                object: Described::new(schema, RecordRef::trusted(&name.record).to_owned()),
                version,
            })
        });
        Ok(Self {
            items: items.collect::<Result<_>>()?,
            unnamed: gap.unnamed.unwrap_or(0),
            reason: gap.reason.into_owned(),
        })
    }
}
