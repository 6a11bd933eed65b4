//! Runs work that has no descriptor, or takes long, on a separate thread if the caller must not block or has a
//! deadline: opening and closing a pool, reading spilled payloads or the store behind the pool, verifying large
//! checksums, waiting for space in a socket. Each of these is rare or processes much data at once.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use junctura_model::{Code, Error, Result};

use crate::awaiting::{WaitKind, WaitSource};
use crate::connection::state::forked;
use crate::connection::{PoolConnection, rouser};

enum AnswerSlot<T> {
    Running(Option<Waker>),
    Done(thread::Result<T>),
    /// The result is no longer waited for, or was taken.
    Left,
}

/// The result that a thread computes. It is undone if it is no longer waited for.
pub(crate) struct ThreadAnswer<T> {
    slot: Arc<Mutex<AnswerSlot<T>>>,
    is_done: Arc<AtomicBool>,
    undo: fn(T),
}

/// Runs `call` on a separate thread; `undo` receives the result if it is no longer waited for.
///
/// # Errors
/// `LimitExceeded` if the system provides no thread.
pub(crate) fn beside<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
    undo: fn(T),
) -> Result<ThreadAnswer<T>> {
    let slot = Arc::new(Mutex::new(AnswerSlot::Running(None)));
    let told = Arc::clone(&slot);
    let is_done = Arc::new(AtomicBool::new(false));
    let done_now = Arc::clone(&is_done);
    let work = move || {
        let done = catch_unwind(AssertUnwindSafe(call));
        let mut slot = told.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *slot, AnswerSlot::Left) {
            AnswerSlot::Running(waker) => {
                *slot = AnswerSlot::Done(done);
                done_now.store(true, Ordering::Release);
                drop(slot);
                waker.into_iter().for_each(Waker::wake);
            }
            AnswerSlot::Done(_) | AnswerSlot::Left => {
                drop(slot);
                done.into_iter().for_each(undo);
            }
        }
    };
    thread::Builder::new()
        .name("junctura beside".to_owned())
        .spawn(work)
        .map_err(|error| Error::new(Code::LimitExceeded, "thread", error.to_string()))?;
    Ok(ThreadAnswer { slot, is_done, undo })
}

impl<T> ThreadAnswer<T> {
    /// Returns a wait source for the end of the thread.
    pub(crate) fn awaiting(&self) -> WaitSource {
        WaitSource(WaitKind::Raised(Arc::clone(&self.is_done)))
    }

    /// Returns the result of the thread; blocks until the deadline. `None`: not in time; the thread wakes all waits on
    /// the connection when it is done.
    ///
    /// # Errors
    /// `Closed` in a forked child, which does not have the thread; those of the interrupt hook.
    pub(crate) fn wait_on(&mut self, connection: &Arc<PoolConnection>, deadline: Option<Instant>) -> Result<Option<T>> {
        loop {
            if connection.is_inherited() {
                return Err(forked());
            }
            if let Some(made) = self.wait(connection.round(deadline)) {
                return Ok(Some(made));
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                self.wake_when_done(rouser(connection));
                return Ok(None);
            }
            connection.ask_hook()?;
        }
    }

    /// Wakes this waker when the thread is done, instead of the previous one.
    fn wake_when_done(&self, waker: Waker) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = match &mut *slot {
            AnswerSlot::Running(woken) => woken.replace(waker),
            AnswerSlot::Done(_) | AnswerSlot::Left => Some(waker),
        };
        let is_done = matches!(*slot, AnswerSlot::Done(_));
        drop(slot);
        if is_done {
            replaced.into_iter().for_each(Waker::wake);
        }
    }

    /// Returns the result of the thread; blocks until the deadline. `None`: not in time.
    fn wait(&mut self, deadline: Option<Instant>) -> Option<T> {
        let waker = Arc::new(WaitingThread(thread::current())).into();
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(made) = Pin::new(&mut *self).poll(&mut context) {
                return Some(made);
            }
            match deadline {
                None => thread::park(),
                Some(deadline) if deadline <= Instant::now() => return None,
                Some(deadline) => thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
            }
        }
    }
}

struct WaitingThread(Thread);

impl Wake for WaitingThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl<T> Future for ThreadAnswer<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *slot, AnswerSlot::Left) {
            AnswerSlot::Done(Ok(done)) => Poll::Ready(done),
            AnswerSlot::Done(Err(panic)) => {
                drop(slot);
                resume_unwind(panic)
            }
            AnswerSlot::Running(_) | AnswerSlot::Left => {
                *slot = AnswerSlot::Running(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for ThreadAnswer<T> {
    fn drop(&mut self) {
        let left = {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *slot, AnswerSlot::Left)
        };
        if let AnswerSlot::Done(Ok(done)) = left {
            (self.undo)(done);
        }
    }
}
