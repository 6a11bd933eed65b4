//! Unix stream sockets.
//!
//! A descriptor is attached to the first byte of its frame. The kernel hands descriptors out in order, each not later than
//! the byte that it was attached to, and ends a receive behind the bytes that were sent with one. So counting is enough to
//! give each to its frame, and the inbox does that.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg, sendmsg,
    shutdown, socket_with, socketpair,
};
use rustix::process::{PidfdFlags, geteuid, pidfd_open};

use crate::{Address, Carrier, Inbox, Outbox, PeerCredentials, Received, Sent, directory, refused};

/// A connection over a unix stream socket. A clone is another handle to the same connection, for the owner of the other
/// direction; the connection ends when the last one is dropped, or at [`UnixCarrier::close`].
#[derive(Clone, Debug)]
pub struct UnixCarrier {
    socket: Arc<OwnedFd>,
    peer: PeerCredentials,
}

impl UnixCarrier {
    /// Connects to the server at `address`, without waiting.
    ///
    /// # Errors
    /// `Unavailable` when no server is there, or more clients ask at once than it has room for; `Denied` when it is not of
    /// this user, or others could have put it there; `InvalidArgument` for a path that is too long for a socket.
    pub fn connect(address: &Address) -> Result<Self> {
        if let (Address::Named(_), Some(path)) = (address, address.path()) {
            directory::check(path.parent().unwrap_or(&path)).map_err(|error| match error.code() {
                Code::Unavailable => Error::new(Code::Unavailable, address.to_string(), "no server runs there"),
                _ => error,
            })?;
        }
        let socket = open_socket(address)?;
        connect(&socket, &socket_address(address)?).map_err(|errno| {
            let (code, cause) = match errno {
                Errno::NOENT => (Code::Unavailable, "no server runs there"),
                Errno::CONNREFUSED => (Code::Unavailable, "no server runs there; one was killed"),
                Errno::AGAIN => (
                    Code::Unavailable,
                    "the server has more new clients than it can take at once",
                ),
                Errno::ACCESS | Errno::PERM => (Code::Denied, "it belongs to another user"),
                _ => (Code::Io, "cannot connect"),
            };
            refused(code, address.to_string(), cause, errno)
        })?;
        let carrier = Self::over(socket)?;
        carrier.peer.must_be(geteuid().as_raw())?;
        Ok(carrier)
    }

    /// Two ends of one connection within this process.
    ///
    /// # Errors
    /// `LimitExceeded` when this process may open no more descriptors, `Io` otherwise.
    pub fn pair() -> Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|errno| no_socket("socket pair", errno))?;
        Ok((Self::over(near)?, Self::over(far)?))
    }

    /// Uses a connected unix stream socket, set to non-blocking by whoever made it.
    ///
    /// # Errors
    /// `Io` when it is no such socket.
    pub fn over(socket: OwnedFd) -> Result<Self> {
        let peer = socket_peercred(&socket).map_err(|errno| refused(Code::Io, "", "cannot see who is there", errno))?;
        let pid = u32::try_from(peer.pid.as_raw_nonzero().get())
            .ok()
            .filter(|&pid| pid > 0);
        let peer = PeerCredentials {
            uid: peer.uid.as_raw(),
            gid: peer.gid.as_raw(),
            pid,
        };
        Ok(Self {
            socket: Arc::new(socket),
            peer,
        })
    }

    /// A descriptor that becomes readable when the peer's process has ended, even while a forked child of it keeps the
    /// connection open. `None` where the process has ended already, or has no number here.
    #[must_use]
    pub fn watch_peer(&self) -> Option<OwnedFd> {
        let pid = self
            .peer
            .pid
            .and_then(|pid| rustix::process::Pid::from_raw(pid as i32))?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    }

    /// Ends the connection in both directions, for all handles; who waits on it wakes up.
    pub fn close(&self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

impl Carrier for UnixCarrier {
    fn receive(&mut self, into: &mut Inbox) -> Result<Received> {
        let space = into.space();
        if space.is_empty() {
            return Ok(Received::Full);
        }
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = match retry_on_intr(|| recvmsg(&self.socket, &mut [IoSliceMut::new(space)], &mut control, flags))
        {
            Ok(received) => received,
            Err(Errno::AGAIN) => return Ok(Received::Nothing),
            // The peer closed before it had read all that we sent; what it sent has been received by now.
            Err(Errno::CONNRESET) => return Ok(Received::End),
            Err(errno) => return Err(refused(Code::Io, "", "cannot receive", errno)),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                descriptors.for_each(|descriptor| into.push_descriptor(descriptor));
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            let cause = "some were lost: the peer sent more than it may, or this process may open no more";
            return Err(Error::new(Code::LimitExceeded, "descriptors", cause));
        }
        into.filled(received.bytes);
        Ok(if received.bytes == 0 {
            Received::End
        } else {
            Received::Bytes(received.bytes)
        })
    }

    fn send(&mut self, from: &mut Outbox) -> Result<Sent> {
        while let Some((piece, descriptor)) = from.piece() {
            match retry_on_intr(|| send_piece(&self.socket, piece, descriptor)) {
                Ok(bytes) => from.gone(bytes),
                Err(Errno::AGAIN) => return Ok(Sent::Blocked),
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    return Err(Error::new(Code::Disconnected, "", "the peer has closed the connection"));
                }
                Err(errno @ Errno::TOOMANYREFS) => {
                    let action = "too many are on their way to peers that do not read";
                    return Err(refused(Code::LimitExceeded, "descriptors", action, errno));
                }
                Err(errno) => return Err(refused(Code::Io, "", "cannot send", errno)),
            }
        }
        Ok(Sent::All)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn peer(&self) -> &PeerCredentials {
        &self.peer
    }
}

fn send_piece(socket: &OwnedFd, piece: &[u8], descriptor: Option<BorrowedFd<'_>>) -> std::result::Result<usize, Errno> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let Some(descriptor) = descriptor else {
        return rustix::net::send(socket, piece, flags);
    };
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let descriptors = [descriptor];
    let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
    debug_assert!(fits, "there is room for one");
    sendmsg(socket, &[IoSlice::new(piece)], &mut control, flags)
}

/// A new socket, not yet connected or bound.
pub(crate) fn open_socket(address: &Address) -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(|errno| no_socket(&address.to_string(), errno))
}

fn no_socket(subject: &str, errno: Errno) -> Error {
    let code = if matches!(errno, Errno::MFILE | Errno::NFILE) {
        Code::LimitExceeded
    } else {
        Code::Io
    };
    refused(code, subject, "cannot open a socket", errno)
}

/// The address as the kernel takes it.
pub(crate) fn socket_address(address: &Address) -> Result<SocketAddrUnix> {
    let built = match (address, address.path()) {
        (Address::Abstract(name), _) => SocketAddrUnix::new_abstract_name(name.as_str().as_bytes()),
        (_, Some(path)) => SocketAddrUnix::new(path),
        (_, None) => Err(Errno::INVAL),
    };
    built.map_err(|errno| {
        let cause = "its path is no path of a socket (at most 107 bytes, without NUL)";
        refused(Code::InvalidArgument, address.to_string(), cause, errno)
    })
}
