//! What goes: memory that is filled in place, bundles, pipelines.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use junctura_model::Result;
use junctura_model::version::Version;

use super::pool::allocate;
use super::tasks::until;
use crate::awaiting::Awaited;
use crate::connection::Connection;
use crate::offer::{Content, Terms};
use crate::wanted::not_wanted;
use crate::{Ack, Completed, IntoGiven, OfferOptions, Staged};

/// An offer that was read, and of which nothing was said yet.
pub(super) struct Prepared<'o> {
    options: OfferOptions<'o>,
    schema: u16,
    pub(super) record: Vec<u8>,
}

impl<'o> Prepared<'o> {
    /// # Errors
    /// What is wrong with the attributes.
    pub(super) fn new<'a, V: IntoGiven<'a>>(
        connection: &Arc<Connection>,
        options: OfferOptions<'o>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Self> {
        let schema = connection.schema_number(options.schema)?;
        let mut record = Vec::new();
        connection.record_of(schema, attributes, &mut record)?;
        Ok(Self {
            options,
            schema,
            record,
        })
    }

    /// What the server is told beside the record; names that the object is retained for are made known to it first.
    pub(super) async fn terms(&self, connection: &Arc<Connection>) -> Result<Terms> {
        if let Some(retention) = &self.options.retention
            && let Some(names) = connection.begin_names(retention)?
        {
            names.await?;
        }
        connection.terms(self.options.clone())
    }

    /// Asks before a payload is copied, where the offer is made only if somebody wants it.
    ///
    /// # Errors
    /// `NotWanted`.
    pub(super) async fn is_wanted(&self, connection: &Arc<Connection>, bytes: usize) -> Result<()> {
        if !self.options.if_wanted || connection.goes_inline(bytes) {
            return Ok(());
        }
        match connection.begin_wanted(self.schema, &self.record)?.await? {
            0 => Err(not_wanted(&connection.key_text(self.schema, &self.record))),
            _ => Ok(()),
        }
    }
}

/// Memory for one payload, until it is offered. It holds whatever was there before, and is free again when it is dropped.
///
/// ```
/// # use junctura::{OfferOptions, Pool, aio};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> junctura::Result<()> {
/// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
/// let mut field = pool.allocate(100_000).await?;
/// assert!(field.is_shared()); // else it travels inside the message
/// field[..50_000].fill(7);
/// field.truncate(50_000);
/// field.offer_with(OfferOptions::default(), [("name", "sevens")]).await?;
/// pool.allocate(10).await?.offer([("name", "zeros")]).await?; // small ones begin as zeros
///
/// let field = pool.allocate(100_000).await?.into_inner(); // for code that waits
/// let thread = std::thread::spawn(move || field.offer([("name", "from a thread")]));
/// # thread.join().expect("no panic")?;
/// # Ok(())
/// # }
/// ```
pub struct Allocation {
    connection: Arc<Connection>,
    inner: crate::Allocation,
}

impl Allocation {
    pub(super) fn new(connection: &Arc<Connection>, inner: crate::Allocation) -> Self {
        Self {
            connection: Arc::clone(connection),
            inner,
        }
    }

    /// Offers it and returns when the object is visible. Should the offer fail, the memory is free again.
    ///
    /// # Errors
    /// As [`crate::Allocation::offer`].
    pub async fn offer<'a, V: IntoGiven<'a>>(
        self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Version> {
        self.offer_with(OfferOptions::default(), attributes).await
    }

    /// As [`Allocation::offer`], with options.
    ///
    /// # Errors
    /// As [`crate::Allocation::offer_with`].
    pub async fn offer_with<'a, V: IntoGiven<'a>>(
        self,
        options: OfferOptions<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Version> {
        let prepared = Prepared::new(&self.connection, options, attributes)?;
        let terms = prepared.terms(&self.connection).await?;
        let offered = self.inner.begin_offer_on(terms, &prepared.record)?;
        offered.await
    }

    /// As [`crate::Allocation::is_shared`].
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    /// Keeps only the first `bytes`; more than there are changes nothing.
    pub fn truncate(&mut self, bytes: usize) {
        self.inner.truncate(bytes);
    }

    /// The same memory for code that waits, such as a thread that fills and offers it.
    #[must_use]
    pub fn into_inner(self) -> crate::Allocation {
        self.inner
    }
}

impl Deref for Allocation {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.inner
    }
}

impl DerefMut for Allocation {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.inner
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aio::{:?}", self.inner)
    }
}

