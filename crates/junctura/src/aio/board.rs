//! Who waits on a pool, in whatever task, and who is woken.
//!
//! ```text
//!  a task polls: known here --> asks whether it is there --> sleeps
//!                                                              |
//!  the driver: the descriptor is readable --> look --> wakes those for whom something has been read
//! ```
//! A waker carries no answer: the task takes it in its own hands when it runs again. So whoever is dropped between the one
//! and the other has taken nothing.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use junctura_model::{Code, Error, Result};

use super::beside::beside;
use crate::awaiting::Awaiting;
use crate::pending::Pending;

/// Makes another driver where the last one has ended with its runtime.
pub(super) type Revive = fn(&Arc<Board>) -> Result<()>;

/// All tasks that wait on one pool.
pub(super) struct Board {
    pub(super) pool: crate::Pool,
    waiters: Mutex<Waiters>,
    is_driven: AtomicBool,
    revive: Option<Revive>,
    is_flushing: AtomicBool,
}

#[derive(Default)]
struct Waiters {
    last: u64,
    all: HashMap<u64, (Awaiting, Waker)>,
}

impl Board {
    pub(super) fn new(pool: crate::Pool, revive: Option<Revive>) -> Self {
        Self {
            pool,
            waiters: Mutex::default(),
            is_driven: AtomicBool::new(true),
            revive,
            is_flushing: AtomicBool::new(false),
        }
    }

    /// What `take` gives, as soon as it gives something: asked when there may be something of what is awaited.
    pub(super) async fn until<T>(
        self: &Arc<Self>,
        awaiting: Awaiting,
        mut take: impl FnMut() -> Option<Result<T>>,
    ) -> Result<T> {
        let mut place = Place::new(self);
        poll_fn(|cx| place.poll(cx, &mut take, |_| awaiting.clone(), |take| take())).await
    }

    /// What is said to a question; given up when the future is dropped.
    pub(super) async fn answer<T>(self: &Arc<Self>, mut pending: Pending<T>) -> Result<T> {
        let awaiting = crate::Awaited::awaiting(&pending);
        self.until(awaiting, || pending.take().transpose()).await
    }

    /// Reads what has come and wakes whom it concerns; false: nothing comes any more, and all are woken.
    pub(super) fn look(self: &Arc<Self>) -> bool {
        let Ok(is_blocked) = self.pool.look() else {
            self.wake_all();
            return false;
        };
        // All who wait by now: whoever comes later finds what was read by asking.
        let concerned = self.pool.concerned(self.lock().all.values());
        match concerned {
            Ok(wakers) => wakers.into_iter().for_each(Waker::wake),
            Err(_) => self.wake_all(),
        }
        if is_blocked {
            self.flush();
        }
        true
    }

    /// The descriptor does not tell when a socket has room: one thread waits for that, for all.
    fn flush(self: &Arc<Self>) {
        if self.is_flushing.swap(true, Ordering::AcqRel) {
            return;
        }
        let board = Arc::clone(self);
        let flush = move || {
            // Why it failed is told by every question.
            let _ = board.pool.flush();
            board.is_flushing.store(false, Ordering::Release);
            board.pool.nudge();
        };
        if beside(flush, drop).is_err() {
            self.is_flushing.store(false, Ordering::Release);
        }
    }

    /// The driver has ended, with its runtime or with the connection: whoever waits asks again.
    pub(super) fn undriven(&self) {
        self.is_driven.store(false, Ordering::Release);
        self.wake_all();
    }

    /// # Errors
    /// `Unavailable` where nobody reads and wakes.
    fn must_be_driven(self: &Arc<Self>) -> Result<()> {
        if self.is_driven.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(revive) = self.revive else {
            let cause = "nobody drives it: its driver was dropped, or has ended with its runtime";
            return Err(Error::new(Code::Unavailable, "asynchronous pool", cause));
        };
        // Of several who find it so, one does it.
        if self.is_driven.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        revive(self).inspect_err(|_| self.undriven())
    }

    fn wake_all(&self) {
        let wakers: Vec<Waker> = self.lock().all.values().map(|(_, waker)| waker.clone()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // The driver finds that there is nobody to read for.
        self.pool.nudge();
    }
}

/// A task's place among those who wait; it is left when this is dropped.
pub(super) struct Place {
    board: Arc<Board>,
    number: Option<u64>,
}

impl Place {
    pub(super) fn new(board: &Arc<Board>) -> Self {
        Self {
            board: Arc::clone(board),
            number: None,
        }
    }

    /// Takes what is there; else the task is woken when it is to ask again.
    pub(super) fn poll<S, T>(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut S,
        awaiting: impl FnOnce(&S) -> Awaiting,
        mut take: impl FnMut(&mut S) -> Option<Result<T>>,
    ) -> Poll<Result<T>> {
        // Most has come already.
        if let Some(taken) = take(source) {
            self.leave();
            return Poll::Ready(taken);
        }
        // Whoever is known is woken for what is read from now on; what was read before is found here.
        self.enter(awaiting(source), cx.waker());
        if let Some(taken) = take(source) {
            self.leave();
            return Poll::Ready(taken);
        }
        if let Err(error) = self.board.must_be_driven() {
            // The driver may have read it, and ended with the connection, since it was asked for.
            let taken = take(source);
            self.leave();
            return Poll::Ready(taken.unwrap_or(Err(error)));
        }
        // Nobody sleeps on what has not gone. Why it cannot go is told by the question.
        if matches!(self.board.pool.send(), Ok(false)) && self.board.pool.is_blocked() {
            self.board.flush();
        }
        Poll::Pending
    }

    pub(super) fn board(&self) -> &Arc<Board> {
        &self.board
    }

    fn enter(&mut self, awaiting: Awaiting, waker: &Waker) {
        let mut waiters = self.board.lock();
        let number = *self.number.get_or_insert_with(|| {
            waiters.last += 1;
            waiters.last
        });
        waiters.all.insert(number, (awaiting, waker.clone()));
    }

    fn leave(&mut self) {
        if let Some(number) = self.number.take() {
            self.board.lock().all.remove(&number);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}
