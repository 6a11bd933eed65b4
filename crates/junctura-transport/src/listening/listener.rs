//! Where a server is found.
//!
//! Binding to a path takes three steps: the lock next to it, which a living server would hold; the file that a killed
//! server left, removed under the lock; the socket, open to its user alone from the first moment. Clients of other users
//! get an error and are closed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use junctura_model::{Code, Error, Result};
use junctura_wire::Reply;
use rustix::fs::{FileType, Mode, fchmod, lstat, unlink};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{SocketFlags, accept_with, bind, connect, listen};
use rustix::process::{Pid, geteuid, getpid};

use crate::listening::directory;
use crate::listening::lock::NameLock;
use crate::unix::{open_socket, socket_address};
use crate::{Carrier, Outbox, ServerAddress, UnixCarrier, no_descriptors, refused};

/// Clients that may have connected and not yet been accepted (the kernel has a limit of its own, usually 4096 as well).
const BACKLOG: i32 = 4096;

/// A bound address. Dropped, it removes its files; in a forked child it leaves them alone.
#[derive(Debug)]
pub struct ServerListener {
    address: ServerAddress,
    socket: OwnedFd,
    file: Option<SocketFile>,
    /// Closed for a moment when this process may open no more descriptors, so that a client can receive the error.
    spare: Option<OwnedFd>,
    owner: Pid,
}

#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
    lock: NameLock,
}

impl ServerListener {
    /// Becomes the server of `address`. The file of a killed server is taken over.
    ///
    /// # Errors
    /// `AlreadyExists` when a living server (or a file that is no socket) is there; `Denied` when others could put a
    /// socket in its place; `InvalidArgument` for a path that is too long; `Io` when the system refuses.
    pub fn bind(address: &ServerAddress) -> Result<Self> {
        let to = socket_address(address)?;
        let path = address.path();
        if let (ServerAddress::Named(_), Some(parent)) = (address, path.as_deref().and_then(Path::parent)) {
            directory::make(parent)?;
        }
        let lock = path.as_deref().map(NameLock::take).transpose()?;
        if let Some(path) = &path {
            clear(address, path)?;
        }
        let socket = open_socket(address)?;
        let failed = |action: &str, errno: Errno| refused(code_of(errno), address.to_string(), action, errno);
        // Before the file exists: its mode is that of the socket.
        fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(|errno| failed("cannot set its mode", errno))?;
        bind(&socket, &to).map_err(|errno| failed("cannot bind", errno))?;
        let file = path.zip(lock).map(|(path, lock)| SocketFile {
            identity: identity(&path),
            path,
            lock,
        });
        let spare = fcntl_dupfd_cloexec(&socket, 0).ok();
        let listener = Self {
            address: address.clone(),
            socket,
            file,
            spare,
            owner: getpid(),
        };
        listen(&listener.socket, BACKLOG).map_err(|errno| failed("cannot listen", errno))?;
        Ok(listener)
    }

    /// Accepts the next client that has connected; `None`: no client waits.
    ///
    /// # Errors
    /// `Denied` for a client of another user and `LimitExceeded` when this process may open no more descriptors: that one
    /// client received the error and was closed, and the next call takes the next one. `Io` for anything else.
    pub fn accept(&mut self) -> Result<Option<UnixCarrier>> {
        self.accept_from(geteuid().as_raw())
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Sends a client the reason for a refusal, if that does not block, and closes its connection.
    pub fn refuse(&self, client: UnixCarrier, error: &Error) {
        say_no(client, error);
    }

    fn accept_from(&mut self, uid: u32) -> Result<Option<UnixCarrier>> {
        let carrier = match self.accept_socket() {
            Ok(socket) => UnixCarrier::over(socket)?,
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno @ (Errno::MFILE | Errno::NFILE)) => {
                // The system reports this even when no client waits.
                let error = Error::new(
                    Code::LimitExceeded,
                    self.address.to_string(),
                    no_descriptors("the server", errno).unwrap_or_default(),
                );
                if !self.turn_away(&error) {
                    return Ok(None);
                }
                return Err(error);
            }
            Err(errno) => {
                return Err(refused(
                    Code::Io,
                    self.address.to_string(),
                    "cannot accept a client",
                    errno,
                ));
            }
        };
        match carrier.peer().must_be(uid) {
            Ok(()) => Ok(Some(carrier)),
            Err(error) => {
                say_no(carrier, &error);
                Err(error)
            }
        }
    }

    fn accept_socket(&self) -> std::result::Result<OwnedFd, Errno> {
        loop {
            match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                // The client disconnected before its turn.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                other => return other,
            }
        }
    }

    /// Accepts one client with the spare descriptor, only to send it the error; returns whether there was one.
    fn turn_away(&mut self, error: &Error) -> bool {
        self.spare = None;
        let accepted = self.accept_socket();
        let was_there = !matches!(accepted, Err(Errno::AGAIN));
        if let Ok(Ok(carrier)) = accepted.map(UnixCarrier::over) {
            say_no(carrier, error);
        }
        self.spare = fcntl_dupfd_cloexec(&self.socket, 0).ok();
        was_there
    }
}

impl AsFd for ServerListener {
    /// Readable when a client waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for ServerListener {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        if self.owner != getpid() {
            return;
        }
        if identity(&file.path) == file.identity {
            let _ = unlink(&file.path);
        }
        file.lock.remove();
    }
}

/// Sends a client the reason for a refusal, if that does not block.
fn say_no(mut carrier: UnixCarrier, error: &Error) {
    let mut outbox = Outbox::new();
    if outbox.push(|out| Reply::Failed(error.into()).encode(0, out)).is_ok() {
        let _ = carrier.send(&mut outbox);
    }
}

/// Removes the socket that a killed server left at `path`. The caller holds the lock.
fn clear(address: &ServerAddress, path: &Path) -> Result<()> {
    let taken = |cause: &str| Err(Error::new(Code::AlreadyExists, path.display().to_string(), cause));
    match lstat(path) {
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => {
            return Err(refused(
                code_of(errno),
                path.display().to_string(),
                "cannot inspect the socket",
                errno,
            ));
        }
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Socket => return taken("it is not a socket"),
        Ok(_) => {}
    }
    // Another process that does not know our lock may listen there.
    match connect(open_socket(address)?, &socket_address(address)?) {
        Ok(()) | Err(Errno::AGAIN) => return taken("another process listens there"),
        Err(_) => {}
    }
    unlink(path).map_err(|errno| {
        refused(
            code_of(errno),
            path.display().to_string(),
            "cannot remove the socket",
            errno,
        )
    })
}

fn identity(path: &Path) -> (u64, u64) {
    lstat(path).map_or((0, 0), |stat| (stat.st_dev, stat.st_ino))
}

fn code_of(errno: Errno) -> Code {
    match errno {
        Errno::ADDRINUSE => Code::AlreadyExists,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Code::Denied,
        _ => Code::Io,
    }
}
