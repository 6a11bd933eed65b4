//! Checks of the memory: its amount, its limits, and whether it can be shared safely.

use std::path::{Path, PathBuf};

use junctura_terminal::size;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;

use super::{DoctorFinding, MachineView};
use crate::pool::serve;

/// Below this no pool is of use.
const NEEDED_BYTES: u64 = 64 << 20;

pub(super) fn available(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "memory";
    let path = machine.proc.join("meminfo");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let (Some(total), Some(available)) = (kib(&text, "MemTotal:"), kib(&text, "MemAvailable:")) else {
        return vec![DoctorFinding::warn(
            CHECK,
            format!("{} does not state the amount", path.display()),
            "a server may promise more than there is",
            "set it: junctura pool serve --budget 4GiB",
        )];
    };
    let found = format!("{} of {} available", size::bytes(available), size::bytes(total));
    let budget = total / 4;
    vec![if available < NEEDED_BYTES {
        let remedy = "end what fills it, or take another machine";
        DoctorFinding::fail(CHECK, found, "the kernel ends processes that fill a pool", remedy)
    } else if available < budget {
        DoctorFinding::warn(
            CHECK,
            found,
            &format!(
                "a pool that fills its default budget, {}, is more than is free",
                size::bytes(budget)
            ),
            "set less: junctura pool serve --budget SIZE, with --spill FOLDER for the rest",
        )
    } else {
        DoctorFinding::ok(CHECK, found)
    }]
}

fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace()
        .next()?
        .parse::<u64>()
        .ok()
        .map(|kib| kib << 10)
}

/// Returns the memory limit of this process's control group: its own limit, or the lowest limit of its ancestors.
pub(super) fn control_group(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "memory, by group";
    let Some(limit) = limit_of(machine) else {
        return vec![DoctorFinding::ok(CHECK, "no control group limits it")];
    };
    let found = format!("at most {}", size::bytes(limit));
    let budget = serve::default_budget_bytes();
    let remedy = "set less: junctura pool serve --budget SIZE, with --spill FOLDER for the rest";
    vec![if limit < NEEDED_BYTES {
        let remedy = "ask for more: --mem of a batch job, --memory of a container";
        DoctorFinding::fail(CHECK, found, "the kernel ends the server or its clients", remedy)
    } else if limit < budget {
        let consequence = format!(
            "the default budget of a pool is {}: the kernel ends the server when it is used",
            size::bytes(budget)
        );
        DoctorFinding::warn(CHECK, found, &consequence, remedy)
    } else {
        DoctorFinding::ok(CHECK, found)
    }]
}

pub(super) fn limit_of(machine: &MachineView) -> Option<u64> {
    let groups = std::fs::read_to_string(machine.proc.join("self/cgroup")).unwrap_or_default();
    limit(&groups, &machine.cgroups)
}

fn limit(groups: &str, root: &Path) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        let mut folder: PathBuf = root.join(path.trim_start_matches('/'));
        while folder.starts_with(&root) {
            let told = std::fs::read_to_string(folder.join(file)).ok();
            // Not limited is `max`, or a number near the largest one.
            let limit = told
                .and_then(|text| text.trim().parse::<u64>().ok())
                .filter(|limit| *limit < 1 << 60);
            least = least.into_iter().chain(limit).min();
            if !folder.pop() {
                break;
            }
        }
    }
    least
}

pub(super) fn sealing(_: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "sealed memory";
    vec![match seal() {
        Ok(true) => DoctorFinding::ok(CHECK, "memory files can be made, sealed and reopened"),
        Ok(false) => DoctorFinding::fail(
            CHECK,
            "a sealed memory file could be made smaller",
            "a process could end others by shrinking what they have mapped",
            "another kernel: this one does not keep seals",
        ),
        Err(errno) => DoctorFinding::fail(
            CHECK,
            format!("memfd_create: {errno}"),
            "there is no memory to share: no server starts",
            "a sandbox (seccomp), vm.memfd_noexec or a limit on files forbids it: ulimit -f, sysctl vm.memfd_noexec",
        ),
    }]
}

/// Whether seals hold.
fn seal() -> rustix::io::Result<bool> {
    let memory = memfd_create("junctura-doctor", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, 4096)?;
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(ftruncate(&memory, 0) == Err(Errno::PERM))
}

#[cfg(test)]
mod tests {
    use super::super::FindingLevel;
    use super::super::testing::{levels, machine};
    use super::*;

    #[test]
    fn little_memory_is_told() {
        let level = |available: &str| {
            let text = format!("MemTotal:  16777216 kB\nMemFree: 1 kB\nMemAvailable: {available} kB\n");
            let (_folder, machine) = machine(&[("proc/meminfo", &text)]);
            levels(&super::available(&machine))[0]
        };
        assert_eq!(level("8388608"), FindingLevel::Ok);
        assert_eq!(level("1048576"), FindingLevel::Warn);
        assert_eq!(level("1024"), FindingLevel::Fail);
        let (_folder, machine) = machine(&[]);
        assert_eq!(levels(&super::available(&machine)), [FindingLevel::Warn]);
    }

    #[test]
    fn the_least_limit_of_a_group_counts() {
        let level = |files: &[(&str, &str)]| {
            let (_folder, machine) = machine(files);
            levels(&control_group(&machine))[0]
        };
        let here = ("proc/self/cgroup", "0::/job/step\n");
        assert_eq!(level(&[here]), FindingLevel::Ok);
        assert_eq!(
            level(&[here, ("cgroup/job/step/memory.max", "max\n")]),
            FindingLevel::Ok
        );
        assert_eq!(
            level(&[here, ("cgroup/job/memory.max", "1000000\n")]),
            FindingLevel::Fail
        );
        assert_eq!(
            level(&[here, ("cgroup/job/step/memory.max", "67108864\n")]),
            FindingLevel::Warn
        );
        let old = ("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/\n");
        assert_eq!(
            level(&[old, ("cgroup/memory/job/memory.limit_in_bytes", "1000\n")]),
            FindingLevel::Fail
        );
        assert_eq!(
            level(&[
                old,
                ("cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n")
            ]),
            FindingLevel::Ok
        );
    }

    #[test]
    fn seals_hold_here() {
        assert_eq!(seal(), Ok(true));
    }
}
