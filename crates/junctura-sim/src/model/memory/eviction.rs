//! Eviction of archived objects when memory is short.
//!
//! The design leaves the choice of objects, and their number at once, to the server. So the core reports the evicted
//! ones, and the model checks that each may be: that it was archived, that no client holds it or is owed it, and that
//! memory was short. It also checks that they are evicted, before anything else has to make room.

use std::collections::BTreeSet;

use crate::clients::replies::Said;
use crate::model::{Checked, Fate, Going, Model};
use crate::world::recorder::Recorder;

/// While a client waits, one of them is evicted within so many nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

/// More than are removed in one event of a run.
const MANY: usize = 200;

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct Leaving {
    /// Those that left in this event.
    pub(in crate::model) now: BTreeSet<u64>,
    /// The time since which a client waits, and some could be evicted, and none is.
    since: Option<u64>,
}

impl Model {
    pub(in crate::model) fn note_leaving(&mut self, recorder: &Recorder) {
        let left = recorder.said.iter().filter_map(|(.., said)| match **said {
            Said::Left(sequence) => Some(sequence),
            _ => None,
        });
        self.leaving_early.now = left.collect();
    }

    /// Whether it is archived, and only retention keeps it.
    pub(in crate::model) fn is_spare(&self, sequence: u64) -> bool {
        let object = self.object(sequence);
        let arrives = self.arriving.iter().any(|&(_, arriving)| arriving == sequence);
        let is_kept_for_nobody =
            object.holders == 0 && object.owed == 0 && object.absent == 0 && !arrives && !self.is_pinned(sequence);
        let goes = self.departing.has_object(sequence) || self.departing.has_time(sequence);
        object.fate == Fate::Visible && object.is_archived && is_kept_for_nobody && !goes && object.offer.length > 0
    }

    /// Whether there is one in memory.
    pub(in crate::model) fn has_spare(&self) -> bool {
        let mut visible = self.visible.values().copied();
        visible.any(|sequence| self.is_spare(sequence) && !self.is_in_file(&self.object(sequence).offer))
    }

    fn is_above_high_mark(&self) -> bool {
        let occupied = |segment: &crate::model::Segment| segment.slot_bytes * segment.occupied.len() as u64;
        let bytes = self.inline_bytes + self.segments.values().map(occupied).sum::<u64>();
        bytes > self.rules.budget_bytes - self.rules.budget_bytes / 8
    }

    /// Takes the core's report of an eviction.
    pub(in crate::model) fn leaves_early(&mut self, sequence: u64) -> Checked {
        if !self.is_spare(sequence) {
            return Err(format!("{sequence} has left for a store, and should stay"));
        }
        if !(self.somebody_waited || self.somebody_waits() || self.is_above_high_mark()) {
            return Err(format!("{sequence} has left for a store, and memory is not short"));
        }
        let is_in_file = self.is_in_file(&self.object(sequence).offer);
        if is_in_file && self.has_spare() {
            return Err(format!("{sequence} has left the file tier before others left memory"));
        }
        self.remove(sequence, Fate::Archived);
        self.settle();
        Ok(())
    }

    /// Whether a client waits for memory and has none to work with.
    fn somebody_is_stranded(&self) -> bool {
        let has_slots = |client: u32| {
            let mut segments = self.segments.values().filter(|one| one.owner == Some(client));
            segments.any(|one| (one.occupied.len() as u64) < one.bytes / one.slot_bytes)
        };
        self.clients.values().any(|state| !state.waiting.is_empty())
            || self.leases.iter().any(|&(client, request)| {
                matches!(self.going.get(&(client, request)), Some(Going::Lease { .. })) && !has_slots(client)
            })
    }

    /// Checks that objects are evicted when memory is short.
    pub(in crate::model) fn check_room(&mut self) -> Checked {
        let may_go = self.has_spare() && !self.is_behind();
        // Where few may be removed in one event, others may have been removed in this one.
        let may_all_go = may_go && !self.disk.is_at_work() && self.rules.leaving_at_once >= MANY;
        if may_all_go && self.is_above_high_mark() {
            return Err("memory is above its high mark, and something could leave for a store".to_owned());
        }
        let stands_still = may_go && self.somebody_is_stranded() && self.leaving_early.now.is_empty();
        let since = stands_still.then(|| self.leaving_early.since.unwrap_or(self.now));
        self.leaving_early.since = since;
        match since {
            Some(since) if since + PATIENCE < self.now => {
                Err("a client waits for memory, and nothing is evicted".to_owned())
            }
            _ => Ok(()),
        }
    }
}
