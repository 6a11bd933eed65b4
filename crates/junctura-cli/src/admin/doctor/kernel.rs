//! Checks of the kernel, its clock and its wake-ups.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::{DoctorFinding, MachineView};

/// Memory that is sealed, the newest thing that is needed (3.17), and some years of mended bugs.
const NEEDED: (u32, u32) = (4, 14);
/// Memory that can never be executed, where it is known.
const BEST: (u32, u32) = (6, 3);
/// A clock that shows a year before this project is wrong.
const NOT_BEFORE: Duration = Duration::from_hours(55 * 8766);

pub(super) fn version(_: &MachineView) -> Vec<DoctorFinding> {
    let name = rustix::system::uname();
    vec![judge(&name.release().to_string_lossy())]
}

fn judge(release: &str) -> DoctorFinding {
    const CHECK: &str = "kernel";
    match parse(release) {
        None => DoctorFinding::warn(
            CHECK,
            format!("{release:?}, which is no version"),
            "it may lack something",
            "look at the other findings",
        ),
        Some(version) if version < NEEDED => DoctorFinding::fail(
            CHECK,
            release,
            "sealed memory or something around it is missing or has bugs",
            "Linux 4.14 or newer",
        ),
        Some(version) if version < BEST => DoctorFinding::ok(
            CHECK,
            format!("{release} (6.3 or newer could also forbid to execute shared memory)"),
        ),
        Some(_) => DoctorFinding::ok(CHECK, release),
    }
}

fn parse(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|letter: char| !letter.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub(super) fn clock(_: &MachineView) -> Vec<DoctorFinding> {
    let first = Instant::now();
    let is_forward = Instant::now() >= first;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    vec![judge_clock(is_forward, since)]
}

fn judge_clock(is_forward: bool, since_1970: Duration) -> DoctorFinding {
    const CHECK: &str = "clock";
    if !is_forward {
        return DoctorFinding::fail(
            CHECK,
            "the monotonic clock ran backwards",
            "timeouts end too early or never",
            "look at the kernel's log for the clock source",
        );
    }
    if since_1970 < NOT_BEFORE {
        return DoctorFinding::warn(
            CHECK,
            format!("it shows {} s since 1970, which is decades ago", since_1970.as_secs()),
            "versions of servers at abstract addresses, and dates such as date=-1, are wrong",
            "set the clock: chronyc makestep, timedatectl set-ntp true",
        );
    }
    DoctorFinding::ok(CHECK, "runs forward and shows a plausible date")
}

pub(super) fn wakeups(_: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "wake-ups";
    vec![match wake() {
        Ok(()) => DoctorFinding::ok(CHECK, "eventfd and poll work"),
        Err(errno) => DoctorFinding::fail(
            CHECK,
            format!("eventfd or poll: {errno}"),
            "no server can run",
            "a sandbox (seccomp) forbids them: allow eventfd2, epoll_* and ppoll",
        ),
    }]
}

fn wake() -> rustix::io::Result<()> {
    let bell = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let mut waited = [PollFd::new(&bell, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut waited, Some(&at_once))? {
        1 => Ok(()),
        _ => Err(rustix::io::Errno::AGAIN),
    }
}

#[cfg(test)]
mod tests {
    use super::super::FindingLevel;
    use super::super::testing::levels;
    use super::*;

    #[test]
    fn old_kernels_are_told() {
        assert_eq!(levels(&[judge("3.10.0-1160.el7.x86_64")]), [FindingLevel::Fail]);
        assert_eq!(levels(&[judge("5.14.0-427.el9.x86_64")]), [FindingLevel::Ok]);
        assert_eq!(levels(&[judge("6.12")]), [FindingLevel::Ok]);
        assert_eq!(levels(&[judge("gnumach")]), [FindingLevel::Warn]);
    }

    #[test]
    fn clocks_that_cannot_be_right_are_told() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(levels(&[judge_clock(true, now)]), [FindingLevel::Ok]);
        assert_eq!(levels(&[judge_clock(true, Duration::ZERO)]), [FindingLevel::Warn]);
        assert_eq!(levels(&[judge_clock(false, now)]), [FindingLevel::Fail]);
    }

    #[test]
    fn somebody_can_be_woken_here() {
        wake().unwrap();
    }
}
