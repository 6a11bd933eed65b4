//! Counters of messages and of system calls: many small messages are sent in few calls.

use serde::Serialize;

/// The server's reads and writes since it began, all clients together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct ServerTraffic {
    /// Times that the server slept and was woken.
    pub(super) wakeups: u64,
    /// Times that it read received data of a client.
    pub(super) reads: u64,
    /// Messages in these reads.
    pub(super) frames_read: u64,
    pub(super) bytes_read: u64,
    /// Times that it gave a client what was there for it.
    pub(super) writes: u64,
    /// Messages to clients.
    pub(super) frames_written: u64,
    pub(super) bytes_written: u64,
    /// The longest time from one look at sockets and rings to the next, without sleep.
    pub(super) longest_turn_ns: u64,
}

impl ServerTraffic {
    pub(super) fn read(&mut self, bytes: usize) {
        self.reads += 1;
        self.bytes_read += bytes as u64;
    }

    pub(super) fn wrote(&mut self, bytes: usize) {
        self.writes += 1;
        self.bytes_written += bytes as u64;
    }

    /// From one look at sockets and rings to the next.
    pub(super) fn note_turn(&mut self, took_ns: u64) {
        self.longest_turn_ns = self.longest_turn_ns.max(took_ns);
    }
}
