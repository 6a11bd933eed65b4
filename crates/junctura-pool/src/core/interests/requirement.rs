//! Requirements: a matching object stays until it was received through the requirement and released.
//!
//! An unnamed requirement belongs to its connection and ends with it; a named one has no owner
//! ([`crate::core::interests::named_requirement`]). Both are owed the objects that are visible when they are made and
//! those that become visible later: every version, or with `newest_only` a version until a newer one becomes visible.
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

/// Up to so many requirements are checked one by one for an object.
pub(in crate::core) const FEW: usize = 16;

/// A requirement.
pub(in crate::core) struct RequirementState {
    pub(in crate::core) whose: RequirementOwner,
    pub(in crate::core) selectors: SelectorSet,
    pub(in crate::core) newest_only: bool,
    pub(in crate::core) bounds: StuckBounds,
    /// The objects that it is owed, by sequence number.
    pub(in crate::core) owed: BTreeMap<u64, OwedObjects>,
    /// Bytes of the payloads of these objects.
    pub(in crate::core) owed_bytes: u64,
    /// The part that retention no longer keeps; counted only where it breaks on full.
    pub(in crate::core) kept: u64,
    /// Their deliveries that are not released.
    pub(in crate::core) in_flight: u64,
    /// Demands that wait through it.
    pub(in crate::core) demands: u32,
    /// The follow that receives through it, where one reads at a time.
    pub(in crate::core) reader: Option<u32>,
    /// The time of the last action of its readers, or the last time that it was owed nothing.
    pub(in crate::core) progress: Nanoseconds,
    /// Since then it was reported to be stuck.
    pub(in crate::core) is_reported: bool,
    pub(in crate::core) broken: Option<StuckRequirement>,
    /// By sequence number: how many deliveries its readers hold of objects that it was owed until it was broken.
    pub(in crate::core) forfeited: BTreeMap<u64, u32>,
    pub(in crate::core) lost: LostObjects,
    /// Its members, if it is a group.
    pub(in crate::core) group: Option<Box<GroupState>>,
    /// The rest of its beginning, if it is owed very many visible objects.
    pub(in crate::core) beginning: Option<Box<RequirementStart>>,
}

/// The objects that a requirement was owed when it ended.
pub(in crate::core) struct DisownedObjects(pub(in crate::core) BTreeMap<u64, OwedObjects>);

impl DisownedObjects {
    /// Returns their numbers, the next last.
    pub(in crate::core) fn left(&self) -> Vec<u64> {
        self.0.keys().rev().copied().collect()
    }
}

/// The owner of a requirement.
pub(in crate::core) enum RequirementOwner {
    /// The connection that made it.
    Client { client: u32, request: u64 },
    /// No owner.
    Named(Box<NamedRequirement>),
}

pub(in crate::core) struct OwedObjects {
    pub(in crate::core) object: u32,
    /// Deliveries through the requirement that are not released.
    pub(in crate::core) in_flight: u32,
    /// It is in the queue of the follow that reads the requirement now.
    pub(in crate::core) queued: bool,
    /// It counts as kept.
    pub(in crate::core) charged: bool,
    /// A client to which the requirement delivered it has disconnected without a release, or has returned it
    /// unprocessed.
    pub(in crate::core) again: bool,
    /// Since when it is owed.
    pub(in crate::core) since: Nanoseconds,
}

impl RequirementState {
    /// Returns the number of objects that it is owed.
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

    /// Returns the number of objects that it is owed.
    pub(in crate::core) fn owed_len(&self) -> usize {
        self.owed.len()
    }

    /// Returns the number of objects that it has yet to be owed since its creation.
    pub(in crate::core) fn to_be_owed(&self) -> usize {
        self.beginning.as_ref().map_or(0, |beginning| beginning.len())
    }

    /// Returns its client and request; a named requirement has neither.
    pub(in crate::core) fn client(&self) -> (u32, u64) {
        match self.whose {
            RequirementOwner::Client { client, request } => (client, request),
            RequirementOwner::Named(_) => (0, 0),
        }
    }

    /// Whether it is owed all objects that were visible at its creation.
    pub(in crate::core) fn has_begun(&self) -> bool {
        self.beginning.is_none()
    }

    /// Returns the objects that it is owed.
    pub(in crate::core) fn objects(&self) -> impl Iterator<Item = u32> {
        self.owed.values().map(|owed| owed.object)
    }

    /// Returns the objects that it is owed: those that wait for their turn, and those that its readers hold.
    pub(in crate::core) fn owed_by_place(&self) -> (Vec<u32>, Vec<u32>) {
        let (held, waiting): (Vec<&OwedObjects>, Vec<&OwedObjects>) =
            self.owed.values().partition(|owed| owed.in_flight > 0);
        let objects = |owed: Vec<&OwedObjects>| owed.into_iter().map(|owed| owed.object).collect();
        (objects(waiting), objects(held))
    }

    /// Counts an object that it is owed as kept; returns false if it was counted, or is not owed.
    pub(in crate::core) fn charge(&mut self, sequence: u64, length: u64) -> bool {
        let Some(owed) = self.owed.get_mut(&sequence).filter(|owed| !owed.charged) else {
            return false;
        };
        owed.charged = true;
        self.kept += length;
        true
    }

    /// Whether its readers still hold objects that it was owed until it was broken.
    pub(in crate::core) fn is_forfeiting(&self) -> bool {
        !self.forfeited.is_empty()
    }

    /// Returns its quota, if it keeps more.
    pub(in crate::core) fn quota_exceeded(&self) -> Option<u64> {
        self.bounds.quota.filter(|&quota| self.kept > quota)
    }

    /// Returns the oldest object that it is owed: its sequence number, and the time since which it is owed.
    pub(in crate::core) fn oldest_owed(&self) -> Option<(u64, Nanoseconds)> {
        self.owed
            .first_key_value()
            .map(|(&sequence, owed)| (sequence, owed.since))
    }

    /// When it is stuck, if its readers release nothing.
    pub(in crate::core) fn stuck_at(&self) -> Nanoseconds {
        self.progress.saturating_add(self.bounds.stuck_after)
    }

    /// When half this time is over.
    pub(in crate::core) fn half_at(&self) -> Nanoseconds {
        self.progress.saturating_add(self.bounds.stuck_after / 2)
    }

    /// Returns the object of a version that it is owed.
    pub(in crate::core) fn object_of(&self, sequence: u64) -> Option<u32> {
        self.owed.get(&sequence).map(|owed| owed.object)
    }

    /// Whether a follow receives through it.
    pub(in crate::core) fn is_read(&self) -> bool {
        self.reader.is_some() || self.group.as_ref().is_some_and(|group| !group.members.is_empty())
    }

    /// Returns how much of the scarce resource would be free without it: bytes or objects that it is owed and retention
    /// no longer keeps, or everything that it is owed.
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
