//! Changes of more objects than fit one event are done in parts: an object is unchanged until its turn.
//!
//! The model receives the progress of each part. It does the same with the same objects, in their order, and objects where
//! the core's rest is not the expected one.

use std::collections::{BTreeMap, BTreeSet};

use junctura_model::Code;
use junctura_pool::core::{UnfinishedChange, UnfinishedWork};

use crate::clients::requests::requirement_name;
use crate::model::{Checked, Fate, Going, Model, NOBODY, Number, Requirement, Want};
use crate::run::universe::Query;

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct UnfinishedParts {
    /// The core's unfinished work, after the event that is judged.
    told: Vec<UnfinishedWork>,
    /// How many turns each had when the event began.
    turns: BTreeMap<u64, u64>,
    /// By their numbers: the objects owed to requirements that have ended, which are still to be released.
    ended: BTreeMap<u64, BTreeSet<u64>>,
    /// By their numbers: the names that now exist, as bits, and the objects that still wait for them.
    coming: BTreeMap<u64, (u8, BTreeSet<u64>)>,
    /// Objects that ended before a requirement could be owed them: the event in which that was made, and the version.
    passed_over: BTreeSet<(u64, u64)>,
    wrong: Option<String>,
}

/// A requirement that has yet to be owed what was there when it was made.
#[derive(Clone, Debug)]
pub(in crate::model) struct LateBeginning {
    part: u64,
    /// The next last.
    left: Vec<u64>,
    /// The clients that get the answer at the end.
    askers: Vec<Number>,
    /// The follow that has made a group, and becomes a member when it is over: its window, and whether it ends then.
    joins: Option<(Number, u32, bool)>,
}

/// A withdraw-all that has yet to look at some objects.
#[derive(Clone, Debug)]
pub(in crate::model) struct LateRetire {
    part: u64,
    /// The next last.
    left: Vec<u64>,
    force: bool,
    timeout_ms: Option<u64>,
    since: u64,
}

impl LateRetire {
    pub(in crate::model) fn has_left(&self) -> bool {
        !self.left.is_empty()
    }
}

impl Requirement {
    /// It has yet to be owed something that was there.
    pub(in crate::model) fn is_to_be_owed(&self) -> bool {
        self.beginning
            .as_ref()
            .is_some_and(|beginning| !beginning.left.is_empty())
    }
}

impl UnfinishedParts {
    /// The core's unfinished work.
    pub(in crate::model) fn all_told(&self) -> Vec<UnfinishedWork> {
        self.told.clone()
    }

    fn told(&self, number: u64) -> Option<&UnfinishedWork> {
        self.told.iter().find(|one| one.number == number)
    }

    fn blame(&mut self, text: String) {
        self.wrong.get_or_insert(text);
    }

    /// Something in parts has had a turn, or is over.
    pub(in crate::model) fn has_gone_on(&self, number: u64) -> bool {
        self.told(number)
            .is_none_or(|one| self.turns.get(&number) != Some(&one.turns))
    }
}

impl Model {
    /// Records the core's unfinished work in parts, after the event that is to be judged.
    pub fn note_unfinished(&mut self, told: Vec<UnfinishedWork>) {
        self.parts.told = told;
    }

    /// Records the core's unfinished work in parts before the next event: it may have continued with what follows are to
    /// read.
    pub fn see_ahead(&mut self, told: &[UnfinishedWork]) {
        for one in told
            .iter()
            .filter(|one| matches!(one.change, UnfinishedChange::Begin(_)))
        {
            if let Some(requirement) = self.beginning_of(one.number) {
                let left = |model: &Self| model.beginning(requirement).map_or(0, |beginning| beginning.left.len());
                while left(self) > one.left.len() {
                    self.owe_next(requirement);
                }
            }
        }
    }

    /// Whether a version ended before a requirement made in this event could be owed it.
    #[must_use]
    pub fn was_passed_over(&self, made: u64, sequence: u64) -> bool {
        self.parts.passed_over.contains(&(made, sequence))
    }

