//! Objects owed to interests, and the end of requests and clients.

use std::collections::BTreeSet;

use junctura_model::Code;
use junctura_wire::body::events;

use crate::clients::requests::Aim;
use crate::model::{Going, Held, Model, NOBODY, Number, Want};

impl Model {
    pub(in crate::model) fn owes(&self, requirement: Number, sequence: u64) -> bool {
        matches!(self.going.get(&requirement), Some(Going::Require(one)) if one.owed.contains_key(&sequence))
    }

    /// The requirements that are owed a version.
    pub(in crate::model) fn owed_to(&self, sequence: u64) -> Vec<Number> {
        self.going
            .iter()
            .filter(|(_, going)| matches!(going, Going::Require(one) if one.owed.contains_key(&sequence)))
            .map(|(&number, _)| number)
            .collect()
    }

    pub(in crate::model) fn disown(&mut self, requirement: Number, sequence: u64) {
        let is_late = matches!(self.going.get(&requirement), Some(Going::Require(one)) if self.is_half_stuck(one));
        let event = self.event;
        if let Some(Going::Require(one)) = self.going.get_mut(&requirement)
            && one.owed.remove(&sequence).is_some()
        {
            if is_late {
                one.was_late_in = event;
            }
            one.again.remove(&sequence);
            self.is_let_go(sequence);
        }
    }

    /// Some requirement is not owed a version any more.
    pub(in crate::model) fn is_let_go(&mut self, sequence: u64) {
        let event = self.event;
        let object = self.object_mut(sequence);
        object.owed -= 1;
        object.touched_in = event;
        let is_unrequired = object.owed == 0;
        self.disowned.push(sequence);
        if is_unrequired {
            self.unrequired.insert(sequence);
        }
    }

    pub(in crate::model) fn is_aimed_at(&self, aim: &Aim, sequence: u64) -> bool {
        match aim {
            Aim::Key(key) => self.object(sequence).offer.key == *key,
            Aim::Query(query) => self.matches(query, sequence),
        }
    }

    pub(in crate::model) fn is_full_of_requests(&self, client: u32) -> bool {
        let open = self.going.range((client, 0)..=(client, u64::MAX)).count();
        open + self.met_before(client) >= self.rules.requests_per_client
    }

    pub(in crate::model) fn held_by(&self, client: u32) -> usize {
        self.held.range((client, 0)..=(client, u32::MAX)).count()
    }

    pub(in crate::model) fn deadline_in(&self, timeout_ms: Option<u64>) -> Option<u64> {
        timeout_ms.map(|ms| self.now + ms * 1_000_000)
    }

    /// Handles a release, or the loss of its client (then it does not count).
    pub(in crate::model) fn take_back(&mut self, client: u32, held: &Held, counts: bool) {
        self.object_mut(held.sequence).holders -= 1;
        if !counts {
            if let Some(requirement) = held.requirement {
                self.owe_again(requirement, held.sequence, true);
            }
            return;
        }
        self.totals.released += 1;
        let object = self.object_mut(held.sequence);
        if let Some(left @ 1..) = object.releases_left
            && object.released_by.insert(client)
        {
            object.releases_left = Some(left - 1);
        }
        if let Some(requirement) = held.requirement {
            self.disown(requirement, held.sequence);
            self.no_longer_forfeited(requirement, held.sequence);
            self.go_forward(requirement);
        }
        if let Some(Going::Follow(follow)) = held.follow.and_then(|follow| self.going.get_mut(&(client, follow))) {
            follow.in_flight -= 1;
            follow.progress = self.now;
        }
    }

    /// Ends a long-running request.
    pub(in crate::model) fn end(&mut self, number: Number) {
        match self.going.get(&number) {
            Some(Going::Require(one)) => {
                let owed: BTreeSet<u64> = one.owed.keys().copied().collect();
                let readers: Vec<Number> = one.members.iter().copied().chain(one.reader).collect();
                let later = self.let_go_of(&owed);
                for &sequence in owed.difference(&later) {
                    self.disown(number, sequence);
                }
                for reader in readers {
                    self.going.remove(&reader);
                    self.want(reader.0, reader.1, Want::Ended(Code::Closed));
                }
                self.go_on_without(number);
            }
            Some(Going::Follow(follow)) => {
                let via = follow.via;
                self.readers_ended.extend(via.map(|via| (via, number.1)));
                // A named one keeps gaps that its reader has not received.
                let is_untold = |(client, request, want): &mut (u32, u64, Want)| {
                    (*client, *request) == number && matches!(want, Want::Gap(..))
                };
                let untold: Vec<_> = if via.is_some_and(|via| via.0 == NOBODY) {
                    self.wants.extract_if(.., is_untold).map(|(_, _, want)| want).collect()
                } else {
                    Vec::new()
                };
                if let Some(Going::Require(one)) = via.and_then(|via| self.going.get_mut(&via)) {
                    one.reader = None;
                    one.members.retain(|&member| member != number);
                    let next = one.hears();
                    for want in untold {
                        match (want, next) {
                            (Want::Gap(sequence, why), None) => one.lost.push((sequence, why)),
                            (want, Some(next)) => self.wants.push((next.0, next.1, want)),
                            _ => {}
                        }
                    }
                }
            }
            Some(Going::Lease { .. }) => self.leases.retain(|&lease| lease != number),
            Some(&Going::Bundle(which)) => self.leave_bundle(which, number),
            _ => {}
        }
        self.going.remove(&number);
    }

    /// Detaches readers and waiting requests from an ended requirement: another one may take its name.
    fn go_on_without(&mut self, ended: Number) {
        for held in self.held.values_mut() {
            held.requirement = held.requirement.filter(|&one| one != ended);
        }
        for going in self.going.values_mut() {
            match going {
                Going::Demand { requirement, .. } => *requirement = requirement.filter(|&one| one != ended),
                Going::Withdraw { waits, .. } => waits.values_mut().for_each(|blockers| _ = blockers.remove(&ended)),
                _ => {}
            }
        }
    }

    /// Removes a client: its holdings, requests, leases and waiting offers end; its visible objects stay.
    pub(in crate::model) fn leave(&mut self, client: u32) {
        if !self.leaving.insert(client) {
            return;
        }
        if self.clients.get(&client).is_some_and(|state| state.known) {
            self.tell_of_client(events::LEFT, client);
        }
        let requests: Vec<Number> = self
            .going
            .range((client, 0)..=(client, u64::MAX))
            .map(|(&number, _)| number)
            .collect();
        for number in requests {
            self.end(number);
        }
        let mut held: Vec<(u64, (u32, u32))> = self
            .held
            .range((client, 0)..=(client, u32::MAX))
            .map(|(&at, held)| (held.sequence, at))
            .collect();
        held.sort_unstable();
        for (_, at) in held {
            if let Some(held) = self.held.remove(&at) {
                self.take_back(client, &held, false);
            }
        }
        self.segments
            .retain(|_, segment| segment.owner != Some(client) || !segment.occupied.is_empty());
        for segment in self
            .segments
            .values_mut()
            .filter(|segment| segment.owner == Some(client))
        {
            segment.owner = None;
        }
    }
}
