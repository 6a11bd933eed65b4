//! A request whose answer may not have come: the one primitive of a client.
//!
//! ```text
//!  begin_… --> Pending --wait-------> answer            blocks
//!                 |------try_take---> None, …, answer   reads what has come, without blocking
//!                 |------take-------> None, …, answer   what `Pool::look` has read for all requests of a pool
//!                 |------.await-----> answer            wakes the task (feature `async`)
//!                 '------drop-------> given up: nothing of it stays on either side
//! ```
//! The request is sent at once, as far as there is room for it. No thread is behind it. What was delivered and never taken is
//! given back as if it had not been received: a group or requirement is owed it again.

mod memory;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result, Retention};
use junctura_wire::{Request, body};

use self::memory::MemoryRequest;
#[cfg(feature = "async")]
use crate::aio::Beside;
use crate::allocation::Allocation;
use crate::awaiting::{Awaited, Awaiting};
#[cfg(feature = "async")]
use crate::connection::TaskPlace;
use crate::connection::{Connection, Wait, unexpected};
use crate::mail::{Letter, Mailbox, Talk};
use crate::pool::Pool;
use crate::state::{State, Stop};
use crate::stream::Stream;
use crate::withdraw::WithdrawOptions;

/// What was said to a question.
pub(crate) enum Said {
    Letter(Letter),
    /// An offer became visible, or staged, or did not.
    Acknowledged(Result<u64>),
}

