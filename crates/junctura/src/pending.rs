//! Outstanding requests: the one primitive of a client.
//!
//! ```text
//!  begin_… --> Pending --wait-------> answer            blocks
//!                 |------try_take---> None, …, answer   reads messages, without blocking
//!                 |------.await-----> answer            wakes the task (feature `async`)
//!                 '------drop-------> cancelled: nothing remains on either side
//! ```
//!
//! The request is sent at once, as far as the socket has space. A delivery that is never taken is given back as if it
//! had not been received: a group or requirement redelivers it. A request of several [steps] is one `Pending`, too.

mod memory;
mod steps;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "async")]
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_wire::Request;

use self::memory::MemoryRequest;
pub(crate) use self::steps::{AnswerMode, WatchedValue};
use self::steps::{BlockingWork, RequestSteps};
use crate::awaiting::{Awaited, WaitSource};
use crate::beside::{ThreadAnswer, beside};
#[cfg(feature = "async")]
use crate::connection::TaskPlace;
use crate::connection::in_flight::{ExchangeKind, RequestSlot, ServerMessage};
use crate::connection::state::{ConnectionState, StreamStop};
use crate::connection::stream::ServerStream;
use crate::connection::{PoolConnection, ThreadWait, unexpected};
use crate::verbs::allocation::Allocation;

/// The outcome of a request.
pub(crate) enum RequestOutcome {
    Letter(ServerMessage),
    /// An offer became visible or staged, or failed.
    Acknowledged(Result<u64>),
}

impl RequestOutcome {
    fn take(mailbox: &mut RequestSlot) -> Option<Self> {
        if let Some(letter) = mailbox.take() {
            return Some(Self::Letter(letter));
        }
        let mut acks = VecDeque::new();
        mailbox.take_acks(&mut acks);
        acks.pop_front().map(Self::Acknowledged)
    }
}

fn taken_already() -> Error {
    Error::new(Code::NotFound, "answer", "it was taken already")
}

type Finish<T> = Box<dyn FnOnce(&Arc<PoolConnection>, u64, RequestOutcome) -> Result<T> + Send>;

