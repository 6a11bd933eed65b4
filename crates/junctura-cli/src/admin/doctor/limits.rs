//! The limits of this process.

use junctura_terminal::size;
use rustix::process::{Resource, Rlimit, getrlimit};

use super::{DoctorFinding, MachineView};

/// A server opens this many for itself, and four for each client.
const DESCRIPTORS_NEEDED: u64 = 64;
/// Enough for some two hundred clients.
const DESCRIPTORS_WANTED: u64 = 1024;
/// The smallest pool that makes sense.
const BYTES_NEEDED: u64 = 64 << 20;
/// The addresses that a mapped pool and its rings take, many times over.
const ADDRESSES_NEEDED: u64 = 1 << 30;

pub(super) fn descriptors(_: &MachineView) -> Vec<DoctorFinding> {
    vec![judge_descriptors(getrlimit(Resource::Nofile))]
}

fn judge_descriptors(limit: Rlimit) -> DoctorFinding {
    const CHECK: &str = "open files";
    let most = limit.maximum.unwrap_or(u64::MAX);
    let found = format!("at most {}", count(limit.maximum));
    if most < DESCRIPTORS_NEEDED {
        let consequence = "a server turns its clients away: each takes four descriptors";
        return DoctorFinding::fail(
            CHECK,
            found,
            consequence,
            "ulimit -Hn 4096, or nofile in /etc/security/limits.conf",
        );
    }
    if most < DESCRIPTORS_WANTED {
        let consequence = format!("a server has room for some {} clients", most.saturating_sub(32) / 4);
        return DoctorFinding::warn(
            CHECK,
            found,
            &consequence,
            "ulimit -Hn 4096, or nofile in /etc/security/limits.conf",
        );
    }
    DoctorFinding::ok(CHECK, found)
}

pub(super) fn file_size(_: &MachineView) -> Vec<DoctorFinding> {
    vec![judge_file_size(getrlimit(Resource::Fsize))]
}

/// Shared memory is files to the kernel.
fn judge_file_size(limit: Rlimit) -> DoctorFinding {
    const CHECK: &str = "file size";
    match limit.current {
        None => DoctorFinding::ok(CHECK, "not limited"),
        Some(bytes) => {
            let found = format!("at most {}", size::bytes(bytes));
            let consequence = "no segment of shared memory can be larger, nor any file that is spilled or written";
            let remedy = "ulimit -f unlimited";
            if bytes < BYTES_NEEDED {
                DoctorFinding::fail(CHECK, found, consequence, remedy)
            } else {
                DoctorFinding::warn(CHECK, found, consequence, remedy)
            }
        }
    }
}

pub(super) fn address_space(_: &MachineView) -> Vec<DoctorFinding> {
    vec![judge_address_space(getrlimit(Resource::As))]
}

fn judge_address_space(limit: Rlimit) -> DoctorFinding {
    const CHECK: &str = "address space";
    match limit.current {
        None => DoctorFinding::ok(CHECK, "not limited"),
        Some(bytes) => {
            let found = format!("at most {}", size::bytes(bytes));
            let consequence = "payloads that this process holds must fit into it together, mapped as they are";
            let remedy = "ulimit -v unlimited; limit memory by a control group instead";
            if bytes < ADDRESSES_NEEDED {
                DoctorFinding::fail(CHECK, found, consequence, remedy)
            } else {
                DoctorFinding::warn(CHECK, found, consequence, remedy)
            }
        }
    }
}

/// For information: nothing here locks memory.
pub(super) fn locked(_: &MachineView) -> Vec<DoctorFinding> {
    let limit = getrlimit(Resource::Memlock);
    let found = match limit.current {
        None => "not limited".to_owned(),
        Some(bytes) => format!("at most {}; none is needed", size::bytes(bytes)),
    };
    vec![DoctorFinding::ok("locked memory", found)]
}

fn count(limit: Option<u64>) -> String {
    limit.map_or("as many as one likes".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::FindingLevel::{Fail, Ok, Warn};
    use super::super::testing::levels;
    use super::*;

    fn limit(value: Option<u64>) -> Rlimit {
        Rlimit {
            current: value,
            maximum: value,
        }
    }

    #[test]
    fn what_is_too_little_is_told() {
        let judge = |judge: fn(Rlimit) -> DoctorFinding, value| levels(&[judge(limit(value))])[0];
        assert_eq!(judge(judge_descriptors, None), Ok);
        assert_eq!(judge(judge_descriptors, Some(1024)), Ok);
        assert_eq!(judge(judge_descriptors, Some(1023)), Warn);
        assert_eq!(judge(judge_descriptors, Some(63)), Fail);
        assert_eq!(judge(judge_file_size, None), Ok);
        assert_eq!(judge(judge_file_size, Some(64 << 20)), Warn);
        assert_eq!(judge(judge_file_size, Some(0)), Fail);
        assert_eq!(judge(judge_address_space, None), Ok);
        assert_eq!(judge(judge_address_space, Some(1 << 40)), Warn);
        assert_eq!(judge(judge_address_space, Some(1 << 20)), Fail);
    }
}
