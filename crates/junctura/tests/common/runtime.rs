//! A runtime that is not tokio: an executor for one task, and a reactor for one descriptor.

use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use junctura::PoolDescriptor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// An executor that has no reactor: the thread polls the task, and sleeps until the task is woken.
pub(crate) fn block_on<T>(task: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A reactor for one descriptor: a thread waits until it is readable, and wakes the task that asked.
pub(crate) struct Reactor {
    descriptor: PoolDescriptor,
    tasks: mpsc::Sender<Waker>,
}

impl Reactor {
    pub(crate) fn new(descriptor: &PoolDescriptor) -> Self {
        let (tasks, waiting) = mpsc::channel::<Waker>();
        let watched = descriptor.clone();
        thread::spawn(move || {
            for task in waiting {
                while poll(&mut [PollFd::new(&watched, PollFlags::IN)], None).is_err() {}
                task.wake();
            }
        });
        Self {
            descriptor: descriptor.clone(),
            tasks,
        }
    }

    pub(crate) async fn readable(&self) {
        let now = Timespec::default();
        std::future::poll_fn(|context| {
            let mut watched = [PollFd::new(&self.descriptor, PollFlags::IN)];
            if poll(&mut watched, Some(&now)).is_ok_and(|ready| ready > 0) {
                return Poll::Ready(());
            }
            self.tasks.send(context.waker().clone()).unwrap();
            Poll::Pending
        })
        .await;
    }
}
