//! Offers: the attributes become a record; the payload is sent inside the message or stored in a slot.

mod prepared;

use std::collections::VecDeque;
use std::sync::Arc;

use junctura_model::version::Version;
use junctura_model::{Code, Consumers, Durability, Error, IntoGiven, RecordRef, Result, Retention};
use junctura_wire::fixed::{
    BY_CONSUMERS, CHECKSUM, DEFAULT_RETENTION, DURABLE, FOR_A_TIME, IF_WANTED, INLINE, ONCE, OfferHead, TOGETHER,
};
use junctura_wire::frame::BODY_BYTES_MAX;
use junctura_wire::{Request, body};

use crate::connection::in_flight::{ExchangeKind, ServerMessage, SlotId};
use crate::connection::state::{ConnectionState, StreamStop};
use crate::connection::{PoolConnection, ThreadWait, unexpected};
use crate::pending::{Pending, RequestOutcome};
use crate::pool::Pool;
use crate::verbs::allocation::Allocation;
use crate::verbs::wanted::not_wanted;
pub(crate) use prepared::PreparedOffer;

/// Options of an offer.
///
/// ```
/// # use junctura::{Code, OfferOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let if_wanted = OfferOptions { if_wanted: true, ..OfferOptions::default() };
/// let error = pool.offer_with([("name", "a")], b"", if_wanted.clone()).unwrap_err();
/// assert_eq!(error.code(), Code::NotWanted);
/// let follow = pool.follow("name=a")?;
/// pool.offer_with([("name", "a")], b"", if_wanted)?;
/// # drop(follow);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct OfferOptions<'a> {
    /// The schema that describes the object; `None`: the pool's default.
    pub schema: Option<&'a str>,
    /// How long the pool retains it; `None`: as its schema defines.
    pub retention: Option<Retention>,
    /// Offers the object only if a consumer wants it. Otherwise no payload is moved and the offer fails with
    /// `NotWanted`; later demands of the same key also fail with `NotWanted` until it is offered. See [`Pool::wanted`].
    pub if_wanted: bool,
    /// The state that is guaranteed when the offer returns; `None`: as its schema defines. [`Durability::Durable`]
    /// waits until a consumer that requires the object has archived it in a store and has acknowledged that
    /// ([`Requirement::archived`](crate::Requirement::archived); `junctura store archive --from` does so). The object is
    /// visible at once in any case. A member of a bundle is staged when its offer returns, and becomes durable with the
    /// bundle: see [`Bundle::seal`](crate::Bundle::seal).
    pub durability: Option<Durability>,
}

impl Pool {
    /// Offers a copy of `payload`. Blocks until the object is visible to all clients.
    ///
    /// If the payload is computed for each object, [`Pool::allocate`] saves the copy.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let version = pool.offer([("space", "demo"), ("name", "first")], b"bytes")?;
    /// assert_eq!(version.sequence, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - `SchemaMismatch`, `TypeMismatch` or `TooLarge` for attributes that the schema does not accept
    /// - `AlreadyExists` if the key is taken and the schema rejects duplicates: in the pool, for as long as it
    ///   remembers removed objects, and in the store behind it
    /// - `PoolFull` if no memory became available within the pool's offer timeout
    pub fn offer<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<Version> {
        self.offer_with(attributes, payload, OfferOptions::default())
    }

    /// As [`Pool::offer`], with options.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use junctura::{OfferOptions, Pool, Retention};
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let retention = Some(Retention::For(Duration::from_mins(10)));
    /// let options = OfferOptions { retention, ..OfferOptions::default() };
    /// pool.offer_with([("space", "demo"), ("name", "first")], b"gone in ten minutes", options)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Pool::offer`], and:
    ///
    /// - `NotFound` for a schema that the pool does not have
    /// - `InvalidArgument` for a retention that [`Retention::check`] rejects
    /// - `LimitExceeded` if [`Retention::ReleasedBy`] names more sets of consumers than the pool stores (256 per
    ///   client, 4,096 in total)
    /// - `NotWanted` with [`OfferOptions::if_wanted`] if no consumer wants the object
    /// - `Io` for a durable offer if no requirement matches the object, or if its consumers failed to archive it; the
    ///   object is visible
    /// - `Timeout` for a durable offer after the pool's offer timeout; the object is visible
    pub fn offer_with<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<Version> {
        let connection = self.connection()?;
        let mut record = Vec::new();
        let if_wanted = options.if_wanted;
        let terms = connection.terms(options)?;
        connection.record(terms, attributes, &mut record)?;
        if connection.goes_inline(payload.len()) {
            return connection.offer_one(terms, &record, OfferedPayload::Inline(payload));
        }
        if if_wanted && connection.begin_wanted(terms.schema(), &record)?.wait()? == 0 {
            return Err(not_wanted(&connection.key_text(terms.schema(), &record)));
        }
        let mut allocation = Allocation::new(&connection, payload.len(), connection.offer_timeout)?;
        allocation.write(0, payload)?;
        let ready = allocation.into_ready();
        connection.offer_one(terms, &record, ready.content())
    }

