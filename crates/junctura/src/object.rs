//! An object delivered to a consumer: its attributes and its payload.
//!
//! The payload is not copied: the object keeps its memory alive, even after the pool is closed or the server has
//! exited. Only a spilled payload is read from its file, when the caller receives the object. Dropping the object
//! releases it and notifies the server; to share it, use an `Arc`. An object that is dropped in a panic is given back:
//! the group or requirement through which it was received does not count it as completed.

use std::fmt;
use std::mem;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use junctura_memory::{SegmentMapping, tier};
use junctura_model::version::{Cursor, Phase, Version};
use junctura_model::{Code, Error, RecordRef, Result, Schema};
use junctura_wire::fixed::{CHECKSUM, FIRST_PHASE, MAPPED, REDELIVERED, ReleasedHolding, STAGED, UNDONE};

use crate::connection::in_flight::ServerMessage;
use crate::connection::stream::ServerStream;
use crate::connection::{PoolConnection, unexpected};

/// Larger payloads, in bytes, take noticeable time to checksum.
const SUMMED_AT_ONCE: u64 = 1 << 20;

/// How a payload arrived.
///
/// ```
/// # use junctura::{Pool, Transport};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "a")], b"short")?;
/// assert_eq!(pool.demand("name=a", None)?.transport(), Transport::Inline);
/// pool.offer([("name", "b")], &[0; 1 << 20])?;
/// assert_eq!(pool.demand("name=b", None)?.transport(), Transport::Shared);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Inside the message.
    Inline,
    /// Through shared memory, without a copy.
    Shared,
    /// From the server's file tier, to which it was spilled.
    File,
    /// Over a network, into memory of this machine.
    Tcp,
    /// From the store behind the pool; the pool no longer has it.
    Store,
}

/// A delivery as received from the server.
#[derive(Debug)]
pub(crate) struct ArrivedObject {
    pub(crate) holding: ReleasedHolding,
    pub(crate) schema: u16,
    pub(crate) flags: u16,
    pub(crate) record_length: u32,
    pub(crate) checksum: u32,
    pub(crate) producer: u32,
    pub(crate) rest: u32,
    pub(crate) length: u64,
    pub(crate) place: PayloadSource,
    /// The body: the payload first if it is inline, so that its numbers are aligned as an allocation is; then the
    /// record.
    pub(crate) body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum PayloadSource {
    Inline,
    Empty,
    Mapped {
        mapping: Arc<SegmentMapping>,
        offset: u64,
    },
    /// In the file tier, not read yet.
    Spilled {
        file: Arc<OwnedFd>,
        at: u64,
    },
    /// Read from the file tier.
    Read(Vec<u8>),
    /// Read from a store; the pool does not have it.
    #[cfg_attr(not(feature = "store"), expect(dead_code, reason = "nothing is read from a store"))]
    Archived(Box<StoredPart>),
}

/// Data that only objects from a store have.
#[derive(Debug)]
pub(crate) struct StoredPart {
    pub(crate) schema: Arc<Schema>,
    pub(crate) version: Version,
    pub(crate) payload: Vec<u8>,
}

impl ArrivedObject {
    pub(crate) fn record(&self) -> RecordRef<'_> {
        RecordRef::trusted(&self.body[self.body.len() - self.record_length as usize..])
    }

    pub(crate) fn is_first_phase(&self) -> bool {
        self.flags & FIRST_PHASE != 0
    }

    fn is_staged(&self) -> bool {
        self.flags & STAGED != 0
    }

    /// Returns whether making its object takes long: a disk read, or the checksum of a large payload.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self.place, PayloadSource::Spilled { .. })
            || self.flags & CHECKSUM != 0 && self.length > SUMMED_AT_ONCE
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.holding.sequence.get()
    }

    fn payload(&self) -> &[u8] {
        match &self.place {
            PayloadSource::Inline => &self.body[..self.length as usize],
            PayloadSource::Empty | PayloadSource::Spilled { .. } => &[],
            PayloadSource::Read(payload) => payload,
            PayloadSource::Archived(archived) => &archived.payload,
            // The range was checked on arrival, and a map never changes its size.
            PayloadSource::Mapped { mapping, offset } => mapping.slice(*offset, self.length).unwrap_or_default(),
        }
    }
}

