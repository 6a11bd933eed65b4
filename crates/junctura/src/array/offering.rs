//! Offers of array pieces.

mod at_once;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use junctura_layout::{Element, Layout};
use junctura_model::{Code, Error, IntoGiven, RecordRef, Result, SameKey, Schema, command};

use super::head::{ArrayHead, piece_of};
use crate::connection::PoolConnection;
use crate::explain::complete_commands;
use crate::object::Object;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::target::Target;
use crate::verbs::allocation::Allocation;
use crate::verbs::bundle::{Bundle, BundleOptions, begin_open_path};
#[cfg(feature = "async")]
use crate::verbs::demand::begin_demand;
use crate::verbs::demand::{DemandThrough, demand};
use crate::verbs::offer::{OfferOptions, OfferTerms, OfferedPayload};

/// One rank's part of an array.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura::{Layout, ArrayPiece, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let layout: Arc<Layout> = Arc::new("shape=4x6 grid=2x1".parse()?);
/// for rank in 0..2 {
///     let piece = ArrayPiece::new(&layout, "u1".parse()?, rank);
///     let mine = vec![rank as u8; piece.bytes()]; // two rows of six elements
///     pool.offer_piece(&piece, [("name", "t")], &mine)?;
/// }
/// let wanted = Arc::new("shape=4x6 grid=1x3".parse()?);
/// let array = pool.demand_array("name=t", None)?;
/// assert_eq!(array.take(&junctura::ArrayPart::of(&wanted, 1))?, [0, 0, 0, 0, 1, 1, 1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ArrayPiece<'l> {
    /// The layout of the whole array.
    pub layout: &'l Arc<Layout>,
    /// Its element type.
    pub element: Element,
    /// The rank whose part this is.
    pub rank: u64,
    /// Distinguishes versions of the array, if the schema of its key lets objects supersede each other: a step, a
    /// counter. Not allowed if the schema permits only one object per key.
    pub epoch: Option<i64>,
}

impl<'l> ArrayPiece<'l> {
    /// A piece of an array that is offered once.
    #[must_use]
    pub fn new(layout: &'l Arc<Layout>, element: Element, rank: u64) -> Self {
        let epoch = None;
        Self {
            layout,
            element,
            rank,
            epoch,
        }
    }

    /// Returns its memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.layout.room(self.rank) as usize * self.element.kind.bytes()
    }

    pub(crate) fn check(&self, bytes: usize) -> Result<()> {
        let ranks = self.layout.ranks();
        let wrong = |cause: String| Err(Error::new(Code::InvalidArgument, "piece", cause));
        if self.rank >= ranks {
            return wrong(format!("there is no rank {} of {ranks}", self.rank));
        }
        if bytes != self.bytes() {
            let (room, element) = (self.layout.room(self.rank), self.element);
            return wrong(format!(
                "rank {} has {room} elements of {element} in this layout, {} bytes, and {bytes} were given",
                self.rank,
                self.bytes()
            ));
        }
        Ok(())
    }
}

/// The incomplete arrays for which this process has offered pieces. They stay open, so that they are not aborted as
/// orphans.
#[derive(Default)]
pub(crate) struct OpenArrays(Mutex<Vec<OpenArray>>);

#[derive(Clone)]
struct OpenArray {
    bundle: Arc<Bundle>,
    about: About,
}

impl OpenArrays {
    /// Returns the bundle at this path, if this connection has it open. Drops complete bundles.
    fn find(&self, connection: &Arc<PoolConnection>, path: &str) -> Option<OpenArray> {
        let goes_on = |one: &OpenArray| one.bundle.is_of(connection) && matches!(one.bundle.completed(), Ok(None));
        let (open, over): (Vec<_>, Vec<_>) = self.lock().clone().into_iter().partition(goes_on);
        if !over.is_empty() {
            let is_over = |one: &OpenArray| over.iter().any(|over| Arc::ptr_eq(&over.bundle, &one.bundle));
            self.lock().retain(|one| !is_over(one));
        }
        for one in &over {
            one.bundle.leave_if_complete();
        }
        // Ending another bundle may wait for the server: no lock is held.
        drop(over);
        open.into_iter().find(|one| one.bundle.path() == Some(path))
    }

    fn keep(&self, open: OpenArray) {
        self.lock().push(open);
    }

    /// Leaves all open arrays to the other producers.
    pub(crate) fn leave_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OpenArray>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for OpenArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenArrays")
    }
}

