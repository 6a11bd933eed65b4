//! The interface of every carrier.

use std::os::fd::BorrowedFd;

use junctura_model::{Code, Error, Result};

use crate::{Inbox, Outbox};

/// One connection. Neither direction ever waits.
///
/// Each direction has one owner, the holder of its [`Inbox`] or [`Outbox`]; one owner may hold both.
pub trait Carrier: Send {
    /// Receives at most once what has arrived: call it again after [`ReceiveResult::Bytes`], or when the carrier is
    /// readable.
    ///
    /// # Errors
    /// `Protocol` or `LimitExceeded` when unexpected descriptors arrived or descriptors were lost; `Io` for anything that
    /// the system refuses. The connection is unusable then.
    fn receive(&mut self, into: &mut Inbox) -> Result<ReceiveResult>;

    /// Sends as much as possible without blocking.
    ///
    /// # Errors
    /// `Disconnected` when the peer is known to have closed (its earlier data can still be received); `LimitExceeded` when
    /// the system carries no more descriptors; `Io` for anything else that it refuses.
    fn send(&mut self, from: &mut Outbox) -> Result<SendResult>;

    /// Returns the descriptor to wait on: readable when something has arrived, writable when something can be sent. Where
    /// there is a [bell](Self::bell), wait on that one, too.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// Returns the further descriptor to wait on: readable when something has arrived, or something can be sent again.
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Called before waiting: returns whether nothing has arrived, so that a descriptor will wake the caller. If not,
    /// receive.
    fn may_sleep(&mut self) -> bool {
        true
    }

    /// After waiting: takes note of the bell, so that it can ring again. Look in both directions after that: it may have rung
    /// for either.
    fn woke(&mut self) {}

    /// Whether unsent data can be sent when [`Self::as_fd`] is writable; else the bell signals it.
    fn waits_for_socket(&self) -> bool {
        true
    }

    /// Returns the credentials of the peer.
    fn peer(&self) -> &PeerCredentials;
}

/// The result of a [`Carrier::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveResult {
    /// So many bytes arrived.
    Bytes(usize),
    /// Nothing is there now.
    Nothing,
    /// The inbox takes no more before frames are removed.
    Full,
    /// The peer has closed, and everything that it had sent was received. [`Inbox::finish`] returns whether it ended well.
    End,
}

/// The result of a [`Carrier::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// The outbox is empty.
    All,
    /// The rest can be sent when the carrier is writable.
    Blocked,
}

/// The credentials of the peer, as the kernel recorded them when the connection was made.
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
            format!("it runs as user {}, and this pool serves only user {uid}", self.uid),
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
