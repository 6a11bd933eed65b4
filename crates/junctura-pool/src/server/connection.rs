//! One client's connection, as the server's thread sees it.

use std::os::fd::{BorrowedFd, OwnedFd};

use junctura_model::{Error, Result};
use junctura_transport::{Carrier, ConnectionRings, Inbox, LocalCarrier, Outbox, Parts, ReceiveResult, UnixCarrier};
use junctura_wire::Reply;

use super::poller::ReadyEvents;
use super::traffic::ServerTraffic;
use super::turn::ReadTurn;

/// A client with more than this unread is not read itself, until it has caught up.
const BACKLOG_BYTES_PAUSE: usize = 4 << 20;
const BACKLOG_BYTES_RESUME: usize = 1 << 20;

#[allow(
    clippy::struct_excessive_bools,
    reason = "the states of a connection are independent"
)]
pub(super) struct ClientConnection {
    pub(super) carrier: LocalCarrier,
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
    pub(super) turn: ReadTurn,
    /// The log has its begin.
    pub(super) is_logged: bool,
    /// Its client has crashed; data sent before is still read.
    pub(super) last_words: Option<LastWords>,
    waits_for: ReadyEvents,
}

impl ClientConnection {
    pub(super) fn new(carrier: UnixCarrier, death: Option<OwnedFd>) -> Self {
        Self {
            carrier: LocalCarrier::new(carrier),
            inbox: Inbox::new(),
            outbox: Outbox::new(),
            death,
            is_touched: false,
            is_paused: false,
            is_closing: false,
            turn: ReadTurn::default(),
            is_logged: false,
            last_words: None,
            waits_for: ReadyEvents {
                readable: true,
                ..ReadyEvents::default()
            },
        }
    }

    /// Continues the connection through rings once everything queued so far has been sent over the socket.
    pub(super) fn switch_to_rings(&mut self, rings: (ConnectionRings, Parts)) -> Result<()> {
        self.carrier.pass_rings(&mut self.outbox, rings)
    }

    /// Sends the error for which the connection ends, if that is possible without blocking.
    pub(super) fn refuse(&mut self, request: u64, error: &Error) {
        let queued = self.outbox.push(|out| Reply::Failed(error.into()).encode(request, out));
        if queued.is_ok() {
            let _ = self.carrier.send(&mut self.outbox);
        }
    }

    /// Returns the descriptor that signals data in a ring, once there is one.
    pub(super) fn bell(&mut self) -> Option<BorrowedFd<'_>> {
        self.carrier.incoming().bell()
    }

    /// Takes received data, as far as there is room; nothing while earlier frames are left.
    pub(super) fn receive(&mut self, inbox: &mut Inbox) -> Result<ReceiveResult> {
        if self.turn.has_leftover {
            return Ok(ReceiveResult::Full);
        }
        self.carrier.receive(inbox)
    }

    /// Whether its data is read.
    pub(super) fn is_heard(&self) -> bool {
        !self.is_paused && !self.is_closing && !self.turn.is_last
    }

    /// Whether there is received data that no descriptor will signal, and that can be answered.
    pub(super) fn has_more(&mut self) -> bool {
        self.is_heard()
            && !self.turn.waits_for_selector()
            && (self.turn.has_leftover || self.inbox.wants_descriptor() || !self.carrier.incoming().may_sleep())
    }

    /// Sends what is queued, as far as the client takes it. Whether it is read again, after a pause.
    pub(super) fn flush(&mut self, traffic: &mut ServerTraffic) -> Result<bool> {
        if !self.outbox.is_empty() {
            let before = self.outbox.len();
            self.carrier.send(&mut self.outbox)?;
            traffic.wrote(before - self.outbox.len());
        }
        let was_paused = self.is_paused;
        if self.outbox.len() > BACKLOG_BYTES_PAUSE {
            self.is_paused = self.last_words.is_none();
        } else if self.outbox.len() < BACKLOG_BYTES_RESUME {
            self.is_paused = false;
        }
        Ok(was_paused && !self.is_paused)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_closing && self.outbox.is_empty()
    }

    /// Returns the events to wait for from now on, if they have changed.
    pub(super) fn changed_interest(&mut self) -> Option<ReadyEvents> {
        let interest = ReadyEvents {
            readable: self.is_heard() && !self.turn.waits_for_selector(),
            writable: !self.outbox.is_empty() && self.carrier.outgoing().waits_for_socket(),
            ended: false,
        };
        (interest != self.waits_for).then(|| {
            self.waits_for = interest;
            interest
        })
    }
}

/// The last data of a crashed client, and the reason of its end.
pub(super) struct LastWords {
    reason: String,
    reads_left: u32,
}

impl LastWords {
    /// A child that has inherited the connection may continue to send.
    const READS_MAX: u32 = 256;

    pub(super) fn new(reason: &str) -> Self {
        Self {
            reason: reason.to_owned(),
            reads_left: Self::READS_MAX,
        }
    }

    pub(super) fn reason(self) -> String {
        self.reason
    }

    /// After a read of all received data: returns the reason, when there was none or so much was read.
    pub(super) fn is_over(&mut self, has_come: bool) -> Option<String> {
        self.reads_left -= 1;
        (!has_come || self.reads_left == 0).then(|| std::mem::take(&mut self.reason))
    }
}
