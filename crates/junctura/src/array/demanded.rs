//! Reads an array, or a part, in the reader's own layout.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_copy::Gather;
use junctura_layout::{Element, Layout};
use junctura_model::{Code, Error, Result, Schema, list_items};

use super::claim;
use super::expected::RequestedPieces;
use super::head::{ArrayHead, piece_of};
use super::memory::ArrayMemory;
use super::plans::WantedPart;
use super::{labels, missing, packed};
use crate::connection::unexpected;
use crate::object::Object;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::target::{Target, owned};
use crate::verbs::demand::{DemandOptions, DemandThrough, begin_demand};

/// Maximum number of outstanding requests for pieces.
const PIECES_ASKED_MAX: usize = 256;

/// A complete array, held until it is dropped.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura::{Layout, ArrayPart, ArrayPiece, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # let layout: Arc<Layout> = Arc::new("shape=4x6".parse()?);
/// # let mine: Vec<u8> = (0..24).collect();
/// # pool.offer_piece(&ArrayPiece::new(&layout, "u1".parse()?, 0), [("name", "t")], &mine)?;
/// let array = pool.demand_array("name=t", None)?;
/// assert_eq!((array.layout().shape(), array.element().kind.bytes()), (&[4, 6][..], 1));
/// assert_eq!(array.object().get("name"), Some("t"));
///
/// // Columns 2 to 4 of the two middle rows, as single precision numbers, column by column.
/// let layout = Arc::new("shape=2x3 order=F".parse()?);
/// let part = ArrayPart { origin: &[1, 2], element: Some("f4".parse()?), ..ArrayPart::of(&layout, 0) };
/// # let part = ArrayPart { element: None, ..part };
/// let mut mine = vec![0; array.bytes(&part)];
/// array.take_into(&part, &mut mine, 1)?;
/// assert_eq!(mine, [8, 14, 9, 15, 10, 16]);
/// assert_eq!(array.take(&part)?, mine);
/// array.release()?;
/// pool.demand_array("name=t", None)?.give_back()?; // it was only looked at
/// assert_eq!(pool.demand_array("name=t", None)?.into_object().get("name"), Some("t"));
/// # Ok(())
/// # }
/// ```
pub struct DemandedArray {
    pool: Pool,
    object: Object,
    how: DemandTerms,
}

enum DemandTerms {
    /// Pieces, by the array that they name.
    Pieces { head: ArrayHead, piece_of: String },
    /// An object that is itself an array.
    Plain { layout: Arc<Layout>, element: Element },
}

/// A part of an array, and its layout in memory.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura::{Layout, ArrayPart};
/// # fn main() -> junctura::Result<()> {
/// let columns: Arc<Layout> = Arc::new("shape=100x60 grid=1x3 order=F".parse()?);
/// let second = ArrayPart::of(&columns, 1);
/// let as_floats = ArrayPart { element: Some("f4".parse()?), ..second };
/// # assert_eq!((as_floats.rank, second.element), (1, None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ArrayPart<'l> {
    /// The decomposition of the requested elements over all ranks, and their layout in the memory of each rank.
    pub layout: &'l Arc<Layout>,
    /// The rank whose part this is.
    pub rank: u64,
    /// The index in the array at which the layout begins, for each dimension; empty: the origin of the array.
    pub origin: &'l [u64],
    /// The element type of the result; `None`: that of the array.
    pub element: Option<Element>,
}

impl<'l> ArrayPart<'l> {
    /// Returns one rank's part of the whole array.
    #[must_use]
    pub fn of(layout: &'l Arc<Layout>, rank: u64) -> Self {
        Self {
            layout,
            rank,
            origin: &[],
            element: None,
        }
    }
}