/// The source of objects: one for each follow and demand.
#[derive(Debug)]
pub(crate) struct ObjectOrigin {
    pub(crate) connection: Arc<PoolConnection>,
    pub(crate) follow: Option<FollowSnapshot>,
    /// Number of messages that are ready for the follow's reader.
    at_hand: Arc<AtomicUsize>,
    /// The follow's conversation.
    conversation: u64,
    /// Number of objects of the pool that are held.
    held: AtomicUsize,
    /// The next release requests more objects from the pool.
    asks_when_released: AtomicBool,
}

impl ObjectOrigin {
    /// The source of the objects of a demand.
    pub(crate) fn of_demand(connection: &Arc<PoolConnection>) -> Self {
        Self {
            connection: Arc::clone(connection),
            follow: None,
            at_hand: Arc::default(),
            conversation: 0,
            held: AtomicUsize::new(0),
            asks_when_released: AtomicBool::new(false),
        }
    }

    /// The source of the objects of a follow, which are taken from this stream.
    pub(crate) fn of_follow(connection: &Arc<PoolConnection>, stream: &ServerStream, follow: FollowSnapshot) -> Self {
        Self {
            follow: Some(follow),
            at_hand: stream.at_hand(),
            conversation: stream.number(),
            ..Self::of_demand(connection)
        }
    }

    /// Returns whether fewer than `window` objects are held. A release is always sent before the next request.
    pub(crate) fn holds_less_than(&self, window: u32) -> bool {
        self.held.load(Ordering::SeqCst) < window as usize
    }

    /// Requests the next objects for this follow from the pool. Does not block.
    ///
    /// # Errors
    /// `Disconnected` or `Closed`.
    pub(crate) fn ask(&self) -> Result<()> {
        self.connection.ask_within(self.conversation)
    }

    /// As [`Self::ask`], but only when fewer than `window` objects are held.
    pub(crate) fn ask_when_released(&self, window: u32) -> Result<()> {
        self.asks_when_released.store(true, Ordering::SeqCst);
        // An object may have been released in the meantime without a request.
        if self.holds_less_than(window) {
            self.was_released()
        } else {
            Ok(())
        }
    }

    fn was_released(&self) -> Result<()> {
        if self.asks_when_released.load(Ordering::SeqCst) && self.asks_when_released.swap(false, Ordering::SeqCst) {
            self.ask()
        } else {
            Ok(())
        }
    }
}

/// The start of a follow and the order of its first phase.
#[derive(Debug)]
pub(crate) struct FollowSnapshot {
    pub(crate) sequence: u64,
    pub(crate) order_by: Option<String>,
}

/// An object whose payload is not read or verified yet, for a caller that does so elsewhere.
pub(crate) struct UnreadObject {
    origin: Arc<ObjectOrigin>,
    arrived: Option<ArrivedObject>,
}

impl UnreadObject {
    pub(crate) fn new(origin: &Arc<ObjectOrigin>, arrived: ArrivedObject) -> Self {
        Self {
            origin: Arc::clone(origin),
            arrived: Some(arrived),
        }
    }

    /// # Errors
    /// As [`Object::new`].
    pub(crate) fn make(mut self) -> Result<Object> {
        match self.arrived.take() {
            Some(arrived) => Object::new(&self.origin, arrived),
            None => Err(unexpected("no object")),
        }
    }
}

impl Drop for UnreadObject {
    fn drop(&mut self) {
        // The caller has not received the object.
        if let Some(arrived) = self.arrived.take()
            && let Ok(mut state) = self.origin.connection.lock()
        {
            state.discard([ServerMessage::Delivered(arrived)]);
            let _ = state.send();
        }
    }
}

