//! Requirements that block others for memory are broken; and become whole again.

use junctura_wire::body::events;

use crate::clients::requests::requirement_name;
use crate::model::{Checked, Fate, Going, Model, NOBODY, Number, Requirement, Want};

/// A requirement that is stuck is broken within this time of when it could be, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

impl Model {
    /// Bytes of what a requirement is owed and retention keeps no longer.
    fn kept_by(&self, one: &Requirement) -> u64 {
        let objects = one.owed.keys().map(|&sequence| self.object(sequence));
        let only_owed = objects.filter(|object| object.fate != Fate::Visible || object.releases_left == Some(0));
        only_owed.map(|object| object.offer.length).sum()
    }

    pub(in crate::model) fn somebody_waits(&self) -> bool {
        self.clients.values().any(|state| !state.waiting.is_empty())
            || self.going.values().any(|going| matches!(going, Going::Lease { .. }))
    }

    /// Whether a client has waited in this event while no payload was being spilled.
    fn may_wait_in_vain(&self) -> bool {
        (self.somebody_waited || self.somebody_waits()) && !self.disk.was_at_work
    }

    fn is_again(&self, number: Number, sequence: u64) -> bool {
        matches!(self.going.get(&number), Some(Going::Require(one)) if one.again.contains(&sequence))
    }

    fn is_stuck(&self, one: &Requirement) -> bool {
        let after = one
            .terms
            .stuck_after_ms
            .map_or(self.rules.stuck_after_ns, |ms| ms * 1_000_000);
        !one.broken && !one.owed.is_empty() && one.progress + after <= self.now
    }

    /// Whether a requirement may be broken.
    fn is_breakable(&self, one: &Requirement, is_waited_for: bool) -> bool {
        let kept = self.kept_by(one);
        let may = match (one.terms.breaks_on_full, one.terms.quota) {
            (true, Some(quota)) if kept > quota => true,
            (true, None) if is_waited_for => true,
            _ => self.is_stuck(one) && is_waited_for,
        };
        may && kept > 0 && !one.broken
    }

    /// Half of the time is over after which a requirement is stuck.
    pub(in crate::model) fn is_half_stuck(&self, one: &Requirement) -> bool {
        let after = one
            .terms
            .stuck_after_ms
            .map_or(self.rules.stuck_after_ns, |ms| ms * 1_000_000);
        !one.broken && !one.owed.is_empty() && one.progress + after / 2 <= self.now
    }

    /// A requirement is reported to be stuck: half of its time is over, and a client waits for memory that it keeps. The
    /// objects that it was owed may have been removed later in this event.
    pub(in crate::model) fn reported_stuck(&self, name: Option<&str>) -> Checked {
        let is_half = |going: &Going| matches!(going, Going::Require(one) if self.is_half_stuck(one) || one.was_late_in == self.event);
        let is_it = match name {
            Some(name) => self.going.get(&self.number_of(name)?).is_some_and(is_half),
            None => self.going.values().any(is_half),
        };
        if is_it && self.may_wait_in_vain() {
            return Ok(());
        }
        Err(format!("requirement {name:?} is reported to be stuck, and is not"))
    }

    fn number_of(&self, name: &str) -> Result<Number, String> {
        let names = self.names().into_iter().chain(self.lapsed.iter().copied());
        let is_it = |number: &Number| requirement_name(number.1 as usize) == name;
        names
            .into_iter()
            .find(is_it)
            .ok_or_else(|| format!("no requirement has the name {name}"))
    }

    pub(in crate::model) fn may_be_broken(&self, of: Number, name: Option<&str>) -> bool {
        let number = name.map_or(Ok(of), |name| self.number_of(name));
        match number.ok().and_then(|number| self.going.get(&number)) {
            Some(Going::Require(one)) => self.is_breakable(one, self.may_wait_in_vain()),
            _ => false,
        }
    }

    /// The core has broken a requirement.
    pub(in crate::model) fn broken(&mut self, of: Number, name: Option<&str>) -> Checked {
        let number = match name {
            None => of,
            Some(name) => self.number_of(name)?,
        };
        self.totals.broken += 1;
        // The consequences of removals in earlier steps of the event are complete.
        self.disowned.clear();
        if self.lapsed.contains(&number) {
            self.tell_of_requirement(events::BROKEN, None, number);
            return Ok(());
        }
        self.end_beginning(number);
        let Some(Going::Require(one)) = self.going.get(&number) else {
            return Err(format!("requirement {number:?} is broken; there is none"));
        };
        if !self.is_breakable(one, self.may_wait_in_vain()) {
            return Err(format!(
                "requirement {number:?} is broken without need: it keeps {}",
                self.kept_by(one)
            ));
        }
        let reader = self.hearer_of(one);
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        for (&sequence, &in_flight) in &one.owed {
            if in_flight > 0 || self.arrives_through(number, one, sequence) {
                held.push((sequence, in_flight));
            } else {
                waiting.push(sequence);
            }
        }
        let told = reader.unwrap_or(number).0;
        self.tell_of_requirement(events::BROKEN, (told != NOBODY).then_some(told), number);
        for (sequence, in_flight) in held {
            let is_again = self.is_again(number, sequence);
            self.disown(number, sequence);
            if let Some(Going::Require(one)) = self.going.get_mut(&number) {
                one.forfeited.insert(sequence, in_flight);
                if is_again {
                    // It may have been given out in this very event, with its mark.
                    one.again.insert(sequence);
                }
            }
        }
        for sequence in waiting {
            self.let_down(number, reader, sequence, "broken");
        }
        if let Some(Going::Require(one)) = self.going.get_mut(&number) {
            one.broken = true;
        }
        self.settle();
        Ok(())
    }

