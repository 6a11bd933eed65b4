//! Every interleaving of two threads at the words of a ring, tried by loom.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "the same words over other atomics")]
#![allow(clippy::arc_with_non_send_sync, reason = "loom's cells are for its own threads")]

use std::sync::Arc;

use loom::cell::Cell;
use loom::sync::{Condvar, Mutex};
use loom::thread;

use atomics::{AtomicU64, Ordering};
use words::RingWords;

mod atomics {
    pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

/// The same source as [`super::words`], over the atomics of loom.
#[path = "words.rs"]
#[allow(dead_code, reason = "the models need no more")]
mod words;

/// A bell that was rung stays rung until a thread listens, like an eventfd.
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
    words: RingWords,
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
                "announced bytes are there"
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
    words: RingWords,
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
            assert_eq!(byte, read, "bytes arrive in the order in which they were written");
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
            words: RingWords::new(),
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
            words: RingWords::new(),
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
