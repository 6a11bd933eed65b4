//! The pool as tasks hold it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use junctura_model::version::Version;
use junctura_model::{Code, Result};

use super::beside::beside;
use super::driver::Driver;
use super::writing::{Allocation, Bundle, Pipeline, Prepared};
use crate::connection::Connection;
use crate::connection::DriverState;
use crate::pending::Pending;
use crate::{BundleEntry, BundleOptions, Completed, IntoGiven, OfferOptions, PoolBuilder, Target, WithdrawOptions};

/// The shared space in which objects are offered and found, for tasks.
///
/// Clones share one connection and one driver. It is left when the last clone and the last handle made from it are dropped.
/// See the [module](crate::aio) for what cancellation means.
///
/// ```
/// # use junctura::{EventKind, Item, Pool, aio};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> junctura::Result<()> {
/// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
/// let mut events = pool.subscribe("", &[EventKind::Offered]).await?;
/// let archive = pool.require("name=a").await?; // stays until it was received through this, and released
/// let mut follow = pool.follow("").await?; // what is there, then what comes
/// let bundle = pool.bundle().await?; // visible together, or not at all
/// bundle.offer([("name", "a")], b"one").await?;
/// bundle.offer([("name", "b")], b"two").await?;
/// assert_eq!((pool.bundles("").await?.len(), pool.wanted([("name", "a")]).await?), (1, 2));
/// bundle.seal().await?;
///
/// assert_eq!(pool.list("name=a/b").await?.len(), 2);
/// assert_eq!(events.next_event().await?.map(|event| event.bytes), Some(3));
/// while !matches!(follow.next_item().await?, Some(Item::Object(_))) {}
/// # drop(archive);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool {
    pub(super) inner: crate::Pool,
}

impl Pool {
    /// Opens a pool: a thread does, since a server may have to be started. To be called in a runtime of tokio's, with its
    /// I/O enabled; a task of it is the pool's driver.
    ///
    /// Should that runtime end before the pool does, whoever waits next in another one makes another driver there.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let late = tokio::spawn({
    ///     let pool = pool.clone();
    ///     async move { pool.demand("name=a", None).await }
    /// });
    /// pool.offer([("name", "a")], b"payload").await?;
    /// assert_eq!(&late.await.expect("no panic")?[..], b"payload");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`PoolBuilder::open`]; `Unavailable` outside tokio's runtimes.
    ///
    /// # Panics
    /// In a runtime of tokio's without I/O.
    #[cfg(feature = "tokio")]
    pub async fn open(builder: PoolBuilder) -> Result<Self> {
        Self::of(opened(builder).await?)
    }

    /// The same of a pool that is open, and stays usable by threads.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let builder = Pool::builder().schema("free");
    /// let pool = aio::Pool::of(builder.open()?)?; // best opened before the runtime has much to do
    /// pool.blocking().offer([("name", "a")], b"payload")?;
    /// assert_eq!(pool.demand("name=a", None).await?.len(), 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unavailable` outside tokio's runtimes; `LimitExceeded` when this process may open no more descriptors.
    ///
    /// # Panics
    /// In a runtime of tokio's without I/O.
    #[cfg(feature = "tokio")]
    pub fn of(pool: crate::Pool) -> Result<Self> {
        pool.connection()?.drive_on_tokio()?;
        Ok(Self { inner: pool })
    }

    /// A pool for tasks of any runtime, and its driver, which somebody has to run: see there.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # fn main() -> junctura::Result<()> {
    /// let (pool, driver) = aio::Pool::driven(Pool::builder().schema("free").open()?)?;
    /// std::thread::spawn(|| driver.run());
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// assert_eq!(pool.offer([("name", "a")], b"payload").await?.sequence, 1);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// `LimitExceeded` when this process may open no more descriptors.
    pub fn driven(pool: crate::Pool) -> Result<(Self, Driver)> {
        let driver = Driver::new(&pool.connection()?, DriverState::Left)?;
        Ok((Self { inner: pool }, driver))
    }

    /// As [`Pool::driven`], and opens the pool: a thread does, since a server may have to be started.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # fn main() -> junctura::Result<()> { tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let (pool, driver) = aio::Pool::open_driven(Pool::builder().schema("free")).await?;
    /// std::thread::spawn(|| driver.run());
    /// pool.sync().await?;
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// Those of [`PoolBuilder::open`] and of [`Pool::driven`].
    pub async fn open_driven(builder: PoolBuilder) -> Result<(Self, Driver)> {
        Self::driven(opened(builder).await?)
    }

