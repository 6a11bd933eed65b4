//! One rank's side of an array exchange: states once the settings that are the same in every step.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use junctura_layout::{Element, Layout};
use junctura_model::{Code, Error, Given, IntoGiven, Result, Retention};

use super::demanded::{ArrayPart, DemandedArray};
use super::expected::{ExpectedPieces, RequestedPieces};
use super::memory::ArrayMemory;
use super::offering::ArrayPiece;
use crate::pool::Pool;
use crate::target::Target;
use crate::verbs::offer::OfferOptions;

/// One rank's side of an array exchange: it puts its own arrays, and gets arrays of others in its own layout and
/// element type.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura::{Exchange, Layout, Pool, Retention};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let bands: Arc<Layout> = Arc::new("shape=4x6 grid=2x1".parse()?);
/// for rank in 0..2 {
///     let side = Exchange::new(&pool, &bands, rank, "u1".parse()?)?
///         .common([("space", "coupled")])
///         .retention(Retention::Released(1));
///     for step in 1..=3 {
///         let mine = vec![10 * step as u8 + rank as u8; side.bytes()];
///         side.put([("name", format!("wind.{step}").as_str())], &mine)?;
///     }
/// }
///
/// let columns: Arc<Layout> = Arc::new("shape=4x6 grid=1x3".parse()?);
/// let side = Exchange::new(&pool, &columns, 1, "u1".parse()?)?.common([("space", "coupled")]);
/// assert_eq!(side.get([("name", "wind.1")], None)?, [10, 10, 10, 10, 11, 11, 11, 11]);
/// let mut mine = vec![0; side.bytes()]; // memory that is there already
/// side.get_into([("name", "wind.2")], None, &mut mine)?;
/// assert_eq!(mine, [20, 20, 20, 20, 21, 21, 21, 21]);
/// # assert_eq!(pool.list("")?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Exchange {
    pool: Pool,
    layout: Arc<Layout>,
    rank: u64,
    element: Element,
    schema: Option<String>,
    retention: Option<Retention>,
    common: Vec<(String, String)>,
    expected: Arc<ExpectedPieces>,
}

/// Consecutive elements in the piece of one rank of the producers.
pub(super) struct PieceStretch {
    /// The layout that the producers must have.
    pub(super) layout: Arc<Layout>,
    pub(super) rank: u64,
    pub(super) bytes: Range<usize>,
}

impl Exchange {
    /// Creates the side of this rank.
    ///
    /// # Errors
    /// `InvalidArgument` for a rank that the layout does not have.
    pub fn new(pool: &Pool, layout: &Arc<Layout>, rank: u64, element: Element) -> Result<Self> {
        let ranks = layout.ranks();
        if rank >= ranks {
            let cause = format!("there is no rank {rank} of {ranks}");
            return Err(Error::new(Code::InvalidArgument, "exchange", cause));
        }
        Ok(Self {
            pool: pool.clone(),
            layout: Arc::clone(layout),
            rank,
            element,
            schema: None,
            retention: None,
            common: Vec::new(),
            expected: Arc::default(),
        })
    }

