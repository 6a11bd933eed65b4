//! Pipelined offers: many offers in flight on one connection.
//!
//! A pipeline sends offers without waiting, up to a window of unacknowledged offers. It batches offers for some
//! microseconds, so that one system call sends many: before a longer pause, a producer calls [`Pipeline::push`] or
//! [`Pipeline::flush`]. A durable offer is acknowledged when its object is archived. Until then it occupies its place
//! in the window and delays the acknowledgements of later offers.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use junctura_model::version::Version;
use junctura_model::{Code, IntoGiven, Result};

#[cfg(feature = "async")]
use crate::awaiting::WaitSource;
use crate::connection::in_flight::ExchangeKind;
use crate::connection::state::StreamStop;
use crate::connection::{Guard, PoolConnection, ThreadWait};
use crate::pool::Pool;
use crate::verbs::allocation::Allocation;
use crate::verbs::bundle::Staged;
#[cfg(feature = "async")]
use crate::verbs::offer::PreparedOffer;
use crate::verbs::offer::{OfferOptions, OfferTerms, OfferedPayload};

/// The acknowledgement of an offer.
///
/// ```
/// # use junctura::Pool;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # use std::sync::mpsc;
/// let (sender, acks) = mpsc::channel();
/// let mut pipeline = pool.pipeline(16)?.on_ack(move |ack| drop(sender.send(ack)));
/// pipeline.offer([("name", "a")], b"")?;
/// pipeline.flush()?;
/// let ack = acks.recv().expect("flush waits for all acknowledgements");
/// assert_eq!((ack.number, ack.outcome?.sequence), (0, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Ack {
    /// The number of the offer in its pipeline, counted from 0.
    pub number: u64,
    /// The version of the visible object, or the error. For a durable offer the acknowledgement arrives when the object
    /// is archived or could not be archived. For a member of a bundle, sequence number 0: it is staged.
    pub outcome: Result<Version>,
}

/// Receives acknowledgements.
type OnAck = Box<dyn FnMut(Ack) + Send>;

/// The handling of acknowledgements.
enum AckMode {
    /// Stores only the first failure, for the next call that can return it.
    FirstFailure,
    Call(OnAck),
    /// Stores versions until they are taken.
    Collect(Vec<Version>),
}

/// A pipeline of offers. Dropping it sends the batched offers without waiting.
///
/// ```
/// # use junctura::{Code, OfferOptions, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "taken")], b"")?;
/// let mut pipeline = pool.pipeline(64)?.on_ack(|ack| match ack.outcome {
///     Ok(version) => println!("{} is visible as {version}", ack.number),
///     Err(error) => assert_eq!((ack.number, error.code()), (1, Code::AlreadyExists)),
/// });
/// pipeline.offer([("name", "a")], b"copied")?;
/// pipeline.offer_with([("name", "taken")], b"copied", OfferOptions::default())?;
/// for name in ["b", "c"] {
///     let mut field = pipeline.allocate(100_000)?;
///     field.fill(7);
///     pipeline.offer_allocation(field, [("name", name)])?;
/// }
/// let field = pipeline.allocate(10)?;
/// pipeline.offer_allocation_with(field, [("name", "d")], OfferOptions::default())?;
/// pipeline.push()?; // sent, and not awaited
/// pipeline.poll()?; // reports acknowledgements that have arrived
/// pipeline.wait_until(1)?;
/// assert!(pipeline.outstanding() <= 1);
/// pipeline.flush()?;
///
/// // Into a bundle: members are known by the numbers of their offers.
/// let bundle = pool.bundle()?;
/// let mut members = bundle.pipeline(64)?;
/// let number = members.offer([("name", "e")], b"")?;
/// members.flush()?;
/// let staged = members.staged(number).expect("it was offered");
/// assert!(bundle.seal()?.version(staged).is_some());
/// # Ok(())
/// # }
/// ```
pub struct Pipeline {
    connection: Arc<PoolConnection>,
    /// The number of its conversation.
    number: u64,
    window: usize,
    outstanding: usize,
    sent: u64,
    acknowledged: u64,
    acks: AckMode,
    failure: Option<junctura_model::Error>,
    record: Vec<u8>,
    batch: VecDeque<Result<u64>>,
    /// The bundle that it offers into, and the requests of all its offers.
    bundle: Option<u64>,
    staged: Vec<u64>,
}

impl Pool {
    /// Creates a pipeline with at most `window` (at least 1) unacknowledged offers.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let mut pipeline = pool.pipeline(64)?;
    /// for name in ["a", "b", "c"] {
    ///     pipeline.offer([("space", "demo"), ("name", name)], b"bytes")?;
    /// }
    /// pipeline.flush()?; // all are visible
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `LimitExceeded` if too many requests of this connection are outstanding.
    pub fn pipeline(&self, window: usize) -> Result<Pipeline> {
        Pipeline::begin(&self.connection()?, window, None)
    }
}

