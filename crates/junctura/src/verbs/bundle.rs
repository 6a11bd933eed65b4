//! Bundles: sets of objects that become visible atomically.
//!
//! A bundle without a path belongs to one program, which publishes several offers at one point in time. A bundle with a
//! path is shared: any number of producers open the same path and offer into it. Its members are *staged*: no client
//! sees them until the bundle is complete. Then all members become visible together, under consecutive versions in key
//! order.

mod opening;
mod progress;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::version::Version;
use junctura_model::{Code, Error, IntoGiven, Result};
use junctura_wire::{Request, body};

use crate::array::OpenArrays;
use crate::awaiting::{Awaited, WaitSource};
use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::StreamStop;
use crate::connection::{PoolConnection, end_by, unexpected};
use crate::pending::{Pending, RequestOutcome, WatchedValue};
use crate::pool::Pool;
use crate::verbs::allocation::Allocation;
use crate::verbs::offer::{OfferOptions, OfferTerms, OfferedPayload, PreparedOffer};
use crate::verbs::pipeline::Pipeline;
pub(crate) use opening::{FirstMember, OpenedBundle, open_path_with};
pub(crate) use progress::BundleProgress;

/// Options for opening a bundle with a path. Options that are set by several openers must agree; each opener may leave
/// options unset.
///
/// ```
/// # use junctura::{BundleOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let one = BundleOptions { members: Some(1), ..BundleOptions::default() };
/// let bundle = pool.open_bundle("step/6", [("space", "forecast")], one)?;
/// bundle.offer([("name", "t")], b"...")?;
/// assert_eq!(bundle.wait(None)?.objects(), 1); // completed by its last member
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BundleOptions<'a> {
    /// The number of members that completes it: objects and nested bundles. `None`: it is completed by a seal.
    pub members: Option<u64>,
    /// How long it is retained without a producer before it is aborted; `None`: the server's default. Resolution:
    /// milliseconds.
    pub orphan_timeout: Option<Duration>,
    /// The schema of its attributes; `None`: the pool's default.
    pub schema: Option<&'a str>,
}

/// A member that was offered into a bundle. It gets its version when the bundle is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Staged(pub(crate) u64);

/// A bundle that has all its members.
///
/// ```
/// # use junctura::{Pool, Staged};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let bundle = pool.bundle()?;
/// let second: Staged = bundle.offer([("name", "b")], b"")?;
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
    /// Versions of the members that were offered through this handle.
    versions: HashMap<u64, Version>,
}

impl Completed {
    /// Returns the version of the first object in key order; the versions of the others are consecutive. `None`: the
    /// bundle is empty, or not visible yet because the enclosing bundle lacks members.
    #[must_use]
    pub fn first(&self) -> Option<Version> {
        self.first
    }

    /// Returns how many objects became visible together, including those of enclosing and nested bundles.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Returns the version of a member that was offered through this handle; `None` if another member with the same key
    /// replaced it.
    #[must_use]
    pub fn version(&self, member: Staged) -> Option<Version> {
        self.versions.get(&member.0).copied()
    }
}

/// A bundle that this program has open. Thread-safe.
///
/// Dropping it publishes nothing. A bundle without a path is aborted unless it was sealed. A bundle with a path remains
/// for the other producers that have it open, or open it before its orphan timeout.
///
/// ```
/// # use junctura::{BundleOptions, Code, OfferOptions, Pool, Retention};
/// # use std::time::Duration;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let bundle = pool.open_bundle("step/6", [("space", "forecast")], BundleOptions::default())?;
/// assert_eq!(bundle.path(), Some("step/6"));
///
/// // Copied, with options, filled in place, or many without waiting for each: staged, and invisible until the seal.
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
/// // Or abort it for all producers, or leave it only for this program.
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
    /// Shared with requests that wait for the bundle.
    progress: Arc<BundleProgress>,
    /// Its incomplete arrays: bundles that are nested in it.
    arrays: OpenArrays,
}

impl Pool {
    /// Opens a bundle without a path: its members become visible together with [`Bundle::seal`]. Blocks until the
    /// server has answered.
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
    /// `LimitExceeded` if the pool has too many incomplete bundles; `Closed` while it drains.
    pub fn bundle(&self) -> Result<Bundle> {
        self.begin_bundle()?.wait()
    }

    /// Runs `fill`, then makes all members that it offered visible together. If `fill` fails or panics, none becomes
    /// visible.
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