    /// Non-blocking version of [`Pool::offer_with`]. See [`Pending`].
    ///
    /// The payload is copied into the pool at once. If another request must be answered first, or if no memory is
    /// available, the copy is held in this process until then. For large payloads, [`Pool::begin_allocate`] avoids the
    /// copy.
    ///
    /// # Errors
    /// Errors that this client detects; the server's errors arrive with the answer.
    pub fn begin_offer<'a, V: IntoGiven<'a>>(
        &self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<Pending<Version>> {
        let connection = self.connection()?;
        let mut offer = PreparedOffer::new(&connection, attributes, options)?;
        offer.probes &= !connection.goes_inline(payload.len());
        offer.begin_copy(payload, |connection, _, sequence| connection.version(sequence))
    }

    /// Offers many objects, each as [`Pool::offer`] does, without waiting for each. Blocks until all are visible.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let steps = ["0", "6", "12"].map(|step| ([("space", "steps"), ("name", step)], b"field"));
    /// assert_eq!(pool.offer_many(steps)?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of the first failed offer. Objects before it are visible; later ones may be.
    pub fn offer_many<'a, V, A, P>(&self, objects: impl IntoIterator<Item = (A, P)>) -> Result<Vec<Version>>
    where
        V: IntoGiven<'a>,
        A: IntoIterator<Item = (&'a str, V)>,
        P: AsRef<[u8]>,
    {
        let mut pipeline = self.pipeline(1024)?.collect();
        for (attributes, payload) in objects {
            pipeline.offer(attributes, payload.as_ref())?;
        }
        pipeline.flush()?;
        Ok(pipeline.collected())
    }
}

/// Terms of an offer, besides attributes and payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfferTerms {
    schema: u16,
    releases: u32,
    flags: u16,
    /// The request that opened its bundle.
    bundle: Option<u64>,
}

impl OfferTerms {
    /// Returns the same terms for a member of a bundle.
    pub(crate) fn within(self, bundle: u64) -> Self {
        Self {
            bundle: Some(bundle),
            ..self
        }
    }
}

impl OfferTerms {
    pub(crate) fn schema(self) -> u16 {
        self.schema
    }

    /// Returns the terms for a piece of an array: its key is unique, and it is retained for as long as the array.
    pub(crate) fn of_piece(schema: u16) -> Self {
        Self {
            schema,
            releases: 0,
            flags: TOGETHER | ONCE,
            bundle: None,
        }
    }

    /// Returns the same terms for a member that replaces no earlier one.
    pub(crate) fn once(self) -> Self {
        Self {
            flags: self.flags | ONCE,
            ..self
        }
    }

    pub(crate) fn is_durable(self) -> bool {
        self.flags & DURABLE != 0
    }
}

/// The payload of an offer, ready to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OfferedPayload<'a> {
    Inline(&'a [u8]),
    Slot { slot: SlotId, length: u64, checksum: u32 },
}

impl OfferedPayload<'_> {
    pub(crate) fn slot(&self) -> Option<SlotId> {
        match self {
            OfferedPayload::Inline(_) => None,
            OfferedPayload::Slot { slot, .. } => Some(*slot),
        }
    }
}

