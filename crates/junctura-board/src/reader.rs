//! A viewer's side of a board.

use junctura_memory::SharedWords;
use junctura_model::{Code, Error, Result};

use crate::layout::{
    BOARD_WORDS, BoardCounter, BoardHistogram, BoardState, CLIENT_WORDS, CLIENTS_AT, CLIENTS_MAX, COMPONENT_WORDS,
    COMPONENTS_AT, COMPONENTS_MAX, DATASET_WORDS, DATASETS_AT, DATASETS_MAX, EDGE_WORDS, EDGES_AT, ERRORS_AT,
    ERRORS_MAX, HISTOGRAM_BUCKETS, HOST_BYTES, LONG_NAME_BYTES, MAGIC, NAME_BYTES, NOTE_WORDS, NOTES_AT, NOTES_MAX,
    REQUIREMENT_WORDS, REQUIREMENTS_AT, REQUIREMENTS_MAX, TRANSPORT_BYTES, VERSION, head,
};
use crate::snapshot::{
    BoardClient, BoardComponent, BoardDataset, BoardEdge, BoardHead, BoardHistogramSnapshot, BoardRequirement,
    BoardSnapshot,
};
use crate::words::ReadableWords;

/// Times that a copy is begun anew because the server wrote meanwhile. The server writes far less often than a copy takes.
const ATTEMPTS: usize = 64;

/// A board of another process. Reading needs no system call and no help of the server.
#[derive(Debug)]
pub struct BoardReader<W = SharedWords> {
    words: W,
}

impl<W: ReadableWords> BoardReader<W> {
    /// Reads the board in these words.
    ///
    /// # Errors
    /// `Corrupt` when they are no board; `Unsupported` when it is of another version.
    pub fn of(words: W) -> Result<Self> {
        if words.load(head::MAGIC) != MAGIC {
            return Err(Error::new(Code::Corrupt, "board", "it does not begin as a board does"));
        }
        words.acquire();
        let version = words.load(head::VERSION);
        if version != VERSION {
            let cause = format!("its layout has version {version}; this program reads version {VERSION}");
            return Err(Error::new(Code::Unsupported, "board", cause));
        }
        Ok(Self { words })
    }

    /// Reads the head alone: the heartbeat of the server.
    #[must_use]
    pub fn head(&self) -> BoardHead {
        let word = |at| self.words.load(at);
        BoardHead {
            incarnation: word(head::INCARNATION),
            pid: word(head::PID) as u32,
            started_wall_ns: word(head::STARTED_WALL_NS),
            started_ns: word(head::STARTED_NS),
            turns: word(head::TURNS),
            turned_ns: word(head::TURNED_NS),
            state: BoardState::of(word(head::STATE)),
        }
    }

    /// Copies the board. Where the server was stopped or killed while it wrote, the copy states it
    /// ([`BoardSnapshot::is_consistent`]).
    #[must_use]
    pub fn snapshot(&self) -> BoardSnapshot {
        for _ in 0..ATTEMPTS {
            if let Some(snapshot) = self.attempt() {
                return snapshot;
            }
            std::hint::spin_loop();
        }
        self.copy(false)
    }

    /// Copies the board; `None` if the server wrote at the same time.
    #[must_use]
    pub fn attempt(&self) -> Option<BoardSnapshot> {
        let before = self.words.load(head::GENERATION);
        if before % 2 == 1 {
            return None;
        }
        self.words.acquire();
        let copy = self.copy(true);
        self.words.acquire();
        (self.words.load(head::GENERATION) == before).then_some(copy)
    }

    fn copy(&self, is_consistent: bool) -> BoardSnapshot {
        let count = |at, limit: usize| usize::try_from(self.words.load(at)).unwrap_or(limit).min(limit);
        let components = count(head::COMPONENTS, COMPONENTS_MAX);
        let clients = 0..count(head::CLIENTS, CLIENTS_MAX);
        let mut clients: Vec<_> = clients.map(|place| self.client(place)).collect();
        clients.sort_unstable_by_key(|client| client.client);
        for place in 0..count(head::NOTES, NOTES_MAX) {
            let at = NOTES_AT + place * NOTE_WORDS;
            let number = self.words.load(at) as u32;
            if let Ok(place) = clients.binary_search_by_key(&number, |client| client.client) {
                clients[place].note = self.text(at + 1, LONG_NAME_BYTES);
            }
        }
        BoardSnapshot {
            head: self.head(),
            is_consistent,
            counters: BoardCounter::ALL
                .iter()
                .map(|counter| self.words.load(counter.word()))
                .collect(),
            errors: Code::ALL
                .iter()
                .filter(|code| usize::from(code.number()) < ERRORS_MAX)
                .map(|&code| (code, self.words.load(ERRORS_AT + usize::from(code.number()))))
                .collect(),
            histograms: BoardHistogram::ALL.iter().map(|&one| self.histogram(one)).collect(),
            clients,
            clients_unlisted: self.words.load(head::CLIENTS_UNLISTED),
            requirements: (0..count(head::REQUIREMENTS, REQUIREMENTS_MAX))
                .map(|place| self.requirement(place))
                .collect(),
            requirements_unlisted: self.words.load(head::REQUIREMENTS_UNLISTED),
            datasets: (0..count(head::DATASETS, DATASETS_MAX))
                .map(|place| self.dataset(place))
                .collect(),
            components: (0..components).map(|place| self.component(place)).collect(),
            edges: self.edges(components),
        }
    }

