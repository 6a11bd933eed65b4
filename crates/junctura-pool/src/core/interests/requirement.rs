//! Requirements: what matches stays until it was received through the requirement and released.
//!
//! An unnamed requirement belongs to its connection and goes with it; one with a name is nobody's ([`crate::core::interests::named_requirement`]). Both
//! are owed what is visible when they are made and what becomes visible later: every version, or with `newest_only` a version
//! until a newer one comes.
//!
//! ```text
//!            delivered                released, by any client
//!   owed -----------------> in flight ------------------------> done
//!     ^                        |
//!     '------------------------'  its client is gone
//! ```

use std::collections::BTreeMap;

use junctura_model::selector::SelectorSet;

use crate::core::deferred::beginning::RequirementStart;
use crate::core::engine::timers::Nanoseconds;
use crate::core::interests::gaps::LostObjects;
use crate::core::interests::group::GroupState;
use crate::core::interests::named_requirement::NamedRequirement;
use crate::core::interests::stuck::{StuckBounds, StuckRequirement};
use crate::core::memory::shortage::MemoryShortage;
use crate::core::objects::table::ObjectTable;

/// So many requirements are asked one by one whether they are owed an object.
pub(in crate::core) const FEW: usize = 16;

/// One requirement.
pub(in crate::core) struct RequirementState {
    pub(in crate::core) whose: RequirementOwner,
    pub(in crate::core) selectors: SelectorSet,
    pub(in crate::core) newest_only: bool,
    pub(in crate::core) bounds: StuckBounds,
    /// By sequence number: what it is owed.
    pub(in crate::core) owed: BTreeMap<u64, OwedObjects>,
    /// Bytes of the payloads that it is owed.
    pub(in crate::core) owed_bytes: u64,
    /// Of them, what retention keeps no longer; counted only where it breaks on full.
    pub(in crate::core) kept: u64,
    /// Deliveries of what it is owed that are not released.
    pub(in crate::core) in_flight: u64,
    /// Demands that wait through it.
    pub(in crate::core) demands: u32,
    /// The follow that receives through it, where one reads at a time.
    pub(in crate::core) reader: Option<u32>,
    /// When its readers did something last, or when it was owed nothing last.
    pub(in crate::core) progress: Nanoseconds,
    /// Since then it was reported to be stuck.
    pub(in crate::core) is_reported: bool,
    pub(in crate::core) broken: Option<StuckRequirement>,
    /// By sequence number: how many deliveries its readers hold of what it was owed until it was broken.
    pub(in crate::core) forfeited: BTreeMap<u64, u32>,
    pub(in crate::core) lost: LostObjects,
    /// Where members share what it is owed.
    pub(in crate::core) group: Option<Box<GroupState>>,
    /// It is about to be owed what was there when it was made, where that is very much.
    pub(in crate::core) beginning: Option<Box<RequirementStart>>,
}

/// The objects that a requirement was owed when it ended.
pub(in crate::core) struct DisownedObjects(pub(in crate::core) BTreeMap<u64, OwedObjects>);

impl DisownedObjects {
    /// Their numbers, the next last.
    pub(in crate::core) fn left(&self) -> Vec<u64> {
        self.0.keys().rev().copied().collect()
    }
}

/// Whom a requirement goes with.
pub(in crate::core) enum RequirementOwner {
    /// The connection that made it.
    Client { client: u32, request: u64 },
    /// Nobody.
    Named(Box<NamedRequirement>),
}

pub(in crate::core) struct OwedObjects {
    pub(in crate::core) object: u32,
    /// Deliveries through the requirement that are not released.
    pub(in crate::core) in_flight: u32,
    /// It stands in the queue of the follow that reads the requirement now.
    pub(in crate::core) queued: bool,
    /// It counts as kept.
    pub(in crate::core) charged: bool,
    /// A client to which it was delivered through the requirement is gone without a release, or gave it back undone.
    pub(in crate::core) again: bool,
    /// Since when it is owed.
    pub(in crate::core) since: Nanoseconds,
}

impl RequirementState {
    /// How many objects it is owed.
    pub(in crate::core) fn owed_count(&self) -> usize {
        self.owed.len()
    }

