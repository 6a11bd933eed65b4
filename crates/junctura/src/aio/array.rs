//! Offers of array pieces from a task.

use std::sync::Arc;

use junctura_model::{IntoGiven, Result};

use crate::ArrayPiece;
use crate::array::{PieceOffer, PieceScope, is_second, unless_complete};
use crate::pending::Pending;
use crate::pool::Pool;
use crate::verbs::bundle::Bundle;
use crate::verbs::offer::{OfferOptions, OfferTerms, OfferedPayload};

impl Pool {
    /// Async version of [`Pool::offer_piece_with`]: waits for memory if the pool is full. If the future is dropped, the
    /// piece may or may not have been offered; offering the same piece again is harmless.
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{Layout, OfferOptions, ArrayPart, ArrayPiece, Pool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=4x6 grid=2x1".parse()?);
    /// for rank in 0..2 {
    ///     let (piece, mine) = (ArrayPiece::new(&layout, "u1".parse()?, rank), [rank as u8; 12]);
    ///     pool.begin_offer_piece(&piece, [("name", "t")], &mine, OfferOptions::default()).await?;
    /// }
    /// let wanted = Arc::new("shape=4x6 grid=1x3".parse()?);
    /// let array = Arc::new(pool.begin_demand_array("name=t", None)?.await?);
    /// assert_eq!(array.begin_take(&ArrayPart::of(&wanted, 1))?.await?, [0, 0, 0, 0, 1, 1, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pool::offer_piece_with`].
    pub async fn begin_offer_piece<'a, V: IntoGiven<'a>>(
        &self,
        piece: &ArrayPiece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<()> {
        let scope = PieceScope::of_pool(self)?;
        begin_offer_piece(scope, piece, attributes, mine, options).await
    }
}

impl Bundle {
    /// Async version of [`Bundle::offer_piece_with`]; see [`Pool::begin_offer_piece`].
    ///
    /// Requires the feature `async`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{ArrayPiece, BundleOptions, Layout, OfferOptions, Pool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=3".parse()?);
    /// let step = pool.begin_open_bundle("step/6", [("space", "model")], BundleOptions::default())?.await?;
    /// let piece = ArrayPiece::new(&layout, "u1".parse()?, 0);
    /// step.begin_offer_piece(&piece, [("name", "t")], &[1, 2, 3], OfferOptions::default()).await?;
    /// assert_eq!(step.begin_seal()?.await?.objects(), 2); // the array, and its piece
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Bundle::offer_piece_with`].
    pub async fn begin_offer_piece<'a, V: IntoGiven<'a>>(
        &self,
        piece: &ArrayPiece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<()> {
        let scope = PieceScope::of_bundle(self)?;
        begin_offer_piece(scope, piece, attributes, mine, options).await
    }
}

async fn begin_offer_piece<'a, V: IntoGiven<'a>>(
    scope: PieceScope<'_>,
    piece: &ArrayPiece<'_>,
    attributes: impl IntoIterator<Item = (&'a str, V)>,
    mine: &[u8],
    options: OfferOptions<'_>,
) -> Result<()> {
    piece.check(mine.len())?;
    if let Some(names) = scope.connection().begin_unknown_names(&options)? {
        names.await?;
    }
    let offering = PieceOffer::new(scope, piece, attributes, options)?;
    let Some(bundle) = offering.begin_bundle(mine).await? else {
        return Ok(());
    };
    if offering.has_elements() {
        let (terms, record) = offering.as_object()?;
        match stage(&bundle, terms, &record, mine).await {
            Err(error) if is_second(&error) => offering.begin_compare(mine).await?,
            staged => staged?,
        }
    }
    let Some((terms, record, text)) = offering.own_object() else {
        return Ok(());
    };
    unless_complete(stage(&bundle, terms, record, text.as_bytes()).await)
}

impl PieceOffer<'_> {
    /// Async version of [`PieceOffer::bundle`].
    async fn begin_bundle(&self, mine: &[u8]) -> Result<Option<Arc<Bundle>>> {
        let about = self.about();
        if let Some(bundle) = self.open(&about)? {
            return Ok(Some(bundle));
        }
        let opened = match self.begin_open(&about) {
            Ok(pending) => pending.await,
            Err(error) => Err(error),
        };
        match opened {
            Ok(bundle) => self.keep(bundle, about).map(Some),
            Err(error) => {
                if self.is_late(error)? {
                    self.begin_compare(mine).await?;
                }
                Ok(None)
            }
        }
    }

    async fn begin_compare(&self, mine: &[u8]) -> Result<()> {
        let first = match self.begin_demand_first() {
            Ok(pending) => pending.await,
            Err(error) => Err(error),
        };
        self.is_the_same(mine, first)
    }
}

async fn stage(bundle: &Bundle, terms: OfferTerms, record: &[u8], bytes: &[u8]) -> Result<()> {
    let connection = bundle.connection();
    if connection.depot_of_rejecting(terms.schema()).is_some() {
        let (looking, record) = (Arc::clone(connection), record.to_vec());
        let look = move || looking.refuse_behind(terms, &record, OfferedPayload::Inline(&[]));
        Pending::work(connection, look, drop).await?;
    }
    let mut memory = bundle.begin_allocate(bytes.len())?.await?;
    memory.write(0, bytes)?;
    bundle.begin_stage(terms, memory, record)?.await.map(drop)
}
