//! The driver: reads for all tasks of a pool, in any event loop.

use std::fmt;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};

use junctura_model::Result;
#[cfg(feature = "tokio")]
use junctura_model::{Code, Error};
use junctura_transport::PollInterest;
#[cfg(feature = "tokio")]
use tokio::io::unix::AsyncFd;

use crate::connection::DriverState;
use crate::connection::PoolConnection;
use crate::pool::Pool;
use crate::wait::PoolDescriptor;

/// Reads for all tasks that wait on a pool, and wakes them: for runtimes that this library does not support itself.
///
/// The program calls [`Driver::look`] whenever the [descriptor](Driver::descriptor) is readable, until `look` returns
/// false. The driver ends with the pool. If it is dropped earlier, waiting tasks fail with `Unavailable`.
///
/// ```
/// # use junctura::Pool;
/// use rustix::event::{PollFd, PollFlags, poll};
///
/// # fn main() -> junctura::Result<()> {
/// let pool = Pool::builder().schema("free").open()?;
/// let driver = pool.driver()?;
///
/// // The reactor of a runtime waits until the descriptor is readable; here a thread does.
/// let reactor = std::thread::spawn(move || {
///     let mut watched = [PollFd::new(driver.descriptor(), PollFlags::IN)];
///     while poll(&mut watched, None).is_ok() && driver.look() {}
/// });
/// block_on(async { // of any executor
///     pool.begin_offer([("name", "a")], b"payload", Default::default())?.await?;
///     assert_eq!(&pool.begin_demand("name=a", Default::default())?.await?[..], b"payload");
///     junctura::Result::Ok(())
/// })?;
/// drop(pool);
/// reactor.join().expect("it ends with the pool");
/// # Ok(())
/// # }
/// # fn block_on<T>(future: impl Future<Output = T>) -> T {
/// #     struct Unpark(std::thread::Thread);
/// #     impl std::task::Wake for Unpark {
/// #         fn wake(self: std::sync::Arc<Self>) {
/// #             self.0.unpark();
/// #         }
/// #     }
/// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
/// #     let mut future = std::pin::pin!(future);
/// #     loop {
/// #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
/// #             std::task::Poll::Ready(output) => return output,
/// #             std::task::Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
/// ```
#[must_use = "no task is woken without it"]
pub struct Driver {
    connection: Weak<PoolConnection>,
    descriptor: PoolDescriptor,
    /// The state after the driver has ended.
    afterwards: DriverState,
}

impl Driver {
    /// # Errors
    /// As [`crate::Pool::descriptor`].
    pub(super) fn new(connection: &Arc<PoolConnection>, afterwards: DriverState) -> Result<Self> {
        let descriptor = PoolDescriptor::of(connection)?;
        let mut state = connection.lock()?;
        state.tasks.driver = DriverState::Runs;
        // Finds messages that arrived earlier.
        state.nudge();
        Ok(Self {
            connection: Arc::downgrade(connection),
            descriptor,
            afterwards,
        })
    }

    /// Returns the descriptor that is readable when [`Driver::look`] has work. Level-triggered and edge-triggered
    /// polling both work; nothing is read from the descriptor itself.
    #[must_use]
    pub fn descriptor(&self) -> &PoolDescriptor {
        &self.descriptor
    }

    /// Sends, reads, and wakes the tasks that are ready. Does not block. Returns false if the connection has ended or
    /// there is nothing left to read for.
    #[must_use]
    pub fn look(&self) -> bool {
        self.connection
            .upgrade()
            .is_some_and(|connection| connection.look_for_tasks())
    }

    /// Calls [`Driver::look`] until it returns false, and blocks in between: for a separate thread, if there is no
    /// reactor.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let driver = pool.driver()?;
    /// let thread = std::thread::spawn(|| driver.run());
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// pool.begin_offer([("name", "a")], b"payload", Default::default())?.await?; // in whatever executor
    /// # junctura::Result::Ok(())
    /// # })?;
    /// drop(pool);
    /// thread.join().expect("it ends with the pool");
    /// # Ok(())
    /// # }
    /// ```
    pub fn run(self) {
        while junctura_transport::wait(self.descriptor.as_fd(), PollInterest::READ).is_ok() && self.look() {}
    }

    /// As [`Driver::run`], in a tokio task.
    ///
    /// # Errors
    /// `Unavailable` outside a tokio runtime; `Io` if the descriptor cannot be watched.
    #[cfg(feature = "tokio")]
    pub(super) fn spawn_on_tokio(self) -> Result<()> {
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|error| Error::new(Code::Unavailable, "asynchronous pool", error.to_string()))?;
        #[allow(
            deprecated,
            reason = "its replacement is unsafe for types whose descriptor may close; a pool's stays open"
        )]
        let watched = AsyncFd::with_interest(self.descriptor.clone(), tokio::io::Interest::READABLE)
            .map_err(|error| Error::new(Code::Io, "descriptor of a pool", error.to_string()))?;
        runtime.spawn(async move {
            while let Ok(mut readable) = watched.readable().await {
                // Messages that arrive from here on cause another edge.
                readable.clear_ready();
                if !self.look() {
                    return;
                }
            }
        });
        Ok(())
    }
}

impl Pool {
    /// Creates the driver that reads for the tasks that wait on this pool, for a runtime other than tokio. It ends with
    /// the pool.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// let driver = pool.driver()?;
    /// let thread = std::thread::spawn(|| driver.run());
    /// pool.begin_sync()?.await?;
    /// drop(pool);
    /// thread.join().expect("it ends with the pool");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Pool::descriptor`].
    pub fn driver(&self) -> Result<Driver> {
        Driver::new(&self.connection()?, DriverState::Left)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.upgrade() {
            connection.undriven(self.afterwards);
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.connection.upgrade() {
            Some(connection) => write!(f, "Driver(of {connection:?})"),
            None => f.write_str("Driver(of nothing)"),
        }
    }
}
