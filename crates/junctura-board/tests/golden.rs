//! `docs/formats/board-golden.txt` holds the words of one board that are not zero. This crate must write exactly those words and
//! read them back: the layout does not change by accident.
//!
//! After a deliberate change, `JUNCTURA_WRITE_GOLDEN=1 cargo test -p junctura-board --test integration golden` writes the file anew.

#![allow(
    clippy::disallowed_methods,
    reason = "the golden words and the format's page are files; the crate itself reads none"
)]

use std::fmt::Write as _;
use std::path::PathBuf;

use junctura_board::reader::board_words;
use junctura_board::{
    BoardClient, BoardComponent, BoardCounter, BoardDataset, BoardHistogram, BoardIdentity, BoardReader,
    BoardRequirement, BoardState, BoardWriter, HistogramCounts,
};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/formats")
        .join(name)
}

fn client() -> BoardClient<&'static str> {
    BoardClient {
        client: 3,
        pid: 4711,
        component: 1,
        offered: 11,
        delivered: 12,
        held: 13,
        requests: 14,
        offers_waiting: 15,
        leased_bytes: 16,
        backlog_bytes: 17,
        transport: "memory",
        name: "member-17",
        host: "node7",
        note: "step=36, of=240",
    }
}

fn requirement() -> BoardRequirement<&'static str> {
    BoardRequirement {
        name: "plots",
        owed: 21,
        owed_bytes: 22,
        in_flight: 23,
        members: 24,
        oldest_owed_age_ns: Some(25),
        last_release_age_ns: None,
        lost: 26,
        users: 27,
        is_broken: true,
    }
}

fn dataset() -> BoardDataset<&'static str> {
    BoardDataset {
        name: "class=od,stream=oper",
        offered: 31,
        offered_bytes: 32,
        visible: 33,
        visible_bytes: 34,
    }
}

fn component() -> BoardComponent<&'static str> {
    BoardComponent {
        name: "member-*",
        clients: 41,
        joined: 42,
        left: 43,
        offered: 44,
        offered_bytes: 45,
        delivered: 46,
        delivered_bytes: 47,
        released: 48,
    }
}

fn board() -> Vec<u64> {
    let identity = BoardIdentity {
        incarnation: 5,
        pid: 99,
        started_wall_ns: 1_700_000_000_000_000_000,
        started_ns: 1000,
    };
    let mut board = BoardWriter::new(board_words(), &identity);
    board.state(BoardState::Serving);
    board.turned(7, 2000);
    let mut sizes = HistogramCounts::default();
    for value in [1, 4096, 5000] {
        sizes.add(value);
    }
    board.publish(|edit| {
        for (place, &counter) in BoardCounter::ALL.iter().enumerate() {
            edit.counter(counter, 1000 + place as u64);
        }
        edit.errors(9, 61);
        edit.histogram(BoardHistogram::ObjectSize, &sizes);
        edit.client(&client());
        edit.requirement(&requirement());
        edit.dataset(0, &dataset());
        edit.component(1, &component());
        edit.edge(1, 0, 51, 52);
        edit.tables(1, 2);
    });
    board.words().clone()
}

fn text(words: &[u64]) -> String {
    let mut text = "# Words that are not zero: index, value. See board.md.\n".to_owned();
    for (at, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
        let _ = writeln!(text, "{at} {word:016x}");
    }
    text
}

#[test]
fn the_words_are_the_golden_ones() {
    let path = file("board-golden.txt");
    let written = text(&board());
    if std::env::var_os("JUNCTURA_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    assert_eq!(written, std::fs::read_to_string(path).unwrap());
}

#[test]
fn the_golden_words_are_read_as_they_were_written() {
    let mut words = board_words();
    for line in std::fs::read_to_string(file("board-golden.txt"))
        .unwrap()
        .lines()
        .skip(1)
    {
        let (at, word) = line.split_once(' ').unwrap();
        words[at.parse::<usize>().unwrap()] = u64::from_str_radix(word, 16).unwrap();
    }
    let copy = BoardReader::of(words).unwrap().snapshot();
    assert!(copy.is_consistent && copy.head.state == BoardState::Serving);
    assert_eq!((copy.head.incarnation, copy.head.pid, copy.head.turns), (5, 99, 7));
    assert_eq!(copy.head.turn_age_ns(5000), 3000);
    assert_eq!(copy.counter(BoardCounter::Offered), 1000);
    let sizes = copy.histogram(BoardHistogram::ObjectSize);
    assert_eq!((sizes.count(), sizes.sum, sizes.up_to_power_of_four(6)), (3, 9097, 2));
    let read = &copy.clients[0];
    assert_eq!(
        (read.name.as_str(), read.host.as_str(), read.transport.as_str()),
        ("member-17", "node7", "memory")
    );
    assert_eq!(
        (read.pid, read.component, read.held, read.backlog_bytes),
        (4711, 1, 13, 17)
    );
    let read = &copy.requirements[0];
    assert_eq!(
        (read.name.as_str(), read.oldest_owed_age_ns, read.last_release_age_ns),
        ("plots", Some(25), None)
    );
    assert!(read.is_broken && read.users == 27);
    assert_eq!(
        (copy.datasets[0].name.as_str(), copy.datasets[0].visible_bytes),
        ("class=od,stream=oper", 34)
    );
    assert_eq!(
        (copy.components[1].name.as_str(), copy.components[1].released),
        ("member-*", 48)
    );
    let edge = copy.edges[0];
    assert_eq!((edge.from, edge.to, edge.objects, edge.bytes), (1, 0, 51, 52));
}

#[test]
fn the_page_lists_every_counter_and_histogram_in_order() {
    let page = std::fs::read_to_string(file("board.md")).unwrap();
    let listed = |title: &str| -> Vec<String> {
        let rows = page
            .split_once(title)
            .unwrap()
            .1
            .lines()
            .skip_while(|line| !line.starts_with("| 0 |"));
        let rows = rows.take_while(|line| line.starts_with('|'));
        rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
    };
    let counters: Vec<_> = BoardCounter::ALL.iter().map(|one| one.name()).collect();
    assert_eq!(listed("## Counters"), counters);
    let histograms: Vec<_> = BoardHistogram::ALL.iter().map(|one| one.name()).collect();
    assert_eq!(listed("## Histograms"), histograms);
}
