//! A conversation in which the server goes on talking: what follows, lists, subscriptions and requirements share.
//!
//! Letters are fetched in batches, so that most of them cost no lock. Whoever drops a stream waits for the server's last
//! word on it (one round trip): after that nothing of it is on its way here, and nothing stays held.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use junctura_model::Result;
use junctura_wire::Request;

use crate::awaiting::Awaiting;
use crate::connection::{Connection, Wait};
use crate::mail::Letter;

#[derive(Debug)]
pub(crate) struct Stream {
    connection: Arc<Connection>,
    number: u64,
    batch: VecDeque<Letter>,
    over: bool,
}

impl Stream {
    /// Asks, and waits for the beginning; also gives the sequence number at which it begins.
    pub(crate) fn begin(connection: &Arc<Connection>, request: &Request<'_>) -> Result<(Self, u64)> {
        let (number, sequence) = connection.begin(request)?;
        let connection = Arc::clone(connection);
        Ok((
            Self {
                connection,
                number,
                batch: VecDeque::new(),
                over: false,
            },
            sequence,
        ))
    }

    /// The number by which the server knows it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How many letters are at hand.
    pub(crate) fn at_hand(&self) -> usize {
        self.batch.len()
    }

    /// What to wait for, for who does not want to wait for this alone.
    pub(crate) fn awaiting(&self) -> Awaiting {
        if self.over || !self.batch.is_empty() {
            Awaiting::ready()
        } else {
            Awaiting::letters(&self.connection, self.number)
        }
    }

    /// Whether the server, or the user, has ended it.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Another request has ended it: the server says nothing more.
    pub(crate) fn was_ended(&mut self) {
        if !self.over {
            self.over = true;
            self.batch.clear();
            self.connection.finished(self.number);
        }
    }

    /// The next letter; `None` when the time is over.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Letter>> {
        if self.batch.is_empty() {
            let Self {
                connection,
                number,
                batch,
                ..
            } = self;
            let what = Wait::letters_until(std::slice::from_ref(number), deadline);
            connection.wait(connection.lock()?, what, |state| {
                state.take_letters(*number, batch).then_some(())
            })?;
        }
        Ok(self.pop())
    }

    /// A letter that has come.
    pub(crate) fn try_next(&mut self) -> Result<Option<Letter>> {
        if self.batch.is_empty() {
            let mut state = self.connection.lock()?;
            if !state.take_letters(self.number, &mut self.batch) {
                state.send()?;
                let (mut state, looked) = self.connection.glance(state);
                let found = state.take_letters(self.number, &mut self.batch);
                drop(state);
                if !found {
                    looked?;
                    let (state, armed) = self.connection.arm(self.connection.lock()?);
                    state.alive()?;
                    armed?;
                }
            }
        }
        Ok(self.pop())
    }

    fn pop(&mut self) -> Option<Letter> {
        let letter = self.batch.pop_front()?;
        match letter {
            Letter::Ended(_) | Letter::Failed(_) | Letter::Page { last: true, .. } => {
                self.over = true;
                self.connection.finished(self.number);
            }
            _ => {}
        }
        Some(letter)
    }

    /// Sends a request that is part of the conversation and has no answer of its own.
    pub(crate) fn say(&self, request: &Request<'_>) -> Result<()> {
        let mut state = self.connection.lock()?;
        let number = state.mail.next(0);
        state.append(number, request)
    }

    /// Ends it and gives back what nobody has taken.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.connection.stop(self.number, batch)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Without a server there is nothing to end.
        let _ = self.stop();
    }
}
