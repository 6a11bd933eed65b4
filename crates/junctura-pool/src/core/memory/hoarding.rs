//! Clients that keep empty leased memory while others wait for memory.

use std::collections::btree_map::Entry;

use crate::core::engine::timers::{Nanoseconds, TimerQueue};
use crate::core::memory::payload::PayloadMemory;
use crate::core::memory::shortage::MemoryShortage;

/// How many times longer a client that sends no requests may keep recalled memory than one that does: its program may
/// be computing the content of the memory, and read nothing meanwhile.
const SILENT_TIMES: u64 = 10;

/// A request that arrives sooner after a recall may have been sent before it.
const SENT_BEFORE: Nanoseconds = 1_000_000_000;

/// A recall of a client's empty leased memory; the client has put nothing anywhere since.
pub(in crate::core) struct LeaseRecall {
    pub(in crate::core) since: Nanoseconds,
    /// The time of its first request since then.
    pub(in crate::core) heard: Option<Nanoseconds>,
}

/// The schedule of checks for requirements and clients that block others.
#[derive(Default)]
pub(in crate::core) struct StuckWatch {
    /// The time of the next check.
    pub(in crate::core) looks: Option<Nanoseconds>,
    /// The time since which a client has waited for memory.
    pub(in crate::core) waits_since: Option<Nanoseconds>,
}

impl PayloadMemory {
    /// Records that a client is asked to return empty leased memory.
    pub(in crate::core) fn note_recall(&mut self, timers: &TimerQueue, client: u32) {
        if let Entry::Vacant(place) = self.recalled.entry(client) {
            place.insert(LeaseRecall {
                since: timers.now,
                heard: None,
            });
            self.watch.looks = None;
        }
    }

    /// Records that a client has sent a request: it could have read the recall.
    pub(in crate::core) fn note_heard(&mut self, timers: &TimerQueue, client: u32) {
        let now = timers.now;
        let is_silent =
            |recall: &&mut LeaseRecall| recall.heard.is_none() && recall.since.saturating_add(SENT_BEFORE) <= now;
        if let Some(recall) = self.recalled.get_mut(&client).filter(is_silent) {
            recall.heard = Some(now);
            self.watch.looks = None;
        }
    }

    pub(in crate::core) fn hoarding_after(&self) -> Nanoseconds {
        let after = self.config.hoarding_after.unwrap_or(self.config.stuck_after);
        u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(in crate::core) fn others_wait_since(&self, recall: &LeaseRecall) -> Nanoseconds {
        recall.since.max(self.watch.waits_since.unwrap_or(recall.since))
    }

    /// Returns until when a client may keep recalled memory.
    pub(in crate::core) fn hoards_until(&self, client: u32, recall: &LeaseRecall) -> Nanoseconds {
        let (since, after) = (self.others_wait_since(recall), self.hoarding_after());
        if self.keeps_most_unused(client) {
            return since.saturating_add(after);
        }
        let silent = since.saturating_add(after.saturating_mul(SILENT_TIMES));
        let heard = recall.heard.map(|at| at.max(since).saturating_add(after));
        heard.map_or(silent, |heard| heard.min(silent))
    }

    /// Whether a client leases more than half of the memory in segments that it has never used: a program does not
    /// lease so much to fill it.
    pub(in crate::core) fn keeps_most_unused(&self, client: u32) -> bool {
        let its = self.unused.iter().filter(|(_, owner)| **owner == client);
        let bytes = its
            .filter_map(|(&segment, _)| self.ledger.grant(segment))
            .map(|grant| grant.bytes);
        bytes.sum::<u64>() > self.config.budget_bytes / 2
    }

    /// Returns a client that has kept empty leased memory for too long while another one waits for memory.
    pub(in crate::core) fn hoarder(&self, timers: &TimerQueue) -> Option<u32> {
        let is_waited_for = |client: u32| {
            let mut leases = self.waiting_leases.values().map(|lease| lease.client);
            self.stalled.others_wait_for(MemoryShortage::Payload, client) || leases.any(|other| other != client)
        };
        let is_late = |client: &u32| {
            self.recalled
                .get(client)
                .is_some_and(|recall| self.hoards_until(*client, recall) <= timers.now)
        };
        let empty = self.ledger.recallable(0).map(|(client, _)| client);
        empty.filter(is_late).find(|&client| is_waited_for(client))
    }
}
