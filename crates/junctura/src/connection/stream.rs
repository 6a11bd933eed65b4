//! A conversation in which the server sends a stream of messages: the common part of follows, lists, subscriptions and
//! requirements.
//!
//! Messages are fetched in batches, so that most cost no lock. Dropping a stream waits for the server's last message
//! (one round trip), unless tasks or an event loop use the pool. After that no object of the stream is in flight or
//! held.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use junctura_model::{Code, Result};
use junctura_wire::Request;

use crate::awaiting::WaitSource;
use crate::connection::in_flight::ServerMessage;
use crate::connection::{PoolConnection, ThreadWait, end_by};
use crate::pending::Pending;

#[derive(Debug)]
pub(crate) struct ServerStream {
    connection: Arc<PoolConnection>,
    number: u64,
    batch: VecDeque<ServerMessage>,
    /// The number of messages in `batch`, for objects that were taken from it.
    at_hand: Arc<AtomicUsize>,
    over: bool,
    has_failed: bool,
}

impl ServerStream {
    /// Wraps a conversation that has begun.
    pub(crate) fn began(connection: &Arc<PoolConnection>, number: u64) -> Self {
        Self {
            connection: Arc::clone(connection),
            number,
            batch: VecDeque::new(),
            at_hand: Arc::default(),
            over: false,
            has_failed: false,
        }
    }

    /// Returns the server's number for it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of messages available when the last one was taken; 0 when it has ended.
    pub(crate) fn at_hand(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.at_hand)
    }

    /// Returns a wait source for callers that also wait for other events.
    pub(crate) fn awaiting(&self) -> WaitSource {
        if self.over || !self.batch.is_empty() {
            WaitSource::ready()
        } else {
            WaitSource::letters(&self.connection, self.number)
        }
    }

    /// Returns whether the server or the user has ended it.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the next message; `None` at the deadline.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Option<ServerMessage>> {
        let awaited = self.await_letter(deadline);
        self.fuse(awaited)?;
        Ok(self.pop())
    }

    /// Returns a message that has arrived.
    pub(crate) fn try_next(&mut self) -> Result<Option<ServerMessage>> {
        let looked = self.look_for_letter();
        self.fuse(looked)?;
        Ok(self.pop())
    }

    /// Returns whether a message is available, as [`Self::try_next`] would find it.
    pub(crate) fn has_come(&mut self) -> Result<bool> {
        let looked = self.look_for_letter();
        self.fuse(looked)?;
        Ok(!self.batch.is_empty())
    }

    /// As [`Self::next`], without taking the message.
    pub(crate) fn peek(&mut self, deadline: Option<Instant>) -> Result<Option<&ServerMessage>> {
        if !self.over {
            let awaited = self.await_letter(deadline);
            self.fuse(awaited)?;
        }
        Ok(self.batch.front())
    }

    /// As [`Self::take`], without taking the message.
    pub(crate) fn look_at(&mut self) -> Result<Option<&ServerMessage>> {
        let looked = self.take_letters();
        self.fuse(looked)?;
        Ok(self.batch.front())
    }

    fn take_letters(&mut self) -> Result<()> {
        if self.batch.is_empty() && !self.over {
            let mut state = self.connection.lock()?;
            if !state.take_letters(self.number, &mut self.batch) {
                // The server may wait for releases that were delayed.
                state.send()?;
                state.stay_in_process()?;
                state.alive()?;
            }
        }
        Ok(())
    }

    fn await_letter(&mut self, deadline: Option<Instant>) -> Result<()> {
        if self.batch.is_empty() {
            let Self {
                connection,
                number,
                batch,
                ..
            } = self;
            let what = ThreadWait::letters_until(std::slice::from_ref(number), deadline);
            connection.wait(connection.lock()?, what, |state| {
                state.take_letters(*number, batch).then_some(())
            })?;
        }
        Ok(())
    }

    fn look_for_letter(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            let mut state = self.connection.lock()?;
            if !state.take_letters(self.number, &mut self.batch) {
                state.send()?;
                let (mut state, looked) = self.connection.glance(state);
                let found = state.take_letters(self.number, &mut self.batch);
                drop(state);
                if !found {
                    looked?;
                    let (mut state, armed) = self.connection.arm_for(self.number)?;
                    // Another thread may have read it in between and cleared its notification together with others.
                    if !state.take_letters(self.number, &mut self.batch) {
                        state.alive()?;
                        armed?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns a message that was read already, without reading more.
    pub(crate) fn take(&mut self) -> Result<Option<ServerMessage>> {
        self.look_at()?;
        Ok(self.pop())
    }

    fn pop(&mut self) -> Option<ServerMessage> {
        let letter = self.batch.pop_front()?;
        self.at_hand.store(self.batch.len(), Ordering::Relaxed);
        match letter {
            ServerMessage::Ended(_)
            | ServerMessage::Failed(_)
            | ServerMessage::Page { last: true, .. }
            | ServerMessage::Packed { last: true, .. } => {
                self.over = true;
                self.connection.finished(self.number);
            }
            _ => {}
        }
        Some(letter)
    }

    /// Ends the stream after an error, unless only the wait has failed. Does not wait for the server's last message.
    pub(crate) fn fuse<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome
            && !matches!(error.code(), Code::Timeout | Code::Interrupted)
        {
            self.has_failed = true;
            drop(self.begin_stop());
        }
        outcome
    }

    /// Returns whether an error has ended it.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Sends a request that is part of the conversation and has no answer of its own.
    pub(crate) fn say(&self, request: &Request<'_>) -> Result<()> {
        let mut state = self.connection.lock()?;
        let number = state.mail.next(0);
        state.append(number, request)
    }

    /// Ends it, gives back deliveries that were not taken, and blocks until the server's last message.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.begin_stop()?.wait()
    }

    /// As [`Self::stop`], without waiting: the result receives the server's last message.
    pub(crate) fn begin_stop(&mut self) -> Result<Pending<()>> {
        let batch = std::mem::take(&mut self.batch);
        self.at_hand.store(0, Ordering::Relaxed);
        let is_over = std::mem::replace(&mut self.over, true);
        let begun = if is_over {
            None
        } else {
            self.connection.begin_stop(self.number, batch)?
        };
        Ok(begun.unwrap_or_else(|| Pending::known(&self.connection, Ok(()))))
    }
}

impl Drop for ServerStream {
    fn drop(&mut self) {
        // Without a server there is nothing to end.
        let _ = self.begin_stop().map(|stop| end_by(&self.connection, stop));
    }
}