/// A bundle that this program has open, as [`crate::Bundle`]. Tasks may share it. Dropping it publishes nothing, and waits for
/// nothing.
///
/// ```
/// # use junctura::{OfferOptions, Pool, aio};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> junctura::Result<()> {
/// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
/// let bundle = pool.bundle().await?;
/// let second = bundle.offer_with(OfferOptions::default(), [("name", "b")], b"two").await?;
/// let mut pipeline = bundle.pipeline(64)?;
/// pipeline.offer([("name", "c")], b"three").await?;
/// pipeline.flush().await?;
/// let mut memory = bundle.allocate(100_000).await?;
/// memory.fill(1);
/// let first = bundle.offer_allocation(OfferOptions::default(), memory, [("name", "a")]).await?;
/// assert!(pool.list("").await?.is_empty());
///
/// let completed = bundle.seal().await?;
/// assert_eq!(pool.list("").await?.len(), 3);
/// assert!(completed.version(first) < completed.version(second));
/// # Ok(())
/// # }
/// ```
pub struct Bundle {
    connection: Arc<Connection>,
    inner: crate::Bundle,
}

impl Bundle {
    pub(super) fn new(connection: &Arc<Connection>, inner: crate::Bundle) -> Self {
        Self {
            connection: Arc::clone(connection),
            inner,
        }
    }

    /// As [`crate::Bundle::path`].
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.inner.path()
    }

    /// Offers a copy of `payload` into the bundle, as [`crate::Bundle::offer`].
    ///
    /// # Errors
    /// As there.
    pub async fn offer<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<Staged> {
        self.offer_with(OfferOptions::default(), attributes, payload).await
    }

    /// As [`crate::Bundle::offer_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn offer_with<'a, V: IntoGiven<'a>>(
        &self,
        options: OfferOptions<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<Staged> {
        let prepared = Prepared::new(&self.connection, options, attributes)?;
        let mut memory = self.allocate(payload.len()).await?;
        memory.copy_from_slice(payload);
        self.stage(&prepared, memory).await
    }

    /// Memory for a payload, as [`crate::Bundle::allocate`].
    ///
    /// # Errors
    /// As there.
    pub async fn allocate(&self, bytes: usize) -> Result<Allocation> {
        allocate(&self.connection, self.inner.begin_allocate(bytes)).await
    }

    /// Offers what was filled in place, as [`crate::Bundle::offer_allocation`].
    ///
    /// # Errors
    /// As there.
    pub async fn offer_allocation<'a, V: IntoGiven<'a>>(
        &self,
        options: OfferOptions<'_>,
        allocation: Allocation,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Staged> {
        allocation.inner.must_be_of(&self.connection)?;
        let prepared = Prepared::new(&self.connection, options, attributes)?;
        self.stage(&prepared, allocation).await
    }

    async fn stage(&self, prepared: &Prepared<'_>, memory: Allocation) -> Result<Staged> {
        let terms = prepared.terms(&self.connection).await?.within(self.inner.number());
        let staged = self.inner.begin_stage(terms, memory.inner, &prepared.record)?;
        staged.await
    }

    /// Offers into the bundle that are not awaited one by one, as [`crate::Bundle::pipeline`].
    ///
    /// # Errors
    /// As there.
    pub fn pipeline(&self, window: usize) -> Result<Pipeline> {
        Ok(Pipeline::new(&self.connection, self.inner.pipeline(window)?))
    }

    /// Offers many objects, as [`crate::Bundle::offer_many`]; returns when all are staged.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let bundle = pool.bundle().await?;
    /// let staged = bundle.offer_many([([("name", "a")], b"one"), ([("name", "b")], b"two")]).await?;
    /// let completed = bundle.seal().await?;
    /// assert!(staged.into_iter().all(|member| completed.version(member).is_some()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn offer_many<'a, V, A, P>(&self, objects: impl IntoIterator<Item = (A, P)>) -> Result<Vec<Staged>>
    where
        V: IntoGiven<'a>,
        A: IntoIterator<Item = (&'a str, V)>,
        P: AsRef<[u8]>,
    {
        let mut pipeline = self.pipeline(1024)?;
        for (attributes, payload) in objects {
            pipeline.offer(attributes, payload.as_ref()).await?;
        }
        pipeline.flush().await?;
        Ok(pipeline.into_inner().all_staged())
    }

    /// Says that the bundle has all its members, as [`crate::Bundle::seal`].
    ///
    /// # Errors
    /// As there.
    pub async fn seal(&self) -> Result<Completed> {
        let objects = self.inner.begin_seal()?.await?;
        self.inner.sealed(objects)
    }

    /// Gives the bundle up, for all who have it open, as [`crate::Bundle::abort`].
    ///
    /// ```
    /// # use junctura::{Code, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let bundle = pool.bundle().await?;
    /// bundle.offer([("name", "a")], b"one").await?;
    /// assert_eq!(bundle.abort().await?, 1);
    /// assert_eq!(bundle.completed().unwrap_err().code(), Code::Closed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn abort(&self) -> Result<u64> {
        let freed = self.inner.begin_abort()?.await?;
        self.inner.aborted();
        Ok(freed)
    }

    /// Leaves the bundle to the others who have it open, as dropping it does, and returns when the server knows. One without a
    /// path is aborted.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub async fn leave(&self) -> Result<()> {
        match self.inner.begin_leave()? {
            Some(left) => left.await,
            None => Ok(()),
        }
    }

    /// What came of it, if it is visible; does not wait.
    ///
    /// # Errors
    /// As [`crate::Bundle::completed`].
    pub fn completed(&self) -> Result<Option<Completed>> {
        self.inner.completed()
    }

    /// Waits until it is visible.
    ///
    /// ```
    /// # use junctura::{BundleOptions, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let two = BundleOptions { members: Some(2), ..BundleOptions::default() };
    /// let mine = pool.open_bundle("step/6", &two, [("space", "forecast")]).await?;
    /// let yours = pool.open_bundle("step/6", &two, [("space", "forecast")]).await?;
    /// mine.offer([("name", "t")], b"...").await?;
    /// yours.offer([("name", "u")], b"...").await?;
    /// assert_eq!((mine.path(), mine.wait().await?.objects()), (Some("step/6"), 2));
    /// yours.leave().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed` where it was aborted, or left by this handle.
    pub async fn wait(&self) -> Result<Completed> {
        until(&self.connection, self.inner.awaiting(), || {
            self.inner.take_completed().transpose()
        })
        .await
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        // Without a server there is nothing to leave.
        let _ = self.inner.begin_leave();
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aio::{:?}", self.inner)
    }
}

