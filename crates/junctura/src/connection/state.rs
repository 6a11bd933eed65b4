//! The state that the threads of a connection share under its one lock: the outbox, the mailboxes, the mapped segments.
//! All operations are short: they append bytes and dispatch messages, and never wait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};

use junctura_memory::ProcessMark;
use junctura_model::{Code, Consumers, Error, Result};
use junctura_transport::{ConnectionWatch, Outbox, OutgoingSide, SendResult};
use junctura_wire::Request;
use junctura_wire::fixed::{self, ReleasedHolding};

use crate::connection::in_flight::{RequestTable, ServerMessage, SlotId};
use crate::connection::note::NoteState;
use crate::connection::segments::SegmentMaps;
use crate::connection::{ThreadWait, WaitingTasks};
use crate::object::ArrivedObject;

/// Releases are sent at the latest when there are this many.
const RELEASES_MAX: usize = 64;
/// A release is sent at once if nothing was sent for this long.
const RELEASES_AGE: Duration = Duration::from_millis(1);
/// Maximum number of spare buffers for delivered objects.
const SPARES_MAX: usize = 1024;
/// A leased segment that was empty for this long may be returned.
const SURPLUS_AGE: Duration = Duration::from_secs(10);
/// A larger buffer is not kept.
const SPARE_BYTES_MAX: usize = 64 << 10;

/// A thread that waits while another reads.
#[derive(Debug)]
pub(crate) struct SleepingThread {
    /// The conversations for which it waits.
    pub(crate) requests: Box<[u64]>,
    /// Whether it also waits for slots.
    pub(crate) for_slots: bool,
    /// Whether it waits for space in the outbox.
    pub(crate) for_room: bool,
    pub(crate) bell: Arc<Condvar>,
}

/// The events for which the reading thread waits.
#[derive(Debug, Default)]
struct ReaderWaits {
    requests: Vec<u64>,
    for_slots: bool,
}

/// A thread that waits for memory adopts it, and leaves it if it is still not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandingLease {
    pub(crate) number: u64,
    pub(crate) slot_bytes: u64,
    /// For a member of a bundle.
    pub(crate) staged: bool,
}

#[derive(Debug)]
pub(crate) struct ConnectionState {
    /// The process that owns the connection.
    process: ProcessMark,
    outgoing: OutgoingSide,
    outbox: Outbox,
    pub(crate) mail: RequestTable,
    pub(crate) segments: SegmentMaps,
    /// A lease request that is still outstanding although slots became free first.
    pub(crate) standing_lease: Option<StandingLease>,
    /// The numbers of consumer names in retentions.
    pub(crate) consumers: BTreeMap<Consumers, u32>,
    releases: Vec<ReleasedHolding>,
    spares: Vec<Vec<u8>>,
    /// Set if an event loop waits for the descriptor.
    pub(crate) watch: Option<Arc<ConnectionWatch>>,
    /// A thread is reading the socket.
    pub(crate) led: bool,
    led_for: ReaderWaits,
    pub(crate) sleepers: Vec<SleepingThread>,
    pub(crate) tasks: WaitingTasks,
    /// Slots became free since sleepers were last woken.
    freed: bool,
    /// Count of freed slots.
    frees: u64,
    /// The error that ended the connection.
    pub(crate) ended: Option<Error>,
    /// Nothing can be sent any more, not even releases.
    cut: bool,
    /// Number of deliveries that are held.
    held: usize,
    /// The last error that the server sent without a request number.
    pub(crate) remark: Option<Error>,
    /// The error of every request once the connection ends: the server ends in order.
    pub(crate) farewell: Option<Error>,
    pub(crate) sent_at: Instant,
    /// Offers that were appended since the last send.
    pub(crate) gathered: u32,
    surplus_at: Instant,
    /// The note of this client.
    pub(crate) note: NoteState,
}

impl ConnectionState {
    pub(crate) fn new(outgoing: OutgoingSide, segments: SegmentMaps) -> Self {
        let now = Instant::now();
        Self {
            process: ProcessMark::here(),
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
            note: NoteState::default(),
        }
    }

