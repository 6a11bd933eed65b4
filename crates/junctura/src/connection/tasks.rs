//! Tasks that wait on a connection: each is woken by what comes in its conversation.
//!
//! ```text
//!  a task polls: takes --> enters its waker --> takes again --> sleeps
//!                                                                 |
//!  whatever reads (a driver, a look, a thread that waits):  |
//!     sorts a letter --> collects the wakers of its conversation --> wakes them, once no lock is held
//! ```
//! A waker carries no answer: the task takes it when it runs again. A task that is dropped in between has taken nothing.
//! Threads that block pay nothing for this but a look at an empty list.

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use junctura_model::Result;

use super::{Guard, PoolConnection};
use crate::awaiting::WaitSource;
use crate::beside::beside;
use crate::connection::state::ConnectionState;
use crate::pending::Pending;

/// The wakers that wait for one thing, by the numbers of their places.
#[derive(Debug, Default)]
pub(crate) struct TaskWakers(Vec<(u64, Waker)>);

impl TaskWakers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Enters a waker; gives back the one that it replaces, which may not be dropped under a lock.
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

    /// Moves all to those that are to be woken.
    pub(crate) fn wake_into(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.0.drain(..).map(|(_, waker)| waker));
    }
}

/// What a connection knows of its tasks, apart from those of conversations.
#[derive(Debug, Default)]
pub(crate) struct WaitingTasks {
    last_place: u64,
    /// Woken whenever something was read, or memory came free.
    pub(crate) of_any: TaskWakers,
    #[cfg(feature = "async")]
    pub(crate) driver: DriverState,
    /// A thread waits until the socket has room.
    pub(crate) is_flushing: bool,
}

/// Whether something reads for the tasks of a connection.
#[cfg(feature = "async")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DriverState {
    /// No driver was made; a loop of the program may look.
    #[default]
    Absent,
    Runs,
    /// It has ended with its runtime; another is made where a task waits next.
    #[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "only tokio's are made anew"))]
    Ended,
    /// The program had it, and has dropped it.
    Left,
}

/// A place among the tasks that wait on a pool, for event loops of other languages; see [`crate::binding::wake_when`]. It is left when
/// this is dropped.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct TaskPlace(Option<EnteredPlace>);

#[derive(Debug)]
struct EnteredPlace {
    connection: Arc<PoolConnection>,
    /// `None`: for whatever comes.
    conversation: Option<u64>,
    number: u64,
}

impl TaskPlace {
    /// From now on the waker is woken, once, by what comes for `awaiting`. What has come before is found by asking after this.
    pub(crate) fn enter(&mut self, connection: &Arc<PoolConnection>, awaiting: &WaitSource, waker: &Waker) {
        // Memory comes in more than one way.
        let awaited = awaiting.conversation().filter(|_| !awaiting.is_for_slots());
        let (connection, conversation) = awaited.map_or((connection, None), |(of, number)| (of, Some(number)));
        let is_here =
            |place: &EnteredPlace| place.conversation == conversation && Arc::ptr_eq(&place.connection, connection);
        if !self.0.as_ref().is_some_and(is_here) {
            self.leave();
        }
        let waker = waker.clone();
        // Where the lock cannot be had, in a forked child, asking tells why.
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
        // Its last waker may take a task with it, which then ends what it had asked.
        drop(left);
    }
}

impl Drop for TaskPlace {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Waits for the end of what is dropped, so that it is over for other clients, too. A task or an event loop must not block:
/// in a pool that serves them, the end only begins here.
pub(crate) fn end_by(connection: &PoolConnection, end: Pending<()>) {
    if !connection.lock().is_ok_and(|state| state.serves_tasks()) {
        // Why it failed concerns nothing that is still there.
        let _ = end.wait();
    }
}

/// Has all that wait on a connection look again, once a thread has made something.
struct ConnectionWaker(Weak<PoolConnection>);

/// What has all that wait on a connection look again.
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
    /// As [`Self::arm`], for one conversation. What the socket has no room for now is sent by a thread: the descriptor does not
    /// tell of room.
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

/// The descriptor does not tell when a socket has room: one thread waits for that, for all.
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
        // Why it failed is told by every answer.
        let _ = there.flush();
        ends(&there);
    };
    if beside(flush, drop).is_err() {
        ends(connection);
    }
}

impl ConnectionState {
    /// Whether tasks or an event loop use this pool.
    fn serves_tasks(&self) -> bool {
        #[cfg(feature = "async")]
        if self.tasks.driver != DriverState::Absent {
            return true;
        }
        self.watch.is_some()
    }

    /// Those of a conversation; of one that is over, and of none, those of whatever comes.
    fn wakers_of(&mut self, conversation: Option<u64>) -> &mut TaskWakers {
        let Self { mail, tasks, .. } = self;
        let mailbox = conversation.and_then(|number| mail.get(number));
        mailbox.map_or(&mut tasks.of_any, |mailbox| &mut mailbox.wakers)
    }

    /// All tasks are to be woken.
    pub(crate) fn wake_all_tasks(&mut self) {
        self.mail.wake_all_tasks();
        self.tasks.of_any.wake_into(&mut self.mail.woken);
    }
}
