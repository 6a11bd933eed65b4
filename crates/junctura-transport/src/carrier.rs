//! What every carrier does, whatever it is made of.

use std::os::fd::BorrowedFd;

use junctura_model::{Code, Error, Result};

use crate::{Inbox, Outbox};

/// One connection. Neither direction ever waits.
///
/// Each direction has one owner, the holder of its [`Inbox`] or [`Outbox`]; one owner may hold both.
pub trait Carrier: Send {
    /// Takes what has come, at most once: call it again after [`ReceiveResult::Bytes`], or when the carrier is readable.
    ///
    /// # Errors
    /// `Protocol` or `LimitExceeded` when descriptors came that may not come or were lost on the way; `Io` for anything
    /// that the system refuses. The connection is of no more use then.
    fn receive(&mut self, into: &mut Inbox) -> Result<ReceiveResult>;

    /// Sends as much as can go at once.
    ///
    /// # Errors
    /// `Disconnected` when the peer is known to be gone (what it said before can still be received); `LimitExceeded` when
    /// the system carries no more descriptors; `Io` for anything else that it refuses.
    fn send(&mut self, from: &mut Outbox) -> Result<SendResult>;

    /// What to wait on: readable when something has come, writable when something can go. Where there is a [bell](Self::bell),
    /// that one, too.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// What else to wait on: readable when something has come, or something can go again.
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Before waiting for something to come: whether nothing is there, so that the one or the other will tell. If not, receive.
    fn may_sleep(&mut self) -> bool {
        true
    }

    /// After waiting: takes note of the bell, so that it can ring again. Look in both directions after that: it may have rung
    /// for either.
    fn woke(&mut self) {}

    /// Whether what could not be sent goes when [`Self::as_fd`] is writable; else the bell tells.
    fn waits_for_socket(&self) -> bool {
        true
    }

    /// Who is at the other end.
    fn peer(&self) -> &PeerCredentials;
}

/// What a [`Carrier::receive`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveResult {
    /// So many bytes came.
    Bytes(usize),
    /// Nothing is there now.
    Nothing,
    /// The inbox takes no more before frames are taken out of it.
    Full,
    /// The peer has closed, and everything that it had sent was received. [`Inbox::finish`] tells whether it ended well.
    End,
}

/// What a [`Carrier::send`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// The outbox is empty.
    All,
    /// The rest goes when the carrier is writable.
    Blocked,
}

/// Who is at the other end, as the kernel saw it when the connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Process; `None` where it has no number here (it lives in another container).
    pub pid: Option<u32>,
}

impl PeerCredentials {
    /// Refuses a peer of another user than `uid`.
    pub(crate) fn must_be(&self, uid: u32) -> Result<()> {
        if self.uid == uid {
            return Ok(());
        }
        let pid = self.pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
        Err(Error::new(
            Code::Denied,
            format!("process {pid}"),
            format!("it runs as user {}, and this pool serves user {uid} alone", self.uid),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_is_let_in() {
        let peer = PeerCredentials {
            uid: 1000,
            gid: 100,
            pid: Some(7),
        };
        assert_eq!(peer.must_be(1000), Ok(()));
        let error = peer.must_be(0).unwrap_err();
        assert_eq!((error.code(), error.subject()), (Code::Denied, "process 7"));
        assert_eq!(
            PeerCredentials { pid: None, ..peer }.must_be(1).unwrap_err().subject(),
            "process unknown"
        );
    }
}