/// Where the arrays of pieces become visible: each by itself in a pool, or together with the other members of a bundle.
pub(crate) struct PieceScope<'p> {
    connection: Arc<PoolConnection>,
    arrays: &'p OpenArrays,
    within: Option<(&'p Bundle, &'p str)>,
}

impl<'p> PieceScope<'p> {
    pub(crate) fn of_pool(pool: &'p Pool) -> Result<Self> {
        Ok(Self {
            connection: pool.connection()?,
            arrays: pool.arrays(),
            within: None,
        })
    }

    /// # Errors
    /// `InvalidArgument` for a bundle without a path; `Closed` or `BundleClosed` for one that has ended.
    pub(crate) fn of_bundle(bundle: &'p Bundle) -> Result<Self> {
        let Some(path) = bundle.path() else {
            let cause = "without a path it belongs to one program: the ranks of an array open the same path";
            return Err(Error::new(Code::InvalidArgument, "bundle", cause));
        };
        bundle.must_be_open()?;
        Ok(Self {
            connection: Arc::clone(bundle.connection()),
            arrays: bundle.arrays(),
            within: Some((bundle, path)),
        })
    }

    #[cfg(feature = "async")]
    pub(crate) fn connection(&self) -> &Arc<PoolConnection> {
        &self.connection
    }
}

/// A piece, and its array.
pub(crate) struct PieceOffer<'p> {
    scope: PieceScope<'p>,
    piece: ArrayPiece<'p>,
    head: ArrayHead,
    /// Terms of the array's own object.
    terms: OfferTerms,
    record: Vec<u8>,
    key: String,
    piece_of: String,
}

impl Pool {
    /// Offers a copy of one rank's part of an array. Blocks until it is staged. The array becomes visible, under the
    /// key that all ranks give, when all ranks that have elements have offered their pieces.
    ///
    /// `mine` is the rank's memory as the layout describes it, including padding. Offering the same piece again, with
    /// the same bytes, is harmless. [`Pool::demand`] does not return an incomplete array. When all producers of its
    /// pieces have disconnected, an incomplete array is aborted after the pool's orphan timeout.
    ///
    /// See [`ArrayPiece`] for an example.
    ///
    /// # Errors
    /// - `InvalidArgument` for a rank or a length that does not match the layout, for an epoch if the schema rejects
    ///   duplicates, and for a missing epoch if it does not
    /// - `Conflict` if other ranks have offered pieces in another layout or of another element type
    /// - `AlreadyExists` if the array is complete in another layout or element type, if this rank has offered other bytes,
    ///   or if the array was removed: `forget` of [`Pool::withdraw`](crate::Pool::withdraw) frees its key
    /// - those of [`Pool::offer`]
    pub fn offer_piece<'a, V: IntoGiven<'a>>(
        &self,
        piece: &ArrayPiece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        self.offer_piece_with(piece, attributes, mine, OfferOptions::default())
    }

