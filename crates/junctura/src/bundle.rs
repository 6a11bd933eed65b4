//! Bundles: objects that become visible together, or not at all.
//!
//! A bundle without a path belongs to one program: it is a moment at which several offers take effect. One with a path is
//! shared: any number of producers open the same path and offer into it. What is offered is *staged*: nobody sees it until
//! the bundle is complete, and then everybody sees all of it, under consecutive versions in the order of the keys.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use junctura_model::version::Version;
use junctura_model::{Code, Error, IntoGiven, Result};
use junctura_wire::{Request, body};

use crate::allocation::Allocation;
use crate::awaiting::{Awaited, Awaiting};
use crate::connection::{Connection, unexpected};
use crate::mail::Letter;
use crate::offer::{Content, OfferOptions, Terms};
use crate::pending::Pending;
use crate::pipeline::Pipeline;
use crate::pool::Pool;
use crate::stream::Stream;
use crate::target::find_schema;

/// How a bundle with a path is opened, where it is not the default. What one opener leaves out another may say; what two say
/// must be the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct BundleOptions<'a> {
    /// How many members make it complete: objects, and bundles that are nested in it. `None`: until it is sealed.
    pub members: Option<u64>,
    /// How long it stays when no producer has it open, before it is aborted; `None`: as the server says. Counted in
    /// milliseconds.
    pub orphan_timeout: Option<Duration>,
    /// The schema of its attributes; `None`: the pool's default.
    pub schema: Option<&'a str>,
}

/// A member of a bundle that was offered. Its version is known when the bundle is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Staged(pub(crate) u64);

/// A bundle that has all its members.
///
/// ```
/// # use junctura::Pool;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let bundle = pool.bundle()?;
/// let second = bundle.offer([("name", "b")], b"")?;
/// bundle.offer([("name", "a")], b"")?;
/// let completed = bundle.seal()?;
/// let first = completed.first().expect("it is visible");
/// assert_eq!(completed.objects(), 2);
/// assert_eq!(completed.version(second).map(|version| version.sequence), Some(first.sequence + 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    first: Option<Version>,
    objects: u64,
    /// Of the members that were offered through this handle.
    versions: HashMap<u64, Version>,
}

impl Completed {
    /// The version of the first object, in the order of keys; those of the others follow without a gap. `None`: there is none,
    /// or it is not visible yet, since the bundle around it lacks members.
    #[must_use]
    pub fn first(&self) -> Option<Version> {
        self.first
    }

    /// How many objects became visible together, those of the bundles around and within it included.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// The version of a member that was offered through this handle; `None` for one that another of the same key replaced.
    #[must_use]
    pub fn version(&self, member: Staged) -> Option<Version> {
        self.versions.get(&member.0).copied()
    }
}

/// A bundle that this program has open. Threads may share it.
///
/// Dropping it publishes nothing: without a path, the bundle is aborted unless it was sealed; with one, it is left to the
/// others who have it open, or who open it before its orphan timeout is over.
///
/// ```
/// # use junctura::{BundleOptions, Code, OfferOptions, Pool, Retention};
/// # use std::time::Duration;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let bundle = pool.open_bundle("step/6", &BundleOptions::default(), [("space", "forecast")])?;
/// assert_eq!(bundle.path(), Some("step/6"));
///
/// // Copied, with options, filled in place, or many without awaiting each: staged, and seen by nobody yet.
/// bundle.offer([("name", "a")], b"one")?;
/// let once = OfferOptions { retention: Some(Retention::Released(1)), ..OfferOptions::default() };
/// bundle.offer_with(once, [("name", "b")], b"two")?;
/// let mut field = bundle.allocate(100_000)?;
/// field.fill(7);
/// bundle.offer_allocation(OfferOptions::default(), field, [("name", "c")])?;
/// let mut pipeline = bundle.pipeline(64)?;
/// pipeline.offer([("name", "d")], b"four")?;
/// pipeline.flush()?;
/// bundle.offer_many([([("name", "e")], b"five")])?;
/// assert!(bundle.completed()?.is_none() && pool.list("")?.is_empty());
///
/// bundle.seal()?;
/// assert_eq!(bundle.wait(Some(Duration::from_secs(10)))?.objects(), 5);
///
/// // Or given up: for all who have it open, or by this program alone.
/// let other = pool.bundle()?;
/// assert_eq!(other.abort()?, 0);
/// assert_eq!(other.wait(None).unwrap_err().code(), Code::Closed);
/// pool.open_bundle("step/12", &BundleOptions::default(), [("space", "forecast")])?.leave()?;
/// # Ok(())
/// # }
/// ```
pub struct Bundle {
    connection: Arc<Connection>,
    path: Option<String>,
    number: u64,
    progress: Mutex<Progress>,
}