    /// Fails if the connection has ended.
    pub(crate) fn alive(&self) -> Result<()> {
        match &self.ended {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Fails in a forked child, which must neither send nor read on its parent's connection.
    pub(crate) fn stay_in_process(&mut self) -> Result<()> {
        if !self.process.is_here() {
            self.end(forked());
            return Err(forked());
        }
        Ok(())
    }

    /// Returns the number of unsent bytes.
    pub(crate) fn unsent(&self) -> usize {
        self.outbox.len()
    }

    /// Returns whether the socket reports when more can be sent; otherwise the reader is notified.
    pub(crate) fn waits_for_socket(&self) -> bool {
        self.outgoing.waits_for_socket()
    }

    /// Returns whether unsent bytes wait for space in the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        self.unsent() > 0 && self.waits_for_socket()
    }

    /// Appends a request, after earlier releases; the next [`ConnectionState::send`] sends it.
    pub(crate) fn append(&mut self, number: u64, request: &Request<'_>) -> Result<()> {
        self.alive()?;
        self.append_releases()?;
        self.outbox.push(|out| request.encode(number, out))
    }

    /// Records a delivered object.
    pub(crate) fn hold(&mut self) {
        self.held += 1;
    }

    /// Records that an object is given back; such records are batched. With [`fixed::MAPPED`], its memory stays held.
    pub(crate) fn release(&mut self, holding: ReleasedHolding, body: Vec<u8>) {
        self.recycle(body);
        if holding.flags.get() & fixed::MAPPED == 0 {
            self.held = self.held.saturating_sub(1);
        }
        self.releases.push(holding);
    }

    /// Returns whether the batch of releases is large or old enough. The first release of a batch, and then every
    /// eighth, reads the clock.
    pub(crate) fn is_release_due(&self) -> bool {
        let count = self.releases.len();
        count >= RELEASES_MAX || count % 8 == 1 && self.sent_at.elapsed() >= RELEASES_AGE
    }

    /// Gives back the objects of messages that will not be read; a requirement redelivers them.
    pub(crate) fn discard(&mut self, letters: impl IntoIterator<Item = ServerMessage>) {
        for letter in letters {
            if let ServerMessage::Delivered(ArrivedObject { mut holding, body, .. }) = letter {
                holding.flags = fixed::UNREAD.into();
                self.release(holding, body);
            }
        }
    }

    /// Returns an empty buffer for a delivered object.
    pub(crate) fn spare(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
    }

    fn recycle(&mut self, mut body: Vec<u8>) {
        if self.spares.len() < SPARES_MAX && body.capacity() > 0 && body.capacity() <= SPARE_BYTES_MAX {
            body.clear();
            self.spares.push(body);
        }
    }

    /// Sends the outbox, including releases, as far as the socket accepts it; false: the rest has to wait.
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
            // Messages that the server sent before it closed can still be read, and have more details.
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

    /// Frees a slot for this client.
    pub(crate) fn free_slot(&mut self, slot: SlotId) {
        self.segments.free(slot);
        self.note_free_slots();
    }

    /// Records that slots became free, or that a segment arrived.
    pub(crate) fn note_free_slots(&mut self) {
        self.freed = true;
        self.frees += 1;
    }

    /// Returns the count of freed slots.
    pub(crate) fn frees(&self) -> u64 {
        self.frees
    }

    /// Returns idle leased segments to the server, from time to time.
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

    /// Returns a leased segment to the server, unless a slot is in use.
    pub(crate) fn return_segment(&mut self, segment: u32) -> Result<()> {
        if !self.segments.give_up(segment) {
            return Ok(());
        }
        let number = self.mail.next(0);
        self.append(number, &Request::Return(segment))
    }

    /// Ends a conversation that is no longer waited for: gives its deliveries back, and sends `stop` to the server
    /// unless its last message has arrived.
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

    /// As [`Self::abandon`], and sends at once. A failure to send is ignored.
    pub(crate) fn abandon_now(&mut self, request: u64, stop: StreamStop) {
        let _ = self.abandon(request, stop).and_then(|()| self.send());
    }

    /// Ends the connection: all waits fail with this error.
    pub(crate) fn end(&mut self, error: Error) {
        self.cut = true;
        self.ended.get_or_insert(error);
        self.wake_all();
        self.nudge();
    }

    /// Closes the pool for the user: all waits fail with this error. The connection remains while objects are held,
    /// because their memory is in use until they are given back.
    pub(crate) fn close(&mut self, error: Error) {
        let unread = self.mail.abandon_all();
        self.discard(unread);
        self.ended.get_or_insert(error);
        self.wake_all();
        self.nudge();
        self.interrupt_reader();
    }

    /// Makes the thread the reader, with these events.
    pub(crate) fn lead(&mut self, what: &ThreadWait<'_>) {
        self.led = true;
        self.led_for.requests.clear();
        self.led_for.requests.extend_from_slice(what.requests);
        self.led_for.for_slots = what.for_slots;
    }

    /// Wakes the reader, if there is one, to check again. The reader sleeps in the system: an answer wakes it. Does not
    /// block.
    fn interrupt_reader(&mut self) {
        if self.led {
            let number = self.mail.next(0);
            // Without a server the connection has ended.
            let _ = self
                .outbox
                .push(|out| Request::Stat.encode(number, out))
                .and_then(|()| self.send());
        }
    }

    /// Wakes the threads that wait for a conversation that was ended on this side.
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

    /// Wakes all waits for slots after slots became free on this side.
    pub(crate) fn rouse_for_slots(&mut self) {
        self.wake_concerned();
        self.nudge();
        if self.led_for.for_slots {
            self.interrupt_reader();
        }
    }

    /// Wakes all waits.
    pub(crate) fn rouse_all(&mut self) {
        self.wake_all();
        self.nudge();
        self.interrupt_reader();
    }

    /// Disconnects when the pool is closed and no object is held; returns whether it did.
    pub(crate) fn leave_if_done(&mut self) -> bool {
        let done = !self.cut && self.ended.is_some() && self.held == 0;
        if done {
            self.leave();
        }
        done
    }

    /// Disconnects, as far as that is possible.
    pub(crate) fn leave(&mut self) {
        if !self.cut {
            let number = self.mail.next(0);
            // Releases are sent first: the server ignores messages after the disconnect.
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

    /// Wakes the threads for which a message has arrived.
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

    /// Wakes another thread to become the reader.
    pub(crate) fn hand_on(&self) {
        if !self.led
            && let Some(sleeper) = self.sleepers.first()
        {
            sleeper.bell.notify_one();
        }
    }

    /// Notifies an event loop.
    pub(crate) fn nudge(&self) {
        if let Some(watch) = &self.watch {
            watch.nudge();
        }
    }

    /// Takes a batch of messages under one lock.
    pub(crate) fn take_letters(&mut self, request: u64, batch: &mut VecDeque<ServerMessage>) -> bool {
        self.mail.get(request).is_some_and(|mailbox| mailbox.take_all(batch))
    }
}

/// Returns the error for the use of an inherited connection in a child.
pub(crate) fn forked() -> Error {
    Error::new(
        Code::Closed,
        "connection",
        "it belongs to the process that this one was forked from",
    )
}

/// How to end a conversation that is no longer waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStop {
    /// Silently: its one answer is discarded on arrival.
    Silently,
    /// Cancels the request.
    Cancel,
    /// Ends the follow, list, subscription or requirement.
    End,
}