/// An object, held until it is dropped or released.
///
/// It dereferences to its payload: `&object[..]`. The payload is borrowed, not copied.
///
/// ```
/// # use junctura::{FollowOptions, Item, Pool, Transport};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let version = pool.offer([("name", "a"), ("unit", "K")], b"payload")?;
/// let object = pool.demand("name=a", None)?;
/// assert_eq!((&object[..], object.payload()), (&b"payload"[..], &b"payload"[..]));
/// assert_eq!((object.key(), object.version(), object.schema().name()), ("{space=default}{}{name=a}", version, "free"));
/// assert_eq!((object.get("unit"), object.attributes().count()), (Some("K"), 3));
/// assert_eq!((object.producer(), object.transport()), (pool.client()?, Transport::Inline));
/// assert!(!object.is_staged() && object.cursor().is_none()); // only objects of a follow have a cursor
/// object.release()?; // as dropping it, and sent at once
///
/// // A member of a group may give it back, for another member.
/// let group = FollowOptions { group: Some("workers".into()), ..FollowOptions::default() };
/// let mut work = pool.follow_with("", group)?;
/// let mut next = || loop {
///     if let Some(Item::Object(object)) = work.next_item()? {
///         return junctura::Result::Ok(object);
///     }
/// };
/// let first = next()?;
/// assert!(first.in_snapshot() && !first.redelivered() && first.rest_of_bundle() == 0);
/// first.give_back()?;
/// let mut again = next()?;
/// assert!(again.redelivered());
/// again.leave_undone(); // the same, when it is dropped
/// # Ok(())
/// # }
/// ```
pub struct Object {
    arrived: ArrivedObject,
    origin: Arc<ObjectOrigin>,
    key: OnceLock<String>,
    hold: ObjectHold,
}

/// The server's state of an object of this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectHold {
    /// The object: it is not released.
    Object,
    /// The memory of its payload.
    Memory,
    /// Nothing.
    Nothing,
}

impl Object {
    /// # Errors
    /// `Corrupt` if the payload does not match its checksum; `Io` or `TooLarge` if a spilled payload cannot be read.
    /// The object is then given back.
    pub(crate) fn new(origin: &Arc<ObjectOrigin>, arrived: ArrivedObject) -> Result<Self> {
        let (object, unread) = Self::received(origin, arrived);
        unread.map_or(Ok(object), Err)
    }

    /// As [`Self::new`]; always returns the object, with the error if its payload cannot be read.
    pub(crate) fn received(origin: &Arc<ObjectOrigin>, arrived: ArrivedObject) -> (Self, Option<Error>) {
        if !matches!(arrived.place, PayloadSource::Archived(_)) {
            origin.held.fetch_add(1, Ordering::SeqCst);
        }
        let mut object = Self {
            arrived,
            origin: Arc::clone(origin),
            key: OnceLock::new(),
            hold: ObjectHold::Object,
        };
        if let Err(error) = object.read_spilled() {
            object.leave_undone();
            return (object, Some(error));
        }
        let is_checked = object.arrived.flags & CHECKSUM != 0;
        let unread = if is_checked { object.verify().err() } else { None };
        (object, unread)
    }

    /// Reads a spilled payload. Blocks on the disk.
    fn read_spilled(&mut self) -> Result<()> {
        if let PayloadSource::Spilled { file, at } = &self.arrived.place {
            let payload = tier::read(file.as_fd(), *at, self.arrived.length)
                .map_err(|error| Error::new(error.code(), self.key(), error.cause()))?;
            self.arrived.place = PayloadSource::Read(payload);
        }
        Ok(())
    }

    fn verify(&self) -> Result<()> {
        let found = crc32c::crc32c(self.payload());
        if found == self.arrived.checksum {
            return Ok(());
        }
        let cause = format!(
            "its payload has checksum {found:08x}, not {:08x}: it was changed after client {} had offered it{}",
            self.arrived.checksum,
            self.arrived.producer,
            if self.transport() == Transport::File {
                ", or its disk has not kept it"
            } else {
                ""
            }
        );
        Err(Error::new(Code::Corrupt, self.key(), cause))
    }

