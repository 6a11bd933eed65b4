//! How the two ends of a ring agree: two positions and two flags.
//!
//! Positions count bytes since the beginning and never go back; what lies between them is in the ring. The writer alone
//! moves `written`, the reader alone `read`. Who finds nothing to do says so in its flag, looks once more, and sleeps; who
//! moved a position looks at the other's flag. Each side first writes, then passes a full fence, then reads what the other
//! wrote, so at least one of them sees the other: nobody sleeps through his bell.
//!
//! A writer that finds its ring empty may begin again at the beginning of the memory: it moves `origin`, and then `written`.
//! The reader looks at both in the other order, and only where `written` says that there is something to read.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The words of one ring, as they lie in shared memory (`docs/formats/wire.md`). Each side writes to a cache line of its own.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Words {
    written: Position,
    read: Position,
}

/// How far one side has come, and whether it sleeps.
#[derive(Debug)]
#[repr(C, align(128))]
struct Position {
    bytes: AtomicU64,
    sleeps: AtomicU32,
    /// Of the writer alone: the position whose byte lies at the beginning of the ring's memory.
    origin: AtomicU64,
}

impl Words {
    #[cfg(any(loom, test))]
    pub(super) fn new() -> Self {
        let position = || Position {
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

impl Position {
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

/// Every way in which two threads can meet, tried by loom: `tools/loom.sh`.
#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::cell::Cell;
    use loom::sync::{Condvar, Mutex};
    use loom::thread;

    use super::*;

    /// A bell that was rung stays rung until somebody listens, like an eventfd.
    struct Bell {
        rung: Mutex<bool>,
        sleeper: Condvar,
    }

    impl Bell {
        fn new() -> Self {
            Self {
                rung: Mutex::new(false),
                sleeper: Condvar::new(),
            }
        }

        fn ring(&self) {
            *self.rung.lock().unwrap() = true;
            self.sleeper.notify_one();
        }

        fn listen(&self) {
            let mut rung = self.rung.lock().unwrap();
            while !*rung {
                rung = self.sleeper.wait(rung).unwrap();
            }
            *rung = false;
        }
    }

    struct Ring {
        words: Words,
        to_reader: Bell,
        to_writer: Bell,
        room: AtomicU64,
    }

    impl Ring {
        fn write(&self, total: u64, capacity: u64) {
            let mut written = 0;
            while written < total {
                let read = self.words.read();
                if written - read == capacity {
                    if self.words.writer_may_sleep(read) {
                        self.to_writer.listen();
                    }
                    continue;
                }
                self.room.store(written + 1, Ordering::Relaxed);
                written += 1;
                self.words.set_written(written);
                if self.words.must_wake_reader() {
                    self.to_reader.ring();
                }
            }
        }

        fn read(&self, total: u64) {
            let mut read = 0;
            while read < total {
                let written = self.words.written();
                if written == read {
                    if self.words.reader_may_sleep(written) {
                        self.to_reader.listen();
                    }
                    continue;
                }
                assert!(
                    self.room.load(Ordering::Relaxed) >= written,
                    "what is announced is there"
                );
                read = written;
                self.words.set_read(read);
                if self.words.must_wake_writer() {
                    self.to_writer.ring();
                }
            }
        }
    }

    /// Two places for bytes; loom fails the test if one reads where the other writes.
    struct Cells {
        words: Words,
        places: [Cell<u64>; 2],
    }

    impl Cells {
        /// Writes each position as its own byte, as long as there is room, and begins again whenever the ring is empty.
        fn write(&self, total: u64) {
            let (mut written, mut origin) = (0, 0);
            while written < total {
                let read = self.words.read();
                if read == written {
                    origin = written;
                    self.words.set_origin(origin);
                }
                if written - read == 2 {
                    thread::yield_now();
                    continue;
                }
                self.places[(written - origin) as usize % 2].set(written);
                written += 1;
                self.words.set_written(written);
            }
        }

        fn read(&self, total: u64) {
            let mut read = 0;
            while read < total {
                let written = self.words.written();
                if written == read {
                    thread::yield_now();
                    continue;
                }
                let at = read.wrapping_sub(self.words.origin());
                let byte = self.places[at as usize % 2].get();
                assert_eq!(byte, read, "bytes come in the order in which they were written");
                read += 1;
                self.words.set_read(read);
            }
        }
    }

    #[test]
    fn a_writer_that_begins_again_overwrites_nothing_unread() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let cells = Arc::new(Cells {
                words: Words::new(),
                places: [Cell::new(0), Cell::new(0)],
            });
            let writer = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.write(4))
            };
            cells.read(4);
            writer.join().unwrap();
        });
    }

    #[test]
    fn nobody_sleeps_through_his_bell() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let ring = Arc::new(Ring {
                words: Words::new(),
                to_reader: Bell::new(),
                to_writer: Bell::new(),
                room: AtomicU64::new(0),
            });
            let writer = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || ring.write(2, 1))
            };
            ring.read(2);
            writer.join().unwrap();
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_format() {
        assert_eq!(size_of::<Words>(), 256);
        assert_eq!(std::mem::offset_of!(Words, read), 128);
        assert_eq!(std::mem::offset_of!(Position, sleeps), 8);
        assert_eq!(std::mem::offset_of!(Position, origin), 16);
    }

    #[test]
    fn who_sleeps_is_woken_once_and_who_may_not_is_not() {
        let words = Words::new();
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
