//! The numbers of a pool between two looks at its board: sums of the second one, and rates.

use std::time::{Duration, Instant};

use junctura::board::BoardSnapshot;
use junctura::{BoardCounter as Counter, BoardState, PoolBoard};
use junctura_terminal::size;
use rustix::event::{Timespec, poll};

/// A server without work turns once a second: after more than this, it hangs, is stopped, or has ended.
const TURN_AGE_MAX: Duration = Duration::from_secs(2);
/// Characters of the bar of memory.
const BAR: usize = 20;

/// Waits so long, or until a signal.
pub(super) fn pause(time: Duration) {
    let _ = poll(&mut [], Timespec::try_from(time).ok().as_ref());
}

/// A look at a board.
pub(super) struct BoardLook {
    snapshot: BoardSnapshot,
    at: Instant,
}

/// The numbers between two looks.
pub(super) struct TopFrame {
    pub(super) url: String,
    pub(super) before: BoardSnapshot,
    pub(super) now: BoardSnapshot,
    pub(super) interval: Duration,
    pub(super) turn_age: Duration,
    /// How long the server has run, as far as its board shows.
    pub(super) up: Duration,
}

impl BoardLook {
    pub(super) fn new(board: &PoolBoard) -> Self {
        Self {
            snapshot: board.snapshot(),
            at: Instant::now(),
        }
    }

    /// Looks again.
    pub(super) fn frame(&self, board: &PoolBoard, url: &str) -> TopFrame {
        let now = board.snapshot();
        let interval = self.at.elapsed();
        TopFrame::new(url, (&self.snapshot, now), interval, board.turn_age())
    }

    /// Returns the frame of this look alone: without rates.
    pub(super) fn still(&self, board: &PoolBoard, url: &str) -> TopFrame {
        let numbers = (&self.snapshot, self.snapshot.clone());
        TopFrame::new(url, numbers, self.at.elapsed(), board.turn_age())
    }
}

impl TopFrame {
    pub(super) fn new(
        url: &str,
        (before, now): (&BoardSnapshot, BoardSnapshot),
        interval: Duration,
        turn_age: Duration,
    ) -> Self {
        let up = now.head.turned_ns.saturating_sub(now.head.started_ns);
        Self {
            url: url.to_owned(),
            before: before.clone(),
            now,
            interval,
            turn_age,
            up: Duration::from_nanos(up),
        }
    }

    pub(super) fn counter(&self, counter: Counter) -> u64 {
        self.now.counter(counter)
    }

    /// The growth of a counter in a second.
    pub(super) fn rate(&self, counter: Counter) -> f64 {
        self.per_second(self.before.counter(counter), self.now.counter(counter))
    }

    pub(super) fn per_second(&self, before: u64, now: u64) -> f64 {
        now.saturating_sub(before) as f64 / self.interval.as_secs_f64().max(1e-9)
    }

    /// The part of its time that the deciding thread worked, in percent.
    pub(super) fn cpu_percent(&self) -> f64 {
        self.rate(Counter::BusyNs) / 1e7
    }

    pub(super) fn is_turning(&self) -> bool {
        self.now.head.state != BoardState::Ended && self.turn_age <= TURN_AGE_MAX
    }

    /// The state of the server, in words.
    pub(super) fn state(&self) -> String {
        match self.now.head.state {
            BoardState::Ended => "ended".to_owned(),
            _ if !self.is_turning() => format!("not turning for {}", span(self.turn_age)),
            state => state.name().to_owned(),
        }
    }

    /// The lines above the tables.
    pub(super) fn summary(&self) -> [String; 3] {
        let count = |counter| self.counter(counter);
        let (used, budget) = (count(Counter::UsedBytes), count(Counter::BudgetBytes));
        let percent = used.saturating_mul(100).checked_div(budget).unwrap_or_default();
        let filled = (percent as usize * BAR / 100).min(BAR);
        let first = format!(
            "junctura top - {}   {}   up {}   cpu {:.0} %   pid {}",
            self.url,
            self.state(),
            span(self.up),
            self.cpu_percent(),
            self.now.head.pid,
        );
        let second = format!(
            "objects {} visible {}, held {}, tombstones {}   memory [{}{}] {percent} % of {}",
            count(Counter::Visible),
            size::bytes(count(Counter::VisibleBytes)),
            count(Counter::Held),
            count(Counter::Tombstones),
            "#".repeat(filled),
            " ".repeat(BAR - filled),
            size::bytes(budget),
        );
        let third = format!(
            "offered {:.0}/s {}/s   delivered {:.0}/s {}/s   waiting {} offers, {} leases, {} withdraws   spilled {}",
            self.rate(Counter::Offered),
            size::bytes(self.rate(Counter::OfferedBytes) as u64),
            self.rate(Counter::Delivered),
            size::bytes(self.rate(Counter::DeliveredBytes) as u64),
            count(Counter::OffersWaiting),
            count(Counter::LeasesWaiting),
            count(Counter::Withdrawals),
            size::bytes(count(Counter::SpillUsedBytes)),
        );
        [first, second, third]
    }
}

/// A time in words.
pub(super) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=9 => format!("{:.1} s", time.as_secs_f64()),
        10..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
