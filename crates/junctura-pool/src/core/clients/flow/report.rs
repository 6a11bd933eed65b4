//! The counters of the pool, gathered from all parts.

use crate::PoolConfig;
use crate::core::clients::stat::{
    BrokenStat, DrainStat, GroupStat, InterestsStat, MemberStat, ObjectsStat, PoolStat, RequirementStat, SchemaStat,
    StatTotals,
};
use crate::core::clients::table::ClientTable;
use crate::core::engine::Core;
use crate::core::engine::timers::TimerQueue;
use crate::core::interests::group::GroupState;
use crate::core::interests::named_requirement::seconds;
use crate::core::interests::requirement::RequirementState;
use crate::core::interests::table::InterestTable;

/// The same for named requirements.
const REQUIREMENT_BYTES_SHOWN: usize = 64 << 10;
/// Of more members of a group than this, the oldest are shown.
const MEMBERS_SHOWN: usize = 100;
/// The maximum number of characters of a requirement's selector.
const SELECTOR_SHOWN: usize = 1000;
/// The same for broken requirements.
const BROKEN_SHOWN: usize = 100;

impl Core {
    /// Returns the current counters.
    #[must_use]
    pub fn stat(&self) -> PoolStat {
        let (count, bundles) = (&self.exchange.asked.count, self.exchange.bundles.bundles_stat());
        PoolStat {
            incarnation: self.config.incarnation,
            sequence: self.exchange.objects.sequence,
            objects: ObjectsStat {
                visible: count.visible,
                visible_bytes: count.visible_bytes,
                kept: self.exchange.objects.len() as u64 - count.visible - bundles.staged,
                tombstones: self.exchange.objects.tombstones.len() as u64,
                held: self
                    .exchange
                    .asked
                    .clients
                    .table
                    .values()
                    .map(|state| state.held.len() as u64)
                    .sum(),
            },
            bundles,
            totals: StatTotals {
                offered: count.offered,
                offered_bytes: count.offered_bytes,
                delivered: count.delivered,
                delivered_bytes: count.delivered_bytes,
                released: count.released,
                superseded: count.superseded,
                withdrawn: count.withdrawn,
                expired: count.expired,
                dropped_archived: count.dropped_archived,
                events: count.events,
                gaps: count.gaps,
                broken: count.broken,
                declined: count.declined,
                archived: count.archived,
                unarchived: count.unarchived,
                failed: count.failed,
                offers_waited: count.offers_waiting,
                leases_waited: count.leases_waited,
                segments_made: count.segments_made,
            },
            memory: self.exchange.memory.memory_stat(&self.exchange.objects),
            spill: self.exchange.memory.spill_stat(),
            interests: InterestsStat {
                standing: self.exchange.asked.interests.table.len() as u64,
                unindexed: self.exchange.asked.interests.unindexed_interests() as u64,
                requirements: self.exchange.asked.interests.requirements.len() as u64,
                named: self.exchange.asked.interests.named.len() as u64,
                gap_bytes: self.exchange.asked.interests.gap_bytes as u64,
                selector_bytes: self.exchange.asked.clients.selector_bytes as u64,
                owed: self.exchange.asked.interests.owed as u64,
                withdrawals: self.exchange.withdrawals.table.len() as u64,
            },
            draining: self.drain.has_begun.then(|| DrainStat {
                owed: self
                    .exchange
                    .asked
                    .interests
                    .requirements
                    .iter()
                    .map(|id| self.exchange.asked.interests.owed_len(id) as u64)
                    .sum(),
                undelivered: self
                    .drain
                    .last_follows(&self.exchange.asked.interests)
                    .map(|(_, count)| count as u64)
                    .sum(),
            }),
            named_requirements: self
                .exchange
                .asked
                .interests
                .requirement_stats(&self.exchange.asked.clients, &self.exchange.asked.timers),
            awaited: self.exchange.retention.stat(),
            until_gone: self.components.stat(),
            broken_requirements: self
                .exchange
                .asked
                .interests
                .broken_stats(&self.exchange.asked.clients, &self.exchange.asked.timers),
            clients_connected: self.exchange.asked.clients.table.len() as u64,
            clients: self.exchange.asked.clients.client_stats(&self.exchange.memory.ledger),
            schemas: schema_stats(&self.config),
            record_budget_bytes: self.exchange.objects.record_budget_bytes(),
            limits: self.config.limits.clone(),
            server: None,
        }
    }
}