    fn histogram(&self, histogram: BoardHistogram) -> BoardHistogramSnapshot {
        let at = histogram.word();
        BoardHistogramSnapshot {
            buckets: (at..at + HISTOGRAM_BUCKETS).map(|word| self.words.load(word)).collect(),
            sum: self.words.load(at + HISTOGRAM_BUCKETS),
        }
    }

    fn client(&self, place: usize) -> BoardClient {
        let at = CLIENTS_AT + place * CLIENT_WORDS;
        let word = |field: usize| self.words.load(at + field);
        BoardClient {
            client: word(0) as u32,
            pid: word(1) as u32,
            component: word(2) as u16,
            offered: word(3),
            delivered: word(4),
            held: word(5),
            requests: word(6),
            offers_waiting: word(7),
            leased_bytes: word(8),
            backlog_bytes: word(9),
            transport: self.text(at + 14, TRANSPORT_BYTES),
            name: self.text(at + 16, NAME_BYTES),
            host: self.text(at + 24, HOST_BYTES),
            note: String::new(),
        }
    }

    fn requirement(&self, place: usize) -> BoardRequirement {
        let at = REQUIREMENTS_AT + place * REQUIREMENT_WORDS;
        let word = |field: usize| self.words.load(at + field);
        BoardRequirement {
            name: self.text(at + 16, LONG_NAME_BYTES),
            owed: word(0),
            owed_bytes: word(1),
            in_flight: word(2),
            members: word(3),
            oldest_owed_age_ns: word(4).checked_sub(1),
            last_release_age_ns: word(5).checked_sub(1),
            lost: word(6),
            users: word(7),
            is_broken: word(8) != 0,
        }
    }

    fn dataset(&self, place: usize) -> BoardDataset {
        let at = DATASETS_AT + place * DATASET_WORDS;
        let word = |field: usize| self.words.load(at + field);
        BoardDataset {
            name: self.text(at + 8, LONG_NAME_BYTES),
            offered: word(0),
            offered_bytes: word(1),
            visible: word(2),
            visible_bytes: word(3),
        }
    }

    fn component(&self, place: usize) -> BoardComponent {
        let at = COMPONENTS_AT + place * COMPONENT_WORDS;
        let word = |field: usize| self.words.load(at + field);
        BoardComponent {
            name: self.text(at + 8, NAME_BYTES),
            clients: word(0),
            joined: word(1),
            left: word(2),
            offered: word(3),
            offered_bytes: word(4),
            delivered: word(5),
            delivered_bytes: word(6),
            released: word(7),
        }
    }

    fn edges(&self, components: usize) -> Vec<BoardEdge> {
        let pairs = (0..components).flat_map(|from| (0..components).map(move |to| (from, to)));
        let edges = pairs.map(|(from, to)| {
            let at = EDGES_AT + (from * COMPONENTS_MAX + to) * EDGE_WORDS;
            BoardEdge {
                from: from as u16,
                to: to as u16,
                objects: self.words.load(at),
                bytes: self.words.load(at + 1),
            }
        });
        edges.filter(|edge| edge.objects > 0).collect()
    }

    /// Reads a text up to its first zero byte. What is not UTF-8, as after a torn copy, is replaced.
    fn text(&self, at: usize, bytes: usize) -> String {
        let words = at..at + bytes / 8;
        let bytes: Vec<u8> = words.flat_map(|word| self.words.load(word).to_le_bytes()).collect();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// Zeroed words of a board in this process, for tests and copies.
#[must_use]
pub fn board_words() -> Vec<u64> {
    vec![0; BOARD_WORDS]
}
