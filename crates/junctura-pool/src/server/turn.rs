//! The order of answers: quick requests are first, and the turn of a client is limited.
//!
//! ```text
//!   sockets --> clients that have sent something --> turns: quick requests, and others of light clients --.
//!      ^         ^   in the order of their time        |                                                 |
//!      |         '------- the rest of a turn ----------'                                                 |
//!      '--- next look <--- one of visitors, when it is theirs <--- one turn of all heavy clients <-------'
//! ```
//! Between two looks at sockets, the turns of light clients together take the time of one. The client whose turns have taken the least
//! time is first ([`FairOrder`]). Turns are short while many clients are at work. A client whose requests take long is heavy until it
//! has made some that do not. All heavy clients together get a short turn between two looks at sockets; while others are at work, they
//! get a fifth of the time. Clients that only look at the pool ([`junctura_wire::body::Hello::visits`]) are served last: while other
//! clients are active, all visitors together get a turn of 0.2 ms, and after it other clients get 99 times its duration.

use std::collections::BTreeSet;
use std::time::Duration;

use junctura_wire::Request;
use junctura_wire::body::TargetBody;

use crate::core::{Nanoseconds, PreparedSelector};

/// A request that takes so long makes its client heavy.
const HEAVY_REQUEST: Nanoseconds = 50_000;
/// A heavy client is light again after so many requests that take less, and are not quick.
const HEAVY_FOR: u32 = 16;
/// Quick requests that are answered between two looks at the clock, where they are as quick as usual.
const QUICK_MAX: u32 = 16;
/// While more clients than these are at work, turns are short.
const FEW: usize = 4;
/// A short turn is so many times shorter.
const SHORTER: u32 = 4;

/// The data left to read of a client without waiting, and how it is read.
pub(super) struct ReadTurn {
    /// The inbox holds frames that the last turn had no time for.
    pub(super) has_leftover: bool,
    /// The next turn is noted.
    pub(super) is_noted: bool,
    /// Its client has sent goodbye, and the pool has yet to end its holdings: nothing more is read from it.
    pub(super) is_last: bool,
    /// In which turn what is left is read.
    pub(super) next: ClientTurn,
    pub(super) selector: SelectorPreparation,
    /// Quick requests that are answered before the clock is looked at.
    pub(super) quick_at_once: u32,
    pub(super) role: ClientRole,
    /// Of the release that is next, so many objects are released.
    pub(super) released: usize,
    /// Its place in the order of turns.
    pub(super) spent: Nanoseconds,
    heavy_for: u32,
}

/// The selector of the frame that is next, where reading it takes long.
#[derive(Default)]
pub(super) enum SelectorPreparation {
    #[default]
    None,
    /// Nothing more is taken from the client until it was read.
    Ordered,
    Done(PreparedSelector),
}

impl Default for ReadTurn {
    fn default() -> Self {
        Self {
            has_leftover: false,
            is_noted: false,
            is_last: false,
            next: ClientTurn::Light,
            selector: SelectorPreparation::None,
            quick_at_once: 1,
            role: ClientRole::Participant,
            released: 0,
            spent: 0,
            heavy_for: HEAVY_FOR,
        }
    }
}

impl ReadTurn {
    pub(super) fn is_visitor(&self) -> bool {
        self.role == ClientRole::Visitor
    }

    pub(super) fn waits_for_selector(&self) -> bool {
        matches!(self.selector, SelectorPreparation::Ordered)
    }

    /// The selector that was read for the next frame.
    pub(super) fn take_prepared(&mut self) -> Option<PreparedSelector> {
        match std::mem::take(&mut self.selector) {
            SelectorPreparation::Done(prepared) => Some(prepared),
            other => {
                self.selector = other;
                None
            }
        }
    }

    /// Whether a request is answered in this turn.
    pub(super) fn takes(&self, request: &Request<'_>, turn: ClientTurn) -> bool {
        turn != ClientTurn::Light || self.heavy_for == 0 || is_quick(request)
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

/// The role of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientRole {
    /// Exchanges objects.
    Participant,
    /// Only looks at the pool, and is served last.
    Visitor,
}

/// Which turn of a client it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientTurn {
    /// One of a client whose requests are quick.
    Light,
    /// One of the heavy clients.
    Heavy,
    /// One of the visitors.
    Visitor,
}

/// The order in which light clients get their turns: start-time fair queueing by the time that the turns take.
///
/// A client that waits has a place: the time at which its last turn ended, on a clock that all clients share, or the time of the
/// turn that is served when it has paused since. So one that takes less than its share waits for one turn of others at most.
#[derive(Default)]
pub(super) struct FairOrder {
    /// Place, its own time, order of arrival, client.
    waiting: BTreeSet<(Nanoseconds, Nanoseconds, u64, u32)>,
    /// The place of the turn that is served.
    served: Nanoseconds,
    arrivals: u64,
}

impl FairOrder {
    /// Adds a client whose turns have taken it to this time. Of two with the same place, the one with less time is first.
    pub(super) fn push(&mut self, client: u32, spent: Nanoseconds) {
        self.arrivals += 1;
        self.waiting
            .insert((spent.max(self.served), spent, self.arrivals, client));
    }

