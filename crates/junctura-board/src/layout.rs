//! The layout of a board, version 1, in words of 64 bits (`docs/formats/board.md`).

use serde::Serialize;

/// The first word: `JUNCBRD` and a zero byte.
pub const MAGIC: u64 = u64::from_le_bytes(*b"JUNCBRD\0");
/// The version of the layout.
pub const VERSION: u64 = 1;

/// Bytes of the whole board, a multiple of a page.
pub const BOARD_BYTES: u64 = BOARD_WORDS as u64 * 8;
pub(crate) const BOARD_WORDS: usize = (NOTES_AT + NOTES_MAX * NOTE_WORDS).next_multiple_of(512);

/// Buckets of a histogram.
pub const HISTOGRAM_BUCKETS: usize = 256;
/// Clients that are listed.
pub const CLIENTS_MAX: usize = 4096;
/// Named requirements that are listed.
pub const REQUIREMENTS_MAX: usize = 1024;
/// Datasets, the last place for all others.
pub const DATASETS_MAX: usize = 256;
/// Components, the last place for all others.
pub const COMPONENTS_MAX: usize = 128;

/// Clients whose notes are listed.
pub const NOTES_MAX: usize = 1024;

/// Bytes of a client's or a component's name; a longer one is cut.
pub const NAME_BYTES: usize = 64;
/// Bytes of the name of a client's host, likewise.
pub const HOST_BYTES: usize = 32;
/// Bytes of the name of a client's transport, likewise.
pub const TRANSPORT_BYTES: usize = 16;
/// Bytes of a requirement's or a dataset's name, and of a client's note, likewise.
pub const LONG_NAME_BYTES: usize = 128;

pub(crate) const COUNTERS_AT: usize = 512;
pub(crate) const COUNTERS_MAX: usize = 192;
pub(crate) const ERRORS_AT: usize = COUNTERS_AT + COUNTERS_MAX;
pub(crate) const ERRORS_MAX: usize = 64;
pub(crate) const HISTOGRAMS_AT: usize = ERRORS_AT + ERRORS_MAX;
pub(crate) const HISTOGRAM_WORDS: usize = HISTOGRAM_BUCKETS + 1;
pub(crate) const HISTOGRAMS_MAX: usize = 12;
pub(crate) const CLIENTS_AT: usize = 4096;
pub(crate) const CLIENT_WORDS: usize = 32;
pub(crate) const REQUIREMENTS_AT: usize = CLIENTS_AT + CLIENTS_MAX * CLIENT_WORDS;
pub(crate) const REQUIREMENT_WORDS: usize = 32;
pub(crate) const DATASETS_AT: usize = REQUIREMENTS_AT + REQUIREMENTS_MAX * REQUIREMENT_WORDS;
pub(crate) const DATASET_WORDS: usize = 24;
pub(crate) const COMPONENTS_AT: usize = DATASETS_AT + DATASETS_MAX * DATASET_WORDS;
pub(crate) const COMPONENT_WORDS: usize = 24;
pub(crate) const EDGES_AT: usize = COMPONENTS_AT + COMPONENTS_MAX * COMPONENT_WORDS;
pub(crate) const EDGE_WORDS: usize = 2;
pub(crate) const NOTES_AT: usize = EDGES_AT + COMPONENTS_MAX * COMPONENTS_MAX * EDGE_WORDS;
pub(crate) const NOTE_WORDS: usize = 17;

const _: () = assert!(HISTOGRAMS_AT + HISTOGRAMS_MAX * HISTOGRAM_WORDS <= CLIENTS_AT);
const _: () = assert!(BOARD_BYTES.is_multiple_of(4096));

