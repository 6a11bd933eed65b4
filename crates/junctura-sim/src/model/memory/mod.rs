//! Segments, slots and the budget, as far as the design fixes them.

pub(in crate::model) mod eviction;
pub(in crate::model) mod spill;

use junctura_memory::classes;
use junctura_model::Code;
use junctura_wire::fixed::SegmentHead;

use crate::clients::replies::Said;
use crate::clients::requests::{Offer, Place, Stays};
use crate::model::{Checked, Going, Model, Number, Want};
use crate::run::universe::ONCE;
use crate::world::recorder::Recorder;

/// The outcome of an offer, if it is served now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Verdict {
    Visible,
    Waits,
    Declined,
    Fails(Option<Code>),
}

impl Model {
    /// Whether no lease may pass the first one that waits, after the event that is judged. It matters only at the very time at which that
    /// ends: the core may have put the first lease last already, or may not.
    pub fn note_first_lease(&mut self, blocks: bool) {
        self.passing.is_over = blocks;
    }

    /// Segments that a client does not lease.
    #[must_use]
    pub fn segments_of_others(&self, client: u32) -> Vec<u32> {
        self.segments
            .iter()
            .filter(|(_, one)| one.owner != Some(client))
            .map(|(&number, _)| number)
            .collect()
    }

    pub(in crate::model) fn used_bytes(&self) -> u64 {
        self.inline_bytes + self.segments.values().map(|segment| segment.bytes).sum::<u64>()
    }

    /// The fault of an invalid offer.
    pub(in crate::model) fn flaw(&self, offer: &Offer) -> Option<Verdict> {
        if offer.malformed {
            return Some(Verdict::Fails(None));
        }
        if offer.place == Place::Inline && offer.length > self.rules.inline_bytes_max {
            return Some(Verdict::Fails(Some(Code::TooLarge)));
        }
        matches!(offer.stays, Stays::For(0) | Stays::By(_)).then_some(Verdict::Fails(Some(Code::InvalidArgument)))
    }

    pub(in crate::model) fn verdict(&self, client: u32, offer: &Offer) -> Verdict {
        if let Some(flaw) = self.flaw(offer) {
            return flaw;
        }
        if self.is_taken(offer.key) {
            return Verdict::Fails(Some(Code::AlreadyExists));
        }
        if offer.if_wanted && self.count_wanting(offer.key, offer.size) == 0 {
            return Verdict::Declined;
        }
        self.verdict_of_place(client, offer)
    }

    /// The outcome of an offer, into a bundle or not.
    pub(in crate::model) fn verdict_of(&self, client: u32, bundle: Option<u64>, offer: &Offer) -> Verdict {
        match bundle {
            None => self.verdict(client, offer),
            Some(bundle) => self.verdict_staged(client, bundle, offer),
        }
    }

    /// Takes up an offer that can be: visible, or staged (0).
    pub(in crate::model) fn take_up(&mut self, client: u32, number: u64, bundle: Option<u64>, offer: &Offer) -> u64 {
        match bundle {
            None => self.publish(client, offer),
            Some(bundle) => self.stage(client, number, bundle, offer),
        }
    }

    /// Whether a key can no longer be offered.
    pub(in crate::model) fn is_taken(&self, key: usize) -> bool {
        let is_known = self.visible.contains_key(&key) || self.is_gone(key);
        is_known && self.universe.keys[key].schema == ONCE || self.is_reserved(key)
    }

    pub(in crate::model) fn verdict_of_place(&self, client: u32, offer: &Offer) -> Verdict {
        match offer.place {
            Place::Inline if self.used_bytes() + offer.length > self.rules.budget_bytes => Verdict::Waits,
            Place::Inline => Verdict::Visible,
            Place::Slot(segment, slot) => match self.segments.get(&segment) {
                None => Verdict::Fails(Some(Code::InvalidArgument)),
                Some(known) if known.owner != Some(client) => Verdict::Fails(Some(Code::Denied)),
                Some(known) if u64::from(slot) >= known.bytes / known.slot_bytes || offer.length > known.slot_bytes => {
                    Verdict::Fails(Some(Code::InvalidArgument))
                }
                Some(known) if known.occupied.contains_key(&slot) => Verdict::Fails(Some(Code::Conflict)),
                Some(_) => Verdict::Visible,
            },
        }
    }