    /// The event that is judged next.
    #[must_use]
    pub fn next_event(&self) -> u64 {
        self.event + 1
    }

    /// Visible objects that match, hidden ones included.
    pub(in crate::model) fn all_matches(&self, query: &Query) -> BTreeSet<u64> {
        let all = self.visible.values().copied();
        all.filter(|&sequence| self.matches(query, sequence)).collect()
    }

    /// Returns the core's work in parts from this event on, where it is so much.
    fn told_of(&mut self, change: &UnfinishedChange, all: &BTreeSet<u64>) -> Option<UnfinishedWork> {
        if all.len() <= self.rules.changed_at_once {
            return None;
        }
        let mut told = self.parts.told.iter().find(|one| one.change == *change).cloned();
        if let Some(one) = &mut told {
            name_those_gone(&mut one.left, all);
        }
        let left = told
            .as_ref()
            .map(|one| one.left.iter().copied().collect::<BTreeSet<u64>>());
        if left.as_ref() != Some(all) {
            self.parts
                .blame(format!("{change:?} is to be done with {all:?} in parts: {told:?}"));
        }
        told
    }

    fn beginning(&self, requirement: Number) -> Option<&LateBeginning> {
        match self.going.get(&requirement) {
            Some(Going::Require(one)) => one.beginning.as_ref(),
            _ => None,
        }
    }

    fn beginning_mut(&mut self, requirement: Number) -> Option<&mut LateBeginning> {
        match self.going.get_mut(&requirement) {
            Some(Going::Require(one)) => one.beginning.as_mut(),
            _ => None,
        }
    }

    fn beginning_of(&self, part: u64) -> Option<Number> {
        let is_it = |number: &&Number| self.beginning(**number).is_some_and(|beginning| beginning.part == part);
        self.going.keys().find(is_it).copied()
    }

    pub(in crate::model) fn is_beginning(&self, requirement: Number) -> bool {
        self.beginning(requirement).is_some()
    }

    /// Whether a requirement that is made now is owed in parts what is there.
    pub(in crate::model) fn begin_in_parts(&mut self, requirement: Number, query: &Query) -> Option<LateBeginning> {
        let of = match requirement {
            (NOBODY, name) => Err(requirement_name(name as usize)),
            of => Ok(of),
        };
        let told = self.told_of(&UnfinishedChange::Begin(of), &self.all_matches(query))?;
        Some(LateBeginning {
            part: told.number,
            left: told.left,
            askers: Vec::new(),
            joins: None,
        })
    }

    /// Answers a client that its requirement began: now, or when it has.
    pub(in crate::model) fn began(&mut self, asker: Number, requirement: Number) {
        match self.beginning_mut(requirement) {
            Some(beginning) => beginning.askers.push(asker),
            None => self.want(asker.0, asker.1, Want::Began(self.sequence)),
        }
    }

    /// Whether the follow that has made a group joins it later.
    pub(in crate::model) fn joins_later(
        &mut self,
        follow: Number,
        group: Number,
        window: u32,
        until_live: bool,
    ) -> bool {
        let Some(beginning) = self.beginning_mut(group) else {
            return false;
        };
        beginning.joins = Some((follow, window, until_live));
        self.go_on(follow.0, follow.1, Going::Use(group))
    }

    fn owe_next(&mut self, requirement: Number) {
        let next = self
            .beginning_mut(requirement)
            .and_then(|beginning| beginning.left.pop());
        let Some(sequence) = next else { return };
        let is_there = self.object(sequence).fate == Fate::Visible && !self.is_out_of_sight(sequence);
        let now = self.now;
        let Some(Going::Require(one)) = self.going.get_mut(&requirement) else {
            return;
        };
        if is_there {
            if one.owed.is_empty() {
                one.progress = now;
            }
            one.owed.insert(sequence, 0);
            self.object_mut(sequence).owed += 1;
        } else {
            self.parts.passed_over.insert((one.made, sequence));
        }
    }

