//! Offering pieces.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use junctura_layout::{Element, Layout};
use junctura_model::{Code, Error, IntoGiven, RecordRef, Result, SameKey, Schema};

use super::head::{Head, piece_of};
use crate::allocation::Allocation;
use crate::bundle::{Bundle, BundleOptions};
use crate::connection::Connection;
use crate::offer::{Content, OfferOptions, Terms};
use crate::pool::Pool;
use crate::target::{Target, find_schema};

/// One rank's part of an array.
///
/// ```
/// # use std::sync::Arc;
/// # use junctura::{Layout, Piece, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let layout: Arc<Layout> = Arc::new("shape=4x6 grid=2x1".parse()?);
/// for rank in 0..2 {
///     let piece = Piece::new(&layout, "u1".parse()?, rank);
///     let mine = vec![rank as u8; piece.bytes()]; // two rows of six elements
///     pool.offer_piece(&piece, [("name", "t")], &mine)?;
/// }
/// let wanted = Arc::new("shape=4x6 grid=1x3".parse()?);
/// let array = pool.demand_array("name=t", None)?;
/// assert_eq!(array.take(&junctura::Part::of(&wanted, 1))?, [0, 0, 0, 0, 1, 1, 1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Piece<'l> {
    /// How the whole array lies.
    pub layout: &'l Arc<Layout>,
    /// What its elements are.
    pub element: Element,
    /// Whose part it is.
    pub rank: u64,
    /// Tells one version of the array from the next, where the schema of its key lets objects supersede each other: a step, a counter. Not
    /// where a key is that of one object.
    pub epoch: Option<i64>,
}

impl<'l> Piece<'l> {
    /// Of an array that is offered once.
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

    /// Bytes of its memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.layout.room(self.rank) as usize * self.element.kind.bytes()
    }

    fn check(&self, bytes: usize) -> Result<()> {
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

/// The arrays of which this process has offered pieces, and others have not yet: they are given up only when nobody has them open.
#[derive(Default)]
pub(crate) struct OpenArrays(Mutex<Vec<Open>>);

#[derive(Clone)]
struct Open {
    bundle: Arc<Bundle>,
    about: Vec<(&'static str, String)>,
}

impl OpenArrays {
    /// The bundle of this path, if this connection has it open. Those that are complete are let go.
    fn find(&self, connection: &Arc<Connection>, path: &str) -> Option<Open> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| one.bundle.is_of(connection) && matches!(one.bundle.completed(), Ok(None)));
        open.iter().find(|one| one.bundle.path() == Some(path)).cloned()
    }

    fn keep(&self, open: Open) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(open);
    }
}

impl fmt::Debug for OpenArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenArrays")
    }
}

/// A piece, and the array that it is of.
struct Offering<'p> {
    connection: Arc<Connection>,
    piece: Piece<'p>,
    head: Head,
    /// Of the array's own object.
    terms: Terms,
    record: Vec<u8>,
    key: String,
    piece_of: String,
}

impl Pool {
    /// Offers a copy of one rank's part of an array; returns when it is staged. The array becomes visible when all ranks that have elements
    /// of it have offered theirs, under the key that they all give.
    ///
    /// `mine` is the rank's memory as the layout describes it, gaps included. The same piece again, with the same bytes, does no harm. As
    /// long as an array lacks pieces, [`Pool::demand`] does not see it; when all who have offered pieces of it have gone it is given
    /// up after the pool's orphan timeout.
    ///
    /// See [`Piece`] for an example.
    ///
    /// # Errors
    /// `InvalidArgument` for a rank or a length that does not fit the layout, an epoch where the schema rejects a second object and none where it does not;
    /// `Conflict` where other ranks have offered theirs in another layout or type; `AlreadyExists` for another piece of this rank, and where
    /// the array was complete; those of [`Pool::offer`].
    pub fn offer_piece<'a, V: IntoGiven<'a>>(
        &self,
        piece: &Piece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        self.offer_piece_with(OfferOptions::default(), piece, attributes, mine)
    }