    /// As [`Pool::offer_piece`], with options, which apply to the array. If ranks differ in options, or in attributes
    /// outside the key, the values of the rank with the first element apply. With `Retention::Released(3)` all its
    /// pieces are removed when three clients have released the array.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{Layout, OfferOptions, ArrayPiece, Pool, Retention};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=3".parse()?);
    /// let once = OfferOptions { retention: Some(Retention::Released(1)), ..OfferOptions::default() };
    /// let piece = ArrayPiece::new(&layout, "u1".parse()?, 0);
    /// pool.offer_piece_with(&piece, [("name", "t")], &[1, 2, 3], once)?;
    /// drop(pool.demand_array("name=t", None)?);
    /// assert!(pool.list("")?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Pool::offer_piece`] and [`Pool::offer_with`].
    pub fn offer_piece_with<'a, V: IntoGiven<'a>>(
        &self,
        piece: &ArrayPiece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<()> {
        piece.check(mine.len())?;
        PieceOffer::new(PieceScope::of_pool(self)?, piece, attributes, options)?.copy(mine)
    }

    /// As [`Pool::offer_piece_with`], for memory of the pool that was filled in place: nothing is copied.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{Layout, OfferOptions, ArrayPiece, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=1000x1000".parse()?);
    /// let piece = ArrayPiece::new(&layout, "f8".parse()?, 0);
    /// let mut mine = pool.allocate(piece.bytes())?;
    /// mine.fill(0);
    /// pool.offer_piece_allocation(&piece, [("name", "zeros")], mine, OfferOptions::default())?;
    /// # assert_eq!(pool.list("")?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Pool::offer_piece`], except that every second piece of a rank fails with `AlreadyExists`.
    pub fn offer_piece_allocation<'a, V: IntoGiven<'a>>(
        &self,
        piece: &ArrayPiece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: Allocation,
        options: OfferOptions<'_>,
    ) -> Result<()> {
        piece.check(mine.len())?;
        PieceOffer::new(PieceScope::of_pool(self)?, piece, attributes, options)?.give(mine)
    }
}

impl Bundle {
    /// Offers a copy of one rank's part of an array into the bundle, as [`Pool::offer_piece`]. The array is one member: it
    /// becomes visible with the other members, and counts towards their number when it has all its pieces. Every rank
    /// opens the same path; a seal fails with `Conflict` while an array lacks pieces. Blocks until the piece is staged.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{ArrayPiece, BundleOptions, Layout, OfferOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=4 grid=2".parse()?);
    /// let step = pool.open_bundle("step/6", [("space", "model")], BundleOptions { members: Some(3), ..Default::default() })?;
    /// for (rank, mine) in [[1_u8, 2], [3, 4]].iter().enumerate() {
    ///     let piece = ArrayPiece::new(&layout, "u1".parse()?, rank as u64);
    ///     step.offer_piece(&piece, [("name", "t")], mine)?;
    ///     step.offer_piece_with(&piece, [("name", "u")], mine, OfferOptions::default())?;
    /// }
    /// assert!(pool.list("")?.is_empty());
    /// step.offer([("name", "time")], b"6")?; // the third member
    /// assert_eq!(pool.list("")?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Pool::offer_piece`] and [`Bundle::offer`]; `InvalidArgument` for a bundle without a path.
    pub fn offer_piece<'a, V: IntoGiven<'a>>(
        &self,
        piece: &ArrayPiece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        self.offer_piece_with(piece, attributes, mine, OfferOptions::default())
    }

    /// As [`Bundle::offer_piece`], with options, which apply to the array.
    ///
    /// # Errors
    /// Those of [`Bundle::offer_piece`] and [`Pool::offer_piece_with`].
    pub fn offer_piece_with<'a, V: IntoGiven<'a>>(
        &self,
        piece: &ArrayPiece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<()> {
        piece.check(mine.len())?;
        PieceOffer::new(PieceScope::of_bundle(self)?, piece, attributes, options)?.copy(mine)
    }

    /// As [`Bundle::offer_piece_with`], for memory of the pool that was filled in place: nothing is copied.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{ArrayPiece, BundleOptions, Layout, OfferOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=1000x1000".parse()?);
    /// let piece = ArrayPiece::new(&layout, "f8".parse()?, 0);
    /// let step = pool.open_bundle("step/6", [("space", "model")], BundleOptions::default())?;
    /// let mut mine = step.allocate(piece.bytes())?;
    /// mine.fill(0);
    /// step.offer_piece_allocation(&piece, [("name", "zeros")], mine, OfferOptions::default())?;
    /// step.seal()?;
    /// # assert_eq!(pool.list("")?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Bundle::offer_piece`], except that every second piece of a rank fails with `AlreadyExists`.
    pub fn offer_piece_allocation<'a, V: IntoGiven<'a>>(
        &self,
        piece: &ArrayPiece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: Allocation,
        options: OfferOptions<'_>,
    ) -> Result<()> {
        piece.check(mine.len())?;
        PieceOffer::new(PieceScope::of_bundle(self)?, piece, attributes, options)?.give(mine)
    }
}

impl<'p> PieceOffer<'p> {
    /// Checks a piece and describes its array. Does not block.
    pub(crate) fn new<'a, V: IntoGiven<'a>>(
        scope: PieceScope<'p>,
        piece: &ArrayPiece<'p>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: OfferOptions<'_>,
    ) -> Result<Self> {
        let connection = &scope.connection;
        has_pieces(connection)?;
        // Every rank gets this error, not only the one that describes the layout.
        if options.if_wanted {
            let cause = "the consumers of an array are determined when it has all its pieces";
            return Err(Error::new(Code::InvalidArgument, "if wanted", cause));
        }
        let terms = connection.terms(options)?;
        if terms.is_durable() {
            let cause = "an array in pieces cannot be made durable yet: take it whole, and archive that";
            return Err(Error::new(Code::Unsupported, "durability", cause));
        }
        let mut record = Vec::new();
        connection.record(terms, attributes, &mut record)?;
        let schema = connection.schema(terms.schema());
        let key = schema.key_text(RecordRef::trusted(&record));
        check_epoch(schema, &key, piece.epoch)?;
        let head = ArrayHead {
            layout: Arc::clone(piece.layout),
            element: piece.element,
            epoch: piece.epoch,
        };
        head.check_attributes(schema, &record)?;
        Ok(Self {
            piece_of: piece_of(schema.name(), &key)?,
            head,
            piece: *piece,
            terms,
            record,
            key,
            scope,
        })
    }

