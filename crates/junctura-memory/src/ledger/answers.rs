//! The ledger's answers, and the texts of its refusals.

use std::fmt;

use junctura_model::size::bytes;
use junctura_model::{Code, Error};

use super::{LedgerCounters, LedgerLimits};

/// A new segment: slot `i` is at `i * slot_bytes`, and there are `bytes / slot_bytes` slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentGrant {
    /// Its number.
    pub segment: u32,
    /// Bytes of the whole segment: a multiple of a page.
    pub bytes: u64,
    /// Bytes of each slot.
    pub slot_bytes: u64,
}

/// The state of a segment after one of its slots was vacated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacatedSlot {
    /// The client that leases the segment, and may use the slot again.
    pub owner: Option<u32>,
    /// No object is left in the segment.
    pub emptied: bool,
    /// The segment was dropped: no client leases it, and no object is left.
    pub dropped: bool,
}

/// The memory of one client, in bytes except where named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientMemory {
    /// The client; `None` for all that have left.
    pub client: Option<u32>,
    /// Its segments.
    pub leased_bytes: u64,
    /// Slots that hold objects.
    pub occupied_bytes: u64,
    /// Payloads in those slots.
    pub payload_bytes: u64,
    /// The number of its segments.
    pub segments: u32,
    /// The number of slots that hold objects.
    pub occupied_slots: u64,
}

/// Why a lease is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The budget is used up; the lease may wait for memory.
    Budget,
    /// The payload alone is larger than the budget.
    TooLarge,
    /// The client leases as many segments as it may.
    Segments,
    /// An empty payload needs no segment.
    Empty,
    /// All segment numbers of this server are used up.
    Numbers,
}

/// No segment can be leased. Prints as the cause that a user reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRefusal {
    /// The limit that was reached.
    pub reason: RefusalReason,
    /// Bytes of the payload that wanted a place.
    pub payload_bytes: u64,
    /// The limits in force.
    pub limits: LedgerLimits,
    /// The memory in use.
    pub counters: LedgerCounters,
}

impl LeaseRefusal {
    /// The number of holders that an error names.
    pub const HOLDERS_NAMED: usize = 3;

    /// Whether it helps to wait until others release memory.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.reason == RefusalReason::Budget
    }

    /// The error for a user, which names the biggest holders: pass [`super::MemoryLedger::largest_holders`], and what a
    /// client is called.
    #[must_use]
    pub fn into_error(self, holders: &[ClientMemory], name: impl Fn(u32) -> String) -> Error {
        let code = match self.reason {
            RefusalReason::Budget => Code::PoolFull,
            RefusalReason::TooLarge => Code::TooLarge,
            RefusalReason::Segments | RefusalReason::Numbers => Code::LimitExceeded,
            RefusalReason::Empty => Code::InvalidArgument,
        };
        let mut cause = self.to_string();
        if self.reason == RefusalReason::Budget {
            for (place, holder) in holders.iter().take(Self::HOLDERS_NAMED).enumerate() {
                let who = holder.client.map_or_else(|| "clients that have left".to_owned(), &name);
                let before = if place == 0 { "; most is held by " } else { ", " };
                let (leased, in_use) = (bytes(holder.leased_bytes), bytes(holder.occupied_bytes));
                cause = format!("{cause}{before}{who} ({leased} leased, {in_use} in use)");
            }
        }
        Error::new(code, format!("payload of {}", bytes(self.payload_bytes)), cause)
    }
}

impl fmt::Display for LeaseRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LedgerLimits {
            budget_bytes,
            segments_per_client,
            ..
        } = self.limits;
        match self.reason {
            RefusalReason::Budget => write!(
                f,
                "of {}, {} are leased to producers ({} contain objects) and {} are kept inline",
                bytes(budget_bytes),
                bytes(self.counters.leased_bytes),
                bytes(self.counters.occupied_bytes),
                bytes(self.counters.inline_bytes)
            ),
            RefusalReason::TooLarge => write!(f, "the whole budget is {}", bytes(budget_bytes)),
            RefusalReason::Segments => write!(
                f,
                "the client leases {segments_per_client} segments, the most that one client may"
            ),
            RefusalReason::Empty => f.write_str("an empty payload needs no segment"),
            RefusalReason::Numbers => f.write_str("the server has used up its segment numbers; restart it"),
        }
    }
}

impl std::error::Error for LeaseRefusal {}

/// An error in a client's request about its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// There is no such segment (any more).
    NoSuchSegment,
    /// The client does not lease it.
    NotLeased,
    /// The segment has fewer slots.
    NoSuchSlot {
        /// How many it has.
        slots: u32,
    },
    /// The slot contains an object.
    Occupied,
    /// The payload is longer than the slot.
    TooLong {
        /// Bytes of the slot.
        slot_bytes: u64,
    },
    /// The segment contains objects, so it cannot be returned.
    InUse {
        /// How many.
        occupied: u32,
    },
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchSegment => f.write_str("there is no such segment"),
            Self::NotLeased => f.write_str("the client does not lease it"),
            Self::NoSuchSlot { slots } => write!(f, "it has only {slots} slots"),
            Self::Occupied => f.write_str("an object is in the slot"),
            Self::TooLong { slot_bytes } => write!(f, "the payload is longer than the slot of {slot_bytes} bytes"),
            Self::InUse { occupied } => write!(f, "{occupied} objects are in it"),
        }
    }
}

impl std::error::Error for SegmentError {}

impl From<SegmentError> for Error {
    fn from(refused: SegmentError) -> Self {
        let code = match refused {
            SegmentError::NotLeased => Code::Denied,
            SegmentError::Occupied | SegmentError::InUse { .. } => Code::Conflict,
            _ => Code::InvalidArgument,
        };
        Self::new(code, "segment", refused.to_string())
    }
}
