//! Groups: the members, and their deliveries.
//!
//! A version that a group is owed is with no client, or with one. While one is with no client, no member has room; the one
//! with the smallest number is delivered first, to whichever member the server likes.

use junctura_model::Code;

use crate::clients::requests::{Back, Share, Terms};
use crate::model::{Checked, Following, Going, Held, Model, NOBODY, Number, Requirement, Want};
use crate::run::universe::Query;

impl Requirement {
    /// The request that receives notices.
    pub(in crate::model) fn hears(&self) -> Option<Number> {
        self.reader.or_else(|| self.members.first().copied())
    }

    /// The objects that no member has, the oldest first.
    pub(in crate::model) fn waiting(&self) -> impl Iterator<Item = u64> {
        let waits = self.owed.iter().filter(|(_, in_flight)| **in_flight == 0);
        waits.map(|(&sequence, _)| sequence)
    }
}

impl Model {
    pub(in crate::model) fn is_group(&self, requirement: Number) -> bool {
        matches!(self.going.get(&requirement), Some(Going::Require(one)) if one.terms.is_group)
    }

    /// Returns the event in which the group of a name was made, if it exists.
    #[must_use]
    pub fn life_of_group(&self, name: usize) -> Option<u64> {
        match self.going.get(&(NOBODY, name as u64)) {
            Some(Going::Require(one)) if one.terms.is_group => Some(one.made),
            _ => None,
        }
    }

    /// Whether the requirement of a name exists on these terms.
    #[must_use]
    pub fn stands_as(&self, name: usize, terms: &Terms) -> bool {
        matches!(self.going.get(&(NOBODY, name as u64)), Some(Going::Require(one)) if one.terms.of_follow() == terms.of_follow())
    }

    /// Whether the group of a name is still owed a version.
    #[must_use]
    pub fn group_is_owed(&self, name: usize, sequence: u64) -> bool {
        self.owes((NOBODY, name as u64), sequence)
    }

    /// The group that a follow is a member of.
    #[must_use]
    pub fn group_of(&self, client: u32, request: u64) -> Option<usize> {
        match self.going.get(&(client, request)) {
            Some(Going::Follow(follow)) => follow.joined.and(follow.via).map(|via| via.1 as usize),
            _ => None,
        }
    }

    pub(in crate::model) fn share(&mut self, client: u32, number: u64, share: &Share, window: u32, until_live: bool) {
        let named: Number = (NOBODY, share.name as u64);
        let refusal = match (self.going.get(&named), &share.terms) {
            (Some(Going::Require(one)), None) => (!one.terms.is_group).then_some(Code::Conflict),
            (Some(Going::Require(one)), Some(terms)) => {
                (one.terms.of_follow() != terms.of_follow()).then_some(Code::Conflict)
            }
            (_, None) => Some(Code::NotFound),
            (_, Some(_)) if self.is_draining() => Some(Code::Closed),
            (_, Some(_)) => (self.names().len() >= self.rules.named_requirements).then_some(Code::LimitExceeded),
        };
        if refusal.is_some() {
            return self.fail(client, number, refusal);
        }
        self.end_beginning(named);
        if self.is_full_of_requests(client) {
            return self.fail(client, number, Some(Code::LimitExceeded));
        }
        if let Some(terms) = &share.terms
            && !self.going.contains_key(&named)
        {
            self.make_named(client, named, &self.settled(terms));
            if self.joins_later((client, number), named, window, until_live) {
                return;
            }
        }
        self.join_group(client, number, named, window, until_live);
    }

