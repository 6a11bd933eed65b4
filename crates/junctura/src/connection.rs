//! One connection, shared by all threads of a process without a thread of its own.
//!
//! Whoever has to wait and finds nobody reading becomes the **reader**: it waits on the socket, sorts what comes into the
//! mailboxes of those who asked, wakes them, and hands the reading on when its own answer is there. The others sleep until
//! they are woken. Requests gather in the outbox; they go when there are many, or before anybody waits. When the socket
//! takes no more, the writer waits for room and reads meanwhile, so two full sockets never wait for each other.
//!
//! There is one lock. It is held for moments, never while something waits. A forked child must not say a word on its
//! parent's connection: every send and every wait looks at the process first.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use junctura_model::version::Version;
use junctura_model::{Code, Error, Result, Schema};
use junctura_transport::{Alarm, Carrier, Inbox, Incoming, Interest, LocalCarrier, Received, UnixCarrier, wait};
use junctura_wire::fixed::Holding;
use junctura_wire::{Request, body};

use crate::handshake::{Greeting, Home};
use crate::mail::{Letter, Talk};
use crate::segments::Segments;
use crate::state::{Sleeper, State, Stop, forked};
use crate::target::Target;

/// Offers gather up to about this many bytes before they are sent.
const BATCH_BYTES: usize = 24 << 10;
/// An offer goes at once when nothing was sent for this long.
const BATCH_AGE: Duration = Duration::from_micros(50);
/// With an interrupt hook, no wait lasts longer before the hook is asked: a signal may have come just before the wait.
const HOOK_ROUND: Duration = Duration::from_millis(200);

/// Asked when a wait is interrupted; an error ends the wait.
pub(crate) type Hook = Arc<dyn Fn() -> Result<()> + Send + Sync>;

pub(crate) type Guard<'a> = MutexGuard<'a, State>;

pub(crate) struct Connection {
    pub(crate) greeting: Greeting,
    pub(crate) offer_timeout: Option<Duration>,
    hook: Option<Hook>,
    pid: u32,
    state: Mutex<State>,
    /// Only the reader touches it.
    reader: Mutex<Reader>,
    socket: UnixCarrier,
    /// An embedded server lives as long as anybody is connected from here.
    _home: Arc<Home>,
}

struct Reader {
    incoming: Incoming,
    inbox: Inbox,
    alarm: Alarm,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// Letters of this conversation.
    pub(crate) request: u64,
    /// Slots too.
    pub(crate) for_slots: bool,
    /// Room for what is to go.
    pub(crate) for_room: bool,
    /// Until then; `None`: for ever.
    pub(crate) deadline: Option<Instant>,
}

impl Wait {
    /// For room for what is to go.
    const ROOM: Self = Self {
        request: 0,
        for_slots: false,
        for_room: true,
        deadline: None,
    };