impl PoolConnection {
    /// Converts the options to terms.
    ///
    /// # Errors
    /// Those of [`Retention::check`]; `NotFound` for a schema; the server's errors if it must first receive names of
    /// consumers.
    pub(crate) fn terms(self: &Arc<Self>, options: OfferOptions<'_>) -> Result<OfferTerms> {
        let (mut terms, unknown) = self.known_terms(options)?;
        if let Some(names) = unknown {
            terms.releases = self.begin_names(names)?.wait()?;
        }
        Ok(terms)
    }

    /// Returns the terms, and the names of consumers that the server must number first.
    pub(crate) fn known_terms(&self, options: OfferOptions<'_>) -> Result<(OfferTerms, Option<Consumers>)> {
        let schema = self.schema_number(options.schema)?;
        let mut unknown = None;
        let (releases, flags) = match options.retention.map(Retention::check).transpose()? {
            None => (0, DEFAULT_RETENTION),
            Some(Retention::UntilWithdrawn) => (0, 0),
            Some(Retention::Released(releases)) => (releases, 0),
            Some(Retention::ReleasedBy(names)) => {
                let number = self.lock()?.consumers.get(&names).copied();
                unknown = number.is_none().then_some(names);
                (number.unwrap_or(0), BY_CONSUMERS)
            }
            Some(Retention::For(time)) => (time.as_nanos().div_ceil(1_000_000) as u32, FOR_A_TIME),
        };
        let wanted = if options.if_wanted { IF_WANTED } else { 0 };
        let terms = OfferTerms {
            schema,
            releases,
            flags: flags | wanted | self.durability(schema, options.durability)?,
            bundle: None,
        };
        Ok((terms, unknown))
    }

    fn durability(&self, schema: u16, said: Option<Durability>) -> Result<u16> {
        match said.unwrap_or_else(|| self.schema(schema).default_durability()) {
            Durability::Memory => Ok(0),
            Durability::Durable => Ok(DURABLE),
            Durability::Replicated => {
                let cause = "this version keeps no copies on other servers; it has memory and durable";
                Err(Error::new(Code::Unsupported, "durability replicated", cause))
            }
        }
    }

