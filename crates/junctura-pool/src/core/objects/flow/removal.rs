//! Removal of objects: from the listing, from memory, and from the table.

use crate::Effects;
use crate::core::exchange::ObjectExchange;
use crate::core::objects::object::{ObjectState, RemovalReason, RetainedUntil};

impl ObjectExchange {
    /// Frees as much of an object as nothing keeps: it is hidden when its retention has ended, its payload is freed
    /// when no client holds it or is owed it, and it is forgotten when no reader has yet to be notified.
    pub(in crate::core) fn settle(&mut self, id: u32, fx: &mut impl Effects) {
        let Some(object) = self.objects.get(id) else {
            return;
        };
        if object.owed > 0 && self.asked.interests.may_charge() && !object.is_kept_by_retention() {
            self.asked.interests.charge(&self.objects, id);
        }
        let object = &self.objects[id];
        if object.is_visible() && !object.is_retained() {
            self.remove(id, RemovalReason::Expired, fx);
        } else if object.is_visible() || object.is_staged() || object.owed > 0 {
            self.memory.may_be_spilled(&mut self.objects, id);
            self.memory.may_be_spare(&mut self.objects, id);
        } else if object.holders == 0 {
            self.memory
                .free_payload(&mut self.objects, &mut self.asked.clients, &self.asked.timers, id, fx);
            self.objects.forget_if_unneeded(id);
        }
    }

    /// Hides an object. Requirements that are owed it and have not received it get a gap.
    pub(in crate::core) fn remove(&mut self, id: u32, why: RemovalReason, fx: &mut impl Effects) {
        self.hide(id, ObjectState::Gone(why));
        self.asked.tell_about_removal(&mut self.objects, id, fx);
        if self.objects[id].owed > 0 {
            self.gap_requirements(id, why.name(), fx);
        }
        self.objects.bury(self.asked.timers.now, id, why);
        match why {
            RemovalReason::Withdrawn => self.asked.count.withdrawn += 1,
            RemovalReason::Expired => self.asked.count.expired += 1,
            RemovalReason::Archived => self.asked.count.dropped_archived += 1,
        }
        self.settle(id, fx);
    }

    /// Removes an object from the listing; its key entry remains, and the caller handles it.
    pub(in crate::core) fn hide(&mut self, id: u32, state: ObjectState) {
        let object = &mut self.objects[id];
        object.state = state;
        object.departs = None;
        self.asked.count.visible -= 1;
        self.asked.count.visible_bytes -= object.length;
        self.asked.flows.vanish(object.dataset, object.length);
        self.objects.unindex(id);
        let object = &self.objects[id];
        let (until, bundle) = (object.until, object.bundle);
        match until {
            RetainedUntil::Time(_) => self.objects.went_before_its_time(),
            RetainedUntil::Awaited { .. } => self.retention.await_no_more(&mut self.objects, id),
            RetainedUntil::Withdrawn | RetainedUntil::Released(_) | RetainedUntil::Together | RetainedUntil::Over => {}
        }
        if bundle > 0 {
            self.bundles.one_fewer_of(
                &self.objects,
                &self.asked.timers,
                bundle,
                id,
                until == RetainedUntil::Together,
            );
        }
    }
}