    /// Takes the client whose turn it is.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let (place, _, _, client) = self.waiting.pop_first()?;
        self.served = place;
        Some(client)
    }

    /// The time of the client that was taken, after a turn. A turn counts as no more than it may take: the system may have stopped
    /// the server meanwhile.
    pub(super) fn spent(&self, took: Duration, limit: Duration) -> Nanoseconds {
        let counted = u64::try_from(took.min(limit).as_nanos()).unwrap_or(u64::MAX);
        self.served.saturating_add(counted.max(1))
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// When heavy clients, or visitors, get their turn.
pub(super) struct FairShare {
    /// When others were last answered.
    others_at: Nanoseconds,
    /// When they get their next turn, if others are at work.
    next_at: Nanoseconds,
    /// Others get so many times what their last turn took.
    others: u64,
    /// The longest time that others get for it.
    others_max: Nanoseconds,
}

impl FairShare {
    /// Other clients count as active until they send nothing for so long.
    const PAUSE: Nanoseconds = 1_000_000;

    /// Heavy clients have a fifth of the time.
    pub(super) fn of_heavy() -> Self {
        Self::of(4, 20_000_000)
    }

    /// Visitors have a hundredth of the time.
    pub(super) fn of_visitors() -> Self {
        Self::of(99, 500_000_000)
    }

    fn of(others: u64, others_max: Nanoseconds) -> Self {
        Self {
            others_at: 0,
            next_at: 0,
            others,
            others_max,
        }
    }

    pub(super) fn note_others(&mut self, now: Nanoseconds) {
        self.others_at = now;
    }

    /// They had a turn.
    pub(super) fn note_turn(&mut self, began: Nanoseconds, ended: Nanoseconds) {
        let others = ended.saturating_sub(began).saturating_mul(self.others);
        self.next_at = ended.saturating_add(others.min(self.others_max));
    }

    /// Whether others were at work just now.
    pub(super) fn has_others(&self, now: Nanoseconds) -> bool {
        self.others_at > 0 && now < self.others_at.saturating_add(Self::PAUSE)
    }

    /// From when on they may have a turn.
    pub(super) fn due_at(&self) -> Nanoseconds {
        match self.others_at {
            0 => 0,
            at => self.next_at.min(at.saturating_add(Self::PAUSE)),
        }
    }
}

/// How many clients are at work, which the length of a turn follows.
#[derive(Default)]
pub(super) struct ActiveClients {
    now: usize,
    before: usize,
}

impl ActiveClients {
    /// A client gets a turn.
    pub(super) fn note(&mut self) {
        self.now += 1;
    }

    /// The next look at sockets begins.
    pub(super) fn look(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// The time of a turn that takes `limit` at most, while so many clients wait for theirs.
    pub(super) fn turn(&self, limit: Duration, waiting: usize) -> Duration {
        if self.before.max(self.now).max(waiting) > FEW {
            limit / SHORTER
        } else {
            limit
        }
    }
}

/// The time of a turn, read no more often than needed: after each request that is not quick, and after some quick ones.
/// If those took long, because they concern many objects in the pool, it is read after each request.
pub(super) struct TurnClock {
    began: Nanoseconds,
    limit: Nanoseconds,
    looked: Nanoseconds,
    quick: u32,
    pub(super) quick_at_once: u32,
}

impl TurnClock {
    pub(super) fn start(now: Nanoseconds, limit: Duration, quick_at_once: u32) -> Self {
        Self {
            began: now,
            limit: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            looked: now,
            quick: 0,
            quick_at_once,
        }
    }

    /// A request was answered. Whether the clock is to be looked at.
    pub(super) fn counts(&mut self, is_quick: bool) -> bool {
        if !is_quick {
            // It may have asked for something that makes others take long.
            self.quick_at_once = 1;
            return true;
        }
        self.quick += 1;
        self.quick >= self.quick_at_once
    }

    /// A look, after requests.
    pub(super) fn look(&mut self, now: Nanoseconds) -> bool {
        if let Some(each) = now.saturating_sub(self.looked).checked_div(u64::from(self.quick)) {
            self.quick_at_once = if each < HEAVY_REQUEST {
                (2 * self.quick_at_once).min(QUICK_MAX)
            } else {
                1
            };
        }
        (self.looked, self.quick) = (now, 0);
        self.is_over(now)
    }

    pub(super) fn is_over(&self, now: Nanoseconds) -> bool {
        now.saturating_sub(self.began) >= self.limit
    }
}

/// Whether a request takes little time, for any content of the pool.
pub(super) fn is_quick(request: &Request<'_>) -> bool {
    match request {
        Request::Hello(_)
        | Request::Offer { .. }
        | Request::Stage { .. }
        | Request::Release(_)
        | Request::Return(_) => true,
        Request::Demand(demand) => matches!(demand.target, TargetBody::Key { .. }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_light_after_requests_that_take_little() {
        let mut turn = ReadTurn::default();
        let takes = |turn: &ReadTurn| turn.takes(&Request::Stat, ClientTurn::Light);
        for _ in 0..HEAVY_FOR {
            assert!(!takes(&turn) && turn.takes(&Request::Stat, ClientTurn::Heavy));
            turn.note_request(HEAVY_REQUEST - 1);
        }
        assert!(takes(&turn));
        turn.note_request(HEAVY_REQUEST);
        assert!(!takes(&turn));
        assert!(turn.takes(&Request::Release(&[]), ClientTurn::Light), "it is quick");
    }

    #[test]
    fn one_that_takes_little_waits_for_one_turn_of_thirty_that_take_all_they_can() {
        const LIMIT: Duration = Duration::from_micros(250);
        const HONEST: u32 = 0;
        let (mut order, mut spent) = (FairOrder::default(), [0; 31]);
        (1..=30).for_each(|client| order.push(client, 0));
        let (mut waits, mut answered) = (None, 0);
        for turn in 1..10_000 {
            if turn % 40 == 0 {
                order.push(HONEST, spent[0]);
                waits = Some(0);
            }
            let client = order.pop().unwrap();
            let took = if client == HONEST {
                10
            } else {
                200 + 5 * u64::from(client)
            };
            spent[client as usize] = order.spent(Duration::from_micros(took), LIMIT);
            if client == HONEST {
                assert!(waits.take().unwrap() <= 1);
                answered += 1;
            } else {
                waits = waits.map(|count| count + 1);
                order.push(client, spent[client as usize]);
            }
        }
        assert_eq!(answered, 249);
        // All others have had as much.
        let (least, most) = (spent[1..].iter().min().unwrap(), spent[1..].iter().max().unwrap());
        assert!(most - least <= 250_000);
    }

    #[test]
    fn heavy_clients_get_a_fifth_of_the_time_while_others_are_at_work() {
        let mut share = FairShare::of_heavy();
        share.note_turn(5_000_000, 5_200_000);
        assert_eq!(share.due_at(), 0, "there are no others");
        share.note_others(5_900_000);
        assert_eq!(share.due_at(), 6_000_000);
        // The others pause.
        share.note_turn(6_000_000, 7_000_000);
        assert_eq!(share.due_at(), 6_900_000);
        share.note_others(7_100_000);
        assert_eq!(share.due_at(), 8_100_000);
        // One long request does not keep the other heavy clients for ever.
        share.note_turn(8_000_000, 1_008_000_000);
        share.note_others(1_030_000_000);
        assert_eq!(share.due_at(), 1_028_000_000);
    }

    #[test]
    fn visitors_get_a_hundredth_of_the_time_while_others_are_at_work() {
        let mut share = FairShare::of_visitors();
        share.note_turn(0, 200_000);
        assert_eq!(share.due_at(), 0, "there are no others");
        share.note_others(19_500_000);
        assert!(share.has_others(20_400_000) && !share.has_others(20_500_000));
        assert_eq!(share.due_at(), 20_000_000);
        share.note_turn(20_000_000, 30_000_000);
        share.note_others(600_000_000);
        assert_eq!(share.due_at(), 530_000_000, "one long turn does not keep them for ever");
    }

    #[test]
    fn a_turn_looks_at_the_clock_after_some_quick_requests() {
        let mut clock = TurnClock::start(0, Duration::from_secs(1), 1);
        let mut looks = |nanoseconds_each: u64, requests: u64| {
            let mut now = clock.looked;
            let mut looks = 0;
            for _ in 0..requests {
                now += nanoseconds_each;
                if clock.counts(true) {
                    looks += 1;
                    clock.look(now);
                }
            }
            looks
        };
        // After 1, 2, 4, 8, and then after each 16th.
        assert_eq!(looks(1000, 15 + 160), 4 + 10);
        assert_eq!(
            looks(HEAVY_REQUEST, 16),
            1,
            "the first that take long are as many as were answered at once before"
        );
        assert_eq!(looks(HEAVY_REQUEST, 100), 100);
        assert_eq!(looks(1000, 15), 4);
        assert!(clock.counts(false) && !clock.look(clock.looked));
        assert!(
            clock.counts(true),
            "what comes after one that is not quick may take long"
        );
        assert!(!clock.is_over(999_999_999) && clock.is_over(1_000_000_000) && !clock.is_over(0));
    }

    #[test]
    fn turns_are_short_while_many_are_at_work() {
        let mut crowd = ActiveClients::default();
        let limit = Duration::from_millis(1);
        (0..FEW).for_each(|_| crowd.note());
        assert_eq!(crowd.turn(limit, 0), limit);
        crowd.note();
        assert_eq!(crowd.turn(limit, 0), limit / SHORTER);
        crowd.look();
        assert_eq!(crowd.turn(limit, 0), limit / SHORTER, "they were at work just before");
        crowd.look();
        assert_eq!(crowd.turn(limit, FEW), limit);
        assert_eq!(crowd.turn(limit, FEW + 1), limit / SHORTER);
    }
}