/// Offers on their way, as [`crate::Pipeline`]. Dropping it sends what has gathered, without waiting.
///
/// ```
/// # use junctura::{OfferOptions, Pool, aio};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> junctura::Result<()> {
/// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
/// pool.offer([("name", "b")], b"").await?;
/// let mut pipeline = pool.pipeline(64)?.on_ack(|ack| println!("{}: {:?}", ack.number, ack.outcome));
/// for name in ["a", "b", "c"] {
///     pipeline.offer([("name", name)], b"bytes").await?;
/// }
/// pipeline.wait_until(1).await?; // not all
/// pipeline.flush().await?; // what failed was told
/// assert_eq!(pipeline.outstanding(), 0);
///
/// // Into a bundle: what `Bundle::offer` would have returned is known by number.
/// let bundle = pool.bundle().await?;
/// let mut members = bundle.pipeline(64)?;
/// let number = members.offer_with(OfferOptions::default(), [("name", "d")], b"").await?;
/// members.flush().await?;
/// let staged = members.staged(number).expect("it was offered");
/// assert!(bundle.seal().await?.version(staged).is_some());
/// # Ok(())
/// # }
/// ```
pub struct Pipeline {
    connection: Arc<Connection>,
    inner: crate::Pipeline,
}

impl Pipeline {
    pub(super) fn new(connection: &Arc<Connection>, inner: crate::Pipeline) -> Self {
        Self {
            connection: Arc::clone(connection),
            inner,
        }
    }

    pub(super) fn into_inner(self) -> crate::Pipeline {
        self.inner
    }

