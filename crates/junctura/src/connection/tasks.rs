//! Tasks that wait on a connection: each is woken by messages in its conversation.
//!
//! ```text
//!  a task polls: takes --> enters its waker --> takes again --> sleeps
//!                                                                 |
//!  whatever reads (a driver, a look, a thread that waits):  |
//!     sorts a letter --> collects the wakers of its conversation --> wakes them, once no lock is held
//! ```
//!
//! A waker carries no answer: the task takes the answer when it runs again. A task that is dropped in between has taken
//! nothing. Blocking threads only pay for a check of an empty list.

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use junctura_model::Result;

use super::{Guard, PoolConnection};
use crate::awaiting::WaitSource;
use crate::beside::beside;
use crate::connection::state::ConnectionState;
use crate::pending::Pending;

/// The wakers that wait for one event, by the numbers of their places.
#[derive(Debug, Default)]
pub(crate) struct TaskWakers(Vec<(u64, Waker)>);

impl TaskWakers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Registers a waker; returns the one that it replaces, which must not be dropped under a lock.
    fn enter(&mut self, place: u64, waker: Waker) -> Option<Waker> {
        if let Some((_, old)) = self.0.iter_mut().find(|(number, _)| *number == place) {
            return Some(std::mem::replace(old, waker));
        }
        self.0.push((place, waker));
        None
    }

    fn leave(&mut self, place: u64) -> Option<Waker> {
        let at = self.0.iter().position(|(number, _)| *number == place)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Moves all wakers to those that are to be woken.
    pub(crate) fn wake_into(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.0.drain(..).map(|(_, waker)| waker));
    }
}

/// State of a connection for its tasks, apart from those of conversations.
#[derive(Debug, Default)]
pub(crate) struct WaitingTasks {
    last_place: u64,
    /// Woken whenever something was read, or memory became free.
    pub(crate) of_any: TaskWakers,
    #[cfg(feature = "async")]
    pub(crate) driver: DriverState,
    /// Whether a thread waits for space in the socket.
    pub(crate) is_flushing: bool,
}

/// The driver that reads for the tasks of a connection.
#[cfg(feature = "async")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DriverState {
    /// No driver was made; a loop of the program may poll.
    #[default]
    Absent,
    Runs,
    /// It has ended with its runtime; the next task that waits makes another.
    #[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "only tokio's are made anew"))]
    Ended,
    /// The program had it, and has dropped it.
    Left,
}

/// A registration for tasks that wait on a pool, for event loops of other languages; see [`crate::binding::wake_when`].
/// Dropping it ends the registration.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct TaskPlace(Option<EnteredPlace>);

#[derive(Debug)]
struct EnteredPlace {
    connection: Arc<PoolConnection>,
    /// `None`: any message.
    conversation: Option<u64>,
    number: u64,
}

impl TaskPlace {
    /// Registers the waker to be woken, once, by a message for `awaiting`. Poll after this call for earlier messages.
    pub(crate) fn enter(&mut self, connection: &Arc<PoolConnection>, awaiting: &WaitSource, waker: &Waker) {
        // Memory becomes available in more than one way.
        let awaited = awaiting.conversation().filter(|_| !awaiting.is_for_slots());
        let (connection, conversation) = awaited.map_or((connection, None), |(of, number)| (of, Some(number)));
        let is_here =
            |place: &EnteredPlace| place.conversation == conversation && Arc::ptr_eq(&place.connection, connection);
        if !self.0.as_ref().is_some_and(is_here) {
            self.leave();
        }
        let waker = waker.clone();
        // If the lock is unavailable, in a forked child, the poll returns the reason.
        let Ok(mut state) = connection.lock() else { return };
        let place = self.0.get_or_insert_with(|| {
            state.tasks.last_place += 1;
            EnteredPlace {
                connection: Arc::clone(connection),
                conversation,
                number: state.tasks.last_place,
            }
        });
        let replaced = state.wakers_of(conversation).enter(place.number, waker);
        drop(state);
        drop(replaced);
    }

    pub(crate) fn leave(&mut self) {
        let Some(place) = self.0.take() else { return };
        let Ok(mut state) = place.connection.lock() else { return };
        let left = state.wakers_of(place.conversation).leave(place.number);
        drop(state);
        // Its last waker may own a task whose drop ends its requests.
        drop(left);
    }
}

impl Drop for TaskPlace {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Waits for the end of a dropped handle, so that it has ended for other clients, too. A task or an event loop must not
/// block: in a pool that serves them, the end is only started here.
pub(crate) fn end_by(connection: &PoolConnection, end: Pending<()>) {
    if !connection.lock().is_ok_and(|state| state.serves_tasks()) {
        // A failure concerns nothing that still exists.
        let _ = end.wait();
    }
}

/// Wakes all waits on a connection when a thread has made a result.
struct ConnectionWaker(Weak<PoolConnection>);

/// Returns a waker that wakes all waits on a connection.
pub(crate) fn rouser(connection: &Arc<PoolConnection>) -> Waker {
    Arc::new(ConnectionWaker(Arc::downgrade(connection))).into()
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        if let Some(connection) = self.0.upgrade()
            && let Ok(mut state) = connection.lock()
        {
            state.rouse_all();
            drop(connection.wake_tasks(state));
        }
    }
}

impl PoolConnection {
    /// As [`Self::arm`], for one conversation. A thread sends what the full socket does not accept, because the
    /// descriptor does not report space.
    pub(crate) fn arm_for(self: &Arc<Self>, conversation: u64) -> Result<(Guard<'_>, Result<()>)> {
        let mut state = self.lock()?;
        if state.watch.is_some() && state.is_blocked() {
            drop(state);
            flush_beside(self);
            state = self.lock()?;
        }
        Ok(self.arm(state, Some(conversation)))
    }
}

/// Starts one thread that waits for space in the socket, for all tasks: the descriptor does not report space.
pub(crate) fn flush_beside(connection: &Arc<PoolConnection>) {
    let ends = |connection: &PoolConnection| {
        if let Ok(mut state) = connection.lock() {
            state.tasks.is_flushing = false;
            state.nudge();
        }
    };
    let begun = connection
        .lock()
        .map(|mut state| std::mem::replace(&mut state.tasks.is_flushing, true));
    if begun != Ok(false) {
        return;
    }
    let there = Arc::clone(connection);
    let flush = move || {
        // Every answer reports the failure.
        let _ = there.flush();
        ends(&there);
    };
    if beside(flush, drop).is_err() {
        ends(connection);
    }
}

impl ConnectionState {
    /// Returns whether tasks or an event loop use this pool.
    fn serves_tasks(&self) -> bool {
        #[cfg(feature = "async")]
        if self.tasks.driver != DriverState::Absent {
            return true;
        }
        self.watch.is_some()
    }

    /// Returns the wakers of a conversation; if it has ended, or for `None`, those for any message.
    fn wakers_of(&mut self, conversation: Option<u64>) -> &mut TaskWakers {
        let Self { mail, tasks, .. } = self;
        let mailbox = conversation.and_then(|number| mail.get(number));
        mailbox.map_or(&mut tasks.of_any, |mailbox| &mut mailbox.wakers)
    }

    /// Marks all tasks to be woken.
    pub(crate) fn wake_all_tasks(&mut self) {
        self.mail.wake_all_tasks();
        self.tasks.of_any.wake_into(&mut self.mail.woken);
    }
}
