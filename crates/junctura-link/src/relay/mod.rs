//! The two directions between connections within this machine and the stream to the other one.
//!
//! ```text
//!             local inbox --> frames, payloads --> queue --> stream
//!   rings                                                              TCP
//!             local outbox <-- frames, descriptors <-- payloads <-- stream
//! ```
//! Where the link has side streams, they carry parts of large payloads as well ([`crate::streams`]); this stream announces
//! them, and continues only when they are whole.
//!
//! Neither direction receives more than it can pass on, so a slow reader blocks its writer at the other end, and no other
//! client. The thread sleeps when nothing moves.

mod admission;
pub(crate) mod channel;
pub(crate) mod channel_source;
pub(crate) mod link_origin;
pub(crate) mod queue;

use std::io::IoSliceMut;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_transport::LocalCarrier;
use junctura_wire::frame::{BODY_BYTES_MAX, HEADER_BYTES as FRAME_HEADER_BYTES};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::mirror::IncomingTarget;
use crate::record::{HEADER_BYTES, LinkRecord, PayloadOffset};
use crate::refused;
use crate::relay::channel::{ChannelShared, LinkSide, RelayChannel};
use crate::relay::channel_source::ChannelSource;
use crate::relay::link_origin::LinkOrigin;
use crate::stream::{LinkStream, ReadOutcome};
use crate::streams::StreamsGuard;

/// Bytes read at once, except for payloads.
const BUFFER_BYTES: usize = 256 << 10;
/// A frame that is larger than the buffer.
const BUFFER_BYTES_MAX: usize = FRAME_HEADER_BYTES + BODY_BYTES_MAX;
/// Heartbeats of an end within one lease.
pub(crate) const BEATS_PER_LEASE: u32 = 4;
/// While something moves all the time, the ends of local connections are looked for once in so many rounds.
const ROUNDS_PER_CALL: u32 = 64;
/// The time that clients of a shared link have, when it ends, to read the last frames.
const LAST_WORDS_TIME_MAX: Duration = Duration::from_secs(1);

/// How long a client has that has a link of its own: as long as it likes.
const PATIENCE_OF_A_CLIENT: Duration = Duration::from_hours(365 * 24);

/// One end of a link.
pub(crate) struct StreamRelay {
    common: ChannelShared,
    channels: Vec<RelayChannel>,
    /// The source of further channels; without one, the link has a single channel.
    door: Option<ChannelSource>,
    channels_max: usize,
    /// A client may be waiting to connect.
    is_called: bool,
    /// The highest number of a channel so far.
    newest: u32,
    stream: LinkStream,
    /// The state shared with the link's other streams.
    sides: Option<StreamsGuard>,
    /// The threads that carry them, where this thread owns them.
    porters: Vec<JoinHandle<()>>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    now: ReceiveState,
    /// A load was announced, and the record that it has to be whole was not sent yet.
    gathers: bool,
    /// The channel that the other end speaks on.
    hears: u32,
    lease: Duration,
    heard: Instant,
    said: Instant,
    /// Since when nothing more arrives from this side.
    over_since: Option<Instant>,
    /// The server's end: why the gate ends this link.
    reason: EndReason,
    rounds: u32,
}

/// Why a link is to end, set by another thread, which then wakes the relay by the end of its stream.
pub(crate) type EndReason = Arc<OnceLock<Error>>;

/// Where in the stream from the other end this one is.
#[derive(Debug)]
enum ReceiveState {
    Between,
    Frames(u32),
    /// Of a load, its number.
    Payload(IncomingTarget, u32, Option<u64>),
    /// Parts have to arrive, on any stream, before this one continues.
    Whole,
}

/// How a relay ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// This side has closed, and everything that it sent was passed on.
    Here,
    /// The other end has closed.
    There,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundResult {
    Moved,
    /// Nothing can be moved before something arrives, or has room.
    Still,
    Over(RelayEnd),
}

