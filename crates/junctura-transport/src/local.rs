//! A connection to a process of the same machine: a unix socket, and rings once both ends have them.
//!
//! ```text
//! Outgoing --bytes--------> ring (or socket)   ---> Incoming
//!          --descriptors--> socket             --->
//! ```
//! Frames begin on the socket. After the server has sent the parts of the rings, its next frames use its ring; the client
//! then answers through its own. A descriptor is sent over the socket before the frame that announces it is in the ring, so
//! it is available when that frame is read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use junctura_wire::fixed::RingsHead;

use crate::ring::{self, ConnectionRings, Parts, RingReader, RingWriter};
use crate::{
    Carrier, Inbox, LookPatience, Outbox, PeerCredentials, PollInterest, PollResult, ReceiveResult, SendResult,
    UnixCarrier, WakeTimer,
};

/// Both directions of a connection; [`LocalCarrier::split`] gives each to its owner.
#[derive(Debug)]
pub struct LocalCarrier {
    incoming: IncomingSide,
    outgoing: OutgoingSide,
}

impl LocalCarrier {
    /// A connection that has no rings yet.
    #[must_use]
    pub fn new(socket: UnixCarrier) -> Self {
        Self {
            incoming: IncomingSide {
                socket: socket.clone(),
                ring: None,
                patience: LookPatience::default(),
            },
            outgoing: OutgoingSide {
                socket,
                ring: None,
                over_socket: 0,
                is_socket_full: false,
            },
        }
    }

    /// Two ends of one connection with rings, within this process.
    ///
    /// # Errors
    /// `LimitExceeded` when this process may open no more descriptors, `Io` otherwise.
    pub fn pair() -> Result<(Self, Self)> {
        let (near, far) = UnixCarrier::pair()?;
        let (mut near, mut far) = (Self::new(near), Self::new(far));
        let (rings, parts) = ConnectionRings::create(ring::RING_BYTES)?;
        far.switch(ConnectionRings::join(rings.ring_bytes(), parts)?, 0);
        near.switch(rings, 0);
        Ok((near, far))
    }

    /// Continues through rings, after `over_socket` more bytes over the socket.
    pub fn switch(&mut self, rings: ConnectionRings, over_socket: usize) {
        self.incoming.ring = Some((rings.reader, rings.bell));
        self.outgoing.ring = Some(rings.writer);
        self.outgoing.over_socket = over_socket;
    }

    /// For the server's end: makes rings, sends their parts after the contents of `outbox`, and continues through them
    /// after that.
    ///
    /// # Errors
    /// `LimitExceeded` when this process may open no more descriptors, `Io` when the system has no memory.
    pub fn offer_rings(&mut self, outbox: &mut Outbox, ring_bytes: usize) -> Result<()> {
        self.pass_rings(outbox, ConnectionRings::create(ring_bytes)?)
    }

    /// As [`Self::offer_rings`], with rings that exist already.
    ///
    /// # Errors
    /// `TooLarge` when the outbox takes no more.
    pub fn pass_rings(&mut self, outbox: &mut Outbox, (rings, parts): (ConnectionRings, Parts)) -> Result<()> {
        for (part, descriptor) in parts.into_iter().enumerate() {
            let head = RingsHead {
                part: (part as u32).into(),
                ring_bytes: (rings.ring_bytes() as u32).into(),
            };
            outbox.push_with_descriptor(descriptor, |out| Reply::Rings(head).encode(0, out))?;
        }
        self.switch(rings, outbox.len());
        Ok(())
    }

    /// Splits into the receiving and the sending side.
    #[must_use]
    pub fn split(self) -> (IncomingSide, OutgoingSide) {
        (self.incoming, self.outgoing)
    }

    /// Returns the receiving side.
    pub fn incoming(&mut self) -> &mut IncomingSide {
        &mut self.incoming
    }

    /// Returns the sending side.
    pub fn outgoing(&mut self) -> &mut OutgoingSide {
        &mut self.outgoing
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &UnixCarrier {
        &self.incoming.socket
    }
}

impl Carrier for LocalCarrier {
    fn receive(&mut self, into: &mut Inbox) -> Result<ReceiveResult> {
        self.incoming.receive(into)
    }

