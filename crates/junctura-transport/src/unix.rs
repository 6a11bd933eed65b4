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
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg, sendmsg,
    shutdown, socket_with, socketpair,
};
use rustix::process::{PidfdFlags, geteuid, pidfd_open};

use crate::listening::directory;
use crate::waiting::poll::has_ended;
use crate::{Carrier, Inbox, Outbox, PeerCredentials, ReceiveResult, SendResult, ServerAddress, refused};

/// A connection over a unix stream socket. A clone is another handle to the same connection, for the owner of the other
/// direction; the connection ends when the last one is dropped, or at [`UnixCarrier::close`].
#[derive(Clone, Debug)]
pub struct UnixCarrier {
    socket: Arc<OwnedFd>,
    peer: PeerCredentials,
}

/// Returns the cause of an error for an address without a server.
fn without_server(address: &ServerAddress, since: &str) -> String {
    format!("no server runs there{since}; `junctura pool serve --pool {address}` starts one")
}

impl UnixCarrier {
    /// Connects to the server at `address`, without waiting.
    ///
    /// # Errors
    /// `Unavailable` when no server is there, or more clients ask at once than it has room for; `Denied` when it is not of
    /// this user, or others could have put it there; `InvalidArgument` for a path that is too long for a socket.
    pub fn connect(address: &ServerAddress) -> Result<Self> {
        if let (ServerAddress::Named(_), Some(path)) = (address, address.path()) {
            directory::check(path.parent().unwrap_or(&path)).map_err(|error| match error.code() {
                Code::Unavailable => Error::new(Code::Unavailable, address.to_string(), without_server(address, "")),
                _ => error,
            })?;
        }
        let socket = open_socket(address)?;
        connect(&socket, &socket_address(address)?).map_err(|errno| {
            let (code, cause) = match errno {
                Errno::NOENT | Errno::CONNREFUSED => {
                    let killed = if errno == Errno::NOENT { "" } else { " any more" };
                    let cause = without_server(address, killed);
                    return Error::new(Code::Unavailable, address.to_string(), cause);
                }
                Errno::AGAIN => (
                    Code::Unavailable,
                    "the server has more new clients than it can accept at once",
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

    /// Uses a connected unix stream socket, which its maker has set to non-blocking.
    ///
    /// # Errors
    /// `Io` when it is no such socket.
    pub fn over(socket: OwnedFd) -> Result<Self> {
        let peer = PeerCredentials::of(&socket)?;
        Ok(Self {
            socket: Arc::new(socket),
            peer,
        })
    }

    /// Returns a descriptor that becomes readable when the peer's process has ended, even while a forked child of the peer
    /// keeps the connection open. `None` where the process has ended already, or has no number here.
    #[must_use]
    pub fn watch_peer(&self) -> Option<OwnedFd> {
        let pid = self
            .peer
            .pid
            .and_then(|pid| rustix::process::Pid::from_raw(pid as i32))?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    }

    /// Ends the connection in both directions, for all handles; wakes threads that wait on it.
    pub fn close(&self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

/// The part of a socket that a connection with rings still needs.
impl UnixCarrier {
    /// Receives the descriptor that a frame in the ring announces.
    ///
    /// # Errors
    /// `Protocol` when none was sent.
    pub(crate) fn receive_descriptor(&mut self, into: &mut Inbox) -> Result<ReceiveResult> {
        let mut byte = [0u8; 1];
        let (bytes, descriptor) = self.receive_piece(&mut byte)?;
        match (bytes, descriptor) {
            (Some(1), Some(descriptor)) => {
                into.push_descriptor(descriptor);
                Ok(ReceiveResult::Bytes(0))
            }
            (Some(0), _) => Ok(ReceiveResult::End),
            _ => {
                let cause = "a frame arrived without the descriptor that it announces";
                Err(Error::new(Code::Protocol, "descriptors", cause))
            }
        }
    }

    /// Whether the peer has closed, when nothing is in the ring.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub(crate) fn receive_end(&mut self) -> Result<ReceiveResult> {
        let mut byte = [0u8; 1];
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        match retry_on_intr(|| rustix::net::recv(&self.socket, &mut byte[..], flags)) {
            Ok((0, _)) | Err(Errno::CONNRESET) => Ok(ReceiveResult::End),
            // A descriptor is available, ahead of its frame. If the peer crashed in between, the frame does not arrive.
            Ok(_) if has_ended(self.socket.as_fd())? => Ok(ReceiveResult::End),
            Ok(_) | Err(Errno::AGAIN) => Ok(ReceiveResult::Nothing),
            Err(errno) => Err(refused(Code::Io, "", "cannot receive", errno)),
        }
    }

    /// Sends a descriptor ahead of the frame that announces it; false: the socket is full.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    pub(crate) fn send_descriptor(&self, descriptor: BorrowedFd<'_>) -> Result<bool> {
        match retry_on_intr(|| send_piece(&self.socket, &[0], Some(descriptor))) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => Err(cannot_send(errno)),
        }
    }

    /// As [`Carrier::send`], for the next `bytes` alone, which end with a frame.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn send_at_most(&mut self, from: &mut Outbox, bytes: usize) -> Result<SendResult> {
        let end = from.len().saturating_sub(bytes);
        while from.len() > end
            && let Some((piece, descriptor)) = from.piece()
        {
            let piece = &piece[..piece.len().min(from.len() - end)];
            match retry_on_intr(|| send_piece(&self.socket, piece, descriptor)) {
                Ok(bytes) => from.gone(bytes),
                Err(Errno::AGAIN) => return Ok(SendResult::Blocked),
                Err(errno) => return Err(cannot_send(errno)),
            }
        }
        Ok(SendResult::All)
    }

    /// Returns the number of bytes (`None`: nothing is available) and a descriptor, if one arrived.
    fn receive_piece(&mut self, space: &mut [u8]) -> Result<(Option<usize>, Option<OwnedFd>)> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = match retry_on_intr(|| recvmsg(&self.socket, &mut [IoSliceMut::new(space)], &mut control, flags))
        {
            Ok(received) => received,
            Err(Errno::AGAIN) => return Ok((None, None)),
            // The peer closed before it had read all that we sent; what it sent has been received by now.
            Err(Errno::CONNRESET) => return Ok((Some(0), None)),
            Err(errno) => return Err(refused(Code::Io, "", "cannot receive", errno)),
        };
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        if received.flags.contains(ReturnFlags::CTRUNC) {
            let cause = "some were lost: the peer sent too many, or this process has reached its limit (`ulimit -n`)";
            return Err(Error::new(Code::LimitExceeded, "descriptors", cause));
        }
        Ok((Some(received.bytes), descriptor))
    }
}

impl Carrier for UnixCarrier {
    fn receive(&mut self, into: &mut Inbox) -> Result<ReceiveResult> {
        let space = into.space();
        if space.is_empty() {
            return Ok(ReceiveResult::Full);
        }
        let (bytes, descriptor) = self.receive_piece(space)?;
        if let Some(descriptor) = descriptor {
            into.push_descriptor(descriptor);
        }
        let Some(bytes) = bytes else {
            return Ok(ReceiveResult::Nothing);
        };
        into.filled(bytes);
        Ok(if bytes == 0 {
            ReceiveResult::End
        } else {
            ReceiveResult::Bytes(bytes)
        })
    }

    fn send(&mut self, from: &mut Outbox) -> Result<SendResult> {
        self.send_at_most(from, from.len())
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn peer(&self) -> &PeerCredentials {
        &self.peer
    }
}

fn cannot_send(errno: Errno) -> Error {
    match errno {
        Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => {
            Error::new(Code::Disconnected, "", "the peer has closed the connection")
        }
        Errno::TOOMANYREFS => {
            let action = "too many are in flight to peers that do not read";
            refused(Code::LimitExceeded, "descriptors", action, errno)
        }
        errno => refused(Code::Io, "", "cannot send", errno),
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
pub(crate) fn open_socket(address: &ServerAddress) -> Result<OwnedFd> {
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
pub(crate) fn socket_address(address: &ServerAddress) -> Result<SocketAddrUnix> {
    let built = match (address, address.path()) {
        (ServerAddress::Abstract(name), _) => SocketAddrUnix::new_abstract_name(name.as_str().as_bytes()),
        (_, Some(path)) => SocketAddrUnix::new(path),
        (_, None) => Err(Errno::INVAL),
    };
    built.map_err(|errno| {
        let cause = "its path is not a valid socket path (at most 107 bytes, without NUL)";
        refused(Code::InvalidArgument, address.to_string(), cause, errno)
    })
}