    /// Handles offers that waited and became visible, or failed, in this event, and requirements that were broken for
    /// them: the replies show which, and in what order.
    pub(in crate::model) fn make_room(&mut self, is_tick: bool, recorder: &Recorder) -> Checked {
        let in_turns = is_tick && self.in_turns;
        // The object that ends a follow, since it exceeds its limit, is wanted by the follow: events of the object
        // follow, and the last is that it was offered.
        let mut ended = Vec::new();
        for (at, (client, number, said)) in recorder.said.iter().enumerate() {
            let is_of_next_offer = || {
                said.speaks_of()
                    .is_some_and(|sequence| recorder.offered_next(at) == Some(sequence))
            };
            if !matches!(&**said, Said::Ended(_) | Said::Offered(_)) && !is_of_next_offer() {
                self.note_all_over(&mut ended);
            }
            let is_closed = Verdict::Fails(Some(Code::Closed));
            // A bundle may be closed, too.
            let is_of_its_own =
                || self.first_waiting(*client) == Some(*number) && self.verdict_of_first(*client) == Some(is_closed);
            if **said == Said::Failed(Some(Code::Closed)) && !is_of_its_own() {
                self.drain_without_components(recorder);
            }
            match &**said {
                Said::Offered(sequence) if self.is_waiting(*client, *number) => {
                    if in_turns && self.verdict_of_first(*client) == Some(Verdict::Waits) {
                        self.lapse((self.now, u64::MAX));
                        self.settle();
                    }
                    self.publish_waiting((*client, *number), *sequence, is_tick)?;
                    self.note_all_over(&mut ended);
                }
                Said::Left(sequence) => {
                    if in_turns && !self.is_spare(*sequence) {
                        self.lapse((self.now, u64::MAX));
                        self.settle();
                    }
                    self.leaves_early(*sequence)?;
                }
                Said::Ended(code) => {
                    if *code == Some(Code::Io) {
                        self.end_opener((*client, *number));
                    }
                    ended.push((*client, *number));
                }
                Said::Broken { of, name } => {
                    if in_turns && !self.may_be_broken(*of, name.as_deref()) {
                        self.lapse((self.now, u64::MAX));
                        self.settle();
                    }
                    self.broken(*of, name.as_deref())?;
                }
                Said::Failed(code) if self.fails_in_turn((*client, *number), *code, in_turns) => {
                    if self.first_waiting(*client) != Some(*number) {
                        return Err(format!("offer {number} of client {client} was answered out of turn"));
                    }
                    let verdict = self.verdict_of_first(*client);
                    // The interest that wanted it may have expired before its turn.
                    let is_unwanted = *code == Some(Code::NotWanted) && verdict != Some(Verdict::Declined);
                    if in_turns && (verdict == Some(Verdict::Waits) || is_unwanted) {
                        self.lapse((self.now, u64::MAX));
                        self.settle();
                    }
                    self.fail_first_waiting(*client, *code, is_tick)?;
                    self.settle();
                }
                Said::Failed(code) if in_turns => {
                    self.time_out_one((*client, *number), *code);
                    self.settle();
                }
                _ => {}
            }
        }
        self.note_all_over(&mut ended);
        if in_turns {
            self.lapse((self.now, u64::MAX));
            self.settle();
        }
        while is_tick && self.end_next_orphan() {}
        for client in self.leaving.clone() {
            self.clients.remove(&client);
        }
        Ok(())
    }

