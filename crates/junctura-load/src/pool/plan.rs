//! The task of one process of a load, and the memory that it takes.

use std::path::PathBuf;

use junctura::{Consumers, Result, Retention};
use serde::{Deserialize, Serialize};

use crate::load::LoadSpace;
use crate::pool::{RetentionEnd, TouchMode};

/// The task of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerRole {
    Producer,
    Consumer,
    Subscriber,
    Observer,
}

/// The plan of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerPlan {
    pub(crate) role: WorkerRole,
    pub(crate) index: u32,
    pub(crate) url: String,
    pub(crate) space: LoadSpace,
    pub(crate) producers: u32,
    /// The number of all producers: the replacement of a killed one has a number of its own.
    pub(crate) producers_in_all: u32,
    /// Consumers that are in no group and share the objects by member.
    pub(crate) sharers: u32,
    /// Which share of the members is offered, or received by one in no group.
    pub(crate) share: u32,
    /// How many were killed that had this place before.
    pub(crate) life: u32,
    /// Consumer groups that each get everything.
    pub(crate) groups: u32,
    /// The group of this consumer.
    pub(crate) group: Option<u32>,
    pub(crate) retention: RetentionEnd,
    /// It takes what is left, of its group or of its share.
    pub(crate) closes: bool,
    pub(crate) payload_bytes: usize,
    pub(crate) grib: Option<PathBuf>,
    pub(crate) mode: TouchMode,
    pub(crate) window: u32,
    pub(crate) bundle: Option<u64>,
    pub(crate) rate: Option<f64>,
    pub(crate) work_ns: u64,
    /// Memory is taken and its pages made before the load begins; else as it is needed.
    pub(crate) takes_ahead: bool,
    pub(crate) warmup_ns: u64,
    pub(crate) duration_ns: u64,
    pub(crate) subscriptions: u32,
    pub(crate) history: Option<PathBuf>,
}

/// Slots that producers use before they reuse the first one, in bytes, all producers together.
const ROTATION_BYTES: usize = 512 << 20;
/// Slots that a consumer may hold while its releases are under way.
const SLOTS_UNDER_WAY: usize = 256;

/// Bytes of the slot of a payload: there are four sizes between powers of two.
fn slot_bytes(payload_bytes: u64) -> u64 {
    let step = (payload_bytes.next_power_of_two() / 8).max(64);
    payload_bytes.next_multiple_of(step)
}

impl WorkerPlan {
    /// Slots that a producer uses before it reuses the first one.
    pub(crate) fn slots_in_rotation(&self) -> usize {
        (ROTATION_BYTES / self.producers as usize / self.payload_bytes.max(1)).max(1)
    }

    /// Slots that a producer uses at most.
    pub(crate) fn slots(&self) -> usize {
        let staged = self.bundle.unwrap_or(0) as usize;
        self.slots_in_rotation() + self.window as usize + staged + SLOTS_UNDER_WAY / self.producers as usize
    }

    /// Memory that all producers together need of a pool: not much more than they take before the run, so that a
    /// producer that runs ahead waits for slots and not for the system to make pages.
    pub(crate) fn budget_bytes(&self) -> u64 {
        const LARGEST_SEGMENT_BYTES: u64 = 64 << 20;
        const INLINE_BYTES: u64 = 256 << 20;
        let slots = (self.slots() as u64).saturating_mul(slot_bytes(self.payload_bytes as u64));
        let of_a_producer = slots.saturating_add(LARGEST_SEGMENT_BYTES);
        let of_all = u64::from(self.producers).saturating_mul(of_a_producer);
        INLINE_BYTES.saturating_sub(slots).saturating_add(of_all)
    }

    /// The share of an ensemble member, among the consumers that are in no group.
    pub(crate) fn share_of(&self, member: u32) -> usize {
        (member % self.sharers.max(1)) as usize
    }

    /// The number of receivers of each object: the groups, and one consumer outside all groups.
    pub(crate) fn readers(&self) -> u32 {
        self.groups + u32::from(self.sharers > 0)
    }

    /// The name of the group that it shares with others.
    pub(crate) fn group_name(&self) -> Option<String> {
        self.group.map(group_name)
    }

    /// The name of the group that it is alone in.
    pub(crate) fn own_group_name(&self) -> Option<String> {
        (self.retention == RetentionEnd::Group).then(|| own_group_name(self.share))
    }

    /// How long objects stay, by the share that they are in.
    pub(crate) fn retentions(&self) -> Result<Vec<Retention>> {
        let of_share = |share| match self.retention {
            RetentionEnd::Count => Ok(Retention::Released(self.readers())),
            RetentionEnd::Group => Consumers::new([own_group_name(share).as_str()]).map(Retention::ReleasedBy),
        };
        (0..self.sharers.max(1)).map(of_share).collect()
    }

    /// The name of the process.
    pub(crate) fn name(&self) -> String {
        let letter = match self.role {
            WorkerRole::Producer => 'p',
            WorkerRole::Consumer => 'c',
            WorkerRole::Subscriber => 's',
            WorkerRole::Observer => 'o',
        };
        format!("{letter}{}", self.index)
    }
}

/// The name of a group of a load.
pub(crate) fn group_name(group: u32) -> String {
    format!("load/g{group}")
}

/// The name of the group of the consumer that has this share of the members.
pub(crate) fn own_group_name(share: u32) -> String {
    format!("load/c{share}")
}
