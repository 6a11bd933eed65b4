//! Follow-ups: consequences of an event for others. They come after the event itself, so that nothing changes in the middle of a change.

use super::Core;
use crate::Effects;

impl Core {
    /// Does the first piece of it in this order, which then begins anew. Returns whether there was something to do.
    ///
    /// Each request asks for all of it, and most requests leave nothing: each question is one look at a number.
    fn take_one(&mut self, fx: &mut impl Effects) -> bool {
        let exchange = &mut self.exchange;
        // Something waits again in a group, or does not any more.
        if let Some(group) = exchange.asked.interests.stirred.pop() {
            exchange.hand_out(group, fx);
        // Nothing but requirements keeps objects whose names have come.
        } else if exchange.retention.has_news() {
            exchange.let_unneeded_go(fx);
        // Nothing is left of a bundle but what stays as long as the others of it.
        } else if let Some(bundle) = exchange.bundles.next_abandoned() {
            exchange.let_the_rest_go(bundle, fx);
        // Withdraws wait no more for what requirements were owed.
        } else if !exchange.withdrawals.unblocked.is_empty() {
            exchange.finish_withdrawals(fx);
        // Durable offers and bundles are archived, or will not be.
        } else if exchange.durability.has_news() {
            exchange.durability.answer_durables(&mut exchange.asked, fx);
        // Memory, or room for records, may have come free.
        } else if self.has_memory_come_free() {
            self.serve_waiting(fx);
        } else {
            return self.relieve_memory(fx);
        }
        true
    }

    /// Where memory is short, an archived object leaves it, payloads move to the file tier, an archived object leaves that
    /// when it is full, or a requirement that keeps others waiting breaks.
    fn relieve_memory(&mut self, fx: &mut impl Effects) -> bool {
        let exchange = &mut self.exchange;
        exchange.make_room(fx)
            || exchange
                .memory
                .spill(&mut exchange.objects, &exchange.asked.interests, fx)
            || exchange.make_room_in_file(fx)
            || self.break_on_full(fx)
    }

    /// Does what follows from an event, until nothing is left, and sets the timers for what has to wait.
    pub(in crate::core) fn follow_up(&mut self, fx: &mut impl Effects) {
        loop {
            self.exchange
                .deferred
                .answer_those_in_turn(&self.exchange.asked.clients, &self.exchange.objects, fx);
            if !self.take_one(fx) {
                break;
            }
        }
        self.exchange.memory.watch_first_lease(&mut self.exchange.asked.timers);
        let is_behind = self.exchange.is_behind();
        self.exchange
            .memory
            .watch_for_stuck(&mut self.exchange.asked, &self.exchange.objects, is_behind);
        self.exchange.memory.watch_for_room(&mut self.exchange.asked.timers);
        if !self.drain.has_begun && self.components.are_gone() {
            self.begin_to_drain(None, fx);
        }
        if self.drain.has_begun {
            self.end_if_drained(fx);
        }
    }

    /// Whether those who wait for memory, or for room for records, may be served since this event; once.
    fn has_memory_come_free(&mut self) -> bool {
        let exchange = &mut self.exchange;
        let have_more =
            std::mem::take(&mut exchange.objects.came_free) | std::mem::take(&mut exchange.asked.interests.came_free);
        std::mem::take(&mut exchange.memory.came_free) || (have_more && !exchange.memory.stalled.is_empty())
    }
}