impl StreamRelay {
    /// A link of one client.
    pub(crate) fn new(
        side: LinkSide,
        local: LocalCarrier,
        stream: LinkStream,
        lease: Duration,
        mirror_bytes: u64,
    ) -> Self {
        let mut relay = Self::of(side, stream, lease, mirror_bytes);
        relay.channels.push(RelayChannel::alone(side, local));
        relay
    }

    /// Makes a link of all clients that connect through `door`.
    pub(crate) fn with_door(
        side: LinkSide,
        door: ChannelSource,
        stream: LinkStream,
        lease: Duration,
        mirror_bytes: u64,
    ) -> Self {
        let mut relay = Self::of(side, stream, lease, mirror_bytes);
        relay.door = Some(door);
        relay
    }

    fn of(side: LinkSide, stream: LinkStream, lease: Duration, mirror_bytes: u64) -> Self {
        let now = Instant::now();
        Self {
            common: ChannelShared::new(side, mirror_bytes),
            channels: Vec::new(),
            door: None,
            channels_max: admission::CHANNELS_MAX,
            is_called: true,
            newest: 0,
            stream,
            sides: None,
            porters: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            now: ReceiveState::Between,
            gathers: false,
            hears: 0,
            lease,
            heard: now,
            said: now,
            over_since: None,
            reason: EndReason::default(),
            rounds: 0,
        }
    }

    /// Sets the origin of the client, and its token.
    pub(crate) fn with_origin(mut self, origin: LinkOrigin) -> Self {
        self.common.origin = Some(origin);
        self
    }

    /// Ends the link when another thread sets a reason, which clients at the other end receive.
    pub(crate) fn with_end_reason(mut self, reason: EndReason) -> Self {
        self.reason = reason;
        self
    }

    /// Shares large payloads with the link's other streams.
    pub(crate) fn with_sides(mut self, lead: StreamsGuard) -> Self {
        self.common.queue.share(Arc::clone(&lead.0));
        self.sides = Some(lead);
        self
    }

    /// Waits for these threads, too, when it ends.
    pub(crate) fn with_porters(mut self, porters: Vec<JoinHandle<()>>) -> Self {
        self.porters = porters;
        self
    }

    /// Relays until one side ends. Local clients get the error, if any. Returns the source of channels.
    ///
    /// # Errors
    /// `Disconnected` when the stream broke or nothing was received for the time of the lease; `Protocol` when the other
    /// end, or this side, sends invalid data.
    pub(crate) fn run(mut self) -> (Result<RelayEnd>, Option<ChannelSource>) {
        let ended = self.relay();
        self.conclude(&ended);
        match &ended {
            Ok(RelayEnd::Here) => self.linger(),
            _ => self.say_last_words(),
        }
        for porter in self.porters.drain(..) {
            let carried = porter.join();
            debug_assert!(carried.is_ok(), "a porter does not panic");
        }
        (ended, self.door)
    }

    /// Ends the link: sends the other end a close record, and local clients the error, if any.
    pub(crate) fn conclude(&mut self, ended: &Result<RelayEnd>) {
        self.stream.end();
        match (&self.sides, ended) {
            (Some(sides), Ok(RelayEnd::Here)) => sides.close(),
            (Some(sides), _) => sides.stop(),
            (None, _) => {}
        }
        if let (Err(error), LinkSide::Client) = (ended, self.common.side) {
            for channel in &mut self.channels {
                channel.tell_failure(error);
            }
        }
    }

    /// Waits until the other end has taken everything and closes, too: to close with something unread would undo what is on
    /// its way.
    fn linger(&mut self) {
        let until = Instant::now() + self.lease;
        while self.lingers() {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(timeout) = Timespec::try_from(left) else { return };
            if left.is_zero() || self.stream.wait(PollFlags::IN, &timeout).is_err() {
                return;
            }
        }
    }