impl Pool {
    /// Returns the array of an object that was received in another way than by [`Pool::demand_array`], such as a
    /// follow. Does not block.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{Layout, ArrayPart, ArrayPiece, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=4 grid=2".parse()?);
    /// for (rank, mine) in [[0_u8, 1], [2, 3]].iter().enumerate() {
    ///     pool.offer_piece(&ArrayPiece::new(&layout, "u1".parse()?, rank as u64), [("name", "t")], mine)?;
    /// }
    /// let object = pool.demand("name=t", None)?;
    /// assert!(object.is_in_pieces() && object.rest_of_bundle() == 2);
    /// let array = pool.array(object)?;
    /// assert_eq!(array.take(&ArrayPart::of(&Arc::new(Layout::one(&[4])?), 0))?, [0, 1, 2, 3]);
    /// assert_eq!(array.into_object().get("name"), Some("t"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for an object that is no array; `Corrupt`. The object is then given back as not received.
    pub fn array(&self, object: Object) -> Result<DemandedArray> {
        DemandedArray::of(self, object).or_else(|refused| {
            let (object, error) = *refused;
            object.give_back()?;
            Err(error)
        })
    }

    /// Returns the array with this key, or the newest one that matches a selector. Blocks until all its pieces have
    /// been offered. The part and its layout are chosen when it is read: [`DemandedArray::take`]. Also returns an
    /// object that is itself an array, according to its attributes `dtype` and `shape`.
    ///
    /// # Errors
    /// As [`Pool::demand`]; the `Timeout` names the ranks that have not offered their pieces. `InvalidArgument` for an
    /// object that is no array.
    pub fn demand_array<'a>(&self, target: impl Into<Target<'a>>, timeout: Option<Duration>) -> Result<DemandedArray> {
        let target = target.into();
        let began = Instant::now();
        match self.demand(target.clone(), timeout) {
            Ok(object) => self.array(object),
            Err(error) if matches!(error.code(), Code::Timeout | Code::NotFound) => {
                let waited = began.elapsed();
                let target = owned(self.connection()?.resolve(&target)?);
                Err(missing::named(self, &target, &error, waited))
            }
            Err(error) => Err(error),
        }
    }

    /// Non-blocking version of [`Pool::demand_array`]. See [`Pending`].
    ///
    /// ```
    /// # use junctura::{Layout, ArrayPiece, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: std::sync::Arc<Layout> = std::sync::Arc::new("shape=3".parse()?);
    /// pool.offer_piece(&ArrayPiece::new(&layout, "u1".parse()?, 0), [("name", "t")], &[1, 2, 3])?;
    /// let array = pool.begin_demand_array("name=t", None)?.wait()?;
    /// assert_eq!(array.layout().shape(), [3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors that this client detects; the others arrive with the answer.
    pub fn begin_demand_array<'a>(
        &self,
        target: impl Into<Target<'a>>,
        timeout: Option<Duration>,
    ) -> Result<Pending<DemandedArray>> {
        let (connection, target) = (self.connection()?, target.into());
        let meant = owned(connection.resolve(&target)?);
        let options = DemandOptions {
            timeout,
            ..DemandOptions::default()
        };
        let (pool, began) = (self.clone(), Instant::now());
        Ok(self.begin_demand(target, options)?.then(move |object| match object {
            Ok(object) => Ok(Pending::known(&connection, pool.array(object))),
            Err(error) if matches!(error.code(), Code::Timeout | Code::NotFound) => {
                let waited = began.elapsed();
                let name = move || Err(missing::named(&pool, &meant, &error, waited));
                Ok(Pending::work(&connection, name, drop))
            }
            Err(error) => Err(error),
        }))
    }
}

impl DemandTerms {
    fn of(object: &Object) -> Result<Self> {
        match ArrayHead::read(object.payload())? {
            Some(head) => Ok(Self::Pieces {
                piece_of: piece_of(object.schema().name(), object.key())?,
                head,
            }),
            None => plain(object),
        }
    }
}

/// Returns whether a payload describes the layout of an array's pieces.
pub(crate) fn is_in_pieces(payload: &[u8]) -> bool {
    ArrayHead::is_one(payload)
}

