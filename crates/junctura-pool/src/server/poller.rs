//! Waiting for many descriptors at once (epoll, level-triggered), and for one alarm.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use junctura_model::Result;
use junctura_transport::{LookPatience, WakeTimer};
use rustix::event::{Timespec, epoll};

use super::io;

/// The events for which a connection is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadyEvents {
    /// Data was received, or the end.
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The client has disconnected.
    pub(super) ended: bool,
}

/// The source of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeupSource {
    Alarm,
    Stop,
    Listener,
    Client {
        client: u32,
        ready: ReadyEvents,
    },
    Death {
        client: u32,
    },
    /// Its bell rang: something is in its ring, or there is room in the other one.
    Bell {
        client: u32,
    },
    /// The file tier has written something.
    Spilled,
    /// A selector with regular expressions was read.
    Compiled,
}

impl ReadyEvents {
    pub(super) const BOTH: Self = Self {
        readable: true,
        writable: true,
        ended: false,
    };
}

const EVENTS_AT_ONCE: usize = 64;

const STOP: u64 = 1;
const LISTENER: u64 = 2;
const CLIENT: u64 = 3;
const DEATH: u64 = 4;
const ALARM: u64 = 5;
const BELL: u64 = 6;
const SPILLED: u64 = 7;
const COMPILED: u64 = 8;

impl WakeupSource {
    fn token(self) -> u64 {
        match self {
            Self::Alarm => ALARM << 32,
            Self::Stop => STOP << 32,
            Self::Listener => LISTENER << 32,
            Self::Client { client, .. } => CLIENT << 32 | u64::from(client),
            Self::Death { client } => DEATH << 32 | u64::from(client),
            Self::Bell { client } => BELL << 32 | u64::from(client),
            Self::Spilled => SPILLED << 32,
            Self::Compiled => COMPILED << 32,
        }
    }

    fn from_event(token: u64, flags: epoll::EventFlags) -> Option<Self> {
        let client = token as u32;
        match token >> 32 {
            ALARM => Some(Self::Alarm),
            STOP => Some(Self::Stop),
            LISTENER => Some(Self::Listener),
            CLIENT => {
                let ended = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
                let readable = ended || flags.contains(epoll::EventFlags::IN);
                Some(Self::Client {
                    client,
                    ready: ReadyEvents {
                        readable,
                        writable: flags.contains(epoll::EventFlags::OUT),
                        ended,
                    },
                })
            }
            DEATH => Some(Self::Death { client }),
            BELL => Some(Self::Bell { client }),
            SPILLED => Some(Self::Spilled),
            COMPILED => Some(Self::Compiled),
            _ => None,
        }
    }
}

pub(super) struct EventPoller {
    epoll: OwnedFd,
    alarm: WakeTimer,
    patience: LookPatience,
}

impl EventPoller {
    pub(super) fn new() -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| io("epoll", errno))?;
        let poller = Self {
            epoll,
            alarm: WakeTimer::new()?,
            patience: LookPatience::default(),
        };
        poller.add(poller.alarm.as_fd(), WakeupSource::Alarm)?;
        Ok(poller)
    }

    pub(super) fn add(&self, fd: BorrowedFd<'_>, wakeup: WakeupSource) -> Result<()> {
        // A bell signals each ringing once, so it needs no reset.
        let flags = match wakeup {
            WakeupSource::Bell { .. } => epoll::EventFlags::IN | epoll::EventFlags::ET,
            _ => epoll::EventFlags::IN,
        };
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(wakeup.token()), flags)
            .map_err(|errno| io("waiting for a descriptor", errno))
    }

    pub(super) fn change(&self, fd: BorrowedFd<'_>, wakeup: WakeupSource, interest: ReadyEvents) -> Result<()> {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, interest.readable);
        flags.set(epoll::EventFlags::OUT, interest.writable);
        epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(wakeup.token()), flags)
            .map_err(|errno| io("waiting for a descriptor", errno))
    }

    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        let removed = epoll::delete(&self.epoll, fd);
        debug_assert!(removed.is_ok(), "only what was added is removed");
    }

    /// Looks what is ready, without waiting.
    pub(super) fn look(&self, ready: &mut Vec<WakeupSource>) -> Result<()> {
        wait_once(&self.epoll, ready, Some(&Timespec::default()))
    }

    /// Waits until something is ready, or until `deadline` or before; first looks again and again for `spin`, if that has
    /// been worth it. Whether it slept.
    pub(super) fn wait(
        &mut self,
        ready: &mut Vec<WakeupSource>,
        deadline: Option<Instant>,
        spin: Duration,
    ) -> Result<bool> {
        if let Some(deadline) = deadline {
            self.alarm.set(deadline)?;
        }
        let Self { epoll, patience, .. } = self;
        let look = || wait_once(epoll, ready, Some(&Timespec::default())).map(|()| !ready.is_empty());
        if patience.look_for(spin, look)? {
            return Ok(false);
        }
        wait_once(epoll, ready, None).map(|()| true)
    }

    /// Resets the alarm after it has fired.
    pub(super) fn answer_alarm(&mut self) {
        self.alarm.answer();
    }
}

fn wait_once(epoll: &OwnedFd, ready: &mut Vec<WakeupSource>, timeout: Option<&Timespec>) -> Result<()> {
    let mut buffer = [MaybeUninit::uninit(); EVENTS_AT_ONCE];
    match epoll::wait(epoll, &mut buffer, timeout) {
        Ok((events, _)) => {
            ready.extend(
                events
                    .iter()
                    .filter_map(|event| WakeupSource::from_event(event.data.u64(), event.flags)),
            );
            Ok(())
        }
        Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(io("epoll", errno)),
    }
}

pub(super) fn eventfd() -> Result<OwnedFd> {
    let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
    rustix::event::eventfd(0, flags).map_err(|errno| io("eventfd", errno))
}