    /// The same pool for code that waits: threads, and what is done at once ([`crate::Pool::url`], [`crate::Pool::schemas`],
    /// [`crate::Pool::route`], …).
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # fn main() -> junctura::Result<()> {
    /// # let (pool, _driver) = aio::Pool::driven(Pool::builder().schema("free").open()?)?;
    /// println!("others connect to {}", pool.blocking().url());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn blocking(&self) -> &crate::Pool {
        &self.inner
    }

    /// Offers a copy of `payload`, as [`crate::Pool::offer`]; returns when the object is visible to all. Where the pool is
    /// full it waits for memory.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let version = pool.offer([("space", "demo"), ("name", "first")], b"bytes").await?;
    /// assert_eq!(version.sequence, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn offer<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<Version> {
        self.offer_with(OfferOptions::default(), attributes, payload).await
    }

    /// As [`crate::Pool::offer_with`].
    ///
    /// ```
    /// # use junctura::{Code, OfferOptions, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let if_wanted = OfferOptions { if_wanted: true, ..OfferOptions::default() };
    /// let refused = pool.offer_with(if_wanted, [("name", "a")], &[0; 100_000]).await;
    /// assert_eq!(refused.unwrap_err().code(), Code::NotWanted); // nothing was moved
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn offer_with<'a, V: IntoGiven<'a>>(
        &self,
        options: OfferOptions<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<Version> {
        let prepared = Prepared::new(&self.inner.connection()?, options, attributes)?;
        let terms = prepared.terms(&self.inner.connection()?).await?;
        prepared.is_wanted(&self.inner.connection()?, payload.len()).await?;
        let mut memory = self.allocate(payload.len()).await?;
        memory.copy_from_slice(payload);
        memory.into_inner().begin_offer_on(terms, &prepared.record)?.await
    }

    /// Offers many objects without awaiting each, as [`crate::Pool::offer_many`]; returns when all are visible.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let steps = ["0", "6", "12"].map(|step| ([("space", "steps"), ("name", step)], b"field"));
    /// assert_eq!(pool.offer_many(steps).await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn offer_many<'a, V, A, P>(&self, objects: impl IntoIterator<Item = (A, P)>) -> Result<Vec<Version>>
    where
        V: IntoGiven<'a>,
        A: IntoIterator<Item = (&'a str, V)>,
        P: AsRef<[u8]>,
    {
        let mut pipeline = Pipeline::new(&self.inner.connection()?, self.inner.pipeline(1024)?.collect());
        for (attributes, payload) in objects {
            pipeline.offer(attributes, payload.as_ref()).await?;
        }
        pipeline.flush().await?;
        Ok(pipeline.into_inner().collected())
    }

    /// Memory for a payload of `bytes`, to be filled and offered, as [`crate::Pool::allocate`]; waits for it where the pool is
    /// full.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let mut field = pool.allocate(100_000).await?;
    /// field.fill(7);
    /// field.offer([("space", "demo"), ("name", "sevens")]).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn allocate(&self, bytes: usize) -> Result<Allocation> {
        let pending = self.inner.begin_allocate(bytes)?;
        allocate(&self.inner.connection()?, pending).await
    }

    /// Offers that are not awaited one by one: up to `window` (at least 1) may be unacknowledged, as [`crate::Pool::pipeline`].
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let mut pipeline = pool.pipeline(64)?;
    /// for name in ["a", "b", "c"] {
    ///     pipeline.offer([("name", name)], b"bytes").await?;
    /// }
    /// pipeline.flush().await?; // all are visible
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn pipeline(&self, window: usize) -> Result<Pipeline> {
        Ok(Pipeline::new(&self.inner.connection()?, self.inner.pipeline(window)?))
    }

    /// Opens a bundle without a path, as [`crate::Pool::bundle`].
    ///
    /// # Errors
    /// As there.
    pub async fn bundle(&self) -> Result<Bundle> {
        let none: [(&str, &str); 0] = [];
        let pending = self.inner.begin_bundle(None, &BundleOptions::default(), none)?;
        Ok(Bundle::new(&self.inner.connection()?, pending.await?))
    }

    /// Runs `fill` and makes all that it offered into the bundle visible at one point; nothing, if it fails or is cancelled. As
    /// [`crate::Pool::bundled`].
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let completed = pool
    ///     .bundled(async |bundle| {
    ///         bundle.offer([("name", "a")], b"one").await?;
    ///         bundle.offer([("name", "b")], b"two").await?;
    ///         Ok(())
    ///     })
    ///     .await?;
    /// assert_eq!(completed.objects(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn bundled(&self, fill: impl AsyncFnOnce(&Bundle) -> Result<()>) -> Result<Completed> {
        let bundle = self.bundle().await?;
        fill(&bundle).await?;
        bundle.seal().await
    }

    /// Opens the bundle of a path, or joins the producers that have it open, as [`crate::Pool::open_bundle`].
    ///
    /// ```
    /// # use junctura::{BundleOptions, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let options = BundleOptions { members: Some(1), ..BundleOptions::default() };
    /// let bundle = pool.open_bundle("step/6", &options, [("space", "forecast")]).await?;
    /// bundle.offer([("space", "forecast"), ("name", "t")], b"...").await?;
    /// assert_eq!(bundle.wait().await?.objects(), 1);
    /// # assert_eq!(pool.bundles("").await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn open_bundle<'a, V: IntoGiven<'a>>(
        &self,
        path: &str,
        options: &BundleOptions<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Bundle> {
        let pending = self.inner.begin_bundle(Some(path), options, attributes)?;
        Ok(Bundle::new(&self.inner.connection()?, pending.await?))
    }

    /// The bundles whose attributes match a selector, as [`crate::Pool::bundles`].
    ///
    /// # Errors
    /// As there.
    pub async fn bundles(&self, selector: &str) -> Result<Vec<BundleEntry>> {
        self.bundles_under(None, selector).await
    }

    /// As [`crate::Pool::bundles_under`].
    ///
    /// ```
    /// # use junctura::{BundleOptions, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// # let bundle = pool.open_bundle("step/6", &BundleOptions::default(), [("space", "forecast")]).await?;
    /// let open = pool.bundles_under(Some("step/6"), "").await?;
    /// assert_eq!((open[0].path.as_deref(), open[0].members), (Some("step/6"), 0));
    /// # drop(bundle);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn bundles_under(&self, path: Option<&str>, selector: &str) -> Result<Vec<BundleEntry>> {
        let mut entries = Vec::new();
        loop {
            let pending = self.inner.begin_bundles(&entries, path, selector)?;
            let (page, is_last) = pending.await?;
            entries.extend(page);
            if is_last {
                return Ok(entries);
            }
        }
    }

    /// Withdraws the object with this key, as [`crate::Pool::withdraw`]. Where the future is dropped, the object stays
    /// offered, unless it went already.
    ///
    /// ```
    /// # use junctura::{Pool, Target, WithdrawOptions, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// pool.offer([("name", "a")], b"payload").await?;
    /// let gone = pool.withdraw(Target::key([("name", "a")]), WithdrawOptions::default()).await?;
    /// assert_eq!(gone, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn withdraw<'a>(&self, key: impl Into<Target<'a>>, options: WithdrawOptions) -> Result<u64> {
        self.inner.begin_withdraw(key, options)?.await
    }

    /// Withdraws every object that matches a selector, as [`crate::Pool::retire`].
    ///
    /// ```
    /// # use junctura::{Pool, WithdrawOptions, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// pool.offer([("name", "a")], b"payload").await?;
    /// assert_eq!(pool.retire("name=a/b", WithdrawOptions::default()).await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn retire(&self, selector: &str, options: WithdrawOptions) -> Result<u64> {
        self.inner.begin_retire(selector, options)?.await
    }

    /// The server's counters, as a JSON document.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// assert!(pool.stat().await?.contains("clients"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server to ask any more.
    pub async fn stat(&self) -> Result<String> {
        self.inner.begin_stat()?.await
    }

    /// Returns when everything that was said through this pool before is in effect, as [`crate::Pool::sync`].
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// # pool.offer([("name", "work")], b"payload").await?;
    /// drop(pool.demand("name=work", None).await?); // it is released
    /// pool.sync().await?; // and the server knows, whatever becomes of this process
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn sync(&self) -> Result<()> {
        self.inner.begin_sync()?.await
    }

    /// Stops the server, as [`crate::Pool::stop`]; returns when it has ended.
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// pool.stop(None).await?;
    /// assert!(pool.stat().await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn stop(&self, timeout: Option<Duration>) -> Result<()> {
        let ended = match self.inner.begin_stop(timeout)?.await {
            Err(error) if error.code() != Code::Timeout => return Err(error),
            ended => ended.map(|_| ()),
        };
        // It answers nothing any more: what comes is the end of the connection.
        if let Ok(end) = self.inner.begin_stat() {
            let _ = end.await;
        }
        ended
    }

    /// Sends what has gathered (releases, pipelined offers), as [`crate::Pool::flush`].
    ///
    /// ```
    /// # use junctura::{Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// pool.flush().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn flush(&self) -> Result<()> {
        if self.inner.send()? {
            return Ok(());
        }
        let pool = self.inner.clone();
        beside(move || pool.flush(), drop)?.await
    }

    /// Leaves the pool, for all clones, as [`crate::Pool::close`]: a thread does, since what is to go goes before. Dropping the
    /// last clone leaves it, too, once all handles are dropped.
    ///
    /// ```
    /// # use junctura::{Code, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// pool.close().await?;
    /// assert_eq!(pool.sync().await.unwrap_err().code(), Code::Closed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `LimitExceeded` when the system gives no thread.
    pub async fn close(&self) -> Result<()> {
        let pool = self.inner.clone();
        beside(move || pool.close(), drop)?.await;
        Ok(())
    }
}

async fn opened(builder: PoolBuilder) -> Result<crate::Pool> {
    beside(move || builder.open(), drop)?.await
}

pub(super) async fn allocate(connection: &Arc<Connection>, pending: Pending<crate::Allocation>) -> Result<Allocation> {
    Ok(Allocation::new(connection, pending.await?))
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aio::Pool({})", self.inner.url())
    }
}