    /// Follows were ended: from then on they want nothing, and read nothing.
    pub(in crate::model) fn note_all_over(&mut self, ended: &mut Vec<Number>) {
        for number in ended.drain(..) {
            if let Some(Going::Follow(follow)) = self.going.get_mut(&number) {
                follow.is_over = true;
            }
        }
    }

    /// The request that receives notices of a requirement, among those that have not just been ended.
    fn hearer_of(&self, one: &Requirement) -> Option<Number> {
        let is_over = |reader: &Number| matches!(self.going.get(reader), Some(Going::Follow(follow)) if follow.is_over);
        one.reader
            .iter()
            .chain(&one.members)
            .copied()
            .find(|reader| !is_over(reader))
    }

    /// Handles progress of a requirement's reader.
    pub(in crate::model) fn go_forward(&mut self, requirement: Number) {
        let now = self.now;
        let Some(Going::Require(one)) = self.going.get_mut(&requirement) else {
            return;
        };
        one.progress = now;
        if std::mem::take(&mut one.broken) {
            self.tell_lost(requirement);
        }
    }

    /// Handles a release by a client: its follows may resume.
    pub(in crate::model) fn readers_have_room(&mut self, client: u32) {
        let follows = self.going.range((client, 0)..=(client, u64::MAX));
        let through: Vec<Number> = follows
            .filter_map(|(_, going)| match going {
                Going::Follow(follow) => follow.via,
                _ => None,
            })
            .collect();
        for requirement in through {
            self.go_on_if_free(requirement);
        }
    }

    /// Makes a broken requirement whole when no client holds its objects and it has a reader.
    fn go_on_if_free(&mut self, requirement: Number) {
        if let Some(Going::Require(one)) = self.going.get(&requirement)
            && one.broken
            && one.forfeited.is_empty()
            && one.hears().is_some()
        {
            self.go_forward(requirement);
        }
    }

    /// Sends recorded gaps, if there is a receiver.
    pub(in crate::model) fn tell_lost(&mut self, requirement: Number) {
        let Some(Going::Require(one)) = self.going.get_mut(&requirement) else {
            return;
        };
        let told = one.hears().unwrap_or(requirement);
        if told.0 == NOBODY {
            return;
        }
        for (sequence, why) in std::mem::take(&mut one.lost) {
            self.want(told.0, told.1, Want::Gap(sequence, why));
        }
    }

    /// A delivery of a forfeited version is over; true where it was the last.
    pub(in crate::model) fn no_longer_forfeited(&mut self, requirement: Number, sequence: u64) -> bool {
        let Some(Going::Require(one)) = self.going.get_mut(&requirement) else {
            return false;
        };
        let Some(deliveries) = one.forfeited.get_mut(&sequence) else {
            return false;
        };
        *deliveries -= 1;
        let was_last = *deliveries == 0;
        if was_last {
            one.forfeited.remove(&sequence);
            one.again.remove(&sequence);
        }
        was_last
    }

    /// Handles the loss, without a release, of a client that held an object of a broken requirement.
    pub(in crate::model) fn lose_forfeited(&mut self, requirement: Number, sequence: u64) {
        if !self.no_longer_forfeited(requirement, sequence) {
            return;
        }
        if let Some(Going::Require(one)) = self.going.get(&requirement) {
            self.let_down(requirement, one.hears(), sequence, "broken");
        }
        self.go_on_if_free(requirement);
    }

    /// Checks that no client waits for a requirement that is to be broken.
    pub(in crate::model) fn check_patience(&mut self) -> Checked {
        let now = self.now;
        let numbers: Vec<Number> = self.going.keys().copied().collect();
        for number in numbers {
            let Some(Going::Require(one)) = self.going.get(&number) else {
                continue;
            };
            let is_breakable = self.is_breakable(
                one,
                self.somebody_waits() && !self.disk.is_at_work() && !self.is_behind() && !self.has_spare(),
            );
            // An object about to be removed does not count for it.
            if is_breakable && one.terms.breaks_on_full && !self.is_stuck(one) && !self.is_behind() {
                return Err(format!("requirement {number:?} should be broken on full"));
            }
            let Some(Going::Require(one)) = self.going.get_mut(&number) else {
                continue;
            };
            one.stuck_since = is_breakable.then(|| one.stuck_since.unwrap_or(now));
            if one.stuck_since.is_some_and(|since| since + PATIENCE < now) {
                return Err(format!("requirement {number:?} should be broken as stuck"));
            }
        }
        Ok(())
    }
}
