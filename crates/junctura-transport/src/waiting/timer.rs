//! A clock that is waited on beside descriptors, and costs nothing per wait.
//!
//! A timeout given to `poll` or `epoll_wait` programs the clock anew at every wait. In a virtual machine that takes as long
//! as the hand-over of an object: at one object per millisecond it doubled the time from offer to delivery. This timer is
//! set once and stays set while deadlines move; it expires at the first deadline, finds that nothing is due, and is set
//! again. So it may expire early, never late.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use junctura_model::{Code, Result};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::waiting::poll;
use crate::{PollInterest, PollResult, refused};

/// Longer than any wait; a timer for later than this expires then.
const DISTANCE_MAX: Duration = Duration::from_hours(365 * 24);

/// Wakes a waiting thread. Readable once it has expired.
#[derive(Debug)]
pub struct WakeTimer {
    timer: OwnedFd,
    set_for: Option<Instant>,
}

impl WakeTimer {
    /// One that is not set.
    ///
    /// # Errors
    /// `LimitExceeded` when this process may open no more descriptors, `Io` otherwise.
    pub fn new() -> Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        );
        let timer = timer.map_err(|errno| match errno {
            rustix::io::Errno::MFILE | rustix::io::Errno::NFILE => {
                refused(Code::LimitExceeded, "timer", "cannot open one", errno)
            }
            _ => refused(Code::Io, "timer", "cannot open one", errno),
        })?;
        Ok(Self { timer, set_for: None })
    }

    /// Ensures that it expires at `deadline` or before.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn set(&mut self, deadline: Instant) -> Result<()> {
        if self.set_for.is_some_and(|set_for| set_for <= deadline) {
            return Ok(());
        }
        let distance = deadline.saturating_duration_since(Instant::now());
        // A timer of zero would be off.
        let distance = distance.clamp(Duration::from_nanos(1), DISTANCE_MAX);
        let timer = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: distance.as_secs() as i64,
                tv_nsec: distance.subsec_nanos().into(),
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)
            .map_err(|errno| refused(Code::Io, "timer", "cannot set it", errno))?;
        self.set_for = Some(deadline);
        Ok(())
    }

    /// Records that it has expired; it is not set any more.
    pub fn answer(&mut self) {
        let mut count = [0u8; 8];
        if rustix::io::read(&self.timer, &mut count).is_ok() {
            self.set_for = None;
        }
    }

    /// Waits until `fd` is ready or the timer expires, at `deadline` or before (`None`: if it is still set for an earlier
    /// wait, else never). Nothing is ready then: wait again before the deadline.
    ///
    /// # Errors
    /// As [`wait`](crate::wait).
    pub fn wait(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: PollInterest,
        deadline: Option<Instant>,
    ) -> Result<PollResult> {
        if let Some(deadline) = deadline {
            self.set(deadline)?;
        }
        let (ready, [gone_off]) = poll::wait_beside(fd, interest, [self.timer.as_fd()])?;
        if gone_off {
            self.answer();
        }
        Ok(ready)
    }

    /// Like [`Self::wait`], or until `bell` is readable; returns whether it is.
    pub(crate) fn wait_for_bell(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: PollInterest,
        bell: BorrowedFd<'_>,
        deadline: Option<Instant>,
    ) -> Result<(PollResult, bool)> {
        if let Some(deadline) = deadline {
            self.set(deadline)?;
        }
        let (ready, [rung, gone_off]) = poll::wait_beside(fd, interest, [bell, self.timer.as_fd()])?;
        if gone_off {
            self.answer();
        }
        Ok((ready, rung))
    }
}

impl AsFd for WakeTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn goes_off_when_nothing_comes_and_can_be_set_again() {
        let (_near, far) = UnixStream::pair().unwrap();
        let mut alarm = WakeTimer::new().unwrap();
        for _ in 0..2 {
            let deadline = Instant::now() + Duration::from_millis(2);
            assert!(
                alarm
                    .wait(far.as_fd(), PollInterest::READ, Some(deadline))
                    .unwrap()
                    .is_none()
            );
            assert!(Instant::now() >= deadline);
            assert_eq!(alarm.set_for, None);
        }
    }

    #[test]
    fn a_later_deadline_leaves_it_as_it_is_and_an_earlier_one_does_not() {
        let mut alarm = WakeTimer::new().unwrap();
        let soon = Instant::now() + Duration::from_hours(1);
        alarm.set(soon).unwrap();
        alarm.set(soon + Duration::from_secs(1)).unwrap();
        assert_eq!(alarm.set_for, Some(soon));
        let past = Instant::now();
        alarm.set(past).unwrap();
        assert_eq!(alarm.set_for, Some(past));
    }

    #[test]
    fn what_comes_is_told_before_it_goes_off() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"x").unwrap();
        let mut alarm = WakeTimer::new().unwrap();
        for deadline in [None, Some(Instant::now() + DISTANCE_MAX * 2)] {
            assert!(alarm.wait(far.as_fd(), PollInterest::READ, deadline).unwrap().readable);
        }
    }
}