    /// Offers a copy.
    fn copy(&self, mine: &[u8]) -> Result<()> {
        let about = self.about();
        let mut bundle = self.open(&about)?;
        if bundle.is_none() {
            if let Some(offered) = self.offer_at_once(&about, mine) {
                return offered;
            }
            bundle = self.bundle(about, mine)?;
        }
        let Some(bundle) = bundle else { return Ok(()) };
        if self.has_elements() {
            match self.stage_copy(&bundle, mine) {
                Err(error) if is_second(&error) => self.must_be_the_same(mine)?,
                staged => staged?,
            }
        }
        self.stage_head(&bundle)
    }

    /// Offers memory of the pool.
    fn give(&self, mine: Allocation) -> Result<()> {
        mine.must_be_of(&self.scope.connection)?;
        let about = self.about();
        let bundle = match self.open(&about)? {
            Some(bundle) => bundle,
            None => match self.bundle(about, &mine)? {
                Some(bundle) => bundle,
                None => return Ok(()),
            },
        };
        if self.has_elements() {
            let ready = mine.into_ready();
            match self.stage(&bundle, ready.content()) {
                Err(error) if is_second(&error) => return Err(self.second()),
                staged => staged?,
            }
        }
        self.stage_head(&bundle)
    }

    /// Opens the bundle of the array; `None` if the array is complete with this piece. Blocks.
    fn bundle(&self, about: About, mine: &[u8]) -> Result<Option<Arc<Bundle>>> {
        match self.begin_open(&about).and_then(Pending::wait) {
            Ok(bundle) => self.keep(bundle, about).map(Some),
            Err(error) => self.come_late(error, mine).map(|()| None),
        }
    }

    /// Accepts the error that the bundle of the array cannot be opened if the array is complete with this piece.
    fn come_late(&self, error: Error, mine: &[u8]) -> Result<()> {
        if self.is_late(error)? {
            self.must_be_the_same(mine)?;
        }
        Ok(())
    }

    /// Opens the bundle of the array, or joins the ranks that have it open.
    pub(crate) fn begin_open(&self, about: &About) -> Result<Pending<Bundle>> {
        let attributes = about.iter().map(|(name, value)| (*name, value.as_str()));
        begin_open_path(&self.scope.connection, &self.path()?, attributes, self.bundle_options())
    }

    /// Returns the bundle of the array, if this pool has it open.
    ///
    /// # Errors
    /// `Conflict` if other ranks describe the array differently; an invalid layout, for the rank that would open it.
    pub(crate) fn open(&self, about: &About) -> Result<Option<Arc<Bundle>>> {
        match self.scope.arrays.find(&self.scope.connection, &self.path()?) {
            Some(open) if open.about == *about => Ok(Some(open.bundle)),
            Some(_) => Err(self.differs()),
            None => self.piece.layout.check_cover().map(|()| None),
        }
    }

    /// Keeps the bundle open until it is complete: other ranks may offer pieces.
    ///
    /// # Errors
    /// `Closed` or `BundleClosed` if the enclosing bundle ended before this one was opened: this one is then no member.
    pub(crate) fn keep(&self, bundle: Bundle, about: About) -> Result<Arc<Bundle>> {
        if let Some((enclosing, _)) = self.scope.within {
            // The server reports an end before it answers a later request. Pieces are staged only after this check, and the
            // bundle is left, not aborted: it may be a member of a new bundle at the path.
            enclosing.must_be_open()?;
        }
        let bundle = Arc::new(bundle);
        self.scope.arrays.keep(OpenArray {
            bundle: Arc::clone(&bundle),
            about,
        });
        Ok(bundle)
    }
}

/// The properties that all pieces of an array share.
pub(crate) type About = Vec<(&'static str, String)>;

impl PieceOffer<'_> {
    pub(crate) fn has_elements(&self) -> bool {
        self.head.layout.own(self.piece.rank) > 0
    }

    pub(crate) fn path(&self) -> Result<String> {
        let piece =
            Schema::piece().ok_or_else(|| Error::new(Code::NotFound, Schema::PIECE, "there is no such schema"))?;
        let epoch = self.piece.epoch.map_or_else(String::new, |epoch| format!(".{epoch}"));
        let within = self
            .scope
            .within
            .map_or_else(String::new, |(_, path)| format!("{path}/"));
        Ok(format!("{within}array.{}{epoch}", piece.key_hash(&self.piece_of)))
    }

    pub(crate) fn bundle_options(&self) -> BundleOptions<'static> {
        BundleOptions {
            members: Some(self.head.layout.owners() + 1),
            orphan_timeout: None,
            schema: Some(Schema::PIECE),
        }
    }

