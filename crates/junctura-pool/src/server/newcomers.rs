//! Clients that have connected and have not introduced themselves with a `Hello`.
//!
//! Each costs descriptors and a place among the clients of the pool. Therefore their number and their time are bounded: a client
//! that exceeds the time is disconnected, and the oldest one is evicted for a new one when there are too many.

use std::collections::VecDeque;

use crate::core::Nanoseconds;

/// Clients that have not introduced themselves, at most. A job may start thousands of processes at once, each of which
/// introduces itself within a millisecond.
pub(super) const NEWCOMERS_MAX: usize = 1024;
/// The time from the connection to the `Hello`, at most: enough for a client of a slow network that opens several streams first.
const HELLO_TIME_MAX_NS: Nanoseconds = 10_000_000_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ServerNewcomers {
    /// The oldest first.
    waiting: VecDeque<(u32, Nanoseconds)>,
}

impl ServerNewcomers {
    /// Adds a client that has connected.
    pub(super) fn add(&mut self, client: u32, now: Nanoseconds) {
        self.waiting.push_back((client, now));
    }

    /// Removes a client that has introduced itself, or has disconnected.
    pub(super) fn remove(&mut self, client: u32) {
        if let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == client) {
            self.waiting.remove(at);
        }
    }

    /// Whether one must be evicted before another one is added.
    pub(super) fn are_too_many(&self) -> bool {
        self.waiting.len() >= NEWCOMERS_MAX
    }

    /// Takes the oldest one.
    pub(super) fn take_oldest(&mut self) -> Option<u32> {
        self.waiting.pop_front().map(|(client, _)| client)
    }

    /// Takes one whose time is over.
    pub(super) fn take_overdue(&mut self, now: Nanoseconds) -> Option<u32> {
        self.deadline()
            .filter(|&deadline| deadline <= now)
            .and_then(|_| self.take_oldest())
    }

    /// When the time of the oldest one is over.
    pub(super) fn deadline(&self) -> Option<Nanoseconds> {
        self.waiting.front().map(|(_, since)| since + HELLO_TIME_MAX_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_when_its_time_is_over() {
        let mut newcomers = ServerNewcomers::default();
        assert_eq!((newcomers.deadline(), newcomers.take_overdue(u64::MAX)), (None, None));
        for client in 1..=NEWCOMERS_MAX as u32 {
            assert!(!newcomers.are_too_many());
            newcomers.add(client, u64::from(client));
        }
        assert!(newcomers.are_too_many());
        assert_eq!(newcomers.take_oldest(), Some(1));
        newcomers.remove(2);
        newcomers.remove(2);
        assert_eq!(newcomers.deadline(), Some(HELLO_TIME_MAX_NS + 3));
        assert_eq!(newcomers.take_overdue(HELLO_TIME_MAX_NS + 2), None);
        assert_eq!(newcomers.take_overdue(HELLO_TIME_MAX_NS + 4), Some(3));
        assert_eq!(newcomers.take_overdue(HELLO_TIME_MAX_NS + 4), Some(4));
        assert_eq!(newcomers.take_overdue(HELLO_TIME_MAX_NS + 4), None);
    }
}
