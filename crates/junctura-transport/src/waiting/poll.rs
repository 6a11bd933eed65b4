//! Waiting, for programs without other work: clients. (A server waits for all its clients at once.)

use std::os::fd::BorrowedFd;

use junctura_model::{Code, Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};

use crate::refused;

/// Descriptors that are waited on at once, at most.
const BESIDES_MAX: usize = 3;

/// The events to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollInterest {
    /// Something has arrived, or the end.
    pub readable: bool,
    /// Something can be sent.
    pub writable: bool,
}

impl PollInterest {
    /// Something to read.
    pub const READ: Self = Self {
        readable: true,
        writable: false,
    };
    /// Room to write.
    pub const WRITE: Self = Self {
        readable: false,
        writable: true,
    };
    /// Either.
    pub const BOTH: Self = Self {
        readable: true,
        writable: true,
    };
}

/// The result of waiting; all `false`: nothing, or a timer expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollResult {
    /// Something has arrived. Also set with `ended`, since receiving is how the end is found.
    pub readable: bool,
    /// Something can be sent.
    pub writable: bool,
    /// The other side has closed; reported even without a request.
    pub ended: bool,
}

impl PollResult {
    /// Something has arrived.
    pub(crate) const READABLE: Self = Self {
        readable: true,
        writable: false,
        ended: false,
    };

    /// Whether nothing has arrived: a timer expired.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Waits until `fd` is ready, for ever if need be. See [`Alarm::wait`](crate::WakeTimer::wait) for a deadline.
///
/// # Errors
/// `Interrupted` when a signal arrived: look at what it wants, then wait again. `Io` otherwise.
pub fn wait(fd: BorrowedFd<'_>, interest: PollInterest) -> Result<PollResult> {
    let mut one = [question(fd, interest)];
    block(&mut one)?;
    Ok(answer(&one[0]))
}

/// Like [`wait`], or until one of `others` is readable; returns which are.
pub(crate) fn wait_beside<const N: usize>(
    fd: BorrowedFd<'_>,
    interest: PollInterest,
    others: [BorrowedFd<'_>; N],
) -> Result<(PollResult, [bool; N])> {
    const { assert!(N < BESIDES_MAX) };
    let mut all: [_; BESIDES_MAX] = std::array::from_fn(|at| match at.checked_sub(1).and_then(|at| others.get(at)) {
        Some(other) => question(*other, PollInterest::READ),
        None => question(fd, interest),
    });
    block(&mut all[..=N])?;
    Ok((answer(&all[0]), std::array::from_fn(|at| answer(&all[at + 1]).readable)))
}

/// Whether the other end has closed, whatever of what it sent is still to be received. Does not wait.
///
/// # Errors
/// `Io` when the system refuses.
pub(crate) fn has_ended(fd: BorrowedFd<'_>) -> Result<bool> {
    let mut asked = [question(fd, PollInterest::READ)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    retry_on_intr(|| poll(&mut asked, Some(&now))).map_err(|errno| refused(Code::Io, "", "cannot look", errno))?;
    Ok(answer(&asked[0]).ended)
}

fn question(fd: BorrowedFd<'_>, interest: PollInterest) -> PollFd<'_> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, interest.readable);
    flags.set(PollFlags::OUT, interest.writable);
    PollFd::from_borrowed_fd(fd, flags)
}

fn answer(asked: &PollFd<'_>) -> PollResult {
    let flags = asked.revents();
    let ended = flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    PollResult {
        readable: ended || flags.contains(PollFlags::IN),
        writable: flags.contains(PollFlags::OUT),
        ended,
    }
}

fn block(all: &mut [PollFd<'_>]) -> Result<()> {
    match poll(all, None) {
        Ok(_) => Ok(()),
        Err(Errno::INTR) => Err(Error::new(Code::Interrupted, "", "a signal arrived")),
        Err(errno) => Err(refused(Code::Io, "", "cannot wait", errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_ready_is_told_and_the_end_to_everybody() {
        let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        let told = |readable, writable| PollResult {
            readable,
            writable,
            ended: false,
        };
        assert_eq!(wait(far.as_fd(), PollInterest::BOTH).unwrap(), told(false, true));
        std::io::Write::write_all(&mut near, b"x").unwrap();
        assert_eq!(wait(far.as_fd(), PollInterest::READ).unwrap(), told(true, false));
        assert_eq!(
            wait_beside(near.as_fd(), PollInterest::READ, [far.as_fd()]).unwrap(),
            (PollResult::default(), [true])
        );

        drop(near);
        let ready = wait(far.as_fd(), PollInterest::WRITE).unwrap();
        assert!(ready.ended && ready.readable);
    }
}
