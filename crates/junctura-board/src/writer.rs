//! The server's side of a board.

use crate::histogram::HistogramCounts;
use crate::layout::{
    BOARD_BYTES, BoardCounter, BoardHistogram, BoardState, CLIENT_WORDS, CLIENTS_AT, CLIENTS_MAX, COMPONENT_WORDS,
    COMPONENTS_AT, COMPONENTS_MAX, DATASET_WORDS, DATASETS_AT, DATASETS_MAX, EDGE_WORDS, EDGES_AT, ERRORS_AT,
    ERRORS_MAX, HISTOGRAM_BUCKETS, HOST_BYTES, LONG_NAME_BYTES, MAGIC, NAME_BYTES, NOTE_WORDS, NOTES_AT, NOTES_MAX,
    REQUIREMENT_WORDS, REQUIREMENTS_AT, REQUIREMENTS_MAX, TRANSPORT_BYTES, VERSION, head,
};
use crate::snapshot::{BoardClient, BoardComponent, BoardDataset, BoardRequirement};
use crate::words::WritableWords;

/// What does not change while a server runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct BoardIdentity {
    /// The server's incarnation.
    pub incarnation: u64,
    /// Its process.
    pub pid: u32,
    /// When it started: nanoseconds since 1970.
    pub started_wall_ns: u64,
    /// The same by the monotonic clock of the machine.
    pub started_ns: u64,
}

/// The one writer of a board.
#[derive(Debug)]
pub struct BoardWriter<W> {
    words: W,
    generation: u64,
}

impl<W: WritableWords> BoardWriter<W> {
    /// Begins a board in words that are all zero. The magic is written last: a reader refuses memory without it.
    pub fn new(mut words: W, identity: &BoardIdentity) -> Self {
        words.store(head::VERSION, VERSION);
        words.store(head::BYTES, BOARD_BYTES);
        words.store(head::INCARNATION, identity.incarnation);
        words.store(head::PID, u64::from(identity.pid));
        words.store(head::STARTED_WALL_NS, identity.started_wall_ns);
        words.store(head::STARTED_NS, identity.started_ns);
        words.release();
        words.store(head::MAGIC, MAGIC);
        Self { words, generation: 0 }
    }

    /// Notes that the deciding thread has turned: how often, and when by the monotonic clock.
    pub fn turned(&mut self, turns: u64, at_ns: u64) {
        self.words.store(head::TURNS, turns);
        self.words.store(head::TURNED_NS, at_ns);
    }

    /// Notes what the server does.
    pub fn state(&mut self, state: BoardState) {
        self.words.store(head::STATE, state as u64);
    }

    /// Writes the numbers of one moment: readers see all or none.
    pub fn publish(&mut self, write: impl FnOnce(&mut BoardEdit<'_, W>)) {
        self.generation += 1;
        self.words.store(head::GENERATION, self.generation);
        self.words.release();
        let mut edit = BoardEdit {
            words: &mut self.words,
            clients: 0,
            notes: 0,
            requirements: 0,
            unlisted: [0; 2],
        };
        write(&mut edit);
        edit.finish();
        self.words.release();
        self.generation += 1;
        self.words.store(head::GENERATION, self.generation);
    }

    /// Returns the words.
    pub fn words(&self) -> &W {
        &self.words
    }
}

/// The tables of a board while they are written.
#[derive(Debug)]
pub struct BoardEdit<'a, W> {
    words: &'a mut W,
    clients: usize,
    notes: usize,
    requirements: usize,
    /// Clients and requirements without a place.
    unlisted: [u64; 2],
}

