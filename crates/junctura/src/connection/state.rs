//! What the threads that share a connection share, under its one lock: what is to go, whose answers are awaited, which
//! segments are mapped. Everything here is short: bytes are appended and letters are sorted, nothing waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};

use junctura_model::{Code, Consumers, Error, Result};
use junctura_transport::{ConnectionWatch, Outbox, OutgoingSide, SendResult};
use junctura_wire::Request;
use junctura_wire::fixed::{self, ReleasedHolding};

use crate::connection::in_flight::{RequestTable, ServerMessage, SlotId};
use crate::connection::segments::SegmentMaps;
use crate::connection::{ThreadWait, WaitingTasks};
use crate::object::ArrivedObject;

/// Releases that are sent at the latest when there are this many.
const RELEASES_MAX: usize = 64;
/// A release goes at once when nothing was sent for this long.
const RELEASES_AGE: Duration = Duration::from_millis(1);
/// Buffers of delivered objects that are kept for the next ones.
const SPARES_MAX: usize = 1024;
/// A leased segment in which nothing lay for so long may go.
const SURPLUS_AGE: Duration = Duration::from_secs(10);
/// A buffer larger than this is not kept.
const SPARE_BYTES_MAX: usize = 64 << 10;

/// A thread that waits while another one reads.
#[derive(Debug)]
pub(crate) struct SleepingThread {
    /// The conversations it waits for.
    pub(crate) requests: Box<[u64]>,
    /// It also waits for slots.
    pub(crate) for_slots: bool,
    /// It waits until there is room for what it has to say.
    pub(crate) for_room: bool,
    pub(crate) bell: Arc<Condvar>,
}

/// What the thread that reads waits for.
#[derive(Debug, Default)]
struct ReaderWaits {
    requests: Vec<u64>,
    for_slots: bool,
}

/// Whoever waits for memory takes it over, and leaves it behind if it is still not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandingLease {
    pub(crate) number: u64,
    pub(crate) slot_bytes: u64,
    /// For a member of a bundle.
    pub(crate) staged: bool,
}

#[derive(Debug)]
pub(crate) struct ConnectionState {
    /// The process that the connection belongs to.
    pid: u32,
    outgoing: OutgoingSide,
    outbox: Outbox,
    pub(crate) mail: RequestTable,
    pub(crate) segments: SegmentMaps,
    /// A lease that goes on waiting for memory although slots came free first.
    pub(crate) standing_lease: Option<StandingLease>,
    /// The numbers of names for which offers were retained.
    pub(crate) consumers: BTreeMap<Consumers, u32>,
    releases: Vec<ReleasedHolding>,
    spares: Vec<Vec<u8>>,
    /// Somebody waits in a loop of his own.
    pub(crate) watch: Option<Arc<ConnectionWatch>>,
    /// A thread is reading the socket.
    pub(crate) led: bool,
    led_for: ReaderWaits,
    pub(crate) sleepers: Vec<SleepingThread>,
    pub(crate) tasks: WaitingTasks,
    /// Slots came free since sleepers were last woken.
    freed: bool,
    /// How often slots have come free.
    frees: u64,
    /// Why nothing works any more.
    pub(crate) ended: Option<Error>,
    /// Nothing can be sent any more, not even releases.
    cut: bool,
    /// Deliveries that were received and not given back.
    held: usize,
    /// What the server last complained about without naming a request.
    pub(crate) remark: Option<Error>,
    /// The error of every request once the connection ends: the server ends in order.
    pub(crate) farewell: Option<Error>,
    pub(crate) sent_at: Instant,
    /// Offers that were appended since.
    pub(crate) gathered: u32,
    surplus_at: Instant,
}

impl ConnectionState {
    pub(crate) fn new(outgoing: OutgoingSide, segments: SegmentMaps) -> Self {
        let now = Instant::now();
        Self {
            pid: std::process::id(),
            outgoing,
            outbox: Outbox::new(),
            mail: RequestTable::default(),
            segments,
            standing_lease: None,
            consumers: BTreeMap::new(),
            releases: Vec::new(),
            spares: Vec::new(),
            watch: None,
            led: false,
            led_for: ReaderWaits::default(),
            sleepers: Vec::new(),
            tasks: WaitingTasks::default(),
            freed: false,
            frees: 0,
            ended: None,
            cut: false,
            held: 0,
            remark: None,
            farewell: None,
            sent_at: now,
            gathered: 0,
            surplus_at: now,
        }
    }

