//! Wait sources: the events for which a thread or task waits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::connection::PoolConnection;
use crate::connection::state::ConnectionState;
use crate::verbs::bundle::BundleProgress;

/// A type that [`Pool::wait`](crate::Pool::wait) can wait for: a [`Follow`](crate::Follow), a
/// [`Subscription`](crate::Subscription), a [`Pending`](crate::Pending), a [`Bundle`](crate::Bundle), a
/// [`Timer`](crate::Timer).
///
/// ```
/// # use junctura::{Awaited, Pool, Timer};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # use std::time::Duration;
/// let follow = pool.follow("")?;
/// let timer = Timer::after(Duration::from_secs(60));
/// pool.offer([("name", "a")], b"")?;
/// let sources: [&dyn Awaited; 2] = [&follow, &timer];
/// assert_eq!(pool.wait(&sources, None)?, [0]);
/// # Ok(())
/// # }
/// ```
pub trait Awaited {
    /// Returns the event to wait for, in the current state.
    fn awaiting(&self) -> WaitSource;
}

/// An event to wait for. It does not borrow its source, and is valid until something is taken from the source.
///
/// ```
/// # use junctura::{Awaited, WaitSource, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut follow = pool.follow("")?;
/// let there = WaitSource::ready(); // always ready
/// assert_eq!(pool.wait(&[&there, &there], None)?, [0, 1]);
/// let comes = follow.awaiting(); // does not borrow the follow
/// pool.wait(&[&comes], None)?;
/// assert!(follow.try_next()?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct WaitSource(pub(crate) WaitKind);

#[derive(Clone)]
pub(crate) enum WaitKind {
    Ready,
    Letters(Arc<PoolConnection>, u64),
    /// The end of a bundle, which several threads may take.
    Bundle(Arc<BundleProgress>),
    Until(Instant),
    /// A slot, or the answer in a conversation; with the count of freed slots at the time when none was free.
    Memory(Arc<PoolConnection>, u64, u64),
    /// A flag that another thread sets before it wakes all waits.
    Raised(Arc<AtomicBool>),
    Never,
}

impl WaitSource {
    /// An event that has occurred already.
    #[must_use]
    pub fn ready() -> Self {
        Self(WaitKind::Ready)
    }

    /// An event that never occurs.
    pub(crate) fn never() -> Self {
        Self(WaitKind::Never)
    }

    /// A message in a conversation.
    pub(crate) fn letters(connection: &Arc<PoolConnection>, number: u64) -> Self {
        Self(WaitKind::Letters(Arc::clone(connection), number))
    }

    /// Returns the conversation of the event.
    pub(crate) fn conversation(&self) -> Option<(&Arc<PoolConnection>, u64)> {
        match &self.0 {
            WaitKind::Letters(connection, number) | WaitKind::Memory(connection, number, _) => {
                Some((connection, *number))
            }
            WaitKind::Bundle(progress) => Some((progress.connection(), progress.number())),
            _ => None,
        }
    }

    /// Returns whether slots that become free are such an event.
    pub(crate) fn is_for_slots(&self) -> bool {
        matches!(self.0, WaitKind::Memory(..))
    }

    pub(crate) fn is_ready(&self, state: &ConnectionState, now: Instant) -> bool {
        match &self.0 {
            WaitKind::Ready => true,
            WaitKind::Letters(_, number) => state.mail.is_due(*number),
            WaitKind::Bundle(progress) => progress.is_due(state),
            WaitKind::Until(at) => *at <= now,
            WaitKind::Memory(_, number, frees) => state.frees() != *frees || state.mail.is_due(*number),
            WaitKind::Raised(flag) => flag.load(Ordering::Acquire),
            WaitKind::Never => false,
        }
    }
}

impl fmt::Debug for WaitSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            WaitKind::Ready => f.write_str("Awaiting(nothing)"),
            WaitKind::Letters(_, number) => write!(f, "Awaiting(conversation {number})"),
            WaitKind::Bundle(progress) => write!(f, "Awaiting(bundle {})", progress.number()),
            WaitKind::Until(at) => write!(f, "Awaiting({at:?})"),
            WaitKind::Memory(_, number, _) => write!(f, "Awaiting(memory, or conversation {number})"),
            WaitKind::Raised(_) => f.write_str("Awaiting(another thread)"),
            WaitKind::Never => f.write_str("Awaiting(an event that cannot occur)"),
        }
    }
}

impl Awaited for WaitSource {
    fn awaiting(&self) -> WaitSource {
        self.clone()
    }
}