    /// As [`Pool::offer_piece`], with options, which are those of the array; where ranks differ in them, or in attributes that are not of the key, what the
    /// rank with the first element says counts. With `Retention::Released(3)` all its pieces
    /// go when three clients have released the array.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{Layout, OfferOptions, Piece, Pool, Retention};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=3".parse()?);
    /// let once = OfferOptions { retention: Some(Retention::Released(1)), ..OfferOptions::default() };
    /// let piece = Piece::new(&layout, "u1".parse()?, 0);
    /// pool.offer_piece_with(once, &piece, [("name", "t")], &[1, 2, 3])?;
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
        options: OfferOptions<'_>,
        piece: &Piece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: &[u8],
    ) -> Result<()> {
        piece.check(mine.len())?;
        let offering = self.offering(options, piece, attributes)?;
        let Some(bundle) = self.array_bundle(&offering, mine)? else {
            return Ok(());
        };
        if offering.has_elements() {
            let staged = offering.stage_copy(&bundle, mine);
            offering.unless_the_same(self, mine, staged)?;
        }
        offering.stage_head(&bundle)
    }

    /// As [`Pool::offer_piece_with`], of memory of the pool's that was filled in place: nothing is copied.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use junctura::{Layout, OfferOptions, Piece, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let layout: Arc<Layout> = Arc::new("shape=1000x1000".parse()?);
    /// let piece = Piece::new(&layout, "f8".parse()?, 0);
    /// let mut mine = pool.allocate(piece.bytes())?;
    /// mine.fill(0);
    /// pool.offer_piece_allocation(OfferOptions::default(), &piece, [("name", "zeros")], mine)?;
    /// # assert_eq!(pool.list("")?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Pool::offer_piece`], but that any second piece of a rank is `AlreadyExists`.
    pub fn offer_piece_allocation<'a, V: IntoGiven<'a>>(
        &self,
        options: OfferOptions<'_>,
        piece: &Piece<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        mine: Allocation,
    ) -> Result<()> {
        piece.check(mine.len())?;
        let offering = self.offering(options, piece, attributes)?;
        mine.must_be_of(&offering.connection)?;
        let Some(bundle) = self.array_bundle(&offering, &mine)? else {
            return Ok(());
        };
        if offering.has_elements() {
            let ready = mine.into_ready();
            offering.stage(&bundle, ready.content())?;
        }
        offering.stage_head(&bundle)
    }

    fn offering<'p, 'a, V: IntoGiven<'a>>(
        &self,
        options: OfferOptions<'_>,
        piece: &Piece<'p>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Offering<'p>> {
        let connection = self.connection()?;
        has_pieces(&connection)?;
        // Told to each rank, and not to that alone which says how the array lies.
        if options.if_wanted {
            let cause = "who wants an array is known when all its pieces are there";
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
        Ok(Offering {
            piece_of: piece_of(schema.name(), &key)?,
            head: Head {
                layout: Arc::clone(piece.layout),
                element: piece.element,
                epoch: piece.epoch,
            },
            piece: *piece,
            connection,
            terms,
            record,
            key,
        })
    }

    /// The bundle of an array; `None` where it is complete with this very piece.
    fn array_bundle(&self, offering: &Offering<'_>, mine: &[u8]) -> Result<Option<Arc<Bundle>>> {
        let path = offering.path()?;
        if let Some(open) = self.arrays().find(&offering.connection, &path) {
            let is_alike = open.about == offering.about();
            return if is_alike {
                Ok(Some(open.bundle))
            } else {
                Err(offering.differs())
            };
        }
        offering.piece.layout.check_cover()?;
        let options = BundleOptions {
            members: Some(offering.head.layout.owners() + 1),
            orphan_timeout: None,
            schema: Some(Schema::PIECE),
        };
        let about = offering.about();
        let attributes = about.iter().map(|(name, value)| (*name, value.as_str()));
        match self.open_bundle(&path, &options, attributes) {
            Ok(bundle) => {
                let bundle = Arc::new(bundle);
                self.arrays().keep(Open {
                    bundle: Arc::clone(&bundle),
                    about,
                });
                Ok(Some(bundle))
            }
            Err(error) if error.code() == Code::Conflict => Err(offering.differs()),
            // Who has nothing of it may come when it is complete.
            Err(error) if error.code() == Code::BundleClosed && !offering.has_elements() => Ok(None),
            Err(error) if error.code() == Code::BundleClosed => {
                let closed = Error::new(Code::AlreadyExists, &*offering.key, "the array is, or was, complete");
                offering.unless_the_same(self, mine, Err(closed)).map(|()| None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Offering<'_> {
    fn has_elements(&self) -> bool {
        self.head.layout.own(self.piece.rank) > 0
    }

    fn path(&self) -> Result<String> {
        let piece =
            Schema::piece().ok_or_else(|| Error::new(Code::NotFound, Schema::PIECE, "there is no such schema"))?;
        let epoch = self.piece.epoch.map_or_else(String::new, |epoch| format!(".{epoch}"));
        Ok(format!("array.{}{epoch}", piece.key_hash(&self.piece_of)))
    }

    /// What all pieces of the array have in common.
    fn about(&self) -> Vec<(&'static str, String)> {
        let mut about = vec![
            ("piece_of", self.piece_of.clone()),
            ("dtype", self.head.element.to_string()),
            ("layout", self.head.layout_value()),
        ];
        about.extend(self.piece.epoch.map(|epoch| ("epoch", epoch.to_string())));
        about
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
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

    fn stage_copy(&self, bundle: &Bundle, mine: &[u8]) -> Result<()> {
        if self.connection.goes_inline(mine.len()) {
            return self.stage(bundle, Content::Inline(mine));
        }
        let mut allocation = bundle.allocate(mine.len())?;
        allocation.copy_from_slice(mine);
        self.stage(bundle, allocation.into_ready().content())
    }

    fn stage(&self, bundle: &Bundle, content: Content<'_>) -> Result<()> {
        let schema = find_schema(&self.connection.greeting.schemas, Schema::PIECE)?;
        let mut record = Vec::new();
        let attributes = self.attributes();
        let attributes = attributes.iter().map(|(name, value)| (*name, value.as_str()));
        self.connection.record_of(schema, attributes, &mut record)?;
        bundle.stage(Terms::of_piece(schema), &record, content).map(drop)
    }

    /// The rank that has the first element says how the array lies.
    fn stage_head(&self, bundle: &Bundle) -> Result<()> {
        let first = self.head.layout.first_owner().unwrap_or(0);
        if self.piece.rank != first {
            return Ok(());
        }
        let text = self.head.to_text();
        let staged = if self.connection.goes_inline(text.len()) {
            bundle.stage(self.terms, &self.record, Content::Inline(text.as_bytes()))
        } else {
            let mut allocation = bundle.allocate(text.len())?;
            allocation.copy_from_slice(text.as_bytes());
            bundle.stage(self.terms, &self.record, allocation.into_ready().content())
        };
        match staged {
            // It has said so before, and that was the last piece.
            Err(error) if error.code() == Code::BundleClosed => Ok(()),
            staged => staged.map(drop),
        }
    }

    /// A piece that was refused since its rank has offered one is none too many if it has the same bytes.
    fn unless_the_same(&self, pool: &Pool, mine: &[u8], refused: Result<()>) -> Result<()> {
        let Err(error) = refused else { return Ok(()) };
        let is_second = matches!(
            error.code(),
            Code::AlreadyExists | Code::BundleClosed | Code::BundleFull
        );
        if !is_second {
            return Err(error);
        }
        let attributes = self.attributes();
        let key = attributes
            .iter()
            .filter(|(name, _)| !matches!(*name, "dtype" | "layout"));
        let key = Target::key(key.map(|(name, value)| (*name, value.as_str()))).in_schema(Schema::PIECE);
        let first = pool.demand_incomplete(key, Some(Duration::ZERO));
        let is_same = |first: &[u8]| first == mine;
        if first.is_ok_and(|first| first.get("layout") == Some(&*self.head.layout_value()) && is_same(first.payload()))
        {
            return Ok(());
        }
        let cause = format!(
            "rank {} has offered its piece of this array before, with other bytes, or the array has gone",
            self.piece.rank
        );
        Err(Error::new(Code::AlreadyExists, &*self.key, cause))
    }
}

/// # Errors
/// `Unsupported` where the pool's schema of this name is another one, or there is none.
fn has_pieces(connection: &Connection) -> Result<()> {
    if connection.greeting.schemas.iter().any(|schema| schema.is_aside()) {
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
/// `InvalidArgument` for an epoch where a key is that of one array, and for none where it is not.
fn check_epoch(schema: &Schema, key: &str, epoch: Option<i64>) -> Result<()> {
    let cause = match (schema.on_same_key(), epoch) {
        (SameKey::Reject, Some(_)) => {
            "rejects a second object of a key: an array of another step has another key, and no epoch"
        }
        (SameKey::Supersede, None) => {
            "lets objects supersede each other: an epoch has to say which pieces belong together"
        }
        _ => return Ok(()),
    };
    let cause = format!("the schema {} {cause}", schema.name());
    Err(Error::new(Code::InvalidArgument, key, cause))
}
