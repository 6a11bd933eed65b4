//! Removals that an event leaves for later: so many objects are removed at once, the others in their turns.
//!
//! The design leaves the choice to the server. So the model receives the list of the rest, and checks that each is to be
//! removed, that no client sees it, that some are removed whenever time is given to it, and that the promised answers
//! arrive in the end.

use std::collections::BTreeSet;

use junctura_pool::core::DepartingObject;

use crate::model::{Checked, Fate, Model, Want};

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub(in crate::model) struct Departings {
    /// The objects that have yet to be removed now, in order.
    left: Vec<DepartingObject>,
    /// The same when the event began: no client sees them.
    before: Vec<DepartingObject>,
    /// Among these, the withdrawn ones.
    withdrawn: BTreeSet<u64>,
    /// Answers that may be sent when all are removed.
    late: Vec<(u32, u64, u64)>,
}

impl Departings {
    /// Its time may be over, and was not noticed.
    pub(in crate::model) fn has_time(&self, sequence: u64) -> bool {
        self.left.contains(&DepartingObject::Time(sequence))
    }

    /// It is hidden, and has yet to be removed.
    pub(in crate::model) fn has_object(&self, sequence: u64) -> bool {
        self.left.contains(&DepartingObject::Object(sequence))
    }

    /// It is removed, and its payload has yet to be freed.
    pub(in crate::model) fn has_payload(&self, sequence: u64) -> bool {
        self.left.contains(&DepartingObject::Payload(sequence))
    }

    /// The objects that have yet to be removed now.
    pub(in crate::model) fn left(&self) -> &[DepartingObject] {
        &self.left
    }

    /// The objects that had yet to be removed when the event began.
    pub(in crate::model) fn before(&self) -> &[DepartingObject] {
        &self.before
    }

    /// The event is over.
    pub(in crate::model) fn see_all(&mut self) {
        self.before.clone_from(&self.left);
    }
}

impl Model {
    /// Records the core's remaining removals, in the order of their turns, after the event that is to be judged.
    pub fn note_departing(&mut self, left: Vec<DepartingObject>) {
        self.departing.left = left;
    }

    /// Whether an object has yet to be removed.
    pub(in crate::model) fn is_behind(&self) -> bool {
        !self.departing.left.is_empty()
    }

    /// Whether a visible object is hidden.
    pub(in crate::model) fn is_out_of_sight(&self, sequence: u64) -> bool {
        let object = self.object(sequence);
        let before = &self.departing.before;
        let is_over = object.owed == 0 && before.contains(&DepartingObject::Time(sequence));
        object.fate == Fate::Visible && (is_over || before.contains(&DepartingObject::Object(sequence)))
    }

    /// Its final state after its removal.
    pub(in crate::model) fn end_of(&self, sequence: u64) -> Fate {
        match self.object(sequence).fate {
            Fate::Visible if !self.is_out_of_sight(sequence) => Fate::Visible,
            Fate::Visible if self.departing.withdrawn.contains(&sequence) => Fate::Withdrawn,
            Fate::Visible => Fate::Expired,
            fate => fate,
        }
    }

    /// Hides an object, which has yet to be removed.
    pub(in crate::model) fn takes_out_later(&mut self, sequence: u64) -> bool {
        let later = self.departing.has_object(sequence) && self.object(sequence).fate == Fate::Visible;
        let object = self.object(sequence);
        let is_over = object.releases_left == Some(0) && object.owed == 0;
        if later && !is_over && !self.departing.before.contains(&DepartingObject::Object(sequence)) {
            self.departing.withdrawn.insert(sequence);
        }
        later
    }

    /// Removes first the objects of deferred work that have been removed since.
    pub(in crate::model) fn catch_up(&mut self, is_tick: bool) -> Checked {
        let before = std::mem::take(&mut self.departing.before);
        let is_gone = |one: &&DepartingObject| match one {
            DepartingObject::Part(number) => is_tick && self.parts.has_gone_on(*number),
            _ => !self.departing.left.contains(one),
        };
        let gone: Vec<DepartingObject> = before.iter().filter(is_gone).copied().collect();
        self.departing.before = before;
        if is_tick && gone.is_empty() && !self.departing.before.is_empty() {
            return Err("nothing is removed, but something is due".to_owned());
        }
        for one in gone {
            match one {
                DepartingObject::Object(sequence) | DepartingObject::Time(sequence)
                    if self.object(sequence).fate != Fate::Visible => {}
                DepartingObject::Object(sequence) => {
                    let is_withdrawn = self.departing.withdrawn.remove(&sequence);
                    self.remove(sequence, if is_withdrawn { Fate::Withdrawn } else { Fate::Expired });
                }
                DepartingObject::Time(sequence) => self.end_time(sequence),
                DepartingObject::Payload(_) => {}
                DepartingObject::Part(number) => self.take_turns(number),
            }
        }
        Ok(())
    }

    /// Whether an answer had to wait for removals.
    pub(in crate::model) fn was_late(&mut self, client: u32, request: u64, count: u64) -> bool {
        let late = &mut self.departing.late;
        let at = late.iter().position(|&one| one == (client, request, count));
        at.map(|at| late.swap_remove(at)).is_some()
    }

    /// Defers answers until the deferred work is done; then they are due.
    pub(in crate::model) fn put_answers_off(&mut self) -> Checked {
        if self.is_behind() {
            for (client, request, want) in &self.wants {
                if let Want::Done(count) = want {
                    self.departing.late.push((*client, *request, *count));
                }
            }
            self.wants.retain(|(_, _, want)| !matches!(want, Want::Done(_)));
        }
        let (clients, leaving) = (&self.clients, &self.leaving);
        let is_there = |client: &u32| clients.contains_key(client) && !leaving.contains(client);
        self.departing.late.retain(|(client, ..)| is_there(client));
        match self.departing.late.first() {
            Some(late) if !self.is_behind() => Err(format!("{late:?} is due, and nothing has yet to be removed")),
            _ => Ok(()),
        }
    }

    /// Checks that the hidden objects are those to be removed.
    pub(in crate::model) fn check_departing(&self) -> Checked {
        let stays = |one: &&DepartingObject| match **one {
            DepartingObject::Object(sequence) => {
                let object = self.object(sequence);
                let is_over = object.releases_left == Some(0) && object.owed == 0;
                object.fate != Fate::Visible || !is_over && !self.departing.withdrawn.contains(&sequence)
            }
            DepartingObject::Time(sequence) => {
                let object = self.object(sequence);
                object.fate != Fate::Visible || object.until.is_none_or(|until| until > self.now)
            }
            DepartingObject::Part(_) => false,
            DepartingObject::Payload(sequence) => {
                let object = self.object(sequence);
                object.fate == Fate::Visible
                    || object.owed > 0
                    || object.holders > 0
                    || self.is_pinned(sequence)
                    || object.freed
            }
        };
        match self.departing.left.iter().find(stays) {
            Some(one) => Err(format!("{one:?} is about to be removed, but must stay")),
            None => Ok(()),
        }
    }
}
