//! How the two ends of a ring agree: two positions and two flags.
//!
//! Positions count bytes since the beginning and never go back; what lies between them is in the ring. The writer alone
//! moves `written`, the reader alone `read`. Who finds nothing to do says so in its flag, looks once more, and sleeps; who
//! moved a position looks at the other's flag. Each side first writes, then passes a full fence, then reads what the other
//! wrote, so at least one of them sees the other: nobody sleeps through his bell.
//!
//! A writer that finds its ring empty may begin again at the beginning of the memory: it moves `origin`, and then `written`.
//! The reader looks at both in the other order, and only where `written` says that there is something to read.

// The standard library's, or loom's: `loom_tests.rs` compiles this file a second time.
use super::atomics::{AtomicU32, AtomicU64, Ordering, fence};

/// The words of one ring, as they lie in shared memory (`docs/formats/wire.md`). Each side writes to a cache line of its own.
#[derive(Debug)]
#[repr(C)]
pub(super) struct RingWords {
    pub(super) written: RingPosition,
    pub(super) read: RingPosition,
}

/// How far one side has come, and whether it sleeps.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct RingPosition {
    bytes: AtomicU64,
    pub(super) sleeps: AtomicU32,
    /// Of the writer alone: the position whose byte lies at the beginning of the ring's memory.
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

    /// Up to where the writer has written, as it says.
    pub(super) fn written(&self) -> u64 {
        self.written.bytes.load(Ordering::Acquire)
    }

    /// What is written next, from position `bytes` on, lies at the beginning of the ring's memory. Only where the reader has
    /// read all that was written; the next [`Self::set_written`] tells it.
    pub(super) fn set_origin(&self, bytes: u64) {
        self.written.origin.store(bytes, Ordering::Relaxed);
    }

    /// The position whose byte lies at the beginning of the ring's memory, as the writer says. Only after [`Self::written`]
    /// has said that there is something to read: until that is read, the writer moves it no more.
    pub(super) fn origin(&self) -> u64 {
        self.written.origin.load(Ordering::Relaxed)
    }

    /// The reader has copied out what lies before here.
    pub(super) fn set_read(&self, bytes: u64) {
        self.read.bytes.store(bytes, Ordering::Release);
    }

    /// Up to where the reader has read, as it says.
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

    /// Takes the flag back; false, since nobody may sleep now.
    fn wake(&self) -> bool {
        self.sleeps.store(0, Ordering::Relaxed);
        false
    }

    fn was_asleep(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sleeps.load(Ordering::Relaxed) != 0 && self.sleeps.swap(0, Ordering::Relaxed) != 0
    }
}