    /// Opens the bundle at a path, or joins the producers that have it open. Blocks until the server has answered.
    ///
    /// A path has 1 to 16 parts separated by slashes, each of ASCII letters, digits and `._+:-=,@`. While `a` is open,
    /// `a/b` opens as a member of `a`, and becomes visible with it.
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
    /// - `Conflict` if it was opened with another number of members, orphan timeout or attributes, or if a bundle at a
    ///   path below this one was opened first and is not nested
    /// - `BundleClosed` if it, or the enclosing bundle, is complete
    /// - `BundleFull` if the enclosing bundle has all its members
    /// - `InvalidArgument` for an invalid path or number
    /// - `LimitExceeded`
    /// - those of attributes that the schema does not accept
    pub fn open_bundle<'a, V: IntoGiven<'a>>(
        &self,
        path: &str,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: BundleOptions<'_>,
    ) -> Result<Bundle> {
        self.begin_open_bundle(path, attributes, options)?.wait()
    }

    /// Non-blocking version of [`Pool::bundle`]. See [`Pending`].
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
    /// `Disconnected` or `Closed` if the connection has ended; the server's errors arrive with the answer.
    pub fn begin_bundle(&self) -> Result<Pending<Bundle>> {
        begin_open(&self.connection()?, None, body::BundleRequest::default())
    }

    /// Non-blocking version of [`Pool::open_bundle`]. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_open_bundle<'a, V: IntoGiven<'a>>(
        &self,
        path: &str,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: BundleOptions<'_>,
    ) -> Result<Pending<Bundle>> {
        begin_open_path(&self.connection()?, path, attributes, options)
    }
}

pub(crate) fn begin_open_path<'a, V: IntoGiven<'a>>(
    connection: &Arc<PoolConnection>,
    path: &str,
    attributes: impl IntoIterator<Item = (&'a str, V)>,
    options: BundleOptions<'_>,
) -> Result<Pending<Bundle>> {
    let asked = asked(connection, path, attributes, options)?;
    begin_open(connection, Some(path.to_owned()), asked)
}

fn asked<'p, 'a, V: IntoGiven<'a>>(
    connection: &PoolConnection,
    path: &'p str,
    attributes: impl IntoIterator<Item = (&'a str, V)>,
    options: BundleOptions<'_>,
) -> Result<body::BundleRequest<'p>> {
    let schema = match options.schema {
        None => connection.greeting.default_schema,
        Some(name) => connection.greeting.schemas.find(name)?,
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
            RequestOutcome::Letter(ServerMessage::Began(_)) => Ok(Bundle::began(connection, path, number)),
            _ => Err(unexpected("no beginning")),
        },
    )
}

impl Bundle {
    fn began(connection: &Arc<PoolConnection>, path: Option<String>, number: u64) -> Self {
        Self {
            connection: Arc::clone(connection),
            number,
            progress: Arc::new(BundleProgress::new(connection, path, number)),
            arrays: OpenArrays::default(),
        }
    }