impl<W: WritableWords> BoardEdit<'_, W> {
    /// Writes a counter.
    pub fn counter(&mut self, counter: BoardCounter, value: u64) {
        self.words.store(counter.word(), value);
    }

    /// Writes how many requests failed with the code of this number.
    pub fn errors(&mut self, code: u16, count: u64) {
        if usize::from(code) < ERRORS_MAX {
            self.words.store(ERRORS_AT + usize::from(code), count);
        }
    }

    /// Writes a histogram.
    pub fn histogram(&mut self, histogram: BoardHistogram, counts: &HistogramCounts) {
        let at = histogram.word();
        for (bucket, &count) in counts.buckets().iter().enumerate() {
            self.words.store(at + bucket, count);
        }
        self.words.store(at + HISTOGRAM_BUCKETS, counts.sum());
    }

    /// Writes the next client.
    pub fn client(&mut self, client: &BoardClient<&str>) {
        if self.clients == CLIENTS_MAX {
            self.unlisted[0] += 1;
            return;
        }
        let at = CLIENTS_AT + self.clients * CLIENT_WORDS;
        self.clients += 1;
        let numbers = [
            u64::from(client.client),
            u64::from(client.pid),
            u64::from(client.component),
            client.offered,
            client.delivered,
            client.held,
            client.requests,
            client.offers_waiting,
            client.leased_bytes,
            client.backlog_bytes,
        ];
        self.numbers(at, &numbers);
        self.text(at + 14, client.transport, TRANSPORT_BYTES);
        self.text(at + 16, client.name, NAME_BYTES);
        self.text(at + 24, client.host, HOST_BYTES);
        if !client.note.is_empty() && self.notes < NOTES_MAX {
            let at = NOTES_AT + self.notes * NOTE_WORDS;
            self.notes += 1;
            self.numbers(at, &[u64::from(client.client)]);
            self.text(at + 1, client.note, LONG_NAME_BYTES);
        }
    }

    /// Writes the next named requirement.
    pub fn requirement(&mut self, requirement: &BoardRequirement<&str>) {
        if self.requirements == REQUIREMENTS_MAX {
            self.unlisted[1] += 1;
            return;
        }
        let at = REQUIREMENTS_AT + self.requirements * REQUIREMENT_WORDS;
        self.requirements += 1;
        // An age is stored as one more, 0 for none.
        let age = |age: Option<u64>| age.map_or(0, |age| age.saturating_add(1));
        let numbers = [
            requirement.owed,
            requirement.owed_bytes,
            requirement.in_flight,
            requirement.members,
            age(requirement.oldest_owed_age_ns),
            age(requirement.last_release_age_ns),
            requirement.lost,
            requirement.users,
            u64::from(requirement.is_broken),
        ];
        self.numbers(at, &numbers);
        self.text(at + 16, requirement.name, LONG_NAME_BYTES);
    }

    /// Writes the dataset of a place.
    pub fn dataset(&mut self, place: usize, dataset: &BoardDataset<&str>) {
        if place < DATASETS_MAX {
            let at = DATASETS_AT + place * DATASET_WORDS;
            let numbers = [
                dataset.offered,
                dataset.offered_bytes,
                dataset.visible,
                dataset.visible_bytes,
            ];
            self.numbers(at, &numbers);
            self.text(at + 8, dataset.name, LONG_NAME_BYTES);
        }
    }

    /// Writes the component of a place.
    pub fn component(&mut self, place: usize, component: &BoardComponent<&str>) {
        if place < COMPONENTS_MAX {
            let at = COMPONENTS_AT + place * COMPONENT_WORDS;
            let numbers = [
                component.clients,
                component.joined,
                component.left,
                component.offered,
                component.offered_bytes,
                component.delivered,
                component.delivered_bytes,
                component.released,
            ];
            self.numbers(at, &numbers);
            self.text(at + 8, component.name, NAME_BYTES);
        }
    }

    /// Writes what the component of one place has given to that of another.
    pub fn edge(&mut self, from: usize, to: usize, objects: u64, bytes: u64) {
        if from < COMPONENTS_MAX && to < COMPONENTS_MAX {
            let at = EDGES_AT + (from * COMPONENTS_MAX + to) * EDGE_WORDS;
            self.numbers(at, &[objects, bytes]);
        }
    }

    /// Writes how many datasets and components there are.
    pub fn tables(&mut self, datasets: usize, components: usize) {
        self.words.store(head::DATASETS, datasets.min(DATASETS_MAX) as u64);
        self.words
            .store(head::COMPONENTS, components.min(COMPONENTS_MAX) as u64);
    }

    fn finish(self) {
        self.words.store(head::CLIENTS, self.clients as u64);
        self.words.store(head::NOTES, self.notes as u64);
        self.words.store(head::REQUIREMENTS, self.requirements as u64);
        self.words.store(head::CLIENTS_UNLISTED, self.unlisted[0]);
        self.words.store(head::REQUIREMENTS_UNLISTED, self.unlisted[1]);
    }

    fn numbers(&mut self, at: usize, numbers: &[u64]) {
        for (place, &number) in numbers.iter().enumerate() {
            self.words.store(at + place, number);
        }
    }

    /// Writes a text, cut at a character, and zeros to the end of its field.
    fn text(&mut self, at: usize, text: &str, bytes: usize) {
        let mut end = text.len().min(bytes);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        for (place, chunk) in (0..bytes / 8).map(|place| (place, &text.as_bytes()[(8 * place).min(end)..end])) {
            let mut word = [0; 8];
            let length = chunk.len().min(8);
            word[..length].copy_from_slice(&chunk[..length]);
            self.words.store(at + place, u64::from_le_bytes(word));
        }
    }
}