impl InterestTable {
    pub(in crate::core) fn requirement_stats(
        &self,
        clients: &ClientTable,
        timers: &TimerQueue,
    ) -> Vec<RequirementStat> {
        let named = self.named.values().filter_map(|&id| self.requirement_ref(id));
        let mut bytes_left = REQUIREMENT_BYTES_SHOWN;
        let mut shown = Vec::new();
        for stat in named.filter_map(|requirement| self.requirement_stat(clients, timers, requirement)) {
            let members = stat.group.as_ref().map_or(0, |group| group.members.len());
            let bytes = 512 + stat.name.len() + stat.selector.len() + 512 * members;
            if bytes > bytes_left {
                break;
            }
            bytes_left -= bytes;
            shown.push(stat);
        }
        shown
    }

    pub(in crate::core) fn requirement_stat(
        &self,
        clients: &ClientTable,
        timers: &TimerQueue,
        requirement: &RequirementState,
    ) -> Option<RequirementStat> {
        let named = requirement.named()?;
        let reader = requirement.reader.and_then(|reader| self.following_ref(reader));
        let reader = reader.map(|following| following.client);
        let oldest = requirement.oldest_owed();
        Some(RequirementStat {
            name: named.name.clone(),
            selector: shown_selector(requirement),
            versions: if requirement.newest_only { "newest" } else { "all" },
            owed: requirement.owed_len() as u64,
            owed_bytes: requirement.owed_bytes,
            in_flight: requirement.in_flight,
            oldest_owed: oldest.map(|(sequence, _)| sequence),
            oldest_owed_age_s: oldest.map(|(_, since)| seconds(timers.now.saturating_sub(since))),
            lost: requirement.lost.len(),
            users: named.users.len() as u32,
            reader: reader.and_then(|client| clients.reader_stat(client)),
            group: requirement
                .group
                .as_deref()
                .map(|group| self.group_stat(clients, group)),
            age_s: seconds(timers.now.saturating_sub(named.made)),
            last_release_age_s: named.last_release.map(|at| seconds(timers.now.saturating_sub(at))),
            broken: requirement.broken.is_some(),
            on_full: if requirement.bounds.breaks_on_full {
                "break"
            } else {
                "wait"
            },
            quota_bytes: requirement.bounds.quota,
            stuck_after_s: seconds(requirement.bounds.stuck_after),
            time_to_live_s: named.time_to_live.map(seconds),
            lapses_in_s: named.lapses.map(|at| seconds(at.saturating_sub(timers.now))),
        })
    }

    pub(in crate::core) fn broken_stats(&self, clients: &ClientTable, timers: &TimerQueue) -> Vec<BrokenStat> {
        let all = self.breakers.broken.values().filter_map(|&id| self.requirement_ref(id));
        let stats = all.filter_map(|requirement| {
            let broken = requirement.broken.as_ref()?;
            Some(BrokenStat {
                name: requirement.named().map(|named| named.name.clone()),
                selector: shown_selector(requirement),
                client: self
                    .person_of(requirement)
                    .and_then(|client| clients.reader_stat(client)),
                why: broken.why.clone(),
                age_s: seconds(timers.now.saturating_sub(broken.since)),
                lost: requirement.lost.len(),
            })
        });
        stats.take(BROKEN_SHOWN).collect()
    }

    pub(in crate::core) fn group_stat(&self, clients: &ClientTable, group: &GroupState) -> GroupStat {
        let member = |follow: u32| {
            let following = self.following_ref(follow)?;
            let peer = clients.get(following.client)?.peer.clone()?;
            Some(MemberStat {
                client: following.client,
                name: peer.name,
                host: peer.host,
                pid: peer.pid,
                in_flight: following.in_flight,
                window: following.window,
            })
        };
        GroupStat {
            waiting: group.waiting.len() as u64,
            member_count: group.members.len() as u64,
            members: group.members.iter().filter_map(member).take(MEMBERS_SHOWN).collect(),
        }
    }
}

fn shown_selector(requirement: &RequirementState) -> String {
    requirement.selectors.text().chars().take(SELECTOR_SHOWN).collect()
}

fn schema_stats(config: &PoolConfig) -> Vec<SchemaStat> {
    let describe = |schema: &std::sync::Arc<junctura_model::Schema>| SchemaStat {
        name: schema.name().to_owned(),
        generation: schema.generation(),
        fingerprint: schema.fingerprint().to_string(),
    };
    config.schemas.iter().map(describe).collect()
}