impl Said {
    fn take(mailbox: &mut Mailbox) -> Option<Self> {
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

type Finish<T> = Box<dyn FnOnce(&Arc<Connection>, u64, Said) -> Result<T> + Send>;

/// A request whose answer may not have come. Dropping it gives the request up, without waiting.
///
/// It is waited for in one of three ways:
/// ```
/// # use junctura::{Code, Pool};
/// # use std::time::Duration;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut late = pool.begin_demand("name=late", None)?;
/// assert!(late.try_take()?.is_none()); // not yet
/// assert!(late.wait_within(Duration::from_millis(1))?.is_none()); // not in time; the request stands
/// # pool.offer([("name", "late")], b"payload")?;
/// assert_eq!(&late.wait()?[..], b"payload"); // blocks
///
/// let mut absent = pool.begin_demand("name=absent", Some(Duration::ZERO))?;
/// pool.wait(&[&absent], None)?; // beside others
/// assert_eq!(absent.try_take().unwrap_err().code(), Code::NotFound);
/// assert!(absent.try_take()?.is_none() && absent.wait().is_err()); // it was answered
/// # Ok(())
/// # }
/// ```
///
/// With the feature `async` it is a [future](std::future::Future), too: the task is woken when the answer has been read. Something
/// has to read for tasks: within tokio (feature `tokio`) a driver is made at the first wait; elsewhere it is an `aio::Driver`,
/// or a loop of your own that looks when [`Pool::descriptor`] is readable. A future that is dropped gives the request up.
///
/// In an event loop of your own:
/// ```
/// # use junctura::{Allocation, Awaited, BundleOptions, FollowOptions, ListOptions, OfferOptions, Pending, Pool, RequireOptions, WithdrawOptions};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// /// A loop of one's own: it looks when the pool's descriptor is readable, and takes what has come.
/// fn answer<T>(pool: &Pool, mut pending: Pending<T>) -> junctura::Result<T> {
///     loop {
///         pool.look()?;
///         assert!(!pending.is_slow()); // else it is no work for a loop's thread
///         if !pool.ready(&[pending.awaiting()])?.is_empty() && let Some(answer) = pending.take()? {
///             return Ok(answer);
///         }
///     }
/// }
/// let none: [(&str, &str); 0] = [];
/// let requirement = answer(&pool, pool.begin_require(&RequireOptions::default(), "name=a")?)?;
/// assert_eq!(answer(&pool, pool.begin_wanted(None, [("name", "a")], false)?)?, 1);
/// let follow = answer(&pool, pool.begin_follow(&FollowOptions::default(), "")?)?;
/// let bundle = answer(&pool, pool.begin_bundle(None, &BundleOptions::default(), none)?)?;
/// let events = answer(&pool, pool.begin_subscribe("", &[])?)?;
/// let mut pages = answer(&pool, pool.begin_list(&ListOptions::default(), "")?)?;
/// assert!(answer(&pool, pool.begin_stat()?)?.contains("clients"));
/// assert_eq!(answer(&pool, pool.begin_retire("", WithdrawOptions::default())?)?, 0);
/// let missing = answer(&pool, pool.begin_withdraw("{space=default}{}{name=a}", WithdrawOptions::default())?);
/// assert!(missing.is_err() && answer(&pool, pool.begin_retract("nobody")?).is_err());
/// assert!(answer(&pool, pool.begin_join(&FollowOptions::default(), "nobody")?).is_err());
/// answer(&pool, pool.begin_sync()?)?;
/// # drop((requirement, follow, bundle, events, pages));
/// answer(&pool, pool.begin_stop(None)?)?; // the server ends
/// # Ok(())
/// # }
/// ```
pub struct Pending<T> {
    pub(crate) connection: Arc<Connection>,
    source: PendingSource<T>,
    /// The task that awaits it.
    #[cfg(feature = "async")]
    pub(crate) place: TaskPlace,
    /// A thread makes the answer, since that takes long.
    #[cfg(feature = "async")]
    pub(crate) slow: Option<Beside<SlowAnswer<T>>>,
}

/// An answer that a thread has made. It is undone unless somebody takes it.
#[cfg(feature = "async")]
pub(crate) struct SlowAnswer<T> {
    answer: Option<Result<Option<T>>>,
    undo: fn(T),
}

#[cfg(feature = "async")]
impl<T> SlowAnswer<T> {
    pub(crate) fn take(mut self) -> Result<T> {
        let answer = self.answer.take().transpose()?.flatten();
        answer.ok_or_else(taken_already)
    }
}

#[cfg(feature = "async")]
impl<T> Drop for SlowAnswer<T> {
    fn drop(&mut self) {
        if let Some(Ok(Some(answer))) = self.answer.take() {
            (self.undo)(answer);
        }
    }
}

/// What a task finds.
#[cfg(feature = "async")]
pub(crate) enum Quick<T> {
    Taken(T),
    /// It has come, and is long in the making.
    Slow,
}

/// Where an answer comes from.
enum PendingSource<T> {
    Conversation(Question<T>),
    /// Memory comes in more than one way.
    Memory(MemoryRequest, fn(Allocation) -> T),
    /// It was taken.
    Taken,
}

struct Question<T> {
    number: u64,
    stop: Stop,
    /// A failure that answers the question, too.
    forgives: Option<Code>,
    finish: Finish<T>,
    /// What becomes of an answer that nobody waits for any more.
    #[cfg(feature = "async")]
    undo: fn(T),
}

impl<T> Pending<T> {
    /// Blocks until the answer has come, and returns it. A request with a timeout of its own, such as a demand, is answered
    /// when that is over.
    ///
    /// # Errors
    /// Those of the request; `NotFound` where the answer was taken already; `Disconnected` or `Closed` when there is no server
    /// any more.
    pub fn wait(mut self) -> Result<T> {
        let answer = self.wait_until(None)?;
        answer.ok_or_else(taken_already)
    }

    /// As [`Pending::wait`], for at most this time. `None`: the answer has not come in time, and may still come; or it was
    /// taken already.
    ///
    /// # Errors
    /// Those of the request, once; `Disconnected` or `Closed` when there is no server any more.
    pub fn wait_within(&mut self, timeout: Duration) -> Result<Option<T>> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// The answer, if it has come. Reads what has come, and does not block. `None`: not yet, or it was taken already.
    ///
    /// # Errors
    /// Those of the request, once; `Disconnected` or `Closed` when there is no server any more.
    pub fn try_take(&mut self) -> Result<Option<T>> {
        let answer = self.wait_until(Some(Instant::now()))?;
        if answer.is_none()
            && let Some(number) = self.number()
        {
            let (_state, armed) = self.connection.arm(self.connection.lock()?, Some(number));
            armed?;
        }
        Ok(answer)
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<T>> {
        match &mut self.source {
            PendingSource::Taken => Ok(None),
            PendingSource::Memory(memory, _) => {
                let waited = memory.wait(&self.connection, deadline);
                self.remember(waited)
            }
            PendingSource::Conversation(question) => {
                let number = question.number;
                let what = Wait::letters_until(std::slice::from_ref(&number), deadline);
                let state = self.connection.lock()?;
                let said = self
                    .connection
                    .wait(state, what, |state| state.mail.get(number).and_then(Said::take))?;
                said.map(|said| self.accept(said)).transpose()
            }
        }
    }

    /// The conversation in which something of it is to come.
    fn number(&self) -> Option<u64> {
        match &self.source {
            PendingSource::Conversation(question) => Some(question.number),
            PendingSource::Memory(memory, _) => memory.lease_number(),
            PendingSource::Taken => None,
        }
    }

    /// The answer, if it has been read ([`Pool::look`], or whoever else waits on this pool, reads); `None`: not yet, or it was
    /// taken already. Waits for nothing.
    ///
    /// # Errors
    /// What the question came to, once; `Disconnected` or `Closed` when there will be no answer.
    pub fn take(&mut self) -> Result<Option<T>> {
        match &mut self.source {
            PendingSource::Taken => Ok(None),
            PendingSource::Memory(memory, _) => {
                let taken = memory.take(&self.connection);
                self.remember(taken)
            }
            PendingSource::Conversation(question) => {
                let mut state = self.connection.lock()?;
                let Some(said) = state.mail.get(question.number).and_then(Said::take) else {
                    state.stay_in_process()?;
                    state.alive()?;
                    return Ok(None);
                };
                drop(state);
                self.accept(said).map(Some)
            }
        }
    }

    /// Memory that came, or why none comes, is taken once.
    fn remember(&mut self, taken: Result<Option<Allocation>>) -> Result<Option<T>> {
        if matches!(taken, Ok(None)) {
            return Ok(None);
        }
        match std::mem::replace(&mut self.source, PendingSource::Taken) {
            PendingSource::Memory(_, made) => taken.map(|allocation| allocation.map(made)),
            _ => Ok(None),
        }
    }

    fn accept(&mut self, said: Said) -> Result<T> {
        let PendingSource::Conversation(question) = std::mem::replace(&mut self.source, PendingSource::Taken) else {
            return Err(unexpected("a second answer"));
        };
        let number = question.number;
        // What goes on keeps its mailbox.
        if !matches!(said, Said::Letter(Letter::Began(_))) {
            self.connection.finished(number);
        }
        let said = match said {
            Said::Letter(Letter::Failed(error)) if Some(error.code()) == question.forgives => {
                Said::Letter(Letter::Failed(error))
            }
            Said::Letter(Letter::Failed(error) | Letter::Ended(error)) | Said::Acknowledged(Err(error)) => {
                return Err(error);
            }
            said => said,
        };
        (question.finish)(&self.connection, number, said)
    }
}

#[cfg(feature = "async")]
impl<T> Pending<T> {
    /// As [`Pending::take`], unless making the answer takes long. `None`: not yet.
    pub(crate) fn take_quickly(&mut self) -> Option<Result<Quick<T>>> {
        if matches!(self.source, PendingSource::Taken) {
            return Some(Err(taken_already()));
        }
        if self.is_slow() {
            return Some(Ok(Quick::Slow));
        }
        self.take().transpose().map(|taken| taken.map(Quick::Taken))
    }

    /// The request itself, for a thread; here it counts as taken.
    pub(crate) fn split_off(&mut self) -> Self {
        let source = std::mem::replace(&mut self.source, PendingSource::Taken);
        Self::new(&self.connection, source)
    }

    /// As [`Pending::take`], in a thread for a task that may have gone.
    pub(crate) fn take_slowly(mut self) -> SlowAnswer<T> {
        let undo = match &self.source {
            PendingSource::Conversation(question) => question.undo,
            PendingSource::Memory(..) | PendingSource::Taken => drop,
        };
        let answer = Some(self.take());
        SlowAnswer { answer, undo }
    }

    /// What becomes of an answer that a thread has made and nothing waits for any more.
    pub(crate) fn undone_by(mut self, undo: fn(T)) -> Self {
        if let PendingSource::Conversation(question) = &mut self.source {
            question.undo = undo;
        }
        self
    }
}

impl<T> Pending<T> {
    fn new(connection: &Arc<Connection>, source: PendingSource<T>) -> Self {
        Self {
            connection: Arc::clone(connection),
            source,
            #[cfg(feature = "async")]
            place: TaskPlace::default(),
            #[cfg(feature = "async")]
            slow: None,
        }
    }

    /// Whether what [`Pending::take`] would give is long in the making: since a disk is read for it, or a large payload's checksum
    /// is verified: not for the thread of an event loop.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        let PendingSource::Conversation(Question { number, .. }) = self.source else {
            return false;
        };
        let Ok(mut state) = self.connection.lock() else {
            return false;
        };
        let mailbox = state.mail.get(number);
        mailbox.and_then(|mailbox| mailbox.peek()).is_some_and(Letter::is_slow)
    }
}

impl<T> Awaited for Pending<T> {
    /// Memory counts as ready at any time: it comes in more than one way, and is asked for after every look.
    fn awaiting(&self) -> Awaiting {
        match &self.source {
            PendingSource::Conversation(question) => Awaiting::letters(&self.connection, question.number),
            PendingSource::Memory(..) | PendingSource::Taken => Awaiting::ready(),
        }
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        // Else the task would be woken by the end of what it does not wait for any more.
        #[cfg(feature = "async")]
        self.place.leave();
        match &self.source {
            PendingSource::Conversation(question) => self.connection.give_up(question.number, question.stop),
            PendingSource::Memory(memory, _) => memory.give_up(&self.connection),
            PendingSource::Taken => {}
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({:?})", self.number())
    }
}

impl Pool {
    /// Sends what is to go and reads what has come, without waiting. From then on the pool's [`descriptor`](Pool::descriptor)
    /// becomes readable when more comes. True: something could not be sent, and the descriptor does not say when it can;
    /// [`Pool::flush`] waits for that.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut late = pool.begin_demand("name=late", None)?;
    /// pool.offer([("name", "late")], b"payload")?;
    /// while late.try_take()?.is_none() {
    ///     if pool.look()? {
    ///         pool.flush()?; // rare: in a thread, since the socket has no room
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when nothing comes any more: then every question says so when it is taken.
    pub fn look(&self) -> Result<bool> {
        self.connection()?.look_for_all()
    }

