//! Offers that are not awaited one by one.
//!
//! A pipeline sends offers and goes on, up to a window of offers that are not acknowledged. Offers gather for some
//! microseconds, so that many go with one system call: before a producer turns to something else for longer, it calls
//! [`Pipeline::push`] or [`Pipeline::flush`]. A durable offer is acknowledged when its object is archived; until then it has its
//! place in the window, and keeps back the acknowledgements of those behind it.

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

/// What became of an offer.
#[derive(Clone, Debug)]
pub struct Ack {
    /// Which offer of its pipeline it was, counted from 0.
    pub number: u64,
    /// The version under which it is visible, or why it is not; of a durable offer it is said when the object is archived, or why
    /// it is not. For a member of a bundle, sequence number 0: it is staged.
    pub outcome: Result<Version>,
}

/// Takes acknowledgements as they come.
type OnAck = Box<dyn FnMut(Ack) + Send>;

/// What is done with acknowledgements.
enum AckMode {
    /// Only the first failure is kept, for the next call that can return it.
    FirstFailure,
    Call(OnAck),
    /// Versions are kept until they are taken.
    Collect(Vec<Version>),
}

/// Offers on their way. Dropping it sends what has gathered, without waiting.
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
/// pipeline.poll()?; // what was acknowledged by now is told
/// pipeline.wait_until(1)?;
/// assert!(pipeline.outstanding() <= 1);
/// pipeline.flush()?;
///
/// // Into a bundle: what `Bundle::offer` would have returned is known by number.
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
    /// The conversation.
    number: u64,
    window: usize,
    outstanding: usize,
    sent: u64,
    acknowledged: u64,
    acks: AckMode,
    failure: Option<junctura_model::Error>,
    record: Vec<u8>,
    batch: VecDeque<Result<u64>>,
    /// The bundle that it offers into, and the requests of all offers then.
    bundle: Option<u64>,
    staged: Vec<u64>,
}

impl Pool {
    /// Offers that are not awaited one by one: up to `window` (at least 1) may be unacknowledged.
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
    /// `LimitExceeded` when too many requests of this connection are unanswered.
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

    /// The offer of this number, of a pipeline into a bundle: what [`crate::Completed`] knows the version of.
    #[must_use]
    pub fn staged(&self, number: u64) -> Option<Staged> {
        self.staged.get(usize::try_from(number).ok()?).copied().map(Staged)
    }

    pub(crate) fn all_staged(self) -> Vec<Staged> {
        self.staged.iter().copied().map(Staged).collect()
    }

    /// Hands every acknowledgement to `call`, in the order of the offers, on the thread that uses the pipeline. Failures go
    /// there too, and not to later calls.
    #[must_use]
    pub fn on_ack(mut self, call: impl FnMut(Ack) + Send + 'static) -> Self {
        self.acks = AckMode::Call(Box::new(call));
        self
    }

    /// Keeps all versions.
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

    /// Offers a copy of `payload`; returns its number among the offers of this pipeline. Waits only when the window is full.
    ///
    /// # Errors
    /// Those of [`Pool::offer`] that are found without the server, or the first failure of an earlier offer: this one was
    /// not sent then.
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
    /// Those of [`Pipeline::offer`]; `NotFound` for a schema that the pool does not have, `InvalidArgument` for a retention that cannot be.
    /// What a durable offer may fail with comes with its acknowledgement: see [`Pool::offer_with`].
    pub fn offer_with<'a, V: IntoGiven<'a>>(
        &mut self,
        attributes: impl IntoIterator<Item = (&'a str, V)>,
        payload: &[u8],
        options: OfferOptions<'_>,
    ) -> Result<u64> {
        if !self.connection.goes_inline(payload.len()) {
            let mut allocation = self.allocate(payload.len())?;
            allocation.copy_from_slice(payload);
            return self.offer_allocation_with(allocation, attributes, options);
        }
        let terms = self.prepare(options, attributes)?;
        self.send(terms, OfferedPayload::Inline(payload))
    }

    /// Memory for a payload, as [`Pool::allocate`].
    ///
    /// # Errors
    /// Those of [`Pool::allocate`]; into a bundle, those of [`Bundle::allocate`](crate::Bundle::allocate).
    pub fn allocate(&self, bytes: usize) -> Result<Allocation> {
        match self.bundle {
            None => Allocation::new(&self.connection, bytes, self.connection.offer_timeout),
            Some(_) => Allocation::for_bundle(&self.connection, bytes),
        }
    }

    /// Offers what was filled in place, as [`Pipeline::offer`]. The allocation may come from any handle of this pool.
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

    /// Offers that are not acknowledged, as far as this pipeline has heard.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Sends what has gathered, without waiting for acknowledgements.
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn push(&mut self) -> Result<()> {
        self.connection.flush()
    }

    /// Takes the acknowledgements that have come, without waiting.
    ///
    /// # Errors
    /// The first failure that nobody was told of.
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

    /// Sends what has gathered and waits until at most `most` offers are unacknowledged.
    ///
    /// # Errors
    /// The first failure that nobody was told of.
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

    /// Sends what has gathered and waits until every offer is acknowledged.
    ///
    /// # Errors
    /// The first failure that nobody was told of; the others were carried out all the same.
    pub fn flush(&mut self) -> Result<()> {
        self.wait_until(0)
    }

    /// What is awaited for it: acknowledgements.
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

    /// Takes the acknowledgements that have been read; reads nothing itself.
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

    /// Sends an offer whose record was read already, and waits neither for room in the window nor in the socket.
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
    /// The first failure that nobody was told of.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Where the function that is called for one panics, the others stay for the next call.
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
