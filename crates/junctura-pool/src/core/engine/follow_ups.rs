//! Follow-ups: consequences of an event for other clients. They run after the event itself, so that no change happens
//! within another.

use super::Core;
use crate::Effects;

impl Core {
    /// Does the first unit of work that an event may leave, in this order. Returns whether there was one.
    ///
    /// Every request asks for all of it, and most requests leave nothing, so each question is cheap.
    fn take_one(&mut self, fx: &mut impl Effects) -> bool {
        let exchange = &mut self.exchange;
        // Delivers waiting objects of groups that have changed.
        if let Some(group) = exchange.asked.interests.stirred.pop() {
            exchange.hand_out(group, fx);
        // Removes objects that only their names kept, when the names have been taken.
        } else if exchange.retention.has_news() {
            exchange.let_unneeded_go(fx);
        // Removes what is left of a bundle when only objects remain that stay as long as the others.
        } else if let Some(bundle) = exchange.bundles.next_abandoned() {
            exchange.let_the_rest_go(bundle, fx);
        // Continues withdraws after requirements ceased to be owed objects.
        } else if !exchange.withdrawals.unblocked.is_empty() {
            exchange.finish_withdrawals(fx);
        // Answers durable offers and bundles that are archived, or cannot be.
        } else if exchange.durability.has_news() {
            exchange.durability.answer_durables(&mut exchange.asked, fx);
        // Serves waiting requests after memory, or room for records, may have become free.
        } else if self.has_memory_come_free() {
            self.serve_waiting(fx);
        // Those that still wait may have what is free: it shows in the next event whether memory is short.
        } else if self.exchange.deferred.serves_later {
            return false;
        } else {
            // Where memory is short: evicts an archived object, spills payloads to the file tier, evicts an archived object
            // from a full file tier, or breaks a requirement that blocks others and is made to break.
            let exchange = &mut self.exchange;
            return exchange.make_room(fx)
                || exchange
                    .memory
                    .spill(&mut exchange.objects, &exchange.asked.interests, fx)
                || exchange.make_room_in_file(fx)
                || self.break_on_full(fx);
        }
        true
    }

    /// Does the follow-ups of an event until nothing is left, and sets the timers for later ones.
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

    /// Whether memory, or room for records, may have become free since the last call.
    fn has_memory_come_free(&mut self) -> bool {
        let exchange = &mut self.exchange;
        let have_more =
            std::mem::take(&mut exchange.objects.came_free) | std::mem::take(&mut exchange.asked.interests.came_free);
        std::mem::take(&mut exchange.memory.came_free) || (have_more && !exchange.memory.stalled.is_empty())
    }
}
