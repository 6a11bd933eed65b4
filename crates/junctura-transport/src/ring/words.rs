//! How the two ends of a ring agree: two positions and two flags.
//!
//! Positions count bytes since the beginning and never decrease; the bytes between them are in the ring. The writer alone
//! moves `written`, the reader alone `read`. An end that finds nothing to do sets its flag, checks once more, and sleeps;
//! an end that moved a position checks the other's flag. Each side first writes, then passes a full fence, then reads the
//! other's write, so at least one sees the other: no end sleeps through its bell.
//!
//! A writer that finds its ring empty may begin again at the beginning of the memory: it moves `origin`, and then
//! `written`. The reader reads both in the other order, and only where `written` shows that there is something to read.

// The standard library's, or loom's: `loom_tests.rs` compiles this file a second time.
use super::atomics::{AtomicU32, AtomicU64, Ordering, fence};

/// The words of one ring in shared memory (`docs/formats/wire.md`). Each side writes to a cache line of its own.
#[derive(Debug)]
#[repr(C)]
pub(super) struct RingWords {
    pub(super) written: RingPosition,
    pub(super) read: RingPosition,
}

/// The position of one side, and whether it sleeps.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct RingPosition {
    bytes: AtomicU64,
    pub(super) sleeps: AtomicU32,
    /// Of the writer alone: the position whose byte is at the beginning of the ring's memory.
    pub(super) origin: AtomicU64,
}

impl RingWords {
    #[cfg(test)]
    pub(super) fn new() -> Self {
        let position = || RingPosition {
            bytes: AtomicU64::new(0),
            sleeps: AtomicU32::new(0),
            origin: AtomicU64::new(0),
        };
        Self {
            written: position(),
            read: position(),
        }
    }

    /// The writer has written up to here.
    pub(super) fn set_written(&self, bytes: u64) {
        self.written.bytes.store(bytes, Ordering::Release);
    }

    /// Returns the position up to which the writer has written, as it reports.
    pub(super) fn written(&self) -> u64 {
        self.written.bytes.load(Ordering::Acquire)
    }

    /// Sets `bytes` as the position whose byte is at the beginning of the ring's memory. Only where the reader has read
    /// everything written; the next [`Self::set_written`] publishes it.
    pub(super) fn set_origin(&self, bytes: u64) {
        self.written.origin.store(bytes, Ordering::Relaxed);
    }

    /// Returns the position whose byte is at the beginning of the ring's memory, as the writer reports. Only after
    /// [`Self::written`] has shown that there is something to read: until that is read, the writer does not move it.
    pub(super) fn origin(&self) -> u64 {
        self.written.origin.load(Ordering::Relaxed)
    }

    /// Records that the reader has copied out everything before this position.
    pub(super) fn set_read(&self, bytes: u64) {
        self.read.bytes.store(bytes, Ordering::Release);
    }

    /// Returns the position up to which the reader has read, as it reports.
    pub(super) fn read(&self) -> u64 {
        self.read.bytes.load(Ordering::Acquire)
    }

    /// The reader is about to sleep. Whether it may: the writer is still where it was.
    pub(super) fn reader_may_sleep(&self, written: u64) -> bool {
        self.read.sleep();
        self.written() == written || self.read.wake()
    }

    /// The writer is about to sleep. Whether it may: the reader is still where it was.
    pub(super) fn writer_may_sleep(&self, read: u64) -> bool {
        self.written.sleep();
        self.read() == read || self.written.wake()
    }

    /// The reader is awake.
    pub(super) fn reader_woke(&self) {
        self.read.wake();
    }

    /// After [`Self::set_written`]: whether the reader has to be woken.
    pub(super) fn must_wake_reader(&self) -> bool {
        self.read.was_asleep()
    }

    /// After [`Self::set_read`]: whether the writer has to be woken.
    pub(super) fn must_wake_writer(&self) -> bool {
        self.written.was_asleep()
    }
}

impl RingPosition {
    fn sleep(&self) {
        self.sleeps.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Clears the flag; returns false, since the end must not sleep now.
    fn wake(&self) -> bool {
        self.sleeps.store(0, Ordering::Relaxed);
        false
    }

    fn was_asleep(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sleeps.load(Ordering::Relaxed) != 0 && self.sleeps.swap(0, Ordering::Relaxed) != 0
    }
}
