//! One connection, shared by all threads of a process without a background thread.
//!
//! A thread that has to wait while no other thread reads becomes the **reader**: it waits on the socket, dispatches
//! messages to mailboxes, wakes their owners, and passes the reader role on when its own answer has arrived. The other
//! threads sleep until they are woken. Requests are batched in the outbox and sent when there are many, or before a
//! thread waits. If the socket is full, the writer waits for space and reads meanwhile, so two full sockets cannot
//! deadlock.
//!
//! There is one lock. It is held briefly, never during a wait. A forked child must not send anything on its parent's
//! connection: every send and every wait checks the process first.

pub(crate) mod address;
pub(crate) mod after_fork;
mod conversation;
mod dispatch;
pub(crate) mod handshake;
pub(crate) mod in_flight;
pub(crate) mod note;
pub(crate) mod offer_acks;
pub(crate) mod schemas;
pub(crate) mod segments;
pub(crate) mod state;
pub(crate) mod stream;
mod tasks;
mod waiting;

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use junctura_memory::ProcessMark;
use junctura_model::version::Version;
use junctura_model::{Code, Error, Result, SameKey, Schema};
use junctura_transport::{Inbox, IncomingSide, LocalCarrier, UnixCarrier, WakeTimer};
use junctura_wire::body;

use crate::connection::address::CarrierGuard;
use crate::connection::handshake::{Home, ServerGreeting};
use crate::connection::segments::SegmentMaps;
use crate::connection::state::{ConnectionState, forked};
use crate::store_fallback::StoreReader;
use crate::target::Target;
pub(crate) use conversation::unexpected;
#[cfg(feature = "async")]
pub(crate) use tasks::DriverState;
pub use tasks::TaskPlace;
#[cfg(feature = "async")]
pub(crate) use tasks::flush_beside;
pub(crate) use tasks::{TaskWakers, WaitingTasks, end_by, rouser};
pub(crate) use waiting::ThreadWait;

/// Called when a wait is interrupted; an error ends the wait.
pub(crate) type Hook = Arc<dyn Fn() -> Result<()> + Send + Sync>;

pub(crate) type Guard<'a> = MutexGuard<'a, ConnectionState>;

pub(crate) struct PoolConnection {
    pub(crate) greeting: ServerGreeting,
    pub(crate) offer_timeout: Option<Duration>,
    hook: Option<Hook>,
    process: ProcessMark,
    state: Mutex<ConnectionState>,
    /// Only the reader uses it.
    reader: Mutex<ConnectionReader>,
    socket: UnixCarrier,
    bell: Option<Arc<OwnedFd>>,
    /// Dropped last: the outbox is sent before.
    beside: CarrierGuard,
    /// An embedded server runs as long as this process has a connection to it.
    #[cfg_attr(not(feature = "store"), expect(dead_code, reason = "it is only kept alive"))]
    home: Arc<Home>,
    /// The store behind the pool, for offers that are to be rejected if it has their key.
    depot: OnceLock<Arc<StoreReader>>,
}

struct ConnectionReader {
    incoming: IncomingSide,
    inbox: Inbox,
    alarm: WakeTimer,
}

impl PoolConnection {
    /// Wraps a connection after the server's greeting; `inbox` has the bytes that followed it.
    ///
    /// # Errors
    /// As [`WakeTimer::new`].
    pub(crate) fn new(
        (carrier, beside): (LocalCarrier, CarrierGuard),
        inbox: Inbox,
        greeting: ServerGreeting,
        segments: SegmentMaps,
        offer_timeout: Option<Duration>,
        hook: Option<Hook>,
        home: Arc<Home>,
    ) -> Result<Self> {
        let socket = carrier.socket().clone();
        let (incoming, outgoing) = carrier.split();
        let bell = incoming.shared_bell();
        Ok(Self {
            greeting,
            offer_timeout,
            hook,
            process: ProcessMark::here(),
            state: Mutex::new(ConnectionState::new(outgoing, segments)),
            reader: Mutex::new(ConnectionReader {
                incoming,
                inbox,
                alarm: WakeTimer::new()?,
            }),
            socket,
            bell,
            beside,
            home,
            depot: OnceLock::new(),
        })
    }

    /// Checks a schema number that the server has just sent.
    pub(crate) fn known_schema(&self, number: u16) -> Result<&Arc<Schema>> {
        let schema = self.greeting.schemas.get(number);
        schema.ok_or_else(|| {
            Error::new(
                Code::Protocol,
                format!("schema {number}"),
                "an object has it, but the pool does not",
            )
        })
    }

    /// Returns whether it uses a network.
    pub(crate) fn is_network(&self) -> bool {
        self.beside.is_network()
    }

    /// Returns its transport, and the reason for the choice.
    pub(crate) fn route(&self) -> String {
        self.beside.route()
    }

    pub(crate) fn version(&self, sequence: u64) -> Version {
        Version {
            incarnation: self.greeting.incarnation,
            sequence,
        }
    }

    /// Returns the target in the form of a request.
    pub(crate) fn resolve<'a>(&self, target: &'a Target<'_>) -> Result<body::TargetBody<'a>> {
        target.resolve(&self.greeting.schemas, self.greeting.default_schema)
    }

    /// Sets the store behind the pool.
    pub(crate) fn put_before(&self, depot: Option<&Arc<StoreReader>>) {
        if let Some(depot) = depot {
            // It is set once.
            let _ = self.depot.set(Arc::clone(depot));
        }
    }

    /// Returns the store behind the pool, if an offer of this schema is to be rejected when the store has the key.
    pub(crate) fn depot_of_rejecting(&self, schema: u16) -> Option<&Arc<StoreReader>> {
        let rejects = self.schema(schema).on_same_key() == SameKey::Reject;
        self.depot.get().filter(|_| rejects)
    }

    /// Returns the embedded server, which another connection of this process also keeps running.
    #[cfg(feature = "store")]
    pub(crate) fn home(&self) -> Arc<Home> {
        Arc::clone(&self.home)
    }

    /// Returns whether this is a forked child of the process that connected.
    pub(crate) fn is_inherited(&self) -> bool {
        !self.process.is_here()
    }

    /// Returns the schema with this number; numbers are checked on arrival.
    pub(crate) fn schema(&self, number: u16) -> &Arc<Schema> {
        let schema = self.greeting.schemas.get(number);
        schema.unwrap_or_else(|| unreachable!("the pool has schema {number}"))
    }

    /// # Errors
    /// `Closed` in a forked child, if another thread of the parent held the lock at the fork.
    pub(crate) fn lock(&self) -> Result<Guard<'_>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if self.is_inherited() => Err(forked()),
            Err(TryLockError::WouldBlock) => Ok(self.relock()),
        }
    }

    fn relock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PoolConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Connection(client {} of {})",
            self.greeting.client, self.greeting.server
        )
    }
}

impl Drop for PoolConnection {
    fn drop(&mut self) {
        // A forked child closes the descriptor and sends nothing: the parent continues.
        if self.is_inherited() {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.leave();
        // A driver finds that there is nothing left to read.
        state.nudge();
    }
}
