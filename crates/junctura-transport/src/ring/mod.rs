//! Two rings in shared memory, one for each direction, and a bell for each end.
//!
//! ```text
//!   Outbox --copy--> | ring | --copy--> Inbox        the bell rings only if the other end sleeps
//! ```
//! A ring carries the same bytes as a socket and saves the kernel's part: a system call is made only to wake an end that
//! sleeps. A bell is an eventfd, so that an end can wait for it beside other descriptors. The socket stays: it signals the
//! end of the peer, and it carries descriptors.
//!
//! The peer is not trusted: an impossible position is `Protocol`, and bytes are copied out before they are read. By
//! scribbling here a peer can only garble its own stream, lose its own bell, or be woken for nothing.

#[cfg(all(test, not(address_sanitizer)))]
mod loom_tests;
mod memory;
mod words;

mod atomics {
    pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use junctura_wire::fixed::RingsHead;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::fcntl_dupfd_cloexec;

use crate::refused;
use memory::{RingLane, RingMemory};

/// Bytes of each ring, where nothing else is asked for. Larger ones fall out of the caches when there are many.
pub const RING_BYTES: usize = 256 << 10;
/// A writer that has reached this position in its ring and finds it empty continues at the beginning. So data that is read
/// soon uses the same few bytes all the time, which stay in the caches even where there are many rings.
const BYTES_REUSED: u64 = 4 << 10;
/// Bytes of the largest ring.
pub(crate) const RING_BYTES_MAX: usize = 1 << 20;

/// Sent to the client, in this order: memory, the bell that wakes the server, the bell that wakes the client.
pub type Parts = [OwnedFd; 3];

/// The client's end: the parts of the rings, as they arrive.
#[derive(Debug, Default)]
pub struct ReceivedRings(Vec<OwnedFd>);

impl ReceivedRings {
    /// Whether some have arrived.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.0.is_empty()
    }

    /// Takes the next part; the rings, when it was the last.
    ///
    /// # Errors
    /// `Protocol` when another part was due; those of [`ConnectionRings::join`].
    pub fn add(&mut self, head: RingsHead, descriptor: OwnedFd) -> Result<Option<ConnectionRings>> {
        if head.part.get() as usize != self.0.len() {
            let cause = format!("part {} instead of {}", head.part, self.0.len());
            return Err(Error::new(Code::Protocol, "rings", cause));
        }
        self.0.push(descriptor);
        let parts: Parts = match std::mem::take(&mut self.0).try_into() {
            Ok(parts) => parts,
            Err(some) => {
                self.0 = some;
                return Ok(None);
            }
        };
        ConnectionRings::join(head.ring_bytes.get() as usize, parts).map(Some)
    }
}

/// One end of a connection's rings.
#[derive(Debug)]
pub struct ConnectionRings {
    pub(crate) reader: RingReader,
    pub(crate) writer: RingWriter,
    /// Rings when something has arrived for this end, or there is room again for its data.
    pub(crate) bell: Arc<OwnedFd>,
}

impl ConnectionRings {
    /// Makes rings of `ring_bytes` each, or the nearest size that there is: the server's end, and what the client needs
    /// for its own.
    ///
    /// # Errors
    /// `LimitExceeded` when this process may open no more descriptors, `Io` when the system has no memory.
    pub fn create(ring_bytes: usize) -> Result<(Self, Parts)> {
        let ring_bytes = ring_bytes.clamp(4096, RING_BYTES_MAX).next_power_of_two();
        let (memory, descriptor) = RingMemory::create(ring_bytes)?;
        let (server_bell, client_bell) = (new_bell()?, new_bell()?);
        let parts = [descriptor, duplicate(&server_bell)?, duplicate(&client_bell)?];
        let rings = Self::new(memory, RingLane::ToServer, RingLane::ToClient, server_bell, client_bell);
        Ok((rings, parts))
    }

    /// The client's end, from what the server has passed. Takes the descriptors over.
    ///
    /// # Errors
    /// `Protocol` for a size that no ring has, `Corrupt` for memory that is none of rings, `Io` when it cannot be mapped.
    pub fn join(ring_bytes: usize, [memory, server_bell, client_bell]: Parts) -> Result<Self> {
        let memory = RingMemory::map(&memory, ring_bytes)?;
        Ok(Self::new(
            memory,
            RingLane::ToClient,
            RingLane::ToServer,
            client_bell,
            server_bell,
        ))
    }

