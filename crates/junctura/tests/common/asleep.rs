//! A thread that another one watches: whether it sleeps in the system.

use std::sync::mpsc;
use std::thread::{Scope, ScopedJoinHandle};

use rustix::thread::{Pid, gettid};

/// Runs `work` in a thread, and returns when that thread sleeps or has ended.
pub(crate) fn spawn_until_asleep<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let (sender, receiver) = mpsc::channel();
    let handle = scope.spawn(move || {
        sender.send(gettid()).unwrap();
        work()
    });
    let thread = receiver.recv().unwrap();
    while !handle.is_finished() && !is_asleep(thread) {
        std::hint::spin_loop();
    }
    handle
}

/// As the system says. The state stands behind the name, which is in parentheses.
fn is_asleep(thread: Pid) -> bool {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}