    /// Returns its canonical key.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key.get_or_init(|| self.schema().key_text(self.arrived.record()))
    }

    /// Returns whether it was staged in an incomplete bundle when it was delivered. Such an object may never become
    /// visible to other clients, and has no version yet (sequence number 0).
    #[must_use]
    pub fn is_staged(&self) -> bool {
        self.arrived.is_staged()
    }

    /// Returns its version; newer versions compare greater. `0.0` for an object that was put into a store by hand.
    #[must_use]
    pub fn version(&self) -> Version {
        if let PayloadSource::Archived(archived) = &self.arrived.place {
            return archived.version;
        }
        Version {
            incarnation: self.origin.connection.greeting.incarnation,
            sequence: self.arrived.sequence(),
        }
    }

    /// Returns the schema that describes it.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        if let PayloadSource::Archived(archived) = &self.arrived.place {
            return &archived.schema;
        }
        self.origin.connection.schema(self.arrived.schema)
    }

    #[cfg(feature = "store")]
    pub(crate) fn record(&self) -> RecordRef<'_> {
        self.arrived.record()
    }

    /// Iterates over the names and canonical values of its attributes, key attributes first.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.schema().attributes_of(self.arrived.record())
    }

    /// Returns the canonical value of an attribute, by name or alias.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.schema().value_in(self.arrived.record(), name)
    }

    /// Returns the payload, borrowed.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.arrived.payload()
    }

    /// Returns whether it was delivered as part of the snapshot with which the follow began.
    #[must_use]
    pub fn in_snapshot(&self) -> bool {
        self.arrived.is_first_phase()
    }

    /// Returns whether it was delivered before through the same group or named requirement, to a client that gave it
    /// back or was lost before the release.
    #[must_use]
    pub fn redelivered(&self) -> bool {
        self.arrived.flags & REDELIVERED != 0
    }

    /// Returns how many more members of its bundle became visible with it, under the versions that follow its own. A
    /// consumer that treats a bundle as a unit uses this count to detect the end of the bundle, as far as its selector
    /// matches all members. 0 outside a bundle.
    #[must_use]
    pub fn rest_of_bundle(&self) -> u32 {
        self.arrived.rest
    }

    /// Returns whether it is an array that was offered in pieces. Its payload then describes the layout of the pieces,
    /// and [`Pool::array`](crate::Pool::array) returns its elements. A payload that only begins like such a description
    /// is plain bytes.
    #[must_use]
    pub fn is_in_pieces(&self) -> bool {
        crate::array::is_in_pieces(self.payload())
    }

    /// Returns a cursor from which a follow continues after this object; `None` if it was demanded.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        let incarnation = self.origin.connection.greeting.incarnation;
        let follow = self.origin.follow.as_ref()?;
        Some(follow.cursor(incarnation, self.schema(), &self.arrived))
    }

    /// Returns the number of the client that offered it; 0 for an object from a store.
    #[must_use]
    pub fn producer(&self) -> u32 {
        self.arrived.producer
    }

    /// Returns how its payload arrived.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self.arrived.place {
            PayloadSource::Archived(_) => Transport::Store,
            PayloadSource::Mapped { .. } | PayloadSource::Spilled { .. } | PayloadSource::Read(_)
                if self.origin.connection.is_network() =>
            {
                Transport::Tcp
            }
            PayloadSource::Mapped { .. } => Transport::Shared,
            PayloadSource::Spilled { .. } | PayloadSource::Read(_) => Transport::File,
            PayloadSource::Inline | PayloadSource::Empty => Transport::Inline,
        }
    }

    /// Releases it and notifies the server at once. Dropping may delay the notification to batch it with others.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended; the object is released in any case.
    pub fn release(self) -> Result<()> {
        let origin = Arc::clone(&self.origin);
        drop(self);
        origin.connection.flush()
    }

    /// Releases it and keeps its payload readable until it is dropped. For retention, for its group or requirement and
    /// for the window of its follow it is released from now on; the memory of the payload is not reused before the drop.
    /// After [`Object::leave_undone`], gives it back likewise. The server is notified at once. Does not block.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "a")], b"payload")?;
    /// let mut object = pool.demand("name=a", None)?;
    /// object.release_mapped();
    /// assert_eq!(object.payload(), b"payload");
    /// # Ok(())
    /// # }
    /// ```
    pub fn release_mapped(&mut self) {
        self.release_keeping_memory(false);
    }

    /// As [`Object::release_mapped`], but the server is notified as by a drop: together with other releases while its
    /// reader has more objects available. Does not block.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("name", "a")], b"payload")?;
    /// let mut object = pool.demand("name=a", None)?;
    /// object.release_mapped_with_others();
    /// assert_eq!(object.payload(), b"payload");
    /// # Ok(())
    /// # }
    /// ```
    pub fn release_mapped_with_others(&mut self) {
        self.release_keeping_memory(self.has_more_at_hand());
    }

    fn release_keeping_memory(&mut self, more: bool) {
        if self.hold != ObjectHold::Object {
            return;
        }
        let connection = &self.origin.connection;
        match self.arrived.place {
            PayloadSource::Archived(_) => return,
            // An earlier server would reuse the memory: the object is released when it is dropped.
            PayloadSource::Mapped { .. } if !connection.greeting.keeps_mapped => return,
            PayloadSource::Mapped { .. } => {
                self.hold = ObjectHold::Memory;
                let mut holding = self.arrived.holding;
                holding.flags = (holding.flags.get() | MAPPED).into();
                connection.release(holding, Vec::new(), more);
            }
            _ => {
                self.hold = ObjectHold::Nothing;
                connection.release(self.arrived.holding, Vec::new(), more);
            }
        }
        self.origin.held.fetch_sub(1, Ordering::SeqCst);
        // Without a server there is nothing to request.
        let _ = self.origin.was_released();
    }

    /// Releases it and notifies the server with the next request or release.
    pub(crate) fn release_with_next(mut self) {
        if let PayloadSource::Archived(_) = self.arrived.place {
            return;
        }
        self.arrived.place = PayloadSource::Empty;
        let body = mem::take(&mut self.arrived.body);
        self.origin.connection.release(self.arrived.holding, body, true);
        self.hold = ObjectHold::Nothing;
        self.origin.held.fetch_sub(1, Ordering::SeqCst);
    }

    /// Gives it back uncompleted: the group or requirement through which it was received redelivers it to its next
    /// reader, marked as [`Object::redelivered`]. An object that was received otherwise is no longer held. In neither case
    /// does it count as released for [`Retention::Released`](crate::Retention::Released).
    ///
    /// An object that is dropped in a panic is also given back.
    ///
    /// # Errors
    /// As [`Object::release`].
    pub fn give_back(mut self) -> Result<()> {
        self.leave_undone();
        self.release()
    }

    /// Whether its reader has more objects available.
    fn has_more_at_hand(&self) -> bool {
        self.origin.at_hand.load(Ordering::Relaxed) > 0
    }

    /// Causes a drop to give it back instead of releasing it: see [`Object::give_back`].
    pub fn leave_undone(&mut self) {
        self.arrived.holding.flags = UNDONE.into();
    }
}

