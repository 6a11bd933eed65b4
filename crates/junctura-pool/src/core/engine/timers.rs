//! The queue of timed events.

use std::collections::BTreeMap;

/// Nanoseconds of a monotonic clock.
pub type Nanoseconds = u64;

/// A timed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core) enum TimerEvent {
    Demand {
        client: u32,
        request: u64,
    },
    Lease {
        client: u32,
        request: u64,
    },
    /// The time of the first waiting lease alone is over.
    FirstLease,
    Offer {
        client: u32,
        number: u64,
    },
    /// Its object is visible, and must be archived by then.
    Durable {
        client: u32,
        number: u64,
    },
    Withdrawal(u32),
    Requirement(u32),
    /// A requirement may be stuck.
    Stuck,
    Bundle(u64),
    /// The pause of the file tier is over.
    Pause,
    /// More archived objects may be evicted for waiting clients.
    Room,
}

impl TimerEvent {
    /// How many of the usual events its event counts as.
    fn weight(self) -> usize {
        match self {
            // The answer names the clients that hold most memory.
            Self::Lease { .. } | Self::Offer { .. } => 16,
            _ => 1,
        }
    }
}

/// No client has this number: it is that of timers without a client.
pub(in crate::core) const NOBODY: u32 = 0;

/// Timers in the order of their times; at most one for a client's request, for a named requirement, for a bundle, for
/// the check of stuck requirements, for the pause of the file tier, for the first waiting lease, and for the next round
/// of evictions.
#[derive(Default)]
pub(in crate::core) struct TimerQueue {
    /// The time of the newest event.
    pub(in crate::core) now: Nanoseconds,
    queue: BTreeMap<(Nanoseconds, u64), (TimerEvent, (u32, u64))>,
    places: BTreeMap<(u32, u64), (Nanoseconds, u64)>,
    set: u64,
}

impl TimerQueue {
    pub(in crate::core) fn set(&mut self, at: Nanoseconds, client: u32, request: u64, timer: TimerEvent) {
        self.cancel(client, request);
        self.set += 1;
        self.queue.insert((at, self.set), (timer, (client, request)));
        self.places.insert((client, request), (at, self.set));
    }

    /// When the timer of a request is due, if it has one.
    pub(in crate::core) fn time_of(&self, client: u32, request: u64) -> Option<Nanoseconds> {
        self.places.get(&(client, request)).map(|&(at, _)| at)
    }

    pub(in crate::core) fn cancel(&mut self, client: u32, request: u64) {
        if self.places.is_empty() {
            return;
        }
        if let Some(place) = self.places.remove(&(client, request)) {
            self.queue.remove(&place);
        }
    }

    pub(in crate::core) fn next(&self) -> Option<Nanoseconds> {
        self.queue.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes the next event that is due, if `may` allows its weight.
    pub(in crate::core) fn take_due(&mut self, may: &mut usize) -> Option<TimerEvent> {
        let entry = self.queue.first_entry()?;
        if entry.key().0 > self.now || *may == 0 {
            return None;
        }
        *may = may.saturating_sub(entry.get().0.weight());
        let (timer, request) = entry.remove();
        self.places.remove(&request);
        Some(timer)
    }
}
