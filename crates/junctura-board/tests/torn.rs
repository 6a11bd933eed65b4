//! Copies of a board that another thread writes all the time, over real shared memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use junctura_board::{
    BOARD_BYTES, BoardClient, BoardCounter, BoardHistogram, BoardIdentity, BoardReader, BoardWriter, HistogramCounts,
};
use junctura_memory::{SealedSegment, SharedWords, WrittenWords};
use junctura_model::Code;
use proptest::prelude::*;

fn write(board: &mut BoardWriter<WrittenWords>, moment: u64) {
    let name = format!("client of moment {moment}");
    board.publish(|edit| {
        edit.counter(BoardCounter::Offered, moment);
        for number in 0..moment % 5 {
            edit.client(&BoardClient {
                client: number as u32,
                offered: moment,
                name: name.as_str(),
                note: name.as_str(),
                ..BoardClient::default()
            });
        }
        edit.counter(BoardCounter::BusyNs, moment);
    });
}

fn board() -> (SealedSegment, BoardWriter<WrittenWords>) {
    let segment = SealedSegment::create(BOARD_BYTES).unwrap();
    let words = WrittenWords::map(segment.writable().try_clone_to_owned().unwrap(), BOARD_BYTES).unwrap();
    (segment, BoardWriter::new(words, &BoardIdentity::default()))
}

fn words(segment: &SealedSegment) -> SharedWords {
    SharedWords::map(segment.readonly().try_clone_to_owned().unwrap(), BOARD_BYTES).unwrap()
}

fn reader(segment: &SealedSegment) -> BoardReader {
    BoardReader::of(words(segment)).unwrap()
}

#[test]
fn each_copy_is_of_one_moment() {
    const COPIES: usize = 2000;
    let (segment, mut board) = board();
    let reader = reader(&segment);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut moment = 0;
            while !is_over.load(Ordering::Relaxed) {
                moment += 1;
                write(&mut board, moment);
            }
        });
        let mut consistent = 0;
        while consistent < COPIES {
            let Some(copy) = reader.attempt() else { continue };
            let moment = copy.counter(BoardCounter::Offered);
            assert_eq!(copy.counter(BoardCounter::BusyNs), moment);
            assert_eq!(copy.clients.len() as u64, moment % 5);
            let name = format!("client of moment {moment}");
            assert!(
                copy.clients
                    .iter()
                    .all(|client| client.offered == moment && client.name == name)
            );
            consistent += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_copy_of_a_server_that_died_while_it_wrote_says_so() {
    let (segment, mut board) = board();
    let reader = reader(&segment);
    board.publish(|edit| {
        edit.counter(BoardCounter::Offered, 3);
        let copy = reader.snapshot();
        assert!(!copy.is_consistent);
        assert_eq!(copy.counter(BoardCounter::Offered), 3);
    });
    assert!(reader.snapshot().is_consistent);
}

#[test]
fn other_memory_is_refused() {
    let segment = SealedSegment::create(BOARD_BYTES).unwrap();
    let refused = || BoardReader::of(words(&segment)).unwrap_err().code();
    assert_eq!(refused(), Code::Corrupt);
    let mut board = WrittenWords::map(segment.writable().try_clone_to_owned().unwrap(), BOARD_BYTES).unwrap();
    board.store(0, u64::from_le_bytes(*b"JUNCBRD\0"));
    board.store(1, 2);
    assert_eq!(refused(), Code::Unsupported);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(words in prop::collection::vec((0_usize..210_000, any::<u64>()), 0..200)) {
        let mut board = junctura_board::reader::board_words();
        board[0] = u64::from_le_bytes(*b"JUNCBRD\0");
        for (at, value) in words.into_iter().filter(|(at, _)| *at > 0) {
            if let Some(word) = board.get_mut(at) {
                *word = value;
            }
        }
        board[1] = 1;
        let copy = BoardReader::of(board).unwrap().snapshot();
        prop_assert!(copy.clients.len() <= 4096 && copy.edges.len() <= 128 * 128);
    }

    #[test]
    fn what_is_written_is_read(
        name in "\\PC{0,80}", numbers in prop::array::uniform4(any::<u64>()), values in prop::collection::vec(any::<u64>(), 0..50),
    ) {
        let mut board = BoardWriter::new(junctura_board::reader::board_words(), &BoardIdentity::default());
        let mut counts = HistogramCounts::default();
        for &value in &values {
            counts.add(value);
        }
        let client = BoardClient {
            client: 1, offered: numbers[0], delivered: numbers[1], held: numbers[2], backlog_bytes: numbers[3],
            name: name.as_str(), note: name.as_str(), ..BoardClient::default()
        };
        board.publish(|edit| {
            edit.client(&client);
            edit.histogram(BoardHistogram::ObjectSize, &counts);
        });
        let copy = BoardReader::of(board.words().clone()).unwrap().snapshot();
        let read = &copy.clients[0];
        prop_assert_eq!([read.offered, read.delivered, read.held, read.backlog_bytes], numbers);
        let zero = name.find('\0').unwrap_or(name.len());
        prop_assert!(name[..zero].starts_with(&read.name) && read.name.len() + 4 > name[..zero].len().min(64));
        prop_assert!(name[..zero].starts_with(&read.note) && read.note.len() + 4 > name[..zero].len().min(128));
        prop_assert_eq!(copy.histogram(BoardHistogram::ObjectSize).count(), values.len() as u64);
    }
}
