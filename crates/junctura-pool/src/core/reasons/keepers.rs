//! Keepers: what keeps memory, in parts. The first part has what is known without a walk.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use junctura_wire::reasons::{
    KeepersPlace, KeepersRequest, KeptByClient, KeptForName, KeptSum, MemoryKeepers, MemoryUse, RequirementReference,
};

use super::explain::retention_rule;
use super::{KEEPERS_MAX, PoolReasons, ROWS_MAX};
use crate::core::engine::timers::NOBODY;
use crate::core::objects::object::{ObjectRow, PayloadLocation};

/// Rows of the table of objects that one answer passes, empty ones included.
const PASSED_MAX: usize = 1 << 16;

impl PoolReasons<'_> {
    /// Returns a part of what keeps memory.
    #[must_use]
    pub fn keepers(&self, asked: &KeepersRequest) -> MemoryKeepers {
        let mut page = match asked.after {
            None => self.known_keepers(),
            Some(_) => MemoryKeepers::default(),
        };
        let after = asked.after.unwrap_or_default();
        if after.client == NOBODY {
            page.next = Some(self.sum_objects(after.row, &mut page));
        } else {
            page.next = self.sum_held(after, &mut page);
        }
        page
    }

    fn known_keepers(&self) -> MemoryKeepers {
        let exchange = &self.exchange;
        let counters = exchange.memory.ledger.counters();
        let names = exchange.retention.stat().into_iter().map(|one| KeptForName {
            name: one.name,
            objects: one.objects,
            bytes: one.bytes,
        });
        MemoryKeepers {
            memory: Some(MemoryUse {
                budget_bytes: self.config.budget_bytes,
                used_bytes: exchange.memory.ledger.used_bytes(),
                segment_bytes: counters.leased_bytes,
                inline_bytes: counters.inline_bytes,
                occupied_bytes: counters.occupied_bytes,
                spilled_bytes: exchange.memory.spill_stat().map_or(0, |spill| spill.used_bytes),
            }),
            requirements: self.keeping_requirements(),
            clients: self.leasing_clients(),
            bundles: exchange.bundles.keeping_bundles(
                &exchange.asked.clients,
                &exchange.asked.timers,
                KEEPERS_MAX,
                ROWS_MAX,
            ),
            names: names.take(KEEPERS_MAX).collect(),
            ..MemoryKeepers::default()
        }
    }

    fn keeping_requirements(&self) -> Vec<RequirementReference> {
        let asked = &self.exchange.asked;
        let is_short = self.exchange.memory.somebody_waits_for_memory();
        let owed_bytes = |id: u32| asked.interests.requirement_ref(id).map_or(0, |one| one.owed_bytes);
        let all = asked.interests.requirements.iter().take(ROWS_MAX);
        let mut found: Vec<(u64, u32)> = all.map(|id| (owed_bytes(id), id)).collect();
        found.retain(|&(bytes, _)| bytes > 0);
        found.sort_unstable_by_key(|&(bytes, id)| (Reverse(bytes), id));
        let most = found.into_iter().take(KEEPERS_MAX);
        most.filter_map(|(_, id)| asked.requirement_reference(id, is_short))
            .collect()
    }

    fn leasing_clients(&self) -> Vec<KeptByClient> {
        let clients = &self.exchange.asked.clients;
        let holders = self.exchange.memory.ledger.holders().into_iter();
        let leasing = holders.filter(|one| one.leased_bytes > 0).take(KEEPERS_MAX);
        leasing
            .filter_map(|one| {
                Some(KeptByClient {
                    client: clients.client_reference(one.client?),
                    leased_bytes: one.leased_bytes,
                    unused_bytes: one.leased_bytes.saturating_sub(one.occupied_bytes),
                    ..KeptByClient::default()
                })
            })
            .collect()
    }

    /// Sums payloads in memory by what keeps them, from a row on. Returns where the next part begins.
    fn sum_objects(&self, from: u64, page: &mut MemoryKeepers) -> KeepersPlace {
        let table = &self.exchange.objects.table;
        let mut sums: BTreeMap<&'static str, KeptSum> = BTreeMap::new();
        let (mut row, mut found) = (from as usize, 0);
        let end = row.saturating_add(PASSED_MAX).min(table.capacity());
        while row < end && found < ROWS_MAX {
            if let Some(object) = table.get(row) {
                found += 1;
                if let Some((because, is_alone)) = self.kept_because(object) {
                    let sum = sums.entry(because).or_default();
                    sum.objects += 1;
                    sum.bytes += object.length;
                    sum.alone_bytes += if is_alone { object.length } else { 0 };
                }
            }
            row += 1;
        }
        page.sums = sums
            .into_iter()
            .map(|(because, sum)| KeptSum {
                because: because.to_owned(),
                ..sum
            })
            .collect();
        let is_whole = from == 0 && found == table.len();
        if row < table.capacity() && !is_whole {
            return KeepersPlace {
                client: NOBODY,
                row: row as u64,
            };
        }
        KeepersPlace {
            client: NOBODY + 1,
            row: 0,
        }
    }

    /// What keeps a payload in memory, and whether nothing else does. `None`: it is not in memory.
    fn kept_because(&self, object: &ObjectRow) -> Option<(&'static str, bool)> {
        if matches!(object.place, PayloadLocation::File { .. } | PayloadLocation::Freed) {
            return None;
        }
        let (is_owed, is_held) = (object.owed > 0, object.holders > 0);
        let is_leaving = object.is_out_of_sight(self.exchange.asked.timers.now);
        Some(if object.is_staged() {
            ("staged", !is_held)
        } else if object.is_kept_by_retention() && !is_leaving {
            (retention_rule(object.until), !is_owed && !is_held)
        } else if is_owed {
            ("owed", !is_held)
        } else if is_held {
            ("held", true)
        } else {
            ("leaving", true)
        })
    }

    /// Sums what clients hold, from a place on.
    fn sum_held(&self, from: KeepersPlace, page: &mut MemoryKeepers) -> Option<KeepersPlace> {
        let exchange = &self.exchange;
        let mut left = ROWS_MAX;
        for client in exchange.asked.clients.numbers_from(from.client) {
            let state = exchange.asked.clients.get(client)?;
            let first = if client == from.client { from.row as usize } else { 0 };
            let mut sum = KeptByClient::default();
            let mut row = first;
            while row < state.held.capacity() && left > 0 {
                left -= 1;
                if let Some(delivery) = state.held.get(row) {
                    let object = &exchange.objects[delivery.object];
                    sum.held += 1;
                    sum.held_bytes += match object.place {
                        PayloadLocation::Slot { .. } | PayloadLocation::Inline => object.length,
                        PayloadLocation::File { .. } | PayloadLocation::Freed => 0,
                    };
                }
                row += 1;
            }
            if sum.held > 0 {
                sum.client = exchange.asked.clients.client_reference(client);
                page.clients.push(sum);
            }
            left = left.saturating_sub(1);
            if left == 0 {
                let row = row as u64;
                return Some(KeepersPlace { client, row });
            }
        }
        None
    }
}
