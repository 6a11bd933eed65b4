//! Memory in the pool that a producer fills in place, so that a payload is never copied.
//!
//! ```text
//!  allocate --> filled by its owner --offer--> the pool's, read-only for all
//!                     |
//!                     '------drop------> free again
//! ```

use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use junctura_memory::classes::slot_bytes;
use junctura_memory::{SlotMut, WritableMapping};
use junctura_model::version::Version;
use junctura_model::{Code, Error, IntoGiven, Result, size};
use junctura_wire::Request;
use junctura_wire::body::LeaseRequest;

use crate::connection::in_flight::{ExchangeKind, ServerMessage, SlotId};
use crate::connection::state::{ConnectionState, StandingLease, StreamStop};
use crate::connection::{Guard, PoolConnection, ThreadWait};
use crate::pending::Pending;
use crate::pool::Pool;
use crate::verbs::offer::{OfferOptions, OfferedPayload, PreparedOffer};

/// Memory for one payload, until it is offered. Its initial content is undefined: the previous content of the memory.
///
/// ```
/// # use junctura::{OfferOptions, Pool, Retention};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut field = pool.allocate(100_000)?;
/// assert!(field.is_shared()); // else it travels inside the message
/// field[..50_000].fill(7);
/// field.truncate(50_000);
/// let once = OfferOptions { retention: Some(Retention::Released(1)), ..OfferOptions::default() };
/// field.offer_with([("name", "sevens")], once)?;
/// let another = pool.allocate(10)?;
/// another.offer([("name", "zeros")])?; // memory of a small payload begins as zeros
/// # Ok(())
/// # }
/// ```
pub struct Allocation {
    pub(crate) connection: Arc<PoolConnection>,
    memory: AllocatedMemory,
}

pub(crate) enum AllocatedMemory {
    /// Small enough to be sent inside the message.
    Heap(Vec<u8>),
    Slot {
        segment: u32,
        slot: SlotMut,
    },
    Gone,
}

/// Memory that stays mapped as long as this value exists. The pool owns the content and reuses the memory after the
/// object is removed.
#[derive(Clone, Debug)]
pub struct KeepMapped {
    _mapping: Arc<WritableMapping>,
}

impl Pool {
    /// Allocates memory for a payload of `bytes`, to be filled and offered. Blocks until memory is available, for at
    /// most the pool's offer timeout.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let mut field = pool.allocate(100_000)?;
    /// field.fill(7);
    /// field.offer([("space", "demo"), ("name", "sevens")])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `TooLarge` for more than the pool accepts; `PoolFull` if there was no memory in time, with the objects that fill
    /// the pool.
    pub fn allocate(&self, bytes: usize) -> Result<Allocation> {
        let connection = self.connection()?;
        Allocation::new(&connection, bytes, connection.offer_timeout)
    }

    /// Non-blocking version of [`Pool::allocate`]. The request fails after the pool's offer timeout. See [`Pending`].
    ///
    /// ```
    /// # use junctura::{OfferOptions, Pool, Retention};
    /// # use std::time::Duration;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").budget_bytes(1 << 20).open()?;
    /// let mut first = pool.begin_allocate(600_000)?.wait()?;
    /// let mut second = pool.begin_allocate(600_000)?;
    /// assert!(second.wait_within(Duration::from_millis(1))?.is_none()); // the pool is full
    ///
    /// first.fill(7);
    /// let retention = Some(Retention::ReleasedBy(junctura::Consumers::new(["archive"])?));
    /// let options = OfferOptions { retention, ..Default::default() };
    /// assert_eq!(first.begin_offer([("name", "sevens")], options)?.wait()?.sequence, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Only in a forked child, which reconnects: those of [`Pool::connect`].
    pub fn begin_allocate(&self, bytes: usize) -> Result<Pending<Allocation>> {
        Ok(self.connection()?.begin_allocate(bytes, false))
    }
}

impl Allocation {
    pub(crate) fn new(connection: &Arc<PoolConnection>, bytes: usize, timeout: Option<Duration>) -> Result<Self> {
        Self::made(connection, bytes, timeout, false)
    }

