//! One client's connection, as the server's thread sees it.

use std::os::fd::OwnedFd;

use junctura_model::Result;
use junctura_transport::{Carrier, Inbox, Outbox, UnixCarrier};

use super::poller::Ready;

/// A client with more than this unread is not read itself, until it has caught up.
const BACKLOG_BYTES_PAUSE: usize = 4 << 20;
const BACKLOG_BYTES_RESUME: usize = 1 << 20;

pub(super) struct Connection {
    pub(super) carrier: UnixCarrier,
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    /// Becomes readable when the client's process ends.
    pub(super) death: Option<OwnedFd>,
    /// Something was queued since the last flush.
    pub(super) is_touched: bool,
    /// It does not read: nothing is taken from it.
    pub(super) is_paused: bool,
    /// It ends when what is queued was sent.
    pub(super) is_closing: bool,
    waits_for: Ready,
}

impl Connection {
    pub(super) fn new(carrier: UnixCarrier, death: Option<OwnedFd>) -> Self {
        Self {
            carrier,
            inbox: Inbox::new(),
            outbox: Outbox::new(),
            death,
            is_touched: false,
            is_paused: false,
            is_closing: false,
            waits_for: Ready {
                readable: true,
                writable: false,
            },
        }
    }

    /// Sends what is queued, as far as the client takes it.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !self.outbox.is_empty() {
            self.carrier.send(&mut self.outbox)?;
        }
        if self.outbox.len() > BACKLOG_BYTES_PAUSE {
            self.is_paused = true;
        } else if self.outbox.len() < BACKLOG_BYTES_RESUME {
            self.is_paused = false;
        }
        Ok(())
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_closing && self.outbox.is_empty()
    }

    /// What is to be waited for from now on, if it is not what was waited for.
    pub(super) fn changed_interest(&mut self) -> Option<Ready> {
        let interest = Ready {
            readable: !self.is_paused && !self.is_closing,
            writable: !self.outbox.is_empty(),
        };
        (interest != self.waits_for).then(|| {
            self.waits_for = interest;
            interest
        })
    }
}
