//! The file tier: payloads that may be spilled, that must be, and that are.

use std::collections::BTreeMap;

use junctura_pool::core::DepartingObject;
use junctura_wire::body::events;

use crate::clients::requests::{Offer, Place};
use crate::model::{Checked, Fate, Model};
use crate::world::recorder::{Job, Recorder};

/// A disk that has refused something is left alone for so many nanoseconds.
pub const DISK_PAUSE: u64 = 1_000_000_000;

/// Room is taken in units of so many bytes.
const UNIT: u64 = 512;

/// So many are looked at for one that fits.
const LOOKED_AT: usize = 64;

/// The file tier, and what is on its way there.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct Disk {
    /// Payloads in the file: their offsets and lengths.
    there: BTreeMap<u64, (u32, u64)>,
    /// Payloads that are being written: how long they are.
    underway: BTreeMap<u64, u64>,
    /// Something was being written when the event began.
    pub(in crate::model) was_at_work: bool,
    paused_until: Option<u64>,
}

impl Disk {
    /// The place of a payload, if it is in the file.
    pub(in crate::model) fn place_of(&self, payload: u64) -> Option<u32> {
        self.there.get(&payload).map(|&(at, _)| at)
    }

    /// Bytes that it has taken.
    pub(in crate::model) fn bytes(&self) -> u64 {
        let there = self.there.values().map(|&(_, length)| length);
        let underway = self.underway.values().copied();
        there.chain(underway).map(|length| length.next_multiple_of(UNIT)).sum()
    }

    /// Until when it is left alone.
    pub(in crate::model) fn paused_until(&self) -> Option<u64> {
        self.paused_until
    }

    /// Whether something is being written.
    pub(in crate::model) fn is_at_work(&self) -> bool {
        !self.underway.is_empty()
    }
}

impl Model {
    pub(in crate::model) fn is_in_file(&self, offer: &Offer) -> bool {
        self.disk.there.contains_key(&offer.payload)
    }

    /// Bytes that payloads may take, in memory and in the file tier.
    pub(in crate::model) fn all_bytes(&self) -> u64 {
        self.rules.budget_bytes + self.rules.spill_bytes.unwrap_or(0)
    }

    /// Frees the place of a payload that is no longer needed.
    pub(in crate::model) fn give_back_place(&mut self, offer: &Offer) {
        if self.disk.there.remove(&offer.payload).is_none() {
            self.leave_memory(offer);
        }
    }

    fn leave_memory(&mut self, offer: &Offer) {
        match offer.place {
            Place::Slot(segment, slot) => self.vacate(segment, slot),
            Place::Inline => self.inline_bytes -= offer.length,
        }
    }

    /// Handles the end of writing a payload: if it is still needed, and no client holds it, it is in the file from now
    /// on.
    pub(in crate::model) fn spilled(&mut self, job: &Job, works: bool) -> Checked {
        if self.disk.underway.remove(&job.payload).is_none() {
            return Err(format!("{job:?} was never ordered"));
        }
        self.disk.was_at_work = self.disk.is_at_work();
        if !works {
            self.disk.paused_until = Some(self.now + DISK_PAUSE);
            return Ok(());
        }
        // An object that departs since this event did so after it was written.
        let moves = self.spillable(self.departing.before());
        let moves = moves.into_iter().find(|offer| offer.payload == job.payload).cloned();
        if let Some(offer) = moves {
            let its = |&sequence: &u64| self.object(sequence).offer.payload == offer.payload;
            // One that is staged is nobody's yet.
            if let Some(sequence) = self.unfreed.iter().copied().find(its) {
                self.tell(events::SPILLED, sequence);
            }
            self.leave_memory(&offer);
            self.disk.there.insert(job.payload, (job.at, job.length));
            self.pinned_most = self.pinned_most.max(self.pinned_bytes());
        }
        Ok(())
    }

    /// Time has passed: a disk that was left alone long enough is tried again.
    pub(in crate::model) fn end_pause(&mut self) {
        if self.disk.paused_until.is_some_and(|until| until <= self.now) {
            self.disk.paused_until = None;
        }
    }

    /// Returns the payloads in memory that are needed and not held.
    fn spillable(&self, departing: &[DepartingObject]) -> Vec<&Offer> {
        let departs = |one: DepartingObject| departing.contains(&one);
        let stays = |&sequence: &u64| {
            !departs(DepartingObject::Object(sequence)) && !departs(DepartingObject::Payload(sequence))
        };
        let unfreed = self.unfreed.iter().copied().filter(stays);
        let unpinned = unfreed.filter(|&sequence| !self.is_pinned(sequence));
        let versions = unpinned.map(|sequence| self.object(sequence));
        let unheld = versions.filter(|object| object.holders == 0 && (object.fate == Fate::Visible || object.owed > 0));
        let staged = self
            .bundles
            .values()
            .flat_map(crate::model::objects::bundles::Bundle::staged_offers);
        let dropped = self.dropped.iter().map(crate::model::objects::bundles::Staged::offer);
        let all = unheld.map(|object| &object.offer).chain(staged).chain(dropped);
        all.filter(|offer| offer.length > 0 && !self.is_in_file(offer))
            .collect()
    }

    /// Records the writes that the core has ordered in this event.
    pub(in crate::model) fn note_ordered(&mut self, recorder: &Recorder) -> Checked {
        for job in &recorder.ordered {
            let known = self.objects.iter().map(|object| &object.offer);
            let staged = self
                .bundles
                .values()
                .flat_map(crate::model::objects::bundles::Bundle::staged_offers);
            let offer = known.chain(staged).find(|offer| offer.payload == job.payload);
            let length = offer.map(|offer| offer.length);
            // One that was staged may have been dropped in the same event.
            if length.is_some_and(|length| length != job.length) {
                return Err(format!("{job:?}: its payload has {length:?} bytes"));
            }
            if self.disk.paused_until.is_some() {
                return Err(format!("{job:?} is ordered while the disk is to be left alone"));
            }
            if self.disk.there.contains_key(&job.payload) {
                return Err(format!("{job:?}: its payload is there already"));
            }
            if self.disk.underway.insert(job.payload, job.length).is_some() {
                return Err(format!("{job:?}: its payload is being written already"));
            }
        }
        Ok(())
    }

    /// Checks that no client waits for memory while a payload could be spilled.
    pub(in crate::model) fn check_disk(&mut self) -> Checked {
        let Some(limit) = self.rules.spill_bytes else {
            return Ok(());
        };
        let used = self.disk.bytes();
        if used > limit {
            return Err(format!("{used} bytes are in the file tier"));
        }
        let is_idle = !self.disk.is_at_work() && self.disk.paused_until.is_none();
        let spillable = self.spillable(self.departing.left());
        if is_idle && self.somebody_waits() && !self.has_spare() && spillable.len() <= LOOKED_AT {
            let fits = |offer: &&Offer| used + offer.length.next_multiple_of(UNIT) <= limit;
            if let Some(offer) = spillable.into_iter().find(fits) {
                return Err(format!("a client waits for memory, and {offer:?} could be spilled"));
            }
        }
        self.disk.was_at_work = self.disk.is_at_work();
        Ok(())
    }
}