/// An outstanding request. Dropping it cancels the request without blocking.
///
/// There are three ways to wait for the answer:
/// ```
/// # use junctura::{Code, DemandOptions, Pool};
/// # use std::time::Duration;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut late = pool.begin_demand("name=late", DemandOptions::default())?;
/// assert!(late.try_take()?.is_none()); // not yet
/// assert!(late.wait_within(Duration::from_millis(1))?.is_none()); // not in time; the request is still outstanding
/// # pool.offer([("name", "late")], b"payload")?;
/// assert_eq!(&late.wait()?[..], b"payload"); // blocks
///
/// let at_once = DemandOptions { timeout: Some(Duration::ZERO), ..Default::default() };
/// let mut absent = pool.begin_demand("name=absent", at_once)?;
/// pool.wait(&[&absent], None)?; // beside others
/// assert_eq!(absent.try_take().unwrap_err().code(), Code::NotFound);
/// assert!(absent.try_take()?.is_none() && absent.wait().is_err()); // it was answered
/// # Ok(())
/// # }
/// ```
///
/// With the feature `async` it is also a [future](std::future::Future): see the module `aio`. In your own event loop,
/// [`Pool::descriptor`](crate::Pool::descriptor) becomes readable when a message has arrived; then poll each request:
/// ```
/// # use junctura::{BundleOptions, DemandOptions, FollowOptions, ListOptions, OfferOptions, Pending, Pool, RequireOptions, WantedOptions, WithdrawOptions};
/// use rustix::event::{PollFd, PollFlags, poll};
///
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// /// An event loop: waits for the pool's descriptor, and takes answers.
/// fn answer<T: Send + 'static>(pool: &Pool, mut pending: Pending<T>) -> junctura::Result<T> {
///     let descriptor = pool.descriptor()?;
///     loop {
///         if let Some(answer) = pending.try_take()? {
///             return Ok(answer);
///         }
///         poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None).expect("it is a descriptor");
///     }
/// }
/// let none: [(&str, &str); 0] = [];
/// let requirement = answer(&pool, pool.begin_require("name=a", RequireOptions::default())?)?;
/// assert_eq!(answer(&pool, pool.begin_wanted([("name", "a")], WantedOptions::default())?)?, 1);
/// let follow = answer(&pool, pool.begin_follow("", FollowOptions::default())?)?;
/// let bundle = answer(&pool, pool.begin_open_bundle("steps/6", none, BundleOptions::default())?)?;
/// let events = answer(&pool, pool.begin_subscribe("", &[])?)?;
/// let mut pages = answer(&pool, pool.begin_list("", ListOptions::default())?)?;
/// assert_eq!(answer(&pool, pool.begin_bundles("", None)?)?.len(), 1);
/// answer(&pool, pool.begin_offer([("name", "a")], b"payload", OfferOptions::default())?)?;
/// assert!(answer(&pool, pool.begin_stat()?)?.contains("clients"));
/// assert_eq!(answer(&pool, pool.begin_withdraw_all("name=b", WithdrawOptions::default())?)?, 0);
/// let missing = answer(&pool, pool.begin_withdraw("{space=default}{}{name=b}", WithdrawOptions::default())?);
/// assert!(missing.is_err() && answer(&pool, pool.begin_retract("nobody")?).is_err());
/// let joins = FollowOptions { join: Some("nobody".to_owned()), ..Default::default() };
/// assert!(answer(&pool, pool.begin_follow("", joins)?).is_err());
/// answer(&pool, pool.begin_flush()?)?;
/// answer(&pool, pool.begin_sync()?)?;
/// # drop((requirement, follow, bundle, events, pages));
/// answer(&pool, pool.begin_stop(None)?)?; // the server ends
/// # Ok(())
/// # }
/// ```
///
/// Some requests have several steps: the pool, then the store behind it. Each step begins when the answer to the
/// previous one is taken. A pool without a store answers a demand in one step.
#[must_use = "a dropped request is cancelled; one of several steps advances only while it is awaited"]
pub struct Pending<T> {
    pub(crate) connection: Arc<PoolConnection>,
    source: PendingSource<T>,
    /// The task that awaits it.
    #[cfg(feature = "async")]
    pub(crate) place: TaskPlace,
    /// A thread makes the answer, because that takes long.
    pub(crate) slow: Option<ThreadAnswer<SlowAnswer<T>>>,
}

/// An answer that a thread has made. It is undone unless it is taken.
pub(crate) struct SlowAnswer<T> {
    answer: Option<Result<Option<T>>>,
    undo: fn(T),
}

impl<T> SlowAnswer<T> {
    pub(crate) fn take(mut self) -> Result<T> {
        let answer = self.answer.take().transpose()?.flatten();
        answer.ok_or_else(taken_already)
    }
}

impl<T> Drop for SlowAnswer<T> {
    fn drop(&mut self) {
        if let Some(Ok(Some(answer))) = self.answer.take() {
            (self.undo)(answer);
        }
    }
}

/// The result of a poll by a task.
#[cfg(feature = "async")]
pub(crate) enum PolledValue<T> {
    Taken(T),
    /// The answer has arrived, and making the result takes long.
    Slow,
}

/// The source of an answer.
enum PendingSource<T> {
    Conversation(PendingRequest<T>),
    /// Memory: a slot that becomes free, or a segment.
    Memory(MemoryRequest, fn(Allocation) -> T),
    /// Work of this client.
    Work(BlockingWork<T>),
    /// The steps before the request.
    Steps(Box<dyn RequestSteps<T>>),
    Watch(Box<dyn WatchedValue<T>>),
    Known(Result<T>),
    /// The answer was taken.
    Taken,
}

struct PendingRequest<T> {
    number: u64,
    stop: StreamStop,
    /// A failure that also answers the request.
    forgives: Option<Code>,
    finish: Finish<T>,
    /// Undoes an answer that is no longer waited for.
    undo: fn(T),
}

/// The state of an answer.
enum ArrivedAnswer {
    Said(RequestOutcome),
    /// The answer has arrived, and making the result takes long.
    Slow,
}

