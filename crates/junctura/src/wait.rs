//! Waits for several events at once.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctura_model::{Code, Error, Result};
use junctura_transport::ConnectionWatch;

use crate::awaiting::{Awaited, WaitKind, WaitSource};
use crate::connection::state::ConnectionState;
use crate::connection::{PoolConnection, ThreadWait};
use crate::pool::Pool;

impl Awaited for Timer {
    fn awaiting(&self) -> WaitSource {
        WaitSource(self.next.map_or(WaitKind::Never, WaitKind::Until))
    }
}

/// A timer that fires at a time, once or periodically.
///
/// ```
/// # use junctura::{Pool, Timer};
/// # use std::time::Duration;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # use std::time::Instant;
/// let mut report = Timer::every(Duration::from_millis(1));
/// let mut limit = Timer::at(Instant::now() + Duration::from_secs(60));
/// let never = Timer::after(Duration::MAX);
/// assert_eq!(pool.wait(&[&limit, &report, &never], None)?, [1]);
/// assert!(report.ring() && !limit.ring());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Timer {
    next: Option<Instant>,
    every: Option<Duration>,
}

impl Timer {
    /// Creates a timer that fires once, at this moment.
    #[must_use]
    pub fn at(moment: Instant) -> Self {
        Self {
            next: Some(moment),
            every: None,
        }
    }

    /// Creates a timer that fires once, after this time; never, if that exceeds the range of the clock.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self {
            next: Instant::now().checked_add(time),
            every: None,
        }
    }

    /// Creates a timer that fires periodically with this period (at least 1 µs). Missed periods are skipped.
    #[must_use]
    pub fn every(time: Duration) -> Self {
        let time = time.max(Duration::from_micros(1));
        Self {
            every: Some(time),
            ..Self::after(time)
        }
    }

    /// Returns whether it has fired; if so, it is set to its next time.
    pub fn ring(&mut self) -> bool {
        let now = Instant::now();
        let Some(due) = self.next.filter(|&due| due <= now) else {
            return false;
        };
        self.next = self.every.and_then(|time| {
            let missed = now.duration_since(due).as_nanos() / time.as_nanos();
            due.checked_add(time.saturating_mul(u32::try_from(missed + 1).unwrap_or(u32::MAX)))
        });
        true
    }
}