    /// Whether the connection still works.
    pub(crate) fn alive(&self) -> Result<()> {
        match &self.ended {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// What a forked child inherited is its parent's: it says nothing and reads nothing here.
    pub(crate) fn stay_in_process(&mut self) -> Result<()> {
        if self.pid != std::process::id() {
            self.end(forked());
            return Err(forked());
        }
        Ok(())
    }

    /// Bytes that are to go.
    pub(crate) fn unsent(&self) -> usize {
        self.outbox.len()
    }

    /// Whether the socket says when more can be sent; else the reader hears of it.
    pub(crate) fn waits_for_socket(&self) -> bool {
        self.outgoing.waits_for_socket()
    }

    /// Whether something is to go for which the socket has no room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.unsent() > 0 && self.waits_for_socket()
    }

    /// Appends a request, behind what was released before it; it goes with the next [`ConnectionState::send`].
    pub(crate) fn append(&mut self, number: u64, request: &Request<'_>) -> Result<()> {
        self.alive()?;
        self.append_releases()?;
        self.outbox.push(|out| request.encode(number, out))
    }

    /// Notes that an object was delivered.
    pub(crate) fn hold(&mut self) {
        self.held += 1;
    }

    /// Notes that an object is given back; the notes go together.
    pub(crate) fn release(&mut self, holding: ReleasedHolding, body: Vec<u8>) {
        self.recycle(body);
        self.held = self.held.saturating_sub(1);
        self.releases.push(holding);
    }

    /// Whether enough releases have gathered, or for long enough. The first of a batch, and then every eighth, looks at the
    /// clock.
    pub(crate) fn is_release_due(&self) -> bool {
        let count = self.releases.len();
        count >= RELEASES_MAX || count % 8 == 1 && self.sent_at.elapsed() >= RELEASES_AGE
    }

    /// Gives back what letters hold that nobody will read; a requirement is owed that again.
    pub(crate) fn discard(&mut self, letters: impl IntoIterator<Item = ServerMessage>) {
        for letter in letters {
            if let ServerMessage::Delivered(ArrivedObject { mut holding, body, .. }) = letter {
                holding.flags = fixed::UNREAD.into();
                self.release(holding, body);
            }
        }
    }

    /// An empty buffer for a delivered object.
    pub(crate) fn spare(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
    }

    fn recycle(&mut self, mut body: Vec<u8>) {
        if self.spares.len() < SPARES_MAX && body.capacity() <= SPARE_BYTES_MAX {
            body.clear();
            self.spares.push(body);
        }
    }

    /// Sends what is to go, releases included, as far as the socket takes it; false: the rest has to wait.
    pub(crate) fn send(&mut self) -> Result<bool> {
        if self.cut {
            return self.alive().map(|()| true);
        }
        if self.releases.is_empty() && self.outbox.is_empty() {
            return Ok(true);
        }
        self.stay_in_process()?;
        self.append_releases()?;
        self.sent_at = Instant::now();
        self.gathered = 0;
        match self.outgoing.send(&mut self.outbox) {
            Ok(sent) => Ok(sent == SendResult::All),
            // What the server said before it went can still be read, and says more.
            Err(_) => Ok(true),
        }
    }

    fn append_releases(&mut self) -> Result<()> {
        if self.releases.is_empty() {
            return Ok(());
        }
        let number = self.mail.next(0);
        let releases = &self.releases;
        self.outbox.push(|out| Request::Release(releases).encode(number, out))?;
        self.releases.clear();
        Ok(())
    }

    /// A slot is the client's again.
    pub(crate) fn free_slot(&mut self, slot: SlotId) {
        self.segments.free(slot);
        self.note_free_slots();
    }

    /// Slots have come free, or a segment of them has come.
    pub(crate) fn note_free_slots(&mut self) {
        self.freed = true;
        self.frees += 1;
    }

    /// How often slots have come free.
    pub(crate) fn frees(&self) -> u64 {
        self.frees
    }

    /// Returns leased segments that have been idle, now and then.
    pub(crate) fn return_surplus(&mut self) -> Result<()> {
        if !self.segments.is_producing() || self.surplus_at.elapsed() < SURPLUS_AGE {
            return Ok(());
        }
        self.surplus_at = Instant::now();
        for segment in self.segments.surplus() {
            self.return_segment(segment)?;
        }
        Ok(())
    }

    /// Returns a leased segment, unless something lies in it.
    pub(crate) fn return_segment(&mut self, segment: u32) -> Result<()> {
        if !self.segments.give_up(segment) {
            return Ok(());
        }
        let number = self.mail.next(0);
        self.append(number, &Request::Return(segment))
    }

    /// Ends a conversation for which nobody waits any more: what came is given back, and `stop` tells the server, unless
    /// it has said its last word.
    pub(crate) fn abandon(&mut self, request: u64, stop: StreamStop) -> Result<()> {
        let (letters, goes_on) = self.mail.abandon(request);
        self.discard(letters);
        if goes_on && self.ended.is_none() {
            match stop {
                StreamStop::Silently => {}
                StreamStop::Cancel => {
                    let number = self.mail.next(0);
                    self.append(number, &Request::Cancel(request))?;
                }
                StreamStop::End => {
                    let number = self.mail.open_stop(request)?;
                    self.append(number, &Request::Stop(request))?;
                    self.mail.abandon(number);
                }
            }
        }
        Ok(())
    }

    /// As [`Self::abandon`], and sends it at once. Where it cannot be sent, nobody waits for it.
    pub(crate) fn abandon_now(&mut self, request: u64, stop: StreamStop) {
        let _ = self.abandon(request, stop).and_then(|()| self.send());
    }

    /// The connection is over: everybody who waits learns why.
    pub(crate) fn end(&mut self, error: Error) {
        self.cut = true;
        self.ended.get_or_insert(error);
        self.wake_all();
        self.nudge();
    }

    /// The user has closed the pool: everybody who waits learns it. The connection goes on while objects are held, since
    /// their memory is theirs until they are given back.
    pub(crate) fn close(&mut self, error: Error) {
        let unread = self.mail.abandon_all();
        self.discard(unread);
        self.ended.get_or_insert(error);
        self.wake_all();
        self.nudge();
        self.interrupt_reader();
    }

    /// A thread begins to read, and waits for this.
    pub(crate) fn lead(&mut self, what: &ThreadWait<'_>) {
        self.led = true;
        self.led_for.requests.clear();
        self.led_for.requests.extend_from_slice(what.requests);
        self.led_for.for_slots = what.for_slots;
    }

    /// Has the thread that reads, if there is one, look again. It sleeps in the system: an answer wakes it. Waits for nothing.
    fn interrupt_reader(&mut self) {
        if self.led {
            let number = self.mail.next(0);
            // Without a server it has ended.
            let _ = self
                .outbox
                .push(|out| Request::Stat.encode(number, out))
                .and_then(|()| self.send());
        }
    }

    /// A conversation was ended on this side: has the threads that wait for it look again.
    pub(crate) fn rouse(&mut self, conversation: u64) {
        for sleeper in &self.sleepers {
            if sleeper.requests.contains(&conversation) {
                sleeper.bell.notify_one();
            }
        }
        if self.led_for.requests.contains(&conversation) {
            self.interrupt_reader();
        }
    }

    /// Slots came free on this side: has all that wait for one look again.
    pub(crate) fn rouse_for_slots(&mut self) {
        self.wake_concerned();
        self.nudge();
        if self.led_for.for_slots {
            self.interrupt_reader();
        }
    }

    /// Has all that wait look again, whatever they wait for.
    pub(crate) fn rouse_all(&mut self) {
        self.wake_all();
        self.nudge();
        self.interrupt_reader();
    }

    /// Says goodbye once the pool is closed and nothing is held any more; whether it did.
    pub(crate) fn leave_if_done(&mut self) -> bool {
        let done = !self.cut && self.ended.is_some() && self.held == 0;
        if done {
            self.leave();
        }
        done
    }

    /// Says goodbye, as far as that is possible.
    pub(crate) fn leave(&mut self) {
        if !self.cut {
            let number = self.mail.next(0);
            // What was released is done: behind the goodbye nobody would hear of it.
            let _ = self
                .append_releases()
                .and_then(|()| self.outbox.push(|out| Request::Goodbye.encode(number, out)))
                .and_then(|()| self.send());
            self.cut = true;
        }
    }

    pub(crate) fn wake_all(&mut self) {
        self.wake_all_tasks();
        for sleeper in &self.sleepers {
            sleeper.bell.notify_one();
        }
    }

    /// Wakes those for whom something has come.
    pub(crate) fn wake_concerned(&mut self) {
        if !self.tasks.of_any.is_empty() {
            self.tasks.of_any.wake_into(&mut self.mail.woken);
        }
        if self.sleepers.is_empty() {
            return;
        }
        for sleeper in &self.sleepers {
            let is_due = sleeper.requests.iter().any(|&request| self.mail.is_due(request));
            if sleeper.for_room || is_due || self.freed && sleeper.for_slots {
                sleeper.bell.notify_one();
            }
        }
        self.freed = false;
    }

    /// Somebody else may have to go on reading.
    pub(crate) fn hand_on(&self) {
        if !self.led
            && let Some(sleeper) = self.sleepers.first()
        {
            sleeper.bell.notify_one();
        }
    }

    /// Tells who waits in a loop of his own to look.
    pub(crate) fn nudge(&self) {
        if let Some(watch) = &self.watch {
            watch.nudge();
        }
    }

    /// Batches of letters, for those who want to read many under one lock.
    pub(crate) fn take_letters(&mut self, request: u64, batch: &mut VecDeque<ServerMessage>) -> bool {
        self.mail.get(request).is_some_and(|mailbox| mailbox.take_all(batch))
    }
}

/// Why a child must not use what it inherited.
pub(crate) fn forked() -> Error {
    Error::new(
        Code::Closed,
        "connection",
        "it belongs to the process that this one was forked from",
    )
}

/// How the server learns that nobody listens any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStop {
    /// Its one answer is awaited in silence.
    Silently,
    /// The request is given up.
    Cancel,
    /// The follow, list, subscription or requirement ends.
    End,
}