    fn publish_waiting(&mut self, (client, number): Number, sequence: u64, time_passed: bool) -> Checked {
        let waiting = self
            .clients
            .get_mut(&client)
            .and_then(|state| state.waiting.pop_front());
        let Some(waiting) = waiting.filter(|first| first.number == number) else {
            return Err(format!("offer {number} of client {client} was answered out of turn"));
        };
        let verdict = self.verdict_in_turn(client, &waiting, time_passed, |one| one == Verdict::Visible);
        if verdict != Verdict::Visible {
            return Err(format!(
                "offer {number} of client {client} became visible; it should be: {verdict:?}"
            ));
        }
        let expected = self.take_up(client, number, waiting.bundle, &waiting.offer);
        self.want(client, number, Want::Offered(expected));
        self.await_archive(client, number, waiting.bundle, &waiting.offer, expected);
        if sequence != expected {
            return Err(format!(
                "offer {number} of client {client} got number {sequence}, due was {expected}"
            ));
        }
        self.settle();
        Ok(())
    }

    fn is_waiting(&self, client: u32, number: u64) -> bool {
        self.clients
            .get(&client)
            .is_some_and(|state| state.waiting.iter().any(|offer| offer.number == number))
    }

    /// Whether an offer that waited was answered in its turn: something else than time is against it.
    fn fails_in_turn(&self, (client, number): Number, code: Option<Code>, in_turns: bool) -> bool {
        let times_out = in_turns && code == Some(Code::PoolFull) && self.is_late((client, number));
        self.is_waiting(client, number) && !times_out
    }

    /// Whether the time is over for which an offer waits.
    fn is_late(&self, (client, number): Number) -> bool {
        let state = self.clients.get(&client);
        let offer = state.and_then(|state| state.waiting.iter().find(|offer| offer.number == number));
        offer.is_some_and(|offer| offer.deadline.is_some_and(|deadline| deadline <= self.now))
    }

    fn verdict_of_first(&self, client: u32) -> Option<Verdict> {
        let first = self.clients.get(&client)?.waiting.front()?;
        Some(self.verdict_of(client, first.bundle, &first.offer))
    }

    fn first_waiting(&self, client: u32) -> Option<u64> {
        self.clients.get(&client)?.waiting.front().map(|offer| offer.number)
    }

    fn fail_first_waiting(&mut self, client: u32, said: Option<Code>, time_passed: bool) -> Checked {
        let waiting = self
            .clients
            .get_mut(&client)
            .and_then(|state| state.waiting.pop_front());
        let Some(waiting) = waiting else {
            return Err(format!("client {client}: an offer was answered out of turn"));
        };
        let is_it = |verdict| match verdict {
            Verdict::Fails(code) => code.is_none() || code == said,
            Verdict::Declined => said == Some(Code::NotWanted),
            Verdict::Visible | Verdict::Waits => false,
        };
        match self.verdict_in_turn(client, &waiting, time_passed, is_it) {
            Verdict::Declined => {
                self.decline_offer(client, waiting.number, &waiting.offer);
                Ok(())
            }
            Verdict::Fails(code) => {
                self.fail(client, waiting.number, code);
                Ok(())
            }
            verdict => Err(format!(
                "offer {} of client {client} is passed over; it should be: {verdict:?}",
                waiting.number
            )),
        }
    }