    /// For letters of this conversation, as long as it takes.
    pub(crate) fn letters(request: u64) -> Self {
        Self {
            request,
            for_slots: false,
            for_room: false,
            deadline: None,
        }
    }

    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl Connection {
    /// Takes over a connection whose server has said welcome; `inbox` holds what came after that.
    ///
    /// # Errors
    /// As [`Alarm::new`].
    pub(crate) fn new(
        carrier: LocalCarrier,
        inbox: Inbox,
        greeting: Greeting,
        segments: Segments,
        offer_timeout: Option<Duration>,
        hook: Option<Hook>,
        home: Arc<Home>,
    ) -> Result<Self> {
        let socket = carrier.socket().clone();
        let (incoming, outgoing) = carrier.split();
        Ok(Self {
            greeting,
            offer_timeout,
            hook,
            pid: std::process::id(),
            state: Mutex::new(State::new(outgoing, segments)),
            reader: Mutex::new(Reader {
                incoming,
                inbox,
                alarm: Alarm::new()?,
            }),
            socket,
            _home: home,
        })
    }

    /// A schema's number that the server said just now.
    pub(crate) fn known_schema(&self, number: u16) -> Result<&Arc<Schema>> {
        let schema = self.greeting.schemas.get(usize::from(number));
        schema.ok_or_else(|| {
            Error::new(
                Code::Protocol,
                format!("schema {number}"),
                "an object has it, but the pool does not",
            )
        })
    }

    pub(crate) fn version(&self, sequence: u64) -> Version {
        Version {
            incarnation: self.greeting.incarnation,
            sequence,
        }
    }

    /// As the server is asked.
    pub(crate) fn resolve<'a>(&self, target: &'a Target<'_>) -> Result<body::Target<'a>> {
        target.resolve(&self.greeting.schemas, self.greeting.default_schema)
    }

    /// Whether this is a forked child of the process that connected.
    pub(crate) fn is_inherited(&self) -> bool {
        self.pid != std::process::id()
    }

    /// The schema of this number; numbers were checked when they came.
    pub(crate) fn schema(&self, number: u16) -> &Arc<Schema> {
        &self.greeting.schemas[usize::from(number)]
    }

    /// # Errors
    /// `Closed` in a forked child, if another thread of the parent held the lock when it forked.
    pub(crate) fn lock(&self) -> Result<Guard<'_>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if self.is_inherited() => Err(forked()),
            Err(TryLockError::WouldBlock) => Ok(self.relock()),
        }
    }

    fn relock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `take` finds what it looks for; `None`: the time is over. What is to go goes first.
    ///
    /// # Errors
    /// Whatever ended the connection, or what the interrupt hook said.
    pub(crate) fn wait<T>(
        &self,
        state: Guard<'_>,
        what: Wait,
        take: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        let (state, taken) = self.wait_keeping(state, what, take);
        drop(state);
        taken
    }

    /// As [`Self::wait`], and keeps the lock.
    pub(crate) fn wait_keeping<'a, T>(
        &'a self,
        mut state: Guard<'a>,
        what: Wait,
        mut take: impl FnMut(&mut State) -> Option<T>,
    ) -> (Guard<'a>, Result<Option<T>>) {
        let taken = loop {
            if let Some(taken) = take(&mut state) {
                break Ok(Some(taken));
            }
            if let Err(error) = state.stay_in_process().and_then(|()| state.alive()) {
                break Err(error);
            }
            let (next, sent) = self.push(state);
            state = next;
            if let Err(error) = sent {
                break Err(error);
            }
            if let Some(taken) = take(&mut state) {
                break Ok(Some(taken));
            }
            if what.is_over() {
                break Ok(None);
            }
            let (next, done) = if state.led {
                self.sleep(state, what)
            } else {
                self.read(state, Interest::READ, what.deadline)
            };
            state = next;
            if let Err(error) = done {
                break Err(error);
            }
        };
        // Somebody else may have to go on reading.
        if !state.led
            && let Some(sleeper) = state.sleepers.first()
        {
            sleeper.bell.notify_one();
        }
        (state, taken)
    }

    /// Sends everything that is to go; waits, and reads, while the socket is full.
    pub(crate) fn push<'a>(&'a self, mut state: Guard<'a>) -> (Guard<'a>, Result<()>) {
        loop {
            match state.send() {
                Ok(true) => return (state, Ok(())),
                Ok(false) => {}
                Err(error) => return (state, Err(error)),
            }
            let (next, done) = if state.led && state.waits_for_socket() {
                drop(state);
                let room = wait(self.socket.as_fd(), Interest::WRITE).map(|_| ());
                let room = room.or_else(|error| self.interrupted(error));
                (self.relock(), room)
            } else if state.led {
                self.sleep(state, Wait::ROOM)
            } else {
                self.read(state, Interest::BOTH, None)
            };
            state = next;
            if let Err(error) = done {
                return (state, Err(error));
            }
        }
    }

    /// Sends what can go at once, if it is time to.
    pub(crate) fn push_when_due(&self, mut state: Guard<'_>) -> Result<()> {
        if state.unsent() >= BATCH_BYTES {
            let (_state, sent) = self.push(state);
            return sent;
        }
        // The first of a batch, and then every eighth, looks at the clock: that costs as much as a small copy.
        if state.gathered.is_multiple_of(8) && state.sent_at.elapsed() >= BATCH_AGE {
            state.send()?;
        } else {
            state.gathered += 1;
        }
        Ok(())
    }

    /// Takes what has come, without waiting.
    pub(crate) fn glance<'a>(&'a self, mut state: Guard<'a>) -> (Guard<'a>, Result<()>) {
        if state.led {
            return (state, Ok(()));
        }
        if let Err(error) = state.stay_in_process() {
            return (state, Err(error));
        }
        state.led = true;
        drop(state);
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let Reader { incoming, inbox, .. } = &mut *reader;
        let came = incoming.glance(inbox);
        self.sort_out(came, inbox)
    }

    /// Waits for the socket as the connection's reader and sorts what comes.
    fn read<'a>(
        &'a self,
        mut state: Guard<'a>,
        interest: Interest,
        deadline: Option<Instant>,
    ) -> (Guard<'a>, Result<()>) {
        state.led = true;
        drop(state);
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let Reader { incoming, inbox, alarm } = &mut *reader;
        let came = match incoming.wait(inbox, interest, alarm, self.round(deadline)) {
            Ok(ready) if ready.readable => incoming.receive(inbox),
            Ok(ready) if !ready.is_none() => Ok(Received::Nothing),
            Err(error) if error.code() != Code::Interrupted => Err(error),
            // The time of the round is over, or a signal came: the hook is asked, once, without the lock.
            Ok(_) | Err(_) => {
                let asked = self.ask_hook();
                let mut state = self.relock();
                state.led = false;
                return (state, asked);
            }
        };
        self.sort_out(came, inbox)
    }

    /// Sorts what has come, and ends to be the reader.
    fn sort_out(&self, came: Result<Received>, inbox: &mut Inbox) -> (Guard<'_>, Result<()>) {
        let mut state = self.relock();
        state.led = false;
        let sorted = came.and_then(|came| {
            self.dispatch(&mut state, inbox)?;
            state.return_surplus()?;
            if came == Received::End {
                inbox.finish()?;
                let cause = "the server closed the connection";
                let told = state.remark.as_ref().map(ToString::to_string);
                let cause = told.map_or_else(|| cause.to_owned(), |told| format!("{cause}; it last said: {told}"));
                return Err(Error::new(Code::Disconnected, self.greeting.server(), cause));
            }
            Ok(())
        });
        if let Err(error) = sorted {
            state.end(error);
        }
        state.wake_concerned();
        (state, Ok(()))
    }

    /// Sleeps until the reader has something for this thread, or hands the reading on.
    fn sleep<'a>(&'a self, mut state: Guard<'a>, what: Wait) -> (Guard<'a>, Result<()>) {
        let bell = Arc::new(Condvar::new());
        let sleeper = Sleeper {
            request: what.request,
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

    /// Until when to wait in one piece.
    fn round(&self, deadline: Option<Instant>) -> Option<Instant> {
        match &self.hook {
            None => deadline,
            Some(_) => {
                let round = Instant::now() + HOOK_ROUND;
                Some(deadline.map_or(round, |deadline| deadline.min(round)))
            }
        }
    }

    /// A signal came while waiting: the hook says whether to go on.
    fn interrupted(&self, error: Error) -> Result<()> {
        if error.code() == Code::Interrupted {
            self.ask_hook()
        } else {
            Err(error)
        }
    }

    fn ask_hook(&self) -> Result<()> {
        self.hook.as_ref().map_or(Ok(()), |hook| hook())
    }

    /// Sends a request and waits for its one answer.
    pub(crate) fn call(&self, request: &Request<'_>) -> Result<Letter> {
        let mut state = self.lock()?;
        let number = state.mail.open(Talk::Once)?;
        if let Err(error) = state.append(number, request) {
            state.mail.close(number);
            return Err(error);
        }
        let (mut state, letter) =
            self.wait_keeping(state, Wait::letters(number), |state| state.mail.get(number)?.take());
        match letter {
            Ok(Some(Letter::Failed(error))) => {
                state.mail.close(number);
                Err(error)
            }
            Ok(Some(letter)) => {
                state.mail.close(number);
                Ok(letter)
            }
            Ok(None) => Err(unexpected("no answer")),
            Err(error) => {
                state.abandon_now(number, Stop::Cancel);
                Err(error)
            }
        }
    }

    /// Begins a conversation that goes on until one side ends it.
    pub(crate) fn begin(&self, request: &Request<'_>) -> Result<(u64, u64)> {
        let mut state = self.lock()?;
        let number = state.mail.open(Talk::Stream)?;
        if let Err(error) = state.append(number, request) {
            state.mail.close(number);
            return Err(error);
        }
        let (mut state, letter) =
            self.wait_keeping(state, Wait::letters(number), |state| state.mail.get(number)?.take());
        match letter {
            Ok(Some(Letter::Began(sequence))) => Ok((number, sequence)),
            Ok(Some(Letter::Failed(error) | Letter::Ended(error))) => {
                state.mail.close(number);
                Err(error)
            }
            Ok(_) => {
                state.abandon_now(number, Stop::End);
                Err(unexpected("no beginning"))
            }
            Err(error) => {
                state.abandon_now(number, Stop::End);
                Err(error)
            }
        }
    }

    /// The server has said its last word in a conversation.
    pub(crate) fn finished(&self, number: u64) {
        if let Ok(mut state) = self.lock() {
            state.mail.close(number);
        }
    }

    /// Ends a conversation, gives back what came and was not read, and waits for the server's last word.
    pub(crate) fn stop(&self, number: u64, unread: VecDeque<Letter>) -> Result<()> {
        let mut state = self.lock()?;
        let (letters, goes_on) = state.mail.abandon(number);
        state.discard(unread.into_iter().chain(letters));
        if let Err(error) = state.alive() {
            self.settle(&mut state);
            return Err(error);
        }
        if !goes_on {
            return state.send().map(|_| ());
        }
        let stop = state.mail.open_stop(number)?;
        state.append(stop, &Request::Stop(number))?;
        let (mut state, letter) = self.wait_keeping(state, Wait::letters(stop), |state| state.mail.get(stop)?.take());
        match letter {
            Ok(_) => state.mail.close(stop),
            Err(_) => _ = state.mail.abandon(stop),
        }
        // What came until then was given back: that goes now.
        let sent = state.send().map(|_| ());
        letter.map(|_| ()).and(sent)
    }

    /// Sends what is batched, and waits until it has gone.
    pub(crate) fn flush(&self) -> Result<()> {
        self.push(self.lock()?).1
    }

    /// Gives an object back; `more` says that its reader has others at hand already and will be back soon.
    ///
    /// Then releases gather, to go together; else it goes at once, since nobody knows when this client says something again.
    pub(crate) fn release(&self, holding: Holding, body: Vec<u8>, more: bool) {
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
        let (mut state, _sent) = self.push(state);
        if state.alive().is_err() {
            return;
        }
        state.close(Error::new(Code::Closed, self.greeting.server(), "the pool was closed"));
        self.settle(&mut state);
    }

    /// Ends the connection of a closed pool once nothing is held any more.
    fn settle(&self, state: &mut State) {
        if state.leave_if_done() {
            self.socket.close();
        }
    }
}

/// An answer that does not belong to the question.
pub(crate) fn unexpected(what: &str) -> Error {
    Error::new(Code::Protocol, "answer", format!("unexpected: {what}"))
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Connection(client {} of {})",
            self.greeting.client,
            self.greeting.server()
        )
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // In a forked child the descriptor is closed and nothing is said: the parent goes on.
        if self.is_inherited() {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.leave();
    }
}