    /// Which of these have something that has been read: their places, rising. Reads nothing. Where several threads look at one
    /// pool, whoever looked asks for all who were there *after* the look. See [`Pending`].
    ///
    /// # Errors
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn ready(&self, on: &[Awaiting]) -> Result<Vec<usize>> {
        let connection = self.connection()?;
        let state = connection.lock()?;
        let now = Instant::now();
        let ready = on.iter().enumerate().filter(|(_, one)| one.is_ready(&state, now));
        Ok(ready.map(|(place, _)| place).collect())
    }

    /// Memory for a payload, as [`Pool::allocate`], without waiting. The request ends with the pool's offer timeout.
    ///
    /// ```
    /// # use junctura::{OfferOptions, Pool, Retention};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let mut memory = pool.begin_allocate(100_000)?;
    /// let mut field = loop {
    ///     pool.look()?; // when the pool's descriptor is readable
    ///     if let Some(field) = memory.take()? {
    ///         break field;
    ///     }
    /// };
    /// field.fill(7);
    ///
    /// // Names in a retention have to be known to the server before an offer with them does not wait.
    /// let retention = Retention::ReleasedBy(junctura::Consumers::new(["archive"])?);
    /// let mut names = pool.begin_names(&retention)?;
    /// while let Some(told) = &mut names && told.take()?.is_none() {
    ///     pool.look()?;
    /// }
    /// let options = OfferOptions { retention: Some(retention), ..OfferOptions::default() };
    /// let mut offered = field.begin_offer(options, [("name", "sevens")])?;
    /// let version = loop {
    ///     pool.look()?;
    ///     if let Some(version) = offered.take()? {
    ///         break version;
    ///     }
    /// };
    /// assert_eq!(version.sequence, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Only in a forked child, which connects anew: those of [`Pool::connect`].
    pub fn begin_allocate(&self, bytes: usize) -> Result<Pending<Allocation>> {
        Ok(self.connection()?.begin_allocate(bytes, false))
    }

