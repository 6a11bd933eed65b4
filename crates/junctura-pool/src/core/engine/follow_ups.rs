//! Follow-ups: consequences of an event for others. They come after the event itself, so that nothing changes in the middle of a change.

use super::Core;
use crate::Effects;

/// Something that an event may leave to be done, for others than its client.
#[derive(Clone, Copy, Debug)]
enum FollowUp {
    /// Something waits again in a group, or does not any more.
    HandOut,
    /// Nothing but requirements keeps objects whose names have come.
    EndRetentionByName,
    /// Nothing is left of a bundle but what stays as long as the others of it.
    EndBundle,
    /// Withdraws wait no more for what requirements were owed.
    FinishWithdrawals,
    /// Durable offers and bundles are archived, or will not be.
    AnswerDurable,
    /// Memory, or room for records, may have come free.
    ServeWaiting,
    /// Memory is short: an archived object leaves.
    Evict,
    /// Memory is short: payloads move to the file tier.
    Spill,
    /// The file tier is full: an archived object leaves it.
    EvictFromFile,
    /// A requirement keeps others waiting, and is made to break.
    BreakOnFull,
}

/// In this order: the first that has something to do does it, and then all are asked again from the first one on.
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

impl FollowUp {
    /// Does one piece of it. Whether there was something to do.
    fn take_one(self, core: &mut Core, fx: &mut impl Effects) -> bool {
        match self {
            Self::HandOut => done(core.asked.interests.stirred.pop().map(|group| core.hand_out(group, fx))),
            Self::EndRetentionByName => done(core.retention.has_news().then(|| core.let_unneeded_go(fx))),
            Self::EndBundle => done(
                core.bundles
                    .next_abandoned()
                    .map(|bundle| core.let_the_rest_go(bundle, fx)),
            ),
            Self::FinishWithdrawals => {
                done((!core.withdrawals.unblocked.is_empty()).then(|| core.finish_withdrawals(fx)))
            }
            Self::AnswerDurable => done(
                core.durability
                    .has_news()
                    .then(|| core.durability.answer_durables(&mut core.asked, fx)),
            ),
            Self::ServeWaiting => done(core.has_memory_come_free().then(|| core.serve_waiting(fx))),
            Self::Evict => core.make_room(fx),
            Self::Spill => core.memory.spill(&mut core.objects, &core.asked.interests, fx),
            Self::EvictFromFile => core.make_room_in_file(fx),
            Self::BreakOnFull => core.break_on_full(fx),
        }
    }
}

fn done(work: Option<()>) -> bool {
    work.is_some()
}

impl Core {
    /// Does what follows from an event, until nothing is left, and sets the timers for what has to wait.
    pub(in crate::core) fn follow_up(&mut self, fx: &mut impl Effects) {
        loop {
            self.deferred
                .answer_those_in_turn(&self.asked.clients, &self.objects, fx);
            if !ORDER.into_iter().any(|next| next.take_one(self, fx)) {
                break;
            }
        }
        self.memory.watch_first_lease(&mut self.asked.timers);
        self.watch_for_stuck();
        self.memory.watch_for_room(&mut self.asked.timers);
        if self.drain.is_none() && self.components.are_gone() {
            self.begin_to_drain(None, fx);
        }
        if self.drain.is_some() {
            self.end_if_drained(fx);
        }
    }

    /// Whether those who wait for memory, or for room for records, may be served since this event; once.
    fn has_memory_come_free(&mut self) -> bool {
        let have_more =
            std::mem::take(&mut self.objects.came_free) | std::mem::take(&mut self.asked.interests.came_free);
        std::mem::take(&mut self.memory.came_free) || (have_more && !self.memory.stalled.is_empty())
    }
}
