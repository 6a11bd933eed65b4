//! Numbers of the server's process, from `/proc` (proc(5)). An exporter of the same user can read them; where it cannot, they are left out.

use std::fs;

/// The numbers of a process in `/proc`.
#[derive(Debug, Default)]
pub(super) struct ProcessNumbers {
    pub(super) cpu_seconds: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) open_fds: Option<usize>,
    pub(super) max_fds: Option<u64>,
}

impl ProcessNumbers {
    pub(super) fn of(pid: u32) -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        Self {
            cpu_seconds: read("stat").as_deref().and_then(cpu_seconds),
            resident_bytes: read("statm").as_deref().and_then(resident_bytes),
            open_fds: fs::read_dir(format!("/proc/{pid}/fd")).ok().map(Iterator::count),
            max_fds: read("limits").as_deref().and_then(max_fds),
        }
    }
}

/// Fields 14 and 15, in ticks; the name of the program, the second field, may have spaces and parentheses.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = ticks.next()?.ok()? + ticks.next()?.ok()?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn resident_bytes(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn max_fds(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100 1000 5 18446744073709551615";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu_seconds(stat), Some(300.0 / ticks));
        assert_eq!(cpu_seconds("7 (a) S"), None);
        assert_eq!(
            resident_bytes("100 50 20 1 0 9 0"),
            Some(50 * rustix::param::page_size() as u64)
        );
        assert_eq!(
            max_fds("Limit  Soft\nMax open files            1024                 4096     files\n"),
            Some(1024)
        );
    }

    #[test]
    fn this_process_can_be_inspected() {
        let own = ProcessNumbers::of(std::process::id());
        assert!(own.cpu_seconds.is_some() && own.resident_bytes.is_some() && own.open_fds > Some(2));
        assert!(ProcessNumbers::of(0).cpu_seconds.is_none());
    }
}