    /// Tells the server of the names in a retention, which has to be done once before [`Allocation::begin_offer`] with it does
    /// not wait. `None`: it knows them. See [`Pool::begin_allocate`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; `LimitExceeded` may come with the answer.
    pub fn begin_names(&self, retention: &Retention) -> Result<Option<Pending<()>>> {
        self.connection()?.begin_names(retention)
    }

    /// As [`Pool::withdraw`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// Those of attributes that the schema does not take; the others come with the answer.
    pub fn begin_withdraw<'a>(
        &self,
        key: impl Into<crate::Target<'a>>,
        options: WithdrawOptions,
    ) -> Result<Pending<u64>> {
        let connection = self.connection()?;
        let key = key.into();
        let target = connection.resolve(&key)?;
        connection.begin_count(&Request::Withdraw(options.of(target)))
    }

    /// As [`Pool::retire`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Pool::retire`] come with the answer.
    pub fn begin_retire(&self, selector: &str, options: WithdrawOptions) -> Result<Pending<u64>> {
        let target = body::Target::selector(selector);
        self.connection()?.begin_count(&Request::Retire(options.of(target)))
    }

    /// As [`Pool::retract`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Pool::retract`] come with the answer.
    pub fn begin_retract(&self, name: &str) -> Result<Pending<u64>> {
        self.connection()?.begin_retract(name)
    }

