//! Clients that have connected and have not introduced themselves with a `Hello`.
//!
//! Each costs descriptors and a place among the clients of the pool. Therefore their number and their time are bounded: a client
//! that exceeds the time is disconnected, and the oldest one is evicted for a new one when there are too many.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::Duration;

use junctura_model::{Code, Error, Result};
use junctura_transport::{Carrier, UnixCarrier};

use super::connection::ClientConnection;
use super::poller::{self, WakeupSource};
use super::turn::{ClientTurn, TurnClock};
use super::{Server, ServerOptions};
use crate::core::Nanoseconds;

/// Clients that have not introduced themselves, at most. A job may start thousands of processes at once, each of which
/// introduces itself within a millisecond.
pub(super) const NEWCOMERS_MAX: usize = 1024;
/// The time from the connection to the `Hello`, at most: enough for a client of a slow network that opens several streams first.
const HELLO_TIME_MAX_NS: Nanoseconds = 10_000_000_000;

/// Clients whose unread data is looked at in one turn before they are evicted.
const LOOKS_MAX: usize = 16;

/// See the module.
#[derive(Default)]
pub(super) struct ServerNewcomers {
    /// The oldest first.
    waiting: VecDeque<(u32, Nanoseconds)>,
    /// A client that was accepted, and for which the last turn has found no room.
    at_the_door: Option<UnixCarrier>,
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

    /// Whether a client that was accepted waits for room.
    pub(super) fn wait_for_room(&self) -> bool {
        self.at_the_door.is_some()
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

impl Server {
    /// Takes clients that have connected, as many as one turn has time for: the listener stays readable while more wait.
    pub(super) fn accept(&mut self) {
        const ACCEPTED_MAX: usize = 32;
        let clock = TurnClock::start(self.now(), self.time_of(ClientTurn::Light), 1);
        let mut looks = LOOKS_MAX;
        for accepted in 0..ACCEPTED_MAX {
            if accepted > 0 && clock.is_over(self.now()) {
                return;
            }
            let next = self
                .newcomers
                .at_the_door
                .take()
                .map_or_else(|| self.listener.accept(), |carrier| Ok(Some(carrier)));
            match next {
                Ok(Some(carrier)) if !self.has_room(&mut looks) => {
                    self.newcomers.at_the_door = Some(carrier);
                    return;
                }
                Ok(Some(carrier)) => {
                    if let Err(error) = self.welcome(carrier) {
                        tracing::warn!(%error, "a client was turned away");
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "a client was turned away");
                    match error.code() {
                        Code::Io => return,
                        // An evicted one frees descriptors for the next client.
                        Code::LimitExceeded => drop(self.evict_newcomer(&mut looks)),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Evicts a client that has not introduced itself, if there is no room for another one. Returns false if one may be
    /// found in the next turn.
    fn has_room(&mut self, looks: &mut usize) -> bool {
        let is_full = self.newcomers.are_too_many() || !self.core.takes_clients();
        !is_full || self.evict_newcomer(looks) || self.newcomers.deadline().is_none()
    }

    fn welcome(&mut self, carrier: UnixCarrier) -> Result<()> {
        let client = match self.core.join() {
            Ok(client) => client,
            Err(error) => {
                self.listener.refuse(carrier, &error);
                return Err(error);
            }
        };
        let death = carrier.watch_peer();
        self.poller.add(
            carrier.as_fd(),
            WakeupSource::Client {
                client,
                ready: poller::ReadyEvents::default(),
            },
        )?;
        if let Some(death) = &death {
            self.poller.add(death.as_fd(), WakeupSource::Death { client })?;
        }
        let mut connection = ClientConnection::new(carrier, death);
        // A new connection queues behind waiting clients: repeated connects give no precedence.
        connection.turn.spent = self
            .unfinished
            .spent(Duration::MAX, self.time_of(ClientTurn::Light).min(ServerOptions::TURN));
        self.world.connections.insert(client, connection);
        self.newcomers.add(client, self.now());
        Ok(())
    }

    /// Evicts the oldest client that has not introduced itself. Returns false if none was found in so many looks. A client
    /// whose `Hello` has arrived, and was not read yet, stays.
    fn evict_newcomer(&mut self, looks: &mut usize) -> bool {
        while *looks > 0
            && let Some(client) = self.newcomers.take_oldest()
        {
            *looks -= 1;
            if self.is_still_new(client) {
                let cause = "too many others have connected before this client introduced itself; connect again";
                self.turn_away(client, 0, &Error::new(Code::LimitExceeded, "hello", cause));
                return true;
            }
        }
        false
    }

    /// Evicts clients that have not introduced themselves in time, unless their `Hello` has arrived and was not read
    /// yet: so many in a turn.
    pub(super) fn turn_overdue_away(&mut self, now: Nanoseconds) {
        for _ in 0..LOOKS_MAX {
            let Some(client) = self.newcomers.take_overdue(now) else {
                return;
            };
            if self.is_still_new(client) {
                let cause = "the client connected and did not introduce itself in time";
                self.turn_away(client, 0, &Error::new(Code::Timeout, "hello", cause));
            }
        }
    }

    /// Whether a client is connected, and has not introduced itself, also not in unread data. No more than its first
    /// message is answered.
    fn is_still_new(&mut self, client: u32) -> bool {
        self.read_one(client);
        !self.core.has_joined(client) && self.world.connections.contains_key(&client)
    }

    /// Sends a client the error for which it is not served, and ends its connection.
    pub(super) fn turn_away(&mut self, client: u32, request: u64, error: &Error) {
        if let Some(connection) = self.world.connections.get_mut(&client) {
            tracing::warn!(%error, "a client was turned away");
            let before = connection.outbox.len();
            connection.refuse(request, error);
            self.world.unread_bytes = self.world.unread_bytes + connection.outbox.len() - before;
        }
        self.lost(client, &error.to_string());
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
