//! Carries a side stream: a thread that sends parts of large payloads out of the segments, and receives others into them.
//!
//! ```text
//!   parts that nobody has taken ──► queue ──► stream
//!   the mirror, or the pool's segments ◄── a part that was announced ◄── stream
//! ```
//! A part that arrives before its announcement waits in the stream. An error here ends the link: the relay gets it. A
//! stream that ends normally sends a `Close` record first; one that just ends was cut.

use std::io::IoSliceMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::mirror::IncomingTarget;
use crate::record::{HEADER_BYTES, LinkRecord};
use crate::refused;
use crate::relay::BEATS_PER_LEASE;
use crate::relay::queue::SendQueue;
use crate::stream::{LinkStream, ReadOutcome};
use crate::streams::{LinkStage, SideStreams, ThreadWaker};

/// Bytes read at once of data that cannot be read directly into its place.
const PIECE_BYTES: usize = 256 << 10;

/// See the module.
pub(crate) struct StreamWorker {
    sides: Arc<SideStreams>,
    bell: Arc<ThreadWaker>,
    /// Which of the link's streams it is; the first is 1.
    number: u8,
    stream: LinkStream,
    queue: SendQueue,
    /// A part is in the queue, or behind it.
    carries: bool,
    now: WorkerState,
    head: [u8; HEADER_BYTES],
    piece: Vec<u8>,
    lease: Duration,
    heard: Instant,
    said: Instant,
    /// It ends in order; until then the other end has time.
    ends_by: Option<Instant>,
    is_ended: bool,
}

/// Where in the stream from the other end this one is.
#[derive(Debug)]
enum WorkerState {
    /// So many bytes of a header are there.
    Head(usize),
    /// A part follows that was not announced: its load, its number, its length.
    Waits(u64, u32, u32),
    /// So many bytes of a part of this load follow.
    Part(IncomingTarget, u32, u64),
    /// The other end sends no more.
    Closed,
}

impl StreamWorker {
    /// One more stream of a link.
    pub(crate) fn new(sides: Arc<SideStreams>, number: u8, stream: LinkStream, lease: Duration) -> Result<Self> {
        let now = Instant::now();
        Ok(Self {
            bell: sides.attach()?,
            sides,
            number,
            stream,
            queue: SendQueue::default(),
            carries: false,
            now: WorkerState::Head(0),
            head: [0; HEADER_BYTES],
            piece: Vec::new(),
            lease,
            heard: now,
            said: now,
            ends_by: None,
            is_ended: false,
        })
    }

    /// Carries data until the link is over. The relay reports errors.
    pub(crate) fn run(mut self) {
        loop {
            match self.step() {
                Some(true) => {}
                Some(false) => {
                    if let Err(error) = self.keep_alive().and_then(|()| self.sleep()) {
                        return self.sides.fail(self.number, &error);
                    }
                }
                None => return,
            }
        }
    }

    /// Does what can be done at once. Whether anything moved; `None`: it is over.
    pub(crate) fn step(&mut self) -> Option<bool> {
        match self.sides.stage() {
            LinkStage::Running => match self.round() {
                Ok(has_moved) => Some(has_moved),
                Err(error) => {
                    self.sides.fail(self.number, &error);
                    None
                }
            },
            // Errors no longer matter: everything was sent.
            LinkStage::Closing => self.close().unwrap_or(None),
            LinkStage::Stopped => None,
        }
    }

    fn round(&mut self) -> Result<bool> {
        let has_sent = self.send()?;
        Ok(self.receive()? || has_sent)
    }