    /// As [`Pool::stat`], without waiting. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more.
    pub fn begin_stat(&self) -> Result<Pending<String>> {
        let connection = self.connection()?;
        connection.pend(Talk::Once, &Request::Stat, Stop::Cancel, |_, _, said| match said {
            Said::Letter(Letter::Stats(text)) => Ok(text),
            _ => Err(unexpected("no counters")),
        })
    }

    /// Asks the server to end, as [`Pool::stop`], without waiting: the answer is that it ends. When it has ended, every other
    /// question fails with `Disconnected`. See [`Pending`].
    ///
    /// # Errors
    /// `Disconnected` or `Closed` when there is no server any more; those of [`Pool::stop`] come with the answer.
    pub fn begin_stop(&self, timeout: Option<std::time::Duration>) -> Result<Pending<u64>> {
        let timeout_ms = timeout.map(crate::follow::milliseconds);
        self.connection()?
            .begin_count(&Request::Drain(body::Drain { timeout_ms }))
    }
}

impl Connection {
    /// See [`Pool::look`].
    pub(crate) fn look_for_all(&self) -> Result<bool> {
        let mut state = self.lock()?;
        state.send()?;
        let (state, looked) = self.glance(state);
        looked?;
        let (mut state, armed) = self.arm(state, None);
        armed?;
        state.alive()?;
        // What was read may have made room, or asked for something back.
        Ok(!state.send()? && state.waits_for_socket())
    }

    /// Asks, and waits for nothing.
    pub(crate) fn pend<T>(
        self: &Arc<Self>,
        talk: Talk,
        request: &Request<'_>,
        stop: Stop,
        finish: impl FnOnce(&Arc<Connection>, u64, Said) -> Result<T> + Send + 'static,
    ) -> Result<Pending<T>> {
        let number = self.post(talk, request)?;
        Ok(self.pending(number, stop, finish))
    }

    /// The answer to what was asked already.
    pub(crate) fn pending<T>(
        self: &Arc<Self>,
        number: u64,
        stop: Stop,
        finish: impl FnOnce(&Arc<Connection>, u64, Said) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let finish = Box::new(finish);
        let question = Question {
            number,
            stop,
            forgives: None,
            finish,
            #[cfg(feature = "async")]
            undo: drop,
        };
        Pending::new(self, PendingSource::Conversation(question))
    }