    pub(in crate::core) fn new(
        whose: RequirementOwner,
        selectors: SelectorSet,
        newest_only: bool,
        bounds: StuckBounds,
    ) -> Self {
        Self {
            whose,
            selectors,
            newest_only,
            bounds,
            owed: BTreeMap::new(),
            owed_bytes: 0,
            kept: 0,
            in_flight: 0,
            demands: 0,
            reader: None,
            progress: 0,
            is_reported: false,
            broken: None,
            forfeited: BTreeMap::new(),
            lost: LostObjects::default(),
            group: None,
            beginning: None,
        }
    }

    /// How many objects it is owed.
    pub(in crate::core) fn owed_len(&self) -> usize {
        self.owed.len()
    }

    /// How much of what was there when it was made it has yet to be owed.
    pub(in crate::core) fn to_be_owed(&self) -> usize {
        self.beginning.as_ref().map_or(0, |beginning| beginning.len())
    }

    /// Its client and request; a requirement with a name has neither.
    pub(in crate::core) fn client(&self) -> (u32, u64) {
        match self.whose {
            RequirementOwner::Client { client, request } => (client, request),
            RequirementOwner::Named(_) => (0, 0),
        }
    }

    /// Whether it is owed all that was there when it was made.
    pub(in crate::core) fn has_begun(&self) -> bool {
        self.beginning.is_none()
    }

    /// What it is owed.
    pub(in crate::core) fn objects(&self) -> impl Iterator<Item = u32> {
        self.owed.values().map(|owed| owed.object)
    }

    /// What it is owed: what waits for its turn, and what its readers hold.
    pub(in crate::core) fn owed_by_place(&self) -> (Vec<u32>, Vec<u32>) {
        let (held, waiting): (Vec<&OwedObjects>, Vec<&OwedObjects>) =
            self.owed.values().partition(|owed| owed.in_flight > 0);
        let objects = |owed: Vec<&OwedObjects>| owed.into_iter().map(|owed| owed.object).collect();
        (objects(waiting), objects(held))
    }

    /// Counts what it is owed of this number as kept; false where it was counted, or is not owed.
    pub(in crate::core) fn charge(&mut self, sequence: u64, length: u64) -> bool {
        let Some(owed) = self.owed.get_mut(&sequence).filter(|owed| !owed.charged) else {
            return false;
        };
        owed.charged = true;
        self.kept += length;
        true
    }

    /// Its readers still hold what it was owed until it was broken.
    pub(in crate::core) fn is_forfeiting(&self) -> bool {
        !self.forfeited.is_empty()
    }

    /// Its quota, where it keeps more.
    pub(in crate::core) fn quota_exceeded(&self) -> Option<u64> {
        self.bounds.quota.filter(|&quota| self.kept > quota)
    }

    /// Of what it is owed, the oldest: its sequence number, and since when it is owed.
    pub(in crate::core) fn oldest_owed(&self) -> Option<(u64, Nanoseconds)> {
        self.owed
            .first_key_value()
            .map(|(&sequence, owed)| (sequence, owed.since))
    }

    /// When it is stuck, if its readers release nothing.
    pub(in crate::core) fn stuck_at(&self) -> Nanoseconds {
        self.progress.saturating_add(self.bounds.stuck_after)
    }

    /// When half of that time is over.
    pub(in crate::core) fn half_at(&self) -> Nanoseconds {
        self.progress.saturating_add(self.bounds.stuck_after / 2)
    }

    /// The object of a version that it is owed.
    pub(in crate::core) fn object_of(&self, sequence: u64) -> Option<u32> {
        self.owed.get(&sequence).map(|owed| owed.object)
    }

    /// Whether a follow receives through it.
    pub(in crate::core) fn is_read(&self) -> bool {
        self.reader.is_some() || self.group.as_ref().is_some_and(|group| !group.members.is_empty())
    }

    /// How much of what is short would be free without it: bytes or objects that it is owed and retention keeps no
    /// longer, or all that it is owed.
    pub(in crate::core) fn kept_of(&self, objects: &ObjectTable, shortage: MemoryShortage) -> u64 {
        let owed = self.objects().map(|id| &objects[id]);
        let kept = owed.filter(|object| !object.is_kept_by_retention());
        match shortage {
            MemoryShortage::Payload => kept.map(|object| object.length).sum(),
            MemoryShortage::Records => kept.count() as u64,
            MemoryShortage::Owed => self.owed_len() as u64,
        }
    }

    pub(in crate::core) fn named(&self) -> Option<&NamedRequirement> {
        match &self.whose {
            RequirementOwner::Named(named) => Some(named),
            RequirementOwner::Client { .. } => None,
        }
    }
}