    /// Returns the properties that all pieces of the array share.
    pub(crate) fn about(&self) -> About {
        let mut about = vec![
            ("piece_of", self.piece_of.clone()),
            ("dtype", self.head.element.to_string()),
            ("layout", self.head.layout_value()),
        ];
        about.extend(self.piece.epoch.map(|epoch| ("epoch", epoch.to_string())));
        about
    }

    fn attributes(&self) -> About {
        let mut attributes = self.about();
        attributes.push(("rank", self.piece.rank.to_string()));
        attributes
    }

    fn differs(&self) -> Error {
        let cause = format!(
            "other ranks have offered their pieces in another layout, or of another type, than rank {} ({} of {})",
            self.piece.rank, self.head.layout, self.head.element
        );
        Error::new(Code::Conflict, &*self.key, cause)
    }

    fn is_complete_otherwise(&self) -> Error {
        let cause = format!(
            "the array is complete, in another layout or of another type than rank {} has ({} of {})",
            self.piece.rank, self.head.layout, self.head.element
        );
        Error::new(Code::AlreadyExists, &*self.key, cause)
    }

    /// Interprets the error that the bundle of the array cannot be opened. True: the array is complete, and this piece
    /// must equal the one that its rank has offered; false: the array is complete, and the rank has no elements.
    ///
    /// # Errors
    /// `Conflict` if other ranks describe the array differently, `AlreadyExists` if it is complete and was; any other error.
    pub(crate) fn is_late(&self, error: Error) -> Result<bool> {
        match error.code() {
            Code::Conflict => Err(self.differs()),
            Code::AlreadyExists => Err(self.is_complete_otherwise()),
            Code::BundleClosed if !self.is_of_enclosing(&error) => Ok(self.has_elements()),
            _ => Err(error),
        }
    }

    fn is_of_enclosing(&self, error: &Error) -> bool {
        let enclosing = self.scope.within.map(|(_, path)| format!("bundle {path}"));
        enclosing.is_some_and(|enclosing| error.subject() == enclosing)
    }

    fn stage_copy(&self, bundle: &Bundle, mine: &[u8]) -> Result<()> {
        if self.scope.connection.goes_inline(mine.len()) {
            return self.stage(bundle, OfferedPayload::Inline(mine));
        }
        let mut allocation = bundle.allocate(mine.len())?;
        allocation.write(0, mine)?;
        self.stage(bundle, allocation.into_ready().content())
    }

    fn stage(&self, bundle: &Bundle, content: OfferedPayload<'_>) -> Result<()> {
        let (terms, record) = self.as_object()?;
        bundle.stage(terms, &record, content).map(drop)
    }

    /// Returns the piece as an object.
    pub(crate) fn as_object(&self) -> Result<(OfferTerms, Vec<u8>)> {
        let schema = self.scope.connection.greeting.schemas.find(Schema::PIECE)?;
        let mut record = Vec::new();
        let attributes = self.attributes();
        let attributes = attributes.iter().map(|(name, value)| (*name, value.as_str()));
        self.scope.connection.record_of(schema, attributes, &mut record)?;
        Ok((OfferTerms::of_piece(schema), record))
    }

    /// Returns the array's own object, with its payload, if this rank describes the layout: the rank with the first
    /// element.
    pub(crate) fn own_object(&self) -> Option<(OfferTerms, &[u8], String)> {
        let first = self.head.layout.first_owner().unwrap_or(0);
        (self.piece.rank == first).then(|| (self.terms, &*self.record, self.head.to_text()))
    }