    /// Memory for a payload; `staged`: for a member of a bundle.
    pub(crate) fn begin_allocate(self: &Arc<Self>, bytes: usize, staged: bool) -> Pending<Allocation> {
        Pending::new(
            self,
            PendingSource::Memory(MemoryRequest::new(bytes, staged), |allocation| allocation),
        )
    }

    /// Begins what the server goes on talking in.
    pub(crate) fn begin_stream<T>(
        self: &Arc<Self>,
        request: &Request<'_>,
        made: impl FnOnce(&Arc<Connection>, Stream, u64) -> T + Send + 'static,
    ) -> Result<Pending<T>> {
        self.pend(
            Talk::Stream,
            request,
            Stop::End,
            |connection, number, said| match said {
                Said::Letter(Letter::Began(sequence)) => {
                    Ok(made(connection, Stream::began(connection, number), sequence))
                }
                _ => Err(unexpected("no beginning")),
            },
        )
    }

    /// See [`Pool::begin_names`].
    pub(crate) fn begin_names(self: &Arc<Self>, retention: &Retention) -> Result<Option<Pending<()>>> {
        let Retention::ReleasedBy(names) = retention else {
            return Ok(None);
        };
        if self.lock()?.consumers.contains_key(names) {
            return Ok(None);
        }
        let request = Request::Consumers(body::Consumers {
            names: names.iter().map(str::to_owned).collect(),
        });
        let names = names.clone();
        let told = move |connection: &Arc<Connection>, _, said| match said {
            Said::Letter(Letter::Done(number)) => {
                let number = u32::try_from(number).map_err(|_| unexpected("a number of names that is too large"))?;
                connection.lock()?.consumers.insert(names, number);
                Ok(())
            }
            _ => Err(unexpected("no number of names")),
        };
        self.pend(Talk::Once, &request, Stop::Cancel, told).map(Some)
    }

    /// See [`Pool::begin_retract`].
    pub(crate) fn begin_retract(self: &Arc<Self>, name: &str) -> Result<Pending<u64>> {
        self.begin_count(&Request::Retract(body::Retract { name: name.into() }))
    }

    pub(crate) fn begin_count(self: &Arc<Self>, request: &Request<'_>) -> Result<Pending<u64>> {
        self.pend(Talk::Once, request, Stop::Cancel, |_, _, said| match said {
            Said::Letter(Letter::Done(count)) => Ok(count),
            _ => Err(unexpected("no count")),
        })
    }

    /// Begins a question whose answer is an acknowledgement, of what `append` appends under its number.
    pub(crate) fn begin_acknowledged<T>(
        self: &Arc<Self>,
        append: impl FnOnce(&mut State, u64) -> Result<()>,
        finish: impl FnOnce(&Arc<Connection>, u64, u64) -> T + Send + 'static,
    ) -> Result<Pending<T>> {
        let mut state = self.lock()?;
        state.stay_in_process()?;
        let number = state.mail.open(Talk::Offers)?;
        if let Err(error) = append(&mut state, number) {
            state.mail.close(number);
            return Err(error);
        }
        // What cannot go now goes with the next look.
        let sent = state.send();
        drop(state);
        let pending = self.pending(number, Stop::Silently, |connection, number, said| match said {
            Said::Acknowledged(Ok(sequence)) => Ok(finish(connection, number, sequence)),
            _ => Err(unexpected("no acknowledgement")),
        });
        sent.map(|_| pending)
    }
}

/// What ends without being waited for. It may have ended by itself meanwhile, as a follow until live does: then the server has nothing
/// of this number any more.
pub(crate) fn ended(connection: &Arc<Connection>, stop: u64) -> Pending<()> {
    let mut pending = connection.pending(stop, Stop::Silently, |_, _, _| Ok(()));
    if let PendingSource::Conversation(question) = &mut pending.source {
        question.forgives = Some(Code::NotFound);
    }
    pending
}