    /// A requirement is owed at once all that is left of what was there.
    pub(in crate::model) fn end_beginning(&mut self, requirement: Number) {
        while self
            .beginning(requirement)
            .is_some_and(|beginning| !beginning.left.is_empty())
        {
            self.owe_next(requirement);
        }
        let Some(Going::Require(one)) = self.going.get_mut(&requirement) else {
            return;
        };
        let Some(beginning) = one.beginning.take() else { return };
        for asker in beginning.askers {
            if self.going.contains_key(&asker) {
                self.want(asker.0, asker.1, Want::Began(self.sequence));
            }
        }
        if requirement.0 == NOBODY {
            self.come(requirement.1 as usize);
        }
        if let Some((follow, window, until_live)) = beginning.joins
            && self.going.remove(&follow).is_some()
        {
            self.join_group(follow.0, follow.1, requirement, window, until_live);
        }
    }

    /// Very many objects are taken out; whether they are.
    pub(in crate::model) fn take_out_in_parts(
        &mut self,
        (client, number): Number,
        all: &BTreeSet<u64>,
        timeout_ms: Option<u64>,
        force: bool,
    ) -> bool {
        if all.len() <= self.rules.changed_at_once {
            return false;
        }
        if self.is_full_of_requests(client) {
            self.fail(client, number, Some(Code::LimitExceeded));
            return true;
        }
        let Some(told) = self.told_of(&UnfinishedChange::WithdrawAll(client, number), all) else {
            return true;
        };
        let retiring = LateRetire {
            part: told.number,
            left: told.left,
            force,
            timeout_ms,
            since: self.now,
        };
        let withdraw = Going::Withdraw {
            waits: BTreeMap::new(),
            done: 0,
            deadline: None,
            began: self.event,
            retiring: Some(retiring),
        };
        self.go_on(client, number, withdraw);
        true
    }

    fn retiring_of(&self, part: u64) -> Option<Number> {
        let is_it = |(_, going): &(&Number, &Going)| matches!(going, Going::Withdraw { retiring: Some(one), .. } if one.part == part);
        self.going.iter().find(is_it).map(|(&number, _)| number)
    }

    fn take_out_next(&mut self, withdraw: Number) {
        let Some(Going::Withdraw {
            retiring: Some(one), ..
        }) = self.going.get_mut(&withdraw)
        else {
            return;
        };
        let force = one.force;
        let Some(sequence) = one.left.pop() else { return };
        let object = self.object(sequence);
        let is_there = match object.fate {
            Fate::Visible => !self.is_out_of_sight(sequence),
            Fate::Superseded => object.owed > 0,
            Fate::Withdrawn | Fate::Expired | Fate::Archived => false,
        };
        if !is_there {
            return;
        }
        let blockers: BTreeSet<Number> = if force {
            BTreeSet::new()
        } else {
            self.owed_to(sequence).into_iter().collect()
        };
        let is_free = blockers.is_empty();
        if let Some(Going::Withdraw { waits, done, .. }) = self.going.get_mut(&withdraw) {
            *done += u64::from(is_free);
            if !is_free {
                waits.insert(sequence, blockers);
            }
        }
        if is_free {
            self.take_out(sequence);
        }
    }

    fn end_retiring(&mut self, withdraw: Number) {
        let now = self.now;
        let Some(Going::Withdraw {
            waits,
            done,
            deadline,
            retiring,
            ..
        }) = self.going.get_mut(&withdraw)
        else {
            return;
        };
        let Some(one) = retiring.take() else { return };
        let (is_over, done) = (waits.is_empty(), *done);
        *deadline = one.timeout_ms.map(|ms| now.max(one.since + ms * 1_000_000));
        let (client, number) = withdraw;
        if is_over {
            self.end(withdraw);
            self.want(client, number, Want::Done(done));
        } else if one.timeout_ms == Some(0) {
            self.end(withdraw);
            self.fail(client, number, Some(Code::Timeout));
        }
    }