    pub(in crate::model) fn lease(
        &mut self,
        client: u32,
        number: u64,
        (bytes, staged): (u64, bool),
        timeout_ms: Option<u64>,
        recorder: &Recorder,
    ) {
        let held = self
            .segments
            .values()
            .filter(|segment| segment.owner == Some(client))
            .count();
        if bytes > self.rules.budget_bytes {
            return self.fail(client, number, Some(Code::TooLarge));
        }
        self.put_first_lease_last(self.passing.is_over && !recorder.has_granted((client, number)));
        if self.first_lease().is_none_or(|first| self.may_pass(first)) {
            if bytes == 0 {
                return self.fail(client, number, Some(Code::InvalidArgument));
            }
            if classes::page_up(classes::slot_bytes(bytes)) > self.rules.budget_bytes {
                return self.fail(client, number, Some(Code::TooLarge));
            }
            if held >= self.rules.segments_per_client {
                return self.fail(client, number, Some(Code::LimitExceeded));
            }
            if self.fits(bytes) {
                return match recorder.refused {
                    0 => self.want(client, number, Want::Segment(bytes)),
                    _ => self.fail(client, number, Some(Code::Io)),
                };
            }
        }
        if timeout_ms == Some(0) && !self.has_spare() || staged && self.is_in_vain(bytes, self.pinned_bytes()) {
            return self.fail(client, number, Some(Code::PoolFull));
        }
        if self.is_full_of_requests(client) {
            return self.fail(client, number, Some(Code::LimitExceeded));
        }
        let deadline = self.deadline_in(timeout_ms);
        let lease = Going::Lease {
            bytes,
            staged,
            deadline,
        };
        self.going.insert((client, number), lease);
        self.leases.push_back((client, number));
    }

    /// Whether it is no use to wait for a segment: only the end of a bundle could make room for it.
    pub(in crate::model) fn is_in_vain(&self, payload_bytes: u64, pinned_bytes: u64) -> bool {
        // Members of aborted bundles are about to free some.
        let bytes = pinned_bytes + classes::page_up(classes::slot_bytes(payload_bytes));
        self.dropped.is_empty() && bytes > self.all_bytes()
    }

    pub(in crate::model) fn fits(&self, payload_bytes: u64) -> bool {
        self.used_bytes() + classes::page_up(classes::slot_bytes(payload_bytes)) <= self.rules.budget_bytes
    }

    pub(in crate::model) fn give_back(&mut self, client: u32, number: u64, segment: u32) {
        let code = match self.segments.get(&segment) {
            None => Code::InvalidArgument,
            Some(known) if known.owner != Some(client) => Code::Denied,
            Some(known) if !known.occupied.is_empty() => Code::Conflict,
            Some(_) => {
                self.segments.remove(&segment);
                return;
            }
        };
        self.fail(client, number, Some(code));
    }

    pub(in crate::model) fn vacate(&mut self, segment: u32, slot: u32) {
        let Some(known) = self.segments.get_mut(&segment) else {
            return;
        };
        known.occupied.remove(&slot);
        match known.owner {
            Some(owner) => self.want(owner, 0, Want::Freed(segment, slot)),
            None if known.occupied.is_empty() => {
                self.segments.remove(&segment);
            }
            None => {}
        }
    }

    /// A writable segment was granted.
    pub(in crate::model) fn granted(&mut self, client: u32, request: u64, head: &SegmentHead) -> Checked {
        let wanted = self.take_want(client, request, |want| matches!(want, Want::Segment(_)));
        let bytes = match (wanted, self.going.get(&(client, request))) {
            (Some(Want::Segment(bytes)), _) => {
                self.note_passing(head.bytes.get());
                bytes
            }
            (_, Some(&Going::Lease { bytes, .. })) => {
                self.take_turn((client, request), head.bytes.get())?;
                bytes
            }
            _ => return Err("it was not requested".to_owned()),
        };
        if head.slot_bytes.get() < bytes || head.bytes.get() < head.slot_bytes.get() {
            return Err(format!("a payload of {bytes} bytes does not fit"));
        }
        if head.segment.get() <= self.newest_segment {
            return Err("the number of the segment was used before".to_owned());
        }
        self.newest_segment = head.segment.get();
        let segment = crate::model::Segment {
            owner: Some(client),
            bytes: head.bytes.get(),
            slot_bytes: head.slot_bytes.get(),
            occupied: std::collections::BTreeMap::new(),
        };
        self.segments.insert(head.segment.get(), segment);
        Ok(())
    }

    /// The lease that waits first.
    pub(in crate::model) fn first_lease(&self) -> Option<Number> {
        let mut waiting = self.leases.iter().copied();
        waiting.find(|lease| matches!(self.going.get(lease), Some(Going::Lease { .. })))
    }

