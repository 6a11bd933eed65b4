//! Objects: their states, and when they and their payloads go.

use junctura_model::RecordRef;
use junctura_wire::Reply;
use junctura_wire::body::ObjectName;
use junctura_wire::fixed::SlotAddress;

use crate::Effects;
use crate::core::engine::timers::Nanoseconds;
use crate::core::memory::eviction::ArchivedCopy;
use crate::core::memory::spill::TierState;

/// Where an object stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum ObjectState {
    Visible,
    /// A newer version has taken its place; holders and requirements keep it.
    Superseded,
    Gone(RemovalReason),
    /// It becomes visible with its bundle.
    Staged,
    /// It was staged, and will never be visible.
    Dropped,
}

/// Why an object is not visible any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum RemovalReason {
    Withdrawn,
    Expired,
    /// A store has it, and memory was short.
    Archived,
}

impl RemovalReason {
    pub(in crate::core) fn name(self) -> &'static str {
        match self {
            Self::Withdrawn => "withdrawn",
            Self::Expired => "expired",
            Self::Archived => "archived",
        }
    }
}

/// What an object's retention waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum RetainedUntil {
    Withdrawn,
    /// So many more releases.
    Released(u32),
    /// This time, which stands in the queue of expiries; the end of all times until the object is visible.
    Time(Nanoseconds),
    /// Those of a set of requirements that are not there yet, as bits ([`crate::core::objects::retention_by_name`]).
    Awaited {
        consumers: u32,
        absent: u16,
    },
    /// The others of its bundle ([`crate::core::bundles`]).
    Together,
    /// Nothing any more.
    Over,
}

/// How long an object stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum ObjectRetention {
    UntilWithdrawn,
    /// So many releases.
    Released(u32),
    /// So long from when it is visible.
    For(Nanoseconds),
    /// Until all requirements of this set have had it.
    ReleasedBy(u32),
    /// As long as another object of its bundle that is kept otherwise.
    Together,
}

impl From<ObjectRetention> for RetainedUntil {
    fn from(keep: ObjectRetention) -> Self {
        match keep {
            ObjectRetention::UntilWithdrawn => Self::Withdrawn,
            ObjectRetention::Released(count) => Self::Released(count),
            ObjectRetention::For(_) => Self::Time(Nanoseconds::MAX),
            ObjectRetention::ReleasedBy(consumers) => Self::Awaited {
                consumers,
                absent: u16::MAX,
            },
            ObjectRetention::Together => Self::Together,
        }
    }
}

/// Where an object's payload lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum PayloadLocation {
    Inline,
    Slot {
        segment: u32,
        slot: u32,
    },
    /// In the file tier.
    File {
        at: u64,
    },
    /// Nobody can ask for it any more.
    Freed,
}

pub(in crate::core) struct ObjectRow {
    pub(in crate::core) key: u128,
    /// A hash of the key's first level, for counting tombstones.
    pub(in crate::core) dataset: u64,
    /// 0 until it is visible.
    pub(in crate::core) sequence: u64,
    pub(in crate::core) length: u64,
    /// The number of its bundle, or 0.
    pub(in crate::core) bundle: u64,
    pub(in crate::core) record: Vec<u8>,
    pub(in crate::core) inline: Vec<u8>,
    pub(in crate::core) place: PayloadLocation,
    pub(in crate::core) leaving: TierState,
    pub(in crate::core) checksum: Option<u32>,
    pub(in crate::core) producer: u32,
    /// How many of its bundle have the numbers that follow its own.
    pub(in crate::core) rest: u32,
    pub(in crate::core) schema: u16,
    /// The place of its producer's component.
    pub(in crate::core) component: u8,
    pub(in crate::core) state: ObjectState,
    pub(in crate::core) until: RetainedUntil,
    /// A store has it, too.
    pub(in crate::core) archived: Option<ArchivedCopy>,
    /// It is out of sight already, and goes for this reason when its turn comes ([`crate::core::deferred`]).
    pub(in crate::core) departs: Option<RemovalReason>,
    /// Who has released it, where more than one must.
    pub(in crate::core) released_by: Vec<u32>,
    /// Deliveries that are not released.
    pub(in crate::core) holders: u32,
    /// Requirements that are owed it.
    pub(in crate::core) owed: u32,
    /// Readers' queues in which it stands.
    pub(in crate::core) watchers: u32,
    /// It can be found by the listing index (and not only in the queue before it).
    pub(in crate::core) is_indexed: bool,
}

