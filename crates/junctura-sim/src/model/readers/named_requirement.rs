//! Requirements: how they are made and end, and what a name adds.
//!
//! A named one belongs to no client. It ends when a client retracts it, or when no client has used it for its time to live:
//! none keeps its `require` open, reads, waits through it, or holds unreleased objects received through it.

use std::collections::{BTreeMap, BTreeSet};

use junctura_model::Code;
use junctura_pool::core::PoolStat;
use junctura_wire::body::events;

use crate::clients::requests::{Terms, requirement_name};
use crate::model::objects::unfinished::LateBeginning;
use crate::model::{Checked, Fate, Going, Model, NOBODY, Number, Requirement, Want};
use crate::run::universe::Order;

impl Model {
    /// The requirement that a request, or a name, means.
    pub(in crate::model) fn through(
        &self,
        client: u32,
        requirement: Option<u64>,
        name: Option<usize>,
    ) -> Result<Option<Number>, ()> {
        let number = match (name, requirement) {
            (Some(name), _) => (NOBODY, name as u64),
            (None, Some(which)) => (client, which),
            (None, None) => return Ok(None),
        };
        match self.going.get(&number) {
            Some(Going::Require(_)) => Ok(Some(number)),
            Some(Going::Use(named)) => Ok(Some(*named)),
            _ => Err(()),
        }
    }

    fn new_requirement(&self, terms: &Terms, beginning: Option<LateBeginning>) -> Requirement {
        let there = match &beginning {
            Some(_) => Vec::new(),
            None => self.visible_matches(&terms.query, Order::Key),
        };
        let owed: BTreeMap<u64, u32> = there.into_iter().map(|sequence| (sequence, 0)).collect();
        Requirement {
            terms: terms.clone(),
            owed,
            again: BTreeSet::new(),
            reader: None,
            members: Vec::new(),
            made: self.event,
            lost: Vec::new(),
            lapses: None,
            progress: self.now,
            broken: false,
            forfeited: BTreeMap::new(),
            was_late_in: 0,
            stuck_since: None,
            beginning,
        }
    }

    /// Completes terms with the defaults of the pool.
    pub(in crate::model) fn settled(&self, terms: &Terms) -> Terms {
        let default_ms = self.rules.stuck_after_ns / 1_000_000;
        Terms {
            stuck_after_ms: terms.stuck_after_ms.or(Some(default_ms)),
            ..terms.clone()
        }
    }

    fn count_as_owed(&mut self, owed: &BTreeMap<u64, u32>) {
        for &sequence in owed.keys() {
            self.object_mut(sequence).owed += 1;
        }
    }

    pub(in crate::model) fn require(&mut self, client: u32, number: u64, terms: &Terms) {
        if self.is_full_of_requests(client) {
            return self.fail(client, number, Some(Code::LimitExceeded));
        }
        let beginning = self.begin_in_parts((client, number), &terms.query);
        let requirement = self.new_requirement(terms, beginning);
        let owed = requirement.owed.clone();
        if self.go_on(client, number, Going::Require(Box::new(requirement))) {
            self.count_as_owed(&owed);
            self.began((client, number), (client, number));
        }
    }

    pub(in crate::model) fn require_named(&mut self, client: u32, number: u64, name: usize, terms: &Terms) {
        let named: Number = (NOBODY, name as u64);
        let terms = &self.settled(terms);
        let stands = match self.going.get(&named) {
            Some(Going::Require(one)) if one.terms != *terms => {
                return self.fail(client, number, Some(Code::Conflict));
            }
            other => other.is_some(),
        };
        if !stands && self.names().len() >= self.rules.named_requirements {
            return self.fail(client, number, Some(Code::LimitExceeded));
        }
        if !self.go_on(client, number, Going::Use(named)) {
            return;
        }
        if !stands {
            self.make_named(client, named, terms);
        }
        self.began((client, number), named);
    }

    pub(in crate::model) fn make_named(&mut self, client: u32, named: Number, terms: &Terms) {
        let beginning = self.begin_in_parts(named, &terms.query);
        let requirement = self.new_requirement(terms, beginning);
        self.count_as_owed(&requirement.owed.clone());
        self.going.insert(named, Going::Require(Box::new(requirement)));
        self.tell_of_requirement(events::REQUIRED, Some(client), named);
        if !self.is_beginning(named) {
            self.come(named.1 as usize);
        }
    }

