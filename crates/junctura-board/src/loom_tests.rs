//! Every interleaving of a server that publishes and a viewer that copies, tried by loom.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use crate::layout::{BoardCounter, MAGIC, VERSION, head};
use crate::reader::BoardReader;
use crate::words::{ReadableWords, WritableWords};
use crate::writer::{BoardIdentity, BoardWriter};

const PAIR: [BoardCounter; 2] = [BoardCounter::Offered, BoardCounter::Delivered];

/// The generation and two counters; all other words are constant.
#[derive(Clone)]
struct ModelWords(Arc<[AtomicU64; 3]>);

impl ModelWords {
    fn word(&self, index: usize) -> Option<&AtomicU64> {
        let words = [head::GENERATION, PAIR[0].word(), PAIR[1].word()];
        words.iter().position(|&word| word == index).map(|at| &self.0[at])
    }
}

impl ReadableWords for ModelWords {
    fn load(&self, index: usize) -> u64 {
        match self.word(index) {
            Some(word) => word.load(Ordering::Relaxed),
            None if index == head::MAGIC => MAGIC,
            None if index == head::VERSION => VERSION,
            None => 0,
        }
    }

    fn acquire(&self) {
        fence(Ordering::Acquire);
    }
}

impl WritableWords for ModelWords {
    fn store(&mut self, index: usize, value: u64) {
        if let Some(word) = self.word(index) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn release(&self) {
        fence(Ordering::Release);
    }
}

#[test]
fn a_copy_has_the_numbers_of_one_moment() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let words = ModelWords(Arc::new([AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)]));
        let server = {
            let words = words.clone();
            thread::spawn(move || {
                let mut board = BoardWriter::new(words, &BoardIdentity::default());
                for number in 1..=2 {
                    board.publish(|edit| PAIR.iter().for_each(|&one| edit.counter(one, number)));
                }
            })
        };
        let viewer = BoardReader::of(words).unwrap();
        if let Some(copy) = viewer.attempt() {
            assert_eq!(copy.counter(PAIR[0]), copy.counter(PAIR[1]));
        }
        server.join().unwrap();
        let last = viewer.attempt().unwrap();
        assert_eq!(PAIR.map(|one| last.counter(one)), [2, 2]);
    });
}