impl ObjectRow {
    pub(in crate::core) fn record(&self) -> RecordRef<'_> {
        RecordRef::trusted(&self.record)
    }

    pub(in crate::core) fn is_visible(&self) -> bool {
        self.state == ObjectState::Visible
    }

    pub(in crate::core) fn is_staged(&self) -> bool {
        self.state == ObjectState::Staged
    }

    pub(in crate::core) fn name(&self) -> ObjectName<'_> {
        ObjectName {
            schema: self.schema,
            sequence: self.sequence,
            record: self.record.as_slice().into(),
        }
    }

    /// Whether it is visible and seen by nobody any more: it goes when its turn comes ([`crate::core::deferred`]).
    pub(in crate::core) fn is_out_of_sight(&self, now: Nanoseconds) -> bool {
        let is_over = || self.owed == 0 && matches!(self.until, RetainedUntil::Time(at) if at <= now);
        self.is_visible() && (self.departs.is_some() || is_over())
    }

    /// Whether it would stay without requirements.
    pub(in crate::core) fn is_kept_by_retention(&self) -> bool {
        self.is_visible() && self.until != RetainedUntil::Over
    }

    pub(in crate::core) fn is_retained(&self) -> bool {
        self.owed > 0 || self.until != RetainedUntil::Over
    }

    /// Whether it, or its payload, is to go now.
    pub(in crate::core) fn may_go(&self) -> bool {
        match self.state {
            ObjectState::Visible => !self.is_retained(),
            ObjectState::Superseded | ObjectState::Gone(_) => {
                self.owed == 0 && self.holders == 0 && self.place != PayloadLocation::Freed
            }
            ObjectState::Staged | ObjectState::Dropped => false,
        }
    }
}

/// Buffers of objects that are gone, for those that come.
#[derive(Default)]
pub(in crate::core) struct SpareBuffers(Vec<Vec<u8>>);

impl SpareBuffers {
    const BUFFERS_MAX: usize = 4096;
    const BUFFER_BYTES_MAX: usize = 8 << 10;

    pub(in crate::core) fn filled(&mut self, bytes: &[u8]) -> Vec<u8> {
        if bytes.is_empty() {
            return Vec::new();
        }
        let mut buffer = self.0.pop().unwrap_or_default();
        if buffer.capacity() > 4 * bytes.len().max(128) {
            buffer = Vec::new();
        }
        buffer.clear();
        buffer.extend_from_slice(bytes);
        buffer
    }

    pub(in crate::core) fn keep(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 && buffer.capacity() <= Self::BUFFER_BYTES_MAX && self.0.len() < Self::BUFFERS_MAX {
            self.0.push(buffer);
        }
    }
}

/// Slots that are their clients' again. Those that come free with one message are told with one.
#[derive(Default)]
pub(in crate::core) struct FreedSlots {
    /// More may come free in what is going on.
    pub(in crate::core) gathers: bool,
    pub(in crate::core) owner: u32,
    pub(in crate::core) slots: Vec<SlotAddress>,
}

impl FreedSlots {
    pub(in crate::core) fn note(&mut self, owner: u32, slot: SlotAddress, fx: &mut impl Effects) {
        if owner != self.owner {
            self.tell(fx);
        }
        self.owner = owner;
        self.slots.push(slot);
        if !self.gathers {
            self.tell(fx);
        }
    }

    pub(in crate::core) fn tell(&mut self, fx: &mut impl Effects) {
        if !self.slots.is_empty() {
            fx.reply(self.owner, 0, &Reply::Freed(&self.slots));
            self.slots.clear();
        }
    }
}
