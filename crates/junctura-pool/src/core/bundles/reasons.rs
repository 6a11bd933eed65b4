//! Bundles as reasons name them: why one is not visible, which clients have it open, and which one has a member.

use std::cmp::Reverse;

use junctura_wire::reasons::BundleReference;

use super::{BundlePhase, BundleRow, BundleTable};
use crate::core::clients::table::ClientTable;
use crate::core::engine::timers::TimerQueue;

/// Clients that are named of those which have a bundle open.
const OPENERS_MAX: usize = 3;

impl BundleRow {
    fn reference(&self, number: u64, clients: &ClientTable, timers: &TimerQueue) -> BundleReference {
        let state = match self.phase {
            BundlePhase::Open => "open",
            BundlePhase::Complete => "complete",
            BundlePhase::Visible => "visible",
        };
        let ends = self.orphaned.map(|at| at.saturating_sub(timers.now) / 1_000_000);
        let openers = self.openers.iter().take(OPENERS_MAX);
        BundleReference {
            number,
            path: self.path.clone().unwrap_or_default(),
            state: state.to_owned(),
            members: self.there(),
            declared: self.terms.declared,
            bytes: self.bytes,
            openers: openers.map(|&(client, _)| clients.client_reference(client)).collect(),
            ends_in_ms: ends,
        }
    }
}

impl BundleTable {
    pub(in crate::core) fn bundle_reference(
        &self,
        clients: &ClientTable,
        timers: &TimerQueue,
        number: u64,
    ) -> Option<BundleReference> {
        let bundle = self.get(number)?;
        Some(bundle.reference(number, clients, timers))
    }

    pub(in crate::core) fn path_of(&self, number: u64) -> String {
        let path = self.get(number).and_then(|bundle| bundle.path.clone());
        path.unwrap_or_default()
    }

    /// Why a bundle is not visible, and the bundle that has to change: itself, one that is nested in it, or one that it is nested in.
    /// `None`: it is visible, or forgotten.
    pub(in crate::core) fn why_open(&self, number: u64) -> Option<(&'static str, u64)> {
        let bundle = self.get(number)?;
        let because = match bundle.phase {
            BundlePhase::Visible => return None,
            BundlePhase::Complete => "enclosing",
            BundlePhase::Open if self.open_nested(number).is_some() => "nested",
            BundlePhase::Open if bundle.terms.declared.is_none() => "unsealed",
            BundlePhase::Open => "members",
        };
        Some((because, self.blocking(number)))
    }

    /// Upwards past bundles that are complete, then downwards to the one that lacks something itself.
    fn blocking(&self, number: u64) -> u64 {
        let mut at = number;
        while let Some(bundle) = self.get(at).filter(|one| one.phase == BundlePhase::Complete)
            && let Some(parent) = bundle.parent
        {
            at = parent;
        }
        while let Some(nested) = self.open_nested(at) {
            at = nested;
        }
        at
    }

    /// A nested bundle that is not complete, where all other members are there or none are declared.
    fn open_nested(&self, number: u64) -> Option<u64> {
        let bundle = self.get(number)?;
        if bundle.terms.declared.is_some_and(|declared| bundle.taken() < declared) {
            return None;
        }
        let is_open = |nested: &u64| self.get(*nested).is_some_and(|one| one.phase == BundlePhase::Open);
        bundle.nested.iter().copied().find(is_open)
    }

    /// The bundle of a staged object that is looked for, and how many were looked at: the newest bundle first, so many objects at most.
    pub(in crate::core) fn staged_among(&self, most: usize, is_it: impl Fn(u32) -> bool) -> (Option<u64>, usize) {
        let mut looked = 0;
        for bundle in self.table.values().rev() {
            if looked >= most {
                break;
            }
            looked += 1;
            for member in bundle.members.values().take(most - looked) {
                looked += 1;
                if is_it(member.object) {
                    return (Some(member.bundle), looked);
                }
            }
        }
        (None, looked)
    }

    /// Bundles that are not visible and have most bytes, of the newest so many.
    pub(in crate::core) fn keeping_bundles(
        &self,
        clients: &ClientTable,
        timers: &TimerQueue,
        most: usize,
        looks: usize,
    ) -> Vec<BundleReference> {
        let newest = self.table.iter().rev().take(looks);
        let mut open: Vec<(u64, u64)> = newest
            .filter(|(_, one)| one.phase != BundlePhase::Visible && one.bytes > 0)
            .map(|(&number, one)| (one.bytes, number))
            .collect();
        open.sort_unstable_by_key(|&(bytes, number)| (Reverse(bytes), number));
        let largest = open.into_iter().take(most);
        largest
            .filter_map(|(_, number)| self.bundle_reference(clients, timers, number))
            .collect()
    }
}