    pub(in crate::model) fn retract(&mut self, client: u32, number: u64, name: usize) {
        let named: Number = (NOBODY, name as u64);
        let Some(Going::Require(one)) = self.going.get(&named) else {
            return self.fail(client, number, Some(Code::NotFound));
        };
        let owed = one.owed.len() as u64;
        self.tell_of_requirement(events::RETRACTED, Some(client), named);
        for user in self.users_of(named) {
            self.going.remove(&user);
            self.want(user.0, user.1, Want::Ended(Code::Closed));
        }
        self.end(named);
        self.want(client, number, Want::Done(owed));
    }

    /// Times to live that were over before a time, or at that time where they were settled before that event.
    pub(in crate::model) fn lapse(&mut self, before: (u64, u64)) {
        let mut over: Vec<((u64, u64), Number)> = Vec::new();
        for (&number, going) in &self.going {
            if let Going::Require(one) = going
                && let Some(at) = one.lapses.filter(|&at| at < before)
            {
                over.push((at, number));
            }
        }
        over.sort_unstable();
        for (_, named) in over {
            self.lapsed.push(named);
            self.tell_of_requirement(events::LAPSED, None, named);
            self.end(named);
        }
    }

    /// Whether the time to live of some is over.
    pub(in crate::model) fn some_lapse(&self) -> bool {
        let is_over =
            |going: &Going| matches!(going, Going::Require(one) if one.lapses.is_some_and(|(at, _)| at <= self.now));
        self.going.values().any(is_over)
    }

    /// At the end of an event: starts the time to live of requirements that have become unused.
    pub(in crate::model) fn wind_clocks(&mut self) {
        for named in self.names() {
            let is_used = self.is_used(named);
            let (now, event) = (self.now, self.event);
            let Some(Going::Require(one)) = self.going.get_mut(&named) else {
                continue;
            };
            if is_used {
                one.lapses = None;
            } else if let Some(time) = one.terms.time_to_live_ms {
                one.lapses.get_or_insert((now + time * 1_000_000, event));
            }
        }
    }

    fn is_used(&self, named: Number) -> bool {
        let Some(Going::Require(one)) = self.going.get(&named) else {
            return false;
        };
        let waits = |going: &Going| matches!(going, Going::Demand { requirement, .. } if *requirement == Some(named));
        one.reader.is_some()
            || !one.members.is_empty()
            || one.owed.values().any(|&in_flight| in_flight > 0)
            || !self.users_of(named).is_empty()
            || self.going.values().any(waits)
    }

    fn users_of(&self, named: Number) -> Vec<Number> {
        let stands_by = |going: &Going| matches!(going, Going::Use(used) if *used == named);
        let users = self.going.iter().filter(|(_, going)| stands_by(going));
        users.map(|(&number, _)| number).collect()
    }

    pub(in crate::model) fn names(&self) -> Vec<Number> {
        let named = self.going.range((NOBODY, 0)..=(NOBODY, u64::MAX));
        named.map(|(&number, _)| number).collect()
    }

    /// Returns whether a requirement of this name exists without a reader; if so, whether it is a group.
    #[must_use]
    pub fn is_unread(&self, name: usize) -> Option<bool> {
        match self.going.get(&(NOBODY, name as u64)) {
            Some(Going::Require(one)) if one.reader.is_none() && one.members.is_empty() => Some(one.terms.is_group),
            _ => None,
        }
    }

    /// Owes an object again, after the client that held it has disconnected without a release, or has returned it;
    /// `undone`: the client may have seen it.
    pub(in crate::model) fn owe_again(&mut self, requirement: Number, sequence: u64, undone: bool) {
        let fate = self.object(sequence).fate;
        let Some(Going::Require(one)) = self.going.get_mut(&requirement) else {
            return;
        };
        let Some(in_flight) = one.owed.get_mut(&sequence) else {
            return self.lose_forfeited(requirement, sequence);
        };
        *in_flight -= 1;
        let left = *in_flight;
        if undone {
            one.again.insert(sequence);
        }
        if left > 0 {
            return;
        }
        let (reader, newest_only) = (one.hears(), one.terms.newest_only);
        match fate {
            Fate::Withdrawn | Fate::Expired | Fate::Archived => {
                self.let_down(requirement, reader, sequence, fate.name());
            }
            Fate::Superseded if newest_only => self.disown(requirement, sequence),
            Fate::Visible | Fate::Superseded => {
                if let Some(Going::Follow(follow)) = reader
                    .filter(|_| !self.is_group(requirement))
                    .and_then(|reader| self.going.get_mut(&reader))
                    && !follow.is_closing
                    && !follow.first.contains(&sequence)
                    && !follow.live.contains(&sequence)
                {
                    follow.live.push_back(sequence);
                    self.came_back.insert(sequence);
                }
            }
        }
    }

