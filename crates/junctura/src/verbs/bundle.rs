//! Bundles: objects that become visible together, or not at all.
//!
//! A bundle without a path belongs to one program: it is a moment at which several offers take effect. One with a path is
//! shared: any number of producers open the same path and offer into it. What is offered is *staged*: nobody sees it until
//! the bundle is complete, and then everybody sees all of it, under consecutive versions in the order of the keys.

mod progress;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::version::Version;
use junctura_model::{Code, Error, IntoGiven, Result};
use junctura_wire::{Request, body};

use crate::awaiting::{Awaited, WaitSource};
use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::{PoolConnection, end_by, unexpected};
use crate::pending::{Pending, RequestOutcome, WatchedValue};
use crate::pool::Pool;
use crate::target::find_schema;
use crate::verbs::allocation::Allocation;
use crate::verbs::offer::{OfferOptions, OfferTerms, OfferedPayload, PreparedOffer};
use crate::verbs::pipeline::Pipeline;
pub(crate) use progress::BundleProgress;

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
/// let bundle = pool.open_bundle("step/6", [("space", "forecast")], BundleOptions::default())?;
/// assert_eq!(bundle.path(), Some("step/6"));
///
/// // Copied, with options, filled in place, or many without awaiting each: staged, and seen by nobody yet.
/// bundle.offer([("name", "a")], b"one")?;
/// let once = OfferOptions { retention: Some(Retention::Released(1)), ..OfferOptions::default() };
/// bundle.offer_with([("name", "b")], b"two", once)?;
/// let mut field = bundle.allocate(100_000)?;
/// field.fill(7);
/// bundle.offer_allocation(field, [("name", "c")], OfferOptions::default())?;
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
/// pool.open_bundle("step/12", [("space", "forecast")], BundleOptions::default())?.leave()?;
/// # Ok(())
/// # }
/// ```
pub struct Bundle {
    connection: Arc<PoolConnection>,
    number: u64,
    /// Requests that wait for it have it, too.
    progress: Arc<BundleProgress>,
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
        self.begin_bundle()?.wait()
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
    /// let mine = pool.open_bundle("step/6", [("space", "forecast")], options)?;
    /// let yours = pool.open_bundle("step/6", [("space", "forecast")], options)?;
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
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: BundleOptions<'_>,
    ) -> Result<Bundle> {
        self.begin_open_bundle(path, attributes, options)?.wait()
    }

    /// As [`Pool::bundle`], without waiting. See [`Pending`].
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let bundle = pool.begin_bundle()?.wait()?;
    /// assert!(bundle.path().is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; the server's errors come with the answer.
    pub fn begin_bundle(&self) -> Result<Pending<Bundle>> {
        begin_open(&self.connection()?, None, body::BundleRequest::default())
    }

    /// As [`Pool::open_bundle`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    pub fn begin_open_bundle<'a, V: IntoGiven<'a>>(
        &self,
        path: &str,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: BundleOptions<'_>,
    ) -> Result<Pending<Bundle>> {
        let connection = self.connection()?;
        let asked = asked(&connection, path, attributes, options)?;
        begin_open(&connection, Some(path.to_owned()), asked)
    }
}

fn asked<'p, 'a, V: IntoGiven<'a>>(
    connection: &PoolConnection,
    path: &'p str,
    attributes: impl IntoIterator<Item = (&'a str, V)>,
    options: BundleOptions<'_>,
) -> Result<body::BundleRequest<'p>> {
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
    Ok(body::BundleRequest {
        path: Some(path.into()),
        members: options.members,
        orphan_timeout_ms: options.orphan_timeout.map(milliseconds),
        attributes: Some(attributes).filter(|about| !about.record.is_empty()),
    })
}

fn begin_open(
    connection: &Arc<PoolConnection>,
    path: Option<String>,
    asked: body::BundleRequest<'_>,
) -> Result<Pending<Bundle>> {
    let request = Request::Bundle(asked);
    connection.pend(
        ExchangeKind::Stream,
        &request,
        StreamStop::End,
        |connection, number, said| match said {
            RequestOutcome::Letter(ServerMessage::Began(_)) => Ok(Bundle {
                connection: Arc::clone(connection),
                number,
                progress: Arc::new(BundleProgress::new(connection, path, number)),
            }),
            _ => Err(unexpected("no beginning")),
        },
    )
}