    /// Discards the other end's remaining data. Returns whether it may send more.
    pub(crate) fn lingers(&mut self) -> bool {
        self.start = 0;
        self.end = 0;
        let came = self.stream.read(&mut [IoSliceMut::new(&mut self.buffer)]);
        matches!(came, Ok(ReadOutcome::Bytes(_) | ReadOutcome::Nothing))
    }

    /// Passes on the other end's last frames, to clients that read within the time of a lease.
    fn say_last_words(&mut self) {
        let patience = match (self.common.side, &self.door) {
            // The next client of a shared link does not wait for those that do not read.
            (_, Some(_)) => self.lease.min(LAST_WORDS_TIME_MAX),
            (LinkSide::Server, None) => self.lease,
            // It is the client's own process, and may be busy with other things.
            (LinkSide::Client, None) => PATIENCE_OF_A_CLIENT,
        };
        let until = Instant::now() + patience;
        while self.says_last_words() {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(timeout) = Timespec::try_from(left) else { return };
            if left.is_zero() || self.sleep_with(None, &timeout).is_err() {
                return;
            }
        }
    }

    /// Passes on as many of the last frames as possible. Returns whether some are left.
    pub(crate) fn says_last_words(&mut self) -> bool {
        self.channels.retain_mut(|channel| !channel.says_last_words());
        !self.channels.is_empty()
    }

    fn relay(&mut self) -> Result<RelayEnd> {
        loop {
            match self.round()? {
                RoundResult::Moved => {}
                RoundResult::Over(ended) => return Ok(ended),
                RoundResult::Still => {
                    self.keep_alive()?;
                    self.sleep()?;
                }
            }
        }
    }

    /// Moves what can be moved at once.
    pub(crate) fn round(&mut self) -> Result<RoundResult> {
        if let Some(error) = self.reason.get() {
            for channel in &mut self.channels {
                channel.tell_other_end(error, &mut self.common);
            }
            let error = error.clone();
            self.flush_stream()?;
            self.stream.flush()?;
            return Err(error);
        }
        let mut has_moved = self.take_local()?;
        has_moved |= self.flush_stream()?;
        if self.is_over() {
            if self.common.queue.is_empty() && self.stream.flush()? && self.have_sides_drained() {
                return Ok(RoundResult::Over(RelayEnd::Here));
            }
            self.over_since.get_or_insert_with(Instant::now);
            if self.last_taken().is_some_and(|taken| taken.elapsed() >= self.lease) {
                let cause = format!("the other end read nothing for {:?}", self.lease);
                return Err(Error::new(Code::Disconnected, "", cause));
            }
        }
        match self.take_stream()? {
            ReadOutcome::Bytes(_) => has_moved = true,
            ReadOutcome::Nothing => {}
            ReadOutcome::End => return self.there().map(RoundResult::Over),
        }
        has_moved |= self.flush_local()?;
        if has_moved {
            return Ok(RoundResult::Moved);
        }
        // Data sent before a stream was cut has been read by now.
        match self.sides.as_ref().and_then(|sides| sides.failure()) {
            Some(failure) => Err(failure),
            None => Ok(RoundResult::Still),
        }
    }

    fn have_sides_drained(&self) -> bool {
        self.sides.as_ref().is_none_or(|sides| sides.has_drained())
    }

    /// Where only the rest is left to send: the time of the last progress.
    fn last_taken(&self) -> Option<Instant> {
        let went = self.sides.as_ref().map_or(self.said, |sides| sides.last_went());
        self.over_since.map(|since| since.max(self.said).max(went))
    }

    /// Whether nothing more will arrive from this side.
    fn is_over(&self) -> bool {
        match &self.door {
            None => self.channels.iter().all(RelayChannel::has_ended),
            Some(door) => door.is_closed() && self.channels.is_empty(),
        }
    }

    /// The other end has closed: its last frames are still passed on.
    fn there(&mut self) -> Result<RelayEnd> {
        if !matches!(self.now, ReceiveState::Between) || self.gathers || self.start < self.end {
            let cause = "the connection ended in the middle of a message";
            return Err(Error::new(Code::Disconnected, "", cause));
        }
        Ok(RelayEnd::There)
    }