    /// A client was given a version and left in the same event; its follow has ended already.
    pub(in crate::model) fn lose(&mut self, request: u64, sequence: u64) {
        let via = self.readers_ended.iter().find(|&&(_, reader)| reader == request);
        let via = via.map(|&(requirement, _)| requirement);
        if let Some(Going::Require(one)) = via.and_then(|via| self.going.get_mut(&via))
            && one.owed.contains_key(&sequence)
        {
            one.again.insert(sequence);
        }
    }

    /// Handles a version that a requirement will not receive: its reader gets a gap, or its client, or the next reader.
    pub(in crate::model) fn let_down(
        &mut self,
        requirement: Number,
        reader: Option<Number>,
        sequence: u64,
        why: &'static str,
    ) {
        self.disown(requirement, sequence);
        match (reader, self.going.get_mut(&requirement)) {
            (None, Some(Going::Require(one))) if requirement.0 == NOBODY => one.lost.push((sequence, why)),
            _ => {
                let told = reader.unwrap_or(requirement);
                self.want(told.0, told.1, Want::Gap(sequence, why));
            }
        }
    }

    pub(in crate::model) fn tell_of_requirement(&mut self, event: u32, client: Option<u32>, one: Number) {
        let want = Want::Event {
            event,
            sequence: None,
            client,
            name: (one.0 == NOBODY).then_some(one.1 as usize),
            bundle: None,
        };
        self.want_of_watchers(event, &want);
    }

    /// At the end of a run, when everything was read and released: a requirement with a reader is owed nothing.
    ///
    /// # Errors
    /// What is still owed.
    pub fn check_named(&self) -> Checked {
        for named in self.names() {
            if let Some(Going::Require(one)) = self.going.get(&named)
                && one.hears().is_some()
                && !one.owed.is_empty()
            {
                return Err(format!("requirement {} is read and still owed {:?}", named.1, one.owed));
            }
        }
        Ok(())
    }

    pub(in crate::model) fn compare_named(&self, stat: &PoolStat) -> Checked {
        let names = self.names();
        if stat.named_requirements.len() != names.len() {
            return Err(format!(
                "{} names exist, due are {names:?}",
                stat.named_requirements.len()
            ));
        }
        for (said, named) in stat.named_requirements.iter().zip(names) {
            let Some(Going::Require(one)) = self.going.get(&named) else {
                continue;
            };
            let bytes: u64 = one
                .owed
                .keys()
                .map(|&sequence| self.object(sequence).offer.length)
                .sum();
            let in_flight: u64 = one.owed.values().map(|&count| u64::from(count)).sum();
            let group = said.group.as_ref();
            let pairs = [
                ("owed", said.owed, one.owed.len() as u64),
                ("owed_bytes", said.owed_bytes, bytes),
                ("in_flight", said.in_flight, in_flight),
                ("lost", said.lost, one.lost.len() as u64),
                ("broken", u64::from(said.broken), u64::from(one.broken)),
                (
                    "oldest",
                    said.oldest_owed.unwrap_or(0),
                    one.owed.keys().next().copied().unwrap_or(0),
                ),
                ("group", u64::from(group.is_some()), u64::from(one.terms.is_group)),
                (
                    "waiting",
                    group.map_or(0, |group| group.waiting),
                    if one.terms.is_group {
                        one.waiting().count() as u64
                    } else {
                        0
                    },
                ),
                (
                    "members",
                    group.map_or(0, |group| group.member_count),
                    one.members.len() as u64,
                ),
                ("users", u64::from(said.users), self.users_of(named).len() as u64),
                (
                    "reader",
                    said.reader.as_ref().map_or(0, |reader| u64::from(reader.client)),
                    one.reader.map_or(0, |reader| u64::from(reader.0)),
                ),
                (
                    "lapses",
                    u64::from(said.lapses_in_s.is_some()),
                    u64::from(one.lapses.is_some()),
                ),
            ];
            if said.name != requirement_name(named.1 as usize) {
                return Err(format!("stat: {} exists, due is {}", said.name, named.1));
            }
            if let Some((what, said, due)) = pairs.iter().find(|(_, said, due)| said != due) {
                return Err(format!(
                    "stat: {what} of requirement {} is {said}, due is {due}",
                    named.1
                ));
            }
        }
        Ok(())
    }
}