    fn send(&mut self, from: &mut Outbox) -> Result<SendResult> {
        self.outgoing.send(from)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.incoming.socket.as_fd()
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.incoming.bell()
    }

    fn may_sleep(&mut self) -> bool {
        self.incoming.may_sleep()
    }

    fn woke(&mut self) {
        let _ = self.incoming.arm();
    }

    fn waits_for_socket(&self) -> bool {
        self.outgoing.waits_for_socket()
    }

    fn peer(&self) -> &PeerCredentials {
        self.incoming.socket.peer()
    }
}

/// The direction that is received.
#[derive(Debug)]
pub struct IncomingSide {
    socket: UnixCarrier,
    ring: Option<(RingReader, Arc<OwnedFd>)>,
    patience: LookPatience,
}

/// A server on a core of its own answers within it; to be woken takes longer.
const LOOK_BEFORE_SLEEP: Duration = Duration::from_micros(10);

impl IncomingSide {
    /// As [`Carrier::receive`].
    ///
    /// # Errors
    /// As there, and `Protocol` when the ring's words cannot be.
    pub fn receive(&mut self, into: &mut Inbox) -> Result<ReceiveResult> {
        let Some((reader, _)) = &mut self.ring else {
            return self.socket.receive(into);
        };
        if into.wants_descriptor() {
            return self.socket.receive_descriptor(into);
        }
        into.descriptors_come_apart();
        let space = into.space();
        if space.is_empty() {
            return Ok(ReceiveResult::Full);
        }
        let mut bytes = reader.read(space)?;
        if bytes == 0 {
            let end = self.socket.receive_end()?;
            if end == ReceiveResult::End {
                // The last frames may have arrived between the two checks.
                bytes = reader.read(into.space())?;
            }
            if bytes == 0 {
                return Ok(end);
            }
        }
        into.filled(bytes);
        Ok(ReceiveResult::Bytes(bytes))
    }

    /// Like [`Self::receive`] for a caller that does not wait: with rings, the end of the connection is not checked.
    ///
    /// # Errors
    /// As there.
    pub fn glance(&mut self, into: &mut Inbox) -> Result<ReceiveResult> {
        match &self.ring {
            Some((reader, _)) if !into.wants_descriptor() && reader.is_empty() => Ok(ReceiveResult::Nothing),
            _ => self.receive(into),
        }
    }

    /// Returns the descriptor that is readable when something has arrived through the ring, or its other direction has room
    /// again; `None` without rings: then the socket is.
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(|(_, bell)| bell.as_fd())
    }

    /// Called before waiting for the socket and the bell: returns whether there is nothing to receive, so that one of both
    /// will wake the caller. If not, receive.
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        self.ring.as_ref().is_none_or(|(reader, _)| reader.may_sleep())
    }

    /// Like [`Self::bell`], for a caller that keeps it.
    #[must_use]
    pub fn shared_bell(&self) -> Option<Arc<OwnedFd>> {
        self.ring.as_ref().map(|(_, bell)| Arc::clone(bell))
    }

    /// Before waiting for a [`Watch`](crate::ConnectionWatch): as [`Self::may_sleep`], after what rang before.
    #[must_use]
    pub fn arm(&self) -> bool {
        if let Some(bell) = self.bell() {
            ring::answer(bell);
        }
        self.may_sleep()
    }

    /// Waits until something has arrived on the connection or, if requested, can be sent, or until `deadline` or before.
    ///
    /// # Errors
    /// As [`wait`](crate::wait).
    pub fn wait(
        &mut self,
        inbox: &Inbox,
        interest: PollInterest,
        alarm: &mut WakeTimer,
        deadline: Option<Instant>,
    ) -> Result<PollResult> {
        let socket = self.socket.as_fd();
        let Some((reader, bell)) = &self.ring else {
            return alarm.wait(socket, interest, deadline);
        };
        if inbox.wants_descriptor()
            || self.patience.look_for(LOOK_BEFORE_SLEEP, || Ok(!reader.is_empty()))?
            || !reader.may_sleep()
        {
            return Ok(PollResult::READABLE);
        }
        let waited = alarm.wait_for_bell(socket, PollInterest::READ, bell.as_fd(), deadline);
        reader.woke();
        let (mut ready, rung) = waited?;
        if rung {
            ring::answer(bell.as_fd());
            ready.readable = true;
            ready.writable = interest.writable;
        }
        Ok(ready)
    }
}

