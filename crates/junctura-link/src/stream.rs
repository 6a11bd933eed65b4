//! The stream of bytes between two machines: a TCP socket, in the clear or within TLS. Nothing here waits.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use rustix::event::{PollFlags, Timespec};
use rustix::net::sockopt;

use crate::auth::peer_user::{self, AskingSide};
use crate::auth::tls::TlsSession;
use crate::refused;

/// The requested size of a socket's buffers (the system may give less): enough for a long path at a high rate.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// A connection whose two directions are read and written as far as that is possible at once.
pub(crate) struct LinkStream {
    socket: StreamSocket,
    tls: Option<TlsSession>,
}

/// The carrier of the bytes.
pub(crate) enum StreamSocket {
    /// Shared with code that may end it.
    Tcp(Arc<TcpStream>),
    /// For tests, which control what arrives, and when.
    #[cfg(any(test, feature = "stepped"))]
    Unix(std::os::unix::net::UnixStream),
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    Bytes(usize),
    Nothing,
    End,
}

impl LinkStream {
    /// Takes over a connected socket.
    pub(crate) fn new(socket: impl Into<Arc<TcpStream>>, tls: Option<TlsSession>) -> Result<Self> {
        let socket = socket.into();
        socket
            .set_nonblocking(true)
            .and_then(|()| socket.set_nodelay(true))
            .map_err(|error| refused(Code::Io, "socket", "cannot set it up", error))?;
        Ok(Self::of(StreamSocket::Tcp(socket), tls))
    }

    /// Gives the socket the buffers of a link. Not before its peer is let in: a stranger could fill them.
    pub(crate) fn widen(&self) {
        // Refused, it works with less.
        let _ = sockopt::set_socket_send_buffer_size(self, SOCKET_BUFFER_BYTES);
        let _ = sockopt::set_socket_recv_buffer_size(self, SOCKET_BUFFER_BYTES);
    }

    /// Takes over a socket of this machine.
    #[cfg(any(test, feature = "stepped"))]
    pub(crate) fn within(socket: std::os::unix::net::UnixStream, tls: Option<TlsSession>) -> Result<Self> {
        socket
            .set_nonblocking(true)
            .map_err(|error| refused(Code::Io, "socket", "cannot set it up", error))?;
        Ok(Self::of(StreamSocket::Unix(socket), tls))
    }

    fn of(socket: StreamSocket, tls: Option<TlsSession>) -> Self {
        Self { socket, tls }
    }

    /// Returns the events to wait for, beside data to send.
    pub(crate) fn interest(&self, wants_to_send: bool) -> PollFlags {
        let pending = self.tls.as_ref().is_some_and(TlsSession::wants_write);
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::OUT, wants_to_send || pending);
        flags
    }

    /// Refuses a peer of another user of this host, and one whose user cannot be proven.
    ///
    /// # Errors
    /// As [`peer_user::must_be_own`].
    pub(crate) fn peer_must_be_own(&self, asking: AskingSide) -> Result<()> {
        match &self.socket {
            StreamSocket::Tcp(socket) => peer_user::must_be_own(socket, asking),
            #[cfg(any(test, feature = "stepped"))]
            StreamSocket::Unix(_) => Ok(()),
        }
    }

    /// Whether it is within TLS.
    pub(crate) fn is_secret(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads arrived data into `into`, in order.
    pub(crate) fn read(&mut self, into: &mut [IoSliceMut<'_>]) -> Result<ReadOutcome> {
        match &mut self.tls {
            None => came(self.socket.read_vectored(into)),
            Some(tls) => tls.read(&mut self.socket, into),
        }
    }

    /// Writes as much of `from` as possible without blocking, and returns the number of bytes; 0: the socket takes no more
    /// now.
    pub(crate) fn write(&mut self, from: &[IoSlice<'_>]) -> Result<usize> {
        match &mut self.tls {
            None => went(self.socket.write_vectored(from)),
            Some(tls) => tls.write(&mut self.socket, from),
        }
    }

    /// Sends what TLS has kept back; true: nothing is left.
    pub(crate) fn flush(&mut self) -> Result<bool> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => tls.flush(&mut self.socket),
        }
    }

    /// Declares that nothing more will be sent.
    pub(crate) fn end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.end(&mut self.socket);
        }
        let _ = match &self.socket {
            StreamSocket::Tcp(socket) => socket.shutdown(std::net::Shutdown::Write),
            #[cfg(any(test, feature = "stepped"))]
            StreamSocket::Unix(socket) => socket.shutdown(std::net::Shutdown::Write),
        };
    }

    /// Waits until the socket has the state of `flags`, or until `timeout`.
    pub(crate) fn wait(&self, flags: PollFlags, timeout: &Timespec) -> Result<()> {
        let mut one = [rustix::event::PollFd::new(self, flags)];
        match rustix::event::poll(&mut one, Some(timeout)) {
            Ok(_) => Ok(()),
            Err(rustix::io::Errno::INTR) => Err(Error::new(Code::Interrupted, "", "a signal arrived")),
            Err(errno) => Err(refused(Code::Io, "", "cannot wait", errno)),
        }
    }
}

impl AsFd for LinkStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            StreamSocket::Tcp(socket) => socket.as_fd(),
            #[cfg(any(test, feature = "stepped"))]
            StreamSocket::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Read for StreamSocket {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(socket) => (&**socket).read_vectored(into),
            #[cfg(any(test, feature = "stepped"))]
            Self::Unix(socket) => socket.read_vectored(into),
        }
    }
}

impl Write for StreamSocket {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        self.write_vectored(&[IoSlice::new(from)])
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(socket) => (&**socket).write_vectored(from),
            #[cfg(any(test, feature = "stepped"))]
            Self::Unix(socket) => socket.write_vectored(from),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The result of a read that does not wait.
pub(crate) fn came(read: std::io::Result<usize>) -> Result<ReadOutcome> {
    match read {
        Ok(0) => Ok(ReadOutcome::End),
        Ok(bytes) => Ok(ReadOutcome::Bytes(bytes)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(ReadOutcome::Nothing),
            _ => Err(gone(&error)),
        },
    }
}

/// The result of a write that does not wait; 0: there is no room now.
pub(crate) fn went(written: std::io::Result<usize>) -> Result<usize> {
    match written {
        Ok(bytes) => Ok(bytes),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(0),
            _ => Err(gone(&error)),
        },
    }
}

fn gone(error: &std::io::Error) -> Error {
    Error::new(Code::Disconnected, "", format!("the connection broke: {error}"))
}
