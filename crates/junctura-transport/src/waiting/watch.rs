//! A descriptor for foreign event loops, which also wait for descriptors unknown to this library.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use junctura_model::{Code, Result};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;

use crate::refused;

/// Readable when something has arrived on a connection, and after a [nudge](ConnectionWatch::nudge).
#[derive(Debug)]
pub struct ConnectionWatch {
    epoll: OwnedFd,
    nudge: OwnedFd,
}

impl ConnectionWatch {
    /// Watches a connection, whose bell rings only after [`Incoming::arm`](crate::IncomingSide::arm).
    ///
    /// # Errors
    /// `LimitExceeded` when this process may open no more descriptors, `Io` otherwise.
    pub fn new(socket: BorrowedFd<'_>, bell: Option<BorrowedFd<'_>>) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(cannot)?;
        let nudge = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(cannot)?;
        let watch = Self { epoll, nudge };
        watch.add(socket)?;
        if let Some(bell) = bell {
            watch.add(bell)?;
        }
        watch.add(watch.nudge.as_fd())?;
        Ok(watch)
    }

    fn add(&self, fd: BorrowedFd<'_>) -> Result<()> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN).map_err(cannot)
    }

    /// Makes it readable: another thread has received data from the connection.
    pub fn nudge(&self) {
        // It is full only when it is readable anyway.
        let _ = rustix::io::write(&self.nudge, &1_u64.to_ne_bytes());
    }

    /// Forgets that it was nudged.
    pub fn calm(&self) {
        let _ = rustix::io::read(&self.nudge, &mut [0; 8]);
    }
}

impl AsFd for ConnectionWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn cannot(errno: Errno) -> junctura_model::Error {
    let code = match errno {
        Errno::MFILE | Errno::NFILE => Code::LimitExceeded,
        _ => Code::Io,
    };
    refused(code, "descriptor to wait for", "cannot make one", errno)
}