    /// Allocates memory for a member of a bundle: does not wait for memory that only the end of a bundle could free.
    pub(crate) fn for_bundle(connection: &Arc<PoolConnection>, bytes: usize) -> Result<Self> {
        Self::made(connection, bytes, connection.offer_timeout, true)
    }

    fn made(connection: &Arc<PoolConnection>, bytes: usize, timeout: Option<Duration>, staged: bool) -> Result<Self> {
        if connection.goes_inline(bytes) {
            return Ok(Self::of_heap(connection, bytes));
        }
        let (segment, slot) = connection.take_slot(bytes as u64, timeout, staged)?;
        Ok(Self::of_slot(connection, segment, slot))
    }

    pub(crate) fn of_heap(connection: &Arc<PoolConnection>, bytes: usize) -> Self {
        Self {
            connection: Arc::clone(connection),
            memory: AllocatedMemory::Heap(vec![0; bytes]),
        }
    }

    /// Returns memory for a payload if a slot is free. Does not block.
    pub(crate) fn at_hand(connection: &Arc<PoolConnection>, bytes: usize) -> Result<Option<Self>> {
        let taken = find_slot(connection, bytes as u64)?.1.transpose()?;
        Ok(taken.map(|(segment, slot)| Self::of_slot(connection, segment, slot)))
    }

    pub(crate) fn of_slot(connection: &Arc<PoolConnection>, segment: u32, slot: SlotMut) -> Self {
        Self {
            connection: Arc::clone(connection),
            memory: AllocatedMemory::Slot { segment, slot },
        }
    }

    /// Offers it. Blocks until the object is visible. If the offer fails, the memory is freed.
    ///
    /// # Errors
    /// Those of [`Pool::offer`].
    pub fn offer<'a, V: IntoGiven<'a>>(self, attributes: impl IntoIterator<Item = (&'a str, V)>) -> Result<Version> {
        self.offer_with(attributes, OfferOptions::default())
    }

    /// As [`Allocation::offer`], with options.
    ///
    /// # Errors
    /// Those of [`Pool::offer_with`].
    pub fn offer_with<'a, V: IntoGiven<'a>>(
        self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: OfferOptions<'_>,
    ) -> Result<Version> {
        let connection = Arc::clone(&self.connection);
        let terms = connection.terms(options)?;
        let mut record = Vec::new();
        connection.record(terms, attributes, &mut record)?;
        let ready = self.into_ready();
        connection.offer_one(terms, &record, ready.content())
    }

    /// Non-blocking version of [`Allocation::offer_with`]; the answer to a durable offer arrives when its object is
    /// archived. See [`Pool::begin_allocate`].
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer. The memory is then freed.
    pub fn begin_offer<'a, V: IntoGiven<'a>>(
        self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: OfferOptions<'_>,
    ) -> Result<Pending<Version>> {
        let offer = PreparedOffer::new(&self.connection, attributes, options)?;
        offer.begin_filled(self, |connection, _, sequence| connection.version(sequence))
    }

    /// Returns whether it is shared memory; a small payload is sent inside the message.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self.memory, AllocatedMemory::Slot { .. })
    }

    /// Keeps the memory mapped, for other languages whose views may outlive the offer; `None` if it is not shared
    /// memory.
    #[must_use]
    pub(crate) fn keep_mapped(&self) -> Option<KeepMapped> {
        match &self.memory {
            AllocatedMemory::Slot { slot, .. } => Some(KeepMapped {
                _mapping: Arc::clone(slot.mapping()),
            }),
            AllocatedMemory::Heap(_) | AllocatedMemory::Gone => None,
        }
    }