/// The direction that is sent.
#[derive(Debug)]
pub struct OutgoingSide {
    socket: UnixCarrier,
    ring: Option<RingWriter>,
    /// Bytes that are still sent over the socket, before the ring is used.
    over_socket: usize,
    /// The socket takes no more descriptors now.
    is_socket_full: bool,
}

impl OutgoingSide {
    /// As [`Carrier::send`].
    ///
    /// # Errors
    /// As there, and `Protocol` when the ring's words cannot be.
    pub fn send(&mut self, from: &mut Outbox) -> Result<SendResult> {
        let Some(writer) = &mut self.ring else {
            return self.socket.send(from);
        };
        self.is_socket_full = false;
        if self.over_socket > 0 {
            let before = from.len();
            let sent = self.socket.send_at_most(from, self.over_socket)?;
            self.over_socket -= before - from.len();
            if sent == SendResult::Blocked {
                self.is_socket_full = true;
                return Ok(SendResult::Blocked);
            }
        }
        let sent = through_ring(&self.socket, writer, from);
        writer.announce();
        if sent == Ok(BlockedSide::Socket) {
            self.is_socket_full = true;
        }
        sent.map(|blocked| match blocked {
            BlockedSide::Not => SendResult::All,
            BlockedSide::Socket | BlockedSide::Ring => SendResult::Blocked,
        })
    }

    /// Whether data that [`Self::send`] could not send waits for the socket; else the bell wakes the sender.
    #[must_use]
    pub fn waits_for_socket(&self) -> bool {
        self.ring.is_none() || self.is_socket_full
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &UnixCarrier {
        &self.socket
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockedSide {
    Not,
    Socket,
    Ring,
}

fn through_ring(socket: &UnixCarrier, writer: &mut RingWriter, from: &mut Outbox) -> Result<BlockedSide> {
    while let Some((piece, descriptor)) = from.piece() {
        if !writer.has_room()? {
            return Ok(BlockedSide::Ring);
        }
        if let Some(descriptor) = descriptor
            && !socket.send_descriptor(descriptor)?
        {
            return Ok(BlockedSide::Socket);
        }
        let count = writer.write(piece)?;
        if count == 0 {
            let cause = "its reader moved backwards";
            return Err(Error::new(Code::Protocol, "ring", cause));
        }
        from.gone(count);
    }
    Ok(BlockedSide::Not)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_behind_a_descriptor_whose_frame_never_came() {
        let (mut near, far) = LocalCarrier::pair().unwrap();
        let mut inbox = Inbox::new();
        far.socket().send_descriptor(near.as_fd()).unwrap();
        assert_eq!(near.receive(&mut inbox).unwrap(), ReceiveResult::Nothing);
        drop(far); // killed between the one and the other
        assert_eq!(near.receive(&mut inbox).unwrap(), ReceiveResult::End);
    }

    #[test]
    fn the_last_words_are_heard_with_their_descriptor() {
        let (mut near, mut far) = LocalCarrier::pair().unwrap();
        let (mut inbox, mut outbox) = (Inbox::new(), Outbox::new());
        let descriptor = near.as_fd().try_clone_to_owned().unwrap();
        let head = RingsHead::default();
        outbox
            .push_with_descriptor(descriptor, |out| Reply::Rings(head).encode(0, out))
            .unwrap();
        assert_eq!(far.send(&mut outbox).unwrap(), SendResult::All);
        drop(far);
        let descriptor = loop {
            assert_ne!(near.receive(&mut inbox).unwrap(), ReceiveResult::End);
            if let Some((_, descriptor)) = inbox.next_frame().unwrap() {
                break descriptor;
            }
        };
        assert!(descriptor.is_some());
        assert_eq!(near.receive(&mut inbox).unwrap(), ReceiveResult::End);
    }
}
