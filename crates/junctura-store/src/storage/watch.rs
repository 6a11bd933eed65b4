//! Notifications of writes to a folder.

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

/// A wait for changes of a folder. Writes from other machines may not be reported: each wait is therefore short.
pub(crate) trait FolderWatch: Debug + Send {
    /// Waits until something is written, or so long; perhaps less.
    fn wait(&mut self, time: Duration) -> io::Result<()>;
}

/// For storage without notifications: sleeps.
#[derive(Debug)]
pub(crate) struct PollingPause;

impl FolderWatch for PollingPause {
    fn wait(&mut self, time: Duration) -> io::Result<()> {
        thread::park_timeout(time);
        Ok(())
    }
}

/// The kernel's notifications for a local folder.
#[derive(Debug)]
pub(crate) struct FolderNotices(OwnedFd);

impl FolderNotices {
    /// # Errors
    /// What the system refuses: it keeps so many for a user, and no more.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let told = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let of_interest = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        inotify::add_watch(&told, folder, of_interest)?;
        Ok(Self(told))
    }
}

impl FolderWatch for FolderNotices {
    fn wait(&mut self, time: Duration) -> io::Result<()> {
        let time = Timespec::try_from(time).ok();
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], time.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            polled => _ = polled?,
        }
        // The content does not matter.
        let mut notices = [0; 4096];
        loop {
            match rustix::io::read(&self.0, &mut notices) {
                Ok(1..) | Err(Errno::INTR) => {}
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
