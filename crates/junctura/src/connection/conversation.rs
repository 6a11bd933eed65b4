//! Questions and answers over a connection: one answer, or a stream of them until one side ends it.

use std::collections::VecDeque;
use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use junctura_wire::Request;
use junctura_wire::fixed::ReleasedHolding;

use super::{Guard, PoolConnection, ThreadWait};
use crate::connection::in_flight::{ExchangeKind, ServerMessage};
use crate::connection::state::{ConnectionState, StreamStop};
use crate::pending::{self, Pending};

impl PoolConnection {
    /// Sends a request and waits for its one answer.
    pub(crate) fn call(&self, request: &Request<'_>) -> Result<ServerMessage> {
        let (mut state, number, letter) = self.open(request)?;
        state.mail.close(number);
        Ok(letter)
    }

    /// Sends a request, waits for the first letter, and keeps the lock; `stop` is how to give it up while it waits.
    fn open(&self, request: &Request<'_>) -> Result<(Guard<'_>, u64, ServerMessage)> {
        let (state, number) = self.ask(ExchangeKind::Once, request)?;
        let (mut state, letter) = self.wait_keeping(state, ThreadWait::letters(&number), |state| {
            state.mail.get(number)?.take()
        });
        match letter {
            Ok(Some(ServerMessage::Failed(error) | ServerMessage::Ended(error))) => {
                state.mail.close(number);
                Err(error)
            }
            Ok(Some(letter)) => Ok((state, number, letter)),
            Ok(None) => {
                state.abandon_now(number, StreamStop::Cancel);
                Err(unexpected("no answer"))
            }
            Err(error) => {
                state.abandon_now(number, StreamStop::Cancel);
                Err(error)
            }
        }
    }

    /// Asks, within a conversation that goes on, what it has more; the answer comes behind that. Waits for nothing.
    pub(crate) fn ask_within(&self, conversation: u64) -> Result<()> {
        let mut state = self.lock()?;
        let number = state.mail.next(conversation);
        state.append(number, &Request::Sync)?;
        state.send().map(|_| ())
    }

    /// Begins a conversation, and waits for nothing.
    pub(crate) fn post(&self, talk: ExchangeKind, request: &Request<'_>) -> Result<u64> {
        let (mut state, number) = self.ask(talk, request)?;
        state.send()?;
        Ok(number)
    }

    fn ask(&self, talk: ExchangeKind, request: &Request<'_>) -> Result<(Guard<'_>, u64)> {
        let mut state = self.lock()?;
        let number = state.mail.open(talk)?;
        if let Err(error) = state.append(number, request) {
            state.mail.close(number);
            return Err(error);
        }
        Ok((state, number))
    }

    /// Nobody wants the answer any more.
    pub(crate) fn give_up(&self, number: u64, stop: StreamStop) {
        if let Ok(mut state) = self.lock() {
            state.abandon_now(number, stop);
            state.rouse(number);
            drop(self.wake_tasks(state));
        }
    }

    /// The server has said its last word in a conversation.
    pub(crate) fn finished(&self, number: u64) {
        if let Ok(mut state) = self.lock() {
            state.mail.close(number);
            state.rouse(number);
            // Releases that waited for their reader to come back wait in vain.
            let _ = state.send();
            drop(self.wake_tasks(state));
        }
    }

    /// Ends a conversation and gives back what came and was not read; the server's last word comes to what this returns.
    /// `None`: the server has said it.
    pub(crate) fn begin_stop(
        self: &Arc<Self>,
        number: u64,
        unread: VecDeque<ServerMessage>,
    ) -> Result<Option<Pending<()>>> {
        let mut state = self.lock()?;
        let (letters, goes_on) = state.mail.abandon(number);
        let stop = match state.stay_in_process().and_then(|()| state.alive()) {
            // The end goes first: what is given back would be sent here again.
            Ok(()) if goes_on => state.mail.open_stop(number).and_then(|stop| {
                state.append(stop, &Request::Stop(number))?;
                Ok(Some(stop))
            }),
            alive => alive.map(|()| None),
        };
        state.discard(unread.into_iter().chain(letters));
        state.rouse(number);
        let sent = state.send();
        if stop.is_err() {
            self.settle(&mut state);
        }
        drop(self.wake_tasks(state));
        let stop = stop.map(|stop| stop.map(|stop| pending::ended(self, stop)));
        sent.and(stop)
    }

    /// Sends what is batched, and waits until it has gone.
    pub(crate) fn flush(&self) -> Result<()> {
        self.push(self.lock()?, None).1.map(drop)
    }

    /// Gives an object back; `more` says that its reader has others at hand already and will be back soon.
    ///
    /// Then releases gather, to go together; else it goes at once, since nobody knows when this client says something again.
    pub(crate) fn release(&self, holding: ReleasedHolding, body: Vec<u8>, more: bool) {
        let Ok(mut state) = self.lock() else { return };
        state.release(holding, body);
        if !more || state.is_release_due() {
            // Where the socket is full, it goes with the next request.
            let _ = state.send();
        }
        self.settle(&mut state);
    }

    /// Leaves in good order: what is to go goes, then nothing works any more. While objects are held the server is told
    /// nothing but their release: what lies in their memory stays as it is.
    pub(crate) fn close(&self) {
        let Ok(state) = self.lock() else { return };
        let (mut state, _sent) = self.push(state, None);
        if state.alive().is_err() {
            return;
        }
        state.close(Error::new(
            Code::Closed,
            self.greeting.server.as_str(),
            "the pool was closed",
        ));
        self.settle(&mut state);
        drop(self.wake_tasks(state));
    }

    /// Ends the connection of a closed pool once nothing is held any more.
    fn settle(&self, state: &mut ConnectionState) {
        if state.leave_if_done() {
            self.socket.close();
        }
    }
}

/// An answer that does not belong to the question.
pub(crate) fn unexpected(what: &str) -> Error {
    Error::new(Code::Protocol, "answer", format!("unexpected: {what}"))
}
