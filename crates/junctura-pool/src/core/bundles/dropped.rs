//! Members of aborted bundles: if they are very many, they are dropped in turns.
//!
//! The bundle has ended, its keys are free, and no request finds its members; only their memory is freed in turns. Until
//! then no request fails since bundles take all memory.

use std::collections::BTreeMap;

use super::StagedMember;
use crate::Effects;
use crate::core::bundles::BundleTable;
use crate::core::deferred::DeferredPart;
use crate::core::exchange::ObjectExchange;
use crate::core::objects::key_table::ByKey;

/// The members that have yet to be dropped.
#[derive(Default)]
pub(in crate::core) struct DroppedMembers {
    /// Those of a whole tree, by their keys, and the order of these.
    members: ByKey<StagedMember>,
    sorted: BTreeMap<Box<[u8]>, u128>,
    /// Others, the next last.
    others: Vec<(u128, StagedMember)>,
}

/// Sums over members that have yet to be dropped.
#[derive(Default)]
pub(super) struct DroppedSums {
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

impl DroppedMembers {
    pub(super) fn of_tree(members: ByKey<StagedMember>, sorted: BTreeMap<Box<[u8]>, u128>) -> Self {
        Self {
            members,
            sorted,
            others: Vec::new(),
        }
    }

    pub(super) fn of(others: Vec<(u128, StagedMember)>) -> Self {
        Self {
            others,
            ..Self::default()
        }
    }

    /// Drops one more member. Returns whether there was one.
    pub(in crate::core) fn drop_next(&mut self, exchange: &mut ObjectExchange, fx: &mut impl Effects) -> bool {
        let Some((key, member)) = self.take_next() else {
            return false;
        };
        exchange.bundles.dropped.objects -= 1;
        exchange.bundles.dropped.bytes -= exchange.objects[member.object].length;
        drop_member(exchange, key, &member, fx);
        exchange.memory.came_free = true;
        true
    }

    fn take_next(&mut self) -> Option<(u128, StagedMember)> {
        while let Some((_, key)) = self.sorted.pop_first() {
            if let Some(member) = self.members.remove(key) {
                return Some((key, member));
            }
        }
        if !self.members.is_empty() {
            self.others.extend(std::mem::take(&mut self.members).into_entries());
            self.others
                .sort_unstable_by_key(|(_, member)| std::cmp::Reverse(member.object));
        }
        self.others.pop()
    }

    /// Returns the clients and requests that have a bundle open, and the requests that staged the members; for checks.
    pub(in crate::core) fn left(&self) -> Vec<((u32, u64), u64)> {
        let others = self.others.iter().map(|(_, member)| member);
        let all = self.members.values().chain(others);
        all.map(|member| (member.by, member.request)).collect()
    }
}

pub(super) fn drop_member(exchange: &mut ObjectExchange, key: u128, member: &StagedMember, fx: &mut impl Effects) {
    exchange.bundles.unpin(&exchange.objects, &exchange.memory, key, member);
    exchange.drop_staged(member.object, fx);
}

/// Leaves the members of an aborted bundle for later turns.
pub(super) fn drop_later(exchange: &mut ObjectExchange, sums: &DroppedSums, members: DroppedMembers) {
    exchange.bundles.dropped.objects += sums.objects;
    exchange.bundles.dropped.bytes += sums.bytes;
    exchange.deferred.go_on_later(DeferredPart::Drop(Box::new(members)));
}

impl BundleTable {
    /// Whether members of aborted bundles have yet to be dropped.
    pub(super) fn has_dropped(&self) -> bool {
        self.dropped.objects > 0
    }

    /// Returns the staged objects of bundles, and bytes of their payloads.
    pub(super) fn sums_of(&self, tree: &[u64]) -> DroppedSums {
        let bundles = || tree.iter().filter_map(|&one| self.get(one));
        DroppedSums {
            objects: bundles().map(|one| one.objects).sum(),
            bytes: bundles().map(|one| one.bytes).sum(),
        }
    }
}