struct Progress {
    stream: Stream,
    versions: HashMap<u64, Version>,
    outcome: Option<Result<Completed>>,
}

impl Pool {
    /// Opens a bundle without a path: what is offered into it becomes visible at one point, with [`Bundle::seal`].
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let bundle = pool.bundle()?;
    /// let second = bundle.offer([("name", "b")], b"two")?;
    /// let first = bundle.offer([("name", "a")], b"one")?;
    /// assert!(pool.list("")?.is_empty());
    /// let completed = bundle.seal()?;
    /// assert_eq!(pool.list("")?.len(), 2);
    /// assert!(completed.version(first) < completed.version(second));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `LimitExceeded` where the pool has too many that are not complete; `Closed` while it drains.
    pub fn bundle(&self) -> Result<Bundle> {
        open(&self.connection()?, None, body::Bundle::default())
    }

    /// Runs `fill` and makes all that it offered into the bundle visible at one point; nothing, if it fails or panics.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let completed = pool.bundled(|bundle| {
    ///     bundle.offer([("name", "a")], b"one")?;
    ///     bundle.offer([("name", "b")], b"two")?;
    ///     Ok(())
    /// })?;
    /// assert_eq!(completed.objects(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Pool::bundle`], of `fill`, and of [`Bundle::seal`].
    pub fn bundled(&self, fill: impl FnOnce(&Bundle) -> Result<()>) -> Result<Completed> {
        let bundle = self.bundle()?;
        fill(&bundle)?;
        bundle.seal()
    }

    /// Opens the bundle of a path, or joins the producers that have it open.
    ///
    /// A path has 1 to 16 parts between slashes, each of ASCII letters, digits and `._+:-=,@`. While `a` is open, `a/b` opens
    /// as one of its members, and becomes visible with it.
    ///
    /// ```
    /// # use junctura::{BundleOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let options = BundleOptions { members: Some(2), ..BundleOptions::default() };
    /// let mine = pool.open_bundle("step/6", &options, [("space", "forecast")])?;
    /// let yours = pool.open_bundle("step/6", &options, [("space", "forecast")])?;
    /// mine.offer([("space", "forecast"), ("name", "t")], b"...")?;
    /// yours.offer([("space", "forecast"), ("name", "u")], b"...")?;
    /// assert_eq!(mine.wait(None)?.objects(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Conflict` where others opened it with another number of members, orphan timeout or attributes, or where a bundle of a
    /// path within this one stands by itself already; `BundleClosed` where it, or the one around it, is complete; `BundleFull`
    /// where the one around it has all its members; `InvalidArgument` for a path or number that cannot be; `LimitExceeded`;
    /// those of attributes that the schema does not take.
    pub fn open_bundle<'a, V: IntoGiven<'a>>(
        &self,
        path: &str,
        options: &BundleOptions<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Bundle> {
        let connection = self.connection()?;
        let asked = asked(&connection, path, options, attributes)?;
        open(&connection, Some(path.to_owned()), asked)
    }

    /// As [`Pool::open_bundle`], or without a path [`Pool::bundle`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    pub fn begin_bundle<'a, V: IntoGiven<'a>>(
        &self,
        path: Option<&str>,
        options: &BundleOptions<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Pending<Bundle>> {
        let connection = self.connection()?;
        let asked = match path {
            Some(path) => asked(&connection, path, options, attributes)?,
            None => body::Bundle::default(),
        };
        let path = path.map(str::to_owned);
        connection.begin_stream(&Request::Bundle(asked), |connection, stream, _| {
            Bundle::made(connection, path, stream)
        })
    }
}

fn asked<'p, 'a, V: IntoGiven<'a>>(
    connection: &Connection,
    path: &'p str,
    options: &BundleOptions<'_>,
    attributes: impl IntoIterator<Item = (&'a str, V)>,
) -> Result<body::Bundle<'p>> {
    let schema = match options.schema {
        None => connection.greeting.default_schema,
        Some(name) => find_schema(&connection.greeting.schemas, name)?,
    };
    let mut record = Vec::new();
    let given = attributes.into_iter().map(|(name, value)| (name, value.into_given()));
    connection.schema(schema).partial_record(given, &mut record)?;
    let attributes = body::BundleAttributes {
        schema,
        record: record.into(),
    };
    Ok(body::Bundle {
        path: Some(path.into()),
        members: options.members,
        orphan_timeout_ms: options.orphan_timeout.map(milliseconds),
        attributes: Some(attributes).filter(|about| !about.record.is_empty()),
    })
}

