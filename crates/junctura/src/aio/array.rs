//! Arrays that lie over many ranks.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};

use super::Pool;
use super::beside::beside;
use super::pool::allocate;
use crate::array::{ARRAYS, Lacking, Offering, is_second, unless_complete};
use crate::offer::Terms;
use crate::{Bundle, DemandOptions, IntoGiven, OfferOptions, Part, Piece, Target};

impl Pool {
    /// Offers a copy of one rank's part of an array, as [`crate::Pool::offer_piece`]; waits for memory where the pool is full. A future that is
    /// dropped may have offered it or not: offered again, the same piece does no harm.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{Layout, Part, Piece, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let layout: Arc<Layout> = Arc::new("shape=4x6 grid=2x1".parse()?);
    /// for rank in 0..2 {
    ///     let piece = Piece::new(&layout, "u1".parse()?, rank);
    ///     pool.offer_piece(&piece, [("name", "t")], &vec![rank as u8; piece.bytes()]).await?;
    /// }
    /// let wanted = Arc::new("shape=4x6 grid=1x3".parse()?);
    /// let array = pool.demand_array("name=t", None).await?;
    /// assert_eq!(array.take(&Part::of(&wanted, 1)).await?, [0, 0, 0, 0, 1, 1, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn offer_piece<'a, V: IntoGiven<'a>>(
        &self,
        piece: &Piece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        self.offer_piece_with(OfferOptions::default(), piece, attributes, mine)
            .await
    }

    /// As [`crate::Pool::offer_piece_with`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{Layout, OfferOptions, Piece, Pool, Retention, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let layout: Arc<Layout> = Arc::new("shape=3".parse()?);
    /// let once = OfferOptions { retention: Some(Retention::Released(1)), ..OfferOptions::default() };
    /// pool.offer_piece_with(once, &Piece::new(&layout, "u1".parse()?, 0), [("name", "t")], &[1, 2, 3]).await?;
    /// drop(pool.demand_array("name=t", None).await?);
    /// assert!(pool.list("").await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn offer_piece_with<'a, V: IntoGiven<'a>>(
        &self,
        options: OfferOptions<'_>,
        piece: &Piece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        piece.check(mine.len())?;
        if let Some(retention) = &options.retention
            && let Some(names) = self.inner.begin_names(retention)?
        {
            names.await?;
        }
        let offering = self.inner.offering(options, piece, attributes)?;
        let Some(bundle) = self.array_bundle(&offering, mine).await? else {
            return Ok(());
        };
        if offering.has_elements() {
            let (terms, record) = offering.as_object()?;
            match self.stage(&bundle, terms, &record, mine).await {
                Err(error) if is_second(&error) => self.must_be_the_same(&offering, mine).await?,
                staged => staged?,
            }
        }
        let Some((terms, record, text)) = offering.own_object() else {
            return Ok(());
        };
        unless_complete(self.stage(&bundle, terms, record, text.as_bytes()).await)
    }

    /// `None`: the array is complete with this very piece.
    async fn array_bundle(&self, offering: &Offering<'_>, mine: &[u8]) -> Result<Option<Arc<Bundle>>> {
        let about = offering.about();
        let pool = &self.inner;
        if let Some(bundle) = pool.open_array(offering, &about)? {
            return Ok(Some(bundle));
        }
        let path = offering.path()?;
        let attributes = about.iter().map(|(name, value)| (*name, value.as_str()));
        let pending = pool.begin_bundle(Some(&path), &offering.bundle_options(), attributes)?;
        match pending.await {
            Ok(bundle) => Ok(Some(pool.keep_array(bundle, about))),
            Err(error) => {
                if offering.is_late(error)? {
                    self.must_be_the_same(offering, mine).await?;
                }
                Ok(None)
            }
        }
    }

    async fn stage(&self, bundle: &Bundle, terms: Terms, record: &[u8], bytes: &[u8]) -> Result<()> {
        let mut memory = allocate(&self.inner.connection()?, bundle.begin_allocate(bytes.len())).await?;
        memory.copy_from_slice(bytes);
        let staged = bundle.begin_stage(terms.within(bundle.number()), memory.into_inner(), record)?;
        staged.await.map(drop)
    }

    async fn must_be_the_same(&self, offering: &Offering<'_>, mine: &[u8]) -> Result<()> {
        let options = DemandOptions {
            timeout: Some(Duration::ZERO),
            incomplete: true,
            ..DemandOptions::default()
        };
        let first = offering.with_key(|key| self.inner.begin_demand_with(&options, key));
        let first = match first {
            Ok(pending) => pending.await,
            Err(error) => Err(error),
        };
        offering.is_the_same(mine, first)
    }

    /// The array with this key, or the newest one that matches a selector, as [`crate::Pool::demand_array`]; waits until all its pieces are
    /// there.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use junctura::{Code, Piece, Pool, aio};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
    /// let layout = std::sync::Arc::new("shape=4x6 grid=2x1".parse()?);
    /// pool.offer_piece(&Piece::new(&layout, "u1".parse()?, 0), [("name", "t")], &[0; 12]).await?;
    /// let error = pool.demand_array("name=t", Some(Duration::from_millis(1))).await.unwrap_err();
    /// assert_eq!(error.code(), Code::Timeout);
    /// assert!(error.cause().contains("of 2 pieces, rank 1 did not offer theirs"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn demand_array<'a>(
        &self,
        target: impl Into<Target<'a>>,
        timeout: Option<Duration>,
    ) -> Result<DemandedArray> {
        let target = target.into();
        let began = Instant::now();
        // In the pool alone: a store behind it has no pieces.
        let in_pool = DemandOptions {
            timeout,
            in_pool: true,
            ..DemandOptions::default()
        };
        match self.demand_with(&in_pool, target.clone()).await {
            Ok(object) => {
                let inner = crate::DemandedArray::new(&self.inner, object)?;
                Ok(DemandedArray { inner: Arc::new(inner) })
            }
            Err(error) if matches!(error.code(), Code::Timeout | Code::NotFound) => {
                let waited = began.elapsed();
                let lacks = self.lacks(&target, &error, waited).await.ok().flatten();
                Err(lacks.unwrap_or(error))
            }
            Err(error) => Err(error),
        }
    }

    /// The error, with what is missing, if the array is there in part.
    async fn lacks(&self, target: &Target<'_>, error: &Error, waited: Duration) -> Result<Option<Error>> {
        for bundle in self.bundles(ARRAYS).await? {
            let Some(mut lacking) = Lacking::of(&self.inner, target, &bundle)? else {
                continue;
            };
            if let Some((options, selector)) = lacking.pieces() {
                let mut pages = self.list_with(&options, &selector).await?;
                while let Some(page) = pages.next_page().await? {
                    lacking.note(&page);
                }
            }
            return Ok(Some(lacking.says(error, waited)));
        }
        Ok(None)
    }
}

