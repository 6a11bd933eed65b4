//! Pipelined offers from tasks.

use std::sync::Arc;

use junctura_model::version::Version;
use junctura_model::{IntoGiven, Result};

use super::tasks::until;
use crate::pool::Pool;
use crate::verbs::allocation::Allocation;
use crate::verbs::bundle::{Bundle, Completed, Staged};
use crate::verbs::offer::{OfferOptions, OfferedPayload, PreparedOffer};
use crate::verbs::pipeline::Pipeline;

impl Pool {
    /// Async version of [`Pool::offer_many`].
    ///
    /// Requires the feature `async`.
    ///
    /// # Errors
    /// As [`Pool::offer_many`].
    pub async fn begin_offer_many<'a, V, A, P>(&self, objects: impl IntoIterator<Item = (A, P)>) -> Result<Vec<Version>>
    where
        V: IntoGiven<'a>,
        A: IntoIterator<Item = (&'a str, V)>,
        P: AsRef<[u8]>,
    {
        let mut pipeline = self.pipeline(1024)?.collect();
        offer_all(&mut pipeline, objects).await?;
        Ok(pipeline.collected())
    }

    /// Async version of [`Pool::bundled`].
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let completed = pool.begin_bundled(async |bundle| {
    ///     bundle.begin_offer_many([([("name", "a")], b"one"), ([("name", "b")], b"two")]).await?;
    ///     Ok(())
    /// });
    /// assert_eq!(completed.await?.objects(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pool::bundled`].
    pub async fn begin_bundled(&self, fill: impl AsyncFnOnce(&Bundle) -> Result<()>) -> Result<Completed> {
        let bundle = self.begin_bundle()?.await?;
        fill(&bundle).await?;
        bundle.begin_seal()?.await
    }
}

impl Bundle {
    /// Async version of [`Bundle::offer_many`].
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let bundle = pool.bundle()?;
    /// bundle.begin_offer_many([([("name", "a")], b"one")]).await?;
    /// assert_eq!(bundle.begin_seal()?.await?.objects(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Bundle::offer_many`].
    pub async fn begin_offer_many<'a, V, A, P>(&self, objects: impl IntoIterator<Item = (A, P)>) -> Result<Vec<Staged>>
    where
        V: IntoGiven<'a>,
        A: IntoIterator<Item = (&'a str, V)>,
        P: AsRef<[u8]>,
    {
        let mut pipeline = self.pipeline(1024)?;
        offer_all(&mut pipeline, objects).await?;
        Ok(pipeline.all_staged())
    }
}

async fn offer_all<'a, V, A, P>(pipeline: &mut Pipeline, objects: impl IntoIterator<Item = (A, P)>) -> Result<()>
where
    V: IntoGiven<'a>,
    A: IntoIterator<Item = (&'a str, V)>,
    P: AsRef<[u8]>,
{
    for (attributes, payload) in objects {
        pipeline
            .begin_offer(attributes, payload.as_ref(), OfferOptions::default())
            .await?;
    }
    pipeline.begin_flush().await
}

impl Pipeline {
    /// Async version of [`Pipeline::offer_with`]: waits only if the window or the pool is full. If the future is
    /// dropped, the offer was not made.
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use junctura::{OfferOptions, Pool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut pipeline = pool.pipeline(64)?.on_ack(|ack| println!("{}: {:?}", ack.number, ack.outcome));
    /// for name in ["a", "b", "c"] {
    ///     pipeline.begin_offer([("name", name)], b"bytes", OfferOptions::default()).await?;
    /// }
    /// let mut field = pool.begin_allocate(100_000)?.await?;
    /// field.fill(7);
    /// pipeline.begin_offer_allocation(field, [("name", "d")], OfferOptions::default()).await?;
    /// pipeline.begin_wait_until(1).await?; // not all
    /// pipeline.begin_flush().await?; // failures were reported
    /// assert_eq!(pipeline.outstanding(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pipeline::offer_with`].
    pub async fn begin_offer<'a, V: IntoGiven<'a>>(
        &mut self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<u64> {
        let connection = Arc::clone(self.connection());
        let offer = PreparedOffer::new(&connection, attributes, options)?.for_pipeline();
        let offer = offer.begin_ready()?.await?;
        if connection.goes_inline(payload.len()) {
            self.begin_room().await?;
            return self.put(&offer, OfferedPayload::Inline(payload));
        }
        let mut memory = connection.begin_allocate(payload.len(), self.is_of_bundle()).await?;
        memory.write(0, payload)?;
        self.begin_room().await?;
        let ready = memory.into_ready();
        self.put(&offer, ready.content())
    }

    /// Async version of [`Pipeline::offer_allocation_with`].
    ///
    /// Requires the feature `async`.
    ///
    /// # Errors
    /// As [`Pipeline::offer_allocation_with`].
    pub async fn begin_offer_allocation<'a, V: IntoGiven<'a>>(
        &mut self,
        allocation: Allocation,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: OfferOptions<'_>,
    ) -> Result<u64> {
        let connection = Arc::clone(self.connection());
        allocation.must_be_of(&connection)?;
        let offer = PreparedOffer::new(&connection, attributes, options)?.for_pipeline();
        let offer = offer.begin_ready()?.await?;
        self.begin_room().await?;
        let ready = allocation.into_ready();
        self.put(&offer, ready.content())
    }

    async fn begin_room(&mut self) -> Result<()> {
        let most = self.window() - 1;
        if self.outstanding() > most {
            self.begin_wait_until(most).await?;
        }
        Ok(())
    }

    /// Async version of [`Pipeline::wait_until`].
    ///
    /// Requires the feature `async`.
    ///
    /// # Errors
    /// As [`Pipeline::wait_until`].
    pub async fn begin_wait_until(&mut self, most: usize) -> Result<()> {
        let (awaiting, connection) = (self.awaiting(), Arc::clone(self.connection()));
        let take = || match self.take_acks() {
            Ok(()) => (self.outstanding() <= most).then_some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        until(&connection, awaiting, take).await?;
        self.check()
    }

    /// Async version of [`Pipeline::flush`].
    ///
    /// Requires the feature `async`.
    ///
    /// # Errors
    /// As [`Pipeline::flush`].
    pub async fn begin_flush(&mut self) -> Result<()> {
        self.begin_wait_until(0).await
    }
}