    /// Sets attributes of all arrays that it puts and gets; attributes of a single call take precedence.
    #[must_use]
    pub fn common<'a>(mut self, attributes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        self.common.extend(attributes.into_iter().map(owned));
        self
    }

    /// Sets the schema of all arrays that it puts and gets. Default: the pool's default schema.
    #[must_use]
    pub fn schema(mut self, name: &str) -> Self {
        self.schema = Some(name.to_owned());
        self
    }

    /// Sets the retention of the arrays that it puts. Default: as the schema defines.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Returns the size of the rank's memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.layout.room(self.rank) as usize * self.element.kind.bytes()
    }

    /// Offers the rank's part of an array, as [`Pool::offer_piece`].
    ///
    /// # Errors
    /// As [`Pool::offer_piece`].
    pub fn put<'a, V: IntoGiven<'a>>(
        &'a self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        self.put_as(None, attributes, mine)
    }

    /// As [`Exchange::put`], for a version of the array that is distinguished by an epoch: see [`ArrayPiece::epoch`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{Exchange, Layout, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// let newest = "{name: newest, same_key: supersede, key: {dataset: [run], collocation: [], element: [param]}, \
    ///               attributes: {run: {type: string}, param: {type: string}}}";
    /// let pool = Pool::builder().schema_yaml(newest).open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=3".parse()?);
    /// let side = Exchange::new(&pool, &layout, 0, "u1".parse()?)?;
    /// let wind = [("run", "1"), ("param", "u")];
    /// side.put_epoch(1, wind, &[1, 2, 3])?;
    /// side.put_epoch(2, wind, &[4, 5, 6])?;
    /// assert_eq!(side.get(wind, None)?, [4, 5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Pool::offer_piece`].
    pub fn put_epoch<'a, V: IntoGiven<'a>>(
        &'a self,
        epoch: i64,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        self.put_as(Some(epoch), attributes, mine)
    }

    fn put_as<'a, V: IntoGiven<'a>>(
        &'a self,
        epoch: Option<i64>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        let piece = ArrayPiece {
            layout: &self.layout,
            element: self.element,
            rank: self.rank,
            epoch,
        };
        let options = OfferOptions {
            schema: self.schema.as_deref(),
            retention: self.retention.clone(),
            ..OfferOptions::default()
        };
        self.pool
            .offer_piece_with(&piece, self.about(attributes), mine, options)
    }

    /// Returns the rank's part of the array with this key. Blocks until the array is complete. As
    /// [`Pool::demand_array`] and [`DemandedArray::take`].
    ///
    /// # Errors
    /// As [`Pool::demand_array`] and [`DemandedArray::take`].
    pub fn get<'a, V: IntoGiven<'a>>(
        &'a self,
        key: impl IntoIterator<Item = (&'a str, V)>,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>> {
        let mut mine = Vec::new();
        let mut memory = ArrayMemory::New {
            bytes: self.bytes(),
            into: &mut mine,
        };
        self.get_to(key, timeout, &mut memory)?;
        // All of the part may be padding.
        memory.get()?;
        Ok(mine)
    }

    /// As [`Exchange::get`], into the caller's memory.
    ///
    /// # Errors
    /// As [`Exchange::get`]; `InvalidArgument` for memory of another length than [`Exchange::bytes`].
    pub fn get_into<'a, V: IntoGiven<'a>>(
        &'a self,
        key: impl IntoIterator<Item = (&'a str, V)>,
        timeout: Option<Duration>,
        mine: &mut [u8],
    ) -> Result<()> {
        // Checked before the call waits, or receives the array.
        if mine.len() != self.bytes() {
            let cause = format!(
                "rank {} has {} bytes in this layout, and memory of {} was given",
                self.rank,
                self.bytes(),
                mine.len()
            );
            return Err(Error::new(Code::InvalidArgument, "exchange", cause));
        }
        self.get_to(key, timeout, &mut ArrayMemory::Mine(mine))
    }

    fn get_to<'a, V: IntoGiven<'a>>(
        &'a self,
        key: impl IntoIterator<Item = (&'a str, V)>,
        timeout: Option<Duration>,
        mine: &mut ArrayMemory<'_>,
    ) -> Result<()> {
        let (array, requested) = self.demand(key, timeout)?;
        self.take(&array, mine, requested)
    }

    /// Calls `read` with the elements of the rank's part: in the memory of their producer if they are a stretch of one of its
    /// pieces, else in `room`.
    pub(super) fn read<'a, V: IntoGiven<'a>, T>(
        &'a self,
        key: impl IntoIterator<Item = (&'a str, V)>,
        timeout: Option<Duration>,
        (stretch, room): (Option<&PieceStretch>, &mut Vec<u8>),
        read: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let (array, mut requested) = self.demand(key, timeout)?;
        if let Some(stretch) = stretch.filter(|stretch| array.is_here(&stretch.layout, self.element)) {
            let piece = array.piece(stretch.rank, &mut requested)?;
            self.expected.expect(&[stretch.rank]);
            let outcome = read(&piece.payload()[stretch.bytes.clone()]);
            piece.release_with_next();
            return outcome;
        }
        room.resize(self.bytes(), 0);
        self.take(&array, &mut ArrayMemory::Mine(room), requested)?;
        read(room)
    }

    fn demand<'a, V: IntoGiven<'a>>(
        &'a self,
        key: impl IntoIterator<Item = (&'a str, V)>,
        timeout: Option<Duration>,
    ) -> Result<(DemandedArray, RequestedPieces)> {
        let target = self.target(key);
        let requested = self.expected.request(&self.pool, &target, timeout)?;
        Ok((self.pool.demand_array(target, timeout)?, requested))
    }

    fn take(&self, array: &DemandedArray, mine: &mut ArrayMemory<'_>, requested: RequestedPieces) -> Result<()> {
        let part = ArrayPart {
            element: Some(self.element),
            ..ArrayPart::of(&self.layout, self.rank)
        };
        let needed = array.take_requested(&part, mine, requested)?;
        self.expected.expect(&needed);
        Ok(())
    }

    fn target<'a, V: IntoGiven<'a>>(&'a self, key: impl IntoIterator<Item = (&'a str, V)>) -> Target<'a> {
        let target = Target::key(self.about(key));
        match &self.schema {
            Some(name) => target.in_schema(name.as_str()),
            None => target,
        }
    }

    fn about<'a, V: IntoGiven<'a>>(
        &'a self,
        said: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Vec<(&'a str, Given<'a>)> {
        let mut about: Vec<_> = said
            .into_iter()
            .map(|(name, value)| (name, value.into_given()))
            .collect();
        for (name, value) in &self.common {
            if about.iter().all(|(said, _)| said != name) {
                about.push((name, Given::Text(value)));
            }
        }
        about
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exchange({}, rank {})", self.layout, self.rank)
    }
}