fn open(connection: &Arc<Connection>, path: Option<String>, asked: body::Bundle<'_>) -> Result<Bundle> {
    let (stream, _) = Stream::begin(connection, &Request::Bundle(asked))?;
    Ok(Bundle::made(connection, path, stream))
}

impl Bundle {
    fn made(connection: &Arc<Connection>, path: Option<String>, stream: Stream) -> Self {
        Self {
            connection: Arc::clone(connection),
            path,
            number: stream.number(),
            progress: Mutex::new(Progress {
                stream,
                versions: HashMap::new(),
                outcome: None,
            }),
        }
    }

    /// Its path, if it has one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Offers a copy of `payload` into the bundle; returns when it is staged, or visible if it completed the bundle: then one that is
    /// durable returns when all durable members are archived, as [`Bundle::seal`].
    ///
    /// The same key again, within this bundle, takes the place of the earlier one.
    ///
    /// # Errors
    /// Those of [`Pool::offer`], and: `BundleFull` when it has all its members, `BundleClosed` when it is complete, `Closed`
    /// when it was aborted, `Conflict` for a key that is staged in a bundle around or within this one, and `PoolFull` at once
    /// when staged members are what fills the memory, since only the end of a bundle could free it. `AlreadyExists` also for
    /// a key that is staged in another bundle under a schema that rejects a second object.
    pub fn offer<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<Staged> {
        self.offer_with(OfferOptions::default(), attributes, payload)
    }