/// An array that is there, held until it is dropped; what it says of itself is said by [`crate::DemandedArray`], which it is for code that
/// waits.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura::{Layout, Part, Piece, Pool, aio};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> junctura::Result<()> {
/// # let pool = aio::Pool::open(Pool::builder().schema("free")).await?;
/// # let layout: Arc<Layout> = Arc::new("shape=2x3".parse()?);
/// # pool.offer_piece(&Piece::new(&layout, "u1".parse()?, 0), [("name", "t")], &[0, 1, 2, 3, 4, 5]).await?;
/// let array = pool.demand_array("name=t", None).await?;
/// let by_columns = Arc::new("shape=2x3 order=F".parse()?);
/// assert_eq!(array.take(&Part::of(&by_columns, 0)).await?, [0, 3, 1, 4, 2, 5]);
/// # Ok(())
/// # }
/// ```
pub struct DemandedArray {
    inner: Arc<crate::DemandedArray>,
}

impl DemandedArray {
    /// Copies a part, as [`crate::DemandedArray::take`]; a thread does it. Into memory of one's own,
    /// [`crate::DemandedArray::take_into`] copies for code that may wait.
    ///
    /// # Errors
    /// As there.
    pub async fn take(&self, part: &Part<'_>) -> Result<Vec<u8>> {
        let (array, layout, origin) = (Arc::clone(&self.inner), Arc::clone(part.layout), part.origin.to_vec());
        let (rank, element) = (part.rank, part.element);
        let take = move || {
            array.take(&Part {
                layout: &layout,
                rank,
                origin: &origin,
                element,
            })
        };
        beside(take, drop)?.await
    }
}

impl Deref for DemandedArray {
    type Target = crate::DemandedArray;

    fn deref(&self) -> &crate::DemandedArray {
        &self.inner
    }
}

impl fmt::Debug for DemandedArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aio::{:?}", self.inner)
    }
}