    /// Returns its path, if it has one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.progress.path()
    }

    /// Offers a copy of `payload` into the bundle. Blocks until the member is staged. If the member completes the
    /// bundle, blocks until the bundle is visible; if the member is also durable, until all durable members are
    /// archived, as [`Bundle::seal`] does.
    ///
    /// A member replaces an earlier member of this bundle with the same key.
    ///
    /// # Errors
    /// Those of [`Pool::offer`], and:
    ///
    /// - `BundleFull` if the bundle has all its members
    /// - `BundleClosed` if it is complete
    /// - `Closed` if it was aborted
    /// - `Conflict` for a key that is staged in an enclosing or nested bundle
    /// - `PoolFull` at once if staged members fill the memory, because only the end of a bundle could free it
    /// - `AlreadyExists` also for a key that is staged in another bundle under a schema that rejects duplicates
    pub fn offer<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<Staged> {
        self.offer_with(attributes, payload, OfferOptions::default())
    }

    /// As [`Bundle::offer`], with options. A retention period starts when the bundle becomes visible.
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
        allocation.write(0, payload)?;
        self.stage(terms, &record, allocation.into_ready().content())
    }

    /// Allocates memory for a payload, as [`Pool::allocate`] does.
    ///
    /// # Errors
    /// Those of [`Pool::allocate`]; `PoolFull` at once if staged members fill the memory.
    pub fn allocate(&self, bytes: usize) -> Result<Allocation> {
        Allocation::for_bundle(&self.connection, bytes)
    }

    /// Offers a payload that was filled in place, as [`Bundle::offer_with`]. The allocation may be from any handle of
    /// this pool.
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

    /// Non-blocking version of [`Bundle::offer_with`]; the payload is copied as by [`Pool::begin_offer`]. See
    /// [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
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

    /// Non-blocking version of [`Bundle::offer_allocation`]. See [`Pending`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
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

    /// Non-blocking version of [`Bundle::allocate`]. See [`Pending`].
    ///
    /// # Errors
    /// None; the server's errors arrive with the answer.
    #[allow(clippy::unnecessary_wraps, reason = "as that of a pool")]
    pub fn begin_allocate(&self, bytes: usize) -> Result<Pending<Allocation>> {
        Ok(self.connection.begin_allocate(bytes, true))
    }

    /// Creates a pipeline of offers into the bundle, as [`Pool::pipeline`]. [`Pipeline::staged`] returns the value that
    /// [`Bundle::offer`] would have returned.
    ///
    /// # Errors
    /// `LimitExceeded` if too many requests of this connection are outstanding.
    pub fn pipeline(&self, window: usize) -> Result<Pipeline> {
        Pipeline::begin(&self.connection, window, Some(self.number))
    }

    /// Offers many objects, each as [`Bundle::offer`] does, without waiting for each. Blocks until all are staged.
    ///
    /// # Errors
    /// The error of the first failed offer. Other objects may be staged.
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

    /// Seals the bundle: it has all its members. Blocks until it is visible, and until its durable members are
    /// archived. A nested bundle becomes visible with the enclosing one: `seal` then returns at once, without versions,
    /// and [`Bundle::wait`] returns them.
    ///
    /// # Errors
    /// - `Conflict` if a number of members was declared, or a nested bundle is incomplete; the bundle stays open
    /// - `BundleClosed` if it is complete
    /// - `Closed` if it was aborted
    /// - `Io`, or `Timeout` after the pool's offer timeout, if a durable member was not archived; the bundle is visible
    pub fn seal(&self) -> Result<Completed> {
        self.begin_seal()?.wait()
    }

    /// Non-blocking version of [`Bundle::seal`]. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; those of [`Bundle::seal`] arrive with the answer.
    pub fn begin_seal(&self) -> Result<Pending<Completed>> {
        let progress = Arc::clone(&self.progress);
        let sealed = self.connection.begin_count(&Request::Seal(self.number))?;
        Ok(sealed.map(move |objects| progress.sealed(objects?)))
    }

    /// Aborts the bundle and all nested bundles, for all producers that have it open: staged members are freed and
    /// never become visible. Returns the number of objects.
    ///
    /// # Errors
    /// `BundleClosed` if it is complete; `Closed` if it was aborted.
    pub fn abort(&self) -> Result<u64> {
        self.begin_abort()?.wait()
    }

    /// Non-blocking version of [`Bundle::abort`]. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; those of [`Bundle::abort`] arrive with the answer.
    pub fn begin_abort(&self) -> Result<Pending<u64>> {
        let progress = Arc::clone(&self.progress);
        let aborted = self.connection.begin_count(&Request::Abort(self.number))?;
        Ok(aborted.map(move |freed| freed.inspect(|_| progress.aborted())))
    }

    /// Leaves the bundle to the other producers that have it open, as dropping it does. A bundle without a path is
    /// aborted.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn leave(&self) -> Result<()> {
        self.begin_leave()?.wait()
    }

    /// Non-blocking version of [`Bundle::leave`]. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn begin_leave(&self) -> Result<Pending<()>> {
        self.arrays.leave_all();
        self.progress.begin_leave()
    }

    /// Returns the completed bundle if it is visible. Does not block.
    ///
    /// # Errors
    /// `Closed` if it was aborted, or left by this handle.
    pub fn completed(&self) -> Result<Option<Completed>> {
        self.progress.completed()
    }

    /// Blocks until the bundle is visible, and until its durable members are archived.
    ///
    /// # Errors
    /// `Timeout`; `Closed` if it was aborted, or left by this handle; `Io` if a durable member was not archived: the
    /// bundle is then visible.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Completed> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.progress.wait(deadline)?.ok_or_else(|| {
            let cause = "it was not complete in time";
            Error::new(Code::Timeout, self.progress.subject(), cause)
        })
    }

    /// Non-blocking version of [`Bundle::wait`]. See [`Pending`].
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

    /// Returns the completed bundle, if its message has been read.
    pub(crate) fn take_completed(&self) -> Result<Option<Completed>> {
        self.progress.take_completed()
    }

    pub(crate) fn connection(&self) -> &Arc<PoolConnection> {
        &self.connection
    }

    pub(crate) fn arrays(&self) -> &OpenArrays {
        &self.arrays
    }

    /// Checks that no end of the bundle has been reported. Does not block.
    ///
    /// # Errors
    /// `Closed` if it was aborted or left; `BundleClosed` if it is visible.
    pub(crate) fn must_be_open(&self) -> Result<()> {
        match self.completed()? {
            None => Ok(()),
            Some(_) => Err(Error::new(
                Code::BundleClosed,
                self.progress.subject(),
                "it is complete",
            )),
        }
    }

    /// Stages memory of this pool under a complete record.
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

    /// Leaves the bundle if it is complete: with the next request, without waiting.
    pub(crate) fn leave_if_complete(&self) {
        self.progress.leave_if_complete();
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
        if self.progress.leave_if_complete() {
            return;
        }
        // Requests may still wait for the bundle. Without a server there is nothing to leave.
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
