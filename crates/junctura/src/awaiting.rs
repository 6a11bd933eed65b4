//! What somebody waits for, apart from how.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::connection::Connection;
use crate::connection::state::State;
use crate::verbs::bundle::BundleProgress;

/// What can be waited for beside others with [`Pool::wait`](crate::Pool::wait): a [`Follow`](crate::Follow), a
/// [`Subscription`](crate::Subscription), a [`Pending`](crate::Pending), a [`Bundle`](crate::Bundle),
/// a [`Timer`](crate::Timer).
pub trait Awaited {
    /// What to wait for, as things stand now.
    fn awaiting(&self) -> Awaiting;
}

/// What somebody waits for. It does not borrow what it was made from, and holds for as long as nothing was taken from that.
///
/// ```
/// # use junctura::{Awaited, Awaiting, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// let mut follow = pool.follow("")?;
/// let there = Awaiting::ready(); // whatever else comes, this one is ready
/// assert_eq!(pool.wait(&[&there, &there], None)?, [0, 1]);
/// let comes = follow.awaiting(); // does not borrow the follow
/// pool.wait(&[&comes], None)?;
/// assert!(follow.try_next()?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Awaiting(pub(crate) What);

#[derive(Clone)]
pub(crate) enum What {
    Ready,
    Letters(Arc<Connection>, u64),
    /// Whatever comes of a bundle, which several threads may take.
    Bundle(Arc<BundleProgress>),
    Until(Instant),
    /// A slot, or the answer in a conversation: by how many slots had come free when there was none.
    Memory(Arc<Connection>, u64, u64),
    /// Another thread raises it, and then rouses all that wait.
    Raised(Arc<AtomicBool>),
    Never,
}

impl Awaiting {
    /// Nothing: it is there, or has ended.
    #[must_use]
    pub fn ready() -> Self {
        Self(What::Ready)
    }

    /// What does not come.
    pub(crate) fn never() -> Self {
        Self(What::Never)
    }

    /// What comes in a conversation.
    pub(crate) fn letters(connection: &Arc<Connection>, number: u64) -> Self {
        Self(What::Letters(Arc::clone(connection), number))
    }

    /// The conversation in which it comes.
    pub(crate) fn conversation(&self) -> Option<(&Arc<Connection>, u64)> {
        match &self.0 {
            What::Letters(connection, number) | What::Memory(connection, number, _) => Some((connection, *number)),
            What::Bundle(progress) => Some((progress.connection(), progress.number())),
            _ => None,
        }
    }

    /// Whether slots that come free concern it.
    pub(crate) fn is_for_slots(&self) -> bool {
        matches!(self.0, What::Memory(..))
    }

    pub(crate) fn is_ready(&self, state: &State, now: Instant) -> bool {
        match &self.0 {
            What::Ready => true,
            What::Letters(_, number) => state.mail.is_due(*number),
            What::Bundle(progress) => progress.is_due(state),
            What::Until(at) => *at <= now,
            What::Memory(_, number, frees) => state.frees() != *frees || state.mail.is_due(*number),
            What::Raised(flag) => flag.load(Ordering::Acquire),
            What::Never => false,
        }
    }
}

impl fmt::Debug for Awaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Ready => f.write_str("Awaiting(nothing)"),
            What::Letters(_, number) => write!(f, "Awaiting(conversation {number})"),
            What::Bundle(progress) => write!(f, "Awaiting(bundle {})", progress.number()),
            What::Until(at) => write!(f, "Awaiting({at:?})"),
            What::Memory(_, number, _) => write!(f, "Awaiting(memory, or conversation {number})"),
            What::Raised(_) => f.write_str("Awaiting(another thread)"),
            What::Never => f.write_str("Awaiting(what does not come)"),
        }
    }
}

impl Awaited for Awaiting {
    fn awaiting(&self) -> Awaiting {
        self.clone()
    }
}
