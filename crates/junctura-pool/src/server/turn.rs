//! Who is answered when: what is quick comes first, and one client's turn has an end.
//!
//! ```text
//!   sockets --> first turn: quick requests, and others of light clients --.
//!      ^                                                                  | the rest of a turn; requests of heavy clients
//!      '--------------- next look <-- further turns, one turn's time <----'
//! ```
//! A client whose requests take long is heavy until it has made some that do not. Between two looks at sockets, all heavy
//! clients together get the time of one turn, and none while others are at work and had no five turns yet: a client that sends
//! little waits for one turn of a heavy one in a handover, at most, and in most handovers for none.

use std::time::Duration;

use junctura_wire::Request;
use junctura_wire::body::Target;

use crate::core::{Nanoseconds, Prepared};

/// A request that takes so long makes its client heavy.
const HEAVY_REQUEST: Nanoseconds = 50_000;
/// A heavy client is light again after so many requests that take less, and are not quick.
const HEAVY_FOR: u32 = 16;
/// Quick requests that are answered between two looks at the clock.
const QUICK_MAX: u32 = 16;

/// What is left to read of a client without waiting for something to come, and how it is read.
pub(super) struct ReadTurn {
    /// The inbox holds frames that the last turn had no time for.
    pub(super) has_leftover: bool,
    /// The next turn is noted.
    pub(super) is_noted: bool,
    /// Its client has said goodbye, and the pool has yet to let go of what it had: nothing more is taken from it.
    pub(super) is_last: bool,
    /// What is left waits for the turn of heavy clients.
    pub(super) is_deferred: bool,
    pub(super) selector: Preparation,
    heavy_for: u32,
}

/// The selector of the frame that is next, where reading it takes long.
#[derive(Default)]
pub(super) enum Preparation {
    #[default]
    None,
    /// Nothing more is taken from the client until it was read.
    Ordered,
    Done(Prepared),
}

impl Default for ReadTurn {
    fn default() -> Self {
        Self {
            has_leftover: false,
            is_noted: false,
            is_last: false,
            is_deferred: false,
            selector: Preparation::None,
            heavy_for: HEAVY_FOR,
        }
    }
}

impl ReadTurn {
    pub(super) fn waits_for_selector(&self) -> bool {
        matches!(self.selector, Preparation::Ordered)
    }

    /// The selector that was read for the next frame.
    pub(super) fn take_prepared(&mut self) -> Option<Prepared> {
        match std::mem::take(&mut self.selector) {
            Preparation::Done(prepared) => Some(prepared),
            other => {
                self.selector = other;
                None
            }
        }
    }

    /// Whether a request is answered in this turn.
    pub(super) fn takes(&self, request: &Request<'_>, turn: Turn) -> bool {
        turn == Turn::Further || self.heavy_for == 0 || is_quick(request)
    }

    /// A request that is not quick took so long.
    pub(super) fn note_request(&mut self, took: Nanoseconds) {
        self.heavy_for = if took >= HEAVY_REQUEST {
            HEAVY_FOR
        } else {
            self.heavy_for.saturating_sub(1)
        };
    }
}

/// Which turn of a client it is since sockets were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    First,
    Further,
}

/// When heavy clients get their turn, as long as others are at work.
#[derive(Default)]
pub(super) struct Share {
    /// When a request was last answered in a first turn.
    others_at: Nanoseconds,
    /// When the last turn of heavy clients ended.
    ended_at: Nanoseconds,
}

impl Share {
    /// Others are at work as long as their next request comes within this time.
    const PAUSE: Nanoseconds = 50_000;
    /// So many turns are theirs for one of heavy clients.
    const OTHERS: u32 = 4;

    pub(super) fn note_others(&mut self, now: Nanoseconds) {
        self.others_at = now;
    }

    pub(super) fn note_end(&mut self, now: Nanoseconds) {
        self.ended_at = now;
    }

    /// Whether heavy clients get a turn of this length now.
    pub(super) fn is_due(&self, now: Nanoseconds, turn: Duration) -> bool {
        let others = u64::try_from(turn.as_nanos())
            .unwrap_or(u64::MAX)
            .saturating_mul(Self::OTHERS.into());
        now >= self.others_at.saturating_add(Self::PAUSE) || now >= self.ended_at.saturating_add(others)
    }
}

/// The time of a turn, looked at no more often than it matters.
pub(super) struct Clock {
    began: Nanoseconds,
    limit: Nanoseconds,
    quick: u32,
}

impl Clock {
    pub(super) fn start(now: Nanoseconds, limit: Duration) -> Self {
        Self {
            began: now,
            limit: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            quick: 0,
        }
    }

    /// A quick request was answered. Whether the clock is to be looked at.
    pub(super) fn counts(&mut self) -> bool {
        self.quick = (self.quick + 1) % QUICK_MAX;
        self.quick == 0
    }

    pub(super) fn is_over(&self, now: Nanoseconds) -> bool {
        now.saturating_sub(self.began) >= self.limit
    }
}

/// Whether a request takes little time, whatever stands in the pool.
pub(super) fn is_quick(request: &Request<'_>) -> bool {
    match request {
        Request::Hello(_)
        | Request::Offer { .. }
        | Request::Stage { .. }
        | Request::Release(_)
        | Request::Return(_) => true,
        Request::Demand(demand) => matches!(demand.target, Target::Key { .. }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_light_after_requests_that_take_little() {
        let mut turn = ReadTurn::default();
        let takes = |turn: &ReadTurn| turn.takes(&Request::Stat, Turn::First);
        for _ in 0..HEAVY_FOR {
            assert!(!takes(&turn) && turn.takes(&Request::Stat, Turn::Further));
            turn.note_request(HEAVY_REQUEST - 1);
        }
        assert!(takes(&turn));
        turn.note_request(HEAVY_REQUEST);
        assert!(!takes(&turn));
        assert!(turn.takes(&Request::Release(&[]), Turn::First), "it is quick");
    }

    #[test]
    fn heavy_clients_get_a_part_of_the_time_while_others_are_at_work() {
        let turn = Duration::from_nanos(10_000);
        let mut share = Share::default();
        share.note_others(1_000_000);
        share.note_end(1_000_000);
        assert!(!share.is_due(1_039_999, turn) && share.is_due(1_040_000, turn));
        share.note_end(1_045_000);
        // The others have paused.
        assert!(!share.is_due(1_049_999, turn) && share.is_due(1_050_000, turn));
        assert!(Share::default().is_due(Share::PAUSE, Duration::MAX));
    }

    #[test]
    fn a_turn_looks_at_the_clock_after_some_quick_requests() {
        let mut clock = Clock::start(5, Duration::from_nanos(10));
        let looks = (0..10 * QUICK_MAX).filter(|_| clock.counts()).count();
        assert_eq!(looks, 10);
        assert!(!clock.is_over(14) && clock.is_over(15) && !clock.is_over(0));
    }
}