    pub(in crate::model) fn join_group(
        &mut self,
        client: u32,
        number: u64,
        group: Number,
        window: u32,
        until_live: bool,
    ) {
        self.end_beginning(group);
        let sequence = self.sequence;
        let follow = Following {
            query: Query::All,
            window,
            in_flight: 0,
            progress: 0,
            via: Some(group),
            joined: Some(sequence),
            until_live,
            said_live: false,
            is_closing: false,
            perhaps: [].into(),
            is_over: false,
            missed: [].into(),
            first: [].into(),
            live: [].into(),
            given: [].into(),
        };
        if !self.go_on(client, number, Going::Follow(Box::new(follow))) {
            return;
        }
        self.want(client, number, Want::Began(sequence));
        if let Some(Going::Require(one)) = self.going.get_mut(&group) {
            one.members.push((client, number));
            one.lapses = None;
        }
        self.go_forward(group);
        self.tell_lost(group);
    }

    /// Handles a delivery to a member: the oldest object that no member has.
    pub(in crate::model) fn shared(&mut self, number: Number, sequence: u64, is_first: bool) -> Result<Held, String> {
        let (held, limit) = (self.held_by(number.0), self.rules.held_per_client);
        let Some(Going::Follow(follow)) = self.going.get(&number) else {
            return Err("nothing follows".to_owned());
        };
        let via = follow.via;
        let Some(Going::Require(one)) = via.and_then(|via| self.going.get(&via)) else {
            return Err("there is no such group".to_owned());
        };
        let problem = if follow.in_flight >= follow.window {
            "more than the window"
        } else if held >= limit {
            "more than a client may hold"
        } else if is_first == follow.said_live {
            "in the wrong phase"
        } else if !one.owed.contains_key(&sequence) && self.object(sequence).touched_in != self.event {
            "the group is not owed it"
        } else if one.owed.get(&sequence).is_some_and(|&in_flight| in_flight > 0) {
            "a member has it"
        } else if !self.left_midway && one.waiting().next().is_some_and(|oldest| oldest < sequence) {
            "an older one waits"
        } else {
            ""
        };
        if !problem.is_empty() {
            return Err(problem.to_owned());
        }
        if let Some(Going::Follow(follow)) = self.going.get_mut(&number) {
            follow.in_flight += 1;
        }
        Ok(Held {
            sequence,
            follow: Some(number.1),
            requirement: via,
            is_released: false,
        })
    }

    /// The object that a member that is not live waits for: it was owed when the member joined, and no member has it.
    pub(in crate::model) fn oldest_to_wait_for(&self, follow: &Following) -> Option<u64> {
        let joined = follow.joined.filter(|_| !self.left_midway)?;
        match follow.via.and_then(|via| self.going.get(&via)) {
            Some(Going::Require(one)) => one.waiting().next().filter(|&oldest| oldest <= joined),
            _ => None,
        }
    }

    /// No member with room starves, and each knows when it is live.
    pub(in crate::model) fn check_member(&self, number: Number, follow: &Following, is_open: bool) -> Checked {
        let (client, request) = number;
        let Some(Going::Require(one)) = follow.via.and_then(|via| self.going.get(&via)) else {
            return Err(format!("follow {request} of client {client} is a member of nothing"));
        };
        let oldest = one.waiting().next();
        if let (true, Some(oldest)) = (is_open, oldest) {
            return Err(format!("member {request} of client {client} starves: {oldest} waits"));
        }
        if !follow.said_live && oldest.is_none_or(|oldest| Some(oldest) > follow.joined) {
            return Err(format!(
                "member {request} of client {client} gets no notice that it is live"
            ));
        }
        Ok(())
    }

    /// Handles the return, without a release, of an object that a requirement delivered.
    pub(in crate::model) fn come_back(&mut self, client: u32, held: &Held, back: Back) {
        self.object_mut(held.sequence).holders -= 1;
        if let Some(requirement) = held.requirement {
            self.owe_again(requirement, held.sequence, back == Back::Undone);
        }
        if let Some(Going::Follow(follow)) = held.follow.and_then(|follow| self.going.get_mut(&(client, follow))) {
            follow.in_flight -= 1;
            follow.progress = self.now;
            if held.requirement.is_some() {
                follow.given.remove(&held.sequence);
            }
        }
    }
}
