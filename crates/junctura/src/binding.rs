//! What only bindings to other languages use: an event loop that is not Rust's looks for all requests of a pool together.
//!
//! ```text
//!  look --> ready(…) or wake_when --> take_item, take_event, take_completed; what takes long is an errand for a thread
//! ```

use std::task::Waker;
use std::time::{Duration, Instant};

use junctura_model::{IntoGiven, Result};

use crate::awaiting::WaitSource;
pub use crate::builder::read_text;
pub use crate::connection::TaskPlace;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::verbs::allocation::Allocation;
pub use crate::verbs::allocation::KeepMapped;
use crate::verbs::bundle::{Bundle, Completed};
pub use crate::verbs::follow::BlockingStep;
use crate::verbs::follow::{Follow, Item};
use crate::verbs::subscribe::{PoolEvent, Subscription};

/// Sends what is to go and reads what has come, without waiting. From then on the pool's [`descriptor`](Pool::descriptor)
/// becomes readable when more comes. True: something could not be sent, and the descriptor does not become readable when it can;
/// [`Pool::flush`] waits for that.
///
/// # Errors
/// `Disconnected` or `Closed` when nothing comes any more: then every request fails with it when it is taken.
pub fn look(pool: &Pool) -> Result<bool> {
    pool.connection()?.look_for_all()
}

/// Which of these have something that has been read: their indices, rising. Reads nothing. Where several threads look at one
/// pool, each asks for all requests *after* its look.
///
/// # Errors
/// Only in a forked child, which connects anew: those of [`Pool::connect`].
pub fn ready(pool: &Pool, on: &[WaitSource]) -> Result<Vec<usize>> {
    let connection = pool.connection()?;
    let state = connection.lock()?;
    let now = Instant::now();
    let ready = on.iter().enumerate().filter(|(_, one)| one.is_ready(&state, now));
    Ok(ready.map(|(index, _)| index).collect())
}

/// Blocks until something has come for `on`, or it has ended; at most until `timeout`. What it was made from is not borrowed: another
/// thread may end it meanwhile, and that ends the wait.
///
/// # Errors
/// As [`Pool::wait`].
pub fn wait_for(on: &WaitSource, timeout: Option<Duration>) -> Result<()> {
    match on.conversation() {
        Some((connection, _)) => connection.wait_for_any(std::slice::from_ref(on), timeout).map(drop),
        None => Ok(()),
    }
}

/// Wakes, once, when something has been read for `on`. What was read before is found by asking after this.
///
/// # Errors
/// Only in a forked child, which connects anew: those of [`Pool::connect`].
pub fn wake_when(pool: &Pool, on: &WaitSource, waker: &Waker) -> Result<TaskPlace> {
    let mut place = TaskPlace::default();
    place.enter(&pool.connection()?, on, waker);
    Ok(place)
}

/// The next item of a follow that is at hand; `None`: none is, or the follow has ended ([`Follow::is_over`]). What takes long is done
/// apart: [`take_errand`].
///
/// # Errors
/// As [`Follow::next_item`].
pub fn take_item(follow: &mut Follow) -> Result<Option<Item>> {
    follow.take_next()
}

/// What the next item waits for and takes long, if that is so: to be run where one may wait, and then [`finish`]ed. One at a time is
/// out.
///
/// # Errors
/// As [`Follow::next_item`].
pub fn take_errand(follow: &mut Follow) -> Result<Option<BlockingStep>> {
    follow.take_errand()
}

/// Gives an errand back. What it was for comes from [`take_item`]. One that was not run is to be done again.
///
/// # Errors
/// What went wrong in the store behind the pool; the errand is to be done again then, where that is of use.
pub fn finish(follow: &mut Follow, errand: BlockingStep) -> Result<()> {
    follow.finish(errand)
}

/// The next event that has been read; `None`: none has, or the subscription has ended ([`Subscription::is_over`]).
///
/// # Errors
/// As [`Subscription::next_event`].
pub fn take_event(events: &mut Subscription) -> Result<Option<PoolEvent>> {
    events.take_next()
}

/// What came of a bundle, if that has been read.
///
/// # Errors
/// `Closed` where it was aborted, or left by this handle.
pub fn take_completed(bundle: &Bundle) -> Result<Option<Completed>> {
    bundle.take_completed()
}

/// As [`Pool::begin_wanted`]; where nothing wants it, the pool remembers that it was declined, as an offer with
/// [`OfferOptions::if_wanted`](crate::OfferOptions::if_wanted) does.
///
/// # Errors
/// As there.
pub fn begin_probe<'a, V: IntoGiven<'a>>(
    pool: &Pool,
    attributes: impl IntoIterator<Item = (&'a str, V)>,
    schema: Option<&str>,
) -> Result<Pending<u64>> {
    pool.begin_probe(attributes, schema, true)
}

/// Keeps the memory of an allocation mapped after it was offered, for views of other languages. `None`: it is not shared.
#[must_use]
pub fn keep_mapped(allocation: &Allocation) -> Option<KeepMapped> {
    allocation.keep_mapped()
}
