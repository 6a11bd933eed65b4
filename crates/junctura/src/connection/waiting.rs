//! Waiting on a connection that threads share: which thread reads, which sleep, and what is sent before.

use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_transport::{Carrier, ConnectionWatch, Inbox, IncomingSide, PollInterest, ReceiveResult, WakeTimer};

use super::{ConnectionReader, Guard, PoolConnection};
use crate::connection::state::{ConnectionState, SleepingThread};

/// Offers are batched up to about this many bytes.
const BATCH_BYTES: usize = 24 << 10;
/// An offer is sent at once if nothing was sent for this long.
const BATCH_AGE: Duration = Duration::from_micros(50);
/// With an interrupt hook, no wait lasts longer before the hook is called: a signal may have arrived just before the
/// wait.
const HOOK_ROUND: Duration = Duration::from_millis(200);

/// The events for which a thread waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadWait<'a> {
    /// Messages in these conversations.
    pub(crate) requests: &'a [u64],
    /// Whether slots count.
    pub(crate) for_slots: bool,
    /// Whether space for the outbox counts.
    pub(crate) for_room: bool,
    /// The deadline; `None`: none.
    pub(crate) deadline: Option<Instant>,
}

impl<'a> ThreadWait<'a> {
    /// Waits for space for the outbox.
    fn room_until(deadline: Option<Instant>) -> Self {
        Self {
            requests: &[],
            for_slots: false,
            for_room: true,
            deadline,
        }
    }

    /// Waits for messages in this conversation, without limit.
    pub(crate) fn letters(request: &'a u64) -> Self {
        Self::letters_until(std::slice::from_ref(request), None)
    }

    /// Waits for messages in any of these conversations.
    pub(crate) fn letters_until(requests: &'a [u64], deadline: Option<Instant>) -> Self {
        Self {
            requests,
            for_slots: false,
            for_room: false,
            deadline,
        }
    }

    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// If a waker panics, another thread becomes the reader.
struct OthersRead<'c>(&'c PoolConnection);

impl Drop for OthersRead<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.relock().hand_on();
        }
    }
}

impl PoolConnection {
    /// Waits until `take` returns a value; `None` at the deadline. Sends the outbox first.
    ///
    /// # Errors
    /// The error that ended the connection, or that of the interrupt hook.
    pub(crate) fn wait<T>(
        &self,
        state: Guard<'_>,
        what: ThreadWait<'_>,
        take: impl FnMut(&mut ConnectionState) -> Option<T>,
    ) -> Result<Option<T>> {
        let (state, taken) = self.wait_keeping(state, what, take);
        drop(state);
        taken
    }