impl<T: Send + 'static> Pending<T> {
    /// Blocks until the answer has arrived, and returns it. A request with its own timeout, such as a demand, is
    /// answered at that timeout. Slow work (disk reads, checksums, copies of arrays) runs in this thread.
    ///
    /// # Errors
    /// Those of the request; `NotFound` if the answer was taken already; `Disconnected` or `Closed` if the connection
    /// has ended.
    pub fn wait(mut self) -> Result<T> {
        let answer = self.wait_until(None)?;
        answer.ok_or_else(taken_already)
    }

    /// As [`Pending::wait`], for at most this time. `None`: the answer has not arrived in time, and may still arrive;
    /// or it was taken already. Slow work runs in a separate thread, which continues after the timeout.
    ///
    /// # Errors
    /// Those of the request, once; `Disconnected` or `Closed` if the connection has ended; `LimitExceeded` if the
    /// system provides no thread.
    pub fn wait_within(&mut self, timeout: Duration) -> Result<Option<T>> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// Returns the answer if it has arrived. Reads messages that have arrived, and never blocks: not on the server, the
    /// socket or a disk. `None`: not yet, or it was taken already. Slow work runs in a separate thread, which the first
    /// call that finds such work starts.
    ///
    /// # Errors
    /// As [`Pending::wait_within`].
    pub fn try_take(&mut self) -> Result<Option<T>> {
        let answer = self.wait_until(Some(Instant::now()))?;
        if answer.is_some() || self.is_taken() {
            return Ok(answer);
        }
        // Clears the readiness of the descriptor, also for a request without a conversation.
        let (state, armed) = self.connection.arm_for(self.number().unwrap_or_default())?;
        drop(state);
        armed?;
        // Also checks for results that arrived, or slots that became free, before the readiness was cleared.
        self.get(AnswerMode::Glance)
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<T>> {
        self.get(AnswerMode::Wait(deadline))
    }

    fn get(&mut self, mut ask: AnswerMode) -> Result<Option<T>> {
        loop {
            if self.slow.is_some() {
                return self.take_made(ask);
            }
            match &mut self.source {
                PendingSource::Taken => return Ok(None),
                PendingSource::Conversation(question) => {
                    let number = question.number;
                    match self.come(number, ask)? {
                        Some(ArrivedAnswer::Said(said)) => return self.accept(said).map(Some),
                        Some(ArrivedAnswer::Slow) => self.make_beside()?,
                        None => return Ok(None),
                    }
                }
                PendingSource::Memory(memory, _) => {
                    let got = match ask {
                        AnswerMode::Wait(deadline) => memory.wait(&self.connection, deadline),
                        AnswerMode::Take | AnswerMode::TakeQuickly | AnswerMode::Glance => {
                            memory.take(&self.connection)
                        }
                    };
                    return self.remember(got);
                }
                PendingSource::Steps(steps) => match steps.advance(ask) {
                    Ok(Some(mut next)) => self.source = next.take_source(),
                    Ok(None) => return Ok(None),
                    Err(error) => return Err(self.failed(error)),
                },
                PendingSource::Watch(watched) => match watched.get(ask) {
                    Ok(None) => return Ok(None),
                    Ok(answer) => {
                        self.source = PendingSource::Taken;
                        return Ok(answer);
                    }
                    Err(error) => return Err(self.failed(error)),
                },
                PendingSource::Work(_) if matches!(ask, AnswerMode::TakeQuickly) => return Ok(None),
                PendingSource::Work(_) if ask.is_bounded() => self.make_beside()?,
                PendingSource::Work(_) | PendingSource::Known(_) => return self.take_own().map(Some),
            }
            ask = ask.after_step();
        }
    }

    /// Has a thread make the answer. The thread wakes all waits when it is done.
    pub(crate) fn make_beside(&mut self) -> Result<()> {
        let slow = self.split_off();
        self.slow = Some(beside(move || slow.take_slowly(), drop)?);
        Ok(())
    }

    /// Takes the answer that a thread makes.
    fn take_made(&mut self, ask: AnswerMode) -> Result<Option<T>> {
        let Some(slow) = &mut self.slow else { return Ok(None) };
        let deadline = match ask {
            AnswerMode::Wait(deadline) => deadline,
            AnswerMode::Take | AnswerMode::TakeQuickly | AnswerMode::Glance => Some(Instant::now()),
        };
        let Some(made) = slow.wait_on(&self.connection, deadline)? else {
            return Ok(None);
        };
        self.slow = None;
        made.take().map(Some)
    }

    /// Returns the answer if it has been read; see [`crate::binding`].
    pub(crate) fn take(&mut self) -> Result<Option<T>> {
        self.get(AnswerMode::Take)
    }

    /// As [`Pending::take`], in a thread for a caller that may have dropped the request.
    pub(crate) fn take_slowly(mut self) -> SlowAnswer<T> {
        let undo = match &self.source {
            PendingSource::Conversation(question) => question.undo,
            PendingSource::Work(work) => work.undo,
            _ => drop,
        };
        let answer = Some(self.take());
        SlowAnswer { answer, undo }
    }
}