impl DemandedArray {
    /// Returns the array of an object, as [`Pool::array`]; an object that is no array is returned with the error.
    ///
    /// ```
    /// # use junctura::{DemandedArray, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "text")], b"no array")?;
    /// let refused = DemandedArray::of(&pool, pool.demand("name=text", None)?).unwrap_err();
    /// assert_eq!(refused.0.payload(), b"no array");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for an object that is no array; `Corrupt`.
    pub fn of(pool: &Pool, object: Object) -> std::result::Result<Self, Box<(Object, Error)>> {
        match DemandTerms::of(&object) {
            Ok(how) => Ok(Self {
                pool: pool.clone(),
                object,
                how,
            }),
            Err(error) => Err(Box::new((object, error))),
        }
    }

    /// Returns the object alone, held as before.
    #[must_use]
    pub fn into_object(self) -> Object {
        self.object
    }

    /// Returns the object of the array.
    #[must_use]
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Returns the layout of its producers.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        match &self.how {
            DemandTerms::Pieces { head, .. } => &head.layout,
            DemandTerms::Plain { layout, .. } => layout,
        }
    }

    /// Returns its element type.
    #[must_use]
    pub fn element(&self) -> Element {
        match &self.how {
            DemandTerms::Pieces { head, .. } => head.element,
            DemandTerms::Plain { element, .. } => *element,
        }
    }

    /// Returns the memory size of a part in bytes.
    #[must_use]
    pub fn bytes(&self, part: &ArrayPart<'_>) -> usize {
        let element = part.element.unwrap_or_else(|| self.element());
        part.layout.room(part.rank) as usize * element.kind.bytes()
    }

    /// Copies a part into new memory, as [`Self::take_into`]; padding of the layout is zeroed. The caller owns the
    /// result.
    ///
    /// # Errors
    /// As [`Self::take_into`]; `TooLarge` if memory is insufficient.
    pub fn take(&self, part: &ArrayPart<'_>) -> Result<Vec<u8>> {
        let mut mine = Vec::new();
        let bytes = self.bytes(part);
        let mut memory = ArrayMemory::New { bytes, into: &mut mine };
        self.take_to(part, &mut memory, 1)?;
        // All of the part may be padding.
        memory.get()?;
        Ok(mine)
    }

    /// Copies a part directly from the producers' pieces into the caller's memory, with this number of threads. `mine`
    /// must have [`Self::bytes`] bytes; padding of the layout is left unchanged. May block until the server returns the
    /// locations of the pieces. If the pieces are on another machine, that machine packs the requested elements, only
    /// these are transferred, and one thread unpacks them.
    ///
    /// # Errors
    /// `InvalidArgument` for a part outside the array, or memory of another length; `Unsupported` for element types
    /// without a conversion; `Expired` if the array was removed meanwhile.
    pub fn take_into(&self, part: &ArrayPart<'_>, mine: &mut [u8], threads: usize) -> Result<()> {
        self.take_to(part, &mut ArrayMemory::Mine(mine), threads)
    }

    /// Non-blocking version of [`DemandedArray::take`]: for a task, a thread copies the part. See [`Pending`].
    ///
    /// ```
    /// # use junctura::{Layout, ArrayPart, ArrayPiece, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # let layout: std::sync::Arc<Layout> = std::sync::Arc::new("shape=3".parse()?);
    /// # pool.offer_piece(&ArrayPiece::new(&layout, "u1".parse()?, 0), [("name", "t")], &[1, 2, 3])?;
    /// let array = std::sync::Arc::new(pool.demand_array("name=t", None)?);
    /// assert_eq!(array.begin_take(&ArrayPart::of(&layout, 0))?.wait()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Only in a forked child, which reconnects: those of [`Pool::connect`].
    pub fn begin_take(self: &Arc<Self>, part: &ArrayPart<'_>) -> Result<Pending<Vec<u8>>> {
        let connection = self.pool.connection()?;
        let (array, layout, origin) = (Arc::clone(self), Arc::clone(part.layout), part.origin.to_vec());
        let (rank, element) = (part.rank, part.element);
        let take = move || {
            array.take(&ArrayPart {
                layout: &layout,
                rank,
                origin: &origin,
                element,
            })
        };
        Ok(Pending::work(&connection, take, drop))
    }

    fn take_to(&self, part: &ArrayPart<'_>, mine: &mut ArrayMemory<'_>, threads: usize) -> Result<()> {
        self.take_with(part, mine, threads, RequestedPieces::default())
            .map(drop)
    }

    /// As [`Self::take_to`], with pieces that were requested together with the array. Returns the ranks of the pieces that it
    /// needed, if the key of the array identifies them.
    pub(super) fn take_requested(
        &self,
        part: &ArrayPart<'_>,
        mine: &mut ArrayMemory<'_>,
        requested: RequestedPieces,
    ) -> Result<Vec<u64>> {
        let gather = self.take_with(part, mine, 1, requested)?;
        let are_known = matches!(&self.how, DemandTerms::Pieces { head, .. } if head.epoch.is_none());
        let gather = gather.filter(|_| are_known);
        Ok(gather.map_or_else(Vec::new, |gather| gather.peers().to_vec()))
    }

    fn take_with(
        &self,
        part: &ArrayPart<'_>,
        mine: &mut ArrayMemory<'_>,
        threads: usize,
        mut requested: RequestedPieces,
    ) -> Result<Option<Arc<Gather>>> {
        let nowhere = vec![0; part.layout.shape().len()];
        let origin = if part.origin.is_empty() { &nowhere } else { part.origin };
        let elements = (self.element(), part.element.unwrap_or_else(|| self.element()));
        let plans = self.pool.plans();
        let wanted = WantedPart {
            from: self.layout(),
            to: part.layout,
            origin,
            rank: part.rank,
            elements,
        };
        mine.check(self.bytes(part))?;
        if let DemandTerms::Pieces { head, piece_of } = &self.how
            && packed::take(self, &wanted, (piece_of, head.epoch), mine)?
        {
            return Ok(None);
        }
        let gather = plans.gather(&wanted, || self.check_claim())?;
        match &self.how {
            DemandTerms::Plain { .. } => {
                // An array without elements has no pieces.
                let payload = labels::without(self.object.payload());
                let pieces: Vec<&[u8]> = gather.peers().iter().map(|_| payload).collect();
                gather.check(&pieces)?;
                gather.run(&pieces, mine.get()?, threads)?;
            }
            DemandTerms::Pieces { head, piece_of } => {
                let pieces = self.pieces(gather.peers(), (piece_of, head.epoch), &mut requested)?;
                let payloads: Vec<&[u8]> = pieces.iter().map(Object::payload).collect();
                gather.check(&payloads)?;
                gather.run(&payloads, mine.get()?, threads)?;
                // The array, which is held, is released after them.
                pieces.into_iter().for_each(Object::release_with_next);
            }
        }
        Ok(Some(gather))
    }

    /// Returns whether its pieces have this layout and element type, and are in memory of this machine.
    pub(super) fn is_here(&self, layout: &Layout, element: Element) -> bool {
        let DemandTerms::Pieces { head, .. } = &self.how else {
            return false;
        };
        let is_local = self.pool.connection().is_ok_and(|connection| !connection.is_network());
        is_local && head.element == element && *head.layout == *layout && head.epoch.is_none()
    }

    /// Returns the piece of one rank.
    ///
    /// # Errors
    /// As [`Self::take_into`].
    pub(super) fn piece(&self, rank: u64, requested: &mut RequestedPieces) -> Result<Object> {
        let DemandTerms::Pieces { head, piece_of } = &self.how else {
            let cause = "it was not offered in pieces";
            return Err(Error::new(Code::InvalidArgument, self.object.key(), cause));
        };
        let piece = self.pieces(&[rank], (piece_of, head.epoch), requested)?.pop();
        let piece = piece.ok_or_else(|| unexpected("no piece"))?;
        claim::check_length(&head.layout, head.element, rank, piece.payload().len() as u64)?;
        Ok(piece)
    }

    /// Compares the claimed size of the array with its payload.
    fn check_claim(&self) -> Result<()> {
        match &self.how {
            DemandTerms::Plain { layout, element } => {
                claim::check_length(layout, *element, 0, labels::without(self.object.payload()).len() as u64)
            }
            DemandTerms::Pieces { head, piece_of } => {
                self.check_pieces((&head.layout, head.element), (piece_of, head.epoch))
            }
        }
    }

    /// Compares the head's claim with the existing pieces.
    pub(super) fn check_pieces(&self, lies: (&Layout, Element), of: (&str, Option<i64>)) -> Result<()> {
        claim::check_count(self.object.key(), lies.0, self.object.rest_of_bundle())?;
        claim::check(&self.pool, self.object.key(), lies, of)
    }

    /// Releases it, as dropping it does, and notifies the server at once.
    ///
    /// # Errors
    /// As [`Object::release`].
    pub fn release(self) -> Result<()> {
        self.object.release()
    }

    /// Gives it back as not received: this does not count as a release.
    ///
    /// # Errors
    /// As [`Object::give_back`].
    pub fn give_back(self) -> Result<()> {
        self.object.give_back()
    }

    /// Demands the pieces of these ranks. They are retained as long as the array, which is held.
    fn pieces(
        &self,
        ranks: &[u64],
        (piece_of, epoch): (&str, Option<i64>),
        requested: &mut RequestedPieces,
    ) -> Result<Vec<Object>> {
        // Only from the pool: a store behind it has no pieces.
        let connection = self.pool.connection()?;
        let mut ask = |rank: &u64| {
            if let Some(arrived) = requested.take(*rank) {
                return Ok(Pending::known(&connection, Ok(arrived)));
            }
            let name = PieceIdentity::new(piece_of, epoch, *rank);
            begin_demand(
                &connection,
                &name.target(),
                Some(Duration::ZERO),
                &DemandThrough::Nothing,
            )
        };
        let mut asked = VecDeque::new();
        let mut left = ranks.iter();
        let mut pieces = Vec::new();
        loop {
            while asked.len() < PIECES_ASKED_MAX
                && let Some(rank) = left.next()
            {
                asked.push_back(ask(rank)?);
            }
            let Some(first) = asked.pop_front() else {
                return Ok(pieces);
            };
            pieces.push(first.wait().map_err(|error| self.gone(error))?);
        }
    }

    /// Converts the error for a missing piece.
    pub(super) fn gone(&self, error: Error) -> Error {
        match error.code() {
            Code::NotFound | Code::Gone => {
                Error::new(Code::Expired, self.object.key(), "the array was removed meanwhile")
            }
            _ => error,
        }
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// The identity of a piece, for a demand.
pub(super) struct PieceIdentity<'a> {
    piece_of: &'a str,
    epoch: Option<String>,
    rank: String,
}