    fn stage_head(&self, bundle: &Bundle) -> Result<()> {
        let Some((terms, record, text)) = self.own_object() else {
            return Ok(());
        };
        let staged = if self.scope.connection.goes_inline(text.len()) {
            bundle.stage(terms, record, OfferedPayload::Inline(text.as_bytes()))
        } else {
            let mut allocation = bundle.allocate(text.len())?;
            allocation.write(0, text.as_bytes())?;
            bundle.stage(terms, record, allocation.into_ready().content())
        };
        unless_complete(staged.map(drop))
    }

    /// Accepts a piece that was rejected as a second one, if it has the same bytes as the first.
    fn must_be_the_same(&self, mine: &[u8]) -> Result<()> {
        let attributes = self.attributes();
        let key = key_of(&attributes);
        let first = demand(
            &self.scope.connection,
            &key,
            Some(Duration::ZERO),
            &DemandThrough::Staged,
        );
        self.is_the_same(mine, first)
    }

    /// Begins to demand the piece that this rank has offered before.
    #[cfg(feature = "async")]
    pub(crate) fn begin_demand_first(&self) -> Result<Pending<Object>> {
        let attributes = self.attributes();
        let key = key_of(&attributes);
        begin_demand(
            &self.scope.connection,
            &key,
            Some(Duration::ZERO),
            &DemandThrough::Staged,
        )
    }

    /// # Errors
    /// `AlreadyExists` if the first piece of this rank is different.
    pub(crate) fn is_the_same(&self, mine: &[u8], first: Result<Object>) -> Result<()> {
        let rank = self.piece.rank;
        let cause = match first {
            Ok(first) if first.get("layout") == Some(&*self.head.layout_value()) && first.payload() == mine => {
                return Ok(());
            }
            Ok(_) => format!("rank {rank} has offered its piece of this array before, with other bytes"),
            Err(_) => format!(
                "rank {rank} has offered its piece of this array before, and the array was removed; the keys of an array are free \
                 some minutes after its removal, at once with {}",
                self.forget_command()
            ),
        };
        Err(Error::new(Code::AlreadyExists, &*self.key, cause))
    }

    /// Returns the command that frees the keys of the array.
    fn forget_command(&self) -> String {
        let greeting = &self.scope.connection.greeting;
        let schema = greeting.schemas.get(self.terms.schema());
        let forget = command::forget(&self.key, schema.map_or("", |schema| schema.name()));
        complete_commands(&forget, &greeting.server).into_owned()
    }

    fn second(&self) -> Error {
        let cause = format!("rank {} has offered its piece of this array before", self.piece.rank);
        Error::new(Code::AlreadyExists, &*self.key, cause)
    }
}

/// Returns whether a piece was rejected because its rank has offered one already.
pub(crate) fn is_second(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::AlreadyExists | Code::BundleClosed | Code::BundleFull
    )
}

/// A rank that describes the layout again may have offered the last piece before.
pub(crate) fn unless_complete(staged: Result<()>) -> Result<()> {
    match staged {
        Err(error) if error.code() == Code::BundleClosed => Ok(()),
        staged => staged,
    }
}

/// Returns the key attributes of a piece.
fn key_of(attributes: &About) -> Target<'_> {
    let key = attributes
        .iter()
        .filter(|(name, _)| !matches!(*name, "dtype" | "layout"));
    Target::key(key.map(|(name, value)| (*name, value.as_str()))).in_schema(Schema::PIECE)
}

/// # Errors
/// `Unsupported` if the pool's schema with this name is different or missing.
fn has_pieces(connection: &PoolConnection) -> Result<()> {
    if connection.greeting.schemas.has_pieces() {
        return Ok(());
    }
    let cause = "this pool has no pieces: it is of an earlier version, or has a schema of its own of this name";
    Err(Error::new(
        Code::Unsupported,
        format!("schema {}", Schema::PIECE),
        cause,
    ))
}

/// # Errors
/// `InvalidArgument` for an epoch if a key has one array only, and for a missing epoch otherwise.
fn check_epoch(schema: &Schema, key: &str, epoch: Option<i64>) -> Result<()> {
    let cause = match (schema.on_same_key(), epoch) {
        (SameKey::Reject, Some(_)) => {
            "rejects a second object of a key: an array of another step has another key, and no epoch"
        }
        (SameKey::Supersede, None) => {
            "lets objects supersede each other: an epoch must state which pieces belong together"
        }
        _ => return Ok(()),
    };
    let cause = format!("the schema {} {cause}", schema.name());
    Err(Error::new(Code::InvalidArgument, key, cause))
}
