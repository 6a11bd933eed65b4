//! Follow-ups: consequences of an event for other clients. They run after the event itself, so that no change happens
//! within another.

use super::Core;
use crate::Effects;

/// Work that an event may leave, for clients other than its own.
#[derive(Clone, Copy, Debug)]
enum FollowUp {
    /// Delivers waiting objects of groups that have changed.
    HandOut,
    /// Removes objects that only their names kept, when the names have been taken.
    EndRetentionByName,
    /// Removes what is left of a bundle when only objects remain that stay as long as the others.
    EndBundle,
    /// Continues withdraws after requirements ceased to be owed objects.
    FinishWithdrawals,
    /// Answers durable offers and bundles that are archived, or cannot be.
    AnswerDurable,
    /// Serves waiting requests after memory, or room for records, may have become free.
    ServeWaiting,
    /// Memory is short: evicts an archived object.
    Evict,
    /// Memory is short: spills payloads to the file tier.
    Spill,
    /// The file tier is full: evicts an archived object from it.
    EvictFromFile,
    /// Breaks a requirement that blocks others and is made to break.
    BreakOnFull,
}

/// The order of work: the first kind that has something to do does it, and then the search begins anew.
const ORDER: [FollowUp; 10] = [
    FollowUp::HandOut,
    FollowUp::EndRetentionByName,
    FollowUp::EndBundle,
    FollowUp::FinishWithdrawals,
    FollowUp::AnswerDurable,
    FollowUp::ServeWaiting,
    FollowUp::Evict,
    FollowUp::Spill,
    FollowUp::EvictFromFile,
    FollowUp::BreakOnFull,
];

fn done(work: Option<()>) -> bool {
    work.is_some()
}

impl Core {
    /// Does one unit of this work. Returns whether there was one.
    fn take_one(&mut self, next: FollowUp, fx: &mut impl Effects) -> bool {
        match next {
            FollowUp::HandOut => done(
                self.exchange
                    .asked
                    .interests
                    .stirred
                    .pop()
                    .map(|group| self.exchange.hand_out(group, fx)),
            ),
            FollowUp::EndRetentionByName => done(
                self.exchange
                    .retention
                    .has_news()
                    .then(|| self.exchange.let_unneeded_go(fx)),
            ),
            FollowUp::EndBundle => done(
                self.exchange
                    .bundles
                    .next_abandoned()
                    .map(|bundle| self.exchange.let_the_rest_go(bundle, fx)),
            ),
            FollowUp::FinishWithdrawals => {
                done((!self.exchange.withdrawals.unblocked.is_empty()).then(|| self.exchange.finish_withdrawals(fx)))
            }
            FollowUp::AnswerDurable => done(
                self.exchange
                    .durability
                    .has_news()
                    .then(|| self.exchange.durability.answer_durables(&mut self.exchange.asked, fx)),
            ),
            FollowUp::ServeWaiting => done(self.has_memory_come_free().then(|| self.serve_waiting(fx))),
            FollowUp::Evict => self.exchange.make_room(fx),
            FollowUp::Spill => {
                self.exchange
                    .memory
                    .spill(&mut self.exchange.objects, &self.exchange.asked.interests, fx)
            }
            FollowUp::EvictFromFile => self.exchange.make_room_in_file(fx),
            FollowUp::BreakOnFull => self.break_on_full(fx),
        }
    }

    /// Does the follow-ups of an event until nothing is left, and sets the timers for later ones.
    pub(in crate::core) fn follow_up(&mut self, fx: &mut impl Effects) {
        loop {
            self.exchange
                .deferred
                .answer_those_in_turn(&self.exchange.asked.clients, &self.exchange.objects, fx);
            if !ORDER.into_iter().any(|next| self.take_one(next, fx)) {
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