    /// Sends as much of one part as possible.
    fn send(&mut self) -> Result<bool> {
        if self.carries && self.queue.is_empty() && self.stream.flush()? {
            self.carries = false;
            self.sides.sent();
        }
        if !self.carries
            && let Some((record, source)) = self.sides.take()
        {
            self.queue.part(record, source);
            self.carries = true;
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<bool> {
        let has_moved = self.queue.flush(&mut self.stream)?;
        if has_moved {
            self.said = Instant::now();
            self.sides.went();
        }
        Ok(has_moved)
    }

    /// Receives once: the rest of a part, and no more than a header after it. So no byte of a payload is copied twice.
    fn receive(&mut self) -> Result<bool> {
        let came = match &mut self.now {
            WorkerState::Waits(number, part, bytes) => {
                let (number, part, bytes) = (*number, *part, *bytes);
                return self.begin(number, part, bytes);
            }
            WorkerState::Closed => {
                self.heard = Instant::now();
                return Ok(false);
            }
            WorkerState::Head(have) => self.stream.read(&mut [IoSliceMut::new(&mut self.head[*have..])])?,
            WorkerState::Part(sink, left, _) => {
                let space = sink.space(*left);
                if space.is_empty() {
                    self.piece.resize(PIECE_BYTES, 0);
                    let most = PIECE_BYTES.min(*left as usize);
                    let came = self.stream.read(&mut [IoSliceMut::new(&mut self.piece[..most])])?;
                    if let ReadOutcome::Bytes(bytes) = came {
                        sink.write(&self.piece[..bytes])?;
                    }
                    came
                } else {
                    let came = self
                        .stream
                        .read(&mut [IoSliceMut::new(space), IoSliceMut::new(&mut self.head)])?;
                    if let ReadOutcome::Bytes(bytes) = came {
                        sink.filled(bytes.min(*left as usize));
                    }
                    came
                }
            }
        };
        match came {
            ReadOutcome::Nothing => return Ok(false),
            ReadOutcome::End => return Err(Error::new(Code::Disconnected, "", "the connection ended")),
            ReadOutcome::Bytes(bytes) => self.came(bytes)?,
        }
        self.heard = Instant::now();
        Ok(true)
    }

    /// Records that so many bytes have arrived, in the place of the current part and after it in the header.
    fn came(&mut self, bytes: usize) -> Result<()> {
        let have = match std::mem::replace(&mut self.now, WorkerState::Head(0)) {
            WorkerState::Head(have) => have + bytes,
            WorkerState::Part(sink, left, number) if bytes < left as usize => {
                self.now = WorkerState::Part(sink, left - bytes as u32, number);
                return Ok(());
            }
            WorkerState::Part(sink, left, number) => {
                // Only then is the place another one's.
                drop(sink);
                if self.sides.landed(number) {
                    self.sides.bell().ring();
                }
                bytes - left as usize
            }
            other => {
                self.now = other;
                return Ok(());
            }
        };
        self.now = WorkerState::Head(have);
        if have < HEADER_BYTES {
            return Ok(());
        }
        self.now = WorkerState::Head(0);
        match LinkRecord::read(&self.head)? {
            Some(LinkRecord::Beat) | None => Ok(()),
            Some(LinkRecord::Close(0)) => {
                self.now = WorkerState::Closed;
                Ok(())
            }
            Some(LinkRecord::Part(number, part, bytes)) => self.begin(number, part, bytes).map(drop),
            Some(record) => {
                let cause = format!("{record:?} is not for a side stream");
                Err(Error::new(Code::Protocol, "record of a link", cause))
            }
        }
    }

    /// Begins a part, or lets it wait in the stream. Returns whether it may be received.
    fn begin(&mut self, number: u64, part: u32, bytes: u32) -> Result<bool> {
        let sink = self.sides.begin(number, part, bytes)?;
        let may_come = sink.is_some();
        self.now = match sink {
            Some(sink) => WorkerState::Part(sink, bytes, number),
            None => WorkerState::Waits(number, part, bytes),
        };
        if !may_come {
            // Unread data cannot be missed.
            self.heard = Instant::now();
        }
        Ok(may_come)
    }

    /// Ends normally: sends a close record, and reads until the other end has closed, too. Returns whether anything moved;
    /// `None`: it has ended.
    fn close(&mut self) -> Result<Option<bool>> {
        let now = Instant::now();
        let ends_by = *self.ends_by.get_or_insert_with(|| {
            self.queue.record(LinkRecord::Close(0));
            now + self.lease
        });
        let mut has_moved = self.flush()?;
        if !self.is_ended && self.queue.is_empty() && self.stream.flush()? {
            self.stream.end();
            self.is_ended = true;
        }
        self.piece.resize(PIECE_BYTES, 0);
        match self.stream.read(&mut [IoSliceMut::new(&mut self.piece)])? {
            ReadOutcome::End => return Ok(None),
            ReadOutcome::Bytes(_) => has_moved = true,
            ReadOutcome::Nothing => {}
        }
        Ok((now < ends_by).then_some(has_moved))
    }

    /// Sends a heartbeat when this end has sent nothing for some time.
    ///
    /// # Errors
    /// `Disconnected` when the other end has sent nothing for the time of the lease, though it was read.
    fn keep_alive(&mut self) -> Result<()> {
        if self.ends_by.is_some() {
            return Ok(());
        }
        let now = Instant::now();
        if now.duration_since(self.heard) >= self.lease {
            let cause = format!("nothing was received from the other end for {:?}", self.lease);
            return Err(Error::new(Code::Disconnected, "", cause));
        }
        if self.queue.is_empty() && now.duration_since(self.said) >= self.lease / BEATS_PER_LEASE {
            self.queue.record(LinkRecord::Beat);
            self.flush()?;
        }
        Ok(())
    }

    /// Returns until when nothing has to be done, if nothing arrives.
    fn deadline(&self) -> Duration {
        let next = match self.ends_by {
            Some(ends_by) => ends_by,
            None if self.queue.is_empty() => (self.said + self.lease / BEATS_PER_LEASE).min(self.heard + self.lease),
            None => self.heard + self.lease,
        };
        next.saturating_duration_since(Instant::now())
    }

    fn sleep(&mut self) -> Result<()> {
        let timeout = Timespec::try_from(self.deadline()).map_err(|error| refused(Code::Io, "", "time", error))?;
        let mut flags = self.stream.interest(!self.queue.is_empty());
        let reads = self.ends_by.is_some() || matches!(self.now, WorkerState::Head(_) | WorkerState::Part(..));
        flags.set(PollFlags::IN, reads);
        let mut both = [
            PollFd::new(&self.stream, flags),
            PollFd::new(&*self.bell, PollFlags::IN),
        ];
        let waited = poll(&mut both, Some(&timeout));
        if !both[1].revents().is_empty() {
            self.bell.heard();
        }
        match waited {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(refused(Code::Io, "", "cannot wait", errno)),
        }
    }
}

#[cfg(test)]
mod tests;
