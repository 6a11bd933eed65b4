//! `/proc`, through which processes look at memory that they share.

use super::{DoctorFinding, MachineView};

pub(super) fn proc(machine: &MachineView) -> Vec<DoctorFinding> {
    const CHECK: &str = "/proc";
    let descriptors = machine.proc.join("self/fd");
    vec![match std::fs::read_dir(&descriptors) {
        Ok(_) => DoctorFinding::ok(CHECK, "mounted and readable"),
        Err(error) => DoctorFinding::fail(
            CHECK,
            format!("{}: {error}", descriptors.display()),
            "segments of memory cannot be opened for reading only, so no large payload can be handed over",
            "mount it: mount -t proc proc /proc (in a container: do not mask it)",
        ),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::FindingLevel;
    use super::super::testing::{levels, machine};
    use super::*;

    #[test]
    fn without_proc_nothing_large_moves() {
        let (_folder, bare) = machine(&[]);
        assert_eq!(levels(&proc(&bare)), [FindingLevel::Fail]);
        let (_folder, mounted) = machine(&[("proc/self/fd/0", "")]);
        assert_eq!(levels(&proc(&mounted)), [FindingLevel::Ok]);
    }
}