impl<T> Pending<T> {
    fn is_taken(&self) -> bool {
        self.slow.is_none() && matches!(self.source, PendingSource::Taken)
    }

    /// Moves the request to a thread; here it counts as taken.
    pub(crate) fn split_off(&mut self) -> Self {
        let source = self.take_source();
        Self::new(&self.connection, source)
    }

    /// Marks the request as failed, unless only the wait was interrupted.
    fn failed(&mut self, error: Error) -> Error {
        if error.code() != Code::Interrupted {
            self.source = PendingSource::Taken;
        }
        error
    }

    /// Takes an answer that does not depend on a conversation.
    fn take_own(&mut self) -> Result<T> {
        match self.take_source() {
            PendingSource::Work(work) => (work.run)(),
            PendingSource::Known(answer) => answer,
            _ => Err(taken_already()),
        }
    }

    fn take_source(&mut self) -> PendingSource<T> {
        std::mem::replace(&mut self.source, PendingSource::Taken)
    }

    fn come(&self, number: u64, ask: AnswerMode) -> Result<Option<ArrivedAnswer>> {
        let take = |state: &mut ConnectionState| {
            let mailbox = state.mail.get(number)?;
            if ask.is_bounded() && mailbox.peek().is_some_and(ServerMessage::is_slow) {
                return Some(ArrivedAnswer::Slow);
            }
            RequestOutcome::take(mailbox).map(ArrivedAnswer::Said)
        };
        let mut state = self.connection.lock()?;
        if let AnswerMode::Wait(deadline) = ask {
            let what = ThreadWait::letters_until(std::slice::from_ref(&number), deadline);
            return self.connection.wait(state, what, take);
        }
        let come = take(&mut state);
        if come.is_none() {
            state.stay_in_process()?;
            state.alive()?;
        }
        Ok(come)
    }

    /// Returns the conversation in which its next message arrives.
    fn number(&self) -> Option<u64> {
        match &self.source {
            PendingSource::Conversation(question) => Some(question.number),
            PendingSource::Memory(memory, _) => memory.lease_number(),
            PendingSource::Steps(steps) => steps.number(),
            PendingSource::Watch(watched) => Some(watched.number()),
            PendingSource::Work(_) | PendingSource::Known(_) | PendingSource::Taken => None,
        }
    }

    /// Returns memory, or the reason why there is none, once.
    fn remember(&mut self, taken: Result<Option<Allocation>>) -> Result<Option<T>> {
        match &taken {
            Ok(None) => return Ok(None),
            // The wait was interrupted; the request stays outstanding.
            Err(error) if error.code() == Code::Interrupted => return taken.map(|_| None),
            _ => {}
        }
        match std::mem::replace(&mut self.source, PendingSource::Taken) {
            PendingSource::Memory(_, made) => taken.map(|allocation| allocation.map(made)),
            _ => Ok(None),
        }
    }