    /// As [`crate::Pipeline::on_ack`].
    #[must_use]
    pub fn on_ack(mut self, call: impl FnMut(Ack) + Send + 'static) -> Self {
        self.inner = self.inner.on_ack(call);
        self
    }

    /// As [`crate::Pipeline::staged`].
    #[must_use]
    pub fn staged(&self, number: u64) -> Option<Staged> {
        self.inner.staged(number)
    }

    /// As [`crate::Pipeline::outstanding`].
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.inner.outstanding()
    }

    /// Offers a copy of `payload`, as [`crate::Pipeline::offer`]; waits only when the window is full, or the pool is. Where the
    /// future is dropped, the offer was not made.
    ///
    /// # Errors
    /// As there.
    pub async fn offer<'a, V: IntoGiven<'a>>(
        &mut self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<u64> {
        self.offer_with(OfferOptions::default(), attributes, payload).await
    }

    /// As [`crate::Pipeline::offer_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn offer_with<'a, V: IntoGiven<'a>>(
        &mut self,
        options: OfferOptions<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<u64> {
        let prepared = Prepared::new(&self.connection, options, attributes)?;
        let terms = prepared.terms(&self.connection).await?;
        if self.connection.goes_inline(payload.len()) {
            self.await_room().await?;
            return self.inner.put(terms, &prepared.record, Content::Inline(payload));
        }
        let mut memory = self.allocate(payload.len()).await?;
        memory.copy_from_slice(payload);
        self.await_room().await?;
        self.put(terms, &prepared, memory)
    }

    /// Memory for a payload, as [`crate::Pipeline::allocate`].
    ///
    /// # Errors
    /// As there.
    pub fn allocate(&self, bytes: usize) -> impl Future<Output = Result<Allocation>> + Send + use<> {
        // Nothing of the pipeline is kept, whose `on_ack` may be one thread's at a time alone.
        let (connection, is_of_bundle) = (Arc::clone(&self.connection), self.inner.is_of_bundle());
        async move {
            let pending = connection.begin_allocate(bytes, is_of_bundle);
            allocate(&connection, pending).await
        }
    }

    /// Offers what was filled in place, as [`crate::Pipeline::offer_allocation_with`].
    ///
    /// ```
    /// # use junctura::{OfferOptions, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let mut pipeline = pool.pipeline(8)?;
    /// for name in ["a", "b", "c"] {
    ///     let mut field = pipeline.allocate(100_000).await?;
    ///     field.fill(7);
    ///     pipeline.offer_allocation(OfferOptions::default(), field, [("name", name)]).await?;
    /// }
    /// pipeline.flush().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn offer_allocation<'a, V: IntoGiven<'a>>(
        &mut self,
        options: OfferOptions<'_>,
        allocation: Allocation,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<u64> {
        allocation.inner.must_be_of(&self.connection)?;
        let prepared = Prepared::new(&self.connection, options, attributes)?;
        let terms = prepared.terms(&self.connection).await?;
        self.await_room().await?;
        self.put(terms, &prepared, allocation)
    }

    fn put(&mut self, terms: Terms, prepared: &Prepared<'_>, memory: Allocation) -> Result<u64> {
        let ready = memory.inner.into_ready();
        self.inner.put(terms, &prepared.record, ready.content())
    }

    async fn await_room(&mut self) -> Result<()> {
        let most = self.inner.window() - 1;
        if self.inner.outstanding() > most {
            self.wait_until(most).await?;
        }
        Ok(())
    }

    /// Sends what has gathered and waits until at most `most` offers are unacknowledged.
    ///
    /// # Errors
    /// As [`crate::Pipeline::wait_until`].
    pub async fn wait_until(&mut self, most: usize) -> Result<()> {
        let (awaiting, pipeline) = (self.inner.awaiting(), &mut self.inner);
        let take = || match pipeline.take_acks() {
            Ok(()) => (pipeline.outstanding() <= most).then_some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        until(&self.connection, awaiting, take).await?;
        self.inner.check()
    }

    /// Sends what has gathered and waits until every offer is acknowledged.
    ///
    /// # Errors
    /// As [`crate::Pipeline::flush`].
    pub async fn flush(&mut self) -> Result<()> {
        self.wait_until(0).await
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aio::{:?}", self.inner)
    }
}