    /// As [`Self::wait`], and keeps the lock.
    pub(crate) fn wait_keeping<'a, T>(
        &'a self,
        mut state: Guard<'a>,
        what: ThreadWait<'_>,
        mut take: impl FnMut(&mut ConnectionState) -> Option<T>,
    ) -> (Guard<'a>, Result<Option<T>>) {
        let taken = loop {
            if let Some(taken) = take(&mut state) {
                break Ok(Some(taken));
            }
            if let Err(error) = state.stay_in_process().and_then(|()| state.alive()) {
                break Err(error);
            }
            let (next, sent) = self.push(state, what.deadline);
            state = next;
            if let Err(error) = sent {
                break Err(error);
            }
            if let Some(taken) = take(&mut state) {
                break Ok(Some(taken));
            }
            if what.is_over() {
                // Messages that have arrived by now are in time, and so is the end of the connection.
                let (next, looked) = self.look(state);
                state = next;
                break looked.and_then(|()| match take(&mut state) {
                    None => state.alive().map(|()| None),
                    taken => Ok(taken),
                });
            }
            let (next, done) = if state.led {
                self.sleep(state, what)
            } else {
                self.read(state, PollInterest::READ, what)
            };
            state = next;
            if let Err(error) = done {
                break Err(error);
            }
        };
        state.hand_on();
        (state, taken)
    }

    /// Sends the whole outbox; waits, and reads, while the socket is full. False: not everything was sent by the
    /// deadline.
    pub(crate) fn push<'a>(&'a self, mut state: Guard<'a>, deadline: Option<Instant>) -> (Guard<'a>, Result<bool>) {
        let what = ThreadWait::room_until(deadline);
        loop {
            match state.send() {
                Ok(false) if !what.is_over() => {}
                sent => return (state, sent),
            }
            let (next, done) = if state.led && state.waits_for_socket() {
                drop(state);
                let room = self.wait_for_socket(deadline);
                (self.relock(), room)
            } else if state.led {
                self.sleep(state, what)
            } else {
                self.read(state, PollInterest::BOTH, what)
            };
            state = next;
            if let Err(error) = done {
                return (state, Err(error));
            }
        }
    }

    /// Waits for space in the socket, beside the reader.
    fn wait_for_socket(&self, deadline: Option<Instant>) -> Result<()> {
        match WakeTimer::new()?.wait(self.socket.as_fd(), PollInterest::WRITE, self.round(deadline)) {
            Ok(ready) if !ready.is_none() => Ok(()),
            Err(error) if error.code() != Code::Interrupted => Err(error),
            Ok(_) | Err(_) => self.ask_hook(),
        }
    }

    /// Sends as much as the socket accepts, if a send is due.
    pub(crate) fn push_when_due(&self, mut state: Guard<'_>) -> Result<()> {
        if state.unsent() >= BATCH_BYTES {
            let (_state, sent) = self.push(state, None);
            return sent.map(drop);
        }
        // The first offer of a batch, and then every eighth, reads the clock, which costs as much as a small copy.
        if state.gathered.is_multiple_of(8) && state.sent_at.elapsed() >= BATCH_AGE {
            state.send()?;
        } else {
            state.gathered += 1;
        }
        Ok(())
    }

    /// As [`Self::push_when_due`], for callers that must not block: the rest is sent later.
    #[cfg(feature = "async")]
    pub(crate) fn send_when_due(mut state: Guard<'_>) -> Result<()> {
        let is_old = state.gathered.is_multiple_of(8) && state.sent_at.elapsed() >= BATCH_AGE;
        if is_old || state.unsent() >= BATCH_BYTES {
            state.send()?;
        } else {
            state.gathered += 1;
        }
        Ok(())
    }

    /// Handles messages that have arrived, without waiting. With rings, it does not check for the end of the
    /// connection.
    pub(crate) fn glance<'a>(&'a self, state: Guard<'a>) -> (Guard<'a>, Result<()>) {
        self.take_in(state, IncomingSide::glance)
    }

    /// Handles messages that have arrived, without waiting, and checks for the end of the connection.
    fn look<'a>(&'a self, state: Guard<'a>) -> (Guard<'a>, Result<()>) {
        self.take_in(state, IncomingSide::receive)
    }

    /// Reads as the connection's reader, if there is none.
    fn take_in<'a>(
        &'a self,
        mut state: Guard<'a>,
        receive: impl FnOnce(&mut IncomingSide, &mut Inbox) -> Result<ReceiveResult>,
    ) -> (Guard<'a>, Result<()>) {
        if state.led {
            // The reader notifies this thread.
            return (state, Ok(()));
        }
        if let Err(error) = state.stay_in_process() {
            return (state, Err(error));
        }
        state.lead(&ThreadWait::letters_until(&[], None));
        drop(state);
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let ConnectionReader { incoming, inbox, .. } = &mut *reader;
        let came = receive(incoming, inbox);
        let (state, looked) = self.sort_out(came, inbox);
        drop(reader);
        let state = self.wake_tasks(state);
        state.hand_on();
        (state, looked)
    }

    /// Prepares a wait for the connection's descriptor in an event loop that has found nothing in this conversation
    /// (`None`: takes all messages): later messages make the descriptor readable, and so do messages that have arrived
    /// and are dispatched here, or were dispatched while the loop polled other conversations.
    pub(crate) fn arm<'a>(&'a self, mut state: Guard<'a>, asked: Option<u64>) -> (Guard<'a>, Result<()>) {
        let ConnectionState { watch, mail, .. } = &mut *state;
        let Some(watch) = watch else {
            // A caller that takes all messages must find the last ones before the end.
            return if asked.is_some() {
                self.look(state)
            } else {
                (state, Ok(()))
            };
        };
        if mail.asked(asked) {
            watch.calm();
        }
        // Also if nothing has arrived: the end of the connection makes the descriptor readable, and must be detected.
        self.take_in(state, |incoming, inbox| {
            let _nothing = incoming.arm();
            incoming.receive(inbox)
        })
    }

    /// Returns the descriptor that is readable when messages arrive; created by the first call.
    pub(crate) fn watch(&self) -> Result<Arc<ConnectionWatch>> {
        let mut state = self.lock()?;
        state.stay_in_process()?;
        if let Some(watch) = &state.watch {
            return Ok(Arc::clone(watch));
        }
        let watch = Arc::new(ConnectionWatch::new(
            self.socket.as_fd(),
            self.bell.as_ref().map(AsFd::as_fd),
        )?);
        // Reports messages that arrived earlier.
        watch.nudge();
        state.mail.watch();
        state.watch = Some(Arc::clone(&watch));
        Ok(watch)
    }

    /// Waits for the socket as the connection's reader and dispatches messages.
    fn read<'a>(
        &'a self,
        mut state: Guard<'a>,
        interest: PollInterest,
        what: ThreadWait<'_>,
    ) -> (Guard<'a>, Result<()>) {
        state.lead(&what);
        drop(state);
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let ConnectionReader { incoming, inbox, alarm } = &mut *reader;
        let came = match incoming.wait(inbox, interest, alarm, self.round(what.deadline)) {
            Ok(ready) if ready.readable => incoming.receive(inbox),
            Ok(ready) if !ready.is_none() => Ok(ReceiveResult::Nothing),
            Err(error) if error.code() != Code::Interrupted => Err(error),
            // The round has timed out, or a signal arrived: a thread that is no longer the reader calls the hook, once.
            // The hook may use the connection.
            Ok(_) | Err(_) => {
                drop(reader);
                let mut state = self.relock();
                state.led = false;
                state.nudge();
                drop(state);
                let asked = self.ask_hook();
                return (self.relock(), asked);
            }
        };
        let (state, sorted) = self.sort_out(came, inbox);
        drop(reader);
        let state = self.wake_tasks(state);
        // The event loop is not notified by the bell again until it has polled.
        state.nudge();
        (state, sorted)
    }

    /// Dispatches messages, and gives up the reader role.
    fn sort_out(&self, came: Result<ReceiveResult>, inbox: &mut Inbox) -> (Guard<'_>, Result<()>) {
        let mut state = self.relock();
        state.led = false;
        if came != Ok(ReceiveResult::Nothing) {
            state.nudge();
        }
        let sorted = came.and_then(|came| {
            self.dispatch(&mut state, inbox)?;
            state.return_surplus()?;
            if came == ReceiveResult::End {
                inbox.finish()?;
                let cause = "the server closed the connection";
                let told = state.remark.as_ref().map(ToString::to_string);
                let cause = told.map_or_else(|| cause.to_owned(), |told| format!("{cause}; its last message: {told}"));
                return Err(Error::new(Code::Disconnected, self.greeting.server.as_str(), cause));
            }
            Ok(())
        });
        if let Err(error) = sorted {
            let ended = state.farewell.take().unwrap_or(error);
            state.end(ended);
        }
        state.wake_concerned();
        (state, Ok(()))
    }

    /// Wakes the tasks for which messages were read. A waker may run arbitrary code, so no lock is held.
    pub(crate) fn wake_tasks<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        if state.mail.woken.is_empty() {
            return state;
        }
        let woken = std::mem::take(&mut state.mail.woken);
        drop(state);
        let _others = OthersRead(self);
        // In a forked child the tasks belong to the parent.
        if !self.is_inherited() {
            woken.into_iter().for_each(Waker::wake);
        }
        self.relock()
    }

    /// Sleeps until the reader has a message for this thread, or passes the reader role on.
    fn sleep<'a>(&'a self, mut state: Guard<'a>, what: ThreadWait<'_>) -> (Guard<'a>, Result<()>) {
        let bell = Arc::new(Condvar::new());
        let sleeper = SleepingThread {
            requests: what.requests.into(),
            for_slots: what.for_slots,
            for_room: what.for_room,
            bell: Arc::clone(&bell),
        };
        state.sleepers.push(sleeper);
        let mut state = match self.round(what.deadline) {
            None => bell.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let time = until.saturating_duration_since(Instant::now());
                bell.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.sleepers.retain(|sleeper| !Arc::ptr_eq(&sleeper.bell, &bell));
        if self.hook.is_none() {
            return (state, Ok(()));
        }
        drop(state);
        let asked = self.ask_hook();
        (self.relock(), asked)
    }

    /// Returns the end of one round of waiting.
    pub(crate) fn round(&self, deadline: Option<Instant>) -> Option<Instant> {
        if self.hook.is_none() {
            return deadline;
        }
        let round = Instant::now() + HOOK_ROUND;
        Some(deadline.map_or(round, |deadline| deadline.min(round)))
    }

    pub(crate) fn ask_hook(&self) -> Result<()> {
        self.hook.as_ref().map_or(Ok(()), |hook| hook())
    }
}
