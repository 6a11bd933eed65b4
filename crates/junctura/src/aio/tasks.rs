//! The wait of a task: it takes a message that has arrived, or registers its waker with the connection.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use junctura_model::{Code, Error, Result};

use crate::awaiting::{Awaited, WaitSource};
use crate::connection::PoolConnection;
use crate::connection::{DriverState, TaskPlace, flush_beside};
use crate::pending::{Pending, PolledValue};

impl TaskPlace {
    /// Takes a result if there is one; otherwise registers the task to be woken when it must poll again.
    pub(super) fn poll<S, T>(
        &mut self,
        connection: &Arc<PoolConnection>,
        cx: &mut Context<'_>,
        source: &mut S,
        awaiting: impl FnOnce(&S) -> WaitSource,
        mut take: impl FnMut(&mut S) -> Option<Result<T>>,
    ) -> Poll<Result<T>> {
        // In most cases the message has arrived already.
        if let Some(taken) = take(source) {
            self.leave();
            return Poll::Ready(taken);
        }
        // The registered task is woken by messages that are read from now on; messages that were read before are found
        // here.
        self.enter(connection, &awaiting(source), cx.waker());
        if let Some(taken) = take(source) {
            self.leave();
            return Poll::Ready(taken);
        }
        if let Err(error) = connection.must_be_driven() {
            // The driver may have read it, and ended with the connection, since the last poll.
            let taken = take(source);
            self.leave();
            return Poll::Ready(taken.unwrap_or(Err(error)));
        }
        connection.send_for_tasks();
        Poll::Pending
    }
}

/// Returns the result of `take` as soon as there is one; calls `take` when the awaited event may have occurred.
pub(super) async fn until<T>(
    connection: &Arc<PoolConnection>,
    awaiting: WaitSource,
    mut take: impl FnMut() -> Option<Result<T>>,
) -> Result<T> {
    let mut place = TaskPlace::default();
    poll_fn(|cx| place.poll(connection, cx, &mut take, |_| awaiting.clone(), |take| take())).await
}

impl<T: Send + 'static> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let this = self.get_mut();
        loop {
            if let Some(slow) = &mut this.slow {
                let made = ready!(Pin::new(slow).poll(cx));
                this.slow = None;
                return Poll::Ready(made.take());
            }
            ready!(this.poll_steps(cx))?;
            let (mut place, connection) = (std::mem::take(&mut this.place), Arc::clone(&this.connection));
            let polled = place.poll(&connection, cx, this, Awaited::awaiting, Pending::take_quickly);
            this.place = place;
            match ready!(polled)? {
                PolledValue::Taken(answer) => return Poll::Ready(Ok(answer)),
                // A thread makes the answer, which is discarded if this is dropped.
                PolledValue::Slow => this.make_beside()?,
            }
        }
    }
}

impl PoolConnection {
    /// Checks that something reads and wakes: a driver, or a loop of the program. Within tokio this creates a driver if
    /// there is none.
    ///
    /// # Errors
    /// `Unavailable` if there is neither.
    fn must_be_driven(self: &Arc<Self>) -> Result<()> {
        {
            let state = self.lock()?;
            let has_loop = state.tasks.driver == DriverState::Absent && state.watch.is_some();
            if state.tasks.driver == DriverState::Runs || has_loop {
                return Ok(());
            }
            #[cfg(feature = "tokio")]
            if state.tasks.driver != DriverState::Left && tokio::runtime::Handle::try_current().is_ok() {
                drop(state);
                return self.drive_on_tokio();
            }
        }
        let cause = "nothing reads for its tasks: its driver was dropped, or has ended with its runtime";
        Err(Error::new(Code::Unavailable, "asynchronous pool", cause))
    }

    /// Creates a driver in this runtime, unless there is one.
    ///
    /// # Errors
    /// `Unavailable` outside a tokio runtime; `Io` if the descriptor cannot be watched.
    #[cfg(feature = "tokio")]
    pub(super) fn drive_on_tokio(self: &Arc<Self>) -> Result<()> {
        // If several tasks find no driver, one creates it.
        if std::mem::replace(&mut self.lock()?.tasks.driver, DriverState::Runs) == DriverState::Runs {
            return Ok(());
        }
        let driver =
            super::driver::Driver::new(self, DriverState::Ended).inspect_err(|_| self.undriven(DriverState::Ended))?;
        driver.spawn_on_tokio()
    }

    /// Records that the driver has ended, with its runtime or with the connection: waiting tasks poll again.
    pub(super) fn undriven(&self, state: DriverState) {
        if let Ok(mut locked) = self.lock() {
            locked.tasks.driver = state;
        }
        self.wake_all_tasks();
    }

    fn wake_all_tasks(&self) {
        if let Ok(mut state) = self.lock() {
            state.wake_all_tasks();
            drop(self.wake_tasks(state));
        }
    }

    /// Reads messages and wakes the tasks that are ready; returns false, with all tasks woken, if the connection has
    /// ended.
    pub(super) fn look_for_tasks(self: &Arc<Self>) -> bool {
        let Ok(is_blocked) = self.look_for_all() else {
            self.wake_all_tasks();
            return false;
        };
        if is_blocked {
            flush_beside(self);
        }
        true
    }

    /// Sends the outbox, so that no task sleeps on an unsent request. The answer reports a failure to send.
    fn send_for_tasks(self: &Arc<Self>) {
        let is_blocked = self
            .lock()
            .is_ok_and(|mut state| matches!(state.send(), Ok(false)) && state.is_blocked());
        if is_blocked {
            flush_beside(self);
        }
    }
}