    /// Releases the objects that an ended requirement was owed: returns those left for later.
    pub(in crate::model) fn let_go_of(&mut self, owed: &BTreeSet<u64>) -> BTreeSet<u64> {
        if owed.len() <= self.rules.changed_at_once {
            return BTreeSet::new();
        }
        let is_new = |one: &&UnfinishedWork| {
            one.change == UnfinishedChange::End
                && !self.parts.turns.contains_key(&one.number)
                && !self.parts.ended.contains_key(&one.number)
                && one.left.iter().all(|sequence| owed.contains(sequence))
        };
        // Another one may be owed less.
        let told = self.parts.told.iter().filter(is_new).max_by_key(|one| one.left.len());
        let Some(told) = told else { return BTreeSet::new() };
        let left: BTreeSet<u64> = told.left.iter().copied().collect();
        self.parts.ended.insert(told.number, left.clone());
        left
    }

    fn let_go_next(&mut self, part: u64) {
        let ended = self.parts.ended.get_mut(&part);
        let Some(sequence) = ended.and_then(BTreeSet::pop_first) else {
            return;
        };
        self.is_let_go(sequence);
        self.end_retentions();
    }

    /// Whether an ended requirement has yet to release a version.
    pub(in crate::model) fn is_to_be_let_go(&self, sequence: u64) -> bool {
        self.parts.ended.values().any(|left| left.contains(&sequence))
    }

    /// Whether any object is still to be owed, or to be released.
    pub(in crate::model) fn is_owing(&self) -> bool {
        let is_to_be_owed = |going: &Going| matches!(going, Going::Require(one) if one.is_to_be_owed());
        self.going.values().any(is_to_be_owed) || self.parts.ended.values().any(|left| !left.is_empty())
    }

    /// Takes a name: objects that are scanned later wait for it until then.
    pub(in crate::model) fn comes_later(&mut self, name: usize) -> BTreeSet<u64> {
        let text = requirement_name(name);
        let is_new = |one: &&UnfinishedWork| {
            matches!(&one.change, UnfinishedChange::Come(names) if names.contains(&text))
                && !self.parts.turns.contains_key(&one.number)
        };
        let Some(told) = self.parts.told.iter().find(is_new) else {
            return BTreeSet::new();
        };
        let waits = |&sequence: &u64| self.object(sequence).absent & 1 << name != 0;
        let left: BTreeSet<u64> = told.left.iter().copied().filter(waits).collect();
        let (names, all) = self.parts.coming.entry(told.number).or_default();
        *names |= 1 << name;
        all.extend(&left);
        left
    }

    /// A part has had its turns in a tick.
    pub(in crate::model) fn take_turns(&mut self, part: u64) {
        let told = self.parts.told(part).cloned();
        let before = self.parts.turns.get(&part).copied().unwrap_or(0);
        let turns = told.as_ref().map(|told| told.turns - before);
        let is_over = turns.is_none();
        if let Some(requirement) = self.beginning_of(part) {
            for _ in 0..turns.unwrap_or(0) {
                self.owe_next(requirement);
            }
            if is_over {
                self.end_beginning(requirement);
            }
        } else if let Some(withdraw) = self.retiring_of(part) {
            let has_left = |model: &Self| matches!(model.going.get(&withdraw), Some(Going::Withdraw { retiring: Some(one), .. }) if !one.left.is_empty());
            for _ in 0..turns.unwrap_or(u64::MAX) {
                if !has_left(self) {
                    break;
                }
                self.take_out_next(withdraw);
            }
            if is_over {
                self.end_retiring(withdraw);
            }
        } else if self.parts.ended.contains_key(&part) {
            while self.parts.ended[&part].len() > told.as_ref().map_or(0, |told| told.left.len()) {
                self.let_go_next(part);
            }
        } else if let Some((names, left)) = self.parts.coming.get(&part).cloned() {
            let still: BTreeSet<u64> = told.iter().flat_map(|told| told.left.iter().copied()).collect();
            for sequence in left {
                if self.object(sequence).fate != Fate::Visible || still.contains(&sequence) {
                    continue;
                }
                let object = self.object_mut(sequence);
                if object.absent & names != 0 {
                    object.absent &= !names;
                    if object.absent == 0 {
                        object.releases_left = Some(0);
                    }
                }
            }
            self.parts.coming.insert(part, (names, still));
            self.end_retentions();
        }
    }

