//! Requests of several steps: the answer to one step begins the next.
//!
//! ```text
//!  Then { first, next } --answer of first--> next(answer) --> another Pending, which takes its place
//! ```
//!
//! All forms of waiting advance the steps. A step may be [`BlockingWork`]: it reads a disk, or blocks, and has no
//! conversation. A blocking caller runs it itself; for a task, a thread runs it.

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

/// How an answer is requested.
#[derive(Clone, Copy)]
pub(crate) enum AnswerMode {
    /// Reads, and blocks until the deadline.
    Wait(Option<Instant>),
    /// Takes messages that have been read; runs work that is due.
    Take,
    /// As `Take`, without work: the request has only just reached it.
    TakeQuickly,
    /// As `Take`; a thread runs slow work.
    Glance,
}

impl AnswerMode {
    /// Returns the mode after a completed step.
    pub(super) fn after_step(self) -> Self {
        match self {
            Self::Wait(deadline) => Self::Wait(deadline),
            Self::Take | Self::TakeQuickly => Self::TakeQuickly,
            Self::Glance => Self::Glance,
        }
    }

    /// Returns whether a thread runs slow work because the caller has a deadline.
    pub(super) fn is_bounded(self) -> bool {
        matches!(self, Self::Wait(Some(_)) | Self::Glance)
    }
}

/// The first steps of a request whose last step returns a `T`.
pub(super) trait RequestSteps<T>: Send {
    /// Polls the answer of the present step; `None`: not yet.
    fn advance(&mut self, ask: AnswerMode) -> Result<Option<Pending<T>>>;
    fn number(&self) -> Option<u64>;
    fn awaiting(&self) -> WaitSource;
    #[cfg(feature = "async")]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Pending<T>>>;
}

/// A step, and the step that its answer begins.
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
            // The wait was interrupted; the request stays outstanding.
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
    /// Undoes an answer that a thread has made and that is no longer waited for.
    pub(super) undo: fn(T),
}

/// A value that others may take, too: a request only observes it.
pub(crate) trait WatchedValue<T>: Send {
    /// Returns the answer, if it is available.
    fn get(&mut self, ask: AnswerMode) -> Result<Option<T>>;
    /// Returns the conversation in which it arrives.
    fn number(&self) -> u64;
    fn awaiting(&self) -> WaitSource;
}

impl<T> Pending<T> {
    /// An answer that is available already.
    pub(crate) fn known(connection: &Arc<PoolConnection>, answer: Result<T>) -> Self {
        Self::new(connection, PendingSource::Known(answer))
    }

    /// Runs `run`. `undo` receives its result if a thread has run it and it is no longer waited for.
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
    /// Begins another request with the answer.
    pub(crate) fn then<T>(self, next: impl FnOnce(Result<A>) -> Result<Pending<T>> + Send + 'static) -> Pending<T> {
        let connection = Arc::clone(&self.connection);
        let steps = NextStep {
            first: self,
            next: Some(next),
        };
        Pending::new(&connection, PendingSource::Steps(Box::new(steps)))
    }

    /// Converts the answer.
    pub(crate) fn map<T>(self, form: impl FnOnce(Result<A>) -> Result<T> + Send + 'static) -> Pending<T> {
        let connection = Arc::clone(&self.connection);
        self.then(move |answer| form(answer).map(|answer| Pending::known(&connection, Ok(answer))))
    }
}