    #[cfg(test)]
    pub(crate) fn memory(&mut self) -> &mut crate::mirror::LinkMemory {
        &mut self.common.memory
    }

    /// As if it had been announced to the only client.
    #[cfg(test)]
    pub(crate) fn know(&mut self, segment: u32) {
        self.channels[0].segments().insert(segment);
    }

    /// Whether more can be taken from the other end.
    pub(crate) fn takes_stream(&self) -> bool {
        // A client that opens ever more channels, and reads no refusal, is not answered without end. The client's end
        // always reads, so this ends eventually.
        let is_answerable = self.door.is_none() || self.common.side == LinkSide::Client || !self.common.queue.is_full();
        is_answerable
            && !self.common.owes_answers()
            && self.is_whole()
            && self.channels.iter().all(RelayChannel::takes_stream)
    }

    /// Whether the stream may continue: no part on other streams has to arrive before.
    fn is_whole(&self) -> bool {
        !matches!(self.now, ReceiveState::Whole) || self.sides.as_ref().is_none_or(|sides| sides.is_whole())
    }

    /// Receives frames from this side's clients, or from the server.
    fn take_local(&mut self) -> Result<bool> {
        self.rounds = self.rounds.wrapping_add(1);
        let is_time = self.rounds.is_multiple_of(ROUNDS_PER_CALL);
        self.is_called |= is_time;
        let mut has_moved = self.let_in()?;
        for channel in &mut self.channels {
            if is_time {
                channel.call();
            }
            match channel.take_local(&mut self.common) {
                Ok(moved) => has_moved |= moved,
                Err(error) if self.door.is_none() => return Err(error),
                Err(error) => {
                    give_up(channel, &error, &mut self.common);
                    has_moved = true;
                }
            }
        }
        if self.door.is_some() {
            has_moved |= self.close_ended();
            // The first channel is not always served first.
            if self.channels.len() > 1 {
                self.channels.rotate_left(1);
            }
        }
        Ok(has_moved)
    }

    /// Closes channels that are over at this end, with a record to the other end.
    fn close_ended(&mut self) -> bool {
        let common = &mut self.common;
        let is_closing = self.door.as_ref().is_some_and(ChannelSource::is_closed);
        let before = self.channels.len();
        self.channels.retain_mut(|channel| {
            if is_closing {
                let error = Error::new(Code::Disconnected, "", "this machine's way to the pool was closed");
                channel.tell_failure(&error);
                let _ = channel.flush_local(&mut common.queue);
            }
            let is_over = is_closing || channel.has_ended() || channel.is_done();
            if is_over {
                common.queue.record(LinkRecord::Close(channel.number()));
                channel.leave(common);
            }
            !is_over
        });
        self.channels.len() < before
    }

    fn flush_stream(&mut self) -> Result<bool> {
        let has_moved = self.common.flush(&mut self.stream)?;
        if has_moved {
            self.said = Instant::now();
        }
        Ok(has_moved)
    }

    /// Receives from the other end, once.
    fn take_stream(&mut self) -> Result<ReadOutcome> {
        if !self.takes_stream() {
            // Unread data cannot be missed.
            self.heard = Instant::now();
            return Ok(ReadOutcome::Nothing);
        }
        if matches!(self.now, ReceiveState::Whole) {
            self.digest()?;
            return Ok(ReadOutcome::Bytes(0));
        }
        let came = self.receive()?;
        if let ReadOutcome::Bytes(_) = came {
            self.heard = Instant::now();
            self.digest()?;
        }
        Ok(came)
    }