/// Words of the head.
pub(crate) mod head {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 1;
    pub(crate) const BYTES: usize = 2;
    /// Odd while the tables are being written.
    pub(crate) const GENERATION: usize = 3;
    pub(crate) const INCARNATION: usize = 4;
    pub(crate) const PID: usize = 5;
    pub(crate) const STARTED_WALL_NS: usize = 6;
    pub(crate) const STARTED_NS: usize = 7;
    pub(crate) const TURNS: usize = 8;
    pub(crate) const TURNED_NS: usize = 9;
    pub(crate) const STATE: usize = 10;
    pub(crate) const CLIENTS: usize = 11;
    pub(crate) const REQUIREMENTS: usize = 12;
    pub(crate) const DATASETS: usize = 13;
    pub(crate) const COMPONENTS: usize = 14;
    pub(crate) const CLIENTS_UNLISTED: usize = 15;
    pub(crate) const REQUIREMENTS_UNLISTED: usize = 16;
    pub(crate) const NOTES: usize = 17;
}

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoardState {
    /// It was made, and has not begun to serve.
    Starting = 0,
    /// It serves.
    Serving = 1,
    /// It takes nothing new, and ends when what is owed was received.
    Draining = 2,
    /// It has ended in order.
    Ended = 3,
}

impl BoardState {
    /// Returns the name of the state.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Draining => "draining",
            Self::Ended => "ended",
        }
    }

    pub(crate) fn of(word: u64) -> Self {
        match word {
            0 => Self::Starting,
            1 => Self::Serving,
            2 => Self::Draining,
            _ => Self::Ended,
        }
    }
}

