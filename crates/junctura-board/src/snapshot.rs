//! A copy of a board: the numbers of one moment.

use junctura_model::Code;
use serde::{Serialize, Serializer};

use crate::fold::component_group;
use crate::layout::{BoardCounter, BoardHistogram, BoardState, HISTOGRAM_BUCKETS};

/// The head of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BoardHead {
    /// The server's incarnation.
    pub incarnation: u64,
    /// Its process.
    pub pid: u32,
    /// When it started: nanoseconds since 1970.
    pub started_wall_ns: u64,
    /// The same by the monotonic clock of the machine.
    pub started_ns: u64,
    /// How often the deciding thread has turned.
    pub turns: u64,
    /// When it was last seen to turn, by the same clock.
    pub turned_ns: u64,
    /// The state of the server.
    pub state: BoardState,
}

impl BoardHead {
    /// Returns the nanoseconds since the deciding thread was last seen to turn, where the monotonic clock shows `now_ns`. A
    /// server that has nothing to do turns once a second.
    #[must_use]
    pub fn turn_age_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.turned_ns)
    }
}

/// A client on a board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BoardClient<S = String> {
    /// The number that the server gave it.
    pub client: u32,
    /// Its process.
    pub pid: u32,
    /// The place of its component.
    pub component: u16,
    /// Objects it has offered.
    pub offered: u64,
    /// Objects it was given.
    pub delivered: u64,
    /// Deliveries that are not released.
    pub held: u64,
    /// Its requests that have not ended.
    pub requests: u64,
    /// Its offers that wait for memory.
    pub offers_waiting: u64,
    /// Bytes of the segments leased to it.
    pub leased_bytes: u64,
    /// Bytes of messages to it that it has not read.
    pub backlog_bytes: u64,
    /// How its payloads travel.
    pub transport: S,
    /// Its name.
    pub name: S,
    /// The machine it runs on.
    pub host: S,
    /// Its note about its work; empty for none.
    pub note: S,
}

/// A requirement with a name on a board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BoardRequirement<S = String> {
    /// Its name.
    pub name: S,
    /// Objects that it is owed.
    pub owed: u64,
    /// Bytes of their payloads.
    pub owed_bytes: u64,
    /// Deliveries through it that are not released.
    pub in_flight: u64,
    /// Members of its group; of one without a group, 1 while it is read.
    pub members: u64,
    /// Nanoseconds for which it has been owed the oldest one.
    pub oldest_owed_age_ns: Option<u64>,
    /// Nanoseconds since the last release of what arrived through it.
    pub last_release_age_ns: Option<u64>,
    /// Objects that were lost while it had no reader.
    pub lost: u64,
    /// Requests of clients that use it.
    pub users: u64,
    /// It is broken.
    pub is_broken: bool,
}

/// A dataset on a board: the first level of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BoardDataset<S = String> {
    /// The attributes of the level.
    pub name: S,
    /// Objects that became visible.
    pub offered: u64,
    /// Bytes of their payloads.
    pub offered_bytes: u64,
    /// Visible objects.
    pub visible: u64,
    /// Bytes of their payloads.
    pub visible_bytes: u64,
}

/// A component on a board: clients whose names differ in numbers only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BoardComponent<S = String> {
    /// The folded name.
    pub name: S,
    /// Clients that are connected.
    pub clients: u64,
    /// Clients that connected.
    pub joined: u64,
    /// Clients that left.
    pub left: u64,
    /// Objects that became visible.
    pub offered: u64,
    /// Bytes of their payloads.
    pub offered_bytes: u64,
    /// Deliveries to it.
    pub delivered: u64,
    /// Bytes of their payloads.
    pub delivered_bytes: u64,
    /// Objects that it released.
    pub released: u64,
}

impl BoardComponent {
    /// Returns the group: the part of the name before `/`.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        component_group(&self.name)
    }
}

/// Deliveries from one component to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BoardEdge {
    /// The place of the component that offered.
    pub from: u16,
    /// The place of the component that received.
    pub to: u16,
    /// Deliveries.
    pub objects: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

/// A histogram of a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoardHistogramSnapshot {
    /// Counts, by [`crate::histogram::bucket_of`].
    pub buckets: Vec<u64>,
    /// The sum of the values.
    pub sum: u64,
}

impl BoardHistogramSnapshot {
    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the number of values that are not greater than `4^power`.
    #[must_use]
    pub fn up_to_power_of_four(&self, power: u32) -> u64 {
        let buckets = (8 * power as usize).clamp(1, HISTOGRAM_BUCKETS);
        self.buckets.iter().take(buckets).sum()
    }
}

/// A copy of a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoardSnapshot {
    /// The head.
    pub head: BoardHead,
    /// False: the server was stopped or killed while it wrote, and numbers of two moments may be mixed.
    pub is_consistent: bool,
    /// By the places of [`BoardCounter`].
    #[serde(serialize_with = "by_counter")]
    pub(crate) counters: Vec<u64>,
    /// Failed requests by their code, for each code.
    #[serde(serialize_with = "by_code")]
    pub errors: Vec<(Code, u64)>,
    /// By the places of [`BoardHistogram`].
    #[serde(serialize_with = "by_histogram")]
    pub(crate) histograms: Vec<BoardHistogramSnapshot>,
    /// The clients that are connected, in the order of their numbers; of very many, some.
    pub clients: Vec<BoardClient>,
    /// Clients that are not listed.
    pub clients_unlisted: u64,
    /// Requirements with a name, in the order of their names; of very many, the first.
    pub requirements: Vec<BoardRequirement>,
    /// Requirements that are not listed.
    pub requirements_unlisted: u64,
    /// Datasets in the order in which they appeared; the 256th is `others`.
    pub datasets: Vec<BoardDataset>,
    /// Components in the order in which they appeared; the 128th is `others`.
    pub components: Vec<BoardComponent>,
    /// Edges that are not zero.
    pub edges: Vec<BoardEdge>,
}

impl BoardSnapshot {
    /// Returns the numbers as JSON: the fields of this type, with counters and histograms by their names.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns a counter.
    #[must_use]
    pub fn counter(&self, counter: BoardCounter) -> u64 {
        self.counters[counter as usize]
    }

    /// Returns a histogram.
    #[must_use]
    pub fn histogram(&self, histogram: BoardHistogram) -> &BoardHistogramSnapshot {
        &self.histograms[histogram as usize]
    }
}

fn by_counter<S: Serializer>(counters: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(BoardCounter::ALL.iter().map(|one| one.name()).zip(counters))
}

fn by_code<S: Serializer>(errors: &[(Code, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(errors.iter().map(|(code, count)| (code.name(), count)))
}

fn by_histogram<S: Serializer>(histograms: &[BoardHistogramSnapshot], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(BoardHistogram::ALL.iter().map(|one| one.name()).zip(histograms))
}