impl<'a> PieceIdentity<'a> {
    pub(super) fn new(piece_of: &'a str, epoch: Option<i64>, rank: u64) -> Self {
        Self {
            piece_of,
            epoch: epoch.map(|epoch| epoch.to_string()),
            rank: rank.to_string(),
        }
    }

    pub(super) fn target(&self) -> Target<'_> {
        let mut key = vec![("piece_of", self.piece_of), ("rank", &*self.rank)];
        key.extend(self.epoch.as_deref().map(|epoch| ("epoch", epoch)));
        Target::key(key).in_schema(Schema::PIECE)
    }
}

/// Returns the layout of an object that is itself an array.
fn plain(object: &Object) -> Result<DemandTerms> {
    let (Some(dtype), Some(shape)) = (object.get("dtype"), object.get("shape")) else {
        let cause = "it is no array: it was not offered in pieces, and has no dtype and shape";
        return Err(Error::new(Code::InvalidArgument, object.key(), cause));
    };
    // If the schema has no lists, extents are separated by slashes.
    let items = list_items(shape).flat_map(|item| item.split('/').map(str::parse).collect::<Vec<_>>());
    let extents: Vec<u64> = items.collect::<std::result::Result<_, _>>().map_err(|_| {
        let cause = format!("'{shape}' is not a shape");
        Error::new(Code::InvalidArgument, object.key(), cause)
    })?;
    // An array without dimensions has one element.
    let extents = if extents.is_empty() { vec![1] } else { extents };
    Ok(DemandTerms::Plain {
        layout: Arc::new(Layout::one(&extents)?),
        element: dtype.parse()?,
    })
}

impl fmt::Debug for DemandedArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DemandedArray({} {})", self.object.key(), self.layout())
    }
}