impl Pool {
    /// Blocks until at least one of these is ready, and returns the indices of the ready ones, ascending. A
    /// [`Follow`](crate::Follow) or a [`Subscription`](crate::Subscription) is ready when `try_next` returns something
    /// or it has ended, a [`Pending`](crate::Pending) when `try_take` returns the answer, a [`Bundle`](crate::Bundle)
    /// when it is complete or aborted, as its `wait` reports, a [`Timer`] when `ring` returns true. Something that is
    /// ready already is found without waiting.
    ///
    /// Only this thread blocks; other threads may use the pool meanwhile. All must belong to this pool.
    ///
    /// ```
    /// # use junctura::{DemandOptions, Pool, Timer};
    /// # use std::time::Duration;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// let mut winds = pool.follow("name=u/v")?;
    /// let mut orography = pool.begin_demand("name=orography", DemandOptions::default())?;
    /// let mut report = Timer::every(Duration::from_mins(1));
    /// pool.offer([("name", "orography")], b"heights")?;
    ///
    /// let mut heights = None;
    /// while heights.is_none() {
    ///     for ready in pool.wait(&[&winds, &orography, &report], None)? {
    ///         match ready {
    ///             0 => while let Some(item) = winds.try_next()? { println!("{item:?}"); },
    ///             1 => heights = orography.try_take()?,
    ///             _ => assert!(report.ring()),
    ///         }
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Timeout` if none became ready in time; `InvalidArgument` for something of another pool, or if nothing could
    /// ever become ready; `Disconnected`.
    pub fn wait(&self, on: &[&dyn Awaited], timeout: Option<Duration>) -> Result<Vec<usize>> {
        let on: Vec<WaitSource> = on.iter().map(|one| one.awaiting()).collect();
        self.connection()?.wait_for_any(&on, timeout)
    }
}

/// A descriptor for event loops that also wait for other descriptors; see [`Pool::descriptor`].
///
/// ```
/// # use junctura::Pool;
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// # use std::os::fd::AsRawFd;
/// // For the event loop of the program.
/// let descriptor = pool.descriptor()?;
/// assert!(descriptor.as_raw_fd() >= 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PoolDescriptor(Arc<ConnectionWatch>);

impl PoolDescriptor {
    /// # Errors
    /// As [`Pool::descriptor`].
    pub(crate) fn of(connection: &PoolConnection) -> Result<Self> {
        connection.watch().map(Self)
    }
}

impl AsFd for PoolDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for PoolDescriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Pool {
    /// Returns a descriptor that is readable when messages have arrived: for `epoll`, `poll`, and other event loops.
    ///
    /// When it is readable, poll all follows, subscriptions and pending demands of the loop with `try_next` or
    /// `try_take`, each until it returns nothing; then wait for the descriptor again. A message for one of these that
    /// arrives while another is polled makes the descriptor readable, until the first was polled or left out in a whole
    /// round. Nothing is read from the descriptor itself. Spurious readiness is possible. Other threads may use the
    /// pool, and wait on it, at the same time.
    ///
    /// ```
    /// # use junctura::{DemandOptions, Pool};
    /// # fn main() -> junctura::Result<()> {
    /// # let pool = Pool::builder().schema("free").open()?;
    /// # use std::os::fd::AsFd;
    /// let mut late = pool.begin_demand("name=late", DemandOptions::default())?;
    /// let descriptor = pool.descriptor()?;
    /// pool.offer([("name", "late")], b"payload")?;
    /// let object = loop {
    ///     if let Some(object) = late.try_take()? {
    ///         break object;
    ///     }
    ///     // A loop of one's own would wait for other things, too.
    ///     let mut readable = [rustix::event::PollFd::new(&descriptor, rustix::event::PollFlags::IN)];
    ///     rustix::event::poll(&mut readable, None).expect("a descriptor that can be polled");
    /// };
    /// assert_eq!(&object[..], b"payload");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `LimitExceeded` if this process may open no more descriptors.
    pub fn descriptor(&self) -> Result<PoolDescriptor> {
        PoolDescriptor::of(&*self.connection()?)
    }
}

impl PoolConnection {
    pub(crate) fn wait_for_any(self: &Arc<Self>, on: &[WaitSource], timeout: Option<Duration>) -> Result<Vec<usize>> {
        let requests = self.conversations(on)?;
        let deadline = earliest(on, timeout)?;
        let ready = |state: &mut ConnectionState| {
            let now = Instant::now();
            let ready = on.iter().enumerate().filter(|(_, one)| one.is_ready(state, now));
            let ready: Vec<usize> = ready.map(|(place, _)| place).collect();
            (!ready.is_empty()).then_some(ready)
        };
        let what = ThreadWait {
            for_slots: on.iter().any(WaitSource::is_for_slots),
            ..ThreadWait::letters_until(&requests, deadline)
        };
        let (mut state, found) = self.wait_keeping(self.lock()?, what, ready);
        match found?.or_else(|| ready(&mut state)) {
            Some(ready) => Ok(ready),
            None => Err(Error::new(Code::Timeout, "wait", "nothing arrived in time")),
        }
    }

    fn conversations(self: &Arc<Self>, on: &[WaitSource]) -> Result<Vec<u64>> {
        let mut requests = Vec::new();
        for (place, one) in on.iter().enumerate() {
            let Some((connection, number)) = one.conversation() else {
                continue;
            };
            if !Arc::ptr_eq(connection, self) {
                let cause = "it is of another pool, or of another process than this one";
                return Err(Error::new(
                    Code::InvalidArgument,
                    format!("wait: number {place}"),
                    cause,
                ));
            }
            requests.push(number);
        }
        Ok(requests)
    }
}

/// Returns the latest time until which to wait.
fn earliest(on: &[WaitSource], timeout: Option<Duration>) -> Result<Option<Instant>> {
    let is_endless = timeout.is_none() && on.iter().all(|one| matches!(one.0, WaitKind::Never));
    if is_endless {
        let cause = "there is nothing to wait for, and no timeout";
        return Err(Error::new(Code::InvalidArgument, "wait", cause));
    }
    let timers = on.iter().filter_map(|one| match one.0 {
        WaitKind::Until(at) => Some(at),
        _ => None,
    });
    let timeout = timeout.and_then(|time| Instant::now().checked_add(time));
    Ok(timers.chain(timeout).min())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_goes_off_once_or_again_and_leaves_out_what_was_missed() {
        let past = Instant::now();
        let mut once = Timer::at(past);
        assert!(once.ring());
        assert!(!once.ring());
        assert!(matches!(once.awaiting().0, WaitKind::Never));

        let hour = Duration::from_hours(1);
        let mut hourly = Timer {
            next: Some(past),
            every: Some(hour),
        };
        assert!(hourly.ring());
        assert!(!hourly.ring());
        assert_eq!(hourly.next, Some(past + hour));
        let mut often = Timer {
            next: Some(past),
            every: Some(Duration::from_nanos(1)),
        };
        assert!(often.ring());
        assert!(often.next > Some(past));
    }
}