    /// Into the payload that is coming, as far as it is not here yet, and behind it into the buffer.
    fn receive(&mut self) -> Result<ReadOutcome> {
        self.make_room();
        let rest = &mut self.buffer[self.end..];
        let ReceiveState::Payload(sink, left, load) = &mut self.now else {
            let came = self.stream.read(&mut [IoSliceMut::new(rest)])?;
            if let ReadOutcome::Bytes(bytes) = came {
                self.end += bytes;
            }
            return Ok(came);
        };
        let space = sink.space(*left);
        let space_bytes = space.len();
        // After a part most likely another one follows, which is read directly into its place.
        let is_part = load.is_some() && space_bytes > 0;
        let most = if is_part { HEADER_BYTES } else { rest.len() };
        let most = most.min(rest.len());
        let rest = &mut rest[..most];
        let came = if space.is_empty() {
            self.stream.read(&mut [IoSliceMut::new(rest)])?
        } else {
            self.stream.read(&mut [IoSliceMut::new(space), IoSliceMut::new(rest)])?
        };
        if let ReadOutcome::Bytes(bytes) = came {
            let direct = bytes.min(space_bytes);
            sink.filled(direct);
            *left -= direct as u32;
            self.end += bytes - direct;
        }
        Ok(came)
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > BUFFER_BYTES {
                self.buffer = vec![0; BUFFER_BYTES];
            }
        } else if self.start > 0 && self.buffer.len() - self.end < BUFFER_BYTES / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            let bytes = (2 * self.buffer.len()).min(BUFFER_BYTES_MAX.max(BUFFER_BYTES));
            self.buffer.resize(bytes, 0);
        }
    }

    fn digest(&mut self) -> Result<()> {
        loop {
            let there = self.end - self.start;
            match std::mem::replace(&mut self.now, ReceiveState::Between) {
                ReceiveState::Between => match LinkRecord::read(&self.buffer[self.start..self.end])? {
                    None => return Ok(()),
                    Some(record) => {
                        self.start += HEADER_BYTES;
                        self.begin(record)?;
                    }
                },
                ReceiveState::Frames(0) => {}
                ReceiveState::Payload(sink, 0, load) => {
                    drop(sink);
                    if let (Some(number), Some(sides)) = (load, &self.sides) {
                        sides.landed(number);
                    }
                }
                ReceiveState::Whole => {
                    if !self.sides.as_ref().is_none_or(|sides| sides.is_whole()) {
                        self.now = ReceiveState::Whole;
                        return Ok(());
                    }
                }
                ReceiveState::Payload(mut sink, left, load) => {
                    let here = there.min(left as usize);
                    sink.write(&self.buffer[self.start..self.start + here])?;
                    self.start += here;
                    let left = left - here as u32;
                    self.now = ReceiveState::Payload(sink, left, load);
                    if left > 0 {
                        return Ok(());
                    }
                }
                ReceiveState::Frames(left) => {
                    let here = there.min(left as usize);
                    let buffer = std::mem::take(&mut self.buffer);
                    let passed = self.pass_in(&buffer[self.start..self.start + here]);
                    self.buffer = buffer;
                    let bytes = passed?;
                    self.start += bytes;
                    let left = left - bytes as u32;
                    if bytes == 0 && here == left as usize {
                        let cause = "a record ends within a frame";
                        return Err(Error::new(Code::Protocol, "record of a link", cause));
                    }
                    self.now = ReceiveState::Frames(left);
                    if bytes == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn begin(&mut self, record: LinkRecord) -> Result<()> {
        let side = self.common.side;
        if self.gathers && !matches!(record, LinkRecord::Load(..) | LinkRecord::Part(..) | LinkRecord::Whole) {
            let cause = format!("{record:?} comes before a load was said to be whole");
            return Err(Error::new(Code::Protocol, "record of a link", cause));
        }
        match record {
            LinkRecord::Frames(bytes) => self.now = ReceiveState::Frames(bytes),
            LinkRecord::Payload(at, bytes) => {
                self.now = ReceiveState::Payload(self.sink(at, bytes)?, bytes, None);
            }
            LinkRecord::Load(..) | LinkRecord::Whole | LinkRecord::Part(..) if self.sides.is_some() => {
                self.begin_shared(record)?;
            }
            LinkRecord::Beat => {}
            LinkRecord::Forget(at, bytes) if side == LinkSide::Client => self.common.memory.forget(at, bytes)?,
            LinkRecord::Drop(segment) if side == LinkSide::Client && self.door.is_some() => {
                self.common.memory.dropped(segment);
            }
            LinkRecord::Channel(number) if self.door.is_some() => self.hear(number),
            LinkRecord::Close(number) if self.door.is_some() => {
                if let Some(channel) = self.channel(number) {
                    channel.close();
                }
            }
            LinkRecord::Room(number, bytes) if self.door.is_some() => {
                if let Some(channel) = self.channel(number) {
                    channel.gains_room(bytes);
                }
            }
            LinkRecord::Forget(..)
            | LinkRecord::Drop(_)
            | LinkRecord::Channel(_)
            | LinkRecord::Close(_)
            | LinkRecord::Room(..)
            | LinkRecord::Load(..)
            | LinkRecord::Whole
            | LinkRecord::Part(..) => {
                let cause = format!("{record:?} is not for this end to say");
                return Err(Error::new(Code::Protocol, "record of a link", cause));
            }
        }
        Ok(())
    }

    /// Handles records that concern the other streams, too.
    fn begin_shared(&mut self, record: LinkRecord) -> Result<()> {
        let Some(sides) = &self.sides else { return Ok(()) };
        match record {
            LinkRecord::Load(at, bytes) => {
                let parts = if self.is_nowhere(at) {
                    IncomingTarget::nowhere(u64::from(bytes), sides.part_bytes())
                } else {
                    self.common.memory.parts(at, u64::from(bytes), sides.part_bytes())?
                };
                sides.announce(parts, bytes)?;
                self.gathers = true;
            }
            LinkRecord::Part(number, part, bytes) => {
                let sink = sides.begin(number, part, bytes)?.ok_or_else(|| {
                    let cause = "it comes before it was announced";
                    Error::new(Code::Protocol, format!("part {part} of load {number}"), cause)
                })?;
                self.now = ReceiveState::Payload(sink, bytes, Some(number));
            }
            _ => {
                self.gathers = false;
                self.now = ReceiveState::Whole;
            }
        }
        Ok(())
    }

    fn channel(&mut self, number: u32) -> Option<&mut RelayChannel> {
        self.channels.iter_mut().find(|channel| channel.number() == number)
    }

    /// Whether a payload has no destination: the server may have ended one of several clients while it arrived.
    fn is_nowhere(&self, at: PayloadOffset) -> bool {
        let is_shared = self.door.is_some() && self.common.side == LinkSide::Server;
        is_shared && !self.common.memory.knows(at.segment)
    }

    /// Where a payload belongs.
    fn sink(&self, at: PayloadOffset, bytes: u32) -> Result<IncomingTarget> {
        if self.is_nowhere(at) {
            return Ok(IncomingTarget::Nowhere);
        }
        self.common.memory.sink(at, u64::from(bytes))
    }

    /// Passes the whole frames among `bytes` to this side, and returns the number of their bytes.
    fn pass_in(&mut self, bytes: &[u8]) -> Result<usize> {
        let hears = self.hears;
        let mut channels = self.channels.iter_mut();
        let Some(channel) = channels.find(|one| one.number() == hears && !(self.door.is_some() && one.has_ended()))
        else {
            // Sent before the other end knew that the channel is over.
            return self.common.pass_over(bytes);
        };
        match channel.pass_in(bytes, &mut self.common) {
            Err(error) if self.door.is_some() => {
                give_up(channel, &error, &mut self.common);
                self.common.pass_over(bytes)
            }
            passed => passed,
        }
    }

    fn flush_local(&mut self) -> Result<bool> {
        let mut has_moved = false;
        for channel in &mut self.channels {
            match channel.flush_local(&mut self.common.queue) {
                Ok(moved) => has_moved |= moved,
                Err(error) if self.door.is_none() => return Err(error),
                Err(error) => {
                    give_up(channel, &error, &mut self.common);
                    has_moved = true;
                }
            }
        }
        Ok(has_moved)
    }

    /// Sends a heartbeat when this end has sent nothing for some time.
    ///
    /// # Errors
    /// `Disconnected` when the other end has sent nothing for the time of the lease.
    fn keep_alive(&mut self) -> Result<()> {
        let now = Instant::now();
        if now.duration_since(self.heard) >= self.lease {
            let cause = format!("nothing was received from the other end for {:?}", self.lease);
            return Err(Error::new(Code::Disconnected, "", cause));
        }
        if self.common.queue.is_empty() && now.duration_since(self.said) >= self.lease / BEATS_PER_LEASE {
            self.common.queue.record(LinkRecord::Beat);
            self.flush_stream()?;
        }
        Ok(())
    }

    /// Returns until when nothing has to be done, if nothing arrives.
    fn deadline(&self) -> Duration {
        let beat = self.said + self.lease / BEATS_PER_LEASE;
        let since = self.last_taken().map_or(self.heard, |taken| taken.min(self.heard));
        let end = since + self.lease;
        // A heartbeat that cannot be sent is tried again when the socket takes more.
        let next = if self.common.queue.is_empty() {
            beat.min(end)
        } else {
            end
        };
        next.saturating_duration_since(Instant::now())
    }

    fn sleep(&mut self) -> Result<()> {
        let timeout = Timespec::try_from(self.deadline()).map_err(|error| refused(Code::Io, "", "time", error))?;
        self.sleep_for(&timeout)
    }

    /// Like sleeping, for a caller that does not wait: the next round finds what has arrived.
    #[cfg(any(test, feature = "stepped"))]
    pub(crate) fn look(&mut self) -> Result<()> {
        self.sleep_for(&Timespec::default())
    }

    fn sleep_for(&mut self, timeout: &Timespec) -> Result<()> {
        let mut flags = self.stream.interest(!self.common.queue.is_empty());
        flags.set(PollFlags::IN, self.takes_stream());
        self.sleep_with(Some(flags), timeout)
    }

    fn sleep_with(&mut self, stream: Option<PollFlags>, timeout: &Timespec) -> Result<()> {
        let common = &self.common;
        if !self.channels.iter_mut().all(|channel| channel.may_sleep(common)) {
            return Ok(());
        }
        let mut bells = Vec::new();
        let (mut all, whose) = channel::watch(&mut self.channels, &mut bells, common);
        if let Some(flags) = stream {
            all.push(PollFd::new(&self.stream, flags));
            if let Some(door) = &self.door {
                all.extend(door.watched());
            }
            if let Some(sides) = &self.sides {
                all.push(PollFd::new(sides.bell(), PollFlags::IN));
            }
        }
        let waited = poll(&mut all, Some(timeout));
        let called: Vec<usize> = whose
            .iter()
            .zip(&all)
            .filter_map(|(place, polled)| place.filter(|_| !polled.revents().is_empty()))
            .collect();
        drop(all);
        if let Some(sides) = &self.sides {
            sides.bell().heard();
        }
        self.is_called = true;
        for place in called {
            self.channels[place].call();
        }
        for channel in &mut self.channels {
            channel.woke();
        }
        match waited {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(refused(Code::Io, "", "cannot wait", errno)),
        }
    }
}

/// An error of one channel of several ends that one.
fn give_up(channel: &mut RelayChannel, error: &Error, common: &mut ChannelShared) {
    match common.side {
        LinkSide::Client => channel.tell_failure(error),
        LinkSide::Server => common.say_failure(channel.number(), error),
    }
    let _ = channel.flush_local(&mut common.queue);
    channel.end();
}

#[cfg(test)]
mod tests;
