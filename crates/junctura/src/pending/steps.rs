//! Requests of several steps: what the answer to one step begins is the next one.
//!
//! ```text
//!  Then { first, next } --answer of first--> next(answer) --> another Pending, which takes its place
//! ```
//! All ways of waiting advance the steps. A step may be [`BlockingWork`]: it reads a disk, or blocks, and has no conversation. A thread that
//! blocks does it itself; a task has a thread do it.

#[cfg(feature = "async")]
use std::pin::Pin;
use std::sync::Arc;
#[cfg(feature = "async")]
use std::task::{Context, Poll, ready};
use std::time::Instant;

use junctura_model::{Code, Result};

use super::{Pending, PendingSource, taken_already};
use crate::awaiting::{Awaited, WaitSource};
use crate::connection::PoolConnection;

/// How an answer is asked for.
#[derive(Clone, Copy)]
pub(crate) enum AnswerMode {
    /// Reads, and blocks until the deadline.
    Wait(Option<Instant>),
    /// Takes what has been read; does work if the request is at it.
    Take,
    /// The same, without work: the request came to it just now.
    TakeQuickly,
    /// The same; what takes long is done by a thread.
    Glance,
}

impl AnswerMode {
    /// Once a step was done.
    pub(super) fn after_step(self) -> Self {
        match self {
            Self::Wait(deadline) => Self::Wait(deadline),
            Self::Take | Self::TakeQuickly => Self::TakeQuickly,
            Self::Glance => Self::Glance,
        }
    }

    /// Whether what takes long is for a thread, since the caller blocks until a deadline at most.
    pub(super) fn is_bounded(self) -> bool {
        matches!(self, Self::Wait(Some(_)) | Self::Glance)
    }
}

/// The first steps of a request whose last one gives a `T`.
pub(super) trait RequestSteps<T>: Send {
    /// Asks for the answer of the present step; `None`: not yet.
    fn advance(&mut self, ask: AnswerMode) -> Result<Option<Pending<T>>>;
    fn number(&self) -> Option<u64>;
    fn awaiting(&self) -> WaitSource;
    #[cfg(feature = "async")]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Pending<T>>>;
}

/// A step, and what its answer begins.
struct NextStep<A, F> {
    first: Pending<A>,
    next: Option<F>,
}

impl<A, F> NextStep<A, F> {
    fn follow_up<T>(&mut self, answer: Result<A>) -> Result<Pending<T>>
    where
        F: FnOnce(Result<A>) -> Result<Pending<T>>,
    {
        self.next.take().ok_or_else(taken_already)?(answer)
    }
}

impl<A, T, F> RequestSteps<T> for NextStep<A, F>
where
    A: Send + 'static,
    F: FnOnce(Result<A>) -> Result<Pending<T>> + Send,
{
    fn advance(&mut self, ask: AnswerMode) -> Result<Option<Pending<T>>> {
        match self.first.get(ask) {
            Ok(None) => Ok(None),
            // The wait was interrupted, and the request stands.
            Err(error) if error.code() == Code::Interrupted => Err(error),
            answer => self
                .follow_up(answer.and_then(|answer| answer.ok_or_else(taken_already)))
                .map(Some),
        }
    }

    fn number(&self) -> Option<u64> {
        self.first.number()
    }

    fn awaiting(&self) -> WaitSource {
        self.first.awaiting()
    }

    #[cfg(feature = "async")]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Pending<T>>> {
        let answer = ready!(Pin::new(&mut self.first).poll(cx));
        Poll::Ready(self.follow_up(answer))
    }
}

/// A step without a conversation: it blocks, or reads a disk.
pub(super) struct BlockingWork<T> {
    pub(super) run: Box<dyn FnOnce() -> Result<T> + Send>,
    /// What becomes of an answer that a thread has made and nothing waits for any more.
    pub(super) undo: fn(T),
}

/// Something that others may take, too: a request only looks at it.
pub(crate) trait WatchedValue<T>: Send {
    /// The answer, if it is there.
    fn get(&mut self, ask: AnswerMode) -> Result<Option<T>>;
    /// The conversation in which it comes.
    fn number(&self) -> u64;
    fn awaiting(&self) -> WaitSource;
}

impl<T> Pending<T> {
    /// An answer that is there.
    pub(crate) fn known(connection: &Arc<PoolConnection>, answer: Result<T>) -> Self {
        Self::new(connection, PendingSource::Known(answer))
    }

    /// What `run` returns. `undo` gets it where a thread has run it and nothing waits for it any more.
    pub(crate) fn work(
        connection: &Arc<PoolConnection>,
        run: impl FnOnce() -> Result<T> + Send + 'static,
        undo: fn(T),
    ) -> Self {
        let run = Box::new(run);
        Self::new(connection, PendingSource::Work(BlockingWork { run, undo }))
    }

    pub(crate) fn watch(connection: &Arc<PoolConnection>, watched: impl WatchedValue<T> + 'static) -> Self {
        Self::new(connection, PendingSource::Watch(Box::new(watched)))
    }
}

impl<A: Send + 'static> Pending<A> {
    /// A request that begins another one with its answer.
    pub(crate) fn then<T>(self, next: impl FnOnce(Result<A>) -> Result<Pending<T>> + Send + 'static) -> Pending<T> {
        let connection = Arc::clone(&self.connection);
        let steps = NextStep {
            first: self,
            next: Some(next),
        };
        Pending::new(&connection, PendingSource::Steps(Box::new(steps)))
    }

    /// The same answer in another form.
    pub(crate) fn map<T>(self, form: impl FnOnce(Result<A>) -> Result<T> + Send + 'static) -> Pending<T> {
        let connection = Arc::clone(&self.connection);
        self.then(move |answer| form(answer).map(|answer| Pending::known(&connection, Ok(answer))))
    }
}