macro_rules! numbered {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $name:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$doc])* $name,)* }

        impl $type {
            /// All, in the order of their places.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

numbered! {
    /// A counter or gauge of the pool. The order is the layout's: new ones follow the last.
    BoardCounter {
        /// Objects that became visible.
        Offered = "offered",
        /// Bytes of their payloads.
        OfferedBytes = "offered_bytes",
        /// Deliveries.
        Delivered = "delivered",
        /// Bytes of their payloads.
        DeliveredBytes = "delivered_bytes",
        /// Releases.
        Released = "released",
        /// Versions that a newer one replaced.
        Superseded = "superseded",
        /// Objects that were withdrawn.
        Withdrawn = "withdrawn",
        /// Objects whose retention ended.
        Expired = "expired",
        /// Objects that left early, since a store has them and memory was short.
        DroppedArchived = "dropped_archived",
        /// Events sent.
        Events = "events",
        /// Objects named in gaps.
        Gaps = "gaps",
        /// Times that a requirement was broken.
        Broken = "broken",
        /// Objects that were not offered, since nothing wanted them.
        Declined = "declined",
        /// Times that an object was reported to be in a store.
        Archived = "archived",
        /// Times that an object could not be put there.
        Unarchived = "unarchived",
        /// Requests that failed.
        Failed = "failed",
        /// Offers that waited for memory.
        OffersWaited = "offers_waited",
        /// Leases that waited for memory.
        LeasesWaited = "leases_waited",
        /// Segments made.
        SegmentsMade = "segments_made",
        /// Gauge: visible objects.
        Visible = "visible",
        /// Gauge: bytes of their payloads.
        VisibleBytes = "visible_bytes",
        /// Gauge: versions that are not visible but kept.
        Kept = "kept",
        /// Gauge: keys that are remembered as removed.
        Tombstones = "tombstones",
        /// Gauge: deliveries that are not released.
        Held = "held",
        /// Gauge: the newest sequence number.
        Sequence = "sequence",
        /// Gauge: memory that the pool may use for payloads.
        BudgetBytes = "budget_bytes",
        /// Gauge: memory in use.
        UsedBytes = "used_bytes",
        /// Gauge: memory of segments.
        SegmentBytes = "segment_bytes",
        /// Gauge: memory of payloads inside messages.
        InlineBytes = "inline_bytes",
        /// Gauge: bytes of slots with payloads.
        OccupiedBytes = "occupied_bytes",
        /// Gauge: slots with payloads.
        SlotsOccupied = "slots_occupied",
        /// Gauge: segments.
        Segments = "segments",
        /// Gauge: leases that wait for memory.
        LeasesWaiting = "leases_waiting",
        /// Gauge: attributes, keys and index entries.
        RecordBytes = "record_bytes",
        /// Gauge: the limit of attributes, keys and index entries.
        RecordBudgetBytes = "record_budget_bytes",
        /// Gauge: bytes of the file tier; 0: there is none.
        SpillLimitBytes = "spill_limit_bytes",
        /// Gauge: bytes of the file tier in use.
        SpillUsedBytes = "spill_used_bytes",
        /// Gauge: objects whose payloads are there.
        SpillObjects = "spill_objects",
        /// Gauge: payloads that are being written there.
        SpillUnderway = "spill_underway",
        /// Payloads written there.
        SpillWritten = "spill_written",
        /// Bytes in these.
        SpillWrittenBytes = "spill_written_bytes",
        /// Payloads that the disk refused.
        SpillRefused = "spill_refused",
        /// Gauge: standing demands, follows, requirements and subscriptions.
        Interests = "interests",
        /// Gauge: interests that no index helps.
        InterestsUnindexed = "interests_unindexed",
        /// Gauge: requirements.
        Requirements = "requirements",
        /// Gauge: requirements with a name.
        RequirementsNamed = "requirements_named",
        /// Gauge: objects that requirements are owed.
        Owed = "owed",
        /// Gauge: withdraws that wait.
        Withdrawals = "withdrawals",
        /// Gauge: offers that wait for memory.
        OffersWaiting = "offers_waiting",
        /// Gauge: bundles that are not visible yet.
        BundlesOpen = "bundles_open",
        /// Gauge: objects staged in them.
        BundleStaged = "bundle_staged",
        /// Gauge: bytes of their payloads.
        BundleStagedBytes = "bundle_staged_bytes",
        /// Bundles that became visible.
        BundlesCompleted = "bundles_completed",
        /// Bundles that were aborted.
        BundlesAborted = "bundles_aborted",
        /// Gauge: clients that are connected.
        Clients = "clients",
        /// Clients that connected.
        ClientsJoined = "clients_joined",
        /// Clients that left.
        ClientsLeft = "clients_left",
        /// Times that the server slept and was woken.
        Wakeups = "wakeups",
        /// Times that it received from a client.
        Reads = "reads",
        /// Messages in these.
        FramesRead = "frames_read",
        /// Bytes in these.
        BytesRead = "bytes_read",
        /// Times that it sent to a client.
        Writes = "writes",
        /// Messages to clients.
        FramesWritten = "frames_written",
        /// Bytes in these.
        BytesWritten = "bytes_written",
        /// Gauge: the longest turn, in nanoseconds.
        LongestTurnNs = "longest_turn_ns",
        /// Gauge: bytes that clients have not read.
        BacklogBytes = "backlog_bytes",
        /// Processor time of the deciding thread, in nanoseconds.
        BusyNs = "busy_ns",
    }
}

numbered! {
    /// A histogram. The order is the layout's: new ones follow the last.
    BoardHistogram {
        /// Bytes of payloads of objects that became visible.
        ObjectSize = "object_size_bytes",
        /// Nanoseconds of the turns of the deciding thread.
        TurnTime = "turn_ns",
        /// Nanoseconds from the time that an object is visible to each of its deliveries.
        DeliveryDelay = "delivery_delay_ns",
        /// Nanoseconds from a delivery to its release.
        HoldTime = "hold_ns",
        /// Nanoseconds that offers and leases waited until they had memory.
        MemoryWait = "memory_wait_ns",
    }
}

const _: () = assert!(BoardCounter::ALL.len() <= COUNTERS_MAX);
const _: () = assert!(BoardHistogram::ALL.len() <= HISTOGRAMS_MAX);

impl BoardCounter {
    pub(crate) fn word(self) -> usize {
        COUNTERS_AT + self as usize
    }
}

impl BoardHistogram {
    pub(crate) fn word(self) -> usize {
        HISTOGRAMS_AT + self as usize * HISTOGRAM_WORDS
    }
}