impl Pipeline {
    pub(crate) fn begin(connection: &Arc<PoolConnection>, window: usize, bundle: Option<u64>) -> Result<Self> {
        let number = connection.lock()?.mail.open(ExchangeKind::Offers)?;
        Ok(Self {
            connection: Arc::clone(connection),
            number,
            window: window.max(1),
            outstanding: 0,
            sent: 0,
            acknowledged: 0,
            acks: AckMode::FirstFailure,
            failure: None,
            record: Vec::new(),
            batch: VecDeque::new(),
            bundle,
            staged: Vec::new(),
        })
    }

    /// Returns the staged member of the offer with this number, of a pipeline into a bundle: [`crate::Completed`] has
    /// its version.
    #[must_use]
    pub fn staged(&self, number: u64) -> Option<Staged> {
        self.staged.get(usize::try_from(number).ok()?).copied().map(Staged)
    }

    pub(crate) fn all_staged(self) -> Vec<Staged> {
        self.staged.iter().copied().map(Staged).collect()
    }

    /// Passes every acknowledgement to `call`, in the order of the offers, on the thread that uses the pipeline.
    /// Failures are also passed to `call`, and not returned by later calls.
    #[must_use]
    pub fn on_ack(mut self, call: impl FnMut(Ack) + Send + 'static) -> Self {
        self.acks = AckMode::Call(Box::new(call));
        self
    }

    /// Stores all versions.
    pub(crate) fn collect(mut self) -> Self {
        self.acks = AckMode::Collect(Vec::new());
        self
    }

    pub(crate) fn collected(mut self) -> Vec<Version> {
        match &mut self.acks {
            AckMode::Collect(versions) => std::mem::take(versions),
            _ => Vec::new(),
        }
    }

    /// Offers a copy of `payload`; returns its number among the offers of this pipeline. Blocks only while the window
    /// is full.
    ///
    /// # Errors
    /// Those of [`Pool::offer`] that this client detects, or the first failure of an earlier offer: this offer was then
    /// not sent.
    pub fn offer<'a, V: IntoGiven<'a>>(
        &mut self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
    ) -> Result<u64> {
        self.offer_with(attributes, payload, OfferOptions::default())
    }

