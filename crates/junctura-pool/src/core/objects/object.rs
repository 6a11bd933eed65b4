//! Objects: their states, and the removal of objects and payloads.

use junctura_model::RecordRef;
use junctura_wire::Reply;
use junctura_wire::body::ObjectName;
use junctura_wire::fixed::SlotAddress;

use crate::Effects;
use crate::core::engine::timers::Nanoseconds;
use crate::core::memory::eviction::ArchivedCopy;
use crate::core::memory::spill::TierState;

/// The state of an object's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum ObjectState {
    Visible,
    /// A newer version has replaced it; holders and requirements keep it.
    Superseded,
    Gone(RemovalReason),
    /// It becomes visible with its bundle.
    Staged,
    /// It was staged, and cannot become visible.
    Dropped,
}

/// The reason of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum RemovalReason {
    Withdrawn,
    Expired,
    /// It is archived, and memory was short.
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

    /// Returns it as the end of a sentence about an object.
    pub(in crate::core) fn sentence(self) -> &'static str {
        match self {
            Self::Withdrawn => "was withdrawn",
            Self::Expired => "its retention ended",
            Self::Archived => "was archived and removed",
        }
    }
}

/// The end of an object's retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum RetainedUntil {
    Withdrawn,
    /// After so many further releases.
    Released(u32),
    /// At this time, which is in the queue of expiries; the latest possible time until the object is visible.
    Time(Nanoseconds),
    /// When the absent requirements of a set exist, given as bits ([`crate::core::objects::retention_by_name`]).
    Awaited {
        consumers: u32,
        absent: u16,
    },
    /// When the other objects of its bundle are removed ([`crate::core::bundles`]).
    Together,
    /// It has ended.
    Over,
}

/// The retention of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum ObjectRetention {
    UntilWithdrawn,
    /// Until so many releases.
    Released(u32),
    /// For so long after it becomes visible.
    For(Nanoseconds),
    /// Until all requirements of this set have released it.
    ReleasedBy(u32),
    /// As long as another object of its bundle with a different retention.
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

/// The location of an object's payload.
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
    /// It can no longer be requested.
    Freed,
}

pub(in crate::core) struct ObjectRow {
    pub(in crate::core) key: u128,
    /// A hash of the key's first level, for counting tombstones.
    pub(in crate::core) dataset: u64,
    /// 0 until it is visible.
    pub(in crate::core) sequence: u64,
    /// When it became visible.
    pub(in crate::core) visible_at: Nanoseconds,
    pub(in crate::core) length: u64,
    /// The number of its bundle, or 0.
    pub(in crate::core) bundle: u64,
    pub(in crate::core) record: Vec<u8>,
    pub(in crate::core) inline: Vec<u8>,
    pub(in crate::core) place: PayloadLocation,
    pub(in crate::core) leaving: TierState,
    pub(in crate::core) checksum: Option<u32>,
    pub(in crate::core) producer: u32,
    /// The number of later members of its bundle, which have the following numbers.
    pub(in crate::core) rest: u32,
    pub(in crate::core) schema: u16,
    /// The place of its producer's component.
    pub(in crate::core) component: u8,
    pub(in crate::core) state: ObjectState,
    pub(in crate::core) until: RetainedUntil,
    /// Its archived copy in a store.
    pub(in crate::core) archived: Option<ArchivedCopy>,
    /// It is hidden, and is removed for this reason in its turn ([`crate::core::deferred`]).
    pub(in crate::core) departs: Option<RemovalReason>,
    /// The place of the component that has withdrawn it.
    pub(in crate::core) withdrawn_by: Option<u8>,
    /// The clients that have released it, where more than one must.
    pub(in crate::core) released_by: Vec<u32>,
    /// The number of unreleased deliveries.
    pub(in crate::core) holders: u32,
    /// The number of requirements that are owed it.
    pub(in crate::core) owed: u32,
    /// The number of readers' queues that have it.
    pub(in crate::core) watchers: u32,
    /// It is in the listing index (and not only in the queue before it).
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

    /// Whether it is hidden: still in the state visible, to be removed in its turn ([`crate::core::deferred`]).
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

    /// Whether it, or its payload, is to be removed now.
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

/// Buffers of removed objects, for new ones.
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

/// Slots to return to their clients. Those that become free with one message are sent in one reply.
#[derive(Default)]
pub(in crate::core) struct FreedSlots {
    /// More may become free in the current event.
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