    /// Sends the consumer names of a retention to the server, unless it already has them.
    #[cfg(feature = "async")]
    pub(crate) fn begin_unknown_names(self: &Arc<Self>, options: &OfferOptions<'_>) -> Result<Option<Pending<u32>>> {
        match &options.retention {
            Some(Retention::ReleasedBy(names)) if !self.lock()?.consumers.contains_key(names) => {
                self.begin_names(names.clone()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Sends names of consumers to the server; the answer is their number.
    fn begin_names(self: &Arc<Self>, names: Consumers) -> Result<Pending<u32>> {
        let request = Request::Consumers(body::ConsumerNames {
            names: names.iter().map(str::to_owned).collect(),
        });
        self.pend(
            ExchangeKind::Once,
            &request,
            StreamStop::Cancel,
            move |connection, _, said| match said {
                RequestOutcome::Letter(ServerMessage::Done(number)) => {
                    let number =
                        u32::try_from(number).map_err(|_| unexpected("a number of names that is too large"))?;
                    connection.lock()?.consumers.insert(names, number);
                    Ok(number)
                }
                _ => Err(unexpected("no number of names")),
            },
        )
    }

    /// Returns the number of the schema that an offer names, or of the default.
    pub(crate) fn schema_number(&self, name: Option<&str>) -> Result<u16> {
        match name {
            None => Ok(self.greeting.default_schema),
            Some(name) => self.greeting.schemas.find(name),
        }
    }

    /// Writes the record of an offer's attributes into `record`.
    pub(crate) fn record<'a, V: IntoGiven<'a>>(
        &self,
        terms: OfferTerms,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        record: &mut Vec<u8>,
    ) -> Result<()> {
        self.record_of(terms.schema, attributes, record)
    }

    /// As [`Self::record`], for an object of this schema.
    pub(crate) fn record_of<'a, V: IntoGiven<'a>>(
        &self,
        schema: u16,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        record: &mut Vec<u8>,
    ) -> Result<()> {
        let given = attributes.into_iter().map(|(name, value)| (name, value.into_given()));
        let written = self.schema(schema).record(given, record);
        let greeting = &self.greeting;
        written.map_err(|error| {
            greeting
                .schemas
                .with_open_schema(error, schema, greeting.default_schema)
        })
    }

    /// Returns whether a payload of this size is sent inside the message.
    pub(crate) fn goes_inline(&self, bytes: usize) -> bool {
        // Half of a message is reserved for the record.
        bytes as u64 <= self.greeting.inline_bytes_max.min(BODY_BYTES_MAX as u64 / 2) || bytes == 0
    }

    /// Offers one object and waits until it is visible, or archived.
    pub(crate) fn offer_one(&self, terms: OfferTerms, record: &[u8], content: OfferedPayload<'_>) -> Result<Version> {
        let (_, sequence) = self.offer_numbered(terms, record, content)?;
        Ok(self.version(sequence))
    }

    /// As [`Self::offer_one`], or until the object is staged; returns the number of the request and the sequence
    /// number.
    pub(crate) fn offer_numbered(
        &self,
        terms: OfferTerms,
        record: &[u8],
        content: OfferedPayload<'_>,
    ) -> Result<(u64, u64)> {
        self.refuse_behind(terms, record, content)?;
        let mut state = self.lock()?;
        let number = state.mail.open(ExchangeKind::Offers)?;
        if let Err(error) = self.append_offer(&mut state, number, terms, record, content) {
            state.mail.close(number);
            return Err(error);
        }
        let mut acks = VecDeque::new();
        let take = |state: &mut ConnectionState| state.mail.get(number)?.take_acks(&mut acks).then_some(());
        let (mut state, waited) = self.wait_keeping(state, ThreadWait::letters(&number), take);
        if let Err(error) = waited {
            state.abandon_now(number, StreamStop::Silently);
            return Err(error);
        }
        state.mail.close(number);
        let sequence = acks
            .pop_front()
            .unwrap_or_else(|| Err(unexpected("no acknowledgement")))?;
        Ok((number, sequence))
    }

    /// Looks up the key in the store behind the pool, if its schema rejects duplicates. Does nothing for a caller that
    /// must not block on a disk.
    ///
    /// # Errors
    /// `AlreadyExists`; those of reading the store. The memory of the payload is then freed.
    pub(crate) fn refuse_behind(&self, terms: OfferTerms, record: &[u8], content: OfferedPayload<'_>) -> Result<()> {
        let Some(depot) = self.depot_of_rejecting(terms.schema) else {
            return Ok(());
        };
        let looked = depot.refuse_second(self.schema(terms.schema), RecordRef::trusted(record));
        if looked.is_err()
            && let Some(slot) = content.slot()
        {
            let mut state = self.lock()?;
            state.free_slot(slot);
            state.wake_concerned();
            state.nudge();
            drop(self.wake_tasks(state));
        }
        looked
    }

    /// Appends an offer to the outbox.
    pub(crate) fn append_offer(
        &self,
        state: &mut ConnectionState,
        number: u64,
        terms: OfferTerms,
        record: &[u8],
        content: OfferedPayload<'_>,
    ) -> Result<()> {
        let mut head = OfferHead {
            schema: terms.schema.into(),
            flags: terms.flags.into(),
            releases: terms.releases.into(),
            ..OfferHead::default()
        };
        head.record_length = (record.len() as u32).into();
        let mut flags = terms.flags;
        let inline = match content {
            OfferedPayload::Inline(payload) => {
                flags |= INLINE;
                head.length = (payload.len() as u64).into();
                if self.greeting.checked {
                    head.checksum = crc32c::crc32c(payload).into();
                }
                payload
            }
            OfferedPayload::Slot { slot, length, checksum } => {
                head.length = length.into();
                head.segment = slot.segment.into();
                head.slot = slot.slot.into();
                head.checksum = checksum.into();
                &[]
            }
        };
        if self.greeting.checked {
            flags |= CHECKSUM;
        }
        head.flags = flags.into();
        let slot = content.slot();
        let request = match terms.bundle {
            None => Request::Offer { head, record, inline },
            Some(bundle) => Request::Stage {
                bundle,
                head,
                record,
                inline,
            },
        };
        if let Err(error) = state.append(number, &request) {
            // The slot remains with the client.
            if let Some(slot) = slot {
                state.free_slot(slot);
            }
            return Err(error);
        }
        if let Some(mailbox) = state.mail.get(number) {
            mailbox.sent(number, slot, terms.is_durable());
        }
        Ok(())
    }
}