    fn accept(&mut self, said: RequestOutcome) -> Result<T> {
        let PendingSource::Conversation(question) = std::mem::replace(&mut self.source, PendingSource::Taken) else {
            return Err(unexpected("a second answer"));
        };
        let number = question.number;
        // A conversation that continues keeps its mailbox.
        if !matches!(said, RequestOutcome::Letter(ServerMessage::Began(_))) {
            self.connection.finished(number);
        }
        let said = match said {
            RequestOutcome::Letter(ServerMessage::Failed(error)) if Some(error.code()) == question.forgives => {
                RequestOutcome::Letter(ServerMessage::Failed(error))
            }
            RequestOutcome::Letter(ServerMessage::Failed(error) | ServerMessage::Ended(error))
            | RequestOutcome::Acknowledged(Err(error)) => {
                return Err(error);
            }
            said => said,
        };
        (question.finish)(&self.connection, number, said)
    }
}

#[cfg(feature = "async")]
impl<T: Send + 'static> Pending<T> {
    /// As [`Pending::take`], unless making the answer takes long. `None`: not yet.
    pub(crate) fn take_quickly(&mut self) -> Option<Result<PolledValue<T>>> {
        if matches!(self.source, PendingSource::Taken) {
            return Some(Err(taken_already()));
        }
        if self.is_slow() {
            return Some(Ok(PolledValue::Slow));
        }
        self.take().transpose().map(|taken| taken.map(PolledValue::Taken))
    }

    /// Polls the steps before the last one.
    pub(crate) fn poll_steps(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        while let PendingSource::Steps(steps) = &mut self.source {
            match ready!(steps.poll(cx)) {
                Ok(mut next) => self.source = next.take_source(),
                Err(error) => {
                    self.source = PendingSource::Taken;
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T> Pending<T> {
    /// Sets the function that undoes an answer that a thread has made and that is no longer waited for.
    pub(crate) fn undone_by(mut self, undo: fn(T)) -> Self {
        if let PendingSource::Conversation(question) = &mut self.source {
            question.undo = undo;
        }
        self
    }

    fn new(connection: &Arc<PoolConnection>, source: PendingSource<T>) -> Self {
        Self {
            connection: Arc::clone(connection),
            source,
            #[cfg(feature = "async")]
            place: TaskPlace::default(),
            slow: None,
        }
    }

    /// Returns whether [`Pending::take`] takes long, because a disk is read or a large payload's checksum is verified:
    /// not for the thread of an event loop.
    #[cfg(feature = "async")]
    fn is_slow(&self) -> bool {
        let number = match &self.source {
            PendingSource::Conversation(question) => question.number,
            PendingSource::Work(_) => return true,
            _ => return false,
        };
        let Ok(mut state) = self.connection.lock() else {
            return false;
        };
        let mailbox = state.mail.get(number);
        mailbox
            .and_then(|mailbox| mailbox.peek())
            .is_some_and(ServerMessage::is_slow)
    }
}

/// No part is ever pinned.
impl<T> Unpin for Pending<T> {}

impl<T> Awaited for Pending<T> {
    fn awaiting(&self) -> WaitSource {
        if let Some(slow) = &self.slow {
            return slow.awaiting();
        }
        match &self.source {
            PendingSource::Conversation(question) => WaitSource::letters(&self.connection, question.number),
            PendingSource::Steps(steps) => steps.awaiting(),
            PendingSource::Watch(watched) => watched.awaiting(),
            PendingSource::Memory(memory, _) => memory.awaiting(&self.connection),
            PendingSource::Work(_) | PendingSource::Known(_) | PendingSource::Taken => WaitSource::ready(),
        }
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        // Otherwise the end of the request would wake a task that no longer waits for it.
        #[cfg(feature = "async")]
        self.place.leave();
        match &self.source {
            PendingSource::Conversation(question) => self.connection.give_up(question.number, question.stop),
            PendingSource::Memory(memory, _) => memory.give_up(&self.connection),
            _ => {}
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({:?})", self.number())
    }
}

impl PoolConnection {
    /// Sends and reads without waiting; see [`crate::binding::look`].
    pub(crate) fn look_for_all(&self) -> Result<bool> {
        let mut state = self.lock()?;
        state.send()?;
        let (state, looked) = self.glance(state);
        looked?;
        let (mut state, armed) = self.arm(state, None);
        armed?;
        state.alive()?;
        // Reading may have freed space, or produced messages to send.
        Ok(!state.send()? && state.waits_for_socket())
    }

    /// Sends a request without waiting for the answer.
    pub(crate) fn pend<T>(
        self: &Arc<Self>,
        talk: ExchangeKind,
        request: &Request<'_>,
        stop: StreamStop,
        finish: impl FnOnce(&Arc<PoolConnection>, u64, RequestOutcome) -> Result<T> + Send + 'static,
    ) -> Result<Pending<T>> {
        let number = self.post(talk, request)?;
        Ok(self.pending(number, stop, finish))
    }

    /// Returns the answer to a request that was sent already.
    pub(crate) fn pending<T>(
        self: &Arc<Self>,
        number: u64,
        stop: StreamStop,
        finish: impl FnOnce(&Arc<PoolConnection>, u64, RequestOutcome) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let finish = Box::new(finish);
        let question = PendingRequest {
            number,
            stop,
            forgives: None,
            finish,
            undo: drop,
        };
        Pending::new(self, PendingSource::Conversation(question))
    }

    /// Allocates memory for a payload; `staged`: for a member of a bundle.
    pub(crate) fn begin_allocate(self: &Arc<Self>, bytes: usize, staged: bool) -> Pending<Allocation> {
        Pending::new(
            self,
            PendingSource::Memory(MemoryRequest::new(bytes, staged), |allocation| allocation),
        )
    }

    /// Begins a conversation in which the server continues to send.
    pub(crate) fn begin_stream<T>(
        self: &Arc<Self>,
        request: &Request<'_>,
        made: impl FnOnce(&Arc<PoolConnection>, ServerStream, u64) -> T + Send + 'static,
    ) -> Result<Pending<T>> {
        self.pend(
            ExchangeKind::Stream,
            request,
            StreamStop::End,
            |connection, number, said| match said {
                RequestOutcome::Letter(ServerMessage::Began(sequence)) => {
                    Ok(made(connection, ServerStream::began(connection, number), sequence))
                }
                _ => Err(unexpected("no beginning")),
            },
        )
    }

    pub(crate) fn begin_stat(self: &Arc<Self>) -> Result<Pending<String>> {
        self.pend(
            ExchangeKind::Once,
            &Request::Stat,
            StreamStop::Cancel,
            |_, _, said| match said {
                RequestOutcome::Letter(ServerMessage::Stats(text)) => Ok(text),
                _ => Err(unexpected("no counters")),
            },
        )
    }

    pub(crate) fn begin_count(self: &Arc<Self>, request: &Request<'_>) -> Result<Pending<u64>> {
        self.pend(
            ExchangeKind::Once,
            request,
            StreamStop::Cancel,
            |_, _, said| match said {
                RequestOutcome::Letter(ServerMessage::Done(count)) => Ok(count),
                _ => Err(unexpected("no count")),
            },
        )
    }

    /// Begins a request whose answer is an acknowledgement; `append` appends the request under its number.
    pub(crate) fn begin_acknowledged<T>(
        self: &Arc<Self>,
        append: impl FnOnce(&mut ConnectionState, u64) -> Result<()>,
        finish: impl FnOnce(&Arc<PoolConnection>, u64, u64) -> T + Send + 'static,
    ) -> Result<Pending<T>> {
        let mut state = self.lock()?;
        state.stay_in_process()?;
        let number = state.mail.open(ExchangeKind::Offers)?;
        if let Err(error) = append(&mut state, number) {
            state.mail.close(number);
            return Err(error);
        }
        // The rest is sent by the next poll.
        let sent = state.send();
        drop(state);
        let pending = self.pending(number, StreamStop::Silently, |connection, number, said| match said {
            RequestOutcome::Acknowledged(Ok(sequence)) => Ok(finish(connection, number, sequence)),
            _ => Err(unexpected("no acknowledgement")),
        });
        sent.map(|_| pending)
    }
}

/// Ends a conversation without waiting. It may have ended by itself meanwhile, as a follow with `until_live` does; the
/// server then has no conversation of this number.
pub(crate) fn ended(connection: &Arc<PoolConnection>, stop: u64) -> Pending<()> {
    let mut pending = connection.pending(stop, StreamStop::Silently, |_, _, _| Ok(()));
    if let PendingSource::Conversation(question) = &mut pending.source {
        question.forgives = Some(Code::NotFound);
    }
    pending
}
