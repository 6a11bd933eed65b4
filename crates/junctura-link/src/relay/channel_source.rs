//! The source of channels for a link that several clients share.
//!
//! At the client's end a listener lets processes of this machine in; at the server's end each channel that the other end
//! begins gets a connection of its own to the server.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctura_model::{Code, Error, Result};
use junctura_transport::{LocalCarrier, ServerAddress, ServerListener, UnixCarrier};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use crate::refused;

/// Ends a thread that waits for clients.
#[derive(Debug)]
pub(crate) struct AcceptStop {
    has_come: AtomicBool,
    bell: OwnedFd,
}

impl AcceptStop {
    pub(crate) fn new() -> Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| refused(Code::LimitExceeded, "eventfd", "cannot be opened", errno))?;
        Ok(Self {
            has_come: AtomicBool::new(false),
            bell,
        })
    }

    pub(crate) fn come(&self) {
        self.has_come.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    pub(crate) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Acquire)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) enum ChannelSource {
    /// The client's end: processes that connect here are admitted, until it is stopped.
    In {
        listener: ServerListener,
        stop: Arc<AcceptStop>,
    },
    /// The server's end: clients admitted at the other one are connected to this pool.
    Out(ServerAddress),
}

impl ChannelSource {
    /// The next client of this machine; `None`: no client waits.
    pub(crate) fn next(&mut self) -> Result<Option<UnixCarrier>> {
        let Self::In { listener, .. } = self else {
            return Ok(None);
        };
        loop {
            match listener.accept() {
                Ok(next) => return Ok(next),
                // The client got the error.
                Err(error) if matches!(error.code(), Code::Denied | Code::LimitExceeded) => {
                    tracing::warn!(%error, "a client was refused");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a client that has connected the reason for its refusal.
    pub(crate) fn refuse(&mut self, carrier: UnixCarrier, error: &Error) {
        if let Self::In { listener, .. } = self {
            listener.refuse(carrier, error);
        }
    }

    /// Refuses all waiting clients: there is no link.
    pub(crate) fn refuse_all(&mut self, error: &Error) {
        let Self::In { listener, .. } = self else { return };
        while let Ok(Some(carrier)) = listener.accept() {
            listener.refuse(carrier, error);
        }
    }

    /// The server's end: a connection for a channel that has begun.
    pub(crate) fn open(&mut self) -> Result<LocalCarrier> {
        match self {
            Self::Out(pool) => UnixCarrier::connect(pool).map(LocalCarrier::new),
            Self::In { .. } => Err(Error::new(Code::Protocol, "channel of a link", "it has no destination")),
        }
    }

    /// Whether no more clients are admitted, and the admitted ones have to end.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Self::In { stop, .. } if stop.has_come())
    }

    /// Returns the descriptors that wake a waiting thread.
    pub(crate) fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        let both = match self {
            Self::In { listener, stop } => [
                Some(PollFd::new(listener, PollFlags::IN)),
                Some(PollFd::new(&stop.bell, PollFlags::IN)),
            ],
            Self::Out(_) => [None, None],
        };
        both.into_iter().flatten()
    }
}