impl FollowSnapshot {
    fn cursor(&self, incarnation: u64, schema: &Schema, arrived: &ArrivedObject) -> Cursor {
        let phase = if arrived.is_first_phase() {
            let sort = self
                .order_by
                .as_ref()
                .and_then(|name| schema.value_in(arrived.record(), name));
            let last_key = schema.key_text(arrived.record());
            Phase::First {
                snapshot: self.sequence,
                last_sort_value: sort.map(str::to_owned),
                last_key,
            }
        } else {
            Phase::Live {
                last: arrived.sequence(),
            }
        };
        Cursor { incarnation, phase }
    }
}

impl Deref for Object {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.arrived.payload()
    }
}

impl AsRef<[u8]> for Object {
    fn as_ref(&self) -> &[u8] {
        self.arrived.payload()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Object({} {}, {} bytes)",
            self.key(),
            self.version(),
            self.arrived.length
        )
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let PayloadSource::Archived(_) = self.arrived.place {
            return; // The server is not informed.
        }
        if self.hold == ObjectHold::Nothing {
            return;
        }
        // Drops the map first: nothing here may read the payload after the server has received the release.
        self.arrived.place = PayloadSource::Empty;
        let body = mem::take(&mut self.arrived.body);
        if std::thread::panicking() {
            self.leave_undone();
        }
        let more = self.has_more_at_hand();
        self.origin.connection.release(self.arrived.holding, body, more);
        if self.hold == ObjectHold::Memory {
            return;
        }
        self.origin.held.fetch_sub(1, Ordering::SeqCst);
        // Without a server there is nothing to request.
        let _ = self.origin.was_released();
    }
}