    /// Copies bytes into it, from its byte `at` on. Into memory that the pool has not used yet this takes about half as
    /// long as a copy through the slice.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut field = pool.allocate(100_000)?;
    /// for (at, row) in [[7; 50_000], [8; 50_000]].iter().enumerate() {
    ///     field.write(at * row.len(), row)?;
    /// }
    /// field.offer([("name", "rows")])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the bytes exceed it; nothing is written then.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        if let AllocatedMemory::Slot { slot, .. } = &mut self.memory {
            return slot.write(at, bytes);
        }
        let length = self.len();
        let place = at.checked_add(bytes.len()).and_then(|end| self.get_mut(at..end));
        let Some(place) = place else {
            let cause = format!("{} bytes at {at} exceed its {length} bytes", bytes.len());
            return Err(Error::new(Code::InvalidArgument, "allocation", cause));
        };
        place.copy_from_slice(bytes);
        Ok(())
    }

    /// Shortens it to its first `bytes`; no effect if it is not longer.
    pub fn truncate(&mut self, bytes: usize) {
        match &mut self.memory {
            AllocatedMemory::Heap(heap) => heap.truncate(bytes),
            AllocatedMemory::Slot { slot, .. } => slot.truncate(bytes),
            AllocatedMemory::Gone => {}
        }
    }

    /// Checks the pool: a slot is valid only for its own server.
    pub(crate) fn must_be_of(&self, connection: &Arc<PoolConnection>) -> Result<()> {
        if Arc::ptr_eq(&self.connection, connection) {
            return Ok(());
        }
        Err(Error::new(
            Code::InvalidArgument,
            "allocation",
            "it belongs to another connection",
        ))
    }

    /// Gives up write access; the result can only be offered.
    pub(crate) fn into_ready(mut self) -> FinishedPayload {
        match mem::replace(&mut self.memory, AllocatedMemory::Gone) {
            AllocatedMemory::Heap(heap) => FinishedPayload::Heap(heap),
            AllocatedMemory::Slot { segment, slot } => {
                let checksum = if self.connection.greeting.checked {
                    crc32c::crc32c(&slot)
                } else {
                    0
                };
                FinishedPayload::Slot {
                    slot: SlotId {
                        segment,
                        slot: slot.slot(),
                    },
                    length: slot.len() as u64,
                    checksum,
                }
            }
            AllocatedMemory::Gone => FinishedPayload::Heap(Vec::new()),
        }
    }
}

/// A payload that is no longer written to.
pub(crate) enum FinishedPayload {
    Heap(Vec<u8>),
    Slot { slot: SlotId, length: u64, checksum: u32 },
}

impl FinishedPayload {
    pub(crate) fn content(&self) -> OfferedPayload<'_> {
        match self {
            FinishedPayload::Heap(heap) => OfferedPayload::Inline(heap),
            &FinishedPayload::Slot { slot, length, checksum } => OfferedPayload::Slot { slot, length, checksum },
        }
    }
}

impl Deref for Allocation {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            AllocatedMemory::Heap(heap) => heap,
            AllocatedMemory::Slot { slot, .. } => slot,
            AllocatedMemory::Gone => &[],
        }
    }
}

impl DerefMut for Allocation {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            AllocatedMemory::Heap(heap) => heap,
            AllocatedMemory::Slot { slot, .. } => slot,
            AllocatedMemory::Gone => &mut [],
        }
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Allocation({} bytes)", self.len())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let AllocatedMemory::Slot { segment, slot } = mem::replace(&mut self.memory, AllocatedMemory::Gone) else {
            return;
        };
        let id = SlotId {
            segment,
            slot: slot.slot(),
        };
        drop(slot);
        if let Ok(mut state) = self.connection.lock() {
            state.free_slot(id);
            state.rouse_for_slots();
            drop(self.connection.wake_tasks(state));
        }
    }
}

/// The outcome of a wait for memory.
enum LeaseOutcome {
    Slot(u32, SlotMut),
    /// A segment arrived, and others took its slots.
    Nothing,
}

/// A slot, and the number of its segment.
type TakenSlot = (u32, SlotMut);

/// Takes a free slot, and keeps the lock.
fn find_slot(connection: &PoolConnection, bytes: u64) -> Result<(Guard<'_>, Option<Result<TakenSlot>>)> {
    let mut state = connection.lock()?;
    state.alive()?;
    if let Some(taken) = state.segments.take(bytes) {
        return Ok((state, Some(taken)));
    }
    // Slots may have become free without a thread having read that.
    let (mut state, looked) = connection.glance(state);
    looked?;
    let taken = state.segments.take(bytes);
    Ok((state, taken))
}