impl Bundle {
    /// Its path, if it has one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.progress.path()
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
        self.offer_with(attributes, payload, OfferOptions::default())
    }

    /// As [`Bundle::offer`], with options. A retention for a time counts from when the bundle is visible.
    ///
    /// # Errors
    /// Those of [`Bundle::offer`] and of [`Pool::offer_with`].
    pub fn offer_with<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<Staged> {
        let connection = &self.connection;
        let mut record = Vec::new();
        let terms = self.terms(options)?;
        connection.record(terms, attributes, &mut record)?;
        if connection.goes_inline(payload.len()) {
            return self.stage(terms, &record, OfferedPayload::Inline(payload));
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
        allocation: Allocation,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: OfferOptions<'_>,
    ) -> Result<Staged> {
        allocation.must_be_of(&self.connection)?;
        let mut record = Vec::new();
        let terms = self.terms(options)?;
        self.connection.record(terms, attributes, &mut record)?;
        self.stage(terms, &record, allocation.into_ready().content())
    }

    /// As [`Bundle::offer_with`], without waiting; the payload is kept as by [`Pool::begin_offer`]. See [`Pending`].
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    pub fn begin_offer<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<Pending<Staged>> {
        let offer = PreparedOffer::new(&self.connection, attributes, options)?;
        offer
            .within(self.number)
            .begin_copy(payload, |_, number, _| Staged(number))
    }

    /// As [`Bundle::offer_allocation`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// What this side can tell; the server's errors come with the answer.
    pub fn begin_offer_allocation<'a, V: IntoGiven<'a>>(
        &self,
        allocation: Allocation,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: OfferOptions<'_>,
    ) -> Result<Pending<Staged>> {
        allocation.must_be_of(&self.connection)?;
        let offer = PreparedOffer::new(&self.connection, attributes, options)?;
        offer
            .within(self.number)
            .begin_filled(allocation, |_, number, _| Staged(number))
    }

    /// Memory for a payload, as [`Bundle::allocate`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// None; the server's come with the answer.
    #[allow(clippy::unnecessary_wraps, reason = "as that of a pool")]
    pub fn begin_allocate(&self, bytes: usize) -> Result<Pending<Allocation>> {
        Ok(self.connection.begin_allocate(bytes, true))
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
        self.begin_seal()?.wait()
    }

    /// As [`Bundle::seal`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Bundle::seal`] come with the answer.
    pub fn begin_seal(&self) -> Result<Pending<Completed>> {
        let progress = Arc::clone(&self.progress);
        let sealed = self.connection.begin_count(&Request::Seal(self.number))?;
        Ok(sealed.map(move |objects| progress.sealed(objects?)))
    }

    /// Gives the bundle up, for all who have it open, with all that is nested in it: what was staged is freed, and nobody has
    /// seen it. Gives the number of objects.
    ///
    /// # Errors
    /// `BundleClosed` where it is complete; `Closed` where it was aborted.
    pub fn abort(&self) -> Result<u64> {
        self.begin_abort()?.wait()
    }

    /// As [`Bundle::abort`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Bundle::abort`] come with the answer.
    pub fn begin_abort(&self) -> Result<Pending<u64>> {
        let progress = Arc::clone(&self.progress);
        let aborted = self.connection.begin_count(&Request::Abort(self.number))?;
        Ok(aborted.map(move |freed| freed.inspect(|_| progress.aborted())))
    }

    /// Leaves the bundle to the others who have it open, as dropping it does. One without a path is aborted.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn leave(&self) -> Result<()> {
        self.begin_leave()?.wait()
    }

    /// As [`Bundle::leave`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn begin_leave(&self) -> Result<Pending<()>> {
        self.progress.begin_leave()
    }

    /// What came of it, if it is visible; does not wait.
    ///
    /// # Errors
    /// `Closed` where it was aborted, or left by this handle.
    pub fn completed(&self) -> Result<Option<Completed>> {
        self.progress.completed()
    }

    /// Waits until it is visible, and archived where members of it are durable.
    ///
    /// # Errors
    /// `Timeout`; `Closed` where it was aborted, or left by this handle; `Io` where a durable member was not archived: it is visible then.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Completed> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.progress.wait(deadline)?.ok_or_else(|| {
            let cause = "it was not complete in time";
            Error::new(Code::Timeout, self.progress.subject(), cause)
        })
    }

    /// As [`Bundle::wait`], without waiting. See [`Pending`].
    ///
    /// ```
    /// # use junctura::{OfferOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let bundle = pool.bundle()?;
    /// let mut field = bundle.begin_allocate(100_000)?.wait()?;
    /// field.fill(7);
    /// bundle.begin_offer_allocation(field, [("name", "a")], OfferOptions::default())?.wait()?;
    /// let visible = bundle.begin_wait();
    /// let sealed = bundle.begin_seal()?.wait()?;
    /// assert_eq!(visible.wait()?, sealed);
    /// bundle.begin_leave()?.wait()?;
    /// assert_eq!(pool.bundle()?.begin_abort()?.wait()?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin_wait(&self) -> Pending<Completed> {
        Pending::watch(&self.connection, Arc::clone(&self.progress))
    }

    /// What came of it, if that has been read.
    pub(crate) fn take_completed(&self) -> Result<Option<Completed>> {
        self.progress.take_completed()
    }

    #[cfg(feature = "async")]
    pub(crate) fn connection(&self) -> &Arc<PoolConnection> {
        &self.connection
    }

    /// Stages memory of this pool under a record that is ready.
    #[cfg(feature = "async")]
    pub(crate) fn begin_stage(
        &self,
        terms: OfferTerms,
        allocation: Allocation,
        record: &[u8],
    ) -> Result<Pending<Staged>> {
        let (terms, ready) = (terms.within(self.number), allocation.into_ready());
        self.connection.begin_acknowledged(
            |state, number| {
                self.connection
                    .append_offer(state, number, terms, record, ready.content())
            },
            |_, number, _| Staged(number),
        )
    }

    fn terms(&self, options: OfferOptions<'_>) -> Result<OfferTerms> {
        Ok(self.connection.terms(options)?.within(self.number))
    }

    pub(crate) fn is_of(&self, connection: &Arc<PoolConnection>) -> bool {
        Arc::ptr_eq(&self.connection, connection)
    }

    pub(crate) fn stage(&self, terms: OfferTerms, record: &[u8], content: OfferedPayload<'_>) -> Result<Staged> {
        let terms = terms.within(self.number);
        let (number, _) = self.connection.offer_numbered(terms, record, content)?;
        Ok(Staged(number))
    }
}

impl Awaited for Bundle {
    fn awaiting(&self) -> WaitSource {
        WatchedValue::awaiting(&self.progress)
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        // Requests may still wait for it. Without a server there is nothing to leave.
        let _ = self.progress.begin_leave().map(|leave| end_by(&self.connection, leave));
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bundle({})", self.path().unwrap_or(""))
    }
}

pub(crate) fn milliseconds(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000) as u64
}