    /// As [`Pipeline::offer`], with options.
    ///
    /// # Errors
    /// Those of [`Pipeline::offer`]; `NotFound` for a schema that the pool does not have; `InvalidArgument` for an
    /// invalid retention. Errors of durable offers arrive with the acknowledgement: see [`Pool::offer_with`].
    pub fn offer_with<'a, V: IntoGiven<'a>>(
        &mut self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<u64> {
        if !self.connection.goes_inline(payload.len()) {
            let mut allocation = self.allocate(payload.len())?;
            allocation.write(0, payload)?;
            return self.offer_allocation_with(allocation, attributes, options);
        }
        let terms = self.prepare(options, attributes)?;
        self.send(terms, OfferedPayload::Inline(payload))
    }

    /// Allocates memory for a payload, as [`Pool::allocate`] does.
    ///
    /// # Errors
    /// Those of [`Pool::allocate`]; into a bundle, those of [`Bundle::allocate`](crate::Bundle::allocate).
    pub fn allocate(&self, bytes: usize) -> Result<Allocation> {
        match self.bundle {
            None => Allocation::new(&self.connection, bytes, self.connection.offer_timeout),
            Some(_) => Allocation::for_bundle(&self.connection, bytes),
        }
    }

    /// Offers a payload that was filled in place, as [`Pipeline::offer`]. The allocation may be from any handle of this
    /// pool.
    ///
    /// # Errors
    /// Those of [`Pipeline::offer`]; `InvalidArgument` for an allocation of another pool.
    pub fn offer_allocation<'a, V: IntoGiven<'a>>(
        &mut self,
        allocation: Allocation,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<u64> {
        self.offer_allocation_with(allocation, attributes, OfferOptions::default())
    }

    /// As [`Pipeline::offer_allocation`], with options.
    ///
    /// # Errors
    /// Those of [`Pipeline::offer_with`] and of [`Pipeline::offer_allocation`].
    pub fn offer_allocation_with<'a, V: IntoGiven<'a>>(
        &mut self,
        allocation: Allocation,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        options: OfferOptions<'_>,
    ) -> Result<u64> {
        allocation.must_be_of(&self.connection)?;
        let terms = self.prepare(options, attributes)?;
        let ready = allocation.into_ready();
        self.send(terms, ready.content())
    }

    /// Returns the number of unacknowledged offers, as far as acknowledgements have been read.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Sends batched offers, without waiting for acknowledgements.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` if the connection has ended.
    pub fn push(&mut self) -> Result<()> {
        self.connection.flush()
    }

    /// Reads acknowledgements that have arrived. Does not block.
    ///
    /// # Errors
    /// The first unreported failure of an offer.
    pub fn poll(&mut self) -> Result<()> {
        self.note_acks();
        let (mut state, looked) = self.connection.glance(self.connection.lock()?);
        if let Some(mailbox) = state.mail.get(self.number) {
            mailbox.take_acks(&mut self.batch);
        }
        drop(state);
        self.note_acks();
        looked?;
        self.check()
    }

    /// Sends batched offers and blocks until at most `most` offers are unacknowledged.
    ///
    /// # Errors
    /// The first unreported failure of an offer.
    pub fn wait_until(&mut self, most: usize) -> Result<()> {
        self.note_acks();
        while self.outstanding > most {
            let state = self.connection.lock()?;
            let (state, waited) = await_acks(&self.connection, state, self.number, &mut self.batch);
            drop(state);
            self.note_acks();
            waited?;
        }
        self.check()
    }

    /// Sends batched offers and blocks until every offer is acknowledged.
    ///
    /// # Errors
    /// The first unreported failure of an offer; the other offers are carried out all the same.
    pub fn flush(&mut self) -> Result<()> {
        self.wait_until(0)
    }

    /// Waits for acknowledgements.
    #[cfg(feature = "async")]
    pub(crate) fn awaiting(&self) -> WaitSource {
        WaitSource::letters(&self.connection, self.number)
    }

    #[cfg(feature = "async")]
    pub(crate) fn connection(&self) -> &Arc<PoolConnection> {
        &self.connection
    }

    #[cfg(feature = "async")]
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    #[cfg(feature = "async")]
    pub(crate) fn is_of_bundle(&self) -> bool {
        self.bundle.is_some()
    }

    /// Handles the acknowledgements that have been read, without reading more.
    #[cfg(feature = "async")]
    pub(crate) fn take_acks(&mut self) -> Result<()> {
        self.note_acks();
        let mut state = self.connection.lock()?;
        let mailbox = state.mail.get(self.number);
        if !mailbox.is_some_and(|mailbox| mailbox.take_acks(&mut self.batch)) && self.outstanding > 0 {
            state.stay_in_process()?;
            state.alive()?;
        }
        drop(state);
        self.note_acks();
        Ok(())
    }

    /// Sends an offer whose record is complete; waits neither for the window nor for the socket.
    #[cfg(feature = "async")]
    pub(crate) fn put(&mut self, offer: &PreparedOffer, content: OfferedPayload<'_>) -> Result<u64> {
        let mut terms = offer.terms();
        if let Some(bundle) = self.bundle {
            terms = terms.within(bundle);
        }
        let mut state = self.connection.lock()?;
        let request = state.mail.next(self.number);
        self.connection
            .append_offer(&mut state, request, terms, offer.record(), content)?;
        if self.bundle.is_some() {
            self.staged.push(request);
        }
        self.outstanding += 1;
        self.sent += 1;
        PoolConnection::send_when_due(state)?;
        Ok(self.sent - 1)
    }

    fn prepare<'a, V: IntoGiven<'a>>(
        &mut self,
        options: OfferOptions<'_>,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<OfferTerms> {
        let mut terms = self.connection.terms(options)?;
        if let Some(bundle) = self.bundle {
            terms = terms.within(bundle);
        }
        self.connection.record(terms, attributes, &mut self.record)?;
        if self.outstanding >= self.window {
            self.wait_until(self.window - 1)?;
        }
        Ok(terms)
    }

    fn send(&mut self, terms: OfferTerms, content: OfferedPayload<'_>) -> Result<u64> {
        self.connection.refuse_behind(terms, &self.record, content)?;
        let mut state = self.connection.lock()?;
        let request = state.mail.next(self.number);
        self.connection
            .append_offer(&mut state, request, terms, &self.record, content)?;
        if self.bundle.is_some() {
            self.staged.push(request);
        }
        self.outstanding += 1;
        self.sent += 1;
        self.connection.push_when_due(state)?;
        Ok(self.sent - 1)
    }

    /// # Errors
    /// The first unreported failure of an offer.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// If the callback panics, the remaining acknowledgements are left to the next call.
    fn note_acks(&mut self) {
        let incarnation = self.connection.greeting.incarnation;
        while let Some(ack) = self.batch.pop_front() {
            let outcome = ack.map(|sequence| Version { incarnation, sequence });
            let number = self.acknowledged;
            self.acknowledged += 1;
            self.outstanding -= 1;
            match (&mut self.acks, outcome) {
                (AckMode::Call(call), outcome) => call(Ack { number, outcome }),
                (_, Err(error)) if error.code() == Code::NotWanted => {}
                (_, Err(error)) => _ = self.failure.get_or_insert(error),
                (AckMode::Collect(versions), Ok(version)) => versions.push(version),
                (AckMode::FirstFailure, Ok(_)) => {}
            }
        }
    }
}

fn await_acks<'a>(
    connection: &'a PoolConnection,
    state: Guard<'a>,
    number: u64,
    batch: &mut VecDeque<Result<u64>>,
) -> (Guard<'a>, Result<()>) {
    let (state, waited) = connection.wait_keeping(state, ThreadWait::letters(&number), |state| {
        state.mail.get(number)?.take_acks(batch).then_some(())
    });
    (state, waited.map(|_| ()))
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pipeline({} sent, {} outstanding)", self.sent, self.outstanding)
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if let Ok(mut state) = self.connection.lock() {
            state.abandon_now(self.number, StreamStop::Silently);
        }
    }
}