    /// As [`Bundle::offer`], with options. A retention for a time counts from when the bundle is visible.
    ///
    /// # Errors
    /// Those of [`Bundle::offer`] and of [`Pool::offer_with`].
    pub fn offer_with<'a, V: IntoGiven<'a>>(
        &self,
        options: OfferOptions<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<Staged> {
        let connection = &self.connection;
        let mut record = Vec::new();
        let terms = self.terms(options)?;
        connection.record(terms, attributes, &mut record)?;
        if connection.goes_inline(payload.len()) {
            return self.stage(terms, &record, Content::Inline(payload));
        }
        let mut allocation = self.allocate(payload.len())?;
        allocation.copy_from_slice(payload);
        self.stage(terms, &record, allocation.into_ready().content())
    }

    /// Memory for a payload, as [`Pool::allocate`].
    ///
    /// # Errors
    /// Those of [`Pool::allocate`]; `PoolFull` at once when staged members are what fills the memory.
    pub fn allocate(&self, bytes: usize) -> Result<Allocation> {
        Allocation::for_bundle(&self.connection, bytes)
    }

    /// Offers what was filled in place, as [`Bundle::offer_with`]. The allocation may come from any handle of this pool.
    ///
    /// # Errors
    /// Those of [`Bundle::offer_with`]; `InvalidArgument` for an allocation of another pool.
    pub fn offer_allocation<'a, V: IntoGiven<'a>>(
        &self,
        options: OfferOptions<'_>,
        allocation: Allocation,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Staged> {
        allocation.must_be_of(&self.connection)?;
        let mut record = Vec::new();
        let terms = self.terms(options)?;
        self.connection.record(terms, attributes, &mut record)?;
        self.stage(terms, &record, allocation.into_ready().content())
    }

    /// Offers into the bundle that are not awaited one by one, as [`Pool::pipeline`]. [`Pipeline::staged`] gives what
    /// [`Bundle::offer`] would have returned.
    ///
    /// # Errors
    /// `LimitExceeded` when too many requests of this connection are unanswered.
    pub fn pipeline(&self, window: usize) -> Result<Pipeline> {
        Pipeline::begin(&self.connection, window, Some(self.number))
    }

    /// Offers many objects, each as by [`Bundle::offer`], without awaiting each; returns when all are staged.
    ///
    /// # Errors
    /// That of the first offer that failed. Others may be staged.
    pub fn offer_many<'a, V, A, P>(&self, objects: impl IntoIterator<Item = (A, P)>) -> Result<Vec<Staged>>
    where
        V: IntoGiven<'a>,
        A: IntoIterator<Item = (&'a str, V)>,
        P: AsRef<[u8]>,
    {
        let mut pipeline = self.pipeline(1024)?;
        for (attributes, payload) in objects {
            pipeline.offer(attributes, payload.as_ref())?;
        }
        pipeline.flush()?;
        Ok(pipeline.all_staged())
    }

    /// Says that the bundle has all its members; returns when it is visible, and archived where members of it are durable. One that is nested in another is visible with
    /// that one: then it returns at once, without versions, and [`Bundle::wait`] gives them.
    ///
    /// # Errors
    /// `Conflict` where a number of members was said, or a bundle nested in it is not complete: it stays open then;
    /// `BundleClosed` where it is complete; `Closed` where it was aborted. It is visible where a durable member was not archived: `Io`,
    /// or `Timeout` after the pool's offer timeout.
    pub fn seal(&self) -> Result<Completed> {
        let objects = self.end(&Request::Seal(self.number))?;
        self.sealed(objects)
    }

    /// Gives the bundle up, for all who have it open, with all that is nested in it: what was staged is freed, and nobody has
    /// seen it. Gives the number of objects.
    ///
    /// # Errors
    /// `BundleClosed` where it is complete; `Closed` where it was aborted.
    pub fn abort(&self) -> Result<u64> {
        let freed = self.end(&Request::Abort(self.number))?;
        self.aborted();
        Ok(freed)
    }

    /// Notes the answer to [`Bundle::begin_abort`]: nothing more comes.
    pub fn aborted(&self) {
        let mut progress = self.progress();
        let cause = "this program gave it up";
        progress.outcome = Some(Err(Error::new(Code::Closed, self.subject(), cause)));
        progress.stream.was_ended();
    }

    /// Leaves the bundle to the others who have it open, as dropping it does. One without a path is aborted.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn leave(&self) -> Result<()> {
        self.progress().stream.stop()
    }

    /// What came of it, if it is visible; does not wait.
    ///
    /// # Errors
    /// `Closed` where it was aborted.
    pub fn completed(&self) -> Result<Option<Completed>> {
        let mut progress = self.progress();
        while progress.outcome.is_none() && !progress.stream.is_over() {
            match progress.stream.try_next()? {
                Some(letter) => self.take(&mut progress, letter)?,
                None => break,
            }
        }
        progress.outcome.clone().transpose()
    }

    /// Waits until it is visible, and archived where members of it are durable.
    ///
    /// # Errors
    /// `Timeout`; `Closed` where it was aborted, or left by this handle; `Io` where a durable member was not archived: it is visible then.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Completed> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut progress = self.progress();
        loop {
            if let Some(outcome) = &progress.outcome {
                return outcome.clone();
            }
            if progress.stream.is_over() {
                return Err(Error::new(Code::Closed, self.subject(), "this handle has left it"));
            }
            match progress.stream.next(deadline)? {
                Some(letter) => self.take(&mut progress, letter)?,
                None => return Err(Error::new(Code::Timeout, self.subject(), "it was not complete in time")),
            }
        }
    }

    /// What came of it, if that has been read: as [`Pending::take`], for who looks with [`Pool::look`].
    ///
    /// ```
    /// # use junctura::{Bundle, OfferOptions, Pending, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// /// A loop of one's own: it looks when the pool's descriptor is readable, and takes what has come.
    /// fn answer<T>(pool: &Pool, mut pending: Pending<T>) -> junctura::Result<T> {
    ///     loop {
    ///         pool.look()?;
    ///         if let Some(answer) = pending.take()? {
    ///             return Ok(answer);
    ///         }
    ///     }
    /// }
    /// let bundle = pool.bundle()?;
    /// let mut memory = bundle.begin_allocate(10);
    /// let field = loop {
    ///     pool.look()?;
    ///     if let Some(field) = memory.take()? {
    ///         break field;
    ///     }
    /// };
    /// let staged = answer(&pool, bundle.begin_offer(OfferOptions::default(), field, [("name", "a")])?)?;
    /// assert!(bundle.take_completed()?.is_none());
    /// let objects = answer(&pool, bundle.begin_seal()?)?;
    /// assert!(bundle.sealed(objects)?.version(staged).is_some());
    ///
    /// let other = pool.bundle()?;
    /// answer(&pool, other.begin_abort()?)?;
    /// other.aborted(); // what was answered is noted
    /// let left = pool.bundle()?.begin_leave()?; // or left, without waiting
    /// # drop(left);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed` where it was aborted, or left by this handle.
    pub fn take_completed(&self) -> Result<Option<Completed>> {
        let mut progress = self.progress();
        while progress.outcome.is_none() {
            if progress.stream.is_over() {
                return Err(Error::new(Code::Closed, self.subject(), "this handle has left it"));
            }
            match progress.stream.take()? {
                Some(letter) => self.take(&mut progress, letter)?,
                None => break,
            }
        }
        progress.outcome.clone().transpose()
    }

    /// Memory for a payload, as [`Bundle::allocate`], without waiting.
    #[must_use]
    pub fn begin_allocate(&self, bytes: usize) -> Pending<Allocation> {
        self.connection.begin_allocate(bytes, true)
    }

    /// As [`Bundle::offer_allocation`], without waiting.
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    pub fn begin_offer<'a, V: IntoGiven<'a>>(
        &self,
        options: OfferOptions<'_>,
        allocation: Allocation,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Pending<Staged>> {
        allocation.must_be_of(&self.connection)?;
        let mut record = Vec::new();
        let terms = self.terms(options)?;
        self.connection.record(terms, attributes, &mut record)?;
        self.begin_stage(terms, allocation, &record)
    }

    /// The same, of what was read already; the allocation is of this pool.
    pub(crate) fn begin_stage(&self, terms: Terms, allocation: Allocation, record: &[u8]) -> Result<Pending<Staged>> {
        let ready = allocation.into_ready();
        self.connection.begin_acknowledged(
            |state, number| {
                self.connection
                    .append_offer(state, number, terms, record, ready.content())
            },
            |_, number, _| Staged(number),
        )
    }

    /// As [`Bundle::seal`], without waiting. The answer is the number of objects; [`Bundle::sealed`] says what became visible.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Bundle::seal`] come with the answer.
    pub fn begin_seal(&self) -> Result<Pending<u64>> {
        self.connection.begin_count(&Request::Seal(self.number))
    }

    /// What became visible, after the answer to [`Bundle::begin_seal`].
    ///
    /// # Errors
    /// As [`Bundle::seal`].
    pub fn sealed(&self, objects: u64) -> Result<Completed> {
        // The versions came before the answer, unless it waits for the bundle that it is nested in.
        Ok(self.take_completed()?.unwrap_or_else(|| Completed {
            first: None,
            objects,
            versions: HashMap::new(),
        }))
    }

    /// As [`Bundle::abort`], without waiting; [`Bundle::aborted`] notes the answer.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Bundle::abort`] come with the answer.
    pub fn begin_abort(&self) -> Result<Pending<u64>> {
        self.connection.begin_count(&Request::Abort(self.number))
    }

    /// As [`Bundle::leave`], without waiting. `None`: it has ended.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn begin_leave(&self) -> Result<Option<Pending<()>>> {
        self.progress().stream.begin_stop()
    }

    /// The request that has it open.
    #[cfg(feature = "async")]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    fn terms(&self, options: OfferOptions<'_>) -> Result<Terms> {
        Ok(self.connection.terms(options)?.within(self.number))
    }

