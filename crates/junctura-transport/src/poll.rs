//! Waiting, for those who have nothing else to do meanwhile: clients. (A server waits for all its clients at once.)

use std::os::fd::BorrowedFd;
use std::time::Duration;

use junctura_model::{Code, Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::refused;

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Something has come, or the end.
    pub readable: bool,
    /// Something can go.
    pub writable: bool,
}

impl Interest {
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

/// What came of waiting; all `false`: the time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Something has come. Also set with `ended`, since receiving is how the end is found.
    pub readable: bool,
    /// Something can go.
    pub writable: bool,
    /// The other side is gone; told even to who did not ask.
    pub ended: bool,
}

impl Ready {
    /// Whether nothing came: the time is over.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// One of several descriptors that are waited on.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    /// On what.
    pub fd: BorrowedFd<'a>,
    /// For what.
    pub interest: Interest,
    /// What came of it; [`wait_any`] sets it.
    pub ready: Ready,
}

impl<'a> Waiting<'a> {
    /// Waits on `fd` for `interest`.
    #[must_use]
    pub fn new(fd: BorrowedFd<'a>, interest: Interest) -> Self {
        Self {
            fd,
            interest,
            ready: Ready::default(),
        }
    }
}

/// Waits until `fd` is ready or `timeout` is over (`None`: for ever).
///
/// # Errors
/// `Interrupted` when a signal came: look at what it wants, then wait for the rest of the time. `Io` otherwise.
pub fn wait(fd: BorrowedFd<'_>, interest: Interest, timeout: Option<Duration>) -> Result<Ready> {
    let mut one = [question(fd, interest)];
    block(&mut one, timeout)?;
    Ok(answer(&one[0]))
}

/// Waits until at least one of them is ready or `timeout` is over (`None`: for ever); says how many are.
///
/// # Errors
/// As [`wait`].
pub fn wait_any(them: &mut [Waiting<'_>], timeout: Option<Duration>) -> Result<usize> {
    let mut all: Vec<_> = them.iter().map(|one| question(one.fd, one.interest)).collect();
    let count = block(&mut all, timeout)?;
    for (waiting, asked) in them.iter_mut().zip(&all) {
        waiting.ready = answer(asked);
    }
    Ok(count)
}

fn question(fd: BorrowedFd<'_>, interest: Interest) -> PollFd<'_> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, interest.readable);
    flags.set(PollFlags::OUT, interest.writable);
    PollFd::from_borrowed_fd(fd, flags)
}

fn answer(asked: &PollFd<'_>) -> Ready {
    let flags = asked.revents();
    let ended = flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    Ready {
        readable: ended || flags.contains(PollFlags::IN),
        writable: flags.contains(PollFlags::OUT),
        ended,
    }
}

fn block(all: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<usize> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(all, timeout.as_ref()) {
        Ok(count) => Ok(count),
        Err(Errno::INTR) => Err(Error::new(Code::Interrupted, "", "a signal came")),
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
        let now = Some(Duration::ZERO);
        assert!(wait(far.as_fd(), Interest::READ, now).unwrap().is_none());
        let ready = wait(far.as_fd(), Interest::BOTH, now).unwrap();
        assert_eq!(
            ready,
            Ready {
                readable: false,
                writable: true,
                ended: false
            }
        );
        std::io::Write::write_all(&mut near, b"x").unwrap();
        let ready = wait(far.as_fd(), Interest::READ, None).unwrap();
        assert_eq!(
            ready,
            Ready {
                readable: true,
                writable: false,
                ended: false
            }
        );

        let mut both = [
            Waiting::new(near.as_fd(), Interest::READ),
            Waiting::new(far.as_fd(), Interest::READ),
        ];
        assert_eq!(wait_any(&mut both, None).unwrap(), 1);
        assert!(both[0].ready.is_none() && both[1].ready.readable);
        assert_eq!(wait_any(&mut [], now).unwrap(), 0);

        drop(near);
        let ready = wait(far.as_fd(), Interest::WRITE, None).unwrap();
        assert!(ready.ended && ready.readable);
    }

    #[test]
    fn endless_timeouts_are_no_error() {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(near);
        assert!(wait(far.as_fd(), Interest::READ, Some(Duration::MAX)).unwrap().ended);
    }
}
