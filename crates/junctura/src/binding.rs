//! Functions for bindings to other languages: an event loop outside Rust polls all requests of a pool together.
//!
//! ```text
//!  look --> ready(…) or wake_when --> take_item, take_event, take_completed; what takes long is an errand for a thread
//! ```

use std::task::Waker;
use std::time::{Duration, Instant};

use junctura_model::Result;

use crate::awaiting::WaitSource;
pub use crate::builder::{read_schema, read_text};
pub use crate::connection::TaskPlace;
pub use crate::explain::{complete_commands, why_nothing_matches, with_complete_commands};
use crate::pool::Pool;
use crate::verbs::allocation::Allocation;
pub use crate::verbs::allocation::KeepMapped;
use crate::verbs::bundle::{Bundle, Completed};
pub use crate::verbs::follow::BlockingStep;
use crate::verbs::follow::{Follow, Item};
use crate::verbs::subscribe::{PoolEvent, Subscription};

/// Sends and reads without waiting. From then on the pool's [`descriptor`](Pool::descriptor) becomes readable when more
/// messages arrive. Returns true if something could not be sent; the descriptor does not become readable when it can be
/// sent, but [`Pool::flush`] waits for that.
///
/// # Errors
/// `Disconnected` or `Closed` if the connection has ended: every request then fails with this error when it is taken.
pub fn look(pool: &Pool) -> Result<bool> {
    pool.connection()?.look_for_all()
}

/// Returns the indices of those for which something has been read, ascending. Reads nothing. If several threads poll
/// one pool, each checks all requests *after* its own call of [`look`].
///
/// # Errors
/// Only in a forked child, which reconnects: those of [`Pool::connect`].
pub fn ready(pool: &Pool, on: &[WaitSource]) -> Result<Vec<usize>> {
    let connection = pool.connection()?;
    let state = connection.lock()?;
    let now = Instant::now();
    let ready = on.iter().enumerate().filter(|(_, one)| one.is_ready(&state, now));
    Ok(ready.map(|(index, _)| index).collect())
}

/// Blocks until `on` is ready or has ended; at most until `timeout`. The source of `on` is not borrowed: another thread
/// may end it meanwhile, which ends the wait.
///
/// # Errors
/// As [`Pool::wait`].
pub fn wait_for(on: &WaitSource, timeout: Option<Duration>) -> Result<()> {
    match on.conversation() {
        Some((connection, _)) => connection.wait_for_any(std::slice::from_ref(on), timeout).map(drop),
        None => Ok(()),
    }
}

/// Wakes the waker, once, when something has been read for `on`. Check after this call for messages that were read
/// before it.
///
/// # Errors
/// Only in a forked child, which reconnects: those of [`Pool::connect`].
pub fn wake_when(pool: &Pool, on: &WaitSource, waker: &Waker) -> Result<TaskPlace> {
    let mut place = TaskPlace::default();
    place.enter(&pool.connection()?, on, waker);
    Ok(place)
}

/// Returns the next available item of a follow; `None`: there is none, or the follow has ended ([`Follow::is_over`]).
/// Slow work is separate: [`take_errand`].
///
/// # Errors
/// As [`Follow::next_item`].
pub fn take_item(follow: &mut Follow) -> Result<Option<Item>> {
    follow.take_next()
}

/// Returns the blocking step for which the next item waits, if any. Run it where blocking is allowed, then pass it to
/// [`finish`]. At most one step is outstanding.
///
/// # Errors
/// As [`Follow::next_item`].
pub fn take_errand(follow: &mut Follow) -> Result<Option<BlockingStep>> {
    follow.take_errand()
}

/// Returns a blocking step to its follow. [`take_item`] then returns its result. A step that was not run is issued
/// again.
///
/// # Errors
/// Errors of the store behind the pool; the step is issued again if a retry is useful.
pub fn finish(follow: &mut Follow, errand: BlockingStep) -> Result<()> {
    follow.finish(errand)
}

/// Returns the next event that has been read; `None`: there is none, or the subscription has ended
/// ([`Subscription::is_over`]).
///
/// # Errors
/// As [`Subscription::next_event`].
pub fn take_event(events: &mut Subscription) -> Result<Option<PoolEvent>> {
    events.take_next()
}

/// Returns the completed bundle, if its message has been read.
///
/// # Errors
/// `Closed` if it was aborted, or left by this handle.
pub fn take_completed(bundle: &Bundle) -> Result<Option<Completed>> {
    bundle.take_completed()
}

/// Keeps the memory of an allocation mapped after its offer, for views of other languages. `None` if it is not shared
/// memory.
#[must_use]
pub fn keep_mapped(allocation: &Allocation) -> Option<KeepMapped> {
    allocation.keep_mapped()
}