    pub(crate) fn is_of(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.connection, connection)
    }

    pub(crate) fn stage(&self, terms: Terms, record: &[u8], content: Content<'_>) -> Result<Staged> {
        let terms = terms.within(self.number);
        let (number, _) = self.connection.offer_numbered(terms, record, content)?;
        Ok(Staged(number))
    }

    fn end(&self, request: &Request<'_>) -> Result<u64> {
        match self.connection.call(request)? {
            Letter::Done(objects) => Ok(objects),
            _ => Err(unexpected("no end of a bundle")),
        }
    }

    fn take(&self, progress: &mut Progress, letter: Letter) -> Result<()> {
        match letter {
            Letter::Completed {
                first,
                objects,
                more,
                versions,
            } => {
                let version = |(request, sequence)| (request, self.connection.version(sequence));
                progress.versions.extend(versions.into_iter().map(version));
                if !more {
                    progress.outcome = Some(Ok(Completed {
                        first: (first > 0).then(|| self.connection.version(first)),
                        objects,
                        versions: std::mem::take(&mut progress.versions),
                    }));
                }
                Ok(())
            }
            Letter::Ended(error) | Letter::Failed(error) => {
                progress.outcome = Some(Err(error));
                Ok(())
            }
            _ => Err(unexpected("for a bundle")),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subject(&self) -> String {
        format!("bundle {}", self.path.as_deref().unwrap_or("without a path"))
    }
}

impl Awaited for Bundle {
    fn awaiting(&self) -> Awaiting {
        let progress = self.progress();
        if progress.outcome.is_some() {
            Awaiting::ready()
        } else {
            progress.stream.awaiting()
        }
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bundle({})", self.path.as_deref().unwrap_or(""))
    }
}

pub(crate) fn milliseconds(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000) as u64
}