    fn new(memory: RingMemory, read: RingLane, write: RingLane, own_bell: OwnedFd, peer_bell: OwnedFd) -> Self {
        let (memory, peer_bell) = (Arc::new(memory), Arc::new(peer_bell));
        Self {
            reader: RingReader {
                memory: Arc::clone(&memory),
                lane: read,
                read: 0,
                peer_bell: Arc::clone(&peer_bell),
            },
            writer: RingWriter {
                memory,
                lane: write,
                written: 0,
                origin: 0,
                read_seen: 0,
                peer_bell,
            },
            bell: Arc::new(own_bell),
        }
    }

    /// Something that writes anywhere into the memory of these rings, as a broken peer may.
    #[cfg(feature = "conformance")]
    #[must_use]
    pub fn scribbler(&self) -> HostileWriter {
        HostileWriter(Arc::clone(&self.writer.memory))
    }

    /// Bytes of each ring.
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.writer.memory.ring_bytes()
    }
}

/// Writes anywhere into the memory of a connection's rings, as a broken peer may.
#[cfg(feature = "conformance")]
#[derive(Debug)]
pub struct HostileWriter(Arc<RingMemory>);

#[cfg(feature = "conformance")]
impl HostileWriter {
    /// Writes from byte `at` on; bytes outside of the memory are left out.
    pub fn scribble(&self, at: usize, bytes: &[u8]) {
        self.0.scribble(at, bytes);
    }
}

/// The end of a ring that is read here.
#[derive(Debug)]
pub(crate) struct RingReader {
    memory: Arc<RingMemory>,
    lane: RingLane,
    /// How far it was read; kept here, since the word in the ring can be scribbled over.
    read: u64,
    peer_bell: Arc<OwnedFd>,
}

impl RingReader {
    /// Copies arrived bytes into `space`, as many as there is room for, and returns their number.
    pub(crate) fn read(&mut self, space: &mut [u8]) -> Result<usize> {
        let words = self.memory.words(self.lane);
        let there = words.written().wrapping_sub(self.read);
        if there > self.memory.ring_bytes() as u64 {
            let cause = format!("{there} bytes in a ring of {}", self.memory.ring_bytes());
            return Err(Error::new(Code::Protocol, "ring", cause));
        }
        let count = space.len().min(there as usize);
        if count == 0 {
            return Ok(0);
        }
        let at = self.read.wrapping_sub(words.origin());
        self.memory.copy_out(self.lane, at, &mut space[..count]);
        self.read = self.read.wrapping_add(count as u64);
        words.set_read(self.read);
        // Not for every byte: a writer that has to wait waits until it can write much. It never waits at an empty ring.
        let left = there as usize - count;
        if left <= self.memory.ring_bytes() / 2 && words.must_wake_writer() {
            ring(&self.peer_bell);
        }
        Ok(count)
    }

    /// Whether nothing is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.memory.words(self.lane).written() == self.read
    }

    /// Announces that this end is about to sleep; returns false if something has arrived: then it must not.
    pub(crate) fn may_sleep(&self) -> bool {
        self.memory.words(self.lane).reader_may_sleep(self.read)
    }

    /// Announces that this end is awake: it need not be rung.
    pub(crate) fn woke(&self) {
        self.memory.words(self.lane).reader_woke();
    }
}

/// The end of a ring that is written here.
#[derive(Debug)]
pub(crate) struct RingWriter {
    memory: Arc<RingMemory>,
    lane: RingLane,
    written: u64,
    /// The position whose byte is at the beginning of the ring's memory.
    origin: u64,
    /// How far the peer had read when that was last looked at.
    read_seen: u64,
    peer_bell: Arc<OwnedFd>,
}

impl RingWriter {
    /// Whether at least a byte has room. If not, the bell of this end rings once the peer has read.
    pub(crate) fn has_room(&mut self) -> Result<bool> {
        if self.room() > 0 {
            return Ok(true);
        }
        loop {
            self.look()?;
            if self.room() > 0 {
                return Ok(true);
            }
            if self.memory.words(self.lane).writer_may_sleep(self.read_seen) {
                return Ok(false);
            }
        }
    }

    /// Copies as much of `piece` as has room and returns the number of bytes. [`Self::announce`] wakes the reader.
    pub(crate) fn write(&mut self, piece: &[u8]) -> Result<usize> {
        if self.room() < piece.len() || self.at() >= BYTES_REUSED {
            self.look()?;
            self.begin_again();
        }
        let count = self.room().min(piece.len());
        self.memory.copy_in(self.lane, self.at(), &piece[..count]);
        self.written = self.written.wrapping_add(count as u64);
        self.memory.words(self.lane).set_written(self.written);
        Ok(count)
    }

    /// Wakes the reader if it sleeps.
    pub(crate) fn announce(&self) {
        if self.memory.words(self.lane).must_wake_reader() {
            ring(&self.peer_bell);
        }
    }