impl PoolConnection {
    /// Returns a slot for a payload: a free one, or one of a segment that is leased for it. If the server has no memory
    /// either, waits for the first of two events: slots become free, or a segment arrives.
    pub(crate) fn take_slot(&self, bytes: u64, timeout: Option<Duration>, staged: bool) -> Result<(u32, SlotMut)> {
        self.must_take(bytes)?;
        let (mut state, mut taken) = find_slot(self, bytes)?;
        loop {
            if let Some(taken) = taken {
                return taken;
            }
            let found;
            (state, found) = self.lease(state, bytes, timeout, staged);
            if let LeaseOutcome::Slot(segment, slot) = found? {
                return Ok((segment, slot));
            }
            taken = state.segments.take(bytes);
        }
    }

    /// # Errors
    /// `TooLarge` for more than the pool accepts.
    pub(crate) fn must_take(&self, bytes: u64) -> Result<()> {
        let most = self.greeting.payload_bytes_max;
        if bytes <= most {
            return Ok(());
        }
        let cause = format!(
            "{}; this pool takes at most {}; serve it with a larger budget, or divide the payload",
            size::exact_bytes(bytes),
            size::exact_bytes(most)
        );
        Err(Error::new(Code::TooLarge, "payload", cause))
    }

    /// Waits for a segment or for slots that become free, whichever is first. A full pool receives one request, not one
    /// for each payload: the lease request stays outstanding until it is answered, while slots are freed and taken.
    fn lease<'a>(
        &'a self,
        mut state: Guard<'a>,
        bytes: u64,
        timeout: Option<Duration>,
        staged: bool,
    ) -> (Guard<'a>, Result<LeaseOutcome>) {
        let taken_over = state
            .standing_lease
            .take_if(|lease| lease.slot_bytes == slot_bytes(bytes) && lease.staged == staged);
        let lease = match taken_over.map_or_else(|| state.ask_for_segment(bytes, timeout, staged), Ok) {
            Ok(lease) => lease,
            Err(error) => return (state, Err(error)),
        };
        let what = ThreadWait {
            requests: &[lease.number],
            for_slots: true,
            for_room: false,
            deadline: None,
        };
        let mut answered = false;
        let (mut state, found) = self.wait_keeping(state, what, |state| {
            if let Some(taken) = state.segments.take(bytes) {
                return Some(taken.map(|(segment, slot)| LeaseOutcome::Slot(segment, slot)));
            }
            let letter = state.mail.get(lease.number)?.take()?;
            answered = true;
            match letter {
                // Another payload timed out, not this one.
                ServerMessage::Failed(error) if taken_over.is_some() && error.code() == Code::PoolFull => {
                    Some(Ok(LeaseOutcome::Nothing))
                }
                ServerMessage::Failed(error) => Some(Err(error)),
                _ => Some(Ok(LeaseOutcome::Nothing)),
            }
        });
        if answered {
            state.mail.close(lease.number);
        } else if found.is_ok() && state.standing_lease.is_none() {
            state.standing_lease = Some(lease);
        } else {
            // If this cannot be sent, the connection has ended.
            let _ = state.abandon(lease.number, StreamStop::Cancel);
        }
        let found = found.and_then(|found| found.unwrap_or(Ok(LeaseOutcome::Nothing)));
        (state, found)
    }
}

impl ConnectionState {
    pub(crate) fn ask_for_segment(
        &mut self,
        payload_bytes: u64,
        timeout: Option<Duration>,
        staged: bool,
    ) -> Result<StandingLease> {
        let number = self.mail.open(ExchangeKind::Once)?;
        let lease = LeaseRequest {
            payload_bytes,
            timeout_ms: timeout.map(|time| time.as_millis() as u64),
            staged,
        };
        if let Err(error) = self.append(number, &Request::Lease(lease)) {
            self.mail.close(number);
            return Err(error);
        }
        Ok(StandingLease {
            number,
            slot_bytes: slot_bytes(payload_bytes),
            staged,
        })
    }
}
