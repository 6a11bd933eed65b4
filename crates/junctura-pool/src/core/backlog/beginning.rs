//! A requirement that is owed very much from the start is owed it in parts.

use junctura_wire::Reply;

use crate::Effects;
use crate::core::Core;
use crate::core::interest::InterestId;
use crate::core::require::Requirement;

/// What a requirement has yet to be owed.
pub(in crate::core) struct Beginning {
    /// In the order of the index, the next last.
    pub(super) left: Vec<u32>,
    /// The newest version then: one with a higher number came later.
    pub(super) newest: u64,
    /// The requests that are answered at its end.
    askers: Vec<(u32, u64)>,
}

impl Beginning {
    pub(in crate::core) fn new(left: Vec<u32>, newest: u64) -> Self {
        Self {
            left,
            newest,
            askers: Vec::new(),
        }
    }

    pub(in crate::core) fn len(&self) -> usize {
        self.left.len()
    }
}

impl Core {
    /// Whether a request is answered when its requirement is owed all that was there.
    pub(in crate::core) fn begins_later(&mut self, id: u32, asker: (u32, u64)) -> bool {
        let beginning = self.requirement_mut(id).and_then(|one| one.beginning.as_mut());
        beginning.map(|beginning| beginning.askers.push(asker)).is_some()
    }

    /// Of what was there when a requirement was made, it is owed one more object, if that is still there. Whether something is left to do.
    pub(in crate::core) fn owe_next(&mut self, which: InterestId, fx: &mut impl Effects) -> bool {
        let Some(id) = self.still(Some(which)) else {
            return false;
        };
        if self.owe_one_more(id) {
            return true;
        }
        let requirement = self.requirement_mut(id);
        let Some(beginning) = requirement.and_then(|one| one.beginning.take()) else {
            return false;
        };
        // What is retained until it comes was kept so far, and is owed now.
        if let Some(named) = self.requirement_ref(id).and_then(Requirement::named) {
            let name = named.name.clone();
            self.awaited.came(&name);
        }
        for (client, request) in beginning.askers {
            // It may have left, or stand by the requirement no more.
            let state = self.clients.get(&client);
            if state.is_some_and(|state| state.stands_by(request, id)) {
                fx.reply(client, request, &Reply::Began(self.sequence));
            }
        }
        false
    }

    /// Whether there was one.
    fn owe_one_more(&mut self, id: u32) -> bool {
        let Some(beginning) = self.requirement_mut(id).and_then(|one| one.beginning.as_mut()) else {
            return false;
        };
        let (next, newest) = (beginning.left.pop(), beginning.newest);
        let Some(object) = next else { return false };
        let was_there = self.was_there(object, newest);
        self.weigh_owed_no_more();
        if was_there {
            self.owe_from_the_start(id, object);
        }
        true
    }

    /// A follow through a requirement that is not owed all that was there is prepared a little: whether it is owed all.
    pub(in crate::core) fn owe_ahead(&mut self, id: u32, count: usize) -> bool {
        (0..count).all(|_| self.owe_one_more(id));
        self.requirement_ref(id).is_none_or(|one| one.to_be_owed() == 0)
    }

    /// A reader comes before a requirement is owed all that was there: it is so first.
    pub(in crate::core) fn end_beginning(&mut self, id: u32, fx: &mut impl Effects) {
        let which = self.refer(id);
        while self.owe_next(which, fx) {}
    }

    /// What a requirement that ends has yet to be owed of what was there.
    pub(in crate::core) fn forget_beginning(&mut self, requirement: &Requirement) {
        if let Some(beginning) = &requirement.beginning {
            self.weights.owed -= beginning.left.len();
            self.memory_freed |= !self.stalled.is_empty();
        }
    }
}
