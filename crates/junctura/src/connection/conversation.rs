//! Conversations over a connection: a request with one answer, or with a stream of answers until one side ends it.

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
    /// Sends a request and blocks until its one answer arrives.
    pub(crate) fn call(&self, request: &Request<'_>) -> Result<ServerMessage> {
        let (mut state, number, letter) = self.open(request)?;
        state.mail.close(number);
        Ok(letter)
    }

    /// Sends a request, waits for the first message, and keeps the lock; `stop` is how to cancel it while it waits.
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

    /// Requests, within an open conversation, whatever more the server has; the answer arrives after that. Does not
    /// block.
    pub(crate) fn ask_within(&self, conversation: u64) -> Result<()> {
        let mut state = self.lock()?;
        let number = state.mail.next(conversation);
        state.append(number, &Request::Sync)?;
        state.send().map(|_| ())
    }

    /// Begins a conversation without waiting.
    pub(crate) fn post(&self, talk: ExchangeKind, request: &Request<'_>) -> Result<u64> {
        let (mut state, number) = self.ask(talk, request)?;
        state.send()?;
        Ok(number)
    }

    /// Begins a conversation whose request is sent with the next one.
    pub(crate) fn ask(&self, talk: ExchangeKind, request: &Request<'_>) -> Result<(Guard<'_>, u64)> {
        let mut state = self.lock()?;
        let number = state.mail.open(talk)?;
        if let Err(error) = state.append(number, request) {
            state.mail.close(number);
            return Err(error);
        }
        Ok((state, number))
    }

    /// Cancels a request whose answer is no longer wanted.
    pub(crate) fn give_up(&self, number: u64, stop: StreamStop) {
        if let Ok(mut state) = self.lock() {
            state.abandon_now(number, stop);
            state.rouse(number);
            drop(self.wake_tasks(state));
        }
    }

    /// Closes a conversation after the server's last message.
    pub(crate) fn finished(&self, number: u64) {
        if let Ok(mut state) = self.lock() {
            state.mail.close(number);
            state.rouse(number);
            // Sends releases that were delayed for a reader that does not return.
            let _ = state.send();
            drop(self.wake_tasks(state));
        }
    }

    /// Ends a conversation and gives back deliveries that were not read; the result receives the server's last message.
    /// `None`: it has arrived.
    pub(crate) fn begin_stop(
        self: &Arc<Self>,
        number: u64,
        unread: VecDeque<ServerMessage>,
    ) -> Result<Option<Pending<()>>> {
        let mut state = self.lock()?;
        let (letters, goes_on) = state.mail.abandon(number);
        let stop = match state.stay_in_process().and_then(|()| state.alive()) {
            // The end is sent first: otherwise objects that are given back would be redelivered here.
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

    /// Sends all batched messages, and blocks until the socket has accepted them.
    pub(crate) fn flush(&self) -> Result<()> {
        self.push(self.lock()?, None).1.map(drop)
    }

    /// Gives an object back; `more`: its reader has more messages available and will return soon.
    ///
    /// With `more`, releases are batched; otherwise the release is sent at once, because this client's next request may
    /// be late.
    pub(crate) fn release(&self, holding: ReleasedHolding, body: Vec<u8>, more: bool) {
        let Ok(mut state) = self.lock() else { return };
        state.release(holding, body);
        if !more || state.is_release_due() {
            // If the socket is full, it is sent with the next request.
            let _ = state.send();
        }
        self.settle(&mut state);
    }

    /// Closes gracefully: sends the outbox, then rejects all calls. While objects are held the server receives only
    /// their releases, so their memory stays unchanged.
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

    /// Ends the connection of a closed pool when no object is held any more.
    fn settle(&self, state: &mut ConnectionState) {
        if state.leave_if_done() {
            self.socket.close();
        }
    }
}

/// Returns the error for an answer that does not match the request.
pub(crate) fn unexpected(what: &str) -> Error {
    Error::new(Code::Protocol, "answer", format!("unexpected: {what}"))
}