    /// Continues at the beginning of the ring if it is empty.
    fn begin_again(&mut self) {
        if self.read_seen == self.written {
            self.origin = self.written;
            self.memory.words(self.lane).set_origin(self.origin);
        }
    }

    /// How far from the origin is written next.
    fn at(&self) -> u64 {
        self.written.wrapping_sub(self.origin)
    }

    fn room(&self) -> usize {
        self.memory.ring_bytes() - self.written.wrapping_sub(self.read_seen) as usize
    }

    fn look(&mut self) -> Result<()> {
        let read = self.memory.words(self.lane).read();
        let there = self.written.wrapping_sub(read);
        if there > self.memory.ring_bytes() as u64 {
            let cause = format!("the peer has read {read} of {} bytes", self.written);
            return Err(Error::new(Code::Protocol, "ring", cause));
        }
        self.read_seen = read;
        Ok(())
    }
}

fn new_bell() -> Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|errno| refused(Code::LimitExceeded, "bell", "cannot open one", errno))
}

fn duplicate(fd: &OwnedFd) -> Result<OwnedFd> {
    fcntl_dupfd_cloexec(fd, 0).map_err(|errno| refused(Code::LimitExceeded, "bell", "cannot open one", errno))
}

fn ring(bell: &OwnedFd) {
    // The write fails only after 2^64 rings without a read; then the bell is ringing.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// Takes note of a bell, so that it can ring again.
pub(crate) fn answer(bell: BorrowedFd<'_>) {
    let mut count = [0u8; 8];
    let _ = rustix::io::read(bell, &mut count);
}

#[cfg(test)]
mod tests {
    use super::words::{RingPosition, RingWords};
    use super::*;

    const MESSAGE: usize = 100;

    fn ends() -> (RingWriter, RingReader) {
        let (server, parts) = ConnectionRings::create(RING_BYTES).unwrap();
        let client = ConnectionRings::join(RING_BYTES, parts).unwrap();
        (client.writer, server.reader)
    }

    fn message(number: usize) -> [u8; MESSAGE] {
        std::array::from_fn(|byte| (number + byte) as u8)
    }

    fn hear(reader: &mut RingReader, number: usize) {
        let mut space = [0; MESSAGE];
        assert_eq!(reader.read(&mut space).unwrap(), MESSAGE);
        assert_eq!(space, message(number), "message {number}");
    }

    #[test]
    fn what_is_read_soon_goes_through_the_beginning_of_the_ring() {
        let (mut writer, mut reader) = ends();
        for number in 0..10_000 {
            assert!(writer.has_room().unwrap());
            assert_eq!(writer.write(&message(number)).unwrap(), MESSAGE);
            assert!(writer.at() < BYTES_REUSED + MESSAGE as u64, "{}", writer.at());
            hear(&mut reader, number);
        }
    }

    #[test]
    fn a_backlog_has_the_whole_ring_wherever_it_begins() {
        for before in 0..2 * BYTES_REUSED as usize / MESSAGE {
            let (mut writer, mut reader) = ends();
            for number in 0..before {
                writer.write(&message(number)).unwrap();
                hear(&mut reader, number);
            }
            let (mut said, mut heard) = (before, before);
            while RING_BYTES - (said - heard) * MESSAGE >= MESSAGE {
                assert_eq!(writer.write(&message(said)).unwrap(), MESSAGE);
                said += 1;
            }
            for _ in 0..3 * RING_BYTES / MESSAGE {
                hear(&mut reader, heard);
                heard += 1;
                assert_eq!(writer.write(&message(said)).unwrap(), MESSAGE);
                said += 1;
            }
            while heard < said {
                hear(&mut reader, heard);
                heard += 1;
            }
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn the_layout_is_that_of_the_format() {
        assert_eq!(size_of::<RingWords>(), 256);
        assert_eq!(std::mem::offset_of!(RingWords, read), 128);
        assert_eq!(std::mem::offset_of!(RingPosition, sleeps), 8);
        assert_eq!(std::mem::offset_of!(RingPosition, origin), 16);
    }

    #[test]
    fn who_sleeps_is_woken_once_and_who_may_not_is_not() {
        let words = RingWords::new();
        assert!(!words.must_wake_reader());
        assert!(words.reader_may_sleep(0));
        words.set_written(8);
        assert!(words.must_wake_reader());
        assert!(!words.must_wake_reader());
        assert!(!words.reader_may_sleep(0));
        assert!(!words.must_wake_reader(), "the flag was taken back");
        assert!(words.writer_may_sleep(0));
        words.set_read(8);
        assert!(words.must_wake_writer());
        assert!(!words.must_wake_writer());
    }
}