    /// Whether a pool that drains has yet to refuse demands.
    pub(in crate::model) fn refuses_later(&self) -> bool {
        let refuses = |one: &UnfinishedWork| matches!(one.change, UnfinishedChange::Refuse(_));
        self.parts.told.iter().any(refuses)
    }

    /// The demands that it has yet to refuse.
    pub(in crate::model) fn yet_to_be_refused(&self) -> BTreeSet<Number> {
        let left = self.parts.told.iter().filter_map(|one| match &one.change {
            UnfinishedChange::Refuse(left) => Some(left.iter().copied()),
            _ => None,
        });
        left.flatten().collect()
    }

    /// The staged members of aborted bundles that have yet to be dropped: by the request that has the bundle open, and
    /// their own.
    pub(in crate::model) fn yet_to_be_dropped(&self) -> BTreeSet<(Number, u64)> {
        let left = self.parts.told.iter().filter_map(|one| match &one.change {
            UnfinishedChange::Drop(left) => Some(left.iter().copied()),
            _ => None,
        });
        left.flatten().collect()
    }

    /// At the end of an event: checks that the unfinished work is that whose turn has not been reached.
    pub(in crate::model) fn check_parts(&mut self) -> Checked {
        if let Some(wrong) = self.parts.wrong.take() {
            return Err(wrong);
        }
        let told = &self.parts.told;
        let left_of = |number: u64| told.iter().find(|one| one.number == number).map(|one| one.left.len());
        for (number, going) in &self.going {
            let (part, due) = match going {
                Going::Require(one) => match &one.beginning {
                    Some(beginning) => (beginning.part, beginning.left.len()),
                    None => continue,
                },
                Going::Withdraw {
                    retiring: Some(one), ..
                } => (one.part, one.left.len()),
                _ => continue,
            };
            if left_of(part) != Some(due) {
                return Err(format!(
                    "{number:?} has {due} objects left, and the core {:?}",
                    left_of(part)
                ));
            }
        }
        for one in told {
            let is_known = match one.change {
                UnfinishedChange::Begin(_) => self.beginning_of(one.number).is_some(),
                UnfinishedChange::WithdrawAll(client, number) => self.retiring_of(one.number) == Some((client, number)),
                UnfinishedChange::End => {
                    let ended = self.parts.ended.get(&one.number);
                    ended.is_some_and(|ended| ended.iter().rev().eq(&one.left))
                }
                UnfinishedChange::Come(_) => self.parts.coming.contains_key(&one.number) || one.left.is_empty(),
                UnfinishedChange::Drop(ref left) => left
                    .iter()
                    .all(|one| self.dropped.iter().any(|staged| staged.asked() == *one)),
                UnfinishedChange::Refuse(_) | UnfinishedChange::Nothing => true,
            };
            if !is_known {
                return Err(format!("{one:?} is not what is left"));
            }
        }
        let is_told = |number: &u64| told.iter().any(|one| one.number == *number);
        if let Some((_, left)) = self
            .parts
            .ended
            .iter()
            .find(|(number, left)| !is_told(number) && !left.is_empty())
        {
            return Err(format!("{left:?} are still to be released"));
        }
        self.parts.ended.retain(|number, _| is_told(number));
        self.parts.coming.retain(|number, _| is_told(number));
        self.parts.turns = told.iter().map(|one| (one.number, one.turns)).collect();
        Ok(())
    }
}

/// Objects that left in the very event that began the change are 0 in what the core has left: they get their numbers. Their order does
/// not matter, since nothing is done with them.
fn name_those_gone(left: &mut [u64], all: &BTreeSet<u64>) {
    let there: BTreeSet<u64> = left.iter().copied().collect();
    let mut gone = all.difference(&there);
    for place in left.iter_mut().filter(|place| **place == 0) {
        *place = gone.next().copied().unwrap_or(0);
    }
}