    fn needs(&self, lease: Number) -> u64 {
        match self.going.get(&lease) {
            Some(&Going::Lease { bytes, .. }) => classes::page_up(classes::slot_bytes(bytes)),
            _ => 0,
        }
    }

    /// Whether others that fit pass the first lease.
    pub(in crate::model) fn may_pass(&self, first: Number) -> bool {
        let bytes = self
            .passing
            .passed
            .filter(|passed| passed.lease == first)
            .map_or(0, |passed| passed.bytes);
        bytes < self.needs(first)
    }

    /// A lease got so many bytes while others wait.
    fn note_passing(&mut self, bytes: u64) {
        let Some(first) = self.first_lease() else { return };
        if !self.may_pass(first) {
            return;
        }
        let before = self.passing.passed.filter(|passed| passed.lease == first);
        self.passing.passed = Some(crate::model::Passed {
            lease: first,
            bytes: before.map_or(0, |passed| passed.bytes) + bytes,
            since: self.now,
        });
    }

    /// The first lease has kept others waiting for as long as it may; `surely`: that was before now.
    pub(in crate::model) fn put_first_lease_last(&mut self, surely: bool) {
        let Some(first) = self.first_lease().filter(|&first| !self.may_pass(first)) else {
            return;
        };
        let until = self
            .passing
            .passed
            .map_or(0, |passed| passed.since.saturating_add(self.rules.lease_first_for_ns));
        if until < self.now || !surely && until == self.now {
            self.leases.retain(|&lease| lease != first);
            self.leases.push_back(first);
            self.passing.passed = None;
        }
    }

    /// A lease that waited got so many bytes.
    fn take_turn(&mut self, lease: Number, bytes: u64) -> Checked {
        // At the same time, other due events may happen before or after.
        self.put_first_lease_last(true);
        if !self.is_its_turn(lease) {
            self.put_first_lease_last(false);
        }
        if !self.is_its_turn(lease) {
            return Err("it is not this lease's turn".to_owned());
        }
        if self.first_lease() == Some(lease) {
            self.passing.passed = None;
        } else {
            self.note_passing(bytes);
        }
        self.leases.retain(|&one| one != lease);
        self.going.remove(&lease);
        Ok(())
    }

    fn is_its_turn(&self, lease: Number) -> bool {
        let Some(first) = self.first_lease() else { return false };
        let fits = matches!(self.going.get(&first), Some(&Going::Lease { bytes, .. }) if self.fits(bytes));
        let waiting = self.leases.iter().copied().filter(|one| self.going.contains_key(one));
        let smallest = waiting.min_by_key(|&one| self.needs(one));
        first == lease || !fits && self.may_pass(first) && smallest == Some(lease)
    }

    /// Handles a waiting lease that failed in its turn.
    pub(in crate::model) fn lease_failed(
        &mut self,
        client: u32,
        request: u64,
        code: Option<Code>,
        recorder: &Recorder,
    ) -> Checked {
        let held = self
            .segments
            .values()
            .filter(|segment| segment.owner == Some(client))
            .count();
        let Some(&Going::Lease { bytes, staged, .. }) = self.going.get(&(client, request)) else {
            return Err("nothing of this fails now".to_owned());
        };
        let is_due = match code {
            Some(Code::Io) => recorder.refused > 0,
            Some(Code::PoolFull) => staged && self.is_in_vain(bytes, self.pinned_most),
            Some(Code::LimitExceeded) => held >= self.rules.segments_per_client,
            Some(Code::InvalidArgument) => bytes == 0,
            Some(Code::TooLarge) => classes::page_up(classes::slot_bytes(bytes)) > self.rules.budget_bytes,
            _ => false,
        };
        self.going.remove(&(client, request));
        self.leases.retain(|&lease| lease != (client, request));
        if is_due {
            Ok(())
        } else {
            Err("there is no reason for it".to_owned())
        }
    }
}
